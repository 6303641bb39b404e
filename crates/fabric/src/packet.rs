//! Packets in the fabric: a header, which is copied from queue to link to queue, and a content, which stays in place.

use crate::prefetch::prefetch_all;
use pathweave_units::{HostId, PathId, Time, TrimmedAt};

/// Index of a port. Hosts' ports come first, then the switches'; the ports of a node are consecutive.
pub type PortId = u32;

/// Header of a packet: half a cache line, copied from hop to hop so that a switch reads its queues from consecutive
/// memory.
///
/// The header is four words instead of a dozen fields. A copy of a recently written small field would stall until the
/// store completes, which would cost more than the rest of a hop.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C, align(32))]
#[derive(borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct Header {
    /// While on a link: time at which the last bit reaches the far end, in picoseconds.
    arrival_ps: u64,
    /// Sending host in the low half, receiving host in the high half.
    ends: u64,
    /// Low half: slot of the content ([`NO_CONTENT`] for pause frames). High half: port at which the packet arrives,
    /// or arrived at the switch that it is in.
    place: u64,
    /// Bits from the low end: path (16), bytes on the link (16), class (8), flags (8), links crossed or being crossed
    /// (8; on a source route also the position in the list of hops), place of trimming (2), telemetry (the last one).
    traits: u64,
}

const _: () = assert!(size_of::<Header>() == 32);

const WIRE_BYTES: u32 = 16;
const CLASS: u32 = 32;
const FLAGS: u32 = 40;
const LINKS: u32 = 48;
const TRIMMED: u32 = 56;
/// Switches write telemetry for the packet, or the packet returns it.
const TELEMETRY: u64 = 1 << 63;

const NO_CONTENT: u32 = u32::MAX;
/// Marks the content slot of packets between switches.
const MESSAGE: u32 = 1 << 31;

/// Lower bound of the bytes of a packet on a link, from which the look-ahead of the fabric is computed.
pub(crate) const MIN_WIRE_BYTES: u16 = 40;

/// The packet may be marked.
pub(crate) const ECN_CAPABLE: u8 = 1;
/// Congestion Experienced.
pub(crate) const CE: u8 = 1 << 1;
/// The packet will not arrive, because its link failed.
pub(crate) const LOST: u8 = 1 << 2;
/// The packet arrives with a bad checksum.
pub(crate) const CORRUPT: u8 = 1 << 3;
/// A pause frame. `path` holds the class, and `PFC_RESUME` distinguishes resume from pause.
pub(crate) const PFC: u8 = 1 << 4;
/// The pause frame ends the pause.
pub(crate) const PFC_RESUME: u8 = 1 << 5;
/// On a source route: the path is one from the receiver to the sender, taken backwards.
pub(crate) const REVERSED: u8 = 1 << 6;
/// A switch without room may drop the payload and forward the header.
const TRIMMABLE: u8 = 1 << 7;

impl Header {
    /// Creates a packet that is about to enter the fabric, of 40 bytes to 64 KiB.
    #[inline]
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

    /// Makes the packet take its path backwards. With source routes, an acknowledgement then crosses the links of the
    /// data in reverse.
    #[inline(always)]
    pub fn reversed(mut self) -> Self {
        self.set(REVERSED);
        self
    }

    /// Allows switches without room to drop the payload.
    #[inline(always)]
    pub fn trimmable(mut self) -> Self {
        self.set(TRIMMABLE);
        self
    }

    /// Makes the packet carry telemetry.
    #[inline(always)]
    pub(crate) fn with_telemetry(self) -> Self {
        Header { traits: self.traits | TELEMETRY, ..self }
    }

    /// Returns true if the packet carries telemetry.
    #[inline(always)]
    pub fn carries_telemetry(&self) -> bool {
        self.traits & TELEMETRY != 0
    }

    /// Returns true if switches may drop the payload.
    pub(crate) fn is_trimmable(&self) -> bool {
        self.is(TRIMMABLE)
    }

    /// Returns the trimmed packet: `wire_bytes` long, in the control class.
    pub(crate) fn trimmed(&self, wire_bytes: u16, at: TrimmedAt) -> Self {
        let kept = self.traits & !(0xffff << WIRE_BYTES | 0xff << CLASS | u64::from(TRIMMABLE) << FLAGS);
        let at = 1 + at as u64;
        Header { traits: kept | u64::from(wire_bytes) << WIRE_BYTES | at << TRIMMED, ..*self }
    }

    /// Returns the place where the payload was dropped, or `None` if the packet still has it.
    #[inline(always)]
    pub fn trimmed_at(&self) -> Option<TrimmedAt> {
        match self.traits >> TRIMMED & 3 {
            0 => None,
            1 => Some(TrimmedAt::OnTheWay),
            _ => Some(TrimmedAt::LastHop),
        }
    }

    /// Returns the sending host.
    #[inline(always)]
    pub fn src(&self) -> HostId {
        HostId(self.ends as u32)
    }

    /// Returns the receiving host.
    #[inline(always)]
    pub fn dst(&self) -> HostId {
        HostId((self.ends >> 32) as u32)
    }

    /// Returns the path entropy: the UDP source port of the path.
    #[inline(always)]
    pub fn path(&self) -> PathId {
        PathId(self.traits as u16)
    }

    /// Returns the bytes on the link, including headers, preamble and gap.
    #[inline(always)]
    pub fn wire_bytes(&self) -> u16 {
        (self.traits >> WIRE_BYTES) as u16
    }

    /// Returns the traffic class: 0 is control, the others are data.
    #[inline(always)]
    pub fn class(&self) -> u8 {
        (self.traits >> CLASS) as u8
    }

    /// Returns the class as an index below `C`. If `C` is a power of two, there is no check of bounds.
    #[inline(always)]
    pub(crate) fn class_index<const C: usize>(&self) -> usize {
        let class = usize::from(self.class());
        debug_assert!(class < C);
        if C.is_power_of_two() { class & (C - 1) } else { class }
    }

    /// Returns the number of switches that a delivered packet has passed.
    pub fn hops(&self) -> u8 {
        self.links().saturating_sub(1)
    }

    /// Returns true if switches may mark the packet.
    pub fn ecn_capable(&self) -> bool {
        self.is(ECN_CAPABLE)
    }

    /// Returns true if a switch marked the packet Congestion Experienced.
    pub fn congestion_experienced(&self) -> bool {
        self.is(CE)
    }

    /// Returns true if any of these flags is set.
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

    /// Returns the number of links crossed or being crossed.
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

    /// Creates a packet from one switch to another. Its content is in a slot of the balancer.
    pub(crate) fn message(src: HostId, dst: HostId, path: PathId, wire_bytes: u32, slot: u32) -> Self {
        Header::new(src, dst, path, wire_bytes, 0, false).with_message(slot)
    }

    /// Returns the same packet between switches with its content in another slot.
    pub(crate) fn with_message(self, slot: u32) -> Self {
        debug_assert!(slot < MESSAGE - 1);
        self.with_content(MESSAGE | slot)
    }

    /// Returns true if the packet carries a host's content, unlike packets between switches and pause frames.
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

    /// Returns the packet as if it had arrived by this port.
    pub(crate) fn with_ingress(self, ingress: PortId) -> Self {
        Header { place: self.place & 0xffff_ffff | u64::from(ingress) << 32, ..self }
    }

    #[inline(always)]
    pub(crate) fn content(&self) -> usize {
        self.place as u32 as usize
    }

    /// Returns the packet on a link into port `ingress`, with its arrival time.
    #[inline(always)]
    pub(crate) fn on_link(&self, ingress: PortId, arrival: Time) -> Self {
        Header {
            arrival_ps: arrival.as_ps(),
            ends: self.ends,
            place: self.place & 0xffff_ffff | u64::from(ingress) << 32,
            // The sum would overflow after 255 links. A packet is dropped as looping before that.
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

/// Contents of the packets inside the fabric. The fabric never reads them; only hosts and middleboxes do.
pub(crate) struct Contents<P> {
    slots: Vec<P>,
    /// Free slots. The last one freed is used first, because it is most likely in cache.
    free: Vec<u32>,
}

impl<P: Copy> Contents<P> {
    pub(crate) fn new() -> Self {
        Contents { slots: Vec::new(), free: Vec::new() }
    }

    /// Returns the allocated bytes.
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

    /// Prefetches the content of a packet.
    #[inline(always)]
    pub(crate) fn prefetch(&self, header: &Header) {
        if let Some(content) = self.slots.get(header.content()) {
            prefetch_all(content);
        }
    }

    /// Prefetches the slot that will be used after `ahead` other insertions.
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
