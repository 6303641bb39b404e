//! Every field of a topology and of a workload is used: changed alone, it changes the network or the messages, or the
//! change is refused, or a note says why it has no effect.

use std::hash::{DefaultHasher, Hash, Hasher};

use pathweave_scenario::{Changes, Loaded, Scenario};

use super::alone::KINDS;
use super::effects::fields::fields;

/// Field without an effect: the kind, the field or a part of its name, and the reason.
type Inert = (&'static str, &'static str, &'static str);

/// Fields of topologies that change nothing in the instances tried.
const INERT_OF_TOPOLOGIES: &[Inert] = &[];

/// Fields of workloads that change nothing in the instances tried.
const INERT_OF_WORKLOADS: &[Inert] = &[];

/// Instance of each kind of workload that runs on any network and is not read from a file.
const WORKLOADS: &[(&str, &str)] = &[
    ("permutation", "size = \"1MB\""),
    ("incast", "senders = 3\nsize = \"1MB\""),
    ("poisson", "load = 0.5\nsizes = \"websearch\"\nduration = \"100us\""),
    ("all-to-all", "size = \"1MB\""),
    ("ring-all-reduce", "size = \"1MB\""),
    ("collective", "operation = \"all-reduce\"\nsize = \"1MB\""),
    ("moe", "token_size = \"14336B\"\ntokens = 64"),
    ("pipeline", "activation = \"1MB\"\nmicrobatches = 4"),
    ("training", "model = \"resnet-50\""),
    ("transformer", "model = \"mixtral-8x7b\"\ntp = 2\nep = 2\ngpu = \"h100\"\nscale = 0.001"),
];

/// Returns the digest of the network and of the messages, or the reason why the scenario is refused.
fn outcome(text: &str, set: &[String]) -> Result<u64, String> {
    let changes = Changes { set: set.to_vec(), ..Changes::default() };
    let loaded = Loaded::parse(text, "base.toml", ".", &changes).map_err(|why| why.to_string())?;
    let prepared = loaded.prepare().map_err(|why| why.to_string())?;
    let mut hash = DefaultHasher::new();
    let spec = &prepared.spec;
    format!("{:?} {:?} {:?} {:?}", spec.topology, spec.graph, spec.groups, prepared.notes).hash(&mut hash);
    Ok(hash.finish())
}

/// Returns false for a number with which a network or a workload would be large.
fn is_small(candidate: &str) -> bool {
    candidate.parse::<u64>().map_or(true, |number| number <= 16)
}

/// Returns the fields below `under` of which no other value has an effect.
fn silent(text: &str, under: &str) -> Vec<String> {
    let loaded = Loaded::parse(text, "base.toml", ".", &Changes::default());
    let loaded = loaded.unwrap_or_else(|why| panic!("{text}\n{why}"));
    let schema = schemars::schema_for!(Scenario).to_value();
    let value = serde_json::to_value(&loaded.scenario).expect("a scenario can be written");
    let before = outcome(text, &[]).unwrap_or_else(|why| panic!("{text}\n{why}"));
    let all = fields(&schema, &value, under);
    assert!(!all.is_empty(), "{text}");
    let is_silent = |candidates: &[String], path: &str| {
        let mut accepted = false;
        for candidate in candidates.iter().filter(|candidate| is_small(candidate)) {
            match outcome(text, &[format!("{path}={candidate}")]) {
                Ok(after) if after != before => return false,
                Ok(_) => accepted = true,
                Err(_) => {}
            }
        }
        accepted
    };
    all.iter()
        .filter(|field| is_silent(&field.candidates, &field.path))
        .map(|field| field.path.clone())
        .collect()
}

/// Checks that exactly the known fields are silent.
fn check(tried: &[(String, Vec<String>)], inert: &[Inert]) {
    let is = |(of, part, _): &Inert, kind: &str, field: &str| kind.contains(of) && field.contains(part);
    let mut wrong = Vec::new();
    for (kind, fields) in tried {
        let unknown = |field: &&String| !inert.iter().any(|entry| is(entry, kind, field));
        wrong.extend(fields.iter().filter(unknown).map(|field| format!("{kind}: {field} has no effect")));
    }
    let found =
        |entry: &&Inert| tried.iter().any(|(kind, fields)| fields.iter().any(|field| is(entry, kind, field)));
    wrong.extend(inert.iter().filter(|entry| !found(entry)).map(|entry| format!("{entry:?} has an effect")));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_field_of_a_topology_changes_the_network() {
    let tried = KINDS.map(|(kind, fields)| {
        let text = format!(
            "[topology]\nkind = \"{kind}\"\n{fields}\n[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n"
        );
        (kind.to_owned(), silent(&text, "topology"))
    });
    check(&tried, INERT_OF_TOPOLOGIES);
}

#[test]
fn every_field_of_a_workload_changes_the_messages() {
    let tried: Vec<_> = WORKLOADS
        .iter()
        .map(|(kind, fields)| {
            let text = format!(
                "topology = {{ kind = \"leaf-spine\", leaves = 2, spines = 2, hosts_per_leaf = 4 }}\n\
                 [[workload]]\nkind = \"{kind}\"\n{fields}\n"
            );
            ((*kind).to_owned(), silent(&text, "workload"))
        })
        .collect();
    check(&tried, INERT_OF_WORKLOADS);
}
