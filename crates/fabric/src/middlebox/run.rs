//! A switch with a middlebox, through a window: everything in order of time, every service an event.

use pathweave_units::Time;

use super::{ExternalConfig, Lane, Lens, Middlebox, MiddleboxStats, Place, Turn};
use crate::event::DropReason;
use crate::fabric::Fabric;
use crate::hop::{as_queued, served};
use crate::packet::{CORRUPT, Header, LOST, PFC};
use crate::port::{BOXED, CONTROLLED, PortId};
use crate::switch::Window;

/// A box that is certain to be there.
const BOXED_SWITCH: &str = "ports are marked where their switch has a middlebox";

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Makes a switch an external one with a middlebox. To be called before anything is sent.
    pub fn attach_middlebox(&mut self, switch: u32, config: &ExternalConfig, lens: Lens<P>, place: Place) {
        let ports = self.switches[switch as usize].ports();
        let wan = ports.clone().map(|port| self.ports[port as usize].is(crate::port::WAN)).collect();
        ports.clone().for_each(|port| self.ports[port as usize].flags |= BOXED);
        self.boxes.resize_with(self.switches.len(), || None);
        let made = Middlebox::new(config, lens, place, ports.start, wan);
        self.boxes[switch as usize] = Some(Box::new(made));
    }

    /// What the middlebox of a switch has counted; `None` where there is none.
    pub fn middlebox_stats(&self, switch: u32) -> Option<MiddleboxStats> {
        self.boxes.get(switch as usize)?.as_ref().map(|made| made.stats())
    }

    #[inline]
    pub(crate) fn has_middlebox(&self, switch: u32) -> bool {
        self.boxes.get(switch as usize).is_some_and(Option::is_some)
    }

    fn middlebox(&mut self, switch: u32) -> &mut Middlebox<P> {
        self.boxes[switch as usize].as_mut().expect(BOXED_SWITCH)
    }

    /// Takes the switch through the window. Returns when something happens there next, but for arrivals.
    pub(crate) fn run_boxed(&mut self, last: Time, switch: u32, window: &mut Window<C>) -> Time {
        window.sort_by_time();
        for header in window.by_time() {
            let now = header.arrival();
            self.serve_boxed(now, switch);
            let impaired = self.wires.links[header.ingress() as usize].impaired;
            let header = if impaired | header.is(LOST | CORRUPT | PFC) {
                self.inspect(now, *header)
            } else {
                Some(*header)
            };
            if let Some(header) = header {
                self.forward_boxed(now, switch, &header);
            }
        }
        self.serve_boxed(last, switch);
        let service = self.next_service(switch).map_or(Time::MAX, |(due, _)| due);
        service.min(self.resumes_at(switch))
    }

    fn resumes_at(&self, switch: u32) -> Time {
        let made = self.boxes[switch as usize].as_ref().expect(BOXED_SWITCH);
        made.ndt.as_ref().and_then(|(ndt, _)| ndt.resumes_at()).unwrap_or(Time::MAX)
    }

    /// Executes everything due up to `until`, in order of time and port.
    fn serve_boxed(&mut self, until: Time, switch: u32) {
        loop {
            self.post_answers(switch);
            let (due, port) = self.next_service(switch).unwrap_or((Time::MAX, 0));
            let resume = self.resumes_at(switch);
            if resume <= due.min(until) {
                let (ndt, stats) = self.middlebox(switch).ndt.as_mut().expect("it is paused");
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

    /// Sends what the middlebox has emitted.
    fn post_answers(&mut self, switch: u32) {
        while let Some((at, ingress, header)) = self.middlebox(switch).outbox.pop_front() {
            // It counts as having come in by the port it answers for.
            let header = header.with_ingress(ingress);
            let before = self.contents.alive();
            self.forward_boxed(at, switch, &header);
            if self.contents.alive() < before
                && let Some((_, stats)) = &mut self.middlebox(switch).nsf
            {
                stats.answers_lost += 1;
            }
        }
    }

    fn forward_boxed(&mut self, now: Time, switch: u32, header: &Header) {
        let Some(egress) = self.switches[switch as usize].choose(header) else {
            return self.lose(now, header.ingress(), header, DropReason::NoRoute);
        };
        let content = self.contents.get(header);
        let made = self.boxes[switch as usize].as_mut().expect(BOXED_SWITCH);
        if made.is_wan(egress) && !made.is_wan(header.ingress()) {
            match made.on_ack(now, header, content) {
                Turn::Nothing => {}
                Turn::Pause => self.pause_controlled(switch),
                Turn::Resume => self.resume_controlled(now, switch),
            }
        }
        if self.may_leave(now, switch, egress, header) {
            let content = self.contents.get(header);
            let made = self.boxes[switch as usize].as_mut().expect(BOXED_SWITCH);
            match made.lane(now, egress, header, content) {
                Lane::Normal => self.enqueue_normal(now, egress, header),
                Lane::Controlled => self.enqueue_controlled(now, egress, header),
            }
        }
    }

    /// As in any switch, but that the middlebox sees what leaves.
    fn enqueue_normal(&mut self, now: Time, id: PortId, header: &Header) {
        let port = &mut self.ports[id as usize];
        let mut room = None;
        let header = as_queued(&mut self.marker, &self.wires.specs, id, port, header, &mut room);
        let class = usize::from(header.class());
        if port.is_turn_of(class, now) {
            self.transmit_boxed(now, id, header, Lane::Normal);
        } else {
            port.push(class, header);
        }
    }

    fn enqueue_controlled(&mut self, now: Time, id: PortId, header: &Header) {
        let port = &mut self.ports[id as usize];
        let switch = port.node - self.wires.hosts;
        let (ndt, stats) =
            self.boxes[switch as usize].as_mut().and_then(|made| made.ndt.as_mut()).expect(BOXED_SWITCH);
        let first_port = self.switches[switch as usize].first_port;
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

    /// Every service of a port with a middlebox that begins up to `now`.
    pub(crate) fn serve_boxed_port(&mut self, now: Time, id: PortId) {
        while self.ports[id as usize].serves_by(now).is_some() {
            self.serve_boxed_port_once(id);
        }
    }

    fn serve_boxed_port_once(&mut self, id: PortId) {
        let port = &mut self.ports[id as usize];
        let (start, eligible) = (port.tx_free, port.eligible());
        let switch = port.node - self.wires.hosts;
        let index = (id - self.switches[switch as usize].first_port) as usize;
        let normal = eligible & !CONTROLLED;
        let made = self.boxes[switch as usize].as_mut().expect(BOXED_SWITCH);
        let mut lane = Lane::Normal;
        // Control comes before both queues.
        if let (Some((ndt, _)), true) = (&mut made.ndt, normal & 1 == 0) {
            lane = ndt.next_lane(index, normal != 0, eligible & CONTROLLED != 0);
        }
        let header = match (lane, &mut made.ndt) {
            (Lane::Controlled, Some((ndt, _))) => {
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
                let class = self.scheduler.next_class(id, port, normal);
                let header = served(&mut self.marker, &self.wires.specs, id, port, class);
                if let (Some((ndt, _)), 0) = (&mut made.ndt, port.backlog & !CONTROLLED & !1) {
                    ndt.drained(index);
                }
                header
            }
        };
        self.transmit_boxed(start, id, &header, lane);
    }

    fn transmit_boxed(&mut self, start: Time, id: PortId, header: &Header, lane: Lane) {
        let switch = self.ports[id as usize].node - self.wires.hosts;
        let made = self.boxes[switch as usize].as_mut().expect(BOXED_SWITCH);
        let answer = made.on_transmit(start, id, header, self.contents.get_mut(header), lane);
        if let Some(answer) = answer {
            let bytes = made.lens.answer_bytes;
            let back = Header::new(header.dst(), header.src(), header.path(), bytes, 0, false);
            made.outbox.push_back((start, id, back.with_content(self.contents.insert(answer))));
            // Where this service was not one of a window, the next one must send it.
            let due = self.wires.due_of_switch(switch);
            *due = start.min(*due);
        }
        self.transmit(start, id, header);
    }

    fn pause_controlled(&mut self, switch: u32) {
        for id in self.switches[switch as usize].ports() {
            self.ports[id as usize].backlog &= !CONTROLLED;
        }
    }

    fn resume_controlled(&mut self, now: Time, switch: u32) {
        let Some((ndt, _)) = self.boxes[switch as usize].as_ref().and_then(|made| made.ndt.as_ref()) else {
            return;
        };
        for (id, queues) in self.switches[switch as usize].ports().zip(&ndt.queues) {
            if !queues.controlled.is_empty() {
                let port = &mut self.ports[id as usize];
                port.backlog |= CONTROLLED;
                // It could not be served before this instant.
                port.tx_free = port.tx_free.max(now);
            }
        }
    }

    /// What waits in a port's controlled queue goes to the end of its class's queue; flows forget what waits there. For
    /// who is about to drop it all.
    pub(crate) fn give_up_controlled(&mut self, id: PortId) {
        let port = &mut self.ports[id as usize];
        let switch = port.node - self.wires.hosts;
        let index = (id - self.switches[switch as usize].first_port) as usize;
        let made = self.boxes[switch as usize].as_mut().expect(BOXED_SWITCH);
        for header in port.queues.iter().flat_map(crate::ring::Ring::iter) {
            made.on_left(id, header, self.contents.get(header), Lane::Normal);
        }
        port.backlog &= !CONTROLLED;
        while let Some(header) =
            made.ndt.as_ref().and_then(|(ndt, _)| ndt.queues[index].controlled.front().copied())
        {
            made.on_left(id, &header, self.contents.get(&header), Lane::Controlled);
            if let Some((ndt, _)) = &mut made.ndt {
                ndt.queues[index].controlled.pop();
                ndt.controlled_bytes -= u64::from(header.wire_bytes());
            }
            let class = usize::from(header.class());
            port.queues[class].push(header);
            port.backlog |= 1 << class;
        }
    }

    /// What waits in a port's controlled queue.
    pub(crate) fn controlled(&self, id: PortId) -> impl Iterator<Item = &Header> {
        let switch = self.ports[id as usize].node.checked_sub(self.wires.hosts);
        let made = switch.and_then(|switch| self.boxes.get(switch as usize)?.as_ref());
        let ndt = made.and_then(|made| made.ndt.as_ref().map(|(ndt, _)| (ndt, made.first_port)));
        ndt.into_iter().flat_map(move |(ndt, first)| ndt.queues[(id - first) as usize].controlled.iter())
    }
}
