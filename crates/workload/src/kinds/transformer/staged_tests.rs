use pathweave_units::{Duration, Rate};

use super::memory;
use super::tests::{bytes, graph, tiny};
use super::*;
use crate::bounds::JobSpans;
use crate::builder::GraphBuilder;
use crate::env::WorkloadEnv;
use crate::graph::{JobId, Parallelism};
use crate::kinds::Traffic;
use crate::testing::{error_of, job_ends, notes_of};
use crate::training_memory::TrainingMemory;

/// Time of a layer forward with 8 tokens, at an operation a nanosecond: 4 x 64^2 parameters of attention, scores of 4
/// heads x (16 + 16) values with 4 tokens on average, and 2 x 64 x 128 parameters of the feed-forward part.
const LAYER_NS: u64 = 8 * (2 * 4 * 64 * 64 + 2 * 128 * 4 + 2 * 2 * 64 * 128);
/// Time of the vocabulary's product: 100 x 64 parameters.
const LOGITS_NS: u64 = 8 * 2 * 100 * 64;

fn staged() -> Transformer {
    Transformer { schedule: Some(PipelineSchedule::OneForwardOneBackward), ..tiny() }
}

/// Backward takes twice as long as forward. The last stage, which has the logits, sets the pace: (p - 1)(f + b) before
/// and after its m microbatches.
#[test]
fn the_stage_with_the_logits_sets_the_pace() {
    for schedule in [PipelineSchedule::OneForwardOneBackward, PipelineSchedule::GPipe] {
        let config =
            Transformer { layers: Some(8), pp: 4, microbatches: 8, schedule: Some(schedule), ..staged() };
        let span = JobSpans::from_graph(&graph(4, config)).span(JobId(0));
        let expected = 3 * (3 * 2 * LAYER_NS + 8 * (2 * LAYER_NS + LOGITS_NS));
        assert_eq!(span, Duration::from_ns(expected), "{schedule:?}");
    }
}

/// Two chunks a stage halve the bubble, which is (p - 1)(f + b) / v.
#[test]
fn chunks_divide_the_bubble() {
    let config =
        Transformer { layers: Some(8), pp: 4, vp: 2, microbatches: 8, vocabulary: Some(1), ..tiny() };
    let span = JobSpans::from_graph(&graph(4, config)).span(JobId(0)).as_ps() / 1000;
    let expected = 3 * (8 * 2 * LAYER_NS + 3 * LAYER_NS);
    let logits = 3 * (8 + 8) * LOGITS_NS / 100;
    assert!((expected..expected + logits).contains(&span), "{span}, {expected}");
}

#[test]
fn stages_may_have_unequal_layers() {
    // Stage 0 has one layer, stage 1 two and the logits.
    let config = Transformer { layers: Some(3), pp: 2, stage_layers: vec![1, 2], ..staged() };
    let span = JobSpans::from_graph(&graph(2, config)).span(JobId(0));
    assert_eq!(span, Duration::from_ns(3 * (3 * LAYER_NS + LOGITS_NS)));
}

/// 16 GPUs: pairs share layers, pairs share sequences, with two stages and two replicas.
#[test]
fn each_axis_moves_what_it_has_to() {
    let config =
        Transformer { tp: 2, cp: 2, pp: 2, microbatches: 2, optimizer: Optimizer::Distributed, ..staged() };
    let graph = graph(16, config);
    // 4 tokens of 64 values in 2 bytes. 8 collectives a layer, and 2 at either end, in which a GPU sends half.
    let activations = 4 * 64 * 2;
    assert_eq!(bytes(&graph, Parallelism::Tensor), 16 * 2 * (8 + 2) * activations / 2);
    // Keys and values of 2 of 4 heads for 8 tokens, once more backward, and their gradients; a GPU sends half.
    let keys_and_values = 8 * 2 * 2 * 16 * 2;
    assert_eq!(bytes(&graph, Parallelism::Context), 16 * 2 * 3 * keys_and_values / 2);
    assert_eq!(bytes(&graph, Parallelism::Pipeline), 8 * 2 * 2 * activations / 2);
    // Half of a layer and half of an embedding, in groups of four: gradients are scattered, weights gathered.
    let parameters = (4 * 64 * 64 + 2 * 64 * 128 + 100 * 64) / 2;
    assert_eq!(bytes(&graph, Parallelism::Data), 16 * 2 * parameters * 2 * 3 / 4);
}

/// Experts without tensor parallelism: four neighbours share them, although pairs share the rest.
#[test]
fn experts_have_tensor_parallelism_of_their_own() {
    let config = Transformer {
        experts: Some(4),
        top_k: Some(2),
        tp: 2,
        ep: 4,
        etp: Some(1),
        optimizer: Optimizer::Distributed,
        ..staged()
    };
    let graph = graph(8, config);
    // Each GPU has 4 of 8 tokens, two copies of each. It sends 3/4 of them, four times a layer.
    let copies = 4 * 2 * 64 * 2;
    assert_eq!(bytes(&graph, Parallelism::Expert), 8 * 2 * 4 * copies * 3 / 4);
    // One expert a GPU and layer, which two GPUs have.
    let experts = 2 * (2 * 64 * 128);
    assert_eq!(bytes(&graph, Parallelism::ExpertData), 8 * 2 * experts * 2 / 2);
}

/// FSDP gathers the weights of each layer forward and backward, and scatters gradients after each microbatch.
#[test]
fn sharded_weights_are_gathered_for_each_pass() {
    let config = Transformer { microbatches: 3, optimizer: Optimizer::ShardedWeights, ..tiny() };
    let graph = graph(4, config);
    let layers = 2 * (4 * 64 * 64 + 2 * 64 * 128);
    let embeddings = 2 * 100 * 64;
    // Embeddings are gathered forward only. Their gradients are scattered once.
    let expected = 4 * (3 * 3 * layers * 2 + 3 * embeddings * 2 + embeddings * 2) * 3 / 4;
    assert_eq!(bytes(&graph, Parallelism::Data), expected);
}

/// A stage with either end gathers its own matrix of the vocabulary, for each of three microbatches.
#[test]
fn stages_gather_the_matrices_of_their_ends() {
    let config = Transformer { pp: 2, microbatches: 3, optimizer: Optimizer::ShardedWeights, ..tiny() };
    let (layer, embedding) = (4 * 64 * 64 + 2 * 64 * 128, 100 * 64);
    let expected = 4 * (3 * 3 * layer * 2 + (3 + 1) * embedding * 2) / 2;
    assert_eq!(bytes(&graph(4, config), Parallelism::Data), expected);
}

/// All gradients are reduced once, by two replicas of two stages, whatever the order of the work.
#[test]
fn gradients_are_reduced_after_the_last_microbatch_only() {
    let layer = 4 * 64 * 64 + 2 * 64 * 128;
    for (schedule, vp) in [
        (PipelineSchedule::GPipe, 1),
        (PipelineSchedule::OneForwardOneBackward, 1),
        (PipelineSchedule::Interleaved, 2),
        (PipelineSchedule::ZeroBubble, 1),
    ] {
        let job =
            Transformer { layers: Some(4), pp: 2, vp, microbatches: 4, schedule: Some(schedule), ..tiny() };
        // A ring of two sends each half of a vector twice.
        assert_eq!(bytes(&graph(4, job), Parallelism::Data), 2 * 2 * (4 * layer + 2 * 6_400), "{schedule:?}");
    }
}

/// At a byte a nanosecond, the gradients of a layer pass while the one before it computes. Those of the first layer and
/// of the input are left.
#[test]
fn reductions_overlap_with_the_backward_pass() {
    let layer = 2 * (4 * 64 * 64 + 2 * 64 * 128);
    for (schedule, microbatches) in
        [(PipelineSchedule::OneForwardOneBackward, 1), (PipelineSchedule::ZeroBubble, 3)]
    {
        let job = Transformer { layers: Some(4), schedule: Some(schedule), microbatches, ..tiny() };
        let graph = graph(2, job);
        let compute = JobSpans::from_graph(&graph).span(JobId(0)).as_ps() / 1000;
        assert_eq!(compute, u64::from(microbatches) * 3 * (4 * LAYER_NS + LOGITS_NS));
        let end = job_ends(&graph)[0].as_ps() / 1000;
        assert!((compute + layer..compute + layer + 20_000).contains(&end), "{schedule:?}: {end}, {compute}");
    }
}

#[test]
fn recomputation_repeats_the_forward_pass() {
    let span = |recompute| {
        let config = Transformer { recompute, ..staged() };
        JobSpans::from_graph(&graph(1, config)).span(JobId(0))
    };
    let none = 3 * (2 * LAYER_NS + LOGITS_NS);
    assert_eq!(span(None), Duration::from_ns(none));
    assert_eq!(span(Some(Recomputation::Full)), Duration::from_ns(none + 2 * LAYER_NS));
    let scores = 8 * 2 * 128 * 4;
    assert_eq!(span(Some(Recomputation::Selective)), Duration::from_ns(none + 2 * scores));
}

#[test]
fn facts_of_an_iteration_are_those_of_all_replicas() {
    let config = Transformer { pp: 2, microbatches: 3, gpu: Some(GpuModel::H100), tflops: None, ..staged() };
    let graph = graph(4, config);
    let work = graph.jobs()[0].training.expect("it is training");
    assert_eq!((work.gpus, work.sequences, work.tokens), (4, 6, 48));
    // 3 x (2 layers + logits) of 8 tokens, for six sequences.
    let flops = 6 * 3 * (2 * LAYER_NS + LOGITS_NS);
    assert_eq!(work.megaflops, (flops as f64 / 1e6).round() as u64);
    assert_eq!((work.peak_gigaflops, work.scale_ppb), (Some(989_000), 1_000_000_000));
}

/// Llama 3 405B on TP 8, PP 16, four replicas. Stage 1 needs the most: 15 microbatches of 8 layers.
#[test]
fn memory_by_hand() {
    let config = Transformer {
        model: Some(ModelChoice::Published(TransformerModel::Llama405)),
        layers: None,
        hidden: None,
        feed_forward_hidden: None,
        heads: None,
        vocabulary: None,
        sequence: None,
        feed_forward: None,
        tp: 8,
        pp: 16,
        microbatches: 16,
        gpu: Some(GpuModel::H100),
        tflops: None,
        optimizer: Optimizer::Distributed,
        ..tiny()
    };
    let env = WorkloadEnv::new(512, Rate::from_gbps(400));
    let mut builder = GraphBuilder::new(512);
    let mut out = WorkloadBuilder::new(&env, &mut builder, "a", None, None, Duration::ZERO).unwrap();
    let architecture = config.architecture(&out).unwrap();
    let staged = config.staged(&mut out, architecture).unwrap();
    let memory = memory::of(&staged, GpuModel::H100);
    let layer = (2 * 16_384 * 16_384 + 2 * 16_384 * 1_024 + 3 * 16_384 * 53_248) / 8;
    let activations = 520_192 * 8_192 / 8 * 8 * 15;
    assert_eq!(memory.stage, 1);
    assert_eq!((memory.weights, memory.gradients), (2 * 8 * layer, 2 * 8 * layer));
    assert_eq!((memory.optimizer, memory.activations), (12 * 8 * layer / 4, activations));
    assert!(!memory.fits() && memory.available == 80_000_000_000, "{memory:?}");
    // Whoever keeps a layer's input only needs 2 h bytes a token.
    let full = Transformer { recompute: Some(Recomputation::Full), ..config.clone() };
    let staged = full.staged(&mut out, architecture).unwrap();
    let memory = memory::of(&staged, GpuModel::H100);
    // One layer at a time is there as a whole.
    let again = (520_192 - 2 * 16_384) * 8_192 / 8;
    assert_eq!((memory.activations, memory.recomputed), (2 * 16_384 * 8_192 / 8 * 8 * 15, again));
    assert!(memory.fits());
}

pub(super) fn memory_of(hosts: u32, job: &Transformer) -> TrainingMemory {
    let env = WorkloadEnv::new(hosts, Rate::from_gbps(400));
    let mut builder = GraphBuilder::new(hosts);
    let mut out = WorkloadBuilder::new(&env, &mut builder, "a", None, None, Duration::ZERO).unwrap();
    let architecture = job.architecture(&out).unwrap();
    memory::of(&job.staged(&mut out, architecture).unwrap(), GpuModel::H100)
}

/// A token of a layer keeps 8 h + 4 A + 4 K + 4 f bytes, and 100 logits with gradients in four bytes each.
#[test]
fn logits_and_a_layer_that_is_computed_again_take_memory() {
    let job = Transformer { gpu: Some(GpuModel::H100), tflops: None, ..staged() };
    let activations = |job: &Transformer| {
        let found = memory_of(1, job);
        found.activations + found.recomputed + found.logits
    };
    let (layer, input, logits) = (8 * (8 * 64 + 4 * 64 + 4 * 64 + 4 * 128), 8 * 2 * 64, 8 * 100 * 4);
    assert_eq!(activations(&job), 2 * layer + 2 * logits);
    let selective = Transformer { recompute: Some(Recomputation::Selective), ..job.clone() };
    assert_eq!(activations(&selective), 2 * layer + 2 * logits);
    let notes = notes_of(1, Traffic::Transformer(selective));
    assert!(notes.iter().any(|note| note.contains("takes time and frees no memory")), "{notes:?}");
    assert!(notes_of(1, Traffic::Transformer(job.clone())).is_empty());
    let full = Transformer { recompute: Some(Recomputation::Full), ..job.clone() };
    assert_eq!(activations(&full), 2 * input + layer - input + 2 * logits);
    // All three microbatches have logits before the first goes back.
    let gpipe = Transformer { schedule: Some(PipelineSchedule::GPipe), microbatches: 3, ..job };
    assert_eq!(activations(&gpipe), 3 * 2 * layer + 4 * logits);
}

/// Four ranks share two layers and two matrices of 100 x 64. Two layers are gathered at once, and the gradients of one
/// are there before they are scattered.
#[test]
fn ranks_that_share_weights_have_two_layers_at_once() {
    let job = Transformer { gpu: Some(GpuModel::H100), tflops: None, ..staged() };
    let sharded = Transformer { optimizer: Optimizer::ShardedWeights, ..job.clone() };
    let layer = 4 * 64 * 64 + 2 * 64 * 128;
    let all = 2 * layer + 2 * 100 * 64;
    let found = memory_of(4, &sharded);
    assert_eq!(
        (found.weights + found.gathered_weights, found.gradients + found.layer_gradients),
        (2 * all / 4 + 2 * 2 * layer, 2 * all / 4 + 2 * layer)
    );
    assert_eq!(found.optimizer, 12 * all / 4);
    let gradients = Transformer { optimizer: Optimizer::ShardedGradients, ..job };
    let found = memory_of(4, &gradients);
    assert_eq!(
        (found.weights + found.gathered_weights, found.gradients + found.layer_gradients),
        (2 * all, 2 * all / 4 + 2 * layer)
    );
    // A matrix of the vocabulary may be larger than a layer.
    let found = memory_of(4, &Transformer { vocabulary: Some(1_000), ..sharded.clone() });
    let all = 2 * layer + 2 * 64_000;
    assert_eq!(found.weights + found.gathered_weights, 2 * all / 4 + 2 * (layer + 64_000));
    // One rank has nothing to gather.
    let found = memory_of(1, &sharded);
    let all = 2 * layer + 2 * 6_400;
    assert_eq!(
        (found.weights + found.gathered_weights, found.gradients + found.layer_gradients),
        (2 * all, 2 * all)
    );
}

#[test]
fn a_file_gives_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"model_type": "llama", "hidden_size": 128, "num_hidden_layers": 3, "intermediate_size": 256,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000}"#;
    std::fs::write(folder.path().join("config.json"), text).unwrap();
    let env = WorkloadEnv { base_dir: folder.path().to_owned(), ..WorkloadEnv::new(1, Rate::from_gbps(400)) };
    let mut builder = GraphBuilder::new(1);
    let out = WorkloadBuilder::new(&env, &mut builder, "a", None, None, Duration::ZERO).unwrap();
    let mut config = Transformer {
        model: Some(ModelChoice::File(ModelFile { file: "config.json".to_owned() })),
        layers: None,
        hidden: None,
        feed_forward_hidden: None,
        heads: None,
        vocabulary: None,
        feed_forward: None,
        ..tiny()
    };
    let found = config.architecture(&out).unwrap();
    // Queries and output, keys and values of half as many heads; three matrices; two of the vocabulary.
    let layer = 2 * 128 * 128 + 2 * 128 * 64 + 3 * 128 * 256;
    assert_eq!((found.sequence, found.parameters()), (8, 3 * layer + 2 * 128_000));
    config.layers = Some(5);
    assert_eq!(config.architecture(&out).unwrap().parameters(), 5 * layer + 2 * 128_000);
    config.sequence = None;
    let error = config.architecture(&out).unwrap_err().to_string();
    assert!(
        error.contains("sequence = missing: a number of 1 or more, which the file of the model lacks"),
        "{error}"
    );
    assert_eq!(config.files()[0].0, "model");
}

#[test]
fn mistakes_are_named_with_what_is_allowed() {
    let error = |config: Transformer| error_of(16, Traffic::Transformer(config));
    let found = error(Transformer { cp: 3, ..staged() });
    assert!(
        found.contains("gpus = 16: expected a multiple of 3, which is TP 1 x CP 3 x PP 1, such as 15;"),
        "{found}"
    );
    let found = error(Transformer { gpus: Some(6), cp: 3, ..staged() });
    assert!(found.contains("cp = 3: TP x CP is expected to divide the 8 tokens"), "{found}");
    let found = error(Transformer { pp: 8, ..staged() });
    assert!(
        found.contains("pp = 8: PP x VP is expected to be at most 4, the layers and both ends"),
        "{found}"
    );
    let found = error(Transformer { vp: 2, ..staged() });
    assert!(found.contains("vp = 2: expected 1, or schedule = \"interleaved\""), "{found}");
    let interleaved = Transformer { schedule: Some(PipelineSchedule::Interleaved), ..tiny() };
    let found = error(interleaved.clone());
    assert!(found.contains("vp = 1: expected 2 chunks or more"), "{found}");
    let found = error(Transformer { layers: Some(8), pp: 2, vp: 2, microbatches: 5, ..interleaved });
    assert!(found.contains("microbatches = 5: expected a multiple of the 2 stages"), "{found}");
    let found = error(Transformer { stage_layers: vec![1, 2], pp: 2, ..staged() });
    assert!(found.contains("stage_layers = 2 numbers with the sum 3: expected 2 numbers"), "{found}");
    let found = error(Transformer { order: Some("tp-dp".to_owned()), ..staged() });
    assert!(found.contains("order = \"tp-dp\": expected tp, cp, ep, dp and pp once each"), "{found}");
    let found = error(Transformer { precision: Some(Precision::Fp8), ..staged() });
    assert!(found.contains("precision = set: expected a `gpu`"), "{found}");
    let fp8 = Transformer { precision: Some(Precision::Fp8), gpu: Some(GpuModel::A100), ..staged() };
    let found = error(fp8.clone());
    assert!(
        found.contains("precision = \"fp8\": expected \"bf16\" with gpu = \"a100\", or one of the GPUs h100"),
        "{found}"
    );
    graph(16, Transformer { gpu: Some(GpuModel::H20), ..fp8 });
    let found = error(Transformer { efficiency: Some(1.5), gpu: Some(GpuModel::H100), ..staged() });
    assert!(found.contains("efficiency = 1.5: expected a part above 0"), "{found}");
    let zero = Transformer {
        schedule: Some(PipelineSchedule::ZeroBubble),
        optimizer: Optimizer::ShardedWeights,
        ..tiny()
    };
    assert!(error(zero).contains("\"distributed\" or \"replicated\" with schedule"));
    let found = error(Transformer { experts: Some(4), ep: 4, etp: Some(8), ..staged() });
    assert!(found.contains("ep = 4: EP x ETP (here 32)"), "{found}");
}

/// Each of two replicas adds up the table's gradients of its first and its last stage: 2 x 6,400 bytes divided by TP, of
/// which each of two ranks sends half twice. That begins when both ends have their gradients, and the optimizer waits.
#[test]
fn both_ends_add_up_the_gradients_of_a_tied_matrix() {
    let model: ModelChoice = serde_json::from_str("\"gpt-3-175b\"").unwrap();
    let job = |tied: bool, optimizer| Transformer {
        model: tied.then(|| model.clone()),
        kv_heads: Some(4),
        layers: Some(3),
        tp: 2,
        pp: 3,
        optimizer,
        ..staged()
    };
    for (optimizer, table) in [
        (Optimizer::Replicated, 6_400 * 2 / 2),
        (Optimizer::Distributed, 6_400 * 2 / 2),
        (Optimizer::ShardedGradients, 6_400 * 2 / 2 / 2),
    ] {
        let (tied, separate) = (graph(12, job(true, optimizer)), graph(12, job(false, optimizer)));
        let more = bytes(&tied, Parallelism::Pipeline) - bytes(&separate, Parallelism::Pipeline);
        // TP 2 x DP 2 pairs.
        assert_eq!(more, 4 * 2 * table, "{optimizer:?}");
        assert_eq!(bytes(&tied, Parallelism::Data), bytes(&separate, Parallelism::Data));
    }
    let end = |tied: bool| job_ends(&graph(12, job(tied, Optimizer::Replicated)))[0].as_ps() / 1_000;
    // At a byte a nanosecond, halves of 6,400 bytes go there and back.
    assert!((6_400..20_000).contains(&(end(true) - end(false))), "{} {}", end(true), end(false));
}

/// The 16 GPUs of a stage with TP 2 cannot be groups of 3, and a dense model has no matrices for such groups.
#[test]
fn gpus_that_share_an_expert_need_experts_and_divide_the_stage() {
    let experts = Transformer { etp: Some(3), experts: Some(4), tp: 2, ..staged() };
    let found = error_of(16, Traffic::Transformer(experts.clone()));
    let expected =
        "etp = 3: EP x ETP (here 3) is expected to divide the 16 GPUs of a stage, TP 2 x CP 1 x DP 8";
    assert!(found.contains(expected), "{found}");
    let found = error_of(16, Traffic::Transformer(Transformer { etp: Some(8), ep: 4, ..experts.clone() }));
    assert!(found.contains("ep = 4: EP x ETP (here 32) is expected to divide"), "{found}");
    let dense = Transformer { experts: None, ..experts };
    assert_eq!(notes_of(16, Traffic::Transformer(dense)), ["`etp` has no effect: the model has no experts"]);
}
