//! Networks that lose, duplicate, reorder and damage packets; paths that fail; peers that vanish.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use pathweave_datapath::backend::{Cuts, Faults, Faulty, UdpBackend};
use pathweave_datapath::secure::{ClusterKey, Protection};
use pathweave_datapath::{
    Access, CloseReason, Connection, Device, DeviceConfig, Opcode, PathState, Region, Remote, Status,
};
use support::{PATIENCE, Pair, done, loopback, pattern, region_of};

fn config() -> DeviceConfig {
    DeviceConfig { mtu_payload: 1_344, paths: 8, ..loopback() }
}

/// Uses all verbs, several at a time, and checks all bytes.
fn traffic(pair: &Pair, context: &str) {
    let size = 300_001;
    let board = pair.board(4 * size, Access::READ_WRITE);
    let inbox = Region::zeroed(8 * 40_000).unwrap();
    for n in 0..8 {
        pair.far.recv(100 + n as u64, inbox.slice(n * 40_000..(n + 1) * 40_000).unwrap()).unwrap();
    }
    let written: Vec<Vec<u8>> = (0..4).map(|n| pattern(size, n)).collect();
    let sent: Vec<Vec<u8>> = (0..8).map(|n| pattern(n * 5_700, 10 + n as u64)).collect();
    let mut sources = Vec::new();
    for (n, bytes) in sent.iter().enumerate() {
        let message = region_of(bytes);
        pair.near.send_imm(n as u64, message.all(), n as u32).unwrap();
        sources.push(message);
        if n % 2 == 0 {
            let block = region_of(&written[n / 2]);
            let to = board.remote((n / 2 * size) as u64);
            pair.near.write(50 + n as u64, block.all(), to).unwrap();
            sources.push(block);
        }
    }
    for n in 0..8 {
        assert_eq!(done(&pair.near, n), n * 5_700, "{context}");
        if n % 2 == 0 {
            assert_eq!(done(&pair.near, 50 + n), size as u64, "{context}");
        }
        let received = pair.far.wait(PATIENCE).unwrap();
        assert_eq!((received.wr_id, received.imm), (100 + n, Some(n as u32)), "{context}");
        assert_eq!((received.opcode, received.result()), (Opcode::Recv, Ok(n * 5_700)), "{context}");
    }
    for (n, bytes) in sent.iter().enumerate() {
        let at = n * 40_000..n * 40_000 + n * 5_700;
        assert!(inbox.to_vec(at).unwrap() == *bytes, "message {n}, {context}");
    }
    for (n, bytes) in written.iter().enumerate() {
        assert!(board.region().to_vec(n * size..(n + 1) * size).unwrap() == *bytes, "block {n}, {context}");
    }
    let back = Region::zeroed(4 * size).unwrap();
    for n in 0..4 {
        let into = back.slice(n * size..(n + 1) * size).unwrap();
        pair.near.read(n as u64, into, board.remote((n * size) as u64)).unwrap();
    }
    for n in 0..4 {
        assert_eq!(done(&pair.near, n), size as u64, "{context}");
    }
    assert!(back.to_vec(0..4 * size).unwrap() == written.concat(), "READ, {context}");
}

#[test]
fn every_byte_arrives_once_whatever_the_network_does() {
    let none = Faults::default();
    let cases = [
        ("loss", Faults { lose: 0.02, ..none }),
        ("repetition", Faults { repeat: 0.1, ..none }),
        ("reordering", Faults { reorder: 0.1, ..none }),
        ("damage", Faults { damage: 0.02, ..none }),
        ("marks", Faults { mark: 0.3, ..none }),
        ("everything", Faults { lose: 0.02, repeat: 0.02, reorder: 0.05, damage: 0.02, mark: 0.1, ..none }),
    ];
    for (index, (name, faults)) in cases.into_iter().enumerate() {
        for protection in [Protection::Insecure, Protection::Encrypt] {
            let seed = 7 + index as u64;
            let key = Some(ClusterKey::from_bytes([9; 32]));
            let config = DeviceConfig { protection, key, seed: Some(seed), ..config() };
            let pair = Pair::faulty(&config, faults, &Cuts::default(), seed);
            traffic(&pair, &format!("{name}, {protection}, seed {seed}"));
            let stats = pair.near.stats().unwrap();
            assert!(faults.lose == 0.0 || stats.counters.retransmitted_packets > 0, "{name}: {stats:?}");
            let far = pair.server.stats().unwrap();
            if faults.damage > 0.0 && protection == Protection::Insecure {
                assert!(far.refused_datagrams > 0, "{name}: {far:?}");
            }
        }
    }
}

#[test]
fn a_dead_path_is_left_within_moments_and_taken_again_when_it_lives() {
    for scheme in ["udmp", "rps-nocc"] {
        let cuts = Cuts::default();
        let config = DeviceConfig { scheme: scheme.into(), ..config() };
        let pair = Pair::faulty(&config, Faults::default(), &cuts, 1);
        let size = 4 << 20;
        let board = pair.board(size, Access::WRITE);
        let source = region_of(&pattern(size, 1));
        let write = |times: u64| {
            for n in 0..times {
                pair.near.write(n, source.all(), board.remote(0)).unwrap();
                assert_eq!(done(&pair.near, n), size as u64, "{scheme}");
            }
        };
        write(1);
        let down = |path: usize| pair.near.stats().unwrap().paths[path].state == PathState::Down;
        assert!((0..8).all(|path| !down(path)), "{scheme}");

        // Paths 2 and 5, in both directions; no error may be visible.
        cuts.set(1 << 2 | 1 << 5);
        let deadline = Instant::now() + PATIENCE;
        while !(down(2) && down(5)) {
            assert!(Instant::now() < deadline, "{scheme}: {:?}", pair.near.stats());
            write(1);
        }
        let before = pair.near.stats().unwrap();
        write(2);
        let after = pair.near.stats().unwrap();
        for path in [2, 5] {
            // A late acknowledgement may make a scheme try the path again, but not for long.
            let tried = after.paths[path].packets - before.paths[path].packets;
            assert!(tried < 300, "{scheme}: {tried} packets on a dead path");
        }
        cuts.set(0);
        let deadline = Instant::now() + PATIENCE;
        while down(2) || down(5) {
            assert!(Instant::now() < deadline, "{scheme}: {:?}", pair.near.stats());
            std::thread::sleep(Duration::from_millis(1));
        }
        write(2);
        let last = pair.near.stats().unwrap();
        for path in [2, 5] {
            let used = last.paths[path].packets - after.paths[path].packets;
            assert!(used > 0, "{scheme}: path {path} carries packets again");
        }
    }
}

#[test]
fn a_connection_opens_over_whichever_path_lives() {
    let key = ClusterKey::from_bytes([3; 32]);
    for protection in [Protection::Insecure, Protection::Encrypt] {
        let config = DeviceConfig { protection, key: Some(key.clone()), ..config() };
        // The default port of the handshake, and the first two paths of this end.
        let cuts = Cuts::default();
        cuts.set(1 << 63 | 0b11);
        let backend = UdpBackend::open(&config.udp()).unwrap();
        let backend = Faulty::new(backend, Faults::default(), cuts.clone(), 1);
        let near = Device::with_backend(config.clone(), backend).unwrap();
        let pair = Pair::of(near, Device::open(config).unwrap());
        // From then on answers come to the port that sent the request.
        traffic(&pair, "two paths are dead");
        cuts.set(0);
        // Another connection next to it, which uses the default port.
        let second = pair.client.connect(pair.server.local_addr()).unwrap();
        let far = pair.listener.accept(PATIENCE).unwrap();
        let (message, inbox) = (region_of(&pattern(10_000, 3)), Region::zeroed(10_000).unwrap());
        far.recv(1, inbox.all()).unwrap();
        second.send(2, message.all()).unwrap();
        assert_eq!((done(&second, 2), done(&far, 1)), (10_000, 10_000));
        traffic(&pair, "all paths live");
    }
}

#[test]
fn all_paths_dead_ends_in_an_error_in_time() {
    let cuts = Cuts::default();
    let config = DeviceConfig {
        peer_timeout: Duration::from_millis(500),
        keepalive: Duration::from_millis(100),
        ..config()
    };
    let pair = Pair::faulty(&config, Faults::default(), &cuts, 1);
    let board = pair.board(1 << 20, Access::WRITE);
    let inbox = Region::zeroed(8).unwrap();
    pair.far.recv(5, inbox.all()).unwrap();
    cuts.set(u64::MAX);
    let begin = Instant::now();
    let source = region_of(&pattern(1 << 20, 1));
    for wr_id in 0..3 {
        pair.near.write(wr_id, source.all(), board.remote(0)).unwrap();
    }
    let statuses: Vec<Status> = (0..3).map(|_| pair.near.wait(PATIENCE).unwrap().status).collect();
    assert_eq!(statuses, [Status::RetryExceeded, Status::Flushed, Status::Flushed]);
    assert!(begin.elapsed() >= Duration::from_millis(400), "{:?}", begin.elapsed());
    // The other end has nothing to send, and detects the silence by probing.
    assert_eq!(pair.far.wait_closed(PATIENCE), Ok(CloseReason::PeerSilent));
    assert_eq!(pair.far.wait(PATIENCE).unwrap().status, Status::Flushed);
}

#[test]
fn the_end_of_a_peer_is_noticed_despite_a_lost_close() {
    // Each Close takes the next path, so the first one is lost in one of the two cases.
    for cut in [0b01, 0b10] {
        let cuts = Cuts::default();
        let config = DeviceConfig { paths: 2, ..config() };
        let Pair { client, near, far, server: _server, listener: _listener } =
            Pair::faulty(&config, Faults::default(), &cuts, 1);
        cuts.set(cut);
        // The device ends with its last handle.
        drop((near, client));
        assert_eq!(far.wait_closed(PATIENCE), Ok(CloseReason::Peer), "cut {cut:#b}");
    }
}

#[test]
fn an_idle_connection_stays() {
    let config = DeviceConfig {
        peer_timeout: Duration::from_millis(200),
        keepalive: Duration::from_millis(50),
        ..config()
    };
    let pair = Pair::with(&config);
    assert!(pair.near.wait_closed(Duration::from_millis(900)).is_err());
    let inbox = Region::zeroed(3).unwrap();
    pair.far.recv(1, inbox.all()).unwrap();
    pair.near.send(2, region_of(b"yes").all()).unwrap();
    done(&pair.far, 1);
    assert_eq!(inbox.to_vec(0..3).unwrap(), b"yes");
}

#[test]
fn probes_measure_every_path() {
    let pair = Pair::with(&config());
    pair.near.probe_paths();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let paths = pair.near.stats().unwrap().paths;
        if paths.iter().all(|path| path.probe_rtt.is_some_and(|rtt| rtt > Duration::ZERO)) {
            break;
        }
        assert!(Instant::now() < deadline, "{paths:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Body of the other process of the tests below, which start it; not a test by itself.
#[test]
#[ignore = "started by other tests"]
fn other_process() {
    let config = DeviceConfig { peer_timeout: Duration::from_millis(700), ..config() };
    let server = Device::open(config).unwrap();
    let listener = server.listen().unwrap();
    let board = server.register(&Region::zeroed(1 << 20).unwrap(), Access::READ_WRITE).unwrap();
    let mut output = std::io::stdout();
    writeln!(output, "\nat {} key {}", server.local_addr(), board.rkey()).unwrap();
    output.flush().unwrap();
    let far = listener.accept(PATIENCE).unwrap();
    let inbox = Region::zeroed(1 << 20).unwrap();
    far.recv(1, inbox.all()).unwrap();
    loop {
        let completion = far.wait(PATIENCE).unwrap();
        if completion.status != Status::Success {
            return;
        }
        if completion.opcode == Opcode::Recv {
            let len = completion.byte_len as usize;
            let mut answer = inbox.to_vec(0..len).unwrap();
            answer.reverse();
            far.recv(1, inbox.all()).unwrap();
            far.send(2, region_of(&answer).all()).unwrap();
        }
    }
}

struct Other {
    child: std::process::Child,
    near: Connection,
    rkey: u64,
    _client: Device,
    _output: BufReader<ChildStdout>,
}

fn start_other() -> Other {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "other_process", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Kept open, or the output of the other process at its end would fail.
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let lines = output.by_ref().lines().map_while(Result::ok);
    let mut greetings = lines.filter_map(|line| {
        let (address, rkey) = line.strip_prefix("at ")?.split_once(" key ")?;
        Some((address.parse().ok()?, rkey.parse().ok()?))
    });
    let (address, rkey) = greetings.next().expect("the other process says where it is");
    let client = Device::open(DeviceConfig { peer_timeout: Duration::from_millis(700), ..config() }).unwrap();
    let near = client.connect(address).unwrap();
    Other { child, near, rkey, _client: client, _output: output }
}

#[test]
fn two_processes() {
    let mut other = start_other();
    let near = &other.near;
    for size in [0, 1, 10_000, 1 << 20] {
        let (bytes, inbox) = (pattern(size, 4), Region::zeroed(size).unwrap());
        near.recv(1, inbox.all()).unwrap();
        let source = region_of(&bytes);
        near.send(2, source.all()).unwrap();
        for _ in 0..2 {
            assert_eq!(near.wait(PATIENCE).unwrap().result(), Ok(size as u64));
        }
        let mut answer = inbox.to_vec(0..size).unwrap();
        answer.reverse();
        assert!(answer == bytes, "{size} bytes there and back");
    }
    let there = Remote { address: 0, rkey: other.rkey };
    let (source, back) = (region_of(&pattern(1 << 20, 5)), Region::zeroed(1 << 20).unwrap());
    near.write(3, source.all(), there).unwrap();
    near.read(4, back.all(), there).unwrap();
    done(near, 3);
    done(near, 4);
    assert!(back.to_vec(0..1 << 20).unwrap() == pattern(1 << 20, 5));
    near.close();
    assert!(other.child.wait().unwrap().success());
}

#[test]
fn a_peer_that_is_killed_is_noticed() {
    let mut other = start_other();
    let there = Remote { address: 0, rkey: other.rkey };
    let source = region_of(&pattern(1 << 20, 5));
    other.near.write(1, source.all(), there).unwrap();
    done(&other.near, 1);
    other.child.kill().unwrap();
    other.child.wait().unwrap();
    let begin = Instant::now();
    for wr_id in 2..4 {
        other.near.write(wr_id, source.all(), there).unwrap();
    }
    assert_eq!(other.near.wait(PATIENCE).unwrap().status, Status::RetryExceeded);
    assert_eq!(other.near.wait(PATIENCE).unwrap().status, Status::Flushed);
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert!(other.near.wait_closed(PATIENCE).is_ok());
}
