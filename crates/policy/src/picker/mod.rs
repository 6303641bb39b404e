//! Path pickers: which path a packet takes, whatever its rate.
//!
//! Add one: a file with the picker; its `mod` line, and one line in the list at the end of this file. A program can also bring its
//! own at run time ([`Supply`]).

mod bitmap;
mod ecmp;
mod laps;
mod mixed;
mod news;
mod oblivious;
mod paths;
mod penalties;
mod per_message;
mod plb;
mod recycled;
mod round_robin;
mod rps;
mod shares;
mod supplied;
#[cfg(test)]
mod tests;
mod weighted;

use pathweave_units::{PathId, Rng, Time};

use crate::fluid::{Spread, Spreads};
use crate::{ConfigError, Feedback, Member, PathView, PolicyCx, PolicyEnv, Sent, Want};

pub use paths::PathSet;
pub use penalties::Forgives;
pub(crate) use shares::Shares;
pub use supplied::{MakePicker, ProgramPicker, Supplied, Supply};

/// Chooses a path for each packet. Starts with all paths of the environment up.
///
/// Every call lends the random stream of the queue pair and what the queue pairs of the endpoint share ([`PolicyCx`]), as
/// for a [`Policy`](crate::Policy). No method has a body here; [`ignores!`](crate::ignores) supplies empty ones.
pub trait PathPicker {
    /// Its queue pair is opened; the first call. It joins here what it shares with others of the endpoint.
    fn on_open(&mut self, now: Time, member: &Member, cx: &mut PolicyCx<'_>);
    /// Its queue pair is closed; the last call.
    fn on_close(&mut self, cx: &mut PolicyCx<'_>);
    /// The path for this packet. Changes nothing: asked again, it answers the same.
    fn pick(&self, now: Time, want: &Want, cx: &mut PolicyCx<'_>) -> PathId;
    /// A packet left on the path picked for it. What is returned comes back with the feedback on it
    /// ([`Memo::picker_half`](crate::Memo::picker_half)), where the congestion control sees it, too; 0 where nothing is to be
    /// kept.
    fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> u32;
    /// Feedback on a packet.
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>);
    /// The set of paths changed.
    fn on_paths(&mut self, now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>);
}

/// Declares the pickers a `split` policy can use, one line each: the module, the name in it, and its configuration where it
/// has one.
macro_rules! pickers {
    ($( $(#[$doc:meta])* $module:ident: $name:ident $(($config:ident))? ),* $(,)?) => {
        $( pub use $module::{$name $(, $config)?}; )*

        /// A path picker: its name, or a table of its name with its parameters (`{ plb = { forced_rounds = 6 } }`).
        #[derive(Clone, Debug, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum PickerConfig {
            $( $(#[$doc])* $name $(($config))?, )*
            /// Pickers of the program; no scenario can name them.
            #[cfg_attr(feature = "serde", serde(skip))]
            Supplied(Supply),
        }

        /// Any picker; those of this crate are dispatched without a virtual call.
        #[derive(Clone, Debug)]
        pub enum AnyPicker {
            $( $(#[$doc])* $name($name), )*
            /// A picker of the program; a virtual call.
            Supplied(Supplied),
        }

        impl PickerConfig {
            /// Each of them by its name here, with its defaults.
            #[cfg(any(test, feature = "testing"))]
            pub fn every() -> alloc::vec::Vec<(&'static str, Self)> {
                alloc::vec![ $( (stringify!($name), PickerConfig::$name $((<$config>::default()))?) ),* ]
            }
            /// Names the first field that is wrong.
            pub fn validate(&self) -> Result<(), ConfigError> {
                match self {
                    $( pickers!(@pattern $name config $($config)?) => pickers!(@validate config $($config)?), )*
                    PickerConfig::Supplied(_) => Ok(()),
                }
            }
            /// How its packets are spread; `None` for pickers of the program, which do not say.
            pub fn spread(&self) -> Option<Spread> {
                match self {
                    $( pickers!(@any $name $($config)?) => Some(<$name as Spreads>::SPREAD), )*
                    PickerConfig::Supplied(_) => None,
                }
            }
            /// The picker of one queue pair.
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
            fn on_open(&mut self, now: Time, member: &Member, cx: &mut PolicyCx<'_>) {
                match self {
                    $( AnyPicker::$name(picker) => picker.on_open(now, member, cx), )*
                    AnyPicker::Supplied(picker) => picker.on_open(now, member, cx),
                }
            }
            fn on_close(&mut self, cx: &mut PolicyCx<'_>) {
                match self {
                    $( AnyPicker::$name(picker) => picker.on_close(cx), )*
                    AnyPicker::Supplied(picker) => picker.on_close(cx),
                }
            }
            #[inline]
            fn pick(&self, now: Time, want: &Want, cx: &mut PolicyCx<'_>) -> PathId {
                match self {
                    $( AnyPicker::$name(picker) => picker.pick(now, want, cx), )*
                    AnyPicker::Supplied(picker) => picker.pick(now, want, cx),
                }
            }
            #[inline]
            fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> u32 {
                match self {
                    $( AnyPicker::$name(picker) => picker.on_sent(now, sent, cx), )*
                    AnyPicker::Supplied(picker) => picker.on_sent(now, sent, cx),
                }
            }
            #[inline]
            fn on_feedback(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>) {
                match self {
                    $( AnyPicker::$name(picker) => picker.on_feedback(now, feedback, cx), )*
                    AnyPicker::Supplied(picker) => picker.on_feedback(now, feedback, cx),
                }
            }
            fn on_paths(&mut self, now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
                match self {
                    $( AnyPicker::$name(picker) => picker.on_paths(now, paths, cx), )*
                    AnyPicker::Supplied(picker) => picker.on_paths(now, paths, cx),
                }
            }
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
    /// One path for its life, drawn in proportion to the paths' rates.
    weighted: Wcmp,
    /// Every packet takes a random path.
    rps: Rps,
    /// Every packet takes a random path, in proportion to the paths' rates.
    weighted: WeightedRps,
    /// Every message takes a random path.
    per_message: PerMessage,
    /// Packet after packet takes path after path.
    round_robin: RoundRobin,
    /// Packet after packet takes path after path; a marked one is passed over once.
    bitmap: Bitmap,
    /// Path after path, each lap in an order of its own.
    oblivious: Oblivious,
    /// The same, passing over paths with penalties for marks, trims and losses (Ultra Ethernet's bitmap).
    penalties: Penalties(PenaltiesConfig),
    /// REPS: a path that came back unmarked is taken again, once; without one, any.
    recycled: Recycled(RecycledConfig),
    /// A path that came back unmarked; without one, the bitmap's next (uet-htsim's default).
    mixed: Mixed(MixedConfig),
    /// PLB: another path after rounds of congestion.
    plb: Plb(PlbConfig),
}
