//! Load balancing in switches: the behaviour of each kind, computed by hand.

use std::sync::Arc;

use crate::support::{Net, Packet, cable, control, data, leaf_spine, plain, ps};
use pathweave_fabric::config::{ConWeaveConfig, CongaCounts, DrillVariant, Forwarding, SwitchConfig};
use pathweave_fabric::{Attachment, ForwardingStats, RouteHop, RoutePath, SourceRoutes};
use pathweave_units::{Bytes, Duration, Rate, Time};

fn balancing(kind: Forwarding) -> SwitchConfig {
    let mut config = plain();
    config.forwarding.kind = Some(kind);
    config
}

/// Returns the number of packets that each uplink of a leaf has sent.
fn uplinks(net: &Net<2>, leaf: u32, spines: std::ops::Range<u32>) -> Vec<u64> {
    spines.map(|spine| net.fabric.stats(net.port(leaf, spine)).tx_packets).collect()
}

/// Two leaves with two hosts each, and four spines: nodes 0..4, 4..6, 6..10.
fn four_ways(kind: Forwarding) -> Net<2> {
    Net::new(4, 6, &leaf_spine(2, 2, 4, 100, 500), &balancing(kind), 7)
}

#[test]
fn a_hash_keeps_a_flow_together_and_random_spraying_spreads_it() {
    for (kind, least, most) in [(Forwarding::Ecmp, 0, 400), (Forwarding::Rps, 70, 130)] {
        let mut net = four_ways(kind);
        net.send_many(Time::ZERO, 400, data(0, 2, 1_000));
        net.run();
        let sent = uplinks(&net, 4, 6..10);
        assert_eq!(sent.iter().sum::<u64>(), 400);
        assert!(sent.iter().all(|n| (least..=most).contains(n)), "{kind:?}: {sent:?}");
        assert_eq!(sent.contains(&400), kind == Forwarding::Ecmp, "{sent:?}");
    }
}

#[test]
fn letflow_moves_a_flow_at_a_gap_and_only_there() {
    let mut net = four_ways(Forwarding::LetFlow);
    // A packet every 40 us, below the gap of 50 us: one flowlet. Then one every 60 us: a flowlet each.
    for n in 0..50 {
        net.send(ps(n * 40_000_000), data(0, 2, 1_000));
    }
    net.run_until(ps(2_000_000_000));
    assert_eq!(uplinks(&net, 4, 6..10).iter().max(), Some(&50));
    assert_eq!(net.fabric.forwarding().flowlets, 1);
    for n in 0..200 {
        net.send(ps(2_100_000_000 + n * 60_000_000), data(0, 2, 1_000));
    }
    net.run();
    assert_eq!(net.fabric.forwarding().flowlets, 201);
    let sent = uplinks(&net, 4, 6..10);
    // A quarter of 200 on each uplink, and the 50 of the first flowlet on one of them.
    assert!(sent.iter().all(|n| (30..=120).contains(n)), "{sent:?}");
    // Three choices in four are another port.
    assert!((120..=180).contains(&net.fabric.forwarding().reroutes));
}

#[test]
fn letflow_leaves_a_port_that_routing_has_taken_away() {
    let cables = leaf_spine(2, 2, 4, 100, 500);
    let mut net = four_ways(Forwarding::LetFlow);
    net.send(Time::ZERO, data(0, 2, 1_000));
    net.run();
    let taken =
        (6..10).find(|spine| net.fabric.stats(net.port(4, *spine)).tx_packets > 0).expect("one uplink");
    let dead = cables.iter().position(|c| (c.a, c.b) == (4, taken)).expect("its cable");
    let routes = net.routes_without(&[dead]);
    net.fabric.set_routes(routes);
    // Within the gap, so the packet belongs to the same flowlet.
    net.send(ps(20_000_000), data(0, 2, 1_000));
    net.run();
    assert_eq!(net.fabric.stats(net.port(4, taken)).tx_packets, 1);
    assert_eq!(net.delivered.len(), 2);
    assert_eq!(net.fabric.forwarding().reroutes, 1);
}

#[test]
fn drill_fills_the_emptier_queue() {
    // Leaf 4 has uplinks of 100 Gb/s to spine 6 and 25 Gb/s to spine 7. Hosts 0 and 1 send at 100 Gb/s each.
    let mut cables = leaf_spine(2, 2, 2, 100, 500);
    let slow = cables.iter().position(|c| (c.a, c.b) == (4, 7)).expect("a cable");
    cables[slow] = cable(4, 7, 25, 500);
    let mut config = balancing(Forwarding::Drill);
    config.forwarding.drill.samples = 4;
    let mut net = Net::<2>::new(4, 4, &cables, &config, 3);
    net.send_many(Time::ZERO, 400, data(0, 2, 1_000));
    net.send_many(Time::ZERO, 400, data(1, 3, 1_000));
    net.run();
    let sent = uplinks(&net, 4, 6..8);
    // 200 Gb/s arrive and 125 Gb/s leave. The queues stay equal, so each link sends in proportion to its rate: 4 to 1
    // while both are busy (600 to 150 of 800 packets). In the end each sends the half of what is queued (about 150
    // packets each).
    assert!((450..=640).contains(&sent[0]), "{sent:?}");
    let queues: Vec<u64> = (6..8).map(|spine| net.fabric.stats(net.port(4, spine)).max_queue_bytes).collect();
    assert!(queues[0].abs_diff(queues[1]) <= 3_000, "{queues:?}");
}

/// Returns the number of packets that each uplink of leaf 4 has sent under DRILL, for each seed. Uplinks have 50
/// Gb/s: a packet takes 160 ns there, and 80 ns from its host.
fn drilled(variant: DrillVariant, packets: &[(u64, Packet)]) -> Vec<Vec<u64>> {
    let mut cables = leaf_spine(2, 2, 4, 100, 500);
    for cable in cables.iter_mut().filter(|cable| cable.a == 4) {
        cable.rate = Rate::from_gbps(50);
    }
    let mut config = balancing(Forwarding::Drill);
    config.forwarding.drill.variant = variant;
    let of_seed = |seed| {
        let mut net = Net::<2>::new(4, 6, &cables, &config, seed);
        packets.iter().for_each(|&(at_ns, packet)| _ = net.send(ps(at_ns * 1_000), packet));
        net.run();
        uplinks(&net, 4, 6..10)
    };
    (0..20).map(of_seed).collect()
}

/// The variant of conweave-ns3 keeps its memory if other ports are equally good, and ignores the packet in
/// transmission.
#[test]
fn drill_of_conweave_ns3_keeps_to_a_port_until_something_waits_there() {
    let both = |packets: &[(u64, Packet)]| {
        [DrillVariant::ConweaveNs3, DrillVariant::Published].map(|variant| drilled(variant, packets))
    };
    let together = |sent: &[u64], packets: u64| sent.contains(&packets);
    // One packet a microsecond: all queues are empty and equally good.
    let seldom: Vec<(u64, Packet)> = (0..20).map(|n| (n * 1_000, data(0, 2, 1_000))).collect();
    let [kept, left] = both(&seldom);
    assert!(kept.iter().all(|sent| together(sent, 20)), "{kept:?}");
    assert!(!left.iter().any(|sent| together(sent, 20)), "{left:?}");
    // The second packet arrives when half of the first has been sent: no packet waits.
    let two = [(0, data(0, 2, 1_000)), (0, data(0, 2, 1_000))];
    let [kept, left] = both(&two);
    assert!(kept.iter().all(|sent| together(sent, 2)), "{kept:?}");
    // Only if both samples are that port, once in sixteen.
    assert!(left.iter().filter(|sent| together(sent, 2)).count() < 6, "{left:?}");
    // Two packets arrive at a time from both hosts. The second has to wait, or takes another port if one is sampled.
    // One always is, since the two sampled ports differ.
    let pair =
        [(0, data(0, 2, 1_000)), (0, data(1, 2, 1_000)), (0, data(0, 2, 1_000)), (0, data(1, 2, 1_000))];
    let [kept, _] = both(&pair);
    assert!(!kept.iter().any(|sent| together(sent, 4)), "{kept:?}");
}

/// Memory by destination: packets to 2 and packets to 3 each keep one port. By next hops both would share one memory.
#[test]
fn drill_of_conweave_ns3_remembers_by_destination_and_balances_data_alone() {
    let of = |n: u64| data(0, 2 + (n % 2) as u32, 1_000);
    let alternating: Vec<(u64, Packet)> = (0..20).map(|n| (n * 1_000, of(n))).collect();
    let sent = drilled(DrillVariant::ConweaveNs3, &alternating);
    let used = |sent: &[u64]| sent.iter().filter(|&&n| n > 0).count();
    assert!(sent.iter().all(|sent| sent.iter().all(|n| [0, 10, 20].contains(n))), "{sent:?}");
    assert!(sent.iter().any(|sent| used(sent) == 2), "{sent:?}");
    // Control packets take the port of their hash, whatever waits there.
    let full: Vec<(u64, Packet)> = (0..20).map(|_| (0, control(0, 2, 1_000))).collect();
    let sent = drilled(DrillVariant::ConweaveNs3, &full);
    assert!(sent.iter().all(|sent| sent.contains(&20)), "{sent:?}");
}

/// 70 packets reach an uplink of 25 Gb/s within 5.6 us, in which it sends 17 of them. With registers of 160 us, one
/// of eight levels is 62.5 KB: the bytes sent make up level 0, the bytes routed level 1. So the next flow may take
/// the same uplink if the metric counts bytes sent, and does not if it counts bytes routed.
#[test]
fn conga_sees_what_waits_where_it_counts_what_was_routed() {
    let mut cables = leaf_spine(2, 2, 4, 100, 500);
    for cable in cables.iter_mut().filter(|cable| cable.a == 4) {
        cable.rate = Rate::from_gbps(25);
    }
    let same = |counts: CongaCounts| {
        let mut config = balancing(Forwarding::Conga);
        config.forwarding.conga.counts = counts;
        let of_seed = |seed: &u64| {
            let mut net = Net::<2>::new(4, 6, &cables, &config, *seed);
            net.send_many(Time::ZERO, 70, data(0, 2, 1_000));
            net.send(ps(5_700_000), data(1, 3, 1_000));
            net.run();
            uplinks(&net, 4, 6..10).contains(&71)
        };
        (0..40).filter(of_seed).count()
    };
    assert_eq!(same(CongaCounts::Routed), 0);
    // One in four of 40.
    assert!((3..=20).contains(&same(CongaCounts::Sent)));
}

#[test]
fn hosts_of_one_switch_are_not_concerned() {
    for kind in [Forwarding::Rps, Forwarding::LetFlow, Forwarding::Drill] {
        let mut net = four_ways(kind);
        net.send_many(Time::ZERO, 10, data(0, 1, 1_000));
        net.run();
        assert_eq!(net.delivered.len(), 10);
        assert_eq!(uplinks(&net, 4, 6..10), [0; 4]);
        assert_eq!(net.arrival(0), Time::ZERO + Duration::from_ns(2 * 500 + 2 * 80));
    }
}

/// Two leaves with one host each, and two spines: nodes 0, 1, then 2, 3, then 4, 5. The path over spine 5 has the
/// same rate, but each of its two links is a microsecond longer.
fn near_and_far(config: &SwitchConfig, seed: u64) -> Net<2> {
    let cables = [
        cable(0, 2, 100, 500),
        cable(1, 3, 100, 500),
        cable(2, 4, 100, 500),
        cable(3, 4, 100, 500),
        cable(2, 5, 100, 1_500),
        cable(3, 5, 100, 1_500),
    ];
    Net::new(2, 4, &cables, config, seed)
}

/// Sends 600 packets back to back from host 0 to host 1, with twenty seeds. Returns the number of packets that were
/// overtaken, and the counters.
fn near_and_far_with(change: impl Fn(&mut ConWeaveConfig)) -> (usize, ForwardingStats) {
    let mut config = balancing(Forwarding::ConWeave);
    // Every reply is late, so each epoch ends with a change of path, or with none if the first draw is the old path.
    config.forwarding.conweave.reply_extra = Duration::ZERO;
    change(&mut config.forwarding.conweave);
    let (mut overtaken, mut sum) = (0, ForwardingStats::default());
    for seed in 0..20 {
        let mut net = near_and_far(&config, seed);
        net.send_many(Time::ZERO, 600, data(0, 1, 1_000));
        net.run();
        net.check_conservation();
        overtaken += net.delivered.windows(2).filter(|two| two[1].id < two[0].id).count();
        let stats = net.fabric.forwarding();
        sum.reroutes += stats.reroutes;
        sum.held_packets += stats.held_packets;
        sum.unheld_packets += stats.unheld_packets;
        sum.late_flushes += stats.late_flushes;
        sum.untracked_packets += stats.untracked_packets;
        sum.messages += stats.messages;
    }
    (overtaken, sum)
}

#[test]
fn conweave_moves_flows_and_keeps_their_order() {
    let (overtaken, stats) = near_and_far_with(|_| {});
    assert_eq!(overtaken, 0);
    assert!(stats.reroutes > 20 && stats.messages > 100 && stats.held_packets > 100, "{stats:?}");
    assert_eq!((stats.unheld_packets, stats.late_flushes, stats.untracked_packets), (0, 0, 0));
}

#[test]
fn conweave_without_queues_lets_packets_pass() {
    let (overtaken, stats) = near_and_far_with(|conweave| conweave.reorder_queues = 0);
    assert!(overtaken > 0 && stats.unheld_packets > 100, "{overtaken} {stats:?}");
    assert_eq!((stats.held_packets, stats.late_flushes), (0, 0));
}

#[test]
fn conweave_without_patience_lets_packets_go_too_soon() {
    let (overtaken, stats) = near_and_far_with(|conweave| {
        conweave.flush_extra = Duration::ZERO;
        conweave.flush_default = Duration::from_ns(100);
    });
    assert!(overtaken > 0 && stats.late_flushes > 10 && stats.held_packets > 10, "{overtaken} {stats:?}");
}

#[test]
fn conweave_leaves_a_quiet_flow_where_it_is() {
    let config = balancing(Forwarding::ConWeave);
    let mut net = near_and_far(&config, 1);
    // A packet every 10 us: every reply is in time (7 us at most), so each packet is a probe.
    for n in 0..100 {
        net.send(ps(n * 10_000_000), data(0, 1, 1_000));
    }
    net.run();
    let stats = net.fabric.forwarding();
    assert_eq!((stats.messages, stats.reroutes, stats.held_packets), (100, 0, 0));
}

/// Leaf 1 reports to leaf 0 that the path over one spine is congested, and leaf 0's next flowlets take the other.
#[test]
fn conga_avoids_the_way_that_is_congested_beyond_its_own_links() {
    // Leaves 6 to 8 with two hosts each, spines 9 and 10. Host 4 congests the link from spine 9 to leaf 7, which leaf
    // 6 cannot observe.
    let cables = leaf_spine(3, 2, 2, 100, 500);
    let dead = cables.iter().position(|c| (c.a, c.b) == (8, 10)).expect("a cable");
    let share = |kind| {
        let mut net = Net::<2>::new(6, 5, &cables, &balancing(kind), 5);
        // Leaf 8 has lost its cable to spine 10.
        let routes = net.routes_without(&[dead]);
        net.fabric.set_routes(routes);
        net.send_many(Time::ZERO, 30_000, data(4, 2, 1_000));
        for n in 0..200 {
            let at = 500_000_000 + n * 60_000_000 / 8;
            // A flowlet each, and an acknowledgement that carries feedback.
            net.send(ps(at), Packet { path: n as u16, ..data(0, 3, 1_000) });
            net.send(ps(at + 3_000_000), control(3, 0, 84));
        }
        net.run_until(ps(2_100_000_000));
        uplinks(&net, 6, 9..11)
    };
    let conga = share(Forwarding::Conga);
    let letflow = share(Forwarding::LetFlow);
    assert!(letflow[0] > 70 && letflow[1] > 70, "{letflow:?}");
    assert!(conga[0] < 20 && conga[1] > 180, "{conga:?}");
}

#[test]
fn ugal_takes_detours_only_when_the_short_way_is_full() {
    // Switches 6, 7 and 8 in a triangle, with two hosts each.
    let mut cables: Vec<_> = (0..6).map(|host| cable(host, 6 + host / 2, 100, 500)).collect();
    cables.extend([cable(6, 7, 100, 500), cable(7, 8, 100, 500), cable(8, 6, 100, 500)]);
    let detours = |senders: u32, bias| {
        let mut config = balancing(Forwarding::Ugal);
        config.forwarding.ugal.bias = Bytes::new(bias);
        let mut net = Net::<2>::new(6, 3, &cables, &config, 1);
        for src in 0..senders {
            net.send_many(Time::ZERO, 400, data(src, 2 + src, 1_000));
        }
        net.run();
        net.check_conservation();
        assert_eq!(net.delivered.len() as u32, 400 * senders);
        let detours = net.fabric.stats(net.port(6, 8)).tx_packets;
        assert_eq!(net.fabric.stats(net.port(8, 7)).tx_packets, detours);
        assert_eq!(net.delivered.iter().filter(|d| d.hops == 3).count() as u64, detours);
        detours
    };
    // Packets of one host leave as they arrive: the port is idle when the next packet arrives.
    assert_eq!(detours(1, 0), 0);
    // Of 200 Gb/s, half can take the shortest path.
    assert!((250..=420).contains(&detours(2, 0)), "{}", detours(2, 0));
    // The bias exceeds every queue: 400 packets are 400 kB.
    assert_eq!(detours(2, 1_000_000), 0);
}

/// Hosts 0 and 1 at switches 2 and 3, which are joined by a cable and by another path over switch 4.
#[test]
fn the_switch_of_the_sender_gives_each_flowlet_a_whole_way() {
    let ends = [(0, 2), (1, 3), (2, 3), (2, 4), (4, 3)];
    let cables: Vec<_> = ends.iter().map(|&(a, b)| cable(a, b, 100, 500)).collect();
    let mut net: Net<2> = Net::new(2, 3, &cables, &balancing(Forwarding::LetFlow), 7);
    let hop = |net: &Net<2>, from, to| RouteHop { out: net.port(from, to), back: net.port(to, from) };
    let at = |net: &Net<2>, edge, from, to| Attachment { edge, ports: vec![net.port(from, to)] };
    let mut routes = SourceRoutes::new(vec![at(&net, 0, 2, 0), at(&net, 1, 3, 1)], 2);
    let path = |hops| RoutePath { ends: [0, 0], hops };
    routes.add_pair([path(vec![])]);
    routes.add_pair([vec![hop(&net, 2, 3)], vec![hop(&net, 2, 4), hop(&net, 4, 3)]].map(path));
    routes.add_pair([vec![hop(&net, 3, 2)], vec![hop(&net, 3, 4), hop(&net, 4, 2)]].map(path));
    routes.add_pair([path(vec![])]);
    net.fabric.set_explicit_paths(Arc::new(routes));
    // 1,250 bytes take 100 ns plus 500 ns a cable, over three cables or four. Each packet is a flowlet of its own.
    let sent: Vec<u32> = (0..40).map(|n| net.send(ps(n * 60_000_000), data(0, 1, 1_250))).collect();
    // Control is not balanced: 84 bytes take 6.72 ns a cable on the shortest path.
    let back = net.send(ps(1_000), control(1, 0, 84));
    net.run();
    let took = |net: &Net<2>, n: usize| net.arrival(sent[n]).as_ps() - n as u64 * 60_000_000;
    let of = |time| (0..40).filter(|&n| took(&net, n) == time).count();
    let (direct, detour) = (of(1_800_000), of(2_400_000));
    assert_eq!(direct + detour, 40);
    assert!((8..=32).contains(&detour), "{detour} detours");
    assert_eq!(net.arrival(back), ps(1_000 + 3 * 506_720));
    net.check_conservation();
    // Once routing knows of a failure, nothing is sent over the failed cable.
    let end = net.fabric.stats(net.port(2, 4)).tx_packets;
    let port = net.port(2, 4);
    net.at(ps(3_000_000_000), move |net, now| {
        net.fabric.link_down(now, port);
        let routes = net.routes_without(&[3]);
        net.fabric.set_routes(routes);
    });
    for n in 0..20 {
        net.send(ps(3_001_000_000 + n * 60_000_000), data(0, 1, 1_250));
    }
    net.run();
    assert_eq!(net.fabric.stats(net.port(2, 4)).tx_packets, end);
    assert_eq!(net.delivered.len(), 61);
}
