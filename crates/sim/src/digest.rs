//! Digest of the event trace: every packet that reaches a host and every packet lost, in order.

use pathweave_units::{HostId, Time};
use pathweave_wire::{Body, Segment};

/// Running hash of packets: those that reach one host, or those lost. Each host has its own hash, because only the
/// events at one host have a fixed order; hosts are simulated in any order. The hash is not cryptographic: it
/// distinguishes runs, and there is no attacker.
#[derive(Clone, Copy, Debug, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub(crate) struct Trace(u64);

impl Trace {
    pub(crate) fn new() -> Self {
        Trace(0x9e37_79b9_7f4a_7c15)
    }

    /// Adds a packet that reached `host`, or that was sent to it and lost.
    #[inline]
    pub(crate) fn note(&mut self, now: Time, host: HostId, segment: &Segment) {
        self.0 = with_packet(self.0, now, host, segment);
    }
}

/// Combines all hashes in the given order.
pub(crate) fn digest(traces: impl Iterator<Item = Trace>) -> u64 {
    let all = traces.fold(0, |hash, trace| with_word(hash, trace.0));
    all ^ all >> 32
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
        Body::Control(control) => control.traced(),
        Body::Missing(missing) => (18, missing.first),
    };
    let hash = with_word(hash, now.as_ps());
    let hash = with_word(hash, u64::from(host.0) << 32 | u64::from(segment.path.0) << 16 | kind);
    with_word(hash, psn << 32 ^ u64::from(segment.dst_qp.0))
}
