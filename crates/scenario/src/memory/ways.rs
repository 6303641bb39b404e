//! What the messages of a run pass on their way: how many queues and links they use, and how much is on its way at a time.
//! Found by sending some of them through the network at random, as switches would.

use std::collections::BTreeSet;

use pathweave_policy::Service;
use pathweave_sim::{SimSpec, Sizes, profile};
use pathweave_topo::{NodeId, Routing, Topology};
use pathweave_units::{Duration, HostId, Rng, Time};

/// Messages that are sent; of more, an even sample.
const SAMPLED_MESSAGES: usize = 4_096;
/// Ways of one message that are tried; a message that is spread over more is known well enough by these.
const WAYS_OF_A_MESSAGE: u64 = 16;
/// Bytes that a host keeps on their way, in round trips without queues at its rate: queues fill before a scheme slows down.
const ROUND_TRIPS: f64 = 1.5;
/// The same of a host that sends to one which gets more than it can take: until it hears of that and has slowed down.
const OVERLOADED_ROUND_TRIPS: f64 = 6.0;
/// Acknowledgements on their way for each data packet: they queue less.
const ACKS_OF_A_PACKET: f64 = 0.7;
/// Of the queues that something waits in at some time, those in which something does at the instant of a sample.
const QUEUES_AT_A_TIME: f64 = 0.3;
/// Links of the longest way.
const LONGEST: u32 = 128;
/// An acknowledgement with headers, preamble and gap.
const ACK_BYTES: u32 = 84;
/// Headers, preamble and gap of a data packet.
const OVERHEAD_BYTES: u32 = 82;

/// What messages pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ways {
    /// Places for packets on links and in queues that something passes.
    pub(super) places: f64,
    /// Bytes of data that hosts keep on their way, all together.
    pub(super) bytes_under_way: f64,
    /// Of these, bytes that are on links when nothing waits.
    pub(super) bytes_on_links: f64,
    /// Acknowledgements on their way for each data packet.
    pub(super) acks_of_a_packet: f64,
    /// The mean round trip without queues.
    pub(super) round_trip: Duration,
    /// When the busiest link has carried all that goes over it, where messages keep to one way each; and when the links of
    /// the busiest tier have, on average.
    pub(super) completion: Time,
    /// Samples of an instant at which all hosts are busy.
    pub(super) sampled_at_a_time: f64,
}

/// Passed by data, and by acknowledgements.
const DATA: usize = 0;
const ACKS: usize = 1;

/// Directed links of a tier that some of the packets that pass the tier have passed.
#[derive(Clone, Copy, Debug, Default)]
struct Tier {
    /// Directed links of the tier.
    all: f64,
    /// By what passes: how many packets were sent over the tier, and how many different links that were.
    sent: [f64; 2],
    passed: [f64; 2],
    /// Links that both have passed.
    both: f64,
    /// What data keeps links busy, picoseconds of all together.
    busy_ps: f64,
}

impl Ways {
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
        let mtu = spec.host.mtu.get() as u32 + OVERHEAD_BYTES;
        let (mut round_trips_ps, mut sampled) = (0u128, 0u32);
        for message in messages.iter().step_by(stride) {
            let scheme = &spec.scheme_of(message.group).scheme;
            let Some(path) = profile(topology, routing, message.src, message.dst) else { continue };
            round_trips_ps += u128::from(path.round_trip(mtu, ACK_BYTES).as_ps());
            sampled += 1;
            let packets = message.size.get().div_ceil(spec.host.mtu.get()).max(1);
            let paths = u64::from(scheme.paths) * u64::from(scheme.queue_pairs);
            let tried = packets.min(paths).clamp(1, WAYS_OF_A_MESSAGE);
            for _ in 0..tried {
                let ends = [(message.src, message.dst, DATA), (message.dst, message.src, ACKS)];
                for (from, to, what) in ends {
                    let bytes = if what == DATA && paths == 1 { message.size.get() } else { 0 };
                    if what == ACKS && matches!(scheme.service, Service::Datagram(_)) {
                        continue;
                    }
                    walk(topology, routing, (from, to), &mut rng, |directed| {
                        let tier = &mut tiers[number(directed / 2)];
                        tier.sent[what] += 1.0;
                        if what == DATA {
                            let rate = topology.links()[directed / 2].rate;
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
            // A NIC is given data only when it is free, so its data never waits; acknowledgements wait for data.
            let waits = if number == 1 { data / 2.0 } else { data } + both;
            places += waits * sizes.first_places as f64;
            sampled_at_a_time += either + QUEUES_AT_A_TIME * waits;
        }
        let busy = carried.iter().zip(topology.links().iter().flat_map(|link| [link.rate; 2]));
        let completion = busy.map(|(&bytes, rate)| rate.time_for(bytes)).max().unwrap_or(Duration::ZERO);
        let completion = completion.max(Duration::from_ps(spread_ps as u64));
        let under_way = UnderWay::new(spec, round_trip);
        let receivers: BTreeSet<HostId> = messages.iter().map(|message| message.dst).collect();
        Ways {
            places,
            bytes_under_way: under_way.all,
            bytes_on_links: under_way.on_links,
            acks_of_a_packet: ACKS_OF_A_PACKET,
            round_trip,
            completion: Time::ZERO + completion,
            sampled_at_a_time: sampled_at_a_time + receivers.len() as f64,
        }
    }
}

impl Tier {
    /// Different links that all packets pass, where only one of `stride` messages was sent. Of `all` links, `sent` packets
    /// that choose at random pass all x (1 - exp(-sent / all)); but not all links need to be on somebody's way.
    fn passed_by_all(&self, what: usize, stride: f64) -> f64 {
        let (sent, passed) = (self.sent[what], self.passed[what]);
        if stride <= 1.0 || passed == 0.0 {
            return passed;
        }
        let of = |links: f64, sent: f64| links * (1.0 - (-sent / links).exp());
        // How many links there are to choose from, so that so many would be passed by the sample.
        let (mut low, mut high) = (passed, self.all.max(passed));
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            (low, high) = if of(middle, sent) < passed { (middle, high) } else { (low, middle) };
        }
        of(high, sent * stride)
    }
}

/// Sends a packet by next hops drawn at random, and shows each link it passes: twice its number, and one more if it is passed
/// from its second end to its first.
fn walk(
    topology: &Topology,
    routing: &Routing,
    (from, to): (HostId, HostId),
    rng: &mut Rng,
    mut pass: impl FnMut(usize),
) {
    let (mut node, to) = (NodeId::from(from), NodeId::from(to));
    // More than any network has.
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

/// Places that a link has for packets: a power of two, as many as are on it at a time where data and what acknowledges other
/// data share it. The mean over all links.
fn places_on_a_link(spec: &SimSpec, sizes: &Sizes, mtu: u32) -> f64 {
    let links = spec.topology.links();
    let places = |link: &pathweave_topo::Link| {
        let of_both = link.rate.time_for(u64::from(mtu + ACK_BYTES));
        let pairs = link.delay.as_ps() / of_both.as_ps().max(1) + 1;
        (2 * pairs).next_power_of_two().max(sizes.first_places as u64) as f64
    };
    links.iter().map(places).sum::<f64>() / links.len().max(1) as f64
}

/// What all hosts keep on their way.
struct UnderWay {
    all: f64,
    /// What is on links where nothing waits.
    on_links: f64,
}

impl UnderWay {
    /// Each host keeps as much as fills its links, and what waits at receivers that get more than they can take; no more
    /// than it has to send.
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
        let mut of_all = UnderWay { all: 0.0, on_links: 0.0 };
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
