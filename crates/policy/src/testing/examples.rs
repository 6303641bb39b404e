//! Example of each value that a policy is given. Tests name the fields that matter to them and take the others from
//! here: full packets of 1,250 bytes with 1,172 bytes of payload, on an idle path at 100 Gb/s.

use pathweave_units::{Duration, PathId, Rate};

use crate::{Egress, Feedback, FeedbackKind, MeasuredSection, Memo, PolicyEnv, SendRequest, Sent};

/// Four paths with a round-trip time of 10 us.
pub const ENV: PolicyEnv = PolicyEnv {
    line_rate: Rate::from_gbps(100),
    base_rtt: Duration::from_us(10),
    mtu_wire_bytes: 1_250,
    mtu_payload_bytes: 1_172,
    paths: 4,
    measured: MeasuredSection::with_rtt(Duration::from_us(10)),
    edge: None,
};

/// Request for the first packet, with nothing in flight.
pub const REQUEST: SendRequest = SendRequest {
    psn: 0,
    payload_bytes: 1_172,
    wire_bytes: 1_250,
    msn: 0,
    retransmit: false,
    inflight_packets: 0,
    inflight_bytes: 0,
    egress: Egress::ONE,
};

/// First packet, on path 0.
pub const SENT: Sent = Sent {
    path: PathId(0),
    psn: 0,
    msn: 0,
    payload_bytes: 1_172,
    wire_bytes: 1_250,
    retransmit: false,
    inflight_packets: 1,
};

/// Acknowledgement of the first packet, unmarked, while more data waits.
pub const ACK: Feedback = Feedback {
    kind: FeedbackKind::Ack { timed: true, marked: false },
    path: PathId(0),
    psn: 0,
    memo: Memo(0),
    wire_bytes: 1_250,
    rtt: Duration::from_us(10),
    one_way_ps: 0,
    inflight_packets: 1,
    backlogged: true,
};
