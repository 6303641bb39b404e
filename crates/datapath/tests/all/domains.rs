//! Access of peers to memory: keys, protection domains, regions for one peer.

use std::collections::BTreeSet;

use crate::support::{PATIENCE, Pair, loopback, region_of};
use pathweave_datapath::{
    Access, ConnectError, Connection, Device, DeviceConfig, Region, RegisterError, Registration, Remote,
    Status,
};

const BYTES: usize = 3_000;

fn config() -> DeviceConfig {
    DeviceConfig { mtu_payload: 1_344, paths: 2, ..loopback() }
}

#[derive(Clone, Copy, Debug)]
enum Verb {
    Read,
    Write,
    WriteImm,
}

/// Attempts an access to a peer's memory, which is `there`. Returns its status, and whether any byte has moved.
fn attempt(near: &Connection, far: &Connection, verb: Verb, to: Remote, there: &Region) -> (Status, bool) {
    there.write(0, &[1; BYTES]).unwrap();
    let here = region_of(&[2; BYTES]);
    let nothing = Region::zeroed(0).unwrap();
    far.recv(9, nothing.all()).unwrap();
    match verb {
        Verb::Read => near.read(1, here.all(), to),
        Verb::Write => near.write(1, here.all(), to),
        Verb::WriteImm => near.write_imm(1, here.all(), to, 7),
    }
    .unwrap();
    let done = near.wait(PATIENCE).unwrap();
    let moved = match verb {
        Verb::Read => here.to_vec(0..BYTES).unwrap() != [2; BYTES],
        Verb::Write | Verb::WriteImm => there.to_vec(0..BYTES).unwrap() != [1; BYTES],
    };
    (done.status, moved)
}

#[test]
fn a_region_is_reached_from_its_domain_or_by_its_peer_and_else_looks_as_if_it_were_not_there() {
    let (server, client) = (Device::open(config()).unwrap(), Device::open(config()).unwrap());
    let (inside, other) = (server.domain().unwrap(), server.domain().unwrap());
    let listener = server.listen_in(&inside).unwrap();
    let connect = || {
        let near = client.connect(server.local_addr()).unwrap();
        (near, listener.accept(PATIENCE).unwrap())
    };
    let (_held, neighbour) = connect();
    let memory = || Region::zeroed(BYTES).unwrap();
    type Opens<'a> = Box<dyn Fn(&Connection) -> Registration + 'a>;
    let opens: [(&str, bool, Opens<'_>); 6] = [
        (
            "its domain",
            true,
            Box::new(|_| server.register_in(&inside, &memory(), 0, Access::READ_WRITE).unwrap()),
        ),
        ("its peer alone", true, Box::new(|far| far.register(&memory(), Access::READ_WRITE).unwrap())),
        (
            "another domain",
            false,
            Box::new(|_| server.register_in(&other, &memory(), 0, Access::READ_WRITE).unwrap()),
        ),
        ("the device", false, Box::new(|_| server.register(&memory(), Access::READ_WRITE).unwrap())),
        ("another peer", false, Box::new(|_| neighbour.register(&memory(), Access::READ_WRITE).unwrap())),
        // A key that belongs to no region any more.
        (
            "nobody",
            false,
            Box::new(|_| {
                let mut gone = server.register_in(&inside, &memory(), 0, Access::READ_WRITE).unwrap();
                gone.close().unwrap();
                gone
            }),
        ),
    ];
    for verb in [Verb::Read, Verb::Write, Verb::WriteImm] {
        for (whose, reached, open) in &opens {
            let (near, far) = connect();
            let open = open(&far);
            let outcome = attempt(&near, &far, verb, open.remote(0), open.region());
            let expected = if *reached { (Status::Success, true) } else { (Status::RemoteAccess, false) };
            assert_eq!(outcome, expected, "{verb:?} to the memory of {whose}");
        }
    }
}

#[test]
fn a_connection_that_is_opened_can_be_in_a_domain_as_well() {
    let (server, client) = (Device::open(config()).unwrap(), Device::open(config()).unwrap());
    let listener = server.listen().unwrap();
    let domain = client.domain().unwrap();
    for (inside, expected) in [(true, Status::Success), (false, Status::RemoteAccess)] {
        let near = match inside {
            true => client.connect_in(&domain, server.local_addr(), "udmp", &[]).unwrap(),
            false => client.connect(server.local_addr()).unwrap(),
        };
        let far = listener.accept(PATIENCE).unwrap();
        let open = client.register_in(&domain, &Region::zeroed(BYTES).unwrap(), 0, Access::READ).unwrap();
        let (status, _) = attempt(&far, &near, Verb::Read, open.remote(0), open.region());
        assert_eq!(status, expected, "inside: {inside}");
    }
}

#[test]
fn a_region_for_one_peer_ends_with_the_connection() {
    let pair = Pair::with(&config());
    let open = pair.far.register(&Region::zeroed(BYTES).unwrap(), Access::READ_WRITE).unwrap();
    assert_eq!(attempt(&pair.near, &pair.far, Verb::Write, open.remote(0), open.region()).0, Status::Success);
    pair.near.close();
    pair.far.wait_closed(PATIENCE).unwrap();
    let refused = pair.far.register(&Region::zeroed(1).unwrap(), Access::READ).unwrap_err();
    assert!(matches!(refused, RegisterError::ConnectionClosed), "{refused}");
    let near = pair.client.connect(pair.server.local_addr()).unwrap();
    let far = pair.listener.accept(PATIENCE).unwrap();
    assert_eq!(
        attempt(&near, &far, Verb::Read, open.remote(0), open.region()),
        (Status::RemoteAccess, false)
    );
}

#[test]
fn domains_of_other_devices_are_refused() {
    let (one, other) = (Device::open(config()).unwrap(), Device::open(config()).unwrap());
    let domain = other.domain().unwrap();
    let region = Region::zeroed(1).unwrap();
    assert!(matches!(one.register_in(&domain, &region, 0, Access::READ), Err(RegisterError::OtherDevice)));
    let refused = one.connect_in(&domain, other.local_addr(), "udmp", &[]).unwrap_err();
    assert!(matches!(refused, ConnectError::OtherDevice), "{refused}");
    assert!(one.listen_in(&domain).unwrap_err().to_string().contains("not one of this device's"));
    assert!(one.listen().is_ok(), "a listener that was refused is none");
}

/// A second client without a key tries likely ones.
#[test]
fn keys_cannot_be_guessed_from_their_order() {
    let pair = Pair::with(&config());
    let secret = pair.server.register(&region_of(&[5; BYTES]), Access::READ_WRITE).unwrap();
    let stranger = Device::open(config()).unwrap();
    for guess in [0, 1, secret.rkey() & 0xff_ffff, secret.rkey() ^ 1 << 24, secret.rkey() + (1 << 24)] {
        let near = stranger.connect(pair.server.local_addr()).unwrap();
        let _far = pair.listener.accept(PATIENCE).unwrap();
        let into = Region::zeroed(BYTES).unwrap();
        near.read(1, into.all(), Remote { address: 0, rkey: guess }).unwrap();
        let refused = near.wait(PATIENCE).unwrap();
        assert_eq!((refused.status, into.to_vec(0..BYTES).unwrap()), (Status::RemoteAccess, vec![0; BYTES]));
    }
}

#[test]
fn keys_are_random_and_come_once() {
    // Not even a device's seed determines them.
    let seeded = || Device::open(DeviceConfig { seed: Some(7), ..config() }).unwrap();
    let (one, other) = (seeded(), seeded());
    let region = Region::zeroed(1).unwrap();
    let mut seen = BTreeSet::new();
    for n in 0..600 {
        for device in [&one, &other] {
            let mut open = device.register(&region, Access::READ).unwrap();
            assert!(seen.insert(open.rkey()), "{:#x} again at registration {n}", open.rkey());
            open.close().unwrap();
        }
    }
    for bit in 24..64 {
        let set = seen.iter().filter(|key| *key >> bit & 1 == 1).count();
        assert!((450..750).contains(&set), "bit {bit} is 1 in {set} of 1,200 keys");
    }
}

/// The application may pass a key to a peer by means that are faster than the device, such as shared memory.
#[test]
fn a_region_is_open_for_what_arrives_after_it_was_asked_for() {
    const OTHERS: usize = 4_000;
    let pair = Pair::with(&config());
    let source = region_of(&[7; BYTES]);
    let target = Region::zeroed(BYTES).unwrap();
    for turn in 0..5 {
        // More than the loop takes in a turn, so that it checks arrivals before it has taken the last.
        let others: Vec<Registration> =
            (0..OTHERS).map(|_| pair.server.register_at(&source, 0, Access::READ).unwrap()).collect();
        let place = others.last().unwrap().remote(0);
        pair.near.read(turn, target.all(), place).unwrap();
        assert_eq!(pair.near.wait(PATIENCE).unwrap().status, Status::Success, "turn {turn}");
        assert_eq!(target.to_vec(0..BYTES).unwrap(), [7; BYTES]);
    }
}
