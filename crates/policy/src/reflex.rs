//! The host's part of Reflex ("Reflex: Enhancing Delay-Based RDMA Congestion Control for Cross-Datacenter Networks"),
//! section III-C: for flows to another site the congestion control is fed by the edge of the own site, whose echoes
//! tell how long the way up to there and back takes; the round-trip time to the peer is not looked at. Flows inside a
//! site, and all where no edge answers, are those of the congestion control and the picker alone.

use core::ops::Range;

use pathweave_units::{Duration, PathId, Rate, Rng, Time};

use crate::cc::{AnyCc, CcConfig, IncreaseOver, SwiftConfig, TimelyConfig};
use crate::error::check;
use crate::fluid::{AsFluid, Controls, Fluid};
use crate::picker::{AnyPicker, PickerConfig};
use crate::split::{Split, SplitConfig};
use crate::{
    Adapt, ConfigError, ControlFeedback, FabricEnv, Feedback, FeedbackKind, Grant, HostDelay, HostEnv, Leg,
    Member, Memo, Outgoing, PathView, Policy, PolicyCx, PolicyEnv, SendWindow, Sent, Want,
};

/// What an acknowledgement of the peer does to the congestion control of a flow to another site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum E2eMode {
    /// Nothing, as the paper has it: once the edge is silent a flow that was slowed down stays so.
    None,
    /// It clocks the congestion control once, with the last round-trip time the edge has told, or with the idle one
    /// once the edge has been silent for `hold_for`: silence means there is no queue.
    #[default]
    Hold,
}

/// Congestion control by the edge of the site.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReflexConfig {
    /// Congestion control.
    pub cc: CcConfig,
    /// Congestion control of flows that the edge answers. Absent: `cc`, with thresholds that fit the way to the edge and
    /// back: TIMELY's T_low and T_high are 1.6 and 16 times as long as that takes when idle, and the gradient's base is just
    /// that; Swift's target is worked out for it, and windows grow over it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub edge_cc: Option<CcConfig>,
    /// Path picker.
    pub picker: PickerConfig,
    /// What acknowledgements of the peer do.
    #[cfg_attr(feature = "serde", serde(default))]
    pub e2e_mode: E2eMode,
    /// With "hold": how long an echo holds good. Absent: 1.6 times as long as the way to the edge and back takes when idle,
    /// twice the edge's interval between echoes.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub hold_for: Option<Duration>,
}

/// Packets that may queue where several senders meet by chance.
const CHANCE_PACKETS: u64 = 8;

/// A way that takes longer than this has met a queue: the idle time and six tenths of it, at least eight packets of this
/// time each, which may meet by chance. Where Reflex was evaluated, 3.25 us to the edge and 6.27 us there and back, these are
/// 5.2 and 10.0 us; it set 5 and 10 (table I). Hosts and external switches judge by it.
pub fn with_a_queue(idle: Duration, packet: Duration) -> Duration {
    idle + (idle * 3 / 5).max(packet * CHANCE_PACKETS)
}

/// T_high over T_low: that of TIMELY's own thresholds (SIGCOMM 2015, section 6: 50 and 500 us).
const HIGH_OVER_LOW: u64 = 10;

/// A congestion control with thresholds that fit the way to the edge and back.
fn near(cc: &CcConfig, edge: Leg, packet: Duration) -> CcConfig {
    match cc {
        CcConfig::Timely(timely) => {
            let t_low = with_a_queue(edge.base_rtt, packet);
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
        Fluid { spread: self.picker.spread(), control: self.cc.control() }
    }
}

/// As its congestion control: `edge_cc` is for simulated sites, whose edge answers.
impl Adapt for ReflexConfig {
    fn adapt_to_fabric(&mut self, fabric: &FabricEnv<'_>) {
        self.cc.adapt_to_fabric(fabric);
        if let Some(cc) = &mut self.edge_cc {
            cc.adapt_to_fabric(fabric);
        }
    }
    fn wants_longest_path(&self) -> bool {
        self.cc.wants_longest_path()
    }
    fn host_delay(&self) -> HostDelay {
        self.cc.host_delay()
    }
    fn adapt_to_host(&mut self, host: &HostEnv) {
        self.cc.adapt_to_host(host);
    }
}

impl ReflexConfig {
    /// Names the first field that is wrong.
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

    /// The policy of one direction of one queue pair.
    pub fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> Reflex {
        let packet = env.line_rate.time_for(u64::from(env.mtu_wire_bytes));
        let (cc, measured) = match env.edge {
            Some(edge) => (self.edge_cc.clone().unwrap_or_else(|| near(&self.cc, edge, packet)), edge),
            None => (self.cc.clone(), env.measured),
        };
        let split = SplitConfig { cc, picker: self.picker.clone() };
        Reflex {
            inner: split.build(&PolicyEnv { measured, ..*env }, rng),
            fed: env.edge.map(|edge| Fed {
                mode: self.e2e_mode,
                idle_rtt: edge.base_rtt,
                hold_for: self.hold_for.unwrap_or_else(|| with_a_queue(edge.base_rtt, packet)),
                echo: None,
            }),
        }
    }
}

/// State of one queue pair.
#[derive(Clone, Debug)]
pub struct Reflex {
    inner: Split<AnyCc, AnyPicker>,
    /// Absent where no edge answers.
    fed: Option<Fed>,
}

/// What the edge has told.
#[derive(Clone, Copy, Debug)]
struct Fed {
    mode: E2eMode,
    idle_rtt: Duration,
    hold_for: Duration,
    /// The last echo: when, and its round-trip time.
    echo: Option<(Time, Duration)>,
}

impl Fed {
    /// What the congestion control is to be told instead of `feedback`.
    fn translate(&mut self, now: Time, feedback: &Feedback) -> Feedback {
        match (feedback.kind, self.mode) {
            (FeedbackKind::Midway, mode) => {
                self.echo = Some((now, feedback.rtt));
                // It acknowledges nothing. Where acknowledgements clock increases, it must not earn one.
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
    fn on_open(&mut self, now: Time, member: &Member, cx: &mut PolicyCx<'_>) {
        self.inner.on_open(now, member, cx);
    }
    fn on_close(&mut self, cx: &mut PolicyCx<'_>) {
        self.inner.on_close(cx);
    }
    #[inline]
    fn poll_send(&mut self, now: Time, want: &Want, cx: &mut PolicyCx<'_>) -> Grant {
        self.inner.poll_send(now, want, cx)
    }
    #[inline]
    fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> Memo {
        self.inner.on_sent(now, sent, cx)
    }
    fn compose(&mut self, now: Time, path: PathId, in_flight: Range<u64>, cx: &mut PolicyCx<'_>) -> Outgoing {
        self.inner.compose(now, path, in_flight, cx)
    }
    fn on_copy_sent(&mut self, now: Time, psn: u64, path: PathId, wire_bytes: u32, cx: &mut PolicyCx<'_>) {
        self.inner.on_copy_sent(now, psn, path, wire_bytes, cx);
    }
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
    fn on_paths(&mut self, now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.inner.on_paths(now, paths, cx);
    }
    fn on_timer(&mut self, now: Time, cx: &mut PolicyCx<'_>) {
        self.inner.on_timer(now, cx);
    }
    #[inline]
    fn next_timer(&self) -> Option<Time> {
        self.inner.next_timer()
    }
    fn rate(&self, now: Time) -> Option<Rate> {
        self.inner.rate(now)
    }
    fn window(&self) -> Option<SendWindow> {
        self.inner.window()
    }
    fn path_beyond_window(&mut self, now: Time, want: &Want, cx: &mut PolicyCx<'_>) -> PathId {
        self.inner.path_beyond_window(now, want, cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::TimelyPreset;
    use crate::find_scheme;

    const US: fn(u64) -> Duration = Duration::from_us;

    /// A flow to another site: 1,012 us to the peer and back, 6.27 us to the edge and back.
    fn env(edge: bool) -> PolicyEnv {
        let edge = edge.then_some(Leg { base_rtt: Duration::from_ns(6_270), links: 3 });
        PolicyEnv {
            line_rate: Rate::from_gbps(100),
            base_rtt: US(1_012),
            mtu_wire_bytes: 1_048,
            mtu_payload_bytes: 1_000,
            paths: 1,
            measured: Leg { base_rtt: US(1_012), links: 7 },
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
        let feedback = Feedback {
            kind,
            path: PathId(0),
            psn: 0,
            memo: Memo::default(),
            wire_bytes: 1_048,
            rtt,
            one_way_ps: 0,
            inflight_packets: 9,
            backlogged: true,
        };
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

    /// 200 us near the source, twice: 1 - 0.8 x (1 - 100 / 200) = 0.6.
    fn slowed_down(mode: E2eMode) -> Reflex {
        let mut reflex = reflex(mode, true);
        feed(&mut reflex, FeedbackKind::Midway, 2_000, US(200));
        feed(&mut reflex, FeedbackKind::Midway, 2_005, US(200));
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
        // Without an edge it is TIMELY, whose upper threshold that is far beyond.
        let mut plain = reflex(E2eMode::Hold, false);
        (0..20).for_each(|n| feed(&mut plain, ACK, 2_000 + n * 1_100, US(1_012)));
        assert_eq!(gbps(&plain), 1.0);
    }

    #[test]
    fn who_was_slowed_down_recovers_with_hold_and_never_without() {
        let mut stuck = slowed_down(E2eMode::None);
        (0..1_000).for_each(|n| feed(&mut stuck, ACK, 3_000 + n * 10, US(1_012)));
        assert!((gbps(&stuck) - 60.0).abs() < 1e-3);
        let mut held = slowed_down(E2eMode::Hold);
        // 5 steps of 0.1 Gb/s, then 0.5 each: 84 updates to go 40 Gb/s.
        (0..84).for_each(|n| feed(&mut held, ACK, 3_000 + n * 10, US(1_012)));
        assert_eq!(gbps(&held), 100.0);
    }

    #[test]
    fn by_default_thresholds_are_those_of_the_way_to_the_edge() {
        let way = |rtt_ns| Leg { base_rtt: Duration::from_ns(rtt_ns), links: 3 };
        let packet = Duration::from_ns(84);
        let CcConfig::Timely(fed) = near(&CcConfig::Timely(TimelyConfig::default()), way(6_270), packet)
        else {
            panic!("it is TIMELY")
        };
        // 1.6 and 16 times 6.27 us; the scaled values of the study are 10, 100 and 6 us.
        assert_eq!(fed.t_low, Some(Duration::from_ns(10_032)));
        assert_eq!(fed.t_high, Some(Duration::from_ns(100_320)));
        assert_eq!(fed.min_rtt, Some(Duration::from_ns(6_270)));
        // Over a shorter way eight packets are more than six tenths of it.
        assert_eq!(with_a_queue(US(1), packet), Duration::from_ns(1_672));
        let CcConfig::Swift(fed) = near(&CcConfig::Swift(SwiftConfig::default()), way(6_270), packet) else {
            panic!("it is Swift")
        };
        assert_eq!(fed.increase_over, IncreaseOver::Measured);
    }

    #[test]
    fn an_echo_holds_good_for_as_long_as_configured() {
        let mut reflex = slowed_down(E2eMode::Hold);
        // An acknowledgement counts once a round trip to the edge, and that was 200 us.
        feed(&mut reflex, FeedbackKind::Midway, 2_300, US(200));
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
        feed(&mut reflex, FeedbackKind::Midway, 100, US(20));
        let cut = window(&reflex);
        feed(&mut reflex, FeedbackKind::Midway, 200, US(7));
        assert_eq!(window(&reflex), cut, "below the target, and nothing acknowledged");
        feed(&mut reflex, ACK, 201, US(1_012));
        // As a flow that ends at the edge: (1,012 / 6.27)^2 times as much as one over the whole way.
        let gain = (1_012.0f64 / 6.27) * (1_012.0 / 6.27);
        assert!((window(&reflex) - (cut + gain / cut)).abs() < 1e-6);
    }
}
