//! Simulation of hosts that run the transport on a simulated fabric.
//!
//! [`run`] executes a [`SimSpec`] and returns a [`pathweave_records::RunResult`]. The simulator drives the same
//! protocol code as the datapath. Nothing in this crate decides when a packet leaves or on which path.

mod agenda;
mod at_best;
mod busy;
mod calendar;
mod capture;
mod changes;
pub mod check;
mod chosen_routes;
mod config;
mod contexts;
mod coordinator;
mod datagram;
mod departures;
mod digest;
mod distinct;
mod division;
mod edge;
mod events;
mod faults;
mod fingerprint;
mod followed;
mod footprint;
mod forwarding;
mod groups;
mod host;
mod hosts;
mod ideal;
mod idle_times;
mod link_states;
mod locked_shards;
mod longest_path;
mod mailbox;
mod monitor;
mod network;
pub mod nic;
mod observe;
mod opening;
mod outline;
mod packet_bytes;
mod packet_free;
mod partition;
mod paths;
mod plan;
mod pulse;
mod ranks;
mod records;
mod rounds;
mod route_headers;
mod routes;
mod runner;
mod samples;
mod scale_up;
mod shard;
mod side;
mod spec;
mod switch_classes;
mod switch_routes;
mod tap;
mod telemetry;
mod transfer;
mod unequal_paths;
mod waits;
mod weights;
mod window;
mod work;

pub use at_best::topology_at_best;
pub use capture::{Capture, CaptureFilter, Frames};
pub use config::{Calibrate, Fold, NetworkConfig, ObserveConfig, RunConfig, USUAL_TASK_NOTIFICATION, Verb};
pub use faults::{Action, link_changes, scale_up_changes};
pub use followed::followed;
pub use footprint::{
    Footprint, Sizes, Weight, flows_can_leave, ports_of_all_threads, records_can_be_written_singly,
};
pub use ideal::{IdealPath, ideal_fct};
pub use idle_times::IdleTimes;
pub use monitor::{Monitor, MonitorDecision, NoMonitor, Snapshot};
pub use outline::memory_in_words;
pub use packet_bytes::{full_and_ack_bytes, payload_share};
pub use packet_free::{Chooser, Edge, NetworkChange, PacketFreeNetwork, ScheduledChange};
pub use paths::{PacketOrder, PathProfile, PathUse, profile, profiles};
pub use pathweave_execution::GroupSpec;
#[cfg(feature = "hops")]
pub use pathweave_fabric::Hop;
pub use pathweave_records::{Fidelity, Role};
pub use ranks::{InProcess, Ranks};
pub use runner::{RankSimulation, Simulation, run};
pub use spec::{BufferField, ErrorSource, NamedScheme, RouteChoice, SimError, SimSpec};
pub use switch_classes::{place_of, switch_classes, switch_role, with_switch_latencies};
pub use tap::{Arrival, Tap};
