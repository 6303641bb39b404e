//! Curves of schemes: the number of flows that have arrived over time, or the share of flows slower than a slowdown.

use pathweave_records::figures::{Finished, values};
use pathweave_records::{Arrivals, Quantity, RunResult, ns};

use super::situation::SchemeComparison;
use crate::chart::{Axis, Chart, Frame, Join};
use crate::judge::Measure;
use crate::saved::csv_line;
use crate::template::escape;

const FRAME: Frame = Frame { width: 440.0, height: 290.0, left: 52.0, right: 14.0, top: 12.0, bottom: 46.0 };
/// Number of points of a curve.
const POINTS: usize = 160;
/// Smallest share of flows that is drawn.
const LEAST: f64 = 1e-4;

/// Extent of pictures, at least; 0 if they have only their own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    /// Largest value of a bar.
    pub(super) value: f64,
    /// Largest value on the horizontal axis of curves.
    pub(super) right: f64,
    /// Smallest share of flows in curves; 0 if unknown.
    pub(super) least: f64,
}

impl Extent {
    /// Returns an extent in which both fit.
    pub(super) fn with(self, other: Extent) -> Extent {
        let least = if self.least > 0.0 { self.least.min(other.least) } else { other.least };
        Extent { value: self.value.max(other.value), right: self.right.max(other.right), least }
    }
}

/// Returns the extent of the curves of a situation.
pub(super) fn extent(situation: &SchemeComparison<'_>, measure: Measure) -> Extent {
    let points = || situation.runs.iter().flat_map(|(run, _)| curve(run, measure).points);
    Extent {
        value: 0.0,
        right: points().map(|p| p.0).fold(0.0, f64::max),
        least: points().map(|p| p.1).fold(1.0, f64::min),
    }
}

/// Draws the curves with colours by run, or returns `None` if no flow of any run finished.
pub(super) fn svg(
    situation: &SchemeComparison<'_>,
    measure: Measure,
    colours: &[usize],
    extent: Extent,
) -> Option<String> {
    let mut curves: Vec<Curve> = situation.runs.iter().map(|(run, _)| curve(run, measure)).collect();
    let own = curves.iter().flat_map(|curve| &curve.points).map(|p| p.0).fold(0.0, f64::max);
    if own <= 0.0 {
        return None;
    }
    let most = own.max(extent.right);
    if measure != Measure::JobTime {
        // Flows that did not finish are slower than whatever is drawn.
        for Curve { points, flows, open } in &mut curves {
            if *open > 0 && !points.is_empty() {
                points.push((most, *open as f64 / *flows as f64));
            }
        }
    }
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let (x, y, title, below) = match measure {
        Measure::JobTime => {
            (Axis::linear(0.0, most), Axis::linear(0.0, 1.0), "Flows that have arrived", "time")
        }
        Measure::TailSlowdown | Measure::TailTime => {
            let others = if extent.least > 0.0 { extent.least } else { 1.0 };
            let least = all().map(|p| p.1).fold(others, f64::min).clamp(LEAST, 0.1);
            let (from, words) = match measure {
                Measure::TailTime => (all().map(|p| p.0).fold(most, f64::min), "completion time"),
                _ => (1.0, "slowdown: time over that on an idle network"),
            };
            let x = Axis::log(from, most.max(2.0 * from));
            (x, Axis::log(least, 1.0), "Flows that are slower", words)
        }
    };
    let mut chart = Chart::new(FRAME, x, y);
    chart.x_ticks(&x.ticks(5), |tick| match measure {
        Measure::JobTime | Measure::TailTime => Quantity::TimeNs.format_short(tick),
        Measure::TailSlowdown => format!("{tick}"),
    });
    chart.y_ticks(&y.ticks(5), |tick| format!("{} %", (tick * 100.0 * 1e4).round() / 1e4));
    chart.x_title(below);
    // No flow arrives between two arrivals, and none is as slow as what lies between two slowdowns.
    let join = if measure == Measure::JobTime { Join::Steps } else { Join::StepsBefore };
    // Of fewer flows than a hundred, none stands for one in a hundred.
    let flows = curves.iter().map(|curve| curve.flows).max().unwrap_or(0);
    if measure != Measure::JobTime && flows >= 100 {
        chart.level(0.01, "P99");
    }
    let names = situation.runs.iter().map(|(run, _)| run.info.name.as_str());
    let numbers = numbers(names, &curves, measure);
    for (curve, colour) in curves.into_iter().zip(colours) {
        // All flows take at least the time on an idle network, and none is slower than the slowest.
        let (first, last) = match measure {
            Measure::JobTime => (None, None),
            _ if curve.points.is_empty() => (None, None),
            _ => (Some((x.from(), 1.0)), curve.points.last().filter(|_| curve.open == 0).map(|p| (p.0, 0.0))),
        };
        let points = first.into_iter().chain(curve.points).chain(last);
        chart.curve(points, join, &format!("style=\"stroke:var(--c{colour})\""));
    }
    Some(chart.svg(&format!("data-numbers=\"{}\"", escape(&numbers)), title))
}

/// Returns the points of the curves as CSV.
pub(super) fn csv(situation: &SchemeComparison<'_>, measure: Measure) -> String {
    let mut out = csv_line(["run", heading(measure), SHARE]);
    for (run, _) in &situation.runs {
        let points = curve(run, measure).points;
        out.extend(
            points.iter().map(|(x, share)| csv_line([&run.info.name, &x.to_string(), &share.to_string()])),
        );
    }
    out
}

/// Returns the points of curves as JSON, from which the page writes a CSV file.
fn numbers<'a>(names: impl Iterator<Item = &'a str>, curves: &[Curve], measure: Measure) -> String {
    let rows: Vec<(&str, f64, f64)> = names
        .zip(curves)
        .flat_map(|(name, curve)| curve.points.iter().map(move |&(x, share)| (name, x, share)))
        .collect();
    serde_json::json!({"head": ["run", heading(measure), SHARE], "rows": rows}).to_string()
}

/// Heading of the column of shares.
const SHARE: &str = "flows (ratio)";

fn heading(measure: Measure) -> &'static str {
    match measure {
        Measure::JobTime | Measure::TailTime => "time (ns)",
        Measure::TailSlowdown => "slowdown",
    }
}

/// Curve of a run.
struct Curve {
    /// Value and share of the flows.
    points: Vec<(f64, f64)>,
    /// Number of flows in the foreground.
    flows: u64,
    /// Number of these that did not finish.
    open: u64,
}

fn curve(run: &RunResult, measure: Measure) -> Curve {
    let figures = run.figures();
    let groups = figures.foreground();
    let flows = groups.iter().map(|group| group.count).sum::<u64>();
    let finished = groups.iter().map(|group| group.finished.len() as u64).sum::<u64>();
    let count = flows as f64;
    let points = match measure {
        Measure::JobTime => {
            let points = Arrivals::of_all(groups.iter().map(|group| &group.arrivals)).points();
            let shown = evenly(points.len(), POINTS).map(|i| points[i]);
            let shown = shown.map(|(instant_ps, arrived)| (ns(instant_ps), arrived as f64 / count));
            std::iter::once((0.0, 0.0)).chain(shown).collect()
        }
        // Ranks become denser towards the slowest.
        Measure::TailSlowdown | Measure::TailTime => {
            let by_time = measure == Measure::TailTime;
            let mut values = values(&groups, if by_time { Finished::fct_ns } else { Finished::slowdown });
            values.sort_unstable_by(f64::total_cmp);
            let n = values.len();
            let mut ranks: Vec<usize> = (0..POINTS)
                .map(|i| n - (n as f64).powf(1.0 - i as f64 / POINTS as f64).round() as usize)
                .collect();
            ranks.dedup();
            let share = |i: usize| (count - i as f64) / count;
            ranks.into_iter().filter(|&i| i < n).map(|i| (values[i], share(i).max(LEAST))).collect()
        }
    };
    let times = u64::from(run.info.times_recorded());
    Curve { points, flows: times * flows, open: times * (flows - finished) }
}

fn evenly(n: usize, points: usize) -> impl Iterator<Item = usize> {
    let shown = n.min(points);
    (0..shown).map(move |k| if shown == 1 { 0 } else { k * (n - 1) / (shown - 1) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_records::{FlowRecord, FlowStatus, Summary};

    fn run(slowdowns: &[u64]) -> RunResult {
        let flow = |&s: &u64| FlowRecord {
            start_ps: 0,
            finish_ps: Some(s * 1_000),
            ideal_fct_ps: 1_000,
            status: FlowStatus::Finished,
            ..FlowRecord::default()
        };
        let mut run = RunResult { flows: slowdowns.iter().map(flow).collect(), ..RunResult::default() };
        run.info.groups = vec!["g".to_owned()];
        run.info.schemes = vec!["rps".to_owned()];
        run
    }

    #[test]
    fn curves_count_what_has_arrived_or_what_is_slower() {
        let run = run(&[4, 1, 2, 3]);
        assert_eq!(
            curve(&run, Measure::JobTime).points,
            [(0.0, 0.0), (1.0, 0.25), (2.0, 0.5), (3.0, 0.75), (4.0, 1.0)]
        );
        // All flows are at least as slow as the fastest, and a quarter is as slow as the slowest.
        assert_eq!(
            curve(&run, Measure::TailSlowdown).points,
            [(1.0, 1.0), (2.0, 0.75), (3.0, 0.5), (4.0, 0.25)]
        );
    }

    /// Returns the path of the curve of a run, with its horizontal and vertical steps.
    fn path(run: &RunResult) -> String {
        let summary = Summary::from_run(run);
        let situation = SchemeComparison {
            title: "",
            description: "",
            report: String::new(),
            runs: vec![(run, &summary)],
            missing: Vec::new(),
        };
        let svg = svg(&situation, Measure::TailSlowdown, &[0], Extent::default()).unwrap();
        let curve = svg.split("class=\"curve\"").nth(1).expect("a curve is drawn");
        curve.split(" d=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    }

    /// The field is from 52 to 426 and from 12 to 244; its right end is at a slowdown of 4, its lower one at a tenth.
    #[test]
    fn no_flow_is_between_two_slowdowns() {
        // All are slower than 1, three of four than 2 up to where they are, and a quarter up to 4, where the curve ends.
        assert_eq!(
            path(&run(&[2, 2, 2, 4])),
            "M52.0 12.0V12.0H239.0V41.0H239.0V81.8H239.0V151.7H426.0V244.0H426.0"
        );
        // The only flow has a step of its own.
        assert_eq!(path(&run(&[4])), "M52.0 12.0V12.0H426.0V244.0H426.0");
    }

    #[test]
    fn flows_that_did_not_finish_are_slower_than_those_that_did() {
        let mut run = run(&[1, 2, 9, 9]);
        for open in &mut run.flows[2..] {
            (open.finish_ps, open.status) = (None, FlowStatus::Unfinished);
        }
        let drawn = curve(&run, Measure::TailSlowdown);
        assert_eq!(drawn.points, [(1.0, 1.0), (2.0, 0.75)]);
        assert_eq!((drawn.flows, drawn.open), (4, 2));
        let summary = Summary::from_run(&run);
        let svg = |flows: usize| {
            let mut run = run.clone();
            let finished = run.flows[0];
            run.flows.resize(flows, finished);
            let situation = SchemeComparison {
                title: "",
                description: "",
                report: String::new(),
                runs: vec![(&run, &summary)],
                missing: Vec::new(),
            };
            svg(&situation, Measure::TailSlowdown, &[0], Extent::default()).unwrap()
        };
        // The last point is at the right edge: half of four flows.
        assert!(svg(4).contains("[&quot;&quot;,2.0,0.5]"), "{}", svg(4));
        assert!(!svg(99).contains(">P99<") && svg(100).contains(">P99<"));
    }
}
