//! Simulation of a switch with a middlebox through a window: everything in order of time, every service an event.

use pathweave_units::Time;

use super::{ContentAccess, ExternalConfig, Middlebox, PauseChange, SiteQueue, SwitchPosition};
use crate::event::DropReason;
use crate::packet::{Header, PortId};
use crate::port::{CONTROLLED, HAS_MIDDLEBOX, WAN};
use crate::ports_and_links::{as_queued, served};
use crate::ring::Ring;
use crate::transit::Transit;

impl<P: Copy, const C: usize> Transit<P, C> {
    /// Attaches a middlebox to an external switch.
    pub(crate) fn attach_middlebox(
        &mut self,
        switch: u32,
        config: &ExternalConfig,
        lens: ContentAccess<P>,
        place: SwitchPosition,
    ) {
        let ports = self.switches.each[switch as usize].ports();
        let at = &mut self.lines.ports[ports.start as usize..ports.end as usize];
        let wan = at.iter().map(|port| port.is(WAN)).collect();
        at.iter_mut().for_each(|port| port.flags |= HAS_MIDDLEBOX);
        self.middleboxes.attach(switch, Middlebox::new(config, lens, place, ports.start, wan));
    }

    /// Returns the time of the next event of the switch other than an arrival.
    pub(crate) fn next_boxed(&self, switch: u32) -> Time {
        let ports = self.switches.each[switch as usize].ports();
        let service = self.lines.next_service(ports).map_or(Time::MAX, |(due, _)| due);
        service.min(self.resumes_at(switch))
    }

    fn resumes_at(&self, switch: u32) -> Time {
        let ndt = self.middleboxes.get(switch).and_then(|made| made.ndt.as_ref());
        ndt.and_then(|(ndt, _)| ndt.resumes_at()).unwrap_or(Time::MAX)
    }

    /// Executes all events due up to `until`, in order of time and port.
    pub(crate) fn serve_boxed(&mut self, until: Time, switch: u32) {
        let ports = self.switches.each[switch as usize].ports();
        loop {
            self.post_answers(switch);
            let (due, port) = self.lines.next_service(ports.clone()).unwrap_or((Time::MAX, 0));
            let resume = self.resumes_at(switch);
            if resume <= due.min(until) {
                let (ndt, stats) = self.middleboxes.at(switch).ndt.as_mut().expect("it is paused");
                ndt.time_out(resume, stats);
                self.resume_controlled(resume, switch);
            } else if due <= until {
                self.events += 1;
                self.serve_boxed_port_once(port);
            } else {
                return;
            }
        }
    }

    /// Forwards the answers that the middlebox has emitted.
    fn post_answers(&mut self, switch: u32) {
        while let Some((at, ingress, header)) = self.middleboxes.at(switch).outbox.pop_front() {
            // An answer counts as having arrived by the egress port of its data.
            let header = header.with_ingress(ingress);
            let before = self.contents.alive();
            self.forward_boxed(at, switch, &header);
            if self.contents.alive() < before
                && let Some((_, stats)) = &mut self.middleboxes.at(switch).nsf
            {
                stats.answers_lost += 1;
            }
        }
    }

    pub(crate) fn forward_boxed(&mut self, now: Time, switch: u32, header: &Header) {
        let Some(egress) = self.switches.each[switch as usize].choose(header) else {
            return self.journal.lose(&mut self.contents, now, header.ingress(), header, DropReason::NoRoute);
        };
        let content = self.contents.get_mut(header);
        let made = self.middleboxes.at(switch);
        if made.is_wan(egress) && !made.is_wan(header.ingress()) {
            match made.on_ack(now, header, content) {
                PauseChange::Nothing => {}
                PauseChange::Pause => self.pause_controlled(switch),
                PauseChange::Resume => self.resume_controlled(now, switch),
            }
        }
        let mut room = None;
        let header = match self.take_in(now, switch, egress, header, &mut room) {
            Ok(header) => header,
            Err(reason) => return self.journal.lose(&mut self.contents, now, egress, header, reason),
        };
        let content = self.contents.get(header);
        match self.middleboxes.at(switch).lane(now, egress, header, content) {
            SiteQueue::Normal => self.enqueue_normal(now, egress, header),
            SiteQueue::Controlled => self.enqueue_controlled(now, egress, header),
        }
    }

    /// Enqueues a packet as in any switch, but reports transmissions to the middlebox.
    fn enqueue_normal(&mut self, now: Time, id: PortId, header: &Header) {
        let port = &mut self.lines.ports[id as usize];
        let mut room = None;
        let header = as_queued(&mut self.lines.marker, &self.lines.wires.specs, id, port, header, &mut room);
        let class = usize::from(header.class());
        if port.starts_at_once(class, now) {
            self.transmit_boxed(now, id, header, SiteQueue::Normal);
        } else {
            port.push(class, header);
        }
    }

    fn enqueue_controlled(&mut self, now: Time, id: PortId, header: &Header) {
        let port = &mut self.lines.ports[id as usize];
        let switch = port.node - self.lines.wires.hosts;
        let (ndt, stats) = self.middleboxes.at(switch).ndt.as_mut().expect("it controls this queue");
        let first_port = self.switches.each[switch as usize].first_port;
        ndt.queues[(id - first_port) as usize].controlled.push(*header);
        ndt.controlled_bytes += u64::from(header.wire_bytes());
        stats.max_controlled_bytes = stats.max_controlled_bytes.max(ndt.controlled_bytes);
        port.queued_bytes[usize::from(header.class())] += u32::from(header.wire_bytes());
        port.max_queue_bytes = port.max_queue_bytes.max(port.total_queued_bytes());
        if !ndt.is_paused() {
            port.backlog |= CONTROLLED;
        }
        port.tx_free = port.tx_free.max(now);
        self.advance(now, id);
    }

    /// Executes every service of a port with a middlebox that begins up to `now`.
    pub(crate) fn serve_boxed_port(&mut self, now: Time, id: PortId) {
        while self.lines.ports[id as usize].eligible_by(now).is_some() {
            self.serve_boxed_port_once(id);
        }
    }

    fn serve_boxed_port_once(&mut self, id: PortId) {
        let port = &mut self.lines.ports[id as usize];
        let (start, eligible) = (port.tx_free, port.eligible());
        let switch = port.node - self.lines.wires.hosts;
        let index = (id - self.switches.each[switch as usize].first_port) as usize;
        let normal = eligible & !CONTROLLED;
        let made = self.middleboxes.at(switch);
        let mut lane = SiteQueue::Normal;
        // Control packets precede both queues.
        if let (Some((ndt, _)), true) = (&mut made.ndt, normal & 1 == 0) {
            lane = ndt.next_lane(index, normal != 0, eligible & CONTROLLED != 0);
        }
        let header = match (lane, &mut made.ndt) {
            (SiteQueue::Controlled, Some((ndt, _))) => {
                let waiting = &mut ndt.queues[index].controlled;
                let header = waiting.pop();
                if waiting.is_empty() {
                    port.backlog &= !CONTROLLED;
                }
                ndt.controlled_bytes -= u64::from(header.wire_bytes());
                port.queued_bytes[usize::from(header.class())] -= u32::from(header.wire_bytes());
                header
            }
            _ => {
                let class = self.lines.scheduler.next_class(id, port, normal);
                let header = served(&mut self.lines.marker, &self.lines.wires.specs, id, port, class);
                if let (Some((ndt, _)), 0) = (&mut made.ndt, port.backlog & !CONTROLLED & !1) {
                    ndt.drained(index);
                }
                header
            }
        };
        self.transmit_boxed(start, id, &header, lane);
    }

    fn transmit_boxed(&mut self, start: Time, id: PortId, header: &Header, lane: SiteQueue) {
        let switch = self.lines.ports[id as usize].node - self.lines.wires.hosts;
        let middlebox = self.middleboxes.at(switch);
        let answer = middlebox.on_transmit(start, id, header, self.contents.get_mut(header), lane);
        if let Some(answer) = answer {
            let bytes = middlebox.lens.answer_bytes;
            let back = Header::new(header.dst(), header.src(), header.path(), bytes, 0, false);
            middlebox.outbox.push_back((start, id, back.with_content(self.contents.insert(answer))));
            // If this service was not part of a window, the next window must send the answer.
            let due = self.lines.wires.due_of_switch(switch);
            *due = start.min(*due);
        }
        self.transmit(start, id, header);
    }

    fn pause_controlled(&mut self, switch: u32) {
        for id in self.switches.each[switch as usize].ports() {
            self.lines.ports[id as usize].backlog &= !CONTROLLED;
        }
    }

    fn resume_controlled(&mut self, now: Time, switch: u32) {
        let Some((ndt, _)) = self.middleboxes.get(switch).and_then(|made| made.ndt.as_ref()) else {
            return;
        };
        for (id, queues) in self.switches.each[switch as usize].ports().zip(&ndt.queues) {
            if !queues.controlled.is_empty() {
                let port = &mut self.lines.ports[id as usize];
                port.backlog |= CONTROLLED;
                // The queue could not be served before this instant.
                port.tx_free = port.tx_free.max(now);
            }
        }
    }

    /// Reports to the port's middlebox, if it has one, that the newest packet of the queue was removed from it.
    pub(crate) fn note_taken_out(&mut self, id: PortId, header: &Header) {
        let port = &self.lines.ports[id as usize];
        if port.is(HAS_MIDDLEBOX) {
            let switch = port.node - self.lines.wires.hosts;
            self.middleboxes.at(switch).on_left(id, header, self.contents.get(header), SiteQueue::Normal);
        }
    }

    /// Moves the packets of a port's controlled queue to the end of the queue of their class, and clears the counts
    /// of their flows. Precedes the loss of all packets of the port.
    pub(crate) fn give_up_controlled(&mut self, id: PortId) {
        let port = &mut self.lines.ports[id as usize];
        let switch = port.node - self.lines.wires.hosts;
        let index = (id - self.switches.each[switch as usize].first_port) as usize;
        let made = self.middleboxes.at(switch);
        for header in port.queues.iter().flat_map(Ring::iter) {
            made.on_left(id, header, self.contents.get(header), SiteQueue::Normal);
        }
        port.backlog &= !CONTROLLED;
        while let Some(header) =
            made.ndt.as_ref().and_then(|(ndt, _)| ndt.queues[index].controlled.front().copied())
        {
            made.on_left(id, &header, self.contents.get(&header), SiteQueue::Controlled);
            if let Some((ndt, _)) = &mut made.ndt {
                ndt.queues[index].controlled.pop();
                ndt.controlled_bytes -= u64::from(header.wire_bytes());
            }
            let class = usize::from(header.class());
            port.queues[class].push(header);
            port.backlog |= 1 << class;
        }
    }

    /// Iterates over the packets in a port's controlled queue.
    pub(crate) fn controlled(&self, id: PortId) -> impl Iterator<Item = &Header> {
        let made = self.lines.switch_of(id).and_then(|switch| self.middleboxes.get(switch));
        let ndt = made.and_then(|made| made.ndt.as_ref().map(|(ndt, _)| (ndt, made.first_port)));
        ndt.into_iter().flat_map(move |(ndt, first)| ndt.queues[(id - first) as usize].controlled.iter())
    }
}
