//! Path pickers: which path a packet takes, whatever its rate.
//!
//! Add one: a file with the picker and one line in [`AnyPicker`]'s list below.

mod ecmp;
mod paths;
mod per_message;
mod round_robin;
mod rps;
#[cfg(test)]
mod tests;

use pathweave_units::{PathId, Rng};

use crate::{PathView, Sent, Want};

pub use ecmp::Ecmp;
pub use paths::PathSet;
pub use per_message::PerMessage;
pub use round_robin::RoundRobin;
pub use rps::Rps;

/// Chooses a path for each packet. Starts with all paths of the environment up.
pub trait PathPicker {
    /// The path for this packet. Changes nothing: asked again, it answers the same.
    fn pick(&self, want: &Want) -> PathId;
    /// A packet left on the path picked for it.
    fn on_sent(&mut self, sent: &Sent, rng: &mut Rng);
    /// The set of paths changed.
    fn on_paths(&mut self, paths: &[PathView], rng: &mut Rng);
}

/// Declares the pickers a `split` policy can use: one line each.
macro_rules! pickers {
    ($( $(#[$doc:meta])* $name:ident ),* $(,)?) => {
        /// A path picker, by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum PickerConfig { $( $(#[$doc])* $name ),* }

        /// Any picker, dispatched without a virtual call.
        #[derive(Clone, Debug)]
        pub enum AnyPicker { $( $(#[$doc])* $name($name) ),* }

        impl PickerConfig {
            /// The picker of one queue pair.
            pub fn build(self, paths: u16, rng: &mut Rng) -> AnyPicker {
                match self { $( PickerConfig::$name => AnyPicker::$name($name::new(paths, rng)) ),* }
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
            fn on_paths(&mut self, paths: &[PathView], rng: &mut Rng) {
                match self { $( AnyPicker::$name(picker) => picker.on_paths(paths, rng) ),* }
            }
        }
    };
}

pickers! {
    /// One path for the life of the queue pair.
    Ecmp,
    /// Every packet takes a random path.
    Rps,
    /// Every message takes a random path.
    PerMessage,
    /// Packet after packet takes path after path.
    RoundRobin,
}
