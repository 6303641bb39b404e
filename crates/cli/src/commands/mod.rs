//! Commands of the program, one in each file, with their options.

// Doc comments of arguments are their help texts, in which brackets are plain text.
#![allow(rustdoc::broken_intra_doc_links)]

mod check;
mod compare;
mod convert;
mod demo;
mod diff;
mod explain;
mod fit;
mod list;
mod man;
mod nccl;
mod paper;
mod plan;
mod run;
mod scan_period;
mod sweep;
mod validate;

pub(crate) use check::{CheckArgs, check};
pub(crate) use compare::{CompareArgs, compare};
pub(crate) use convert::{ConvertArgs, convert};
pub(crate) use demo::{DemoArgs, demo};
pub(crate) use diff::{DiffArgs, diff};
pub(crate) use explain::{ExplainArgs, explain};
pub(crate) use fit::{FitArgs, fit};
pub(crate) use list::{ListArgs, Names, ShowArgs, list, scheme_names, show};
pub(crate) use man::{ManArgs, man};
pub(crate) use nccl::{NcclArgs, nccl};
pub(crate) use paper::{PaperArgs, paper};
pub(crate) use plan::{PlanArgs, plan};
pub(crate) use run::{RunArgs, run};
pub(crate) use scan_period::{ScanPeriodArgs, scan_period};
pub(crate) use sweep::{SweepArgs, sweep};
pub(crate) use validate::{ValidateArgs, validate};

use std::path::{Path, PathBuf};

use pathweave_report::OutputError;
use pathweave_scenario::Changes;

use crate::failure::Failure;

/// Line below a table that has the most important figures only.
pub(crate) const MORE: &str = "--all prints every figure.\n";

/// Returns the default result folder of a run or command with this name.
pub(crate) fn default_folder(name: &str) -> PathBuf {
    PathBuf::from("results").join(safe_name(name))
}

/// Converts a name to a file name: characters that file systems may reject become "-".
pub(crate) fn safe_name(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || "-_.+".contains(c) { c } else { '-' }).collect()
}

/// Quotes a path so that a shell takes it for one word.
pub(crate) fn quoted(path: &Path) -> String {
    let word = path.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "-_./+:@,=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

pub(crate) fn changes(changes: &crate::options::Changes) -> Changes {
    Changes { set: changes.set.clone(), seed: changes.seed, ..Changes::default() }
}

pub(crate) fn output(why: OutputError) -> Failure {
    Failure::Input(format!("cannot write results: {why}"))
}

/// Serializes a value to JSON. Plain data with string keys always serializes.
pub(crate) fn json(value: &impl serde::Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("plain data with text keys serialises");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word() {
        let of = |path: &str| quoted(Path::new(path));
        assert_eq!(of("../my-cases/a_1.toml"), "../my-cases/a_1.toml");
        assert_eq!(of("my cases"), "'my cases'");
        assert_eq!(of("it's; rm"), r"'it'\''s; rm'");
        assert_eq!(of(""), "''");
    }
}
