//! Columns of the choices of a plan, and their table for the terminal.

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, Table, presets};
use pathweave_records::Quantity;

use crate::sweep::choice::{Choice, ChoiceOutcome, Choices};

/// Struck candidates that the terminal shows by name, for each reason.
const SHOWN: usize = 4;

/// Column of a table of choices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Fabric,
    Parallelism,
    Setting(String),
    Scheme,
    Fidelity,
    Tokens,
    TokensOfGpu,
    Mfu,
    Memory,
    Iteration,
    Error,
    Cost,
    TokenCost,
    Switches,
    Ports,
    Optics,
    Best,
}

impl Column {
    pub(crate) fn title(&self, choices: &Choices) -> String {
        match self {
            Column::Fabric => "Fabric",
            Column::Parallelism => "Parallelism",
            Column::Setting(key) => key,
            Column::Scheme => "Scheme",
            Column::Fidelity => "Fidelity",
            Column::Tokens => "Tokens/s",
            Column::TokensOfGpu => "a GPU",
            Column::Mfu => "MFU",
            Column::Memory => "Memory",
            Column::Iteration => "Iteration",
            Column::Error => "Error",
            Column::Cost => return format!("Cost, {}", choices.currency),
            Column::TokenCost => return format!("{}/10^6 tokens", choices.currency),
            Column::Switches => "Switches",
            Column::Ports => "Ports",
            Column::Optics => "Optics",
            Column::Best => "",
        }
        .to_owned()
    }

    /// Returns true for a column of words, which begin at the left.
    pub(crate) fn is_words(&self) -> bool {
        matches!(
            self,
            Column::Fabric | Column::Parallelism | Column::Setting(_) | Column::Scheme | Column::Fidelity
        )
    }

    pub(crate) fn cell(&self, choice: &Choice) -> String {
        let count = |count: u64| Quantity::Count.format(count as f64);
        let or_outcome = |value: Option<String>| value.unwrap_or_else(|| choice.ending.label().to_owned());
        match self {
            Column::Fabric => choice.fabric.clone(),
            Column::Parallelism => choice.parallelism.clone().unwrap_or_default(),
            Column::Setting(key) => choice.settings.get(key).cloned().unwrap_or_default(),
            Column::Scheme => choice.scheme.clone(),
            Column::Fidelity => choice.fidelity.clone(),
            Column::Tokens => or_outcome(choice.tokens_per_s.map(|tokens| Quantity::Count.format(tokens))),
            Column::TokensOfGpu => {
                choice.tokens_per_s_per_gpu.map(|tokens| Quantity::Count.format(tokens)).unwrap_or_default()
            }
            Column::Mfu => choice.mfu.map(|mfu| Quantity::Percent.format(mfu)).unwrap_or_default(),
            Column::Memory => choice.memory.as_ref().map_or_else(String::new, |memory| {
                let bytes = |value: u64| Quantity::Bytes.format(value as f64);
                format!("{} of {}", bytes(memory.total()), bytes(memory.available))
            }),
            Column::Iteration => or_outcome(choice.time_ns.map(|time| match choice.time_ci95_ns {
                None => Quantity::TimeNs.format(time),
                Some(half) => {
                    format!("{} \u{b1} {}", Quantity::TimeNs.format(time), Quantity::TimeNs.format(half))
                }
            })),
            Column::Error => choice.error.map(|error| format!("{:+.1} %", 100.0 * error)).unwrap_or_default(),
            Column::Cost => Quantity::Count.format(choice.cost.cost),
            Column::TokenCost => choice.cost_per_million_tokens.map(money).unwrap_or_default(),
            Column::Switches => count(u64::from(choice.cost.switches)),
            Column::Ports => count(choice.cost.switch_ports),
            Column::Optics => count(choice.cost.optics),
            Column::Best => if choice.best_of_its_cost { "*" } else { "" }.to_owned(),
        }
    }
}

/// Formats a small amount of money with three significant digits.
pub(crate) fn money(amount: f64) -> String {
    let digits = if amount > 0.0 { 2.0 - amount.log10().floor() } else { 2.0 };
    format!("{amount:.*}", digits.clamp(0.0, 12.0) as usize)
}

impl Choices {
    /// Returns true if the choices train a transformer, so that tokens a second are their merit.
    pub(crate) fn have_tokens(&self) -> bool {
        self.choices.iter().any(|choice| choice.degrees.is_some() || choice.tokens_per_s.is_some())
    }

    fn has_choice_of_jobs(&self) -> bool {
        let first = self.choices.first();
        self.choices.iter().any(|choice| {
            first.is_some_and(|of| of.parallelism != choice.parallelism || of.settings != choice.settings)
        })
    }

    /// Returns the columns in which a choice has something.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let mut columns = vec![Column::Fabric];
        let tokens = self.have_tokens();
        if tokens {
            columns.push(Column::Parallelism);
        }
        let settings = self.choices.first().map(|choice| choice.settings.keys().cloned().collect::<Vec<_>>());
        columns.extend(settings.unwrap_or_default().into_iter().map(Column::Setting));
        columns.extend([Column::Scheme, Column::Fidelity]);
        if tokens {
            columns.extend([Column::Tokens, Column::TokensOfGpu, Column::Mfu, Column::Memory]);
        }
        columns.extend([Column::Iteration, Column::Error, Column::Cost]);
        if tokens {
            columns.push(Column::TokenCost);
        }
        columns.extend([Column::Switches, Column::Ports, Column::Optics, Column::Best]);
        let is_filled = |column: &Column| {
            *column == Column::Best || self.choices.iter().any(|choice| !column.cell(choice).is_empty())
        };
        columns.retain(is_filled);
        columns
    }

    /// Returns the choices as a table for the terminal: all, or the best of each fabric if jobs are chosen, too.
    pub fn table(&self) -> String {
        let rows =
            if self.has_choice_of_jobs() { self.best_of_fabrics() } else { self.choices.iter().collect() };
        let is_used = |column: &Column| {
            let parts = matches!(column, Column::Switches | Column::Ports | Column::Optics);
            let empty = |choice: &&Choice| column.cell(choice).is_empty();
            *column == Column::Best || !(self.have_tokens() && (parts || rows.iter().all(empty)))
        };
        let columns: Vec<Column> = self.columns().into_iter().filter(is_used).collect();
        let mut out = Table::new();
        out.load_style(presets::UTF8_BORDERS_ONLY);
        out.set_header(columns.iter().map(|column| column.title(self)));
        for choice in &rows {
            out.add_row(columns.iter().map(|column| column.cell(choice)));
        }
        for (column, of) in out.column_iter_mut().zip(&columns) {
            if !of.is_words() {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let shown = match self.candidates().count() {
            all if all > rows.len() => {
                format!("The best that ran of each fabric, of {all} candidates; plan.html has all.\n")
            }
            _ => String::new(),
        };
        let warning = self.warning().map_or(String::new(), |words| format!("warning: {words}\n"));
        let notes: String = self.notes.iter().map(|note| format!("note: {note}\n")).collect();
        let percent = 100.0 * self.tolerance;
        let (struck, missing) = (self.struck(), self.missing());
        format!(
            "{out}\n* faster than all that is cheaper, by more than {percent} %\n{missing}{shown}{struck}{warning}{notes}"
        )
    }

    /// Returns a line on the choices that are still to run; empty if there are none.
    pub(crate) fn missing(&self) -> String {
        match self.choices.iter().filter(|choice| choice.ending.is_to_run()).count() {
            0 => String::new(),
            missing => format!(
                "{missing} of {} candidates have runs to make: no choice that costs as much as one of them is marked\n",
                self.candidates().count()
            ),
        }
    }

    /// Returns the front, and the best choice of each fabric and fidelity.
    fn best_of_fabrics(&self) -> Vec<&Choice> {
        let mut best: BTreeMap<(&str, &str), f64> = BTreeMap::new();
        for choice in self.candidates() {
            let most = best.entry((&choice.fabric, &choice.fidelity)).or_insert(0.0);
            *most = most.max(choice.merit().unwrap_or(0.0));
        }
        let is_best = |choice: &&Choice| {
            let most = best[&(choice.fabric.as_str(), choice.fidelity.as_str())];
            choice.best_of_its_cost || choice.merit().unwrap_or(0.0) >= most
        };
        self.candidates().filter(is_best).collect()
    }

    /// Returns the choices that did not run, by outcome: their number, and some with their reasons.
    fn struck(&self) -> String {
        let mut text = String::new();
        for (outcome, words) in [
            (ChoiceOutcome::DoesNotFit, "do not fit the memory of a GPU"),
            (ChoiceOutcome::Refused, "refused"),
            (ChoiceOutcome::LeftOut, "left out, since they cannot be the best"),
        ] {
            let reasons = self.reasons(outcome);
            let count: usize = reasons.iter().map(|reason| reason.count).sum();
            if count == 0 {
                continue;
            }
            text.push_str(&format!("{count} {words}\n"));
            // Bounds are many, and each is one number of a candidate.
            let shown = if outcome == ChoiceOutcome::LeftOut { 0 } else { SHOWN };
            for reason in reasons.iter().take(shown) {
                text.push_str(&format!("  {}: {}\n", reason.title(), reason.why));
            }
            if shown > 0 && reasons.len() > shown {
                text.push_str(&format!("  and {} more in plan.html\n", reasons.len() - shown));
            }
        }
        text
    }

    /// Returns the reasons of choices with this outcome. Choices of one parallelism that share a reason are one.
    pub(crate) fn reasons(&self, outcome: ChoiceOutcome) -> Vec<StruckChoices> {
        let mut found: Vec<StruckChoices> = Vec::new();
        let mut places: BTreeMap<(String, String), usize> = BTreeMap::new();
        for choice in self.choices.iter().filter(|choice| choice.ending == outcome) {
            let name = choice.parallelism.clone().unwrap_or_else(|| choice.name.clone());
            let why = choice.reason.clone().unwrap_or_default();
            let place = *places.entry((name.clone(), why.clone())).or_insert(found.len());
            match found.get_mut(place) {
                Some(known) => known.count += 1,
                None => found.push(StruckChoices { name, why, count: 1 }),
            }
        }
        found
    }
}

/// Choices that did not run for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StruckChoices {
    /// Name of the parallelism.
    pub(crate) name: String,
    pub(crate) why: String,
    pub(crate) count: usize,
}

impl StruckChoices {
    pub(crate) fn title(&self) -> String {
        if self.count > 1 { format!("{} ({} candidates)", self.name, self.count) } else { self.name.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::choice::tests::{choice, plan};

    #[test]
    fn money_has_three_digits() {
        assert_eq!([0.0271828, 3.4159, 271.8, 0.0].map(money), ["0.0272", "3.42", "272", "0.00"]);
    }

    #[test]
    fn struck_choices_are_counted_and_named() {
        let struck = |name: &str, ending, reason: &str| Choice {
            parallelism: Some(name.to_owned()),
            reason: Some(reason.to_owned()),
            ending,
            ..choice("a", 1.0, None)
        };
        let choices = plan(vec![
            choice("a", 1.0, Some(1e6)),
            struck("TP1", ChoiceOutcome::DoesNotFit, "does not fit: 92 of 80"),
            struck("TP1", ChoiceOutcome::DoesNotFit, "does not fit: 92 of 80"),
            struck("TP3", ChoiceOutcome::Refused, "expected a divisor"),
            struck("TP4", ChoiceOutcome::LeftOut, "at most 3 tokens/s"),
        ]);
        let table = choices.table();
        assert!(
            table.contains("2 do not fit the memory of a GPU\n  TP1 (2 candidates): does not fit: 92 of 80"),
            "{table}"
        );
        assert!(table.contains("1 refused\n  TP3: expected a divisor"), "{table}");
        assert!(table.contains("1 left out, since they cannot be the best"), "{table}");
        let page = choices.html();
        for words in
            ["TP1 (2 candidates)", "does not fit: 92 of 80", "expected a divisor", "at most 3 tokens/s"]
        {
            assert!(page.contains(words), "{words}: {page}");
        }
    }
}
