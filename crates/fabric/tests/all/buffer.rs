//! Shared buffer without PFC: drop-tail with a dynamic threshold.

use crate::support::{Net, control, data, plain, ps, star};
use pathweave_fabric::DropReason;
use pathweave_fabric::config::SwitchConfig;
use pathweave_units::{Bytes, Time};

fn buffer(bytes: u64, alpha: f64) -> SwitchConfig {
    SwitchConfig { buffer: Bytes::new(bytes), egress_alpha: alpha, ..plain() }
}

/// Returns the ids of lost packets when hosts 0 and 1 send `each` packets of 1000 B to host 2. Ids below `each` are
/// host 0's.
fn lost_of_two_to_one(config: &SwitchConfig, each: u32) -> Vec<u32> {
    let mut net = Net::<2>::new(3, 1, &star(3, 100, 1_000), config, 1);
    net.send_many(Time::ZERO, each, data(0, 2, 1_000));
    net.send_many(Time::ZERO, each, data(1, 2, 1_000));
    net.run();
    net.check_conservation();
    assert!(net.drops().iter().all(|(_, _, reason)| *reason == DropReason::Buffer));
    assert_eq!(net.fabric.stats(net.port(3, 2)).dropped_packets, net.drops().len() as u64);
    net.drops().iter().map(|(_, id, _)| *id).collect()
}

#[test]
fn the_threshold_by_hand() {
    // The k-th pair finds k-2 packets waiting (see the marking tests). With alpha 1 a queue of q admits a packet
    // while q + 1 <= 20 - q, that is while q <= 9: ten packets at most. The first packet of pair 11 finds 9; the
    // second finds 10 and is lost. From then on one packet leaves and one enters at each instant: host 0's enters,
    // host 1's is lost.
    let lost = lost_of_two_to_one(&buffer(20_000, 1.0), 20);
    assert_eq!(lost, (20 + 10..40).collect::<Vec<u32>>());
}

#[test]
fn a_smaller_alpha_leaves_more_free() {
    // alpha 1/4: q + 1 <= (20 - q)/4 holds while q <= 3.2: four packets. The second packet of pair 5 finds 4.
    let lost = lost_of_two_to_one(&buffer(20_000, 0.25), 20);
    assert_eq!(lost[0], 20 + 4);
    assert_eq!(lost.len(), 16);
}

#[test]
fn a_large_alpha_fills_the_buffer_to_the_last_byte() {
    // alpha 1024: only the memory limits. 20 packets fit: the second packet of pair 21 finds 20.
    let lost = lost_of_two_to_one(&buffer(20_000, 1024.0), 30);
    assert_eq!(lost[0], 30 + 20);
    let lost = lost_of_two_to_one(&buffer(20_999, 1024.0), 30);
    assert_eq!(lost[0], 30 + 20);
    let lost = lost_of_two_to_one(&buffer(21_000, 1024.0), 30);
    assert_eq!(lost[0], 30 + 21);
}

#[test]
fn ports_share_the_memory() {
    // Hosts 0 and 1 send to 2 as above. Hosts 3 and 4 send to 5, with their first packets 1 ps later. alpha 1, memory
    // for 30 packets. Alone a queue grows while q + 1 <= 30 - q: to 15. Together q + 1 <= 30 - 2q, q <= 9.67: 10
    // packets. The queue that is served first at an instant finds the other one at its previous length.
    let mut net = Net::<2>::new(6, 1, &star(6, 100, 1_000), &buffer(30_000, 1.0), 1);
    for (start, sender, receiver) in [(0, 0, 2), (0, 1, 2), (1, 3, 5), (1, 4, 5)] {
        net.send_many(ps(start), 40, data(sender, receiver, 1_000));
    }
    net.run();
    net.check_conservation();
    for port in [net.port(6, 2), net.port(6, 5)] {
        assert_eq!(net.fabric.stats(port).max_queue_bytes, 10_000);
    }
}

#[test]
fn control_may_use_what_data_may_not() {
    // A threshold near zero: every data packet that would wait is lost, and no control packet is.
    let mut net = Net::<2>::new(3, 1, &star(3, 100, 1_000), &buffer(100_000, 0.001), 1);
    net.send_many(Time::ZERO, 20, data(0, 2, 1_000));
    net.send_many(Time::ZERO, 20, control(1, 2, 1_000));
    net.run();
    assert!(net.drops().iter().all(|(_, id, _)| *id < 20));
    assert_eq!(net.delivered.iter().filter(|d| d.id >= 20).count(), 20);
    net.check_conservation();
}

#[test]
fn nics_have_room_for_all_their_host_sends() {
    let mut net = Net::<2>::new(2, 1, &star(2, 100, 1_000), &buffer(20_000, 1.0), 1);
    net.send_many(Time::ZERO, 5_000, data(0, 1, 1_000));
    net.run();
    assert_eq!(net.delivered.len(), 5_000);
}
