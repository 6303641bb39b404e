//! Data passed to pickers and congestion controls written in Python.

use pathweave_policy as policy;
use pathweave_policy::{FeedbackKind, PathState, PathView, PolicyEnv, SendRequest, Sent};
use pyo3::prelude::*;

/// Queue pair to which a picker or congestion control belongs.
#[pyclass(frozen, get_all, module = "pathweave._pathweave")]
pub(crate) struct QueuePair {
    /// Seed for random decisions of this picker, 0 for a congestion control. It differs between queue pairs, and is the same in each run with the
    /// same seed.
    seed: u64,
    /// Number of paths. They are numbered from 0 to `paths - 1`.
    paths: u16,
    /// Rate of the NIC port in bits per second.
    line_rate_bps: u64,
    /// Round-trip time to the peer over an idle fabric, in picoseconds.
    base_rtt_ps: u64,
    /// Payload of a full packet in bytes.
    mtu_payload_bytes: u32,
    /// Size of a full packet on the link in bytes.
    mtu_wire_bytes: u32,
}

impl QueuePair {
    pub(crate) fn new(env: &PolicyEnv, seed: u64) -> Self {
        QueuePair {
            seed,
            paths: env.paths,
            line_rate_bps: env.line_rate.as_bps(),
            base_rtt_ps: env.base_rtt.as_ps(),
            mtu_payload_bytes: env.mtu_payload_bytes,
            mtu_wire_bytes: env.mtu_wire_bytes,
        }
    }
}

/// Data packet that is about to be sent, or was just sent.
#[pyclass(frozen, get_all, module = "pathweave._pathweave")]
pub(crate) struct Packet {
    /// Packet sequence number.
    psn: u64,
    /// Number of the packet's message. It rises with each message of the queue pair.
    message: u32,
    /// Payload in bytes.
    payload_bytes: u32,
    /// Size on the link in bytes.
    wire_bytes: u32,
    /// True for a retransmission.
    retransmit: bool,
    /// Number of data packets in flight, neither acknowledged nor declared lost. It includes this packet once that
    /// was sent.
    inflight_packets: u32,
}

impl Packet {
    pub(crate) fn wanted(want: &SendRequest) -> Self {
        Packet {
            psn: want.psn,
            message: want.msn,
            payload_bytes: want.payload_bytes,
            wire_bytes: want.wire_bytes,
            retransmit: want.retransmit,
            inflight_packets: want.inflight_packets,
        }
    }
    pub(crate) fn sent(sent: &Sent) -> Self {
        Packet {
            psn: sent.psn,
            message: sent.msn,
            payload_bytes: sent.payload_bytes,
            wire_bytes: sent.wire_bytes,
            retransmit: sent.retransmit,
            inflight_packets: sent.inflight_packets,
        }
    }
}

/// Feedback about a packet or a path.
#[pyclass(frozen, get_all, module = "pathweave._pathweave")]
pub(crate) struct Feedback {
    /// Kind of feedback: "ack", "cnp", "lost", "trimmed", "timeout", "midway", "echo", "heard", "late" or "notices".
    kind: &'static str,
    /// Path that the feedback is about.
    path: u16,
    /// Packet sequence number. `None` if the feedback is not about a packet.
    psn: Option<u64>,
    /// True if congestion was marked, by Congestion Experienced or a notification.
    marked: bool,
    /// Measured round-trip time in picoseconds. `None` without a measurement.
    rtt_ps: Option<u64>,
    /// Receiver's time stamp minus sender's in picoseconds, up to a constant offset of the clocks. `None` without a
    /// measurement.
    one_way_ps: Option<i64>,
    /// Size of the packet on the link in bytes.
    wire_bytes: u32,
    /// Number of data packets in flight after this event.
    inflight_packets: u32,
    /// True if the queue pair still has data to send.
    backlogged: bool,
    /// Value that `on_sent` returned for this packet, or 0 if it returned nothing.
    memo: u32,
}

/// Part of a packet's memo.
#[derive(Clone, Copy)]
pub(crate) enum Half {
    /// Memo of the congestion control.
    Cc,
    /// Memo of the path picker.
    Picker,
}

impl Feedback {
    /// Converts feedback. `half` is the part of the memo that belongs to the receiver of the feedback.
    pub(crate) fn new(feedback: &policy::Feedback, half: Half) -> Self {
        let (kind, marked, measured, of_packet) = match feedback.kind {
            FeedbackKind::Ack { timed, marked } => ("ack", marked, timed, true),
            FeedbackKind::Cnp => ("cnp", true, false, false),
            FeedbackKind::Lost => ("lost", false, false, true),
            FeedbackKind::Trimmed { marked, .. } => ("trimmed", marked, true, true),
            FeedbackKind::Timeout => ("timeout", false, false, true),
            FeedbackKind::EdgeRtt => ("midway", false, true, false),
            FeedbackKind::PathSample => ("echo", false, true, true),
            FeedbackKind::Duplicate { marked } => ("heard", marked, true, true),
            FeedbackKind::Late => ("late", false, false, true),
            FeedbackKind::NoticeFlow(_) => ("notices", false, false, false),
        };
        Feedback {
            kind,
            path: feedback.path.0,
            psn: of_packet.then_some(feedback.psn),
            marked,
            rtt_ps: measured.then(|| feedback.rtt.as_ps()),
            one_way_ps: measured.then_some(feedback.one_way_ps),
            wire_bytes: feedback.wire_bytes,
            inflight_packets: feedback.inflight_packets,
            backlogged: feedback.backlogged,
            memo: match half {
                Half::Cc => feedback.memo.cc_half(),
                Half::Picker => feedback.memo.picker_half(),
            },
        }
    }
}

/// State of a path.
#[pyclass(frozen, get_all, module = "pathweave._pathweave")]
pub(crate) struct Path {
    /// Number of the path.
    path: u16,
    /// True if the path is known to work.
    up: bool,
    /// True if `pick` may return the path: it is up, or no path is.
    usable: bool,
    /// Round-trip time of a full packet over the idle path, in picoseconds.
    base_rtt_ps: Option<u64>,
    /// One-way time of a full packet over the idle path, in picoseconds.
    base_one_way_ps: Option<u64>,
    /// Rate of the slowest link in bits per second.
    rate_bps: Option<u64>,
    /// Number of links from host to host.
    links: Option<u8>,
}

impl Path {
    pub(crate) fn new(view: &PathView, usable: bool) -> Self {
        Path {
            path: view.id.0,
            up: view.state == PathState::Up,
            usable,
            base_rtt_ps: view.base_rtt.map(pathweave_units::Duration::as_ps),
            base_one_way_ps: view.base_one_way.map(pathweave_units::Duration::as_ps),
            rate_bps: view.rate.map(pathweave_units::Rate::as_bps),
            links: view.links,
        }
    }
}
