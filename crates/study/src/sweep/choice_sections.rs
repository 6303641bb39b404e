//! Sections of the page of a plan: the points of the front by name, and the candidates that did not run.

use std::fmt::Write;

use pathweave_records::Quantity;
use pathweave_report::escape;

use crate::sweep::choice::{Choice, ChoiceOutcome, Choices};
use crate::sweep::choice_table::money;

impl Choices {
    /// Returns the choices of the front with the numbers of their rows and their names. One of each fidelity is the
    /// cheapest, one the fastest, and one has the cheapest tokens.
    pub(crate) fn named_points(&self) -> String {
        let best: Vec<(usize, &Choice)> =
            (1..).zip(self.candidates()).filter(|(_, choice)| choice.best_of_its_cost).collect();
        let mut text = String::new();
        for (number, choice) in &best {
            let rivals =
                || best.iter().filter(|(_, other)| other.fidelity == choice.fidelity).map(|(_, other)| other);
            let token_cost = |choice: &Choice| choice.cost_per_million_tokens.unwrap_or(f64::INFINITY);
            let merit = |choice: &Choice| choice.merit().unwrap_or(0.0);
            let roles = [
                ("cheapest", rivals().all(|other| other.cost.cost >= choice.cost.cost)),
                ("fastest", rivals().all(|other| merit(other) <= merit(choice))),
                (
                    "cheapest tokens",
                    choice.cost_per_million_tokens.is_some()
                        && rivals().all(|other| token_cost(other) >= token_cost(choice)),
                ),
            ];
            let roles: Vec<&str> = roles.into_iter().filter(|(_, is)| *is).map(|(role, _)| role).collect();
            let roles = if roles.is_empty() { String::new() } else { format!(" ({})", roles.join(", ")) };
            let _ = writeln!(
                text,
                "<li><b>{number}</b> {}{roles}: {}, {} {}</li>",
                escape(&choice.name),
                self.merit_words(choice),
                Quantity::Count.format(choice.cost.cost),
                escape(&self.currency)
            );
        }
        if text.is_empty() { text } else { format!("<h2>Best of their cost</h2>\n<ol>\n{text}</ol>\n") }
    }

    fn merit_words(&self, choice: &Choice) -> String {
        let time = choice.time_ns.map(|time| Quantity::TimeNs.format(time)).unwrap_or_default();
        match (choice.tokens_per_s, choice.cost_per_million_tokens) {
            (Some(tokens), Some(cost)) => format!(
                "{} tokens/s, {} {}/10^6 tokens",
                Quantity::Count.format(tokens),
                money(cost),
                escape(&self.currency)
            ),
            _ => time,
        }
    }

    /// Returns the choices that did not run, with their reasons.
    pub(crate) fn struck_sections(&self) -> String {
        let mut text = String::new();
        for (outcome, title) in [
            (ChoiceOutcome::DoesNotFit, "Does not fit the memory of a GPU"),
            (ChoiceOutcome::Refused, "Refused"),
            (ChoiceOutcome::LeftOut, "Left out: cannot be the best"),
        ] {
            let reasons = self.reasons(outcome);
            if reasons.is_empty() {
                continue;
            }
            let count: usize = reasons.iter().map(|reason| reason.count).sum();
            let row = |reason: &crate::sweep::choice_table::StruckChoices| {
                let (name, why) = (escape(&reason.title()), escape(&reason.why));
                format!("<tr><td class=\"w\">{name}</td><td class=\"w\">{why}</td></tr>\n")
            };
            let rows: String = reasons.iter().map(row).collect();
            let _ = writeln!(
                text,
                "<h2>{title}</h2>\n<details open><summary>{count} candidates</summary><div class=\"tables\">\
                 <div class=\"scroll\" tabindex=\"0\"><table><tbody>\n{rows}</tbody></table></div></div></details>"
            );
        }
        text
    }
}
