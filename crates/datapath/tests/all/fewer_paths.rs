//! Ends with different configurations: every scheme uses what both ends have agreed on, and other connections are not
//! affected.

use crate::support::{PATIENCE, done, loopback, pattern, region_of};
use pathweave_datapath::backend::{Cuts, Faults, Faulty, UdpBackend};
use pathweave_datapath::secure::{ClusterKey, Protection, Refusal};
use pathweave_datapath::{
    Access, ConnectError, Connection, Device, DeviceConfig, Region, Registration, Uncontrolled,
};

const BYTES: usize = 200_000;

fn config(paths: u16) -> DeviceConfig {
    DeviceConfig {
        mtu_payload: 1_344,
        paths,
        protection: Protection::Encrypt,
        key: Some(ClusterKey::from_bytes([3; 32])),
        ..loopback()
    }
}

/// Writes to the server and reads the bytes back on the client, so that both ends send data.
fn exchange(near: &Connection, board: &Registration, salt: u64, context: &str) {
    let bytes = pattern(BYTES, salt);
    let block = region_of(&bytes);
    near.write(1, block.all(), board.remote(0)).unwrap();
    assert_eq!(done(near, 1), BYTES as u64, "{context}");
    let back = Region::zeroed(BYTES).unwrap();
    near.read(2, back.all(), board.remote(0)).unwrap();
    assert_eq!(done(near, 2), BYTES as u64, "{context}");
    assert!(back.to_vec(0..BYTES).unwrap() == bytes, "{context}");
}

/// Runs every connection scheme with a client that has more paths than the server, and with one that has fewer.
fn every_scheme(faults: Faults) {
    let open = |paths| {
        let config = DeviceConfig { uncontrolled: Uncontrolled::All, ..config(paths) };
        let backend = UdpBackend::open(&config.udp()).unwrap();
        Device::with_backend(config, Faulty::new(backend, faults, Cuts::default(), 1)).unwrap()
    };
    let server = open(4);
    let listener = server.listen().unwrap();
    let board = || server.register(&Region::zeroed(BYTES).unwrap(), Access::READ_WRITE).unwrap();
    let (theirs, others) = (board(), board());
    let honest = open(4);
    let bystander = honest.connect(server.local_addr()).unwrap();
    let _held = listener.accept(PATIENCE).unwrap();
    let mut tried = 0;
    for paths in [1, 3, 8] {
        let client = open(paths);
        for info in pathweave_policy::schemes() {
            let scheme = (info.make)();
            if !scheme.connects_real_hosts() {
                continue;
            }
            let context = format!("{} over {paths} paths", info.name);
            let near = client.connect_with(server.local_addr(), info.name, &[]).unwrap();
            let far = listener.accept(PATIENCE).unwrap();
            let agreed = scheme.paths.min(paths).clamp(1, 4);
            for end in [&near, &far] {
                assert_eq!(end.info().paths, agreed, "{context}");
                assert_eq!(end.stats().unwrap().paths.len(), usize::from(agreed), "{context}");
            }
            tried += 1;
            exchange(&near, &theirs, tried, &context);
            assert_eq!((near.close_reason(), far.close_reason()), (None, None), "{context}");
        }
        exchange(&bystander, &others, u64::from(paths), "beside them");
    }
    assert!(tried >= 3 * 20, "{tried}");
    assert_eq!([&server, &honest].map(|device| device.stats().unwrap().panics), [0, 0]);
}

#[test]
fn every_scheme_keeps_to_the_paths_agreed_on() {
    every_scheme(Faults::default());
}

/// Marks make schemes change paths, and losses make them declare paths dead.
#[test]
fn every_scheme_keeps_to_the_paths_agreed_on_where_packets_are_marked_and_lost() {
    every_scheme(Faults { mark: 0.3, lose: 0.01, ..Faults::default() });
}

#[test]
fn a_scheme_without_congestion_control_is_refused_unless_the_device_allows_it() {
    let own = || config(4);
    for (server, refused) in [
        (own(), true),
        (DeviceConfig { scheme: "rps-nocc".into(), ..own() }, false),
        (DeviceConfig { uncontrolled: Uncontrolled::All, ..own() }, false),
    ] {
        let server = Device::open(server).unwrap();
        let listener = server.listen().unwrap();
        let client = Device::open(own()).unwrap();
        match client.connect_with(server.local_addr(), "rps-nocc", &[]) {
            Ok(_) => assert!(!refused && listener.accept(PATIENCE).is_ok()),
            Err(ConnectError::Refused { reason: Refusal::Scheme, .. }) => assert!(refused),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_scheme_that_is_not_accepted_is_refused() {
    let accepted = ["udmp".into(), "dlbf".into()].to_vec();
    let server = Device::open(DeviceConfig { accepted_schemes: accepted, ..config(4) }).unwrap();
    let _listener = server.listen().unwrap();
    let client = Device::open(config(4)).unwrap();
    for (scheme, refused) in [("udmp", false), ("dlbf", false), ("laps", true), ("ecmp", true)] {
        match client.connect_with(server.local_addr(), scheme, &[]) {
            Ok(_) => assert!(!refused, "{scheme}"),
            Err(ConnectError::Refused { reason, .. }) => {
                assert_eq!((reason, refused), (Refusal::Scheme, true));
            }
            Err(other) => panic!("{scheme}: {other}"),
        }
    }
    // The restriction does not apply to connections that the server opens itself.
    let back = client.listen().unwrap();
    server.connect_with(client.local_addr(), "laps", &[]).unwrap();
    back.accept(PATIENCE).unwrap();
}
