//! `pathweave validate`: comparisons with other simulators and with exact laws, as defined in the repository.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use pathweave_scenario::Loaded;
use pathweave_study::validate::{
    Case, CaseRuns, Catalogue, ONE_PORT, Outcome as Verdict, PACKETS, Peer, RunError, Settings, Stat,
    ValidateError, ValidityCounts, html, load_all, markdown, measured_text, runs, table_cell, training_text,
};
use serde::Serialize;
use std::collections::BTreeMap;

use crate::batch::Batch;
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::options::{Cores, ProgressBarMode};
use crate::output::Output;
use crate::terminal;

#[derive(Args, Debug)]
pub(crate) struct ValidateArgs {
    /// Names of cases, or of peers for all their cases; "list" shows both [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Run only cases that take seconds, without experiments
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) cores: Cores,
    /// Folder for the page and the outcomes
    #[arg(long, value_name = "DIR", default_value = "results/validation")]
    pub(crate) out: PathBuf,
    /// Read cases from this folder instead of those built into the program
    #[arg(long, value_name = "DIR")]
    pub(crate) cases: Option<PathBuf>,
    /// Print only errors, figures out of their band, and the path of the page
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Print outcomes as JSON on standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn validate(args: &ValidateArgs) -> Result<Outcome, Failure> {
    let mut catalogue = match &args.cases {
        Some(folder) => Catalogue::read(&crate::folder::existing(folder, "read cases from")?),
        None => Catalogue::embedded(),
    }
    .map_err(failure)?;
    if args.names.first().is_some_and(|name| name == "list") {
        return list(&catalogue, &args.names[1..], args);
    }
    // The request is checked before a folder is created. The built-in cases need files that are unpacked there.
    let cases = catalogue.select(&args.names, args.quick).map_err(failure)?;
    if cases.is_empty() {
        return Err(Failure::Input(nothing_to_run(args)));
    }
    if args.cases.is_some() {
        load_all(&cases, !args.quick).map_err(failure)?;
    }
    check(&args.out)?;
    let [outcomes_file, page_file] = [OUTCOMES, PAGE].map(|name| Output::create(&args.out.join(name)));
    let (outcomes_file, page_file) = (outcomes_file?, page_file?);
    let has_flows = cases.iter().any(|case| case.file.packets.is_some());
    let flows_file = has_flows.then(|| Output::create(&args.out.join(FLOWS))).transpose()?;
    if args.cases.is_none() {
        catalogue.write_scenario_files(&args.out.join(INPUTS)).map_err(failure)?;
    }
    let cases = catalogue.select(&args.names, args.quick).map_err(failure)?;
    if args.cases.is_none() {
        load_all(&cases, !args.quick).map_err(failure)?;
    }
    let interrupt =
        Interrupt::listen_saying("stopping: finished cases are judged; Ctrl-C again stops at once")?;
    let verdicts = run_all(&cases, args, &interrupt)?;
    let partial = verdicts.len() < cases.len();

    let settings =
        Settings { command: command(args), version: env!("CARGO_PKG_VERSION").to_owned(), partial };
    let outcomes = json(&catalogue, &cases, &verdicts, &settings);
    let page = html(&catalogue, &cases, &verdicts, &settings);
    outcomes_file.write(|out| out.write_all(outcomes.as_bytes()))?;
    page_file.write(|out| out.write_all(page.as_bytes()))?;
    let flows = markdown(&cases, &verdicts);
    if let Some(file) = flows_file {
        file.write(|out| out.write_all(flows.as_bytes()))?;
    }
    if args.json {
        terminal::out(&outcomes);
    } else {
        if !args.quiet {
            terminal::out(&table(&verdicts));
        }
        terminal::out(&format!("page: {}\n", args.out.join(PAGE).display()));
    }
    if args.quiet {
        verdicts.iter().filter(|verdict| !verdict.holds).for_each(|verdict| {
            terminal::note(
                format!("out of band: {}\n{}", verdict.case, error_paragraphs(verdict)).trim_end(),
            );
        });
    }
    if partial {
        let (missing, all) = (cases.len() - verdicts.len(), cases.len());
        terminal::note(&format!("interrupted: {missing} of {all} cases are missing"));
    }
    Ok(match (partial, verdicts.iter().all(|verdict| verdict.holds)) {
        (true, _) => Outcome::Interrupted,
        (false, true) => Outcome::Done,
        (false, false) => Outcome::OutOfBand,
    })
}

const PAGE: &str = "index.html";
const OUTCOMES: &str = "outcomes.json";
/// Table of the flow model compared with packets, for docs/flow-fidelity.md.
const FLOWS: &str = "flows.md";
/// Folder of files that the scenarios of built-in cases refer to.
const INPUTS: &str = "inputs";
/// Text that identifies a page as written by this command.
const TITLE: &str = "<title>Validation of pathweave</title>";

fn nothing_to_run(args: &ValidateArgs) -> String {
    let named = if args.names.is_empty() { "the cases".to_owned() } else { args.names.join(", ") };
    match args.quick {
        true => format!("--quick leaves none of {named}; without it they run"),
        false => format!("there is nothing to run: {named} are none"),
    }
}

/// Creates the folder of the page. An existing folder must be empty or contain a page of this command.
fn check(out: &Path) -> Result<(), Failure> {
    let path = out.join(PAGE);
    if let Ok(found) = fs::symlink_metadata(&path) {
        let ours = found.is_file() && fs::read_to_string(&path).is_ok_and(|text| text.contains(TITLE));
        return if ours { Ok(()) } else { Err(not_ours(&path, "is not a page of `pathweave validate`")) };
    }
    let failed =
        |what: &str, why: io::Error| Failure::Input(format!("cannot {what} {}: {why}", out.display()));
    match fs::read_dir(out) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => {}
        Err(why) => return Err(failed("write to", why)),
        Ok(entries) => {
            for entry in entries {
                let name = entry.map_err(|why| failed("read", why))?.file_name();
                let name = name.to_string_lossy();
                // Remains of a call that was killed.
                let partial =
                    [PAGE, OUTCOMES, FLOWS].iter().any(|file| name.starts_with(&format!(".{file}.partial-")));
                if name != INPUTS && !partial {
                    return Err(not_ours(
                        out,
                        &format!("is not a folder of `pathweave validate` (it holds \"{name}\")"),
                    ));
                }
            }
        }
    }
    fs::create_dir_all(out).map_err(|why| failed("make", why))
}

fn not_ours(path: &Path, why: &str) -> Failure {
    Failure::Input(format!("{}: exists and {why}; choose another --out or remove it", path.display()))
}

fn failure(why: ValidateError) -> Failure {
    match why {
        ValidateError::Scenario { findings, .. } => Failure::Scenario(findings),
        other => Failure::Input(other.to_string()),
    }
}

/// Executes the cases. Returns the verdicts of those that ended, in the order of the cases.
fn run_all(cases: &[&Case], args: &ValidateArgs, interrupt: &Interrupt) -> Result<Vec<Verdict>, Failure> {
    let costs: Vec<f64> = cases.iter().map(|case| cost(case)).collect();
    let labels = cases.iter().map(|case| case.name.clone()).collect();
    let batch = Batch::new(costs, labels, args.quiet, ProgressBarMode::Auto);
    let room = args.cores.room();
    let verdicts = batch.run_all(args.cores.at_a_time(cases.len()), interrupt, |index| {
        let mut watcher = batch.watch(index, interrupt);
        let mut unfit = None;
        let mut make = |loaded: &Loaded| {
            let run = watcher.run(loaded, &room, |spec| args.cores.of(spec, cases.len()));
            run.unwrap_or_else(|why| {
                unfit = Some(why);
                None
            })
            .ok_or(RunError::Interrupted)
        };
        match (runs(cases[index], !args.quick, &mut make), unfit) {
            (Ok(verdict), _) => Ok(Some(verdict)),
            (Err(_), Some(why)) => Err(why.of(&cases[index].name)),
            (Err(RunError::Failed(why)), None) => Err(failure(why)),
            (Err(RunError::Interrupted), None) => Ok(None),
        }
    });
    Ok(verdicts?.into_values().collect())
}

/// Returns the cost of a case in any unit: the time of the peer's runs, including experiments.
fn cost(case: &Case) -> f64 {
    let schemes = case.schemes().len().max(1);
    let one = case.file.theirs.as_ref().map_or(1.0, |theirs| theirs.cpu_s.max(1.0));
    one * (schemes + case.file.experiment.len()) as f64
}

fn command(args: &ValidateArgs) -> String {
    let words = ["pathweave validate"].into_iter().chain(args.names.iter().map(String::as_str));
    let text = words.chain(args.quick.then_some("--quick")).collect::<Vec<_>>().join(" ");
    match &args.cases {
        Some(folder) => format!("{text} --cases {}", super::quoted(folder)),
        None => text,
    }
}

/// Columns for names of cases. A longer name has a line of its own.
const NAMES: usize = 28;

/// Returns a table with a line for each case, grouped by its reference: ratios, and a mark if they are out of their
/// bands.
fn table(verdicts: &[Verdict]) -> String {
    let mut text = format!("{:NAMES$}", "case");
    Stat::ALL.iter().for_each(|stat| text.push_str(&format!(" {:>7}", stat.name())));
    text.push_str("   CPU\n");
    let mut beside = "";
    for verdict in verdicts {
        let by_scheme = is_by_scheme(verdict);
        if verdict.beside != beside {
            beside = &verdict.beside;
            text.push_str(&if by_scheme { schemes_line(verdict) } else { format!("{beside}\n") });
        }
        text.push_str(&format!("  {:w$}", verdict.case, w = NAMES - 2));
        if verdict.case.chars().count() > NAMES - 2 {
            text.push_str(&format!("\n{:NAMES$}", ""));
        }
        if by_scheme {
            verdict.trials.iter().for_each(|trial| text.push_str(&format!(" {:>7}", table_cell(trial))));
        }
        for stat in Stat::ALL.iter().filter(|_| !by_scheme) {
            let row = verdict.rows().iter().find(|row| row.figure == stat.name());
            let cell = row
                .map_or(String::new(), |row| format!("{:.3}{}", row.ratio, if row.holds { "" } else { "!" }));
            text.push_str(&format!(" {cell:>7}"));
        }
        if !by_scheme {
            text.push_str(&verdict.cpu_ratio.map_or("      ".to_owned(), |ratio| format!(" {ratio:>5.0}")));
        }
        text.push_str(if verdict.holds { "" } else { "  out of band" });
        text.truncate(text.trim_end().len());
        text.push('\n');
        if let Some(report) = &verdict.measured {
            text.push_str(&measured_text(report));
        }
        if let Some(report) = &verdict.training {
            text.push_str(&training_text(report));
        }
        text.push_str(&error_paragraphs(verdict));
    }
    if verdicts.iter().any(|verdict| verdict.beside == PACKETS) {
        let says = format!(
            "flows beside packets, error of the time in %, * marked: {}",
            ValidityCounts::of(verdicts)
        );
        text.push_str(&format!("{}\n", terminal::wrapped(&says, "", "  ")));
    }
    let out = verdicts.iter().filter(|verdict| !verdict.holds).count();
    text.push_str(&match out {
        0 => format!("{} cases, all in their bands\n", verdicts.len()),
        out => format!("{out} of {} cases are out of their bands\n", verdicts.len()),
    });
    text
}

/// Returns true if the case has one trial for each scheme.
fn is_by_scheme(verdict: &Verdict) -> bool {
    [PACKETS, ONE_PORT].contains(&verdict.beside.as_str())
}

fn schemes_line(verdict: &Verdict) -> String {
    let schemes = verdict.trials.iter().map(|trial| trial.title.as_deref().unwrap_or_default());
    let columns: String = schemes.map(|scheme| format!(" {scheme:>7}")).collect();
    format!("{:NAMES$}{columns}\n", verdict.beside)
}

/// Returns the errors of a case, one paragraph each.
fn error_paragraphs(verdict: &Verdict) -> String {
    let wrong = verdict.trials.iter().filter(|trial| !trial.holds()).flat_map(complaints_of);
    wrong.map(|what| format!("{}\n", terminal::wrapped(&what, "    ", "      "))).collect()
}

fn complaints_of(trial: &CaseRuns) -> Vec<String> {
    let of = trial.title.as_ref().map_or(String::new(), |title| format!("{title}: "));
    let mut all: Vec<String> = trial.wrong.iter().map(|wrong| format!("{of}{wrong}")).collect();
    for row in trial.rows.iter().filter(|row| !row.holds) {
        let band = row.band.map_or(String::new(), |band| format!("{} to {}", band.low, band.high));
        all.push(format!(
            "{of}{}: {:.3} {unit} here, {:.3} {unit} there, ratio {:.4}; the band is {band}",
            row.figure,
            row.ours,
            row.theirs,
            row.ratio,
            unit = row.unit
        ));
    }
    all
}

fn json(catalogue: &Catalogue, cases: &[&Case], verdicts: &[Verdict], settings: &Settings) -> String {
    #[derive(Serialize)]
    struct Page<'a> {
        version: &'a str,
        command: &'a str,
        partial: bool,
        holds: bool,
        peers: &'a BTreeMap<String, Peer>,
        cases: Vec<Entry<'a>>,
    }
    #[derive(Serialize)]
    struct Entry<'a> {
        title: &'a str,
        scheme: &'a str,
        traffic: &'a str,
        theirs: Option<&'a pathweave_study::validate::PeerMeasurement>,
        causes: &'a [pathweave_study::validate::Cause],
        #[serde(flatten)]
        outcome: &'a Verdict,
    }
    let entry = |verdict| {
        let outcome: &Verdict = verdict;
        let file = &cases.iter().find(|case| case.name == outcome.case)?.file;
        Some(Entry {
            title: &file.title,
            scheme: &file.scheme,
            traffic: &file.traffic,
            theirs: file.theirs.as_ref(),
            causes: &file.cause,
            outcome,
        })
    };
    super::json(&Page {
        version: &settings.version,
        command: &settings.command,
        partial: settings.partial,
        holds: verdicts.iter().all(|verdict| verdict.holds),
        peers: catalogue.peers(),
        cases: verdicts.iter().filter_map(entry).collect(),
    })
}

fn list(catalogue: &Catalogue, names: &[String], args: &ValidateArgs) -> Result<Outcome, Failure> {
    #[derive(Serialize)]
    struct Entry<'a> {
        name: &'a str,
        title: &'a str,
        beside: &'a str,
        scheme: &'a str,
        traffic: &'a str,
        quick: bool,
    }
    let cases = catalogue.select(names, args.quick).map_err(failure)?;
    let entries: Vec<Entry<'_>> = cases
        .iter()
        .map(|case| Entry {
            name: &case.name,
            title: &case.file.title,
            beside: case.reference_name(),
            scheme: &case.file.scheme,
            traffic: &case.file.traffic,
            quick: case.file.quick,
        })
        .collect();
    if args.json {
        terminal::out(&super::json(&entries));
        return Ok(Outcome::Done);
    }
    let wide = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    for entry in &entries {
        let quick = if entry.quick { " (quick)" } else { "" };
        terminal::out(&format!("{:wide$}  {}: {}{quick}\n", entry.name, entry.beside, entry.title));
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use pathweave_study::validate::{Band, Row};

    use super::*;

    fn verdict(case: &str, ratio: f64) -> Verdict {
        let row = |stat: &Stat| Row {
            figure: stat.name().to_owned(),
            unit: "us",
            ours: 123_456.789 * ratio,
            theirs: 123_456.789,
            ratio,
            band: Some(Band::EXACT),
            holds: ratio == 1.0,
        };
        let rows = Stat::ALL.iter().map(row).collect();
        let title = Some("Without what the other simulator has and this one has not".to_owned());
        Verdict {
            case: case.to_owned(),
            beside: "Lindley's recursion".to_owned(),
            holds: ratio == 1.0,
            cpu_ratio: Some(1_234.0),
            trials: vec![CaseRuns { title, rows, ..CaseRuns::default() }],
            measured: None,
            training: None,
        }
    }

    #[test]
    fn a_terminal_of_eighty_columns_is_wide_enough() {
        let mut verdicts =
            vec![verdict("one", 12.345_678), verdict(&"long-".repeat(12), 0.9), verdict("two", 1.0)];
        let catalogue = Catalogue::embedded().unwrap();
        verdicts.extend(catalogue.cases().iter().map(|case| verdict(&case.name, 0.9)));
        let text = table(&verdicts);
        let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:#?}");
        assert_eq!(text.matches("Lindley's recursion\n").count(), 1);
        let two = format!("  {:26}{}  1234\n", "two", "   1.000".repeat(4));
        assert!(text.contains(&two), "{text}");
    }
}
