//! Packets of an ended unprotected connection arrive at a connection with the same numbers.
#![allow(
    clippy::print_stdout,
    reason = "a server that is a process of its own tells its key and what it holds"
)]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use pathweave_datapath::rdm::RdmEndpoint;
use pathweave_datapath::secure::TransportType;
use pathweave_datapath::{Access, ConnectionState, Device, DeviceConfig, OpenError, Region, Remote};
use pathweave_units::{PathId, QpNum, Time};
use pathweave_wire::{Body, Data, Operation, RdData, Segment};
use support::peer::Peer;
use support::{PATIENCE, loopback, own_address, rdm_loopback, region_of, until};

fn config() -> DeviceConfig {
    DeviceConfig { mtu_payload: 1_344, paths: 2, ..loopback() }
}

/// Opens a device or endpoint whose port may still be in use for a moment.
fn open_again<T>(mut open: impl FnMut() -> Result<T, OpenError>) -> T {
    let give_up = Instant::now() + PATIENCE;
    loop {
        match open() {
            Err(OpenError::PortInUse { .. }) if Instant::now() < give_up => {
                std::thread::sleep(Duration::from_millis(5));
            }
            opened => return opened.unwrap(),
        }
    }
}

/// Returns a WRITE of 1,000 bytes of `byte` in one packet, the first of its queue pair.
fn write_of(peer: &Peer, byte: u8, to: Remote) -> Vec<u8> {
    let data = Data {
        psn: 0,
        msn: 0,
        offset: 0,
        len: 1_000,
        op: Operation::Write,
        last: true,
        retransmit: false,
        ack_request: false,
        rkey: to.rkey,
        remote_addr: to.address,
        imm: 0,
        receive_index: 0,
        sent_at: Time::ZERO,
    };
    let dst_qp = peer.established.peer.qp;
    let segment =
        Segment { dst_qp, src_qp: peer.qp, path: PathId(0), pull_target: None, body: Body::Data(data) };
    peer.packet(&segment, |len| vec![byte; len]).unwrap()
}

#[test]
fn packets_and_goodbyes_of_a_dead_connection_change_nothing_in_its_successor() {
    let mut config = config();
    let mine = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut stale = Vec::new();
    for life in 0..2 {
        let server = open_again(|| Device::open(config.clone()));
        let bind = server.local_addr();
        config.bind = bind;
        let listener = server.listen().unwrap();
        let board = server.register(&Region::zeroed(1_000).unwrap(), Access::WRITE).unwrap();
        let peer = Peer::meet(mine.try_clone().unwrap(), bind, TransportType::Rc, QpNum(77));
        let connection = listener.accept(PATIENCE).unwrap();
        let now_there = || board.region().to_vec(0..1_000).unwrap();
        let refused = || server.stats().unwrap().refused_datagrams;
        // A Close with exactly these numbers.
        let numbers = [peer.established.peer.session.0.to_be_bytes(), peer.session.to_be_bytes()];
        let goodbye = [&[0xdf, 1, 1, 0][..], &numbers.concat()].concat();
        if life == 1 {
            // The same bytes that are valid in the first life.
            let (dead, packet): (Peer, Vec<u8>) = stale.pop().unwrap();
            assert_eq!(dead.established.peer.qp, peer.established.peer.qp, "the successor has its numbers");
            assert_ne!(dead.established.peer.session, peer.established.peer.session, "but its own session");
            let before = refused();
            peer.send(&packet);
            peer.send(&dead.ended(goodbye.clone()));
            until("both are refused", || refused() == before + 2);
            assert_eq!(now_there(), [0; 1_000]);
            assert_eq!(connection.stats().unwrap().counters.data_received, 0);
            assert_eq!(connection.state(), ConnectionState::Open);
        }
        let packet = write_of(&peer, 0xaa, board.remote(0));
        peer.send(&packet);
        until("the connection's own packet arrives", || now_there() == [0xaa; 1_000]);
        if life == 1 {
            peer.send(&peer.ended(goodbye));
            until("and its own goodbye", || connection.state() == ConnectionState::Closed);
        }
        stale.push((peer, packet));
    }
}

/// Returns a datagram that is a complete message, the first one.
fn message_of(peer: &Peer, byte: u8) -> Vec<u8> {
    let data = RdData { psn: 0, msg_id: 0, multi: false, offset: 0, len: 1_000, retransmit: false };
    let dst_qp = peer.established.peer.qp;
    let segment =
        Segment { dst_qp, src_qp: peer.qp, path: PathId(0), pull_target: None, body: Body::Rd(data) };
    peer.packet(&segment, |len| vec![byte; len]).unwrap()
}

#[test]
fn datagrams_of_a_dead_association_are_no_message_of_its_successor() {
    let mut config = rdm_loopback();
    config.device.scheme = "erd".into();
    config.device.mtu_payload = 1_344;
    let mine = UdpSocket::bind("127.0.0.1:0").unwrap();
    let qp = QpNum(mine.local_addr().unwrap().port().into());
    let mut stale: Vec<Vec<u8>> = Vec::new();
    for life in 0..2 {
        let server = open_again(|| RdmEndpoint::open(config.clone()));
        config.device.bind = server.local_addr();
        let room = Region::zeroed(1_000).unwrap();
        server.recv(1, room.all()).unwrap();
        let socket = mine.try_clone().unwrap();
        let peer = Peer::meet(socket, config.device.bind, TransportType::Erd, qp);
        until("an association", || server.stats().unwrap().associations == 1);
        if let Some(packet) = stale.pop() {
            let before = server.stats().unwrap().refused_datagrams;
            peer.send(&packet);
            until("it is refused", || server.stats().unwrap().refused_datagrams == before + 1);
        }
        let packet = message_of(&peer, 0xa0 + life);
        peer.send(&packet);
        let arrived = server.wait(PATIENCE).unwrap();
        assert_eq!((arrived.wr_id, arrived.result()), (1, Ok(1_000)));
        assert_eq!(room.to_vec(0..1_000).unwrap(), [0xa0 + life; 1_000], "life {life}");
        stale.push(packet);
    }
}

/// Environment variable with the address of the child process of the test below.
const ADDRESS: &str = "STALE_TEST_ADDRESS";
const BYTES: usize = 100_000;

/// Runs a server: prints its key, waits for a line, and prints the content of its memory.
fn serve(address: &str) {
    let config = DeviceConfig { bind: address.parse().unwrap(), ..config() };
    let server = Device::open(config).unwrap();
    let listener = server.listen().unwrap();
    let board = server.register(&Region::zeroed(BYTES).unwrap(), Access::WRITE).unwrap();
    println!("KEY {}", board.rkey());
    let held = listener.accept(PATIENCE);
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let bytes = board.region().to_vec(0..BYTES).unwrap();
    let count = |byte| bytes.iter().filter(|found| **found == byte).count();
    println!("HOLDS {} {}", count(0xaa), count(0xbb));
    drop(held);
}

struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn start(address: SocketAddr) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["a_restarted_server_gets_nothing_of_its_former_life", "--exact", "--nocapture"])
            .env(ADDRESS, address.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Server { child, output }
    }

    /// Returns the text after `word` on the first line that contains it.
    fn says(&mut self, word: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server ends without {word}");
            if let Some((_, rest)) = line.split_once(word) {
                return rest.trim().to_string();
            }
        }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Without an attacker: a server is killed and restarted. One process of a machine still retransmits its WRITE, while
/// another process of the same machine connects to it.
#[test]
fn a_restarted_server_gets_nothing_of_its_former_life() {
    if let Ok(address) = std::env::var(ADDRESS) {
        return serve(&address);
    }
    let address = SocketAddr::new(own_address(), 18_515);
    let former = Device::open(config()).unwrap();
    let mut first = Server::start(address);
    let rkey = first.says("KEY").parse().unwrap();
    let dead = former.connect(address).unwrap();
    first.kill();
    dead.write(1, region_of(&[0xaa; BYTES]).all(), Remote { address: 0, rkey }).unwrap();

    let mut second = Server::start(address);
    let rkey = second.says("KEY").parse().unwrap();
    let present = Device::open(config()).unwrap();
    let near = present.connect(address).unwrap();
    std::thread::sleep(Duration::from_millis(600));
    near.write(2, region_of(&[0xbb; BYTES]).all(), Remote { address: 0, rkey }).unwrap();
    let done = near.wait(PATIENCE).unwrap();
    assert_eq!((done.wr_id, done.result()), (2, Ok(BYTES as u64)));
    second.child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert_eq!(second.says("HOLDS"), format!("0 {BYTES}"), "of the dead WRITE, of the one that succeeded");
}
