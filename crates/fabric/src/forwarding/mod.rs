//! What a switch does with a packet: where it goes, or that it goes nowhere.
//!
//! Routes name sets of equal-cost egress ports. By default the choice within a set is a hash of source, destination and
//! path entropy (ECMP): the source selects a path by its entropy, nothing is stored, and since the choice depends on
//! nothing else, a switch can be taken through a window port by port. The other schemes remember flows or look at
//! queues, so their switches do everything in order of time. Which scheme is chosen is asked once a window, not once a
//! packet.
//!
//! A balancer is a file here, and a line of `registry.rs`: its parameters, its state for all switches, and what becomes of a
//! packet ([`balance::Balance`]). Of the fabric it sees no more than [`view::SwitchView`] shows: the switch's ports and
//! routes, the time, and where to put packets that it held or makes itself. `balancing.rs` asks it, and does what it says.

mod balance;
mod balancing;
mod conga;
mod conweave;
mod dice;
mod dre;
mod drill;
mod explicit;
mod flow_table;
mod flowlets;
mod hash;
mod leaves;
mod letflow;
mod pair_routes;
mod registry;
mod routes;
mod ugal;
mod view;

pub use balance::Shares;
pub(crate) use balancing::{Balancing, Note};
pub use conga::{CongaConfig, CongaCounts};
pub use conweave::{ConWeaveConfig, ReplyAfter};
pub use drill::{DrillConfig, DrillVariant};
pub use hash::WcmpConfig;
pub(crate) use leaves::ManyLeaves;
pub use letflow::LetFlowConfig;
pub use pair_routes::PairRoutes;
pub(crate) use registry::Balancer;
pub use registry::{Forwarding, ForwardingConfig};
pub(crate) use routes::ecmp_hash;
pub use routes::{IntervalRoutes, SwitchRoutes, TableRoutes};
pub use ugal::UgalConfig;
pub use view::ForwardingStats;
