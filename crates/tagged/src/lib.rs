//! Engine of the libfabric provider, without I/O.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod atomic;
mod config;
mod engine;
mod fetch;
mod flow;
mod header;
mod inbox;
mod incoming;
mod matching;
mod memory;
mod operations;
mod output;
mod peer;
mod pump;
mod receive;
mod region;
mod request;
mod rma;
mod send;
mod shared;
mod table;
mod wire;

pub use atomic::{AtomicForm, AtomicOp, AtomicType, apply};
pub use config::{Config, FIRST_RECEIVES, MAX_ATOMIC_BYTES, MAX_INJECT, MAX_MESSAGE, MOST_RECEIVES};
pub use engine::Engine;
pub use header::Header;
pub use memory::{Access, Buffer, Memory, PeerId, Piece, Remote};
pub use output::{Action, Completion, Failure, Fault, Kind, Payload, Release, RequestId};
pub use peer::Role;
pub use region::{Region, RegionEvents, RegionId};
pub use request::{
    Atomic, Claim, DoneWhen, Fetch, Found, Hold, Label, Peek, PostError, Read, Receive, Report, Segment,
    Segments, Send, Take, Want, Write,
};
pub use wire::VERSION as WIRE_VERSION;
