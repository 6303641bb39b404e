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
#[serde(untagged)]
enum Either {
    Count(u32),
    Table(FatTree),
}

fn findings(text: &str) -> Vec<String> {
    let tree = parse_document(&Source::new("a.toml", text)).unwrap();
    let shape = SchemaCheck::for_type::<Document>();
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
        ["0:0 missing field `seed` in the document | `seed` is needed: Seed of all random streams"]
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
