//! Expansion of shorthands: scheme names, topology presets and routing kinds become the settings they stand for,
//! overridden by the user's settings.

use pathweave_policy::{find_scheme, schemes};
use serde::Serialize;

use crate::text::{Diagnostic, FieldPath, Node, Table, Value, closest_name, value_of};

/// Default scheme of a scenario.
pub(crate) const DEFAULT_SCHEME: &str = "rps";

/// Expands every shorthand in `root`. Appends errors to `found`.
pub(crate) fn expand(root: &mut Node, found: &mut Vec<Diagnostic>) {
    let Some(table) = root.as_table_mut() else { return };
    let own = ScenarioSchemes::take(table, found);
    if let Some(switch) = table.get("switch") {
        refuse_settings_of_all(switch, found);
    }
    if let Some(topology) = table.get_mut("topology") {
        collect_error(topology_preset(topology), found);
    }
    if let Some(routing) = table.get_mut("routing") {
        routing_kind(routing);
    }
    let default = || Node::without_location(Value::Text(DEFAULT_SCHEME.to_owned()));
    let scheme = table.entry("scheme".to_owned()).or_insert_with(default);
    collect_error(own.expand(scheme, &FieldPath::root().key("scheme")), found);
    let Some(Value::Array(workloads)) = table.get_mut("workload").map(|node| &mut node.value) else { return };
    for (i, workload) in workloads.iter_mut().enumerate() {
        let Some(workload) = workload.as_table_mut() else { continue };
        for field in ["scheme", "between_sites"] {
            if let Some(scheme) = workload.get_mut(field) {
                let path = FieldPath::root().key("workload").index(i).key(field);
                collect_error(own.expand(scheme, &path), found);
            }
        }
    }
}

fn collect_error(result: Result<(), Diagnostic>, found: &mut Vec<Diagnostic>) {
    found.extend(result.err());
}

/// Fields that all switches of a run share, below `[switch]` and below its tables.
const OF_ALL_SWITCHES: [(&str, &[&str]); 2] = [
    ("", &["weights", "acks", "forwarding", "reroute_after", "external", "for"]),
    ("pfc", &["deadlock_after", "storm_after"]),
];

/// Refuses fields in tables for some switches that only all switches can have.
fn refuse_settings_of_all(switch: &Node, found: &mut Vec<Diagnostic>) {
    let Some(Value::Array(tables)) =
        switch.as_table().and_then(|table| table.get("for")).map(|node| &node.value)
    else {
        return;
    };
    for (index, node) in tables.iter().enumerate() {
        let path = FieldPath::root().key("switch").key("for").index(index);
        for (part, fields) in OF_ALL_SWITCHES {
            let (place, table) = match part {
                "" => (path.clone(), node.as_table()),
                part => (path.key(part), node.as_table().and_then(|table| table.get(part)?.as_table())),
            };
            let dotted = if part.is_empty() { String::new() } else { format!("{part}.") };
            for field in fields {
                let Some(value) = table.and_then(|table| table.get(*field)) else { continue };
                let message = format!("`{}` can only be set for all switches", place.key(field));
                let finding = Diagnostic::new(place.key(field), message)
                    .at(value.key.clone().or(value.span.clone()))
                    .help(format!("set switch.{dotted}{field}"));
                found.push(finding.allowed(
                    "switches may differ in: buffer (or asic), egress_alpha, pfc, ecn, trim, hash, latency",
                ));
            }
        }
    }
}

/// Converts a configuration to a tree without source locations.
fn tree_of(config: &impl Serialize) -> Node {
    Node::from_toml(value_of(config))
}

/// Expands `preset = "udmp-320"`, or `kind = "preset"` with `name = "udmp-320"`.
fn topology_preset(topology: &mut Node) -> Result<(), Diagnostic> {
    let path = FieldPath::root().key("topology");
    let Some(table) = topology.as_table_mut() else { return Ok(()) };
    let is_kind = table.get("kind").and_then(Node::as_text) == Some("preset");
    let field = if is_kind { "name" } else { "preset" };
    let Some(chosen) = table.get(field).filter(|_| is_kind || table.contains_key("preset")) else {
        return Ok(());
    };
    let presets = pathweave_topo::presets();
    let names = || presets.iter().map(|preset| preset.name);
    let wrong = |message: String| {
        Diagnostic::new(path.key(field), message)
            .at(chosen.span.clone())
            .allowed(format!("presets: {}", names().collect::<Vec<_>>().join(", ")))
    };
    let Some(name) = chosen.as_text() else {
        return Err(wrong(format!("`{}` cannot be {}", path.key(field), chosen.value.type_name())));
    };
    let Some(preset) = presets.iter().find(|preset| preset.name == name) else {
        return Err(wrong(format!("unknown topology preset \"{name}\"")).suggest(closest_name(name, names())));
    };
    table.remove(field);
    if is_kind {
        table.remove("kind");
    }
    let over = std::mem::replace(topology, tree_of(&preset.config));
    topology.merge(over);
    Ok(())
}

/// Expands `routing = "source"` to that kind with its defaults.
fn routing_kind(routing: &mut Node) {
    if let Value::Text(kind) = &mut routing.value {
        let kind = Value::Text(std::mem::take(kind));
        let kind = Node { value: kind, key: None, span: routing.span.clone() };
        routing.value = Value::Table(Table::from([("kind".to_owned(), kind)]));
    }
}

/// Schemes that the scenario defines itself: `[schemes.NAME]`.
struct ScenarioSchemes(Table);

impl ScenarioSchemes {
    fn take(root: &mut Table, found: &mut Vec<Diagnostic>) -> Self {
        match root.remove("schemes") {
            Some(Node { value: Value::Table(table), .. }) => ScenarioSchemes(table),
            Some(other) => {
                let message = format!("`schemes` cannot be {}", other.value.type_name());
                let finding = Diagnostic::new(FieldPath::root().key("schemes"), message)
                    .at(other.span)
                    .allowed("expected tables: [schemes.NAME] with a `base`");
                found.push(finding);
                ScenarioSchemes(Table::new())
            }
            None => ScenarioSchemes(Table::new()),
        }
    }

    fn names(&self) -> Vec<&str> {
        let known =
            schemes().iter().flat_map(|info| [info.name].into_iter().chain(info.aliases.iter().copied()));
        self.0.keys().map(String::as_str).chain(known).collect()
    }

    /// Expands a scheme's name, or a table with a `base`, to all settings and the `name`.
    fn expand(&self, node: &mut Node, path: &FieldPath) -> Result<(), Diagnostic> {
        self.expand_within(node, path, &mut Vec::new())
    }

    fn expand_within(
        &self,
        node: &mut Node,
        path: &FieldPath,
        within: &mut Vec<String>,
    ) -> Result<(), Diagnostic> {
        match &mut node.value {
            Value::Text(name) => {
                let name = std::mem::take(name);
                let mut settings = self.named(&name, node, path, within)?;
                set_name(&mut settings, &name);
                // Errors in the preset point at its name.
                (settings.key, settings.span) = (node.key.take(), node.span.take());
                *node = settings;
                Ok(())
            }
            Value::Table(table) => {
                let complete = table.contains_key("policy") && table.contains_key("recovery");
                let Some(mut base) = table.remove("base") else {
                    if complete {
                        return Ok(());
                    }
                    let message = format!("missing field `base` in `{path}`");
                    let finding = Diagnostic::new(path.clone(), message).at(node.span.clone());
                    return Err(finding.allowed("a scheme with changes names the scheme it starts from"));
                };
                let base_path = path.key("base");
                let Some(name) = base.as_text().map(str::to_owned) else {
                    let message = format!("`{base_path}` cannot be {}", base.value.type_name());
                    return Err(Diagnostic::new(base_path, message)
                        .at(base.span)
                        .allowed("the name of a scheme"));
                };
                let label = match table.get("name").and_then(Node::as_text) {
                    Some(label) => label.to_owned(),
                    None if table.is_empty() => name,
                    None => format!("{name}*"),
                };
                self.expand_within(&mut base, &base_path, within)?;
                let over = std::mem::replace(node, base);
                node.merge_scheme(over);
                set_name(node, &label);
                Ok(())
            }
            // The check of the shape reports the error.
            _ => Ok(()),
        }
    }

    /// Returns the settings that a name stands for. The scenario's own definitions take precedence over built-in
    /// schemes.
    fn named(
        &self,
        name: &str,
        node: &Node,
        path: &FieldPath,
        within: &mut Vec<String>,
    ) -> Result<Node, Diagnostic> {
        if let Some(own) = self.0.get(name).filter(|_| !within.iter().any(|outer| outer == name)) {
            within.push(name.to_owned());
            let mut own = own.clone();
            self.expand_within(&mut own, &FieldPath::root().key("schemes").key(name), within)?;
            return Ok(own);
        }
        match find_scheme(name) {
            Some(info) => Ok(tree_of(&(info.make)())),
            None if within.iter().any(|outer| outer == name) => {
                let message = format!("scheme \"{name}\" is defined by itself");
                Err(Diagnostic::new(path.clone(), message).at(node.span.clone()))
            }
            None => {
                let names = self.names();
                Err(Diagnostic::new(path.clone(), format!("unknown scheme \"{name}\""))
                    .at(node.span.clone())
                    .allowed(format!("schemes: {}", names.join(", ")))
                    .suggest(closest_name(name, names.iter().copied())))
            }
        }
    }
}

fn set_name(scheme: &mut Node, name: &str) {
    if let Some(table) = scheme.as_table_mut() {
        table.insert("name".to_owned(), Node::without_location(Value::Text(name.to_owned())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Source, parse_document};

    fn expanded(text: &str) -> Result<toml::Value, String> {
        let mut root = parse_document(&Source::new("a.toml", text)).unwrap();
        let mut found = Vec::new();
        expand(&mut root, &mut found);
        match crate::text::Diagnostics::check(found) {
            Ok(()) => Ok(root.to_toml()),
            Err(findings) => Err(findings.to_string()),
        }
    }

    #[test]
    fn a_scheme_defaults_and_is_named() {
        let scheme = |text: &str| expanded(text).unwrap()["scheme"].clone();
        assert_eq!(scheme("")["name"].as_str(), Some(DEFAULT_SCHEME));
        assert_eq!(scheme("scheme = \"ecmp\"")["name"].as_str(), Some("ecmp"));
        assert_eq!(scheme("scheme = { base = \"ecmp\" }")["name"].as_str(), Some("ecmp"));
        let changed = scheme("scheme = { base = \"ecmp\", paths = 4 }");
        assert_eq!((changed["name"].as_str(), changed["paths"].as_integer()), (Some("ecmp*"), Some(4)));
        let named = scheme("scheme = { base = \"ecmp\", name = \"four\", paths = 4 }");
        assert_eq!(named["name"].as_str(), Some("four"));
    }

    #[test]
    fn another_kind_replaces_its_table() {
        let scheme = expanded("scheme = { base = \"rps\", recovery = { kind = \"go_back_n\" } }").unwrap();
        let recovery = scheme["scheme"]["recovery"].as_table().unwrap();
        assert_eq!(recovery.keys().collect::<Vec<_>>(), ["kind"]);
        let same = "scheme = { base = \"rps\", recovery = { kind = \"timed\", window_packets = 9 } }";
        let recovery = expanded(same).unwrap()["scheme"]["recovery"].clone();
        assert_eq!(recovery["window_packets"].as_integer(), Some(9));
        assert_eq!(recovery["reorder_packets"].as_integer(), Some(0));
    }

    #[test]
    fn another_choice_replaces_its_table() {
        let scheme = |text: &str| expanded(text).unwrap()["scheme"].clone();
        let picker = |scheme: toml::Value| scheme["policy"]["picker"].as_table().unwrap().clone();
        let recycled = "{ base = \"uet-nscc\", policy = { picker = { recycled = {} } } }";
        assert_eq!(picker(scheme(&format!("scheme = {recycled}"))).keys().collect::<Vec<_>>(), ["recycled"]);
        // A choice replaced in two steps, with a field of the same choice.
        let text = format!(
            "scheme = {{ base = \"a\", policy.picker.recycled = {{ ring = 4 }} }}\n[schemes]\na = {recycled}"
        );
        assert_eq!(picker(scheme(&text))["recycled"]["ring"].as_integer(), Some(4));
    }

    /// Lists every table of a scheme that contains only another table: such a table is a choice.
    #[test]
    fn tables_alone_in_a_table_are_choices() {
        fn walk(path: &str, table: &Table, found: &mut std::collections::BTreeSet<String>) {
            if crate::text::single_table_key(table).is_some() {
                found.insert(path.to_owned());
            }
            for (name, node) in table {
                if let Value::Table(below) = &node.value {
                    walk(&format!("{path}.{name}"), below, found);
                }
            }
        }
        let mut found = std::collections::BTreeSet::new();
        for info in schemes() {
            let Value::Table(table) = tree_of(&(info.make)()).value else { panic!("a table") };
            walk("scheme", &table, &mut found);
        }
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(found, ["scheme.policy.picker"]);
    }

    #[test]
    fn own_schemes_build_on_others() {
        let text = "scheme = \"b\"\n[schemes.a]\nbase = \"rps\"\npaths = 8\n[schemes.b]\nbase = \"a\"\nqueue_pairs = 2\n";
        let scheme = expanded(text).unwrap()["scheme"].clone();
        assert_eq!(scheme["name"].as_str(), Some("b"));
        assert_eq!(scheme["paths"].as_integer(), Some(8));
        assert_eq!(scheme["queue_pairs"].as_integer(), Some(2));
        // A definition may refine the built-in scheme of the same name, but not itself.
        let text = "[schemes.rps]\nbase = \"rps\"\npaths = 8\n";
        assert_eq!(expanded(text).unwrap()["scheme"]["paths"].as_integer(), Some(8));
        let circle = expanded("scheme = \"a\"\n[schemes.a]\nbase = \"b\"\n[schemes.b]\nbase = \"a\"\n");
        assert!(circle.unwrap_err().contains("defined by itself"));
    }

    #[test]
    fn unknown_names_are_answered() {
        let text = expanded("scheme = \"rsp\"").unwrap_err();
        assert!(text.contains("unknown scheme \"rsp\"") && text.contains("did you mean `rps`?"), "{text}");
        let text = expanded("[[workload]]\nscheme = \"ecpm\"").unwrap_err();
        assert!(text.contains("workload[0].scheme") && text.contains("`ecmp`"), "{text}");
        let text = expanded("[scheme]\npaths = 4").unwrap_err();
        assert!(text.contains("missing field `base` in `scheme`"), "{text}");
        let text = expanded("[topology]\npreset = \"udmp320\"").unwrap_err();
        assert!(text.contains("did you mean `udmp-320`?"), "{text}");
    }

    #[test]
    fn topology_presets_can_be_refined() {
        for text in ["preset = \"udmp-320\"", "kind = \"preset\"\nname = \"udmp-320\""] {
            let topology = expanded(&format!("[topology]\n{text}\npods = 2\n")).unwrap()["topology"].clone();
            assert_eq!(topology["kind"].as_str(), Some("fat-tree"));
            assert_eq!(topology["pods"].as_integer(), Some(2));
            assert_eq!(topology["hosts_per_tor"].as_integer(), Some(16));
        }
    }
}
