//! Shared memory between processes of one host. A lane between two processes carries messages in both directions
//! without the kernel, copies memory of one process to the other, and wakes a sleeping peer. The kernel or the peer
//! does the copy. Memory is written by its owner only.
//!
//! | module | subject |
//! |---|---|
//! | [`ShmChannel`] | shared state of two processes: messages, copies, wake-ups |
//! | [`MemoryRequest`] | requests for memory that an end cannot read itself: its bytes go through the lane |
//! | [`Listener`] | set-up: a socket over which the memory is handed over |
//! | [`Watch`] | waiting for wake-ups, new peers and closed peers |
//!
//! # Who shares memory
//!
//! Processes share memory if they run as one user and see the same abstract socket. This requires the same kernel and
//! network namespace, so hosts of a lab, or containers with networks of their own, never share. The offering process
//! presents a [`Ticket`] that it received over a connection which has proved the cluster's key. The kernel
//! confirms the user ([`Listener`]).
//!
//! # Faulty peers
//!
//! The peer is a process of the same user, but may be faulty or dead. Everything that it writes is copied before it
//! is examined. Lengths and positions are bounded by the agreed sizes, and the memory is sealed so that it cannot
//! shrink. Nothing here panics or waits because of the peer.
//!
//! # Memory
//!
//! A lane takes [`SEGMENT_BYTES`] of address space and one descriptor at either end. Only the pages through which
//! messages have passed are resident.
#![cfg(target_os = "linux")]

mod lane;
mod meeting;
mod note;
mod process_copy;
mod ring;
mod segment;
mod watch;

pub use lane::{CopyMethod, Received, Sent, ShmChannel, WakeEvents, WakeState};
pub use meeting::{CannotShare, Listener, ListenerName, Offer, OfferedMemory, PendingPeer, Ticket, boot_id};
pub use note::{Encoded, MOST_NOTE_BYTES, MemoryRequest, More, RemoteLocation};
pub use process_copy::{Proof, copy_proven, permit_sibling_access};
pub use ring::{MAX_MESSAGE_BYTES, Reader, Writer};
pub use segment::SEGMENT_BYTES;
pub use watch::Watch;
