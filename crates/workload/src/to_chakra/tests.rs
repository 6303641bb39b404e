//! Round trips: a graph as a trace that is read again.

use std::path::Path;

use pathweave_units::{Bytes, Rate, Time};
use proptest::prelude::*;

use super::*;
use crate::bounds::run_ideal;
use crate::builder::{GraphBuilder, NewMessage};
use crate::collective::Algorithms;
use crate::config::{WorkloadConfig, build};
use crate::env::WorkloadEnv;
use crate::files::{process_groups_file, write_chakra_rank};
use crate::graph::{Compute, Message};
use crate::kinds::{Chakra, Traffic};

fn graph_of(toml: &str, hosts: u32, base: &Path) -> MessageGraph {
    let traffic: Traffic = toml::from_str(toml).unwrap();
    let env = WorkloadEnv { base_dir: base.to_owned(), ..WorkloadEnv::new(hosts, Rate::from_gbps(8)) };
    build(&[WorkloadConfig::new(traffic)], &env).unwrap().graph
}

/// Returns the ends of messages: sender, receiver, size, connection, end. A byte takes a nanosecond.
fn ends(graph: &MessageGraph) -> Vec<(u32, u32, u64, u32, Time)> {
    let mut ends = Vec::new();
    let byte = |m: &Message| Duration::from_ns(m.size.get());
    run_ideal(graph, byte, |id, _, end| {
        if let Some(m) = graph.messages().get(id.index()) {
            // Private connections are numbered by the order of starts. In a trace, starts are computations.
            let stream = if m.has_own_stream() { OWN } else { m.stream };
            ends.push((m.src.0, m.dst.0, m.size.get(), stream, end));
        }
    });
    ends.sort_unstable();
    ends
}

/// Returns the first task or part in which two graphs differ.
fn difference(one: &MessageGraph, other: &MessageGraph) -> String {
    let counts =
        |graph: &MessageGraph| (graph.messages().len(), graph.computes().len(), graph.dependency_count());
    let tasks = (0..one.task_count().min(other.task_count()) as u32).map(TaskId);
    let of = |graph: &MessageGraph, id| {
        let after: Vec<TaskId> = graph.all_dependents(id).collect();
        let label = graph.label(id).map(|label| graph.labels()[label as usize].clone());
        format!("{id:?} {:?} {after:?} {label:?}", graph.task(id))
    };
    let mut pairs = tasks.map(|id| (of(one, id), of(other, id)));
    format!("{:?} and {:?}: {:#?}", counts(one), counts(other), pairs.find(|(one, other)| one != other))
}

/// Returns the end of the last task.
fn last(graph: &MessageGraph) -> Time {
    let mut last = Time::ZERO;
    run_ideal(graph, |m| Duration::from_ns(m.size.get()), |_, _, end| last = last.max(end));
    last
}

/// Writes a trace to disk and reads it again.
fn read_again(trace: &ChakraTrace, hosts: u32, algorithms: Algorithms) -> MessageGraph {
    let folder = tempfile::tempdir().unwrap();
    for (rank, nodes) in (0..).zip(&trace.ranks) {
        std::fs::write(folder.path().join(format!("t.{rank}.et")), write_chakra_rank(rank, nodes)).unwrap();
    }
    let file = folder.path().join("process_groups.json");
    std::fs::write(&file, process_groups_file(&trace.groups)).unwrap();
    let chakra = |process_groups: Option<String>| Chakra {
        trace: ".".to_owned(),
        process_groups,
        dims: Vec::new(),
        hosts: Vec::new().into(),
        algorithms: algorithms.clone(),
        peak_tflops: None,
    };
    let env =
        WorkloadEnv { base_dir: folder.path().to_owned(), ..WorkloadEnv::new(hosts, Rate::from_gbps(8)) };
    let build = |chakra| build(&[WorkloadConfig::new(Traffic::Chakra(chakra))], &env).unwrap().graph;
    let graph = build(chakra(None));
    // The file of groups agrees with the trace.
    assert_eq!(graph, build(chakra(Some("process_groups.json".to_owned()))));
    graph
}

#[test]
fn a_trace_that_was_read_is_written_as_the_same_graph() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let graph = graph_of("kind = \"chakra\"\ntrace = \"scenarios/chakra-ring\"", 8, &repository);
    let trace = to_chakra(&graph).unwrap();
    assert_eq!((trace.lost.len(), trace.notes.len(), trace.groups.len()), (0, 0, 0));
    assert_eq!(trace.ranks[0].len(), 35, "as many nodes as the file has");
    let again = read_again(&trace, 8, Algorithms::default());
    assert!(again == graph, "{}", difference(&again, &graph));
}

/// Every operation and algorithm becomes one node per rank. Converting the result again gives the same trace.
#[test]
fn collectives_stay_collectives() {
    use crate::algorithm::Algorithm::*;
    let here = Path::new(".");
    for (operation, algorithm, field) in [
        ("all-reduce", Ring, "all_reduce"),
        ("all-reduce", DoubleBinaryTree, "all_reduce"),
        ("all-reduce", HalvingDoubling, "all_reduce"),
        ("all-reduce", Hierarchical, "all_reduce"),
        ("reduce-scatter", Ring, "reduce_scatter"),
        ("all-gather", Ring, "all_gather"),
        ("all-gather", HalvingDoubling, "all_gather"),
        ("all-to-all", Direct, "all_to_all"),
        ("all-to-all", Pairwise, "all_to_all"),
        ("all-to-all", Bruck, "all_to_all"),
        ("broadcast", Ring, "broadcast"),
        ("broadcast", Binomial, "broadcast"),
        ("reduce", Ring, "broadcast"),
    ] {
        let name = algorithm.name();
        let toml = format!(
            "kind = \"collective\"\noperation = \"{operation}\"\nalgorithm = \"{name}\"\nsize = \"16KB\"\n\
             groups = [[7, 3, 9, 1, 0, 2, 4, 5, 6, 8, 10, 11, 12, 13, 14, 15], [16, 17, 18, 19, 20, 21, 22, 23]]\n\
             repetitions = 3\ncompute = \"1500ns\""
        );
        let graph = graph_of(&toml, 24, here);
        let trace = to_chakra(&graph).unwrap();
        let case = format!("{operation} by {name}");
        // In the first group, trees may be written as messages, because they are not among ranks in the order
        // of their numbers.
        let of_second =
            trace.ranks[16].iter().filter(|node| matches!(node.action, ChakraAction::Collective { .. }));
        assert_eq!(of_second.count(), 3, "{case}");
        let is_default = trace.notes.iter().all(|note| !note.contains("algorithms."));
        assert_eq!(is_default, matches!(algorithm, Ring | Direct), "{case}: {:?}", trace.notes);
        let config = format!("{field} = \"{name}\"");
        let algorithms: Algorithms = toml::from_str(&config).unwrap();
        let again = read_again(&trace, 24, algorithms);
        let same = ends(&again) == ends(&graph);
        assert!(same, "{case}");
        assert_eq!(last(&again), last(&graph), "{case}");
        let twice = to_chakra(&again).unwrap();
        assert_eq!((&twice.groups, twice.lost.len()), (&trace.groups, 0), "{case}");
    }
}

#[test]
fn dependencies_that_a_trace_cannot_express_are_refused() {
    let mut builder = GraphBuilder::new(3);
    let compute = |host| Compute {
        host: Some(HostId(host)),
        duration: Duration::from_ns(5),
        start: Time::ZERO,
        job: None,
        core: None,
        core_taken: Duration::ZERO,
    };
    let (one, other) = (builder.compute(compute(0)).unwrap(), builder.compute(compute(1)).unwrap());
    builder.after(other, one).unwrap();
    let graph = builder.finish().unwrap();
    assert_eq!(
        to_chakra(&graph).unwrap_err(),
        "a task of host 1 waits for a computation elsewhere; a node of Chakra waits for nodes of its own rank"
    );
    let mut builder = GraphBuilder::new(3);
    let group = builder.group("g", None).unwrap();
    let message = |src, dst| NewMessage {
        src: HostId(src),
        dst: HostId(dst),
        size: Bytes::new(9),
        start: Time::ZERO,
        group,
        stream: Stream::Own,
        job: None,
    };
    let (one, third) = (builder.message(message(0, 1)).unwrap(), builder.message(message(2, 1)).unwrap());
    builder.after(third, one).unwrap();
    let why = to_chakra(&builder.finish().unwrap()).unwrap_err();
    assert!(why.starts_with("a task of host 2 waits for a message from 0 to 1; "), "{why}");
    assert!(to_chakra(&GraphBuilder::new(3).finish().unwrap()).unwrap_err().contains("no messages"));
}

/// Makes tasks on four hosts. Each task waits for earlier ones whose end its host observes.
fn graph_of_tasks(tasks: &[(bool, u64, u64, Vec<usize>)]) -> MessageGraph {
    let mut builder = GraphBuilder::new(4);
    let group = builder.group("g", None).unwrap();
    let job = Some(builder.job("g: g".to_owned(), group).unwrap());
    // For each task: the host where it begins, and the hosts that observe its end.
    let mut places: Vec<(u32, [u32; 2])> = Vec::new();
    let mut drafts = Vec::new();
    for (i, (is_message, size, start, after)) in tasks.iter().enumerate() {
        let src = (*size % 4) as u32;
        let dst = (src + 1 + (*start % 3) as u32) % 4;
        let start = Time::from_ps(start / 2 * 300_001);
        let draft = if *is_message {
            let stream =
                if size.is_multiple_of(3) { Stream::Own } else { Stream::Shared((*size % 2) as u32) };
            let (src, dst, size) = (HostId(src), HostId(dst), Bytes::new(*size));
            builder.message(NewMessage { src, dst, size, start, group, stream, job })
        } else {
            let duration = Duration::from_ps(size / 4 * 700_000);
            builder.compute(Compute {
                host: Some(HostId(src)),
                duration,
                start,
                job,
                core: None,
                core_taken: Duration::ZERO,
            })
        };
        let draft = draft.unwrap();
        let ends = if *is_message { [src, dst] } else { [src, src] };
        for on in after.iter().filter(|_| i > 0).map(|on| on % i) {
            if places[on].1.contains(&src) {
                builder.after(draft, drafts[on]).unwrap();
            }
        }
        if size.is_multiple_of(5) {
            builder.delay(draft, Duration::from_ns(*size));
        }
        places.push((src, ends));
        drafts.push(draft);
    }
    builder.finish().unwrap()
}

proptest! {
    /// After a round trip, all tasks end when they did, on the same connections. Converting the result again
    /// gives the same trace.
    #[test]
    fn a_trace_takes_the_place_of_a_graph(
        tasks in prop::collection::vec((any::<bool>(), 1u64..40, 0u64..30, prop::collection::vec(0usize..50, 0..4)), 1..40),
    ) {
        let graph = graph_of_tasks(&tasks);
        let trace = to_chakra(&graph).unwrap();
        let again = read_again(&trace, 4, Algorithms::default());
        prop_assert_eq!(ends(&again), ends(&graph));
        prop_assert_eq!(last(&again), last(&graph));
        let third = read_again(&to_chakra(&again).unwrap(), 4, Algorithms::default());
        let counts = |graph: &MessageGraph| (graph.messages().len(), graph.computes().len(), graph.dependency_count());
        prop_assert_eq!((ends(&third), counts(&third)), (ends(&again), counts(&again)), "what was read does not grow");
    }
}
