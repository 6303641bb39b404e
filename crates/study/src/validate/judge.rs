//! Judgement of our figures against those of a peer or a law.

use pathweave_records::RunResult;
use serde::Serialize;

use crate::validate::catalogue::Case;
use crate::validate::figures::Figures;
use crate::validate::measured::{MeasuredReport, TrainingReport};
use crate::validate::model::{Band, Bands, Stat};

/// Figure of ours beside the same figure of a peer or a law.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Name of the figure.
    pub figure: String,
    /// Unit of the figure: "us" or "B".
    pub unit: &'static str,
    /// Our value.
    pub ours: f64,
    /// Value of the reference.
    pub theirs: f64,
    /// Our value over that of the reference.
    pub ratio: f64,
    /// Band in which the ratio must be. `None` if the ratio is only shown.
    pub band: Option<Band>,
    /// True if the ratio is in its band, or has none.
    pub holds: bool,
}

impl Row {
    pub(crate) fn new(figure: &str, unit: &'static str, ours: f64, theirs: f64, band: Option<Band>) -> Self {
        let ratio = ours / theirs;
        let holds = band.is_none_or(|band| band.holds(ratio));
        Row { figure: figure.to_owned(), unit, ours, theirs, ratio, band, holds }
    }
}

/// Runs of a case, or of one of its experiments.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CaseRuns {
    /// Title of the experiment, or the scheme in comparisons with packets or with one port. `None` for the case
    /// itself.
    pub title: Option<String>,
    /// Figures of the trial.
    pub rows: Vec<Row>,
    /// Reason why there are no figures.
    pub wrong: Option<String>,
    /// CPU time of our runs in seconds.
    pub cpu_s: f64,
    /// Completion times of our runs in microseconds.
    pub ours: Option<Figures>,
    /// Reasons that the flow model reports for being outside its validated range.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<String>,
}

impl CaseRuns {
    /// Returns true if every figure is in its band.
    pub fn holds(&self) -> bool {
        self.wrong.is_none() && self.rows.iter().all(|row| row.holds)
    }

    pub(crate) fn headroom(&mut self, law: f64, ours: f64) {
        self.rows.push(Row::new("least headroom", "B", ours, law, Some(Band::EXACT)));
    }
}

/// Result of a case.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Name of the case.
    pub case: String,
    /// Reference of the comparison: a peer, or the name of a law.
    pub beside: String,
    /// True if every figure of the case and of its experiments is in its band.
    pub holds: bool,
    /// CPU time of the peer over ours.
    pub cpu_ratio: Option<f64>,
    /// Trials: the case itself, then its experiments.
    pub trials: Vec<CaseRuns>,
    /// Measured and modelled values, if the reference is hardware.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredReport>,
    /// Measured and simulated steps of training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training: Option<TrainingReport>,
}

impl Outcome {
    pub(crate) fn new(case: &Case, trials: Vec<CaseRuns>) -> Self {
        let theirs = case.file.theirs.as_ref().map(|theirs| theirs.cpu_s);
        let ours = trials.first().map_or(0.0, |trial| trial.cpu_s);
        Outcome {
            case: case.name.clone(),
            beside: case.reference_name().to_owned(),
            holds: trials.iter().all(CaseRuns::holds),
            cpu_ratio: theirs.filter(|_| ours > 0.0).map(|theirs| theirs / ours),
            trials,
            measured: None,
            training: None,
        }
    }

    /// Returns the figures of the case itself.
    pub fn rows(&self) -> &[Row] {
        self.trials.first().map_or(&[], |trial| &trial.rows)
    }
}

/// Adds to `trial` the figures of `ours` beside the case's peer or law. Without `bands`, figures are shown and not
/// judged.
pub(crate) fn judge(
    case: &Case,
    bands: &Option<Bands>,
    runs: &[RunResult],
    ours: Figures,
    trial: &mut CaseRuns,
) {
    if let Some(theirs) = &case.file.theirs {
        let theirs = Figures::of_peer(theirs);
        for stat in Stat::ALL {
            let band = bands.map(|bands| bands.of(stat).unwrap_or_else(|| stat.usual_band()));
            trial.rows.push(Row::new(stat.name(), "us", ours.stat(stat), theirs.stat(stat), band));
        }
    }
    if let Some(law) = &case.file.law {
        for one in law.compare(runs, &ours) {
            let band = bands.map(|bands| bands.of(one.stat).unwrap_or(Band::EXACT));
            trial.rows.push(Row::new(one.what, one.unit, one.ours, one.law, band));
        }
        if trial.rows.is_empty() {
            trial.wrong = Some("the run has no data for the law".to_owned());
        }
    }
    trial.ours = Some(ours);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_outside_of_its_band_does_not_hold() {
        let usual = Some(Stat::Mean.usual_band());
        assert!(Row::new("mean", "us", 10.4, 10.0, usual).holds);
        assert!(!Row::new("mean", "us", 10.6, 10.0, usual).holds);
        assert!(!Row::new("mean", "us", 9.4, 10.0, usual).holds);
        assert!(Row::new("mean", "us", 99.0, 10.0, None).holds);
        // NaN is not in any band.
        assert!(!Row::new("mean", "us", f64::NAN, 10.0, usual).holds);
    }
}
