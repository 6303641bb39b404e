//! All policies, behind one type. Policies of this crate are dispatched without virtual calls.
//!
//! A coupled policy (one that decides rate and path together) is one file, `src/<name>.rs`. It holds its state, its
//! `Config` with [`Adapt`], `validate()` and `build(&self, &PolicyEnv, &mut Rng)`, its scenarios and its tests. It is
//! registered by its `mod` line and one line in the list below. That line generates the name in scenarios
//! (`policy.kind`), the JSON Schema, validation, building and dispatch. If a named scheme uses the policy, the preset
//! is one more file and line in `src/schemes/`.

use alloc::vec;
use alloc::vec::Vec;

use pathweave_units::Rng;

use crate::cc::{AnyCc, CcConfig};
use crate::dlbf::{Dlbf, DlbfConfig};
use crate::fluid::{AsFluid, Fluid};
use crate::laps::{Laps, LapsConfig};
use crate::mprdma::{MpRdma, MpRdmaConfig};
use crate::mrc::{Mrc, MrcConfig};
use crate::picker::{AnyPicker, PickerConfig};
use crate::reflex::{Reflex, ReflexConfig};
use crate::reps::{Reps, RepsConfig};
use crate::split::{SplitConfig, SplitPolicy};
use crate::supplied::{ExternalPolicy, PolicyFactory};
use crate::udmp::{Udmp, UdmpConfig, UdmpPublishedConfig};
use crate::weave::{Weave, WeaveConfig};
use crate::{Adapt, ConfigError, Policy, PolicyEnv};

macro_rules! policies {
    ($( $(#[$doc:meta])* $name:ident($state:ty, $config:ty) ),* $(,)?) => {
        /// A policy with its parameters. Serves as its factory.
        #[derive(Clone, Debug, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case", tag = "kind"))]
        #[allow(clippy::large_enum_variant, reason = "a scenario has a handful of them")]
        pub enum PolicyConfig {
            $( $(#[$doc])* $name($config), )*
            /// A policy supplied by the program; no scenario can name it.
            #[cfg_attr(feature = "serde", serde(skip))]
            Supplied(PolicyFactory),
        }

        /// Any policy; those of this crate are dispatched without a virtual call.
        // The tag comes first, next to the fields that the policy uses most.
        #[derive(Clone, Debug)]
        #[repr(u8)]
        pub enum AnyPolicy {
            $( $(#[$doc])* $name($state), )*
            /// A policy supplied by the program, dispatched by a virtual call.
            Supplied(ExternalPolicy),
        }

        impl PolicyConfig {
            /// Returns an error that names the first invalid field.
            pub fn validate(&self) -> Result<(), ConfigError> {
                match self {
                    $( PolicyConfig::$name(config) => config.validate(), )*
                    PolicyConfig::Supplied(config) => config.validate(),
                }
            }
            /// Builds the policy of one direction of one queue pair. `rng` is the queue pair's stream, the same that
            /// every later call gets.
            pub fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> AnyPolicy {
                match self { $( PolicyConfig::$name(config) => AnyPolicy::$name(config.build(env, rng)), )*
                    PolicyConfig::Supplied(factory) => AnyPolicy::Supplied(factory.build(env, rng)),
                }
            }
        }

        impl AsFluid for PolicyConfig {
            fn as_fluid(&self) -> Fluid {
                match self {
                    $( PolicyConfig::$name(config) => config.as_fluid(), )*
                    PolicyConfig::Supplied(config) => config.as_fluid(),
                }
            }
        }

        impl Adapt for PolicyConfig {
            crate::forwards!({ PolicyConfig: $($name)* Supplied } adapt);
        }

        impl Policy for AnyPolicy {
            crate::forwards!({ AnyPolicy: $($name)* Supplied } policy);
        }
    };
}

policies! {
    /// A congestion control and a path picker that are independent of each other.
    Split(SplitPolicy<AnyCc, AnyPicker>, SplitConfig),
    /// UDMP: delay decides rate and, by ACK clocking, path.
    Udmp(Udmp, UdmpConfig),
    /// UDMP as printed.
    UdmpPublished(Udmp, UdmpPublishedConfig),
    /// MP-RDMA: an ECN-driven window, ACK-clocked on the path of the acknowledgement.
    Mprdma(MpRdma, MpRdmaConfig),
    /// MRC: paths in turn, each with a state, and the window of NSCC.
    Mrc(Mrc, MrcConfig),
    /// DLBF: a queue pair keeps its path until a packet is marked, and copies the packets that a switch of path would
    /// delay.
    Dlbf(Dlbf, DlbfConfig),
    /// REPS: recycled entropies, with a window for delay and ECN.
    Reps(Reps, RepsConfig),
    /// Reflex: a congestion control that, for flows to other sites, uses echoes of the own site's edge.
    Reflex(Reflex, ReflexConfig),
    /// LAPS: path selection by a softmax over one-way delays, and a window. If switches drop packets, also a rate
    /// that falls when the fastest path is congested.
    Laps(Laps, LapsConfig),
    /// Weave: reuse of paths whose packets returned in time, and a window that follows the low round-trip times.
    Weave(Weave, WeaveConfig),
}

impl PolicyConfig {
    /// Returns true if the policy depends on feedback by packets, which a model without packets does not have.
    pub fn is_about_feedback(&self) -> bool {
        matches!(self, PolicyConfig::Reflex(_))
    }

    /// Returns the parts that the program supplies, each with its name: "picker", "control" or "policy".
    pub fn supplied(&self) -> Vec<(&'static str, &str)> {
        let (cc, picker) = match self {
            PolicyConfig::Split(config) => (Some(&config.cc), Some(&config.picker)),
            PolicyConfig::Dlbf(config) => (Some(&config.cc), None),
            PolicyConfig::Reflex(config) => (Some(&config.cc), Some(&config.picker)),
            PolicyConfig::Supplied(factory) => return vec![("policy", factory.name())],
            _ => (None, None),
        };
        let picker = picker.and_then(|picker| match picker {
            PickerConfig::Supplied(factory) => Some(("picker", factory.name())),
            _ => None,
        });
        let cc = cc.and_then(|cc| match cc {
            CcConfig::Supplied(factory) => Some(("control", factory.name())),
            _ => None,
        });
        picker.into_iter().chain(cc).collect()
    }

    /// Returns the congestion control; `None` if rate and path are one decision.
    pub fn cc_mut(&mut self) -> Option<&mut CcConfig> {
        match self {
            PolicyConfig::Split(config) => Some(&mut config.cc),
            PolicyConfig::Dlbf(config) => Some(&mut config.cc),
            PolicyConfig::Reflex(config) => Some(&mut config.cc),
            _ => None,
        }
    }

    /// Returns the path picker; `None` if rate and path are one decision.
    pub fn picker_mut(&mut self) -> Option<&mut PickerConfig> {
        match self {
            PolicyConfig::Split(config) => Some(&mut config.picker),
            PolicyConfig::Reflex(config) => Some(&mut config.picker),
            _ => None,
        }
    }
}
