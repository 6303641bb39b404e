//! Devices over packet sockets (`net_af_packet`) between two network namespaces.

use netlink_packet_route::link::LinkFlags;
use pathweave_datapath::DeviceConfig;
use pathweave_datapath::secure::{ClusterKey, Protection};

use crate::link::net::{
    End, Family, Net, board, connect, wait_until, write_and_compare, write_until_it_bypasses,
};
use crate::places::{Ends, config_for_mtu};

/// Bytes that need many packets of any size.
pub(crate) const MUCH: usize = 3_000_000;

/// Writes and reads in both directions, bypassing the kernel's network stack.
pub(crate) fn exchange(
    ends: &impl Ends,
    mtu_bytes: u32,
    family: Family,
    change: impl Fn(&mut DeviceConfig),
) -> [pathweave_bypass::ether::CounterValues; 2] {
    let open = |end| {
        let mut config = config_for_mtu(end, family, mtu_bytes);
        change(&mut config);
        ends.open(end, mtu_bytes, config)
    };
    let ((near, near_counts), (far, far_counts)) = (open(End::Near), open(End::Far));
    let (there, back) = connect(&near, &far);
    let (near_board, far_board) = (board(&near, MUCH), board(&far, MUCH));
    write_until_it_bypasses(&there, &far_board, &near_counts);
    write_until_it_bypasses(&back, &near_board, &far_counts);
    let by_kernel = [&near_counts, &far_counts].map(|counts| counts.read().sent_by_kernel);
    for (salt, len) in (1..).zip([1, 100, mtu_bytes as usize, MUCH]) {
        write_and_compare(&there, &far_board, len, salt);
        write_and_compare(&back, &near_board, len, salt + 100);
    }
    let tallies = [near_counts.read(), far_counts.read()];
    for (tally, by_kernel) in tallies.into_iter().zip(by_kernel) {
        // Both directions carry much data.
        let packets = (MUCH / mtu_bytes as usize) as u64;
        assert!(tally.sent > packets && tally.received > packets, "{tally:?}");
        assert_eq!(tally.sent_by_kernel, by_kernel, "{tally:?}");
    }
    tallies
}

fn between_namespaces(test: &str, mtu_bytes: u32, family: Family, change: impl Fn(&mut DeviceConfig)) {
    if let Some(net) = Net::make(test, mtu_bytes, 1) {
        exchange(&net, mtu_bytes, family, change);
    }
}

#[test]
fn messages_go_over_packet_sockets() {
    between_namespaces("messages_go_over_packet_sockets", 1_500, Family::V4, |_| {});
}

#[test]
fn messages_go_over_packet_sockets_and_ipv6() {
    between_namespaces("messages_go_over_packet_sockets_and_ipv6", 1_500, Family::V6, |_| {});
}

#[test]
fn jumbo_packets_go_over_packet_sockets() {
    between_namespaces("jumbo_packets_go_over_packet_sockets", 9_000, Family::V4, |_| {});
}

#[test]
fn protected_packets_go_over_packet_sockets() {
    between_namespaces("protected_packets_go_over_packet_sockets", 1_500, Family::V4, |config| {
        config.protection = Protection::Encrypt;
        config.key = Some(ClusterKey::from_bytes([7; 32]));
    });
}

#[test]
fn peers_of_packet_sockets_may_use_the_kernels() {
    for mtu_bytes in [1_500, 9_000] {
        let Some(net) = Net::make("peers_of_packet_sockets_may_use_the_kernels", mtu_bytes, 1) else {
            return;
        };
        let (near, counters) =
            net.open(End::Near, mtu_bytes, config_for_mtu(End::Near, Family::V4, mtu_bytes));
        let far = net.sockets(End::Far, config_for_mtu(End::Far, Family::V4, mtu_bytes));
        let (there, back) = connect(&near, &far);
        let (far_board, near_board) = (board(&far, MUCH), board(&near, MUCH));
        write_until_it_bypasses(&there, &far_board, &counters);
        write_and_compare(&there, &far_board, MUCH, 1);
        write_and_compare(&back, &near_board, MUCH, 2);
        let tally = counters.read();
        let packets = (MUCH / mtu_bytes as usize) as u64;
        assert!(tally.sent > packets && tally.received > packets, "{tally:?}");
        // The kernel's own sockets received almost nothing.
        assert!(tally.received_by_kernel < 10, "{tally:?}");
    }
}

#[test]
fn an_interface_that_is_down_for_a_while_loses_nothing() {
    let Some(net) = Net::make("an_interface_that_is_down_for_a_while_loses_nothing", 1_500, 1) else {
        return;
    };
    let (near, counters) = net.open(End::Near, 1_500, config_for_mtu(End::Near, Family::V4, 1_500));
    let (far, _) = net.open(End::Far, 1_500, config_for_mtu(End::Far, Family::V4, 1_500));
    let (there, _back) = connect(&near, &far);
    let far_board = board(&far, MUCH);
    write_and_compare(&there, &far_board, MUCH, 1);
    // Takes down the far interface, which loses frames, and the near one, whose driver refuses them.
    for end in [End::Far, End::Near] {
        let sent_before = counters.read().sent;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for salt in 2..8 {
                    write_and_compare(&there, &far_board, MUCH, salt);
                }
            });
            wait_until("it is under way", || counters.read().sent > sent_before);
            net.set_link(end, LinkFlags::empty());
            std::thread::sleep(std::time::Duration::from_millis(300));
            net.set_link(end, LinkFlags::Up);
        });
    }
    assert!(near.stats().is_some(), "the loop lives");
}
