//! Pause cycles that never end, and heavy load that only resembles them.

use std::collections::BTreeSet;

use crate::support::{Net, Packet, clockwise_routes, data, leaf_spine, lossless, ps, ring, star};
use pathweave_fabric::{PfcFailure, PfcWatch, PortMap};
use pathweave_units::{Duration, Time};

const STORM: Duration = Duration::from_ms(100);

/// Runs the PFC watch every 100 us until it reports a failure or all packets are delivered or lost.
fn watch<const C: usize>(net: &mut Net<C>, storm_after: Duration) -> Option<(Time, PfcFailure)> {
    let mut watch = PfcWatch::default();
    let mut now = Time::ZERO;
    let all = net.packets.len();
    while net.delivered.len() + net.drops().len() < all {
        now += Duration::from_us(100);
        net.run_until(now);
        let look = watch.check(net.fabric.paused_ports(now), storm_after);
        let waits = net.fabric.waits_for(look.stuck());
        if let Some(trouble) = look.trouble(waits) {
            return Some((now, trouble));
        }
        assert!(now < ps(1_000_000_000_000), "neither done nor in trouble after a second");
    }
    None
}

/// Every host of a ring sends to the host two switches further, clockwise only. Each ring link gets twice its rate,
/// and the packets on a link wait for the next link.
fn ring_net(n: u32) -> Net<2> {
    let cables = ring(n, 100, 1_000);
    let map = PortMap::new(2 * n, &cables);
    let routes = clockwise_routes(n, &cables, &map);
    let mut net = Net::with_routes(n, n, &cables, routes, &lossless(200_000, 0.5, 60_000, 3, 1), 1);
    for host in 0..n {
        net.send_many(Time::ZERO, 2_000, data(host, (host + 2) % n, 1_000));
    }
    net
}

#[test]
fn a_ring_deadlocks_and_the_cycle_is_named() {
    for n in [3, 4, 5] {
        let mut net = ring_net(n);
        let (now, trouble) = watch(&mut net, STORM).expect("the ring locks up");
        let PfcFailure::Deadlock(cycle) = trouble else { panic!("{trouble:?}") };
        let expected: BTreeSet<u32> = (0..n).map(|i| net.port(n + i, n + (i + 1) % n)).collect();
        assert_eq!(cycle.iter().copied().collect::<BTreeSet<u32>>(), expected);
        assert_eq!(cycle.len(), n as usize);
        // In order: each port waits for the next.
        for (i, &port) in cycle.iter().enumerate() {
            let next = cycle[(i + 1) % cycle.len()];
            assert_eq!(net.fabric.ends(port).1, net.fabric.ends(next).0);
        }
        // The deadlock is real: nothing moves any more.
        let done = net.delivered.len();
        net.run_until(now + Duration::from_ms(5));
        assert_eq!(net.delivered.len(), done);
        assert!(done < 2_000 * n as usize);
        net.fabric.check_accounts();
    }
}

#[test]
fn a_ring_without_pausing_loses_and_ends() {
    let n = 4;
    let cables = ring(n, 100, 1_000);
    let map = PortMap::new(2 * n, &cables);
    let routes = clockwise_routes(n, &cables, &map);
    let mut config = lossless(200_000, 0.5, 60_000, 3, 1);
    config.pfc.enabled = false;
    let mut net = Net::<2>::with_routes(n, n, &cables, routes, &config, 1);
    for host in 0..n {
        net.send_many(Time::ZERO, 2_000, data(host, (host + 2) % n, 1_000));
    }
    assert_eq!(watch(&mut net, STORM), None);
    assert!(!net.drops().is_empty());
    net.check_conservation();
}

#[test]
fn a_deadlock_ends_when_a_link_of_the_cycle_fails() {
    let mut net = ring_net(4);
    let (now, _) = watch(&mut net, STORM).expect("the ring locks up");
    net.at(now, |net, now| {
        let port = net.port(4, 5);
        net.fabric.link_down(now, port);
    });
    net.run();
    assert!(!net.fabric.any_paused());
    net.check_conservation();
}

#[test]
fn heavy_incast_is_no_deadlock() {
    // 31 hosts send to one through four leaves and two spines. Pauses occur on all tiers for 4 ms, and the watch
    // looks 40 times.
    let mut net =
        Net::<2>::new(32, 6, &leaf_spine(4, 8, 2, 100, 1_000), &lossless(300_000, 0.125, 60_000, 10, 1), 1);
    for sender in 0..31 {
        for n in 0..400 {
            net.send(Time::ZERO, Packet { path: n % 8, ..data(sender, 31, 4_178) });
        }
    }
    assert_eq!(watch(&mut net, STORM), None);
    assert_eq!(net.delivered.len(), 31 * 400);
    net.check_conservation();
}

#[test]
fn crossing_incasts_are_no_deadlock() {
    // Every host is congested by every other: pauses everywhere, in both directions of every link.
    let mut net =
        Net::<2>::new(16, 6, &leaf_spine(4, 4, 2, 100, 1_000), &lossless(100_000, 0.125, 60_000, 6, 1), 1);
    for sender in 0..16 {
        for n in 0..600 {
            let dst = (sender + 1 + n / 40) % 16;
            net.send(Time::ZERO, Packet { path: n as u16 % 8, ..data(sender, dst, 4_178) });
        }
    }
    net.send_many(Time::ZERO, 0, data(0, 1, 1));
    let own = |p: &Packet| p.src == p.dst;
    assert!(!net.packets.iter().any(own));
    assert_eq!(watch(&mut net, STORM), None);
    assert_eq!(net.delivered.len(), 16 * 600);
    net.check_conservation();
}

#[test]
fn a_storm_is_reported_when_it_has_lasted() {
    let mut net = Net::<2>::new(3, 1, &star(3, 100, 1_000), &lossless(100_000, 0.125, 60_000, 3, 1), 1);
    net.send_many(Time::ZERO, 500, data(0, 2, 1_000));
    net.at(ps(50_000_000), |net, now| {
        let port = net.port(3, 2);
        net.fabric.start_pause_storm(now, port);
    });
    net.send(ps(60_000_000), data(1, 2, 1_000));
    let trouble = watch(&mut net, Duration::from_us(1_000));
    // The storm begins at 50 us. The look at 1,100 us is the first that finds a pause of a millisecond.
    assert_eq!(
        trouble,
        Some((ps(1_100_000_000), PfcFailure::Storm(net.port(3, 2), Duration::from_us(1_050))))
    );
}

#[test]
fn a_storm_that_backs_up_is_blamed_on_its_source() {
    // Host 2 storms. The switch later pauses host 0, which sends to host 2. The pause at host 2's port is older.
    let mut net = Net::<2>::new(3, 1, &star(3, 100, 1_000), &lossless(100_000, 0.125, 60_000, 3, 1), 1);
    net.send_many(Time::ZERO, 5_000, data(0, 2, 1_000));
    net.at(ps(10_000_000), |net, now| {
        let port = net.port(3, 2);
        net.fabric.start_pause_storm(now, port);
    });
    let (_, trouble) = watch(&mut net, Duration::from_us(200)).expect("a storm");
    assert!(matches!(trouble, PfcFailure::Storm(port, _) if port == net.port(3, 2)), "{trouble:?}");
}
