//! Standings of all published figures, from the results recorded beside the papers. The documents show them.

use std::collections::BTreeMap;

use crate::paper::catalogue::{Catalogue, Paper};
use crate::paper::claims::Weight;
use crate::paper::error::PaperError;
use crate::paper::model::{Shown, Variant};
use crate::paper::record::Record;
use crate::paper::standing::{Judgement, Standing, judgement};

/// State of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowState {
    /// Recorded claims give this standing.
    Stands(Standing),
    /// No figure of this project repeats it.
    NoCounterpart,
    /// No claim of its figures has been recorded.
    NotRun,
}

impl RowState {
    /// Returns the word that tables use.
    pub fn word(self) -> &'static str {
        match self {
            RowState::Stands(standing) => standing.word(),
            RowState::NoCounterpart => "no counterpart",
            RowState::NotRun => "not run",
        }
    }

    fn all() -> impl Iterator<Item = RowState> {
        Standing::ALL.into_iter().map(RowState::Stands).chain([RowState::NoCounterpart, RowState::NotRun])
    }
}

/// Published figure or table with its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedRow {
    /// Name of the paper in the program.
    pub paper: String,
    /// Published name, for instance "Figure 4a" or "Table III".
    pub name: String,
    /// Description of the content.
    pub what: String,
    /// State of the row.
    pub state: RowState,
    /// Program options of the recorded runs, one entry per figure of ours. Empty if nothing is recorded.
    pub options: Vec<String>,
    /// Published numbers and ours, with the reason if the figure is not reproduced.
    pub grounds: String,
}

/// Returns a row for each published figure and table with a result, in the order of papers and of each publication.
///
/// # Errors
/// If a paper's files or its record are invalid.
pub fn rows(catalogue: &Catalogue) -> Result<Vec<PublishedRow>, PaperError> {
    let mut rows = Vec::new();
    for name in catalogue.names() {
        let paper = catalogue.paper(name)?;
        let record = paper.record()?;
        rows.extend(paper.file.shown.iter().map(|shown| row(&paper, &record, shown)));
    }
    Ok(rows)
}

fn row(paper: &Paper, record: &Record, shown: &Shown) -> PublishedRow {
    let found: Vec<_> = shown.figures.iter().filter_map(|id| record.figures.get_key_value(id)).collect();
    let judged = judgement(found.iter().flat_map(|(_, figure)| &figure.claims), paper.file.judged.as_ref());
    let (state, grounds) = match &judged {
        _ if !shown.no_counterpart.is_empty() => (RowState::NoCounterpart, shown.no_counterpart.clone()),
        Some(judged) => (RowState::Stands(judged.standing), summary_of(judged)),
        None => (RowState::NotRun, "No claim of the paper has been recorded.".to_owned()),
    };
    let options = found.iter().map(|(id, figure)| figure.options(id));
    PublishedRow {
        paper: paper.name.clone(),
        name: shown.name.clone(),
        what: shown.what.clone(),
        state,
        options: options.collect(),
        grounds,
    }
}

/// Returns the count of claims by state, and the deciding claim with its numbers.
fn summary_of(judged: &Judgement<'_>) -> String {
    let claim = judged.decisive();
    let numbers = format!("{}: published {}, ours {}", claim.claim, claim.published, claim.measured);
    let reason = if claim.why.is_empty() { String::new() } else { format!(". Why: {}", claim.why) };
    format!("{}. {numbers}{reason}.", capital(&judged.count()))
}

/// Returns a Markdown table with the names of the rows in each state, one line per paper. `page` is the address of
/// the document that holds [`figures_text`].
pub fn overview_text(catalogue: &Catalogue, rows: &[PublishedRow], page: &str) -> Result<String, PaperError> {
    let states: Vec<RowState> =
        RowState::all().filter(|state| rows.iter().any(|row| row.state == *state)).collect();
    let mut text = format!(
        "| | {} |\n|---|{}\n",
        states.iter().map(|state| capital(state.word())).collect::<Vec<_>>().join(" | "),
        "---|".repeat(states.len())
    );
    for (paper, rows) in by_paper(rows) {
        let heading = heading(catalogue, paper)?;
        text.push_str(&format!("| [{heading}]({page}#{})", anchor(&heading)));
        for state in &states {
            let names: Vec<&str> =
                rows.iter().filter(|r| r.state == *state).map(|r| short(&r.name)).collect();
            text.push_str(&format!(" | {}", names.join(", ")));
        }
        text.push_str(" |\n");
    }
    let count = |state: &RowState| rows.iter().filter(|row| row.state == *state).count().to_string();
    let counts: Vec<String> = states.iter().map(count).collect();
    text.push_str(&format!("| **of {}** | {} |\n", rows.len(), counts.join(" | ")));
    Ok(text)
}

/// Returns Markdown with one table per paper, and a table row for each of `rows`.
pub fn figures_text(catalogue: &Catalogue, rows: &[PublishedRow]) -> Result<String, PaperError> {
    let mut text = String::new();
    for (paper, rows) in by_paper(rows) {
        let heading = heading(catalogue, paper)?;
        text.push_str(&format!("\n### {heading}\n\n[Results and reasons]({paper}-results.md). "));
        let file = catalogue.paper(paper)?.file;
        let judged = file.judged.as_ref().map_or(Variant::AS_PRINTED, Variant::name);
        text.push_str(&format!(
            "`pathweave paper {paper}` with the options of a row repeats it. Judged is the variant \"{judged}\".\n\n"
        ));
        text.push_str("| Published | Shows | State | Options | Result |\n|---|---|---|---|---|\n");
        for row in rows {
            let options: Vec<String> = row.options.iter().map(|options| format!("`{options}`")).collect();
            let options = options.join(", ");
            let cells = [&row.name, &row.what, row.state.word(), &options, &row.grounds];
            let cells = cells.map(|cell| cell.replace('|', "\\|"));
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
    }
    Ok(text)
}

/// Returns a Markdown table of a paper's claims with the recorded results, one line per claim and variant.
///
/// # Errors
/// If the paper's files or its record are invalid.
pub fn claims_table(paper: &Paper) -> Result<String, PaperError> {
    let record = paper.record()?;
    let judged = paper.file.judged.as_ref().map_or(Variant::AS_PRINTED, Variant::name);
    let mut text = format!(
        "Judged is the variant \"{judged}\" where there are several.\n\n| Published | Claim | Published number | Variant | \
         Measured here | State |\n|---|---|---|---|---|---|\n"
    );
    for shown in &paper.file.shown {
        for id in &shown.figures {
            let Some(figure) = record.figures.get(id) else { continue };
            for one in figure.claims.iter().filter(|claim| claim.weight != Weight::Aside) {
                let state = match one.weight {
                    Weight::Fitted => "fitted",
                    _ => one.state.word(),
                };
                let state = if one.variant == judged { format!("**{state}**") } else { state.to_owned() };
                let measured = figure.measured_text(one);
                let cells = [&shown.name, &one.claim, &one.published, &one.variant, &measured, &state];
                let cells = cells.map(|cell| cell.replace('|', "\\|"));
                text.push_str(&format!("| {} |\n", cells.join(" | ")));
            }
        }
    }
    Ok(text)
}

fn by_paper(rows: &[PublishedRow]) -> impl Iterator<Item = (&str, &[PublishedRow])> {
    rows.chunk_by(|a, b| a.paper == b.paper).map(|rows| (rows[0].paper.as_str(), rows))
}

/// Returns the short name of a paper, for instance "UDMP" from the title "UDMP: its evaluation, run again".
fn heading(catalogue: &Catalogue, paper: &str) -> Result<String, PaperError> {
    let title = catalogue.paper(paper)?.file.title;
    Ok(title.split(':').next().unwrap_or(paper).to_owned())
}

fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-")
}

/// Strips the word "Figure" or "Figures" with which all names but those of tables begin.
fn short(name: &str) -> &str {
    ["Figures ", "Figure "].iter().find_map(|word| name.strip_prefix(word)).unwrap_or(name)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Returns the verdict on a whole paper for the head of its page: the number of figures with each standing.
pub(crate) fn verdict_text<'a>(standings: impl IntoIterator<Item = Standing> + 'a) -> String {
    let mut counts: BTreeMap<Standing, usize> = BTreeMap::new();
    standings.into_iter().for_each(|standing| *counts.entry(standing).or_default() += 1);
    let all: usize = counts.values().sum();
    let parts: Vec<String> = counts.iter().map(|(standing, count)| standing.counted(*count)).collect();
    format!("Of {all} figures and tables {}.", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::record::RecordedVerdict;
    use crate::paper::state::State;

    fn claim(state: State, why: &str) -> RecordedVerdict {
        RecordedVerdict {
            claim: "Faster than the others".to_owned(),
            published: "20 %".to_owned(),
            measured: "12 %".to_owned(),
            state,
            why: why.to_owned(),
            ..RecordedVerdict::default()
        }
    }

    #[test]
    fn a_row_has_the_claim_that_decided_and_its_reason() {
        let claims = [claim(State::Agrees, ""), claim(State::FallsShort, "there is one path")];
        let judged = judgement(&claims, None).unwrap();
        let text = "1 of 2 claims agree, 1 falls short. Faster than the others: published 20 %, ours 12 %. Why: there \
                    is one path.";
        assert_eq!(summary_of(&judged), text);
        let judged = judgement(&claims[..1], None).unwrap();
        assert_eq!(
            summary_of(&judged),
            "1 of 1 claim agrees. Faster than the others: published 20 %, ours 12 %."
        );
    }

    #[test]
    fn a_paper_is_the_sum_of_its_figures() {
        let standings = [Standing::FallsShort, Standing::Agrees, Standing::FallsShort];
        assert_eq!(verdict_text(standings), "Of 3 figures and tables 1 agrees, 2 fall short.");
    }
}
