//! Sans-I/O RDMA endpoint: queue pairs, messages, placement, acknowledgements, loss recovery.
//!
//! [`Endpoint`] documents how it is driven. It knows no clock, socket or thread; simulator and datapath drive
//! the same code.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod bits;
mod common;
mod config;
mod counters;
mod endpoint;
mod events;
mod line;
mod memory;
mod qp;
pub mod rd;
mod receive;
mod recovery;
mod scheduler;
mod send;
mod sizes;
mod slab;
mod timers;
mod transmit;
mod warm;
mod work;

pub use config::{
    EndpointConfig, MAX_MTU_PAYLOAD, MIN_MTU_PAYLOAD, QpConfig, ReceiveMode, RnrConfig, RtoConfig,
};
pub use counters::{ControlCounts, Counters, OOD_BUCKETS, OrderCounters};
pub use endpoint::Endpoint;
pub use events::{Completion, Event, Opcode, SentPacket, Status};
pub use memory::{Access, Domain, MemoryError, MemoryRegion, Scope};
pub use timers::TimerKind;
pub use transmit::{Class, Gate, PayloadRef, Placement, Transmit};
pub use warm::Warm;
pub use work::{Buffer, MAX_MESSAGE_BYTES, Op, PostError, RecvRequest, WorkRequest, part_bytes};
