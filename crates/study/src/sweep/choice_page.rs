//! Page of a plan: a picture of time against cost. Points carry the row numbers of the table.

use std::collections::BTreeMap;
use std::fmt::Write;

use pathweave_records::{Quantity, round_ticks};
use pathweave_report::{escape, plain_page};

use crate::sweep::choice::{Choice, Choices, TIE_TOLERANCE};

const STYLE: &str = "\
.plan figure{margin:0 0 16px;max-width:600px;padding:10px 12px}.plan svg .grid{stroke:var(--grid)}.plan svg polyline{fill:none;stroke:var(--c2);stroke-width:2}\
.plan svg polyline.flow{stroke-dasharray:6 4}.plan svg circle{fill:var(--c7)}.plan svg circle.best{fill:var(--c2)}\
.plan svg text.point{fill:var(--text);font-size:11px}.plan .lead{margin:0 0 12px;color:var(--soft);max-width:62em}.plan tr.best{font-weight:600}\
.plan td:nth-child(-n+4),.plan th:nth-child(-n+4){text-align:left}";

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 26.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 46.0;
/// Horizontal and vertical distance within which points share one label.
const LABEL_MERGE_DISTANCE: (f64, f64) = (40.0, 13.0);

impl Choices {
    /// Returns the page. It loads nothing from the network.
    pub fn html(&self) -> String {
        let mut rows = String::new();
        for (number, choice) in (1..).zip(&self.choices) {
            let cells: String =
                self.row(choice).iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
            let class = if choice.best_of_its_cost { " class=\"best\"" } else { "" };
            let _ = writeln!(rows, "<tr{class}><td>{number}</td>{cells}</tr>");
        }
        let heading: String =
            self.heading().iter().map(|cell| format!("<th>{}</th>", escape(cell))).collect();
        let name = escape(&self.name);
        let partial = if self.partial { " <strong>Partial: runs are missing.</strong>" } else { "" };
        let warning = self.warning().map_or(String::new(), |words| {
            format!("<p class=\"note\"><strong>Warning:</strong> {}</p>\n", escape(&words))
        });
        let body = format!(
            "<main class=\"plan\"><h1>{name}</h1>\n<p class=\"lead\">Time of an iteration against the cost of the fabric; the number of a \
             point is that of its row.{partial} The line joins the choices marked *, each of which is faster than all that is cheaper by more \
             than {} %.</p>\n{warning}{}\n<div class=\"tables\"><div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th></th>{heading}</tr></thead>\
             <tbody>\n{rows}</tbody></table></div></div>\n</main>",
            100.0 * TIE_TOLERANCE,
            self.picture()
        );
        plain_page(&format!("{} (plan)", self.name), STYLE, &body)
    }

    /// Returns the picture of time against cost, both axes from zero.
    fn picture(&self) -> String {
        let ended: Vec<(usize, &Choice, f64)> = (1..)
            .zip(&self.choices)
            .filter_map(|(number, choice)| Some((number, choice, choice.time_ns?)))
            .collect();
        if ended.is_empty() {
            return "<p class=\"note\">No choice has a time yet.</p>".to_owned();
        }
        let most =
            |of: &dyn Fn(&(usize, &Choice, f64)) -> f64| 1.08 * ended.iter().map(of).fold(1e-9, f64::max);
        let (most_cost, most_time) = (most(&|(_, choice, _)| choice.cost.cost), most(&|&(_, _, time)| time));
        let place = |cost: f64, time: f64| {
            let x = LEFT + cost / most_cost * (WIDTH - LEFT - RIGHT);
            (x, HEIGHT - BOTTOM - time / most_time * (HEIGHT - TOP - BOTTOM))
        };
        let mut out = format!(
            "<figure class=\"card\"><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Time of an iteration against cost\">\n"
        );
        self.axes(&mut out, (most_cost, most_time), place);
        let mut lines: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (_, choice, time) in ended.iter().filter(|(_, choice, _)| choice.best_of_its_cost) {
            let (x, y) = place(choice.cost.cost, *time);
            lines.entry(&choice.fidelity).or_default().push(format!("{x:.1},{y:.1}"));
        }
        for (fidelity, points) in lines.iter().filter(|(_, points)| points.len() > 1) {
            let _ =
                writeln!(out, "<polyline class=\"{}\" points=\"{}\"/>", escape(fidelity), points.join(" "));
        }
        let mut labels: Vec<((f64, f64), Vec<usize>)> = Vec::new();
        // The best choices are drawn last, on top.
        let (best, others): (Vec<_>, Vec<_>) =
            ended.iter().copied().partition(|(_, choice, _)| choice.best_of_its_cost);
        for (number, choice, time) in others.into_iter().chain(best) {
            let (x, y) = place(choice.cost.cost, time);
            let class = if choice.best_of_its_cost { " class=\"best\"" } else { "" };
            let _ = writeln!(
                out,
                "<circle{class} cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\"><title>{number}: {} {}: {}, {} {}</title></circle>",
                escape(&choice.fabric),
                escape(&choice.scheme),
                Quantity::TimeNs.format(time),
                Quantity::Count.format(choice.cost.cost),
                escape(&self.currency)
            );
            let near = |at: &(f64, f64)| {
                (at.0 - x).abs() < LABEL_MERGE_DISTANCE.0 && (at.1 - y).abs() < LABEL_MERGE_DISTANCE.1
            };
            match labels.iter_mut().find(|(at, _)| near(at)) {
                Some((_, numbers)) => numbers.push(number),
                None => labels.push(((x, y), vec![number])),
            }
        }
        for ((x, y), mut numbers) in labels {
            numbers.sort_unstable();
            let words = format_ranges(&numbers);
            let (x, anchor) = if x > WIDTH - 60.0 { (x - 7.0, "end") } else { (x + 7.0, "start") };
            let _ = writeln!(
                out,
                "<text class=\"point\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{words}</text>",
                y - 6.0
            );
        }
        out + "</svg></figure>"
    }

    fn axes(
        &self,
        out: &mut String,
        (most_cost, most_time): (f64, f64),
        place: impl Fn(f64, f64) -> (f64, f64),
    ) {
        let bottom = HEIGHT - BOTTOM;
        for cost in round_ticks(0.0, most_cost, 4) {
            let (x, _) = place(cost, 0.0);
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 17.0,
                Quantity::Count.format(cost)
            );
        }
        for time in round_ticks(0.0, most_time, 5) {
            let (_, y) = place(0.0, time);
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"end\" dy=\"4\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                Quantity::TimeNs.format_short(time)
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">Cost, {}</text>",
            WIDTH - RIGHT,
            HEIGHT - 8.0,
            escape(&self.currency)
        );
    }
}

/// Formats ascending numbers, with ranges for consecutive ones: "1-3, 7".
fn format_ranges(numbers: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let word = |(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    runs.iter().map(word).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::choice::tests::choice;

    #[test]
    fn the_page_has_every_choice_and_a_named_point_for_each_that_ended() {
        let choices = vec![
            choice("small", 10.0, Some(2e6)),
            choice("the same", 10.0, Some(2.001e6)),
            choice("large", 30.0, None),
            choice("fast", 40.0, Some(1e6)),
        ];
        let choices = Choices {
            schema: "pathweave.plan",
            schema_version: 1,
            name: "a <plan>".to_owned(),
            currency: "USD".to_owned(),
            partial: true,
            choices,
        };
        let page = choices.html();
        assert!(page.contains("a &lt;plan&gt;") && page.contains("Partial: runs are missing"), "{page}");
        assert_eq!(page.matches("<circle").count(), 3);
        assert!(page.contains("not run yet") && page.contains("2.000 ms"));
        // Points at one place share a label, and ticks are round numbers.
        assert!(page.contains(">1-2</text>") && page.contains(">4</text>"), "{page}");
        for tick in [">500 us</text>", ">2 ms</text>", ">40</text>"] {
            assert!(page.contains(tick), "{tick}: {page}");
        }
        assert_eq!(format_ranges(&[1, 2, 3, 5, 7, 8]), "1-3, 5, 7-8");
    }
}
