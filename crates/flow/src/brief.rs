//! Transport of short messages, which are sent before any feedback arrives.

use pathweave_execution::max_min::Use;
use pathweave_units::{Duration, Time};

use crate::engine::Engine;
use crate::lane::Part;
use crate::queue::QueueWaits;
use crate::sizes::Size;

impl Engine<'_> {
    /// Sends a short message whole at line rate. It waits for the short messages ahead of it and in the queues that
    /// long messages keep.
    pub(crate) fn serve_short(&mut self, now: Time, lane: u32, part: Part, size: Size) {
        let wire = size.wire as f64;
        let mut waits = QueueWaits::default();
        let pair = &self.network.pairs[self.lanes[lane as usize].pair as usize];
        let single = self.lanes[lane as usize].single.is_some();
        for (&Use { resource, share }, position) in self.uses.iter().zip(0..) {
            let capacity = self.network.capacity[resource as usize];
            let queue = &mut self.queues[resource as usize];
            queue.advance(now, capacity, &self.law);
            if self.network.at_switch[resource as usize] {
                let (users, services) = (self.solver.users(resource), &self.services);
                let left = users
                    .filter_map(|flow| services[flow as usize].as_ref())
                    .map(|service| service.remaining_bytes);
                let bytes = queue.bytes(left);
                let between = pair.between.iter().find(|between| between.resource == resource);
                let (hop, crosses) = match between {
                    _ if single => (position, 1.0),
                    Some(between) => (between.hop, between.crosses),
                    None => (u8::MAX, share),
                };
                if capacity > 0.0 {
                    waits.at_switch(hop, crosses / capacity, (bytes - queue.burst(), queue.burst()));
                }
                self.validity.short_message_met(bytes);
            } else if capacity > 0.0 {
                waits.at_host(queue.burst() / capacity);
            }
            queue.short_message(wire * share);
            self.shorts.add(now, resource, wire * share);
        }
        let efficiency = self.efficiency(lane);
        let (src, dst) = self.ends(part.message);
        let acks = f64::from(self.sizes.ack_bytes()) / wire;
        let (sent, acks) = if efficiency > 0.0 { (wire / efficiency, acks) } else { (wire, 0.0) };
        self.ledger.add(&self.network, &self.lanes[lane as usize], (src, dst), (sent, acks));
        if let Some((from, to)) = pair.gauges {
            self.levels[from as usize][0].add(wire);
            self.levels[to as usize][1].add(wire);
            self.levels_of_pairs[self.lanes[lane as usize].pair as usize].add(wire);
        }
        self.lanes[lane as usize].free_at = now + Duration::from_ps((wire / size.rate).ceil() as u64);
        if efficiency == 0.0 {
            // The message is lost. The model retransmits it when a path leads to the receiver again.
            self.validity.lost();
            self.lanes[lane as usize].free_at = now;
            return self.wait_for_route(lane, part);
        }
        let late = self.lateness(lane, part, &size, f64::from(self.sizes.packet_bytes()) / size.rate);
        self.schedule_arrival(now, lane, part, now + size.ideal + waits.sum() + late);
    }

    /// Makes a short message wait for a path to its receiver.
    fn wait_for_route(&mut self, lane: u32, part: Part) {
        let at = &mut self.lanes[lane as usize];
        at.waiting.push_front(part);
        at.waits_until_free = true;
    }
}
