//! Results of the handshake after a queue pair was created: payload of a full packet, and policy.

use crate::pair::{Fixed, config};
use pathweave_policy::{MeasuredSection, PeerKind, PolicyEnv};
use pathweave_transport::{
    Buffer, Endpoint, EndpointConfig, Event, FreePorts, Op, PostError, QpConfig, RecvRequest, Status,
    WorkRequest,
};
use pathweave_units::{Duration, HostId, QpNum, Rate, Rng, Time};
use pathweave_wire::Body;

const NOW: Time = Time::ZERO;

/// Two endpoints with these payloads, and queue pairs that have agreed on one.
fn pair(mtu_payloads: [u16; 2], agreed: u16) -> ([Endpoint<Fixed>; 2], [QpNum; 2]) {
    let mut hosts = [0, 1].map(|host| {
        let mtu_payload = mtu_payloads[host];
        Endpoint::new(EndpointConfig { mtu_payload, ..EndpointConfig::new(HostId(host as u32)) })
    });
    let qps = [0, 1].map(|host| hosts[host].create_qp(NOW, config(1 - host as u32, 1)));
    for host in [0, 1] {
        hosts[host].agree(NOW, qps[host], Fixed::window(16), agreed).unwrap();
        hosts[host].connect(qps[host], qps[1 - host]).unwrap();
    }
    (hosts, qps)
}

/// Sends `len` bytes from the first host. Returns the payloads of the packets.
fn send(hosts: &mut [Endpoint<Fixed>; 2], qps: [QpNum; 2], len: u64) -> Vec<u16> {
    hosts[1].post_recv(qps[1], RecvRequest { wr_id: 1, buffer: Buffer(0), len }).unwrap();
    hosts[0].post(NOW, qps[0], WorkRequest { wr_id: 2, op: Op::Send, local: Buffer(0), len }).unwrap();
    let mut payloads = Vec::new();
    let mut silent = 0;
    while silent < 2 {
        silent = 0;
        for from in [0, 1] {
            let Some(packet) = hosts[from].poll_transmit(NOW, FreePorts::OPEN) else {
                silent += 1;
                continue;
            };
            if let Body::Data(data) = packet.segment.body {
                payloads.push(data.len);
                // Schemes count the bytes that cross the link, whatever the payload of a full packet.
                let framing = EndpointConfig::new(HostId(0)).framing;
                assert_eq!(packet.wire_bytes, framing.wire_bytes(&packet.segment));
            }
            let _ = hosts[1 - from].on_packet(NOW, HostId(from as u32), &packet.segment, false);
        }
    }
    for host in hosts {
        let Some(Event::Completion(done)) =
            std::iter::from_fn(|| host.poll_event()).find(|event| matches!(event, Event::Completion(_)))
        else {
            panic!("nothing was completed")
        };
        assert_eq!((done.status, done.byte_len), (Status::Success, len));
    }
    payloads
}

#[test]
fn the_smaller_payload_is_that_of_a_full_packet_at_both_ends() {
    for mtu_payloads in [[4_096, 1_000], [1_000, 4_096], [1_000, 1_000]] {
        let (mut hosts, qps) = pair(mtu_payloads, 1_000);
        assert_eq!(send(&mut hosts, qps, 3_500), [1_000, 1_000, 1_000, 500], "{mtu_payloads:?}");
    }
}

#[test]
fn other_queue_pairs_keep_theirs() {
    let (mut hosts, qps) = pair([4_096, 4_096], 1_000);
    let others = [0, 1].map(|host| hosts[host].create_qp(NOW, config(1 - host as u32, 16)));
    for host in [0, 1] {
        hosts[host].connect(others[host], others[1 - host]).unwrap();
    }
    assert_eq!(send(&mut hosts, others, 5_000), [4_096, 904]);
    assert_eq!(send(&mut hosts, qps, 2_000), [1_000, 1_000]);
    // A new queue pair in the slot of a destroyed one begins like any other.
    for host in [0, 1] {
        hosts[host].destroy_qp(qps[host]).unwrap();
    }
    let next = [0, 1].map(|host| hosts[host].create_qp(NOW, config(1 - host as u32, 16)));
    for host in [0, 1] {
        hosts[host].connect(next[host], next[1 - host]).unwrap();
    }
    assert_eq!(send(&mut hosts, next, 5_000), [4_096, 904]);
}

#[test]
fn the_policy_agreed_on_is_the_one_that_is_asked() {
    let (mut hosts, qps) = pair([1_024, 1_024], 1_024);
    assert_eq!(hosts[0].policy(qps[0]).unwrap().window, 16, "made with a window of 1");
    send(&mut hosts, qps, 5_000);
    assert_eq!(hosts[0].policy(qps[0]).unwrap().log.len(), 5);
    let nobody = hosts[0].agree(NOW, QpNum(0x00ab_cdef), Fixed::window(1), 1_024);
    assert_eq!(nobody, Err(PostError::UnknownQp));
}

/// The peer has fewer paths than the queue pair was created for: state shared by queue pairs must not lead to the
/// others.
#[test]
fn every_scheme_keeps_to_the_paths_agreed_on() {
    for info in pathweave_policy::schemes() {
        let scheme = (info.make)();
        for (peers, agreed) in [(PeerKind::Connections, 1), (PeerKind::Connections, 3), (PeerKind::Hosts, 1)]
        {
            let env = |paths| PolicyEnv {
                line_rate: Rate::from_gbps(100),
                base_rtt: Duration::from_us(10),
                mtu_wire_bytes: 1_100,
                mtu_payload_bytes: 1_024,
                paths,
                measured: MeasuredSection::with_rtt(Duration::from_us(10)),
                edge: None,
            };
            let mut rng = Rng::for_component(1, "policy", 0);
            let mut hosts = [0, 1].map(|host| {
                let config = EndpointConfig { mtu_payload: 1_024, ..EndpointConfig::new(HostId(host)) };
                Endpoint::with_peers(config, peers)
            });
            let qps = [0, 1].map(|host| {
                let policy = scheme.policy.build(&env(8), &mut rng);
                let recovery = scheme.recovery;
                let peer = HostId(1 - host as u32);
                hosts[host].create_qp(NOW, QpConfig { recovery, ..QpConfig::new(peer, policy, &[]) })
            });
            for host in [0, 1] {
                let policy = scheme.policy.build(&env(agreed), &mut rng);
                hosts[host].agree(NOW, qps[host], policy, 1_024).unwrap();
                hosts[host].connect(qps[host], qps[1 - host]).unwrap();
            }
            let len = 60_000;
            hosts[1].post_recv(qps[1], RecvRequest { wr_id: 1, buffer: Buffer(0), len }).unwrap();
            hosts[0]
                .post(NOW, qps[0], WorkRequest { wr_id: 2, op: Op::Send, local: Buffer(0), len })
                .unwrap();
            let (mut now, mut completed) = (NOW, 0);
            for _ in 0..100_000 {
                now += Duration::from_us(5);
                for from in [0, 1] {
                    hosts[from].on_timer(now);
                    while let Some(packet) = hosts[from].poll_transmit(now, FreePorts::OPEN) {
                        assert!(packet.segment.path.0 < agreed, "{}: {:?}", info.name, packet.segment);
                        // Some packets are marked, so that schemes look for another path.
                        let to = &mut hosts[1 - from];
                        to.on_packet(now, HostId(from as u32), &packet.segment, now.as_ps() % 3 == 0);
                    }
                }
                let done = |event: Event| matches!(event, Event::Completion(_));
                completed += hosts
                    .iter_mut()
                    .map(|host| std::iter::from_fn(|| host.poll_event()).filter(|event| done(*event)).count())
                    .sum::<usize>();
                if completed == 2 {
                    break;
                }
            }
            assert_eq!(completed, 2, "{}", info.name);
            hosts.iter().for_each(Endpoint::assert_invariants);
        }
    }
}

#[test]
#[should_panic(expected = "a queue pair that has begun keeps its policy")]
fn not_once_it_has_begun() {
    let (mut hosts, qps) = pair([1_024, 1_024], 1_024);
    let _ = hosts[0].agree(NOW, qps[0], Fixed::window(1), 1_024);
}

#[test]
#[should_panic(expected = "mtu_payload is 4096; allowed are 256..=1024")]
fn not_more_than_the_endpoint_takes() {
    let mut host = Endpoint::new(EndpointConfig { mtu_payload: 1_024, ..EndpointConfig::new(HostId(0)) });
    let qp = host.create_qp(NOW, QpConfig::new(HostId(1), Fixed::window(1), &[]));
    let _ = host.agree(NOW, qp, Fixed::window(1), 4_096);
}
