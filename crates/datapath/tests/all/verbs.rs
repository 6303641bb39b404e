//! Every verb over loopback, with all bytes checked.

use std::time::Duration;

use crate::support::{PATIENCE, Pair, done, loopback, pattern, region_of};
use pathweave_datapath::secure::{ClusterKey, Protection};
use pathweave_datapath::{
    Access, CloseReason, ConfigError, ConnectError, ConnectionState, Device, DeviceConfig, Driving, Opcode,
    OpenError, PostError, Region, Remote, Status, Uncontrolled, Unprotected, WaitError, Waiting,
};

const MTU: usize = 1_344;

fn config() -> DeviceConfig {
    DeviceConfig { mtu_payload: MTU as u16, paths: 8, ..loopback() }
}

const SIZES: [usize; 7] = [0, 1, MTU - 1, MTU, MTU + 1, 100_000, 1 << 20];

fn send_and_receive(pair: &Pair) {
    for (round, &size) in SIZES.iter().enumerate() {
        let (bytes, inbox) = (pattern(size, round as u64), Region::zeroed(size + 8).unwrap());
        pair.far.recv(70, inbox.slice(4..size + 4).unwrap()).unwrap();
        if round % 2 == 0 {
            pair.near.send(7, region_of(&bytes).all()).unwrap();
        } else {
            pair.near.send_imm(7, region_of(&bytes).all(), 0xfeed_0000 + round as u32).unwrap();
        }
        let received = pair.far.wait(PATIENCE).unwrap();
        assert_eq!((received.wr_id, received.opcode, received.result()), (70, Opcode::Recv, Ok(size as u64)));
        assert_eq!(received.imm, (round % 2 == 1).then_some(0xfeed_0000 + round as u32));
        assert_eq!(done(&pair.near, 7), size as u64);
        let all = inbox.to_vec(0..size + 8).unwrap();
        assert!(all[4..size + 4] == bytes[..], "{size} bytes");
        assert!(all[..4] == [0; 4] && all[size + 4..] == [0; 4], "nothing beside the receive is touched");
    }
}

fn write_and_read(pair: &Pair) {
    for (round, &size) in SIZES.iter().enumerate() {
        let bytes = pattern(size, 100 + round as u64);
        let board = pair.board(size + 16, Access::READ_WRITE);
        pair.near.write(1, region_of(&bytes).all(), board.remote(8)).unwrap();
        assert_eq!(done(&pair.near, 1), size as u64);
        let all = board.region().to_vec(0..size + 16).unwrap();
        assert!(all[8..size + 8] == bytes[..], "WRITE of {size} bytes");
        assert!(all[..8] == [0; 8] && all[size + 8..] == [0; 8], "nothing beside it is touched");

        let back = Region::zeroed(size + 2).unwrap();
        pair.near.read(2, back.slice(1..size + 1).unwrap(), board.remote(8)).unwrap();
        assert_eq!(done(&pair.near, 2), size as u64);
        let all = back.to_vec(0..size + 2).unwrap();
        assert!(all[1..=size] == bytes[..] && all[0] == 0 && all[size + 1] == 0, "READ of {size} bytes");

        pair.far.recv(3, Region::zeroed(0).unwrap().all()).unwrap();
        pair.near.write_imm(4, region_of(&pattern(size, 5)).all(), board.remote(8), 99).unwrap();
        let told = pair.far.wait(PATIENCE).unwrap();
        assert_eq!((told.wr_id, told.opcode, told.imm), (3, Opcode::RecvWriteImm, Some(99)));
        assert_eq!(told.result(), Ok(size as u64));
        assert_eq!(done(&pair.near, 4), size as u64);
        assert!(board.region().to_vec(8..size + 8).unwrap() == pattern(size, 5), "WRITE_IMM of {size} bytes");
    }
}

#[test]
fn every_verb_and_size_with_a_thread() {
    let pair = Pair::with(&config());
    send_and_receive(&pair);
    write_and_read(&pair);
}

#[test]
fn every_verb_and_size_encrypted() {
    for protection in [Protection::AuthOnly, Protection::Encrypt] {
        let key = Some(ClusterKey::from_bytes([3; 32]));
        let pair = Pair::with(&DeviceConfig { protection, key, ..config() });
        assert_eq!(pair.near.info().protection, protection);
        send_and_receive(&pair);
        write_and_read(&pair);
        assert!(pair.near.stats().unwrap().session.sealed_packets > 1_000);
    }
}

#[test]
fn every_verb_and_size_with_a_busy_thread() {
    let pair = Pair::with(&DeviceConfig { waiting: Waiting::Busy, ..config() });
    send_and_receive(&pair);
    write_and_read(&pair);
}

#[test]
fn over_ipv6() {
    let pair = Pair::with(&DeviceConfig { bind: "[::1]:0".parse().unwrap(), ..config() });
    assert!(pair.near.peer_addr().is_ipv6());
    send_and_receive(&pair);
    write_and_read(&pair);
}

#[test]
fn callers_can_drive_both_ends() {
    let server = Device::open(DeviceConfig { driving: Driving::Caller, ..config() }).unwrap();
    let client = Device::open(DeviceConfig { driving: Driving::Caller, ..config() }).unwrap();
    let address = server.local_addr();
    let echo = std::thread::spawn(move || {
        let listener = server.listen().unwrap();
        let far = listener.accept(PATIENCE).unwrap();
        let inbox = Region::zeroed(100_000).unwrap();
        far.recv(0, inbox.all()).unwrap();
        for _ in 0..20 {
            let received = loop {
                let completion = far.wait(PATIENCE).unwrap();
                if completion.opcode == Opcode::Recv {
                    break completion.result().unwrap();
                }
            };
            let copy = inbox.to_vec(0..received as usize).unwrap();
            far.recv(0, inbox.all()).unwrap();
            far.send(1, region_of(&copy).all()).unwrap();
        }
        far.wait_closed(PATIENCE).unwrap()
    });
    let near = client.connect(address).unwrap();
    let inbox = Region::zeroed(100_000).unwrap();
    for round in 0..20 {
        let bytes = pattern(round * 4_999, round as u64);
        near.recv(5, inbox.all()).unwrap();
        near.send(6, region_of(&bytes).all()).unwrap();
        let (mut sent, mut received) = (false, false);
        while !(sent && received) {
            let completion = near.wait(PATIENCE).unwrap();
            assert_eq!(completion.status, Status::Success);
            sent |= completion.wr_id == 6;
            received |= completion.wr_id == 5;
        }
        assert!(inbox.to_vec(0..bytes.len()).unwrap() == bytes, "round {round}");
    }
    near.close();
    for _ in 0..200 {
        client.progress();
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(echo.join().unwrap(), CloseReason::Peer);
}

#[test]
fn a_large_message_and_many_small_ones_at_a_time() {
    let pair = Pair::with(&config());
    let size = 64 << 20;
    let (bytes, board) = (pattern(size, 1), pair.board(size, Access::READ_WRITE));
    pair.near.write(1, region_of(&bytes).all(), board.remote(0)).unwrap();
    assert_eq!(done(&pair.near, 1), size as u64);
    assert!(board.region().to_vec(0..size).unwrap() == bytes, "64 MiB");

    let inbox = Region::zeroed(2_000 * 64).unwrap();
    for n in 0..2_000 {
        pair.far.recv(n as u64, inbox.slice(n * 64..n * 64 + 64).unwrap()).unwrap();
    }
    let source = region_of(&pattern(2_000 * 64, 2));
    for n in 0..2_000 {
        pair.near.send(n as u64, source.slice(n * 64..n * 64 + n % 65).unwrap()).unwrap();
    }
    for n in 0..2_000 {
        assert_eq!(done(&pair.near, n), n % 65);
        assert_eq!(done(&pair.far, n), n % 65);
    }
    for n in 0..2_000 {
        let at = n * 64..n * 64 + n % 65;
        assert!(inbox.to_vec(at.clone()).unwrap() == source.to_vec(at).unwrap(), "message {n}");
    }
}

#[test]
fn both_ends_at_once_and_several_connections() {
    let pair = Pair::with(&config());
    let second = pair.client.connect_with(pair.server.local_addr(), "reps", b"the second").unwrap();
    let second_far = pair.listener.accept(PATIENCE).unwrap();
    assert_eq!(
        (second_far.info().scheme.as_str(), &second_far.info().private_data[..]),
        ("reps", &b"the second"[..])
    );
    let size = 3 << 20;
    let ends = [
        (&pair.near, &pair.client),
        (&pair.far, &pair.server),
        (&second, &pair.client),
        (&second_far, &pair.server),
    ];
    let boards: Vec<_> = ends
        .iter()
        .map(|(_, device)| device.register(&Region::zeroed(size).unwrap(), Access::WRITE).unwrap())
        .collect();
    let sources: Vec<Vec<u8>> = (0..4).map(|salt| pattern(size, salt)).collect();
    for (index, (connection, _)) in ends.iter().enumerate() {
        // Target: the memory of the other end of the same connection.
        connection.write(9, region_of(&sources[index]).all(), boards[index ^ 1].remote(0)).unwrap();
    }
    for (connection, _) in &ends {
        assert_eq!(done(connection, 9), size as u64);
    }
    for (index, source) in sources.iter().enumerate() {
        assert!(boards[index ^ 1].region().to_vec(0..size).unwrap() == *source, "end {index}");
    }
}

#[test]
fn every_scheme_of_connections_carries_bytes() {
    let config = DeviceConfig { uncontrolled: Uncontrolled::All, ..config() };
    let server = Device::open(config.clone()).unwrap();
    let client = Device::open(config).unwrap();
    let listener = server.listen().unwrap();
    let size = 2 << 20;
    for scheme in pathweave_policy::schemes() {
        let near = client.connect_with(server.local_addr(), scheme.name, &[]);
        if !(scheme.make)().connects_real_hosts() {
            let refused = near.expect_err(scheme.name).to_string();
            assert!(refused.contains(scheme.name), "{refused}");
            continue;
        }
        let near = near.unwrap();
        let far = listener.accept(PATIENCE).unwrap();
        let board = server.register(&Region::zeroed(size).unwrap(), Access::WRITE).unwrap();
        let bytes = pattern(size, 3);
        near.write(1, region_of(&bytes).all(), board.remote(0)).unwrap();
        assert_eq!(done(&near, 1), size as u64, "{}", scheme.name);
        assert!(board.region().to_vec(0..size).unwrap() == bytes, "{}", scheme.name);
        drop(far);
    }
}

#[test]
fn memory_that_is_not_open_is_refused_and_stays_as_it_is() {
    type Change = fn(Remote) -> Remote;
    let cases: [(&str, Change, Access); 4] = [
        ("another key", |r| Remote { rkey: r.rkey ^ 1 << 40, ..r }, Access::WRITE),
        ("beyond the end", |r| Remote { address: r.address + 1, ..r }, Access::WRITE),
        ("before the start", |r| Remote { address: r.address.wrapping_sub(1), ..r }, Access::WRITE),
        ("read only", |r| r, Access::READ),
    ];
    for (name, change, access) in cases {
        let pair = Pair::new();
        let board = pair.server.register_at(&Region::zeroed(4_096).unwrap(), 1 << 20, access).unwrap();
        pair.near.write(1, region_of(&[7; 4_096]).all(), change(board.remote(0))).unwrap();
        let refused = pair.near.wait(PATIENCE).unwrap();
        assert_eq!((refused.wr_id, refused.status), (1, Status::RemoteAccess), "{name}");
        assert_eq!(pair.near.wait_closed(PATIENCE).unwrap(), CloseReason::Failed, "{name}");
        assert!(pair.far.wait_closed(PATIENCE).is_ok(), "{name}");
        assert!(board.region().to_vec(0..4_096).unwrap() == [0; 4_096], "{name}");
        assert_eq!(pair.near.send(2, region_of(b"x").all()), Err(PostError::Closed));
    }
}

#[test]
fn a_fence_lets_a_send_say_what_a_read_before_it_brought() {
    let pair = Pair::new();
    let board = pair.board(50_000, Access::READ_WRITE);
    board.region().write(0, &pattern(50_000, 6)).unwrap();
    let (way_station, inbox) = (Region::zeroed(50_000).unwrap(), Region::zeroed(50_000).unwrap());
    pair.far.recv(9, inbox.all()).unwrap();
    pair.near.read(1, way_station.all(), board.remote(0)).unwrap();
    pair.near.fenced().send(2, way_station.all()).unwrap();
    // A WRITE to the memory that was read is ordered after both without a fence.
    pair.near.write(3, region_of(&[1; 50_000]).all(), board.remote(0)).unwrap();
    (1..4).for_each(|wr_id| assert_eq!(done(&pair.near, wr_id), 50_000));
    assert_eq!(done(&pair.far, 9), 50_000);
    assert!(inbox.to_vec(0..50_000).unwrap() == pattern(50_000, 6));
    assert!(board.region().to_vec(0..50_000).unwrap() == [1; 50_000]);
}

#[test]
fn nothing_lands_of_a_write_that_ends_behind_its_region() {
    let pair = Pair::new();
    let board = pair.board(4_096, Access::READ_WRITE);
    pair.near.write(1, region_of(&[7; 5_000]).all(), board.remote(0)).unwrap();
    assert_eq!(pair.near.wait(PATIENCE).unwrap().status, Status::RemoteAccess);
    assert!(board.region().to_vec(0..4_096).unwrap() == [0; 4_096]);
}

#[test]
fn memory_taken_back_is_closed() {
    let pair = Pair::new();
    let mut board = pair.board(64, Access::READ_WRITE);
    let remote = board.remote(0);
    pair.near.write(1, region_of(&[1; 64]).all(), remote).unwrap();
    done(&pair.near, 1);
    board.close().unwrap();
    pair.near.write(2, region_of(&[2; 64]).all(), remote).unwrap();
    assert_eq!(pair.near.wait(PATIENCE).unwrap().status, Status::RemoteAccess);
    assert_eq!(board.region().to_vec(0..64).unwrap(), [1; 64]);
}

#[test]
fn a_message_longer_than_its_receive_fails_both_ends() {
    let pair = Pair::new();
    let beyond = Remote { address: u64::MAX - 2, rkey: 1 };
    let refused = pair.near.write(1, region_of(&[0; 4]).all(), beyond);
    assert_eq!(refused, Err(PostError::Address { address: u64::MAX - 2, len: 4 }));
    let inbox = Region::zeroed(100).unwrap();
    pair.far.recv(1, inbox.slice(0..50).unwrap()).unwrap();
    pair.near.send(2, region_of(&[9; 51]).all()).unwrap();
    assert_eq!(pair.near.wait(PATIENCE).unwrap().status, Status::RemoteInvalidRequest);
    assert_eq!(pair.far.wait(PATIENCE).unwrap().status, Status::LocalLength);
    assert_eq!(inbox.to_vec(0..100).unwrap(), [0; 100]);
}

#[test]
fn closing_completes_everything_and_tells_the_peer() {
    let pair = Pair::new();
    let inbox = Region::zeroed(8).unwrap();
    for wr_id in 0..3 {
        pair.near.recv(wr_id, inbox.all()).unwrap();
        pair.far.recv(wr_id, inbox.all()).unwrap();
    }
    pair.near.close();
    for connection in [&pair.near, &pair.far] {
        for wr_id in 0..3 {
            let flushed = connection.wait(PATIENCE).unwrap();
            assert_eq!((flushed.wr_id, flushed.status), (wr_id, Status::Flushed));
        }
    }
    assert_eq!(pair.near.wait_closed(PATIENCE), Ok(CloseReason::Local));
    assert_eq!(pair.far.wait_closed(PATIENCE), Ok(CloseReason::Peer));
    assert_eq!(pair.far.state(), ConnectionState::Closed);
    assert_eq!(pair.far.recv(9, inbox.all()), Err(PostError::Closed));
    // Nothing more follows, and waiting returns at once, with the reason.
    for (connection, reason) in [(&pair.near, CloseReason::Local), (&pair.far, CloseReason::Peer)] {
        assert_eq!(connection.wait(Duration::MAX), Err(WaitError::ConnectionClosed(reason)));
        assert_eq!(connection.ended(), Some(reason));
    }
    let ended = || pair.far.take().map(|_| None).or_else(|| pair.far.ended().map(Some));
    assert_eq!(pair.server.wait_until(Duration::MAX, ended), Ok(Some(Some(CloseReason::Peer))));
}

#[test]
fn receives_and_requests_have_a_bound() {
    let pair = Pair::new();
    let inbox = Region::zeroed(8).unwrap();
    let mut posted = 0;
    let error = loop {
        match pair.near.recv(posted, inbox.all()) {
            Ok(()) => posted += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((posted, error), (4_096, PostError::Full { limit: 4_096 }));
    pair.near.close();
    for _ in 0..posted {
        assert_eq!(pair.near.wait(PATIENCE).unwrap().status, Status::Flushed);
    }
}

#[test]
fn failed_opens_have_reasons() {
    let first = Device::open(config()).unwrap();
    let taken = first.local_addr();
    let in_use = Device::open(DeviceConfig { bind: taken, ..config() });
    assert!(matches!(in_use, Err(OpenError::PortInUse { address }) if address == taken), "{in_use:?}");
    let elsewhere = DeviceConfig { bind: "192.0.2.1:0".parse().unwrap(), ..config() };
    let open_to_all = Device::open(elsewhere.clone());
    assert!(
        matches!(open_to_all, Err(OpenError::Config(ConfigError::Unprotected { .. }))),
        "{open_to_all:?}"
    );
    let foreign = Device::open(DeviceConfig { unprotected: Unprotected::Anywhere, ..elsewhere });
    assert!(matches!(foreign, Err(OpenError::NotLocal { .. })), "{foreign:?}");
    let nowhere = Device::open(DeviceConfig { driving: Driving::Thread { core: Some(1_000) }, ..config() });
    assert!(matches!(nowhere, Err(OpenError::Core { core: 1_000, .. })), "{nowhere:?}");
}

#[test]
fn the_smaller_packets_of_two_ends_are_used() {
    let open = |mtu_payload| Device::open(DeviceConfig { mtu_payload, ..config() }).unwrap();
    for (client, server) in [(1_000, MTU as u16), (MTU as u16, 1_000)] {
        let pair = Pair::of(open(client), open(server));
        assert_eq!((pair.near.info().mtu_payload, pair.far.info().mtu_payload), (1_000, 1_000));
        send_and_receive(&pair);
        write_and_read(&pair);
        // Another peer of the same device uses the size that fits it.
        let third = open(9_000);
        let near = third.connect(pair.server.local_addr()).unwrap();
        let far = pair.listener.accept(PATIENCE).unwrap();
        assert_eq!((near.info().mtu_payload, far.info().mtu_payload), (server, server));
        let (bytes, inbox) = (pattern(100_000, 3), Region::zeroed(100_000).unwrap());
        far.recv(1, inbox.all()).unwrap();
        near.send(2, region_of(&bytes).all()).unwrap();
        assert_eq!((done(&near, 2), done(&far, 1)), (100_000, 100_000));
        assert!(inbox.to_vec(0..100_000).unwrap() == bytes);
    }
}

#[test]
fn reads_one_behind_the_other_are_asked_for_once() {
    let pair = Pair::with(&config());
    let board = pair.board(20_000, Access::READ_WRITE);
    let inbox = Region::zeroed(20_000).unwrap();
    for number in 0..400 {
        pair.near.read(number, inbox.all(), board.remote(0)).unwrap();
    }
    (0..400).for_each(|number| assert_eq!(done(&pair.near, number), 20_000));
    let (near, far) = (pair.near.stats().unwrap().counters, pair.far.stats().unwrap().counters);
    assert_eq!((near.nacks_received, far.rnr_drops), (0, 0), "none is told to come again");
}

#[test]
fn an_end_that_was_away_looks_at_what_came_before_it_sends_again() {
    let near = Device::open(DeviceConfig { driving: Driving::Caller, ..config() }).unwrap();
    let pair = Pair::of(near, Device::open(config()).unwrap());
    let board = pair.board(16 * 10_000, Access::READ_WRITE);
    let inbox = Region::zeroed(16 * 10_000).unwrap();
    for number in 0..16 {
        let place = 10_000 * number..10_000 * (number + 1);
        pair.near
            .read(number as u64, inbox.slice(place).unwrap(), board.remote(10_000 * number as u64))
            .unwrap();
    }
    // Far longer than the retransmission timeout, which expires while answers wait in the socket.
    std::thread::sleep(Duration::from_millis(300));
    (0..16).for_each(|number| assert_eq!(done(&pair.near, number), 10_000));
    let counters = pair.near.stats().unwrap().counters;
    assert_eq!((counters.timeouts, counters.retransmitted_packets), (0, 0));
}

#[test]
fn unreachable_peers_have_distinct_errors() {
    let connect_timeout = Duration::from_millis(300);
    let client = Device::open(DeviceConfig { connect_timeout, ..config() }).unwrap();
    let server = Device::open(config()).unwrap();
    let address = server.local_addr();
    assert_eq!(client.connect(address).unwrap_err(), ConnectError::NobodyListens { peer: address });

    let _listener = server.listen().unwrap();
    assert!(server.listen().is_err(), "one listener is enough");
    assert!(matches!(client.connect_with(address, "nonsense", &[]), Err(ConnectError::Config(_))));
    let v6: std::net::SocketAddr = "[::1]:9".parse().unwrap();
    assert!(matches!(client.connect(v6), Err(ConnectError::Family { .. })));

    let key = Some(ClusterKey::from_bytes([3; 32]));
    let secure = Device::open(DeviceConfig { protection: Protection::Encrypt, key, ..config() }).unwrap();
    assert!(matches!(secure.connect(address), Err(ConnectError::WrongKey { .. })));

    // Loopback has no route to other addresses.
    let elsewhere: std::net::SocketAddr = "192.0.2.9:5".parse().unwrap();
    let small = Device::open(DeviceConfig { mtu_payload: 256, ..config() }).unwrap();
    let no_way = small.connect(elsewhere).unwrap_err();
    assert!(matches!(no_way, ConnectError::NoRoute { peer, .. } if peer == elsewhere), "{no_way}");

    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let peer = silent.local_addr().unwrap();
    let unreachable = ConnectError::Unreachable { peer, timeout: connect_timeout };
    assert_eq!(client.connect(peer).unwrap_err(), unreachable);
}

#[test]
fn fewer_paths_at_one_end_are_fewer_for_both() {
    let server = Device::open(DeviceConfig { paths: 3, ..config() }).unwrap();
    let client = Device::open(DeviceConfig { paths: 40, ..config() }).unwrap();
    let listener = server.listen().unwrap();
    let near = client.connect(server.local_addr()).unwrap();
    let far = listener.accept(PATIENCE).unwrap();
    assert_eq!((near.info().paths, far.info().paths), (3, 3));
    let board = server.register(&Region::zeroed(1 << 20).unwrap(), Access::WRITE).unwrap();
    near.write(1, region_of(&pattern(1 << 20, 0)).all(), board.remote(0)).unwrap();
    done(&near, 1);
    let stats = near.stats().unwrap();
    assert_eq!(stats.paths.len(), 3);
    assert!((stats.paths.iter().map(|path| path.share).sum::<f64>() - 1.0).abs() < 1e-9);
    assert!(stats.paths.iter().all(|path| path.packets > 0 && path.source_port > 0), "{stats:?}");
}
