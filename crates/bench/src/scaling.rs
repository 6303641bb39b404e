//! Speed-up of a run by threads: wall time of B1 to B3 by number of threads, as a table and a curve.

use pathweave_report::chart::{Anchor, Axis, Chart, Frame, Join};
use serde_json::{Map, Value, json};

use crate::workloads::Bench;

/// Returns the number of cores of this machine, limited to the 1,024 that one run can use.
pub(crate) fn cores() -> u16 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(1_024) as u16)
}

/// Returns 1, 2, 4, ... below the number of cores, and that number.
pub(crate) fn steps(cores: u16) -> Vec<u16> {
    let mut steps: Vec<u16> = (0..16).map(|power| 1 << power).take_while(|step| *step < cores).collect();
    steps.push(cores);
    steps
}

/// Measures a benchmark `runs` times with each number of threads, in turns. The fastest counts. `run` makes a run in
/// a separate process.
pub(crate) fn measure(
    bench: &Bench,
    steps: &[u16],
    runs: usize,
    run: impl Fn(&Bench, u16) -> Value,
) -> Value {
    let mut best: Vec<Option<Value>> = vec![None; steps.len()];
    for _ in 0..runs {
        for (best, &threads) in best.iter_mut().zip(steps) {
            let value = run(bench, threads);
            if best.as_ref().is_none_or(|best| wall_s(&value) < wall_s(best)) {
                *best = Some(value);
            }
        }
    }
    let mut table = Map::new();
    for (&threads, value) in steps.iter().zip(best.into_iter().flatten()) {
        let keep = |field: &str| value[field].clone();
        let row = json!({
            "wall_s": keep("wall_s"),
            "packet_hops_per_s": keep("packet_hops_per_s"),
            "cpu_s": keep("cpu_s"),
            "peak_rss_bytes": keep("peak_rss_bytes"),
            "digest": keep("digest"),
        });
        table.insert(threads.to_string(), row);
    }
    Value::Object(table)
}

/// Returns the speed-up of a number of threads over one.
pub(crate) fn speedup(table: &Value, threads: u16) -> Option<f64> {
    let wall = |threads: u16| table[threads.to_string()]["wall_s"].as_f64();
    Some(wall(1)? / wall(threads)?)
}

/// Returns true if all numbers of threads gave the same digest.
pub(crate) fn agree(table: &Value) -> bool {
    let digests: Vec<&Value> =
        table.as_object().into_iter().flat_map(Map::values).map(|row| &row["digest"]).collect();
    digests.windows(2).all(|pair| pair[0] == pair[1])
}

fn wall_s(value: &Value) -> f64 {
    value["wall_s"].as_f64().unwrap_or(f64::MAX)
}

/// Returns a plot with a curve per benchmark: speed-up over threads, and the ideal line.
pub(crate) fn curve(tables: &[(&str, Value)], steps: &[u16]) -> String {
    let most = f64::from(*steps.last().unwrap_or(&1)).max(2.0);
    let axis = Axis::linear(0.0, most);
    let frame = Frame { width: 480.0, height: 360.0, left: 48.0, right: 48.0, top: 48.0, bottom: 48.0 };
    let mut chart = Chart::new(frame, axis, axis);
    let ticks: Vec<f64> = steps.iter().copied().map(f64::from).collect();
    chart.x_ticks(&ticks, |step| step.to_string());
    chart.y_ticks(&ticks, |step| step.to_string());
    chart.x_title("threads");
    chart.text((8.0, 24.0), Anchor::Start, "", "times as fast as one");
    chart.curve([(0.0, 0.0), (most, most)], Join::Straight, "stroke=\"#999\" stroke-dasharray=\"4 4\"");
    for (number, (name, table)) in tables.iter().enumerate() {
        let points = steps.iter().filter_map(|&step| Some((f64::from(step), speedup(table, step)?)));
        let colour = format!("var(--c{number})");
        chart.curve(points, Join::Straight, &format!("style=\"stroke:{colour}\""));
        chart.draw(&format!("<g style=\"--soft:{colour}\">"));
        chart.text((60.0, 64.0 + 16.0 * number as f64), Anchor::Start, "", name);
        chart.draw("</g>");
    }
    chart.file("Speed-up over threads")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_and_all_cores() {
        assert_eq!(steps(1), [1]);
        assert_eq!(steps(2), [1, 2]);
        assert_eq!(steps(16), [1, 2, 4, 8, 16]);
        assert_eq!(steps(12), [1, 2, 4, 8, 12]);
    }

    #[test]
    fn the_curve_goes_through_what_was_measured() {
        let table = json!({
            "1": {"wall_s": 2.0, "digest": "a"},
            "2": {"wall_s": 1.0, "digest": "a"},
        });
        assert_eq!(speedup(&table, 2), Some(2.0));
        assert!(agree(&table));
        let svg = curve(&[("B1", table)], &[1, 2]);
        // Twice as fast with two threads is the upper right corner of the field.
        assert!(svg.contains("M240.0 180.0L432.0 48.0"), "{svg}");
    }
}
