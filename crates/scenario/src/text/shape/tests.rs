use std::collections::BTreeMap;

use pathweave_units::{Bytes, Duration, Rate};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::{Source, Span, parse_document};
use super::*;

#[allow(dead_code)]
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Document {
    /// Seed of all random streams.
    seed: u64,
    topology: Topology,
    #[serde(default)]
    work: Vec<Work>,
    rate: Option<Rate>,
    mode: Option<Mode>,
    choice: Option<Choice>,
    either: Option<Either>,
    limits: Option<BTreeMap<String, Bytes>>,
    picker: Option<Picker>,
    share: Option<f32>,
}

#[allow(dead_code)]
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum Topology {
    /// Pods.
    FatTree(FatTree),
    /// One switch.
    Star { hosts: u16 },
}

#[allow(dead_code)]
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FatTree {
    /// Number of pods. At least one.
    pods: u32,
    #[serde(default)]
    delay: Option<Duration>,
}

#[allow(dead_code)]
#[derive(Deserialize, JsonSchema)]
struct Work {
    #[serde(flatten)]
    what: Topology,
    group: Option<String>,
}

#[allow(dead_code)]
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// Documented, and therefore not part of a plain list in the schema.
    Seeded,
    Polarised,
}

#[allow(dead_code)]
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Choice {
    None,
    Fixed { size: Bytes },
}

#[allow(dead_code)]
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Picker {
    Plain,
    Tuned(Tuned),
    Many(Tuned),
    Fixed(u32),
}

/// Parameters of [`Picker::Tuned`]. All have defaults.
#[allow(dead_code)]
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
struct Tuned {
    rounds: u32,
}

#[allow(dead_code)]
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Either {
    Count(u32),
    Table(FatTree),
}

fn findings(text: &str) -> Vec<String> {
    let mut tree = parse_document(&Source::new("a.toml", text)).unwrap();
    let shape = SchemaCheck::for_type::<Document>();
    shape.open_names(&mut tree);
    let found = shape.check(&tree);
    // The shape accepts exactly the documents that serde accepts.
    assert_eq!(found.is_empty(), tree.to_toml().try_into::<Document>().is_ok(), "{found:?}");
    found
        .iter()
        .map(|d| {
            let (line, column) = d.span.as_ref().map_or((0, 0), Span::line_and_column);
            let parts = [Some(d.message.clone()), d.allowed.clone(), d.help.first().cloned()];
            format!("{line}:{column} {}", parts.into_iter().flatten().collect::<Vec<_>>().join(" | "))
        })
        .collect()
}

fn with_topology(text: &str) -> Vec<String> {
    findings(&format!("seed = 1\ntopology = {{ kind = \"star\", hosts = 2 }}\n{text}"))
}

#[test]
fn good_documents_pass() {
    let good = [
        "",
        "rate = \"1Gbps\"",
        "mode = \"seeded\"",
        "choice = \"none\"",
        "choice = { fixed = { size = \"1KB\" } }",
        "either = 3",
        "either = { pods = 3 }",
        "limits = { a = \"1B\" }",
        "[[work]]\nkind = \"fat-tree\"\npods = 2\ngroup = \"x\"",
        "share = 1",
        "picker = \"plain\"",
        "picker = \"tuned\"",
        "picker = { tuned = { rounds = 3 } }",
        "picker = { fixed = 3 }",
    ];
    for text in good {
        assert_eq!(with_topology(text), [""; 0], "{text}");
    }
}

#[test]
fn unknown_and_missing_fields() {
    assert_eq!(
        findings("seed = 1\n[topology]\nkind = \"fat-tree\"\npodz = 2"),
        [
            "2:1 missing field `pods` in `topology` | `pods` is needed: Number of pods",
            "4:1 unknown field `podz` in `topology` | did you mean `pods`?"
        ]
    );
    assert_eq!(
        findings("topology = { kind = \"star\", hosts = 2 }"),
        ["0:0 missing field `seed` in the document a.toml | `seed` is needed: Seed of all random streams"]
    );
    let flattened = with_topology("[[work]]\nkind = \"star\"\nhosts = 1\ngroop = \"x\"");
    assert_eq!(flattened, ["6:1 unknown field `groop` in `work[0]` | did you mean `group`?"]);
}

#[test]
fn unknown_names() {
    assert_eq!(
        findings("seed = 1\n[topology]\nkind = \"fattree\"\npods = 2"),
        ["3:8 unknown topology kind \"fattree\" | allowed: fat-tree, star | did you mean `fat-tree`?"]
    );
    assert_eq!(
        findings("seed = 1\n[topology]\npods = 2"),
        ["2:1 missing field `kind` in `topology` | allowed: fat-tree, star"]
    );
    let mode = with_topology("mode = \"polarized\"");
    assert!(mode[0].starts_with("3:8 unknown name \"polarized\" for `mode`"), "{mode:?}");
    assert!(mode[0].ends_with("did you mean `polarised`?"), "{mode:?}");
    assert_eq!(
        with_topology("[[work]]\nkind = \"sta\"")[0].split(" | ").last(),
        Some("did you mean `star`?")
    );
}

#[test]
fn names_of_tables_are_listed_with_the_others() {
    let allowed = "allowed: plain, tuned, many, { fixed = 1 }";
    assert_eq!(
        with_topology("picker = \"tunes\""),
        [format!("3:10 unknown name \"tunes\" for `picker` | {allowed} | did you mean `tuned`?")]
    );
    assert_eq!(
        with_topology("picker = { kind = \"tuned\" }"),
        [format!("3:10 `picker` needs a name, not a table of `kind` | {allowed}")]
    );
}

/// Every choice of the scenario that a text can name is accepted by its name, and an unknown name is answered with all.
#[test]
fn every_named_choice_of_a_scenario_is_accepted_as_a_text() {
    let root = schemars::schema_for!(crate::model::Scenario).to_value();
    let mut tables = 0;
    for (name, definition) in root["$defs"].as_object().unwrap() {
        let choices = branches(definition);
        let keys: Vec<&str> = choices.iter().filter_map(|choice| open::only_key(choice)).collect();
        let plain: Vec<&str> = choices.iter().flat_map(|choice| fields::names(choice)).collect();
        if plain.is_empty() {
            continue;
        }
        let mut of_one = root.clone();
        of_one["properties"] = serde_json::json!({ "x": { "$ref": format!("#/$defs/{name}") } });
        of_one["required"] = serde_json::json!([]);
        let shape = SchemaCheck::from_schema(of_one);
        let found = |text: &str| {
            let mut tree = parse_document(&Source::new("a.toml", format!("x = \"{text}\""))).unwrap();
            shape.open_names(&mut tree);
            shape.check(&tree)
        };
        let unknown = found("no such name");
        let listed = unknown.first().and_then(|finding| finding.allowed.clone()).unwrap_or_default();
        for text in plain.iter().chain(&keys) {
            assert!(unknown.is_empty() || listed.contains(text), "{name}: {text} is not in {listed}");
        }
        for text in &plain {
            assert_eq!(found(text), [], "{name}: {text}");
        }
        for key in keys {
            let content = &choices.iter().find(|choice| open::only_key(choice) == Some(key)).unwrap()["properties"]
                [key];
            let content = content["$ref"]
                .as_str()
                .map_or(content, |path| &root["$defs"][path.trim_start_matches("#/$defs/")]);
            if open::has_defaults(content) {
                tables += 1;
                assert_eq!(found(key), [], "{name}: {key}");
            }
        }
    }
    assert!(tables >= 4, "{tables} names of tables");
}

/// Links of the code's documentation have no meaning in a message.
#[test]
fn messages_have_no_marks_of_links() {
    fn visit(node: &Json, found: &mut Vec<String>) {
        if let Some(text) = fields::summary(node).filter(|text| text.contains("[`") || text.contains("`]")) {
            found.push(text);
        }
        match node {
            Json::Object(map) => map.values().for_each(|value| visit(value, found)),
            Json::Array(items) => items.iter().for_each(|value| visit(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    visit(&schemars::schema_for!(crate::model::Scenario).to_value(), &mut found);
    assert_eq!(found, [""; 0]);
}

#[test]
fn wrong_types_and_bounds() {
    assert_eq!(
        with_topology("either = \"x\""),
        ["3:10 `either` cannot be a text \"x\" | expected a whole number or a table"]
    );
    assert_eq!(
        with_topology("either = { pods = -1 }"),
        ["3:19 `either.pods` cannot be -1 | allowed: from 0 to 4294967295"]
    );
    assert_eq!(
        findings("seed = 1.5\ntopology = { kind = \"star\", hosts = 70000 }"),
        [
            "1:8 `seed` cannot be a number with a fraction 1.5 | expected a whole number",
            "2:37 `topology.hosts` cannot be 70000 | allowed: from 0 to 65535"
        ]
    );
    assert_eq!(
        findings("seed = 1\ntopology = 3"),
        ["2:12 `topology` cannot be a whole number 3 | expected a table"]
    );
    assert_eq!(with_topology("work = 1"), ["3:8 `work` cannot be a whole number 1 | expected an array"]);
}

#[test]
fn quantities() {
    let rate = with_topology("rate = 100");
    assert_eq!(
        rate,
        ["3:8 `rate` cannot be a whole number 100 | expected a rate with its unit, such as \"100Gbps\""]
    );
    let rate = with_topology("rate = \"100 GB\"");
    assert!(rate[0].contains("the units are bps, Kbps, Mbps, Gbps, Tbps"), "{rate:?}");
    assert!(with_topology("limits = { a = \"-1B\" }")[0].starts_with("3:16 `limits.a` cannot be \"-1B\""));
    assert!(with_topology("choice = { fixed = { size = 3 } }")[0].starts_with("3:29 `choice.fixed.size`"));
}
