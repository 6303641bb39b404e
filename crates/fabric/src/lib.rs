//! Simulated links, NIC ports, switches and faults: one exact event per packet-hop.
//!
//! The fabric moves packets between hosts and does not interpret their contents. See [`Fabric`] for the calls that
//! drive it, and its module for lazy port service, the central idea of the implementation.

mod admission;
mod build;
mod calm;
pub mod config;
mod config_error;
mod crossing;
mod event;
mod fabric;
mod faults;
mod forwarding;
mod impairments;
mod journal;
mod lines;
mod link;
mod make_room;
mod marking;
mod middlebox;
mod observe;
mod packet;
mod pauses;
mod port;
mod prefetch;
mod ring;
mod run;
mod scheduling;
mod sight;
mod source_route;
mod switch;
mod transit;
mod trim;
mod watch;
mod weight;
mod window;
mod wires;

pub use build::{BuildError, Cable, PortMap, Span};
pub use crossing::Crossings;
pub use event::{Arrived, DropReason, FabricEvent, FabricEventKind, Step};
pub use fabric::Fabric;
pub use forwarding::{ForwardingStats, IntervalRoutes, PairRoutes, SwitchRoutes, TableRoutes};
pub use middlebox::{Lens, Look, MiddleboxStats, NdtStats, NsfStats, Place, Queued};
pub use packet::{Header, PortId};
pub use port::PortStats;
pub use prefetch::{prefetch, prefetch_line};
pub use run::ARRIVALS_AHEAD;
pub use sight::{Held, Stopped};
pub use source_route::{Attachment, RouteHop, RoutePath, SourceRoutes};
pub use watch::{PausedPort, PfcLook, PfcTrouble, PfcWatch};
pub use weight::FabricBytes;
