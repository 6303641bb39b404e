//! What a picker written in Python is told.

use pathweave_policy as policy;
use pathweave_policy::{FeedbackKind, PathState, PathView, PolicyEnv, Sent, Want};
use pyo3::prelude::*;

/// The queue pair a picker belongs to.
#[pyclass(frozen, get_all, module = "pathweave._pathweave")]
pub(crate) struct QueuePair {
    /// Seed for what is random in this picker; another one for each queue pair, the same in each run with the same seed.
    seed: u64,
    /// Paths it may choose from: 0 to `paths - 1`.
    paths: u16,
    /// Rate of the NIC port, bits per second.
    line_rate_bps: u64,
    /// Round-trip time to the peer when the fabric is idle, picoseconds.
    base_rtt_ps: u64,
    /// Payload of a full packet, bytes.
    mtu_payload_bytes: u32,
    /// Bytes of a full packet on the wire.
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

/// A data packet that is about to leave, or has left.
#[pyclass(frozen, get_all, module = "pathweave._pathweave")]
pub(crate) struct Packet {
    /// Its packet sequence number.
    psn: u64,
    /// Message it belongs to; a number that rises with each message of the queue pair.
    message: u32,
    /// Payload, bytes.
    payload_bytes: u32,
    /// Bytes on the wire.
    wire_bytes: u32,
    /// Whether it was sent before.
    retransmit: bool,
    /// Data packets sent and neither acknowledged nor declared lost; this one counts once it has left.
    inflight_packets: u32,
}

impl Packet {
    pub(crate) fn wanted(want: &Want) -> Self {
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

/// What became of a packet, or what was heard of a path.
#[pyclass(frozen, get_all, module = "pathweave._pathweave")]
pub(crate) struct Feedback {
    /// "ack", "cnp", "lost", "trimmed", "timeout", "midway", "echo", "heard", "late" or "notices".
    kind: &'static str,
    /// The path it is about.
    path: u16,
    /// Packet sequence number; `None` where it is about no packet.
    psn: Option<u64>,
    /// Whether congestion was marked: Congestion Experienced, or a notification.
    marked: bool,
    /// Round-trip time measured, picoseconds; `None` where nothing was.
    rtt_ps: Option<u64>,
    /// Receiver's stamp minus sender's, picoseconds, up to a constant offset of the clocks; `None` where nothing was measured.
    one_way_ps: Option<i64>,
    /// Bytes of the packet on the wire.
    wire_bytes: u32,
    /// Data packets in flight after this.
    inflight_packets: u32,
    /// Whether the queue pair still has data to send.
    backlogged: bool,
    /// What `on_sent` returned for this packet; 0 where it returned nothing.
    memo: u32,
}

impl Feedback {
    pub(crate) fn new(feedback: &policy::Feedback) -> Self {
        let (kind, marked, measured, of_packet) = match feedback.kind {
            FeedbackKind::Ack { timed, marked } => ("ack", marked, timed, true),
            FeedbackKind::Cnp => ("cnp", true, false, false),
            FeedbackKind::Lost => ("lost", false, false, true),
            FeedbackKind::Trimmed { marked, .. } => ("trimmed", marked, true, true),
            FeedbackKind::Timeout => ("timeout", false, false, true),
            FeedbackKind::Midway => ("midway", false, true, false),
            FeedbackKind::Echo => ("echo", false, true, true),
            FeedbackKind::Heard { marked } => ("heard", marked, true, true),
            FeedbackKind::Late => ("late", false, false, true),
            FeedbackKind::Notices(_) => ("notices", false, false, false),
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
            memo: feedback.memo.picker_half(),
        }
    }
}

/// What is known of a path.
#[pyclass(frozen, get_all, module = "pathweave._pathweave")]
pub(crate) struct Path {
    /// Its number.
    path: u16,
    /// Whether it is known to work.
    up: bool,
    /// Whether `pick` may return it: it is up, or none is.
    usable: bool,
    /// Round-trip time of a full packet when idle, picoseconds.
    base_rtt_ps: Option<u64>,
    /// The same one way, picoseconds.
    base_one_way_ps: Option<u64>,
    /// Rate of its slowest link, bits per second.
    rate_bps: Option<u64>,
    /// Links from host to host.
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
