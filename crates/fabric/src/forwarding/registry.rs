//! The balancers there are. A new one is a line among the kinds, and one among the tables if it has parameters.

pub use pathweave_units::Forwarding;
use pathweave_units::{Spread, Time};

use super::balance::{Balance, Layout, Shares};
use super::conga::{Conga, CongaConfig};
use super::conweave::{ConWeave, ConWeaveConfig};
use super::drill::{Drill, DrillConfig};
use super::hash::{Hash, Spray, WcmpConfig, WeightedHash, WeightedSpray};
use super::leaves::{ManyLeaves, leaf_of_hosts};
use super::letflow::{LetFlow, LetFlowConfig};
use super::ugal::{Ugal, UgalConfig};
use super::view::{Action, ForwardingStats, SwitchView};
use crate::config_error::ConfigError;
use crate::packet::Header;
use crate::port::Port;

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
        /// Load balancing in switches: how one chooses among equal-cost next hops.
        #[derive(Clone, Debug, Default, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct ForwardingConfig {
            /// What all switches do. Absent: what the schemes in use are made for, "ecmp" where they do not say.
            #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
            pub kind: Option<Forwarding>,
            $( $(#[$doc])* pub $table: $parameters ),*
        }

        impl ForwardingConfig {
            /// What routing gives the next hops of a switch.
            pub fn shares(&self) -> Shares {
                match self.kind.unwrap_or_default() {
                    $( Forwarding::$kind => $state::shares(parameters!(self $(, $of)?)) ),*
                }
            }

            /// How switches spread the packets of a flow, where that is not as their hosts wish.
            pub fn spread(&self) -> Option<Spread> {
                match self.kind.unwrap_or_default() {
                    $( Forwarding::$kind => $state::SPREAD ),*
                }
            }

            /// Checks every range, whether or not it is in use.
            pub(crate) fn validate(&self) -> Result<(), ConfigError> {
                $( self.$table.validate()?; )*
                Ok(())
            }
        }

        /// The load balancing of all switches, with its state. Beside the switches, so that those that hash have none of it.
        pub(crate) enum Balancer { $( $kind(Box<$state>) ),* }

        /// What it keeps of a packet, on its way into another part of the fabric.
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

            /// Whether the port of a packet is a hash of what is in it, whatever else happens at the switch.
            #[inline(always)]
            pub(crate) fn is_hash(&self) -> bool {
                match self { $( Balancer::$kind(_) => $state::IS_HASH ),* }
            }

            /// Whether what it does by the clock counts what ports have sent.
            pub(crate) fn counts_sent(&self) -> bool {
                match self { $( Balancer::$kind(_) => $state::COUNTS_SENT ),* }
            }

            pub(super) fn decide(&mut self, at: &mut impl SwitchView, header: &Header) -> Action {
                match self { $( Balancer::$kind(balancer) => balancer.decide(at, header) ),* }
            }

            /// When a switch has something to do even if no packet comes.
            pub(crate) fn alarm(&self, switch: u32) -> Time {
                match self { $( Balancer::$kind(balancer) => balancer.alarm(switch) ),* }
            }

            pub(super) fn next_clock(&self, switch: u32) -> Time {
                match self { $( Balancer::$kind(balancer) => balancer.next_clock(switch) ),* }
            }

            pub(super) fn on_clock(&mut self, at: &mut impl SwitchView, until: Time) {
                match self { $( Balancer::$kind(balancer) => balancer.on_clock(at, until) ),* }
            }

            /// Packets held, with their switches.
            pub(crate) fn held(&self) -> Vec<(u32, Header)> {
                match self { $( Balancer::$kind(balancer) => balancer.held() ),* }
            }

            /// Packets between switches that are under way.
            pub(crate) fn messages_alive(&self) -> usize {
                match self { $( Balancer::$kind(balancer) => balancer.messages_alive() ),* }
            }

            /// A packet between switches is lost.
            #[cold]
            pub(crate) fn discard_message(&mut self, header: &Header) {
                match self { $( Balancer::$kind(balancer) => balancer.discard_message(header) ),* }
            }

            /// There was no room for a packet that was to be held.
            #[cold]
            pub(super) fn lost_instead_of_held(&mut self, switch: u32, header: &Header) {
                match self { $( Balancer::$kind(balancer) => balancer.lost_instead_of_held(switch, header) ),* }
            }

            /// Whether anything is ever kept of packets.
            pub(super) fn keeps_notes(&self) -> bool {
                match self { $( Balancer::$kind(_) => size_of::<<$state as Balance>::Note>() > 0 ),* }
            }

            /// Gives away what is kept of a packet, if anything is.
            pub(super) fn hand_over(&mut self, header: &Header) -> Option<Kept> {
                match self { $( Balancer::$kind(balancer) => balancer.hand_over(header).map(Kept::$kind) ),* }
            }

            /// Keeps from now on what the same balancer has kept of a packet in another part of the fabric.
            pub(super) fn take_over(&mut self, header: Header, kept: Kept) -> Header {
                match (self, kept) {
                    $( (Balancer::$kind(balancer), Kept::$kind(note)) => balancer.take_over(header, note), )*
                    _ => unreachable!("all parts of a fabric balance alike"),
                }
            }

            /// What it has done so far.
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
    /// Of a fabric with these ports.
    ///
    /// # Errors
    /// A host is at several switches, and this kind of load balancing needs it at one.
    pub(crate) fn new<const C: usize>(
        config: &ForwardingConfig,
        seed: u64,
        switches: usize,
        ports: &[Port<C>],
        hosts: u32,
    ) -> Result<Self, (Forwarding, ManyLeaves)> {
        let kind = config.kind.unwrap_or_default();
        let leaf_of_host = || leaf_of_hosts(ports, hosts);
        let fabric = Layout { seed, switches, ports: ports.len() as u32, leaf_of_host: &leaf_of_host };
        Balancer::make(kind, config, &fabric).map_err(|why| (kind, why))
    }
}
