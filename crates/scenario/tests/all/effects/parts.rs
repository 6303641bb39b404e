//! Fields of all parts of a scenario, in instances that are rich enough for each field to act: `instances.toml`. The
//! schemes and switches that have names are tried by the tests of the module above.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::read_to_string;

use pathweave_scenario::{Changes, Loaded, Scenario};
use serde::Deserialize;

use super::fields::{known, visited};
use super::record::{Fate, Limits, Tried, fate, outcome, try_fields};

/// Folder of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Content of `instances.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Instances {
    /// Ends of scenarios that instances share, by name.
    base: BTreeMap<String, String>,
    instance: Vec<Instance>,
    /// Fields that no change of an instance can show, by key, each with the reason.
    never: BTreeMap<String, String>,
    /// Fields that stand in no instance, by key, each with the reason.
    absent: BTreeMap<String, String>,
}

/// Scenario whose fields are tried.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Instance {
    name: String,
    /// Parts of the scenario whose fields are tried.
    under: Vec<String>,
    /// Begin of the scenario.
    text: String,
    /// End of the scenario.
    #[serde(default)]
    on: Option<String>,
    /// Further values, by field.
    #[serde(default)]
    other: BTreeMap<String, Vec<String>>,
    /// Fields that are silently without effect in this instance, each with the reason.
    #[serde(default)]
    inert: BTreeMap<String, String>,
    /// True if the fields that all kinds of workload have are tried, too.
    #[serde(default)]
    entry: bool,
    /// True if fields may be silent here, because they act in another instance.
    #[serde(default)]
    lenient: bool,
    /// Begins of the keys that are tried. All if there are none.
    #[serde(default)]
    only: Vec<String>,
    /// Largest whole number that is tried. Default 64.
    #[serde(default)]
    most: Option<u64>,
}

impl Instances {
    fn read() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/effects/instances.toml");
        let text = read_to_string(path).expect("the file is there").replace("ROOT", ROOT);
        toml::from_str(&text).unwrap_or_else(|why| panic!("{why}"))
    }

    fn text(&self, instance: &Instance) -> String {
        let base = instance.on.as_ref().map_or("", |on| &self.base[on]);
        format!("{}\n{base}", instance.text)
    }
}

fn scenario(text: &str) -> serde_json::Value {
    let loaded = Loaded::parse(text, "base.toml", ".", &Changes::default());
    let loaded = loaded.unwrap_or_else(|why| panic!("{text}\n{why}"));
    serde_json::to_value(&loaded.scenario).expect("a scenario can be written")
}

/// Tries the fields of one instance. Returns the keys of those that act, and adds to `wrong` those that are silent.
fn try_instance(all: &Instances, instance: &Instance, wrong: &mut Vec<String>) -> Vec<(String, Fate)> {
    let text = all.text(instance);
    let limits = Limits { others: instance.other.clone(), most: instance.most.or(Some(64)) };
    let is_listed = |key: &str| {
        instance.only.is_empty() || instance.only.iter().any(|begin| key.starts_with(begin.as_str()))
    };
    let is_wanted = |key: &str| is_listed(key) && (instance.entry || !key.starts_with("WorkloadEntry."));
    let mut unused: BTreeSet<&String> = instance.inert.keys().collect();
    let mut found = Vec::new();
    for under in &instance.under {
        for Tried { path, key, fate, .. } in try_fields((&instance.name, &text), under, &limits, is_wanted) {
            match (&fate, instance.inert.get(&path)) {
                (Fate::Silent(values), None) if !instance.lenient => {
                    wrong.push(format!("{}: {path} is changed in silence: {values:?}", instance.name));
                }
                (Fate::Silent(_), Some(_)) => _ = unused.remove(&path),
                _ => {}
            }
            found.push((key, fate));
        }
    }
    wrong.extend(unused.iter().map(|path| format!("{}: {path} is not inert", instance.name)));
    found
}

/// Tries every n-th instance, from one on. Returns the keys of all fields with their fates, and the errors.
fn try_share(all: &Instances, first: usize, step: usize) -> (Vec<(String, Fate)>, Vec<String>) {
    let mut wrong = Vec::new();
    let share = all.instance.iter().skip(first).step_by(step);
    let found = share.flat_map(|instance| try_instance(all, instance, &mut wrong)).collect();
    (found, wrong)
}

#[test]
fn every_field_of_every_part_does_something_or_says_why_not() {
    const THREADS: usize = 4;
    let all = Instances::read();
    let shares: Vec<_> = std::thread::scope(|scope| {
        let all = &all;
        let start = |first| scope.spawn(move || try_share(all, first, THREADS));
        let started: Vec<_> = (0..THREADS).map(start).collect();
        started.into_iter().map(|share| share.join().expect("a thread that does not panic")).collect()
    });
    let (mut acting, mut tried, mut wrong) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for (found, mut errors) in shares {
        wrong.append(&mut errors);
        for (key, fate) in found {
            if fate == Fate::Acts {
                acting.insert(key.clone());
            }
            tried.insert(key);
        }
    }
    let never: BTreeSet<String> = all.never.keys().cloned().collect();
    let idle: BTreeSet<String> = tried.difference(&acting).cloned().collect();
    let refused = idle.difference(&never).map(|key| format!("{key} acts in no instance"));
    wrong.extend(refused);
    wrong.extend(never.difference(&idle).map(|key| format!("{key} acts, or is in no instance")));
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
}

/// The trial finds a field without an effect: the name of a scenario stands in for one. It finds a field of the schema
/// that no instance has.
#[test]
fn a_field_without_effect_is_found() {
    let text =
        "topology = { kind = \"star\", hosts = 3 }\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n";
    let before = outcome(text, &[]).unwrap();
    let of = |field: &str, value: &str| fate(text, field, &before, &[], vec![value.to_owned()]);
    assert_eq!(of("name", "other"), Fate::Silent(vec!["other".to_owned()]));
    assert_eq!(of("workload[0].size", "2KB"), Fate::Acts);
    assert_eq!(of("workload[0].size", "0KB"), Fate::Refused);
    let mut schema = schemars::schema_for!(Scenario).to_value();
    schema["$defs"]["Planted"] = serde_json::json!({ "properties": { "new": { "type": "integer" } } });
    assert!(known(&schema).contains("Planted.new"));
}

/// Outcomes can be compared: without a change they are equal.
#[test]
fn outcomes_are_deterministic() {
    let all = Instances::read();
    for instance in &all.instance {
        let text = all.text(instance);
        let first = outcome(&text, &[]).unwrap_or_else(|why| panic!("{}: {why}", instance.name));
        assert!(outcome(&text, &[]) == Ok(first), "{}", instance.name);
    }
}

#[test]
fn every_field_stands_in_an_instance() {
    let schema = schemars::schema_for!(Scenario).to_value();
    let all = Instances::read();
    let mut tried = BTreeSet::new();
    for instance in &all.instance {
        let value = scenario(&all.text(instance));
        for under in &instance.under {
            tried.append(&mut visited(&schema, &value, under));
        }
    }
    for (text, parts) in super::scenarios() {
        let value = scenario(&text);
        for under in parts {
            tried.append(&mut visited(&schema, &value, under));
        }
    }
    let absent: BTreeSet<String> = all.absent.keys().cloned().collect();
    let missing: BTreeSet<String> = known(&schema).difference(&tried).cloned().collect();
    let unknown: Vec<_> = missing.symmetric_difference(&absent).collect();
    assert!(unknown.is_empty(), "{} {unknown:#?}", unknown.len());
}
