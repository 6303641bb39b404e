//! Frames of packets in batches: header, payload copied from its memory, and protection.

use pathweave_transport::PayloadRef;
use pathweave_units::PathId;
use pathweave_wire::{DatagramLayout, Ecn, Segment, emit_datagram_header};

use super::outbound::{Ends, Outbound, SendRoute, Target};
use crate::crc::{self, CRC_LEN};
use crate::places::BufferTable;
use crate::secure::{Protection, Session};

/// Congestion codepoint of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codepoint {
    Is(Ecn),
    /// The codepoint of the batch that the packet joins: nobody evaluates a mark on it.
    Any,
}

impl Codepoint {
    /// Returns the codepoint of a packet that switches may mark (`capable`) or may not.
    #[inline]
    pub(crate) fn capable(capable: bool) -> Self {
        Codepoint::Is(if capable { Ecn::Capable0 } else { Ecn::NotCapable })
    }
}

/// Send parameters of a frame.
#[derive(Clone, Copy)]
pub(crate) struct FrameTarget {
    pub(crate) lane: SendRoute,
    /// Packet number sequence of the session to which the frame belongs.
    pub(crate) sequence: PathId,
    pub(crate) codepoint: Codepoint,
}

/// Adds a packet to its batch.
#[inline]
pub(crate) fn add_packet(
    outbound: &mut Outbound,
    places: &BufferTable,
    session: &mut Session,
    way: FrameTarget,
    segment: &Segment,
    payload: Option<&PayloadRef>,
) {
    let layout = DatagramLayout::for_segment(segment);
    add(outbound, session, way, layout.len(), |out| {
        if emit_datagram_header(segment, out).is_err() {
            return false;
        }
        let (body, padding) = out[layout.header_len..].split_at_mut(layout.payload_len);
        padding.fill(0);
        let Some(payload) = payload else { return body.is_empty() };
        let place = places.get(payload.buffer.0);
        place.is_some_and(|place| place.memory.fetch(payload.offset, body))
    });
}

/// Adds a frame with `len` bytes of content, which `write` writes, and protects it.
#[inline]
pub(crate) fn add(
    outbound: &mut Outbound,
    session: &mut Session,
    way: FrameTarget,
    len: usize,
    write: impl FnOnce(&mut [u8]) -> bool,
) {
    if session.protection() == Protection::Insecure {
        let tag = session.plain_tags().sends;
        put(outbound, way, Ends::Crc, len + CRC_LEN, |out| {
            let (content, end) = out.split_at_mut(len);
            crc::put_tag(end, tag);
            write(content)
        });
    } else {
        let (head, all) = (session.header_len(), session.overhead() + len);
        put(outbound, way, Ends::AsWritten, all, |out| {
            write(&mut out[head..head + len]) && session.seal(way.sequence, out).is_ok()
        });
    }
}

#[inline]
fn put(
    outbound: &mut Outbound,
    way: FrameTarget,
    ends: Ends,
    len: usize,
    write: impl FnOnce(&mut [u8]) -> bool,
) {
    let FrameTarget { lane, codepoint, .. } = way;
    match codepoint {
        Codepoint::Is(ecn) => outbound.add(Target { lane, ecn, ends }, len, write),
        Codepoint::Any => outbound.add_along(lane, ends, len, write),
    }
}
