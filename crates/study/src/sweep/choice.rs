//! Results of a cluster plan: each candidate with its time, tokens, memory and cost, and the front of the best.

use std::collections::BTreeMap;

use pathweave_records::LATENCY_DOMINANT_SHARE;
use pathweave_scenario::{Degrees, TrainingMemory};
use serde::Serialize;

use crate::sweep::cluster::{
    Candidate, ClusterPlan, FIDELITY, LATENCY, MFU, SCHEME, Strike, TIME, TOKENS_PER_S, TOKENS_PER_S_PER_GPU,
};
use crate::sweep::cost::{Cost, Prices};
use crate::sweep::parallelism::PARALLELISM;
use crate::sweep::summary::{CellSummary, SweepSummary};

/// Choice of a plan: a fabric at a rate, with a parallelism and other settings, under a scheme.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Choice {
    /// Description of the choice.
    pub name: String,
    /// Name of the fabric, with its rate.
    pub fabric: String,
    /// Parallelism, such as "TP8 PP4 DP32"; `None` if nothing trains a transformer.
    pub parallelism: Option<String>,
    /// The same as numbers.
    pub degrees: Option<Degrees>,
    /// Values of further fields that the plan varies.
    pub settings: BTreeMap<String, String>,
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
    /// Tokens of an iteration over its time, if a transformer is trained.
    pub tokens_per_s: Option<f64>,
    /// The same for each GPU.
    pub tokens_per_s_per_gpu: Option<f64>,
    /// Model FLOP utilisation, if the workload names its GPU.
    pub mfu: Option<f64>,
    /// Memory of the fullest GPU, if the workload names its GPU.
    pub memory: Option<TrainingMemory>,
    /// Cost of 10^6 tokens, with the cost of the cluster spread over its years.
    pub cost_per_million_tokens: Option<f64>,
    /// Lower bound of the time of an iteration, in nanoseconds, if one is known.
    pub bound_ns: Option<f64>,
    /// Share of the jobs' time that is latency, as a mean over seeds.
    pub latency_ratio: Option<f64>,
    /// Number of unfinished flows.
    pub open_flows: u64,
    /// Outcome of the runs.
    pub ending: ChoiceOutcome,
    /// Reason why the choice did not run.
    pub reason: Option<String>,
    /// Components of the fabric and their cost.
    #[serde(flatten)]
    pub cost: Cost,
    /// True if it is faster than all cheaper choices of the same fidelity, by more than the tolerance of the plan.
    pub best_of_its_cost: bool,
}

/// Outcome of the runs of a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceOutcome {
    /// All runs ended with all their flows.
    Ended,
    /// The plan was interrupted: some seeds have been run, and all of these ended with all their flows.
    Partial,
    /// A run ended with unfinished flows or jobs.
    Unfinished,
    /// A run failed.
    Failed,
    /// No run has been made.
    #[default]
    NotRun,
    /// The training needs more memory than a GPU has.
    DoesNotFit,
    /// The model, the GPUs or the plan do not allow the parallelism.
    Refused,
    /// A bound shows that the choice cannot be the best of its fabric and scheme, or of its cost.
    LeftOut,
}

impl ChoiceOutcome {
    fn of(cell: &CellSummary, strike: Option<&Strike>) -> Self {
        match strike {
            Some(Strike::Memory(_)) => return ChoiceOutcome::DoesNotFit,
            Some(Strike::Refused { .. }) => return ChoiceOutcome::Refused,
            None => {}
        }
        match () {
            () if !cell.failed.is_empty() => ChoiceOutcome::Failed,
            () if cell.left_out.is_some() => ChoiceOutcome::LeftOut,
            () if cell.open_flows > 0 || !cell.withheld.is_empty() => ChoiceOutcome::Unfinished,
            () if cell.finished_seeds.is_empty() => ChoiceOutcome::NotRun,
            () if cell.finished_seeds.len() < cell.runs.len() => ChoiceOutcome::Partial,
            () => ChoiceOutcome::Ended,
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            ChoiceOutcome::Ended => "no iteration",
            ChoiceOutcome::Partial => "seeds missing",
            ChoiceOutcome::Unfinished => "did not end",
            ChoiceOutcome::Failed => "failed",
            ChoiceOutcome::NotRun => "not run yet",
            ChoiceOutcome::DoesNotFit => "does not fit",
            ChoiceOutcome::Refused => "refused",
            ChoiceOutcome::LeftOut => "left out",
        }
    }

    /// Returns true for a choice that has runs to make.
    pub(crate) fn is_to_run(self) -> bool {
        matches!(self, ChoiceOutcome::NotRun | ChoiceOutcome::Partial)
    }

    /// Returns true for a choice that neither its memory, nor its form, nor a bound rules out.
    pub(crate) fn is_candidate(self) -> bool {
        !matches!(self, ChoiceOutcome::DoesNotFit | ChoiceOutcome::Refused | ChoiceOutcome::LeftOut)
    }
}

/// Choices of a plan, the content of `plan.json`.
#[derive(Clone, Debug, Default, Serialize)]
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
    /// Relative difference up to which two choices count as equally fast.
    pub tolerance: f64,
    /// Notes on settings by which the order of choices may be wrong.
    pub notes: Vec<String>,
    /// Choices sorted by cost, and from fast to slow if the costs are equal.
    pub choices: Vec<Choice>,
}

/// Returns the figure of merit, of which more is better: tokens a second if a transformer is trained, otherwise
/// iterations a second. `value` returns figures by name.
pub(crate) fn merit(value: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    value(TOKENS_PER_S).or_else(|| Some(1e9 / value(TIME)?))
}

impl Choice {
    /// Returns the figure of merit.
    pub(crate) fn merit(&self) -> Option<f64> {
        merit(|name| if name == TOKENS_PER_S { self.tokens_per_s } else { self.time_ns })
    }
}

/// Sets the error of each choice at flow fidelity against the same choice at packet fidelity.
fn find_errors(choices: &mut [Choice]) {
    let key = |choice: &Choice| {
        (choice.fabric.clone(), choice.parallelism.clone(), choice.settings.clone(), choice.scheme.clone())
    };
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

/// Marks the best choices. They must be sorted by cost. What costs as much as a choice that is still to run, or more,
/// is not known to be the best.
fn mark_best(choices: &mut [Choice], tolerance: f64) {
    let mut most: BTreeMap<String, f64> = BTreeMap::new();
    let mut known_below: BTreeMap<String, f64> = BTreeMap::new();
    for choice in choices.iter().filter(|choice| choice.ending.is_to_run()) {
        let least = known_below.entry(choice.fidelity.clone()).or_insert(f64::INFINITY);
        *least = least.min(choice.cost.cost);
    }
    for choice in choices {
        let is_known = known_below.get(&choice.fidelity).is_none_or(|least| choice.cost.cost < *least);
        let most = most.entry(choice.fidelity.clone()).or_insert(0.0);
        let merit = choice.merit().unwrap_or(0.0);
        choice.best_of_its_cost = is_known && merit * (1.0 - tolerance) > *most;
        *most = most.max(merit);
    }
}

/// Returns the name of a parallelism, with the axes that have several ranks.
pub(crate) fn name_of(degrees: &Degrees) -> String {
    let Degrees { tp, pp, cp, dp, ep, vp } = *degrees;
    let axes = [("TP", tp), ("PP", pp), ("VP", vp), ("CP", cp), ("EP", ep), ("DP", dp)];
    let several = axes.iter().filter(|(_, degree)| *degree > 1);
    let names: Vec<String> = several.map(|(name, degree)| format!("{name}{degree}")).collect();
    if names.is_empty() { "one GPU".to_owned() } else { names.join(" ") }
}

impl Choices {
    /// Builds the choices of a plan from the outcomes of its runs.
    pub fn new(plan: &ClusterPlan, summary: &SweepSummary) -> Self {
        let all = summary.cells.iter().zip(&plan.candidates);
        let mut choices: Vec<Choice> =
            all.map(|(cell, candidate)| Self::choice(plan, summary, cell, candidate)).collect();
        let merit = |choice: &Choice| choice.merit().unwrap_or(0.0);
        choices.sort_by(|a, b| a.cost.cost.total_cmp(&b.cost.cost).then(merit(b).total_cmp(&merit(a))));
        mark_best(&mut choices, plan.tolerance);
        find_errors(&mut choices);
        Choices {
            schema: "pathweave.plan",
            schema_version: 1,
            name: summary.name.clone(),
            currency: plan.currency.clone(),
            partial: summary.partial,
            tolerance: plan.tolerance,
            notes: plan.notes.clone(),
            choices,
        }
    }

    fn choice(
        plan: &ClusterPlan,
        summary: &SweepSummary,
        cell: &CellSummary,
        candidate: &Candidate,
    ) -> Choice {
        let ending = ChoiceOutcome::of(cell, candidate.strike.as_ref());
        // The mean covers iterations that ended, which is misleading if one did not or has not been run.
        let is_final = ending == ChoiceOutcome::Ended;
        let final_figure = |name: &str| cell.metrics.get(name).filter(|_| is_final).map(|of| &of.estimate);
        let mean = |name: &str| final_figure(name).map(|estimate| estimate.mean);
        let value = |key: &str| {
            let axis = summary.axes.iter().position(|axis| axis.key == key)?;
            Some(summary.axes[axis].values[cell.at[axis]].clone())
        };
        let known = [PARALLELISM, SCHEME, FIDELITY];
        let further = summary.axes.iter().zip(&cell.at).skip(1);
        let settings = further.filter(|(axis, _)| !known.contains(&axis.key.as_str()));
        let outlook = candidate.outlook.as_ref();
        let degrees = outlook.map(|outlook| outlook.parallelism);
        let cost = plan.costs[cell.at[0]].clone();
        let tokens_per_s = mean(TOKENS_PER_S);
        Choice {
            name: cell.label.clone(),
            fabric: summary.axes[0].values[cell.at[0]].clone(),
            parallelism: degrees.as_ref().map(name_of).or_else(|| value(PARALLELISM)),
            degrees,
            settings: settings.map(|(axis, &at)| (axis.key.clone(), axis.values[at].clone())).collect(),
            scheme: value(SCHEME).unwrap_or_default(),
            fidelity: value(FIDELITY).unwrap_or_else(|| plan.fidelity.to_owned()),
            error: None,
            time_ns: mean(TIME),
            time_ci95_ns: final_figure(TIME).and_then(|time| time.ci95),
            tokens_per_s,
            tokens_per_s_per_gpu: mean(TOKENS_PER_S_PER_GPU),
            mfu: mean(MFU),
            memory: outlook.and_then(|outlook| outlook.memory.clone()),
            cost_per_million_tokens: tokens_per_s
                .map(|tokens| Prices::of_million_tokens(plan.years, cost.cost, tokens)),
            bound_ns: outlook.and_then(|outlook| outlook.bound).map(|bound| bound.as_ps() as f64 / 1e3),
            latency_ratio: cell.metrics.get(LATENCY).map(|figures| figures.estimate.mean),
            open_flows: cell.open_flows,
            ending,
            reason: candidate.strike.as_ref().map(ToString::to_string).or_else(|| cell.left_out.clone()),
            cost,
            best_of_its_cost: false,
        }
    }

    /// Returns the choices that are to run.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = &Choice> {
        self.choices.iter().filter(|choice| choice.ending.is_candidate())
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
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn choice(fabric: &str, cost: f64, time_ns: Option<f64>) -> Choice {
        Choice {
            name: format!("{fabric}, scheme=rps"),
            fabric: fabric.to_owned(),
            scheme: "rps".to_owned(),
            fidelity: "packet".to_owned(),
            time_ns,
            ending: if time_ns.is_some() { ChoiceOutcome::Ended } else { ChoiceOutcome::NotRun },
            cost: Cost { cost, ..Cost::default() },
            best_of_its_cost: true,
            ..Choice::default()
        }
    }

    pub(crate) fn plan(choices: Vec<Choice>) -> Choices {
        Choices {
            name: "a <plan>".to_owned(),
            currency: "USD".to_owned(),
            tolerance: 0.005,
            choices,
            ..Choices::default()
        }
    }

    /// Trained tokens decide, not times: the second choice takes longer for twice as many tokens.
    #[test]
    fn tokens_are_the_merit_of_training() {
        let with = |cost: f64, time_ns: f64, tokens: f64| Choice {
            tokens_per_s: Some(tokens),
            ..choice("a", cost, Some(time_ns))
        };
        let mut choices = [with(1.0, 1e9, 100.0), with(2.0, 2e9, 200.0), with(3.0, 1e9, 200.9)];
        mark_best(&mut choices, 0.005);
        assert_eq!(choices.map(|choice| choice.best_of_its_cost), [true, true, false]);
    }

    /// The second and third choice have not run: only what is cheaper is known to be the best of its cost.
    #[test]
    fn what_a_missing_run_could_beat_is_not_marked() {
        let mut choices = [
            choice("a", 1.0, Some(9e9)),
            choice("a", 3.0, None),
            choice("b", 2.0, None),
            choice("b", 2.0, Some(8e9)),
            choice("c", 4.0, Some(1e9)),
            Choice { fidelity: "flow".to_owned(), ..choice("c", 4.0, Some(1e9)) },
        ];
        mark_best(&mut choices, 0.005);
        let best = choices.each_ref().map(|choice| choice.best_of_its_cost);
        assert_eq!(best, [true, false, false, false, false, true], "flows are compared with flows");
    }

    #[test]
    fn a_parallelism_is_named_by_its_axes() {
        let degrees = Degrees { tp: 8, pp: 4, cp: 1, dp: 32, ep: 1, vp: 2 };
        assert_eq!(name_of(&degrees), "TP8 PP4 VP2 DP32");
        assert_eq!(name_of(&Degrees { tp: 1, pp: 1, cp: 1, dp: 1, ep: 1, vp: 1 }), "one GPU");
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
        let choices = |latency: [Option<f64>; 2]| {
            plan(
                latency.map(|latency_ratio| Choice { latency_ratio, ..choice("a", 1.0, Some(2e6)) }).to_vec(),
            )
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
    fn notes_of_a_plan_are_in_its_table_and_its_page() {
        let choices =
            Choices { notes: vec!["write `a < b`".to_owned()], ..plan(vec![choice("a", 1.0, Some(2e6))]) };
        assert!(choices.table().ends_with("note: write `a < b`\n"), "{}", choices.table());
        assert!(choices.html().contains("<strong>Note:</strong> write `a &lt; b`</p>"));
    }

    #[test]
    fn what_is_hardly_faster_is_no_better() {
        let time = |times: [f64; 3]| {
            let mut choices: Vec<Choice> =
                (0..).zip(times).map(|(cost, time)| choice("a", f64::from(cost), Some(time))).collect();
            mark_best(&mut choices, 0.005);
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
            left_out: None,
            change: None,
            metrics: BTreeMap::new(),
            withheld: Vec::new(),
        };
        let endings = [&[][..], &[1, 2], &[1, 2, 3]].map(|seeds| ChoiceOutcome::of(&cell(seeds), None));
        assert_eq!(endings, [ChoiceOutcome::NotRun, ChoiceOutcome::Partial, ChoiceOutcome::Ended]);
    }

    #[test]
    fn what_was_not_run_is_told_from_what_did_not_end() {
        let with = |ending| Choice { ending, ..choice("a", 1.0, None) };
        let endings = [ChoiceOutcome::Unfinished, ChoiceOutcome::NotRun, ChoiceOutcome::Failed];
        let choices = plan(endings.map(with).to_vec());
        let columns = choices.columns();
        assert_eq!(columns[3].title(&choices), "Iteration");
        let times: Vec<String> = choices.choices.iter().map(|choice| columns[3].cell(choice)).collect();
        assert_eq!(times, ["did not end", "not run yet", "failed"]);
        let table = choices.table();
        assert!(table.contains("not run yet") && table.contains("Cost, USD"), "{table}");
    }
}
