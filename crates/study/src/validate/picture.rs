//! Pictures of the page, as SVG with the colours of the page.

use std::fmt::Write;

use pathweave_report::escape;

use crate::validate::catalogue::{ONE_PORT, PACKETS};
use crate::validate::figures::Curve;
use crate::validate::judge::{Outcome, Row};

/// Range of ratios in the overview. Ratios outside it are drawn at the edge, with their number.
const LEAST_RATIO: f64 = 0.5;
const MOST_RATIO: f64 = 2.0;
const TICKS: [f64; 7] = [0.5, 0.67, 0.8, 1.0, 1.25, 1.5, 2.0];

const NAMES: f64 = 330.0;
const FIELD: f64 = 560.0;
const MARGIN: f64 = 60.0;
const LINE: f64 = 22.0;
const TOP: f64 = 46.0;

/// Returns the overview: a line per case with its ratios of mean, P50, P99 and maximum.
pub(crate) fn overview(outcomes: &[Outcome]) -> String {
    let x = |ratio: f64| {
        let share = (ratio / LEAST_RATIO).ln() / (MOST_RATIO / LEAST_RATIO).ln();
        NAMES + FIELD * share.clamp(0.0, 1.0)
    };
    let mut body = String::new();
    let mut y = TOP;
    let mut last = "";
    for outcome in outcomes {
        if outcome.beside != last {
            last = &outcome.beside;
            y += 8.0;
            let name = escape(last);
            let _ = write!(body, "<text class=\"peer\" x=\"0\" y=\"{:.0}\">{name}</text>", y + 15.0);
            y += LINE;
        }
        let (case, middle) = (escape(&outcome.case), y + LINE / 2.0);
        let class = if outcome.holds { "in" } else { "out" };
        let _ = write!(
            body,
            "<a href=\"#{case}\"><text class=\"name\" x=\"12\" y=\"{:.1}\">{case}</text></a>\
             <line class=\"grid\" x1=\"{NAMES}\" x2=\"{}\" y1=\"{middle}\" y2=\"{middle}\"/>",
            middle + 4.5,
            NAMES + FIELD
        );
        // If schemes are compared, all of them are shown.
        let by_scheme = [PACKETS, ONE_PORT].contains(&outcome.beside.as_str());
        let several = outcome.trials.iter().filter(|_| by_scheme);
        let several = several.filter_map(|trial| trial.rows.first());
        let rows = outcome.rows().iter().filter(|_| !by_scheme);
        for row in rows.chain(several) {
            body.push_str(&mark(row, x(row.ratio), middle, class));
        }
        if outcome.rows().is_empty() {
            let _ = write!(
                body,
                "<text class=\"out\" x=\"{:.0}\" y=\"{:.1}\">no figures</text>",
                x(1.0),
                middle + 4.5
            );
        }
        y += LINE;
    }
    let bottom = y + 4.0;
    let mut back = String::new();
    for (class, low, high) in [("ten", 0.9, 1.1), ("five", 0.95, 1.05)] {
        let (left, right) = (x(low), x(high));
        let (width, height) = (right - left, bottom - TOP);
        let _ = write!(
            back,
            "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{TOP}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        );
    }
    for tick in TICKS {
        let at = x(tick);
        let _ = write!(
            back,
            "<line class=\"{}\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{bottom:.1}\"/>\
             <text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\">{tick}</text>",
            if tick == 1.0 { "one" } else { "grid" },
            TOP - 6.0
        );
    }
    let (width, height) = (NAMES + FIELD + MARGIN, bottom + 4.0);
    format!(
        "<svg class=\"overview\" viewBox=\"0 0 {width} {height:.0}\" role=\"img\" \
         aria-label=\"Ratios of completion times, ours over theirs\">{}{back}{body}</svg>\n",
        legend()
    )
}

fn legend() -> String {
    let mut text = format!("<text class=\"tick left\" x=\"{NAMES}\" y=\"14\">ours over theirs:</text>");
    for (place, name) in ["mean", "P50", "P99", "max"].iter().enumerate() {
        let at = NAMES + 120.0 + 80.0 * place as f64;
        let row = Row {
            figure: (*name).to_owned(),
            unit: "us",
            ours: 1.0,
            theirs: 1.0,
            ratio: 1.0,
            band: None,
            holds: true,
        };
        text.push_str(&mark(&row, at, 10.0, "in"));
        let _ = write!(text, "<text class=\"tick left\" x=\"{:.0}\" y=\"14\">{name}</text>", at + 9.0);
    }
    text
}

fn mark(row: &Row, x: f64, y: f64, class: &str) -> String {
    let title = format!("<title>{} {:.3}</title>", escape(&row.figure), row.ratio);
    let class = if row.holds { class } else { "out" };
    let mut text = match row.figure.as_str() {
        "P50" => format!("<path class=\"{class} open\" d=\"M{x:.1} {:.1}v10\">{title}</path>", y - 5.0),
        "P99" => {
            format!("<circle class=\"{class} open\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\">{title}</circle>")
        }
        "max" => {
            format!("<path class=\"{class} open\" d=\"M{x:.1} {:.1}l4.5 8h-9z\">{title}</path>", y - 4.5)
        }
        _ => format!("<circle class=\"{class} full\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\">{title}</circle>"),
    };
    if !(LEAST_RATIO..=MOST_RATIO).contains(&row.ratio) {
        let _ = write!(
            text,
            "<text class=\"out\" x=\"{:.1}\" y=\"{:.1}\">{:.2}</text>",
            x + 8.0,
            y + 4.5,
            row.ratio
        );
    }
    text
}

/// Returns the picture of completion times by rank, for the reference and ours.
pub(crate) fn curves(ours: &Curve, theirs: &Curve) -> String {
    const WIDTH: f64 = 520.0;
    const HEIGHT: f64 = 200.0;
    const LEFT: f64 = 44.0;
    let all = || ours.values().iter().chain(theirs.values());
    let least = all().copied().fold(f64::INFINITY, f64::min);
    let most = all().copied().fold(0.0, f64::max).max(least * 1.01);
    let x = |us: f64| LEFT + WIDTH * (us / least).ln() / (most / least).ln();
    let y = |rank: usize| 10.0 + HEIGHT * (1.0 - rank as f64 / 100.0);
    let line = |curve: &Curve| {
        let mut path = String::new();
        for (rank, &us) in curve.values().iter().enumerate() {
            let _ = write!(path, "{}{:.1} {:.1}", if rank == 0 { "M" } else { "L" }, x(us), y(rank));
        }
        path
    };
    let mut text = format!(
        "<svg class=\"curves\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Completion times by rank\">",
        LEFT + WIDTH + 30.0,
        HEIGHT + 34.0
    );
    for rank in [0, 50, 99] {
        let _ = write!(
            text,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{2:.1}\" y2=\"{2:.1}\"/>\
             <text class=\"tick right\" x=\"{:.0}\" y=\"{3:.1}\">P{rank}</text>",
            LEFT + WIDTH,
            LEFT - 6.0,
            y(rank),
            y(rank) + 4.0
        );
    }
    // About four round numbers on the axis.
    for us in round_numbers(least, most) {
        let at = x(us);
        let _ = write!(
            text,
            "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"10\" y2=\"{:.1}\"/>\
             <text class=\"tick\" x=\"{at:.1}\" y=\"{:.0}\">{}</text>",
            HEIGHT + 10.0,
            HEIGHT + 28.0,
            time(us)
        );
    }
    let _ = writeln!(
        text,
        "<path class=\"theirs\" d=\"{}\"/><path class=\"ours\" d=\"{}\"/></svg>",
        line(theirs),
        line(ours)
    );
    text
}

/// Returns 1, 2 and 5 times powers of ten between two values. Over more than two decades, only the powers.
fn round_numbers(least: f64, most: f64) -> Vec<f64> {
    let from = least.log10().floor() as i32;
    let to = most.log10().ceil() as i32;
    let factors: &[f64] = if to - from > 2 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all = (from..=to).flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power)));
    all.filter(|us| (least..=most).contains(us)).collect()
}

/// Formats microseconds in a suitable unit.
pub(crate) fn time(us: f64) -> String {
    let (value, unit) = if us >= 1_000.0 { (us / 1_000.0, "ms") } else { (us, "us") };
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_round_numbers() {
        assert_eq!([0.5, 12.34, 999.0, 1_234.0].map(time), ["0.5 us", "12.3 us", "999 us", "1.23 ms"]);
        assert_eq!(time(100.0), "100 us");
        assert_eq!(round_numbers(3.0, 60.0), [5.0, 10.0, 20.0, 50.0]);
        assert_eq!(round_numbers(3.0, 60_000.0), [10.0, 100.0, 1_000.0, 10_000.0]);
    }
}
