//! Soak test on a real network: requests of all kinds, under every scheme for connections and every protection, while
//! links fail and recover, interfaces go down, and MTUs shrink. Every byte is compared, no request may fail, and
//! memory must not grow.

#![allow(clippy::print_stdout, clippy::print_stderr)] // Prints what is skipped and done.

#[allow(dead_code, clippy::print_stderr)] // Each test file uses a part of it; skips are printed.
mod common;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{TestLab, privileged};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use pathweave_datapath::secure::{ClusterKey, Protection};
use pathweave_datapath::{
    Access, Connection, Device, DeviceConfig, Region, Registration, Status, Uncontrolled, Unprotected,
};
use pathweave_lab::{Lab, LinkState, Settings};
use pathweave_linux::netlink::Netlink;
use pathweave_policy::schemes;
use pathweave_topo::{Build, LeafSpine, LinkId, NodeId};
use pathweave_units::{Rate, Rng};

const SPINES: u32 = 4;
const MTU_BYTES: u32 = 1_500;
/// Longest message in bytes.
const LONGEST: u32 = 200_000;
/// Number of requests of each kind at a time.
const AT_A_TIME: usize = 6;
/// Number of rounds for each connection.
const ROUNDS_A_LIFE: usize = 3;
const PATIENCE: Duration = Duration::from_secs(60);
/// Number of parts of the run, after each of which memory is measured, and number of initial parts that do not count.
const PARTS: usize = 20;
const WARM_UP: usize = 5;
/// Largest growth of the program's memory from the first half to the second, in KiB.
const GROWTH_KIB: u64 = 8 << 10;

/// Returns the resident memory of this program in KiB.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it tells of RAM");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Opens a device on a host.
fn device(lab: &Lab, host: NodeId, protection: Protection) -> Device {
    let mut config = DeviceConfig::new(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
    config.fit_link(MTU_BYTES as usize).unwrap();
    (config.paths, config.line_rate) = (32, Rate::from_mbps(100));
    (config.protection, config.key) = (protection, Some(ClusterKey::from_bytes([5; 32])));
    (config.unprotected, config.uncontrolled) = (Unprotected::Anywhere, Uncontrolled::All);
    // While all links are down, nothing arrives for as long as the faults last.
    config.peer_timeout = Duration::from_secs(20);
    lab.inside(host, || Device::open(config)).unwrap().unwrap()
}

/// Fault of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkFault {
    /// The link loses all packets.
    Link,
    /// The interface at one end is down, and its routes are removed.
    Interface,
    /// The link drops packets of full length.
    Mtu,
}

impl LinkFault {
    const ALL: [LinkFault; 3] = [LinkFault::Link, LinkFault::Interface, LinkFault::Mtu];
}

/// Largest number of faulty links at a time, of eight. With more there is no path for seconds, and schemes with
/// doubling timeouts then wait for up to a minute.
const MOST_IN_TROUBLE: usize = 3;

/// Longest packet in bytes while an MTU is reduced. No packet with more data than one small message fits.
const FALLEN_MTU_BYTES: u32 = 576;

/// Number of faults of each kind.
#[derive(Clone, Copy, Debug, Default)]
struct Changes([u64; 3]);

/// Changes a device of a node.
fn change(lab: &Lab, (node, port): (NodeId, u16), what: impl FnOnce(&mut LinkMessage) + Send) {
    let device = &lab.plan().node(node).ports[usize::from(port)].device;
    let done = lab.inside(node, || {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(device.clone()));
        what(&mut message);
        Netlink::open().unwrap().request(RouteNetlinkMessage::SetLink(message), 0)
    });
    done.unwrap().unwrap();
}

/// Starts or ends a fault of a link.
fn set(lab: &mut Lab, link: LinkId, trouble: LinkFault, state: LinkState) {
    let ends = lab.plan().ends(link);
    match trouble {
        LinkFault::Link => lab.set_link(link, state).unwrap(),
        LinkFault::Mtu => {
            let bytes = if state == LinkState::Up { MTU_BYTES } else { FALLEN_MTU_BYTES };
            ends.into_iter().for_each(|end| {
                change(lab, end, |message| message.attributes.push(LinkAttribute::Mtu(bytes)));
            });
        }
        LinkFault::Interface => {
            change(lab, ends[0], |message| {
                message.header.change_mask = LinkFlags::Up;
                message.header.flags =
                    if state == LinkState::Up { LinkFlags::Up } else { LinkFlags::empty() };
            });
        }
    }
}

/// Breaks and repairs links between leaves and spines until `done` is set, and finally repairs all.
fn chaos(lab: &mut Lab, seed: u64, done: &AtomicBool) -> Changes {
    let mut rng = Rng::for_component(seed, "chaos", 0);
    let links: Vec<_> = (0..2)
        .flat_map(|leaf| (0..SPINES).map(move |spine| format!("leaf{leaf}-spine{spine}")))
        .map(|name| lab.link(&name).unwrap())
        .collect();
    let (mut changes, mut troubled) = (Changes::default(), BTreeMap::new());
    while !done.load(Ordering::Relaxed) {
        let mut link = links[rng.below(links.len() as u32) as usize];
        if troubled.len() == MOST_IN_TROUBLE && !troubled.contains_key(&link) {
            link = *troubled.keys().nth(rng.below(MOST_IN_TROUBLE as u32) as usize).expect("so many");
        }
        let ended = troubled.remove(&link);
        if let Some(trouble) = ended {
            set(lab, link, trouble, LinkState::Up);
        } else {
            let trouble = LinkFault::ALL[rng.below(LinkFault::ALL.len() as u32) as usize];
            set(lab, link, trouble, LinkState::Down);
            troubled.insert(link, trouble);
            changes.0[trouble as usize] += 1;
        }
        // No route can be created over an interface that is down, and one that was down has lost its routes.
        let may = !troubled.values().any(|trouble| *trouble == LinkFault::Interface);
        if may && (ended == Some(LinkFault::Interface) || rng.bernoulli(0.3)) {
            lab.reroute().unwrap();
        }
        std::thread::sleep(Duration::from_millis(u64::from(5 + rng.below(300))));
    }
    for (link, trouble) in troubled {
        set(lab, link, trouble, LinkState::Up);
    }
    lab.reroute().unwrap();
    changes
}

/// Both ends of a connection and their memory.
struct Ends {
    near: Connection,
    far: Connection,
    /// Memory of the far end that the near end can access.
    board: Registration,
    inbox: Region,
    back: Region,
}

/// Returns bytes that identify their origin.
fn pattern(rng: &mut Rng, len: usize) -> Vec<u8> {
    let salt = rng.next_u64();
    (0..len as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt).to_le_bytes()[5]).collect()
}

impl Ends {
    /// Waits for `count` completions of an end, all of them successful.
    fn done(connection: &Connection, count: usize, scheme: &str) {
        for _ in 0..count {
            let done = connection.wait(PATIENCE).unwrap_or_else(|why| {
                panic!("{scheme}: {why}; {:?}, {:?}", connection.close_reason(), connection.stats())
            });
            assert_eq!(done.status, Status::Success, "{scheme}: {done:?}, {:?}", connection.close_reason());
        }
    }

    /// Sends WRITEs, READs of the same bytes, and SENDs, and compares all of them. Returns the number of bytes.
    fn round(&self, rng: &mut Rng, scheme: &str) -> u64 {
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
        Ends::done(&self.near, 3 * AT_A_TIME, scheme);
        Ends::done(&self.far, AT_A_TIME, scheme);
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
fn every_byte_arrives_while_links_are_in_trouble() {
    if privileged("every_byte_arrives_while_links_are_in_trouble") {
        let resident = soak(Duration::from_secs(number("SOAK_SECONDS").unwrap_or(600)));
        let (first, second) = resident[WARM_UP..].split_at((PARTS - WARM_UP) / 2);
        let (before, after) = (first.iter().max().copied(), second.iter().max().copied());
        assert!(after <= before.map(|kib| kib + GROWTH_KIB), "memory grew: {resident:?} KiB");
    }
}

#[test]
fn every_byte_arrives_while_links_are_in_trouble_for_a_while() {
    if privileged("every_byte_arrives_while_links_are_in_trouble_for_a_while") {
        soak(Duration::from_secs(8));
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Sends requests for this long. Returns the memory of the program in KiB after each part.
fn soak(time: Duration) -> Vec<u64> {
    let seed = number("SOAK_SEED").unwrap_or(1);
    println!("soak: {time:?} on links in trouble, seed {seed} (SOAK_SECONDS, SOAK_SEED)");

    let topology = LeafSpine::new(2, SPINES, 1).build(Path::new(".")).unwrap();
    let settings =
        Settings { mtu_bytes: MTU_BYTES, queue_bytes: 150_000, ..Settings::new("1/1000".parse().unwrap()) };
    let mut lab = TestLab::new(topology, settings);
    let pairs = Protection::ALL.map(|protection| {
        let [near, far] =
            ["host0", "host1"].map(|name| device(&lab.0, lab.0.node(name).unwrap(), protection));
        let listener = far.listen().unwrap();
        (near, far, listener)
    });
    let address = lab.0.plan().node(lab.0.node("host1").unwrap()).address;
    let schemes: Vec<&str> =
        schemes().iter().filter(|info| (info.make)().connects_real_hosts()).map(|info| info.name).collect();
    // Uses all schemes in turn, with a different protection each time.
    let connect = |number: usize| {
        let (near, far, listener) = &pairs[number % pairs.len()];
        let scheme = schemes[(seed as usize + number) % schemes.len()];
        let to = (address, far.local_addr().port()).into();
        let near = near.connect_with(to, scheme, &[]).unwrap_or_else(|why| panic!("{scheme}: {why}"));
        let memory = || Region::zeroed(AT_A_TIME * LONGEST as usize).unwrap();
        let far_end = listener.accept(PATIENCE).unwrap();
        let board = far.register(&memory(), Access::READ_WRITE).unwrap();
        (scheme, Ends { near, far: far_end, board, inbox: memory(), back: memory() })
    };

    let (done, begin, mut rng) =
        (AtomicBool::new(false), Instant::now(), Rng::for_component(seed, "soak", 0));
    let (mut resident, mut bytes, mut retransmitted, mut sent, mut lives) = (Vec::new(), 0, 0, 0, 0);
    let mut slowest: Vec<(Duration, &str)> = Vec::new();
    let changes = std::thread::scope(|scope| {
        let chaos = scope.spawn(|| chaos(&mut lab.0, seed, &done));
        // Set even if a comparison fails, so that the other thread ends.
        let stop = Stop(&done);
        for part in 1..=PARTS {
            while begin.elapsed() < time.mul_f64(part as f64 / PARTS as f64) {
                let (scheme, ends) = connect(lives);
                let born = Instant::now();
                lives += 1;
                for _ in 0..ROUNDS_A_LIFE {
                    bytes += ends.round(&mut rng, scheme);
                }
                let counters = ends.near.stats().unwrap().counters;
                retransmitted += counters.retransmitted_packets;
                sent += counters.sent_packets;
                slowest.push((born.elapsed(), scheme));
                slowest.sort_unstable_by(|one, other| other.cmp(one));
                slowest.truncate(8);
            }
            resident.push(resident_kib());
            println!(
                "{:4} s: {lives} connections, {sent} packets, {retransmitted} of them again, {} MB compared, {} KiB resident",
                begin.elapsed().as_secs(),
                bytes / 1_000_000,
                resident[part - 1]
            );
        }
        drop(stop);
        chaos.join().unwrap()
    });
    println!("troubles of links, {:?}: {:?}; slowest connections: {slowest:?}", LinkFault::ALL, changes.0);
    assert!(bytes > 0 && retransmitted > 0 && changes.0.iter().all(|times| *times > 0), "{changes:?}");
    resident
}

/// Ends the faults.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
