//! An endpoint with a thousand peers, each an endpoint of its own with its own sockets.
#![expect(clippy::print_stdout, reason = "the bytes are the point; see them with --nocapture")]

mod support;

use std::time::{Duration, Instant};

use allocation_counter::measure;
use pathweave_datapath::rdm::{Peer, RdmConfig, RdmEndpoint};
use pathweave_datapath::secure::{ClusterKey, OsRandom, Protection};
use pathweave_datapath::{Driving, Opcode, Region, Status};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::{PATIENCE, pattern, region_of};

const PEERS: usize = 1_000;
/// Those the endpoint has before its bytes are counted: its tables have begun to grow.
const FIRST: usize = 100;
/// Two packets.
const BYTES: usize = 3_000;
/// What tells answers from messages.
const ANSWER: u64 = 500_000_000;

/// An endpoint that this thread drives, whose memory is counted.
struct Hub {
    endpoint: RdmEndpoint,
    bytes: i64,
}

impl Hub {
    fn with<T>(&mut self, work: impl FnOnce(&RdmEndpoint) -> T) -> T {
        let mut result = None;
        let info = measure(|| result = Some(work(&self.endpoint)));
        self.bytes += info.bytes_current;
        result.expect("it has been done")
    }
}

struct Leaf {
    endpoint: RdmEndpoint,
    room: Region,
}

fn leaf(key: &ClusterKey) -> Leaf {
    let mut config = RdmConfig::loopback();
    config.device.protection = Protection::Encrypt;
    config.device.key = Some(key.clone());
    config.device.mtu_payload = 1_500;
    config.device.paths = 1;
    config.device.driving = Driving::Caller;
    config.device.socket_buffer_bytes = 64 << 10;
    config.side_idle = Duration::from_millis(100);
    let endpoint = RdmEndpoint::open(config).expect("an endpoint");
    Leaf { endpoint, room: Region::zeroed(BYTES).expect("memory") }
}

fn hub(key: &ClusterKey, paths: u16) -> Hub {
    let mut config = RdmConfig::loopback();
    config.device.protection = Protection::Encrypt;
    config.device.key = Some(key.clone());
    config.device.mtu_payload = 1_500;
    config.device.paths = paths;
    config.device.driving = Driving::Caller;
    config.side_idle = Duration::from_millis(100);
    config.device.connect_timeout = Duration::from_secs(30);
    Hub { endpoint: RdmEndpoint::open(config).expect("an endpoint"), bytes: 0 }
}

/// A message to each of these peers, and the answer of each: every byte is looked at.
fn exchange(hub: &mut Hub, leaves: &[Leaf], salt: u64) {
    let rooms: Vec<Region> = leaves.iter().map(|_| Region::zeroed(BYTES).expect("memory")).collect();
    // Freed here, where nobody counts.
    let messages: Vec<Region> =
        (0..).zip(leaves).map(|(n, _)| region_of(&pattern(BYTES, salt + n))).collect();
    let peers: Vec<Peer> = leaves
        .iter()
        .map(|leaf| hub.with(|hub| hub.insert(leaf.endpoint.local_addr()).expect("room")))
        .collect();
    for (n, (leaf, &peer)) in (0..).zip(leaves.iter().zip(&peers)) {
        leaf.endpoint.recv(n, leaf.room.all()).expect("room");
        let (own, message) = (rooms[n as usize].all(), messages[n as usize].all());
        hub.with(|hub| {
            hub.recv_from(peer, n, own).expect("room");
            hub.send(n, peer, message).expect("room");
        });
    }
    let (mut sent, mut answered, mut heard) = (0, 0, 0);
    let deadline = Instant::now() + PATIENCE;
    while sent < leaves.len() || answered < leaves.len() || heard < leaves.len() {
        assert!(Instant::now() < deadline, "{sent} {answered} {heard}: {:?}", hub.with(RdmEndpoint::stats));
        while let Some(done) = hub.with(RdmEndpoint::poll) {
            assert_eq!((done.status, done.peer), (Status::Success, Some(peers[done.wr_id as usize])));
            if done.opcode == Opcode::Send {
                sent += 1;
                continue;
            }
            let bytes = rooms[done.wr_id as usize].to_vec(0..BYTES).expect("it has so many");
            assert!(bytes == pattern(BYTES, ANSWER + salt + done.wr_id), "answer {} is wrong", done.wr_id);
            heard += 1;
        }
        for (n, leaf) in (0..).zip(leaves) {
            while let Some(done) = leaf.endpoint.poll() {
                assert_eq!(done.status, Status::Success, "leaf {n}");
                if done.opcode == Opcode::Send {
                    answered += 1;
                    continue;
                }
                let bytes = leaf.room.to_vec(0..BYTES).expect("it has so many");
                assert!(bytes == pattern(BYTES, salt + n), "message {n} is wrong");
                let answer = region_of(&pattern(BYTES, ANSWER + salt + n));
                leaf.endpoint.send(n, done.peer.expect("somebody sent it"), answer.all()).expect("room");
            }
        }
    }
}

/// Until nothing is under way and no side channel is open.
fn rest(hub: &mut Hub, leaves: &[Leaf]) {
    let deadline = Instant::now() + PATIENCE;
    while hub.with(RdmEndpoint::stats).expect("its loop runs").side.open > 0 {
        assert!(Instant::now() < deadline);
        leaves.iter().for_each(|leaf| leaf.endpoint.progress());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_thousand_peers_cost_what_is_declared() {
    // Eight descriptors a peer, both ends together.
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(20_000, |most| most.min(20_000));
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit }).expect("below the maximum");
    let key = ClusterKey::generate(&mut OsRandom).expect("random bytes");
    let count = PEERS.min(wanted as usize / 10);
    let leaves: Vec<Leaf> = (0..count).map(|_| leaf(&key)).collect();
    let mut a_peer = Vec::new();
    for paths in [4, 16] {
        let mut hub = hub(&key, paths);
        exchange(&mut hub, &leaves[..FIRST], 1);
        rest(&mut hub, &leaves);
        let before = hub.bytes;
        // As many at a time as before: queues have grown as long as they will be.
        for (n, leaves) in (1..).zip(leaves[FIRST..].chunks(FIRST)) {
            exchange(&mut hub, leaves, n * 1_000_000);
        }
        rest(&mut hub, &leaves);
        let more = hub.bytes - before;
        let bytes = more / (count - FIRST) as i64;
        let stats = hub.with(RdmEndpoint::stats).expect("its loop runs");
        println!(
            "{count} peers, {paths} paths: {bytes} B a peer, {} B declared; {} datagrams received, {} packets sent, \
             {} retransmitted, {} NACKs, {} flows scanned, {} B over {} TCP connections",
            RdmEndpoint::BYTES_A_PEER,
            stats.received_datagrams,
            stats.counters.data_sent,
            stats.counters.retransmitted,
            stats.counters.nacks_sent + stats.counters.nacks_received,
            stats.counters.flows_scanned,
            stats.side.sent_bytes + stats.side.received_bytes,
            stats.side.opened + stats.side.accepted,
        );
        assert_eq!((stats.peers, stats.associations), (count, count));
        a_peer.push(bytes);
        // All at once, twice: the queues of the first time are used again, and nothing is added for peers.
        exchange(&mut hub, &leaves, 100_000_000);
        rest(&mut hub, &leaves);
        let before = hub.bytes;
        exchange(&mut hub, &leaves, 200_000_000);
        rest(&mut hub, &leaves);
        let again = hub.bytes - before;
        println!("all of them at once, again: {again} B more in all");
        assert!(again < 64 * count as i64, "{again} B more for peers that are known");
    }
    let declared = RdmEndpoint::BYTES_A_PEER as i64;
    assert!(a_peer.iter().all(|&bytes| bytes <= declared), "{a_peer:?} B, {declared} declared");
}
