//! Congestion control and multipath: *may a packet leave now, and on which path?* This is one question, because in
//! UDMP, LAPS and MP-RDMA congestion control and load balancing are one decision. [`SplitPolicy`] composes the two where
//! they are independent.
//!
//! A [`Policy`] belongs to one direction of one queue pair. The endpoint calls [`Policy::poll_send`] before a packet
//! leaves, calls [`Policy::on_sent`] only if the packet really left, and returns the [`Memo`] with the feedback on
//! the packet.
//!
//! - [`PolicyConfig`] builds an [`AnyPolicy`]; [`registry`] explains how to add a policy.
//! - Nine policies decide rate and path together: [`Udmp`] (ours, and as printed), [`MpRdma`], [`Mrc`], [`Dlbf`],
//!   [`Reps`], [`Reflex`], [`laps`] and [`Weave`]. The first two share [`ack_clock`] and [`late_acks`].
//! - [`cc`] holds congestion controls and [`picker`] path pickers, which `Split` combines freely.
//! - [`Scheme`] is a policy with loss recovery, acknowledgements and queue pairs; [`schemes()`] lists the named ones.
//! - [`credit`] holds receiver credit, for schemes that use it.
//! - [`shared`] holds state common to queue pairs of an endpoint; it is passed with every call.
//! - `testing` (feature `testing`) runs policies without a network.
//!
//! ```
//! use pathweave_policy::{Egress, Grant, Policy, PolicyCx, PolicyEnv, Shared, SendRequest, find_scheme};
//! use pathweave_units::{Duration, PathId, Rate, Rng, Time};
//!
//! let scheme = (find_scheme("rps").unwrap().make)();
//! let env = PolicyEnv::new(Rate::from_gbps(100), Duration::from_us(12), 16);
//! let (mut rng, mut shared) = (Rng::for_component(1, "qp", 0), Shared::new());
//! let mut policy = scheme.policy.build(&env, &mut rng);
//! let want = SendRequest {
//!     psn: 0,
//!     payload_bytes: 4_096,
//!     wire_bytes: 4_178,
//!     msn: 0,
//!     retransmit: false,
//!     inflight_packets: 0,
//!     inflight_bytes: 0,
//!     egress: Egress::ONE,
//! };
//! match policy.poll_send(Time::ZERO, &want, &mut PolicyCx { rng: &mut rng, shared: &mut shared }) {
//!     Grant::Send(path) => assert!(path < PathId(16)), // send it, then call `on_sent`
//!     other => panic!("a queue pair starts at line rate, not with {other:?}"),
//! }
//! ```
#![no_std]

extern crate alloc;
#[cfg(any(test, feature = "serde"))]
extern crate std;

pub mod ack_clock;
mod adapt;
pub mod cc;
mod contract;
pub mod credit;
mod dlbf;
mod egress;
mod error;
pub mod fluid;
mod forwards;
mod ignores;
pub mod laps;
pub mod late_acks;
mod low_rtt;
mod mprdma;
mod mrc;
pub mod peers;
pub mod picker;
mod reflex;
pub mod registry;
mod reordering;
mod reps;
mod scheme;
mod schemes;
mod service;
pub mod shared;
mod split;
pub mod supplied;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod udmp;
mod weave;

pub use adapt::{
    Adapt, Awaited, BasePath, FabricEnv, FullBufferAction, HostDelay, HostEnv, LateWait, MarkUse,
};
pub use cc::dcqcn::presets;
pub use contract::{
    ControlClass, ControlFeedback, Feedback, FeedbackKind, Grant, MeasuredSection, Memo, Outgoing, PathState,
    PathView, Policy, PolicyCx, PolicyEnv, SendRequest, SendWindow, Sent,
};
pub use credit::{CreditConfig, CreditParams};
pub use dlbf::{
    Dlbf, DlbfConfig, DlbfCounts, DlbfHost, DlbfScope, DlbfVariant, History, MarkedRate, OnSwitch,
    PathStatus, PathTable, Sending,
};
pub use egress::{Egress, PortSet};
pub use error::ConfigError;
pub use mprdma::{Decrease, MpRdma, MpRdmaConfig};
pub use mrc::{Mrc, MrcConfig};
pub use pathweave_units::Forwarding;
pub use peers::PeerKind;
pub use reflex::{E2eMode, Reflex, ReflexConfig, queued_rtt};
pub use registry::{AnyPolicy, PolicyConfig};
pub use reordering::{CleanNotice, Reordering, ReportPolicy};
pub use reps::{Reps, RepsConfig};
pub use scheme::{
    AckPolicy, CnpPolicy, DestinationControl, MOST_WINDOW_PACKETS, PathRto, Ports, Recovery, RingScope,
    Scheme,
};
pub use schemes::{SchemeInfo, find_scheme, schemes};
pub use service::{
    Announce, DatagramConfig, Delivery, EethPlace, NotificationScope, Repair, RetryOrder, RttSource, Service,
    SharedReceiveConfig,
};
pub use shared::{QueuePairId, Shared};
pub use split::{SplitConfig, SplitPolicy};
pub use udmp::{Udmp, UdmpConfig, UdmpLate, UdmpPublishedConfig};
pub use weave::{PathChoice, Weave, WeaveConfig};

/// Types that [`ignores!`] and [`forwards!`] name in the crate that uses it.
#[doc(hidden)]
pub mod units {
    pub use pathweave_units::{PathId, Rate, Time};
}
