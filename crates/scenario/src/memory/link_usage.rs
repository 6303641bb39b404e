//! Links and queues that the messages of a run use, and bytes in flight at a time. A sample of the messages is routed
//! through the network at random, as switches would do it.

use std::collections::BTreeSet;

use pathweave_policy::Service;
use pathweave_sim::{SimSpec, Sizes, profile};
use pathweave_topo::{Direction, LinkId, NodeId, Routing, Topology};
use pathweave_units::{Duration, HostId, Rng, Time};

/// Number of messages that are routed. A larger set is sampled evenly.
const SAMPLED_MESSAGES: usize = 4_096;
/// Number of paths tried for each message. These are enough for a message that is spread over more.
const MAX_SAMPLED_PATHS: u64 = 16;
/// Bytes that a host keeps in flight, in idle round trips at its rate. Queues fill before a scheme slows down.
const ROUND_TRIPS: f64 = 1.5;
/// Bytes that a host keeps in flight to an overloaded receiver, in idle round trips at its rate. Queues grow until
/// the feedback arrives and the host has slowed down.
const OVERLOADED_ROUND_TRIPS: f64 = 6.0;
/// Acknowledgements in flight for each data packet. Acknowledgements wait less in queues.
const ACKS_OF_A_PACKET: f64 = 0.7;
/// Share of the queues in use that are non-empty at the instant of a sample.
const QUEUES_AT_A_TIME: f64 = 0.3;
/// Largest number of links on a path.
const LONGEST: u32 = 128;
/// Bytes of an acknowledgement with headers, preamble and gap.
const ACK_BYTES: u32 = 84;
/// Bytes of headers, preamble and gap of a data packet.
const OVERHEAD_BYTES: u32 = 82;

/// Resources that the messages of a run use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LinkUsage {
    /// Packet slots on the links and in the queues that packets pass.
    pub(super) packet_slots: f64,
    /// Bytes of data that all hosts together keep in flight.
    pub(super) bytes_in_flight: f64,
    /// Number of these bytes that are on links if all queues are empty.
    pub(super) bytes_on_links: f64,
    /// Acknowledgements in flight for each data packet.
    pub(super) acks_of_a_packet: f64,
    /// Average idle round-trip time.
    pub(super) round_trip: Duration,
    /// Lower bound of the run's end. For messages on a single path: time at which the busiest link has carried its
    /// bytes. For all messages: average of that time over the links of the busiest tier.
    pub(super) completion: Time,
    /// Number of samples at an instant at which all hosts are busy.
    pub(super) sampled_at_a_time: f64,
}

/// Direction of a packet: data or acknowledgement.
const DATA: usize = 0;
const ACKS: usize = 1;

/// Directed links of a tier, and those that the sampled packets used.
#[derive(Clone, Copy, Debug, Default)]
struct Tier {
    /// Number of directed links in the tier.
    all: f64,
    /// For data and acknowledgements: number of packets sent over the tier, and number of different links used.
    sent: [f64; 2],
    passed: [f64; 2],
    /// Number of links used by both.
    both: f64,
    /// Total transmission time of data on all links together, in picoseconds.
    busy_ps: f64,
}

impl LinkUsage {
    pub(super) fn new(spec: &SimSpec, routing: &Routing, sizes: &Sizes) -> Self {
        let topology = &*spec.topology;
        let messages = spec.graph.messages();
        let stride = messages.len().div_ceil(SAMPLED_MESSAGES).max(1);
        let mut rng = Rng::for_component(spec.seed, "ways", 0);
        let mut passed = vec![0u8; 2 * topology.links().len()];
        let mut carried = vec![0u64; 2 * topology.links().len()];
        let mut tiers: Vec<Tier> = Vec::new();
        let tier_of = |link: usize| {
            let link = &topology.links()[link];
            [link.a, link.b]
                .map(|node| topology.switch_index(node).map_or(0, |i| topology.switches()[i].tier + 1))
        };
        let number = |link: usize| usize::from(tier_of(link).into_iter().max().unwrap_or(0));
        for link in 0..topology.links().len() {
            let number = number(link);
            if tiers.len() <= number {
                tiers.resize(number + 1, Tier::default());
            }
            tiers[number].all += 2.0;
        }
        let mtu = spec.network.mtu.get() as u32 + OVERHEAD_BYTES;
        let (mut round_trips_ps, mut sampled) = (0u128, 0u32);
        for message in messages.iter().step_by(stride) {
            let scheme = &spec.scheme_of(message.group).scheme;
            let Some(path) = profile(topology, routing, message.src, message.dst) else { continue };
            round_trips_ps += u128::from(path.round_trip(mtu, ACK_BYTES).as_ps());
            sampled += 1;
            let packets = message.size.get().div_ceil(spec.network.mtu.get()).max(1);
            let paths = u64::from(scheme.paths) * u64::from(scheme.queue_pairs);
            let tried = packets.min(paths).clamp(1, MAX_SAMPLED_PATHS);
            for _ in 0..tried {
                let ends = [(message.src, message.dst, DATA), (message.dst, message.src, ACKS)];
                for (from, to, what) in ends {
                    let bytes = if what == DATA && paths == 1 { message.size.get() } else { 0 };
                    if what == ACKS && matches!(scheme.service, Service::Datagram(_)) {
                        continue;
                    }
                    route_packet(topology, routing, (from, to), &mut rng, |directed| {
                        let tier = &mut tiers[number(directed / 2)];
                        tier.sent[what] += 1.0;
                        if what == DATA {
                            let rate = direction(topology, directed).rate;
                            tier.busy_ps += rate.time_for(message.size.get()).as_ps() as f64 / tried as f64;
                        }
                        carried[directed] += bytes;
                        let before = passed[directed];
                        let after = before | 1 << what;
                        passed[directed] = after;
                        tier.passed[what] += f64::from(u8::from(after != before));
                        tier.both += f64::from(u8::from(after != before && after == 3));
                    });
                }
            }
        }
        let round_trip = Duration::from_ps((round_trips_ps / u128::from(sampled.max(1))) as u64);
        let (mut places, mut sampled_at_a_time, mut spread_ps) = (0.0, 1.0, 0.0f64);
        let on_a_link = places_on_a_link(spec, sizes, mtu);
        for (number, tier) in tiers.iter().enumerate() {
            let [data, acks] = [DATA, ACKS].map(|what| tier.passed_by_all(what, stride as f64));
            let both = tier.both / tier.passed[DATA].max(1.0) * data;
            let either = data + acks - both;
            places += either * on_a_link;
            spread_ps = spread_ps.max(tier.busy_ps * stride as f64 / data.max(1.0));
            // A NIC receives data only when it is free, so only its acknowledgements wait.
            let waits = if number == 1 { data / 2.0 } else { data } + both;
            places += waits * sizes.first_places as f64;
            sampled_at_a_time += either + QUEUES_AT_A_TIME * waits;
        }
        let busy = carried.iter().enumerate().map(|(way, bytes)| (bytes, direction(topology, way).rate));
        let completion = busy.map(|(&bytes, rate)| rate.time_for(bytes)).max().unwrap_or(Duration::ZERO);
        let completion = completion.max(Duration::from_ps(spread_ps as u64));
        let under_way = InFlight::new(spec, round_trip);
        let receivers: BTreeSet<HostId> = messages.iter().map(|message| message.dst).collect();
        LinkUsage {
            packet_slots: places,
            bytes_in_flight: under_way.all,
            bytes_on_links: under_way.on_links,
            acks_of_a_packet: ACKS_OF_A_PACKET,
            round_trip,
            completion: Time::ZERO + completion,
            sampled_at_a_time: sampled_at_a_time + receivers.len() as f64,
        }
    }
}

impl Tier {
    /// Extrapolates the number of different links used from a sample of one in `stride` messages. If `sent` packets
    /// choose among `all` links at random, they use `all * (1 - exp(-sent / all))` links. Not every link has to be on
    /// a path.
    fn passed_by_all(&self, what: usize, stride: f64) -> f64 {
        let (sent, passed) = (self.sent[what], self.passed[what]);
        if stride <= 1.0 || passed == 0.0 {
            return passed;
        }
        let of = |links: f64, sent: f64| links * (1.0 - (-sent / links).exp());
        // Number of links to choose from for which the sample uses `passed` links.
        let (mut low, mut high) = (passed, self.all.max(passed));
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            (low, high) = if of(middle, sent) < passed { (middle, high) } else { (low, middle) };
        }
        of(high, sent * stride)
    }
}

/// Routes a packet by next hops drawn at random, and passes each link it crosses to `pass`: twice the link's number,
/// plus one if it is crossed from its second end to its first.
fn route_packet(
    topology: &Topology,
    routing: &Routing,
    (from, to): (HostId, HostId),
    rng: &mut Rng,
    mut pass: impl FnMut(usize),
) {
    let (mut node, to) = (NodeId::from(from), NodeId::from(to));
    // More hops than any network has.
    for _ in 0..LONGEST {
        if node == to {
            return;
        }
        let hops = routing.from_node(node, HostId(to.0));
        if hops.is_empty() {
            return;
        }
        let port = topology.ports(node)[usize::from(hops.get(rng.below(hops.len())))];
        pass(2 * port.link.index() + usize::from(!port.is_a));
        node = port.peer;
    }
}

/// Returns a direction of a link, counted from `a` to `b` first.
fn direction(topology: &Topology, directed: usize) -> Direction {
    topology.direction(LinkId((directed / 2) as u32), directed.is_multiple_of(2))
}

/// Returns the average number of packet slots of a link: a power of two, enough for all packets on the link if data
/// and the acknowledgements of other data share it.
fn places_on_a_link(spec: &SimSpec, sizes: &Sizes, mtu: u32) -> f64 {
    let directions = 2 * spec.topology.links().len();
    let places = |directed: usize| {
        let way = direction(&spec.topology, directed);
        let of_both = way.rate.time_for(u64::from(mtu + ACK_BYTES));
        let pairs = way.delay.as_ps() / of_both.as_ps().max(1) + 1;
        (2 * pairs).next_power_of_two().max(sizes.first_places as u64) as f64
    };
    (0..directions).map(places).sum::<f64>() / directions.max(1) as f64
}

/// Bytes that all hosts together keep in flight.
struct InFlight {
    all: f64,
    /// Number of these bytes that are on links if all queues are empty.
    on_links: f64,
}

impl InFlight {
    /// Computes the bytes from each host's bandwidth-delay product and the queue of an overloaded receiver. A host
    /// has no more in flight than it has to send.
    fn new(spec: &SimSpec, round_trip: Duration) -> Self {
        let hosts = spec.topology.hosts() as usize;
        let (mut sends, mut gets, mut overloads) = (vec![0u64; hosts], vec![0u64; hosts], vec![false; hosts]);
        let messages = spec.graph.messages();
        for message in messages {
            sends[message.src.index()] += message.size.get();
            gets[message.dst.index()] += message.size.get();
        }
        for message in messages {
            overloads[message.src.index()] |= gets[message.dst.index()] > 2 * sends[message.src.index()];
        }
        let mut of_all = InFlight { all: 0.0, on_links: 0.0 };
        for (host, (&bytes, overloads)) in (0..).zip(sends.iter().zip(overloads)) {
            let rate = spec.topology.host_rate(HostId(host)).as_bps() as f64 / 8.0;
            let full = rate * round_trip.as_secs_f64();
            let most = if overloads { OVERLOADED_ROUND_TRIPS } else { ROUND_TRIPS };
            of_all.all += (bytes as f64).min(most * full);
            of_all.on_links += (bytes as f64).min(full / 2.0);
        }
        of_all
    }
}
