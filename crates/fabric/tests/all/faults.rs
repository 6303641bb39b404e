//! Faults: links and switches that fail, change, lose and corrupt.

use std::collections::BTreeMap;

use crate::support::{
    Net, Packet, cable, clockwise_routes, control, data, leaf_spine, lossless, plain, ps, ring, star,
};
use pathweave_fabric::DropReason::{self, Corruption, LinkDown, Loop, Loss, NoRoute};
use pathweave_units::{Duration, Rate, Time};

fn count_by_reason<const C: usize>(net: &Net<C>) -> BTreeMap<DropReason, usize> {
    net.drops().iter().fold(BTreeMap::new(), |mut counts, (_, _, reason)| {
        *counts.entry(*reason).or_default() += 1;
        counts
    })
}

#[test]
fn a_dead_link_loses_what_is_queued_sent_and_in_flight() {
    // 100 Gb/s into 25 Gb/s: packets of 80 ns and 320 ns, cables of 1 us. The link to host 1 fails at 3,999 ns. The
    // n-th packet (from 0) reaches the switch at 1,080 + 80n, begins to leave at 1,080 + 320n and arrives at 2,400 +
    // 320n. By then 0 to 4 have arrived, 5 to 9 are in flight (9 begins at 3,960), and 10 to 36 wait. The others
    // reach a port whose link is down.
    let mut net = Net::<2>::new(2, 1, &[cable(0, 2, 100, 1_000), cable(2, 1, 25, 1_000)], &plain(), 1);
    net.send_many(Time::ZERO, 100, data(0, 1, 1_000));
    net.at(ps(3_999_000), |net, now| {
        let port = net.port(1, 2);
        net.fabric.link_down(now, port);
    });
    net.run();
    assert_eq!(net.delivered.iter().map(|d| d.id).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let at_once: Vec<u32> = net.drops().iter().filter(|d| d.0 == ps(3_999_000)).map(|d| d.1).collect();
    assert_eq!(at_once, (10..=36).collect::<Vec<u32>>());
    assert_eq!(count_by_reason(&net), [(LinkDown, 95)].into());
    assert_eq!(net.fabric.stats(net.port(2, 1)).dropped_packets, 95);
    net.check_conservation();
}

#[test]
fn a_link_comes_back_empty() {
    let mut net = Net::<2>::new(2, 1, &star(2, 100, 1_000), &plain(), 1);
    net.at(Time::ZERO, |net, now| {
        let port = net.port(0, 2);
        net.fabric.link_down(now, port);
        assert!(!net.fabric.port_ready(now, port));
    });
    let dead = net.send(ps(1), data(0, 1, 1_000));
    net.at(ps(10_000_000), |net, now| {
        let port = net.port(0, 2);
        net.fabric.link_up(now, port);
        assert!(net.fabric.port_ready(now, port));
    });
    let alive = net.send(ps(10_000_000), data(0, 1, 1_000));
    net.run();
    assert_eq!(net.drops(), [(ps(1), dead, LinkDown)]);
    // To lose the packet took the transmitter as long as to send it.
    assert!(net.fabric.stats(net.port(0, 2)).tx_packets == 1);
    assert_eq!(net.arrival(alive), ps(10_000_000 + 2_160_000));
}

#[test]
fn a_flapping_link_serves_in_order_while_it_is_up() {
    let mut net = Net::<2>::new(2, 1, &star(2, 100, 1_000), &plain(), 1);
    for n in 0..200u64 {
        net.send(ps(n * 100_000), data(0, 1, 1_000));
    }
    // The link is down for 300 ns, less than the delay of the cable, every 2 us.
    for flap in 0..10u64 {
        net.at(ps(flap * 2_000_000 + 950_000), |net, now| {
            let port = net.port(2, 1);
            net.fabric.link_down(now, port);
        });
        net.at(ps(flap * 2_000_000 + 1_250_000), |net, now| {
            let port = net.port(2, 1);
            net.fabric.link_up(now, port);
        });
    }
    net.run();
    assert!(net.delivered.iter().map(|d| d.id).is_sorted());
    assert_eq!(count_by_reason(&net).keys().collect::<Vec<_>>(), [&LinkDown]);
    // A failure loses the packets on the 1 us cable and in the transmitter (1,080 ns, one packet every 100 ns), and
    // those that reach the port within 300 ns: 13 or 14 packets. The first failure finds no packet on the cable, and
    // 1 or 2 reach the port.
    let lost = net.drops().len();
    assert!((9 * 13 + 1..=9 * 14 + 3).contains(&lost), "{lost}");
    net.check_conservation();
}

#[test]
fn pauses_do_not_outlive_the_link() {
    // Host 0 is paused when its link fails. When the link is back, the host may send at once.
    let mut net = Net::<2>::new(3, 1, &star(3, 100, 1_000), &lossless(150_000, 0.5, 50_000, 3, 1), 1);
    net.send_many(Time::ZERO, 300, data(0, 2, 1_000));
    net.send_many(Time::ZERO, 300, data(1, 2, 1_000));
    net.at(ps(10_000_000), |net, now| {
        let port = net.port(0, 3);
        assert!(net.fabric.any_paused());
        net.fabric.link_down(now, port);
        net.fabric.link_up(now, port);
        assert!(net.fabric.port_ready(now, port));
    });
    let after = net.send(ps(10_000_000), data(0, 1, 1_000));
    net.run();
    assert_eq!(net.arrival(after), ps(10_000_000 + 2_160_000));
    assert!(!net.fabric.any_paused());
    net.check_conservation();
}

#[test]
fn a_switch_forgets_whom_it_paused_over_a_dead_link() {
    // The receiver's link fails while both senders are paused: all queues empty at once and both senders resume.
    let mut net = Net::<2>::new(3, 1, &star(3, 100, 1_000), &lossless(150_000, 0.5, 50_000, 3, 1), 1);
    net.send_many(Time::ZERO, 300, data(0, 2, 1_000));
    net.send_many(Time::ZERO, 300, data(1, 2, 1_000));
    net.at(ps(10_000_000), |net, now| {
        let port = net.port(3, 2);
        net.fabric.link_down(now, port);
    });
    net.run();
    let resumed: Vec<Time> = net.pauses().iter().filter(|p| !p.3).map(|p| p.0).collect();
    assert_eq!(resumed, [ps(11_006_720), ps(11_006_720)]);
    assert!(!net.fabric.any_paused());
    net.check_conservation();
}

#[test]
fn a_new_rate_holds_from_the_next_packet_on() {
    // A packet takes 80 ns, and 800 ns at the 10 Gb/s that hold from 200 ns on. The third is in transmission then
    // (160 to 240 ns).
    let mut net = Net::<2>::new(2, 0, &[cable(0, 1, 100, 0)], &plain(), 1);
    net.send_many(Time::ZERO, 6, data(0, 1, 1_000));
    net.at(ps(200_000), |net, now| {
        net.fabric.set_link(now, 0, Some(Rate::from_gbps(10)), None);
    });
    net.at(ps(1_900_000), |net, now| {
        net.fabric.set_link(now, 0, Some(Rate::from_gbps(100)), None);
    });
    net.run();
    let times: Vec<u64> = net.delivered.iter().map(|d| d.time.as_ns()).collect();
    assert_eq!(times, [80, 160, 240, 1_040, 1_840, 2_640]);
}

#[test]
fn a_delay_spike_keeps_the_order() {
    // The delay is 10 us from 100 ns on, and 1 us again from 1,000 ns on. Packets sent later wait for those sent
    // before.
    let mut net = Net::<2>::new(2, 0, &[cable(0, 1, 100, 1_000)], &plain(), 1);
    net.send_many(Time::ZERO, 20, data(0, 1, 1_000));
    for (at, us) in [(100_000, 10), (1_000_000, 1)] {
        net.at(ps(at), move |net, now| {
            net.fabric.set_link(now, 0, None, Some(Duration::from_us(us)));
        });
    }
    net.run();
    assert!(net.delivered.iter().map(|d| d.id).is_sorted());
    let times: Vec<u64> = net.delivered.iter().map(|d| d.time.as_ns()).collect();
    // The first two packets began before the change (at 0 and 80 ns). Packets 2 to 12 begin at 160 to 960 ns and take
    // 10 us. The others would be earlier, and arrive together with packet 12.
    assert_eq!((times[0], times[1]), (1_080, 1_160));
    assert_eq!((times[2], times[12]), (10_240, 11_040));
    assert!(times[13..].iter().all(|t| *t == 11_040));
}

/// Returns the ids of the packets that a link loses or corrupts with these probabilities, and their counts by reason.
fn impaired(loss: f64, corruption: f64, seed: u64) -> (Vec<u32>, BTreeMap<DropReason, usize>) {
    let mut net = Net::<2>::new(2, 1, &star(2, 100, 1_000), &plain(), seed);
    net.send_many(Time::ZERO, 20_000, data(0, 1, 1_000));
    let port = net.port(1, 2);
    net.fabric.set_impairment(port, loss, corruption);
    net.run();
    net.check_conservation();
    (net.drops().iter().map(|d| d.1).collect(), count_by_reason(&net))
}

#[test]
fn bernoulli_loss_and_corruption() {
    // Expected of 20,000 packets: 200 +- 14 lost, 1,000 +- 31 corrupted.
    let (_, counts) = impaired(0.01, 0.05, 1);
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [Loss, Corruption]);
    assert!(counts[&Loss].abs_diff(200) < 70, "{counts:?}");
    assert!(counts[&Corruption].abs_diff(1_000) < 155, "{counts:?}");
    assert_eq!(impaired(1.0, 0.0, 1).1, [(Loss, 20_000)].into());
    assert_eq!(impaired(0.0, 0.0, 1).1, [].into());
}

#[test]
fn losses_are_independent() {
    // Of 2,000 losses at 10 %, a tenth is followed by another loss: 200 +- 13.
    let (lost, _) = impaired(0.1, 0.0, 5);
    let pairs = lost.windows(2).filter(|w| w[0] + 1 == w[1]).count();
    assert!(pairs.abs_diff(lost.len() / 10) < 70, "{pairs} of {}", lost.len());
}

#[test]
fn losses_depend_on_the_seed_only() {
    assert_eq!(impaired(0.01, 0.01, 7), impaired(0.01, 0.01, 7));
    assert_ne!(impaired(0.01, 0.01, 7).0, impaired(0.01, 0.01, 8).0);
}

#[test]
fn a_dead_spine_and_routes_around_it() {
    // Two leaves, two spines. Spine 5 fails at 10 us. Routing notices at 20 us.
    let mut net = Net::<2>::new(2, 4, &leaf_spine(2, 1, 2, 100, 1_000), &plain(), 1);
    for n in 0..300u64 {
        net.send(ps(n * 100_000), Packet { path: n as u16, ..data(0, 1, 1_000) });
    }
    net.at(ps(10_000_000), |net, now| {
        for port in net.map.ports(5) {
            net.fabric.link_down(now, port);
        }
    });
    net.at(ps(20_000_000), |net, _| {
        let dead: Vec<usize> = (0..net.cables.len()).filter(|&c| net.cables[c].b == 5).collect();
        let routes = net.routes_without(&dead);
        net.fabric.set_routes(routes);
    });
    net.run();
    let drops = net.drops();
    assert!(drops.iter().all(|d| d.2 == LinkDown && d.0 < ps(20_000_000)));
    // About half of the packets sent within 10 us.
    assert!((30..75).contains(&drops.len()), "{}", drops.len());
    assert_eq!(net.delivered.len(), 300 - drops.len());
    net.check_conservation();
}

#[test]
fn no_way_and_no_way_out() {
    // The leaf of host 1 has no link to a spine: no route. Then clockwise routes that never deliver: a loop.
    let mut net = Net::<2>::new(2, 4, &leaf_spine(2, 1, 2, 100, 1_000), &plain(), 1);
    let routes = net.routes_without(&[1]);
    net.fabric.set_routes(routes);
    net.send(Time::ZERO, data(0, 1, 1_000));
    net.run();
    assert_eq!(count_by_reason(&net), [(NoRoute, 1)].into());

    let cables = ring(3, 100, 1_000);
    let map = pathweave_fabric::PortMap::new(6, &cables);
    let mut routes = clockwise_routes(3, &cables, &map);
    // The switch of host 2 forwards the host's packets to the next switch.
    if let [.., pathweave_fabric::SwitchRoutes::Table(table)] = &mut routes[..] {
        table.groups[2] = table.groups[0];
    }
    let mut net = Net::<2>::with_routes(3, 3, &cables, routes, &plain(), 1);
    net.send(Time::ZERO, data(0, 2, 1_000));
    net.run();
    assert_eq!(count_by_reason(&net), [(Loop, 1)].into());
    net.check_conservation();
}

#[test]
fn a_pause_storm_holds_data_and_lets_control_pass() {
    let mut net = Net::<2>::new(2, 1, &star(2, 100, 1_000), &lossless(1_000_000, 1.0, 50_000, 2, 1), 1);
    net.at(Time::ZERO, |net, now| {
        let port = net.port(2, 1);
        net.fabric.start_pause_storm(now, port);
    });
    let held = net.send(Time::ZERO, data(0, 1, 1_000));
    let urgent = net.send(Time::ZERO, control(0, 1, 100));
    net.at(ps(50_000_000), |net, now| {
        let port = net.port(2, 1);
        assert_eq!(net.fabric.queued_bytes(now, port).get(), 1_000);
        assert_eq!(net.fabric.paused_time(port, now), Duration::from_us(50));
        net.fabric.stop_pause_storm(now, port);
    });
    net.run();
    // The control packet is behind the data packet in the NIC, and passes it in the switch.
    assert_eq!(net.arrival(urgent), ps(80_000 + 2 * 1_008_000));
    assert_eq!(net.arrival(held), ps(50_000_000 + 1_080_000));
    let stats = net.fabric.stats(net.port(2, 1));
    assert_eq!((stats.pauses, stats.paused), (1, Duration::from_us(50)));
    net.check_conservation();
}

#[test]
fn pause_frames_are_spared_by_random_loss() {
    // A lost resume frame would stop a host for ever. In real networks a pause expires and is repeated while needed.
    // An impaired link therefore loses data only, and PFC still prevents drops in the buffer.
    for (loss, corruption) in [(0.3, 0.0), (0.0, 0.3)] {
        let mut net = Net::<2>::new(4, 1, &star(4, 100, 1_000), &lossless(150_000, 0.5, 50_000, 4, 1), 1);
        for sender in 0..3 {
            let port = net.port(sender, 4);
            net.fabric.set_impairment(port, loss, corruption);
            net.send_many(Time::ZERO, 2_000, data(sender, 3, 1_000));
        }
        net.run();
        assert!(net.pauses().len() > 100);
        assert!(!net.fabric.any_paused());
        assert_eq!(count_by_reason(&net).len(), 1);
        assert!(net.drops().len().abs_diff(1_800) < 180);
        net.check_conservation();
    }
}

#[test]
fn a_shrunken_delay_that_is_noticed_late() {
    // The second packet begins at 80 ns on a cable without delay. The first one, sent with a delay of 10 us, is the
    // next event. Both arrive together.
    let mut net = Net::<2>::new(2, 0, &[cable(0, 1, 100, 10_000)], &plain(), 1);
    net.send_many(Time::ZERO, 3, data(0, 1, 1_000));
    net.at(ps(50_000), |net, now| {
        net.fabric.set_link(now, 0, None, Some(Duration::ZERO));
    });
    net.run();
    let times: Vec<u64> = net.delivered.iter().map(|d| d.time.as_ns()).collect();
    assert_eq!(times, [10_080; 3]);
}

#[test]
fn a_nic_that_spoke_to_a_dead_link_is_free_when_it_comes_back() {
    // A hundred packets of 80 ns are lost from 0 on. The link is back after 1 us.
    let mut net = Net::<2>::new(2, 1, &star(2, 100, 1_000), &plain(), 1);
    let port = net.port(0, 2);
    net.at(Time::ZERO, move |net, now| net.fabric.link_down(now, port));
    net.send_many(Time::ZERO, 100, data(0, 1, 1_000));
    net.at(ps(999_999), move |net, _| assert_eq!(net.fabric.port_free_at(port), ps(8_000_000)));
    net.at(ps(1_000_000), move |net, now| net.fabric.link_up(now, port));
    let first = net.send(ps(1_000_000), data(0, 1, 1_000));
    net.run();
    assert_eq!(net.arrival(first), ps(3_160_000));
    assert_eq!(net.drops().len(), 100);
    net.check_conservation();
}

#[test]
fn bringing_up_what_is_up_changes_nothing() {
    let mut net = Net::<2>::new(2, 0, &[cable(0, 1, 100, 0)], &plain(), 1);
    net.send_many(Time::ZERO, 2, data(0, 1, 1_000));
    net.at(ps(10_000), |net, now| net.fabric.link_up(now, 0));
    net.run();
    assert_eq!(net.arrival(1), ps(160_000));
}
