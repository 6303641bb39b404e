//! How a message is carried: its parts wait in the lane of a queue pair, in the order of posting, and are served one after
//! another, long ones as flows, short ones at once.

use pathweave_execution::{Completed, ConnId, QueuePairs, SenderTally, Share, shares};
use pathweave_results::FlowRecord;
use pathweave_sim::PathUse;
use pathweave_transport::Status;
use pathweave_units::{Duration, HostId, PathId, Spread, Time, mix64};
use pathweave_workload::{Moment, TaskId};

use crate::agenda::Event;
use crate::engine::Engine;
use crate::gauge::collisions;
use crate::lane::{Lane, Part, Service, Single};
use crate::model::Collides;
use crate::recovery::Pace;
use crate::sizes::Size;
use crate::solver::{FlowId, Use};

/// Messages of so many bytes on the wire, or fewer, are sent before any feedback.
const SHORT: u64 = 30_000;

/// Hosts that choose paths they have found free do so after so many idle times of a path, of which a round trip is two.
const FIND_WITHIN: f64 = 8.0;
/// How far the wait of a message's last packet is from the mean at most, in relation: fitted to the 99th percentile of messages of
/// rings, and to halving and doubling in the mean of schemes.
const SPREAD_OF_WAITS: f64 = 0.3;

/// A number from 0 to 1 of 64 bits.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

impl Engine<'_> {
    fn ends(&self, message: u32) -> (HostId, HostId) {
        let message = &self.spec.graph.messages()[message as usize];
        (message.src, message.dst)
    }

    /// A message is posted.
    pub(crate) fn begin(&mut self, now: Time, flow: u32) {
        let message = self.spec.graph.messages()[flow as usize];
        let conn = self.execution.connections.of(flow);
        let record = FlowRecord { start_ps: now.as_ps(), ..self.execution.record(flow) };
        if self.execution.connections[conn].queue_pairs.is_empty() && !self.open(conn) {
            return self.execution.unreachable(now, record);
        }
        let lanes = self.execution.connections[conn].queue_pairs.len();
        let first = self.execution.connections[conn].queue_pairs[0];
        let pair = self.lanes[first as usize].pair;
        // Parts of a message take a path each.
        let single = self.lanes[first as usize].used();
        let used = if lanes == 1 { single } else { PathUse::All };
        let Some(whole) = self.size(pair, used, message.size.get()) else {
            return self.execution.unreachable(now, record);
        };
        let size = whole.0;
        let acknowledged = self.back(pair);
        let record = FlowRecord {
            ideal_fct_ps: size.ideal.as_ps(),
            ideal_acked_ps: Some((size.ideal + acknowledged).as_ps()),
            ..record
        };
        let parts = shares(message.size.get(), lanes);
        self.execution.posted(record, parts.len() as u16);
        self.execution.expected(flow, parts.len() as u16);
        for (Share { len, .. }, number) in parts.zip(0..) {
            let lane = self.execution.connections[conn].queue_pairs[usize::from(number)];
            let (part, at) = (Part { message: flow, number, bytes: len }, &mut self.lanes[lane as usize]);
            if !at.is_idle(now) {
                at.waiting.push_back(part);
                self.serve_next(now, lane);
            } else if let Some(sized) = if lanes == 1 { Some(whole) } else { self.size(pair, single, len) } {
                self.serve(now, lane, part, sized);
            }
        }
    }

    /// Makes the lanes of a connection. False: there is no way to its receiver.
    fn open(&mut self, conn: ConnId) -> bool {
        let connection = &self.execution.connections[conn];
        let (src, dst, group) = (connection.src, connection.dst, connection.group);
        let spread = self.models[group.index()].spread;
        let pair = self.network.pair(spread, src, dst);
        if self.network.pairs[pair as usize].profile.is_none() {
            return false;
        }
        let queue_pairs = self.spec.scheme_of(group).scheme.queue_pairs;
        let mut lanes = QueuePairs::with_capacity(usize::from(queue_pairs));
        for index in 0..queue_pairs {
            let single = if spread.is_single() {
                let Some(mut chooser) = self.network.ways.chooser(conn, index, group, (src, dst)) else {
                    return false;
                };
                let (path, route) = (PathId(0), Vec::new());
                Some(match spread {
                    Spread::OnePath => {
                        let path = chooser.next_path();
                        let route = self.network.route(src, dst, path);
                        Single { path, route, chooser: None }
                    }
                    _ => Single { path, route, chooser: Some(Box::new(chooser)) },
                })
            } else {
                None
            };
            let number = self.free_lanes.pop().unwrap_or_else(|| {
                self.lanes.push(Lane::default());
                self.lanes.len() as u32 - 1
            });
            let lane = &mut self.lanes[number as usize];
            lane.conn = conn;
            lane.pair = pair;
            lane.single = single;
            lane.pace = Pace::default();
            lane.free_at = Time::ZERO;
            lanes.push(number);
        }
        self.execution.connections[conn].queue_pairs = lanes;
        true
    }

    fn profile(&self, pair: u32) -> Option<u32> {
        self.network.pairs[pair as usize].profile
    }

    /// What a message of so many bytes takes between the hosts of a pair over one path or all, and the rate of these.
    fn size(&mut self, pair: u32, used: PathUse, bytes: u64) -> Option<(Size, f64)> {
        let number = self.profile(pair)?;
        Some((self.sizes.of(number, used, bytes), self.sizes.line_rate(number, used)))
    }

    /// How long an acknowledgement takes back between the hosts of a pair.
    fn back(&self, pair: u32) -> Duration {
        self.profile(pair).map_or(Duration::ZERO, |number| self.sizes.back(number))
    }

    /// The next part that waits in a lane has its turn, if nothing is before it.
    pub(crate) fn serve_next(&mut self, now: Time, lane: u32) {
        loop {
            let at = &mut self.lanes[lane as usize];
            if at.serving.is_some() || at.waits_until_free || at.waiting.is_empty() {
                return;
            }
            if at.free_at > now {
                at.waits_until_free = true;
                let free_at = at.free_at;
                return self.agenda.push(free_at, Event::LaneFree(lane));
            }
            let part = at.waiting.pop_front().expect("it is not empty");
            let (pair, used) = (at.pair, at.used());
            if let Some(sized) = self.size(pair, used, part.bytes) {
                self.serve(now, lane, part, sized);
            }
        }
    }

    /// A part of this size has its turn.
    fn serve(&mut self, now: Time, lane: u32, part: Part, (size, line): (Size, f64)) {
        let (src, dst) = self.ends(part.message);
        if let Some(single) = &mut self.lanes[lane as usize].single
            && let Some(chooser) = &mut single.chooser
        {
            single.path = chooser.next_path();
            single.route = self.network.route(src, dst, single.path);
        }
        self.find_uses(lane, (src, dst));
        if size.wire <= SHORT {
            self.serve_short(now, lane, part, (size, line));
        } else {
            self.serve_long(now, lane, part, (size, line));
        }
    }

    /// What the messages of a lane use, into `uses`.
    fn find_uses(&mut self, lane: u32, ends: (HostId, HostId)) {
        let at = &self.lanes[lane as usize];
        match &at.single {
            Some(single) => self.network.of_route(&single.route, &mut self.uses),
            None => self.network.sprayed(at.pair, ends, &mut self.uses),
        }
    }

    fn serve_long(&mut self, now: Time, lane: u32, part: Part, (size, line): (Size, f64)) {
        let pair = self.lanes[lane as usize].pair;
        let group = self.spec.graph.messages()[part.message as usize].group.0;
        let every = self.models[usize::from(group)].packets_an_ack;
        let wire = size.wire as f64;
        let acks = (size.packets.div_ceil(every) * u64::from(self.sizes.ack_bytes())) as f64 / wire;
        for &Use { resource, share } in &self.uses {
            if self.network.at_switch[resource as usize] {
                let capacity = self.network.capacity[resource as usize];
                let queue = &mut self.queues[resource as usize];
                queue.advance(now, capacity, &self.law);
                queue.long_message(wire * share, capacity, &self.law);
            }
        }
        let recovery = self.models[usize::from(group)].recovery.filter(|_| !self.marks.open);
        let pace = &mut self.lanes[lane as usize].pace;
        let limit = recovery.map_or(line, |recovery| pace.advance(now, line, &recovery));
        let flow = self.solver.add(&self.uses, limit, acks);
        if recovery.is_some() {
            self.recovering.begins(flow, pace);
        }
        if self.services.len() <= flow as usize {
            self.services.resize(flow as usize + 1, None);
        }
        let gauges = self.network.pairs[pair as usize].gauges;
        self.services[flow as usize] = Some(Service {
            left: wire,
            rate: 0.0,
            since: now,
            efficiency: self.efficiency(lane),
            gauges,
            group,
            lane,
            remembers: line,
            limited_since: Time::MAX,
            line,
            part,
            wire,
            began: now,
            base: size.base,
            crossed: self.crossed(now, pair, gauges),
            pair,
            acks,
            counted: 0.0,
        });
        self.lanes[lane as usize].serving = Some(flow);
    }

    /// What arrives of what a lane sends: nothing on a path that leads nowhere, less where sprayed packets meet a dead link.
    pub(crate) fn efficiency(&self, lane: u32) -> f64 {
        let at = &self.lanes[lane as usize];
        match &at.single {
            Some(single) if single.route.is_empty() => 0.0,
            Some(_) => 1.0,
            None => 1.0 - self.network.pairs[at.pair as usize].lost,
        }
    }

    /// What has crossed the links of both ends' switches, and what of that the pair has sent.
    fn crossed(&self, now: Time, pair: u32, gauges: Option<(u32, u32)>) -> [f64; 3] {
        let Some((from, to)) = gauges else { return [0.0; 3] };
        let of_pair = self.levels_of_pairs[pair as usize].crossed(now);
        [self.levels[from as usize][0].crossed(now), self.levels[to as usize][1].crossed(now), of_pair]
    }

    /// A short message is sent whole at line rate. It waits in the queues it meets, its own host's among them, of which only
    /// the longer counts: what waits there comes later to the switches.
    fn serve_short(&mut self, now: Time, lane: u32, part: Part, (size, line): (Size, f64)) {
        let wire = size.wire as f64;
        let (mut at_host, mut at_switches) = (0.0f64, 0.0);
        let pair = &self.network.pairs[self.lanes[lane as usize].pair as usize];
        let single = self.lanes[lane as usize].single.is_some();
        for &Use { resource, share } in &self.uses {
            let capacity = self.network.capacity[resource as usize];
            let queue = &mut self.queues[resource as usize];
            queue.advance(now, capacity, &self.law);
            if self.network.at_switch[resource as usize] {
                let (users, services) = (self.solver.users(resource), &self.services);
                let left =
                    users.filter_map(|flow| services[flow as usize].as_ref()).map(|service| service.left);
                let bytes = queue.bytes(left);
                let between = pair.between.iter().find(|between| between.resource == resource);
                let crosses = if single { 1.0 } else { between.map_or(share, |between| between.all) };
                if capacity > 0.0 {
                    at_switches += crosses * bytes / capacity;
                }
                self.marks.short_message_met(bytes);
            } else if capacity > 0.0 {
                at_host = at_host.max(queue.burst() / capacity);
            }
            queue.short_message(wire * share);
            self.shorts.add(now, resource, wire * share);
        }
        let efficiency = self.efficiency(lane);
        let (src, dst) = self.ends(part.message);
        let acks = f64::from(self.sizes.ack_bytes()) / wire;
        self.ledger.add(&self.network, &self.lanes[lane as usize], (src, dst), (wire, acks));
        if let Some((from, to)) = pair.gauges {
            self.levels[from as usize][0].add(wire);
            self.levels[to as usize][1].add(wire);
            self.levels_of_pairs[self.lanes[lane as usize].pair as usize].add(wire);
        }
        self.lanes[lane as usize].free_at = now + Duration::from_ps((wire / line).ceil() as u64);
        if efficiency == 0.0 {
            // It is lost, and nothing here sends it again before a path leads there.
            self.marks.lost();
            self.lanes[lane as usize].free_at = now;
            return self.hold(lane, part);
        }
        let wait = Duration::from_ps(at_host.max(at_switches) as u64);
        self.arrives(now, lane, part, now + size.ideal + wait);
    }

    /// A short message waits for a path to its receiver.
    fn hold(&mut self, lane: u32, part: Part) {
        let at = &mut self.lanes[lane as usize];
        at.waiting.push_front(part);
        at.waits_until_free = true;
    }

    /// A part of a message arrives at this instant, and its sender hears of it. That is known for good; so where
    /// nothing waits for it, it is entered at once, and only what begins something is an event.
    fn arrives(&mut self, now: Time, lane: u32, part: Part, at: Time) {
        debug_assert!(at >= now);
        let Lane { pair, conn, .. } = self.lanes[lane as usize];
        let (message, acked) = (part.message, at + self.back(pair));
        let whole = self.execution.connections[conn].queue_pairs.len() == 1;
        let graph = &self.spec.graph;
        let awaited =
            |moment| graph.has_dependencies() && graph.informed(TaskId(message), moment).next().is_some();
        let ahead = whole && acked <= self.until.0 && !awaited(Moment::Completion);
        if ahead && !awaited(Moment::Delivery) {
            self.events += 1;
            self.on_delivered(at, message, part.number);
        } else {
            self.agenda.push(at, Event::Delivered { message, part: part.number });
        }
        if ahead {
            self.events += 1;
            self.known = self.known.max(acked);
            self.on_acknowledged(acked, message);
        } else {
            self.agenda.push(acked, Event::Acknowledged { message });
        }
    }

    /// All of a part has left.
    pub(crate) fn finish(&mut self, now: Time, flow: FlowId) {
        let mut service = self.services[flow as usize].take().expect("a flow that ends is in service");
        service.advance(now);
        self.completions.remove(flow);
        self.solver.remove(flow);
        let Service { part, lane, gauges, pair, wire, rate, .. } = service;
        let mut wait = 0.0;
        if let Some((from, to)) = gauges {
            self.levels[from as usize][0].change(now, -rate);
            self.levels[to as usize][1].change(now, -rate);
            self.levels_of_pairs[pair as usize].change(now, -rate);
            let model = self.models[usize::from(service.group)];
            let after = self.crossed(now, pair, gauges);
            let links = [(from, 0), (to, 1)].map(|(class, way): (u32, usize)| {
                (self.network.gauges[class as usize], after[way] - service.crossed[way])
            });
            let span = (now.as_ps() - service.began.as_ps()) as f64;
            if model.collides != Collides::Never {
                let packet = f64::from(self.sizes.packet_bytes());
                let [_, all, ours] = [0, 1, 2].map(|way| after[way] - service.crossed[way]);
                let ordered = if all > 0.0 { ours / all } else { 0.0 };
                wait = collisions(span, packet, links, ordered);
                if model.collides == Collides::AtFirst {
                    let most = FIND_WITHIN * service.base.as_ps() as f64;
                    wait *= (most / span).min(1.0).sqrt();
                }
                wait *= self.chance(part);
                if model.recovery.is_some() {
                    self.marks.sprayed_at_random(wire, span, links);
                }
            }
            if model.spread.is_by_capacity() {
                self.marks.sprayed(wire, span, links);
            }
        }
        self.count(&service, wire - service.counted);
        self.lanes[lane as usize].serving = None;
        self.arrives(now, lane, part, now + service.base + Duration::from_ps(wait as u64));
        self.serve_next(now, lane);
    }

    /// By what the wait of a part of a message is longer than the mean. Ranks that stand for others have none: it would be that of
    /// all of them.
    fn chance(&self, part: Part) -> f64 {
        if self.spec.graph.folding().is_some() {
            return 1.0;
        }
        let number = mix64(self.spec.seed ^ mix64(u64::from(part.message) << 16 | u64::from(part.number)));
        1.0 + SPREAD_OF_WAITS * (2.0 * unit(number) - 1.0)
    }

    /// Enters bytes of a service in the ledger.
    fn count(&mut self, service: &Service, bytes: f64) {
        let ends = self.ends(service.part.message);
        self.ledger.add(&self.network, &self.lanes[service.lane as usize], ends, (bytes, service.acks));
    }

    /// Enters what all services have sent so far.
    pub(crate) fn count_all(&mut self, now: Time) {
        for flow in 0..self.services.len() {
            if let Some(mut service) = self.services[flow] {
                service.advance(now);
                let bytes = service.wire - service.left - service.counted;
                service.counted += bytes;
                self.count(&service, bytes);
                self.services[flow] = Some(service);
            }
        }
    }

    pub(crate) fn on_delivered(&mut self, now: Time, message: u32, part: u16) {
        let conn = self.execution.connections.of(message);
        let size = self.spec.graph.messages()[message as usize].size.get();
        let bytes = match self.execution.connections[conn].queue_pairs.len() {
            // Gone where all has been acknowledged ahead.
            0 | 1 => size,
            lanes => shares(size, lanes).nth(usize::from(part)).map_or(0, |share| share.len),
        };
        if self.execution.part_delivered(now, message, bytes) {
            self.take_news();
        }
    }

    pub(crate) fn on_acknowledged(&mut self, now: Time, message: u32) {
        if self.execution.part_completed(now, message, Status::Success) == Completed::NotYet {
            return;
        }
        self.execution.ended(now, message);
        self.take_news();
        if self.execution.done_with(message, SenderTally::default()) {
            let conn = self.execution.connections.of(message);
            let lanes = std::mem::take(&mut self.execution.connections[conn].queue_pairs);
            for lane in lanes {
                self.lanes[lane as usize].single = None;
                self.free_lanes.push(lane);
            }
        }
    }

    /// The network has changed: routes, links, or both. Every message in service goes on over what there is now.
    pub(crate) fn rebuild(&mut self, now: Time) {
        self.count_all(now);
        self.ledger.flush(&mut self.network);
        let flows: Vec<FlowId> = (0..self.services.len() as FlowId)
            .filter(|&flow| self.services[flow as usize].is_some())
            .collect();
        for &flow in &flows {
            self.solver.move_to(flow, &[]);
        }
        self.network.rebuild(&mut self.solver);
        self.on_network();
        for lane in 0..self.lanes.len() {
            let Some(mut single) = self.lanes[lane].single.take() else { continue };
            let connection = &self.execution.connections[self.lanes[lane].conn];
            single.route = self.network.route(connection.src, connection.dst, single.path);
            self.lanes[lane].single = Some(single);
        }
        for flow in flows {
            let mut service = self.services[flow as usize].expect("it was there");
            let lane = service.lane;
            self.find_uses(lane, self.ends(service.part.message));
            service.efficiency = self.efficiency(lane);
            if service.efficiency < 1.0 {
                self.marks.lost();
            }
            self.services[flow as usize] = Some(service);
            let uses = std::mem::take(&mut self.uses);
            self.solver.move_to(flow, &uses);
            self.uses = uses;
        }
        for lane in 0..self.lanes.len() as u32 {
            let at = &mut self.lanes[lane as usize];
            if at.waits_until_free && at.free_at <= now {
                at.waits_until_free = false;
                self.serve_next(now, lane);
            }
        }
    }
}
