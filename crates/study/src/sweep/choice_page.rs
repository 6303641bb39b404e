//! Page of a plan: a picture of time against cost. Points carry the row numbers of the table.

use std::collections::BTreeMap;
use std::fmt::Write;

use pathweave_records::Quantity;
use pathweave_report::chart::{Axis, Chart, Frame, Join};
use pathweave_report::{SavedPicture, csv_line, escape, plain_page, scheme_colours};

use crate::sweep::choice::{Choice, Choices};
use crate::sweep::choice_table::Column;

const STYLE: &str = "\
.plan figure{margin:0 0 16px;max-width:600px;padding:10px 12px}.plan svg .grid{stroke:var(--grid)}\
.plan svg .curve{fill:none;stroke:var(--soft);stroke-width:2}.plan svg circle{stroke:var(--card)}.plan svg circle.best{stroke:var(--text);stroke-width:2}\
.plan svg text.point{fill:var(--text)}.plan .key{margin:0 0 6px;display:flex;flex-wrap:wrap;gap:2px 16px;font-size:.82rem}\
.plan .key i{display:inline-block;width:10px;height:10px;border-radius:50%;margin-right:6px}\
.plan .lead{margin:0 0 12px;color:var(--soft);max-width:62em}.plan tr.best{font-weight:600}\
.plan .w{text-align:left}.plan h2{margin:20px 0 8px}.plan details{margin:0 0 8px}.plan ol{margin:0 0 12px;padding-left:0;list-style:none}";

/// Style of points in a saved picture.
const POINTS: &str =
    "circle{stroke:var(--card)}circle.best{stroke:var(--text);stroke-width:2}.curve{stroke:var(--soft)}";
const FRAME: Frame = Frame { width: 440.0, height: 300.0, left: 62.0, right: 26.0, top: 16.0, bottom: 46.0 };
/// Fidelity that is drawn with dashes.
const FLOW: &str = "flow";
/// Horizontal and vertical distance within which points share one label.
const LABEL_MERGE_DISTANCE: (f64, f64) = (40.0, 13.0);

impl Choices {
    /// Returns the page. It loads nothing from the network.
    pub fn html(&self) -> String {
        let columns = self.columns();
        let class = |column: &Column| if column.is_words() { " class=\"w\"" } else { "" };
        let mut rows = String::new();
        for (number, choice) in (1..).zip(self.candidates()) {
            let cell =
                |column: &Column| format!("<td{}>{}</td>", class(column), escape(&column.cell(choice)));
            let cells: String = columns.iter().map(cell).collect();
            let best = if choice.best_of_its_cost { " class=\"best\"" } else { "" };
            let _ = writeln!(rows, "<tr{best}><td>{number}</td>{cells}</tr>");
        }
        let title = |column: &Column| format!("<th{}>{}</th>", class(column), escape(&column.title(self)));
        let heading: String = columns.iter().map(title).collect();
        let name = escape(&self.name);
        let partial = match self.missing().trim_end() {
            missing if self.partial => format!(" <strong>Partial: {missing}.</strong>"),
            _ => String::new(),
        };
        let warning = self.warning().map_or(String::new(), |words| {
            format!("<p class=\"note\"><strong>Warning:</strong> {}</p>\n", escape(&words))
        });
        let note = |note: &String| format!("<p class=\"note\"><strong>Note:</strong> {}</p>\n", escape(note));
        let notes: String = self.notes.iter().map(note).collect();
        let what = if self.have_tokens() { "Tokens a second" } else { "Time of an iteration" };
        let body = format!(
            "<main class=\"plan\"><h1>{name}</h1>\n<p class=\"lead\">{what} against the cost of the cluster; the number of a \
             point is that of its row.{partial} The line joins the choices marked *, each of which is faster than all that is cheaper by more \
             than {} %; these have a ring.</p>\n{warning}{notes}{}\n{}<div class=\"tables\"><div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th></th>{heading}</tr></thead>\
             <tbody>\n{rows}</tbody></table></div></div>\n{}</main>",
            100.0 * self.tolerance,
            self.picture(),
            self.named_points(),
            self.struck_sections()
        );
        plain_page(&format!("{} (plan)", self.name), STYLE, &body)
    }

    /// Returns the picture of tokens a second, or of time, against cost, both axes from zero.
    fn picture(&self) -> String {
        let tokens = self.have_tokens();
        let height = |choice: &Choice| if tokens { choice.tokens_per_s } else { choice.time_ns };
        let ended: Vec<(usize, &Choice, f64)> = (1..)
            .zip(self.candidates())
            .filter_map(|(number, choice)| Some((number, choice, height(choice)?)))
            .collect();
        if ended.is_empty() {
            return "<p class=\"note\">No choice has a time yet.</p>".to_owned();
        }
        let most =
            |of: &dyn Fn(&(usize, &Choice, f64)) -> f64| 1.08 * ended.iter().map(of).fold(1e-9, f64::max);
        let (most_cost, most_time) = (most(&|(_, choice, _)| choice.cost.cost), most(&|&(_, _, time)| time));
        let (x, y) = (Axis::linear(0.0, most_cost), Axis::linear(0.0, most_time));
        let mut chart = Chart::new(FRAME, x, y);
        chart.x_ticks(&x.ticks(4), |cost| Quantity::Count.format(cost));
        chart.y_ticks(&y.ticks(5), |value| match tokens {
            true => Quantity::Count.format(value),
            false => Quantity::TimeNs.format_short(value),
        });
        chart.x_title(&format!("Cost, {}", self.currency));
        let mut lines: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
        for (_, choice, time) in ended.iter().filter(|(_, choice, _)| choice.best_of_its_cost) {
            lines.entry(&choice.fidelity).or_default().push((choice.cost.cost, *time));
        }
        for (fidelity, points) in lines {
            let dashes = if fidelity == FLOW { "stroke-dasharray=\"6 4\"" } else { "" };
            chart.curve(points, Join::Straight, dashes);
        }
        let schemes = self.schemes();
        let mut labels: Vec<((f64, f64), Vec<usize>)> = Vec::new();
        // The best choices are drawn last, on top.
        let (best, others): (Vec<_>, Vec<_>) =
            ended.iter().copied().partition(|(_, choice, _)| choice.best_of_its_cost);
        for (number, choice, time) in others.into_iter().chain(best) {
            let (x, y) = chart.place((choice.cost.cost, time));
            let colour = schemes.iter().find(|(scheme, _)| *scheme == choice.scheme).map_or(0, |of| of.1);
            chart.draw(&format!(
                "<circle class=\"{}\" style=\"fill:var(--c{colour})\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\">\
                 <title>{number}: {}: {}, {} {}</title></circle>",
                if choice.best_of_its_cost { "best" } else { "" },
                escape(&choice.name),
                if tokens {
                    format!("{} tokens/s", Quantity::Count.format(time))
                } else {
                    Quantity::TimeNs.format(time)
                },
                Quantity::Count.format(choice.cost.cost),
                escape(&self.currency)
            ));
            let near = |at: &(f64, f64)| {
                (at.0 - x).abs() < LABEL_MERGE_DISTANCE.0 && (at.1 - y).abs() < LABEL_MERGE_DISTANCE.1
            };
            match labels.iter_mut().find(|(at, _)| near(at)) {
                Some((_, numbers)) => numbers.push(number),
                None => labels.push(((x, y), vec![number])),
            }
        }
        for (at, mut numbers) in labels {
            numbers.sort_unstable();
            chart.point_label(at, &format_ranges(&numbers));
        }
        let words = if tokens { "Tokens a second against cost" } else { "Time of an iteration against cost" };
        let svg = chart.svg("", words);
        let csv = self.numbers(&ended);
        let saved = SavedPicture { name: words, svg: &svg, style: POINTS, legend: &schemes, csv: &csv };
        format!("<figure class=\"card\">{}{svg}{}</figure>", legend(&schemes), saved.links())
    }

    /// Returns the points of the picture as CSV.
    fn numbers(&self, ended: &[(usize, &Choice, f64)]) -> String {
        let measure = if self.have_tokens() { "tokens a second" } else { "time (ns)" };
        let cost = format!("cost ({})", self.currency);
        let mut out = csv_line(["row", "name", "scheme", "fidelity", &cost, measure, "best of its cost"]);
        out.extend(ended.iter().map(|(number, choice, height)| {
            let (row, cost, height) = (number.to_string(), choice.cost.cost.to_string(), height.to_string());
            let best = choice.best_of_its_cost.to_string();
            csv_line([&row, &choice.name, &choice.scheme, &choice.fidelity, &cost, &height, &best])
        }));
        out
    }

    /// Returns the names of the schemes with the numbers of their colours.
    fn schemes(&self) -> Vec<(&str, usize)> {
        let mut names: Vec<&str> = Vec::new();
        for choice in &self.choices {
            if !names.contains(&choice.scheme.as_str()) {
                names.push(&choice.scheme);
            }
        }
        let colours = scheme_colours(&names);
        names.into_iter().zip(colours).collect()
    }
}

/// Returns the names of the schemes in their colours.
fn legend(schemes: &[(&str, usize)]) -> String {
    let entry = |(scheme, colour): &(&str, usize)| {
        format!("<span><i style=\"background:var(--c{colour})\"></i>{}</span>", escape(scheme))
    };
    let entries: String = schemes.iter().filter(|(scheme, _)| !scheme.is_empty()).map(entry).collect();
    format!("<p class=\"key\">{entries}</p>")
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
    use crate::sweep::choice::tests::{choice, plan};

    #[test]
    fn the_page_has_every_choice_and_a_named_point_for_each_that_ended() {
        let choices = vec![
            choice("small", 10.0, Some(2e6)),
            choice("the same", 10.0, Some(2.001e6)),
            choice("large", 30.0, None),
            choice("fast", 40.0, Some(1e6)),
        ];
        let choices = Choices { partial: true, ..plan(choices) };
        let page = choices.html();
        assert!(
            page.contains("a &lt;plan&gt;") && page.contains("Partial: 1 of 4 candidates have runs to make"),
            "{page}"
        );
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
