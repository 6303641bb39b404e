//! Results of each figure of a paper, as a file beside it: `results.json`. The table of all figures is made of it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::paper::catalogue::{Paper, RECORD_FILE};
use crate::paper::claims::{Verdict, Weight, explained, of_other_size};
use crate::paper::error::{PaperError, unknown};
use crate::paper::model::Claim;
use crate::paper::plan::Plan;
use crate::paper::select::Size;
use crate::paper::state::State;
use pathweave_results::Estimate;

/// What came out for the figures of a paper.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// By figure.
    pub figures: BTreeMap<String, RecordedFigure>,
}

/// What came out for a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedFigure {
    /// "quick" or "full".
    pub size: String,
    /// How many seeds.
    pub seeds: usize,
    /// What `--quick` shortened, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shortened: String,
    /// Version of the program.
    pub version: String,
    /// Its claims, in its order.
    pub claims: Vec<Recorded>,
}

/// A verdict.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// What is claimed.
    pub claim: String,
    /// The published number or relation.
    pub published: String,
    /// Name of the variant, empty for schemes without variants.
    pub variant: String,
    /// The measured number, in words.
    pub measured: String,
    /// Mean over seeds, in the unit compared; none where there is no number.
    pub mean: Option<f64>,
    /// Half of the 95 % confidence interval of the mean; none of one seed.
    pub ci95: Option<f64>,
    /// State of the claim.
    pub state: State,
    /// Part of the claim in the standing of its figure.
    #[serde(default, skip_serializing_if = "counts")]
    pub weight: Weight,
    /// The reason where it does not agree and an experiment shows one; else what keeps it undecided.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl Recorded {
    /// State, weight and reason by `claim`, of the number that was recorded at `size`.
    fn judge(&mut self, claim: &Claim, size: Size) {
        self.published.clone_from(&claim.published);
        self.weight = Weight::of(claim);
        let Some(mean) = self.mean else { return };
        let judged = match of_other_size(claim, size) {
            Some(why) => (State::Undecided, why),
            None => {
                let state = State::of(claim, Estimate { mean, ci95: self.ci95, n: 1 });
                (state, explained(claim, state, &self.variant))
            }
        };
        (self.state, self.why) = judged;
    }
}

fn counts(weight: &Weight) -> bool {
    *weight == Weight::Counts
}

impl From<&Verdict> for Recorded {
    fn from(verdict: &Verdict) -> Self {
        let estimate = verdict.detail.estimate;
        Recorded {
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
    /// What stands in the file at `path`; nothing if there is none.
    ///
    /// # Errors
    /// If it cannot be read, or is not what [`Record::write`] writes.
    pub fn read(path: &Path) -> Result<Self, PaperError> {
        let wrong = |message: String| PaperError::File { file: path.display().to_string(), message };
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).map_err(wrong),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(Record::default()),
            Err(why) => Err(wrong(why.to_string())),
        }
    }

    /// Of the text of a file; the error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|why| format!("no record of a paper's results: {why}"))
    }

    /// The record with the figures of `plan` in the place of what it had of them, and without those that the paper no longer
    /// has.
    pub fn with(mut self, plan: &Plan, verdicts: &[Verdict], version: &str) -> Self {
        for figure in &plan.figures {
            let id = &figure.figure.id;
            let recorded = RecordedFigure {
                size: plan.size.flag().trim_start_matches('-').to_owned(),
                seeds: figure.seeds.len(),
                shortened: figure.says.clone(),
                version: version.to_owned(),
                claims: verdicts.iter().filter(|v| v.figure == *id).map(Recorded::from).collect(),
            };
            self.figures.insert(id.clone(), recorded);
        }
        self.figures.retain(|id, _| plan.paper.file.figures.contains(id));
        self
    }

    /// The record by the claims of `paper` as they are now: states and reasons follow from the recorded numbers.
    ///
    /// # Errors
    /// If a claim or a figure is no longer the paper's, and has to be recorded anew.
    pub fn judged_again(mut self, paper: &Paper) -> Result<Self, PaperError> {
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

    /// Writes it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).expect("plain data with text keys serialises");
        writeln!(out, "{text}")
    }
}

impl Paper {
    /// What came out for its figures when it was last recorded; nothing if it never was.
    ///
    /// # Errors
    /// If `results.json` is not what a record is.
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
        let claims = vec![Recorded { claim: "c".to_owned(), mean: Some(0.1), ..Recorded::default() }];
        let figure =
            RecordedFigure { size: "full".to_owned(), seeds: 3, claims, ..RecordedFigure::default() };
        let record = Record { figures: BTreeMap::from([("1".to_owned(), figure)]) };
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(Record::parse(&text).unwrap(), record);
    }
}
