//! DLBF on a fabric: oracles 16 to 18 of its specification, and a mix in which flows leave their paths.

use std::path::Path;

use crate::support::{fat_tree, leaf_spine, permutation, play, spec, with_graph};
use pathweave_policy::{CnpPolicy, DlbfConfig, PolicyConfig, Ports, Scheme, find_scheme};
use pathweave_records::{FlowRecord, FlowStatus, RunResult};
use pathweave_sim::{GroupSpec, NamedScheme, Role, SimSpec};
use pathweave_topo::{Build, FatTree};
use pathweave_units::{Bytes, Duration, HostId, Rate, Time};
use pathweave_workload::{GraphBuilder, MAX_MESSAGE_SIZE, NewMessage, Stream};

const ON_MARK: CnpPolicy = CnpPolicy::OnMark { interval: Duration::ZERO };
const ON_MARK_OR_GAP: CnpPolicy = CnpPolicy::OnMarkOrGap { interval: Duration::ZERO };

fn scheme(name: &str, cnp: CnpPolicy) -> Scheme {
    let dlbf = (find_scheme("dlbf").expect("listed").make)();
    let PolicyConfig::Dlbf(DlbfConfig { cc, .. }) = &dlbf.policy else { panic!("another policy") };
    let mut scheme = (find_scheme(name).expect("listed").make)();
    if let PolicyConfig::Split(split) = &mut scheme.policy {
        split.cc = cc.clone();
    }
    Scheme {
        cnp,
        recovery: dlbf.recovery,
        reordering: dlbf.reordering,
        paths: 16,
        ports: Ports::Distinct,
        ..scheme
    }
}

fn fcts(result: &RunResult) -> Vec<Option<u64>> {
    result.flows.iter().map(FlowRecord::fct_ps).collect()
}

/// Oracle 17.
#[test]
fn without_marks_it_is_ecmp_on_the_same_ports() {
    let run = |name: &str| {
        let mut spec = spec(fat_tree(), &permutation(16, 300_000), "ecmp");
        spec.schemes = vec![NamedScheme { name: name.to_owned(), scheme: scheme(name, ON_MARK_OR_GAP) }];
        spec.switch.ecn.enabled = false;
        play(&spec)
    };
    let (ecmp, dlbf) = (run("ecmp-sr"), run("dlbf"));
    assert_eq!(fcts(&dlbf), fcts(&ecmp));
    assert!(dlbf.flows.iter().all(|flow| flow.copied_packets == 0 && flow.notice_packets == 0));
}

/// Oracle 18.
#[test]
fn the_network_of_its_evaluation() {
    let config = FatTree {
        k: None,
        pods: Some(8),
        tors_per_pod: Some(4),
        hosts_per_tor: Some(10),
        aggs_per_pod: Some(4),
        cores: Some(16),
        host_rate: Rate::from_gbps(400),
        host_delay: Duration::from_ns(100),
        ..FatTree::k_ary(8)
    };
    let topology = config.build(Path::new(".")).expect("a fat tree");
    assert_eq!((topology.hosts(), topology.switches().len(), topology.links().len()), (320, 80, 576));
    assert_eq!(topology.tiers()[0].oversubscription(), Some(2.5));
}

/// With one port for each route, a sprayed message loads every route. Between pods of this tree there are four.
#[test]
fn distinct_ports_take_every_way() {
    let mut spec = spec(fat_tree(), &[(0, 15, 2_000_000, 0)], "rps-nocc");
    spec.schemes[0].scheme.paths = 16;
    let ways = |spec: &SimSpec| {
        let result = play(spec);
        // Traffic up into the four core switches.
        let up = result.links.iter().filter(|link| link.name.contains(">core") && link.tx_bytes > 100_000);
        up.map(|link| link.tx_bytes).collect::<Vec<_>>()
    };
    spec.schemes[0].scheme.ports = Ports::Distinct;
    let used = ways(&spec);
    let total: u64 = used.iter().sum();
    assert_eq!(used.len(), 4, "{used:?}");
    assert!(
        used.iter().all(|&bytes| bytes * 5 > total && bytes * 3 < total),
        "{used:?}: about a quarter each"
    );
}

/// Returns a mix of two groups: messages of 1 MB across the leaves, and elephants under ECMP.
fn mix(name: &str, cnp: CnpPolicy) -> SimSpec {
    let mut builder = GraphBuilder::new(16);
    let groups = [("foreground", None), ("background", Some("ecmp"))]
        .map(|(name, scheme)| builder.group(name, scheme).expect("two groups"));
    let mut message = |src: u32, dst: u32, size, group| {
        let start = Time::ZERO;
        let (src, dst) = (HostId(src), HostId(dst));
        let new = NewMessage { src, dst, size, start, group, stream: Stream::Own, job: None };
        builder.message(new).expect("hosts exist")
    };
    for host in [0, 1, 4, 5, 8, 9, 12, 13] {
        message(host, (host + 4) % 16, Bytes::from_mb(1), groups[0]);
    }
    for host in [2, 3, 6, 7, 10, 11, 14, 15] {
        message(host, (host + 4) % 16, MAX_MESSAGE_SIZE, groups[1]);
    }
    let mut spec = with_graph(leaf_spine(), builder.finish().expect("no cycles"), "ecmp");
    spec.schemes = vec![
        NamedScheme { name: name.to_owned(), scheme: scheme(name, cnp) },
        NamedScheme { name: "ecmp".into(), scheme: scheme("ecmp-sr", cnp) },
    ];
    spec.groups = spec
        .graph
        .groups()
        .iter()
        .map(|group| match group.name.as_str() {
            "background" => GroupSpec { role: Role::Background, ..GroupSpec::new(1) },
            _ => GroupSpec::new(0),
        })
        .collect();
    spec.switch.ecn.kmin = Bytes::from_kb(50);
    spec.switch.ecn.kmax = Bytes::from_kb(200);
    spec
}

#[test]
fn in_a_mix_it_leaves_paths_and_keeps_the_order() {
    let (mut moved, mut late, mut sprayed, mut sent) = (0, 0, 0, 0);
    let (mut slow, mut slow_sprayed) = (0, 0);
    for seed in 1..=5 {
        let run = |name| play(&SimSpec { seed, ..mix(name, ON_MARK_OR_GAP) });
        let (dlbf, rps) = (run("dlbf"), run("rps"));
        assert!(dlbf.foreground().all(|flow| flow.status == FlowStatus::Finished), "seed {seed}");
        let sum = |run: &RunResult, get: fn(&FlowRecord) -> u32| run.foreground().map(get).sum::<u32>();
        moved += sum(&dlbf, |flow| flow.copied_packets + flow.notice_packets);
        sent += sum(&dlbf, |flow| flow.sent_packets);
        late += sum(&dlbf, |flow| flow.ooo_packets);
        sprayed += sum(&rps, |flow| flow.ooo_packets);
        let total = |run: &RunResult| run.foreground().filter_map(FlowRecord::fct_ps).sum::<u64>();
        slow += total(&dlbf);
        slow_sprayed += total(&rps);
    }
    assert!(moved > 0, "no path was left");
    assert!(
        late < sprayed && slow < slow_sprayed,
        "{late} packets late, {sprayed} when sprayed; {slow}, {slow_sprayed} ps"
    );
    assert!(moved * 20 < sent, "{moved} copies and notices for {sent} packets");
}

/// Messages in progress together on one queue pair: an event of the queue pair is counted only once.
#[test]
fn shared_packets_count_for_one_message() {
    let mut builder = GraphBuilder::new(16);
    let group = builder.group("all", None).expect("a group");
    for _ in 0..4 {
        let (src, dst) = (HostId(0), HostId(15));
        let new = NewMessage {
            src,
            dst,
            size: Bytes::new(40_960),
            start: Time::ZERO,
            group,
            stream: Stream::Shared(0),
            job: None,
        };
        builder.message(new).expect("hosts exist");
    }
    let result = play(&with_graph(fat_tree(), builder.finish().expect("no cycles"), "ecmp"));
    assert_eq!(result.flows.iter().map(|flow| flow.sent_packets).sum::<u32>(), 40);
}

/// Oracle 16: reordering costs time only through the notifications for gaps.
#[test]
fn without_notifications_for_gaps_spraying_loses_nothing() {
    // Marks are off, so that nothing else causes notifications.
    let slowest = |name: &str, cnp| {
        let mut spec = mix(name, cnp);
        spec.switch.ecn.enabled = false;
        let result = play(&spec);
        result.foreground().filter_map(FlowRecord::fct_ps).max().expect("finished")
    };
    let (ecmp, sprayed) = (slowest("ecmp-sr", ON_MARK), slowest("rps", ON_MARK));
    let notified = slowest("rps", ON_MARK_OR_GAP);
    assert!(sprayed <= ecmp + ecmp / 10, "{sprayed} ps, ECMP {ecmp} ps");
    assert!(notified > 2 * sprayed, "{notified} ps with notifications, {sprayed} ps without");
}
