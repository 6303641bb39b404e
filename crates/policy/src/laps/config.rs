//! Parameters of LAPS.

use pathweave_units::{Duration, Rate};

use super::law::{Law, REPAIRED};
use super::{code_2025, published};
use crate::error::{AT_MOST_A_SECOND, within};
use crate::fluid::{AsFluid, ControlModel, Fluid, Spread};
use crate::{Adapt, Awaited, ConfigError, FabricEnv, FullBufferAction, HostDelay, HostEnv, PathView};

/// Number of links of a path without description: that of a leaf-spine fabric.
const USUAL_LINKS: u64 = 4;

/// Declares an enum that is a word in a scenario.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $( $(#[$each:meta])* $variant:ident ),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        pub enum $name { $( $(#[$each])* $variant ),* }
    };
}

choice! {
    /// Variant of the algorithm: that of pathweave, of the paper or of its authors' code.
    LapsVariant {
        /// Variant of pathweave. One silent path is probed before a data packet, if data hardly takes it or gets no
        /// acknowledgement there. A probe doubles the estimated delay of the path. The expected rate is at most the
        /// line rate. After a change the rate stays until every path has shown the effect. Estimated delays do not
        /// count as congestion.
        #[default]
        Repaired,
        /// Variant of the paper, algorithms 1 and 2. All silent paths are probed. The expected rate is at most the
        /// line rate, as the rate limiter of the NIC allows no more. After a change the rate stays for twice the
        /// shortest delay. Estimated delays count as measured ones.
        Published,
        /// Variant "published" without a bound on the expected rate: algorithm 2 prints none.
        PublishedUnbounded,
        /// Variant of the authors' code of January 2025. Probes overtake data, and a probe leaves the delay of its
        /// path as last measured.
        #[cfg_attr(feature = "serde", serde(rename = "code_2025"))]
        Code2025,
    }
}

choice! {
    /// Queueing by which a path may exceed its idle delay without being congested.
    Margin {
        /// A number of packets in the queue of every switch on the path (section III-E).
        #[default]
        PerSwitch,
        /// A number of packets on every link (the authors' code, which has one).
        PerLink,
    }
}

choice! {
    /// Limit of a queue pair.
    Limit {
        /// In a fabric that pauses senders, which loses nothing by long queues: "window" if the application waits for
        /// all messages of a step, and "delay_window" if it waits for each message by itself, since what is queued delays
        /// others. Rate and window if switches drop, and on real hosts, which cannot know.
        #[default]
        Auto,
        /// Only a window of the bytes that the line sends in two thresholds. This is the behaviour of the authors'
        /// code, where the rate never reaches the pacer. A rate that was reduced because of a queue leaves the link
        /// idle once the queue is empty, and takes several thresholds to recover. A window lets more data pass as the
        /// queue gets shorter.
        Window,
        /// The window of "window" times the average of min(1, T / t), where t is the delay of the fastest path. A packet of
        /// n flows that share all their paths, as in an incast, waits for sqrt(2 n) thresholds instead of 2 n. WebSearch
        /// on the fabric of UDMP has three fifths of the P99 of "window"; a double binary tree takes 9 % longer.
        DelayWindow,
        /// The rate (algorithm 2), by pacing, and that window.
        RateAndWindow,
        /// The rate and the window, with the window in proportion to the rate.
        RateAndScaledWindow,
    }
}

choice! {
    /// Threshold by which the window is computed, if only the window limits; the window is two of it.
    WindowOf {
        /// Threshold of the paths to the receiver (the authors' code): few bytes queue for near receivers.
        #[default]
        Paths,
        /// Threshold of the longest path of the fabric: senders near a receiver get the same share of its links as
        /// distant ones. An incast of 64 MB over rails then ends 0.2 % after the bound instead of 3.7 %. Under other
        /// loads with short queues the mean completion times are up to 5 % longer.
        Fabric,
    }
}

choice! {
    /// Target of a decrease.
    RateCut {
        /// Half the rate, but at least T / t of the line rate, the share that delay t indicates. At a delay of t a
        /// window of two thresholds allows at most twice that rate.
        #[default]
        ToShare,
        /// Half the rate (algorithm 2).
        Half,
    }
}

choice! {
    /// Arithmetic in which the weights of paths are computed.
    Arithmetic {
        /// Floating point, by the equation.
        #[default]
        Float,
        /// Integers of the circuit in `hardware/laps`: delays in ticks of 1,024 ps up to 17.2 ms, weights of 24 bits.
        Fixed,
    }
}

choice! {
    /// Unit in which `alpha` is measured.
    AlphaUnit {
        /// The unit of "delay", but at least forty times the average difference between two successive delays of one
        /// path. If queues are random, a difference of delays predicts little, and senders that follow it collide on
        /// the same paths. If one path is always slower, the difference predicts well. With this unit alpha adapts to
        /// the noise of a fabric.
        #[default]
        Noise,
        /// The shortest delay of any path, at least the threshold. Feedback of a path is as old as its delay, so the
        /// longer the delay, the less a difference should count. With a fixed unit all senders take the shorter of
        /// two long queues at once, and make it the longer one.
        Delay,
        /// The threshold T (the authors' code).
        Threshold,
    }
}

/// Queueing that may add to the delay of a path before the path counts as congested.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarginRule {
    counted: Margin,
    packets: f64,
    pub(super) host_delay: Duration,
    line_rate: Rate,
    packet_bytes: u64,
}

impl MarginRule {
    /// Returns the margin of a path; `None` stands for a path without description.
    pub(super) fn for_path(&self, view: Option<&PathView>) -> Duration {
        let links = view.and_then(|view| view.links).map_or(USUAL_LINKS, u64::from);
        let rate = view.and_then(|view| view.rate).unwrap_or(self.line_rate);
        let packet = rate.time_for(self.packet_bytes);
        let once = match (self.counted, view.and_then(|view| view.transmission)) {
            // For each switch the packet time at its output port: that of all links but the first.
            (Margin::PerSwitch, Some(all)) => all.saturating_sub(self.line_rate.time_for(self.packet_bytes)),
            (Margin::PerSwitch, None) => packet * links.saturating_sub(1),
            (Margin::PerLink, _) => packet * links,
        };
        once.scale(self.packets) + self.host_delay
    }
}

/// Parameters of LAPS.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct LapsConfig {
    /// Variant of the algorithm: "repaired" (default), "published", "published_unbounded" or "code_2025". Determines
    /// the rules that the other fields leave open. The named schemes set the other fields to match.
    pub variant: LapsVariant,
    /// beta of the softmax: a path whose delay is longer by 1 / alpha of the unit gets 1/e of the share. With 0 all
    /// paths are equal (random spraying); with a large value only the fastest path is used. The paper gives no value,
    /// its code has 1. Default 2.5, fitted to the rows of `pathweave paper matrix` reserved for fitting. With 5,
    /// senders crowd on the path that was fastest a moment ago if all paths are alike (permutations 2 to 5 % slower).
    /// With 1.5, detours cost 1 to 3 % more.
    pub alpha: f64,
    /// Unit in which `alpha` is measured. Default "noise". Near the threshold T all units are the same.
    pub alpha_unit: AlphaUnit,
    /// Place where the margin of the base delay is counted: "per_switch" (default) or "per_link".
    pub margin: Margin,
    /// Margin, in full packets at each switch or link. Default 5 (paper: 5 per switch; code: 1 per link).
    pub margin_packets: f64,
    /// Delay that the hosts themselves cause, added to the margin. Default 0s, as in the simulator; on real hosts it
    /// is the value that the device is configured with.
    pub host_delay: Duration,
    /// Limit of a queue pair. Default "auto".
    pub limit: Limit,
    /// Threshold by which the window is computed, which is two of it: "paths" (default) or "fabric".
    pub window_of: WindowOf,
    /// Threshold of the fabric's longest path, for `window_of = "fabric"`. Default 0s: unknown. The simulator then
    /// computes it if sources choose their paths; otherwise the window is that of "paths".
    pub fabric_threshold: Duration,
    /// Target of a decrease: "to_share" (default) or "half".
    pub decrease: RateCut,
    /// Arithmetic in which the weights of paths are computed: "float" (default) or "fixed".
    pub arithmetic: Arithmetic,
}

impl Default for LapsConfig {
    fn default() -> Self {
        LapsConfig {
            variant: LapsVariant::Repaired,
            alpha: 2.5,
            alpha_unit: AlphaUnit::Noise,
            margin: Margin::PerSwitch,
            margin_packets: 5.0,
            host_delay: Duration::ZERO,
            limit: Limit::Auto,
            window_of: WindowOf::Paths,
            fabric_threshold: Duration::ZERO,
            decrease: RateCut::ToShare,
            arithmetic: Arithmetic::Float,
        }
    }
}

impl AsFluid for LapsConfig {
    fn as_fluid(&self) -> Fluid {
        Fluid { spread: Some(Spread::ByCapacity), control: ControlModel::BY_DELAY }
    }
}

impl Adapt for LapsConfig {
    fn adapt_to_fabric(&mut self, fabric: &FabricEnv<'_>) {
        if self.limit == Limit::Auto {
            self.limit = match (fabric.when_full, fabric.awaited) {
                (FullBufferAction::Pause, Awaited::Step) => Limit::Window,
                (FullBufferAction::Pause, Awaited::Message) => Limit::DelayWindow,
                (FullBufferAction::Drop | FullBufferAction::Trim, _) => Limit::RateAndWindow,
            };
        }
        if self.uses_longest_path()
            && let Some(path) = fabric.longest_path
            && let Some(idle) = path.base_one_way
        {
            let margin = self.margin_at(fabric.line_rate, fabric.packet_bytes);
            self.fabric_threshold = idle + margin.for_path(Some(path));
        }
    }
    /// Returns true if the window is computed from the longest path of the fabric.
    fn uses_longest_path(&self) -> bool {
        self.fabric_window() && self.fabric_threshold == Duration::ZERO
    }
    fn host_delay(&self) -> HostDelay {
        HostDelay::InThresholds
    }
    fn adapt_to_host(&mut self, host: &HostEnv) {
        if self.limit == Limit::Auto {
            self.limit = Limit::RateAndWindow;
        }
        self.host_delay += host.host_delay;
    }
}

impl LapsConfig {
    /// Returns the rules of the variant that no scenario chooses.
    pub(super) fn law(&self) -> &'static Law {
        match self.variant {
            LapsVariant::Repaired => &REPAIRED,
            LapsVariant::Published => &published::LAW,
            LapsVariant::PublishedUnbounded => &published::UNBOUNDED,
            LapsVariant::Code2025 => &code_2025::LAW,
        }
    }
    /// Returns true if the window is computed from the fabric's threshold. With a rate limit it is not, because it
    /// would lengthen queues without making shares fairer.
    fn fabric_window(&self) -> bool {
        self.window_of == WindowOf::Fabric
            && matches!(self.limit, Limit::Auto | Limit::Window | Limit::DelayWindow)
    }
    /// Returns the smallest threshold by which the window is computed.
    pub(super) fn least_window_threshold(&self) -> Duration {
        if self.fabric_window() { self.fabric_threshold } else { Duration::ZERO }
    }
    /// Returns the margin at hosts of `line_rate` with full packets of `packet_bytes`.
    pub(super) fn margin_at(&self, line_rate: Rate, packet_bytes: u64) -> MarginRule {
        MarginRule {
            counted: self.margin,
            packets: self.margin_packets,
            host_delay: self.host_delay,
            line_rate,
            packet_bytes,
        }
    }
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let alpha = "0: all paths alike, 1000000: the fastest alone";
        within("alpha", self.alpha, 0.0..=1e6, alpha)?;
        within("margin_packets", self.margin_packets, 0.0..=1e6, "packets")?;
        within("host_delay", self.host_delay, AT_MOST_A_SECOND, "")?;
        let threshold = self.fabric_threshold;
        within("fabric_threshold", threshold, AT_MOST_A_SECOND, "")
    }
}
