//! An endpoint and many peers, each a separate endpoint with its own sockets, in any location.
#![allow(clippy::print_stdout)] // The measured bytes are the purpose; see them with --nocapture.

use std::time::{Duration, Instant};

use allocation_counter::measure;
use pathweave_datapath::rdm::{Peer, RdmConfig, RdmEndpoint};
use pathweave_datapath::secure::{ClusterKey, Protection};
use pathweave_datapath::{Driving, Opcode, Region, Status};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Timeout for a busy machine that gives a thousand loops a twentieth of a core.
const PATIENCE: Duration = Duration::from_secs(600);
/// Peers of the endpoint before its bytes are counted: its tables have begun to grow.
const FIRST: usize = 100;
/// Length of a message: two packets.
const BYTES: usize = 3_000;
/// Largest number of rounds with all peers at once.
const TIMES: u64 = 8;
/// Offset that distinguishes answers from messages.
const ANSWER: u64 = 5_000_000_000;

/// Returns bytes that identify their origin.
fn pattern(salt: u64) -> Vec<u8> {
    (0..BYTES as u64).map(|i| (i.wrapping_mul(0x9e37_79b9).wrapping_add(salt * 77) >> 8) as u8).collect()
}

fn region_of(salt: u64) -> Region {
    Region::from_bytes(&pattern(salt)).expect("memory")
}

/// An endpoint that this thread drives, and whose memory is counted.
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

/// A peer.
pub(crate) struct Leaf {
    pub(crate) endpoint: RdmEndpoint,
    room: Region,
}

impl Leaf {
    pub(crate) fn new(endpoint: RdmEndpoint) -> Self {
        Leaf { endpoint, room: Region::zeroed(BYTES).expect("memory") }
    }
}

/// Returns the configuration that all endpoints share.
fn common(config: RdmConfig, key: &ClusterKey) -> RdmConfig {
    let mut config = config;
    config.device.protection = Protection::Encrypt;
    config.device.key = Some(key.clone());
    config.device.mtu_payload = 1_400;
    config.side_idle = Duration::from_millis(100);
    // A thousand endpoints on a few cores: none sends much at a time, and an endpoint that has not run for so long
    // has not even answered a handshake.
    config.device.connect_timeout = PATIENCE;
    config.device.peer_timeout = PATIENCE;
    config
}

/// Returns the configuration of a peer.
pub(crate) fn of_leaf(config: RdmConfig, key: &ClusterKey) -> RdmConfig {
    let mut config = common(config, key);
    config.device.paths = 1;
    config.device.socket_buffer_bytes = 64 << 10;
    config
}

/// Returns the configuration of the hub, which the measuring thread drives.
pub(crate) fn of_hub(config: RdmConfig, key: &ClusterKey, paths: u16) -> RdmConfig {
    let mut config = common(config, key);
    config.device.paths = paths;
    config.device.driving = Driving::Caller;
    config
}

/// Returns the possible number of peers, at most `wanted`: each takes eight descriptors, both ends together.
pub(crate) fn descriptors_for(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let needed = wanted as u64 * 10 + 10_000;
    let most = limit.maximum.map_or(needed, |most| most.min(needed));
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..limit }).expect("below the maximum");
    wanted.min((most as usize).saturating_sub(1_000) / 10)
}

/// Sends a message to each of these peers, and receives the answer of each; checks every byte.
fn exchange(hub: &mut Hub, leaves: &[Leaf], salt: u64) {
    let rooms: Vec<Region> = leaves.iter().map(|_| Region::zeroed(BYTES).expect("memory")).collect();
    // Freed here, where memory is not counted.
    let messages: Vec<Region> = (0..).zip(leaves).map(|(n, _)| region_of(salt + n)).collect();
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
            assert!(bytes == pattern(ANSWER + salt + done.wr_id), "answer {} is wrong", done.wr_id);
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
                assert!(bytes == pattern(salt + n), "message {n} is wrong");
                let answer = region_of(ANSWER + salt + n);
                leaf.endpoint.send(n, done.peer.expect("somebody sent it"), answer.all()).expect("room");
            }
        }
    }
}

/// Waits until nothing is outstanding and no side channel is open.
fn rest(hub: &mut Hub, leaves: &[Leaf]) {
    let deadline = Instant::now() + PATIENCE;
    while hub.with(RdmEndpoint::stats).expect("its loop runs").side.open > 0 {
        assert!(Instant::now() < deadline);
        leaves.iter().for_each(|leaf| leaf.endpoint.progress());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Lets an endpoint exchange messages with all peers at once.
#[allow(dead_code)] // Not every file that uses this module calls it.
pub(crate) fn meet(endpoint: RdmEndpoint, leaves: &[Leaf]) {
    let mut hub = Hub { endpoint, bytes: 0 };
    exchange(&mut hub, leaves, 1);
    rest(&mut hub, leaves);
    let stats = hub.with(RdmEndpoint::stats).expect("its loop runs");
    assert_eq!((stats.peers, stats.associations), (leaves.len(), leaves.len()));
}

/// Lets an endpoint exchange messages with all peers, a hundred at a time and then all at once. Checks that it keeps
/// no more bytes for each than it declares, and returns that number.
pub(crate) fn weigh(endpoint: RdmEndpoint, leaves: &[Leaf]) -> i64 {
    let count = leaves.len();
    let mut hub = Hub { endpoint, bytes: 0 };
    exchange(&mut hub, &leaves[..FIRST], 1);
    rest(&mut hub, leaves);
    let before = hub.bytes;
    // The same number at a time as before, so that queues do not grow any further.
    for (n, leaves) in (1..).zip(leaves[FIRST..].chunks(FIRST)) {
        exchange(&mut hub, leaves, n * 1_000_000);
    }
    rest(&mut hub, leaves);
    let bytes = (hub.bytes - before) / (count - FIRST) as i64;
    let stats = hub.with(RdmEndpoint::stats).expect("its loop runs");
    println!(
        "{count} peers, {} paths: {bytes} B a peer, {} B declared; {} datagrams received, {} packets sent, \
         {} retransmitted, {} NACKs, {} flows scanned, {} B over {} TCP connections",
        stats.paths.len(),
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
    // The loop's own buffers grow a little further if it is stalled for longer.
    let most = RdmEndpoint::BYTES_A_PEER as i64 * 101 / 100;
    assert!(bytes <= most, "{bytes} B, {} declared", RdmEndpoint::BYTES_A_PEER);
    // All at once, repeatedly: queues may grow further after a longer stall, but not each time, and no memory is
    // added for peers.
    let mut added = Vec::new();
    let settled = (0..TIMES).any(|time| {
        let before = hub.bytes;
        exchange(&mut hub, leaves, (time + 1) * 100_000_000);
        rest(&mut hub, leaves);
        added.push(hub.bytes - before);
        time > 0 && hub.bytes - before < 64 * count as i64
    });
    println!("all of them at once: {added:?} B more in all");
    assert!(settled, "{added:?} B more for peers that are known");
    bytes
}
