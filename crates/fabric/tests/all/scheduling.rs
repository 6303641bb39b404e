//! Shares of a port's rate: control first, data classes by weight.

use crate::support::{Net, Packet, control, data, plain, ps, star};
use pathweave_fabric::config::SwitchConfig;
use pathweave_units::Time;

const QUANTUM_BYTES: u64 = 9_216;

fn weighted(weights: &[u32]) -> SwitchConfig {
    SwitchConfig { weights: weights.to_vec(), ..plain() }
}

/// Returns the bytes of each class among the deliveries, until the first class has none left.
fn shares<const C: usize>(net: &Net<C>) -> [u64; C] {
    let mut left = [0u64; C];
    for packet in &net.packets {
        left[usize::from(packet.class)] += u64::from(packet.bytes);
    }
    let mut done = [0u64; C];
    for delivery in &net.delivered {
        let packet = &net.packets[delivery.id as usize];
        let class = usize::from(packet.class);
        done[class] += u64::from(packet.bytes);
        if done[class] == left[class] {
            break;
        }
    }
    done
}

#[test]
fn weights_one_and_three() {
    // Both classes wait all the time. The sizes of packets must not matter.
    let mut net = Net::<3>::new(3, 1, &star(3, 100, 1_000), &weighted(&[1, 3]), 1);
    net.send_many(Time::ZERO, 1_000, data(0, 2, 1_500));
    net.send_many(Time::ZERO, 2_000, Packet { class: 2, ..data(1, 2, 1_000) });
    net.run();
    let [_, one, three] = shares(&net);
    // While both wait, each is served within a round (4 quanta) of its share. Before the first packets wait, each
    // gets half of the few that were sent.
    assert!(one + three > 1_500_000, "{one} and {three}");
    assert!((3 * one).abs_diff(three) <= 6 * QUANTUM_BYTES, "{one} and {three}");
}

#[test]
fn three_classes_in_the_nic() {
    // One host, three classes at one transmitter, with packet sizes by class.
    let mut net = Net::<4>::new(2, 1, &star(2, 100, 1_000), &weighted(&[1, 2, 5]), 1);
    for (class, bytes) in [(1, 4_178), (2, 1_000), (3, 333)] {
        net.send_many(Time::ZERO, 4_000_000 / bytes, Packet { class, ..data(0, 1, bytes) });
    }
    net.run();
    let [_, one, two, five] = shares(&net);
    let round = 8 * QUANTUM_BYTES;
    assert!((2 * one).abs_diff(two) <= 2 * round, "{one} {two}");
    assert!((5 * one).abs_diff(five) <= 2 * round, "{one} {five}");
    net.check_conservation();
}

#[test]
fn a_class_alone_has_the_whole_port() {
    let mut net = Net::<3>::new(2, 1, &star(2, 100, 1_000), &weighted(&[1, 1_000]), 1);
    net.send_many(Time::ZERO, 1_000, data(0, 1, 1_000));
    net.run();
    assert_eq!(net.delivered[999].time, ps(2 * 1_080_000 + 999 * 80_000));
}

#[test]
fn control_is_strict() {
    // Control occupies the port for 100 packets. Of the data before and behind it, only the packet that began first
    // gets through.
    let mut net = Net::<3>::new(3, 1, &star(3, 100, 1_000), &weighted(&[1, 3]), 1);
    net.send_many(ps(1), 100, control(0, 2, 1_000));
    net.send_many(Time::ZERO, 50, data(1, 2, 1_000));
    net.send_many(Time::ZERO, 50, Packet { class: 2, ..data(1, 2, 1_000) });
    net.run();
    let place = |id| net.delivered.iter().position(|d| d.id == id).unwrap();
    let last_control = (0..100).map(place).max().unwrap();
    let data_before = net.delivered[..last_control].iter().filter(|d| d.id >= 100).count();
    assert_eq!(data_before, 1);
}

#[test]
fn order_within_a_class_is_kept() {
    let mut net = Net::<4>::new(2, 1, &star(2, 100, 1_000), &weighted(&[3, 1, 2]), 1);
    for n in 0..600 {
        net.send(
            ps(u64::from(n) * 11_000),
            Packet { class: (n * 7 % 4) as u8, ..data(0, 1, 200 + n * 13 % 900) },
        );
    }
    net.run();
    for class in 0..4 {
        let ids: Vec<u32> = net
            .delivered
            .iter()
            .map(|d| d.id)
            .filter(|&id| net.packets[id as usize].class == class)
            .collect();
        assert!(ids.is_sorted(), "class {class}");
        assert_eq!(ids.len(), 150);
    }
}
