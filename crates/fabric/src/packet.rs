//! Packets in the fabric: a slab of fixed entries, the part every hop touches apart from the rest.

use pathweave_des::prefetch;
use pathweave_units::{HostId, PathId};

/// Index of a packet in the slab.
pub(crate) type PacketId = u32;
/// No packet.
pub(crate) const NO_PACKET: PacketId = u32::MAX;

/// What the fabric knows of a packet. Half a cache line; two neighbours share one.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub struct Header {
    /// While on a link: when the last bit of the packet *behind* it arrives, or its own where it is the last, in
    /// picoseconds. So whoever takes the head knows when to come again without touching the next packet.
    arrival_ps: u64,
    /// Next in the queue or on the link it is in.
    pub(crate) next: PacketId,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Port it came in by at the switch it is in.
    pub(crate) ingress: u32,
    /// Path entropy: the UDP source port of the path.
    pub path: PathId,
    /// Bytes on the link, headers, preamble and gap included.
    pub wire_bytes: u16,
    /// Traffic class: 0 control, above it data.
    pub class: u8,
    /// What it is and what befell it.
    pub(crate) flags: u8,
    /// Switches passed.
    pub hops: u8,
}

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

impl Header {
    /// A packet about to enter the fabric.
    pub fn new(
        src: HostId,
        dst: HostId,
        path: PathId,
        wire_bytes: u32,
        class: u8,
        ecn_capable: bool,
    ) -> Self {
        Header {
            arrival_ps: 0,
            next: NO_PACKET,
            src,
            dst,
            ingress: u32::MAX,
            path,
            wire_bytes: u16::try_from(wire_bytes).expect("a frame beyond 64 KiB"),
            class,
            flags: if ecn_capable { ECN_CAPABLE } else { 0 },
            hops: 0,
        }
    }

    /// Whether a switch marked it Congestion Experienced.
    pub fn congestion_experienced(&self) -> bool {
        self.flags & CE != 0
    }

    pub(crate) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// All packets alive. `P` is what the fabric carries without looking at it; only the ends touch it.
pub(crate) struct Slab<P> {
    headers: Vec<Header>,
    contents: Vec<P>,
    free: PacketId,
    alive: u32,
}

impl<P: Copy> Slab<P> {
    pub(crate) fn new() -> Self {
        Slab { headers: Vec::new(), contents: Vec::new(), free: NO_PACKET, alive: 0 }
    }

    #[inline]
    pub(crate) fn insert(&mut self, header: Header, content: P) -> PacketId {
        self.alive += 1;
        let id = self.free;
        if id == NO_PACKET {
            self.headers.push(header);
            self.contents.push(content);
            return u32::try_from(self.headers.len() - 1).expect("fewer than 2^32 packets");
        }
        let slot = &mut self.headers[id as usize];
        self.free = slot.next;
        *slot = header;
        self.contents[id as usize] = content;
        id
    }

    #[inline]
    pub(crate) fn remove(&mut self, id: PacketId) -> (Header, P) {
        let packet = (self.headers[id as usize], self.contents[id as usize]);
        self.free(id);
        packet
    }

    #[inline]
    pub(crate) fn free(&mut self, id: PacketId) {
        self.alive -= 1;
        self.headers[id as usize].next = self.free;
        self.free = id;
    }

    /// Begins to load a header; [`NO_PACKET`] and numbers out of date do no harm.
    #[inline(always)]
    pub(crate) fn prefetch(&self, id: PacketId) {
        if let Some(header) = self.headers.get(id as usize) {
            prefetch(header);
        }
    }

    #[inline]
    pub(crate) fn content(&self, id: PacketId) -> &P {
        &self.contents[id as usize]
    }

    pub(crate) fn alive(&self) -> u32 {
        self.alive
    }
}

impl<P> std::ops::Index<PacketId> for Slab<P> {
    type Output = Header;
    #[inline]
    fn index(&self, id: PacketId) -> &Header {
        &self.headers[id as usize]
    }
}
impl<P> std::ops::IndexMut<PacketId> for Slab<P> {
    #[inline]
    fn index_mut(&mut self, id: PacketId) -> &mut Header {
        &mut self.headers[id as usize]
    }
}

/// A first-in-first-out list threaded through the slab.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    pub(crate) head: PacketId,
    pub(crate) tail: PacketId,
}

impl Queue {
    pub(crate) const EMPTY: Queue = Queue { head: NO_PACKET, tail: NO_PACKET };

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == NO_PACKET
    }

    #[inline]
    pub(crate) fn push<P: Copy>(&mut self, slab: &mut Slab<P>, id: PacketId) {
        slab[id].next = NO_PACKET;
        if self.head == NO_PACKET {
            self.head = id;
        } else {
            slab[self.tail].next = id;
        }
        self.tail = id;
    }

    #[inline]
    pub(crate) fn pop<P: Copy>(&mut self, slab: &Slab<P>) -> PacketId {
        let id = self.head;
        self.head = slab[id].next;
        id
    }

    pub(crate) fn iter<'a, P: Copy>(&self, slab: &'a Slab<P>) -> impl Iterator<Item = PacketId> + use<'a, P> {
        let mut next = self.head;
        std::iter::from_fn(move || {
            let id = next;
            (id != NO_PACKET).then(|| {
                next = slab[id].next;
                id
            })
        })
    }

    /// Puts a packet on a link, to arrive at `arrival_ps` or right after the packet before it. True if the link was
    /// empty: its arrival is then to be scheduled.
    #[inline]
    pub(crate) fn push_arrival<P: Copy>(
        &mut self,
        slab: &mut Slab<P>,
        id: PacketId,
        arrival_ps: u64,
    ) -> bool {
        let was_empty = self.is_empty();
        let mut arrival_ps = arrival_ps;
        if !was_empty {
            // A link whose delay has just shrunk still delivers in order.
            let before = &mut slab[self.tail].arrival_ps;
            arrival_ps = arrival_ps.max(*before);
            *before = arrival_ps;
        }
        slab[id].arrival_ps = arrival_ps;
        self.push(slab, id);
        was_empty
    }

    /// Takes the packet that has arrived, and tells when the next one does.
    #[inline]
    pub(crate) fn pop_arrival<P: Copy>(&mut self, slab: &Slab<P>) -> (PacketId, Option<u64>) {
        let id = self.head;
        let header = &slab[id];
        self.head = header.next;
        (id, (self.head != NO_PACKET).then_some(header.arrival_ps))
    }
}
