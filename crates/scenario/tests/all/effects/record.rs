//! Trial of every field: its other values in a run, and the record of those that change nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use pathweave_records::{FlowRecord, RunResult};
use pathweave_scenario::{Changes, Loaded, Scenario};
use pathweave_sim::NoMonitor;

use super::fields::{Field, fields};

/// Setting that each field depends on, enabled when the field is changed.
pub(super) const WITH: [(&str, &str); 16] = [
    ("scheme.acks.max_delay", "scheme.acks.every_packets=16"),
    ("scheme.cnp.interval", "scheme.cnp.kind=on_mark"),
    ("scheme.policy.cc.window_follows_rate", "scheme.policy.cc.window={bdp=1.0}"),
    ("scheme.policy.cc.clamp_target", "scheme.policy.cc.rate_timer=5us"),
    // A rate step every few microseconds; otherwise the run ends before the second one.
    ("scheme.policy.cc.additive_increase", "scheme.policy.cc.rate_timer=3us"),
    ("scheme.policy.cc.hyper_increase", "scheme.policy.cc.rate_timer=3us"),
    ("scheme.policy.cc.increase_scale", "scheme.policy.cc.rate_timer=3us"),
    ("scheme.policy.cc.fast_recovery_stages", "scheme.policy.cc.rate_timer=3us"),
    ("switch.ecn.thresholds", "switch.ecn.reference_rate=25Gbps"),
    // No unmarked packet is delayed by three times the target.
    ("scheme.policy.cc.fair_increase", "scheme.policy.cc.high_delay=1"),
    // Queues of four times the target are rare here.
    ("scheme.policy.cc.collapse_share", "scheme.policy.cc.collapse_delay=1"),
    ("scheme.policy.nscc.collapse_share", "scheme.policy.nscc.collapse_delay=1"),
    // Few paths, so that each is used again while a message lasts.
    ("scheme.policy.planes", "scheme.policy.active_evs=8"),
    ("scheme.policy.floor_evs", "scheme.paths=8"),
    // Early marks as in this network keep the window of REPS at its minimum.
    ("scheme.policy.fair_increase", "switch.ecn.kmax=300KB"),
    ("scheme.policy.fair_increase", "switch.ecn.kmin=200KB"),
];

/// Field without an effect in these runs: the scheme or an empty text, the field or a part of its name, and the
/// reason.
pub(super) type Inert = (&'static str, &'static str, &'static str);

/// Outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// Hash of all that the run computes and records.
    result: u64,
    /// Notes of `check`.
    notes: Vec<String>,
}

impl Outcome {
    /// Returns true if both runs computed and recorded the same.
    pub(super) fn is_same_run(&self, other: &Outcome) -> bool {
        self.result == other.result
    }

    /// Returns true if a note of `check` contains the text.
    pub(super) fn notes(&self, text: &str) -> bool {
        self.notes.iter().any(|note| note.contains(text))
    }
}

/// Returns the outcome of a run, or the reason why it was refused.
pub(super) fn outcome(text: &str, set: &[String]) -> Result<Outcome, String> {
    let changes = Changes { set: set.to_vec(), ..Changes::default() };
    let loaded = Loaded::parse(text, "base.toml", ".", &changes).map_err(|why| why.to_string())?;
    let prepared = loaded.prepare().map_err(|why| why.to_string())?;
    let result = pathweave_scenario::run(&prepared.spec, &mut NoMonitor).map_err(|why| why.to_string())?;
    let mut hash = DefaultHasher::new();
    recorded(&result).hash(&mut hash);
    format!("{:?}", prepared.spec.graph.memory()).hash(&mut hash);
    Ok(Outcome { result: hash.finish(), notes: prepared.notes })
}

/// Returns all that a run records, except for the times that the simulator took.
fn recorded(result: &RunResult) -> String {
    let fate =
        |flow: &FlowRecord| (flow.src_host, flow.dst_host, flow.start_ps, flow.finish_ps, flow.acked_ps);
    let fates: Vec<_> = result.flows.iter().map(fate).collect();
    let observed = (&result.series, &result.events, &result.events_not_recorded, &result.departures);
    let groups = (&result.info.groups, result.foreground().count());
    format!("{} {fates:?} {} {observed:?} {groups:?}", result.info.digest_hex(), result.info.label())
}

/// Fate of the changes of one field.
#[derive(Debug, PartialEq)]
pub(super) enum Fate {
    /// A change has an effect on the run, or a note that names the field says why it has none.
    Acts,
    /// All changes are refused.
    Refused,
    /// These values are accepted and change nothing.
    Silent(Vec<String>),
}

/// Field after its changes.
pub(super) struct Tried {
    pub(super) path: String,
    pub(super) key: String,
    pub(super) fate: Fate,
    /// Entries of [`WITH`] that were applied.
    with: Vec<(&'static str, &'static str)>,
}

/// Further values and limits of a trial.
#[derive(Default)]
pub(super) struct Limits {
    /// Further values of fields, by path.
    pub(super) others: BTreeMap<String, Vec<String>>,
    /// Largest whole number that is tried, if larger ones would make a run long.
    pub(super) most: Option<u64>,
}

impl Limits {
    fn values(&self, field: &Field) -> Vec<String> {
        let most = self.most.unwrap_or(u64::MAX);
        let is_small = |candidate: &&String| candidate.parse::<u64>().map_or(true, |number| number <= most);
        let others = self.others.get(&field.path).into_iter().flatten();
        others.chain(field.candidates.iter().filter(is_small)).cloned().collect()
    }
}

/// Changes the fields of a scenario below `under`, each alone or together with the setting that it depends on, if the
/// scenario accepts that. `is_wanted` selects fields by their keys.
pub(super) fn try_fields(
    (name, text): (&str, &str),
    under: &str,
    limits: &Limits,
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<Tried> {
    let loaded = Loaded::parse(text, "base.toml", ".", &Changes::default());
    let loaded = loaded.unwrap_or_else(|why| panic!("{name}: {why}"));
    let schema = schemars::schema_for!(Scenario).to_value();
    let value = serde_json::to_value(&loaded.scenario).expect("a scenario can be written");
    let mut known: BTreeMap<Vec<String>, Result<Outcome, String>> = BTreeMap::new();
    let mut all = Vec::new();
    for field in fields(&schema, &value, under).into_iter().filter(|field| is_wanted(&field.key)) {
        let (mut set, mut with): (Vec<String>, Vec<_>) = (Vec::new(), Vec::new());
        let mut before = known.entry(Vec::new()).or_insert_with(|| outcome(text, &[])).clone();
        for entry in WITH.iter().filter(|(of, _)| *of == field.path) {
            let more: Vec<String> = set.iter().cloned().chain([entry.1.to_owned()]).collect();
            let after = known.entry(more.clone()).or_insert_with(|| outcome(text, &more)).clone();
            // A scheme without this setting is tried without it: a refusal would hide that the field has no effect.
            if after.is_ok() {
                (set, before) = (more, after);
                with.push(*entry);
            }
        }
        let before = before.unwrap_or_else(|why| panic!("{name}: {why}"));
        let fate = fate(text, &field.path, &before, &set, limits.values(&field));
        all.push(Tried { path: field.path, key: field.key, fate, with });
    }
    all
}

/// Record of all changes tried.
#[derive(Default)]
pub(super) struct EffectsRecord {
    /// Fields that can be changed silently: the scheme, the field, and the values tried.
    pub(super) silent: Vec<(&'static str, String, Vec<String>)>,
    /// Entries of [`WITH`] that were applied.
    with: BTreeSet<(&'static str, &'static str)>,
}

impl EffectsRecord {
    /// Changes the fields below `under`.
    pub(super) fn add(&mut self, name: &'static str, text: &str, under: &str) {
        for Tried { path, fate, with, .. } in try_fields((name, text), under, &Limits::default(), |_| true) {
            self.with.extend(with);
            if let Fate::Silent(values) = fate {
                self.silent.push((name, path, values));
            }
        }
    }

    /// Checks that exactly the known inert fields are ignored silently, and that every entry of [`WITH`] was applied.
    pub(super) fn check(&self, inert: &[Inert], under: &[&str]) {
        let is = |(of, part, _): &Inert, name: &str, field: &str| name.contains(of) && field.contains(part);
        let mut wrong: Vec<String> = Vec::new();
        for (name, field, ignored) in &self.silent {
            if !inert.iter().any(|entry| is(entry, name, field)) {
                wrong.push(format!("{name}: {field} is changed in silence: {ignored:?}"));
            }
        }
        for entry in inert {
            if !self.silent.iter().any(|(name, field, _)| is(entry, name, field)) {
                wrong.push(format!("{entry:?} is not inert: it does something, or there is no such field"));
            }
        }
        let mine = |field: &str| under.iter().any(|under| field.starts_with(under));
        for entry in WITH.iter().filter(|entry| mine(entry.0) && !self.with.contains(entry)) {
            wrong.push(format!("{entry:?} is taken by no scheme"));
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

/// Changes a field to each value in turn, until one has an effect or is noted.
pub(super) fn fate(text: &str, path: &str, before: &Outcome, with: &[String], values: Vec<String>) -> Fate {
    let field = path.rsplit('.').next().unwrap_or(path);
    // A note may name a table above the field.
    let tables: Vec<String> =
        path.match_indices('.').map(|(end, _)| format!("{} has no effect", &path[..end])).collect();
    let mut ignored = Vec::new();
    for value in values {
        let set: Vec<String> = with.iter().cloned().chain([format!("{path}={value}")]).collect();
        let Ok(after) = outcome(text, &set) else { continue };
        let names_field =
            |note: &String| note.contains(field) || tables.iter().any(|table| note.contains(table));
        let says_why = |note: &String| names_field(note) && !before.notes.contains(note);
        if after.result != before.result || after.notes.iter().any(says_why) {
            return Fate::Acts;
        }
        ignored.push(value);
    }
    if ignored.is_empty() { Fate::Refused } else { Fate::Silent(ignored) }
}
