//! Shortage of file descriptors or ports: devices open fewer paths, as long as there is at least one.
//!
//! Descriptors belong to the process, and ports to a network namespace. This program therefore has one test of each,
//! and they run one after the other.
#![allow(unsafe_code, reason = "makes a network namespace")]

mod support;

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pathweave_datapath::backend::SourcePorts;
use pathweave_datapath::{Access, Device, DeviceConfig, Loops, OpenError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::{Pair, done, pattern, region_of};

const PATHS: u16 = 12;

fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn config() -> DeviceConfig {
    DeviceConfig { paths: PATHS, ..DeviceConfig::loopback() }
}

/// Permits the process to open `more` further descriptors: the system assigns the lowest free number, below the
/// limit.
fn limit(more: usize) {
    let limits = getrlimit(Resource::Nofile);
    // The listing needs a descriptor.
    setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, ..limits }).unwrap();
    let listed: Vec<u64> = fs::read_dir("/proc/self/fd")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap())
        .collect();
    // Except for the descriptor of the listing itself.
    let is_open =
        |number: u64| listed.contains(&number) && fs::read_link(format!("/proc/self/fd/{number}")).is_ok();
    let first_beyond = (0..).filter(|number| !is_open(*number)).nth(more).unwrap();
    setrlimit(Resource::Nofile, Rlimit { current: Some(first_beyond), ..limits }).unwrap();
}

/// Transfers bytes in both directions.
fn exchange(pair: &Pair) {
    let bytes = pattern(300_000, 4);
    let board = pair.board(bytes.len(), Access::READ_WRITE);
    pair.near.write(1, region_of(&bytes).all(), board.remote(0)).unwrap();
    assert_eq!(done(&pair.near, 1), bytes.len() as u64);
    assert!(board.region().to_vec(0..bytes.len()).unwrap() == bytes);
}

#[test]
fn with_few_descriptors_there_are_fewer_paths() {
    let _alone = alone();
    let before = getrlimit(Resource::Nofile);
    // Counted while no device has a thread, which opens files of its own. The limit covers the waker, the receive
    // socket, and nine paths, of which half are kept.
    limit(11);
    let client = Device::open(config()).unwrap();
    setrlimit(Resource::Nofile, before).unwrap();
    let server = Device::open(config()).unwrap();
    assert_eq!((client.paths(), server.paths()), (4, PATHS));
    let pair = Pair::of(client, server);
    assert_eq!(pair.near.info().paths, 4);
    exchange(&pair);
    drop(pair);
    limit(3);
    let least = Device::open(config()).unwrap();
    assert_eq!(least.paths(), 1, "the last is kept");
    drop(least);
    for none in [0, 1, 2] {
        limit(none);
        let refused = Device::open(config()).err();
        assert!(matches!(refused, Some(OpenError::System { .. })), "{none}: {refused:?}");
    }
    setrlimit(Resource::Nofile, before).unwrap();
    assert_eq!(Device::open(config()).unwrap().paths(), PATHS);
}

/// Runs the test in a separate network namespace with these free ports only. Skips it without the privilege to create
/// one.
#[allow(clippy::print_stderr, reason = "says why a test is skipped")]
fn with_ports(range: &'static str, test: impl FnOnce() + Send + 'static) {
    let elsewhere = std::thread::spawn(move || {
        // SAFETY: changes the namespace of this thread alone, and of those that it starts.
        let isolated = unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0;
        let is_up =
            || Command::new("ip").args(["link", "set", "lo", "up"]).status().is_ok_and(|it| it.success());
        if !isolated || !is_up() {
            eprintln!("skipped: no right to a network namespace, or no ip");
            return;
        }
        fs::write("/proc/sys/net/ipv4/ip_local_port_range", range).unwrap();
        test();
    });
    elsewhere.join().unwrap();
}

#[test]
fn with_few_ports_there_are_fewer_paths() {
    let _alone = alone();
    with_ports("20001 20012", || {
        // A receive port and eleven paths, of which five are kept; then a receive port and five paths, of which two
        // are kept.
        let server = Device::open(config()).unwrap();
        let client = Device::open(config()).unwrap();
        assert_eq!((server.paths(), client.paths()), (5, 2));
        exchange(&Pair::of(client, server));
        let ports = |from| DeviceConfig { source_ports: SourcePorts::From(from), paths: 3, ..config() };
        let named = Device::open(ports(30_001)).unwrap();
        assert_eq!(named.paths(), 3);
        // Explicit ports are all opened, or none.
        let refused = Device::open(ports(30_000)).err();
        assert!(matches!(refused, Some(OpenError::PortInUse { .. })), "{refused:?}");
    });
}

#[test]
fn no_path_of_a_loop_takes_the_port_of_another() {
    let _alone = alone();
    with_ports("20001 20040", || {
        let config = DeviceConfig { bind: "127.0.0.1:20001".parse().unwrap(), ..config() };
        for _ in 0..20 {
            let loops = Loops::open(&config, 3).expect("nobody else is here");
            let ports: Vec<u16> = loops.addresses().iter().map(SocketAddr::port).collect();
            assert_eq!(ports, [20_001, 20_002, 20_003]);
        }
    });
}
