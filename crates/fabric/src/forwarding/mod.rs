//! Forwarding: the decision of a switch where a packet goes, or that it is dropped.
//!
//! Routes name sets of equal-cost egress ports. The default choice within a set is a hash of source, destination and
//! path entropy (ECMP). The source then selects a path by its entropy, and no state is kept. The choice is
//! independent of the switch's state, so a window can be simulated port by port. The other schemes keep state for
//! flows or compare queues, so their switches execute everything in order of time. The scheme is dispatched once a
//! window, not once a packet.
//!
//! A balancer is one file here and one entry in `registry.rs`: its parameters, its state for all switches, and its
//! action for a packet ([`balance::Balance`]). It can access the fabric only through [`view::SwitchView`]: the ports
//! and routes of the switch, the time, and an outbox for packets that it held or makes. `balancing.rs` calls it and
//! executes its actions.

mod balance;
mod balancing;
mod conga;
mod conweave;
mod dice;
mod divisor;
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
pub(crate) use balancing::{Balancing, PacketState};
pub use conga::{CongaConfig, CongaCounts};
pub use conweave::{ConWeaveConfig, ReplyAfter};
pub use divisor::Divisor;
pub use drill::{DrillConfig, DrillVariant};
pub use hash::WcmpConfig;
pub(crate) use leaves::{ManyLeaves, leaf_of_hosts};
pub use letflow::LetFlowConfig;
pub use pair_routes::PairRoutes;
pub(crate) use registry::Balancer;
pub use registry::{Forwarding, ForwardingConfig};
pub(crate) use routes::ecmp_hash;
pub use routes::{IntervalRoutes, PlacedRoutes, SwitchRoutes, TableRoutes};
pub use ugal::UgalConfig;
pub use view::ForwardingStats;
