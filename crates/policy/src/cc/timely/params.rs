//! Parameters of TIMELY, and published parameter sets.

use pathweave_units::{Duration, Rate};

use crate::cc::Window;
use crate::cc::host_scaling::HostScaling;
use crate::error::{above, check, within};
use crate::fluid::{ControlModel, HasControlModel};
use crate::{Adapt, ConfigError, HostDelay, HostEnv, PolicyEnv};

/// Line rate of the paper's values (SIGCOMM 2015, section 6).
const LINE: Rate = Rate::from_gbps(10);

/// A named parameter set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum TimelyPreset {
    /// Values that the HPCC authors used for TIMELY: thresholds of the paper, steps that grow with the line rate.
    #[default]
    Hpcc,
    /// Values of the paper (SIGCOMM 2015, section 4 and 6): steps of 10 Mb/s at any line rate.
    Paper,
    /// Values of eRPC (NSDI 2019): a slow average of the gradient, a high upper threshold.
    Erpc,
    /// Our values for the round-trip times within one data centre, or to its edge. The thresholds are a fifth of the
    /// paper's, and the base of the gradient is 6 us.
    Near,
}

/// Answers of the edge of a site that update the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum EdgeUpdates {
    /// Every answer: the edge chooses their interval.
    #[default]
    Every,
    /// One answer per round-trip time to the edge, for a packet sent after the last update (the simulator of HPCC
    /// updates once the acknowledged number has passed that of the next packet at the last update).
    PerRoundTrip,
}

/// Declares a parameter: the resolved value and the override in a scenario.
macro_rules! parameters {
    ($( $name:ident: $type:ty = $help:literal; )*) => {
        /// All parameters of TIMELY.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct TimelyParams { $( #[doc = $help] pub $name: $type, )* }

        /// A preset and the overrides of its values.
        #[derive(Clone, Debug, PartialEq, Default)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
        #[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
        pub struct TimelyConfig {
            /// Preset that supplies the values below unless they are set: "hpcc" (default), "paper", "erpc", "near".
            #[cfg_attr(feature = "serde", serde(default))]
            pub preset: TimelyPreset,
            $(
                #[doc = $help]
                #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
                pub $name: Option<$type>,
            )*
        }

        impl TimelyConfig {
            /// Returns the preset's values with the overrides applied.
            pub fn params(&self) -> TimelyParams {
                let preset = self.preset.params();
                TimelyParams { $( $name: self.$name.unwrap_or(preset.$name), )* }
            }
        }
    };
}

parameters! {
    t_low: Duration = "T_low: below this round-trip time the rate always rises.";
    t_high: Duration = "T_high: above it the rate always falls.";
    beta: f64 = "beta: weight of decreases, 0 to 1.";
    gain: f64 = "Weight of the newest sample in the average of differences, 0 to 1.";
    min_rtt: Duration = "Round-trip time by which differences are divided to make the gradient.";
    step: Rate = "delta: increase of the rate by a step.";
    step_scale: Rate = "Line rate for which `step` is given; it grows in proportion. 0bps: it is absolute.";
    hyper_after: u32 = "Increases in a row after which further ones add `hyper_factor` steps.";
    hyper_factor: u32 = "Steps an increase adds from then on (hyperactive increase).";
    min_rate: Rate = "The rate never falls below this.";
    window: Window = "Bound on bytes in flight: \"unlimited\", { bdp = 1.0 } or { packets = 64 }.";
    edge_updates: EdgeUpdates = "Answers of the edge of a site that update the rate: \"every\" (default) or \"per_round_trip\".";
}

impl TimelyPreset {
    /// Returns the values. Thresholds, beta, gain and the base of the gradient are attributes of `rdma-hw.cc` in the
    /// simulators of HPCC and ConWeave, which follow the paper. The simulators scale the step by the line rate.
    pub const fn params(self) -> TimelyParams {
        let hpcc = TimelyParams {
            t_low: Duration::from_us(50),
            t_high: Duration::from_us(500),
            beta: 0.8,
            gain: 0.875,
            min_rtt: Duration::from_us(20),
            step: Rate::from_mbps(10),
            step_scale: Rate::from_gbps(10),
            hyper_after: 5,
            hyper_factor: 5,
            min_rate: Rate::from_mbps(1_000),
            window: Window::Unlimited,
            edge_updates: EdgeUpdates::Every,
        };
        match self {
            TimelyPreset::Hpcc => hpcc,
            TimelyPreset::Paper => {
                TimelyParams { step_scale: Rate::ZERO, min_rate: Rate::from_mbps(100), ..hpcc }
            }
            TimelyPreset::Erpc => TimelyParams {
                gain: 0.02,
                t_high: Duration::from_us(1_000),
                min_rtt: Duration::from_ns(2_500),
                ..hpcc
            },
            TimelyPreset::Near => TimelyParams {
                t_low: Duration::from_us(10),
                t_high: Duration::from_us(100),
                min_rtt: Duration::from_us(6),
                ..hpcc
            },
        }
    }
}

impl TimelyConfig {
    /// Returns the configuration of a preset without overrides.
    pub fn preset(preset: TimelyPreset) -> Self {
        TimelyConfig { preset, ..TimelyConfig::default() }
    }

    /// Returns the configuration scaled to hosts with this line rate and this round-trip time, which includes the
    /// delay of their software. The thresholds are made for 10 Gb/s, where a full packet takes 1.2 us. At 100 Mb/s it
    /// takes 120 us, and two packets behind a link of a tenth of the rate exceed T_high. Delays therefore grow by the
    /// ratio of packet times or round-trip times, whichever is larger, and steps are the same fractions of the line
    /// rate. Hosts at least as fast as those of the preset keep its values.
    pub fn scaled_to(&self, line: Rate, round_trip: Duration) -> TimelyConfig {
        let p = self.params();
        let scaling = HostScaling::new((line, round_trip), (LINE, p.min_rtt));
        TimelyConfig {
            t_low: scaling.duration(p.t_low),
            t_high: scaling.duration(p.t_high),
            min_rtt: scaling.duration(p.min_rtt),
            step_scale: scaling.increase_scale(p.step_scale),
            min_rate: scaling.min_rate(p.min_rate),
            ..self.clone()
        }
    }

    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let p = self.params();
        check(p.t_low > Duration::ZERO, "t_low", p.t_low, "more than 0s")?;
        check(p.t_high > p.t_low, "t_high", p.t_high, "more than t_low")?;
        for (name, x) in [("beta", p.beta), ("gain", p.gain)] {
            within(name, x, above(0.0, 1.0), "")?;
        }
        check(p.min_rtt > Duration::ZERO, "min_rtt", p.min_rtt, "more than 0s")?;
        for (name, rate) in [("step", p.step), ("min_rate", p.min_rate)] {
            within(name, rate, above(Rate::ZERO, Rate::from_gbps(100_000)), "")?;
        }
        within("hyper_factor", p.hyper_factor, 1..=1_000, "")?;
        p.window.validate()
    }
}

impl TimelyParams {
    /// Returns the amount that an increase adds at this line rate, bit/s.
    pub(super) fn step_bps(&self, env: &PolicyEnv) -> f64 {
        let step = self.step.as_bps() as f64;
        match self.step_scale.as_bps() {
            0 => step,
            reference => step * env.line_rate.as_bps() as f64 / reference as f64,
        }
    }
}

impl HasControlModel for TimelyConfig {
    fn control(&self) -> ControlModel {
        ControlModel::BY_NOTIFICATIONS
    }
}

/// Raises the thresholds above the packet time on a slow line, and above the delay of hosts. TIMELY has no bound on
/// bytes in flight. At line rate the socket buffers would be full before the delay exceeds such high thresholds, so
/// it gets a window.
impl Adapt for TimelyConfig {
    fn host_delay(&self) -> HostDelay {
        HostDelay::InThresholds
    }
    fn adapt_to_host(&mut self, host: &HostEnv) {
        *self = self.scaled_to(host.line_rate, host.network_rtt);
        let params = self.params();
        (self.t_low, self.t_high) =
            (Some(params.t_low + host.host_delay), Some(params.t_high + host.host_delay));
        self.window = Some(match params.window {
            Window::Unlimited => Window::Bdp(host.max_inflight_bdps),
            Window::Bdp(factor) => Window::Bdp(factor * host.max_inflight_bdps),
            packets @ Window::Packets(_) => packets,
        });
    }
}
