use pathweave_units::{Duration, Time};

use super::*;
use crate::bounds::JobSpans;
use crate::graph::{JobId, MessageGraph, Parallelism};
use crate::kinds::Traffic;
use crate::testing::{error_of, graph_of, job_ends};

/// A transformer with layers of attention 4 h^2 and a feed-forward part of 2 h f, for few tokens.
pub(super) fn tiny() -> Transformer {
    Transformer {
        model: None,
        layers: Some(2),
        hidden: Some(64),
        feed_forward_hidden: Some(128),
        heads: Some(4),
        kv_heads: None,
        head_dim: None,
        vocabulary: Some(100),
        sequence: Some(8),
        experts: None,
        top_k: None,
        feed_forward: Some(FeedForward::Plain),
        micro_batch: 1,
        microbatches: 1,
        global_batch: None,
        gpus: None,
        tp: 1,
        ep: 1,
        pp: 1,
        cp: 1,
        cp_kind: None,
        etp: None,
        vp: 1,
        schedule: None,
        stage_layers: Vec::new(),
        order: None,
        recompute: None,
        gpu: None,
        precision: None,
        efficiency: None,
        tflops: Some(1e-3),
        bytes_per_value: 2,
        bytes_per_gradient: 2,
        optimizer: Optimizer::Replicated,
        hosts: HostList::default(),
        algorithms: Algorithms::default(),
        scale: 1.0,
        iterations: 1,
    }
}

pub(super) fn graph(hosts: u32, config: Transformer) -> MessageGraph {
    graph_of(hosts, Traffic::Transformer(config))
}

/// Returns the payload of all messages along this parallelism dimension.
pub(super) fn bytes(graph: &MessageGraph, among: Parallelism) -> u64 {
    let of = |id: u32| graph.label(crate::TaskId(id)).map(|label| &graph.labels()[label as usize]);
    let is = |id: &u32| of(*id).and_then(|label| label.parallelism) == Some(among);
    let all = (0..graph.messages().len() as u32).filter(is);
    all.map(|id| graph.messages()[id as usize].size.get()).sum()
}

#[test]
fn computation_is_that_of_the_numbers() {
    // A gigaflop per second; 8 tokens. Attention takes 2 x 4 x 64^2 + 2 x 8 x 64 per token, feed-forward 2 x
    // 2 x 64 x 128, logits 2 x 100 x 64; backward takes twice as much. Two GPUs do the same and reduce their
    // gradients: 2 x (4 x 64^2 + 2 x 64 x 128) parameters of layers and 2 x 100 x 64 of both ends, 2 bytes
    // each.
    let flops = 8 * (2 * (8 * 4096 + 1024 + 32768) + 12_800);
    let spans = JobSpans::from_graph(&graph(2, tiny()));
    assert_eq!(spans.span(JobId(0)), Duration::from_ns(3 * flops));
    let parameters = 2 * (4 * 4096 + 2 * 64 * 128) + 2 * 6400;
    let graph = graph(2, tiny());
    // A ring of two sends each half of a vector twice.
    assert_eq!(graph.total_bytes(), u128::from(2u64 * 2 * parameters));
    assert_eq!(bytes(&graph, Parallelism::Data), 4 * parameters);
    // The last reduction, of the embedding, follows the computation at a nanosecond per byte.
    let ends = job_ends(&graph);
    assert!(ends[0] >= Time::from_ns(3 * flops + 2 * 6400 * 2), "{ends:?}");
}

#[test]
fn each_parallelism_moves_what_it_has_to() {
    // 16 GPUs: pairs share layers, with two stages and four replicas in two groups of experts.
    let config = Transformer {
        experts: Some(4),
        top_k: Some(2),
        tp: 2,
        ep: 2,
        pp: 2,
        microbatches: 3,
        optimizer: Optimizer::Distributed,
        ..tiny()
    };
    let graph = graph(16, config);
    let activations = 8 * 64 * 2;
    // Forward and backward, 3 microbatches: each of 8 GPUs of a stage sends its half to the next stage.
    assert_eq!(bytes(&graph, Parallelism::Pipeline), 2 * 3 * 8 * activations / 2);
    // One layer per stage. Each pair gathers and scatters activations around attention, and twice as many
    // around experts, forward and backward. These are 4 collectives each, in which each GPU of a pair sends
    // half of the size.
    assert_eq!(bytes(&graph, Parallelism::Tensor), 3 * 8 * (4 * activations + 4 * 2 * activations));
    // Dispatch and combine, forward and backward: each of 16 GPUs sends half of its half of the copies.
    assert_eq!(bytes(&graph, Parallelism::Expert), 3 * 4 * 16 * (2 * activations / 2) / 2);
    // Gradients of 2 of 4 experts, halved by tensor parallelism, are scattered among 2 replicas, and weights
    // are gathered.
    let experts = 2 * (2 * 64 * 128) / 2 * 2;
    assert_eq!(bytes(&graph, Parallelism::ExpertData), 2 * 16 * experts / 2);
    let attention = (4 * 4096) / 2 * 2;
    let embedding = 2 * 6400 / 2 / 2 * 2;
    assert_eq!(bytes(&graph, Parallelism::Data), 2 * 16 * (attention + embedding) * 3 / 4);
}

#[test]
fn gradients_are_reduced_once_whatever_the_microbatches() {
    let of = |microbatches| bytes(&graph(4, Transformer { microbatches, ..tiny() }), Parallelism::Data);
    assert_eq!(of(1), of(4));
}

#[test]
fn fields_out_of_range_are_named() {
    let error = |config: Transformer| error_of(8, Traffic::Transformer(config));
    assert!(
        error(Transformer { hidden: None, ..tiny() })
            .contains("hidden = missing: a number of 1 or more, or model = ")
    );
    assert!(error(Transformer { layers: Some(0), ..tiny() }).contains("layers = 0: expected 1 or more"));
    let layers = error(Transformer { layers: Some(126), pp: 4, ..tiny() });
    assert!(layers.contains("pp = 4: expected a divisor of the 126 layers, such as 3"), "{layers}");
    let heads = error(Transformer { tp: 3, ..tiny() });
    assert!(heads.contains("tp = 3: expected a divisor of the 4 heads, such as 2"), "{heads}");
    let experts = error(Transformer { experts: Some(6), ep: 4, ..tiny() });
    assert!(
        experts.contains("ep = 4: expected a divisor of the 6 experts of a layer, such as 3"),
        "{experts}"
    );
    assert!(error(Transformer { ep: 2, ..tiny() }).contains("the 1 experts of a layer, such as 1"));
    assert!(error(Transformer { top_k: Some(2), ..tiny() }).contains("top_k = 2: expected 1 to 1"));
    assert!(
        error(Transformer { gpus: Some(6), tp: 4, ..tiny() }).contains("gpus = 6: expected a multiple of 4")
    );
    assert!(error(Transformer { tflops: Some(0.0), ..tiny() }).contains("tflops = 0"));
    assert!(error(Transformer { scale: 2.0, ..tiny() }).contains("scale = 2"));
    assert!(error(Transformer { bytes_per_value: 9, ..tiny() }).contains("bytes_per_value = 9"));
    assert!(error(Transformer { microbatches: 0, ..tiny() }).contains("microbatches = 0"));
    assert!(error(Transformer { iterations: 0, ..tiny() }).contains("iterations = 0"));
}

/// An iteration takes (m + p - 1) (f + b), although stages begin the next one before the previous one has
/// ended.
#[test]
fn iterations_of_a_pipeline_take_their_period_by_hand() {
    let config = Transformer { pp: 2, microbatches: 4, iterations: 3, ..tiny() };
    let spans = JobSpans::from_graph(&graph(2, config));
    // Half of the flops of the test above per stage, three times with backward.
    let each = 3 * 8 * (2 * (8 * 4096 + 1024 + 32768) + 12_800) / 2;
    for iteration in 0..3 {
        assert_eq!(spans.span(JobId(iteration)), Duration::from_ns((4 + 2 - 1) * each), "{iteration}");
    }
}

/// Computations of a GPU take as long as the operations that results count, with fields of stages and without them,
/// but for the choice of experts.
#[test]
fn computations_are_the_operations_of_the_model() {
    let of = |model: TransformerModel, schedule| Transformer {
        model: Some(ModelChoice::Published(model)),
        layers: None,
        hidden: None,
        feed_forward_hidden: None,
        heads: None,
        vocabulary: None,
        sequence: Some(131_072),
        feed_forward: None,
        tflops: Some(400.0),
        schedule,
        ..tiny()
    };
    let check = |model: TransformerModel, schedule| {
        let graph = graph(1, of(model, schedule));
        let wanted = graph.jobs()[0].training.unwrap().megaflops as f64 / 400e6;
        let found = JobSpans::from_graph(&graph).span(JobId(0)).as_secs_f64();
        let without = if model.architecture().experts.is_some() { 3e-3 } else { 1e-6 };
        assert!((found / wanted - 1.0).abs() < without, "{}, {schedule:?}: {found}, {wanted}", model.name());
    };
    let staged = Some(PipelineSchedule::OneForwardOneBackward);
    TransformerModel::ALL.iter().for_each(|&model| check(model, staged));
    [TransformerModel::Gpt3, TransformerModel::Llama8].into_iter().for_each(|model| check(model, None));
}

/// GPT-3 uses one matrix at both ends, of which each end of a pipeline needs a copy.
#[test]
fn a_tied_matrix_counts_once() {
    let layers = 2 * (4 * 64 * 64 + 2 * 64 * 128);
    let model = serde_json::from_str("\"gpt-3-175b\"").unwrap();
    let tied = Transformer { model: Some(model), kv_heads: Some(4), ..tiny() };
    // An all-reduce among 4 GPUs: each sends 3/4 of two bytes a parameter twice.
    for (config, matrices) in [(tiny(), 2), (tied.clone(), 1)] {
        let sent = bytes(&graph(4, config), Parallelism::Data);
        assert_eq!(sent, 4 * 2 * 3 * (layers + matrices * 6_400) * 2 / 4);
    }
    let sent = bytes(&graph(4, Transformer { pp: 2, ..tied }), Parallelism::Data);
    assert_eq!(sent, 2 * 2 * (layers + 2 * 6_400));
}
