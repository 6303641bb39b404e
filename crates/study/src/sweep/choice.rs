//! Results of a cluster plan: time against cost, as a table, a file and a picture.

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, Table, presets};
use pathweave_records::{LATENCY_DOMINANT_SHARE, Quantity};
use serde::Serialize;

use crate::sweep::cluster::{ClusterPlan, Cost, FIDELITY, LATENCY, SCHEME, TIME};
use crate::sweep::summary::{CellSummary, SweepSummary};

/// Choice of a plan: a fabric at a rate under a scheme.
#[derive(Clone, Debug, Serialize)]
pub struct Choice {
    /// Name of the fabric, with its rate.
    pub fabric: String,
    /// Name of the scheme. Empty if the plan does not vary it.
    pub scheme: String,
    /// Fidelity of the simulation: "packet" or "flow".
    pub fidelity: String,
    /// Relative error of the time at flow fidelity against packet fidelity, if the plan has both.
    pub error: Option<f64>,
    /// Mean time of an iteration over seeds, in nanoseconds. `None` unless all runs ended.
    pub time_ns: Option<f64>,
    /// Half width of the 95 % confidence interval of that mean, if there is one and there are several seeds.
    pub time_ci95_ns: Option<f64>,
    /// Share of the jobs' time that is latency, as a mean over seeds.
    pub latency_ratio: Option<f64>,
    /// Number of unfinished flows.
    pub open_flows: u64,
    /// Outcome of the runs.
    pub ending: ChoiceOutcome,
    /// Components of the fabric and their cost.
    #[serde(flatten)]
    pub cost: Cost,
    /// True if it is faster than all cheaper choices of the same fidelity, by more than [`TIE_TOLERANCE`].
    pub best_of_its_cost: bool,
}

/// Relative difference up to which two times count as equal. The cheaper choice is then the better one.
pub(crate) const TIE_TOLERANCE: f64 = 0.005;

/// Outcome of the runs of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceOutcome {
    /// All runs ended with all their flows.
    Ended,
    /// The plan was interrupted: some seeds have been run, and all of these ended with all their flows.
    Partial,
    /// A run ended with unfinished flows.
    Unfinished,
    /// A run failed.
    Failed,
    /// No run has been made.
    NotRun,
}

impl ChoiceOutcome {
    fn of(cell: &CellSummary) -> Self {
        match () {
            () if !cell.failed.is_empty() => ChoiceOutcome::Failed,
            () if cell.open_flows > 0 => ChoiceOutcome::Unfinished,
            () if cell.finished_seeds.is_empty() => ChoiceOutcome::NotRun,
            () if cell.finished_seeds.len() < cell.runs.len() => ChoiceOutcome::Partial,
            () => ChoiceOutcome::Ended,
        }
    }

    fn label(self) -> &'static str {
        match self {
            ChoiceOutcome::Ended => "no iteration",
            ChoiceOutcome::Partial => "seeds missing",
            ChoiceOutcome::Unfinished => "did not end",
            ChoiceOutcome::Failed => "failed",
            ChoiceOutcome::NotRun => "not run yet",
        }
    }
}

/// Choices of a plan, the content of `plan.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Choices {
    /// Format identifier, "pathweave.plan".
    pub schema: &'static str,
    /// Version of the format. It rises when a field is renamed, removed or changes meaning.
    pub schema_version: u32,
    /// Name of the plan.
    pub name: String,
    /// Currency of the costs.
    pub currency: String,
    /// True if runs are missing because the plan was interrupted.
    pub partial: bool,
    /// Choices sorted by cost, and by time if the costs are equal.
    pub choices: Vec<Choice>,
}

/// Sets the error of each choice at flow fidelity against the same choice at packet fidelity.
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

/// Marks the best choices. They must be sorted by cost.
fn mark_best(choices: &mut [Choice]) {
    let mut fastest: BTreeMap<String, f64> = BTreeMap::new();
    for choice in choices {
        let fastest = fastest.entry(choice.fidelity.clone()).or_insert(f64::INFINITY);
        let time_ns = choice.time_ns.unwrap_or(f64::INFINITY);
        choice.best_of_its_cost = time_ns < *fastest * (1.0 - TIE_TOLERANCE);
        *fastest = fastest.min(time_ns);
    }
}

impl Choices {
    /// Builds the choices of a plan from the outcomes of its runs.
    pub fn new(plan: &ClusterPlan, summary: &SweepSummary) -> Self {
        let of = |cell: &CellSummary| {
            let ending = ChoiceOutcome::of(cell);
            // The mean covers iterations that ended, which is misleading if one did not or has not been run.
            let final_time = cell.metrics.get(TIME).filter(|_| ending == ChoiceOutcome::Ended);
            let time = final_time.map(|figures| &figures.estimate);
            let value = |key: &str| {
                let axis = summary.axes.iter().position(|axis| axis.key == key)?;
                Some(summary.axes[axis].values[cell.at[axis]].clone())
            };
            Choice {
                fabric: summary.axes[0].values[cell.at[0]].clone(),
                scheme: value(SCHEME).unwrap_or_default(),
                fidelity: value(FIDELITY).unwrap_or_else(|| plan.fidelity.to_owned()),
                error: None,
                time_ns: time.map(|time| time.mean),
                time_ci95_ns: time.and_then(|time| time.ci95),
                latency_ratio: cell.metrics.get(LATENCY).map(|figures| figures.estimate.mean),
                open_flows: cell.open_flows,
                ending,
                cost: plan.costs[cell.at[0]].clone(),
                best_of_its_cost: false,
            }
        };
        let mut choices: Vec<Choice> = summary.cells.iter().map(of).collect();
        let time = |choice: &Choice| choice.time_ns.unwrap_or(f64::INFINITY);
        choices.sort_by(|a, b| a.cost.cost.total_cmp(&b.cost.cost).then(time(a).total_cmp(&time(b))));
        mark_best(&mut choices);
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

    /// Returns the choices as a table for the terminal.
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
        format!(
            "{out}\n* faster than all that is cheaper, by more than {} %\n{warning}",
            100.0 * TIE_TOLERANCE
        )
    }

    /// Returns a warning if latency dominates the time of some choices, so that it depends little on their rates.
    pub(crate) fn warning(&self) -> Option<String> {
        let ruled: Vec<f64> = self
            .choices
            .iter()
            .filter_map(|choice| choice.latency_ratio)
            .filter(|of| *of >= LATENCY_DOMINANT_SHARE)
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

    pub(crate) fn heading(&self) -> Vec<String> {
        let cost = format!("Cost, {}", self.currency);
        ["Fabric", "Scheme", "Fidelity", "Iteration", "Error", &cost, "Switches", "Ports", "Optics", ""]
            .map(str::to_owned)
            .to_vec()
    }

    pub(crate) fn row(&self, choice: &Choice) -> Vec<String> {
        let time = match (choice.time_ns, choice.time_ci95_ns) {
            (None, _) => choice.ending.label().to_owned(),
            (Some(time), None) => Quantity::TimeNs.format(time),
            (Some(time), Some(half)) => {
                format!("{} \u{b1} {}", Quantity::TimeNs.format(time), Quantity::TimeNs.format(half))
            }
        };
        let count = |count: u64| Quantity::Count.format(count as f64);
        vec![
            choice.fabric.clone(),
            choice.scheme.clone(),
            choice.fidelity.clone(),
            time,
            choice.error.map(|error| format!("{:+.1} %", 100.0 * error)).unwrap_or_default(),
            Quantity::Count.format(choice.cost.cost),
            count(u64::from(choice.cost.switches)),
            count(choice.cost.switch_ports),
            count(choice.cost.optics),
            if choice.best_of_its_cost { "*" } else { "" }.to_owned(),
        ]
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn choice(fabric: &str, cost: f64, time_ns: Option<f64>) -> Choice {
        Choice {
            fabric: fabric.to_owned(),
            scheme: "rps".to_owned(),
            fidelity: "packet".to_owned(),
            error: None,
            time_ns,
            time_ci95_ns: None,
            latency_ratio: None,
            open_flows: 0,
            ending: if time_ns.is_some() { ChoiceOutcome::Ended } else { ChoiceOutcome::NotRun },
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
    fn what_is_hardly_faster_is_no_better() {
        let time = |times: [f64; 3]| {
            let mut choices: Vec<Choice> =
                (0..).zip(times).map(|(cost, time)| choice("a", f64::from(cost), Some(time))).collect();
            mark_best(&mut choices);
            choices.iter().map(|choice| choice.best_of_its_cost).collect::<Vec<_>>()
        };
        assert_eq!(time([100.0, 99.999, 99.0]), [true, false, true]);
        // Each choice is compared with the fastest of all cheaper ones.
        assert_eq!(time([100.0, 99.6, 99.2]), [true, false, false]);
        assert_eq!(time([100.0, 120.0, 99.8]), [true, false, false]);
    }

    #[test]
    fn a_mean_over_part_of_the_seeds_is_not_final() {
        let cell = |finished: &[u64]| CellSummary {
            label: String::new(),
            at: Vec::new(),
            runs: vec!["a".to_owned(), "b".to_owned(), "c".to_owned()],
            finished_seeds: finished.to_vec(),
            open_flows: 0,
            failed: Vec::new(),
            metrics: BTreeMap::new(),
        };
        let endings = [&[][..], &[1, 2], &[1, 2, 3]].map(|seeds| ChoiceOutcome::of(&cell(seeds)));
        assert_eq!(endings, [ChoiceOutcome::NotRun, ChoiceOutcome::Partial, ChoiceOutcome::Ended]);
    }

    #[test]
    fn what_was_not_run_is_told_from_what_did_not_end() {
        let with = |ending| Choice { ending, ..choice("a", 1.0, None) };
        let choices = Choices {
            schema: "pathweave.plan",
            schema_version: 1,
            name: "a".to_owned(),
            currency: "USD".to_owned(),
            partial: true,
            choices: vec![
                with(ChoiceOutcome::Unfinished),
                with(ChoiceOutcome::NotRun),
                with(ChoiceOutcome::Failed),
            ],
        };
        let times: Vec<String> =
            choices.choices.iter().map(|choice| choices.row(choice)[3].clone()).collect();
        assert_eq!(times, ["did not end", "not run yet", "failed"]);
        let table = choices.table();
        assert!(table.contains("not run yet") && table.contains("Cost, USD"), "{table}");
    }
}
