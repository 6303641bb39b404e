//! *May a packet leave now, and on which path?* One question, because in UDMP, LAPS and MPRDMA congestion
//! control and load balancing are one decision; [`Split`] composes them where they are two.
//!
//! A [`Policy`] belongs to one direction of one queue pair. The endpoint asks [`Policy::poll_send`], tells
//! [`Policy::on_sent`] only if the packet really left, and hands the [`Memo`] back with the feedback on it.
//!
//! - [`PolicyConfig`] is the factory, [`AnyPolicy`] what it makes; [`registry`] says how to add one.
//! - [`cc`] holds congestion controls and [`picker`] path pickers, which `Split` pairs freely.
//! - [`Scheme`] is a policy with loss recovery, acknowledgements and queue pairs; [`schemes`] names them.
//! - `testing` (feature `testing`) runs policies without a network.
#![no_std]

extern crate alloc;
#[cfg(any(test, feature = "schema"))]
extern crate std;

pub mod cc;
mod contract;
mod error;
pub mod picker;
pub mod registry;
mod scheme;
pub mod schemes;
mod split;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use cc::dcqcn::presets;
pub use contract::{
    Feedback, FeedbackKind, Grant, Memo, PathState, PathView, Policy, PolicyCx, PolicyEnv, Sent, Want,
};
pub use error::ConfigError;
pub use registry::{AnyPolicy, PolicyConfig};
pub use scheme::{AckPolicy, CnpMode, CnpPolicy, Recovery, Scheme};
pub use schemes::{SchemeInfo, find_scheme, schemes};
pub use split::{Split, SplitConfig};
