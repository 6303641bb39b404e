//! Packets in the fabric: a header by value, which moves from queue to link to queue, and what it carries, which stays.

use crate::prefetch::prefetch_all;
use pathweave_units::{HostId, PathId, Time, TrimmedAt};

/// Index of a port: hosts' ports first, then the switches', each node's in a row.
pub type PortId = u32;

/// What the fabric knows of a packet: half a cache line, copied from hop to hop so that a switch finds what is in its
/// queues in a row.
///
/// Four words and not a dozen fields: a copy of a field that was written a moment ago has to wait until it is in memory,
/// which would cost more than all else a hop does.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C, align(32))]
#[derive(borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct Header {
    /// While on a link: when the last bit is at the far end, in picoseconds.
    arrival_ps: u64,
    /// Sending host, receiving host above it.
    ends: u64,
    /// Where its content is ([`NO_CONTENT`] for pause frames), and above it the port it comes in by, or came in by at
    /// the switch it is in.
    place: u64,
    /// From the low end: path (16 bits), bytes on the link (16), class (8), flags (8), links crossed or being
    /// crossed (8): on a source route also the place in the list of hops; where it was trimmed (2).
    traits: u64,
}

const _: () = assert!(size_of::<Header>() == 32);

const WIRE_BYTES: u32 = 16;
const CLASS: u32 = 32;
const FLAGS: u32 = 40;
const LINKS: u32 = 48;
const TRIMMED: u32 = 56;

const NO_CONTENT: u32 = u32::MAX;
/// Marks the content of packets between switches.
const MESSAGE: u32 = 1 << 31;

/// Fewer bytes on a link than any packet has: what the look-ahead of the fabric is computed for.
pub(crate) const MIN_WIRE_BYTES: u16 = 40;

/// Marking is allowed.
pub(crate) const ECN_CAPABLE: u8 = 1;
/// Congestion Experienced.
pub(crate) const CE: u8 = 1 << 1;
/// Will not arrive: its link failed.
pub(crate) const LOST: u8 = 1 << 2;
/// Arrives with a bad checksum.
pub(crate) const CORRUPT: u8 = 1 << 3;
/// A pause frame; `path` holds the class, `PFC_RESUME` tells which kind.
pub(crate) const PFC: u8 = 1 << 4;
/// The pause frame ends the pause.
pub(crate) const PFC_RESUME: u8 = 1 << 5;
/// On a source route: the path is one of the receiver's to the sender, taken backwards.
pub(crate) const REVERSED: u8 = 1 << 6;
/// A switch without room may take its payload and send the rest on.
const TRIMMABLE: u8 = 1 << 7;

impl Header {
    /// A packet about to enter the fabric, of 40 bytes to 64 KiB.
    pub fn new(
        src: HostId,
        dst: HostId,
        path: PathId,
        wire_bytes: u32,
        class: u8,
        ecn_capable: bool,
    ) -> Self {
        debug_assert!(wire_bytes >= u32::from(MIN_WIRE_BYTES), "a frame of {wire_bytes} bytes");
        let wire_bytes = u16::try_from(wire_bytes).expect("a frame beyond 64 KiB");
        let flags = if ecn_capable { ECN_CAPABLE } else { 0 };
        Header {
            arrival_ps: 0,
            ends: u64::from(src.0) | u64::from(dst.0) << 32,
            place: u64::from(NO_CONTENT),
            traits: u64::from(path.0)
                | u64::from(wire_bytes) << WIRE_BYTES
                | u64::from(class) << CLASS
                | u64::from(flags) << FLAGS,
        }
    }

    /// The same, on the way back of the path: where sources choose routes, an answer goes backwards over the links that
    /// led to it.
    #[inline(always)]
    pub fn reversed(mut self) -> Self {
        self.set(REVERSED);
        self
    }

    /// The same, with a payload that switches may take where they have no room for it.
    #[inline(always)]
    pub fn trimmable(mut self) -> Self {
        self.set(TRIMMABLE);
        self
    }

    /// Whether switches may take its payload.
    pub(crate) fn is_trimmable(&self) -> bool {
        self.is(TRIMMABLE)
    }

    /// What is left of it: as many bytes, in the class of control.
    pub(crate) fn trimmed(&self, wire_bytes: u16, at: TrimmedAt) -> Self {
        let kept = self.traits & !(0xffff << WIRE_BYTES | 0xff << CLASS | u64::from(TRIMMABLE) << FLAGS);
        let at = 1 + at as u64;
        Header { traits: kept | u64::from(wire_bytes) << WIRE_BYTES | at << TRIMMED, ..*self }
    }

    /// Where its payload was taken; `None`: it has it.
    #[inline(always)]
    pub fn trimmed_at(&self) -> Option<TrimmedAt> {
        match self.traits >> TRIMMED {
            0 => None,
            1 => Some(TrimmedAt::OnTheWay),
            _ => Some(TrimmedAt::LastHop),
        }
    }

    /// Sending host.
    #[inline(always)]
    pub fn src(&self) -> HostId {
        HostId(self.ends as u32)
    }

    /// Receiving host.
    #[inline(always)]
    pub fn dst(&self) -> HostId {
        HostId((self.ends >> 32) as u32)
    }

    /// Path entropy: the UDP source port of the path.
    #[inline(always)]
    pub fn path(&self) -> PathId {
        PathId(self.traits as u16)
    }

    /// Bytes on the link, headers, preamble and gap included.
    #[inline(always)]
    pub fn wire_bytes(&self) -> u16 {
        (self.traits >> WIRE_BYTES) as u16
    }

    /// Traffic class: 0 control, above it data.
    #[inline(always)]
    pub fn class(&self) -> u8 {
        (self.traits >> CLASS) as u8
    }

    /// Switches a delivered packet has passed.
    pub fn hops(&self) -> u8 {
        self.links().saturating_sub(1)
    }

    /// Whether switches may mark it.
    pub fn ecn_capable(&self) -> bool {
        self.is(ECN_CAPABLE)
    }

    /// Whether a switch marked it Congestion Experienced.
    pub fn congestion_experienced(&self) -> bool {
        self.is(CE)
    }

    /// Whether any of these flags is set.
    #[inline(always)]
    pub(crate) fn is(&self, flags: u8) -> bool {
        self.traits >> FLAGS & u64::from(flags) != 0
    }

    #[inline(always)]
    pub(crate) fn flags(&self) -> u8 {
        (self.traits >> FLAGS) as u8
    }

    pub(crate) fn set(&mut self, flags: u8) {
        self.traits |= u64::from(flags) << FLAGS;
    }

    /// Links crossed or being crossed.
    #[inline(always)]
    pub(crate) fn links(&self) -> u8 {
        (self.traits >> LINKS) as u8
    }

    #[inline(always)]
    pub(crate) fn arrival(&self) -> Time {
        Time::from_ps(self.arrival_ps)
    }

    #[inline(always)]
    pub(crate) fn ingress(&self) -> PortId {
        (self.place >> 32) as PortId
    }

    #[inline(always)]
    pub(crate) fn with_content(self, content: u32) -> Self {
        Header { place: self.place & !0xffff_ffff | u64::from(content), ..self }
    }

    /// A packet that a switch makes for another one: the place of its content is a slot of theirs.
    pub(crate) fn message(src: HostId, dst: HostId, path: PathId, wire_bytes: u32, slot: u32) -> Self {
        Header::new(src, dst, path, wire_bytes, 0, false).with_message(slot)
    }

    /// The same packet of a switch, with its content in this slot.
    pub(crate) fn with_message(self, slot: u32) -> Self {
        debug_assert!(slot < MESSAGE - 1);
        self.with_content(MESSAGE | slot)
    }

    /// Whether it carries something of the hosts': not what switches tell each other, nor a pause frame.
    pub(crate) fn has_content(&self) -> bool {
        self.place as u32 & MESSAGE == 0
    }

    pub(crate) fn is_message(&self) -> bool {
        let content = self.place as u32;
        content & MESSAGE != 0 && content != NO_CONTENT
    }

    pub(crate) fn message_slot(&self) -> u32 {
        self.place as u32 & !MESSAGE
    }

    /// As if it had come in by this port.
    pub(crate) fn with_ingress(self, ingress: PortId) -> Self {
        Header { place: self.place & 0xffff_ffff | u64::from(ingress) << 32, ..self }
    }

    #[inline(always)]
    pub(crate) fn content(&self) -> usize {
        self.place as u32 as usize
    }

    /// On a link into port `ingress`, to arrive at `arrival`.
    #[inline(always)]
    pub(crate) fn on_link(&self, ingress: PortId, arrival: Time) -> Self {
        Header {
            arrival_ps: arrival.as_ps(),
            ends: self.ends,
            place: self.place & 0xffff_ffff | u64::from(ingress) << 32,
            // Would overflow at 256, which no packet crosses: it would count as caught in a loop before.
            traits: self.traits + (1 << LINKS),
        }
    }
}

impl std::fmt::Debug for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Header")
            .field("src", &self.src())
            .field("dst", &self.dst())
            .field("path", &self.path())
            .field("wire_bytes", &self.wire_bytes())
            .field("class", &self.class())
            .field("marked", &self.congestion_experienced())
            .finish_non_exhaustive()
    }
}

/// What the packets alive carry. The fabric never looks at it; only the ends touch it.
pub(crate) struct Contents<P> {
    slots: Vec<P>,
    /// Last freed, first used: it is the one most likely in a cache.
    free: Vec<u32>,
}

impl<P: Copy> Contents<P> {
    pub(crate) fn new() -> Self {
        Contents { slots: Vec::new(), free: Vec::new() }
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> u64 {
        (self.slots.capacity() * size_of::<P>() + self.free.capacity() * size_of::<u32>()) as u64
    }

    #[inline]
    pub(crate) fn insert(&mut self, content: P) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = content;
            return slot;
        }
        self.slots.push(content);
        u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 packets")
    }

    #[inline]
    pub(crate) fn get(&self, header: &Header) -> &P {
        &self.slots[header.content()]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, header: &Header) -> &mut P {
        &mut self.slots[header.content()]
    }

    #[inline]
    pub(crate) fn free(&mut self, header: &Header) {
        self.free.push(header.content() as u32);
    }

    /// Begins to load what a packet carries.
    #[inline(always)]
    pub(crate) fn prefetch(&self, header: &Header) {
        if let Some(content) = self.slots.get(header.content()) {
            prefetch_all(content);
        }
    }

    /// Begins to load the place of a content that comes later.
    #[inline(always)]
    pub(crate) fn prefetch_free(&self, ahead: usize) {
        let slot = self.free.len().checked_sub(1 + ahead).map(|index| self.free[index]);
        if let Some(place) = slot.and_then(|slot| self.slots.get(slot as usize)) {
            prefetch_all(place);
        }
    }

    pub(crate) fn alive(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }
}
