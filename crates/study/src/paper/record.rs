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
    /// Number of seeds.
    pub seeds: usize,
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
    /// Half width of the 95 % confidence interval of the mean. `None` with one seed.
    pub ci95: Option<f64>,
    /// State of the claim.
    pub state: State,
    /// Weight of the claim in the standing of its figure.
    #[serde(default, skip_serializing_if = "counts")]
    pub weight: Weight,
    /// Reason why the claim does not agree, if an experiment shows one, or the reason why it is undecided.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
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
        for figure in &plan.figures {
            let id = &figure.figure.id;
            let recorded = RecordedFigure {
                size: plan.size.flag().trim_start_matches('-').to_owned(),
                seeds: figure.seeds.len(),
                shortened: figure.changes_text.clone(),
                version: version.to_owned(),
                claims: verdicts.iter().filter(|v| v.figure == *id).map(RecordedVerdict::from).collect(),
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
            let size = if recorded.size == "full" { Size::Full } else { Size::Quick };
            for one in &mut recorded.claims {
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
