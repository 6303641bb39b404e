//! The soak on a real network: requests of all kinds while links fail and come back, for as long as one likes. Every
//! byte is compared, no request may fail, and memory must stay flat.

#![allow(clippy::print_stdout, clippy::print_stderr)] // What is skipped is said, and what was done.

#[allow(dead_code, clippy::print_stderr)] // Each file of tests uses what it needs; skips are loud.
mod common;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{TestLab, privileged};
use pathweave_datapath::secure::{ClusterKey, Protection};
use pathweave_datapath::{Access, Connection, Device, DeviceConfig, Region, Registration, Status};
use pathweave_lab::{Lab, LinkState, Settings};
use pathweave_topo::{Build, LeafSpine, NodeId};
use pathweave_units::{Rate, Rng};

const SPINES: u32 = 4;
const MTU_BYTES: u32 = 1_500;
/// Longest message, in bytes.
const LONGEST: u32 = 200_000;
/// Requests of each kind at a time.
const AT_A_TIME: usize = 6;
const PATIENCE: Duration = Duration::from_secs(60);
/// Parts of the run at whose ends memory is looked at, and those that do not count.
const PARTS: usize = 20;
const WARM_UP: usize = 5;
/// How much the program's memory may grow from the first half to the second, in KiB.
const GROWTH_KIB: u64 = 8 << 10;

/// Memory of this program that is in RAM, in KiB.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it tells of RAM");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// A device on a host, encrypted.
fn device(lab: &Lab, host: NodeId) -> Device {
    let mut config = DeviceConfig::new(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
    config.fit_link(MTU_BYTES as usize).unwrap();
    (config.paths, config.line_rate) = (32, Rate::from_mbps(100));
    (config.protection, config.key) = (Protection::Encrypt, Some(ClusterKey::from_bytes([5; 32])));
    // With all links down nothing comes for as long as the chaos likes.
    config.peer_timeout = Duration::from_secs(20);
    lab.inside(host, || Device::open(config)).unwrap().unwrap()
}

/// Fails and mends links between leaves and spines until it is told to stop; then all are up. How often it did.
fn chaos(lab: &mut Lab, seed: u64, done: &AtomicBool) -> u64 {
    let mut rng = Rng::for_component(seed, "chaos", 0);
    let links: Vec<_> = (0..2)
        .flat_map(|leaf| (0..SPINES).map(move |spine| format!("leaf{leaf}-spine{spine}")))
        .map(|name| lab.link(&name).unwrap())
        .collect();
    let mut changes = 0;
    while !done.load(Ordering::Relaxed) {
        let link = links[rng.below(links.len() as u32) as usize];
        let state = if lab.down().any(|down| down == link) { LinkState::Up } else { LinkState::Down };
        lab.set_link(link, state).unwrap();
        changes += 1;
        if rng.chance(0.3) {
            lab.reroute().unwrap();
        }
        std::thread::sleep(Duration::from_millis(u64::from(5 + rng.below(300))));
    }
    for link in links {
        lab.set_link(link, LinkState::Up).unwrap();
    }
    lab.reroute().unwrap();
    changes
}

/// Both ends of a connection and their memory.
struct Ends {
    near: Connection,
    far: Connection,
    /// Of the far end, open to the near one.
    board: Registration,
    inbox: Region,
    back: Region,
}

/// Bytes that tell where they are from.
fn pattern(rng: &mut Rng, len: usize) -> Vec<u8> {
    let salt = rng.next_u64();
    (0..len as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt).to_le_bytes()[5]).collect()
}

impl Ends {
    /// Waits for `count` completions of an end, all successful.
    fn done(connection: &Connection, count: usize) {
        for _ in 0..count {
            let done = connection.wait(PATIENCE).expect("a completion");
            assert_eq!(done.status, Status::Success, "{done:?}");
        }
    }

    /// WRITEs, READs of the same bytes, and SENDs; all of them compared. How many bytes that were.
    fn round(&self, rng: &mut Rng) -> u64 {
        let slot = LONGEST as usize;
        let messages: Vec<Vec<u8>> = (0..AT_A_TIME)
            .map(|_| {
                let most = LONGEST >> rng.below(18);
                let len = rng.below(most + 1) as usize;
                pattern(rng, len)
            })
            .collect();
        let sources: Vec<Region> = messages.iter().map(|bytes| Region::from_bytes(bytes).unwrap()).collect();
        for (index, message) in messages.iter().enumerate() {
            let place = index * slot..index * slot + message.len();
            self.far.recv(index as u64, self.inbox.slice(place.clone()).unwrap()).unwrap();
            self.near.write(1, sources[index].all(), self.board.remote(place.start as u64)).unwrap();
            self.near
                .read(2, self.back.slice(place.clone()).unwrap(), self.board.remote(place.start as u64))
                .unwrap();
            self.near.send(3, sources[index].all()).unwrap();
        }
        Ends::done(&self.near, 3 * AT_A_TIME);
        Ends::done(&self.far, AT_A_TIME);
        for (index, message) in messages.iter().enumerate() {
            let place = index * slot..index * slot + message.len();
            for (what, region) in
                [("WRITE", self.board.region()), ("READ", &self.back), ("SEND", &self.inbox)]
            {
                assert!(
                    region.to_vec(place.clone()).unwrap() == *message,
                    "{what} of {} bytes",
                    message.len()
                );
            }
        }
        3 * messages.iter().map(|message| message.len() as u64).sum::<u64>()
    }
}

#[test]
#[ignore = "takes as long as it is told to: make soak"]
fn every_byte_arrives_while_links_flap() {
    if !privileged("every_byte_arrives_while_links_flap") {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let time = Duration::from_secs(number("SOAK_SECONDS").unwrap_or(600));
    let seed = number("SOAK_SEED").unwrap_or(1);
    println!("soak: {time:?} on links that flap, seed {seed} (SOAK_SECONDS, SOAK_SEED)");

    let topology = LeafSpine::new(2, SPINES, 1).build(Path::new(".")).unwrap();
    let settings =
        Settings { mtu_bytes: MTU_BYTES, queue_bytes: 150_000, ..Settings::new("1/1000".parse().unwrap()) };
    let mut lab = TestLab::new(topology, settings);
    let [near, far] = ["host0", "host1"].map(|name| device(&lab.0, lab.0.node(name).unwrap()));
    let address = lab.0.plan().node(lab.0.node("host1").unwrap()).address;
    let listener = far.listen().unwrap();
    let connection = near.connect((address, far.local_addr().port()).into()).unwrap();
    let memory = || Region::zeroed(AT_A_TIME * LONGEST as usize).unwrap();
    let ends = Ends {
        near: connection,
        far: listener.accept(PATIENCE).unwrap(),
        board: far.register(&memory(), Access::READ_WRITE).unwrap(),
        inbox: memory(),
        back: memory(),
    };

    let (done, begin, mut rng) =
        (AtomicBool::new(false), Instant::now(), Rng::for_component(seed, "soak", 0));
    let (mut resident, mut bytes) = (Vec::new(), 0);
    let changes = std::thread::scope(|scope| {
        let chaos = scope.spawn(|| chaos(&mut lab.0, seed, &done));
        // Also when a comparison fails, or the other thread would go on.
        let stop = Stop(&done);
        for part in 1..=PARTS {
            while begin.elapsed() < time.mul_f64(part as f64 / PARTS as f64) {
                bytes += ends.round(&mut rng);
            }
            resident.push(resident_kib());
            let down = ends.near.stats().unwrap().paths;
            let down = down.iter().filter(|path| path.state == pathweave_datapath::PathState::Down).count();
            println!(
                "{:4} s: {} MB compared, {down} of 32 paths down, {} KiB resident",
                begin.elapsed().as_secs(),
                bytes / 1_000_000,
                resident[part - 1]
            );
        }
        drop(stop);
        chaos.join().unwrap()
    });
    let counters = ends.near.stats().unwrap().counters;
    println!("links changed {changes} times; {} packets sent again", counters.retransmitted);
    let (first, second) = resident[WARM_UP..].split_at((PARTS - WARM_UP) / 2);
    let (before, after) = (first.iter().max().copied(), second.iter().max().copied());
    assert!(after <= before.map(|kib| kib + GROWTH_KIB), "memory grew: {resident:?} KiB");
    assert!(bytes > 0 && changes > 0 && counters.retransmitted > 0, "{changes} changes, {counters:?}");
}

/// Ends the chaos.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
