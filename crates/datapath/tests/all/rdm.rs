//! Datagram endpoints over loopback, and over networks that lose, duplicate, reorder and damage packets.

use std::net::UdpSocket;
use std::time::Duration;

use crate::support::endpoints::stats;
use crate::support::{PATIENCE, loopback, pattern, rdm_loopback, region_of};
use pathweave_datapath::backend::{Cuts, Faults, Faulty, UdpBackend};
use pathweave_datapath::rdm::{
    Delivery, Peer, PeerError, RdmCompletion, RdmConfig, RdmEndpoint, RdmPostError, RdmStats,
};
use pathweave_datapath::secure::{CLUSTER_KEY_LEN, ClusterKey, OsRandom, Protection, Refusal};
use pathweave_datapath::{ConnectError, Device, DeviceConfig, Opcode, Region, Status};

fn endpoint(config: &RdmConfig) -> RdmEndpoint {
    RdmEndpoint::open(config.clone()).expect("an endpoint")
}

fn faulty(config: &RdmConfig, faults: Faults, cuts: &Cuts, seed: u64) -> RdmEndpoint {
    let backend = UdpBackend::open(&config.device.udp()).expect("sockets");
    let backend = Faulty::new(backend, faults, cuts.clone(), seed);
    RdmEndpoint::with_backend(config.clone(), backend).expect("an endpoint")
}

fn protected(protection: Protection) -> RdmConfig {
    let mut config = rdm_loopback();
    config.device.protection = protection;
    config.device.key = Some(ClusterKey::generate(&mut OsRandom).expect("random bytes"));
    config
}

#[track_caller]
fn next(endpoint: &RdmEndpoint) -> RdmCompletion {
    endpoint.wait(PATIENCE).expect("a completion")
}

/// Waits for the successful completion of a message.
#[track_caller]
fn sent(endpoint: &RdmEndpoint, wr_id: u64) {
    let done = next(endpoint);
    assert_eq!((done.wr_id, done.status, done.opcode), (wr_id, Status::Success, Opcode::Send), "{done:?}");
}

#[track_caller]
fn received(endpoint: &RdmEndpoint, wr_id: u64, len: usize) -> Peer {
    let done = next(endpoint);
    let expected = (wr_id, Status::Success, Opcode::Recv, len as u64);
    assert_eq!((done.wr_id, done.status, done.opcode, done.byte_len), expected, "{done:?}");
    done.peer.expect("somebody sent it")
}

/// Message sizes around one packet, and of many packets.
const SIZES: [usize; 7] = [1, 100, 8_959, 8_960, 8_961, 100_000, 1 << 20];

/// Sends messages of every size in both directions, `rounds` times, all at once, and checks every byte.
fn both_ways(near: &RdmEndpoint, far: &RdmEndpoint, rounds: usize) {
    let sizes: Vec<usize> = SIZES.iter().copied().cycle().take(SIZES.len() * rounds).collect();
    let ends = [near, far];
    let peers = [near.insert(far.local_addr()).unwrap(), far.insert(near.local_addr()).unwrap()];
    let mut rooms = [Vec::new(), Vec::new()];
    for (end, rooms) in ends.iter().zip(&mut rooms) {
        for (wr_id, &size) in (0..).zip(&sizes) {
            let room = Region::zeroed(size).unwrap();
            end.recv(wr_id, room.all()).unwrap();
            rooms.push(room);
        }
    }
    for (side, end) in ends.iter().enumerate() {
        for (wr_id, &size) in (0..).zip(&sizes) {
            let memory = region_of(&pattern(size, wr_id + 1_000 * side as u64));
            end.send(wr_id + 500, peers[side], memory.all()).unwrap();
        }
    }
    for (side, end) in ends.iter().enumerate() {
        let mut done = std::collections::BTreeSet::new();
        for _ in 0..2 * sizes.len() {
            let completion = next(end);
            assert_eq!(completion.status, Status::Success, "{completion:?}");
            assert!(done.insert(completion.wr_id), "told twice: {completion:?}");
            assert_eq!(completion.peer, Some(peers[side]));
            assert_eq!(completion.byte_len, sizes[completion.wr_id as usize % 500] as u64);
        }
        for (wr_id, (room, &size)) in (0..).zip(rooms[side].iter().zip(&sizes)) {
            let expected = pattern(size, wr_id + 1_000 * (1 - side) as u64);
            assert!(room.to_vec(0..size).unwrap() == expected, "message {wr_id} of {size} bytes is wrong");
        }
    }
}

#[test]
fn every_size_both_ways_under_every_protection() {
    for protection in Protection::ALL {
        let config = protected(protection);
        let (near, far) = (endpoint(&config), endpoint(&config));
        both_ways(&near, &far, 2);
        let (near, far) = (stats(&near), stats(&far));
        assert_eq!((near.refused_datagrams, far.refused_datagrams), (0, 0), "{protection}");
        assert_eq!((near.associations, far.associations), (1, 1), "both asked at once, and agreed on one");
        assert!(near.side.sent_bytes > 0 && near.side.opened + far.side.opened <= 2, "{:?}", near.side);
        let used = near.paths.iter().filter(|path| path.packets > 0).count();
        assert_eq!((near.paths.len(), used), (4, 4));
    }
}

#[test]
fn bad_networks_cost_time_and_no_byte() {
    let weather = [
        ("loss", Faults { lose: 0.03, ..Faults::default() }),
        ("duplication", Faults { repeat: 0.1, ..Faults::default() }),
        ("reordering", Faults { reorder: 0.1, ..Faults::default() }),
        ("corruption", Faults { damage: 0.03, ..Faults::default() }),
        ("everything", Faults { lose: 0.02, repeat: 0.05, reorder: 0.05, damage: 0.02, ..Faults::default() }),
    ];
    for (seed, (name, faults)) in (7..).zip(weather) {
        for delivery in [Delivery::Unordered, Delivery::Ordered] {
            let mut config =
                protected(if seed % 2 == 0 { Protection::Encrypt } else { Protection::Insecure });
            config.delivery = delivery;
            config.device.mtu_payload = 1_344;
            let open = |seed| faulty(&config, faults, &Cuts::default(), seed);
            let (near, far) = (open(seed), open(seed + 100));
            both_ways(&near, &far, 2);
            let (near, far) = (stats(&near), stats(&far));
            let sum = |of: fn(&RdmStats) -> u64| of(&near) + of(&far);
            let context = format!("{name}, {delivery:?}, seed {seed}: {near:?} {far:?}");
            if faults.lose > 0.0 || faults.damage > 0.0 {
                assert!(
                    sum(|s| s.counters.retransmitted) > 0 && sum(|s| s.counters.nacks_sent) > 0,
                    "{context}"
                );
            }
            if faults.repeat > 0.0 {
                let repeated = sum(|s| s.counters.duplicates + s.refused_datagrams);
                assert!(repeated > 0, "{context}");
            }
            if faults.damage > 0.0 {
                assert!(sum(|s| s.refused_datagrams) > 0, "{context}");
            }
            assert_eq!(sum(|s| s.counters.messages_aborted + s.counters.malformed), 0, "{context}");
        }
    }
}

/// Switches mark packets: the receiver reports it, the sender slows down, and nothing is retransmitted.
#[test]
fn marks_are_told_and_acted_on() {
    for (scheme, mark, told) in [("erd", 0.2, true), ("erd", 0.0, false), ("erd-uncontrolled", 0.2, false)] {
        for protection in [Protection::Encrypt, Protection::Insecure] {
            let mut config = protected(protection);
            config.device.scheme = scheme.into();
            let marks = Faults { mark, ..Faults::default() };
            let (near, far) = (faulty(&config, marks, &Cuts::default(), 1), endpoint(&config));
            both_ways(&near, &far, 2);
            let (near, far) = (stats(&near), stats(&far));
            let context = format!("{scheme}, {mark}: {near:?} {far:?}");
            // Datagrams that are not ECN-capable arrive unmarked.
            assert_eq!(far.marked_datagrams > 0, told, "{context}");
            assert_eq!(far.marked_datagrams, far.counters.marked_received, "{context}");
            assert_eq!(far.counters.cnps_sent > 0, told, "{context}");
            // The last CNPs may not have been processed yet.
            assert_eq!(near.counters.cnps_received > 0, told, "{context}");
            assert_eq!(near.counters.cnps_sent, 0, "nothing is marked on the way back: {context}");
            // A rate recovers within 12 ms of the last mark.
            assert!(near.slowest.is_none_or(|rate| rate <= config.device.line_rate), "{context}");
            assert_eq!(near.slowest.is_some(), scheme == "erd");
        }
    }
}

#[test]
fn messages_of_a_source_are_told_in_order_where_that_is_asked_for() {
    let config = RdmConfig { delivery: Delivery::Ordered, ..rdm_loopback() };
    let faults = Faults { lose: 0.05, reorder: 0.1, ..Faults::default() };
    let (near, far) = (faulty(&config, faults, &Cuts::default(), 3), endpoint(&config));
    let to = near.insert(far.local_addr()).unwrap();
    for n in 0..200u64 {
        far.recv(n, Region::zeroed(8).unwrap().all()).unwrap();
        near.send(n, to, region_of(&n.to_be_bytes()).all()).unwrap();
    }
    for n in 0..200 {
        received(&far, n, 8);
    }
}

#[test]
fn unexpected_messages_wait_and_excess_ones_come_later() {
    let config = RdmConfig { unexpected_bytes: 70_000, ..rdm_loopback() };
    let (near, far) = (endpoint(&config), endpoint(&config));
    let to = near.insert(far.local_addr()).unwrap();
    for n in 0..4 {
        near.send(n, to, region_of(&pattern(30_000, n)).all()).unwrap();
    }
    // Two messages fit, and so complete without a receive.
    assert!(next(&near).is_success() && next(&near).is_success());
    let deadline = std::time::Instant::now() + PATIENCE;
    while stats(&far).waiting_peers == 0 {
        assert!(std::time::Instant::now() < deadline, "{:?}", stats(&far));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(stats(&far).kept_bytes <= 70_000);
    let rooms: Vec<Region> = (0..4).map(|_| Region::zeroed(30_000).unwrap()).collect();
    for (n, room) in (0..).zip(&rooms) {
        far.recv(n, room.all()).unwrap();
    }
    let mut done: Vec<u64> = (0..4).map(|_| next(&far).wr_id).collect();
    done.sort_unstable();
    assert_eq!(done, [0, 1, 2, 3]);
    for (n, room) in (0..).zip(&rooms) {
        assert_eq!(room.to_vec(0..30_000).unwrap(), pattern(30_000, n));
    }
    assert_eq!(stats(&far).kept_bytes, 0);
    (2..4).for_each(|_| assert!(next(&near).is_success()));
}

#[test]
fn receives_for_one_peer_and_a_message_too_long() {
    let config = rdm_loopback();
    let (hub, a, b) = (endpoint(&config), endpoint(&config), endpoint(&config));
    let from_b = hub.insert(b.local_addr()).unwrap();
    let room = |len| Region::zeroed(len).unwrap().all();
    hub.recv_from(from_b, 1, room(10)).unwrap();
    hub.recv(2, room(10)).unwrap();
    a.send(1, a.insert(hub.local_addr()).unwrap(), region_of(b"from a").all()).unwrap();
    let from_a = received(&hub, 2, 6);
    assert_eq!(from_a.address(), a.local_addr());
    let to_hub = b.insert(hub.local_addr()).unwrap();
    b.send(1, to_hub, region_of(b"from b").all()).unwrap();
    assert_eq!(received(&hub, 1, 6), from_b);
    hub.recv(3, room(10)).unwrap();
    b.send(2, to_hub, region_of(&[7; 20_000]).all()).unwrap();
    let cut = next(&hub);
    assert_eq!((cut.wr_id, cut.status, cut.byte_len), (3, Status::LocalLength, 0));
    sent(&b, 1);
    sent(&b, 2);
    // Removing a peer flushes its receives. It may return as a new peer.
    hub.recv_from(from_b, 4, room(10)).unwrap();
    hub.remove(from_b);
    assert_eq!(next(&hub).status, Status::Flushed);
    assert!(hub.peers().unwrap().iter().all(|known| known.peer != from_b));
    // Its name contains its address, so using it inserts the same peer again.
    b.recv(5, room(1)).unwrap();
    hub.send(9, from_b, room(1)).unwrap();
    sent(&hub, 9);
    assert_eq!(received(&b, 5, 1), to_hub);
}

#[test]
fn a_peer_that_restarts_is_met_anew() {
    let mut config = protected(Protection::Encrypt);
    config.device.peer_timeout = Duration::from_millis(400);
    let (near, far) = (endpoint(&config), endpoint(&config));
    let address = far.local_addr();
    let to = near.insert(address).unwrap();
    let room = Region::zeroed(10).unwrap();
    far.recv(1, room.all()).unwrap();
    near.send(1, to, region_of(b"first").all()).unwrap();
    sent(&near, 1);
    drop(far);
    near.send(2, to, region_of(b"nobody").all()).unwrap();
    let lost = next(&near);
    assert_eq!((lost.wr_id, lost.status), (2, Status::RetryExceeded));
    config.device.bind = address;
    let far = endpoint(&config);
    far.recv(1, room.all()).unwrap();
    near.send(3, to, region_of(b"again").all()).unwrap();
    sent(&near, 3);
    received(&far, 1, 5);
    assert_eq!(room.to_vec(0..5).unwrap(), b"again");
    // Also a peer that restarts while this end does not know it: it sends first.
    drop(far);
    let far = endpoint(&config);
    near.recv(4, room.all()).unwrap();
    far.send(5, far.insert(near.local_addr()).unwrap(), region_of(b"hello").all()).unwrap();
    assert_eq!(received(&near, 4, 5), to);
    sent(&far, 5);
    assert_eq!(stats(&near).associations, 1);
}

#[test]
fn side_channels_end_when_idle_and_when_there_are_too_many_and_come_back() {
    let mut config = protected(Protection::AuthOnly);
    config.side_idle = Duration::from_millis(30);
    config.side_channels = 2;
    let hub = endpoint(&config);
    let others: Vec<RdmEndpoint> = (0..5).map(|_| endpoint(&config)).collect();
    let room = Region::zeroed(10).unwrap();
    for round in 0..3u64 {
        for other in &others {
            other.recv(round, room.all()).unwrap();
            hub.send(round, hub.insert(other.local_addr()).unwrap(), region_of(b"hello").all()).unwrap();
        }
        for other in &others {
            received(other, round, 5);
        }
        others.iter().for_each(|_| sent(&hub, round));
    }
    assert!(stats(&hub).side.open <= 2 && stats(&hub).side.opened >= 5, "{:?}", stats(&hub).side);
    let idle = || hub.stats().filter(|stats| stats.side.open == 0);
    let deadline = std::time::Instant::now() + PATIENCE;
    while idle().is_none() {
        assert!(std::time::Instant::now() < deadline, "{:?}", stats(&hub).side);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// One TCP connection is shared by three peers that all need one, so that each is closed repeatedly with messages
/// outstanding.
#[test]
fn a_side_channel_that_breaks_loses_nothing() {
    let mut config = protected(Protection::Encrypt);
    config.side_channels = 1;
    let faults = Faults { lose: 0.03, ..Faults::default() };
    let hub = faulty(&config, faults, &Cuts::default(), 9);
    let others: Vec<RdmEndpoint> = (0..3).map(|_| endpoint(&config)).collect();
    let len = 200_000;
    let mut rooms = Vec::new();
    for (n, other) in (0..).zip(&others) {
        let to = hub.insert(other.local_addr()).unwrap();
        for k in 0..5 {
            let room = Region::zeroed(len).unwrap();
            other.recv(k, room.all()).unwrap();
            hub.send(10 * n + k, to, region_of(&pattern(len, 10 * n + k)).all()).unwrap();
            rooms.push((10 * n + k, room));
        }
    }
    for _ in 0..15 {
        let done = next(&hub);
        assert!(done.is_success(), "{done:?} {:?}", stats(&hub));
    }
    for other in &others {
        (0..5).for_each(|_| assert!(next(other).is_success()));
    }
    for (salt, room) in rooms {
        assert!(room.to_vec(0..len).unwrap() == pattern(len, salt), "message {salt} is wrong");
    }
    let side = stats(&hub).side;
    assert!(side.closed + side.broken > 0 && side.open <= 2, "{side:?}");
}

#[test]
fn invalid_settings_are_reported() {
    let config = rdm_loopback();
    let near = endpoint(&config);
    let memory = Region::zeroed(10).unwrap();
    let nobody = near.insert("127.0.0.1:9".parse().unwrap()).unwrap();
    let empty = memory.slice(0..0).unwrap();
    let error = near.send(1, nobody, empty).unwrap_err();
    assert_eq!(error.to_string(), "a message of 0 bytes; 1 to 4294967296 are allowed");
    assert!(matches!(near.insert("[::1]:9".parse().unwrap()), Err(PeerError::Family { .. })));
    // The largest number of outstanding messages, and one more.
    let limit = 32_768;
    let far = endpoint(&config);
    let cuts = Cuts::default();
    cuts.set(u64::MAX);
    let mute = faulty(&config, Faults::default(), &cuts, 1);
    let to = mute.insert(far.local_addr()).unwrap();
    for _ in 0..limit {
        mute.send(1, to, memory.all()).unwrap();
    }
    let error = mute.send(1, to, memory.all()).unwrap_err();
    assert_eq!(error, RdmPostError::Outstanding { peer: to, limit });
    let told = format!("32768 messages to peer {} are outstanding", far.local_addr());
    assert!(error.to_string().starts_with(&told), "{error}");
    // The largest number of peers, none of them idle.
    let few = endpoint(&RdmConfig { max_peers: 1, ..config });
    let room = Region::zeroed(10).unwrap();
    few.recv_from(few.insert(far.local_addr()).unwrap(), 1, room.all()).unwrap();
    let error = few.insert(near.local_addr()).unwrap_err();
    assert_eq!(error, PeerError::TooMany { limit: 1 });
    assert!(error.to_string().ends_with("peers, its limit, each with open messages"), "{error}");
    let error = few.send(2, nobody, memory.all()).unwrap_err();
    assert!(error.to_string().starts_with("peer 127.0.0.1:9 cannot be added again"), "{error}");
}

#[test]
fn peers_that_do_not_go_together_are_told_why() {
    let config = protected(Protection::Encrypt);
    let near = endpoint(&config);
    let reach = |change: &dyn Fn(&mut RdmConfig)| {
        let mut other = config.clone();
        other.device.connect_timeout = Duration::from_millis(500);
        change(&mut other);
        let far = endpoint(&other);
        far.reach(far.insert(near.local_addr()).unwrap()).unwrap_err().to_string()
    };
    let mtu = reach(&|c| c.device.mtu_payload = 1_344);
    assert!(mtu.contains("sends payloads of 8960 bytes, this end of 1344"), "{mtu}");
    let protection = reach(&|c| c.device.protection = Protection::AuthOnly);
    assert!(protection.contains("encrypt"), "{protection}");
    let key = reach(&|c| c.device.key = Some(ClusterKey::from_bytes([9; CLUSTER_KEY_LEN])));
    assert!(key.contains("not answered within") || key.contains("another cluster key"), "{key}");
    // A device for connections cannot serve datagram endpoints, and vice versa.
    let device_config =
        DeviceConfig { protection: Protection::Encrypt, key: config.device.key.clone(), ..loopback() };
    let device = Device::open(device_config).unwrap();
    let _listener = device.listen().unwrap();
    assert!(matches!(device.connect(near.local_addr()), Err(ConnectError::Refused { .. })));
    let refused = near.reach(near.insert(device.local_addr()).unwrap());
    assert!(matches!(refused, Err(ConnectError::Refused { reason: Refusal::Transport, .. })), "{refused:?}");
}

#[test]
fn strangers_are_counted_and_dropped() {
    use std::io::{Read, Write};
    let config = protected(Protection::Encrypt);
    let (near, far) = (endpoint(&config), endpoint(&config));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = near.local_addr();
    for (seed, first) in [0x70, 0x71, 0x72, 0xdb, 0xc0, 0x00, 0xff].into_iter().enumerate() {
        for len in [1, 12, 40, 300, 1_400] {
            let mut bytes = pattern(len, seed as u64);
            bytes[0] = first;
            socket.send_to(&bytes, address).unwrap();
        }
    }
    // TCP connections with invalid bytes, with a preamble of an unknown association, and without data.
    let mut streams = Vec::new();
    for bytes in [&[0x73; 64][..], &[0x74, 1, 2, 0, 0, 0, 0, 1, 0, 0, 0, 2, 9, 9], &[]] {
        let mut stream = std::net::TcpStream::connect(near.side_channel_addr()).unwrap();
        stream.write_all(bytes).unwrap();
        streams.push(stream);
    }
    both_ways(&near, &far, 1);
    for stream in &mut streams[..2] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let end = stream.read(&mut [0; 8]);
        assert!(!matches!(end, Ok(1..)), "nobody is answered");
    }
    let stats = stats(&near);
    assert!(stats.refused_datagrams >= 20 && stats.side.refused >= 2, "{stats:?}");
    assert_eq!((stats.counters.foreign, stats.counters.malformed), (0, 0));
}

/// An endpoint that closes when it gets the answer has often not read the report that its question has arrived, so
/// its connection is reset. Its own last report, that the answer has arrived, is received nevertheless.
#[test]
fn a_close_after_the_last_message_acknowledges_it() {
    let config = rdm_loopback();
    let near = endpoint(&config);
    for round in 0..100 {
        let far = endpoint(&config);
        let peers = [near.insert(far.local_addr()).unwrap(), far.insert(near.local_addr()).unwrap()];
        let room = Region::zeroed(1_000).unwrap();
        far.recv(0, room.all()).unwrap();
        near.recv(0, room.all()).unwrap();
        far.send(1, peers[1], room.all()).unwrap();
        received(&near, 0, 1_000);
        near.send(round, peers[0], room.all()).unwrap();
        while next(&far).opcode != Opcode::Recv {}
        drop(far);
        sent(&near, round);
    }
}
