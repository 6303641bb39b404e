use std::path::Path;

use pathweave_units::{Duration, Rate, Time};

use super::*;
use crate::bounds::JobSpans;
use crate::config::{WorkloadConfig, build};
use crate::env::WorkloadEnv;
use crate::graph::{JobId, MessageGraph};
use crate::kinds::Traffic;
use crate::testing::job_ends;

fn simai(file: &str) -> SimAi {
    SimAi {
        file: file.to_owned(),
        gpus: None,
        tp: None,
        ep: None,
        pp: None,
        microbatches: None,
        hosts: HostList::default(),
        algorithms: Algorithms::default(),
        scale: 1.0,
        iterations: 1,
    }
}

fn built(folder: &Path, config: SimAi, hosts: u32) -> Result<MessageGraph, String> {
    let env = WorkloadEnv { base_dir: folder.to_owned(), ..WorkloadEnv::new(hosts, Rate::from_gbps(8)) };
    build(&[WorkloadConfig::new(Traffic::SimAi(config))], &env).map(|w| w.graph).map_err(|e| e.to_string())
}

fn samples() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Builds the graph of a file with this text.
fn of_text(
    name: &str,
    text: &str,
    config: impl Fn(SimAi) -> SimAi,
    hosts: u32,
) -> Result<MessageGraph, String> {
    let folder = std::env::temp_dir().join(format!("pathweave-simai-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("w.txt"), text).unwrap();
    built(&folder, config(simai("w.txt")), hosts)
}

#[test]
fn the_small_file_by_hand() {
    // Twice 556 us and a ring all-reduce of 14 steps; backward has four phases of 1 ns. A byte takes a
    // nanosecond.
    let graph = built(samples(), simai("tests/data/simai/micro-allreduce-8gpu.txt"), 8).unwrap();
    let steps = 14 * ((1 << 24) / 8 + (1 << 26) / 8);
    assert_eq!(job_ends(&graph), [Time::from_ns(2 * 556_000 + steps + 4)]);
    assert_eq!(JobSpans::from_graph(&graph).span(JobId(0)), Duration::from_ns(2 * 556_000 + 4));
    assert_eq!(graph.messages().len(), 2 * 8 * 14);
}

const STAGES: &str = "\
HYBRID_TRANSFORMER model_parallel_NPU_group: 1 ep: 1 pp: 2 ga: 2 all_gpus: 4 pp_comm 1000
3
norm -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 4000 500
embedding_layer -1 10000 NONE 0 20000 NONE 0 5000 NONE 0 0
embedding_layer -1 10000 NONE 0 20000 NONE 0 5000 NONE 0 0
";

#[test]
fn stages_and_microbatches_by_hand() {
    // Forward: stage 0 at 0-10 and 10-20; stage 1 at 11-21 and 21-31. Backward takes 25 us each: stage 1 at
    // 31-56 and 56-81; stage 0 at 57-82 and 82-107. Then the replicas of each stage reduce 4000 bytes in 4 us
    // and update in 0.5 us.
    let graph = of_text("stages", STAGES, |c| c, 4).unwrap();
    assert_eq!(job_ends(&graph), [Time::from_ns(107_000 + 4_000 + 500)]);
    // Two stages of 2 GPUs: 2 x 2 messages in each direction, and 2 rings of 2.
    assert_eq!(graph.messages().len(), 8 + 2 * 4);
    // One microbatch, and two iterations.
    let short = of_text("short", STAGES, |c| SimAi { microbatches: Some(1), iterations: 2, ..c }, 4).unwrap();
    // 10 + 1 + 10 + 25 + 1 + 25 + 4.5 us. Stage 1 finishes 26 us earlier and continues.
    assert_eq!(job_ends(&short)[0], Time::from_ns(76_500));
    let half = of_text("half", STAGES, |c| SimAi { scale: 0.5, ..c }, 4).unwrap();
    assert_eq!(job_ends(&half), [Time::from_ns(111_500 / 2)]);
}

#[test]
fn weight_gradients_go_on_beside_the_rest() {
    let text = "HYBRID_TRANSFORMER model_parallel_NPU_group: 1 ep: 1 pp: 1 all_gpus: 2\n2\n\
                a -1 0 NONE 0 7000 NONE 0 0 NONE 0 0\nb -1 0 NONE 0 0 NONE 0 1000 ALLREDUCE 6000 0\n";
    // The gradients are known at 1 us and reduced at 7 us, while layer a computes from 1 to 8 us.
    assert_eq!(job_ends(&of_text("beside", text, |c| c, 2).unwrap()), [Time::from_us(8)]);
}

#[test]
fn the_mixture_of_experts_on_few_gpus() {
    let config = SimAi {
        gpus: Some(32),
        pp: Some(2),
        ep: Some(4),
        microbatches: Some(1),
        scale: 1e-4,
        ..simai("scenarios/simai-moe/moe-9216gpu.txt")
    };
    let graph = built(samples(), config.clone(), 32).unwrap();
    let jobs = job_ends(&graph);
    assert_eq!((jobs.len(), graph.hosts()), (1, 32));
    assert!(jobs[0] > Time::ZERO);
    // All kinds of messages occur: tensor-parallel in pairs, experts among data ranks, and between stages.
    let sends = |a: u32, b: u32| graph.messages().iter().any(|m| (m.src.0, m.dst.0) == (a, b));
    assert!(sends(0, 1) && sends(0, 2) && sends(0, 6) && sends(0, 16) && sends(16, 0));
    assert!(!sends(0, 3) && !sends(0, 17));

    let error = |config: SimAi, hosts| built(samples(), config, hosts).unwrap_err();
    let whole = simai("scenarios/simai-moe/moe-9216gpu.txt");
    // The built-in file of this name is the same.
    let named = built(samples(), SimAi { file: "moe-9216gpu".to_owned(), ..config.clone() }, 32).unwrap();
    assert_eq!(named.messages(), graph.messages());
    let unknown = error(SimAi { file: "moe-9216".to_owned(), ..config.clone() }, 32);
    assert!(
        unknown.contains("did you mean \"moe-9216gpu\"?") && unknown.contains("a dot or a slash"),
        "{unknown}"
    );
    assert!(error(whole.clone(), 32).contains(
        "9216 ranks, the topology 32 hosts: expected a `topology` with as many hosts, or fewer `gpus`"
    ));
    assert!(
        error(SimAi { gpus: Some(32), ..whole.clone() }, 32).contains("gpus = 32: expected a multiple of 24")
    );
    assert!(
        error(SimAi { gpus: Some(32), ..whole.clone() }, 32).contains(", such as 24; these may be set, too")
    );
    assert!(
        error(SimAi { gpus: Some(48), ..whole.clone() }, 48)
            .contains("ep = 16: expected a number that divides the 2 data-parallel")
    );
    assert!(
        error(SimAi { microbatches: Some(25), ..config.clone() }, 32)
            .contains("microbatches = 25: expected 1 to 24")
    );
    assert!(error(SimAi { scale: 2.0, ..config.clone() }, 32).contains("scale = 2"));
    assert!(error(SimAi { pp: Some(0), ..config }, 32).contains("pp = 0"));
}

#[test]
fn the_size_is_known_before_the_graph_is_built() {
    let layout = |tp, ep, dp, pp| GroupLayout { tp, ep, dp, pp };
    let whole = simai("scenarios/simai-moe/moe-9216gpu.txt");
    for (gpus, tp, ep, pp, microbatches, iterations) in
        [(32, 2, 4, 2, 1, 1), (32, 2, 8, 1, 2, 2), (24, 1, 2, 3, 3, 1), (16, 4, 1, 2, 1, 1)]
    {
        let config = SimAi {
            gpus: Some(gpus),
            tp: Some(tp),
            ep: Some(ep),
            pp: Some(pp),
            microbatches: Some(microbatches),
            iterations,
            ..whole.clone()
        };
        let graph = built(samples(), config.clone(), gpus).unwrap();
        let dp = gpus / tp / pp;
        let layout = layout(tp as usize, ep as usize, dp as usize, pp as usize);
        let env =
            WorkloadEnv { base_dir: samples().to_owned(), ..WorkloadEnv::new(gpus, Rate::from_gbps(8)) };
        let mut builder = crate::GraphBuilder::new(gpus);
        let out = WorkloadBuilder::new(&env, &mut builder, "simai", None, None, Duration::ZERO).unwrap();
        let file = parse_simai(&out.read(&config.file).unwrap(), &config.file).unwrap();
        let batches = config.batches(&out, &file, &layout).unwrap();
        let hosts: Vec<u32> = (0..layout.gpus() as u32).collect();
        let counter = count::Counter::new(&config, &layout, &hosts);
        let counts = count::check(counter, &out, &file, (&batches, 1)).unwrap();
        let (messages, computations) = (graph.messages().len() as u64, graph.computes().len() as u64);
        assert_eq!((counts.messages, counts.computations), (messages, computations), "{gpus} GPUs");
        assert_eq!(counts.dependencies, graph.dependency_count() as u64, "{gpus} GPUs");
    }
}

/// A line of a layer has computations, each followed by a collective, for forward pass, input gradients and
/// weight gradients.
const DATA: &str = "DATA\n2\n\
    a -1 1000 NONE 0 2000 NONE 0 4000 ALLREDUCE 8000 10\n\
    b -1 1000 ALLGATHER 500 3000 NONE 0 5000 ALLREDUCE 6000 20\n";
const MODEL: &str = "MODEL\n2\n\
    a -1 1000 ALLGATHER 4000 2000 ALLREDUCE 6000 3000 NONE 0 0\n\
    b -1 1000 ALLGATHER 4000 2000 ALLREDUCE 6000 3000 NONE 0 0\n";
const DLRM: &str = "HYBRID_DLRM\t1\n3\n\
    emb -1 1000 ALLTOALL 16000 1000 ALLTOALL 16000 1000 NONE 0 50\n\
    bot -1 2000 NONE 0 2000 NONE 0 2000 ALLREDUCE 4000 10\n\
    top -1 3000 NONE 0 3000 NONE 0 3000 ALLREDUCE 4000 10\n";
const AGAIN: &str = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 checkpoints: 1 0 checkpoint_initiates: 1 2\n3\n\
    a -1 1000 NONE 0 10 NONE 0 20 NONE 0 0\n\
    b -1 1000 ALLGATHER 4000 10 NONE 0 20 NONE 0 0\n\
    c -1 1000 NONE 0 10 NONE 0 20 NONE 0 0\n";
const MICRO: &str = "MICRO\n2\n\
    x -1 5 NONE 0 5 NONE 0 5 ALLREDUCE 4000 5\n\
    x -1 5 NONE 0 5 NONE 0 5 ALLREDUCE 8000 5\n";

/// Two GPUs at a nanosecond per byte, computed by hand.
#[test]
fn every_policy_has_the_order_of_astra_sim() {
    let end = |name: &str, text: &str| job_ends(&of_text(name, text, |c| c, 2).unwrap());
    // Forward takes 2 us. b's weights take 2-7 and are reduced 7-13, in parallel with b's input 7-10 and a's
    // weights 10-14. a's are reduced 14-22 and updated in 10 ns.
    assert_eq!(end("data", DATA), [Time::from_ns(22_010)]);
    // Forward takes 1 + 2 us twice. b's input takes 6-8 and is reduced 8-14, in parallel with its weights
    // 8-11. a's input takes 14-16, without a reduction of its gradients, and a's weights 16-19.
    assert_eq!(end("model", MODEL), [Time::from_ns(19_000)]);
    assert_eq!(end("served", &MODEL.replace("MODEL", "DISTRIBUTED_INFERENCE")), [Time::from_ns(6_000)]);
    // The embeddings are exchanged 1-9 us, in parallel with the bottom layer. Their gradients are exchanged
    // 18-26, in parallel with those of the bottom layer.
    assert_eq!(end("dlrm", DLRM), [Time::from_ns(26_000)]);
    let enhanced = DLRM.replace("DLRM\t1", "DLRM_ENHANCED DLRM_LAST_BOTTOM_LAYER: 1");
    assert_eq!(end("enhanced", &enhanced), [Time::from_ns(26_000)]);
    // Forward takes 5 us, the repeated first two layers 4 us, and the rest three times 30 ns.
    assert_eq!(end("again", AGAIN), [Time::from_ns(9_090)]);
    assert_eq!(end("micro", MICRO), [Time::from_ns(12_000)]);
}

#[test]
fn groups_follow_from_the_policy_and_the_scenario() {
    let layers = "1\nl -1 9 ALLGATHER 400 9 NONE 0 9 ALLREDUCE 400 9";
    let pairs = |text: &str, tp| {
        let graph = of_text("groups", text, |c| SimAi { tp, ..c }, 4)?;
        let mut of: Vec<_> = graph.messages().iter().map(|m| (m.src.0, m.dst.0)).collect();
        of.sort_unstable();
        of.dedup();
        Ok::<_, String>(of)
    };
    let neighbours = [(0, 1), (1, 0), (2, 3), (3, 2)];
    let apart = [(0, 2), (1, 3), (2, 0), (3, 1)];
    let forward = |policy: &str| format!("{policy}\n1\nl -1 9 ALLGATHER 400 9 NONE 0 9 NONE 0 9");
    assert_eq!(pairs(&forward("HYBRID_DATA_MODEL"), Some(2)).unwrap(), neighbours);
    assert_eq!(pairs(&forward("HYBRID_MODEL_DATA"), Some(2)).unwrap(), apart);
    let own = |policy: &str| format!("HYBRID_CUSTOMIZED\n{layers} {policy}\n");
    let mut both = [neighbours, apart].concat();
    both.sort_unstable();
    assert_eq!(pairs(&own("HYBRID_DATA_MODEL"), Some(2)).unwrap(), both);
    // One ring among all GPUs.
    let ring = [(0, 1), (1, 2), (2, 3), (3, 0)];
    assert_eq!(pairs(&own("DATA"), None).unwrap(), ring);
    let missing = pairs(&own("HYBRID_MODEL_DATA"), None).unwrap_err();
    assert!(missing.contains("w.txt:1: it does not say") && missing.contains("set `tp`"), "{missing}");
    let fixed = pairs(DATA, Some(2)).unwrap_err();
    assert!(fixed.contains("tp = 2: expected 1: the file is DATA"), "{fixed}");
    let stages = of_text("stages", DATA, |c| SimAi { pp: Some(2), ..c }, 4).unwrap_err();
    assert!(stages.contains("pp = 2: expected 1: the file is DATA"), "{stages}");
}

/// Files of AICB before 2024 name only the tensor-parallel group.
#[test]
fn missing_degrees_are_one_or_those_of_the_scenario() {
    let text = STAGES.replace(" ep: 1 pp: 2 ga: 2 all_gpus: 4", " checkpoints: 0 checkpoint_initiates: 0");
    let set = |c| SimAi { pp: Some(2), gpus: Some(4), ..c };
    let [short, long] = [(&text, "left-out"), (&STAGES.to_owned(), "said")]
        .map(|(text, name)| of_text(name, text, set, 4).unwrap());
    assert_eq!(short.messages(), long.messages());
    // Without stages, all hosts of the topology are data-parallel replicas.
    assert_eq!(of_text("all", &text.replace(" pp_comm 1000", ""), |c| c, 6).unwrap().hosts(), 6);
    let alone = text.replace("model_parallel_NPU_group: 1 ", "");
    let error = of_text("no-tp", &alone, |c| c, 4).unwrap_err();
    assert!(error.contains("it does not say how many GPUs a model-parallel group has"), "{error}");
    assert!(of_text("tp", &alone, |c| SimAi { tp: Some(2), ..c }, 4).is_ok());
}

#[test]
fn all_policies_are_counted_before_they_are_made() {
    for (name, text) in [("data", DATA), ("model", MODEL), ("dlrm", DLRM), ("again", AGAIN), ("micro", MICRO)]
    {
        let config = SimAi { iterations: 2, ..simai("w.txt") };
        let graph = of_text(&format!("count-{name}"), text, |c| SimAi { iterations: 2, ..c }, 4).unwrap();
        let file = parse_simai(text, "w.txt").unwrap();
        let env = WorkloadEnv::new(4, Rate::from_gbps(8));
        let mut builder = crate::GraphBuilder::new(4);
        let out = WorkloadBuilder::new(&env, &mut builder, "simai", None, None, Duration::ZERO).unwrap();
        let layout = config.layout(&out, &file).unwrap();
        let batches = config.batches(&out, &file, &layout).unwrap();
        let hosts: Vec<u32> = (0..layout.gpus() as u32).collect();
        let counter = count::Counter::new(&config, &layout, &hosts);
        let counts = count::check(counter, &out, &file, (&batches, 1)).unwrap();
        let made =
            (graph.messages().len() as u64, graph.computes().len() as u64, graph.dependency_count() as u64);
        assert_eq!((counts.messages, counts.computations), (made.0, made.1), "{name}");
        // A file that begins with a collective has fewer dependencies than reserved.
        let spare = if name == "micro" { 4 * 4 } else { 0 };
        assert_eq!(counts.dependencies, made.2 + spare, "{name}");
    }
}

/// One of its collectives has more messages than a graph may have. That means that the job must be folded,
/// not that it is impossible.
#[test]
fn a_job_that_no_graph_can_have_whole_is_large() {
    let config = SimAi {
        gpus: Some(65_536),
        tp: Some(8),
        ep: Some(8_192),
        pp: Some(1),
        microbatches: Some(1),
        ..simai("scenarios/simai-moe/moe-9216gpu.txt")
    };
    let layout = GroupLayout { tp: 8, ep: 8_192, dp: 8_192, pp: 1 };
    let env = WorkloadEnv { base_dir: samples().to_owned(), ..WorkloadEnv::new(65_536, Rate::from_gbps(8)) };
    let mut builder = crate::GraphBuilder::new(65_536);
    let out = WorkloadBuilder::new(&env, &mut builder, "simai", None, None, Duration::ZERO).unwrap();
    let file = parse_simai(&out.read(&config.file).unwrap(), &config.file).unwrap();
    let batches = config.batches(&out, &file, &layout).unwrap();
    let hosts: Vec<u32> = (0..layout.gpus() as u32).collect();
    let mut counter = count::Counter::new(&config, &layout, &hosts);
    assert!(count::is_large(&mut counter, &out, &file, &batches).unwrap());
    let why = count::check(counter, &out, &file, (&batches, 1)).unwrap_err().to_string();
    assert!(why.contains("messages and computations"), "{why}");
}

#[test]
fn too_much_is_refused_at_once_with_what_to_reduce() {
    let whole = SimAi { algorithms: Algorithms::default(), ..simai("scenarios/simai-moe/moe-9216gpu.txt") };
    let error = built(samples(), whole.clone(), 9_216).unwrap_err();
    assert!(error.starts_with("workload \"simai\": microbatches = 24: expected at most "), "{error}");
    assert!(error.contains("24 microbatches on 9216 GPUs in 1 iterations take "), "{error}");
    assert!(
        error.contains("and 268435456 dependencies allowed; ranks that are alike are not run once: "),
        "{error}"
    );
    let endless = SimAi { microbatches: Some(1), iterations: 1_000, ..whole };
    let error = built(samples(), endless, 9_216).unwrap_err();
    assert!(error.contains("gpus = 9216: expected fewer, or fewer iterations: "), "{error}");
}

/// 32 GPUs on leaves of 8. Pairs of tensor ranks are symmetric, and so are replicas on the two leaves of a
/// stage.
#[test]
fn ranks_that_are_alike_take_as_long_as_all_of_them() {
    let topology = std::sync::Arc::new(crate::testing::leaf_spine(4, 2, 8));
    let config = SimAi {
        gpus: Some(32),
        ep: Some(2),
        pp: Some(2),
        microbatches: Some(2),
        scale: 1e-4,
        ..simai("moe-9216gpu")
    };
    let of = |config: &SimAi, fold: crate::Fold| {
        let env = WorkloadEnv { fold, ..WorkloadEnv::new(32, Rate::from_gbps(8)) };
        build(&[WorkloadConfig::new(Traffic::SimAi(config.clone()))], &env).map_err(|why| why.to_string())
    };
    let whole = of(&config, crate::Fold::Large(topology.clone())).unwrap().graph;
    assert_eq!(whole.folding(), None, "it is small");
    let folded = of(&config, crate::Fold::Always(topology.clone())).unwrap();
    assert_eq!(
        folded.notes.last().map(String::as_str),
        Some("workload \"simai\": each of the 8 ranks that run stands for 4 that are alike")
    );
    let graph = folded.graph;
    let folding = graph.folding().expect("ranks are alike");
    // Each leaf has two of the four expert-parallel groups of a stage.
    assert_eq!((folding.order(), folding.symmetries().len()), (4, 2));
    let hosts =
        [0, 1, 4, 8, 12, 15, 16, 31].map(|host| folding.representative(pathweave_units::HostId(host)).0);
    assert_eq!(hosts, [0, 0, 4, 0, 4, 6, 16, 22]);
    assert!(graph.messages().iter().all(|m| folding.representative(m.src) == m.src));
    assert_eq!(4 * graph.messages().len(), whole.messages().len());
    assert_eq!(4 * graph.computes().len(), whole.computes().len());
    assert_eq!(4 * graph.dependency_count(), whole.dependency_count());
    // The times agree to within the byte by which parts of a vector differ.
    let (ends, of_all) = (job_ends(&graph)[0], job_ends(&whole)[0]);
    assert!(ends.as_ps().abs_diff(of_all.as_ps()) < of_all.as_ps() / 1_000, "{ends} {of_all}");
    assert_eq!(JobSpans::from_graph(&graph), JobSpans::from_graph(&whole));

    // Trees distinguish tensor ranks. Hosts in an irregular order distinguish all ranks.
    let algorithms = Algorithms { all_reduce: crate::Algorithm::DoubleBinaryTree, ..Algorithms::default() };
    let trees = SimAi { algorithms, ..config.clone() };
    let graph = of(&trees, crate::Fold::Always(topology.clone())).unwrap().graph;
    assert_eq!(graph.folding().map(crate::Folding::order), Some(2));
    let mut hosts: Vec<u32> = (0..32).collect();
    hosts.swap(0, 31);
    let apart = SimAi { hosts: hosts.into(), ..config };
    let error = of(&apart, crate::Fold::Always(topology)).expect_err("nobody is alike");
    assert!(error.contains("run.fold = \"always\"") && error.contains("leaves both the network"), "{error}");
}
