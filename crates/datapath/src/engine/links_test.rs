//! Links of unequal rates, and a link that is cut during a transfer, in simulated time: the endpoint with the scheme
//! as adapted to hosts.
//! The bench measures the same on a real network, where other load on the machine affects the results.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use pathweave_policy::PolicyEnv;
use pathweave_transport::{
    Access, Buffer, Class, Endpoint, EndpointConfig, Event, FreePorts, MemoryRegion, Op, QpConfig, Scope,
    Status, WorkRequest,
};
use pathweave_units::{Duration, HostId, QpNum, Rate, Rng, Time};
use pathweave_wire::{Framing, Segment};

use super::path_monitor::{Deaths, MonitoredPolicy};
use crate::config::DeviceConfig;
use crate::scheme;

/// Number of source ports. Each maps to one link, and its answers to the same or another link: with four links, every
/// pair occurs twice.
const PORTS: u16 = 32;
/// Rates of the four equal links in Mb/s, the same as in the bench.
const EQUAL_MBPS: [u64; 4] = [100; 4];
const HOST_MBPS: u64 = 1_000;
const QUEUE_BYTES: u64 = 150_000;
const DELAY: Duration = Duration::from_us(50);
const MESSAGE_BYTES: u64 = 16_384;
const DEPTH: u64 = 128;
const PAYLOAD: u16 = 1_344;

/// Requests that host 0 keeps outstanding at all times.
#[derive(Clone, Copy)]
struct Traffic {
    scheme: &'static str,
    way: Way,
    /// Length of each request, in bytes.
    bytes: u64,
    /// Number of outstanding requests.
    depth: u64,
    ports: u16,
    hashing: Hashing,
}

/// Mapping of ports to links.
#[derive(Clone, Copy)]
enum Hashing {
    Even,
    /// Random, like the hashing of switches: a link may have many ports or none.
    Random,
}

/// Direction of the transfer.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Write,
    Read,
}

impl Traffic {
    /// WRITEs, the same as in the bench.
    const WRITES: Traffic = Traffic {
        scheme: "udmp",
        way: Way::Write,
        bytes: MESSAGE_BYTES,
        depth: DEPTH,
        ports: PORTS,
        hashing: Hashing::Even,
    };
}

/// Returns the link that carries a host's packets on a port.
fn link(from: usize, port: u16, links: usize) -> usize {
    usize::from(if from == 0 { port } else { port / 4 }) % links
}

struct Host {
    endpoint: Endpoint<MonitoredPolicy>,
    qp: QpNum,
    deaths: Deaths,
    /// Time at which the host's own link is free.
    free_at: Time,
    /// Time until which the host is not scheduled, and time of the next stall.
    asleep_until: Time,
    stalls_at: Time,
    rng: Rng,
}

/// Stalls of a host.
#[derive(Clone, Copy)]
struct Stalls {
    /// Mean interval between two stalls, and mean length of one. Both are uniform between zero and twice the mean.
    every: Duration,
    mean: Duration,
}

struct World {
    now: Time,
    hosts: [Host; 2],
    /// Times at which the links are free, for each direction.
    free_at: [Vec<Time>; 2],
    rates: Vec<Rate>,
    cut: Vec<usize>,
    stalls: Option<Stalls>,
    wire: BTreeMap<(Time, u64), (usize, Segment)>,
    sent: u64,
    seed: u64,
    traffic: Traffic,
    rkey: u64,
    posted: u64,
    /// Completed bytes at each completion.
    log: Vec<(Time, u64)>,
}

fn host(id: usize, seed: u64, traffic: Traffic) -> Host {
    let line_rate = Rate::from_mbps(HOST_MBPS);
    let config = DeviceConfig { mtu_payload: PAYLOAD, line_rate, ..DeviceConfig::loopback() };
    let found = scheme::find(traffic.scheme).expect("it is there");
    let scheme = scheme::for_hosts(found, &config, traffic.ports, Some(8 << 20), None);
    let rtts = scheme::rtts(&scheme, &config, None);
    let env = PolicyEnv {
        mtu_wire_bytes: u32::from(PAYLOAD) + 130,
        mtu_payload_bytes: PAYLOAD.into(),
        ..PolicyEnv::new(line_rate, rtts.base, traffic.ports)
    };
    let mut rng = Rng::for_component(seed, "policy", id as u64);
    let deaths = Deaths::default();
    let policy =
        MonitoredPolicy::new(scheme.policy.build(&env, &mut rng), traffic.ports, rtts.least, deaths.clone());
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
        idle_rtt: scheme::span(config.base_rtt) + scheme::span(config.host_delay),
        host_delay: scheme::span(config.host_delay),
        max_reads_in: 128,
        ..QpConfig::new(HostId(1 - id as u32), policy, &[])
    };
    let qp = endpoint.create_qp(Time::ZERO, qp);
    let rng = Rng::for_component(seed, "stalls", id as u64);
    Host { endpoint, qp, deaths, free_at: Time::ZERO, asleep_until: Time::ZERO, stalls_at: Time::MAX, rng }
}

impl World {
    fn new(seed: u64, mbps: &[u64], traffic: Traffic) -> Self {
        let mut hosts = [host(0, seed, traffic), host(1, seed, traffic)];
        let qps = [hosts[0].qp, hosts[1].qp];
        hosts[0].endpoint.connect(qps[0], qps[1]).unwrap();
        hosts[1].endpoint.connect(qps[1], qps[0]).unwrap();
        let (len, access) = (traffic.depth * traffic.bytes, Access::READ_WRITE);
        let region = MemoryRegion { buffer: Buffer(0), addr: 0, len, access, scope: Scope::DEFAULT };
        let rkey = hosts[1].endpoint.register(region, 0).unwrap();
        World {
            now: Time::ZERO,
            hosts,
            seed,
            traffic,
            rkey,
            free_at: [vec![Time::ZERO; mbps.len()], vec![Time::ZERO; mbps.len()]],
            rates: mbps.iter().map(|mbps| Rate::from_mbps(*mbps)).collect(),
            cut: Vec::new(),
            stalls: None,
            wire: BTreeMap::new(),
            sent: 0,
            posted: 0,
            log: Vec::new(),
        }
    }

    /// Returns the link that a packet takes.
    fn link(&self, from: usize, port: u16) -> usize {
        let links = self.rates.len();
        match self.traffic.hashing {
            Hashing::Even => link(from, port, links),
            Hashing::Random => {
                let mut rng = Rng::for_component(self.seed, "hash", u64::from(port) << 1 | from as u64);
                rng.below(links as u32) as usize
            }
        }
    }

    /// Sends a packet: it is queued at the link of its port if there is room, and crosses the link.
    fn launch(&mut self, from: usize, segment: Segment, wire_bytes: u32) {
        let link = self.link(from, segment.path.0);
        let rate = self.rates[link];
        let free_at = &mut self.free_at[from][link];
        let waiting = rate.bytes_in(free_at.saturating_since(self.now));
        if self.cut.contains(&link) || waiting + u64::from(wire_bytes) > QUEUE_BYTES {
            return;
        }
        *free_at = (*free_at).max(self.now) + rate.time_for(wire_bytes.into());
        self.wire.insert((*free_at + DELAY, self.sent), (1 - from, segment));
        self.sent += 1;
    }

    /// Does all work that a host can do now, like a turn of a device's loop.
    fn drain(&mut self, from: usize) {
        let Traffic { way, bytes: len, depth, .. } = self.traffic;
        while from == 0 && self.posted < self.done() / len + depth {
            // Each request has its own place: a WRITE that overlaps an outstanding one would wait for it.
            let remote_addr = self.posted % depth * len;
            let rkey = self.rkey;
            let op = match way {
                Way::Write => Op::Write { rkey, remote_addr },
                Way::Read => Op::Read { rkey, remote_addr },
            };
            let (wr_id, local) = (self.posted, Buffer(0));
            let host = &mut self.hosts[0];
            host.endpoint.post(self.now, host.qp, WorkRequest { wr_id, op, local, len }).unwrap();
            self.posted += 1;
        }
        let host = &mut self.hosts[from];
        if host.deaths.swap(false, Ordering::Relaxed) {
            let dead = host.endpoint.policy(host.qp).map(MonitoredPolicy::dead_paths).unwrap_or_default();
            host.endpoint.abandon(self.now, host.qp, &dead).unwrap();
        }
        loop {
            let host = &mut self.hosts[from];
            let gate = if host.free_at <= self.now { FreePorts::OPEN } else { FreePorts::CONTROL };
            let Some(packet) = host.endpoint.poll_transmit(self.now, gate) else { break };
            if packet.class == Class::Data {
                host.free_at = self.now + Rate::from_mbps(HOST_MBPS).time_for(packet.wire_bytes.into());
            }
            self.launch(from, packet.segment, packet.wire_bytes);
        }
        let before = self.log.len();
        while let Some(event) = self.hosts[from].endpoint.poll_event() {
            if let Event::Completion(completion) = event {
                assert_eq!(completion.status, Status::Success, "the application sees nothing of a cut");
                self.log.push((self.now, self.done() + len));
            }
        }
        if self.log.len() > before {
            // The application posts further requests at once.
            self.drain(from);
        }
    }

    fn done(&self) -> u64 {
        self.log.last().map_or(0, |(_, bytes)| *bytes)
    }

    /// Returns the next time at which a host has work and is scheduled.
    fn next(&self, host: usize) -> Time {
        let it = &self.hosts[host];
        let arrival = self.wire.iter().find(|(_, (to, _))| *to == host).map(|((at, _), _)| *at);
        let port = Some(it.free_at).filter(|at| *at > self.now);
        let next = arrival.into_iter().chain(it.endpoint.poll_timer()).chain(port).min();
        next.unwrap_or(Time::MAX).max(it.asleep_until).max(self.now)
    }

    fn run(&mut self, until: Time) {
        (0..2).for_each(|host| self.drain(host));
        loop {
            let (next, host) = (0..2).map(|host| (self.next(host), host)).min().expect("two hosts");
            if next > until {
                self.now = until;
                return;
            }
            self.now = next;
            self.turn(host);
        }
    }

    /// Runs a turn of a host's loop.
    fn turn(&mut self, to: usize) {
        let now = self.now;
        if let Some(Stalls { every, mean }) = self.stalls {
            let host = &mut self.hosts[to];
            let mut draw = |span: Duration| Duration::from_ns(host.rng.below(2 * span.as_ns() as u32).into());
            if host.stalls_at == Time::MAX {
                host.stalls_at = now + draw(every);
            }
            if host.stalls_at <= now {
                host.asleep_until = now + draw(mean);
                host.stalls_at = host.asleep_until + draw(every);
                return;
            }
        }
        let due: Vec<(Time, u64)> = self
            .wire
            .range(..=(now, u64::MAX))
            .filter(|(_, (host, _))| *host == to)
            .map(|(key, _)| *key)
            .collect();
        for key in due {
            let Some((_, segment)) = self.wire.remove(&key) else { continue };
            self.hosts[to].endpoint.on_packet(now, HostId(1 - to as u32), &segment, false);
        }
        self.hosts[to].endpoint.on_timer(now);
        self.drain(to);
    }

    fn bytes_at(&self, at: Time) -> u64 {
        let after = self.log.partition_point(|(done, _)| *done <= at);
        after.checked_sub(1).map_or(0, |index| self.log[index].1)
    }

    /// Returns the longest time after `since` without a completion.
    fn longest_stall(&self, since: Time) -> Duration {
        let after = self.log.partition_point(|(done, _)| *done <= since);
        let pairs = self.log[after.saturating_sub(1)..].windows(2);
        pairs.map(|pair| pair[1].0 - pair[0].0).max().unwrap_or(Duration::MAX)
    }

    /// Returns the payload bytes that these links carry in a time.
    fn capacity(&self, links: &[usize], time: Duration) -> f64 {
        let bytes: u64 = links.iter().map(|link| self.rates[*link].bytes_in(time)).sum();
        bytes as f64 * f64::from(PAYLOAD) / (f64::from(PAYLOAD) + 126.0)
    }

    /// Returns the milliseconds from `since` until a window of 50 ms has `share` of the payload that `links` carry.
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
            let mut world = World::new(seed, &EQUAL_MBPS, Traffic::WRITES);
            let cut_at = Time::from_us(400_000 + 1_700 * seed);
            world.run(cut_at);
            world.cut = vec![link];
            world.run(cut_at + Duration::from_ms(300));
            let (stall, recovered) =
                (world.longest_stall(cut_at), world.recovery_ms(cut_at, &[0, 1, 2], 0.9));
            let context = format!("seed {seed}, link {link}: {recovered:?} ms, {stall} without a completion");
            assert!(recovered.is_some_and(|ms| ms <= 50), "{context}");
            // Packets on the cut link are retransmitted when its paths are declared dead. Only a packet that was the
            // single one of its path waits for a timer of 10 ms.
            assert!(stall < Duration::from_ms(15), "{context}");
            assert!(world.hosts[0].endpoint.counters().timeouts <= 1, "{context}");
        }
    }
}

/// Returns the carried payload as a share of the links' capacity, after a start of 700 ms.
fn share_of_sum(seed: u64, mbps: &[u64], stalls: Option<Stalls>, traffic: Traffic) -> f64 {
    let mut world = World::new(seed, mbps, traffic);
    world.stalls = stalls;
    let (from, time) = (Time::from_us(700_000), Duration::from_ms(1_000));
    world.run(from + time);
    let done = (world.bytes_at(from + time) - world.bytes_at(from)) as f64;
    done / world.capacity(&(0..mbps.len()).collect::<Vec<_>>(), time)
}

/// The cases include other rates and more links than those for which UDMP's allowance for hosts was chosen.
#[test]
fn unequal_links_give_what_they_have_together() {
    let cases: [&[u64]; 5] = [
        &[100, 100, 50, 10],
        &[200, 200, 100, 20],
        &[60, 60, 30, 6],
        &[100, 80, 60, 40, 30, 20, 10, 5],
        // The bytes in flight are just enough.
        &[300, 150, 150, 30],
    ];
    for mbps in cases {
        for seed in 1..=3 {
            let share = share_of_sum(seed, mbps, None, Traffic::WRITES);
            assert!(share > 0.9, "{mbps:?}, seed {seed}: {share:.3} of their sum");
        }
    }
}

/// Hosts are not scheduled for 2 ms every 20 ms, and links are fast, so that their queues run dry sooner than that.
/// Enough is in flight that they hardly do, and not so much that queues overflow afterwards, which would cost half of
/// the sum.
#[test]
fn links_are_kept_busy_while_a_host_is_not_scheduled() {
    let stalls = Stalls { every: Duration::from_ms(20), mean: Duration::from_ms(2) };
    for (scheme, mbps, floor) in [
        ("weave", [200, 200, 100, 20], 0.92),
        ("udmp", [200, 200, 100, 20], 0.89),
        ("udmp", [100, 100, 50, 10], 0.95),
    ] {
        let share = |seed| share_of_sum(seed, &mbps, Some(stalls), Traffic { scheme, ..Traffic::WRITES });
        let mean = (1..=4).map(share).sum::<f64>() / 4.0;
        assert!(mean > floor, "{scheme}, {mbps:?}: {mean:.3} of their sum");
    }
}

/// Hosts are not scheduled for 2 ms every 20 ms, less than the time in which the queues run dry. The queues are many
/// round trips long. A late path gives up a part of its packets to others, not all of them.
#[test]
fn links_share_evenly_what_waits_in_long_queues() {
    let stalls = Stalls { every: Duration::from_ms(20), mean: Duration::from_ms(2) };
    let mean = |mbps: &[u64], stalls| {
        (1..=6).map(|seed| share_of_sum(seed, mbps, stalls, Traffic::WRITES)).sum::<f64>() / 6.0
    };
    let stalled = mean(&[60, 60, 30, 6], Some(stalls));
    let slow = mean(&[20, 20, 10, 2], None);
    assert!(stalled > 0.95 && slow > 0.8, "{stalled:.3} and {slow:.3} of their sums");
}

/// Traffic of the libfabric provider: the default scheme of devices, on 16 ports.
fn of_provider(way: Way, bytes: u64, depth: u64, hashing: Hashing) -> Traffic {
    Traffic { scheme: "weave", way, bytes, depth, ports: 16, hashing }
}

/// Messages of 16 KiB and READs of 32 KiB to 512 KiB, so few that each waits for its packets on the slowest link.
/// With packets on recently fast or random paths, the worst share was 0.04, as only the slowest link had anything in
/// flight.
#[test]
fn bursts_do_not_wait_for_the_slowest_link() {
    let stalls = Stalls { every: Duration::from_ms(20), mean: Duration::from_ms(2) };
    for (way, bytes, depth) in [
        (Way::Write, 16_384, 16),
        (Way::Write, 16_384, 64),
        (Way::Read, 32_768, 16),
        (Way::Read, 131_072, 16),
        (Way::Read, 524_288, 4),
    ] {
        for hashing in [Hashing::Even, Hashing::Random] {
            for (stalls, floor) in [(None, 0.93), (Some(stalls), 0.88)] {
                for seed in 1..=3 {
                    let traffic = of_provider(way, bytes, depth, hashing);
                    let share = share_of_sum(seed, &[100, 100, 50, 10], stalls, traffic);
                    assert!(share > floor, "{depth} of {bytes} bytes, seed {seed}: {share:.3} of their sum");
                }
            }
        }
    }
}

/// Cuts half of four unequal links, and with them three quarters of all paths.
#[test]
fn two_cut_links_of_four_cost_less_than_a_tenth_of_a_second() {
    for (way, bytes, depth) in [(Way::Write, 16_384, 64), (Way::Read, 524_288, 4)] {
        for seed in 1..=6 {
            let mut world =
                World::new(seed, &[100, 100, 50, 10], of_provider(way, bytes, depth, Hashing::Even));
            let cut_at = Time::from_us(400_000 + 1_700 * seed);
            world.run(cut_at);
            world.cut = vec![0, 2];
            world.run(cut_at + Duration::from_ms(400));
            let recovered = world.recovery_ms(cut_at, &[1, 3], 0.9);
            assert!(recovered.is_some_and(|ms| ms <= 100), "seed {seed}, {bytes} bytes: {recovered:?} ms");
        }
    }
}
