//! Congestion control: the rate at which a queue pair may send, independent of the paths of its packets.
//!
//! To add a congestion control: write a file with the algorithm, its configuration and its factory, and add its `mod`
//! line and one line in the list at the end of this file.

pub mod dcqcn;
mod dctcp;
mod dctcp_rate;
mod host_scaling;
mod hpcc;
mod median;
mod mswift;
mod nscc;
mod smartt;
mod strack;
mod supplied;
mod swift;
mod timely;
mod unlimited;
mod window;

use pathweave_units::{Duration, Rate, Time};

use crate::fluid::{ControlModel, HasControlModel};
use crate::{
    Adapt, ConfigError, Feedback, MeasuredSection, PolicyCx, PolicyEnv, QueuePairId, SendRequest, SendWindow,
    Sent,
};

pub use dcqcn::{DcqcnParams, DcqcnPreset};
pub use hpcc::HpccReaction;
pub(crate) use hpcc::MOST_PATHS as HPCC_PATHS;
pub use nscc::{LastHopTrims, NsccProfile};
pub use supplied::{CcFactory, ExternalCc, MakeCc, ProgramCc};
pub use swift::{HopScaling, IncreaseOver};
pub use timely::{EdgeUpdates, TimelyParams, TimelyPreset};
pub use window::Window;

/// Result of [`CongestionControl::permit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// A packet may leave.
    Now,
    /// No packet may leave before this instant, which is later than now.
    At(Time),
    /// No packet may leave before feedback arrives or a timer expires.
    Blocked,
}

/// Rate or window of one direction of one queue pair. Time never runs backwards.
///
/// Every call passes the random stream of the queue pair and the state shared by the queue pairs of the endpoint
/// ([`PolicyCx`]), as for a [`Policy`](crate::Policy). No method has a default body; [`ignores!`](crate::ignores!)
/// supplies empty ones.
pub trait CongestionControl {
    /// Called first, when the queue pair opens. Joins the state that is shared with other queue pairs of the
    /// endpoint.
    fn on_open(&mut self, now: Time, member: &QueuePairId, cx: &mut PolicyCx<'_>);
    /// Called last, when the queue pair closes.
    fn on_close(&mut self, cx: &mut PolicyCx<'_>);
    /// Returns whether a packet may leave. Has no relevant side effect.
    fn permit(&mut self, now: Time, want: &SendRequest, cx: &mut PolicyCx<'_>) -> Permit;
    /// Commits a packet that left. The returned value comes back with the feedback on the packet
    /// ([`Memo::cc_half`](crate::Memo::cc_half)), where the path picker can read it, too. 0 if there is nothing to
    /// store.
    fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> u32;
    /// Processes feedback on a packet.
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>);
    /// Called at the instant of [`CongestionControl::next_timer`].
    fn on_timer(&mut self, now: Time, cx: &mut PolicyCx<'_>);
    /// Returns the instant at which [`CongestionControl::on_timer`] is to be called; `None` if timers are evaluated
    /// on use.
    fn next_timer(&self) -> Option<Time>;
    /// Returns the rate allowed now; `None` if there is no limit.
    fn rate(&self, now: Time) -> Option<Rate>;
    /// Returns the window, for loss recovery that depends on it; `None` if there is none.
    fn window(&self) -> Option<SendWindow>;
}

/// Declares the congestion controls that a `split` policy can use, one line each: the name, the module, and the
/// module's state and configuration types.
macro_rules! congestion_controls {
    ($( $(#[$doc:meta])* $name:ident($module:ident: $state:ident, $config:ident) ),* $(,)?) => {
        $( pub use $module::{$state, $config}; )*

        /// A congestion control with its parameters.
        #[derive(Clone, Debug, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case", tag = "kind"))]
        pub enum CcConfig {
            $( $(#[$doc])* $name($config), )*
            /// A congestion control supplied by the program; no scenario can name it.
            #[cfg_attr(feature = "serde", serde(skip))]
            Supplied(CcFactory),
        }

        /// Any congestion control; those of this crate are dispatched without a virtual call.
        #[derive(Clone, Debug)]
        pub enum AnyCc {
            $( $(#[$doc])* $name($state), )*
            /// A congestion control supplied by the program, dispatched by a virtual call.
            Supplied(ExternalCc),
        }

        impl CcConfig {
            /// Returns each congestion control by its name in this enum, with its defaults.
            #[cfg(any(test, feature = "testing"))]
            pub fn every() -> alloc::vec::Vec<(&'static str, Self)> {
                alloc::vec![ $( (stringify!($name), CcConfig::$name(<$config>::default())) ),* ]
            }
            /// Returns an error that names the first invalid field.
            pub fn validate(&self) -> Result<(), ConfigError> {
                match self {
                    $( CcConfig::$name(config) => config.validate(), )*
                    CcConfig::Supplied(config) => config.validate(),
                }
            }
            /// Returns true if the congestion control has a window ([`CongestionControl::window`]).
            pub fn has_window(&self) -> bool {
                let env = PolicyEnv {
                    line_rate: Rate::from_gbps(100),
                    base_rtt: Duration::from_us(10),
                    mtu_wire_bytes: 1_000,
                    mtu_payload_bytes: 900,
                    paths: 1,
                    measured: MeasuredSection::with_rtt(Duration::from_us(10)),
                    edge: None,
                };
                self.build(&env).window().is_some()
            }
            /// Builds the congestion control of one queue pair.
            pub fn build(&self, env: &PolicyEnv) -> AnyCc {
                match self { $( CcConfig::$name(config) => AnyCc::$name(<$state>::new(config, env)), )*
                    CcConfig::Supplied(factory) => AnyCc::Supplied(ExternalCc::new(factory, env)),
                }
            }
        }

        impl HasControlModel for CcConfig {
            fn control(&self) -> ControlModel {
                match self {
                    $( CcConfig::$name(config) => config.control(), )*
                    CcConfig::Supplied(config) => config.control(),
                }
            }
        }

        impl Adapt for CcConfig {
            crate::forwards!({ CcConfig: $($name)* Supplied } adapt);
        }

        impl CongestionControl for AnyCc {
            crate::forwards!({ AnyCc: $($name)* Supplied } congestion_control);
        }
    };
}

congestion_controls! {
    /// No congestion control: line rate, or a fixed window.
    None(unlimited: Unlimited, UnlimitedConfig),
    /// DCQCN's reaction point: rate-based, driven by congestion notifications.
    Dcqcn(dcqcn: Dcqcn, DcqcnConfig),
    /// DCTCP: window-based, driven by the fraction of marked packets.
    Dctcp(dctcp: Dctcp, DctcpConfig),
    /// DCTCP with a rate instead of the window, as in RDMA simulators.
    DctcpRate(dctcp_rate: DctcpRate, DctcpRateConfig),
    /// HPCC: window and rate by the utilisation of the busiest port, which switches report. Only in simulations.
    Hpcc(hpcc: Hpcc, HpccConfig),
    /// MSwift: Swift on the median of delays, for packets sprayed over paths. Implemented from a second-hand
    /// description.
    Mswift(mswift: Mswift, MswiftConfig),
    /// NSCC, that of Ultra Ethernet: a window in bytes, driven by delay and marks together.
    Nscc(nscc: Nscc, NsccConfig),
    /// SMaRTT, NSCC's ancestor: a window in bytes, driven by delay and marks. Implemented from a second-hand
    /// description.
    Smartt(smartt: Smartt, SmarttConfig),
    /// STrack: window-based, driven by delay and marks together.
    Strack(strack: Strack, StrackConfig),
    /// Swift: window-based, driven by delay against a target.
    Swift(swift: Swift, SwiftConfig),
    /// TIMELY: rate-based, driven by the gradient of round-trip times.
    Timely(timely: Timely, TimelyConfig),
}
