//! A small real network on one Linux machine, from the topology the simulator reads.

mod error;
mod find;
mod lab;
mod label;
mod name;
mod os;
mod plan;
mod privilege;
mod processes;
mod programs;
mod settings;
mod up;

pub use error::{LabError, SystemError};
pub use lab::{Lab, LinkState, Listing, PortCounters, Removed, Summary};
pub use name::LabName;
pub use os::device::Counters;
pub use plan::{MAX_LAB_LINKS, MAX_LAB_NODES, NodePlan, Plan, PortPlan, Role, RoutePlan};
pub use privilege::missing_privileges;
pub use processes::Process;
pub use settings::{MTU_BYTES, Marking, QUEUE_BYTES, RateScale, Settings, SuperPackets};
