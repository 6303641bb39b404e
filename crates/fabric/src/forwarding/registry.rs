//! The list of all balancers. A new one adds an entry to the kinds, and one to the tables if it has parameters.

pub use pathweave_units::Forwarding;
use pathweave_units::{Spread, Time};

use super::balance::{Balance, Layout, Shares};
use super::conga::{Conga, CongaConfig};
use super::conweave::{ConWeave, ConWeaveConfig};
use super::drill::{Drill, DrillConfig};
use super::hash::{Hash, Spray, WcmpConfig, WeightedHash, WeightedSpray};
use super::leaves::ManyLeaves;
use super::letflow::{LetFlow, LetFlowConfig};
use super::ugal::{Ugal, UgalConfig};
use super::view::{Action, ForwardingStats, SwitchView};
use crate::config_error::ConfigError;
use crate::packet::Header;

macro_rules! parameters {
    ($config:expr) => {
        &()
    };
    ($config:expr, $table:ident) => {
        &$config.$table
    };
}

macro_rules! forwardings {
    (
        kinds { $( $kind:ident => $state:ident $(, $of:ident)?; )* }
        tables { $( $(#[$doc:meta])* $table:ident: $parameters:ty; )* }
    ) => {
        /// Load balancing in switches: the choice among equal-cost next hops.
        #[derive(Clone, Debug, Default, PartialEq)]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct ForwardingConfig {
            /// Load balancing of all switches. Absent: the kind for which the schemes in use are designed, or "ecmp"
            /// if they name none.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub kind: Option<Forwarding>,
            $( $(#[$doc])* pub $table: $parameters ),*
        }

        impl ForwardingConfig {
            /// Returns the weighting of next hops that routing must provide.
            pub fn shares(&self) -> Shares {
                match self.kind.unwrap_or_default() {
                    $( Forwarding::$kind => $state::shares(parameters!(self $(, $of)?)) ),*
                }
            }

            /// Returns the spread of a flow's packets by the switches, where it differs from the choice of the hosts.
            pub fn spread(&self) -> Option<Spread> {
                match self.kind.unwrap_or_default() {
                    $( Forwarding::$kind => $state::SPREAD ),*
                }
            }

            /// Checks that every field is within its range, in use or not.
            pub(crate) fn validate(&self) -> Result<(), ConfigError> {
                $( self.$table.validate()?; )*
                Ok(())
            }
        }

        /// Load balancing of all switches, with its state. Kept apart from the switches, so that switches that hash
        /// have none.
        pub(crate) enum Balancer { $( $kind(Box<$state>) ),* }

        /// State that a balancer keeps for a packet, in transfer to another part of the fabric.
        #[derive(borsh::BorshSerialize, borsh::BorshDeserialize)]
        pub(crate) enum Kept { $( $kind(<$state as Balance>::Note) ),* }

        impl Balancer {
            fn make(kind: Forwarding, config: &ForwardingConfig, fabric: &Layout<'_>) -> Result<Self, ManyLeaves> {
                Ok(match kind {
                    $( Forwarding::$kind => {
                        Balancer::$kind(Box::new($state::new(parameters!(config $(, $of)?), fabric)?))
                    } ),*
                })
            }

            /// Returns true if the port of a packet is a hash of its header, independent of the switch's state.
            #[inline(always)]
            pub(crate) fn is_hash(&self) -> bool {
                match self { $( Balancer::$kind(_) => $state::IS_HASH ),* }
            }

            /// Returns true if the balancer's clock events count the bytes that ports have sent.
            pub(crate) fn counts_sent(&self) -> bool {
                match self { $( Balancer::$kind(_) => $state::COUNTS_SENT ),* }
            }

            pub(super) fn decide(&mut self, at: &mut impl SwitchView, header: &Header) -> Action {
                match self { $( Balancer::$kind(balancer) => balancer.decide(at, header) ),* }
            }

            /// Returns the time at which a switch must act even if no packet arrives.
            pub(crate) fn alarm(&self, switch: u32) -> Time {
                match self { $( Balancer::$kind(balancer) => balancer.alarm(switch) ),* }
            }

            pub(super) fn next_clock(&self, switch: u32) -> Time {
                match self { $( Balancer::$kind(balancer) => balancer.next_clock(switch) ),* }
            }

            pub(super) fn on_clock(&mut self, at: &mut impl SwitchView, until: Time) {
                match self { $( Balancer::$kind(balancer) => balancer.on_clock(at, until) ),* }
            }

            /// Returns the packets that are held, with their switches.
            pub(crate) fn held(&self) -> Vec<(u32, Header)> {
                match self { $( Balancer::$kind(balancer) => balancer.held() ),* }
            }

            /// Returns the number of packets between switches in flight.
            pub(crate) fn messages_alive(&self) -> usize {
                match self { $( Balancer::$kind(balancer) => balancer.messages_alive() ),* }
            }

            /// Frees the state of a lost packet between switches.
            #[cold]
            pub(crate) fn discard_message(&mut self, header: &Header) {
                match self { $( Balancer::$kind(balancer) => balancer.discard_message(header) ),* }
            }

            /// Reports that a packet to be held did not fit in the buffer.
            #[cold]
            pub(super) fn lost_instead_of_held(&mut self, switch: u32, header: &Header) {
                match self { $( Balancer::$kind(balancer) => balancer.lost_instead_of_held(switch, header) ),* }
            }

            /// Returns true if the balancer ever keeps state for packets.
            pub(super) fn keeps_notes(&self) -> bool {
                match self { $( Balancer::$kind(_) => size_of::<<$state as Balance>::Note>() > 0 ),* }
            }

            /// Removes and returns the state of a packet, if there is any.
            pub(super) fn hand_over(&mut self, header: &Header) -> Option<Kept> {
                match self { $( Balancer::$kind(balancer) => balancer.hand_over(header).map(Kept::$kind) ),* }
            }

            /// Stores the state of a packet that the same balancer kept in another part of the fabric.
            pub(super) fn take_over(&mut self, header: Header, kept: Kept) -> Header {
                match (self, kept) {
                    $( (Balancer::$kind(balancer), Kept::$kind(note)) => balancer.take_over(header, note), )*
                    _ => unreachable!("all parts of a fabric balance alike"),
                }
            }

            /// Returns the counters of the balancer.
            pub(crate) fn stats(&self) -> &ForwardingStats {
                match self { $( Balancer::$kind(balancer) => balancer.stats() ),* }
            }
        }
    };
}

forwardings! {
    kinds {
        Ecmp => Hash;
        Wcmp => WeightedHash, wcmp;
        Rps => Spray;
        WeightedRps => WeightedSpray, wcmp;
        LetFlow => LetFlow, letflow;
        Drill => Drill, drill;
        Ugal => Ugal, ugal;
        Conga => Conga, conga;
        ConWeave => ConWeave, conweave;
    }
    tables {
        /// Parameters of "wcmp" and "weighted-rps".
        wcmp: WcmpConfig;
        /// Parameters of "letflow".
        letflow: LetFlowConfig;
        /// Parameters of "drill".
        drill: DrillConfig;
        /// Parameters of "ugal".
        ugal: UgalConfig;
        /// Parameters of "conga".
        conga: CongaConfig;
        /// Parameters of "conweave".
        conweave: ConWeaveConfig;
    }
}

impl Balancer {
    /// Creates the load balancing for a fabric with these ports.
    ///
    /// # Errors
    /// A host is attached to several switches, and this kind of load balancing requires one.
    pub(crate) fn new(
        config: &ForwardingConfig,
        seed: u64,
        switches: usize,
        ports: usize,
        leaf_of_host: &dyn Fn() -> Result<Vec<u32>, ManyLeaves>,
    ) -> Result<Self, (Forwarding, ManyLeaves)> {
        let kind = config.kind.unwrap_or_default();
        let fabric = Layout { seed, switches, ports: ports as u32, leaf_of_host };
        Balancer::make(kind, config, &fabric).map_err(|why| (kind, why))
    }
}
