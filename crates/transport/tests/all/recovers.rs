//! Every scheme recovers from a disturbance: within a second after it, streams and requests with responses reach at
//! least half of the rate that they had before.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use pathweave_policy::{
    Adapt, AnyPolicy, HostEnv, MeasuredSection, PolicyEnv, Scheme, SchemeInfo, Service, schemes,
};
use pathweave_transport::rd::{RdQp, SideMessage};
use pathweave_transport::{Class, Endpoint, FreePorts, RetransmissionConfig, Status, Transmit};
use pathweave_units::{Duration, HostId, QpNum, Rate, Rng, Time};
use pathweave_wire::Segment;

use crate::services::{Setting, Subject, Told};

const MTU: u16 = 1_024;
const MTU_WIRE: u32 = 1_120;
const RATE: Rate = Rate::from_mbps(50);
const DELAY: Duration = Duration::from_ms(1);
const RTT: Duration = Duration::from_us(2_200);
const PATHS: u16 = 4;
/// Delay of the side channel, which loses nothing.
const SIDE_DELAY: Duration = Duration::from_ms(3);
/// Configuration of devices.
const RTO: RetransmissionConfig = RetransmissionConfig {
    timeout: Duration::from_ms(22),
    max_timeout: Duration::from_ms(100),
    backoff: 2,
    retry_limit: 60,
};
const STREAM_BYTES: u64 = 8_192;
/// Messages of a stream in progress: five bandwidth-delay products.
const STREAM_DEPTH: u64 = 8;
const REQUEST_BYTES: u64 = 8;

/// The rate before is measured from here to the disturbance, which lasts from [`BEGIN`] to [`END`].
const WARM: Time = Time::from_us(500_000);
const BEGIN: Time = Time::from_us(1_500_000);
const END: Time = Time::from_us(4_500_000);
const SECOND: Duration = Duration::from_ms(1_000);
const SEEDS: RangeInclusive<u64> = 1..=2;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Traffic {
    /// Messages of host 0, several in progress.
    Stream,
    /// A message of host 0, then one of host 1, and so on.
    Exchange,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Disturbance {
    /// 30 % of the packets are lost.
    Loss,
    /// All packets are lost. One that had begun to leave arrives at the end of the silence, with the corresponding
    /// age.
    Silence,
    /// No packet is lost, but all arrive at the end of the disturbance.
    Delay,
    /// 2 % of the packets are lost.
    LittleLoss,
    /// 2 % of the packets are lost, and 5 % arrive twice, most of them up to 300 ms later and some up to 3 s.
    OldCopies,
}

enum Input {
    Packet(Segment),
    Side(SideMessage),
}

struct World<T> {
    hosts: [T; 2],
    qps: [QpNum; 2],
    now: Time,
    free_at: [Time; 2],
    /// Inputs in flight by arrival time and order of sending: destination and input.
    wire: BTreeMap<(Time, u64), (usize, Input)>,
    sent: u64,
    rng: Rng,
    traffic: Traffic,
    disturbance: Disturbance,
    posted: [u64; 2],
    /// Times at which messages of a stream, or responses, arrived.
    arrived: Vec<Time>,
}

impl<T: Subject> World<T> {
    fn new(mut scheme: Scheme, traffic: Traffic, disturbance: Disturbance, seed: u64) -> Self {
        let env = PolicyEnv {
            line_rate: RATE,
            base_rtt: RTT,
            mtu_wire_bytes: MTU_WIRE,
            mtu_payload_bytes: MTU.into(),
            paths: PATHS,
            measured: MeasuredSection::with_rtt(RTT),
            edge: None,
        };
        let host = HostEnv {
            line_rate: RATE,
            network_rtt: RTT,
            host_delay: Duration::ZERO,
            base_rtt: RTT,
            max_inflight_bdps: 1.0,
            batch_packets: 1,
        };
        scheme.policy.adapt_to_host(&host);
        if let Some(credit) = &mut scheme.credit {
            credit.adapt_to_host(&host);
        }
        let (hosts, qps) = T::pair(&Setting { scheme: &scheme, env, nic_ports: 1, rto: RTO, seed });
        World {
            hosts,
            qps,
            now: Time::ZERO,
            free_at: [Time::ZERO; 2],
            wire: BTreeMap::new(),
            sent: 0,
            rng: Rng::for_component(seed, "wire", 0),
            traffic,
            disturbance,
            posted: [0; 2],
            arrived: vec![],
        }
    }

    fn put(&mut self, at: Time, to: usize, input: Input) {
        self.wire.insert((at, self.sent), (to, input));
        self.sent += 1;
    }

    /// Time at which a packet arrives that would arrive at `at` without an outage.
    fn after_outage(&self, at: Time) -> Time {
        let is_outage = matches!(self.disturbance, Disturbance::Silence | Disturbance::Delay);
        if is_outage && (BEGIN..END).contains(&at) { END } else { at }
    }

    fn carry(&mut self, from: usize, packet: &Transmit) {
        let at = self.after_outage(self.free_at[from].max(self.now)) + DELAY;
        let (lost, again) = match self.disturbance {
            _ if !(BEGIN..END).contains(&self.now) => (0.0, 0.0),
            Disturbance::Delay => (0.0, 0.0),
            Disturbance::Loss => (0.3, 0.0),
            Disturbance::Silence => (1.0, 0.0),
            Disturbance::LittleLoss => (0.02, 0.0),
            Disturbance::OldCopies => (0.02, 0.05),
        };
        if self.rng.bernoulli(lost) {
            return;
        }
        self.put(at, 1 - from, Input::Packet(packet.segment));
        if self.rng.bernoulli(again) {
            let most_us = if self.rng.bernoulli(0.1) { 3_000_000 } else { 300_000 };
            let later = Duration::from_us(self.rng.below(most_us).into());
            self.put(at + later, 1 - from, Input::Packet(packet.segment));
        }
    }

    fn post(&mut self, from: usize, len: u64) {
        T::post(&mut self.hosts, self.qps, self.now, from, self.posted[from], len);
        self.posted[from] += 1;
    }

    fn note(&mut self, host: usize, told: Told) {
        match (told, self.traffic) {
            (Told::Completed { status, .. }, _) => assert_eq!(status, Status::Success),
            (Told::Delivered { .. }, Traffic::Stream) => {
                self.arrived.push(self.now);
                self.post(0, STREAM_BYTES);
            }
            (Told::Delivered { .. }, Traffic::Exchange) => {
                if host == 0 {
                    self.arrived.push(self.now);
                }
                self.post(host, REQUEST_BYTES);
            }
        }
    }

    fn drain(&mut self, host: usize) {
        while let Some(event) = self.hosts[host].poll_event() {
            if let Some(told) = T::told(event) {
                self.note(host, told);
            }
        }
        while let Some((to, message)) = self.hosts[host].poll_side() {
            self.put(self.after_outage(self.now) + SIDE_DELAY, to.index(), Input::Side(message));
        }
        loop {
            let (mut packet, free) = (None, self.free_at[host] <= self.now);
            let mut take = |sent: Transmit| packet = Some(sent);
            if !self.hosts[host].send_control(&mut take) && free {
                self.hosts[host].send_data(self.now, FreePorts { data_ports: 1 }, &mut take);
            }
            let Some(packet) = packet else { break };
            if packet.class == Class::Data {
                self.free_at[host] = self.now + RATE.time_for(packet.wire_bytes.into());
            }
            self.carry(host, &packet);
        }
    }

    fn run(&mut self, until: Time) {
        (0..2).for_each(|host| self.drain(host));
        while self.now < until {
            let arrival = self.wire.keys().next().map(|&(at, _)| at);
            let timers = self.hosts.iter().filter_map(T::poll_timer);
            let ports = self.free_at.into_iter().filter(|at| *at > self.now);
            let next = timers.chain(arrival).chain(ports).min();
            self.now = next.map_or(until, |next| next.max(self.now).min(until));
            while let Some(entry) = self.wire.first_entry()
                && entry.key().0 <= self.now
            {
                let (to, input) = entry.remove();
                let from = HostId(1 - to as u32);
                match input {
                    Input::Packet(segment) => {
                        let _place = self.hosts[to].on_packet(self.now, from, &segment, false);
                    }
                    Input::Side(message) => self.hosts[to].on_side(self.now, from, &message),
                }
                self.drain(to);
            }
            for host in 0..2 {
                if self.hosts[host].poll_timer().is_some_and(|at| at <= self.now) {
                    self.hosts[host].on_timer(self.now);
                }
                self.drain(host);
            }
        }
    }

    /// Arrivals per second in `span` after `from`.
    fn rate(&self, from: Time, span: Duration) -> f64 {
        let count = |at: Time| self.arrived.partition_point(|arrived| *arrived < at);
        (count(from + span) - count(from)) as f64 / span.ratio(SECOND)
    }
}

/// Schemes that need longer, as they were published.
struct Late {
    schemes: &'static [&'static str],
    disturbances: &'static [Disturbance],
    /// Time from the disturbance to the second that counts.
    after: Duration,
}

const LATE: [Late; 2] = [
    // Timers of NICs double from the eighth timeout on, without a relevant bound: after 3 s of silence the next is
    // 1.5 s away.
    Late {
        schemes: &["mrc"],
        disturbances: &[Disturbance::Loss, Disturbance::Silence],
        after: Duration::from_ms(2_000),
    },
    // A window of a thousandth of a packet, without a least rate, sends one packet in 1,000 round trips, which are
    // 2.2 s.
    Late {
        schemes: &["swift-published", "reflex-swift-published"],
        disturbances: &[Disturbance::Loss, Disturbance::Silence, Disturbance::Delay],
        after: Duration::from_ms(2_000),
    },
];

fn counts_from(scheme: &str, disturbance: Disturbance) -> Time {
    let is_of = |late: &&Late| late.schemes.contains(&scheme) && late.disturbances.contains(&disturbance);
    LATE.iter().find(is_of).map_or(END, |late| END + late.after)
}

/// Arrivals per second before, during and after a disturbance.
#[derive(Clone, Copy, Debug)]
struct Rates {
    before: f64,
    within: f64,
    after: f64,
}

fn rates<T: Subject>(info: &SchemeInfo, traffic: Traffic, disturbance: Disturbance, seed: u64) -> Rates {
    let mut world = World::<T>::new((info.make)(), traffic, disturbance, seed);
    match traffic {
        Traffic::Stream => (0..STREAM_DEPTH).for_each(|_| world.post(0, STREAM_BYTES)),
        Traffic::Exchange => world.post(0, REQUEST_BYTES),
    }
    let counts_from = counts_from(info.name, disturbance);
    world.run(counts_from + SECOND);
    Rates {
        before: world.rate(WARM, BEGIN - WARM),
        within: world.rate(BEGIN, END - BEGIN),
        after: world.rate(counts_from, SECOND),
    }
}

/// Reports all failures, not only the first.
#[expect(clippy::print_stdout, reason = "a seed that fails is one of a scheme")]
fn every_scheme_comes_back(traffic: Traffic) {
    let mut wrong = vec![];
    for info in schemes() {
        let rates = match (info.make)().service {
            Service::Connection | Service::SharedReceive(_) | Service::EndToEnd => {
                rates::<Endpoint<AnyPolicy>>
            }
            Service::Datagram(_) => rates::<RdQp<AnyPolicy>>,
        };
        for seed in SEEDS {
            let mut check = |disturbance, least_within: f64| {
                let found = rates(info, traffic, disturbance, seed);
                let line = format!("{}, {traffic:?}, {disturbance:?}, seed {seed}: {found:.0?}", info.name);
                println!("{line}");
                if found.after < found.before / 2.0 || found.within < least_within {
                    wrong.push(line);
                }
                found
            };
            check(Disturbance::Loss, 0.0);
            check(Disturbance::Silence, 0.0);
            check(Disturbance::Delay, 0.0);
            let lossy = check(Disturbance::LittleLoss, 0.0);
            // Copies are late, not the packets.
            check(Disturbance::OldCopies, lossy.within / 2.0);
        }
    }
    assert!(wrong.is_empty(), "a second before, within, and after: {wrong:#?}");
}

#[test]
fn streams_have_half_of_their_rate_a_second_after_a_disturbance() {
    every_scheme_comes_back(Traffic::Stream);
}

#[test]
fn requests_that_wait_for_answers_have_half_of_their_rate_a_second_after_a_disturbance() {
    every_scheme_comes_back(Traffic::Exchange);
}
