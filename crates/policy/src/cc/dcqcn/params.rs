//! Parameters of DCQCN's reaction point, each declared once: value, override, text and check.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use pathweave_units::{Bytes, Duration, Rate};

use super::DcqcnPreset;
use crate::cc::Window;
use crate::error::{above, check, within};
use crate::{ConfigError, PolicyEnv};

/// Time at which the reaction point acts on a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Reaction {
    /// At once: the rate falls, then alpha rises, and the alpha timer restarts (SIGCOMM'15, section 3.1). Assumes a
    /// notification point that limits the rate of its notifications.
    Immediate,
    /// At the next tick of two free-running clocks, which the first notification starts. Each checks whether a
    /// notification arrived since its last tick: one moves alpha up or down, the other cuts the rate. The ns-3 models
    /// since HPCC do the same (`RdmaHw::cnp_received_mlx`). The first cut, too, happens one `decrease_interval` after
    /// its notification.
    Sampled,
}

impl fmt::Display for Reaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reaction::Immediate => "immediate",
            Reaction::Sampled => "sampled",
        })
    }
}

/// A parameter as `pathweave list presets` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name in a scenario.
    pub name: &'static str,
    /// Value with its unit.
    pub value: String,
    /// Meaning of the parameter.
    pub help: &'static str,
}

/// Declares a parameter: the resolved value, the override in a scenario, and the text of the listing.
macro_rules! parameters {
    ($( $name:ident: $type:ty = $help:literal; )*) => {
        /// All parameters of the reaction point.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct DcqcnParams { $( #[doc = $help] pub $name: $type, )* }

        /// A preset and the overrides of its values. Only overrides are written to a scenario, so a change of the
        /// preset changes all other values.
        #[derive(Clone, Debug, PartialEq, Default)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
        #[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
        pub struct DcqcnConfig {
            /// Preset that supplies the values below unless they are set: "hpcc" (default), "paper", "conweave",
            /// "laps", "astra".
            #[cfg_attr(feature = "serde", serde(default))]
            pub preset: DcqcnPreset,
            $(
                #[doc = $help]
                #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
                pub $name: Option<$type>,
            )*
        }

        impl DcqcnConfig {
            /// Returns the preset's values with the overrides applied.
            pub fn params(&self) -> DcqcnParams {
                let preset = self.preset.info().params;
                DcqcnParams { $( $name: self.$name.unwrap_or(preset.$name), )* }
            }
        }

        impl DcqcnParams {
            /// Returns names, values and meanings, in order of declaration.
            pub fn fields(&self) -> Vec<Field> {
                vec![ $( Field { name: stringify!($name), value: self.$name.to_string(), help: $help } ),* ]
            }
        }
    };
}

parameters! {
    reaction: Reaction = "When a notification acts: \"immediate\" or \"sampled\".";
    gain: f64 = "g: weight of the newest observation in alpha, 0 to 1.";
    initial_alpha: f64 = "Alpha at the first notification, 0 to 1; a cut is by alpha / 2.";
    alpha_timer: Duration = "K: alpha is updated (sampled) or decays (immediate) once in this time.";
    decrease_interval: Duration = "The rate falls at most once in this time; with \"immediate\", 0s reacts to every notification.";
    rate_timer: Duration = "T: time of one step of rate increase.";
    byte_counter: Bytes = "B: wire bytes sent that make one step of rate increase; 0B: no byte counter.";
    fast_recovery_stages: u32 = "F: steps that halve the distance to the target before the target itself rises.";
    additive_increase: Rate = "R_AI: increase of the target by an additive step.";
    hyper_increase: Rate = "R_HAI: increase of the target by a step once both timer and byte counter are past F.";
    increase_scale: Rate = "Line rate for which R_AI and R_HAI are given; they grow in proportion. 0bps: they are absolute.";
    min_rate: Rate = "The rate never falls below this.";
    clamp_target: bool = "Every cut sets the target to the rate before it. If false, a cut without an increase since the last one keeps the old target.";
    window: Window = "Bound on bytes in flight: \"unlimited\", { bdp = 1.0 } or { packets = 64 }.";
    window_follows_rate: bool = "The window shrinks in proportion to rate / line rate.";
}

impl DcqcnParams {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        within("gain", self.gain, above(0.0, 1.0), "")?;
        within("initial_alpha", self.initial_alpha, above(0.0, 1.0), "")?;
        let positive = "more than 0s";
        check(self.alpha_timer > Duration::ZERO, "alpha_timer", self.alpha_timer, positive)?;
        check(self.rate_timer > Duration::ZERO, "rate_timer", self.rate_timer, positive)?;
        let gated = self.decrease_interval > Duration::ZERO || self.reaction == Reaction::Immediate;
        let sampled = "more than 0s when reaction is \"sampled\"";
        check(gated, "decrease_interval", self.decrease_interval, sampled)?;
        for (name, rate) in [
            ("additive_increase", self.additive_increase),
            ("hyper_increase", self.hyper_increase),
            ("min_rate", self.min_rate),
        ] {
            within(name, rate, above(Rate::ZERO, MOST), "")?;
        }
        self.window.validate()
    }
    /// Returns R_AI and R_HAI at this line rate.
    pub fn increases(&self, env: &PolicyEnv) -> (Rate, Rate) {
        let scaled = |step: Rate| match self.increase_scale.as_bps() {
            0 => step,
            reference => {
                let bps =
                    u128::from(step.as_bps()) * u128::from(env.line_rate.as_bps()) / u128::from(reference);
                Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
            }
        };
        (scaled(self.additive_increase), scaled(self.hyper_increase))
    }
}

/// Largest rate of a parameter: far above any link, and low enough that a sum of two rates cannot overflow.
const MOST: Rate = Rate::from_gbps(100_000);

impl DcqcnConfig {
    /// Returns the configuration of a preset without overrides.
    pub fn preset(preset: DcqcnPreset) -> Self {
        DcqcnConfig { preset, ..DcqcnConfig::default() }
    }
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.params().validate()
    }
}
