//! `pathweave list` and `pathweave show`: the entities that scenarios can name.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use pathweave_scenario::catalogue::{self, Entry, Field, Section};
use pathweave_scenario::closest_name;

use crate::failure::{Failure, Outcome};
use crate::terminal::{self, wrapped};

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Kind of entries to list [default: an overview]
    pub(crate) what: Option<ListKind>,
    /// Include the source and the settings of each entry
    #[arg(long, conflicts_with = "json", requires = "what")]
    pub(crate) long: bool,
    /// Print the entries as JSON, with settings
    #[arg(long, requires = "what")]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// Name of a scheme, topology, workload, preset, congestion control, picker, fault, model, GPU, ...
    #[arg(value_parser = Names(all_names), hide_possible_values = true)]
    pub(crate) name: String,
    /// Print the entry as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Kinds of entries that can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListKind {
    /// Schemes: a policy with its loss recovery, acknowledgements and queue pairs
    Schemes,
    /// Kinds of topology
    Topologies,
    /// Kinds of workload
    Workloads,
    /// Topologies of published evaluations, and parameters of DCQCN
    Presets,
    /// Congestion controls
    Controls,
    /// Path pickers, and policies that decide rate and path together
    Pickers,
    /// Loss recoveries, services of queue pairs, and other parts of schemes
    Transports,
    /// Load balancing of switches, routing, and chips of switches
    Switching,
    /// Faults, and delays of computations
    Faults,
    /// Models that are trained
    Models,
    /// Servers, GPUs, CPUs and scale-up networks
    Hardware,
    /// Collectives and their algorithms
    Collectives,
}

impl ListKind {
    fn sections(self) -> Vec<Section> {
        match self {
            ListKind::Schemes => catalogue::schemes(),
            ListKind::Topologies => catalogue::topology_kinds(),
            ListKind::Workloads => catalogue::workload_kinds(),
            ListKind::Presets => catalogue::presets(),
            ListKind::Controls => catalogue::controls(),
            ListKind::Pickers => catalogue::pickers(),
            ListKind::Transports => catalogue::transports(),
            ListKind::Switching => catalogue::switching(),
            ListKind::Faults => catalogue::faults(),
            ListKind::Models => catalogue::models(),
            ListKind::Hardware => catalogue::hardware(),
            ListKind::Collectives => catalogue::collectives(),
        }
    }
}

/// Parser that accepts any string and offers names for shell completion.
#[derive(Clone)]
pub(crate) struct Names(pub(crate) fn() -> Vec<String>);

impl TypedValueParser for Names {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        // Names in a list may have a space after the comma.
        StringValueParser::new().parse_ref(command, arg, value).map(|name| name.trim().to_owned())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}

/// Returns the names of schemes, including aliases.
pub(crate) fn scheme_names() -> Vec<String> {
    names(&ListKind::Schemes.sections())
}

fn all_names() -> Vec<String> {
    let mut all: Vec<String> =
        ListKind::value_variants().iter().flat_map(|what| names(&what.sections())).collect();
    all.sort();
    all.dedup();
    all
}

fn names(sections: &[Section]) -> Vec<String> {
    let entries = sections.iter().flat_map(|section| &section.entries);
    entries.flat_map(|entry| std::iter::once(&entry.name).chain(&entry.aliases)).cloned().collect()
}

pub(crate) fn list(args: &ListArgs) -> Result<Outcome, Failure> {
    let Some(what) = args.what else {
        terminal::out(&kinds());
        return Ok(Outcome::Done);
    };
    let sections = what.sections();
    terminal::out(&match (args.json, args.long) {
        (true, _) => super::json(&sections),
        (_, true) => sections.iter().map(|one| section(one, entry)).collect(),
        _ => {
            let all: String = sections.iter().map(|one| section(one, line)).collect();
            let kind = what.to_possible_value().expect("every kind has a name");
            all + &format!(
                "`pathweave show NAME` has the settings of one, `list {} --long` of all.\n",
                kind.get_name()
            )
        }
    });
    Ok(Outcome::Done)
}

pub(crate) fn show(args: &ShowArgs) -> Result<Outcome, Failure> {
    let all: Vec<Section> = ListKind::value_variants().iter().flat_map(|what| what.sections()).collect();
    let mut found = Vec::new();
    for section in all {
        let named = |entry: &Entry| entry.name == args.name || entry.aliases.contains(&args.name);
        let entries: Vec<Entry> = section.entries.into_iter().filter(named).collect();
        if !entries.is_empty() {
            found.push(Section { title: section.title, entries });
        }
    }
    if found.is_empty() {
        let names = all_names();
        let near = closest_name(&args.name, names.iter().map(String::as_str));
        let hint = near.map_or(";".to_owned(), |near| format!("; did you mean \"{near}\"?"));
        return Err(Failure::Input(format!(
            "nothing that a scenario can name is called \"{}\"{hint} `pathweave list` shows all names",
            args.name
        )));
    }
    let text =
        if args.json { super::json(&found) } else { found.iter().map(|one| section(one, entry)).collect() };
    terminal::out(&text);
    Ok(Outcome::Done)
}

fn kinds() -> String {
    let mut text = String::new();
    for what in ListKind::value_variants() {
        let value = what.to_possible_value().expect("every kind has a name");
        let count: usize = what.sections().iter().map(|section| section.entries.len()).sum();
        let help = value.get_help().map(ToString::to_string).unwrap_or_default();
        text += &format!(
            "{}\n",
            wrapped(&format!("{:<12}{count:>4}  {help}", value.get_name()), "", &" ".repeat(18))
        );
    }
    text + "\n`pathweave list KIND` lists one of them, `pathweave show NAME` has the settings\nof one entry.\n"
}

fn section(section: &Section, show: fn(&Entry) -> String) -> String {
    let entries: String = section.entries.iter().map(show).collect();
    format!("{}\n\n{}\n", section.title, entries.trim_end_matches('\n').to_owned() + "\n")
}

fn called(entry: &Entry) -> String {
    match entry.aliases.as_slice() {
        [] => entry.name.clone(),
        aliases => format!("{} (also {})", entry.name, aliases.join(", ")),
    }
}

/// Returns a line with the name and the help of an entry.
fn line(entry: &Entry) -> String {
    const HELP_AT: usize = 26;
    let name = called(entry);
    let rest = " ".repeat(HELP_AT);
    if name.len() + 4 > HELP_AT {
        return format!("  {name}\n{}\n", wrapped(&entry.help, &rest, &rest));
    }
    format!("{}\n", wrapped(&entry.help, &format!("  {name:<width$}", width = HELP_AT - 2), &rest))
}

fn entry(entry: &Entry) -> String {
    let mut text = format!("  {}\n", called(entry));
    let mut add = |words: &str, first: usize, rest: usize| {
        if !words.is_empty() {
            text += &(wrapped(words, &" ".repeat(first), &" ".repeat(rest)) + "\n");
        }
    };
    add(&entry.help, 6, 6);
    if !entry.source.is_empty() {
        add(&format!("Source: {}", entry.source), 6, 6);
    }
    for field in &entry.fields {
        add(format!("{}  {}", setting(field), field.help).trim_end(), 6, 10);
    }
    text.push('\n');
    text
}

fn setting(field: &Field) -> String {
    match (field.required, field.default.as_str()) {
        (true, _) => format!("{} (required)", field.name),
        (false, "") => field.name.clone(),
        (false, default) => format!("{} = {default}", field.name),
    }
}
