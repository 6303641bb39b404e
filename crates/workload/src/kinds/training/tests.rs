use pathweave_units::{Rate, Time};

use super::*;
use crate::bounds::Bounds;
use crate::builder::GraphBuilder;
use crate::env::WorkloadEnv;
use crate::graph::{MessageGraph, TaskId};
use crate::kinds::Traffic;
use crate::testing::{error_of, graph_of, job_ends, run};

fn training(model: Model, group_size: u32, iterations: u32) -> Training {
    Training {
        model,
        group_size: Some(group_size.into()),
        placement: Placement::Strided,
        iterations,
        forward: None,
        backward: None,
        bytes_per_parameter: 4,
        bucket_cap: bucket_cap(),
        first_bucket: first_bucket(),
        scale: 1.0,
    }
}

/// Two layers on two hosts. Backward takes 4 us: the last layer 1 us, the first one 3 us. Forward takes 2 us.
fn tiny(last_layer: u64, iterations: u32, scale: f64) -> MessageGraph {
    let layers = [Layer { tensors: vec![400], macs: 300 }, Layer { tensors: vec![last_layer], macs: 100 }];
    let config = Training {
        forward: Some(Duration::from_us(2)),
        backward: Some(Duration::from_us(4)),
        bytes_per_parameter: 1,
        bucket_cap: Bytes::new(1000),
        first_bucket: Bytes::new(1000),
        scale,
        ..training(Model::ResNet50, 2, iterations)
    };
    let env = WorkloadEnv::new(2, Rate::from_gbps(8));
    let mut builder = GraphBuilder::new(2);
    let mut sink = WorkloadBuilder::new(&env, &mut builder, "training", None, None, Duration::ZERO).unwrap();
    config.train(&mut sink, &layers).unwrap();
    builder.finish().unwrap()
}

#[test]
fn short_reductions_hide_behind_the_backward_pass() {
    // A byte takes a nanosecond. The last layer's 1000 bytes are known at 3 us, take 2 steps of 500 ns, and
    // end at 4 us. The first layer's 400 bytes are known at 6 us and take 400 ns.
    assert_eq!(job_ends(&tiny(1000, 1, 1.0)), [Time::from_ns(6_400)]);
    // The next iteration begins when the last bucket has ended.
    assert_eq!(job_ends(&tiny(1000, 3, 1.0)), [6_400, 12_800, 19_200].map(Time::from_ns));
    // Without latency, half of all sizes and durations takes half the time.
    assert_eq!(job_ends(&tiny(1000, 1, 0.5)), [Time::from_ns(3_200)]);
}

#[test]
fn long_reductions_delay_the_next_bucket() {
    // 10,000 bytes are known at 3 us and end at 13 us. The others have waited since 6 us.
    let graph = tiny(10_000, 1, 1.0);
    let (ends, jobs) = run(&graph);
    assert_eq!(jobs, [Time::from_ns(13_400)]);
    let ends_of = |size: u64| -> Vec<Time> {
        let messages = graph.messages().iter().zip(&ends).filter(|(m, _)| m.size.get() == size);
        messages.map(|(_, &end)| end).collect()
    };
    assert_eq!(ends_of(5_000), [8_000, 8_000, 13_000, 13_000].map(Time::from_ns));
    assert_eq!(ends_of(200), [13_200, 13_200, 13_400, 13_400].map(Time::from_ns));
}

#[test]
fn an_iteration_of_a_real_network_takes_at_least_its_computation() {
    for (model, parameters, compute_ms) in
        [(Model::ResNet50, 25_557_032, 164), (Model::Vgg16, 138_357_544, 222)]
    {
        let graph = graph_of(8, Traffic::Training(training(model, 4, 2)));
        // Two groups, two iterations: every host sends 2 (n - 1) / n of the gradients in each.
        assert_eq!(graph.total_bytes(), 2 * 2 * 2 * 3 * 4 * parameters);
        let compute = Duration::from_ms(compute_ms);
        let names: Vec<&str> = graph.jobs().iter().map(|j| j.name.as_str()).collect();
        assert_eq!(names[..2], ["training: ring 0, iteration 0", "training: ring 0, iteration 1"]);
        let ends = job_ends(&graph);
        assert!(ends[0] > Time::ZERO + compute, "{model:?}: {}", ends[0]);
        assert_eq!(ends[1] - Time::ZERO, (ends[0] - Time::ZERO) * 2);
        // Even with links this fast, it takes as long as the computations alone.
        let bounds = Bounds::from_graph(&graph, Duration::ZERO, |_| Rate::from_gbps(1_000_000));
        assert!(bounds.chain >= Time::ZERO + compute * 2);
    }
}

#[test]
fn the_papers_groups() {
    // 320 hosts in 20 groups of 16, with 6 buckets for VGG-16: 16 x 30 messages per bucket.
    let graph = graph_of(320, Traffic::Training(training(Model::Vgg16, 16, 1)));
    assert_eq!(graph.jobs().len(), 20);
    assert_eq!(graph.messages().len(), 20 * 16 * 30 * 6);
    assert_eq!(graph.computes().len(), 320 * (1 + 6 + 5));
    // Strided placement: group 0 is hosts 0, 20, 40, ...
    assert!(graph.messages().iter().all(|m| m.src.0 % 20 == m.dst.0 % 20));
    // Only forward passes have no predecessors.
    let roots: Vec<TaskId> =
        (0..graph.task_count() as u32).map(TaskId).filter(|&t| graph.predecessors(t) == 0).collect();
    assert_eq!(roots.len(), 320);
    assert!(roots.iter().all(|t| t.index() >= graph.messages().len()));
}

#[test]
fn fields_out_of_range_are_named() {
    let base = training(Model::ResNet50, 4, 1);
    let error = |change: fn(&mut Training)| {
        let mut config = base.clone();
        change(&mut config);
        error_of(8, Traffic::Training(config))
    };
    assert!(error(|t| t.iterations = 0).contains("iterations = 0: expected 1 or more"));
    assert!(error(|t| t.bytes_per_parameter = 9).contains("bytes_per_parameter = 9: expected 1 to 8"));
    assert!(error(|t| t.group_size = Some(9.into())).contains("group_size = 9: expected 2 to 8"));
    for scale in [0.0, -1.0, 1.5, f64::NAN] {
        let config = Training { scale, ..base.clone() };
        assert!(error_of(8, Traffic::Training(config)).contains("expected a factor above 0 and at most 1"));
    }
    let small = error(|t| t.scale = 1e-9);
    assert!(small.contains("scale = 0.000000001: leaves a bucket of 0B; a ring of 4 needs 4B"), "{small}");
}
