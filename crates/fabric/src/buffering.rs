//! The buffer that the ports of a switch share: admission, dynamic thresholds, priority flow control.

use pathweave_units::{HostId, PathId, Time};

use crate::build::PAUSE_FRAME_BYTES;
use crate::event::{DropReason, FabricEvent, FabricEventKind, Step};
use crate::fabric::Fabric;
use crate::packet::{Header, PFC, PFC_RESUME};
use crate::port::{BOXED, CONTROLLED, DOWN, PortId, STORM};

/// An account that has shrunk while the neighbour behind it is paused.
#[derive(Clone, Copy)]
pub(crate) struct Resumable {
    pub(crate) switch: u32,
    pub(crate) ingress: PortId,
    pub(crate) class: usize,
}

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Takes a packet into the buffer, pausing the neighbour it came from if its account is over the threshold.
    /// False if there is no room: the packet is then lost.
    #[inline(always)]
    pub(crate) fn admit(&mut self, now: Time, switch: u32, egress: PortId, header: &Header) -> bool {
        let (bytes, class) = (u64::from(header.wire_bytes()), usize::from(header.class()));
        let ingress = header.ingress();
        if !self.has_room(switch, egress, class, bytes) {
            // The lazy account errs on the high side: refuse only by the exact one.
            self.advance_switch(now, switch);
            if !self.has_room(switch, egress, class, bytes) {
                self.lose(now, egress, header, DropReason::Buffer);
                return false;
            }
        }
        let at = &mut self.switches[switch as usize];
        at.used_bytes += bytes;
        let limit = at.xoff_limit_bytes(at.used_bytes);
        let held = &mut self.held[ingress as usize];
        held.bytes[class] += bytes as u32;
        let may_pause = self.pfc && class > 0 && held.xoff_sent >> class & 1 == 0;
        if may_pause && u64::from(held.bytes[class]) > limit {
            self.consider_pause(now, switch, ingress, class);
        }
        true
    }

    /// Whether the buffer takes a packet: always while there is space for lossless classes and control, up to the
    /// dynamic threshold of its queue otherwise.
    #[inline(always)]
    fn has_room(&self, switch: u32, egress: PortId, class: usize, bytes: u64) -> bool {
        let at = &self.switches[switch as usize];
        if at.used_bytes + bytes > at.buffer_bytes {
            return false;
        }
        if self.pfc || class == 0 {
            return true;
        }
        let queued = u64::from(self.ports[egress as usize].queued_bytes[class]);
        queued + bytes <= at.queue_limit_bytes(at.used_bytes)
    }

    /// The lazy account is over the threshold; pause the neighbour if the exact one is, too.
    #[cold]
    fn consider_pause(&mut self, now: Time, switch: u32, ingress: PortId, class: usize) {
        if self.held[ingress as usize].lossy {
            return;
        }
        self.advance_switch(now, switch);
        let at = &self.switches[switch as usize];
        let over = u64::from(self.held[ingress as usize].bytes[class]) > at.xoff_limit_bytes(at.used_bytes);
        if !over || self.held[ingress as usize].xoff_sent >> class & 1 != 0 {
            return;
        }
        self.held[ingress as usize].xoff_sent |= 1 << class;
        self.send_pause_frame(now, ingress, class, 0);
        self.switches[switch as usize].paused_neighbours += 1;
    }

    /// A packet has left the buffer other than by service.
    pub(crate) fn release(&mut self, now: Time, at: Resumable, bytes: u32) {
        let Resumable { switch, ingress, class } = at;
        self.switches[switch as usize].used_bytes -= u64::from(bytes);
        let held = &mut self.held[ingress as usize];
        held.bytes[class] -= bytes;
        if held.xoff_sent >> class & 1 != 0 {
            self.consider_resume(now, at);
        }
    }

    /// Ends the neighbour's pause once the account is far enough below the threshold.
    #[cold]
    pub(crate) fn consider_resume(&mut self, now: Time, at: Resumable) {
        let Resumable { switch, ingress, class } = at;
        let held = u64::from(self.held[ingress as usize].bytes[class]);
        let at = &self.switches[switch as usize];
        if held > 0 && held + self.xon_gap_bytes > at.xoff_limit_bytes(at.used_bytes) {
            return;
        }
        self.held[ingress as usize].xoff_sent &= !(1 << class);
        // Services are on time while a neighbour is paused, so this one starts now.
        self.send_pause_frame(now, ingress, class, PFC_RESUME);
        self.switches[switch as usize].paused_neighbours -= 1;
    }

    /// A MAC control frame: goes out as soon as the transmitter is free, before every queue.
    fn send_pause_frame(&mut self, now: Time, port_id: PortId, class: usize, kind: u8) {
        if self.ports[port_id as usize].is(DOWN) {
            return;
        }
        let mut header =
            Header::new(HostId(0), HostId(0), PathId(class as u16), u32::from(PAUSE_FRAME_BYTES), 0, false);
        header.set(PFC | kind);
        let port = &mut self.ports[port_id as usize];
        port.tx_free = port.tx_free.max(now);
        self.wires.put(port, &header);
    }

    /// A pause frame from the neighbour at the far end of `port_id`'s cable.
    pub(crate) fn on_pause_frame(&mut self, now: Time, port_id: PortId, frame: &Header) -> Step {
        let class = frame.path().0 as u8;
        if frame.is(PFC_RESUME) {
            if self.ports[port_id as usize].is(STORM) {
                return Step::Done;
            }
            return self.resume(now, port_id, class);
        }
        self.pause(now, port_id, class);
        Step::Done
    }

    pub(crate) fn pause(&mut self, now: Time, port_id: PortId, class: u8) {
        // What has begun up to now goes out.
        self.advance(now, port_id);
        let port = &mut self.ports[port_id as usize];
        if port.paused >> class & 1 != 0 {
            return;
        }
        if port.paused == 0 {
            self.paused_since[port_id as usize] = now;
            self.stats[port_id as usize].pauses += 1;
        }
        port.paused |= 1 << class | if port.is(BOXED) { CONTROLLED } else { 0 };
        self.log.push(FabricEvent { time: now, port: port_id, kind: FabricEventKind::Paused(class) });
    }

    /// A port may have something to send again: sees to its being served in time.
    fn note_service(&mut self, port_id: PortId) {
        let port = &self.ports[port_id as usize];
        if port.eligible() == 0 {
            return;
        }
        let due = match port.node.checked_sub(self.wires.hosts) {
            Some(switch) => self.wires.due_of_switch(switch),
            None => &mut self.nic_due,
        };
        *due = port.tx_free.min(*due);
    }

    pub(crate) fn resume(&mut self, now: Time, port_id: PortId, class: u8) -> Step {
        self.advance(now, port_id);
        let port = &mut self.ports[port_id as usize];
        if port.paused >> class & 1 == 0 {
            return Step::Done;
        }
        port.paused &= !(1 << class);
        if port.is(BOXED) && port.paused == CONTROLLED {
            port.paused = 0;
        }
        // The paused class could not be served before this instant.
        port.tx_free = port.tx_free.max(now);
        let node = port.node;
        if port.paused == 0 {
            self.stats[port_id as usize].paused += now - self.paused_since[port_id as usize];
            self.paused_since[port_id as usize] = Time::MAX;
        }
        self.log.push(FabricEvent { time: now, port: port_id, kind: FabricEventKind::Resumed(class) });
        self.advance(now, port_id);
        self.note_service(port_id);
        if node < self.wires.hosts { Step::Resumed { host: HostId(node), port: port_id } } else { Step::Done }
    }
}
