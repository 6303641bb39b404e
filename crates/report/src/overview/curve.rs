//! Curves of schemes: the number of flows that have arrived over time, or the share of flows slower than a slowdown.

use pathweave_records::figures::{Finished, values};
use pathweave_records::{Arrivals, Quantity, RunResult, ns, round_ticks};

use super::situation::SchemeComparison;
use super::verdict::Measure;

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 290.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 46.0;
/// Half of the widest label of the horizontal axis.
const HALF_LABEL: f64 = 28.0;
/// Number of points of a curve.
const POINTS: usize = 160;
/// Smallest share of flows that is drawn.
const LEAST: f64 = 1e-4;

/// An axis: its ends, and its scale between them.
#[derive(Clone, Copy)]
struct Axis {
    from: f64,
    to: f64,
    log: bool,
}

impl Axis {
    /// Returns the position of a value on the axis, from 0 to 1.
    fn at(self, value: f64) -> f64 {
        let of = |v: f64| if self.log { v.max(1e-300).log10() } else { v };
        ((of(value) - of(self.from)) / (of(self.to) - of(self.from)).max(1e-12)).clamp(0.0, 1.0)
    }

    /// Returns about 5 round values.
    fn ticks(self) -> Vec<f64> {
        if self.log {
            let decades = self.from.log10().floor() as i32..=self.to.log10().ceil() as i32;
            let steps: &[f64] = if (self.to / self.from).log10() > 2.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
            let all = decades.flat_map(|d| steps.iter().map(move |s| s * 10f64.powi(d)));
            return all.filter(|t| (self.from * 0.999..=self.to * 1.001).contains(t)).collect();
        }
        round_ticks(self.from, self.to, 5)
    }
}

/// Draws the curves with colours by run, or returns `None` if no flow of any run finished.
pub(super) fn svg(situation: &SchemeComparison<'_>, measure: Measure, colours: &[usize]) -> Option<String> {
    let curves: Vec<Vec<(f64, f64)>> = situation.runs.iter().map(|(run, _)| curve(run, measure)).collect();
    let all = || curves.iter().flatten();
    let most = all().map(|p| p.0).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let (x, y, title) = match measure {
        Measure::Completion => (
            Axis { from: 0.0, to: most, log: false },
            Axis { from: 0.0, to: 1.0, log: false },
            "Flows that have arrived",
        ),
        Measure::TailSlowdown => {
            let least = all().map(|p| p.1).fold(1.0, f64::min).clamp(LEAST, 0.1);
            (
                Axis { from: 1.0, to: most.max(2.0), log: true },
                Axis { from: least, to: 1.0, log: true },
                "Flows that are slower",
            )
        }
    };
    let (wide, high) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let place = |(u, v): (f64, f64)| (LEFT + x.at(u) * wide, TOP + (1.0 - y.at(v)) * high);
    let mut out = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">");
    for tick in x.ticks() {
        let (at, _) = place((tick, y.to));
        out += &format!("<path class=\"grid\" d=\"M{at:.1} {TOP}v{high}\"/>");
        let label = match measure {
            Measure::Completion => Quantity::TimeNs.format_short(tick),
            Measure::TailSlowdown => format!("{tick}"),
        };
        // A label at the right end would exceed the picture.
        let (at, anchor) = if at > WIDTH - HALF_LABEL { (WIDTH - 1.0, "end") } else { (at, "middle") };
        out += &text(at, TOP + high + 16.0, anchor, &label);
    }
    for tick in y.ticks() {
        let (_, at) = place((x.to, tick));
        out += &format!("<path class=\"grid\" d=\"M{LEFT} {at:.1}h{wide}\"/>");
        let percent = (tick * 100.0 * 1e4).round() / 1e4;
        out += &text(LEFT - 6.0, at + 4.0, "end", &format!("{percent} %"));
    }
    let below = match measure {
        Measure::Completion => "time",
        Measure::TailSlowdown => "slowdown: time over that on an idle network",
    };
    out += &text(LEFT + wide / 2.0, HEIGHT - 8.0, "middle", below);
    if measure == Measure::TailSlowdown {
        let (_, at) = place((x.to, 0.01));
        out += &format!("<path class=\"level\" d=\"M{LEFT} {at:.1}h{wide}\"/>");
        out += &text(LEFT + wide, at - 5.0, "end", "P99");
    }
    for (points, colour) in curves.iter().zip(colours) {
        let mut line = String::new();
        for (u, v) in points.iter().map(|&point| place(point)) {
            line += &match (line.is_empty(), measure) {
                (true, _) => format!("M{u:.1} {v:.1}"),
                // No flow arrives between two arrivals.
                (false, Measure::Completion) => format!("H{u:.1}V{v:.1}"),
                (false, Measure::TailSlowdown) => format!("L{u:.1} {v:.1}"),
            };
        }
        if points.len() > 1 {
            out += &format!("<path class=\"curve\" style=\"stroke:var(--c{colour})\" d=\"{line}\"/>");
        }
    }
    Some(out + "</svg>")
}

fn text(x: f64, y: f64, anchor: &str, text: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>")
}

/// Returns the points of the curve of a run: value and share.
fn curve(run: &RunResult, measure: Measure) -> Vec<(f64, f64)> {
    let figures = run.figures();
    let flows = figures.foreground();
    let count = flows.iter().map(|group| group.count).sum::<u64>() as f64;
    match measure {
        Measure::Completion => {
            let points = Arrivals::of_all(flows.iter().map(|group| &group.arrivals)).points();
            let shown = evenly(points.len(), POINTS).map(|i| points[i]);
            let shown = shown.map(|(instant_ps, arrived)| (ns(instant_ps), arrived as f64 / count));
            std::iter::once((0.0, 0.0)).chain(shown).collect()
        }
        // Ranks become denser towards the slowest.
        Measure::TailSlowdown => {
            let mut values = values(&flows, Finished::slowdown);
            values.sort_unstable_by(f64::total_cmp);
            let n = values.len();
            let mut ranks: Vec<usize> = (0..POINTS)
                .map(|i| n - (n as f64).powf(1.0 - i as f64 / POINTS as f64).round() as usize)
                .collect();
            ranks.dedup();
            let share = |i: usize| (n - i) as f64 / count;
            ranks.into_iter().filter(|&i| i < n).map(|i| (values[i], share(i).max(LEAST))).collect()
        }
    }
}

fn evenly(n: usize, points: usize) -> impl Iterator<Item = usize> {
    let shown = n.min(points);
    (0..shown).map(move |k| if shown == 1 { 0 } else { k * (n - 1) / (shown - 1) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_records::{FlowRecord, FlowStatus};

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
        run
    }

    #[test]
    fn curves_count_what_has_arrived_or_what_is_slower() {
        let run = run(&[4, 1, 2, 3]);
        assert_eq!(
            curve(&run, Measure::Completion),
            [(0.0, 0.0), (1.0, 0.25), (2.0, 0.5), (3.0, 0.75), (4.0, 1.0)]
        );
        // All flows are at least as slow as the fastest, and a quarter is as slow as the slowest.
        assert_eq!(curve(&run, Measure::TailSlowdown), [(1.0, 1.0), (2.0, 0.75), (3.0, 0.5), (4.0, 0.25)]);
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(Axis { from: 0.0, to: 10.6, log: false }.ticks(), [0.0, 5.0, 10.0]);
        assert_eq!(Axis { from: 1.0, to: 40.0, log: true }.ticks(), [1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(Axis { from: 0.5, to: 2.0, log: true }.at(1.0), 0.5);
    }
}
