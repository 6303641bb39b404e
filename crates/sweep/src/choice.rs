//! What comes of a plan of a cluster: time against cost, as a table, a file and a picture.

use std::collections::BTreeMap;
use std::fmt::Write;

use comfy_table::{CellAlignment, Table, presets};
use pathweave_results::{LATENCY_RULES, Quantity, escape};
use serde::Serialize;

use crate::cluster::{ClusterPlan, Cost, FIDELITY, LATENCY, SCHEME, TIME};
use crate::summary::SweepSummary;

/// A choice: a fabric at a rate under a scheme.
#[derive(Clone, Debug, Serialize)]
pub struct Choice {
    /// The fabric and its rate.
    pub fabric: String,
    /// The scheme; empty where the scenario has one for all.
    pub scheme: String,
    /// What moved through the network: "packet" or "flow".
    pub fidelity: String,
    /// By how much the time with flows is off that with packets, in relation to it, where the plan has both.
    pub error: Option<f64>,
    /// Mean time of an iteration over seeds, nanoseconds; nothing where no run has come to its end.
    pub time_ns: Option<f64>,
    /// Half width of the 95 % confidence interval of that mean, with several seeds.
    pub time_ci95_ns: Option<f64>,
    /// Of the time of its jobs, the share that is latency, the mean over seeds.
    pub latency_ratio: Option<f64>,
    /// Flows that did not finish.
    pub open_flows: u64,
    /// What the fabric is made of.
    #[serde(flatten)]
    pub cost: Cost,
    /// Nothing else of its fidelity is both cheaper and faster.
    pub best_of_its_cost: bool,
}

/// The choices of a plan: `plan.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Choices {
    /// "pathweave.plan".
    pub schema: &'static str,
    /// Rises when a field is renamed, removed or changes meaning.
    pub schema_version: u32,
    /// Name of the plan.
    pub name: String,
    /// What costs are in.
    pub currency: String,
    /// Runs are missing: it was interrupted.
    pub partial: bool,
    /// The choices, cheapest first, and of one cost the fastest first.
    pub choices: Vec<Choice>,
}

/// By how much choices with flows are off the same with packets.
fn find_errors(choices: &mut [Choice]) {
    let key = |choice: &Choice| (choice.fabric.clone(), choice.scheme.clone());
    let packets: BTreeMap<_, f64> = choices
        .iter()
        .filter(|choice| choice.fidelity == "packet")
        .filter_map(|choice| Some((key(choice), choice.time_ns?)))
        .collect();
    for choice in choices.iter_mut().filter(|choice| choice.fidelity == "flow") {
        let of_packets = packets.get(&key(choice));
        choice.error = choice.time_ns.zip(of_packets).map(|(time, packets)| time / packets - 1.0);
    }
}

impl Choices {
    /// Of what has become of the runs.
    pub fn new(plan: &ClusterPlan, summary: &SweepSummary) -> Self {
        let of = |cell: &crate::summary::CellSummary| {
            let time = cell.metrics.get(TIME).map(|figures| &figures.estimate);
            let value = |key: &str| {
                let axis = summary.axes.iter().position(|axis| axis.key == key)?;
                Some(summary.axes[axis].values[cell.at[axis]].clone())
            };
            Choice {
                fabric: summary.axes[0].values[cell.at[0]].clone(),
                scheme: value(SCHEME).unwrap_or_default(),
                fidelity: value(FIDELITY).unwrap_or_else(|| plan.fidelity.to_owned()),
                error: None,
                // A mean over the iterations that ended says nothing of one that did not.
                time_ns: time
                    .map(|time| time.mean)
                    .filter(|_| cell.open_flows == 0 && cell.failed.is_empty()),
                time_ci95_ns: time.and_then(|time| time.ci95),
                latency_ratio: cell.metrics.get(LATENCY).map(|figures| figures.estimate.mean),
                open_flows: cell.open_flows,
                cost: plan.costs[cell.at[0]].clone(),
                best_of_its_cost: false,
            }
        };
        let mut choices: Vec<Choice> = summary.cells.iter().map(of).collect();
        let time = |choice: &Choice| choice.time_ns.unwrap_or(f64::INFINITY);
        choices.sort_by(|a, b| a.cost.cost.total_cmp(&b.cost.cost).then(time(a).total_cmp(&time(b))));
        let mut fastest: BTreeMap<String, f64> = BTreeMap::new();
        for choice in &mut choices {
            let fastest = fastest.entry(choice.fidelity.clone()).or_insert(f64::INFINITY);
            choice.best_of_its_cost = time(choice) < *fastest;
            *fastest = fastest.min(time(choice));
        }
        find_errors(&mut choices);
        Choices {
            schema: "pathweave.plan",
            schema_version: 1,
            name: summary.name.clone(),
            currency: plan.currency.clone(),
            partial: summary.partial,
            choices,
        }
    }

    /// For a terminal.
    pub fn table(&self) -> String {
        let mut out = Table::new();
        out.load_style(presets::UTF8_BORDERS_ONLY);
        out.set_header(self.heading());
        for choice in &self.choices {
            out.add_row(self.row(choice));
        }
        for column in out.column_iter_mut().skip(3) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let warning = self.warning().map_or(String::new(), |words| format!("warning: {words}\n"));
        format!("{out}\n* nothing else is both cheaper and faster\n{warning}")
    }

    /// Choices whose times say little of their rates.
    fn warning(&self) -> Option<String> {
        let ruled: Vec<f64> = self
            .choices
            .iter()
            .filter_map(|choice| choice.latency_ratio)
            .filter(|of| *of >= LATENCY_RULES)
            .collect();
        let most = ruled.iter().copied().fold(0.0, f64::max);
        (!ruled.is_empty()).then(|| {
            format!(
                "latency rules {} of {} choices: up to {:.0} % of the time of an iteration is propagation, hops and \
                 notifications, so that fabrics of other rates look alike. A larger `scale`, or fidelity \"flow\" without one, \
                 compares them.",
                ruled.len(),
                self.choices.len(),
                most * 100.0
            )
        })
    }

    fn heading(&self) -> Vec<String> {
        let cost = format!("Cost, {}", self.currency);
        ["Fabric", "Scheme", "Fidelity", "Iteration", "Error", &cost, "Switches", "Ports", "Optics", ""]
            .map(str::to_owned)
            .to_vec()
    }

    fn row(&self, choice: &Choice) -> Vec<String> {
        let time = match (choice.time_ns, choice.time_ci95_ns) {
            (None, _) => "did not end".to_owned(),
            (Some(time), None) => Quantity::TimeNs.show(time),
            (Some(time), Some(half)) => {
                format!("{} \u{b1} {}", Quantity::TimeNs.show(time), Quantity::TimeNs.show(half))
            }
        };
        let count = |count: u64| Quantity::Count.show(count as f64);
        vec![
            choice.fabric.clone(),
            choice.scheme.clone(),
            choice.fidelity.clone(),
            time,
            choice.error.map(|error| format!("{:+.1} %", 100.0 * error)).unwrap_or_default(),
            Quantity::Count.show(choice.cost.cost),
            count(u64::from(choice.cost.switches)),
            count(choice.cost.switch_ports),
            count(choice.cost.optics),
            if choice.best_of_its_cost { "*" } else { "" }.to_owned(),
        ]
    }

    /// A page with the picture and the table; it needs no network and no script.
    pub fn html(&self) -> String {
        let mut rows = String::new();
        for choice in &self.choices {
            let cells: String =
                self.row(choice).iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
            let class = if choice.best_of_its_cost { " class=\"best\"" } else { "" };
            let _ = writeln!(rows, "<tr{class}>{cells}</tr>");
        }
        let heading: String =
            self.heading().iter().map(|cell| format!("<th>{}</th>", escape(cell))).collect();
        let name = escape(&self.name);
        let warning = self.warning();
        let warning = warning
            .map_or(String::new(), |words| format!("<p><strong>Warning:</strong> {}</p>\n", escape(&words)));
        let partial = if self.partial { " <strong>Partial: runs are missing.</strong>" } else { "" };
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{name} (plan)</title>\
             <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head><body><main>\n\
             <h1>{name}</h1>\n<p>Time of an iteration against the cost of the fabric.{partial} \
             The line joins the choices to which nothing else is both cheaper and faster.</p>\n{warning}{}\n\
             <table><thead><tr>{heading}</tr></thead><tbody>\n{rows}</tbody></table>\n</main></body></html>\n",
            self.picture()
        )
    }

    /// Time against cost, both from zero.
    fn picture(&self) -> String {
        const WIDTH: f64 = 760.0;
        const HEIGHT: f64 = 420.0;
        const LEFT: f64 = 90.0;
        const RIGHT: f64 = 20.0;
        const TOP: f64 = 16.0;
        const BOTTOM: f64 = 50.0;
        let ended: Vec<(&Choice, f64)> =
            self.choices.iter().filter_map(|choice| Some((choice, choice.time_ns?))).collect();
        if ended.is_empty() {
            return "<p>No choice has a time.</p>".to_owned();
        }
        let most = |of: &dyn Fn(&(&Choice, f64)) -> f64| 1.08 * ended.iter().map(of).fold(1e-9, f64::max);
        let (most_cost, most_time) = (most(&|(choice, _)| choice.cost.cost), most(&|&(_, time)| time));
        let x = |cost: f64| LEFT + cost / most_cost * (WIDTH - LEFT - RIGHT);
        let y = |time: f64| HEIGHT - BOTTOM - time / most_time * (HEIGHT - TOP - BOTTOM);
        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Time of an iteration against cost\">\n"
        );
        for k in 0..=4 {
            let (cost, time) = (most_cost * f64::from(k) / 4.0, most_time * f64::from(k) / 4.0);
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{TOP}\" y2=\"{1:.1}\"/>\
                 <text x=\"{0:.1}\" y=\"{2:.1}\" text-anchor=\"middle\">{3}</text>\
                 <line class=\"grid\" x1=\"{LEFT}\" x2=\"{4:.1}\" y1=\"{5:.1}\" y2=\"{5:.1}\"/>\
                 <text x=\"{6:.1}\" y=\"{5:.1}\" text-anchor=\"end\" dy=\"4\">{7}</text>",
                x(cost),
                HEIGHT - BOTTOM,
                HEIGHT - BOTTOM + 18.0,
                Quantity::Count.show(cost),
                WIDTH - RIGHT,
                y(time),
                LEFT - 6.0,
                Quantity::TimeNs.show(time),
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">Cost, {}</text>",
            WIDTH - RIGHT,
            HEIGHT - 8.0,
            escape(&self.currency)
        );
        let best: Vec<String> = ended
            .iter()
            .filter(|(choice, _)| choice.best_of_its_cost)
            .map(|(choice, time)| format!("{:.1},{:.1}", x(choice.cost.cost), y(*time)))
            .collect();
        let _ = writeln!(out, "<polyline points=\"{}\"/>", best.join(" "));
        for (choice, time) in ended {
            let class = if choice.best_of_its_cost { " class=\"best\"" } else { "" };
            let _ = writeln!(
                out,
                "<circle{class} cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\"><title>{} {}: {}, {} {}</title></circle>",
                x(choice.cost.cost),
                y(time),
                escape(&choice.fabric),
                escape(&choice.scheme),
                Quantity::TimeNs.show(time),
                Quantity::Count.show(choice.cost.cost),
                escape(&self.currency)
            );
        }
        out + "</svg>"
    }
}

const STYLE: &str = "\
:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:0}main{max-width:60rem;margin:auto;padding:1rem}\
svg{width:100%;height:auto}svg text{font-size:12px;fill:currentColor}.grid{stroke:#8884}circle{fill:#8889}circle.best{fill:#0a7}\
polyline{fill:none;stroke:#0a7;stroke-width:1.5}table{border-collapse:collapse;width:100%}td,th{padding:.2rem .5rem;\
text-align:right;border-bottom:1px solid #8884}td:nth-child(-n+3),th:nth-child(-n+3){text-align:left}tr.best{font-weight:600}";

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(fabric: &str, cost: f64, time_ns: Option<f64>) -> Choice {
        Choice {
            fabric: fabric.to_owned(),
            scheme: "rps".to_owned(),
            fidelity: "packet".to_owned(),
            error: None,
            time_ns,
            time_ci95_ns: None,
            latency_ratio: None,
            open_flows: 0,
            cost: Cost { cost, ..Cost::default() },
            best_of_its_cost: true,
        }
    }

    #[test]
    fn flows_beside_packets_show_their_error() {
        let mut choices =
            [choice("a", 1.0, Some(100.0)), choice("a", 1.0, Some(97.0)), choice("b", 1.0, Some(9.0))];
        choices[1].fidelity = "flow".to_owned();
        choices[2].fidelity = "flow".to_owned();
        find_errors(&mut choices);
        assert_eq!((choices[0].error, choices[2].error), (None, None));
        assert!((choices[1].error.expect("it has both") + 0.03).abs() < 1e-12);
    }

    #[test]
    fn times_that_hang_on_latency_have_a_warning() {
        let choices = |latency: [Option<f64>; 2]| Choices {
            schema: "pathweave.plan",
            schema_version: 1,
            name: "plan".to_owned(),
            currency: "USD".to_owned(),
            partial: false,
            choices: latency
                .map(|latency_ratio| Choice { latency_ratio, ..choice("a", 1.0, Some(2e6)) })
                .to_vec(),
        };
        let ruled = choices([Some(0.97), Some(0.3)]);
        assert!(
            ruled.table().contains("warning: latency rules 1 of 2 choices: up to 97 %"),
            "{}",
            ruled.table()
        );
        assert!(ruled.html().contains("latency rules 1 of 2 choices"));
        let none = choices([Some(0.1), None]);
        assert!(!none.table().contains("warning") && !none.html().contains("Warning"));
    }

    #[test]
    fn the_page_has_every_choice_and_a_point_for_each_that_ended() {
        let choices = Choices {
            schema: "pathweave.plan",
            schema_version: 1,
            name: "a <plan>".to_owned(),
            currency: "USD".to_owned(),
            partial: true,
            choices: vec![choice("small", 10.0, Some(2e6)), choice("large", 30.0, None)],
        };
        let page = choices.html();
        assert!(page.contains("a &lt;plan&gt;") && page.contains("Partial: runs are missing"), "{page}");
        assert_eq!(page.matches("<circle").count(), 1);
        assert!(page.contains("did not end") && page.contains("2.000 ms"));
        let table = choices.table();
        assert!(table.contains("small") && table.contains("Cost, USD"), "{table}");
    }
}
