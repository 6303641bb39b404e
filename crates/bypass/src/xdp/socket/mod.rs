//! AF_XDP sockets: memory shared with the kernel, and rings of descriptors into it.
//!
//! A [`Queue`] is one socket on one receive queue of an interface, with its own memory. All `unsafe` code for these
//! sockets is in this folder. Memory shared with the kernel is accessed through pointers, and the rings determine
//! which side may access which bytes.

mod busy;
mod mapping;
mod queue;
mod ring;
mod umem;

pub use queue::Transfer;
pub(crate) use queue::{FlushResult, Opened, Queue, QueueConfig};
