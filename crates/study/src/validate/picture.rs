//! Pictures of the page, as SVG with the colours of the page.

use pathweave_records::Quantity;
use pathweave_report::chart::{Anchor, Axis, Chart, Frame, Join};
use pathweave_report::{SavedPicture, csv_line, escape};

use crate::validate::catalogue::{ONE_PORT, PACKETS};
use crate::validate::figures::Curve;
use crate::validate::judge::{Outcome, Row};

/// Range of ratios in the overview. Ratios outside it are drawn at the edge, with their number.
const LEAST_RATIO: f64 = 0.5;
const MOST_RATIO: f64 = 2.0;
const TICKS: [f64; 7] = [0.5, 0.67, 0.8, 1.0, 1.25, 1.5, 2.0];

const LINE: f64 = 22.0;
/// Height of the name of a reference above its cases.
const GROUP: f64 = LINE + 8.0;
/// Frame of the overview without cases.
const FRAME: Frame = Frame { width: 950.0, height: 54.0, left: 330.0, right: 60.0, top: 46.0, bottom: 8.0 };

/// Returns the overview: a line per case with its ratios of mean, P50, P99 and maximum.
pub(crate) fn overview(outcomes: &[Outcome]) -> String {
    let groups: Vec<&[Outcome]> = outcomes.chunk_by(|a, b| a.beside == b.beside).collect();
    let height = FRAME.height + groups.len() as f64 * GROUP + outcomes.len() as f64 * LINE;
    let mut chart =
        Chart::new(Frame { height, ..FRAME }, Axis::log(LEAST_RATIO, MOST_RATIO), Axis::linear(0.0, 1.0));
    for (class, low, high) in [("ten", 0.9, 1.1), ("five", 0.95, 1.05)] {
        let ((left, top), (right, bottom)) = (chart.place((low, 1.0)), chart.place((high, 0.0)));
        chart.draw(&format!(
            "<path class=\"{class}\" d=\"M{left:.1} {top:.1}H{right:.1}V{bottom:.1}H{left:.1}z\"/>"
        ));
    }
    chart.x_ticks(&TICKS, |_| String::new());
    for tick in TICKS {
        let (at, _) = chart.place((tick, 0.0));
        chart.text((at, FRAME.top - 6.0), Anchor::Middle, "tick", &tick.to_string());
    }
    let (one, _) = chart.place((1.0, 0.0));
    chart.draw(&format!("<path class=\"one\" d=\"M{one:.1} {}V{:.1}\"/>", FRAME.top, height - FRAME.bottom));
    legend(&mut chart);
    let mut y = FRAME.top;
    for group in groups {
        chart.text((0.0, y + 23.0), Anchor::Start, "peer", &group[0].beside);
        y += GROUP;
        for outcome in group {
            line(&mut chart, outcome, y + LINE / 2.0);
            y += LINE;
        }
    }
    let name = "Ratios of completion times, ours over theirs";
    let svg = chart.svg("class=\"overview\"", name);
    let csv = ratios(outcomes);
    let saved = SavedPicture { name, svg: &svg, style: SAVED, legend: &[], csv: &csv };
    format!("<div class=\"scroll\">{svg}</div>\n{}", saved.links())
}

/// Style of classes in a saved picture.
const SAVED: &str = ".peer{font-weight:600}.one{stroke:var(--soft)}.five{fill:var(--c0);opacity:.2}.ten{fill:var(--c0);opacity:.08}\
                     .in{stroke:var(--c0)}.out{stroke:var(--bad)}.open{fill:none;stroke-width:2}.in.full{fill:var(--c0)}\
                     .out.full{fill:var(--bad)}text.out{stroke:none;fill:var(--bad)}";

/// Returns every ratio of every case as CSV.
fn ratios(outcomes: &[Outcome]) -> String {
    let mut out = csv_line(["beside", "case", "figure", "unit", "ours", "theirs", "ratio"]);
    for outcome in outcomes {
        for row in outcome.trials.iter().flat_map(|trial| &trial.rows) {
            let [ours, theirs, ratio] = [row.ours, row.theirs, row.ratio].map(|value| value.to_string());
            out += &csv_line([&outcome.beside, &outcome.case, &row.figure, row.unit, &ours, &theirs, &ratio]);
        }
    }
    out
}

/// Draws the line of a case.
fn line(chart: &mut Chart, outcome: &Outcome, middle: f64) {
    let class = if outcome.holds { "in" } else { "out" };
    chart.draw(&format!(
        "<path class=\"grid\" d=\"M{} {middle:.1}H{:.1}\"/>",
        FRAME.left,
        FRAME.width - FRAME.right
    ));
    chart.draw(&format!("<a href=\"#{}\">", escape(&outcome.case)));
    chart.text((12.0, middle + 4.5), Anchor::Start, "name", &outcome.case);
    chart.draw("</a>");
    // If schemes are compared, all of them are shown.
    let by_scheme = [PACKETS, ONE_PORT].contains(&outcome.beside.as_str());
    let several = outcome.trials.iter().filter(|_| by_scheme);
    let several = several.filter_map(|trial| trial.rows.first());
    let rows = outcome.rows().iter().filter(|_| !by_scheme);
    for row in rows.chain(several) {
        let (at, _) = chart.place((row.ratio, 0.0));
        chart.draw(&mark(row, at, middle, class));
        if !(LEAST_RATIO..=MOST_RATIO).contains(&row.ratio) {
            chart.text((at + 8.0, middle + 4.5), Anchor::Start, "out", &format!("{:.2}", row.ratio));
        }
    }
    if outcome.rows().is_empty() {
        let (at, _) = chart.place((1.0, 0.0));
        chart.text((at, middle + 4.5), Anchor::Start, "out", "no figures");
    }
}

fn legend(chart: &mut Chart) {
    chart.text((FRAME.left, 14.0), Anchor::Start, "tick", "ours over theirs:");
    for (place, name) in ["mean", "P50", "P99", "max"].iter().enumerate() {
        let at = FRAME.left + 140.0 + 80.0 * place as f64;
        let row = Row {
            figure: (*name).to_owned(),
            unit: "us",
            ours: 1.0,
            theirs: 1.0,
            ratio: 1.0,
            band: None,
            holds: true,
        };
        chart.draw(&mark(&row, at, 10.0, "in"));
        chart.text((at + 9.0, 14.0), Anchor::Start, "tick", name);
    }
}

fn mark(row: &Row, x: f64, y: f64, class: &str) -> String {
    let title = format!("<title>{} {:.3}</title>", escape(&row.figure), row.ratio);
    let class = if row.holds { class } else { "out" };
    match row.figure.as_str() {
        "P50" => format!("<path class=\"{class} open\" d=\"M{x:.1} {:.1}v10\">{title}</path>", y - 5.0),
        "P99" => {
            format!("<circle class=\"{class} open\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\">{title}</circle>")
        }
        "max" => {
            format!("<path class=\"{class} open\" d=\"M{x:.1} {:.1}l4.5 8h-9z\">{title}</path>", y - 4.5)
        }
        _ => format!("<circle class=\"{class} full\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\">{title}</circle>"),
    }
}

/// Returns the picture of completion times of a case by rank, for the reference and ours.
pub(crate) fn curves(case: &str, ours: &Curve, theirs: &Curve) -> String {
    let all = || ours.values().iter().chain(theirs.values());
    let least = all().copied().fold(f64::INFINITY, f64::min);
    let most = all().copied().fold(0.0, f64::max).max(least * 1.01);
    let frame = Frame { width: 594.0, height: 240.0, left: 44.0, right: 30.0, top: 10.0, bottom: 30.0 };
    let x = Axis::log(least, most);
    let mut chart = Chart::new(frame, x, Axis::linear(0.0, 100.0));
    chart.y_ticks(&[0.0, 50.0, 99.0], |rank| format!("P{rank}"));
    chart.x_ticks(&x.ticks(5), |us| Quantity::TimeNs.format_short(1e3 * us));
    for (curve, class) in [(theirs, "theirs"), (ours, "ours")] {
        let points = curve.values().iter().zip(0u32..).map(|(&us, rank)| (us, f64::from(rank)));
        chart.curve(points, Join::Straight, &format!("data-of=\"{class}\""));
    }
    let svg = chart.svg("class=\"curves\"", "Completion times by rank");
    let mut csv = csv_line(["rank (%)", "ours (us)", "theirs (us)"]);
    for (rank, (ours, theirs)) in ours.values().iter().zip(theirs.values()).enumerate() {
        csv += &csv_line([rank.to_string(), ours.to_string(), theirs.to_string()]);
    }
    let name = format!("{case}: completion times by rank");
    let style = "[data-of=theirs]{stroke:var(--soft);stroke-dasharray:5 4}[data-of=ours]{stroke:var(--c0)}";
    let saved = SavedPicture { name: &name, svg: &svg, style, legend: &[], csv: &csv };
    format!("{svg}\n{}", saved.links())
}
