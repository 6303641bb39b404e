//! Random networks, traffic and faults. Every packet is accounted for, order is kept, and lazy service has the same
//! result as a fabric in which every service is an event.

use std::collections::BTreeMap;

use crate::support::reference::Reference;
use crate::support::{Delivery, Net, Packet, classes, leaf_spine, plain, ps, ring, shortest_routes, star};
use pathweave_fabric::config::{
    EcnChange, EcnConfig, Forwarding, MarkAt, PfcChange, PfcThreshold, SwitchConfig, SwitchFor, Thresholds,
    TrimChange, TrimConfig,
};
use pathweave_fabric::{Cable, DropReason, FabricEventKind, PortMap};
use pathweave_units::{Bytes, Duration, Rate, Rng, Time};
use proptest::prelude::*;

/// A network with its traffic and faults, generated from a seed.
#[derive(Clone, Debug)]
struct Scenario {
    hosts: u32,
    switches: u32,
    cables: Vec<Cable>,
    config: SwitchConfig,
    /// Packets to send: (picoseconds, packet).
    script: Vec<(u64, Packet)>,
    faults: Vec<(u64, Fault)>,
    seed: u64,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Down(usize),
    Up(usize),
    Rate(usize, u64),
    Delay(usize, u64),
    Impair(usize, f64, f64),
    Storm(usize),
    Calm(usize),
    /// Directions of cables: from `a` if true.
    DownOneWay(usize, bool),
    UpOneWay(usize, bool),
    RateOneWay(usize, bool, u64),
    ImpairOneWay(usize, bool, f64),
}

fn network(kind: u32, rng: &mut Rng) -> (u32, u32, Vec<Cable>) {
    match kind {
        0 => {
            let hosts = 2 + rng.below(5);
            (hosts, 1, star(hosts, 100, 1_000))
        }
        1 => {
            // A dumbbell with one cable between its two switches.
            let side = 1 + rng.below(3);
            let mut cables: Vec<Cable> = star(2 * side, 100, 500);
            for (host, cable) in cables.iter_mut().enumerate() {
                cable.b = 2 * side + u32::from(host as u32 >= side);
            }
            cables.push(crate::support::cable(2 * side, 2 * side + 1, 100, 2_000));
            (2 * side, 2, cables)
        }
        2 => {
            let (leaves, per_leaf, spines) = (2 + rng.below(2), 1 + rng.below(3), 1 + rng.below(3));
            (leaves * per_leaf, leaves + spines, leaf_spine(leaves, per_leaf, spines, 100, 700))
        }
        _ => {
            let n = 3 + rng.below(3);
            (n, n, ring(n, 100, 300))
        }
    }
}

/// Generates a scenario. With `round`, rates, sizes and times make many events coincide. Otherwise they are odd, and
/// no events coincide.
fn scenario(kind: u32, seed: u64, pfc: bool, faulty: bool, round: bool) -> Scenario {
    let mut rng = Rng::for_component(seed, "scenario", u64::from(kind));
    let (hosts, switches, mut cables) = network(kind, &mut rng);
    for cable in &mut cables {
        if round {
            cable.rate = Rate::from_gbps([25, 50, 100, 100][rng.below(4) as usize]);
        } else {
            cable.rate = Rate::from_bps(20_000_000_000 + u64::from(rng.below(u32::MAX)) * 20);
            cable.delay = Duration::from_ps(u64::from(rng.below(2_500_000)));
        }
    }
    let mut config = plain();
    config.pfc.enabled = pfc;
    match rng.below(4) {
        3 => config.pfc.threshold = PfcThreshold::Static,
        choice => config.pfc.alpha = [0.125, 0.5, 2.0][choice as usize],
    }
    // More than two delays of the longest cable and three frames of 1500 B at the highest rate.
    config.pfc.headroom = Some(Bytes::new(80_000));
    config.egress_alpha = [0.5, 1.0, 4.0][rng.below(3) as usize];
    let ports = 2 * cables.len() as u64;
    config.buffer = Bytes::new(20_000 + u64::from(rng.below(60_000)) + if pfc { 80_000 * ports } else { 0 });
    let kmin = Bytes::new(u64::from(rng.below(20_000)));
    config.ecn = EcnConfig {
        enabled: true,
        kmin,
        kmax: kmin,
        pmax: 1.0,
        thresholds: Thresholds::Fixed,
        at: if rng.below(2) == 0 { MarkAt::Enqueue } else { MarkAt::Dequeue },
        ..EcnConfig::default()
    };
    let span = 20_000_000;
    let mut script: Vec<(u64, Packet)> = (0..100 + rng.below(900))
        .map(|_| {
            let src = rng.below(hosts);
            // Half of the packets go to one host: incast.
            let dst =
                if rng.below(2) == 0 && src != 0 { 0 } else { (src + 1 + rng.below(hosts - 1)) % hosts };
            let control = rng.below(8) == 0;
            let bytes = if control { 64 + rng.below(40) } else { 64 + rng.below(1_436) };
            let at = u64::from(rng.below(span));
            let (at, bytes) =
                if round { (at / 80_000 * 80_000, bytes / 100 * 100 + 100) } else { (at, bytes) };
            let packet = Packet {
                src,
                dst,
                path: rng.below(8) as u16,
                bytes,
                class: u8::from(!control),
                ecn: rng.below(4) > 0,
            };
            (at, packet)
        })
        .collect();
    script.sort_by_key(|s| s.0);
    let mut faults = vec![];
    if faulty {
        for _ in 0..1 + rng.below(6) {
            let cable = rng.below(cables.len() as u32) as usize;
            let (at, end) = (u64::from(rng.below(span)), u64::from(span + rng.below(span)));
            match rng.below(5) {
                0 => {
                    faults.extend([
                        (at, Fault::Down(cable)),
                        (at + u64::from(rng.below(4_000_000)), Fault::Up(cable)),
                    ]);
                }
                1 => faults.push((at, Fault::Rate(cable, 10 + u64::from(rng.below(90))))),
                2 => faults.push((at, Fault::Delay(cable, u64::from(rng.below(9_000))))),
                3 => faults.push((at, Fault::Impair(cable, 0.1, 0.1))),
                // Only towards hosts, as with a broken NIC. The first cables are those of the hosts.
                _ => {
                    let cable = rng.below(hosts) as usize;
                    faults.extend([(at, Fault::Storm(cable)), (end, Fault::Calm(cable))]);
                }
            }
        }
    }
    Scenario { hosts, switches, cables, config, script, faults, seed }
}

impl Scenario {
    /// Returns the same scenario with switches that balance load. Time constants are as short as the gaps of the
    /// script.
    fn balanced(mut self, kind: Forwarding) -> Self {
        self.config.forwarding.kind = Some(kind);
        let forwarding = &mut self.config.forwarding;
        forwarding.letflow.gap = Duration::from_ns(500);
        forwarding.conga.gap = Duration::from_ns(500);
        forwarding.conga.dre_interval = Duration::from_ns(300);
        // Replies are late all the time, and there are two reorder queues, emptied soon.
        forwarding.conweave.reply_extra = Duration::from_ns(200);
        forwarding.conweave.path_pause = Duration::from_ns(800);
        forwarding.conweave.flush_extra = Duration::from_ns(100);
        forwarding.conweave.flush_default = Duration::from_ns(2_000);
        forwarding.conweave.idle_after = Duration::from_ns(5_000);
        forwarding.conweave.reorder_queues = 2;
        self
    }

    /// Returns the same scenario with switches that trim the arriving packet (1), the newest in the queue (0), or
    /// either (2).
    fn trimming(mut self, arriving: u32) -> Self {
        let mut rng = Rng::for_component(self.seed, "trim", 0);
        self.config.trim = TrimConfig {
            enabled: true,
            queue: Bytes::new(2_000 + u64::from(rng.below(20_000))),
            header_queue: Some(Bytes::new(64 + u64::from(rng.below(2_000)))),
            size: Bytes::new(64),
            arriving: [0.0, 1.0, 0.5][arriving as usize],
            thresholds: Thresholds::Fixed,
            ..TrimConfig::default()
        };
        self
    }

    /// Returns the same scenario with switches and directions of cables that differ, and with faults of directions.
    fn mixed(mut self) -> Self {
        let mut rng = Rng::for_component(self.seed, "mixed", 0);
        let faulty = !self.faults.is_empty();
        for cable in &mut self.cables {
            let rate = Rate::from_bps(20_000_000_000 + u64::from(rng.below(u32::MAX)) * 20);
            let delay = Duration::from_ps(u64::from(rng.below(2_500_000)));
            cable.back = (rng.below(2) == 0).then_some((rate, delay));
        }
        self.config.buffer = self.config.buffer.max(Bytes::from_kb(64));
        let general = self.config.clone();
        let table = |switch: u32, rng: &mut Rng| {
            let kmin = Bytes::new(u64::from(rng.below(20_000)));
            let some = |bytes: u64| Some(Bytes::new(bytes));
            SwitchFor {
                names: Some(format!("s{switch}")),
                buffer: some(general.buffer.get() + u64::from(rng.below(30_000))),
                egress_alpha: Some([0.5, 1.0, 4.0][rng.below(3) as usize]),
                pfc: Some(PfcChange {
                    alpha: (general.pfc.threshold == PfcThreshold::Dynamic)
                        .then(|| [0.125, 0.5, 2.0][rng.below(3) as usize]),
                    xon_gap: some(u64::from(rng.below(6_000))),
                    enabled: (!general.trim.enabled && rng.below(4) == 0).then_some(false),
                    ..PfcChange::default()
                }),
                ecn: Some(EcnChange {
                    kmin: Some(kmin),
                    kmax: Some(kmin),
                    enabled: Some(rng.below(4) > 0),
                    at: Some(if rng.below(2) == 0 { MarkAt::Enqueue } else { MarkAt::Dequeue }),
                    ..EcnChange::default()
                }),
                trim: general.trim.enabled.then(|| TrimChange {
                    enabled: Some(rng.below(3) > 0),
                    queue: some(2_000 + u64::from(rng.below(20_000))),
                    header_queue: some(128 + u64::from(rng.below(2_000))),
                    size: some(64 + u64::from(rng.below(64))),
                    ..TrimChange::default()
                }),
                ..SwitchFor::default()
            }
        };
        let chosen: Vec<u32> = (0..self.switches).filter(|_| rng.below(3) > 0).collect();
        self.config.tables = chosen.iter().map(|&switch| table(switch, &mut rng)).collect();
        for _ in 0..if faulty { rng.below(4) } else { 0 } {
            let cable = rng.below(self.cables.len() as u32) as usize;
            let (at, from_a) = (u64::from(rng.below(20_000_000)), rng.below(2) == 0);
            let until = at + u64::from(rng.below(4_000_000));
            match rng.below(3) {
                0 => self.faults.extend([
                    (at, Fault::DownOneWay(cable, from_a)),
                    (until, Fault::UpOneWay(cable, from_a)),
                ]),
                1 => {
                    self.faults.push((at, Fault::RateOneWay(cable, from_a, 10 + u64::from(rng.below(90)))));
                }
                _ => self.faults.push((at, Fault::ImpairOneWay(cable, from_a, 0.1))),
            }
        }
        self
    }

    fn mixed_if(self, mixed: bool) -> Self {
        if mixed { self.mixed() } else { self }
    }

    fn net(&self) -> Net<2> {
        let mut net = Net::new(self.hosts, self.switches, &self.cables, &self.config, self.seed);
        for &(at, packet) in &self.script {
            net.send(ps(at), packet);
        }
        for &(at, fault) in &self.faults {
            net.at(ps(at), move |net, now| apply(net, now, fault));
        }
        net
    }

    fn run(&self, observer: Option<fn(&mut Net<2>, Time)>) -> Net<2> {
        let mut net = self.net();
        net.observer = observer;
        net.run();
        net
    }
}

fn apply(net: &mut Net<2>, now: Time, fault: Fault) {
    // The first cables belong to one host each, with the host at end a.
    let ends = |net: &Net<2>, cable: usize| net.map.ends(cable);
    let from = |net: &Net<2>, cable: usize, a: bool| if a { ends(net, cable).0 } else { ends(net, cable).1 };
    match fault {
        Fault::Down(cable) => {
            let port = ends(net, cable).0;
            net.fabric.link_down(now, port);
        }
        Fault::Up(cable) => net.fabric.link_up(now, ends(net, cable).0),
        Fault::Rate(cable, gbps) => {
            let port = ends(net, cable).0;
            net.fabric.set_link(now, port, Some(Rate::from_gbps(gbps)), None);
        }
        Fault::Delay(cable, ns) => {
            let port = ends(net, cable).0;
            net.fabric.set_link(now, port, None, Some(Duration::from_ns(ns)));
        }
        Fault::Impair(cable, loss, corruption) => {
            net.fabric.set_impairment(ends(net, cable).0, loss, corruption);
        }
        Fault::Storm(cable) => {
            let port = ends(net, cable).1;
            net.fabric.start_pause_storm(now, port);
        }
        Fault::Calm(cable) => {
            let port = ends(net, cable).1;
            net.fabric.stop_pause_storm(now, port);
        }
        Fault::DownOneWay(cable, from_a) => {
            let port = from(net, cable, from_a);
            net.fabric.direction_down(now, port);
        }
        Fault::UpOneWay(cable, from_a) => net.fabric.direction_up(now, from(net, cable, from_a)),
        Fault::RateOneWay(cable, from_a, gbps) => {
            let port = from(net, cable, from_a);
            net.fabric.set_direction(now, port, Some(Rate::from_gbps(gbps)), None);
        }
        Fault::ImpairOneWay(cable, from_a, loss) => {
            net.fabric.set_impairment_of_direction(from(net, cable, from_a), loss, 0.0);
        }
    }
}

/// Observer that recounts every account after every event, and checks that no buffer exceeds its size.
fn audit(net: &mut Net<2>, _: Time) {
    net.fabric.check_accounts();
}

/// Observer that settles every port after every event.
fn look(net: &mut Net<2>, now: Time) {
    for port in 0..net.map.len() {
        net.fabric.settle(now, port);
    }
}

fn look_at_some(net: &mut Net<2>, now: Time) {
    for port in (0..net.map.len()).filter(|p| (now.as_ps() / 7 + u64::from(*p)).is_multiple_of(3)) {
        net.fabric.queued_bytes(now, port);
    }
}

/// Checks that the packets that entered each node have left it, were lost in it, or are still there.
fn check_nodes(net: &Net<2>) {
    let nodes = net.hosts + net.switches;
    // Lost on the link of a port; lost at a port, before the link; one of the two after a link failure.
    let (mut wire, mut inside, mut either) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for event in &net.log {
        if let FabricEventKind::Dropped { reason, .. } = event.kind {
            let of = match reason {
                DropReason::Loss | DropReason::Corruption => &mut wire,
                DropReason::LinkDown => &mut either,
                _ => &mut inside,
            };
            *of.entry(event.port).or_insert(0u64) += 1;
        }
    }
    let get = |map: &BTreeMap<u32, u64>, port| map.get(&port).copied().unwrap_or(0);
    for node in 0..nodes {
        let (mut came, mut gone, mut lost, mut unclear) = (0, 0, 0, 0);
        for port in 0..net.map.len() {
            let (from, to) = net.fabric.ends(port);
            let sent = net.fabric.stats(port).tx_packets;
            if to == node {
                came += sent - get(&wire, port);
                unclear += get(&either, port);
            }
            if from == node {
                gone += sent + net.fabric.queued(port).count() as u64;
                lost += get(&inside, port);
                unclear += get(&either, port);
            }
        }
        came += net.packets.iter().filter(|p| p.src == node).count() as u64;
        gone += net.delivered.iter().filter(|d| d.host == node).count() as u64;
        let missing = came.checked_sub(gone + lost).expect("more left a node than came");
        assert!(missing <= unclear, "node {node}: {missing} packets unaccounted for");
    }
}

/// Checks that packets of one sender, receiver, path and class arrive in the order in which they were sent.
fn check_order(net: &Net<2>) {
    let mut last: BTreeMap<(u32, u32, u16, u8), u32> = BTreeMap::new();
    for delivery in &net.delivered {
        let packet = net.packets[delivery.id as usize];
        let before = last.insert((packet.src, packet.dst, packet.path, packet.class), delivery.id);
        assert!(before < Some(delivery.id), "{delivery:?} after {before:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_unaccounted_and_order_is_kept(
        kind in 0..4u32, seed: u64, pfc: bool, faulty: bool, round: bool, mixed: bool,
    ) {
        let scenario = scenario(kind, seed, pfc, faulty, round).mixed_if(mixed);
        let classes = classes(&scenario.config, scenario.switches);
        let lossless = classes.each().all(|config| config.pfc.enabled);
        let net = scenario.run(Some(audit));
        check_nodes(&net);
        check_order(&net);
        net.check_conservation();
        let drops = net.drops();
        if scenario.faults.is_empty() {
            prop_assert!(drops.iter().all(|d| d.2 == DropReason::Buffer));
            prop_assert!(!lossless || drops.is_empty(), "a lossless fabric lost");
        }
        prop_assert_eq!(net.fabric.any_paused(), net.fabric.packets_alive() > 0);
        // Only a ring can deadlock. No other network may keep a packet.
        prop_assert!(net.fabric.packets_alive() == 0 || scenario.config.pfc.enabled);
    }

    #[test]
    fn looking_changes_nothing(kind in 0..4u32, seed: u64, pfc: bool, faulty: bool, round: bool) {
        let scenario = scenario(kind, seed, pfc, faulty, round);
        let unseen = scenario.run(None);
        for observer in [look as fn(&mut Net<2>, Time), look_at_some] {
            let seen = scenario.run(Some(observer));
            same(&seen.delivered, &unseen.delivered);
            same(&seen.drops(), &unseen.drops());
            same(&seen.pauses(), &unseen.pauses());
            prop_assert_eq!(seen.fabric.packet_hops(), unseen.fabric.packet_hops());
        }
    }

    #[test]
    fn windows_change_nothing(
        kind in 0..4u32, seed: u64, pfc: bool, faulty: bool, mixed: bool, window_ps in 1..200_000u64,
    ) {
        let scenario = scenario(kind, seed, pfc, faulty, true).mixed_if(mixed);
        let whole = scenario.run(None);
        let mut cut = scenario.net();
        cut.longest_window = Duration::from_ps(window_ps);
        cut.run();
        prop_assert_eq!(&whole.delivered, &cut.delivered);
        prop_assert_eq!(whole.drops(), cut.drops());
        prop_assert_eq!(whole.pauses(), cut.pauses());
    }

    #[test]
    fn balancing_switches_are_as_exact(
        kind in 0..4u32, balancing in 0..Forwarding::ALL.len(), seed: u64, pfc: bool, faulty: bool, window_ps in 1..200_000u64,
    ) {
        let scenario = scenario(kind, seed, pfc, faulty, true).balanced(Forwarding::ALL[balancing]);
        let whole = scenario.run(Some(audit));
        // Messages between switches belong to no host.
        if whole.fabric.forwarding().messages == 0 {
            check_nodes(&whole);
        }
        whole.check_conservation();
        let seen = scenario.run(Some(look_at_some));
        let mut cut = scenario.net();
        cut.longest_window = Duration::from_ps(window_ps);
        cut.run();
        for other in [&seen, &cut] {
            same(&other.delivered, &whole.delivered);
            same(&other.drops(), &whole.drops());
            same(&other.pauses(), &whole.pauses());
            prop_assert_eq!(other.fabric.forwarding(), whole.fabric.forwarding());
        }
    }

    #[test]
    fn conweave_keeps_order_where_its_resources_suffice(seed: u64, pfc: bool, round: bool) {
        let mut scenario = scenario(2, seed, pfc, false, round).balanced(Forwarding::ConWeave);
        scenario.config.buffer = Bytes::from_mb(100);
        let conweave = &mut scenario.config.forwarding.conweave;
        conweave.reorder_queues = 1_000;
        conweave.idle_after = Duration::from_ms(1_000);
        conweave.flush_extra = Duration::from_ms(1_000);
        let net = scenario.run(Some(audit));
        check_order(&net);
        net.check_conservation();
        prop_assert!(net.drops().is_empty());
        let stats = net.fabric.forwarding();
        prop_assert_eq!((stats.unheld_packets, stats.late_flushes, stats.untracked_packets), (0, 0, 0));
    }

    #[test]
    fn trimming_is_exact_whatever_the_windows(
        kind in 0..4u32, seed: u64, faulty: bool, round: bool, mixed: bool, arriving in 0..3u32,
        window_ps in 1..200_000u64,
    ) {
        let scenario = scenario(kind, seed, false, faulty, round).trimming(arriving).mixed_if(mixed);
        let whole = scenario.run(Some(audit));
        check_nodes(&whole);
        whole.check_conservation();
        prop_assert_eq!(whole.fabric.packets_alive() > 0, whole.fabric.any_paused());
        let seen = scenario.run(Some(look_at_some));
        let mut cut = scenario.net();
        cut.longest_window = Duration::from_ps(window_ps);
        cut.run();
        for other in [&seen, &cut] {
            same(&other.delivered, &whole.delivered);
            same(&other.drops(), &whole.drops());
        }
    }

    #[test]
    fn lazy_service_is_the_plain_fabric(
        kind in 0..4u32, seed: u64, pfc: bool, roomy: bool, mixed: bool, trims in prop::option::of(0..2u32),
    ) {
        let mut scenario = scenario(kind, seed, pfc && trims.is_none(), false, false);
        if roomy {
            // No buffer limit is in reach: ports are simulated one by one.
            scenario.config.buffer = Bytes::from_mb(100);
        }
        if let Some(arriving) = trims {
            scenario = scenario.trimming(arriving);
        }
        scenario = scenario.mixed_if(mixed);
        // One path for each packet: the reference fabric does not hash.
        scenario.script.iter_mut().for_each(|(_, packet)| packet.path = 0);
        let lazy = scenario.run(None);
        let map = PortMap::new(scenario.hosts + scenario.switches, &scenario.cables);
        let ways = ways_taken(&scenario);
        let packets: Vec<Packet> = scenario.script.iter().map(|s| s.1).collect();
        let next_hop = |node: u32, packet: &Packet| ways[&(node, packet.src, packet.dst)];
        let classes = classes(&scenario.config, scenario.switches);
        let mut plain = Reference::new(
            scenario.hosts, scenario.switches, &scenario.cables, &map, &classes, &packets, &next_hop,
        );
        let script: Vec<(u64, u32)> = scenario.script.iter().zip(0..).map(|(s, id)| (s.0, id)).collect();
        plain.run(&script, |host| map.ports(host).start);
        prop_assume!(!plain.tie);
        let delivered = arrivals(&lazy);
        let dropped: Vec<(u64, u32)> = lazy.drops().iter().map(|d| (d.0.as_ps(), d.1)).collect();
        let pauses: Vec<(u64, u32, bool)> = lazy.pauses().iter().map(|p| (p.0.as_ps(), p.1, p.3)).collect();
        same(&pauses, &plain.pauses);
        same(&dropped, &plain.dropped);
        same(&delivered, &plain.delivered);
    }
}

/// Returns the packets that have reached hosts: (picoseconds, packet, marked, trimmed).
fn arrivals(net: &Net<2>) -> Vec<(u64, u32, bool, bool)> {
    let of = |d: &Delivery| (d.time.as_ps(), d.id, d.marked, d.trimmed.is_some());
    net.delivered.iter().map(of).collect()
}

/// Panics with the first difference and the elements before it.
fn same<T: PartialEq + std::fmt::Debug>(found: &[T], expected: &[T]) {
    let at = found.iter().zip(expected).take_while(|(a, b)| a == b).count();
    let around = at.saturating_sub(3)..at + 3;
    let show = |list: &[T]| format!("{:?}", &list[around.start.min(list.len())..around.end.min(list.len())]);
    assert!(
        at == found.len() && at == expected.len(),
        "they differ from the {at}th on:\nfound    {}\nexpected {}",
        show(found),
        show(expected)
    );
}

/// Returns the egress port at each switch on the path of each pair. Found by sending a packet alone and comparing the
/// counters of ports.
fn ways_taken(scenario: &Scenario) -> BTreeMap<(u32, u32, u32), u32> {
    let mut ways = BTreeMap::new();
    for src in 0..scenario.hosts {
        for dst in (0..scenario.hosts).filter(|dst| *dst != src) {
            let alone = Scenario {
                script: vec![(0, crate::support::data(src, dst, 100))],
                faults: vec![],
                ..scenario.clone()
            };
            let net = alone.run(None);
            for port in 0..net.map.len() {
                let (node, _) = net.fabric.ends(port);
                if node >= net.hosts && net.fabric.stats(port).tx_packets > 0 {
                    ways.insert((node, src, dst), port);
                }
            }
        }
    }
    ways
}

/// A random failure: a spine of CONGA has a tick and then a service. An observer settles the port at the instant of
/// the service, before the spine was simulated. The tick must not count the packet of that service.
#[test]
fn a_look_after_a_tick_changes_nothing() {
    let scenario = scenario(2, 451_240_800_886_740_741, false, false, true).balanced(Forwarding::Conga);
    let (unseen, seen) = (scenario.run(None), scenario.run(Some(look_at_some)));
    same(&seen.delivered, &unseen.delivered);
    assert_eq!(seen.fabric.forwarding(), unseen.fabric.forwarding());
}

#[test]
fn routes_of_the_harness_are_shortest() {
    let cables = leaf_spine(3, 2, 2, 100, 1_000);
    let map = PortMap::new(11, &cables);
    assert_eq!(shortest_routes(6, 5, &cables, &map, |_| true).len(), 5);
    let mut net = Net::<2>::new(6, 5, &cables, &plain(), 1);
    net.send(Time::ZERO, crate::support::data(0, 1, 100));
    net.send(Time::ZERO, crate::support::data(0, 5, 100));
    net.run();
    let hops: Vec<u8> = net.delivered.iter().map(|d| d.hops).collect();
    assert_eq!(hops, [1, 3]);
}
