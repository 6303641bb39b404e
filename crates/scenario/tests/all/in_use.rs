//! Every field of a scenario and every scheme is used: its name stands in a scenario, a paper, a case of the validation,
//! or a document that is written by hand. A name that stands nowhere is a field that nobody can learn, and that no run
//! of the project exercises.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pathweave_scenario::schema;
use serde_json::Value as Json;

/// First words of the line after which a document is generated.
const GENERATED: &str = "<!-- From here on written by";

/// Fields that stand nowhere. The list is to stay empty: a new field comes with a use, or a document.
const UNUSED_FIELDS: [&str; 0] = [];

/// Schemes that no scenario, paper or case runs. The list is to stay empty.
const UNUSED_SCHEMES: [&str; 0] = [];

/// Returns the files below a folder whose names end so.
fn files_below(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            files_below(&path, extension, found);
        } else if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
}

/// Returns the text of all files in these folders of the repository, without comments of TOML and generated parts.
fn text_of(folders: &[&str], extension: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    folders.iter().for_each(|folder| files_below(&root.join(folder), extension, &mut files));
    let mut all = String::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        let by_hand = text.find(GENERATED).map_or(text.as_str(), |end| &text[..end]);
        for line in by_hand.lines() {
            let end = if extension == "toml" { line.find('#') } else { None };
            all.push_str(&line[..end.unwrap_or(line.len())]);
            all.push('\n');
        }
    }
    all
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).collect()
}

/// Collects the names of the properties in a schema.
fn names_in(schema: &Json, names: &mut BTreeSet<String>) {
    match schema {
        Json::Object(fields) => {
            let properties = fields.get("properties").and_then(Json::as_object);
            names.extend(properties.into_iter().flat_map(|properties| properties.keys().cloned()));
            fields.values().for_each(|value| names_in(value, names));
        }
        Json::Array(items) => items.iter().for_each(|item| names_in(item, names)),
        _ => {}
    }
}

/// Returns those of `names` that are no word of the text.
fn absent<'a>(names: &'a BTreeSet<String>, text: &str) -> Vec<&'a str> {
    let known = words(text);
    names.iter().map(String::as_str).filter(|name| !known.contains(name)).collect()
}

#[test]
fn every_field_stands_in_a_scenario_or_a_document() {
    let text = text_of(&["scenarios", "papers", "validation"], "toml") + &text_of(&["docs"], "md");
    let mut names = BTreeSet::new();
    names_in(&schema(), &mut names);
    assert!(names.len() > 400, "{} fields", names.len());
    assert_eq!(absent(&names, &text), UNUSED_FIELDS);
    // The test can fail: a field of another name would be found.
    assert_eq!(absent(&BTreeSet::from(["no_such_field_anywhere".to_owned()]), &text).len(), 1);
}

#[test]
fn every_scheme_stands_in_a_scenario() {
    let text = text_of(&["scenarios", "papers", "validation"], "toml");
    let known: BTreeSet<&str> =
        text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-')).collect();
    let schemes = pathweave_policy::schemes().iter();
    let unused: Vec<&str> = schemes
        .filter(|info| !known.contains(info.name) && !info.aliases.iter().any(|name| known.contains(name)))
        .map(|info| info.name)
        .collect();
    assert_eq!(unused, UNUSED_SCHEMES);
}

/// The files of `scenarios/settings` run as they are, and nothing in them is without effect.
#[test]
fn settings_have_effects() {
    use pathweave_scenario::{Changes, Loaded};
    let mut files = Vec::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/settings");
    files_below(Path::new(folder), "toml", &mut files);
    assert!(files.len() >= 15, "{files:?}");
    for file in files {
        let loaded = Loaded::read(&file, &Changes::default());
        let prepared = loaded.and_then(|loaded| loaded.prepare());
        let notes = prepared.unwrap_or_else(|why| panic!("{why}")).notes;
        let idle: Vec<&String> = notes.iter().filter(|note| note.contains("no effect")).collect();
        assert!(idle.is_empty(), "{}: {idle:?}", file.display());
    }
}
