//! `pathweave list`.

use clap::{Args, ValueEnum};
use pathweave_scenario::catalogue::{self, Entry, Field, Section};

use crate::failure::{Failure, Outcome};
use crate::terminal;

const WIDTH: usize = 100;

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// What to list
    pub(crate) what: What,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// Schemes: a policy with its loss recovery, acknowledgements and queue pairs
    Schemes,
    /// Kinds of topology
    Topologies,
    /// Kinds of workload
    Workloads,
    /// Topologies of published evaluations
    Presets,
}

pub(crate) fn list(args: &ListArgs) -> Result<Outcome, Failure> {
    let sections = match args.what {
        What::Schemes => catalogue::schemes(),
        What::Topologies => catalogue::topology_kinds(),
        What::Workloads => catalogue::workload_kinds(),
        What::Presets => catalogue::presets(),
    };
    let text = if args.json { super::json(&sections) } else { sections.iter().map(section).collect() };
    terminal::out(&text);
    Ok(Outcome::Done)
}

fn section(section: &Section) -> String {
    let mut text = format!("{}\n\n", section.title);
    for one in &section.entries {
        text.push_str(&entry(one));
    }
    text
}

fn entry(entry: &Entry) -> String {
    let aliases = match entry.aliases.as_slice() {
        [] => String::new(),
        aliases => format!(" (also {})", aliases.join(", ")),
    };
    let mut text = format!("  {}{aliases}\n", entry.name);
    text.push_str(&wrapped(&entry.help, 6, 6));
    if !entry.source.is_empty() {
        text.push_str(&wrapped(&format!("Source: {}", entry.source), 6, 6));
    }
    // Settings without explanations are short and go on common lines.
    if entry.fields.iter().all(|field| field.help.is_empty()) {
        let all: Vec<_> = entry.fields.iter().map(setting).collect();
        text.push_str(&wrapped(&all.join("; "), 6, 6));
    } else {
        for field in &entry.fields {
            text.push_str(&wrapped(&format!("{}  {}", setting(field), field.help), 6, 10));
        }
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

fn wrapped(text: &str, first: usize, rest: usize) -> String {
    if text.is_empty() {
        return String::new();
    }
    let (first, rest) = (" ".repeat(first), " ".repeat(rest));
    let options = textwrap::Options::new(WIDTH).initial_indent(&first).subsequent_indent(&rest);
    let options = options.break_words(false).word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(text, options) + "\n"
}
