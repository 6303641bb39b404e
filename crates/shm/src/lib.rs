//! Shared memory between processes of one host: a lane between two of them carries messages both ways without the kernel,
//! copies memory of one into the other, by the kernel or piece by piece, and wakes who sleeps. Memory is written by its owner alone.
//!
//! | module | subject |
//! |---|---|
//! | [`Lane`] | what two processes share: messages, copies, bells |
//! | [`Note`] | what they say of memory that an end cannot reach: its bytes go through the lane |
//! | [`Meeting`] | how they come together: a socket, over which the memory is handed |
//! | [`Watch`] | waiting for bells, newcomers and ends |
//!
//! # Who shares with whom
//!
//! Processes of one user that see the same abstract socket: that is one kernel and one network namespace, so hosts of a lab, or
//! containers with networks of their own, never share. Who offers presents a [`Ticket`] that it was told over a connection which
//! has proved the cluster's key; the kernel vouches for the user ([`Meeting`]).
//!
//! # What a peer can do
//!
//! It is a process of the same user, but may be mad or dead. All that it writes is copied out before it is looked at; lengths and
//! positions are bounded by what was agreed; the memory cannot shrink under us (it is sealed). Nothing here panics or waits for it.
//!
//! # Memory
//!
//! [`SEGMENT_BYTES`] a lane, of which only pages are there that messages have passed through, and a descriptor at either end.
#![cfg(target_os = "linux")]

mod lane;
mod meeting;
mod note;
mod reach;
mod ring;
mod segment;
mod watch;

pub use lane::{Bell, Copies, Heard, Lane, Rest, Sent};
pub use meeting::{Apart, Brought, Meeting, Name, Newcomer, Offer, Ticket, kernel};
pub use note::{Encoded, MOST_NOTE_BYTES, More, Note, Place};
pub use ring::{MAX_MESSAGE_BYTES, Reader, Writer};
pub use segment::SEGMENT_BYTES;
pub use watch::Watch;
