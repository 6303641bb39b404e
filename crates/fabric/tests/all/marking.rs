//! Congestion marks: thresholds, probability, and the queue that is compared.

use crate::support::{Net, Packet, data, plain, star};
use pathweave_fabric::config::{EcnConfig, LastHop, MarkAt, SwitchConfig, Thresholds};
use pathweave_units::{Bytes, Rate, Time};

fn marking(at: MarkAt, kmin: u64, kmax: u64, pmax: f64) -> SwitchConfig {
    let ecn = EcnConfig {
        enabled: true,
        kmin: Bytes::new(kmin),
        kmax: Bytes::new(kmax),
        pmax,
        reference_rate: Rate::from_gbps(100),
        thresholds: Thresholds::ByRate,
        at,
        ..EcnConfig::default()
    };
    SwitchConfig { ecn, ..plain() }
}

/// Two hosts send `each` packets of 1000 B to a third. Returns true for each packet, in order of arrival, that is
/// marked.
fn two_to_one(config: &SwitchConfig, each: u32, seed: u64) -> Vec<bool> {
    let mut net = Net::<2>::new(3, 1, &star(3, 100, 1_000), config, seed);
    net.send_many(Time::ZERO, each, data(0, 2, 1_000));
    net.send_many(Time::ZERO, each, data(1, 2, 1_000));
    net.run();
    assert_eq!(net.delivered.len() as u32, 2 * each);
    net.delivered.iter().map(|d| d.marked).collect()
}

fn first_marked(marks: &[bool]) -> Option<usize> {
    marks.iter().position(|m| *m)
}

#[test]
fn a_step_on_leaving() {
    // Packets arrive in pairs every 80 ns and one leaves. The k-th leaves at the arrival of the k-th pair, but before
    // that pair is queued: 2(k-1) packets have arrived and k have left (itself included), so k-2 remain. No packet
    // waits behind the first. More than 10 remain from k = 13 on. After the last pair (k = 50) the queue shrinks:
    // when the k-th leaves, 100 - k remain, which is more than 10 up to k = 89.
    let marks = two_to_one(&marking(MarkAt::Dequeue, 10_000, 10_000, 1.0), 50, 1);
    let expected: Vec<bool> = (1..=100).map(|k| (13..=89).contains(&k)).collect();
    assert_eq!(marks, expected);
}

#[test]
fn a_step_on_arrival() {
    // The k-th pair finds that 2(k-1) packets arrived and k left (the k-th service starts at this instant, before the
    // pair is queued). So its first packet finds k-2 waiting and its second k-1. More than 10: the first of pair 13,
    // the second of pair 12. They leave in order of arrival: pairs 12 to 50, without the first of pair 12.
    let marks = two_to_one(&marking(MarkAt::Enqueue, 10_000, 10_000, 1.0), 50, 1);
    let expected: Vec<bool> = (0..100).map(|n| n >= 23).collect();
    assert_eq!(marks, expected);
}

#[test]
fn never_up_to_kmin_always_above_kmax() {
    // The queue peaks at 49 KB with the last pair. With kmin at 49 KB there are no marks.
    let marks = two_to_one(&marking(MarkAt::Dequeue, 49_000, 49_000, 1.0), 50, 1);
    assert_eq!(first_marked(&marks), None);
    let marks = two_to_one(&marking(MarkAt::Enqueue, 49_000, 49_000, 1.0), 50, 1);
    assert_eq!(first_marked(&marks), None);
}

#[test]
fn in_between_by_the_published_line() {
    // A constant queue: 300 packets wait for one port, and one arrives for each that leaves. With kmin 0, kmax 600 KB
    // and pmax 0.4, the marking probability is 0.4 x 300/600 = 0.2.
    let config = marking(MarkAt::Dequeue, 0, 600_000, 0.4);
    let mut net = Net::<2>::new(3, 1, &star(3, 100, 1_000), &config, 3);
    net.send_many(Time::ZERO, 300, data(0, 2, 1_000));
    net.send_many(Time::ZERO, 20_300, data(1, 2, 1_000));
    net.run();
    let steady = &net.delivered[600..20_000];
    let marked = steady.iter().filter(|d| d.marked).count() as f64;
    let share = marked / steady.len() as f64;
    // Standard deviation sqrt(0.2 x 0.8 / 19,400) = 0.0029; the queue is 299 or 300 packets.
    assert!((share - 0.2).abs() < 0.012, "{share}");
}

#[test]
fn thresholds_scale_with_the_port() {
    // 25 Gb/s ports: a quarter of 40 KB.
    let config = marking(MarkAt::Enqueue, 40_000, 40_000, 1.0);
    let mut net = Net::<2>::new(3, 1, &star(3, 25, 1_000), &config, 1);
    net.send_many(Time::ZERO, 50, data(0, 2, 1_000));
    net.send_many(Time::ZERO, 50, data(1, 2, 1_000));
    net.run();
    assert_eq!(net.delivered.iter().position(|d| d.marked), Some(23));
}

#[test]
fn packets_without_ecn_are_not_marked() {
    let config = marking(MarkAt::Dequeue, 0, 0, 1.0);
    let mut net = Net::<2>::new(3, 1, &star(3, 100, 1_000), &config, 1);
    net.send_many(Time::ZERO, 50, Packet { ecn: false, ..data(0, 2, 1_000) });
    net.send_many(Time::ZERO, 50, data(1, 2, 1_000));
    net.run();
    for delivery in &net.delivered {
        assert!(net.packets[delivery.id as usize].ecn || !delivery.marked);
    }
    let marked = net.delivered.iter().filter(|d| d.marked).count() as u64;
    assert_eq!(net.fabric.stats(net.port(3, 2)).marked_packets, marked);
    assert!(marked > 40);
}

#[test]
fn nics_do_not_mark() {
    let config = marking(MarkAt::Dequeue, 0, 0, 1.0);
    let mut net = Net::<2>::new(2, 1, &star(2, 100, 1_000), &config, 1);
    net.send_many(Time::ZERO, 50, data(0, 1, 1_000));
    net.run();
    assert!(net.delivered.iter().all(|d| !d.marked));
}

#[test]
fn ports_to_hosts_may_be_left_out() {
    let mut config = marking(MarkAt::Dequeue, 10_000, 10_000, 1.0);
    assert!(first_marked(&two_to_one(&config, 50, 1)).is_some());
    config.ecn.last_hop = LastHop::Leave;
    assert_eq!(first_marked(&two_to_one(&config, 50, 1)), None);
}

#[test]
fn marks_depend_on_the_seed_and_on_nothing_else() {
    let config = marking(MarkAt::Dequeue, 0, 100_000, 0.5);
    let [a, b, c] = [1, 1, 2].map(|seed| two_to_one(&config, 60, seed));
    assert_eq!(a, b);
    assert_ne!(a, c);
}
