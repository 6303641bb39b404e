//! The first screen of a report: the scenario, the result in a sentence or two, and three pictures.

use pathweave_records::{Fidelity, Quantity, RunResult, Summary};

use super::Budget;
use crate::explain;
use crate::few_flows::{Unsure, few_flows_sentence};
use crate::overview::{self, SchemeComparison};
use crate::template::escape;
use crate::text;

/// Returns the name of the scenario. The names of compared runs are those of variants.
fn scenario_name(run: &RunResult) -> String {
    let scenario: toml::Table = run.info.scenario_toml.parse().unwrap_or_default();
    let name = scenario.get("name").and_then(toml::Value::as_str);
    name.unwrap_or(&run.info.name).to_owned()
}

/// Returns the title as plain text.
pub(super) fn title(runs: &[(&RunResult, &Summary)]) -> String {
    let names: Vec<&str> = runs.iter().map(|(run, _)| run.info.name.as_str()).collect();
    let scenarios = scenarios(runs);
    let flow = runs.iter().any(|(run, _)| run.info.fidelity == Fidelity::Flow);
    let flow = if flow { " (flow fidelity)" } else { "" };
    if runs.len() == 1 { scenarios + flow } else { format!("{scenarios}{flow}: {}", names.join(" / ")) }
}

/// Returns the name of the scenario, or those of several if runs of different scenarios are compared.
fn scenarios(runs: &[(&RunResult, &Summary)]) -> String {
    let mut names: Vec<String> = runs.iter().map(|(run, _)| scenario_name(run)).collect();
    names.dedup();
    match names.len() {
        1 => names.remove(0),
        n if n == runs.len() => "Comparison".to_owned(),
        _ => names.join(" / "),
    }
}

/// Formats the end of a run as a coloured label.
fn badge(summary: &Summary) -> String {
    let run = &summary.run;
    let mut text = run.ended.name().replace('_', " ");
    let mut mood = "good";
    for (count, what) in [(summary.measured().unfinished, "unfinished"), (summary.overall.failed, "failed")] {
        if count > 0 {
            mood = "warn";
            text.push_str(&format!(", {} {what}", Quantity::Count.format(count as f64)));
        }
    }
    if run.partial {
        mood = "bad";
        text.insert_str(0, "partial: ");
    }
    format!("<span class=\"badge {mood}\" title=\"{}\">{text}</span>", escape(run.ended.meaning()))
}

/// Describes the fidelity of a run's figures, and its warnings.
fn fidelity(summary: &Summary) -> String {
    let lines = text::fidelity(summary) + &text::warnings(summary);
    lines.lines().map(|line| format!("<p class=\"detail\">{}</p>", escape(line))).collect()
}

/// Returns the heading, the ends of the runs, and the result.
pub(super) fn header(runs: &[(&RunResult, &Summary)]) -> String {
    let detail = |s: &Summary, name: &str| match s.run.ended_detail.as_str() {
        "" => String::new(),
        text => format!("<p class=\"detail\">{}{}</p>", escape(name), escape(text)),
    };
    if let [(run, summary)] = runs {
        return format!(
            "<h1>{} {}</h1>{}{}<p class=\"verdict\">{}</p>",
            escape(&title(runs)),
            badge(summary),
            detail(summary, ""),
            fidelity(summary),
            escape(&run_in_words(run, summary))
        );
    }
    let mut out = format!("<h1>{}: {} runs side by side</h1>", escape(&scenarios(runs)), runs.len());
    for (_, summary) in runs {
        let flows = summary.measured();
        if summary.run.partial || flows.unfinished + summary.overall.failed > 0 {
            out += &format!("<p class=\"ending\">{} {}</p>", escape(&summary.run.name), badge(summary));
        }
        out += &detail(summary, &format!("{}: ", summary.run.name));
        out += &fidelity(summary);
    }
    let (verdict, _) = overview::in_brief(&situation(runs));
    out + &format!("<p class=\"verdict\">{verdict}</p>")
}

fn situation<'a>(runs: &[(&'a RunResult, &'a Summary)]) -> SchemeComparison<'a> {
    SchemeComparison {
        title: "",
        description: "",
        report: String::new(),
        runs: runs.to_vec(),
        missing: Vec::new(),
    }
}

/// Describes the result of one run in sentences: its flows, what limited it, and its faults.
pub fn run_in_words(run: &RunResult, summary: &Summary) -> String {
    let flows = summary.measured();
    let count = |n: u64| Quantity::Count.format(n as f64);
    let mut out = match flows.finished {
        0 => format!("None of {} flows finished.", count(flows.count)),
        finished => format!(
            "{} of {} flows finished. Their slowdown, which is the completion time over that on an idle network, has median {} and P99 {}.",
            count(finished),
            count(flows.count),
            Quantity::Plain.format(flows.slowdown.p50),
            Quantity::Plain.format(flows.slowdown.p99)
        ),
    };
    // Where jobs decide, the P99 does not.
    if let Some(words) = few_flows_sentence(flows.finished, Unsure::Value).filter(|_| summary.jobs.count == 0)
    {
        out += &format!(" {words}.");
    }
    if flows.count > 0 {
        for finding in explain::in_brief(run) {
            let about = if finding.about == "limited by" { "What limited the run" } else { "Faults" };
            out += &format!(" {about}: {}.", finding.words);
        }
    }
    out
}

/// Returns three pictures. The viewer draws the middle one for a single run.
pub(super) fn pictures(runs: &[(&RunResult, &Summary)]) -> String {
    let panes = match runs {
        [_] => overview::of_run(&situation(runs)) + "<figure id=\"first-curve\"></figure>",
        _ => overview::in_brief(&situation(runs)).1,
    };
    format!("<div class=\"panes\">{panes}</div>")
}

/// Returns the identity and the cost of a run.
fn facts(summary: &Summary) -> [(&'static str, String); 7] {
    let run = &summary.run;
    let known = |v: f64, quantity: Quantity| if v > 0.0 { quantity.format(v) } else { "-".to_owned() };
    [
        ("version", run.version.clone()),
        ("seed", run.seed.to_string()),
        ("digest", run.digest.clone()),
        ("simulated", Quantity::TimeNs.format(run.simulated_ns)),
        ("took", known(run.wall_s * 1e9, Quantity::TimeNs)),
        ("packet-hops per CPU second", known(run.packet_hops_per_cpu_s.round(), Quantity::Count)),
        ("peak memory", known(run.peak_rss_bytes as f64, Quantity::Bytes)),
    ]
}

/// Formats the identity and the cost of runs: a list for one run, a table for several.
pub(super) fn costs(runs: &[(&RunResult, &Summary)]) -> String {
    if let [(_, summary)] = runs {
        let fact = |(k, v): &(&str, String)| format!("<div><dt>{k}</dt><dd>{}</dd></div>", escape(v));
        return format!("<dl class=\"facts\">{}</dl>", facts(summary).iter().map(fact).collect::<String>());
    }
    let mut out = String::from(
        "<div class=\"tables\"><div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th>Run</th><th>ended</th>",
    );
    out.extend(facts(runs[0].1).iter().map(|(k, _)| format!("<th>{k}</th>")));
    out.push_str("</tr></thead><tbody>");
    for (_, summary) in runs {
        out.push_str(&format!("<tr><th>{}</th><td>{}</td>", escape(&summary.run.name), badge(summary)));
        out.extend(facts(summary).iter().map(|(_, v)| format!("<td>{}</td>", escape(v))));
        out.push_str("</tr>");
    }
    out + "</tbody></table></div></div>"
}

/// Returns the text of the scenario, cut to the budget.
pub(super) fn scenario(run: &RunResult, open: bool, budget: &Budget) -> String {
    let text = &run.info.scenario_toml;
    let end =
        (0..=budget.scenario_bytes.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
    let cut = if end < text.len() { "\n# ... shortened; scenario.toml has all of it\n" } else { "" };
    let open = if open && text.lines().count() <= 40 { " open" } else { "" };
    let name = if run.info.name.is_empty() { "run".to_owned() } else { escape(&run.info.name) };
    format!(
        "<details{open}><summary>{name}</summary><pre tabindex=\"0\" aria-label=\"Scenario of {name}\">{}{cut}</pre></details>\n",
        escape(&text[..end])
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, scenario: &str) -> (RunResult, Summary) {
        let mut run = RunResult::default();
        run.info.name = name.to_owned();
        run.info.scenario_toml = scenario.to_owned();
        let summary = Summary::from_run(&run);
        (run, summary)
    }

    #[test]
    fn the_scenario_is_named_and_what_is_compared() {
        let pairs = |runs: &[(RunResult, Summary)]| {
            title(&runs.iter().map(|(run, summary)| (run, summary)).collect::<Vec<_>>())
        };
        let named = "name = \"incast\"\n";
        assert_eq!(pairs(&[run("incast", named)]), "incast");
        assert_eq!(pairs(&[run("ecmp", named), run("weave", named)]), "incast: ecmp / weave");
        assert_eq!(pairs(&[run("a", "name = \"x\""), run("b", "name = \"y\"")]), "Comparison: a / b");
        assert_eq!(pairs(&[run("plain", "")]), "plain");
    }

    #[test]
    fn a_run_without_flows_says_so_and_names_are_only_names() {
        let (run, summary) = run("<b>", "");
        let header = header(&[(&run, &summary)]);
        assert!(header.contains("&lt;b&gt;") && !header.contains("<b>"), "{header}");
        assert!(header.contains("None of 0 flows finished."), "{header}");
    }
}
