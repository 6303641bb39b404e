//! Simulated links, NIC ports, switches and faults: one exact event per packet-hop.
//!
//! The fabric moves packets between hosts and does not interpret their contents. See [`Fabric`] for the calls that
//! drive it, and its module for lazy port service, the central idea of the implementation.

mod admission;
mod build;
mod cable;
mod calm;
mod classes;
pub mod config;
mod config_error;
mod crossing;
mod event;
mod fabric;
mod faults;
mod forwarding;
#[cfg(feature = "hops")]
mod hop;
mod impairments;
mod in_force;
mod journal;
mod link;
mod links;
mod marking;
mod memory;
mod middlebox;
mod numbers;
mod observe;
mod packet;
mod pages;
mod pauses;
mod plain;
mod port;
mod ports_and_links;
mod prefetch;
mod ring;
mod run;
mod scheduling;
mod snapshot;
mod source_route;
mod switch;
mod telemetry;
mod transit;
mod trim;
mod trim_admission;
mod watch;
mod window;

pub use build::{Blueprint, BuildError};
pub use cable::{Cable, Span};
pub use crossing::PartTransfer;
pub use event::{Arrived, DropReason, FabricEvent, FabricEventKind, Step};
pub use fabric::Fabric;
pub use forwarding::{
    Divisor, ForwardingStats, IntervalRoutes, PairRoutes, PlacedRoutes, SwitchRoutes, TableRoutes,
};
#[cfg(feature = "hops")]
pub use hop::Hop;
pub use in_force::{InForce, any_of};
pub use memory::FabricBytes;
pub use middlebox::{
    ContentAccess, ContentView, MiddleboxStats, NdtStats, NsfStats, QueueingThresholds, SwitchPosition,
};
pub use numbers::{PortMap, PortNumbers};
pub use packet::{Header, PortId};
pub use port::PortStats;
pub use prefetch::{prefetch, prefetch_line};
pub use run::ARRIVALS_AHEAD;
pub use snapshot::{Held, Stopped};
pub use source_route::{Attachment, RouteHop, RoutePath, SourceRoutes};
pub use watch::{PausedPort, PfcCheck, PfcFailure, PfcWatch};
