//! Small networks and workloads, and runs that are checked from outside.

#![allow(dead_code, reason = "every test file uses its part of this")]

use std::num::NonZeroU16;
use std::path::Path;

use pathweave_fabric::config::FaultConfig;
use pathweave_records::{FlowRecord, FlowSink, FlowStatus, RunResult};
use pathweave_sim::{
    InProcess, NamedScheme, NoMonitor, RankSimulation, Ranks, RunConfig, SimSpec, Simulation, check, run,
};
use pathweave_topo::{Build, FatTree, LeafSpine, Link, NodeId, PathSets, RequestedPairs, Star, Topology};
use pathweave_units::{Bytes, Duration, HostId, Rate, Time};
use pathweave_workload::{GraphBuilder, MessageGraph, NewMessage, Stream};

/// Message: source, destination, bytes, start in nanoseconds.
pub(crate) type Flow = (u32, u32, u64, u64);

/// Returns `hosts` hosts on one switch, with links of 100 Gb/s and 1 us.
pub(crate) fn star(hosts: u32) -> Topology {
    let star = Star { rate: Rate::from_gbps(100), delay: Duration::from_us(1), ..Star::new(hosts) };
    star.build(Path::new(".")).expect("a star")
}

/// Returns two hosts connected by a cable.
pub(crate) fn back_to_back(rate: Rate, delay: Duration) -> Topology {
    let link = Link { a: NodeId(0), b: NodeId(1), rate, delay, error_rate: 0.0 };
    Topology::new("pair", 2, vec![], vec![link]).expect("two hosts and a cable")
}

/// Returns four leaves of four hosts and four spines, with links of 100 Gb/s and 1 us.
pub(crate) fn leaf_spine() -> Topology {
    let config = LeafSpine {
        host_rate: Rate::from_gbps(100),
        host_delay: Duration::from_us(1),
        ..LeafSpine::new(4, 4, 4)
    };
    config.build(Path::new(".")).expect("a leaf-spine")
}

/// Returns the fat tree of 16 hosts, with links of 100 Gb/s and 1 us.
pub(crate) fn fat_tree() -> Topology {
    fat_tree_of(100, 100, 100)
}

/// Returns the fat tree of 16 hosts with these rates at hosts, in pods and between them, in Gb/s.
pub(crate) fn fat_tree_of(hosts: u64, pods: u64, cores: u64) -> Topology {
    let config = FatTree {
        host_rate: Rate::from_gbps(hosts),
        host_delay: Duration::from_us(1),
        tor_agg_rate: Some(Rate::from_gbps(pods)),
        agg_core_rate: Some(Rate::from_gbps(cores)),
        ..FatTree::k_ary(4)
    };
    config.build(Path::new(".")).expect("a fat tree")
}

pub(crate) fn graph(hosts: u32, flows: &[Flow]) -> MessageGraph {
    let mut builder = GraphBuilder::new(hosts);
    let group = builder.group("test", None).expect("the first group");
    for &(src, dst, size, start_ns) in flows {
        let message = NewMessage {
            src: HostId(src),
            dst: HostId(dst),
            size: Bytes::new(size),
            start: Time::from_ns(start_ns),
            group,
            stream: Stream::Own,
            job: None,
        };
        builder.message(message).expect("hosts exist and differ");
    }
    builder.finish().expect("no cycles")
}

/// Returns a permutation: every host sends to the fifth host after it, which is at another leaf.
pub(crate) fn permutation(hosts: u32, size: u64) -> Vec<Flow> {
    (0..hosts).map(|host| (host, (host + 5) % hosts, size, 0)).collect()
}

/// Returns an incast of all other hosts to host 0.
pub(crate) fn incast(hosts: u32, size: u64) -> Vec<Flow> {
    (1..hosts).map(|host| (host, 0, size, 0)).collect()
}

pub(crate) fn all_to_all(hosts: u32, size: u64) -> Vec<Flow> {
    (0..hosts * hosts)
        .map(|pair| (pair / hosts, pair % hosts))
        .filter(|(src, dst)| src != dst)
        .map(|(src, dst)| (src, dst, size, 0))
        .collect()
}

/// Returns a spec with default switches (PFC and marking on), 4 KB packets as WRITE in RoCEv2 frames, placements
/// verified, and no samples.
pub(crate) fn spec(topology: Topology, flows: &[Flow], scheme: &str) -> SimSpec {
    let graph = graph(topology.hosts(), flows);
    with_graph(topology, graph, scheme)
}

pub(crate) fn with_graph(topology: Topology, graph: MessageGraph, scheme: &str) -> SimSpec {
    let scheme = NamedScheme::find(scheme).expect("a scheme of the policy crate");
    SimSpec {
        run: RunConfig {
            until: Some(Duration::from_ms(5_000)),
            max_events: Some(50_000_000),
            verify: true,
            ..RunConfig::default()
        },
        ..SimSpec::new("test", topology, graph, scheme)
    }
}

/// Makes switches drop packets instead of pausing.
pub(crate) fn lossy(mut spec: SimSpec) -> SimSpec {
    spec.switch.pfc.enabled = false;
    spec
}

/// Makes every link between switches lose (or corrupt) packets at random, in both directions.
pub(crate) fn impair(spec: &mut SimSpec, probability: f64, corrupt: bool) {
    let topology = spec.topology.clone();
    for link in topology.links().iter().filter(|l| !topology.is_host(l.a) && !topology.is_host(l.b)) {
        let link = format!("{}-{}", topology.node_name(link.a), topology.node_name(link.b));
        let at = Duration::ZERO;
        spec.faults.push(if corrupt {
            FaultConfig::LinkCorruption { link, at, probability, until: None }
        } else {
            FaultConfig::LinkLoss { link, at, probability, until: None }
        });
    }
}

/// Runs a spec, checks the invariants of its result, and checks that neither threads nor ranks affect it.
pub(crate) fn play(spec: &SimSpec) -> RunResult {
    let result = run(spec, &mut NoMonitor).expect("a valid spec");
    same_with_threads(spec, &result);
    same_with_ranks(spec, &result);
    same_when_flows_leave(spec, &result);
    let found = check::violations(&result, spec.switch.pfc.enabled);
    assert!(found.is_empty(), "seed {}, {:?}: {found:#?}", spec.seed, spec.schemes[0].name);
    for flow in &result.flows {
        let Some(fct) = flow.fct_ps() else { continue };
        let name = &spec.schemes[usize::from(flow.scheme)].name;
        assert!(fct >= flow.ideal_fct_ps, "{name}: faster than the ideal: {flow:?}");
    }
    result
}

/// Repeats the run with three threads and compares all observations.
fn same_with_threads(spec: &SimSpec, alone: &RunResult) {
    let threads = NonZeroU16::new(3);
    let together = run(&SimSpec { threads, ..spec.clone() }, &mut NoMonitor).expect("a valid spec");
    same(spec, alone, together, "three threads");
}

/// Repeats the run with three ranks, the first of which has two threads.
fn same_with_ranks(spec: &SimSpec, alone: &RunResult) {
    // A rank needs at least one node.
    let ranks = InProcess::ranks(3.min(spec.topology.nodes() as u16));
    let results: Vec<Option<RunResult>> = std::thread::scope(|scope| {
        let start = |mut rank: InProcess| {
            scope.spawn(move || {
                let threads = NonZeroU16::new(if rank.own() == 0 { 2 } else { 1 });
                let spec = SimSpec { threads, ..spec.clone() };
                RankSimulation::new(&spec, &mut rank).expect("a valid spec").run(&mut NoMonitor)
            })
        };
        let running: Vec<_> = ranks.into_iter().map(start).collect();
        running.into_iter().map(|rank| rank.join().expect("no panic")).collect()
    });
    let found: Vec<RunResult> = results.into_iter().flatten().collect();
    let [together] = <[RunResult; 1]>::try_from(found).expect("rank 0 has the result, and no other");
    same(spec, alone, together, "three ranks");
}

/// Repeats the run with three threads, while records are passed to a sink during the run.
fn same_when_flows_leave(spec: &SimSpec, kept: &RunResult) {
    let spec = SimSpec { threads: NonZeroU16::new(3), ..spec.clone() };
    let mut sink = Records::default();
    let simulation = Simulation::new(&spec).expect("a valid spec");
    let mut together = simulation.recorded_by(Some(&mut sink)).run(&mut NoMonitor);
    assert!(together.flows.is_empty());
    together.flows = sink.0;
    same(&spec, kept, together, "records that leave");
}

/// Sink that keeps all records.
#[derive(Default)]
struct Records(Vec<FlowRecord>);

impl FlowSink for Records {
    fn take(&mut self, records: &[FlowRecord]) {
        self.0.extend_from_slice(records);
    }
}

fn same(spec: &SimSpec, alone: &RunResult, mut together: RunResult, who: &str) {
    together.info.cpu_s = alone.info.cpu_s;
    if equal(alone, &together) {
        return;
    }
    let (expected, found) = (format!("{alone:#?}"), format!("{together:#?}"));
    let differs = expected.lines().zip(found.lines()).enumerate().find(|(_, (a, b))| a != b);
    if let Some((line, (expected, found))) = differs {
        panic!(
            "{:?}, seed {}, line {line}: {expected} with one thread, {found} with {who}",
            spec.schemes[0].name, spec.seed
        );
    }
    assert_eq!(found.len(), expected.len());
}

/// Returns true if the results are equal. NaN values do not compare equal, in which case the formatted results are
/// compared, which takes far longer.
fn equal(a: &RunResult, b: &RunResult) -> bool {
    let RunResult {
        info,
        flows,
        streamed: None,
        groups,
        series,
        events,
        events_not_recorded,
        nodes,
        links,
        jobs,
        labels,
        activities,
        critical,
        waits,
        balancing,
        middleboxes,
        departures,
    } = a
    else {
        return false;
    };
    b.streamed.is_none()
        && format!("{info:?}") == format!("{:?}", b.info)
        && *flows == b.flows
        && *groups == b.groups
        && *series == b.series
        && *events == b.events
        && *events_not_recorded == b.events_not_recorded
        && *nodes == b.nodes
        && *links == b.links
        && *jobs == b.jobs
        && *labels == b.labels
        && *activities == b.activities
        && *critical == b.critical
        && *waits == b.waits
        && *balancing == b.balancing
        && *middleboxes == b.middleboxes
        && *departures == b.departures
}

/// Runs a spec as [`play`] does, and checks that every flow finishes.
pub(crate) fn finish(spec: &SimSpec) -> RunResult {
    let result = play(spec);
    for flow in &result.flows {
        assert_eq!(
            flow.status,
            FlowStatus::Finished,
            "{}: {:?} {}; {flow:?}",
            spec.schemes[0].name,
            result.info.ended,
            result.info.ended_detail
        );
        assert!(flow.acked_ps >= flow.finish_ps, "acknowledged before it arrived: {flow:?}");
    }
    result
}

/// Makes the sources choose among all shortest paths.
pub(crate) fn sourced(mut spec: SimSpec) -> SimSpec {
    let config = pathweave_topo::PathSetConfig::AllShortest(pathweave_topo::AllShortest::default());
    let sets = PathSets::build(&config, &spec.topology, Path::new("."), RequestedPairs::All);
    spec.routing = pathweave_sim::RouteChoice::Sources(std::sync::Arc::new(sets.expect("there are paths")));
    spec
}
