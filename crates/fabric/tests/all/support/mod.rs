//! A fabric with scripted hosts: packets are sent at given instants, and all output is recorded.

#![allow(dead_code, reason = "every test file uses its part of this")]

pub(crate) mod reference;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use pathweave_fabric::config::{SwitchClasses, SwitchConfig, SwitchPlace, SwitchRole};
use pathweave_fabric::{
    Cable, DropReason, Fabric, FabricEvent, FabricEventKind, Header, PortId, PortMap, Span, Step,
    SwitchRoutes, TableRoutes,
};
use pathweave_units::{Bytes, Duration, HostId, PathId, Rate, Time, TrimmedAt};

/// A packet for a host to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) src: u32,
    pub(crate) dst: u32,
    pub(crate) path: u16,
    pub(crate) bytes: u32,
    pub(crate) class: u8,
    pub(crate) ecn: bool,
}

/// Makes a data packet of class 1 that may be marked.
pub(crate) fn data(src: u32, dst: u32, bytes: u32) -> Packet {
    Packet { src, dst, path: 0, bytes, class: 1, ecn: true }
}

/// Makes a packet of the control class.
pub(crate) fn control(src: u32, dst: u32, bytes: u32) -> Packet {
    Packet { class: 0, ecn: false, ..data(src, dst, bytes) }
}

/// A packet that has reached its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) time: Time,
    pub(crate) host: u32,
    pub(crate) id: u32,
    pub(crate) marked: bool,
    pub(crate) trimmed: Option<TrimmedAt>,
    pub(crate) hops: u8,
}

type Act<const C: usize> = Box<dyn FnOnce(&mut Net<C>, Time)>;

/// A fabric and its scripted hosts.
pub(crate) struct Net<const C: usize> {
    pub(crate) fabric: Fabric<u32, C>,
    pub(crate) map: PortMap,
    pub(crate) cables: Vec<Cable>,
    pub(crate) hosts: u32,
    pub(crate) switches: u32,
    /// Packets sent, by id.
    pub(crate) packets: Vec<Packet>,
    pub(crate) delivered: Vec<Delivery>,
    pub(crate) log: Vec<FabricEvent<u32>>,
    /// Called with the fabric after every window.
    pub(crate) observer: Option<fn(&mut Net<C>, Time)>,
    /// Longest window.
    pub(crate) longest_window: Duration,
    script: BTreeMap<(Time, u32), Act<C>>,
    scripted: u32,
    /// Instant before which everything is done.
    done: Time,
}

pub(crate) fn ps(ps: u64) -> Time {
    Time::from_ps(ps)
}

pub(crate) fn cable(a: u32, b: u32, gbps: u64, delay_ns: u64) -> Cable {
    Cable {
        a,
        b,
        rate: Rate::from_gbps(gbps),
        delay: Duration::from_ns(delay_ns),
        back: None,
        span: Span::Local,
    }
}

/// Returns the classes of switches named "s0", "s1", ... The first is of tier 0, the others of tier 1.
pub(crate) fn classes(config: &SwitchConfig, switches: u32) -> SwitchClasses {
    let names: Vec<String> = (0..switches).map(|switch| format!("s{switch}")).collect();
    let places = names.iter().zip(0u8..).map(|(name, index)| SwitchPlace {
        name,
        tier: index.min(1),
        group: None,
        role: SwitchRole::Local,
    });
    SwitchClasses::new(config, places).expect("tables for these switches")
}

/// Cables of `hosts` hosts on one switch.
pub(crate) fn star(hosts: u32, gbps: u64, delay_ns: u64) -> Vec<Cable> {
    (0..hosts).map(|host| cable(host, hosts, gbps, delay_ns)).collect()
}

/// Cables of `leaves` switches with `per_leaf` hosts each, all joined to each of `spines` switches.
pub(crate) fn leaf_spine(leaves: u32, per_leaf: u32, spines: u32, gbps: u64, delay_ns: u64) -> Vec<Cable> {
    let hosts = leaves * per_leaf;
    let mut cables: Vec<Cable> = (0..hosts).map(|h| cable(h, hosts + h / per_leaf, gbps, delay_ns)).collect();
    for leaf in 0..leaves {
        for spine in 0..spines {
            cables.push(cable(hosts + leaf, hosts + leaves + spine, gbps, delay_ns));
        }
    }
    cables
}

/// Cables of `n` switches in a ring, with one host each.
pub(crate) fn ring(n: u32, gbps: u64, delay_ns: u64) -> Vec<Cable> {
    let mut cables: Vec<Cable> = (0..n).map(|i| cable(i, n + i, gbps, delay_ns)).collect();
    cables.extend((0..n).map(|i| cable(n + i, n + (i + 1) % n, gbps, delay_ns)));
    cables
}

/// Configuration without marking, without pauses, and without drops below a gigabyte.
pub(crate) fn plain() -> SwitchConfig {
    let mut config = SwitchConfig { buffer: Bytes::from_mb(1_000), ..SwitchConfig::default() };
    config.pfc.enabled = false;
    config.ecn.enabled = false;
    config
}

/// Configuration [`plain`] with PFC. The buffer is `shared` plus the headroom of `ports` ports of `classes` data
/// classes.
pub(crate) fn lossless(shared: u64, alpha: f64, headroom: u64, ports: u64, classes: u64) -> SwitchConfig {
    let mut config = plain();
    config.pfc.enabled = true;
    config.pfc.alpha = alpha;
    config.pfc.headroom = Some(Bytes::new(headroom));
    config.buffer = Bytes::new(shared + headroom * ports * classes);
    config
}

/// Returns tables that send every packet along a shortest path over the cables that `alive` accepts.
pub(crate) fn shortest_routes(
    hosts: u32,
    switches: u32,
    cables: &[Cable],
    map: &PortMap,
    alive: impl Fn(usize) -> bool,
) -> Vec<SwitchRoutes> {
    let nodes = (hosts + switches) as usize;
    // Edges of each node: (egress port, adjacent node).
    let mut around: Vec<Vec<(PortId, u32)>> = vec![vec![]; nodes];
    for (index, cable) in cables.iter().enumerate().filter(|(index, _)| alive(*index)) {
        let (at_a, at_b) = map.ends(index);
        around[cable.a as usize].push((at_a, cable.b));
        around[cable.b as usize].push((at_b, cable.a));
    }
    let distances = |to: u32| {
        let mut distance = vec![u32::MAX; nodes];
        distance[to as usize] = 0;
        let mut queue = VecDeque::from([to]);
        while let Some(node) = queue.pop_front() {
            for &(_, next) in &around[node as usize] {
                if distance[next as usize] == u32::MAX {
                    distance[next as usize] = distance[node as usize] + 1;
                    // Hosts do not forward.
                    if next >= hosts {
                        queue.push_back(next);
                    }
                }
            }
        }
        distance
    };
    let by_host: Vec<Vec<u32>> = (0..hosts).map(distances).collect();
    (hosts..hosts + switches)
        .map(|switch| {
            table(hosts, |host| {
                let distance = &by_host[host as usize];
                let here = distance[switch as usize];
                around[switch as usize]
                    .iter()
                    .filter(|(_, next)| {
                        let there = distance[*next as usize];
                        here != u32::MAX && there < here && (*next >= hosts || *next == host)
                    })
                    .map(|(port, _)| *port)
                    .collect()
            })
        })
        .collect()
}

/// Returns routes of a ring in one direction only, which deadlock.
pub(crate) fn clockwise_routes(n: u32, cables: &[Cable], map: &PortMap) -> Vec<SwitchRoutes> {
    let port = |from: u32, to: u32| port_between(cables, map, from, to);
    (0..n)
        .map(|i| {
            table(n, |host| vec![if host == i { port(n + i, host) } else { port(n + i, n + (i + 1) % n) }])
        })
        .collect()
}

fn table(hosts: u32, ports_to: impl Fn(u32) -> Vec<PortId>) -> SwitchRoutes {
    let mut ports = vec![];
    let groups = (0..hosts)
        .map(|host| {
            let start = ports.len() as u32;
            ports.extend(ports_to(host));
            (start, ports.len() as u32)
        })
        .collect();
    let class_of_host: Arc<[u32]> = (0..hosts).collect();
    SwitchRoutes::Table(TableRoutes { class_of_host, groups, attached: vec![], ports })
}

fn port_between(cables: &[Cable], map: &PortMap, from: u32, to: u32) -> PortId {
    cables
        .iter()
        .enumerate()
        .find_map(|(index, cable)| {
            let (at_a, at_b) = map.ends(index);
            match (cable.a, cable.b) {
                (a, b) if (a, b) == (from, to) => Some(at_a),
                (a, b) if (a, b) == (to, from) => Some(at_b),
                _ => None,
            }
        })
        .expect("a cable between the two")
}

impl<const C: usize> Net<C> {
    /// Creates a fabric with shortest-path routes over all cables.
    pub(crate) fn new(hosts: u32, switches: u32, cables: &[Cable], config: &SwitchConfig, seed: u64) -> Self {
        let map = PortMap::new(hosts + switches, cables);
        let routes = shortest_routes(hosts, switches, cables, &map, |_| true);
        Self::with_routes(hosts, switches, cables, routes, config, seed)
    }

    pub(crate) fn with_routes(
        hosts: u32,
        switches: u32,
        cables: &[Cable],
        routes: Vec<SwitchRoutes>,
        config: &SwitchConfig,
        seed: u64,
    ) -> Self {
        let map = PortMap::new(hosts + switches, cables);
        let classes = classes(config, switches);
        let fabric =
            Fabric::new(hosts, switches, cables, &map, routes, &classes, seed).expect("it can be built");
        Net {
            fabric,
            cables: cables.to_vec(),
            map,
            hosts,
            switches,
            packets: vec![],
            delivered: vec![],
            log: vec![],
            observer: None,
            longest_window: Duration::from_ms(1),
            script: BTreeMap::new(),
            scripted: 0,
            done: Time::ZERO,
        }
    }

    /// Returns the egress port of `from` to `to`.
    pub(crate) fn port(&self, from: u32, to: u32) -> PortId {
        port_between(&self.cables, &self.map, from, to)
    }

    /// Returns routes over all cables except those in `dead`.
    pub(crate) fn routes_without(&self, dead: &[usize]) -> Vec<SwitchRoutes> {
        shortest_routes(self.hosts, self.switches, &self.cables, &self.map, |index| !dead.contains(&index))
    }

    /// Schedules an action at an instant. Actions at the same instant run in the order of the calls.
    pub(crate) fn at(&mut self, time: Time, act: impl FnOnce(&mut Self, Time) + 'static) {
        self.script.insert((time, self.scripted), Box::new(act));
        self.scripted += 1;
    }

    /// Schedules a packet on its host's (first) NIC port. Returns its id; ids count from 0.
    pub(crate) fn send(&mut self, time: Time, packet: Packet) -> u32 {
        let id = self.packets.len() as u32;
        self.packets.push(packet);
        self.at(time, move |net, now| {
            let header = Header::new(
                HostId(packet.src),
                HostId(packet.dst),
                PathId(packet.path),
                packet.bytes,
                packet.class,
                packet.ecn,
            );
            let header = if packet.class > 0 { header.trimmable() } else { header };
            let port = net.map.ports(packet.src).start;
            net.fabric.send(now, port, header, id);
        });
        id
    }

    /// Schedules `n` equal packets at the same instant.
    pub(crate) fn send_many(&mut self, time: Time, n: u32, packet: Packet) {
        for _ in 0..n {
            self.send(time, packet);
        }
    }

    /// Simulates the next window, or the next scripted action if it is not later. Returns false if nothing is left.
    pub(crate) fn step(&mut self) -> bool {
        let scripted = self.script.first_key_value().map_or(Time::MAX, |(&(time, _), _)| time);
        let next = self.fabric.next_due();
        if scripted == Time::MAX && next == Time::MAX {
            return false;
        }
        let now = if scripted <= next {
            let (_, act) = self.script.pop_first().expect("just seen");
            act(self, scripted);
            scripted
        } else {
            assert!(next >= self.done, "an event in a window that is over");
            let window = self.fabric.lookahead().min(self.longest_window);
            self.window(next.saturating_add(window).min(scripted))
        };
        self.log.extend(self.fabric.drain_log());
        if let Some(observer) = self.observer {
            observer(self, now);
        }
        true
    }

    /// Simulates everything before `end`. Returns the last instant before it.
    fn window(&mut self, end: Time) -> Time {
        let ports = 0..self.map.ports(self.hosts - 1).end;
        loop {
            let (now, port) = self.fabric.next_arrival(ports.clone());
            if now >= end {
                break;
            }
            let step = self.fabric.on_arrival(now, port);
            if let Step::Delivered { host, packet, .. } = step {
                let (header, id) = self.fabric.take(packet);
                assert_eq!(header.dst(), host, "a packet at the wrong host");
                let (marked, trimmed) = (header.congestion_experienced(), header.trimmed_at());
                let hops = header.hops();
                self.delivered.push(Delivery { time: now, host: host.0, id, marked, trimmed, hops });
            }
        }
        for host in (0..self.hosts).map(HostId) {
            let (next, _) = self.fabric.next_arrival(self.map.ports(host.0));
            self.fabric.set_host_due(host, next);
        }
        self.fabric.run_until(end);
        self.done = end;
        Time::from_ps(end.as_ps() - 1)
    }

    /// Runs until nothing is pending.
    pub(crate) fn run(&mut self) {
        while self.step() {}
    }

    /// Runs through everything before `end`.
    pub(crate) fn run_until(&mut self, end: Time) {
        self.at(end, |net, end| net.done = end);
        while self.done < end {
            self.step();
        }
    }

    /// Returns the arrival time of a packet, and panics if it did not arrive.
    pub(crate) fn arrival(&self, id: u32) -> Time {
        self.delivered.iter().find(|d| d.id == id).expect("it was delivered").time
    }

    /// Returns the lost packets, with time and reason.
    pub(crate) fn drops(&self) -> Vec<(Time, u32, DropReason)> {
        self.log
            .iter()
            .filter_map(|e| match e.kind {
                FabricEventKind::Dropped { reason, content, .. } => Some((e.time, content, reason)),
                _ => None,
            })
            .collect()
    }

    /// Returns the pauses of ports of hosts and switches: their begin (true) and end (false).
    pub(crate) fn pauses(&self) -> Vec<(Time, PortId, u8, bool)> {
        self.log
            .iter()
            .filter_map(|e| match e.kind {
                FabricEventKind::Paused(class) => Some((e.time, e.port, class, true)),
                FabricEventKind::Resumed(class) => Some((e.time, e.port, class, false)),
                FabricEventKind::Dropped { .. } => None,
            })
            .collect()
    }

    /// Checks that every packet is delivered, lost, or still inside, and that none is inside when nothing is pending.
    pub(crate) fn check_conservation(&self) {
        let alive = self.packets.len() as u32 - (self.delivered.len() + self.drops().len()) as u32;
        assert!(self.fabric.next_due() == Time::MAX);
        assert_eq!(self.fabric.packets_alive(), alive, "packets inside");
        if !self.fabric.any_paused() {
            assert_eq!(self.fabric.messages_alive(), 0, "messages inside");
        }
        self.fabric.check_accounts();
    }
}
