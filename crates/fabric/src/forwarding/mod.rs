//! What a switch does with a packet: where it goes, or that it goes nowhere.
//!
//! Routes name sets of equal-cost egress ports. By default the choice within a set is a hash of source, destination and
//! path entropy (ECMP): the source selects a path by its entropy, nothing is stored, and since the choice depends on
//! nothing else, a switch can be taken through a window port by port. The other schemes remember flows or look at
//! queues, so their switches do everything in order of time. Which scheme is chosen is asked once a window, not once a
//! packet.
//!
//! A scheme is a file here: its state for all switches, and a function that says what becomes of a packet, an
//! [`Action`]. Beyond that it may put packets into the [`Outbox`] (those it held, those it makes itself).

pub(crate) mod config;
mod conga;
mod conweave;
mod dice;
mod dre;
mod drill;
mod explicit;
mod flow_table;
mod flowlets;
mod leaves;
mod letflow;
mod pair_routes;
mod routes;
mod run;
mod ugal;

use pathweave_units::{Time, mix64};

pub(crate) use explicit::ExplicitWays;
pub use pair_routes::PairRoutes;
pub(crate) use routes::ecmp_hash;
pub use routes::{IntervalRoutes, SwitchRoutes, TableRoutes};

use crate::build::BuildError;
use crate::config::SwitchConfig;
use crate::event::DropReason;
use crate::packet::Header;
use crate::port::{Port, PortId};
use config::Forwarding;
use conga::Conga;
use conweave::ConWeave;
use dice::SwitchDice;
use drill::Drill;
use leaves::leaf_of_hosts;
use letflow::LetFlow;
use ugal::Ugal;

/// What becomes of a packet at a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// It leaves by this port.
    Forward(PortId),
    /// It stays in the buffer, on its way to this port, until the scheme lets it go.
    Hold(PortId),
    /// It was for the switch itself.
    Consume,
    /// It is lost.
    Drop(DropReason),
}

/// What a switch sends besides the packet at hand, with egress ports.
#[derive(Default)]
pub(crate) struct Outbox {
    /// Held until now; before that packet.
    held_before: Vec<(PortId, Header)>,
    /// Held until now; behind it.
    held_after: Vec<(PortId, Header)>,
    /// Made here; behind those.
    made: Vec<(PortId, Header)>,
}

impl Outbox {
    fn is_empty(&self) -> bool {
        self.held_after.is_empty() && self.made.is_empty()
    }
}

/// The load balancing of all switches, with its state. Beside the switches, so that those that hash have none of it.
pub(crate) enum Balancer {
    Ecmp,
    Rps(SwitchDice),
    LetFlow(LetFlow),
    Drill(Drill),
    Ugal(Box<Ugal>),
    Conga(Box<Conga>),
    ConWeave(Box<ConWeave>),
}

impl Balancer {
    pub(crate) fn new<const C: usize>(
        config: &SwitchConfig,
        seed: u64,
        switches: usize,
        ports: &[Port<C>],
        hosts: u32,
    ) -> Result<Self, BuildError> {
        let config = &config.forwarding;
        let kind = config.kind.unwrap_or_default();
        let leaves =
            || leaf_of_hosts(ports, hosts).map_err(|host| BuildError::ManyLeaves { host, forwarding: kind });
        Ok(match kind {
            // Weights are a matter of routes, which list a port more than once.
            Forwarding::Ecmp | Forwarding::Wcmp => Balancer::Ecmp,
            Forwarding::Rps | Forwarding::WeightedRps => Balancer::Rps(SwitchDice::new(seed, switches)),
            Forwarding::LetFlow => Balancer::LetFlow(LetFlow::new(&config.letflow, seed, switches)),
            Forwarding::Drill => Balancer::Drill(Drill::new(&config.drill, seed, switches, ports.len())),
            Forwarding::Ugal => Balancer::Ugal(Box::new(Ugal::new(&config.ugal, seed, leaves()?, switches))),
            Forwarding::Conga => {
                let conga = Conga::new(&config.conga, seed, leaves()?, switches, ports.len());
                Balancer::Conga(Box::new(conga))
            }
            Forwarding::ConWeave => {
                Balancer::ConWeave(Box::new(ConWeave::new(&config.conweave, seed, leaves()?, switches)))
            }
        })
    }

    /// When a switch has something to do even if no packet comes.
    pub(crate) fn alarm(&self, switch: u32) -> Time {
        match self {
            Balancer::ConWeave(conweave) => conweave.next_flush(switch),
            _ => Time::MAX,
        }
    }

    /// When a switch next does something by the clock, at the latest before it looks at a packet that comes after that.
    fn next_clock(&self, switch: u32) -> Time {
        match self {
            Balancer::Conga(conga) => conga.next_tick(switch),
            _ => self.alarm(switch),
        }
    }

    /// Packets held, with their switches.
    pub(crate) fn held(&self) -> impl Iterator<Item = (u32, &Header)> {
        let conweave = match self {
            Balancer::ConWeave(conweave) => Some(conweave.held()),
            _ => None,
        };
        conweave.into_iter().flatten()
    }

    /// Packets between switches that are under way.
    pub(crate) fn messages_alive(&self) -> usize {
        match self {
            Balancer::ConWeave(conweave) => conweave.messages.alive(),
            _ => 0,
        }
    }

    /// A packet between switches is lost.
    #[cold]
    pub(crate) fn discard_message(&mut self, header: &Header) {
        if let Balancer::ConWeave(conweave) = self {
            conweave.messages.discard(header.message_slot());
        }
    }

    /// There was no room for a packet that was to be held.
    #[cold]
    fn lost_instead_of_held(&mut self, switch: u32, header: &Header) {
        if let Balancer::ConWeave(conweave) = self {
            conweave.lost_instead_of_held(switch, header);
        }
    }

    /// Whether the port of a packet is a hash of what is in it, whatever else happens at the switch.
    #[inline(always)]
    pub(crate) fn is_hash(&self) -> bool {
        matches!(self, Balancer::Ecmp)
    }
}

/// What load balancing in the switches did, all of them together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForwardingStats {
    /// Flowlets begun.
    pub flowlets: u64,
    /// Times a flow was sent another way than before; packets sent a detour.
    pub reroutes: u64,
    /// Packets held until those before them had come.
    pub held_packets: u64,
    /// Packets that overtook others and were not held, for want of a queue.
    pub unheld_packets: u64,
    /// Queues of held packets emptied because those before them were overdue.
    pub late_flushes: u64,
    /// Packets of flows for which a switch's table had no room.
    pub untracked_packets: u64,
    /// Packets between switches.
    pub messages: u64,
}

/// What tells flows apart in a switch with this seed.
pub(crate) fn flow_hash(ecmp_hash: u64) -> u64 {
    // Not the hash itself, whose bits choose ports.
    mix64(ecmp_hash ^ 0x5bd1_e995_7b93_1c4d)
}
