//! Outages of a host's only link: transfers continue soon after the link is up again.

#![allow(clippy::print_stdout, clippy::print_stderr)] // Prints what is skipped and measured.

#[allow(dead_code, clippy::print_stderr)] // Each test file uses a part of it; skips are printed.
mod common;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use common::{TestLab, privileged};
use pathweave_datapath::secure::{ClusterKey, Protection};
use pathweave_datapath::{Access, Device, DeviceConfig, Region, Registration, Status};
use pathweave_lab::{Lab, LinkState, Settings};
use pathweave_topo::{Build, LeafSpine, NodeId};
use pathweave_units::{Rate, Rng};

const MTU_BYTES: u32 = 1_500;
const MESSAGE: usize = 20_000;
const PATIENCE: Duration = Duration::from_secs(20);
/// Longest time without a completion while the link is up.
const LONGEST: Duration = Duration::from_secs(2);

fn device(lab: &Lab, host: NodeId) -> Device {
    let mut config = DeviceConfig::new(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
    config.fit_link(MTU_BYTES as usize).unwrap();
    (config.paths, config.line_rate) = (16, Rate::from_mbps(100));
    (config.protection, config.key) = (Protection::Encrypt, Some(ClusterKey::from_bytes([5; 32])));
    config.peer_timeout = Duration::from_secs(15);
    lab.inside(host, || Device::open(config)).unwrap().unwrap()
}

/// Outage and its effect.
struct Outage {
    down: Duration,
    /// Time from the end of the outage to the next completion.
    silence: Duration,
    /// Longest time between completions in the second after that.
    gap: Duration,
}

/// Runs outages of a tenth of a second to four seconds.
fn outages(count: u32, seed: u64) -> Vec<Outage> {
    let topology = LeafSpine::new(2, 2, 1).build(Path::new(".")).unwrap();
    let settings =
        Settings { mtu_bytes: MTU_BYTES, queue_bytes: 150_000, ..Settings::new("1/1000".parse().unwrap()) };
    let mut lab = TestLab::new(topology, settings);
    let [near, far] = ["host0", "host1"].map(|name| device(&lab.0, lab.0.node(name).unwrap()));
    let listener = far.listen().unwrap();
    let address = lab.0.plan().node(lab.0.node("host1").unwrap()).address;
    let connection = near.connect((address, far.local_addr().port()).into()).unwrap();
    let other_end = listener.accept(PATIENCE).unwrap();
    let board: Registration = far.register(&Region::zeroed(MESSAGE).unwrap(), Access::READ_WRITE).unwrap();
    let source = Region::from_bytes(&[7; MESSAGE]).unwrap();
    let link = lab.0.link("host0-leaf0").unwrap();
    let mut rng = Rng::for_component(seed, "outage", 0);
    let write = || {
        connection.write(1, source.all(), board.remote(0)).unwrap();
        let done = connection.wait(PATIENCE).expect("a completion");
        assert_eq!(done.status, Status::Success, "{done:?}, {:?}", connection.close_reason());
    };
    let outages = (0..count)
        .map(|_| {
            (0..5).for_each(|_| write());
            let down = Duration::from_millis(u64::from(100 + rng.below(3_900)));
            lab.0.set_link(link, LinkState::Down).unwrap();
            connection.write(1, source.all(), board.remote(0)).unwrap();
            std::thread::sleep(down);
            lab.0.set_link(link, LinkState::Up).unwrap();
            let up = Instant::now();
            let done = connection.wait(PATIENCE).expect("a completion");
            assert_eq!(done.status, Status::Success, "{done:?}, {:?}", connection.close_reason());
            let (silence, mut gap) = (up.elapsed(), Duration::ZERO);
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_secs(1) {
                let last = Instant::now();
                write();
                gap = gap.max(last.elapsed());
            }
            Outage { down, silence, gap }
        })
        .collect();
    drop(other_end);
    outages
}

#[test]
fn an_outage_of_the_only_link_costs_little_more_than_itself() {
    if !privileged("an_outage_of_the_only_link_costs_little_more_than_itself") {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u32>().expect("a number"));
    let (count, seed) = (number("OUTAGES").unwrap_or(4), number("OUTAGE_SEED").unwrap_or(1));
    println!("{count} outages, seed {seed} (OUTAGES, OUTAGE_SEED)");
    for Outage { down, silence, gap } in outages(count, seed.into()) {
        println!("{down:?} down: {silence:?} until the next completion, then at most {gap:?} between two");
        // Timeouts double up to 100 ms. An overloaded machine may take longer.
        assert!(silence < LONGEST && gap < LONGEST, "{down:?} down: {silence:?}, then {gap:?}");
    }
}
