//! Host part of Reflex ("Reflex: Enhancing Delay-Based RDMA Congestion Control for Cross-Datacenter Networks"),
//! section III-C. The congestion control of flows to another site uses echoes of the edge switch of the own site,
//! which measure the round trip to that edge. The round-trip time to the peer is ignored. Flows inside a site, and
//! all flows without an edge that replies, use the congestion control and the picker unchanged.

use pathweave_units::{Duration, Rng, Time};

use crate::cc::{AnyCc, CcConfig, IncreaseOver, SwiftConfig, TimelyConfig};
use crate::error::check;
use crate::fluid::{AsFluid, ControlModel, Fluid, HasControlModel, OverUnequalPaths};
use crate::picker::{AnyPicker, PickerConfig};
use crate::split::{SplitConfig, SplitPolicy};
use crate::{
    Adapt, ConfigError, ControlFeedback, FabricEnv, Feedback, FeedbackKind, MarkUse, MeasuredSection, Policy,
    PolicyCx, PolicyEnv,
};

/// Effect of the peer's acknowledgements on the congestion control of a flow to another site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum E2eMode {
    /// No effect, as in the paper: once the edge is silent, a flow that was slowed down stays slow.
    None,
    /// Each acknowledgement updates the congestion control once, with the round-trip time of the last echo. After
    /// `hold_for` without an echo it uses the idle round-trip time: silence means there is no queue.
    #[default]
    Hold,
}

/// Reflex: congestion control by the edge switch of the own site.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ReflexConfig {
    /// Congestion control.
    pub cc: CcConfig,
    /// Congestion control of flows that the edge replies to. Absent: `cc`, with thresholds that fit the round trip to
    /// the edge. TIMELY's T_low and T_high are then 1.6 and 16 times the idle round-trip time to the edge, and the
    /// gradient's base is that time. Swift computes its target for the section to the edge, and its windows grow over
    /// that section.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub edge_cc: Option<CcConfig>,
    /// Path picker.
    pub picker: PickerConfig,
    /// Effect of the peer's acknowledgements. Default "hold".
    #[cfg_attr(feature = "serde", serde(default))]
    pub e2e_mode: E2eMode,
    /// With "hold": time for which an echo is valid. Absent: 1.6 times the idle round-trip time to the edge, which is
    /// twice the edge's interval between echoes.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub hold_for: Option<Duration>,
}

/// Number of packets that may queue where several senders collide by chance.
const CHANCE_PACKETS: u64 = 8;

/// Returns the round-trip time above which a packet has met a queue: `idle` plus six tenths of it, at least eight
/// packets of time `packet`, which may collide by chance. In Reflex's evaluation, with 3.25 us to the edge and 6.27
/// us for the round trip, these are 5.2 and 10.0 us; the paper sets 5 and 10 (table I). Hosts and external switches
/// use this value.
pub fn queued_rtt(idle: Duration, packet: Duration) -> Duration {
    idle + (idle * 3 / 5).max(packet * CHANCE_PACKETS)
}

/// Ratio T_high / T_low of TIMELY's own thresholds (SIGCOMM 2015, section 6: 50 and 500 us).
const HIGH_OVER_LOW: u64 = 10;

/// Returns the congestion control with thresholds that fit the round trip to the edge.
fn edge_thresholds(cc: &CcConfig, edge: MeasuredSection, packet: Duration) -> CcConfig {
    match cc {
        CcConfig::Timely(timely) => {
            let t_low = queued_rtt(edge.base_rtt, packet);
            CcConfig::Timely(TimelyConfig {
                t_low: Some(t_low),
                t_high: Some(t_low * HIGH_OVER_LOW),
                min_rtt: Some(edge.base_rtt),
                ..timely.clone()
            })
        }
        CcConfig::Swift(swift) => {
            CcConfig::Swift(SwiftConfig { increase_over: IncreaseOver::Measured, ..swift.clone() })
        }
        other => other.clone(),
    }
}

impl AsFluid for ReflexConfig {
    fn as_fluid(&self) -> Fluid {
        // The model is not held to runs over unequal paths.
        let over_unequal_paths = OverUnequalPaths::IsDisturbed;
        let control = ControlModel { over_unequal_paths, ..self.cc.control() };
        Fluid { spread: self.picker.spread(), control }
    }
}

/// Adapts only `cc`: `edge_cc` is for simulated sites, whose edge replies.
impl Adapt for ReflexConfig {
    crate::forwards!({ cc } uses_longest_path, reads_telemetry, base_path, host_delay, adapt_to_host);
    fn adapt_to_fabric(&mut self, fabric: &FabricEnv<'_>) {
        self.cc.adapt_to_fabric(fabric);
        if let Some(cc) = &mut self.edge_cc {
            cc.adapt_to_fabric(fabric);
        }
    }
    fn marks(&self) -> MarkUse {
        self.edge_cc.iter().map(CcConfig::marks).fold(self.cc.marks(), MarkUse::max)
    }
}

impl ReflexConfig {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.cc.validate().map_err(|error| error.within("cc"))?;
        if let Some(cc) = &self.edge_cc {
            cc.validate().map_err(|error| error.within("edge_cc"))?;
        }
        match self.hold_for {
            Some(hold_for) => check(hold_for > Duration::ZERO, "hold_for", hold_for, "more than 0s"),
            None => Ok(()),
        }
    }

    /// Builds the policy of one direction of one queue pair.
    pub fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> Reflex {
        let packet = env.line_rate.time_for(u64::from(env.mtu_wire_bytes));
        let (cc, measured) = match env.edge {
            Some(edge) => {
                (self.edge_cc.clone().unwrap_or_else(|| edge_thresholds(&self.cc, edge, packet)), edge)
            }
            None => (self.cc.clone(), env.measured),
        };
        let split = SplitConfig { cc, picker: self.picker.clone() };
        Reflex {
            inner: split.build(&PolicyEnv { measured, ..*env }, rng),
            fed: env.edge.map(|edge| EdgeFeedback {
                mode: self.e2e_mode,
                idle_rtt: edge.base_rtt,
                hold_for: self.hold_for.unwrap_or_else(|| queued_rtt(edge.base_rtt, packet)),
                echo: None,
            }),
        }
    }
}

/// State of one direction of one queue pair.
#[derive(Clone, Debug)]
pub struct Reflex {
    inner: SplitPolicy<AnyCc, AnyPicker>,
    /// `None` if no edge replies.
    fed: Option<EdgeFeedback>,
}

/// Feedback from the edge.
#[derive(Clone, Copy, Debug)]
struct EdgeFeedback {
    mode: E2eMode,
    idle_rtt: Duration,
    hold_for: Duration,
    /// Time and round-trip time of the last echo.
    echo: Option<(Time, Duration)>,
}

impl EdgeFeedback {
    /// Returns the feedback that the congestion control receives instead of `feedback`.
    fn translate(&mut self, now: Time, feedback: &Feedback) -> Feedback {
        match (feedback.kind, self.mode) {
            (FeedbackKind::EdgeRtt, mode) => {
                self.echo = Some((now, feedback.rtt));
                // An echo acknowledges nothing. If acknowledgements clock increases, an echo must not cause one.
                Feedback { backlogged: feedback.backlogged && mode == E2eMode::None, ..*feedback }
            }
            (FeedbackKind::Ack { marked, .. }, E2eMode::None) => {
                let kind = FeedbackKind::Ack { timed: false, marked };
                Feedback { kind, rtt: Duration::ZERO, one_way_ps: 0, ..*feedback }
            }
            (FeedbackKind::Ack { timed: true, .. }, E2eMode::Hold) => {
                let told = self.echo.filter(|(at, _)| now.saturating_since(*at) < self.hold_for);
                Feedback { rtt: told.map_or(self.idle_rtt, |(_, rtt)| rtt), one_way_ps: 0, ..*feedback }
            }
            _ => *feedback,
        }
    }
}

impl Policy for Reflex {
    crate::forwards!(
        { inner } on_open, on_close, poll_send, on_sent, make_control, on_copy_sent, on_paths, on_timer, next_timer,
        rate, window, path_beyond_window
    );
    #[inline]
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>) {
        match &mut self.fed {
            Some(fed) => {
                let told = fed.translate(now, feedback);
                self.inner.on_feedback(now, &told, cx);
            }
            None => self.inner.on_feedback(now, feedback, cx),
        }
    }
    fn on_control(&mut self, now: Time, feedback: &ControlFeedback, cx: &mut PolicyCx<'_>) {
        match feedback.midway() {
            Some(midway) => self.on_feedback(now, &midway, cx),
            None => self.inner.on_control(now, feedback, cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::cc::TimelyPreset;
    use crate::find_scheme;
    use pathweave_units::Rate;

    const US: fn(u64) -> Duration = Duration::from_us;

    /// A flow to another site: round-trip times of 1,012 us to the peer and 6.27 us to the edge.
    fn env(edge: bool) -> PolicyEnv {
        let edge = edge.then_some(MeasuredSection { base_rtt: Duration::from_ns(6_270), links: 3 });
        PolicyEnv {
            line_rate: Rate::from_gbps(100),
            base_rtt: US(1_012),
            mtu_wire_bytes: 1_048,
            mtu_payload_bytes: 1_000,
            paths: 1,
            measured: MeasuredSection { base_rtt: US(1_012), links: 7 },
            edge,
        }
    }

    fn reflex(mode: E2eMode, edge: bool) -> Reflex {
        let config = ReflexConfig {
            cc: CcConfig::Timely(TimelyConfig::default()),
            edge_cc: Some(CcConfig::Timely(TimelyConfig::preset(TimelyPreset::Near))),
            picker: PickerConfig::Ecmp,
            e2e_mode: mode,
            hold_for: Some(US(10)),
        };
        config.build(&env(edge), &mut Rng::for_component(1, "qp", 0))
    }

    fn feed(reflex: &mut Reflex, kind: FeedbackKind, at_us: u64, rtt: Duration) {
        let feedback = Feedback { kind, wire_bytes: 1_048, rtt, inflight_packets: 9, ..crate::testing::ACK };
        let (mut rng, mut shared) = (Rng::for_component(1, "qp", 1), crate::Shared::new());
        reflex.on_feedback(
            Time::from_us(at_us),
            &feedback,
            &mut PolicyCx { rng: &mut rng, shared: &mut shared },
        );
    }
    const ACK: FeedbackKind = FeedbackKind::Ack { timed: true, marked: false };

    fn gbps(reflex: &Reflex) -> f64 {
        reflex.rate(Time::ZERO).unwrap().as_bps() as f64 / 1e9
    }

    /// A rate cut by two echoes of 200 us: 1 - 0.8 x (1 - 100 / 200) = 0.6.
    fn slowed_down(mode: E2eMode) -> Reflex {
        let mut reflex = reflex(mode, true);
        feed(&mut reflex, FeedbackKind::EdgeRtt, 2_000, US(200));
        feed(&mut reflex, FeedbackKind::EdgeRtt, 2_005, US(200));
        assert!((gbps(&reflex) - 60.0).abs() < 1e-3);
        reflex
    }

    #[test]
    fn the_delay_of_the_wan_is_not_looked_at() {
        for mode in [E2eMode::None, E2eMode::Hold] {
            let mut reflex = reflex(mode, true);
            for n in 0..20 {
                feed(&mut reflex, ACK, 2_000 + n * 1_100, US(1_012));
            }
            assert_eq!(gbps(&reflex), 100.0, "{mode:?}");
        }
        // Without an edge it is TIMELY, whose upper threshold this round-trip time far exceeds.
        let mut plain = reflex(E2eMode::Hold, false);
        (0..20).for_each(|n| feed(&mut plain, ACK, 2_000 + n * 1_100, US(1_012)));
        assert_eq!(gbps(&plain), 1.0);
    }

    #[test]
    fn slowed_flows_recover_with_hold_only() {
        let mut stuck = slowed_down(E2eMode::None);
        (0..1_000).for_each(|n| feed(&mut stuck, ACK, 3_000 + n * 10, US(1_012)));
        assert!((gbps(&stuck) - 60.0).abs() < 1e-3);
        let mut held = slowed_down(E2eMode::Hold);
        // 5 steps of 0.1 Gb/s, then 0.5 each: 84 updates for 40 Gb/s.
        (0..84).for_each(|n| feed(&mut held, ACK, 3_000 + n * 10, US(1_012)));
        assert_eq!(gbps(&held), 100.0);
    }

    #[test]
    fn by_default_thresholds_are_those_of_the_way_to_the_edge() {
        let way = |rtt_ns| MeasuredSection { base_rtt: Duration::from_ns(rtt_ns), links: 3 };
        let packet = Duration::from_ns(84);
        let CcConfig::Timely(fed) =
            edge_thresholds(&CcConfig::Timely(TimelyConfig::default()), way(6_270), packet)
        else {
            panic!("it is TIMELY")
        };
        // 1.6 and 16 times 6.27 us; the scaled values of the study are 10, 100 and 6 us.
        assert_eq!(fed.t_low, Some(Duration::from_ns(10_032)));
        assert_eq!(fed.t_high, Some(Duration::from_ns(100_320)));
        assert_eq!(fed.min_rtt, Some(Duration::from_ns(6_270)));
        // For a shorter round trip eight packets exceed six tenths of it.
        assert_eq!(queued_rtt(US(1), packet), Duration::from_ns(1_672));
        let CcConfig::Swift(fed) =
            edge_thresholds(&CcConfig::Swift(SwiftConfig::default()), way(6_270), packet)
        else {
            panic!("it is Swift")
        };
        assert_eq!(fed.increase_over, IncreaseOver::Measured);
    }

    #[test]
    fn an_echo_holds_good_for_as_long_as_configured() {
        let mut reflex = slowed_down(E2eMode::Hold);
        // An acknowledgement counts once in a round trip to the edge, which took 200 us.
        feed(&mut reflex, FeedbackKind::EdgeRtt, 2_300, US(200));
        assert!((gbps(&reflex) - 36.0).abs() < 1e-3);
        feed(&mut reflex, ACK, 2_309, US(1_012));
        assert!((gbps(&reflex) - 36.0).abs() < 1e-3, "held: 200 us, so it is too early");
        feed(&mut reflex, ACK, 2_310, US(1_012));
        assert!((gbps(&reflex) - 36.1).abs() < 1e-3, "silent for 10 us: idle");
    }

    #[test]
    fn a_window_grows_by_acknowledgements_and_not_by_echoes() {
        let scheme = (find_scheme("reflex-swift-published").unwrap().make)();
        let mut rng = Rng::for_component(1, "qp", 0);
        let crate::PolicyConfig::Reflex(config) = &scheme.policy else { panic!("reflex-swift is of Reflex") };
        let mut reflex = config.build(&env(true), &mut rng);
        let window = |reflex: &Reflex| match &reflex.inner.cc {
            AnyCc::Swift(swift) => swift.window_packets(),
            other => panic!("{other:?}"),
        };
        feed(&mut reflex, FeedbackKind::EdgeRtt, 100, US(20));
        let cut = window(&reflex);
        feed(&mut reflex, FeedbackKind::EdgeRtt, 200, US(7));
        assert_eq!(window(&reflex), cut, "below the target, and nothing acknowledged");
        feed(&mut reflex, ACK, 201, US(1_012));
        // The gain is that of a flow that ends at the edge: (1,012 / 6.27)^2 times that of one over the whole
        // distance.
        let gain = (1_012.0f64 / 6.27) * (1_012.0 / 6.27);
        assert!((window(&reflex) - (cut + gain / cut)).abs() < 1e-6);
    }
}
