//! Path pickers: which path a packet takes, whatever its rate.
//!
//! Add one: a file with the picker and one line in [`AnyPicker`]'s list below.

mod ecmp;
mod paths;
mod per_message;
mod plb;
mod round_robin;
mod rps;
#[cfg(test)]
mod tests;
mod weighted;

use pathweave_units::{PathId, Rng, Time};

use crate::{ConfigError, Feedback, PathView, Sent, Want};

pub use ecmp::Ecmp;
pub use paths::PathSet;
pub use per_message::PerMessage;
pub use plb::{Plb, PlbConfig};
pub use round_robin::RoundRobin;
pub use rps::Rps;
pub use weighted::{Wcmp, WeightedRps};

/// Chooses a path for each packet. Starts with all paths of the environment up.
pub trait PathPicker {
    /// The path for this packet. Changes nothing: asked again, it answers the same.
    fn pick(&self, want: &Want) -> PathId;
    /// A packet left on the path picked for it.
    fn on_sent(&mut self, sent: &Sent, rng: &mut Rng);
    /// Feedback on a packet, for pickers that listen.
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, rng: &mut Rng);
    /// The set of paths changed.
    fn on_paths(&mut self, paths: &[PathView], rng: &mut Rng);
}

/// Declares the pickers a `split` policy can use: one line each, with its parameters where it has any.
macro_rules! pickers {
    ($( $(#[$doc:meta])* $name:ident $(($config:ty))? ),* $(,)?) => {
        /// A path picker: its name, or a table of its name with its parameters (`{ plb = { forced_rounds = 6 } }`).
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum PickerConfig { $( $(#[$doc])* $name $(($config))? ),* }

        /// Any picker, dispatched without a virtual call.
        #[derive(Clone, Debug)]
        pub enum AnyPicker { $( $(#[$doc])* $name($name) ),* }

        impl PickerConfig {
            /// Each of them by its name here, with its defaults.
            #[cfg(any(test, feature = "testing"))]
            pub fn every() -> alloc::vec::Vec<(&'static str, Self)> {
                alloc::vec![ $( (stringify!($name), PickerConfig::$name $((<$config>::default()))?) ),* ]
            }
            /// Names the first field that is wrong.
            pub fn validate(&self) -> Result<(), ConfigError> {
                match self { $( pickers!(@pattern $name config $($config)?) => pickers!(@validate config $($config)?) ),* }
            }
            /// The picker of one queue pair.
            pub fn build(self, paths: u16, rng: &mut Rng) -> AnyPicker {
                match self {
                    $( pickers!(@pattern $name config $($config)?) => {
                        AnyPicker::$name(pickers!(@make $name config paths rng $($config)?))
                    } ),*
                }
            }
        }

        impl PathPicker for AnyPicker {
            #[inline]
            fn pick(&self, want: &Want) -> PathId {
                match self { $( AnyPicker::$name(picker) => picker.pick(want) ),* }
            }
            #[inline]
            fn on_sent(&mut self, sent: &Sent, rng: &mut Rng) {
                match self { $( AnyPicker::$name(picker) => picker.on_sent(sent, rng) ),* }
            }
            #[inline]
            fn on_feedback(&mut self, now: Time, feedback: &Feedback, rng: &mut Rng) {
                match self { $( AnyPicker::$name(picker) => picker.on_feedback(now, feedback, rng) ),* }
            }
            fn on_paths(&mut self, paths: &[PathView], rng: &mut Rng) {
                match self { $( AnyPicker::$name(picker) => picker.on_paths(paths, rng) ),* }
            }
        }
    };
    (@pattern $name:ident $bound:ident) => { PickerConfig::$name };
    (@pattern $name:ident $bound:ident $config:ty) => { PickerConfig::$name($bound) };
    (@validate $bound:ident) => { Ok(()) };
    (@validate $bound:ident $config:ty) => { $bound.validate() };
    (@make $name:ident $bound:ident $paths:ident $rng:ident) => { $name::new($paths, $rng) };
    (@make $name:ident $bound:ident $paths:ident $rng:ident $config:ty) => { $name::new(&$bound, $paths, $rng) };
}

pickers! {
    /// One path for the life of the queue pair.
    Ecmp,
    /// One path for its life, drawn in proportion to the paths' rates.
    Wcmp,
    /// Every packet takes a random path.
    Rps,
    /// Every packet takes a random path, in proportion to the paths' rates.
    WeightedRps,
    /// Every message takes a random path.
    PerMessage,
    /// Packet after packet takes path after path.
    RoundRobin,
    /// PLB: another path after rounds of congestion.
    Plb(PlbConfig),
}
