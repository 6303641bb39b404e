//! Plans of small clusters, run to their end: the search finds what all candidates give.

use std::collections::BTreeMap;
use std::path::Path;

use pathweave_records::Summary;
use pathweave_scenario::{Changes, Loaded, run};
use pathweave_sim::NoMonitor;
use pathweave_study::sweep::{
    Choice, ChoiceOutcome, Choices, ClusterPlan, Dataset, Outcome, SearchStep, SweepSummary, encode_files,
};

/// Sixteen GPUs: on one switch, on two tiers with and without oversubscription, and in four servers.
const PLAN: &str = "\
fidelity = ['flow']
schemes = ['rps']
[scenario.run]
calibrate = 'off'
[[scenario.workload]]
kind = 'transformer'
layers = 4
hidden = 1024
feed_forward_hidden = 4096
heads = 16
vocabulary = 32000
sequence = 2048
gpu = 'h100'
global_batch = 16
[parallelism]
tp = [1, 2, 4, 8]
pp = [1, 2, 4]
vp = [1, 2]
cp = [1, 2]
[[fabric]]
name = 'star'
topology = { kind = 'star', hosts = 16, rate = '100Gbps' }
extra_cost = 3000
[[fabric]]
name = 'two tiers'
topology = { kind = 'leaf-spine', leaves = 4, spines = 4, hosts_per_leaf = 4, host_rate = '100Gbps' }
[[fabric]]
name = 'oversubscribed'
topology = { kind = 'leaf-spine', leaves = 4, spines = 1, hosts_per_leaf = 4, host_rate = '100Gbps' }
[[fabric]]
name = 'servers'
extra_cost = 9000
[fabric.topology]
kind = 'cluster'
servers = 4
attach = 'server'
server = { gpus = 4, nics = 4, port_rate = '100Gbps', scale_up = { kind = 'switch', rate = '3600Gbps', delay = '250ns' } }
scale_out = { kind = 'star', hosts = 16, rate = '100Gbps' }
[prices]
host = 100
[[prices.of]]
rate = '100Gbps'
switch_port = 100
optics = 50
";

struct Executed {
    choices: Choices,
    runs: usize,
}

/// Runs the candidates that the search selects, `at_most` in one call of a resumed plan.
fn execute(text: &str, at_most: usize) -> Executed {
    let plan = ClusterPlan::parse(text, "c.toml", Path::new("")).unwrap_or_else(|why| panic!("{why}"));
    let folder = tempfile::tempdir().unwrap();
    let dataset = Dataset::open(&folder.path().join("plan")).unwrap();
    let mut outcomes: BTreeMap<usize, Outcome> = BTreeMap::new();
    let mut count = 0;
    let left_out = loop {
        match plan.next_runs(&outcomes) {
            SearchStep::Done(left_out) => break left_out,
            SearchStep::Run(runs) => {
                for number in runs.into_iter().take(at_most) {
                    let of = &plan.plan.runs[number];
                    let loaded = Loaded::parse(&of.scenario, "run.toml", "", &Changes::default()).unwrap();
                    let result = run(&loaded.prepare().unwrap().spec, &mut NoMonitor).expect("it was tried");
                    let summary = Summary::from_run(&result);
                    let files = encode_files(&of.key, &result, &summary, &plan.plan.keep).unwrap();
                    outcomes.insert(number, Outcome::Finished(dataset.store(&of.key, &files).unwrap()));
                    count += 1;
                }
            }
        }
    };
    for (cell, why) in left_out {
        for &run in plan.plan.runs_of[cell].as_ref().unwrap() {
            outcomes.entry(run).or_insert_with(|| Outcome::LeftOut(why.clone()));
        }
    }
    let summary = SweepSummary::from_outcomes(&plan.plan, outcomes);
    assert!(!summary.partial);
    Executed { choices: Choices::new(&plan, &summary), runs: count }
}

fn best(choices: &Choices) -> Vec<(String, u64)> {
    let best = choices.choices.iter().filter(|choice| choice.best_of_its_cost);
    best.map(|choice| (choice.name.clone(), choice.tokens_per_s.unwrap() as u64)).collect()
}

fn count(choices: &Choices, ending: ChoiceOutcome) -> usize {
    choices.choices.iter().filter(|choice| choice.ending == ending).count()
}

/// Returns the most tokens a second on each fabric.
fn most_by_fabric(choices: &Choices) -> BTreeMap<String, u64> {
    let mut most = BTreeMap::new();
    for choice in &choices.choices {
        let tokens = choice.tokens_per_s.unwrap_or(0.0) as u64;
        let of_fabric: &mut u64 = most.entry(choice.fabric.clone()).or_default();
        *of_fabric = tokens.max(*of_fabric);
    }
    most
}

/// The best of each fabric is that of all candidates, with fewer runs, whether the plan is interrupted or not. A search
/// for the front runs no more, and finds the same front. No candidate is faster than its bound.
#[test]
fn the_search_loses_no_best_candidate() {
    let all = execute(&format!("search = 'all'\n{PLAN}"), usize::MAX);
    let searched = execute(PLAN, usize::MAX);
    assert!(best(&all.choices).len() > 1, "{:?}", best(&all.choices));
    assert_eq!(best(&searched.choices), best(&all.choices));
    let by_fabric = most_by_fabric(&all.choices);
    assert!(by_fabric.len() == 4 && by_fabric.values().all(|&most| most > 0), "{by_fabric:?}");
    assert_eq!(most_by_fabric(&searched.choices), by_fabric);
    assert!(searched.runs * 3 < all.runs, "{} of {}", searched.runs, all.runs);
    let front = execute(&format!("search = 'front'\n{PLAN}"), usize::MAX);
    assert_eq!(best(&front.choices), best(&all.choices));
    assert!(front.runs <= searched.runs, "{} of {}", front.runs, searched.runs);
    let resumed = execute(PLAN, 3);
    assert_eq!((resumed.runs, best(&resumed.choices)), (searched.runs, best(&searched.choices)));
    let left_out = count(&searched.choices, ChoiceOutcome::LeftOut);
    assert_eq!(left_out + searched.runs, all.runs);
    assert_eq!(count(&searched.choices, ChoiceOutcome::Refused), count(&all.choices, ChoiceOutcome::Refused));
    let ended = |choice: &&Choice| choice.ending == ChoiceOutcome::Ended;
    let ratio = |choice: &Choice| choice.bound_ns.unwrap() / choice.time_ns.unwrap();
    let ratios: Vec<f64> = all.choices.choices.iter().filter(ended).map(ratio).collect();
    assert!(ratios.iter().all(|&ratio| ratio > 0.0 && ratio <= 1.0), "{ratios:?}");
    assert!(ratios.iter().any(|&ratio| ratio > 0.9), "no bound is close: {ratios:?}");
    let page = searched.choices.html();
    assert!(page.contains("Left out: cannot be the best<") && page.contains("Refused"), "{page}");
    assert_eq!(page.matches("<circle").count(), searched.runs);
}

/// Two stages work on four microbatches of eight tokens at an operation a nanosecond. A layer takes 8 x (2 x 4 x 64^2 +
/// 2 x 128 x 4 + 2 x 2 x 64 x 128) = 532,480 ns forward and twice as much backward, the product with the vocabulary
/// 102,400 ns. The second stage needs 12 x (532,480 + 102,400) ns, and the first one 3 x 532,480 ns around it: 32 tokens
/// in 9.216 ms.
#[test]
fn tokens_of_a_candidate_by_hand() {
    let text = "\
fidelity = ['flow']
[[scenario.workload]]
kind = 'transformer'
layers = 2
hidden = 64
feed_forward_hidden = 128
feed_forward = 'plain'
heads = 4
vocabulary = 100
sequence = 8
optimizer = 'replicated'
tflops = 1e-3
schedule = '1f1b'
global_batch = 4
[parallelism]
pp = [2]
[[fabric]]
name = 'star'
topology = { kind = 'star', hosts = 2, rate = '100Gbps' }
[prices]
years = 1
[[prices.of]]
rate = '100Gbps'
switch_port = 100
optics = 50
";
    let done = execute(text, usize::MAX);
    let [choice] = &done.choices.choices[..] else { panic!("one candidate") };
    let tokens = choice.tokens_per_s.unwrap();
    assert!((tokens / (32.0 / 9.216e-3) - 1.0).abs() < 2e-3, "{tokens}");
    // Two ports of 100 USD for a year of 31,557,600 s.
    let cost = choice.cost_per_million_tokens.unwrap();
    assert!((cost / (1e6 * 200.0 / (31_557_600.0 * tokens)) - 1.0).abs() < 1e-9, "{cost}");
    assert_eq!(choice.parallelism.as_deref(), Some("PP2"));
    assert!(choice.best_of_its_cost && choice.memory.is_none());
}

/// Packets run for the best by flows only, and show the error of flows.
#[test]
fn the_best_run_again_by_packets() {
    let text = PLAN
        .replace("fidelity = ['flow']", "fidelity = ['flow', 'packet']")
        .replace("global_batch = 16", "global_batch = 16\nscale = 0.0001")
        .replace("tp = [1, 2, 4, 8]", "tp = [2, 4]")
        .replace("cp = [1, 2]\n", "");
    let done = execute(&text, usize::MAX);
    let of = |fidelity: &str, ending| {
        let is = |choice: &&Choice| choice.fidelity == fidelity && choice.ending == ending;
        done.choices.choices.iter().filter(is).count()
    };
    let flows: Vec<&Choice> = done
        .choices
        .choices
        .iter()
        .filter(|choice| choice.fidelity == "flow" && choice.best_of_its_cost)
        .collect();
    assert!(!flows.is_empty() && flows.iter().all(|choice| choice.error.is_some()), "{flows:?}");
    assert_eq!(of("packet", ChoiceOutcome::Ended), flows.len());
    assert!(of("packet", ChoiceOutcome::LeftOut) > 0);
}

/// Four servers of eight GPUs, with four NICs and leaves for 16 x (2 x 1100 + 600) = 44,800, or with eight of each for
/// twice as much.
const NICS: &str = "\
schemes = ['rps']
fidelity = ['flow']
[[scenario.workload]]
kind = 'transformer'
model = 'llama-3-8b'
layers = 1
gpu = 'h100'
tp = 8
global_batch = 8
[[fabric]]
name = '4 NICs'
[fabric.topology]
kind = 'cluster'
servers = 4
server = { gpus = 8, nics = 4, scale_up = { kind = 'switch', rate = '3600Gbps', efficiency = 0.82 } }
scale_out = { kind = 'leaf-spine', leaves = 4, spines = 4, hosts_per_leaf = 4, host_rate = '400Gbps' }
[[fabric]]
name = '8 NICs'
[fabric.topology]
kind = 'cluster'
servers = 4
server = { gpus = 8, nics = 8, scale_up = { kind = 'switch', rate = '3600Gbps', efficiency = 0.82 } }
scale_out = { kind = 'leaf-spine', leaves = 8, spines = 4, hosts_per_leaf = 4, host_rate = '400Gbps' }
[prices]
of = [{ rate = '400Gbps', switch_port = 600, optics = 500 }]
";

/// Half of the NICs take less than twice as long, so that the cheaper fabric is starred and has the cheapest tokens.
#[test]
fn servers_with_fewer_nics_than_gpus_cost_less() {
    let choices = execute(NICS, usize::MAX).choices.choices;
    let of = |name: &str| choices.iter().find(|choice| choice.fabric == name).unwrap();
    let (four, eight) = (of("4 NICs"), of("8 NICs"));
    assert_eq!((four.cost.cost, eight.cost.cost), (44_800.0, 89_600.0));
    assert!(four.best_of_its_cost);
    assert!(four.time_ns > eight.time_ns);
    assert!(four.cost_per_million_tokens < eight.cost_per_million_tokens);
}
