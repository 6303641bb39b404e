//! A digest of the event trace: every packet that reaches a host, and every packet lost, in order.

use pathweave_units::{HostId, Time};
use pathweave_wire::{Body, Segment};

/// Two running hashes: windows of simulated time tell of deliveries and of losses one after the other, and where a
/// window ends must not show. Not cryptographic: it tells runs apart, nobody attacks it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest {
    delivered: u64,
    lost: u64,
}

impl Digest {
    pub(crate) fn new() -> Self {
        Digest { delivered: 0x9e37_79b9_7f4a_7c15, lost: 0x9e37_79b9_7f4a_7c15 }
    }

    /// A packet has reached its host.
    #[inline]
    pub(crate) fn delivered(&mut self, now: Time, host: HostId, segment: &Segment) {
        self.delivered = with_packet(self.delivered, now, host, segment);
    }

    /// A packet to this host was lost.
    #[inline]
    pub(crate) fn lost(&mut self, now: Time, host: HostId, segment: &Segment) {
        self.lost = with_packet(self.lost, now, host, segment);
    }

    pub(crate) fn value(self) -> u64 {
        let both = with_word(self.delivered, self.lost);
        both ^ both >> 32
    }
}

#[inline]
fn with_word(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(23) ^ word).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

#[inline]
fn with_packet(hash: u64, now: Time, host: HostId, segment: &Segment) -> u64 {
    let (kind, psn) = match segment.body {
        Body::Data(data) => (0, data.psn),
        Body::Ack(ack) => (1, ack.psn),
        Body::Nack(nack) => (2, nack.psn),
        Body::Cnp => (3, 0),
        Body::Rd(data) => (6, data.psn),
        Body::Probe { .. } => (4, 0),
        Body::ProbeReply { .. } => (5, 0),
        Body::EdgeEcho { .. } => (6, 0),
        Body::Notice(notice) => (16, notice.first),
        Body::NoticeReply { .. } => (17, 0),
        Body::Missing(missing) => (18, missing.first),
    };
    let hash = with_word(hash, now.as_ps());
    let hash = with_word(hash, u64::from(host.0) << 32 | u64::from(segment.path.0) << 16 | kind);
    with_word(hash, psn << 32 ^ u64::from(segment.dst_qp.0))
}
