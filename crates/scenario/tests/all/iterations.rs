//! Times of overlapping iterations: computed by hand, and properties that hold in every run.

use pathweave_records::{RunResult, Summary};
use pathweave_scenario::{Changes, Loaded, run};
use pathweave_sim::NoMonitor;

fn result(text: &str) -> RunResult {
    let loaded =
        Loaded::parse(text, "test.toml", "", &Changes::default()).unwrap_or_else(|why| panic!("{why}"));
    let prepared = loaded.prepare().unwrap_or_else(|why| panic!("{why}"));
    run(&prepared.spec, &mut NoMonitor).expect("it was tried")
}

/// Checks the time of each iteration of a pipeline on a fast network: (m + p - 1) (f + b), of which m (f + b) is
/// computation and the rest is the bubble. The critical path is equally long. Times are in ns.
fn has_the_period_of_a_pipeline(
    result: &RunResult,
    (stages, microbatches): (f64, f64),
    each_ns: f64,
    case: &str,
) {
    let summary = Summary::from_run(result);
    let expected = (microbatches + stages - 1.0) * each_ns;
    let bubble = (stages - 1.0) / (microbatches + stages - 1.0);
    let close = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.01;
    assert_eq!(summary.iterations.len(), 3, "{case}");
    for (iteration, path) in summary.iterations.iter().zip(&summary.critical_paths) {
        assert!(close(iteration.time_ns, expected), "{case}: {iteration:?}, not {expected} ns");
        let idle = 1.0 - iteration.computation_ns / iteration.time_ns;
        assert!((idle - bubble).abs() < 0.01, "{case}: {idle} without computation, not {bubble}");
        assert!(
            close(path.time_ns, iteration.time_ns),
            "{case}: {} ns and a path of {}",
            iteration.time_ns,
            path.time_ns
        );
    }
    times_add_up(result, case);
    assert!(close(summary.jobs.completion_ns.mean, expected), "{case}");
}

/// Checks that the iterations of a series together take the time from the first start to the last end.
fn times_add_up(result: &RunResult, case: &str) {
    let of_training: Vec<_> = result.jobs.iter().filter(|job| job.name.contains("iteration")).collect();
    let sum: u64 = of_training.iter().map(|job| job.completion_ps().expect("it ended")).sum();
    let first = of_training.iter().map(|job| job.start_ps).min().expect("there are iterations");
    let last = of_training.iter().filter_map(|job| job.finish_ps).max().expect("they ended");
    assert_eq!(sum, last - first, "{case}");
}

const STAR: &str = "[topology]\nkind = \"star\"\nhosts = 4\nrate = \"400Gbps\"\n";

#[test]
fn a_pipeline_takes_its_period() {
    for schedule in ["1f1b", "gpipe"] {
        let text = format!(
            "{STAR}[[workload]]\nkind = \"pipeline\"\nschedule = \"{schedule}\"\nmicrobatches = 8\nactivation = \"1KB\"\n\
             forward = \"1ms\"\nbackward = \"2ms\"\nrepetitions = 3\n"
        );
        has_the_period_of_a_pipeline(&result(&text), (4.0, 8.0), 3e6, schedule);
    }
}

/// Stages of a transformer start the next iteration long before the previous one ends, so each iteration lasts longer
/// than its period.
#[test]
fn stages_of_a_transformer_overlap_and_its_iteration_is_the_period() {
    let text = format!(
        "{STAR}[run]\nfidelity = \"flow\"\n[[workload]]\nkind = \"transformer\"\nlayers = 4\nhidden = 1024\n\
         feed_forward_hidden = 4096\nheads = 16\nvocabulary = 32000\nsequence = 1024\npp = 4\nmicrobatches = 8\n\
         tflops = 20.0\niterations = 3\n"
    );
    let result = result(&text);
    // Multiplications and additions for one token: four attention and three feed-forward matrices of a layer, attention
    // to half of the sequence in the mean, since it is causal, and a quarter of the logits. The backward pass takes twice as many.
    let (hidden, feed, sequence, vocabulary) = (1024.0, 4096.0, 1024.0, 32_000.0);
    let layer = 2.0 * (4.0 * hidden * hidden + 3.0 * hidden * feed) + 2.0 * hidden * sequence;
    let each_ns = 3.0 * sequence * (layer + 2.0 * vocabulary * hidden / 4.0) / 20e12 * 1e9;
    has_the_period_of_a_pipeline(&result, (4.0, 8.0), each_ns, "transformer");
    let overlaps = result.jobs.iter().filter(|job| job.from_ps() > job.start_ps).count();
    assert_eq!(overlaps, 2, "the second and the third begin before the one before them ends");
}

/// With slow ranks, jitter, faults and a competing job the times still add up.
#[test]
fn iterations_with_stragglers_add_up() {
    let text = include_str!("../../../../scenarios/stragglers.toml");
    let result = result(text);
    times_add_up(&result, "stragglers");
    let summary = Summary::from_run(&result);
    for (iteration, path) in summary.iterations.iter().zip(&summary.critical_paths) {
        assert!(path.time_ns < 1.02 * iteration.time_ns, "{iteration:?}: a path of {} ns", path.time_ns);
    }
}

/// All rounds do the same, and each is over with its last message, whose acknowledgement only delays the next one. So a
/// round takes as long as a single one, and as the collective in it.
#[test]
fn rounds_of_a_collective_take_equally_long() {
    let gathers = [
        "kind = \"collective\"",
        "kind = \"collective\"\nalgorithm = \"halving-doubling\"",
        "kind = \"nccl\"\ngpu = \"h100\"",
    ]
    .map(|kind| format!("{kind}\noperation = \"all-gather\"\n"));
    let others =
        ["kind = \"ring-all-reduce\"\n", "kind = \"all-to-all\"\n", "kind = \"all-to-all\"\nwindow = 1\n"];
    for kind in gathers.into_iter().chain(others.map(str::to_owned)) {
        let rounds = |repetitions: u32| {
            let text = format!(
                "[topology]\nkind = \"star\"\nhosts = 2\n[[workload]]\n{kind}size = \"8KB\"\n\
                 repetitions = {repetitions}\n"
            );
            let result = result(&text);
            result.jobs.iter().map(|job| job.completion_ps().expect("it ended")).collect::<Vec<_>>()
        };
        assert_eq!(rounds(3), [rounds(1)[0]; 3], "{kind}");
    }
}
