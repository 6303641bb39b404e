//! Training of transformers: figures of runs by hand, memory, and GPUs of servers that are alike.

use pathweave_records::{RunResult, ScaleUpBytes, Summary, collectives, layers};
use pathweave_scenario::{Changes, Loaded, Prepared, run};
use pathweave_sim::NoMonitor;
use serde_json::Value;

fn prepared(text: &str, set: &[&str]) -> Prepared {
    let set = set.iter().map(|&text| text.to_owned()).collect();
    let changes = Changes { set, ..Changes::default() };
    let loaded = Loaded::parse(text, "test.toml", "", &changes).unwrap_or_else(|why| panic!("{why}"));
    loaded.prepare().unwrap_or_else(|why| panic!("{why}"))
}

fn result(text: &str, set: &[&str]) -> RunResult {
    run(&prepared(text, set).spec, &mut NoMonitor).expect("it was tried")
}

/// Four servers of four GPUs: TP 4, CP 2, PP 1 and two replicas; or TP 4, PP 2 and two replicas.
const SERVERS: &str = "scheme = \"rps\"\nrun = { fidelity = \"flow\", calibrate = \"off\" }\n\
    [topology]\nkind = \"cluster\"\nservers = 4\nattach = \"server\"\n\
    server = { gpus = 4, nics = 4, port_rate = \"400Gbps\", scale_up = { kind = \"switch\", rate = \"3600Gbps\", delay = \"250ns\" } }\n\
    scale_out = { kind = \"star\", hosts = 16, rate = \"400Gbps\" }\n\
    [[workload]]\nkind = \"transformer\"\nlayers = 4\nhidden = 1024\nfeed_forward_hidden = 4096\nheads = 16\n\
    vocabulary = 32000\nsequence = 2048\ntp = 4\nmicrobatches = 4\ngpu = \"h100\"\n";

/// GPUs of a server move on together, and replicas change places: one of eight runs for all. The iteration takes as
/// long as with all of them.
#[test]
fn gpus_of_servers_that_are_alike_run_once() {
    for more in ["workload[0].pp=2", "workload[0].cp=2"] {
        let whole = result(SERVERS, &["run.fold=never", more]);
        let folded = result(SERVERS, &["run.fold=always", more]);
        assert_eq!((whole.info.ranks_represented, folded.info.ranks_represented), (None, Some(8)), "{more}");
        assert_eq!(whole.flows.len(), 8 * folded.flows.len(), "{more}");
        let time = |run: &RunResult| Summary::from_run(run).training[0].iteration_ns;
        let error = time(&folded) / time(&whole) - 1.0;
        assert!(error.abs() < 0.001, "{more}: {error}");
    }
}

/// Collects the places of two summaries at which numbers differ by more than 3 %, or texts differ.
fn differences(place: &str, whole: &Value, folded: &Value, found: &mut Vec<String>) {
    match (whole, folded) {
        (Value::Object(a), Value::Object(b)) => {
            assert!(a.keys().eq(b.keys()), "{place}: {a:?} {b:?}");
            a.keys().for_each(|key| differences(&format!("{place}/{key}"), &a[key], &b[key], found));
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).enumerate();
            pairs.for_each(|(i, (a, b))| differences(&format!("{place}/{i}"), a, b, found));
        }
        (Value::Number(a), Value::Number(b)) => {
            let [a, b] = [a, b].map(|number| number.as_f64().expect("a number"));
            if (a - b).abs() > 0.03 * a.abs().max(1.0) {
                found.push(format!("{place}: {a} and {b}"));
            }
        }
        (a, b) if a != b => found.push(format!("{place}: {a} and {b}")),
        _ => {}
    }
}

/// One of eight ranks runs. Each figure of the summary is that of the whole job, apart from the effort of the simulation
/// and the words of a critical path, which name one of several equal ones.
#[test]
fn figures_of_ranks_that_stand_for_others_are_of_the_whole_job() {
    for more in ["workload[0].pp=2", "workload[0].cp=2"] {
        let runs = ["never", "always"].map(|fold| result(SERVERS, &[&format!("run.fold={fold}"), more]));
        let [whole, folded] = runs.each_ref();
        let summaries = runs.each_ref().map(|run| {
            let mut summary = serde_json::to_value(Summary::from_run(run)).expect("it serialises");
            let of_run = summary["run"].as_object_mut().expect("an object");
            of_run.retain(|key, _| matches!(key.as_str(), "simulated_ns" | "ended" | "warnings"));
            for path in summary["critical_paths"].as_array_mut().expect("a list") {
                let time_ns = path["time_ns"].take();
                *path = time_ns;
            }
            summary
        });
        let mut found = Vec::new();
        differences("", &summaries[0], &summaries[1], &mut found);
        assert_eq!(found, [""; 0], "{more}");
        let of_layers = |run| layers(run).iter().map(|l| (l.ranks, l.activities)).collect::<Vec<_>>();
        assert_eq!(of_layers(whole), of_layers(folded), "{more}");
        let of_collectives = |run| {
            let all = collectives(run);
            (all.iter().map(|c| u64::from(c.flows)).sum::<u64>(), all.iter().filter_map(|c| c.mean_ps).min())
        };
        let ((flows, fastest), (in_folded, fastest_in_folded)) =
            (of_collectives(whole), of_collectives(folded));
        assert_eq!((flows, fastest.is_some()), (in_folded, true), "{more}");
        let [a, b] = [fastest, fastest_in_folded].map(|ps| ps.expect("all finished") as f64);
        assert!((a / b - 1.0).abs() < 0.02, "{more}: {a} and {b}");
        let sent = runs.each_ref().map(|run| {
            let mut sums = ScaleUpBytes::new(run.info.servers.as_ref()).expect("GPUs have scale-up links");
            run.flows.iter().for_each(|flow| sums.add(flow));
            sums.sent_by_hosts(&run.info)
        });
        assert_eq!(sent[0], sent[1], "{more}");
        assert!(sent[0].iter().all(|bytes| *bytes > 0), "{more}");
    }
}

/// Two replicas of 4 microbatches of 2,048 tokens. A layer has 4 x 1024^2 + 3 x 1024 x 4096 parameters, and scores of
/// 2 x 1024 values with 1,024 tokens.
#[test]
fn figures_are_those_of_the_model() {
    let run = result(SERVERS, &["workload[0].pp=2"]);
    let summary = Summary::from_run(&run);
    let [training] = &summary.training[..] else { panic!("one group trains") };
    assert_eq!((training.gpus, training.global_batch, training.tokens), (16, 8, 8 * 2_048));
    let layer = 4.0 * 1_024.0 * 1_024.0 + 3.0 * 1_024.0 * 4_096.0;
    let of_token = 6.0 * (4.0 * layer + 32_000.0 * 1_024.0) + 6.0 * 4.0 * 2.0 * 1_024.0 * 1_024.0;
    let seconds = training.iteration_ns * 1e-9;
    let close = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-5;
    assert!(close(training.tokens_per_s, 16_384.0 / seconds), "{training:?}");
    let tflops = of_token * 16_384.0 / seconds / 16.0 / 1e12;
    assert!(close(training.tflops_per_gpu, tflops), "{training:?}, {tflops}");
    assert!(close(training.mfu.expect("the GPU is known"), tflops / 989.0), "{training:?}");
    let kinds: Vec<&str> = training.exposed_ns.keys().map(String::as_str).collect();
    for kind in ["TP all-gather", "TP reduce-scatter", "DP all-gather", "PP send"] {
        assert!(kinds.contains(&kind), "{kind} of {kinds:?}");
    }
    // The stage with the logits works longest, so the other one waits more than (p - 1) / m.
    assert!(training.pipeline_bubble.expect("it computes") > 0.25, "{training:?}");
}

/// Iterations after the first count from end to end.
#[test]
fn an_iteration_is_a_period() {
    let run = result(SERVERS, &["workload[0].pp=2", "workload[0].iterations=3"]);
    let summary = Summary::from_run(&run);
    let training = &summary.training[0];
    assert_eq!(training.iterations, 2);
    let ends: Vec<u64> = run.jobs.iter().filter_map(|job| job.finish_ps).collect();
    let expected = (ends[2] - ends[0]) as f64 / 2e3;
    assert!((training.iteration_ns / expected - 1.0).abs() < 1e-9, "{training:?}, {expected}");
}

/// 8B on eight GPUs: 32 layers of 218,103,808 parameters and two matrices of 525,336,576. 405B takes 16 bytes for each of
/// its 406 x 10^9 / 8 parameters.
#[test]
fn a_model_that_does_not_fit_is_said_so() {
    let text = "scheme = \"rps\"\ntopology = { kind = \"star\", hosts = 8 }\n[[workload]]\nkind = \"transformer\"\n\
        model = \"llama-3-8b\"\ntp = 8\ngpu = \"h100\"\nscale = 0.001\n";
    let gpu_memory = |set: &[&str]| {
        let inspection = prepared(text, set).inspect();
        let [of] = &inspection.traffic.gpu_memory[..] else { panic!("one group trains") };
        (of.fits, of.memory.total(), of.memory.weights)
    };
    let (fits, _, weights) = gpu_memory(&[]);
    assert!(fits && weights == 2_007_498_752, "{weights}");
    let (fits, total, _) = gpu_memory(&["workload[0].model=\"llama-3-405b\""]);
    assert!(!fits && total > 16 * 405_800_000_000 / 8, "{total}");
}

/// A job that does not fit runs, with a note before and a warning after.
#[test]
fn a_job_without_enough_memory_says_so() {
    let warnings = |set: &[&str]| {
        let prepared = prepared(SERVERS, set);
        let run = run(&prepared.spec, &mut NoMonitor).expect("it was tried");
        let short = |texts: Vec<String>| -> Vec<String> {
            texts.into_iter().filter(|text| text.contains("does not fit the memory of its GPUs")).collect()
        };
        (short(prepared.notes), short(Summary::from_run(&run).run.warnings))
    };
    assert_eq!(warnings(&[]), (Vec::new(), Vec::new()));
    let (notes, after) = warnings(&["workload[0].micro_batch=4096"]);
    assert_eq!(notes, after);
    let [words] = &after[..] else { panic!("{after:?}") };
    for part in [
        "\"transformer\"",
        " of 80.00 GB (h100, stage 0): weights ",
        "gradients ",
        "optimizer ",
        "activations ",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
}

/// A fault after the end of the run had no effect. The end is known before the run if the scenario sets it.
#[test]
fn a_fault_after_the_end_is_named() {
    let text = "topology = { kind = \"star\", hosts = 4 }\n[[workload]]\nkind = \"permutation\"\nsize = \"100KB\"\n\
                [[fault]]\nkind = \"link-loss\"\nlink = \"host1-switch0\"\nprobability = 0.001\n\
                [[fault]]\nkind = \"link-down\"\nlink = \"host0-switch0\"\nat = \"50ms\"\n";
    let late =
        |texts: &[String]| texts.iter().filter(|text| text.contains("fault ")).cloned().collect::<Vec<_>>();
    let found = late(&Summary::from_run(&result(text, &[])).run.warnings);
    let [words] = &found[..] else { panic!("{found:?}") };
    let begin = "fault 2 of 2 had no effect: link-down on host0-switch0 was to begin at 50.00 ms, and the run ended at ";
    assert!(words.starts_with(begin), "{words}");
    assert_eq!(late(&prepared(text, &[]).notes), [""; 0]);
    assert_eq!(
        late(&prepared(text, &["run.until=1ms"]).notes),
        [
            "fault 2 of 2 has no effect: link-down on host0-switch0 begins at 50ms, and the run ends at run.until = 1ms"
        ]
    );
    assert_eq!(
        late(&Summary::from_run(&result(text, &["fault[1].at=1us", "fault[1].up_at=2us"])).run.warnings),
        [""; 0]
    );
}
