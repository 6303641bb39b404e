use std::path::Path;

use pathweave_units::{Rate, Time};

use super::*;
use crate::config::{Workload, WorkloadConfig, build};
use crate::env::WorkloadEnv;
use crate::files::chakra_tests::{Value, Writer};
use crate::kinds::Traffic;
use crate::testing::{job_ends, run};

fn chakra(trace: &str) -> Chakra {
    Chakra {
        trace: trace.to_owned(),
        process_groups: None,
        dims: Vec::new(),
        hosts: HostList::default(),
        algorithms: Algorithms::default(),
        peak_tflops: None,
    }
}

fn ring() -> Chakra {
    chakra("scenarios/chakra-ring")
}

fn built(folder: &Path, config: Chakra, hosts: u32) -> Result<Workload, String> {
    let env = WorkloadEnv { base_dir: folder.to_owned(), ..WorkloadEnv::new(hosts, Rate::from_gbps(8)) };
    build(&[WorkloadConfig::new(Traffic::Chakra(config))], &env).map_err(|e| e.to_string())
}

fn samples() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Writes a trace of two ranks to a folder of its own.
fn two_ranks(name: &str, ranks: [Writer; 2]) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("pathweave-chakra-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (rank, writer) in ranks.into_iter().enumerate() {
        std::fs::write(folder.join(format!("t.{rank}.et")), writer.0).unwrap();
    }
    folder
}

const HEAD: &str = "0.0.4";
const SEND: i32 = 5;
const RECEIVE: i32 = 6;
const COLLECTIVE: i32 = 7;
const COMPUTE: i32 = 4;

fn error(name: &str, ranks: [Writer; 2]) -> String {
    built(&two_ranks(name, ranks), chakra("."), 2).unwrap_err()
}

#[test]
fn the_ring_of_eight_by_hand() {
    let graph = built(samples(), ring(), 8).unwrap().graph;
    assert_eq!((graph.messages().len(), graph.jobs().len()), (8 * 14, 1));
    assert_eq!(graph.total_bytes(), 8 * 14 * 131_072);
    // 14 steps of 131,072 ns each, and 7 computations of 7 us, each of which adds up received data.
    assert_eq!(job_ends(&graph), [Time::from_ns(14 * 131_072 + 49_000)]);
}

#[test]
fn a_collective_is_a_job_of_its_own() {
    let config = Chakra {
        hosts: (0..16).rev().collect::<Vec<_>>().into(),
        ..chakra("tests/data/chakra/all-reduce-16/all_reduce")
    };
    let graph = built(samples(), config, 20).unwrap().graph;
    let jobs: Vec<&str> = graph.jobs().iter().map(|j| j.name.as_str()).collect();
    assert_eq!(jobs, ["chakra: all-reduce of record 1, group 1", "chakra: trace"]);
    assert_eq!(graph.jobs()[0].measure.unwrap().bus.get(), 2 * (1 << 20) / 16 * 15);
    assert_eq!(graph.messages().len(), 2 * 16 * 15);
    // Rank 0 is on host 15 and sends to rank 1 on host 14.
    assert!(graph.messages().iter().all(|m| m.dst.0 == (m.src.0 + 15) % 16));
    assert_eq!(job_ends(&graph), [Time::from_ns(30 * 65_536); 2]);
}

#[test]
fn computations_sends_and_process_groups_by_hand() {
    // Rank 0 computes for 3 us and sends 500 bytes, and both ranks reduce 1000 bytes. Rank 1 receives first.
    let reduce = [("comm_type", 0), ("comm_size", 1000)];
    let ranks = [
        Writer::new(HEAD)
            .node(1, COMPUTE, &[], &[], 3)
            .node(2, SEND, &[1], &[("comm_dst", 1), ("comm_size", 500), ("comm_tag", 9)], 0)
            .node(3, COLLECTIVE, &[2], &reduce, 0),
        Writer::new(HEAD)
            .node(8, COLLECTIVE, &[7], &reduce, 0)
            .node(7, RECEIVE, &[], &[("comm_src", 0), ("comm_size", 500), ("comm_tag", 9)], 0)
            .node(9, COMPUTE, &[8], &[("num_ops", 4_000_000)], 0),
    ];
    let folder = two_ranks("by-hand", ranks);
    let workload = built(&folder, chakra("t"), 2).unwrap();
    // At a nanosecond per byte: 3 us, 500 ns, and two steps of 500 ns.
    assert_eq!(job_ends(&workload.graph), [Time::from_ns(4_500); 2]);
    assert!(
        workload.notes[0].contains("1 computations of the trace have operations and no duration"),
        "{workload:?}"
    );
    // At 2 Tflop/s, 4 million operations take 2 us.
    let timed = built(&folder, Chakra { peak_tflops: Some(2.0), ..chakra(".") }, 2).unwrap();
    assert_eq!(*run(&timed.graph).0.iter().max().unwrap(), Time::from_ns(6_500));
    assert!(timed.notes.is_empty());
    assert!(timed.graph.computes().iter().any(|c| c.duration == pathweave_units::Duration::from_us(2)));
}

/// Writes a trace in which all ranks have the same nodes.
fn alike(name: &str, ranks: usize, write: impl Fn(&mut Writer)) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("pathweave-chakra-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for rank in 0..ranks {
        let mut writer = Writer::new(HEAD);
        write(&mut writer);
        std::fs::write(folder.join(format!("t.{rank}.et")), writer.0).unwrap();
    }
    folder
}

fn pairs(workload: &Workload) -> Vec<(u32, u32)> {
    let mut all: Vec<_> = workload.graph.messages().iter().map(|m| (m.src.0, m.dst.0)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Eight ranks, 2 x 2 x 2. Ranks along dimension 1 are 2 apart.
#[test]
fn involved_dimensions_narrow_a_collective() {
    let reduce = |involved: &'static [bool]| {
        move |writer: &mut Writer| {
            let attributes = [
                ("comm_type", Value::Number(0)),
                ("comm_size", Value::Number(8)),
                ("involved_dim", Value::Bools(involved)),
            ];
            writer.full((1, "reduce", COLLECTIVE), &[], &attributes, 0, "");
        }
    };
    let folder = alike("dims", 8, reduce(&[false, true, false]));
    let dims = |dims: &[u32]| Chakra { dims: dims.to_vec(), ..chakra("t") };
    let along = built(&folder, dims(&[2, 2, 2]), 8).unwrap();
    let expected = [(0, 2), (1, 3), (2, 0), (3, 1), (4, 6), (5, 7), (6, 4), (7, 5)];
    assert_eq!((pairs(&along), along.graph.jobs().len()), (expected.to_vec(), 4 + 1));
    let error = |dims: Chakra| built(&folder, dims, 8).unwrap_err();
    assert!(error(chakra("t")).contains(
        "t.0.et: record 1: involved_dim = [false, true, false]: the sizes of dimensions are not in the trace; set `dims`"
    ));
    assert!(error(dims(&[2, 3])).contains("dims = [2, 3]: expected sizes of dimensions whose product is 8"));
    assert!(error(dims(&[2, 2, 2, 1])).contains("3 dimensions, `dims` has 4"));
    // If all dimensions are involved, so are all ranks, whatever the sizes.
    let all = built(&alike("all-dims", 8, reduce(&[true, true])), chakra("t"), 8).unwrap();
    assert_eq!(all.graph.jobs().len(), 1 + 1);
}

/// PyTorch numbers groups for each rank: "1" of ranks 0 and 1 is another group than "1" of ranks 2 and 3.
#[test]
fn a_trace_may_list_its_groups_itself() {
    let folder = std::env::temp_dir().join(format!("pathweave-chakra-{}-listed", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |listed: bool| {
        for rank in 0..4u32 {
            let mut writer = Writer::new(HEAD);
            let of = |group: &'static str| {
                [
                    ("comm_type", Value::Number(0)),
                    ("comm_size", Value::Number(8)),
                    ("pg_name", Value::Text(group)),
                ]
            };
            writer.full((2, "pair", COLLECTIVE), &[], &of("1"), 0, "");
            writer.full((3, "all", COLLECTIVE), &[2], &of("0"), 0, "");
            let pair = rank / 2 * 2;
            let values = format!(
                r#"['[{{"pg_name": "0", "ranks": [], "group_size": 4}}, {{"pg_name": "1", "ranks": [{pair}, {}]}}]']"#,
                pair + 1
            );
            if listed {
                writer.full((1, "## process_group:init ##", 1), &[], &[], 0, &values);
            }
            std::fs::write(folder.join(format!("t.{rank}.et")), writer.0).unwrap();
        }
    };
    write(true);
    let workload = built(&folder, chakra("t"), 4).unwrap();
    assert_eq!(pairs(&workload), [(0, 1), (1, 0), (1, 2), (2, 3), (3, 0), (3, 2)]);
    // Two pairs and the group of all have a job each, within the trace.
    let jobs = workload.graph.jobs();
    assert_eq!((jobs.len(), jobs.iter().filter(|job| job.parent.is_some()).count()), (4, 3));
    write(false);
    let error = built(&folder, chakra("t"), 4).unwrap_err();
    assert!(
        error.contains("pg_name = \"1\": no such group in the trace, and there are no `process_groups`"),
        "{error}"
    );
}

#[test]
fn gathers_and_scatters_go_to_and_from_the_first_rank() {
    let both = |writer: &mut Writer| {
        for (id, kind, deps) in [(1, 3, &[][..]), (2, 4, &[1][..])] {
            let attributes = [("comm_type", Value::Number(kind)), ("comm_size", Value::Number(1000))];
            writer.full((id, "g", COLLECTIVE), deps, &attributes, 0, "");
        }
    };
    let workload = built(&alike("gather", 3, both), chakra("t"), 3).unwrap();
    assert_eq!(pairs(&workload), [(0, 1), (0, 2), (1, 0), (2, 0)]);
    assert_eq!((workload.graph.messages().len(), workload.graph.total_bytes()), (4, 4_000));
}

#[test]
fn mismatches_are_named_with_their_record() {
    let send = |to| Writer::new(HEAD).node(1, SEND, &[], &[("comm_dst", to), ("comm_size", 5)], 0);
    let receive =
        |bytes| Writer::new(HEAD).node(1, RECEIVE, &[], &[("comm_src", 0), ("comm_size", bytes)], 0);
    let nothing = || Writer::new(HEAD);
    assert_eq!(
        error("peer", [send(2), nothing()]),
        "t.0.et: record 1: comm_dst = 2: t.2.et is missing, only files of ranks 0 to 1 are there"
    );
    assert_eq!(error("self", [send(0), nothing()]), "t.0.et: record 1: comm_dst = 0: the rank itself");
    assert_eq!(
        error("unreceived", [send(1), nothing()]),
        "t.0.et: record 1: rank 1 does not receive it (tag 0)"
    );
    assert_eq!(
        error("unsent", [nothing(), receive(5)]),
        "t.1.et: record 1: nothing is sent for it: rank 0 sends rank 1 too few with tag 0"
    );
    assert_eq!(
        error("sizes", [send(1), receive(6)]),
        "t.1.et: record 1: comm_size = 6: the send of rank 0 has 5 bytes"
    );
    let circle = Writer::new(HEAD).node(1, COMPUTE, &[], &[], 1).node(2, COMPUTE, &[3], &[], 1).node(
        3,
        COMPUTE,
        &[1, 2],
        &[],
        1,
    );
    assert_eq!(
        error("cycle", [circle, nothing()]),
        "t.0.et: record 2: nodes wait for each other in a cycle: 2 for 3"
    );
    let missing = Writer::new(HEAD).node(1, COMPUTE, &[4], &[], 1);
    assert_eq!(
        error("missing", [missing, nothing()]),
        "t.0.et: record 1: node 1 waits for node 4, which is not in the file"
    );
    let twice = Writer::new(HEAD).node(1, COMPUTE, &[], &[], 1).node(1, COMPUTE, &[], &[], 1);
    assert_eq!(error("twice", [twice, nothing()]), "t.0.et: record 2: id = 1: that of record 1 already");
    let reduce =
        |bytes| Writer::new(HEAD).node(1, COLLECTIVE, &[], &[("comm_type", 0), ("comm_size", bytes)], 0);
    assert_eq!(
        error("uneven", [reduce(5), reduce(6)]),
        "t.1.et: record 1: all-reduce of 6 bytes, where rank 0 has all-reduce of 5 bytes"
    );
    assert!(
        error("alone", [reduce(5), nothing()])
            .contains("rank 1 takes part in 0 collectives of the group, another in 1")
    );
}

#[test]
fn a_cycle_across_ranks_is_named_too() {
    // Each rank sends only after it has received from the other.
    let both = |peer, id| {
        let (to, from) = ([("comm_dst", peer), ("comm_size", 5)], [("comm_src", peer), ("comm_size", 5)]);
        Writer::new(HEAD).node(id, RECEIVE, &[], &from, 0).node(id + 1, SEND, &[id], &to, 0)
    };
    let text = error("across", [both(1, 1), both(0, 1)]);
    assert!(text.contains("dependencies form a cycle: message \"record 2 of rank 0\""), "{text}");
}

#[test]
fn ranks_that_do_not_fit_the_topology() {
    let fail = |config, hosts| built(samples(), config, hosts).unwrap_err();
    assert!(fail(ring(), 4).contains("the trace has 8 ranks, the topology 4 hosts: expected a `topology`"));
    let hosts = |hosts: &[u32]| Chakra { hosts: hosts.to_vec().into(), ..ring() };
    assert!(fail(hosts(&[1, 2]), 9).contains("hosts = 2 hosts: expected 8, one for each rank"));
    assert!(fail(hosts(&[0, 1, 2, 3, 4, 5, 6, 9]), 9).contains("hosts = 9: hosts are 0 to 8"));
    assert!(fail(hosts(&[0, 1, 2, 3, 4, 5, 6, 6]), 9).contains("hosts = 6: this host is given to two ranks"));
    assert!(fail(chakra("nowhere"), 8).contains("nowhere: no files PREFIX.RANK.et"));
    let odd = Chakra { process_groups: Some("scenarios/missing.json".to_owned()), ..ring() };
    assert!(fail(odd, 8).contains("scenarios/missing.json: cannot read it"));
}
