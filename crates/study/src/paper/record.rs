//! Recorded results of a paper's figures: `results.json` in its folder. The table of all figures is built from it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::paper::catalogue::{Paper, RECORD_FILE};
use crate::paper::claims::{Verdict, Weight, of_other_size, reason};
use crate::paper::error::{PaperError, unknown};
use crate::paper::model::Claim;
use crate::paper::plan::Plan;
use crate::paper::select::Size;
use crate::paper::state::State;
use pathweave_report::Estimate;

/// Recorded results of a paper.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Results by figure id.
    pub figures: BTreeMap<String, RecordedFigure>,
}

/// Recorded results of a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedFigure {
    /// Size of the runs: "quick" or "full".
    pub size: String,
    /// Number of seeds, the largest one if runs stop at looks.
    pub seeds: usize,
    /// Numbers of seeds after which claims were judged until they were decided. Empty if every point had all seeds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<usize>,
    /// Description of what `--quick` shortened.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shortened: String,
    /// Version of the program that ran.
    pub version: String,
    /// Verdicts on the figure's claims, in the order of its file.
    pub claims: Vec<RecordedVerdict>,
}

/// Recorded verdict on a claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedVerdict {
    /// Text of the claim.
    pub claim: String,
    /// The published number or relation.
    pub published: String,
    /// Name of the variant. Empty for schemes without variants.
    pub variant: String,
    /// The measured number as text.
    pub measured: String,
    /// Mean over seeds, in the unit compared. `None` if there is no number.
    pub mean: Option<f64>,
    /// Half width of the 95 % confidence interval of the mean. With looks the interval of the last one, wide enough
    /// that those of all looks hold together. `None` with one seed.
    pub ci95: Option<f64>,
    /// Runs behind the number, if they are not all of the figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<RecordedRuns>,
    /// State of the claim.
    pub state: State,
    /// Weight of the claim in the standing of its figure.
    #[serde(default, skip_serializing_if = "counts")]
    pub weight: Weight,
    /// Reason why the claim does not agree, if an experiment shows one, or the reason why it is undecided.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// Runs behind a recorded number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedRuns {
    /// Size of the runs: "quick" or "full".
    pub size: String,
    /// Number of seeds.
    pub seeds: usize,
}

impl RecordedFigure {
    /// Returns the program options that repeat the runs of figure `id`.
    pub(crate) fn options(&self, id: &str) -> String {
        let until = if self.looks.is_empty() { "" } else { " --until-decided" };
        format!("--figure {id} --{} --seeds {}{until}", self.size, self.seeds)
    }

    /// Returns the measured number of a claim, with the runs behind it if they are not all of the figure.
    pub(crate) fn measured_text(&self, claim: &RecordedVerdict) -> String {
        let Some(runs) = &claim.runs else { return claim.measured.clone() };
        let size = if runs.size == self.size { String::new() } else { format!("`--{}`, ", runs.size) };
        format!("{}; {size}{} seed{}", claim.measured, runs.seeds, if runs.seeds == 1 { "" } else { "s" })
    }

    /// Returns the new verdicts of a figure with looks. A claim that the judged ones did not need keeps its verdict in
    /// `self`, with the runs behind it.
    fn keep_what_did_not_run(
        &self,
        verdicts: Vec<(RecordedVerdict, usize)>,
        size: &str,
    ) -> Vec<RecordedVerdict> {
        let with_runs = |(new, seeds): (RecordedVerdict, usize)| {
            let same = |old: &&RecordedVerdict| old.claim == new.claim && old.variant == new.variant;
            match self.claims.iter().find(same).filter(|_| seeds == 0) {
                Some(old) => {
                    let of_figure = RecordedRuns { size: self.size.clone(), seeds: self.seeds };
                    RecordedVerdict { runs: Some(old.runs.clone().unwrap_or(of_figure)), ..old.clone() }
                }
                None => {
                    let runs = RecordedRuns { size: size.to_owned(), seeds };
                    RecordedVerdict { runs: (seeds > 0).then_some(runs), ..new }
                }
            }
        };
        verdicts.into_iter().map(with_runs).collect()
    }
}

impl RecordedVerdict {
    /// Recomputes state, weight and reason from `claim`, for a number that was recorded at `size`.
    fn judge(&mut self, claim: &Claim, size: Size) {
        self.published.clone_from(&claim.published);
        self.weight = Weight::of(claim);
        let Some(mean) = self.mean else { return };
        let judged = match of_other_size(claim, size) {
            Some(why) => (State::Undecided, why),
            None => {
                let state = State::judge(claim, Estimate { mean, ci95: self.ci95, n: 1 });
                (state, reason(claim, state, &self.variant))
            }
        };
        (self.state, self.why) = judged;
    }
}

fn counts(weight: &Weight) -> bool {
    *weight == Weight::Counts
}

impl From<&Verdict> for RecordedVerdict {
    fn from(verdict: &Verdict) -> Self {
        let estimate = verdict.detail.estimate;
        RecordedVerdict {
            claim: verdict.claim.clone(),
            published: verdict.published.clone(),
            variant: verdict.variant.clone(),
            measured: verdict.measured.clone(),
            mean: estimate.map(|estimate| estimate.mean),
            ci95: estimate.and_then(|estimate| estimate.ci95),
            runs: None,
            state: verdict.state,
            weight: verdict.detail.weight,
            why: verdict.why.clone(),
        }
    }
}

impl Record {
    /// Reads the record at `path`. A missing file gives an empty record.
    ///
    /// # Errors
    /// If the file cannot be read, or is not in the format of [`Record::write`].
    pub fn read(path: &Path) -> Result<Self, PaperError> {
        let wrong = |message: String| PaperError::File { file: path.display().to_string(), message };
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).map_err(wrong),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(Record::default()),
            Err(why) => Err(wrong(why.to_string())),
        }
    }

    /// Parses the text of a record file. The error message describes the mistake.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|why| format!("no record of a paper's results: {why}"))
    }

    /// Replaces the results of the figures in `plan`, and removes the figures that the paper no longer has.
    pub fn replace_figures(mut self, plan: &Plan, verdicts: &[Verdict], version: &str) -> Self {
        let size = plan.size.flag().trim_start_matches('-');
        for figure in &plan.figures {
            let id = &figure.figure.id;
            let of_figure = || verdicts.iter().filter(|verdict| verdict.figure == *id);
            let looks = figure.looks.as_ref().map(|looks| looks.seeds().to_vec()).unwrap_or_default();
            let claims = if looks.is_empty() {
                of_figure().map(RecordedVerdict::from).collect()
            } else if of_figure().all(|verdict| verdict.detail.seeds == 0) {
                // The figure has no claim that counts, so nothing of it ran.
                continue;
            } else {
                let new = of_figure().map(|verdict| (verdict.into(), verdict.detail.seeds)).collect();
                self.figures.remove(id).unwrap_or_default().keep_what_did_not_run(new, size)
            };
            let recorded = RecordedFigure {
                size: size.to_owned(),
                seeds: figure.seeds.len(),
                looks,
                shortened: figure.changes_text.clone(),
                version: version.to_owned(),
                claims,
            };
            self.figures.insert(id.clone(), recorded);
        }
        self.figures.retain(|id, _| plan.paper.file.figures.contains(id));
        self
    }

    /// Judges the recorded numbers by the current claims of `paper`. States and reasons follow from the numbers.
    ///
    /// # Errors
    /// If the paper no longer has a recorded claim or figure. It must then be recorded again.
    pub fn rejudge(mut self, paper: &Paper) -> Result<Self, PaperError> {
        for (id, recorded) in &mut self.figures {
            let file = &paper.figure(id)?.file;
            for one in &mut recorded.claims {
                let size = one.runs.as_ref().map_or(&recorded.size, |runs| &runs.size);
                let size = if size == "full" { Size::Full } else { Size::Quick };
                let texts = file.claim.iter().map(|claim| claim.text.as_str());
                let claim = file.claim.iter().find(|claim| claim.text == one.claim).ok_or_else(|| {
                    unknown(
                        &format!("claim of figure {id} of {}, record it anew:", paper.name),
                        &one.claim,
                        texts,
                    )
                })?;
                one.judge(claim, size);
            }
        }
        Ok(self)
    }

    /// Writes the record as JSON.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).expect("plain data with text keys serialises");
        writeln!(out, "{text}")
    }
}

impl Paper {
    /// Returns the recorded results of the paper's figures. A paper without a record has an empty one.
    ///
    /// # Errors
    /// If `results.json` is not a valid record.
    pub fn record(&self) -> Result<Record, PaperError> {
        let Some(text) = self.text(RECORD_FILE) else { return Ok(Record::default()) };
        let file = format!("papers/{}/{RECORD_FILE}", self.name);
        Record::parse(text).map_err(|message| PaperError::File { file, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_record_is_refused() {
        for text in
            ["", "{}", "{\"figures\": {\"1\": {\"size\": \"quick\"}}}", "{\"figures\": {}, \"more\": 1}"]
        {
            let why = Record::parse(text).unwrap_err();
            assert!(why.starts_with("no record of a paper's results: "), "{text}: {why}");
        }
        assert_eq!(Record::parse("{\"figures\": {}}").unwrap(), Record::default());
    }

    #[test]
    fn what_the_judged_claims_did_not_need_keeps_its_runs() {
        let verdict = |variant: &str, measured: &str| RecordedVerdict {
            claim: "c".to_owned(),
            variant: variant.to_owned(),
            measured: measured.to_owned(),
            ..RecordedVerdict::default()
        };
        let old = RecordedFigure {
            size: "quick".to_owned(),
            seeds: 5,
            claims: vec![verdict("ours", "1x"), verdict("as printed", "2x")],
            ..RecordedFigure::default()
        };
        let new =
            vec![(verdict("ours", "none"), 0), (verdict("as printed", "3x"), 10), (verdict("x", "none"), 0)];
        let claims = old.keep_what_did_not_run(new, "full");
        let figure =
            RecordedFigure { size: "full".to_owned(), seeds: 20, looks: vec![10, 20], claims, ..old };
        let texts: Vec<String> = figure.claims.iter().map(|claim| figure.measured_text(claim)).collect();
        assert_eq!(texts, ["1x; `--quick`, 5 seeds", "3x; 10 seeds", "none"]);
        assert_eq!(figure.options("6a"), "--figure 6a --full --seeds 20 --until-decided");
        // The next record keeps the runs of the record before.
        let claims = figure.keep_what_did_not_run(vec![(verdict("ours", "none"), 0)], "full");
        assert_eq!(claims[0].runs, Some(RecordedRuns { size: "quick".to_owned(), seeds: 5 }));
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let claims =
            vec![RecordedVerdict { claim: "c".to_owned(), mean: Some(0.1), ..RecordedVerdict::default() }];
        let figure =
            RecordedFigure { size: "full".to_owned(), seeds: 3, claims, ..RecordedFigure::default() };
        let record = Record { figures: BTreeMap::from([("1".to_owned(), figure)]) };
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(Record::parse(&text).unwrap(), record);
    }
}
