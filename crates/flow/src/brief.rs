//! Transport of short messages, which are sent before any feedback arrives.

use pathweave_execution::max_min::Use;
use pathweave_units::{Duration, Time};

use crate::engine::Engine;
use crate::lane::Part;
use crate::model::Collides;
use crate::queue::QueueWaits;
use crate::sizes::Size;

/// Fraction of a message on a link from which on there is no choice among links.
const ONE_LINK: f64 = 0.75;

/// Short message that was sent at the present time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentShort {
    lane: u32,
    part: Part,
    size: Size,
}

impl Engine<'_> {
    /// Sends a short message whole at line rate. Its arrival is known when all messages of this time have been sent.
    pub(crate) fn serve_short(&mut self, now: Time, lane: u32, part: Part, size: Size) {
        let wire = size.wire as f64;
        for &Use { resource, share } in &self.uses {
            let queue = &mut self.queues[resource as usize];
            queue.advance(now, self.network.capacity[resource as usize], &self.law);
            queue.short_message(wire * share);
            self.shorts.add(now, resource, wire * share);
        }
        let pair = &self.network.pairs[self.lanes[lane as usize].pair as usize];
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
        self.sent_shorts.push(SentShort { lane, part, size });
    }

    /// Schedules the arrivals of the short messages that were sent at this time.
    pub(crate) fn deliver_shorts(&mut self, now: Time) {
        let mut sent = std::mem::take(&mut self.sent_shorts);
        for SentShort { lane, part, size } in sent.drain(..) {
            let wait = self.wait_of_short(now, lane, part, &size);
            let late = self.lateness(lane, part, &size, f64::from(self.sizes.packet_bytes()) / size.rate);
            self.schedule_arrival(now, lane, part, now + size.ideal + wait + late);
        }
        self.sent_shorts = sent;
    }

    /// Returns the time for which a short message waits behind others that are not longer, and in the queues that long
    /// messages keep.
    fn wait_of_short(&mut self, now: Time, lane: u32, part: Part, size: &Size) -> Duration {
        self.find_uses(lane, self.ends(part.message));
        let (wire, mut waits) = (size.wire as f64, QueueWaits::default());
        let packet = wire.min(f64::from(self.sizes.packet_bytes()));
        let pair = &self.network.pairs[self.lanes[lane as usize].pair as usize];
        let single = self.lanes[lane as usize].single.is_some();
        let group = self.spec.graph.messages()[part.message as usize].group;
        let collides = !single && self.models[group.index()].collides != Collides::Never;
        let mut scatter: f64 = 0.0;
        for (&Use { resource, share }, position) in self.uses.iter().zip(0..) {
            let capacity = self.network.capacity[resource as usize];
            let queue = &mut self.queues[resource as usize];
            queue.advance(now, capacity, &self.law);
            let ahead = queue.burst_ahead(wire * share, packet * share);
            if self.network.at_switch[resource as usize] {
                let (users, services) = (self.solver.users(resource), &self.services);
                let left = users
                    .filter_map(|flow| services[flow as usize].as_ref())
                    .map(|service| service.remaining_bytes);
                let standing = queue.bytes(left) - queue.burst();
                let between = pair.between.iter().find(|between| between.resource == resource);
                let (hop, crosses) = match between {
                    _ if single => (position, 1.0),
                    Some(between) => (between.hop, between.crosses),
                    None => (u8::MAX, share),
                };
                if capacity > 0.0 {
                    waits.at_switch(hop, crosses / capacity, (standing, ahead));
                    if collides && share < ONE_LINK {
                        scatter = scatter.max((ahead * packet).sqrt() / capacity);
                    }
                }
                self.validity.short_message_met(standing + ahead);
            } else if capacity > 0.0 {
                waits.at_host(ahead / capacity);
            }
        }
        if scatter > 0.0 {
            self.validity.short_message_collides(scatter / (size.ideal + waits.sum()).as_ps() as f64);
        }
        waits.sum()
    }

    /// Makes a short message wait for a path to its receiver.
    fn wait_for_route(&mut self, lane: u32, part: Part) {
        let at = &mut self.lanes[lane as usize];
        at.waiting.push_front(part);
        at.waits_until_free = true;
    }
}
