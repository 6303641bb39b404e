//! The backend of `torch.distributed`: collectives of processes over the datapath.
//!
//! A process has one device, and one connection with each other process, which carries all groups and is opened when a
//! group first needs it. The loop's thread runs the [engine](pathweave_collective::Engine) in its hook.
//!
//! | module | subject |
//! |---|---|
//! | [`Process`] | the device, groups, the start of operations |
//! | `peer` | connections, and what waits to be sent |
//! | `work` | orders of the engine, carried out on memory and connections |
//! | `neighbour` | processes of this host, whose memory may be copied |
//! | `copies` | transfers between them |
//! | [`Ticket`] | outcome of an operation |
//! | `record` | what processes tell each other through torch's store |
#![cfg(target_os = "linux")]

mod copies;
mod neighbour;
mod peer;
mod process;
mod record;
mod ticket;
mod work;

pub use copies::Copies;
pub use pathweave_collective::{Call, Dtype, Kind, Place, Plan, ReduceOp, Reduction, Span, plans};
pub use pathweave_datapath::{DeviceConfig, Driving};
pub use process::{Group, Neighbours, Process};
pub use ticket::Ticket;
pub use work::{Buffer, Keep};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. A panic under the lock ends the call that held it; the next one goes on.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
