//! Parameters of LAPS.

use pathweave_units::{Duration, Rate, Rng};

use super::Laps;
use crate::error::check;
use crate::{Adapt, ConfigError, FabricEnv, HostDelay, HostEnv, PathView, PolicyEnv, WhenFull};

/// Links of a path nobody has described: a leaf-spine fabric's.
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
    /// Which paths that nothing was heard of for too long are probed.
    Probing {
        /// One of them, drawn at random, before a data packet (the FPGA of section IV).
        #[default]
        One,
        /// All of them (algorithm 1).
        All,
        /// None.
        Off,
    }
}

choice! {
    /// What becomes of the delay of a path that is probed, until the answer comes.
    AfterProbe {
        /// It doubles: the longer nothing is heard, the less the path is used (section III-C).
        #[default]
        Doubled,
        /// It stays (the authors' code).
        Kept,
    }
}

choice! {
    /// The class of probes.
    ProbeClass {
        /// That of data, whose delays they are to measure.
        #[default]
        Data,
        /// That of acknowledgements (the authors' code): they overtake all data, and measure the idle path.
        Control,
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
    /// How long the rate is left alone after it was changed.
    HoldOff {
        /// After a decrease twice the longest delay of any path, after an increase twice the threshold (the authors'
        /// code): so that what was changed has shown on every path.
        #[default]
        Slowest,
        /// Twice the threshold (the text).
        Threshold,
        /// Twice the shortest delay (algorithm 2).
        Fastest,
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
    /// The test of the hold-off.
    HoldOffTest {
        /// The rate may change once the hold-off is over.
        #[default]
        Elapsed,
        /// As printed in algorithm 2, lines 6 and 10: only before it is over, so never.
        Printed,
    }
}

choice! {
    /// When the stage of the increase is counted.
    StageCount {
        /// Before it is compared: the sixth increase doubles (algorithm 2).
        #[default]
        BeforeTest,
        /// After: the seventh does (the authors' code).
        AfterTest,
    }
}

choice! {
    /// The most the expected rate may be.
    RateCap {
        /// The line rate.
        #[default]
        Line,
        /// Anything: it doubles with every quiet spell, and a halving of it later changes nothing (algorithm 2).
        Unbounded,
    }
}

choice! {
    /// What a delay is compared with to see congestion.
    Congested {
        /// The threshold of the slowest path: the largest base of all (algorithm 2).
        #[default]
        AboveSlowestBase,
        /// The path's own base, on every path (section III-E).
        AboveOwnBase,
    }
}

choice! {
    /// What `alpha` is measured in.
    AlphaUnit {
        /// The shortest delay of any path, where it is above the threshold, and the threshold where it is not. What is
        /// heard of a path is as old as its delay, so the longer that is, the less a difference of delays should move:
        /// with a fixed unit all senders take the shorter of two long queues at once, and it becomes the longer.
        #[default]
        Delay,
        /// The threshold T (the authors' code).
        Threshold,
    }
}

choice! {
    /// Whether a path that is being probed counts when delays are compared.
    Unmeasured {
        /// No: its delay is a guess.
        #[default]
        Ignored,
        /// Yes (algorithm 2): a sender that was idle sees its own guesses as congestion.
        Counted,
    }
}

choice! {
    /// What the one-way delays of the two ends' clocks mean.
    Clock {
        /// Absolute where the delays of idle paths are known, otherwise as `free`.
        #[default]
        Auto,
        /// Clocks agree: delays are absolute, and so are bases, which must be known.
        Synchronised,
        /// Clocks differ by an unknown amount: the shortest delay seen of late on any path stands for an idle one.
        Free,
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
    pub(super) fn of(&self, view: Option<&PathView>) -> Duration {
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
    /// beta of the softmax: a path whose delay is 1 / alpha of the unit longer gets 1/e of the share. 0: all alike
    /// (random spraying); large: the fastest only. The paper gives no value, its code has 1. Default 5: short flows stay
    /// off detours of an idle network, and long ones fill all paths.
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
    /// Which paths are probed.
    pub probing: Probing,
    /// A path is probed when nothing was heard of it for this many of its delays (paper: 2).
    pub probe_after: f64,
    /// What becomes of a probed path's delay.
    pub after_probe: AfterProbe,
    /// The class of probes.
    pub probe_class: ProbeClass,
    /// What limits a queue pair.
    pub limit: Limit,
    /// Whose threshold the window is two of.
    pub window_of: WindowOf,
    /// The threshold of the fabric's longest path, for `window_of = "fabric"`. 0: not known; the simulator works it out
    /// where sources choose their paths, elsewhere the window is as with "paths".
    pub fabric_threshold: Duration,
    /// N: increases towards the expected rate before that one doubles (paper: 5).
    pub stages: u32,
    /// When stages are counted.
    pub stage_count: StageCount,
    /// The most the expected rate may be.
    pub cap: RateCap,
    /// The least rate, as a share of the line rate (code: 1 Gb/s of 100). Without one a flow may stop for ever.
    pub floor: f64,
    /// The least an increase adds (code: 1 Gb/s).
    pub least_increase: Rate,
    /// What a decrease goes down to.
    pub decrease: RateCut,
    /// How long the rate is left alone.
    pub hold_off: HoldOff,
    /// The test of that.
    pub hold_off_test: HoldOffTest,
    /// What congestion is.
    pub congested: Congested,
    /// Whether guesses count.
    pub unmeasured: Unmeasured,
    /// What one-way delays mean.
    pub clock: Clock,
    /// With free clocks: the shortest delay counts for one to two of these. Long against congestion, short enough for
    /// clocks that drift apart (20 us a second is usual) not to matter.
    pub calibrate_every: Duration,
}

impl Default for LapsConfig {
    fn default() -> Self {
        LapsConfig {
            alpha: 5.0,
            alpha_unit: AlphaUnit::default(),
            margin: Margin::default(),
            margin_packets: 5.0,
            host_delay: Duration::ZERO,
            probing: Probing::default(),
            probe_after: 2.0,
            after_probe: AfterProbe::default(),
            probe_class: ProbeClass::default(),
            limit: Limit::default(),
            window_of: WindowOf::default(),
            fabric_threshold: Duration::ZERO,
            stages: 5,
            stage_count: StageCount::default(),
            cap: RateCap::default(),
            floor: 0.01,
            least_increase: Rate::from_bps(0),
            decrease: RateCut::default(),
            hold_off: HoldOff::default(),
            hold_off_test: HoldOffTest::default(),
            congested: Congested::default(),
            unmeasured: Unmeasured::default(),
            clock: Clock::default(),
            calibrate_every: Duration::from_ms(200),
        }
    }
}

impl Adapt for LapsConfig {
    fn adapt_to_fabric(&mut self, fabric: &FabricEnv<'_>) {
        if fabric.when_full == WhenFull::Drop {
            self.limit_rate();
        }
        if self.wants_longest_path()
            && let Some(path) = fabric.longest_path
            && let Some(idle) = path.base_one_way
        {
            let margin = self.margin_at(fabric.line_rate, fabric.packet_bytes);
            self.fabric_threshold = idle + margin.of(Some(path));
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
    /// Algorithms 1 and 2 to the letter, but for the inequality that would keep the rate constant for ever.
    pub fn published() -> Self {
        LapsConfig {
            alpha: 1.0,
            alpha_unit: AlphaUnit::Threshold,
            probing: Probing::All,
            limit: Limit::RateAndWindow,
            decrease: RateCut::Half,
            hold_off: HoldOff::Fastest,
            cap: RateCap::Unbounded,
            floor: 1e-6,
            unmeasured: Unmeasured::Counted,
            ..LapsConfig::default()
        }
    }
    /// What the authors' snapshot of January 2025 does: a fixed window alone, a smaller margin, probes that overtake data.
    pub fn code_2025() -> Self {
        LapsConfig {
            alpha: 1.0,
            alpha_unit: AlphaUnit::Threshold,
            margin: Margin::PerLink,
            margin_packets: 1.0,
            after_probe: AfterProbe::Kept,
            probe_class: ProbeClass::Control,
            limit: Limit::Window,
            decrease: RateCut::Half,
            stage_count: StageCount::AfterTest,
            least_increase: Rate::from_gbps(1),
            ..LapsConfig::default()
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
        check(threshold <= Duration::from_ms(1_000), "fabric_threshold", threshold, "at most 1s")?;
        let after = self.probe_after > 0.0 && self.probe_after <= 1e6;
        check(after, "probe_after", self.probe_after, "more than 0, at most 1000000 (delays of the path)")?;
        let floor = self.floor > 0.0 && self.floor <= 1.0;
        check(
            floor,
            "floor",
            self.floor,
            "more than 0 (a flow must not stop), at most 1 (of the line rate)",
        )?;
        let every =
            self.calibrate_every > Duration::ZERO && self.calibrate_every <= Duration::from_ms(60_000);
        check(every, "calibrate_every", self.calibrate_every, "more than 0s, at most 60s")
    }
    /// The policy of one direction of one queue pair.
    pub fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> Laps {
        Laps::new(self, env, rng)
    }
}
