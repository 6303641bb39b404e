//! A small real network on one Linux machine, from the topology the simulator reads.

mod config;
mod error;
mod find;
mod inside;
mod lab;
mod label;
mod name;
mod os;
mod plan;
mod privilege;
mod processes;
mod programs;
mod run;
mod schedule;
mod settings;
mod source;
mod up;

pub use error::{LabError, SystemError};
pub use lab::{Lab, LinkState, Listing, PortCounters, Removed, Summary};
pub use name::LabName;
pub use os::device::Counters;
pub use plan::{MAX_LAB_LINKS, MAX_LAB_NODES, NodePlan, Plan, PortPlan, Role, RoutePlan};
pub use privilege::{KEEPER_ARGUMENTS, Workplace, keep_workplace, missing_privileges};
pub use processes::Process;
pub use run::{LabRun, Seen, run};
pub use schedule::{Change, Schedule};
pub use settings::{MTU_BYTES, Marking, QUEUE_BYTES, RateScale, Settings, SuperPackets};
pub use source::topology_of_file;
