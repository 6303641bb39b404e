//! A digest of the event trace: every packet that reaches a host, and every packet lost, in order.

use pathweave_units::{HostId, Time};
use pathweave_wire::{Body, Segment};

/// A running hash. Not cryptographic: it tells runs apart, nobody attacks it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest(u64);

impl Digest {
    pub(crate) fn new() -> Self {
        Digest(0x9e37_79b9_7f4a_7c15)
    }

    #[inline]
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }

    /// A packet arrived or was lost (`event` tells which).
    #[inline]
    pub(crate) fn packet(&mut self, event: u8, now: Time, host: HostId, segment: &Segment) {
        let (kind, psn) = match segment.body {
            Body::Data(data) => (0, data.psn),
            Body::Ack(ack) => (1, ack.psn),
            Body::Nack(nack) => (2, nack.psn),
            Body::Cnp => (3, 0),
            Body::Probe { .. } => (4, 0),
            Body::ProbeReply { .. } => (5, 0),
        };
        self.add(now.as_ps());
        self.add(u64::from(host.0) << 32 | u64::from(segment.path.0) << 16 | u64::from(event) << 8 | kind);
        self.add(psn << 32 ^ u64::from(segment.dst_qp.0));
    }

    pub(crate) fn value(self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}
