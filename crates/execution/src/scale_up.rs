//! Messages over scale-up networks, as fluid that the connections of a domain share by max-min fairness.
//!
//! A message is ready to move one latency after it is posted ([`ScaleUp::delay`]). The messages of a connection move
//! one after the other, in the order in which they were posted. Those posted at the same time move by their numbers.
//! The latency of a message passes while earlier ones move. The rate of the message that moves is its connection's
//! max-min fair share of the links of its domain. The message arrives with its last byte, which its sender knows at
//! the same time. Faults of links and chips change the links of a domain at times that are known from the start.

mod queues;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use pathweave_records::FlowRecord;
use pathweave_topo::{LinkShare, PartState, ScaleUp, ScaleUpPart, ScaleUpPartKind};
use pathweave_transport::Status;
use pathweave_units::{Duration, HostId, Rate, Time};

use crate::connections::ConnId;
use crate::execution::{Execution, PartCompletion};
use crate::max_min::{FlowId, Solver, Use, bytes_per_ps};
use crate::scale_up::queues::Queues;
use crate::tally::{ReceiverCounters, SenderCounters};

/// Part of a byte that counts as nothing: the error of rates and times in floating point.
const ROUNDING_BYTES: f64 = 1e-3;

/// Message to be carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScaleUpMessage {
    /// Number of the message.
    pub flow: u32,
    /// Sender.
    pub src: HostId,
    /// Receiver, in the domain of the sender.
    pub dst: HostId,
    /// Payload.
    pub bytes: u64,
    /// Connection, whose messages move one after the other.
    pub connection: ConnId,
}

/// Arrival of a message, which its sender knows at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScaleUpArrival {
    /// Time of the last byte.
    pub at: Time,
    /// The message.
    pub message: ScaleUpMessage,
}

/// Change of a part of a scale-up network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleUpAction {
    /// A fault takes the part down.
    Down,
    /// A fault that held the part down ends.
    Up,
    /// The rate of a link changes; `None` restores the rate of the topology.
    Rate(Option<Rate>),
}

/// Change of a part of a scale-up network, and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleUpChange {
    /// Time of the change.
    pub at: Time,
    /// The part.
    pub part: ScaleUpPart,
    /// The change.
    pub action: ScaleUpAction,
}

/// Messages in the scale-up networks of all domains.
#[derive(Debug)]
pub struct ScaleUpCarrier {
    network: ScaleUp,
    /// Changes of each domain that has any, ordered by time.
    changes: BTreeMap<u32, VecDeque<ScaleUpChange>>,
    /// Domains that have had messages.
    domains: BTreeMap<u32, Domain>,
    /// Time of the next event of each domain with messages.
    due: BTreeSet<(Time, u32)>,
    /// Number of messages that began or arrived.
    events: u64,
}

/// Messages of one domain.
#[derive(Debug)]
struct Domain {
    /// Changes to come, ordered by time.
    changes: VecDeque<ScaleUpChange>,
    /// Parts that are not as configured, and the network with them.
    impaired: Option<Box<Impaired>>,
    solver: Solver,
    /// Messages that have been posted and are not ready to move, by the time at which they are.
    starts: BinaryHeap<Reverse<(Time, ScaleUpMessage)>>,
    /// Messages that are ready and wait for earlier ones of their connections.
    queues: Queues,
    /// Messages that move, at most one of each connection, by flow of the solver.
    moving: Vec<Option<Moving>>,
    /// Time to which `Moving::left_bytes` refers.
    updated: Time,
    due: Time,
}

/// Network of a domain with faults.
#[derive(Debug)]
struct Impaired {
    parts: BTreeMap<ScaleUpPartKind, PartState>,
    network: ScaleUp,
}

#[derive(Clone, Copy, Debug)]
struct Moving {
    message: ScaleUpMessage,
    left_bytes: f64,
    ends: Time,
}

impl Moving {
    /// Creates the state of a message of which nothing has moved.
    fn new(message: ScaleUpMessage) -> Self {
        Moving { message, left_bytes: message.bytes as f64, ends: Time::MAX }
    }
}

impl ScaleUpCarrier {
    /// Creates the carrier without messages. `changes` are ordered by time.
    pub fn new(network: ScaleUp, changes: &[ScaleUpChange]) -> Self {
        let mut of_domains: BTreeMap<u32, VecDeque<ScaleUpChange>> = BTreeMap::new();
        for change in changes {
            of_domains.entry(change.part.domain).or_default().push_back(*change);
        }
        let (domains, due) = (BTreeMap::new(), BTreeSet::new());
        ScaleUpCarrier { network, changes: of_domains, domains, due, events: 0 }
    }

    /// Returns the latency between the posting of a message and its first byte, if no earlier message holds it up.
    pub fn delay(&self) -> Duration {
        self.network.delay()
    }

    /// Returns the time that a message takes alone.
    pub fn ideal(&self, src: HostId, dst: HostId, bytes: u64) -> Duration {
        let rate = bytes_per_ps(self.network.alone(src, dst));
        self.delay() + Duration::from_ps((bytes as f64 / rate).ceil() as u64)
    }

    /// Accepts a message posted at `now`. Its domain must not have been advanced beyond `now` and the latency.
    pub fn post(&mut self, now: Time, message: ScaleUpMessage) {
        let number = self.network.domain_of(message.src);
        let start = now + self.network.delay();
        let changes = &mut self.changes;
        let domain = self
            .domains
            .entry(number)
            .or_insert_with(|| Domain::new(&self.network, changes.remove(&number).unwrap_or_default()));
        debug_assert!(domain.updated <= start, "{message:?} starts before what has happened");
        domain.starts.push(Reverse((start, message)));
        if start < domain.due {
            self.due.remove(&(domain.due, number));
            domain.due = start;
            self.due.insert((start, number));
        }
    }

    /// Returns the time of the next event, or [`Time::MAX`] if no message is under way.
    pub fn next(&self) -> Time {
        self.due.first().map_or(Time::MAX, |(at, _)| *at)
    }

    /// Returns the number of messages that began or arrived so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Lets time pass until just before `end`. Appends the messages that arrive, ordered by time within each domain.
    pub fn advance(&mut self, end: Time, arrivals: &mut Vec<ScaleUpArrival>) {
        while let Some(&(at, number)) = self.due.first()
            && at < end
        {
            self.due.pop_first();
            let Some(domain) = self.domains.get_mut(&number) else { continue };
            self.events += domain.step(at, &self.network, arrivals);
            if domain.due < Time::MAX {
                self.due.insert((domain.due, number));
            }
        }
    }
}

impl<Q> Execution<Q> {
    /// Posts a message if a scale-up network joins its hosts, at both of them. Returns false if none does.
    pub fn post_over(&mut self, carrier: &mut ScaleUpCarrier, now: Time, flow: u32) -> bool {
        let message = self.tasks.graph.messages()[flow as usize];
        let (src, dst, bytes) = (message.src, message.dst, message.size.get());
        if !carrier.network.joins(src, dst) {
            return false;
        }
        let ideal = carrier.ideal(src, dst, bytes);
        self.posted(
            FlowRecord {
                start_ps: now.as_ps(),
                ideal_fct_ps: ideal.as_ps(),
                ideal_acked_ps: Some(ideal.as_ps()),
                ..self.record(flow)
            },
            1,
        );
        self.expected(flow, 1);
        let connection = self.connections.of(flow);
        carrier.post(now, ScaleUpMessage { flow, src, dst, bytes, connection });
        true
    }

    /// At the receiver: a message has arrived over the scale-up network.
    pub fn delivered_over_scale_up(&mut self, now: Time, flow: u32) {
        let bytes = self.tasks.graph.messages()[flow as usize].size.get();
        if self.part_delivered(now, flow, bytes) {
            self.received(flow, ReceiverCounters::default());
        }
    }

    /// At the sender: a message has been sent over the scale-up network.
    pub fn sent_over_scale_up(&mut self, now: Time, flow: u32) {
        if self.part_completed(now, flow, Status::Success) == PartCompletion::Acknowledged {
            self.ended(now, flow);
            self.release_connection(flow, SenderCounters::default());
        }
    }
}

impl Domain {
    fn new(network: &ScaleUp, changes: VecDeque<ScaleUpChange>) -> Self {
        Domain {
            changes,
            impaired: None,
            solver: solver_of(network),
            starts: BinaryHeap::new(),
            queues: Queues::default(),
            moving: Vec::new(),
            updated: Time::ZERO,
            due: Time::MAX,
        }
    }

    /// Executes the events of time `now`: arrivals, then changes of the network, then starts. Returns their number.
    fn step(&mut self, now: Time, network: &ScaleUp, arrivals: &mut Vec<ScaleUpArrival>) -> u64 {
        let mut events = self.pass_until(now, arrivals);
        if self.changes.front().is_some_and(|change| change.at <= now) {
            events += self.change(now, network);
        }
        while let Some(Reverse((start, message))) = self.starts.peek().copied()
            && start <= now
        {
            self.starts.pop();
            if self.queues.append(message) {
                self.begin(Moving::new(message), network);
                events += 1;
            }
        }
        self.solver.solve();
        self.due = self.starts.peek().map_or(Time::MAX, |Reverse((start, _))| *start);
        let mut moves = false;
        for (id, slot) in (0..).zip(&mut self.moving) {
            let Some(moving) = slot else { continue };
            moves = true;
            moving.ends = end_of(now, moving.left_bytes, self.solver.rate(id));
            self.due = self.due.min(moving.ends);
        }
        if let Some(change) = self.changes.front().filter(|_| moves) {
            self.due = self.due.min(change.at);
        }
        events
    }

    /// Moves all messages until `now`. The next message of a connection takes the place and the rate of one that
    /// arrives. Returns the number of messages that arrive or begin.
    fn pass_until(&mut self, now: Time, arrivals: &mut Vec<ScaleUpArrival>) -> u64 {
        let mut events = 0;
        let passed = now.saturating_since(self.updated).as_ps() as f64;
        self.updated = now;
        for (id, slot) in (0..).zip(&mut self.moving) {
            let Some(moving) = slot else { continue };
            moving.left_bytes -= self.solver.rate(id) * passed;
            if moving.ends <= now {
                arrivals.push(ScaleUpArrival { at: now, message: moving.message });
                *slot = self.queues.advance(moving.message.connection).map(Moving::new);
                if slot.is_none() {
                    self.solver.remove(id);
                }
                events += 1 + u64::from(slot.is_some());
            }
        }
        events
    }

    /// Changes the network, and the links of the messages that move. Returns the number of changes.
    fn change(&mut self, now: Time, network: &ScaleUp) -> u64 {
        let mut events = 0;
        let mut parts = self.impaired.take().map(|impaired| impaired.parts).unwrap_or_default();
        while let Some(change) = self.changes.front().copied().filter(|change| change.at <= now) {
            self.changes.pop_front();
            events += 1;
            let state = parts.entry(change.part.kind).or_default();
            match change.action {
                ScaleUpAction::Down => state.held_down += 1,
                ScaleUpAction::Up => state.held_down = state.held_down.saturating_sub(1),
                ScaleUpAction::Rate(rate) => state.rate = rate,
            }
        }
        parts.retain(|_, state| *state != PartState::default());
        self.impaired = (!parts.is_empty()).then(|| {
            let network = network.with_faults(&parts);
            Box::new(Impaired { parts, network })
        });
        self.solver = solver_of(self.impaired.as_ref().map_or(network, |impaired| &impaired.network));
        for moving in std::mem::take(&mut self.moving).into_iter().flatten() {
            self.begin(moving, network);
        }
        events
    }

    fn begin(&mut self, moving: Moving, network: &ScaleUp) {
        let ScaleUpMessage { src, dst, .. } = moving.message;
        let used = |&LinkShare { link, share }: &LinkShare| Use { resource: link, share };
        let (links, limit) = match &self.impaired {
            None => {
                let links = network.uses(src, dst);
                let limit = network.rate_over(&links);
                (links, limit)
            }
            // A detour may be wider than the link that failed, but nothing gets faster by a fault. A message without a
            // path waits for a repair.
            Some(impaired) => match impaired.network.uses(src, dst) {
                links if links.is_empty() => (links, Rate::ZERO),
                links => {
                    let limit = impaired.network.rate_over(&links).min(network.alone(src, dst));
                    (links, limit)
                }
            },
        };
        let (uses, limit): (Vec<Use>, f64) = (links.iter().map(used).collect(), bytes_per_ps(limit));
        let id: FlowId = self.solver.add(&uses, limit, 0.0);
        let place = id as usize;
        if place >= self.moving.len() {
            self.moving.resize(place + 1, None);
        }
        self.moving[place] = Some(moving);
    }
}

/// Creates the solver of a network without messages.
fn solver_of(network: &ScaleUp) -> Solver {
    let mut solver = Solver::default();
    for link in network.links() {
        solver.add_resource(bytes_per_ps(link.rate));
    }
    solver
}

/// Returns the time at which the rest of a message has been sent, at least one picosecond later unless nothing is
/// left.
fn end_of(now: Time, left_bytes: f64, bytes_per_ps: f64) -> Time {
    if left_bytes <= ROUNDING_BYTES {
        return now;
    }
    let ps = (left_bytes / bytes_per_ps).ceil();
    if ps.is_finite() { now.saturating_add(Duration::from_ps(ps as u64)) } else { Time::MAX }
}
