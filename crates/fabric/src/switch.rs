//! Switches: their routes, the buffer shared by the ports of each, and the accounts of that buffer.

use crate::forwarding::{SwitchRoutes, ecmp_hash};
use crate::packet::{Header, PortId};

/// Number of switches that a packet may pass before it counts as caught in a loop.
pub(crate) const MAX_HOPS: u8 = 64;

/// Ingress account of a port: bytes in the switch's buffer that arrived *in* by it. Stored apart from the port, since
/// a hop uses the queues of one port and the account of another.
#[derive(Clone, Debug)]
pub(crate) struct IngressAccount<const C: usize> {
    pub(crate) bytes: [u32; C],
    /// Classes for which the peer is paused, one bit each.
    pub(crate) xoff_sent: u8,
    /// True if the peer is never paused.
    pub(crate) lossy: bool,
}

impl<const C: usize> IngressAccount<C> {
    pub(crate) const NOTHING: IngressAccount<C> =
        IngressAccount { bytes: [0; C], xoff_sent: 0, lossy: false };
}

/// All switches of a fabric, and the rules of their buffers.
pub(crate) struct Switches<const C: usize> {
    pub(crate) each: Vec<Switch>,
    /// Ingress account of each port.
    pub(crate) held: Vec<IngressAccount<C>>,
    /// True if any switch trims.
    pub(crate) trims: bool,
}

impl<const C: usize> Switches<C> {
    /// Returns true if the buffer admits a packet to a queue of `queued_bytes`. Lossless classes and control are
    /// admitted while there is space, other classes up to the dynamic threshold of their queue.
    #[inline(always)]
    pub(crate) fn has_room(&self, switch: u32, queued_bytes: u32, class: usize, bytes: u64) -> bool {
        let at = &self.each[switch as usize];
        if at.used_bytes + bytes > at.buffer_bytes {
            return false;
        }
        at.pfc || class == 0 || u64::from(queued_bytes) + bytes <= at.queue_limit_bytes(at.used_bytes)
    }

    /// Returns true if the memory of a switch has room, whatever its queues hold.
    pub(crate) fn has_memory(&self, switch: u32, bytes: u64) -> bool {
        let at = &self.each[switch as usize];
        at.used_bytes + bytes <= at.buffer_bytes
    }

    /// Adds a packet to the buffer. Returns true if its ingress account is now over the threshold and the peer is not
    /// paused.
    #[inline(always)]
    pub(crate) fn account_in(&mut self, switch: u32, ingress: PortId, class: usize, bytes: u32) -> bool {
        let at = &mut self.each[switch as usize];
        at.used_bytes += u64::from(bytes);
        let limit = at.xoff_limit_bytes(at.used_bytes);
        let held = &mut self.held[ingress as usize];
        held.bytes[class] += bytes;
        let may_pause = at.pfc && class > 0 && held.xoff_sent >> class & 1 == 0;
        may_pause && u64::from(held.bytes[class]) > limit
    }

    /// Removes a packet from the buffer. Returns true if the peer is paused and may have to be resumed.
    #[inline(always)]
    pub(crate) fn account_out(&mut self, switch: u32, ingress: PortId, class: usize, bytes: u32) -> bool {
        self.each[switch as usize].used_bytes -= u64::from(bytes);
        let held = &mut self.held[ingress as usize];
        held.bytes[class] -= bytes;
        held.xoff_sent >> class & 1 != 0
    }

    /// Records a pause of the peer if its account is over the threshold. Returns false if it is not, or if the peer
    /// cannot be paused.
    pub(crate) fn pauses(&mut self, switch: u32, ingress: PortId, class: usize) -> bool {
        let at = &mut self.each[switch as usize];
        let held = &mut self.held[ingress as usize];
        let over = u64::from(held.bytes[class]) > at.xoff_limit_bytes(at.used_bytes);
        if held.lossy || !over || held.xoff_sent >> class & 1 != 0 {
            return false;
        }
        held.xoff_sent |= 1 << class;
        at.paused_neighbours += 1;
        true
    }

    /// Records the end of the peer's pause if its account is far enough below the threshold. Returns false if it is
    /// not.
    pub(crate) fn resumes(&mut self, switch: u32, ingress: PortId, class: usize) -> bool {
        let at = &mut self.each[switch as usize];
        let held = &mut self.held[ingress as usize];
        let bytes = u64::from(held.bytes[class]);
        if bytes > 0 && bytes + at.xon_gap_bytes > at.xoff_limit_bytes(at.used_bytes) {
            return false;
        }
        held.xoff_sent &= !(1 << class);
        at.paused_neighbours -= 1;
        true
    }
}

/// A switch: routes, and the buffer that its ports share.
pub(crate) struct Switch {
    pub(crate) routes: SwitchRoutes,
    /// Difference between the numbers of the ports in the whole fabric, by which source routes name them, and in this
    /// part of it.
    pub(crate) whole_shift: PortId,
    pub(crate) hash_seed: u64,
    /// Bytes in the buffer. May include packets whose service has begun but was not executed yet.
    pub(crate) used_bytes: u64,
    pub(crate) buffer_bytes: u64,
    /// Size of the buffer without the headroom of all ports.
    pub(crate) shared_bytes: u64,
    /// Number of (port, class) pairs whose peer is paused. While it is above 0, a peer waits for the buffer to drain,
    /// so services are executed on time instead of lazily.
    pub(crate) paused_neighbours: u32,
    pub(crate) first_port: PortId,
    pub(crate) end_port: PortId,
    /// Number of ports whose link is down.
    pub(crate) links_down: u32,
    /// Share of the free shared buffer that an ingress account may hold before the peer is paused, in 65,536ths.
    pub(crate) pfc_alpha: u64,
    /// Bytes that an ingress account may hold whatever is free; 0 if the threshold is dynamic.
    pub(crate) pfc_static_bytes: u64,
    /// Share of the free buffer that a queue may hold while PFC is off, in 65,536ths.
    pub(crate) egress_alpha: u64,
    /// Distance below its threshold to which an account must fall before the peer resumes.
    pub(crate) xon_gap_bytes: u64,
    /// True if a full buffer pauses the upstream ports, false if it drops.
    pub(crate) pfc: bool,
    /// True if ports without room trim.
    pub(crate) trims: bool,
}

impl Switch {
    pub(crate) fn ports(&self) -> std::ops::Range<PortId> {
        self.first_port..self.end_port
    }

    /// Returns the bytes that an ingress account may hold while the buffer holds `used_bytes`. Above it the peer is
    /// paused.
    #[inline(always)]
    pub(crate) fn xoff_limit_bytes(&self, used_bytes: u64) -> u64 {
        self.pfc_static_bytes + ((self.shared_bytes.saturating_sub(used_bytes) * self.pfc_alpha) >> 16)
    }

    /// Returns the bytes that a queue may hold, with PFC off, while the buffer holds `used_bytes`. Above it packets
    /// are refused.
    #[inline(always)]
    pub(crate) fn queue_limit_bytes(&self, used_bytes: u64) -> u64 {
        (self.buffer_bytes.saturating_sub(used_bytes) * self.egress_alpha) >> 16
    }

    /// Returns the egress port of a packet, or `None` if its destination is unreachable.
    #[inline(always)]
    pub(crate) fn choose(&self, header: &Header) -> Option<PortId> {
        if let SwitchRoutes::Source(routes) = &self.routes {
            return routes.choose(header).map(|port| port.wrapping_sub(self.whole_shift));
        }
        self.routes.choose(header.src(), header.dst(), self.flow_hash(header))
    }

    /// Returns the hash by which the switch chooses among equal-cost ports.
    #[inline(always)]
    pub(crate) fn flow_hash(&self, header: &Header) -> u64 {
        ecmp_hash(self.hash_seed, header.src(), header.dst(), header.path())
    }
}
