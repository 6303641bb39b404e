//! Messages over scale-up networks, as fluid that all messages of a domain share by max-min fairness.
//!
//! A message begins to move one latency after it is posted ([`ScaleUp::delay`]). From then on its rate is its max-min
//! fair share of the links of its domain. It arrives with its last byte, which its sender knows at the same time.
//! Faults of links and chips change the links of a domain at times that are known from the start.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use pathweave_records::FlowRecord;
use pathweave_topo::{LinkShare, PartState, ScaleUp, ScaleUpPart, ScaleUpPartKind};
use pathweave_transport::Status;
use pathweave_units::{Duration, HostId, Rate, Time};

use crate::execution::{Execution, PartCompletion};
use crate::max_min::{FlowId, Solver, Use, bytes_per_ps};
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
    /// Messages that have been posted and have not begun to move, by the time at which they do.
    starts: BinaryHeap<Reverse<(Time, ScaleUpMessage)>>,
    /// Messages that move, by flow of the solver.
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

    /// Returns the latency between the posting of a message and its first byte.
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
        carrier.post(now, ScaleUpMessage { flow, src, dst, bytes });
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
            self.begin(Moving { message, left_bytes: message.bytes as f64, ends: Time::MAX }, network);
            events += 1;
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

    /// Moves all messages until `now`. Returns the number of those that arrive.
    fn pass_until(&mut self, now: Time, arrivals: &mut Vec<ScaleUpArrival>) -> u64 {
        let mut events = 0;
        let passed = now.saturating_since(self.updated).as_ps() as f64;
        self.updated = now;
        for (id, slot) in (0..).zip(&mut self.moving) {
            let Some(moving) = slot else { continue };
            moving.left_bytes -= self.solver.rate(id) * passed;
            if moving.ends <= now {
                arrivals.push(ScaleUpArrival { at: now, message: moving.message });
                *slot = None;
                self.solver.remove(id);
                events += 1;
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pathweave_topo::{
        Build, Cluster, EqualLinks, ScaleUpConfig, Server, Star, SwitchLinks, TopologyConfig,
    };
    use pathweave_units::Rate;

    use super::*;

    fn carrier(gpus: u32, scale_up: ScaleUpConfig) -> ScaleUpCarrier {
        carrier_with(gpus, scale_up, &[])
    }

    fn carrier_with(gpus: u32, scale_up: ScaleUpConfig, changes: &[ScaleUpChange]) -> ScaleUpCarrier {
        let server =
            Server { gpus: Some(gpus), nics: Some(1), scale_up: Some(scale_up), ..Server::default() };
        let cluster = Cluster::new(2, server, TopologyConfig::Star(Star::new(2)));
        let topology = cluster.build(Path::new("")).expect("two servers");
        ScaleUpCarrier::new(topology.scale_up().expect("given").clone(), changes)
    }

    fn message(flow: u32, src: u32, dst: u32, bytes: u64) -> ScaleUpMessage {
        ScaleUpMessage { flow, src: HostId(src), dst: HostId(dst), bytes }
    }

    /// Returns the arrival time of each message in nanoseconds, by number.
    fn play(mut carrier: ScaleUpCarrier, posts: &[(u64, ScaleUpMessage)]) -> Vec<u64> {
        let mut arrivals = Vec::new();
        for &(ns, message) in posts {
            let now = Time::ZERO + Duration::from_ns(ns);
            carrier.advance(now + carrier.delay(), &mut arrivals);
            carrier.post(now, message);
        }
        carrier.advance(Time::MAX, &mut arrivals);
        let mut times: Vec<(u32, u64)> =
            arrivals.iter().map(|arrival| (arrival.message.flow, arrival.at.as_ps() / 1_000)).collect();
        times.sort_unstable();
        times.into_iter().map(|(_, at)| at).collect()
    }

    fn h100() -> ScaleUpConfig {
        ScaleUpConfig::Switch(SwitchLinks {
            efficiency: 0.82,
            chips: 4,
            ..SwitchLinks::new(Rate::from_gbps(3_600))
        })
    }

    /// Seven GPUs send 1 GB each to the eighth, whose ingress has 450 x 0.82 = 369 GB/s: 7 GB take 18.970 ms.
    #[test]
    fn seven_to_one() {
        let posts: Vec<_> = (0..7).map(|src| (0, message(src, src, 7, 1_000_000_000))).collect();
        let times = play(carrier(8, h100()), &posts);
        assert!(times.iter().all(|at| at.abs_diff(18_970_190 + 250) < 20), "{times:?}");
    }

    /// A pair of MI300X: 1 GB over a link of which 48 GB/s are usable takes 20.833 ms. Another pair does not disturb
    /// it.
    #[test]
    fn a_pair_of_a_full_mesh() {
        let mesh =
            ScaleUpConfig::FullMesh(EqualLinks { efficiency: 0.75, ..EqualLinks::new(Rate::from_gbps(512)) });
        let posts = [(0, message(0, 0, 5, 1_000_000_000)), (0, message(1, 0, 6, 1_000_000_000))];
        let times = play(carrier(8, mesh), &posts);
        assert_eq!(times, [20_833_583, 20_833_583]);
    }

    /// Egress of 100 Gb/s, 12.5 bytes a nanosecond. The first message of 125 kB is alone for 5 us (62.5 kB), then both
    /// have half: it ends after 10 us more, when the second has 62.5 kB left, which take 5 us alone.
    #[test]
    fn messages_share_as_long_as_both_move() {
        let network = ScaleUpConfig::Switch(SwitchLinks::new(Rate::from_gbps(100)));
        let posts = [(0, message(0, 0, 1, 125_000)), (5_000, message(1, 0, 2, 125_000))];
        assert_eq!(play(carrier(4, network), &posts), [15_250, 20_250]);
    }

    fn change(us: u64, domain: u32, kind: ScaleUpPartKind, action: ScaleUpAction) -> ScaleUpChange {
        ScaleUpChange { at: Time::ZERO + Duration::from_us(us), part: ScaleUpPart { domain, kind }, action }
    }

    /// With one of four chips down from the start, seven to one take 4/3 of 18.970 ms. If the chip fails after 10 ms,
    /// the rest takes 4/3 of 8.970 ms; if it is repaired 3 ms later, in which 2.25 ms of the work are done, the rest
    /// takes its usual time.
    #[test]
    fn a_chip_takes_a_quarter_of_the_rest() {
        use ScaleUpAction::{Down, Up};
        let chip = ScaleUpPartKind::Chip(1);
        let posts: Vec<_> = (0..7).map(|src| (0, message(src, src, 7, 1_000_000_000))).collect();
        let usual_ns = 18_970_190.0;
        for (changes, ends_ns) in [
            (vec![change(0, 0, chip, Down)], usual_ns * 4.0 / 3.0),
            (vec![change(10_000, 0, chip, Down)], 1e7 + (usual_ns + 250.0 - 1e7) * 4.0 / 3.0 - 250.0),
            (vec![change(10_000, 0, chip, Down), change(13_000, 0, chip, Up)], usual_ns + 750_000.0),
            (vec![change(0, 1, chip, Down)], usual_ns),
            (vec![change(30_000, 0, chip, Down)], usual_ns),
        ] {
            let times = play(carrier_with(8, h100(), &changes), &posts);
            let near = |at: &u64| (*at as f64 - ends_ns - 250.0).abs() < 100.0;
            assert!(times.iter().all(near), "{changes:?}: {times:?}, not {ends_ns}");
        }
    }

    /// Three GPUs in a mesh of 100 Gb/s, 12.5 kB a microsecond. The link from 0 to 1 fails after 4.25 us: of 100 kB,
    /// 50 kB have passed, and the rest goes over GPU 2, where it shares the link to GPU 1 with another message of
    /// 100 kB that has 50 kB left. Both end 8 us later. Without any path a message waits for the repair.
    #[test]
    fn a_message_goes_around_a_link_that_fails() {
        use ScaleUpAction::{Down, Up};
        let mesh = || ScaleUpConfig::FullMesh(EqualLinks::new(Rate::from_gbps(100)));
        let link = ScaleUpPartKind::Link;
        let at = |ns, kind, action| ScaleUpChange {
            at: Time::ZERO + Duration::from_ns(ns),
            ..change(0, 0, kind, action)
        };
        let posts = [(0, message(0, 0, 1, 100_000)), (0, message(1, 2, 1, 100_000))];
        let fails = [at(4_250, link(0, 1), Down)];
        assert_eq!(play(carrier_with(3, mesh(), &fails), &posts), [12_250, 12_250]);
        let isolated =
            [at(4_250, link(0, 1), Down), at(4_250, link(0, 2), Down), at(100_000, link(0, 1), Up)];
        assert_eq!(play(carrier_with(3, mesh(), &isolated), &posts), [104_000, 8_250]);
        // Of four, the detour has two paths of 100 Gb/s each, but the message had 100 Gb/s.
        let alone = [(0, message(0, 0, 1, 100_000))];
        assert_eq!(play(carrier_with(4, mesh(), &fails), &alone), [8_250]);
        let slow = [at(4_250, link(0, 1), ScaleUpAction::Rate(Some(Rate::from_gbps(50))))];
        assert_eq!(play(carrier_with(3, mesh(), &slow), &posts), [12_250, 8_250]);
    }

    /// Domains do not share anything, and the ideal time is that of a message alone.
    #[test]
    fn domains_are_apart() {
        let carrier = carrier(8, h100());
        let ideal = carrier.ideal(HostId(0), HostId(1), 1_000_000);
        let posts = [(0, message(0, 0, 1, 1_000_000)), (0, message(1, 8, 9, 1_000_000))];
        let times = play(carrier, &posts);
        assert_eq!(times, [ideal.as_ps() / 1_000; 2]);
    }
}
