//! Packets in transit: queues, links, buffers and contents, and the services that move packets between them.

use pathweave_units::{HostId, PathId, Time};

use crate::journal::EventLog;
use crate::middlebox::Middleboxes;
use crate::packet::{Contents, Header, PFC, PFC_RESUME, PortId};
use crate::port::{DOWN, HAS_MIDDLEBOX};
use crate::ports_and_links::{Lines, as_queued, served};
use crate::switch::Switches;
use crate::telemetry::Readings;
use crate::trim::Trimmer;

/// Size of a pause frame with preamble and gap.
pub(crate) const PAUSE_FRAME_BYTES: u16 = 84;

/// Everything that a packet passes between its hosts, with the services of ports.
pub(crate) struct Transit<P, const C: usize> {
    pub(crate) lines: Lines<C>,
    pub(crate) switches: Switches<C>,
    pub(crate) middleboxes: Middleboxes<P>,
    pub(crate) contents: Contents<P>,
    /// Present if switches write telemetry.
    pub(crate) telemetry: Option<Box<Readings>>,
    pub(crate) journal: EventLog<P>,
    /// Present if switches trim.
    pub(crate) trimmer: Option<Box<Trimmer>>,
    /// Number of arrivals at switches, and of services that were separate events.
    pub(crate) events: u64,
}

impl<P: Copy, const C: usize> Transit<P, C> {
    /// Appends a packet to the queue of its class, or puts it on the link if the port is idle. The port is up to
    /// date.
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, now: Time, id: PortId, header: &Header) {
        let port = &mut self.lines.ports[id as usize];
        let mut room = None;
        let header = as_queued(&mut self.lines.marker, &self.lines.wires.specs, id, port, header, &mut room);
        let class = usize::from(header.class());
        if port.starts_at_once(class, now) {
            self.transmit(now, id, header);
        } else {
            port.push(class, header);
        }
    }

    /// Starts every service of a port that begins up to `now`.
    #[inline(always)]
    pub(crate) fn advance(&mut self, now: Time, id: PortId) {
        if self.lines.ports[id as usize].eligible_by(now).is_some() {
            self.serve_backlog(now, id);
        }
    }

    #[inline(never)]
    fn serve_backlog(&mut self, now: Time, id: PortId) {
        if self.lines.ports[id as usize].is(HAS_MIDDLEBOX) {
            return self.serve_boxed_port(now, id);
        }
        while let Some(eligible) = self.lines.ports[id as usize].eligible_by(now) {
            let lines = &mut self.lines;
            let port = &mut lines.ports[id as usize];
            let class = lines.scheduler.next_class(id, port, eligible);
            let header = served(&mut lines.marker, &lines.wires.specs, id, port, class);
            self.transmit(now, id, &header);
        }
    }

    /// Transmits a packet from the instant at which the port became free, and removes it from the buffer.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, now: Time, id: PortId, header: &Header) {
        if self.telemetry.is_some() {
            self.write_telemetry(id, header);
        }
        self.lines.transmit(id, header);
        if id < self.lines.host_ports {
            return;
        }
        let switch = self.lines.ports[id as usize].node - self.lines.wires.hosts;
        self.release(now, switch, header);
    }

    /// Removes a packet from the buffer.
    #[inline(always)]
    pub(crate) fn release(&mut self, now: Time, switch: u32, header: &Header) {
        let (ingress, class) = (header.ingress(), usize::from(header.class()));
        if self.switches.account_out(switch, ingress, class, u32::from(header.wire_bytes())) {
            self.consider_resume(now, switch, ingress, class);
        }
    }

    /// Ends the pause of the upstream port once its account is far enough below the threshold.
    #[cold]
    fn consider_resume(&mut self, now: Time, switch: u32, ingress: PortId, class: usize) {
        if self.switches.resumes(switch, ingress, class) {
            // Services are on time while a peer is paused, so this one starts now.
            self.send_pause_frame(now, ingress, class, PFC_RESUME);
        }
    }

    /// Sends a MAC control frame as soon as the transmitter is free, before every queue.
    pub(crate) fn send_pause_frame(&mut self, now: Time, id: PortId, class: usize, kind: u8) {
        let port = &mut self.lines.ports[id as usize];
        if port.is(DOWN) {
            return;
        }
        let path = PathId(class as u16);
        let mut header = Header::new(HostId(0), HostId(0), path, u32::from(PAUSE_FRAME_BYTES), 0, false);
        header.set(PFC | kind);
        port.tx_free = port.tx_free.max(now);
        self.lines.wires.transmit(port, &header);
    }

    /// Brings every port of a switch up to `now`.
    pub(crate) fn advance_switch(&mut self, now: Time, switch: u32) {
        for port in self.switches.each[switch as usize].ports() {
            self.advance(now, port);
        }
    }

    /// Executes the services due up to `until`, as long as a paused peer waits for the buffer to drain.
    pub(crate) fn serve_on_time(&mut self, until: Time, switch: u32) {
        while self.switches.each[switch as usize].paused_neighbours > 0 {
            let ports = self.switches.each[switch as usize].ports();
            let Some((due, port)) = self.lines.next_service(ports) else { return };
            if due > until {
                return;
            }
            self.events += 1;
            self.advance(due, port);
        }
    }

    /// Starts the services that begin up to `last`. Returns the time of the next one.
    pub(crate) fn serve_to_end_of_window(&mut self, last: Time, switch: u32) -> Time {
        self.serve_on_time(last, switch);
        let mut next = Time::MAX;
        for id in self.switches.each[switch as usize].ports() {
            self.advance(last, id);
            let port = &self.lines.ports[id as usize];
            if port.eligible() != 0 {
                next = next.min(port.tx_free);
            }
        }
        next
    }
}
