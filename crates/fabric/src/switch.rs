//! Switches: their routes, the buffer that the ports of each share, and the accounts of what is in it.

use crate::forwarding::{SwitchRoutes, ecmp_hash};
use crate::packet::{Header, PortId};

/// Switches a packet may pass before it counts as caught in a loop.
pub(crate) const MAX_HOPS: u8 = 64;

/// What a switch holds that came *in* by a port. Apart from the port itself, since a hop looks at one port's queues and another
/// one's account.
#[derive(Clone, Debug)]
pub(crate) struct Held<const C: usize> {
    pub(crate) bytes: [u32; C],
    /// Classes for which the neighbour behind the port is paused.
    pub(crate) xoff_sent: u8,
    /// The neighbour is never paused.
    pub(crate) lossy: bool,
}

impl<const C: usize> Held<C> {
    pub(crate) const NOTHING: Held<C> = Held { bytes: [0; C], xoff_sent: 0, lossy: false };
}

/// All switches of a fabric, and their rules for its buffers.
pub(crate) struct Switches<const C: usize> {
    pub(crate) each: Vec<Switch>,
    /// By ingress port.
    pub(crate) held: Vec<Held<C>>,
    /// Whether a full buffer pauses neighbours, or drops.
    pub(crate) pfc: bool,
    /// How far below its threshold an account must fall before the neighbour resumes.
    pub(crate) xon_gap_bytes: u64,
    /// Whether a port without room trims.
    pub(crate) trims: bool,
}

impl<const C: usize> Switches<C> {
    /// Whether the buffer takes a packet for a queue with so much in it: always while there is space for lossless classes
    /// and control, up to the dynamic threshold of its queue otherwise.
    #[inline(always)]
    pub(crate) fn has_room(&self, switch: u32, queued_bytes: u32, class: usize, bytes: u64) -> bool {
        let at = &self.each[switch as usize];
        if at.used_bytes + bytes > at.buffer_bytes {
            return false;
        }
        self.pfc || class == 0 || u64::from(queued_bytes) + bytes <= at.queue_limit_bytes(at.used_bytes)
    }

    /// Whether the memory of a switch has room, whatever its queues hold.
    pub(crate) fn has_memory(&self, switch: u32, bytes: u64) -> bool {
        let at = &self.each[switch as usize];
        at.used_bytes + bytes <= at.buffer_bytes
    }

    /// Takes a packet into the buffer. True if its account is over the threshold now, and its neighbour not paused.
    #[inline(always)]
    pub(crate) fn take_in(&mut self, switch: u32, ingress: PortId, class: usize, bytes: u32) -> bool {
        let at = &mut self.each[switch as usize];
        at.used_bytes += u64::from(bytes);
        let limit = at.xoff_limit_bytes(at.used_bytes);
        let held = &mut self.held[ingress as usize];
        held.bytes[class] += bytes;
        let may_pause = self.pfc && class > 0 && held.xoff_sent >> class & 1 == 0;
        may_pause && u64::from(held.bytes[class]) > limit
    }

    /// A packet has left the buffer. True if its neighbour is paused, and may have to be resumed.
    #[inline(always)]
    pub(crate) fn let_out(&mut self, switch: u32, ingress: PortId, class: usize, bytes: u32) -> bool {
        self.each[switch as usize].used_bytes -= u64::from(bytes);
        let held = &mut self.held[ingress as usize];
        held.bytes[class] -= bytes;
        held.xoff_sent >> class & 1 != 0
    }

    /// Notes the pause of a neighbour whose account is over the threshold; false if it is not, or it cannot be paused.
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

    /// Notes the end of a neighbour's pause if its account is far enough below the threshold; false if it is not.
    pub(crate) fn resumes(&mut self, switch: u32, ingress: PortId, class: usize) -> bool {
        let at = &mut self.each[switch as usize];
        let held = &mut self.held[ingress as usize];
        let bytes = u64::from(held.bytes[class]);
        if bytes > 0 && bytes + self.xon_gap_bytes > at.xoff_limit_bytes(at.used_bytes) {
            return false;
        }
        held.xoff_sent &= !(1 << class);
        at.paused_neighbours -= 1;
        true
    }
}

/// A switch: routes and the buffer its ports share.
pub(crate) struct Switch {
    pub(crate) routes: SwitchRoutes,
    pub(crate) hash_seed: u64,
    /// Bytes in the buffer; may count packets whose service has begun but was not looked at.
    pub(crate) used_bytes: u64,
    pub(crate) buffer_bytes: u64,
    /// The buffer less the headroom of all ports.
    pub(crate) shared_bytes: u64,
    /// (Port, class) pairs whose neighbour is paused. Above 0 a neighbour waits for the buffer to drain, so services
    /// are executed on time instead of at the next look.
    pub(crate) paused_neighbours: u32,
    pub(crate) first_port: PortId,
    pub(crate) end_port: PortId,
    /// Ports whose link is down.
    pub(crate) links_down: u32,
    /// Of the free shared buffer, in 65,536ths: what an ingress account may hold before its neighbour is paused.
    pub(crate) pfc_alpha: u64,
    /// Bytes that an ingress account may hold whatever is free: 0 where the threshold is dynamic.
    pub(crate) pfc_static_bytes: u64,
    /// Of the free buffer, in 65,536ths: what a queue may hold where PFC is off.
    pub(crate) egress_alpha: u64,
}

impl Switch {
    pub(crate) fn ports(&self) -> std::ops::Range<PortId> {
        self.first_port..self.end_port
    }

    /// What an ingress account may hold with this much in the buffer; above it the neighbour is paused.
    #[inline(always)]
    pub(crate) fn xoff_limit_bytes(&self, used_bytes: u64) -> u64 {
        self.pfc_static_bytes + ((self.shared_bytes.saturating_sub(used_bytes) * self.pfc_alpha) >> 16)
    }

    /// What a queue may hold with this much in the buffer where PFC is off; above it packets are refused.
    #[inline(always)]
    pub(crate) fn queue_limit_bytes(&self, used_bytes: u64) -> u64 {
        (self.buffer_bytes.saturating_sub(used_bytes) * self.egress_alpha) >> 16
    }

    /// The egress port of a packet, or `None` where its destination cannot be reached.
    #[inline(always)]
    pub(crate) fn choose(&self, header: &Header) -> Option<PortId> {
        if let SwitchRoutes::Source(routes) = &self.routes {
            return routes.choose(header);
        }
        let hash = ecmp_hash(self.hash_seed, header.src(), header.dst(), header.path());
        self.routes.choose(header.src(), header.dst(), hash)
    }
}
