//! *May a packet leave now, and on which path?* One question, because in UDMP, LAPS and MPRDMA congestion
//! control and load balancing are one decision; [`Split`] composes them where they are two.
//!
//! A [`Policy`] belongs to one direction of one queue pair. The endpoint asks [`Policy::poll_send`], tells
//! [`Policy::on_sent`] only if the packet really left, and hands the [`Memo`] back with the feedback on it.
#![no_std]

extern crate alloc;
#[cfg(any(test, feature = "schema"))]
extern crate std;

mod contract;
mod scheme;

pub use contract::{Feedback, FeedbackKind, Grant, Memo, PathState, PathView, Policy, PolicyCx, Sent, Want};
pub use scheme::{AckPolicy, CnpMode, CnpPolicy, Recovery, Scheme};
