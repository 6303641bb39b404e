//! Parameters of LAPS.

use pathweave_units::{Duration, Rate};

use super::law::{Law, REPAIRED};
use super::{code_2025, published};
use crate::error::check;
use crate::fluid::{AsFluid, Control, Fluid, Spread};
use crate::{Adapt, ConfigError, FabricEnv, HostDelay, HostEnv, PathView, WhenFull};

/// Links of a path that is not described: a leaf-spine fabric's.
const USUAL_LINKS: u64 = 4;

/// Declares an enum that is a word in a scenario.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $( $(#[$each:meta])* $variant:ident ),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name { $( $(#[$each])* $variant ),* }
    };
}

choice! {
    /// Which algorithm: that of pathweave, of the paper or of its authors' code.
    LapsVariant {
        /// pathweave's. One silent path is probed before a data packet, if data hardly takes it or gets no answer there, and a
        /// probe doubles the delay that the path is thought to have. The expected rate is at most the line's. After a change
        /// the rate stays until every path has shown the effect. Delays that are guessed do not count as congestion.
        #[default]
        Repaired,
        /// The paper's, algorithms 1 and 2. All silent paths are probed. The expected rate has no limit. After a change the
        /// rate stays for twice the shortest delay. Delays that are guessed count as measured ones.
        Published,
        /// That of the authors' code of January 2025. Probes overtake data, and a probe leaves the delay of its path as it was
        /// last measured.
        #[cfg_attr(feature = "serde", serde(rename = "code_2025"))]
        Code2025,
    }
}

choice! {
    /// What the delay of an idle path may exceed without being congested.
    Margin {
        /// So many packets in the queue of every switch on the way (section III-E).
        #[default]
        PerSwitch,
        /// So many packets on every link (the authors' code, which has one).
        PerLink,
    }
}

choice! {
    /// What limits a queue pair.
    Limit {
        /// The window alone in a fabric that pauses senders, which loses nothing by long queues; rate and window where
        /// switches drop, and on real hosts, who cannot know.
        #[default]
        Auto,
        /// A window of two threshold delays of the line alone: what the authors' code does, where the rate never reaches
        /// the pacer. A rate that was lowered because of a queue leaves the link idle once that is empty, and takes
        /// several thresholds to come back; a window lets more pass as the queue gets shorter.
        Window,
        /// Its rate (algorithm 2), by pacing, and that window.
        RateAndWindow,
        /// The same, the window in proportion to the rate.
        RateAndScaledWindow,
    }
}

choice! {
    /// Whose threshold the window is two of, where the window alone limits.
    WindowOf {
        /// That of the paths to the receiver (the authors' code): little waits for those near by.
        #[default]
        Paths,
        /// That of the longest path of the fabric: senders near a receiver get the same share of its links as those far
        /// off. An incast of 64 MB over rails is done 0.2 % after the bound in place of 3.7, and what little waits under
        /// other loads makes their means up to 5 % longer there.
        Fabric,
    }
}

choice! {
    /// What a decrease goes down to.
    RateCut {
        /// Half the rate, but not below the share of the line that the delay tells: T / t of it. At a delay of t a window
        /// of two thresholds lets no more than twice that pass.
        #[default]
        ToShare,
        /// Half the rate (algorithm 2).
        Half,
    }
}

choice! {
    /// How the weights of paths are computed.
    Arithmetic {
        /// In floating point, by the equation.
        #[default]
        Float,
        /// In the integers of the circuit in `hardware/laps`: delays in ticks of 1,024 ps that end at 17.2 ms, weights of 24 bits.
        Fixed,
    }
}

choice! {
    /// What `alpha` is measured in.
    AlphaUnit {
        /// As "delay", but at least forty times what two delays in a row of one path differ by. Where queues are made by
        /// chance a difference of delays says little of what comes next, and senders that follow it meet on the same paths;
        /// between paths of which one is always slower it says all. So alpha adapts to what is noise in a fabric.
        #[default]
        Noise,
        /// The shortest delay of any path, where it is above the threshold, and the threshold where it is not. What is
        /// heard of a path is as old as its delay, so the longer that is, the less a difference of delays should move:
        /// with a fixed unit all senders take the shorter of two long queues at once, and it becomes the longer.
        Delay,
        /// The threshold T (the authors' code).
        Threshold,
    }
}

/// What queues may add to the delay of a path before it counts as congested.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarginRule {
    counted: Margin,
    packets: f64,
    pub(super) host_delay: Duration,
    line_rate: Rate,
    packet_bytes: u64,
}

impl MarginRule {
    /// The margin of a path; `None`: of one that is not described.
    pub(super) fn for_path(&self, view: Option<&PathView>) -> Duration {
        let links = view.and_then(|view| view.links).map_or(USUAL_LINKS, u64::from);
        let rate = view.and_then(|view| view.rate).unwrap_or(self.line_rate);
        let packet = rate.time_for(self.packet_bytes);
        let once = match (self.counted, view.and_then(|view| view.transmission)) {
            // At each switch what a packet takes at the port it leaves by: all links but the first.
            (Margin::PerSwitch, Some(all)) => all.saturating_sub(self.line_rate.time_for(self.packet_bytes)),
            (Margin::PerSwitch, None) => packet * links.saturating_sub(1),
            (Margin::PerLink, _) => packet * links,
        };
        once.scale(self.packets) + self.host_delay
    }
}

/// Parameters of LAPS.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LapsConfig {
    /// Which algorithm, in what the other fields leave open. The named schemes set those to match.
    pub variant: LapsVariant,
    /// beta of the softmax: a path whose delay is 1 / alpha of the unit longer gets 1/e of the share. 0: all alike
    /// (random spraying); large: the fastest only. The paper gives no value, its code has 1. Default 2.5, found on
    /// the rows of `pathweave paper matrix` that are there to fit to: with 5 senders crowd on what was fastest a moment ago
    /// where all paths are alike (permutations 2 to 5 % slower), with 1.5 detours cost 1 to 3 % more.
    pub alpha: f64,
    /// What that is measured in: of delays around the threshold T the same in either.
    pub alpha_unit: AlphaUnit,
    /// Where the margin of the base delay is counted.
    pub margin: Margin,
    /// The margin, in full packets at each switch or link (paper: 5 a switch; code: 1 a link).
    pub margin_packets: f64,
    /// Added to the margin: delay that the hosts themselves cause. None in the simulator; on real hosts what the device
    /// is configured with.
    pub host_delay: Duration,
    /// What limits a queue pair.
    pub limit: Limit,
    /// Whose threshold the window is two of.
    pub window_of: WindowOf,
    /// The threshold of the fabric's longest path, for `window_of = "fabric"`. 0: not known; the simulator works it out
    /// where sources choose their paths, elsewhere the window is as with "paths".
    pub fabric_threshold: Duration,
    /// What a decrease goes down to.
    pub decrease: RateCut,
    /// How the weights of paths are computed.
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
        Fluid { spread: Some(Spread::ByCapacity), control: Control::BY_DELAY }
    }
}

impl Adapt for LapsConfig {
    fn adapt_to_fabric(&mut self, fabric: &FabricEnv<'_>) {
        if fabric.when_full != WhenFull::Pause {
            self.limit_rate();
        }
        if self.wants_longest_path()
            && let Some(path) = fabric.longest_path
            && let Some(idle) = path.base_one_way
        {
            let margin = self.margin_at(fabric.line_rate, fabric.packet_bytes);
            self.fabric_threshold = idle + margin.for_path(Some(path));
        }
    }
    /// Where it takes its window from the longest path of the fabric.
    fn wants_longest_path(&self) -> bool {
        self.fabric_window() && self.fabric_threshold == Duration::ZERO
    }
    fn host_delay(&self) -> HostDelay {
        HostDelay::InThresholds
    }
    fn adapt_to_host(&mut self, host: &HostEnv) {
        self.limit_rate();
        self.host_delay += host.host_delay;
    }
}

impl LapsConfig {
    /// What the variant has that no scenario chooses.
    pub(super) fn law(&self) -> &'static Law {
        match self.variant {
            LapsVariant::Repaired => &REPAIRED,
            LapsVariant::Published => &published::LAW,
            LapsVariant::Code2025 => &code_2025::LAW,
        }
    }
    /// What is left to choose, for a fabric whose switches drop what they have no room for.
    fn limit_rate(&mut self) {
        if self.limit == Limit::Auto {
            self.limit = Limit::RateAndWindow;
        }
    }
    /// Whether the window is that of the fabric: where a rate limits, too, it makes queues longer and shares no fairer.
    fn fabric_window(&self) -> bool {
        self.window_of == WindowOf::Fabric && matches!(self.limit, Limit::Auto | Limit::Window)
    }
    /// The least threshold that the window is two of.
    pub(super) fn least_window_threshold(&self) -> Duration {
        if self.fabric_window() { self.fabric_threshold } else { Duration::ZERO }
    }
    /// The margin at hosts of `line_rate` whose full packets take `packet_bytes`.
    pub(super) fn margin_at(&self, line_rate: Rate, packet_bytes: u64) -> MarginRule {
        MarginRule {
            counted: self.margin,
            packets: self.margin_packets,
            host_delay: self.host_delay,
            line_rate,
            packet_bytes,
        }
    }
    /// Names the first field that is wrong.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let within =
            |name, value: f64, most: f64, allowed| check((0.0..=most).contains(&value), name, value, allowed);
        within("alpha", self.alpha, 1e6, "0 (all paths alike) to 1000000 (the fastest alone)")?;
        within("margin_packets", self.margin_packets, 1e6, "0 to 1000000 packets")?;
        check(self.host_delay <= Duration::from_ms(1_000), "host_delay", self.host_delay, "at most 1s")?;
        let threshold = self.fabric_threshold;
        check(threshold <= Duration::from_ms(1_000), "fabric_threshold", threshold, "at most 1s")
    }
}
