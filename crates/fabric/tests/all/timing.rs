//! Arrival times to the picosecond, computed by hand.

use crate::support::{Net, cable, control, data, plain, ps, star};
use pathweave_fabric::{Cable, Span};
use pathweave_units::{Duration, Rate, Time};

#[test]
fn one_hop() {
    // 1000 B at 100 Gb/s (80 ps a byte) is 80 ns; the cable adds 500 ns. There is no switch at all.
    let mut net = Net::<2>::new(2, 0, &[cable(0, 1, 100, 500)], &plain(), 1);
    let first = net.send(Time::ZERO, data(0, 1, 1_000));
    let second = net.send(Time::ZERO, data(0, 1, 1_000));
    let back = net.send(Time::ZERO, data(1, 0, 64));
    net.run();
    assert_eq!(net.arrival(first), ps(580_000));
    assert_eq!(net.arrival(second), ps(660_000));
    assert_eq!(net.arrival(back), ps(64 * 80 + 500_000));
    assert!(net.delivered.iter().all(|d| d.hops == 0));
}

#[test]
fn a_window_that_ends_when_time_begins_is_empty() {
    let mut net = Net::<2>::new(2, 0, &[cable(0, 1, 100, 500)], &plain(), 1);
    let id = net.send(Time::ZERO, data(0, 1, 1_000));
    net.fabric.run_until(Time::ZERO);
    net.run();
    assert_eq!(net.arrival(id), ps(580_000));
}

#[test]
fn two_hops_store_and_forward() {
    // Each hop stores and forwards the whole packet: 2 x (334,240 + 1,000,000).
    let mut net = Net::<2>::new(2, 1, &star(2, 100, 1_000), &plain(), 1);
    let id = net.send(ps(7), data(0, 1, 4_178));
    net.run();
    assert_eq!(net.arrival(id), ps(7 + 2_668_480));
    assert_eq!(net.fabric.packet_hops(), 2);
}

#[test]
fn five_hops_of_different_rates_and_lengths() {
    // 1500 B: 120 ns at 100G, 300 at 40G, 480 at 25G, 1200 at 10G, 30 at 400G: 2130 ns; cables of 1 to 5 us: 15 us.
    let cables = [
        cable(0, 2, 100, 1_000),
        cable(2, 3, 40, 2_000),
        cable(3, 4, 25, 3_000),
        cable(4, 5, 10, 4_000),
        cable(5, 1, 400, 5_000),
    ];
    let mut net = Net::<2>::new(2, 4, &cables, &plain(), 1);
    let first = net.send(Time::ZERO, data(0, 1, 1_500));
    let second = net.send(Time::ZERO, data(0, 1, 1_500));
    net.run();
    assert_eq!(net.arrival(first), ps(17_130_000));
    // The second packet is one service time of the slowest hop behind.
    assert_eq!(net.arrival(second), ps(17_130_000 + 1_200_000));
    assert_eq!((net.delivered[0].hops, net.fabric.packet_hops()), (4, 10));
}

#[test]
fn waiting_behind_a_known_packet() {
    // Both reach the switch at 1,080 ns. Host 0's cable has the lower number and goes first; the other packet waits
    // 80 ns.
    let mut net = Net::<2>::new(3, 1, &star(3, 100, 1_000), &plain(), 1);
    let first = net.send(Time::ZERO, data(0, 2, 1_000));
    let second = net.send(Time::ZERO, data(1, 2, 1_000));
    // This packet reaches the switch at 1,100 ns and waits for two, until 1,240 ns.
    let third = net.send(ps(20_000), data(0, 2, 1_000));
    net.run();
    assert_eq!(net.arrival(first), ps(2_160_000));
    assert_eq!(net.arrival(second), ps(2_240_000));
    assert_eq!(net.arrival(third), ps(2_320_000));
    assert_eq!(net.fabric.stats(net.port(3, 2)).max_queue_bytes, 1_000);
}

#[test]
fn a_gap_leaves_the_transmitter_idle() {
    let mut net = Net::<2>::new(2, 1, &star(2, 100, 1_000), &plain(), 1);
    let first = net.send(Time::ZERO, data(0, 1, 1_000));
    let second = net.send(ps(5_000_001), data(0, 1, 1_000));
    net.run();
    assert_eq!(net.arrival(second) - net.arrival(first), Duration::from_ps(5_000_001));
}

#[test]
fn control_overtakes_what_waits_but_not_what_is_being_sent() {
    // 10 data packets of 80 ns at once, and a control packet of 100 B (8 ns) 90 ns later. The NIC sends its second
    // data packet until 160 ns, so the control packet leaves at 160 and reaches the switch at 1,168. There the second
    // data packet (arrived at 1,160) is in transmission until 1,240. The control packet follows, is sent at 1,248 and
    // arrives at 2,248 ns.
    let mut net = Net::<2>::new(2, 1, &star(2, 100, 1_000), &plain(), 1);
    net.send_many(Time::ZERO, 10, data(0, 1, 1_000));
    let urgent = net.send(ps(90_000), control(0, 1, 100));
    net.run();
    assert_eq!(net.arrival(urgent), ps(2_248_000));
    let place = net.delivered.iter().position(|d| d.id == urgent);
    assert_eq!(place, Some(2));
    // The third packet left the NIC at 168, so it is 8 ns late on the whole path.
    assert_eq!(net.arrival(2), ps(2 * 80_000 + 8_000 + 2 * 1_080_000));
}

#[test]
fn odd_rates_round_each_packet_up() {
    // 1000 B at 3 Gb/s take 2,666,666.67 ps. Rounded up, so that no packet is faster than the link: 2,666,667 each.
    let cables = [Cable {
        a: 0,
        b: 1,
        rate: Rate::from_gbps(3),
        delay: Duration::from_ps(13),
        back: None,
        span: Span::Local,
    }];
    let mut net = Net::<2>::new(2, 0, &cables, &plain(), 1);
    net.send_many(Time::ZERO, 3, data(0, 1, 1_000));
    net.run();
    let times: Vec<u64> = net.delivered.iter().map(|d| d.time.as_ps()).collect();
    assert_eq!(times, [2_666_680, 5_333_347, 8_000_014]);
}

#[test]
fn cables_shorter_and_longer_than_a_packet() {
    // The result does not depend on the number of packets that a cable holds: 0, a part of one, or many.
    for delay_ns in [0, 7, 80, 50_000] {
        let mut net = Net::<2>::new(2, 1, &star(2, 100, delay_ns), &plain(), 1);
        net.send_many(Time::ZERO, 100, data(0, 1, 1_000));
        net.run();
        for (n, delivery) in (0..).zip(&net.delivered) {
            assert_eq!(delivery.time, ps(2 * (80_000 + delay_ns * 1_000) + n * 80_000), "packet {n}");
        }
        net.check_conservation();
    }
}

#[test]
fn a_slow_hop_after_a_fast_one_queues_and_a_fast_one_after_a_slow_one_does_not() {
    // 400G, 100G, 400G: packets of 20, 80, 20 ns. The last hop never queues a packet.
    let cables = [cable(0, 2, 400, 100), cable(2, 3, 100, 100), cable(3, 1, 400, 100)];
    let mut net = Net::<2>::new(2, 2, &cables, &plain(), 1);
    net.send_many(Time::ZERO, 50, data(0, 1, 1_000));
    net.run();
    for (n, delivery) in (0..).zip(&net.delivered) {
        assert_eq!(delivery.time, ps(300_000 + 20_000 + 80_000 * (n + 1) + 20_000));
    }
    let max = |from, to| net.fabric.stats(net.port(from, to)).max_queue_bytes;
    assert_eq!(max(3, 1), 0);
    // Packet n arrives at 20(n+1) ns and leaves the queue at 20 + 80n ns. When the last of 50 arrives, at 1000 ns,
    // packets up to 12 (20 + 80 x 12 = 980) have begun: 37 wait.
    assert_eq!(max(2, 3), 37_000);
}
