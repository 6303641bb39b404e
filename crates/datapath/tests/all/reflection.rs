//! Peers that list addresses of an unrelated host: it receives nothing from the end that they connect to. If they forge
//! Asks from there, it receives three short messages for each, and no data.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::support::raw::{self, Raw};
use crate::support::{PATIENCE, loopback, own_address};
use pathweave_datapath::secure::{ClusterKey, Features, Hello, Protection};
use pathweave_datapath::{Device, DeviceConfig, Region, Remote};
use pathweave_units::PathId;
use pathweave_wire::{Ack, Body, Datagram, NoticePermission, Segment};

/// Length of a short Ask with protection, without IP and UDP headers.
const QUESTION: usize = 24 + 28;

/// An unrelated host with several addresses.
struct Bystander(Vec<UdpSocket>);

impl Bystander {
    fn new(addresses: usize) -> Self {
        let socket = || {
            let socket = UdpSocket::bind((own_address(), 0)).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        Bystander((0..addresses).map(|_| socket()).collect())
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().map(|socket| socket.local_addr().unwrap()).collect()
    }

    /// Returns the lengths of the datagrams that each address has received.
    fn got(&self) -> Vec<Vec<usize>> {
        let lengths = |socket: &UdpSocket| {
            let mut datagram = [0; 4_096];
            std::iter::from_fn(|| socket.recv_from(&mut datagram).ok().map(|(len, _)| len)).collect()
        };
        self.0.iter().map(lengths).collect()
    }
}

fn device(protection: Protection, key: &ClusterKey) -> Device {
    let key = Some(key.clone());
    Device::open(DeviceConfig { protection, key, mtu_payload: 1_344, paths: 4, ..loopback() }).unwrap()
}

fn hello(protection: Protection, addresses: Vec<SocketAddr>) -> Hello {
    Hello { features: Features::ADDRESSES, addresses, ..raw::hello("udmp", protection, 4) }
}

/// Checks that each address has received at most `most` messages, all of them short.
fn assert_few(got: &[Vec<usize>], most: usize) {
    for of_one in got {
        assert!(of_one.len() <= most, "{} packets, at most {most}", of_one.len());
        assert!(of_one.iter().all(|len| *len <= QUESTION), "{of_one:?}");
    }
}

/// The member has the key and forges its source addresses. It asks in the name of the other host, which makes the server
/// ask there. It answers every Ask that it could have received, with any secret it knows. It acknowledges the data sent to itself, so that nothing seems lost.
#[test]
fn a_member_that_answers_for_another_host_gets_it_no_data() {
    let key = ClusterKey::from_bytes([7; 32]);
    for protection in [Protection::Encrypt, Protection::Insecure] {
        let server = device(protection, &key);
        let listener = server.listen().unwrap();
        let bystander = Bystander::new(2);
        // In a network that does not filter forged packets, they come from the bystander's addresses.
        let forged: Vec<UdpSocket> =
            bystander.addresses().iter().map(|of| UdpSocket::bind((of.ip(), 0)).unwrap()).collect();
        let begun = Instant::now();
        let mut member = Raw::new(server.local_addr(), &key, hello(protection, bystander.addresses()));
        member.connect();
        let far = listener.accept(PATIENCE).unwrap();
        let memory = Region::zeroed(4 << 20).unwrap();
        for wr_id in 0..4 {
            far.write(wr_id, memory.all(), Remote { address: 0, rkey: 1 }).unwrap();
        }
        let ((qp, _), mut psn, mut data) = (member.other(), 0, 0);
        const ASKS: u64 = 4;
        for secret in 0..ASKS {
            forged.iter().for_each(|from| member.send_ask(from, 0, secret));
            std::thread::sleep(Duration::from_millis(30));
        }
        while begun.elapsed() < Duration::from_millis(1_500) {
            let answer = |member: &mut Raw, secret| {
                for (pair, from) in (0..4).flat_map(|pair| forged.iter().map(move |from| (pair, from))) {
                    member.send_answer(from, pair, secret);
                }
            };
            (0..3).for_each(|secret| answer(&mut member, secret));
            for content in member.contents() {
                if let Some(secret) = content.get(16..24).filter(|_| content[..3] == [0xdf, 2, 3]) {
                    answer(&mut member, u64::from_be_bytes(secret.try_into().unwrap()));
                }
                let Ok(datagram) = Datagram::parse(&content) else { continue };
                let segment = datagram.segment(psn);
                let Body::Data(packet) = segment.body else { continue };
                data += 1;
                psn = psn.max(packet.psn);
                let ack = Ack {
                    cumulative: psn + 1,
                    psn,
                    back: 0,
                    sack: u64::MAX,
                    echo_sent_at: packet.sent_at,
                    received_at: packet.sent_at,
                    packets: 64,
                    marked: 0,
                    notices: NoticePermission::Welcome,
                };
                let segment = Segment {
                    dst_qp: qp,
                    src_qp: raw::QP,
                    path: PathId(segment.path.0 % 4),
                    pull_target: None,
                    body: Body::Ack(ack),
                };
                member.send_segment_on(0, &segment, 0);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let got = bystander.got();
        assert!(data > 10, "it is served itself: {data} packets, {protection}");
        assert!(got.iter().any(|of_one| !of_one.is_empty()), "it is asked, {protection}");
        assert_few(&got, 3 * ASKS as usize);
    }
}

#[test]
fn connections_that_list_a_host_cost_it_nothing() {
    let key = ClusterKey::from_bytes([7; 32]);
    let server = device(Protection::Encrypt, &key);
    let listener = server.listen().unwrap();
    let bystander = Bystander::new(8);
    let mut peers = vec![];
    for _ in 0..20 {
        let mut peer = Raw::new(server.local_addr(), &key, hello(Protection::Encrypt, bystander.addresses()));
        peer.connect();
        peers.push((peer, listener.accept(PATIENCE).unwrap()));
    }
    std::thread::sleep(Duration::from_millis(1_200));
    assert_few(&bystander.got(), 0);
}
