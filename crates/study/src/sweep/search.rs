//! Order in which candidates run, and those that need not.
//!
//! A lower bound of a candidate's time gives an upper bound of its merit. If a rival has that merit already, the run cannot
//! change the answer, and is left out. Rivals are the candidates of the same fabric and scheme, so that the best of each is
//! that of all candidates. With [`Search::Front`], rivals are all that cost no more, and only the front is that of all
//! candidates.
//!
//! Candidates run in waves of a fixed number, the most promising first. A wave depends on earlier waves only, so that the
//! same candidates run on any number of cores, and after an interruption.

use std::collections::BTreeMap;

use pathweave_records::Quantity;

use crate::sweep::choice::merit;
use crate::sweep::cluster::{ClusterPlan, FIDELITY, SCHEME, Search};
use crate::sweep::summary::Outcome;

/// Number of candidates of a wave.
const WAVE: usize = 8;

/// State of the search.
#[derive(Clone, Debug, PartialEq)]
pub enum SearchStep {
    /// These runs are next.
    Run(Vec<usize>),
    /// Nothing is left to run. Runs of these cells were left out, for these reasons.
    Done(BTreeMap<usize, String>),
}

/// A cell whose candidate runs or may run.
struct Entry {
    cell: usize,
    cost: f64,
    /// Largest merit that the candidate can have.
    most: f64,
}

/// A finished candidate.
struct Known {
    cell: usize,
    cost: f64,
    merit: f64,
}

impl ClusterPlan {
    /// Returns the next runs, given the outcomes of earlier ones.
    pub fn next_runs(&self, outcomes: &BTreeMap<usize, Outcome>) -> SearchStep {
        let is_missing = |run: &usize| !outcomes.contains_key(run);
        let fidelities = self.plan.axes.iter().position(|axis| axis.key == FIDELITY);
        let of_packets = |cell: usize| {
            fidelities.is_some_and(|axis| {
                self.plan.axes[axis].values[self.plan.cells[cell].value_indices[axis]] == "packet"
            })
        };
        let has_flows =
            fidelities.is_some_and(|axis| self.plan.axes[axis].values.iter().any(|value| value == "flow"));
        let (later, mut left): (Vec<usize>, Vec<usize>) = (0..self.plan.cells.len())
            .filter(|&cell| self.plan.runs_of[cell].as_ref().is_ok_and(|runs| !runs.is_empty()))
            .partition(|&cell| self.search != Search::All && has_flows && of_packets(cell));
        if self.search == Search::All {
            let missing: Vec<usize> = (0..self.plan.runs.len()).filter(is_missing).collect();
            return if missing.is_empty() {
                SearchStep::Done(BTreeMap::new())
            } else {
                SearchStep::Run(missing)
            };
        }
        let mut entries: Vec<Entry> = left.drain(..).map(|cell| self.entry(cell)).collect();
        entries.sort_by(|a, b| {
            b.most.total_cmp(&a.most).then(a.cost.total_cmp(&b.cost)).then(a.cell.cmp(&b.cell))
        });
        let (mut known, mut left_out) = (Vec::new(), BTreeMap::new());
        while !entries.is_empty() {
            let mut wave: Vec<Entry> = Vec::new();
            let mut rest = Vec::new();
            for entry in entries {
                match self.better(&entry, &known) {
                    Some(by) => drop(left_out.insert(entry.cell, self.words(&entry, by))),
                    None if wave.len() < WAVE => wave.push(entry),
                    None => rest.push(entry),
                }
            }
            entries = rest;
            let missing = self.missing(wave.iter().map(|entry| entry.cell), outcomes);
            if !missing.is_empty() {
                return SearchStep::Run(missing);
            }
            known.extend(wave.iter().filter_map(|entry| self.known(entry, outcomes)));
        }
        self.packets(later, &known, fidelities, outcomes, left_out)
    }

    /// Returns the runs with packets of the candidates that are the best by flows.
    fn packets(
        &self,
        cells: Vec<usize>,
        known: &[Known],
        fidelities: Option<usize>,
        outcomes: &BTreeMap<usize, Outcome>,
        mut left_out: BTreeMap<usize, String>,
    ) -> SearchStep {
        let best = front(known, self.tolerance);
        let place = |cell: usize| {
            let mut at = self.plan.cells[cell].value_indices.clone();
            if let Some(axis) = fidelities {
                at.remove(axis);
            }
            at
        };
        let of_best: Vec<Vec<usize>> = best.into_iter().map(place).collect();
        let (chosen, others): (Vec<usize>, Vec<usize>) =
            cells.into_iter().partition(|&cell| of_best.contains(&place(cell)));
        let why = "by flows, it is not the best of its cost";
        left_out.extend(others.into_iter().map(|cell| (cell, why.to_owned())));
        match self.missing(chosen.into_iter(), outcomes) {
            missing if missing.is_empty() => SearchStep::Done(left_out),
            missing => SearchStep::Run(missing),
        }
    }

    fn entry(&self, cell: usize) -> Entry {
        let outlook = self.candidates[cell].outlook.as_ref();
        let most = outlook.and_then(|outlook| {
            let seconds = outlook.bound?.as_secs_f64();
            (seconds > 0.0).then(|| outlook.tokens / seconds)
        });
        let cost = self.costs[self.plan.cells[cell].value_indices[0]].cost;
        Entry { cell, cost, most: most.unwrap_or(f64::INFINITY) }
    }

    /// Returns the finished rival that is at least as good as this candidate can be.
    fn better<'a>(&self, entry: &Entry, known: &'a [Known]) -> Option<&'a Known> {
        let is_rival = |one: &Known| match self.search {
            Search::All => false,
            Search::Best => self.compared(one.cell) == self.compared(entry.cell),
            Search::Front => one.cost <= entry.cost,
        };
        let at_least = |one: &&Known| is_rival(one) && one.merit >= entry.most;
        known.iter().filter(at_least).max_by(|a, b| a.merit.total_cmp(&b.merit))
    }

    /// Returns fabric and scheme of a cell by number.
    fn compared(&self, cell: usize) -> (usize, Option<usize>) {
        let at = &self.plan.cells[cell].value_indices;
        let schemes = self.plan.axes.iter().position(|axis| axis.key == SCHEME);
        (at[0], schemes.map(|axis| at[axis]))
    }

    fn words(&self, entry: &Entry, by: &Known) -> String {
        let (cell, rival) = (self.compared(entry.cell), self.compared(by.cell));
        format!(
            "at most {} tokens/s, and \"{}\" has {} {}",
            Quantity::Count.format(entry.most),
            self.plan.cells[by.cell].label,
            Quantity::Count.format(by.merit),
            if cell == rival { "on the same fabric" } else { "for no more" }
        )
    }

    fn missing(&self, cells: impl Iterator<Item = usize>, outcomes: &BTreeMap<usize, Outcome>) -> Vec<usize> {
        let mut missing: Vec<usize> =
            cells.filter_map(|cell| self.plan.runs_of[cell].as_ref().ok()).flatten().copied().collect();
        missing.retain(|run| !outcomes.contains_key(run));
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    /// Returns a candidate whose runs all ended with all their flows and jobs.
    fn known(&self, entry: &Entry, outcomes: &BTreeMap<usize, Outcome>) -> Option<Known> {
        let runs = self.plan.runs_of[entry.cell].as_ref().ok()?;
        let mut sum = 0.0;
        for run in runs {
            match outcomes.get(run)? {
                Outcome::Finished(record) if record.is_whole() => {
                    sum += merit(|name| record.metrics.get(name).copied())?;
                }
                _ => return None,
            }
        }
        Some(Known { cell: entry.cell, cost: entry.cost, merit: sum / runs.len() as f64 })
    }
}

/// Returns the cells that are the best of their cost.
fn front(known: &[Known], tolerance: f64) -> Vec<usize> {
    let mut sorted: Vec<&Known> = known.iter().collect();
    sorted.sort_by(|a, b| a.cost.total_cmp(&b.cost).then(b.merit.total_cmp(&a.merit)));
    let mut most = 0.0f64;
    let mut best = Vec::new();
    for one in sorted {
        if one.merit * (1.0 - tolerance) > most {
            best.push(one.cell);
        }
        most = most.max(one.merit);
    }
    best
}
