//! Scenario fields in which runs of two folders differ.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use toml::{Table, Value};

use super::Pair;
use super::folder::Entry;

/// A scenario field with different values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingDifference {
    /// Name of the field, as for `--set`.
    pub field: String,
    /// Value in the first folder; `None` if the field is absent.
    pub a: Option<String>,
    /// Value in the second folder; `None` if the field is absent.
    pub b: Option<String>,
    /// Runs with this difference; empty if it is in each run that both folders have.
    pub runs: Vec<String>,
}

/// Returns the fields in which paired runs differ, except their names.
pub(super) fn of_pairs(pairs: &[Pair]) -> Vec<SettingDifference> {
    let mut found: Vec<SettingDifference> = Vec::new();
    for pair in pairs {
        let (a, b) = (fields(&pair.a), fields(&pair.b));
        let fields: BTreeSet<&String> = a.keys().chain(b.keys()).filter(|field| *field != "name").collect();
        for field in fields.into_iter().filter(|field| a.get(*field) != b.get(*field)) {
            let (a, b) = (a.get(field).cloned(), b.get(field).cloned());
            match found.iter_mut().find(|known| known.field == *field && known.a == a && known.b == b) {
                Some(known) => known.runs.push(pair.name.clone()),
                None => {
                    let runs = vec![pair.name.clone()];
                    found.push(SettingDifference { field: field.clone(), a, b, runs });
                }
            }
        }
    }
    let in_each = |difference: &&mut SettingDifference| difference.runs.len() == pairs.len();
    found.iter_mut().filter(in_each).for_each(|difference| difference.runs.clear());
    found
}

/// Returns the fields of a scenario, and the parts of its schemes that no scenario can name.
fn fields(entry: &Entry) -> BTreeMap<String, String> {
    let supplied = entry.supplied.iter().map(|(part, name)| (format!("{part} of the program"), name.clone()));
    leaves(&entry.scenario).into_iter().chain(supplied).collect()
}

fn leaves(table: &Table) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    for (key, value) in table {
        add(key.clone(), value, &mut out);
    }
    out
}

fn add(field: String, value: &Value, out: &mut BTreeMap<String, String>) {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                add(format!("{field}.{key}"), value, out);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_table) => {
            for (index, item) in items.iter().enumerate() {
                add(format!("{field}[{index}]"), item, out);
            }
        }
        Value::String(text) => {
            out.insert(field, text.clone());
        }
        other => {
            out.insert(field, other.to_string());
        }
    }
}
