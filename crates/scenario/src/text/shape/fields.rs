//! Check of tables: known and required fields.

use serde_json::Value as Json;

use super::super::{Diagnostic, FieldPath, Node, Value, closest_name};
use super::{Fields, SchemaChecker, branches};

/// Returns the texts that a schema lists as constants.
pub(super) fn names(schema: &Json) -> Vec<&str> {
    match (schema["const"].as_str(), schema["enum"].as_array()) {
        (Some(only), _) => vec![only],
        (None, Some(several)) => several.iter().filter_map(Json::as_str).collect(),
        (None, None) => vec![],
    }
}

/// Returns the property that distinguishes the alternatives of a tagged enum.
pub(super) fn tag<'a>(branches: &[&'a Json], resolve: impl Fn(&'a Json) -> &'a Json) -> Option<&'a str> {
    let properties = resolve(branches.first()?)["properties"].as_object()?;
    let tells_apart = |name: &str| {
        branches.iter().all(|branch| {
            let property = &resolve(branch)["properties"][name];
            property.get("const").is_some() || property["enum"].as_array().is_some_and(|e| e.len() == 1)
        })
    };
    properties.keys().map(String::as_str).find(|name| tells_apart(name))
}

/// Returns the first sentence of a field's documentation, or the first line if that is shorter, without the marks of
/// links in the code's documentation.
pub(super) fn summary(schema: &Json) -> Option<String> {
    let text = schema["description"].as_str()?.lines().next()?;
    let first = text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.');
    Some(first.replace("[`", "`").replace("`]", "`"))
}

impl<'a> SchemaChecker<'a> {
    /// Checks a struct.
    pub(super) fn object(&mut self, schema: &'a Json, node: &'a Node, path: &FieldPath) {
        let Value::Table(table) = &node.value else {
            return self.wrong_type("a table", node, path);
        };
        let mut fields = Fields::default();
        self.gather(schema, node, path, &mut fields);
        for name in &fields.required {
            if !table.contains_key(*name) {
                self.missing(name, fields.known.get(name).copied(), path);
            }
        }
        for (name, child) in table {
            match fields.known.get(name.as_str()) {
                Some(schema) => self.value(schema, child, &path.key(name)),
                None if fields.incomplete => {}
                None => self.unknown(name, child, &fields, path),
            }
        }
    }

    /// Checks an enum whose alternatives are distinguished by a tag.
    pub(super) fn tagged(&mut self, branches: &[&'a Json], node: &'a Node, path: &FieldPath) {
        let mut fields = Fields::default();
        if let Some(branch) = self.select(branches, node, path, &mut fields) {
            self.object(branch, node, path);
        }
    }

    /// Collects the fields of a struct and of everything flattened into it.
    fn gather(&mut self, schema: &'a Json, node: &'a Node, path: &FieldPath, fields: &mut Fields<'a>) {
        let schema = self.resolve(schema);
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            fields.known.entry(name).or_insert(property);
        }
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str);
        fields.required.extend(required);
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.gather(part, node, path, fields);
        }
        let branches = branches(schema);
        if let Some(branch) = self.select(&branches, node, path, fields) {
            self.gather(branch, node, path, fields);
        }
    }

    /// Returns the alternative that the tag in `node` names. Reports a missing or unknown tag.
    fn select(
        &mut self,
        branches: &[&'a Json],
        node: &'a Node,
        path: &FieldPath,
        fields: &mut Fields<'a>,
    ) -> Option<&'a Json> {
        let tag = tag(branches, |schema| self.resolve(schema))?;
        let value_of = |branch: &'a Json| names(&self.resolve(branch)["properties"][tag]).first().copied();
        let allowed: Vec<&str> = branches.iter().filter_map(|branch| value_of(branch)).collect();
        let written = node.as_table().and_then(|table| table.get(tag));
        let finding = match written.map(|written| &written.value) {
            Some(Value::Text(text)) => {
                if let Some(branch) = branches.iter().find(|b| value_of(b) == Some(text.as_str())) {
                    return Some(branch);
                }
                Diagnostic::new(path.key(tag), format!("unknown {} \"{text}\"", described(tag, path)))
                    .suggest(closest_name(text, allowed.iter().copied()))
            }
            Some(other) => {
                let message = format!("`{}` cannot be {}", path.key(tag), other.type_name());
                Diagnostic::new(path.key(tag), message)
            }
            None => Diagnostic::new(path.key(tag), format!("missing field `{tag}` in `{path}`")),
        };
        self.report(finding.allowed(format!("allowed: {}", allowed.join(", "))));
        fields.incomplete = true;
        None
    }

    /// Returns the kind of the file, from the name of its type: "the sweep file" for `SweepFile`.
    fn kind_of_file(&self) -> String {
        let name = self.root["title"].as_str().filter(|title| *title != "Scenario");
        let Some(name) = name else { return "the scenario".to_owned() };
        let split = |c: char| if c.is_uppercase() { format!(" {}", c.to_lowercase()) } else { c.to_string() };
        format!("the{}", name.chars().map(split).collect::<String>())
    }

    /// Returns the kind and the name of the file. A field that is missing at the top has no place in it.
    fn file(&self) -> String {
        let kind = self.kind_of_file();
        match &self.tree.span {
            Some(span) => format!("{kind} {}", span.source().name),
            None => kind,
        }
    }

    fn missing(&mut self, name: &str, schema: Option<&'a Json>, path: &FieldPath) {
        let place = if path.is_root() { self.file() } else { format!("`{path}`") };
        let finding = Diagnostic::new(path.key(name), format!("missing field `{name}` in {place}"));
        let described = schema.and_then(|s| summary(s).or_else(|| summary(self.resolve(s))));
        self.report(match described {
            Some(summary) => finding.allowed(format!("`{name}` is needed: {summary}")),
            None => finding,
        });
    }

    fn unknown(&mut self, name: &str, child: &Node, fields: &Fields<'a>, path: &FieldPath) {
        let field = path.key(name);
        let place = if path.is_root() { self.kind_of_file() } else { format!("`{path}`") };
        let allowed: Vec<&str> = fields.known.keys().copied().collect();
        let finding = Diagnostic::new(field, format!("unknown field `{name}` in {place}"))
            .at(child.key.clone().or(child.span.clone()))
            .suggest(closest_name(name, allowed.iter().copied()))
            .help(format!("fields here: {}", allowed.join(", ")));
        let former =
            FORMER.iter().find(|(table, field, _)| (path.last_key(), name) == (Some(*table), *field));
        self.report(match former {
            Some((.., now)) => finding.allowed(*now),
            None => finding,
        });
    }
}

/// Fields of former versions: the last name of their table, the field, and what has taken its place.
const FORMER: [(&str, &str, &str); 5] = [
    ("cnp", "mode", "the field is now called `kind`"),
    ("policy", "variant", "UDMP as printed is now the policy `kind = \"udmp_published\"`"),
    ("policy", "gap_margin", "gone: no delay is added to DLBF's gaps"),
    ("hop_scaling", "hops", "gone: a hop is a node that the round trip visits"),
    ("reordering", "copy_marks", "gone: marks of copies never cause a notification"),
];

/// Describes a tag by its table: "topology kind" instead of "kind".
fn described(tag: &str, path: &FieldPath) -> String {
    match path.last_key() {
        Some(parent) => format!("{parent} {tag}"),
        None => tag.to_owned(),
    }
}
