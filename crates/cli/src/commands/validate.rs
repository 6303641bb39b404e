//! `pathweave validate`: committed comparisons with other simulators and with laws.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use clap::Args;
use pathweave_heap::usage;
use pathweave_results::EndReason;
use pathweave_scenario::Loaded;
use pathweave_validate::{
    Case, Catalogue, Made, Missed, Outcome as Verdict, Peer, Settings, Stat, ValidateError, html, runs,
};
use serde::Serialize;
use std::collections::BTreeMap;

use crate::batch::{Batch, in_threads};
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::options::{Bar, Cores};
use crate::output::Output;
use crate::terminal;

#[derive(Args, Debug)]
pub(crate) struct ValidateArgs {
    /// Cases, or peers for all their cases; "list" shows both [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Only cases of seconds, without experiments
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) cores: Cores,
    /// Page and outcomes go to this folder
    #[arg(long, value_name = "DIR", default_value = "results/validation")]
    pub(crate) out: PathBuf,
    /// Read cases from this folder instead of those that are part of the program
    #[arg(long, value_name = "DIR")]
    pub(crate) cases: Option<PathBuf>,
    /// Print only errors and the path of the page
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
    // What is asked for is known to exist before a folder is made.
    catalogue.select(&args.names, args.quick).map_err(failure)?;
    check(&args.out)?;
    if args.cases.is_none() {
        catalogue.lay_out(&args.out.join("inputs")).map_err(failure)?;
    }
    let cases = catalogue.select(&args.names, args.quick).map_err(failure)?;
    if cases.is_empty() {
        return Err(Failure::Input(format!(
            "--quick leaves none of {}; without it they run",
            if args.names.is_empty() { "the cases".to_owned() } else { args.names.join(", ") }
        )));
    }
    let interrupt =
        Interrupt::listen_saying("stopping: finished cases are judged; Ctrl-C again stops at once")?;
    let verdicts = run_all(&cases, args, &interrupt)?;
    let partial = verdicts.len() < cases.len();

    let settings =
        Settings { command: command(args), version: env!("CARGO_PKG_VERSION").to_owned(), partial };
    let outcomes = json(&catalogue, &cases, &verdicts, &settings);
    let page = html(&catalogue, &cases, &verdicts, &settings);
    write(&args.out, "outcomes.json", &outcomes)?;
    write(&args.out, PAGE, &page)?;
    if args.json {
        terminal::out(&outcomes);
    } else {
        if !args.quiet {
            terminal::out(&table(&verdicts));
        }
        terminal::out(&format!("page: {}\n", args.out.join(PAGE).display()));
    }
    Ok(match (partial, verdicts.iter().all(|verdict| verdict.holds)) {
        (true, _) => Outcome::Interrupted,
        (false, true) => Outcome::Done,
        (false, false) => Outcome::OutOfBand,
    })
}

const PAGE: &str = "index.html";
/// By which a page is known to be ours.
const TITLE: &str = "<title>Validation of pathweave</title>";

/// Whether the folder can have the page: one that is there already must be ours.
fn check(out: &Path) -> Result<(), Failure> {
    let path = out.join(PAGE);
    let ours = match fs::symlink_metadata(&path) {
        Err(_) => true,
        Ok(found) => found.is_file() && fs::read_to_string(&path).is_ok_and(|text| text.contains(TITLE)),
    };
    if ours {
        return fs::create_dir_all(out)
            .map_err(|why| Failure::Input(format!("cannot make {}: {why}", out.display())));
    }
    Err(Failure::Input(format!(
        "{}: exists and is not a page of `pathweave validate`; choose another --out or remove it",
        path.display()
    )))
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), Failure> {
    Output::create(&folder.join(name))?.write(|out| out.write_all(text.as_bytes()))
}

fn failure(why: ValidateError) -> Failure {
    match why {
        ValidateError::Scenario { findings, .. } => Failure::Scenario(findings),
        other => Failure::Input(other.to_string()),
    }
}

/// What came of the cases that came to an end, in their order.
fn run_all(cases: &[&Case], args: &ValidateArgs, interrupt: &Interrupt) -> Result<Vec<Verdict>, Failure> {
    let costs: Vec<f64> = cases.iter().map(|case| cost(case)).collect();
    let labels = cases.iter().map(|case| case.name.clone()).collect();
    // The longest first, so that none is left alone at the end.
    let mut order: Vec<usize> = (0..cases.len()).collect();
    order.sort_by(|&a, &b| costs[b].total_cmp(&costs[a]).then(a.cmp(&b)));
    let batch = Batch::new(costs, labels, args.quiet, Bar::Auto);
    let ended: Mutex<Vec<(usize, Result<Verdict, Missed>)>> = Mutex::new(Vec::new());
    in_threads(args.cores.at_a_time(cases.len()), &order, interrupt, |index| {
        let mut make = |loaded: &Loaded| {
            let prepared = loaded.prepare().map_err(|findings| wrong(cases[index], findings))?;
            let spec = args.cores.of(&prepared.spec, cases.len());
            let before = usage::thread_cpu_s();
            let run = pathweave_scenario::run(&spec, &mut batch.watch(index, interrupt))
                .map_err(|why| wrong(cases[index], loaded.sim_error(&why)))?;
            if run.info.ended == EndReason::Interrupted {
                return Err(Missed::Interrupted);
            }
            Ok(Made { cpu_s: usage::thread_cpu_s() - before + run.info.cpu_s, run })
        };
        let verdict = runs(cases[index], !args.quick, &mut make);
        batch.update(index, None);
        ended.lock().expect("no thread panics while it holds the lock").push((index, verdict));
    });
    batch.finish();
    let mut ended = ended.into_inner().expect("every thread has ended well");
    ended.sort_by_key(|(index, _)| *index);
    let mut verdicts = Vec::new();
    for (_, verdict) in ended {
        match verdict {
            Ok(verdict) => verdicts.push(verdict),
            Err(Missed::Interrupted) => {}
            Err(Missed::Failed(why)) => return Err(failure(why)),
        }
    }
    Ok(verdicts)
}

fn wrong(case: &Case, findings: pathweave_scenario::Diagnostics) -> Missed {
    Missed::Failed(ValidateError::Scenario { case: case.name.clone(), findings })
}

/// What a case takes, in any unit: what its peer took, with the experiments.
fn cost(case: &Case) -> f64 {
    case.file.theirs.as_ref().map_or(1.0, |theirs| theirs.cpu_s.max(1.0))
        * (1 + case.file.experiment.len()) as f64
}

fn command(args: &ValidateArgs) -> String {
    let words = ["pathweave validate"].into_iter().chain(args.names.iter().map(String::as_str));
    words.chain(args.quick.then_some("--quick")).collect::<Vec<_>>().join(" ")
}

/// A line for each case: ratios, and whether they are in their bands.
fn table(verdicts: &[Verdict]) -> String {
    let wide = verdicts.iter().map(|verdict| verdict.case.len()).max().unwrap_or(0).max(4);
    let mut text = format!("{:wide$}  {:<18}", "case", "beside");
    Stat::ALL.iter().for_each(|stat| text.push_str(&format!("  {:>6}", stat.name())));
    text.push_str("  CPU\n");
    for verdict in verdicts {
        text.push_str(&format!("{:wide$}  {:<18}", verdict.case, verdict.beside));
        for stat in Stat::ALL {
            let row = verdict.rows().iter().find(|row| row.figure == stat.name());
            let cell = row
                .map_or(String::new(), |row| format!("{:.3}{}", row.ratio, if row.holds { "" } else { "!" }));
            text.push_str(&format!("  {cell:>6}"));
        }
        text.push_str(&verdict.cpu_ratio.map_or("     ".to_owned(), |ratio| format!("  {ratio:>3.0}")));
        text.push_str(if verdict.holds { "\n" } else { "  out of band\n" });
        text.push_str(&complaints(verdict));
    }
    let out = verdicts.iter().filter(|verdict| !verdict.holds).count();
    text.push_str(&match out {
        0 => format!("{} cases, all in their bands\n", verdicts.len()),
        out => format!("{out} of {} cases are out of their bands\n", verdicts.len()),
    });
    text
}

/// What is wrong with a case, a line each.
fn complaints(verdict: &Verdict) -> String {
    let mut text = String::new();
    for trial in verdict.trials.iter().filter(|trial| !trial.holds()) {
        let of = trial.title.as_ref().map_or(String::new(), |title| format!("{title}: "));
        if let Some(wrong) = &trial.wrong {
            text.push_str(&format!("  {of}{wrong}\n"));
        }
        for row in trial.rows.iter().filter(|row| !row.holds) {
            let band = row.band.map_or(String::new(), |band| format!("{} to {}", band.low, band.high));
            text.push_str(&format!(
                "  {of}{}: {:.3} {unit} here, {:.3} {unit} there, ratio {:.4}; the band is {band}\n",
                row.figure,
                row.ours,
                row.theirs,
                row.ratio,
                unit = row.unit
            ));
        }
    }
    text
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
        theirs: Option<&'a pathweave_validate::Theirs>,
        causes: &'a [pathweave_validate::Cause],
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
            beside: case.beside(),
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
