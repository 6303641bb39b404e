//! Cost of fixed point: figures 8 and 9 of the paper at 80 % load, with weights in floating point and in the
//! circuit's integers.

use pathweave_scenario::{Changes, Loaded};
use pathweave_sim::NoMonitor;

/// Rails of the paper (`papers/laps/rail.toml`), with LAPS as in the paper's figures.
const RAIL: &str = include_str!("../../../../papers/laps/rail.toml");

/// Returns the mean and the 99th percentile of completion times in microseconds.
fn completion_times(sizes: &str, arithmetic: &str, seed: u64) -> (f64, f64) {
    let set = [
        "scheme=study-laps".to_owned(),
        "routing={kind=\"source\"}".to_owned(),
        format!("schemes.study-laps.policy.arithmetic={arithmetic}"),
        format!("workload=[{{kind=\"poisson\",sizes=\"{sizes}\",load=0.8,duration=\"300us\"}}]"),
    ];
    let changes = Changes { set: set.to_vec(), seed: Some(seed), ..Changes::default() };
    let loaded = Loaded::parse(RAIL, "rail.toml", ".", &changes).unwrap_or_else(|why| panic!("{why}"));
    let prepared = loaded.prepare().unwrap_or_else(|why| panic!("{why}"));
    let result = pathweave_sim::run(&prepared.spec, &mut NoMonitor).expect("a run");
    let mut times: Vec<f64> = result
        .flows
        .iter()
        .map(|flow| flow.finish_ps.expect("every flow ends") as f64 / 1e6)
        .zip(result.flows.iter().map(|flow| flow.start_ps as f64 / 1e6))
        .map(|(finish, start)| finish - start)
        .collect();
    times.sort_by(f64::total_cmp);
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    (mean, times[times.len() * 99 / 100])
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64;
    (mean, square.sqrt())
}

/// Over ten seeds, the means of the two statistics must differ by less than the seeds do.
#[test]
#[ignore = "minutes: `make hardware-test`"]
fn fixed_point_costs_less_than_seeds_differ() {
    for sizes in ["websearch", "datamining"] {
        let each: Vec<_> = (1..=10)
            .map(|seed| (completion_times(sizes, "float", seed), completion_times(sizes, "fixed", seed)))
            .collect();
        for (what, of) in [("mean", 0), ("P99", 1)] {
            let pick = |(mean, p99): (f64, f64)| if of == 0 { mean } else { p99 };
            let float: Vec<f64> = each.iter().map(|(float, _)| pick(*float)).collect();
            let fixed: Vec<f64> = each.iter().map(|(_, fixed)| pick(*fixed)).collect();
            let (a, spread) = mean_and_deviation(&float);
            let (b, _) = mean_and_deviation(&fixed);
            let percent = (b / a - 1.0) * 100.0;
            println!(
                "{sizes}, {what} of ten seeds: float {a:.1} us (seeds: +-{spread:.1}), fixed {b:.1} us ({percent:+.2} %)"
            );
            assert!((a - b).abs() < spread, "{sizes}, {what}: {a} and {b}, seeds {spread}");
        }
    }
}
