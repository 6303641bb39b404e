//! Ends with several addresses: all of them carry packets, and a cut one costs only its share. Ends without the
//! feature are served as before.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use crate::support::raw::{self, Raw};
use crate::support::{PATIENCE, Pair, done, pattern, region_of};
use pathweave_datapath::backend::{Cuts, Faults, Faulty, UdpBackend};
use pathweave_datapath::secure::{ClusterKey, Features, Protection};
use pathweave_datapath::{
    Access, ConfigError, Connection, Device, DeviceConfig, OpenError, PathState, Region,
};
use pathweave_units::Rate;

const BYTES: usize = 1_000_000;
/// Time within which an address pair is validated, on a busy machine.
const MEETING: Duration = Duration::from_secs(20);

/// Returns a configuration at loopback addresses with these last numbers.
fn config(hosts: &[u8], protection: Protection) -> DeviceConfig {
    let address = |host: &u8| SocketAddr::from(([127, 0, 0, *host], 0));
    let mut config = DeviceConfig { bind: address(&hosts[0]), protection, ..DeviceConfig::loopback() };
    config.also_bind = hosts[1..].iter().map(address).collect();
    config.key = Some(ClusterKey::from_bytes([7; 32]));
    config.mtu_payload = 1_344;
    config
}

/// Returns the address pairs of the connection's paths that have carried data since `before`.
fn used(connection: &Connection, before: &[u64]) -> BTreeSet<(u8, u8)> {
    let last = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.octets()[3],
        IpAddr::V6(_) => 0,
    };
    let paths = connection.stats().unwrap().paths;
    let moved = paths.iter().enumerate();
    let moved = moved.filter(|(index, path)| path.packets > before.get(*index).copied().unwrap_or(0));
    moved.map(|(_, path)| (last(path.local), last(path.remote.ip()))).collect()
}

fn packets(connection: &Connection) -> Vec<u64> {
    connection.stats().unwrap().paths.iter().map(|path| path.packets).collect()
}

fn write(near: &Connection, board: &pathweave_datapath::Registration, salt: u64) {
    let bytes = pattern(BYTES, salt);
    near.write(salt, region_of(&bytes).all(), board.remote(0)).unwrap();
    assert_eq!(done(near, salt), BYTES as u64);
    assert!(board.region().to_vec(0..BYTES).unwrap() == bytes);
}

/// Writes until exactly these pairs carry packets.
fn write_until(near: &Connection, board: &pathweave_datapath::Registration, expected: &[(u8, u8)]) {
    let (expected, deadline) = (BTreeSet::from_iter(expected.iter().copied()), Instant::now() + MEETING);
    for salt in 1.. {
        let before = packets(near);
        write(near, board, salt);
        let found = used(near, &before);
        if found == expected {
            return;
        }
        assert!(Instant::now() < deadline, "{found:?} instead of {expected:?}");
    }
}

#[test]
fn every_pair_of_addresses_carries_packets_in_both_directions() {
    for (protection, scheme) in [(Protection::Insecure, "udmp"), (Protection::Encrypt, "weave")] {
        let open = |hosts: &[u8]| {
            let scheme = scheme.into();
            Device::open(DeviceConfig { scheme, ..config(hosts, protection) }).unwrap()
        };
        let pair = Pair::of(open(&[1, 2]), open(&[3, 4, 5]));
        assert_eq!(pair.server.addresses().len(), 3);
        let all = [(1, 3), (1, 4), (1, 5), (2, 3), (2, 4), (2, 5)];
        write_until(&pair.near, &pair.board(BYTES, Access::READ_WRITE), &all);
        // The opposite direction.
        let region = Region::zeroed(BYTES).unwrap();
        let board = pair.client.register(&region, Access::READ_WRITE).unwrap();
        write_until(&pair.far, &board, &all.map(|(near, far)| (far, near)));
        assert_eq!((pair.near.close_reason(), pair.far.close_reason()), (None, None));
    }
}

#[test]
fn one_end_with_one_address_reaches_all_of_the_other() {
    let open = |hosts: &[u8]| Device::open(config(hosts, Protection::Encrypt)).unwrap();
    let pair = Pair::of(open(&[1]), open(&[3, 4]));
    write_until(&pair.near, &pair.board(BYTES, Access::READ_WRITE), &[(1, 3), (1, 4)]);
    let pair = Pair::of(open(&[3, 4]), open(&[1]));
    write_until(&pair.near, &pair.board(BYTES, Access::READ_WRITE), &[(3, 1), (4, 1)]);
}

#[test]
fn a_rail_that_is_cut_costs_no_error_and_comes_back() {
    let cuts = Cuts::default();
    let open = |hosts: &[u8], seed| {
        // At this rate 2 MB take 16 ms.
        let line_rate = Rate::from_gbps(1);
        let config = DeviceConfig { line_rate, scheme: "udmp".into(), ..config(hosts, Protection::Encrypt) };
        let sockets = UdpBackend::open(&config.udp()).unwrap();
        Device::with_backend(config, Faulty::new(sockets, Faults::default(), cuts.clone(), seed)).unwrap()
    };
    let pair = Pair::of(open(&[1, 2], 1), open(&[3, 4], 2));
    let board = pair.board(BYTES, Access::READ_WRITE);
    let all = [(1, 3), (1, 4), (2, 3), (2, 4)];
    write_until(&pair.near, &board, &all);
    // Cuts the second rail of either end: packets sent from it are lost, and so are answers to packets that arrive
    // there.
    cuts.set_rails(0b10);
    write_until(&pair.near, &board, &[(1, 3)]);
    let dead = pair.near.stats().unwrap().paths.iter().filter(|path| path.state == PathState::Down).count();
    assert_eq!(dead, 12, "of 16 paths, three of four pairs");
    cuts.set_rails(0);
    write_until(&pair.near, &board, &all);
    // The pair of the handshake is treated like the others.
    cuts.set_rails(0b01);
    write_until(&pair.near, &board, &[(2, 4)]);
    cuts.set_rails(0);
    write_until(&pair.near, &board, &all);
    assert_eq!((pair.near.close_reason(), pair.far.close_reason()), (None, None));
}

#[test]
fn ends_meet_although_the_first_rail_of_one_is_dead() {
    let open = |hosts: &[u8], cuts: &Cuts| {
        let config = config(hosts, Protection::Encrypt);
        let sockets = UdpBackend::open(&config.udp()).unwrap();
        Device::with_backend(config, Faulty::new(sockets, Faults::default(), cuts.clone(), 1)).unwrap()
    };
    let cuts = Cuts::default();
    cuts.set_rails(0b01);
    let pair = Pair::of(open(&[1, 2], &cuts), open(&[3, 4], &Cuts::default()));
    let board = pair.board(BYTES, Access::READ_WRITE);
    write_until(&pair.near, &board, &[(2, 3), (2, 4)]);
    assert_eq!(pair.far.info().peer.ip(), pair.client.addresses()[1].ip());
    // Once it works again it gets its share.
    cuts.set_rails(0);
    write_until(&pair.near, &board, &[(1, 3), (1, 4), (2, 3), (2, 4)]);
}

#[test]
fn of_several_addresses_of_a_peer_one_that_lives_is_found() {
    let open = |hosts: &[u8]| Device::open(config(hosts, Protection::Encrypt)).unwrap();
    let (client, server) = (open(&[1, 2]), open(&[3, 4]));
    let listener = server.listen().unwrap();
    let nobody = SocketAddr::from(([127, 0, 0, 9], server.local_addr().port()));
    let begun = Instant::now();
    let near = client.connect_any(nobody, &server.addresses()[1..], "udmp", b"hello").unwrap();
    let far = listener.accept(PATIENCE).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!(
        (near.info().peer, far.info().private_data.clone()),
        (server.addresses()[1], b"hello".to_vec())
    );
    // An address that does not exist is not used by the connection.
    let board = server.register(&Region::zeroed(BYTES).unwrap(), Access::READ_WRITE).unwrap();
    write_until(&near, &board, &[(1, 3), (1, 4), (2, 3), (2, 4)]);
}

/// An end of an older version: it lacks the feature and lists no addresses.
#[test]
fn an_end_that_knows_nothing_of_it_hears_from_one_address() {
    let key = ClusterKey::from_bytes([7; 32]);
    let server = Device::open(config(&[1, 2], Protection::Insecure)).unwrap();
    let listener = server.listen().unwrap();
    for address in server.addresses().to_vec() {
        let mut old = Raw::new(address, &key, raw::hello("udmp", Protection::Insecure, 4));
        old.connect();
        let far = listener.accept(PATIENCE).unwrap();
        let said = &old.established.as_ref().expect("it was accepted").peer;
        assert!(said.features.contains(Features::ADDRESSES) && said.addresses == server.addresses());
        for path in far.stats().unwrap().paths {
            assert_eq!((path.local, path.remote.ip()), (address.ip(), far.info().peer.ip()));
        }
    }
}

#[test]
fn addresses_that_do_not_go_together_are_named() {
    let bound = |list: &[&str]| {
        let mut all = list.iter().map(|text| text.parse::<SocketAddr>().unwrap());
        let mut config = DeviceConfig { bind: all.next().unwrap(), ..DeviceConfig::loopback() };
        config.also_bind = all.collect();
        Device::open(config).unwrap_err()
    };
    for (list, value) in [
        (&["127.0.0.1:0", "127.0.0.2:0", "127.0.0.1:5"][..], "127.0.0.1:5"),
        (&["127.0.0.1:0", "[::1]:0"], "[::1]:0"),
        (&["0.0.0.0:0", "127.0.0.1:0"], "0.0.0.0:0"),
        (&["[::1]:0", "[fe80::1]:0"], "[fe80::1]:0"),
        (&["127.0.0.1:0"; 9], "9"),
    ] {
        let error = bound(list);
        assert!(matches!(error, OpenError::Config(ConfigError::OutOfRange { .. })), "{error}");
        assert!(error.to_string().contains(value), "{error}");
    }
    let error = bound(&["127.0.0.1:0", "10.0.0.1:0"]);
    assert!(matches!(error, OpenError::Config(ConfigError::Unprotected { .. })), "{error}");
    let mut config = config(&[1], Protection::Encrypt);
    config.also_bind = vec!["192.0.2.77:0".parse().unwrap()];
    let error = Device::open(config).unwrap_err();
    assert!(error.to_string().starts_with("192.0.2.77:0 is not an address of this machine"), "{error}");
}
