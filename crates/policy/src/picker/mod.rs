//! Path pickers: choose the path of each packet, independent of the rate.
//!
//! To add a picker: write a file with it, and add its `mod` line and one line in the list at the end of this file. A
//! program can also supply its own picker at run time ([`PickerFactory`]).

mod bitmap;
mod ecmp;
mod mixed;
mod oblivious;
mod path_feedback;
mod path_ring;
mod paths;
mod penalties;
mod per_message;
mod plb;
mod recycled;
mod rotation;
mod round_robin;
mod rps;
mod shares;
mod supplied;
#[cfg(test)]
mod tests;
mod weighted;

use pathweave_units::{PathId, Rng, Time};

use crate::fluid::{HasSpread, Spread};
use crate::{ConfigError, Feedback, PathView, PolicyCx, PolicyEnv, QueuePairId, SendRequest, Sent};

pub(crate) use path_ring::PathRing;
pub use paths::PathSet;
pub use penalties::Forgives;
pub(crate) use shares::Shares;
pub use supplied::{ExternalPicker, MakePicker, PickerFactory, ProgramPicker};

/// Chooses a path for each packet. Starts with all paths of the environment up.
///
/// Every call passes the random stream of the queue pair and the state shared by the queue pairs of the endpoint
/// ([`PolicyCx`]), as for a [`Policy`](crate::Policy). No method has a default body; [`ignores!`](crate::ignores!)
/// supplies empty ones.
pub trait PathPicker {
    /// Called first, when the queue pair opens. Joins the state that is shared with other queue pairs of the
    /// endpoint.
    fn on_open(&mut self, now: Time, member: &QueuePairId, cx: &mut PolicyCx<'_>);
    /// Called last, when the queue pair closes.
    fn on_close(&mut self, cx: &mut PolicyCx<'_>);
    /// Returns the path for this packet. Does not change the state: a repeated call returns the same path.
    fn pick(&self, now: Time, want: &SendRequest, cx: &mut PolicyCx<'_>) -> PathId;
    /// Commits a packet that left on the path picked for it. The returned value comes back with the feedback on it
    /// ([`Memo::picker_half`](crate::Memo::picker_half)), where the congestion control can read it, too. 0 if there
    /// is nothing to store.
    fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> u32;
    /// Processes feedback on a packet.
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>);
    /// Replaces the set of paths.
    fn on_paths(&mut self, now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>);
}

/// Declares the pickers that a `split` policy can use, one line each: the module, the type in it, and its
/// configuration if it has one.
macro_rules! pickers {
    ($( $(#[$doc:meta])* $module:ident: $name:ident $(($config:ident))? ),* $(,)?) => {
        $( pub use $module::{$name $(, $config)?}; )*

        /// A path picker: its name, or a table of its name with its parameters (`{ plb = { forced_rounds = 6 } }`).
        #[derive(Clone, Debug, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        pub enum PickerConfig {
            $( $(#[$doc])* $name $(($config))?, )*
            /// A picker supplied by the program; no scenario can name it.
            #[cfg_attr(feature = "serde", serde(skip))]
            Supplied(PickerFactory),
        }

        /// Any picker; those of this crate are dispatched without a virtual call.
        #[derive(Clone, Debug)]
        pub enum AnyPicker {
            $( $(#[$doc])* $name($name), )*
            /// A picker supplied by the program, dispatched by a virtual call.
            Supplied(ExternalPicker),
        }

        impl PickerConfig {
            /// Returns each picker by its name in this enum, with its defaults.
            #[cfg(any(test, feature = "testing"))]
            pub fn every() -> alloc::vec::Vec<(&'static str, Self)> {
                alloc::vec![ $( (stringify!($name), PickerConfig::$name $((<$config>::default()))?) ),* ]
            }
            /// Returns an error that names the first invalid field.
            pub fn validate(&self) -> Result<(), ConfigError> {
                match self {
                    $( pickers!(@pattern $name config $($config)?) => pickers!(@validate config $($config)?), )*
                    PickerConfig::Supplied(_) => Ok(()),
                }
            }
            /// Returns the spreading of its packets; `None` for pickers supplied by the program, for which it is
            /// unknown.
            pub fn spread(&self) -> Option<Spread> {
                match self {
                    $( pickers!(@any $name $($config)?) => Some(<$name as HasSpread>::SPREAD), )*
                    PickerConfig::Supplied(_) => None,
                }
            }
            /// Builds the picker of one queue pair.
            pub fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> AnyPicker {
                match self {
                    $( pickers!(@pattern $name config $($config)?) => {
                        AnyPicker::$name(pickers!(@make $name config env rng $($config)?))
                    } )*
                    PickerConfig::Supplied(supply) => AnyPicker::Supplied(supply.build(env, rng)),
                }
            }
        }

        impl PathPicker for AnyPicker {
            crate::forwards!({ AnyPicker: $($name)* Supplied } path_picker);
        }
    };
    (@pattern $name:ident $bound:ident) => { PickerConfig::$name };
    (@pattern $name:ident $bound:ident $config:ty) => { PickerConfig::$name($bound) };
    (@any $name:ident) => { PickerConfig::$name };
    (@any $name:ident $config:ty) => { PickerConfig::$name(_) };
    (@validate $bound:ident) => { Ok(()) };
    (@validate $bound:ident $config:ty) => { $bound.validate() };
    (@make $name:ident $bound:ident $env:ident $rng:ident) => { $name::new($env.paths, $rng) };
    (@make $name:ident $bound:ident $env:ident $rng:ident $config:ty) => { $name::new($bound, $env, $rng) };
}

pickers! {
    /// One path for the life of the queue pair.
    ecmp: Ecmp,
    /// One path for the life of the queue pair, drawn in proportion to the paths' rates.
    weighted: Wcmp,
    /// Every packet takes a random path.
    rps: Rps,
    /// Every packet takes a random path, in proportion to the paths' rates.
    weighted: WeightedRps,
    /// Every message takes a random path.
    per_message: PerMessage,
    /// Packets take the paths in turn.
    round_robin: RoundRobin,
    /// Packets take the paths in turn; a marked path is skipped once.
    bitmap: Bitmap,
    /// Packets take the paths in laps, each lap in a different order.
    oblivious: Oblivious,
    /// Packets take the paths in laps, which skip paths with penalties for marks, trims and losses (Ultra Ethernet's
    /// bitmap).
    penalties: Penalties(PenaltiesConfig),
    /// REPS: a path that returned unmarked is taken again, once; without one, a random path.
    recycled: Recycled(RecycledConfig),
    /// A path that returned unmarked; without one, the bitmap's next path (uet-htsim's default).
    mixed: Mixed(MixedConfig),
    /// PLB: another path after several rounds of congestion.
    plb: Plb(PlbConfig),
}
