//! Devices over shared memory of two ports (`net_memif`).

use std::time::Duration;

use pathweave_datapath::backend::{Cuts, Faults, Faulty};
use pathweave_datapath::secure::{ClusterKey, Protection};
use pathweave_datapath::{Device, Region};

use crate::link::net::{End, Family, PATIENCE, board, connect, wait_until, write_and_compare};
use crate::packet::{MUCH, exchange};
use crate::places::{Ends, Memif, any_port, config_for_mtu};

/// Exchanges messages. No other traffic is on such a link.
fn over_memif(mtu_bytes: u32, family: Family, change: impl Fn(&mut pathweave_datapath::DeviceConfig)) {
    for tally in exchange(&Memif::new(End::Near), mtu_bytes, family, change) {
        assert_eq!((tally.foreign, tally.flawed, tally.sent_by_kernel), (0, [0; 8], 0), "{tally:?}");
        // Packets may be lost until the link is up and both ends have resolved each other.
        assert!(tally.lost < 100, "{tally:?}");
    }
}

#[test]
fn messages_go_over_shared_memory() {
    over_memif(1_500, Family::V4, |_| {});
}

#[test]
fn messages_go_over_shared_memory_and_ipv6() {
    over_memif(1_500, Family::V6, |_| {});
}

#[test]
fn jumbo_packets_go_over_shared_memory() {
    over_memif(9_000, Family::V4, |_| {});
    over_memif(9_000, Family::V6, |_| {});
}

#[test]
fn protected_packets_go_over_shared_memory() {
    over_memif(1_500, Family::V4, |config| {
        config.protection = Protection::Encrypt;
        config.key = Some(ClusterKey::from_bytes([7; 32]));
    });
}

#[test]
fn marks_arrive_over_shared_memory() {
    for family in [Family::V4, Family::V6] {
        let ends = Memif::new(End::Near);
        let config = config_for_mtu(End::Near, family, 1_500);
        let backend = ends.backend(End::Near, 1_500, &config).expect("a port");
        let faults = Faults { mark: 1.0, ..Faults::default() };
        let near =
            Device::with_backend(config, Faulty::new(backend, faults, Cuts::default(), 1)).expect("a device");
        let (far, _) = ends.open(End::Far, 1_500, config_for_mtu(End::Far, family, 1_500));
        let (there, _back) = connect(&near, &far);
        write_and_compare(&there, &board(&far, MUCH), MUCH, 1);
        let marked: u64 = there.stats().expect("it lives").paths.iter().map(|path| path.marked).sum();
        assert!(marked > 1_000, "{marked} packets were acknowledged as marked");
    }
}

#[test]
fn a_client_may_be_there_before_its_server() {
    let ends = Memif::new(End::Far);
    let (near, counters) = ends.open(End::Near, 1_500, config_for_mtu(End::Near, Family::V4, 1_500));
    let mut address = any_port(End::Far, Family::V4);
    address.set_port(18_515);
    std::thread::scope(|scope| {
        // The client has retried for a while when the server starts.
        let connecting = scope.spawn(|| near.connect(address).expect("a connection"));
        wait_until("something was lost", || counters.read().lost > 0);
        let mut config = config_for_mtu(End::Far, Family::V4, 1_500);
        config.bind = address;
        let (far, _) = ends.open(End::Far, 1_500, config);
        let listener = far.listen().expect("nobody listens yet");
        let back = listener.accept(PATIENCE).expect("the other end of it");
        let there = connecting.join().expect("no panic");
        write_and_compare(&there, &board(&far, MUCH), MUCH, 1);
        write_and_compare(&back, &board(&near, MUCH), MUCH, 2);
    });
}

/// Either end exits in the middle of a stream, with either end as server. The other end's connection closes, and it
/// connects to the next peer.
#[test]
fn an_end_that_goes_while_much_is_under_way_harms_nobody() {
    for (server, rounds) in [(End::Near, 5), (End::Far, 5)] {
        let ends = Memif::new(server);
        let mut patient = config_for_mtu(End::Near, Family::V4, 1_500);
        patient.peer_timeout = Duration::from_secs(1);
        let (near, _) = ends.open(End::Near, 1_500, patient);
        for round in 0..rounds {
            let (far, far_counts) = ends.open(End::Far, 1_500, config_for_mtu(End::Far, Family::V4, 1_500));
            let (there, back) = connect(&near, &far);
            let far_board = board(&far, MUCH);
            write_and_compare(&there, &far_board, MUCH, round);
            let bytes = Region::zeroed(MUCH).expect("memory");
            for request in 0..8 {
                there.write(request, bytes.all(), far_board.remote(0)).expect("posted");
            }
            let before = far_counts.read().received;
            wait_until("it is under way", || far_counts.read().received > before + 50);
            drop((back, far_board, far));
            wait_until("the connection ends", || {
                while there.take().is_some() {}
                there.ended().is_some()
            });
        }
        assert!(near.stats().is_some(), "the loop lives");
    }
}
