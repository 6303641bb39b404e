//! AF_XDP sockets: memory shared with the kernel, and rings of places in it.
//!
//! A [`Queue`] is one socket at one receive queue of an interface, with memory of its own. All that is `unsafe` about them is
//! in this folder: what the kernel shares with us is reached through pointers, and who may touch which bytes is decided
//! by the rings.

mod busy;
mod mapping;
mod queue;
mod ring;
mod umem;

pub use queue::Transfer;
pub(crate) use queue::{Kick, Opened, Queue, QueueConfig};
