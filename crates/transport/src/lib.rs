#![doc = include_str!("../README.md")]
//!
//! # Interface
//!
//! [`Transport`] is the interface through which simulator and datapath drive it; its documentation has the order of
//! calls and an example. [`Endpoint`] implements queue pairs, [`rd`] datagrams. Neither knows a clock, a socket or a
//! thread.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod bits;
mod common;
mod config;
mod contract;
mod control;
mod counters;
mod credit;
mod endpoint;
mod events;
mod line;
mod memory;
mod ports;
mod prefetch;
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
    EndpointConfig, LossEvidence, MAX_MTU_PAYLOAD, MIN_MTU_PAYLOAD, QpConfig, ReceiveMode,
    RetransmissionConfig, RnrConfig,
};
pub use contract::Transport;
pub use counters::{ControlCounts, Counters, OOD_BUCKETS, OrderCounters};
pub use endpoint::Endpoint;
pub use events::{Completion, Event, Opcode, SentPacket, Status};
pub use memory::{Access, Domain, Keys, MemoryError, MemoryRegion, Scope};
pub use ports::PortChange;
pub use qp::{Waiting, queue_pair_stream};
pub use timers::TimerKind;
pub use transmit::{Class, FreePorts, PayloadRef, Placement, Transmit};
pub use warm::Prefetch;
pub use work::{Buffer, MAX_MESSAGE_BYTES, Op, PostError, RecvRequest, WorkRequest, part_bytes};
