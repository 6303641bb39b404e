//! Attackers that can send datagrams to a device, and peers that violate the protocol: at worst they lose their own
//! connection.

use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use crate::support::liar::{Guise, Liar, caller};
use crate::support::peer::Peer;
use crate::support::raw::{self, Raw};
use crate::support::{PATIENCE, Pair, done, loopback, pattern, rdm_loopback, region_of, until};
use pathweave_datapath::rdm::RdmEndpoint;
use pathweave_datapath::rdm::stream::Preamble;
use pathweave_datapath::secure::{ClusterKey, Hello, Protection, SessionId, TransportType};
use pathweave_datapath::{Access, ConnectionState, Device, DeviceConfig, Driving, Region, Remote};
use pathweave_policy::schemes;
use pathweave_units::{PathId, QpNum, Rng, Time, TrimmedAt};
use pathweave_wire::{Ack, Body, Control, Data, Nack, NackReason, NoticePermission, Operation, Segment};

/// Seed, printed by every assertion; change it to try others.
const SEED: u64 = 20_261_121;

fn config() -> DeviceConfig {
    DeviceConfig { mtu_payload: 1_344, paths: 4, ..loopback() }
}

/// Checks that a write succeeds and every byte arrives.
fn works(pair: &Pair, context: &str) {
    let size = 200_000;
    let board = pair.board(size, Access::WRITE);
    pair.near.write(1, region_of(&pattern(size, 3)).all(), board.remote(0)).unwrap();
    assert_eq!(done(&pair.near, 1), size as u64, "{context}, seed {SEED}");
    assert!(board.region().to_vec(0..size).unwrap() == pattern(size, 3), "{context}, seed {SEED}");
}

fn random_bytes(rng: &mut Rng, len: usize) -> Vec<u8> {
    (0..len).map(|_| rng.next_u64() as u8).collect()
}

#[test]
fn noise_does_not_disturb_connections() {
    for protection in [Protection::Insecure, Protection::Encrypt] {
        let key = Some(ClusterKey::from_bytes([5; 32]));
        let pair = Pair::with(&DeviceConfig { protection, key, ..config() });
        let attacker = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut rng = Rng::for_component(SEED, "noise", 0);
        for round in 0..10 {
            for _ in 0..300 {
                let len = rng.below(1_500) as usize;
                let mut bytes = random_bytes(&mut rng, len);
                if let Some(first) = bytes.first_mut() {
                    // Mostly bytes that look like a frame of the protocol.
                    let kinds = [0x70, 0x71, 0x72, 0xc4, 0xd1, 0xdf, *first];
                    *first = kinds[rng.below(kinds.len() as u32) as usize];
                }
                for device in [&pair.client, &pair.server] {
                    let _ = attacker.send_to(&bytes, device.local_addr());
                }
            }
            works(&pair, &format!("noise, {protection}, round {round}"));
        }
        assert!(pair.server.stats().unwrap().refused_datagrams > 0);
    }
}

fn any_operation(rng: &mut Rng) -> Operation {
    use Operation::{ReadRequest, ReadResponse, Send, SendImm, Write, WriteImm};
    [Send, SendImm, Write, WriteImm, ReadRequest, ReadResponse][rng.below(6) as usize]
}

/// Returns a random number that is often near a boundary.
fn any_number(rng: &mut Rng) -> u64 {
    match rng.below(4) {
        0 => u64::from(rng.below(8)),
        1 => u64::from(rng.below(5_000)),
        2 => rng.next_u64() >> 32,
        _ => rng.next_u64(),
    }
}

fn any_body(rng: &mut Rng) -> Body {
    match rng.below(8) {
        0 => Body::Ack(Ack {
            cumulative: any_number(rng),
            psn: any_number(rng),
            back: rng.below(64) as u8,
            sack: rng.next_u64(),
            echo_sent_at: Time::from_ps(any_number(rng)),
            received_at: Time::from_ps(any_number(rng)),
            packets: rng.next_u64() as u16,
            marked: rng.next_u64() as u16,
            notices: NoticePermission::Paused,
        }),
        1 => Body::Nack(Nack {
            expected: any_number(rng),
            psn: any_number(rng),
            sack: rng.next_u64(),
            reason: match rng.below(10) {
                0 => NackReason::RemoteAccess,
                1..4 => NackReason::Trimmed(TrimmedAt::LastHop),
                _ => NackReason::BeyondWindow,
            },
            marked: rng.bernoulli(0.5),
        }),
        2 => Body::Cnp,
        3 => Body::Control(Control::Probe { sent_at: Time::from_ps(rng.next_u64()) }),
        4 => Body::Control(Control::ProbeReply {
            sent_at: Time::from_ps(any_number(rng)),
            received_at: Time::from_ps(rng.next_u64()),
        }),
        _ => {
            let op = any_operation(rng);
            let len = if op == Operation::ReadRequest { 0 } else { rng.below(1_400) as u16 };
            Body::Data(Data {
                psn: any_number(rng),
                msn: any_number(rng) as u32,
                offset: (any_number(rng) as u32).min(u32::MAX - 2_000),
                len,
                op,
                last: rng.bernoulli(0.5),
                retransmit: rng.bernoulli(0.5),
                ack_request: rng.bernoulli(0.1),
                rkey: any_number(rng),
                remote_addr: if op == Operation::ReadResponse {
                    any_number(rng) >> 32
                } else {
                    any_number(rng) >> 1
                },
                imm: any_number(rng) as u32,
                receive_index: any_number(rng) as u32,
                sent_at: Time::from_ps(rng.next_u64()),
            })
        }
    }
}

#[test]
fn a_peer_that_follows_no_rule_loses_at_most_its_own_connection() {
    let server = Device::open(config()).unwrap();
    let bystander = Device::open(DeviceConfig { bind: "127.0.0.1:0".parse().unwrap(), ..config() }).unwrap();
    let listener = server.listen().unwrap();
    let mut rng = Rng::for_component(SEED, "peer", 0);
    let address: SocketAddr = server.local_addr();
    for round in 0..15 {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let peer = Peer::meet(socket, address, TransportType::Rc, QpNum(2 + round));
        let far = listener.accept(PATIENCE).unwrap();
        let inbox = Region::zeroed(10_000).unwrap();
        for wr_id in 0..4 {
            let _ = far.recv(wr_id, inbox.all());
        }
        // Queue pair numbers of the connection, or adjacent ones.
        for _ in 0..2_000 {
            let dst_qp = QpNum(peer.established.peer.qp.0 + rng.below(2));
            let src_qp = QpNum(peer.qp.0 + rng.below(2));
            let path = PathId(any_number(&mut rng) as u16);
            let segment = Segment { dst_qp, src_qp, path, pull_target: None, body: any_body(&mut rng) };
            if let Some(bytes) = peer.packet(&segment, |len| random_bytes(&mut rng, len)) {
                peer.send(&bytes);
            }
        }
        drop(far);
        // The device works, and serves other connections.
        let other = bystander.connect(address).expect("the device accepts connections");
        let other_far = listener.accept(PATIENCE).expect("and hands them out");
        let board = server.register(&Region::zeroed(50_000).unwrap(), Access::WRITE).unwrap();
        other.write(1, region_of(&pattern(50_000, 1)).all(), board.remote(0)).unwrap();
        assert_eq!(done(&other, 1), 50_000, "round {round}, seed {SEED}");
        assert!(
            board.region().to_vec(0..50_000).unwrap() == pattern(50_000, 1),
            "round {round}, seed {SEED}"
        );
        drop((other, other_far));
    }
    let counters = server.stats().unwrap().counters;
    assert!(counters.malformed > 100, "the packets got as far as the queue pairs: {counters:?}, seed {SEED}");
}

/// A member of the cluster, which has the key, agrees on fewer paths than there are. It then sends packets of every
/// kind, Close and Closed, and repetitions of earlier packets, under every scheme and protection. Another connection
/// of the device is not affected.
#[test]
fn a_member_that_lies_loses_at_most_its_own_connection_under_every_scheme() {
    let key = ClusterKey::from_bytes([7; 32]);
    for (number, info) in schemes().iter().enumerate() {
        if !(info.make)().connects_real_hosts() {
            continue;
        }
        let protection = Protection::ALL[number % 3];
        let context = format!("{}, {protection}", info.name);
        let config =
            || DeviceConfig { protection, key: Some(key.clone()), scheme: info.name.into(), ..config() };
        let pair = Pair::with(&config());
        // Honest transfers use the client's memory, since the liar can access the server's.
        let honest = pair.client.register(&Region::zeroed(60_000).unwrap(), Access::READ_WRITE).unwrap();
        let open = pair.board(20_000, Access::READ_WRITE);
        let inbox = Region::zeroed(10_000).unwrap();
        for life in 0..2 {
            let paths = [1, 2][life];
            let guise =
                Guise { key: &key, scheme: info.name, protection, transport: TransportType::Rc, paths };
            let mut liar = Liar::meet(pair.server.local_addr(), &guise, open.rkey(), SEED + life as u64);
            let lied_to = pair.listener.accept(PATIENCE).unwrap();
            let there = Remote { address: 0, rkey: 1 };
            for wr_id in 0..4 {
                let _ = lied_to.recv(wr_id, inbox.all());
                let _ = lied_to.send(10 + wr_id, inbox.all());
                let _ = lied_to.write(20 + wr_id, inbox.all(), there);
                let _ = lied_to.read(30 + wr_id, inbox.all(), there);
            }
            for round in 0..4 {
                liar.say(120);
                let bytes = pattern(60_000, round);
                pair.far.write(1, region_of(&bytes).all(), honest.remote(0)).unwrap();
                assert_eq!(done(&pair.far, 1), 60_000, "{context}");
                assert!(honest.region().to_vec(0..60_000).unwrap() == bytes, "{context}");
                let back = Region::zeroed(60_000).unwrap();
                pair.far.read(2, back.all(), honest.remote(0)).unwrap();
                assert_eq!(done(&pair.far, 2), 60_000, "{context}");
                assert!(back.to_vec(0..60_000).unwrap() == bytes, "{context}");
            }
        }
        assert_eq!(pair.server.stats().unwrap().panics, 0, "{context}");
        assert_eq!(
            (pair.near.state(), pair.far.state()),
            (ConnectionState::Open, ConnectionState::Open),
            "{context}"
        );
    }
}

/// Datagram endpoints whose peers lie in packets and on the side channel.
#[test]
fn a_member_that_lies_disturbs_no_datagrams_of_others() {
    let key = ClusterKey::from_bytes([7; 32]);
    for scheme in ["erd-uncontrolled", "erd"] {
        for protection in Protection::ALL {
            let context = format!("{scheme}, {protection}");
            let mut config = rdm_loopback();
            config.device.mtu_payload = 1_344;
            config.device.scheme = scheme.into();
            (config.device.protection, config.device.key) = (protection, Some(key.clone()));
            let server = RdmEndpoint::open(config.clone()).unwrap();
            let client = RdmEndpoint::open(config).unwrap();
            let to = client.insert(server.local_addr()).unwrap();
            client.reach(to).unwrap();
            let transport = TransportType::Erd;
            let guise = Guise { key: &key, scheme, protection, transport, paths: 2 };
            let mut liar = Liar::meet(server.local_addr(), &guise, 0, SEED);
            let mut rng = Rng::for_component(SEED, "caller", 0);
            // The first message is from the client: the liar has not sent anything yet.
            let inbox = Region::zeroed(1).unwrap();
            server.recv(0, inbox.all()).unwrap();
            client.send(0, to, region_of(&[1]).all()).unwrap();
            let from = server.wait(PATIENCE).unwrap().peer.unwrap();
            assert_eq!(client.wait(PATIENCE).unwrap().result(), Ok(1), "{context}");
            for round in 0..4u64 {
                liar.say(200);
                caller(server.side_channel_addr(), &mut rng);
                let (bytes, room) = (pattern(30_000, round), Region::zeroed(30_000).unwrap());
                server.recv_from(from, round, room.all()).unwrap();
                client.send(round, to, region_of(&bytes).all()).unwrap();
                let arrived = loop {
                    let arrived = server.wait(PATIENCE).unwrap();
                    if arrived.peer == Some(from) {
                        break arrived;
                    }
                };
                assert_eq!((arrived.wr_id, arrived.result()), (round, Ok(30_000)), "{context}");
                assert!(room.to_vec(0..30_000).unwrap() == bytes, "{context}");
                assert_eq!(client.wait(PATIENCE).unwrap().result(), Ok(30_000), "{context}");
            }
        }
    }
}

/// Numbers of associations are not encrypted, so an observer of packets can open a TCP connection under a peer's
/// identity.
#[test]
fn a_caller_that_proves_nothing_costs_no_other_its_side_channel() {
    let key = ClusterKey::from_bytes([7; 32]);
    let mut config = rdm_loopback();
    (config.device.protection, config.device.key) = (Protection::Encrypt, Some(key.clone()));
    config.device.mtu_payload = 1_344;
    (config.side_channels, config.side_idle) = (2, PATIENCE);
    let server = RdmEndpoint::open(config.clone()).unwrap();
    let client = RdmEndpoint::open(config).unwrap();
    let (room, bytes) = (Region::zeroed(30_000).unwrap(), pattern(30_000, 1));
    server.recv(1, room.all()).unwrap();
    client.send(1, client.insert(server.local_addr()).unwrap(), region_of(&bytes).all()).unwrap();
    assert_eq!(server.wait(PATIENCE).unwrap().result(), Ok(30_000));
    let side = || server.stats().unwrap().side;
    // Either end may have opened a TCP connection, or both.
    let mut before = side();
    until("calls have ended", || {
        std::thread::sleep(Duration::from_millis(200));
        let last = std::mem::replace(&mut before, side());
        last == before
    });
    assert!(before.open > 0);
    let hello = raw::hello("erd", Protection::Encrypt, 2);
    let hello = Hello { transport: TransportType::Erd, private_data: vec![0, 9], ..hello };
    let mut peer = Raw::new(server.local_addr(), &key, hello);
    peer.connect();
    let preamble = Preamble {
        protection: Protection::Encrypt,
        to: SessionId(peer.other().1),
        from: peer.established.as_ref().unwrap().session.local_id(),
    };
    let call = |_| {
        let mut call = TcpStream::connect(server.side_channel_addr()).unwrap();
        call.write_all(&preamble.encode()).unwrap();
        call
    };
    let mut calls: Vec<TcpStream> = (0..3).map(call).collect();
    until("calls are answered", || side().accepted == before.accepted + 3);
    // Records without a valid seal: they are refused after the preambles were accepted.
    calls.iter_mut().for_each(|call| call.write_all(&[&[0, 40][..], &[0x71; 40]].concat()).unwrap());
    until("they are refused", || side().refused == before.refused + 3);
    assert_eq!((side().closed, side().open), (before.closed, before.open));
}

/// A device closes while a peer has been accepted but has not confirmed, and its counters stay consistent. The test
/// drives the device, so that a panic shows here.
#[test]
fn a_device_closes_with_a_connection_half_open() {
    let key = ClusterKey::from_bytes([7; 32]);
    for confirms_after_all in [false, true] {
        let server = Device::open(DeviceConfig {
            protection: Protection::Encrypt,
            key: Some(key.clone()),
            driving: Driving::Caller,
            ..config()
        });
        let server = server.unwrap();
        let _listener = server.listen().unwrap();
        let mut peer = Raw::new(server.local_addr(), &key, raw::hello("udmp", Protection::Encrypt, 4));
        while !peer.go_on(false) {
            server.progress();
        }
        if confirms_after_all {
            peer.go_on(true);
            (0..100).for_each(|_| {
                server.progress();
            });
        }
        drop(server);
    }
}

#[test]
fn connections_are_limited_in_all_and_per_peer() {
    let config =
        DeviceConfig { max_connections_per_peer: 3, connect_timeout: Duration::from_secs(2), ..config() };
    let server = Device::open(config).unwrap();
    let client = Device::open(self::config()).unwrap();
    let listener = server.listen().unwrap();
    let open = || client.connect(server.local_addr());
    let mut held: Vec<_> = (0..3).map(|_| (open().unwrap(), listener.accept(PATIENCE).unwrap())).collect();
    let refused = open().unwrap_err().to_string();
    assert!(refused.contains("it has reached its limit of connections with this host"), "{refused}");
    // A connection that ends makes room for another, once the peer has been informed.
    held.pop();
    let again = std::time::Instant::now() + PATIENCE;
    while open().is_err() {
        assert!(std::time::Instant::now() < again, "there is room again");
    }
}
