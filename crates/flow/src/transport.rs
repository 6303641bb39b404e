//! Transport of a message. Its parts wait in the lane of a queue pair in the order of posting and are served one
//! after the other. Long parts become flows of the solver; short ones are sent at once.

use pathweave_execution::{ConnId, MessagePart, PartCompletion, QueuePairs, SenderCounters, shares};
use pathweave_fabric::PortId;
use pathweave_policy::fluid::OverUnequalPaths;
use pathweave_records::FlowRecord;
use pathweave_sim::PathUse;
use pathweave_transport::Status;
use pathweave_units::{Duration, HostId, PathId, Spread, Time, mix64};
use pathweave_workload::{Moment, TaskId};

use crate::agenda::Event;
use crate::delays::UNEQUAL;
use crate::engine::Engine;
use crate::gauge::collision_wait;
use crate::lane::{Part, PathTimes, SendQueue, Service, SinglePath};
use crate::model::Collides;
use crate::recovery::RateControl;
use crate::sizes::Size;
use pathweave_execution::max_min::{FlowId, Use};

/// Largest size on the wire, in bytes, of a message that is sent before any feedback arrives.
const SHORT_MESSAGE_BYTES: u64 = 30_000;

/// Time in which hosts that choose uncongested paths find them, in idle one-way times of a path. A round trip is two
/// of these.
const PATH_SEARCH_TIMES: f64 = 8.0;
/// Largest relative deviation of the wait of a message's last packet from the mean. Fitted to the 99th percentile of
/// messages in rings, and to the mean of halving and doubling, for several schemes.
const SPREAD_OF_WAITS: f64 = 0.3;

/// Maps 64 random bits to a number from 0 to 1.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// Random numbers of a part.
#[derive(Clone, Copy, Debug)]
enum Draw {
    Wait = 0,
    Paths = 21,
    PathBack = 42,
}

impl Engine<'_> {
    pub(crate) fn ends(&self, message: u32) -> (HostId, HostId) {
        let message = &self.spec.graph.messages()[message as usize];
        (message.src, message.dst)
    }

    /// Posts a message.
    pub(crate) fn post(&mut self, now: Time, flow: u32) {
        self.post_since(now, now, flow);
    }

    /// Posts the messages again that have waited for a path.
    pub(crate) fn post_waiting(&mut self, now: Time) {
        for (posted, flow) in std::mem::take(&mut self.without_path) {
            self.post_since(now, posted, flow);
        }
    }

    /// Keeps a message without a path until routes change, as long as its sender does not give up. Otherwise reports its
    /// receiver as unreachable.
    fn wait_for_path(&mut self, now: Time, posted: Time, record: FlowRecord) {
        let gives_up = now.saturating_since(posted) >= self.spec.network.retransmission.give_up_after();
        let changes = self.network.routes.changes().len() > self.next_change;
        if gives_up || !changes {
            return self.execution.unreachable(now, record);
        }
        self.without_path.push((posted, record.flow));
    }

    fn post_since(&mut self, now: Time, posted: Time, flow: u32) {
        let message = self.spec.graph.messages()[flow as usize];
        if let Some(carrier) = &mut self.scale_up
            && self.execution.post_over(carrier, now, flow)
        {
            return;
        }
        let conn = self.execution.connections.of(flow);
        let record = FlowRecord { start_ps: posted.as_ps(), ..self.execution.record(flow) };
        if self.execution.connections[conn].queue_pairs.is_empty() && !self.open(conn) {
            return self.wait_for_path(now, posted, record);
        }
        let lanes = self.execution.connections[conn].queue_pairs.len();
        let first = self.execution.connections[conn].queue_pairs[0];
        let pair = self.lanes[first as usize].pair;
        // If a message is divided, its parts take different paths.
        let single = self.lanes[first as usize].used();
        let used = if lanes == 1 { single } else { PathUse::All };
        let Some(whole) = self.size(pair, used, message.size.get()) else {
            return self.wait_for_path(now, posted, record);
        };
        let number = self.profile(pair).expect("its size is known");
        let [ideal, acknowledged] = self.sizes.ideal(number, used, (whole.0, message.size.get()), lanes);
        let record =
            FlowRecord { ideal_fct_ps: ideal.as_ps(), ideal_acked_ps: Some(acknowledged.as_ps()), ..record };
        let parts = shares(message.size.get(), lanes);
        self.execution.posted(record, parts.len() as u16);
        self.execution.expected(flow, parts.len() as u16);
        for (MessagePart { len, .. }, number) in parts.zip(0..) {
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

    /// Creates the lanes of a connection. Returns false if the receiver is unreachable.
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
                let Some(mut chooser) = self.network.routes.chooser(conn, index, group, (src, dst)) else {
                    return false;
                };
                let (path, route) = (PathId(0), Vec::new());
                Some(match spread {
                    Spread::OnePath => {
                        let path = chooser.next_path();
                        let route = self.network.route(src, dst, path);
                        let times = self.times_of(pair, (src, dst), path, &route);
                        SinglePath { path, route, times, chooser: None }
                    }
                    _ => SinglePath { path, route, times: None, chooser: Some(Box::new(chooser)) },
                })
            } else {
                None
            };
            let number = self.free_lanes.pop().unwrap_or_else(|| {
                self.lanes.push(SendQueue::default());
                self.lanes.len() as u32 - 1
            });
            let lane = &mut self.lanes[number as usize];
            lane.conn = conn;
            lane.pair = pair;
            lane.single = single;
            lane.pace = RateControl::default();
            lane.free_at = Time::ZERO;
            lanes.push(number);
        }
        self.execution.connections[conn].queue_pairs = lanes;
        true
    }

    fn profile(&self, pair: u32) -> Option<u32> {
        self.network.pairs[pair as usize].profile
    }

    /// Returns the size of a message between the hosts of a pair, over one path or all, and the rate of these paths at
    /// their best.
    fn size(&mut self, pair: u32, used: PathUse, bytes: u64) -> Option<(Size, f64)> {
        let number = self.profile(pair)?;
        Some((self.sizes.of(number, used, bytes), self.sizes.line_rate(number, used)))
    }

    /// Returns the times of a path, on which acknowledgements are hashed like the packets. `None` if all paths of the
    /// pair are alike, or none leads there or back.
    fn times_of(
        &self,
        pair: u32,
        (src, dst): (HostId, HostId),
        path: PathId,
        route: &[PortId],
    ) -> Option<PathTimes> {
        let number = self.profile(pair)?;
        if self.network.pairs[pair as usize].is_alike || route.is_empty() {
            return None;
        }
        let way_back = self.network.route(dst, src, path);
        if way_back.is_empty() {
            return None;
        }
        let one_way = |route: &[PortId]| self.network.profile_of(route).one_way(self.sizes.ack_bytes());
        let (there, back, least) = (one_way(route), one_way(&way_back), self.sizes.back(number));
        let is_long = (there + back).as_ps() as f64 > UNEQUAL * 2.0 * least.as_ps() as f64;
        Some(PathTimes { back, is_long })
    }

    /// Returns the time that the acknowledgement of a part takes back to the sender.
    fn ack_delay(&self, lane: u32, part: Part) -> Duration {
        let at = &self.lanes[lane as usize];
        let Some(number) = self.profile(at.pair) else { return Duration::ZERO };
        match &at.single {
            Some(single) => single.times.map_or_else(|| self.sizes.back(number), |times| times.back),
            None => self.sizes.sprayed_back(number, self.draw(part, Draw::PathBack)),
        }
    }

    /// Serves the next waiting parts of a lane while the lane is free.
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

    /// Serves a part of the given size.
    fn serve(&mut self, now: Time, lane: u32, part: Part, (size, line): (Size, f64)) {
        let (src, dst) = self.ends(part.message);
        if let Some(mut single) = self.lanes[lane as usize].single.take() {
            if let Some(chooser) = &mut single.chooser {
                single.path = chooser.next_path();
                single.route = self.network.route(src, dst, single.path);
                let pair = self.lanes[lane as usize].pair;
                single.times = self.times_of(pair, (src, dst), single.path, &single.route);
            }
            self.lanes[lane as usize].single = Some(single);
        }
        let size = self.on_route(lane, part.bytes).unwrap_or(size);
        self.find_uses(lane, (src, dst));
        self.check_paths(lane, part, &size);
        if size.wire <= SHORT_MESSAGE_BYTES {
            self.serve_short(now, lane, part, size);
        } else {
            self.serve_long(now, lane, part, (size, line));
        }
    }

    /// Returns the size on the route of a lane with a single one, if the paths of the pair may differ.
    fn on_route(&self, lane: u32, bytes: u64) -> Option<Size> {
        let at = &self.lanes[lane as usize];
        let route = at.single.as_ref().map(|single| &single.route).filter(|route| !route.is_empty())?;
        let alike = self.network.pairs[at.pair as usize].is_alike;
        (!alike).then(|| self.sizes.on_route(self.network.profile_of(route), bytes))
    }

    /// Records that a message begins while links of its paths are dead, or over paths of unlike delays.
    fn check_paths(&mut self, lane: u32, part: Part, size: &Size) {
        let at = &self.lanes[lane as usize];
        let pair = &self.network.pairs[at.pair as usize];
        let meets_dead = match &at.single {
            Some(single) => single.route.is_empty(),
            None => pair.dead.beyond,
        };
        if meets_dead {
            self.validity.lost();
        }
        if pair.is_alike || size.packets == 1 {
            return;
        }
        let group = self.spec.graph.messages()[part.message as usize].group;
        let is_disturbed = self.models[group.index()].over_unequal_paths == OverUnequalPaths::IsDisturbed;
        let is_unequal = || match &at.single {
            Some(single) => single.times.is_some_and(|times| times.is_long),
            None => pair.profile.is_some_and(|number| self.sizes.has_unequal_delays(number, size)),
        };
        if is_disturbed && is_unequal() {
            self.validity.unequal_paths();
        }
    }

    /// Stores in `uses` the resources that the messages of a lane use.
    pub(crate) fn find_uses(&mut self, lane: u32, ends: (HostId, HostId)) {
        let at = &self.lanes[lane as usize];
        match &at.single {
            Some(single) => self.network.of_route(&single.route, &mut self.uses),
            None => self.network.sprayed(at.pair, ends, &mut self.uses),
        }
    }

    fn serve_long(&mut self, now: Time, lane: u32, part: Part, (size, line): (Size, f64)) {
        let pair = self.lanes[lane as usize].pair;
        let group = self.spec.graph.messages()[part.message as usize].group.0;
        let model = self.models[usize::from(group)];
        let (every, wire) = (model.packets_an_ack, size.wire as f64);
        self.validity.long_message(&model, &size);
        let acks = (size.packets.div_ceil(every) * u64::from(self.sizes.ack_bytes())) as f64 / wire;
        for &Use { resource, share } in &self.uses {
            if self.network.at_switch[resource as usize] {
                let capacity = self.network.capacity[resource as usize];
                let queue = &mut self.queues[resource as usize];
                queue.advance(now, capacity, &self.law);
                queue.long_message(wire * share, capacity, &self.law);
            }
        }
        let recovery = model.recovery.filter(|_| !self.validity.open);
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
            remaining_bytes: wire,
            rate: 0.0,
            since: now,
            efficiency: self.efficiency(lane),
            gauges,
            group,
            lane,
            remembered_rate: line,
            limited_since: Time::MAX,
            max_rate: line,
            part,
            wire,
            began: now,
            size,
            crossed: self.crossed_bytes(now, pair, gauges),
            pair,
            acks,
            ledger_bytes: 0.0,
        });
        self.lanes[lane as usize].serving = Some(flow);
    }

    /// Returns the fraction of a lane's bytes that arrives. It is 0 on a path that leads nowhere, and below 1 if
    /// sprayed packets meet a dead link.
    pub(crate) fn efficiency(&self, lane: u32) -> f64 {
        let at = &self.lanes[lane as usize];
        match &at.single {
            Some(single) if single.route.is_empty() => 0.0,
            Some(_) => 1.0,
            None => 1.0 - self.network.pairs[at.pair as usize].dead.lost,
        }
    }

    /// Returns the bytes that have crossed the links of the sender's and of the receiver's switch, and the part of
    /// them that the pair has sent.
    fn crossed_bytes(&self, now: Time, pair: u32, gauges: Option<(u32, u32)>) -> [f64; 3] {
        let Some((from, to)) = gauges else { return [0.0; 3] };
        let of_pair = self.levels_of_pairs[pair as usize].crossed(now);
        [self.levels[from as usize][0].crossed(now), self.levels[to as usize][1].crossed(now), of_pair]
    }

    /// Returns the time by which sprayed packets of a part delay its end, on paths of unlike delays.
    pub(crate) fn lateness(&self, lane: u32, part: Part, size: &Size, interval_ps: f64) -> Duration {
        let at = &self.lanes[lane as usize];
        match self.profile(at.pair) {
            Some(number) if at.single.is_none() => {
                self.sizes.lateness(number, size, interval_ps, self.draw(part, Draw::Paths))
            }
            _ => Duration::ZERO,
        }
    }

    /// Schedules the arrival of a part at time `at`, and its acknowledgement. Both are certain. If no task waits for
    /// them, they are recorded at once; otherwise they become events.
    pub(crate) fn schedule_arrival(&mut self, now: Time, lane: u32, part: Part, at: Time) {
        debug_assert!(at >= now);
        let SendQueue { conn, .. } = self.lanes[lane as usize];
        let (message, acked) = (part.message, at + self.ack_delay(lane, part));
        let whole = self.execution.connections[conn].queue_pairs.len() == 1;
        let graph = &self.spec.graph;
        let awaited = |moment| {
            graph.has_dependencies() && graph.notified_tasks(TaskId(message), moment).next().is_some()
        };
        let ahead = whole && acked <= self.deadline.0 && !awaited(Moment::Completion);
        if ahead && !awaited(Moment::Delivery) {
            self.events += 1;
            self.on_delivered(at, message, part.number);
        } else {
            self.agenda.push(at, Event::Delivered { message, part: part.number });
        }
        if ahead {
            self.events += 1;
            self.recorded_until = self.recorded_until.max(acked);
            self.on_acknowledged(acked, message);
        } else {
            self.agenda.push(acked, Event::Acknowledged { message });
        }
    }

    /// Ends the service of a part that has left its sender completely.
    pub(crate) fn finish(&mut self, now: Time, flow: FlowId) {
        let mut service = self.services[flow as usize].take().expect("a flow that ends is in service");
        service.advance(now);
        self.completions.remove(flow);
        self.solver.remove(flow);
        let Service { part, lane, gauges, pair, wire, rate, size, .. } = service;
        let span = (now.as_ps() - service.began.as_ps()) as f64;
        let late = self.lateness(lane, part, &size, span / size.packets as f64);
        let mut wait = 0.0;
        if let Some((from, to)) = gauges {
            self.levels[from as usize][0].change(now, -rate);
            self.levels[to as usize][1].change(now, -rate);
            self.levels_of_pairs[pair as usize].change(now, -rate);
            let model = self.models[usize::from(service.group)];
            let after = self.crossed_bytes(now, pair, gauges);
            let links = [(from, 0), (to, 1)].map(|(class, way): (u32, usize)| {
                (self.network.gauges[class as usize], after[way] - service.crossed[way])
            });
            if model.collides != Collides::Never {
                let packet = f64::from(self.sizes.packet_bytes());
                let [_, all, ours] = [0, 1, 2].map(|way| after[way] - service.crossed[way]);
                let ordered = if all > 0.0 { ours / all } else { 0.0 };
                wait = collision_wait(span, packet, links, ordered);
                if model.collides == Collides::AtFirst {
                    let most = PATH_SEARCH_TIMES * size.base.as_ps() as f64;
                    wait *= (most / span).min(1.0).sqrt();
                }
                wait *= self.wait_factor(part);
                if model.recovery.is_some() {
                    self.validity.sprayed_at_random(wire, span, links);
                }
            }
            if model.spread.is_by_capacity() {
                self.validity.sprayed(wire, span, links);
            }
        }
        self.count(&service, wire - service.ledger_bytes);
        self.lanes[lane as usize].serving = None;
        self.schedule_arrival(now, lane, part, now + size.base + late + Duration::from_ps(wait as u64));
        self.serve_next(now, lane);
    }

    /// Returns a random number of a part from 0 to 1. Representatives of a folded graph have none, as it would apply to
    /// all hosts that they represent.
    fn draw(&self, part: Part, draw: Draw) -> Option<f64> {
        let number = mix64(u64::from(part.message) << 16 | u64::from(part.number));
        let is_one = self.spec.graph.folding().is_none();
        is_one.then(|| unit(mix64(self.spec.seed ^ number.rotate_left(draw as u32))))
    }

    /// Returns the random factor on the wait of a part.
    fn wait_factor(&self, part: Part) -> f64 {
        self.draw(part, Draw::Wait).map_or(1.0, |draw| 1.0 + SPREAD_OF_WAITS * (2.0 * draw - 1.0))
    }

    /// Adds bytes of a service that have arrived to the ledger, and those that were lost with them.
    fn count(&mut self, service: &Service, bytes: f64) {
        if service.efficiency == 0.0 {
            return;
        }
        let (ends, sent) = (self.ends(service.part.message), bytes / service.efficiency);
        self.ledger.add(&self.network, &self.lanes[service.lane as usize], ends, (sent, service.acks));
    }

    /// Adds to the ledger what all services have sent so far.
    pub(crate) fn count_all(&mut self, now: Time) {
        for flow in 0..self.services.len() {
            if let Some(mut service) = self.services[flow] {
                service.advance(now);
                let bytes = service.wire - service.remaining_bytes - service.ledger_bytes;
                service.ledger_bytes += bytes;
                self.count(&service, bytes);
                self.services[flow] = Some(service);
            }
        }
    }

    pub(crate) fn on_delivered(&mut self, now: Time, message: u32, part: u16) {
        let conn = self.execution.connections.of(message);
        let size = self.spec.graph.messages()[message as usize].size.get();
        let bytes = match self.execution.connections[conn].queue_pairs.len() {
            // Queue pairs are gone if all acknowledgements were recorded in advance.
            0 | 1 => size,
            lanes => shares(size, lanes).nth(usize::from(part)).map_or(0, |share| share.len),
        };
        if self.execution.part_delivered(now, message, bytes) {
            self.schedule_steps();
        }
    }

    pub(crate) fn on_acknowledged(&mut self, now: Time, message: u32) {
        if self.execution.part_completed(now, message, Status::Success) == PartCompletion::NotYet {
            return;
        }
        self.execution.ended(now, message);
        self.schedule_steps();
        if self.execution.release_connection(message, SenderCounters::default()) {
            let conn = self.execution.connections.of(message);
            let lanes = std::mem::take(&mut self.execution.connections[conn].queue_pairs);
            for lane in lanes {
                self.lanes[lane as usize].single = None;
                self.free_lanes.push(lane);
            }
        }
    }

    /// Handles a change of routes or links. Every message in service continues over the new network.
    pub(crate) fn rebuild(&mut self, now: Time) {
        self.count_all(now);
        self.ledger.close(&mut self.network);
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
            let ends = (connection.src, connection.dst);
            single.route = self.network.route(ends.0, ends.1, single.path);
            single.times = self.times_of(self.lanes[lane].pair, ends, single.path, &single.route);
            self.lanes[lane].single = Some(single);
        }
        for flow in flows {
            let mut service = self.services[flow as usize].expect("it was there");
            let lane = service.lane;
            self.find_uses(lane, self.ends(service.part.message));
            service.efficiency = self.efficiency(lane);
            let dead = self.network.pairs[service.pair as usize].dead;
            let is_sprayed = self.lanes[lane as usize].single.is_none();
            if service.efficiency < 1.0 || is_sprayed && (dead.beyond || dead.own) {
                self.validity.lost();
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
