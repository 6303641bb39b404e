//! Links of unequal rates, and one that is cut under a stream, in simulated time: the endpoint with the scheme as it runs
//! on hosts.
//! The bench measures the same on a real network, where other work on the machine is part of the result.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use pathweave_policy::{Leg, PolicyEnv};
use pathweave_transport::{
    Access, Buffer, Class, Endpoint, EndpointConfig, Event, Gate, MemoryRegion, Op, QpConfig, Status,
    WorkRequest,
};
use pathweave_units::{Duration, HostId, QpNum, Rate, Rng, Time};
use pathweave_wire::{Framing, Segment};

use super::watch::{Deaths, Watched};
use crate::config::DeviceConfig;
use crate::scheme;

/// Source ports. Each goes by one link, and what answers it by another one or the same: of four, all pairs twice.
const PORTS: u16 = 32;
/// As in the bench.
const EQUAL_MBPS: [u64; 4] = [100; 4];
const HOST_MBPS: u64 = 1_000;
const QUEUE_BYTES: u64 = 150_000;
const DELAY: Duration = Duration::from_us(50);
const MESSAGE_BYTES: u64 = 16_384;
const DEPTH: u64 = 128;
const PAYLOAD: u16 = 1_344;

/// Link of what host 0 sends on a port, and of what host 1 does.
fn link(from: usize, port: u16, links: usize) -> usize {
    usize::from(if from == 0 { port } else { port / 4 }) % links
}

struct Host {
    endpoint: Endpoint<Watched>,
    qp: QpNum,
    deaths: Deaths,
    /// When its own link is free.
    free_at: Time,
}

struct World {
    now: Time,
    hosts: [Host; 2],
    /// When each link is free, one way and the other.
    free_at: [Vec<Time>; 2],
    rates: Vec<Rate>,
    cut: Option<usize>,
    wire: BTreeMap<(Time, u64), (usize, Segment)>,
    sent: u64,
    rkey: u32,
    posted: u64,
    /// When so many bytes were done.
    log: Vec<(Time, u64)>,
}

fn host(id: usize, seed: u64) -> Host {
    let line_rate = Rate::from_mbps(HOST_MBPS);
    let config = DeviceConfig { mtu_payload: PAYLOAD, line_rate, ..DeviceConfig::loopback() };
    let found = scheme::find("udmp").expect("it is there");
    let scheme = scheme::for_hosts(found, &config, PORTS, Some(8 << 20), None);
    let rtts = scheme::rtts(&scheme, &config, None);
    let env = PolicyEnv {
        line_rate,
        base_rtt: rtts.base,
        mtu_wire_bytes: u32::from(PAYLOAD) + 130,
        mtu_payload_bytes: PAYLOAD.into(),
        paths: PORTS,
        measured: Leg::of(rtts.base),
        edge: None,
    };
    let mut rng = Rng::for_component(seed, "policy", id as u64);
    let deaths = Deaths::default();
    let policy = Watched::new(scheme.policy.build(&env, &mut rng), PORTS, rtts.least, deaths.clone());
    let mut endpoint = Endpoint::new(EndpointConfig {
        mtu_payload: PAYLOAD,
        framing: Framing::Pathweave,
        seed,
        ..EndpointConfig::new(HostId(id as u32))
    });
    let qp = QpConfig {
        recovery: scheme.recovery,
        acks: scheme.acks,
        rto: scheme::timeouts(&config),
        ..QpConfig::new(HostId(1 - id as u32), policy, &[])
    };
    let qp = endpoint.create_qp(Time::ZERO, qp);
    Host { endpoint, qp, deaths, free_at: Time::ZERO }
}

impl World {
    fn new(seed: u64, mbps: &[u64]) -> Self {
        let mut hosts = [host(0, seed), host(1, seed)];
        let qps = [hosts[0].qp, hosts[1].qp];
        hosts[0].endpoint.connect(qps[0], qps[1]).unwrap();
        hosts[1].endpoint.connect(qps[1], qps[0]).unwrap();
        let region = MemoryRegion { buffer: Buffer(0), addr: 0, len: MESSAGE_BYTES, access: Access::WRITE };
        let rkey = hosts[1].endpoint.register(region).unwrap();
        World {
            now: Time::ZERO,
            hosts,
            rkey,
            free_at: [vec![Time::ZERO; mbps.len()], vec![Time::ZERO; mbps.len()]],
            rates: mbps.iter().map(|mbps| Rate::from_mbps(*mbps)).collect(),
            cut: None,
            wire: BTreeMap::new(),
            sent: 0,
            posted: 0,
            log: Vec::new(),
        }
    }

    /// A packet leaves a host: it waits for the link of its port, if there is room, and crosses it.
    fn launch(&mut self, from: usize, segment: Segment, wire_bytes: u32) {
        let link = link(from, segment.path.0, self.rates.len());
        let rate = self.rates[link];
        let free_at = &mut self.free_at[from][link];
        let waiting = rate.bytes_in(free_at.saturating_since(self.now));
        if self.cut == Some(link) || waiting + u64::from(wire_bytes) > QUEUE_BYTES {
            return;
        }
        *free_at = (*free_at).max(self.now) + rate.time_for(wire_bytes.into());
        self.wire.insert((*free_at + DELAY, self.sent), (1 - from, segment));
        self.sent += 1;
    }

    /// Everything a host does now: what the loop of a device does.
    fn drain(&mut self, from: usize) {
        while from == 0 && self.posted < self.done() / MESSAGE_BYTES + DEPTH {
            let op = Op::Write { rkey: self.rkey, remote_addr: 0 };
            let (wr_id, local, len) = (self.posted, Buffer(0), MESSAGE_BYTES);
            let host = &mut self.hosts[0];
            host.endpoint.post(self.now, host.qp, WorkRequest { wr_id, op, local, len }).unwrap();
            self.posted += 1;
        }
        let host = &mut self.hosts[from];
        if host.deaths.swap(false, Ordering::Relaxed) {
            let dead = host.endpoint.policy(host.qp).map(Watched::dead_paths).unwrap_or_default();
            host.endpoint.abandon(self.now, host.qp, &dead).unwrap();
        }
        loop {
            let host = &mut self.hosts[from];
            let gate = if host.free_at <= self.now { Gate::OPEN } else { Gate::CONTROL };
            let Some(packet) = host.endpoint.poll_transmit(self.now, gate) else { break };
            if packet.class == Class::Data {
                host.free_at = self.now + Rate::from_mbps(HOST_MBPS).time_for(packet.wire_bytes.into());
            }
            self.launch(from, packet.segment, packet.wire_bytes);
        }
        while let Some(event) = self.hosts[from].endpoint.poll_event() {
            if let Event::Completion(completion) = event {
                assert_eq!(completion.status, Status::Success, "the application sees nothing of a cut");
                self.log.push((self.now, self.done() + MESSAGE_BYTES));
            }
        }
    }

    fn done(&self) -> u64 {
        self.log.last().map_or(0, |(_, bytes)| *bytes)
    }

    fn run(&mut self, until: Time) {
        loop {
            (0..2).for_each(|host| self.drain(host));
            let arrival = self.wire.keys().next().map(|(at, _)| *at);
            let timers = self.hosts.iter().filter_map(|host| host.endpoint.poll_timer());
            let ports = self.hosts.iter().map(|host| host.free_at).filter(|at| *at > self.now);
            let next = arrival.into_iter().chain(timers).chain(ports).min().unwrap_or(Time::MAX);
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            for host in &mut self.hosts {
                host.endpoint.on_timer(self.now);
            }
            while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (to, segment) = entry.remove();
                self.hosts[to].endpoint.on_packet(self.now, HostId(1 - to as u32), &segment, false);
            }
        }
    }

    fn bytes_at(&self, at: Time) -> u64 {
        let after = self.log.partition_point(|(done, _)| *done <= at);
        after.checked_sub(1).map_or(0, |index| self.log[index].1)
    }

    /// Longest time after `since` without a completion.
    fn longest_stall(&self, since: Time) -> Duration {
        let after = self.log.partition_point(|(done, _)| *done <= since);
        let pairs = self.log[after.saturating_sub(1)..].windows(2);
        pairs.map(|pair| pair[1].0 - pair[0].0).max().unwrap_or(Duration::MAX)
    }

    /// Payload that these links carry in a time.
    fn capacity(&self, links: &[usize], time: Duration) -> f64 {
        let bytes: u64 = links.iter().map(|link| self.rates[*link].bytes_in(time)).sum();
        bytes as f64 * f64::from(PAYLOAD) / (f64::from(PAYLOAD) + 126.0)
    }

    /// Milliseconds from `since` until a window of 50 ms has `share` of the payload that `links` carry.
    fn recovery_ms(&self, since: Time, links: &[usize], share: f64) -> Option<u64> {
        let window = Duration::from_ms(50);
        let bytes = self.capacity(links, window);
        (0..500).find(|ms| {
            let from = since + Duration::from_ms(*ms);
            (self.bytes_at(from + window) - self.bytes_at(from)) as f64 >= share * bytes
        })
    }
}

#[test]
fn a_cut_path_costs_less_than_fifty_milliseconds() {
    for seed in 1..=6 {
        for link in 0..EQUAL_MBPS.len() {
            let mut world = World::new(seed, &EQUAL_MBPS);
            let cut_at = Time::from_us(400_000 + 1_700 * seed);
            world.run(cut_at);
            world.cut = Some(link);
            world.run(cut_at + Duration::from_ms(300));
            let (stall, recovered) =
                (world.longest_stall(cut_at), world.recovery_ms(cut_at, &[0, 1, 2], 0.9));
            let context = format!("seed {seed}, link {link}: {recovered:?} ms, {stall} without a completion");
            assert!(recovered.is_some_and(|ms| ms <= 50), "{context}");
            // What was on the link is sent again when its paths fall silent. A timer of 10 ms waits only for what was the
            // single packet of its path.
            assert!(stall < Duration::from_ms(15), "{context}");
            assert!(world.hosts[0].endpoint.counters().timeouts <= 1, "{context}");
        }
    }
}

/// Not those on which what UDMP allows hosts for was chosen alone, but the same behind other rates, and more of them.
#[test]
fn unequal_links_give_what_they_have_together() {
    let cases: [&[u64]; 4] =
        [&[100, 100, 50, 10], &[200, 200, 100, 20], &[60, 60, 30, 6], &[100, 80, 60, 40, 30, 20, 10, 5]];
    for mbps in cases {
        for seed in 1..=3 {
            let mut world = World::new(seed, mbps);
            let (from, time) = (Time::from_us(700_000), Duration::from_ms(1_000));
            world.run(from + time);
            let done = (world.bytes_at(from + time) - world.bytes_at(from)) as f64;
            let share = done / world.capacity(&(0..mbps.len()).collect::<Vec<_>>(), time);
            assert!(share > 0.9, "{mbps:?}, seed {seed}: {share:.3} of their sum");
        }
    }
}
