//! All registered components in the same situations: schemes, congestion controls, pickers, loss recovery and the
//! load balancing of switches. Every flow ends, every byte is placed once, no impossible value is reported, and
//! observation changes nothing. The outcome is a table of integers with one row for each run.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::support::{Flow, all_to_all, fat_tree, finish, impair, incast, leaf_spine, permutation, spec};
use pathweave_fabric::config::{ExternalConfig, FaultConfig, NdtConfig, NsfConfig};
use pathweave_policy::testing::{Subject, subjects};
use pathweave_policy::{Forwarding, Scheme};
use pathweave_records::{FlowRecord, RunResult};
use pathweave_sim::{NamedScheme, ObserveConfig, SimSpec};
use pathweave_topo::{Build, CrossDc, LeafSpine, TopologyConfig};
use pathweave_units::{Bytes, Duration};
use pathweave_wire::Framing;

/// Returns the situations with their names. Each test sets the scheme.
fn situations() -> [(&'static str, SimSpec); 6] {
    let any = "ecmp";
    let mut pausing = spec(leaf_spine(), &incast(16, 200_000), any);
    pausing.switch.buffer = Bytes::from_kb(900);
    let mut dropping = spec(leaf_spine(), &all_to_all(16, 30_000), any);
    dropping.switch.pfc.enabled = false;
    dropping.switch.buffer = Bytes::from_kb(500);
    impair(&mut dropping, 0.01, false);
    let mut trimming = spec(leaf_spine(), &incast(16, 200_000), any);
    trimming.switch.pfc.enabled = false;
    trimming.switch.trim.enabled = true;
    trimming.switch.trim.queue = Bytes::from_kb(40);
    // Some headers are dropped for lack of room.
    trimming.switch.trim.header_queue = Some(Bytes::from_kb(2));
    let mut faulty = spec(leaf_spine(), &permutation(16, 300_000), any);
    faulty.faults.push(FaultConfig::LinkFlap {
        link: "leaf0-spine0".into(),
        at: Duration::from_us(8),
        down_for: Duration::from_us(7),
        up_for: Duration::from_us(9),
        times: 2,
    });
    [
        ("permutation", spec(fat_tree(), &permutation(16, 300_000), any)),
        ("incast with pauses", pausing),
        ("incast with trims", trimming),
        ("all-to-all with losses", dropping),
        ("permutation with a flap", faulty),
        ("two sites", two_sites()),
    ]
}

/// Returns an incast from another site, behind external switches that answer.
fn two_sites() -> SimSpec {
    let site = TopologyConfig::LeafSpine(LeafSpine::new(2, 2, 4));
    let config = CrossDc { wan_delay: Duration::from_us(100), ..CrossDc::new(site, 2) };
    let hosts: Vec<Flow> = (8..16).map(|host| (host, 0, 200_000, 0)).collect();
    let mut spec = spec(config.build(Path::new(".")).expect("two leaf-spines"), &hosts, "ecmp");
    spec.network.mtu = Bytes::new(1_000);
    spec.network.framing = Framing::Ns3;
    spec.network.retransmission.timeout = Duration::from_ms(50);
    spec.switch.ecn.enabled = false;
    spec.switch.external = ExternalConfig {
        nsf: Some(NsfConfig::default()),
        ndt: Some(NdtConfig::default()),
        ..ExternalConfig::default()
    };
    spec
}

fn under(situation: &SimSpec, name: &str, scheme: &Scheme) -> SimSpec {
    let schemes = vec![NamedScheme { name: name.into(), scheme: scheme.clone() }];
    let mut spec = SimSpec { schemes, ..situation.clone() };
    if !matches!(scheme.forwarding, None | Some(Forwarding::Ecmp)) {
        // Middleboxes require switches that hash.
        spec.switch.external = ExternalConfig::default();
    }
    spec
}

/// Returns the end of the last flow, and the numbers of packets sent, retransmitted, dropped and out of order, of
/// notifications and of timeouts.
fn row(result: &RunResult) -> String {
    let sum = |of: fn(&FlowRecord) -> u32| result.flows.iter().map(|flow| u64::from(of(flow))).sum::<u64>();
    let done_ps = result.flows.iter().filter_map(|flow| flow.finish_ps).max().expect("flows finished");
    format!(
        "{} | {} {} {} {} | {} {}",
        done_ps / 1_000,
        sum(|flow| flow.sent_packets),
        sum(|flow| flow.retransmitted_packets),
        sum(|flow| flow.dropped_packets),
        sum(|flow| flow.ooo_packets),
        sum(|flow| flow.cnp_packets),
        sum(|flow| flow.timeouts),
    )
}

/// A change of behaviour changes the table. If it is intended, run this test with `PATHWEAVE_BLESS=1` and commit the
/// file.
#[test]
fn everything_through_every_situation() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/contract.txt");
    let mut now = String::from(
        "situation | subject | done, ns | packets sent, again, dropped, out of order | notifications, timeouts\n",
    );
    for (situation, spec) in situations() {
        for Subject { label, scheme } in subjects() {
            let result = finish(&under(&spec, &label, &scheme));
            writeln!(now, "{situation} | {label} | {}", row(&result)).expect("a string takes everything");
        }
    }
    if std::env::var_os("PATHWEAVE_BLESS").is_some() {
        std::fs::write(&file, &now).expect("the file can be written");
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    let changed: Vec<&str> = now.lines().filter(|line| !written.lines().any(|w| w == *line)).collect();
    assert!(written == now, "tests/contract.txt is not what comes out now:\n{}", changed.join("\n"));
}

#[test]
fn looking_changes_nothing() {
    let [.., (_, faulty), _] = situations();
    for Subject { label, scheme } in subjects() {
        let mut spec = under(&faulty, &label, &scheme);
        let unseen = finish(&spec).info.digest;
        spec.observe = ObserveConfig {
            interval: Duration::from_ps(777_777),
            max_samples: 1_000,
            max_events: 10,
            flows: 3,
            follow: vec![0],
            departures: true,
        };
        assert_eq!(finish(&spec).info.digest, unseen, "{label}");
    }
}
