//! Check of a tree against a JSON Schema, with better errors than those of a deserialiser. Serde loses source
//! locations inside tagged enums and stops at the first error.
//!
//! The check supports everything that schemars emits for configuration structs and enums: references, tagged and
//! untagged enums, flattened fields, maps, numeric bounds. Every table is closed. Serde later refuses any error that
//! the schema does not express.

mod fields;
mod open;
mod scalar;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::Value as Json;

use super::{Diagnostic, FieldPath, Node, Value, closest_name};

/// Schema against which trees are checked.
pub(crate) struct SchemaCheck {
    root: Json,
}

impl SchemaCheck {
    /// Creates the shape of `T`.
    pub(crate) fn for_type<T: JsonSchema>() -> Self {
        SchemaCheck { root: schemars::schema_for!(T).to_value() }
    }
    /// Creates the shape that a schema describes.
    #[cfg(test)]
    pub(crate) fn from_schema(root: Json) -> Self {
        SchemaCheck { root }
    }
    /// Replaces the names of tables whose fields all have defaults by these tables: `picker = "plb"` becomes
    /// `picker = { plb = {} }`.
    pub(crate) fn open_names(&self, node: &mut Node) {
        open::names(&self.root, &self.root, node);
    }
    /// Returns all mismatches in `node`.
    pub(crate) fn check(&self, node: &Node) -> Vec<Diagnostic> {
        let mut walk = SchemaChecker { root: &self.root, tree: node, found: Vec::new() };
        walk.value(&self.root, node, &FieldPath::root());
        walk.found
    }
}

struct SchemaChecker<'a> {
    root: &'a Json,
    tree: &'a Node,
    found: Vec<Diagnostic>,
}

/// Follows references.
fn resolve<'a>(root: &'a Json, mut schema: &'a Json) -> &'a Json {
    while let Some(name) = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
        schema = &root["$defs"][name];
    }
    schema
}

impl<'a> SchemaChecker<'a> {
    fn resolve(&self, schema: &'a Json) -> &'a Json {
        resolve(self.root, schema)
    }
    fn report(&mut self, finding: Diagnostic) {
        self.found.push(self.tree.place(finding));
    }

    fn value(&mut self, schema: &'a Json, node: &'a Node, path: &FieldPath) {
        let units = units_name(schema);
        let schema = self.resolve(schema);
        if let Some(units) = units {
            return self.quantity(units, schema, node, path);
        }
        let branches = branches(schema);
        if schema.get("properties").is_some() || schema.get("allOf").is_some() {
            return self.object(schema, node, path);
        }
        if !branches.is_empty() {
            return self.alternatives(&branches, node, path);
        }
        match (&node.value, allowed_types(schema).as_slice()) {
            (_, []) => {}
            (Value::Table(table), types) if types.contains(&"object") => {
                let items = schema.get("additionalProperties").filter(|items| items.is_object());
                for (name, child) in table.iter().filter(|_| items.is_some()) {
                    self.value(&schema["additionalProperties"], child, &path.key(name));
                }
            }
            (Value::Array(items), types) if types.contains(&"array") => self.array(schema, items, path),
            _ => self.scalar(schema, node, path),
        }
    }

    fn array(&mut self, schema: &'a Json, items: &'a [Node], path: &FieldPath) {
        let at_least = schema["minItems"].as_u64().unwrap_or(0) as usize;
        let at_most = schema["maxItems"].as_u64().map_or(usize::MAX, |most| most as usize);
        if items.len() < at_least || items.len() > at_most {
            let allowed = if at_least == at_most {
                format!("exactly {at_least}")
            } else {
                format!("at least {at_least}")
            };
            let message = format!("`{path}` has {} items", items.len());
            self.report(Diagnostic::new(path.clone(), message).allowed(format!("needs {allowed}")));
        }
        let prefix = schema["prefixItems"].as_array().map_or(&[][..], Vec::as_slice);
        for (i, item) in items.iter().enumerate() {
            if let Some(schema) = prefix.get(i).or_else(|| schema.get("items").filter(|s| s.is_object())) {
                self.value(schema, item, &path.index(i));
            }
        }
    }

    /// Checks an enum: names, tables distinguished by a tag or by their only key, or values distinguished by their
    /// type.
    fn alternatives(&mut self, branches: &[&'a Json], node: &'a Node, path: &FieldPath) {
        let branches: Vec<_> =
            branches.iter().map(|b| (*b, self.resolve(b))).filter(|(_, b)| b["type"] != "null").collect();
        if let [(only, _)] = branches.as_slice() {
            return self.value(only, node, path);
        }
        let names: Vec<&str> = branches.iter().flat_map(|(_, branch)| fields::names(branch)).collect();
        let named_tables: Vec<&str> =
            branches.iter().filter_map(|(_, branch)| open::only_key(branch)).collect();
        match &node.value {
            Value::Text(text) if names.contains(&text.as_str()) => return,
            Value::Table(table) => {
                let resolved: Vec<_> = branches.iter().map(|(_, branch)| *branch).collect();
                if fields::tag(&resolved, |s| self.resolve(s)).is_some() {
                    return self.tagged(&resolved, node, path);
                }
                let by_key = |branch: &&Json| {
                    let required = branch["required"].as_array();
                    required
                        .is_some_and(|r| r.len() == 1 && r[0].as_str().is_some_and(|k| table.contains_key(k)))
                };
                if let Some(branch) = resolved.iter().find(|b| by_key(b)) {
                    return self.object(branch, node, path);
                }
                let tables = resolved.iter().filter(|branch| allowed_types(branch) == ["object"]).count();
                if named_tables.len() > 1 && tables == named_tables.len() {
                    return self.no_name(&names, &resolved, table, path);
                }
            }
            _ => {}
        }
        let fitting: Vec<_> =
            branches.iter().filter(|(_, b)| fields::names(b).is_empty() && fits(b, node)).collect();
        match fitting.as_slice() {
            [(only, _)] => {
                let before = self.found.len();
                self.value(only, node, path);
                let tables = self.tables(branches.iter().map(|(_, branch)| *branch));
                // A text that is none of the names may be meant for a table beside them.
                for finding in self.found[before..].iter_mut().filter(|finding| finding.field == *path) {
                    if let Some(allowed) = finding.allowed.as_mut().filter(|_| !tables.is_empty()) {
                        *allowed += &format!(", {}", tables.join(", "));
                    }
                }
            }
            [] => self.no_alternative(&names, &branches, node, path),
            several => {
                // The alternatives differ only in their content. The value is valid if one accepts it; otherwise the
                // errors of the first are reported.
                let before = self.found.len();
                let mut first = None;
                for (branch, _) in several {
                    self.value(branch, node, path);
                    let found = self.found.split_off(before);
                    if found.is_empty() {
                        return;
                    }
                    first.get_or_insert(found);
                }
                self.found.extend(first.into_iter().flatten());
            }
        }
    }

    /// Reports a table whose key is none of the names.
    fn no_name(&mut self, names: &[&str], branches: &[&'a Json], table: &super::Table, path: &FieldPath) {
        let all: Vec<String> = names
            .iter()
            .map(|name| (*name).to_owned())
            .chain(self.tables(branches.iter().copied()))
            .collect();
        let keys = table.keys().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
        let message = format!(
            "`{path}` needs a name, not a table of {}",
            if keys.is_empty() { "nothing" } else { keys.as_str() }
        );
        self.report(Diagnostic::new(path.clone(), message).allowed(format!("allowed: {}", all.join(", "))));
    }

    /// Returns the alternatives that are tables of one key: the name where a text is enough, otherwise the table.
    fn tables(&self, branches: impl Iterator<Item = &'a Json>) -> Vec<String> {
        let of = |branch: &'a Json| {
            let key = open::only_key(branch)?;
            let content = self.resolve(&branch["properties"][key]);
            Some(match content["type"].as_str() {
                _ if open::has_defaults(content) => key.to_owned(),
                Some("string") => format!("{{ {key} = \"...\" }}"),
                Some("integer" | "number") => format!("{{ {key} = 1 }}"),
                _ => format!("{{ {key} = ... }}"),
            })
        };
        branches.filter_map(of).collect()
    }

    fn no_alternative(
        &mut self,
        names: &[&str],
        branches: &[(&'a Json, &'a Json)],
        node: &Node,
        path: &FieldPath,
    ) {
        let tables = self.tables(branches.iter().map(|(_, branch)| *branch));
        if let (Value::Text(text), false) = (&node.value, names.is_empty()) {
            let all = || names.iter().copied().chain(tables.iter().map(String::as_str));
            let finding = Diagnostic::new(path.clone(), format!("unknown name \"{text}\" for `{path}`"))
                .allowed(format!("allowed: {}", all().collect::<Vec<_>>().join(", ")))
                .suggest(closest_name(text, all()));
            return self.report(finding);
        }
        let mut allowed: Vec<String> = branches
            .iter()
            .filter(|(_, b)| fields::names(b).is_empty())
            .flat_map(|(_, b)| allowed_types(b).into_iter().map(|kind| type_name(kind).to_owned()))
            .collect();
        allowed.dedup();
        if !names.is_empty() {
            allowed.push(format!("one of {}", names.join(", ")));
        }
        self.wrong_type(&allowed.join(" or "), node, path);
    }

    fn wrong_type(&mut self, allowed: &str, node: &Node, path: &FieldPath) {
        let value = node.value.short().map_or(String::new(), |value| format!(" {value}"));
        let message = format!("`{path}` cannot be {}{value}", node.value.type_name());
        self.report(Diagnostic::new(path.clone(), message).allowed(format!("expected {allowed}")));
    }
}

/// Returns the alternatives of an enum, or none for any other schema.
fn branches(schema: &Json) -> Vec<&Json> {
    let list = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
    list.map(|list| list.iter().collect()).unwrap_or_default()
}

/// Returns the types that a schema allows, without `null`, which TOML does not have.
fn allowed_types(schema: &Json) -> Vec<&str> {
    let types = match &schema["type"] {
        Json::String(one) => vec![one.as_str()],
        Json::Array(several) => several.iter().filter_map(Json::as_str).collect(),
        _ if schema.get("properties").is_some() => vec!["object"],
        _ if !branches(schema).is_empty() => branches(schema).into_iter().flat_map(allowed_types).collect(),
        _ => vec![],
    };
    types.into_iter().filter(|&kind| kind != "null").collect()
}

/// Returns true if the schema allows the type of the value.
fn fits(schema: &Json, node: &Node) -> bool {
    let types = allowed_types(schema);
    let kind: &[&str] = match node.value {
        Value::Text(_) => &["string"],
        Value::Integer(_) => &["integer", "number"],
        Value::Float(_) => &["number"],
        Value::Bool(_) => &["boolean"],
        Value::Array(_) => &["array"],
        Value::Table(_) => &["object"],
    };
    types.is_empty() || types.iter().any(|allowed| kind.contains(allowed))
}

/// Returns the name of a schema type for error messages.
fn type_name(kind: &str) -> &str {
    match kind {
        "string" => "a text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "an array",
        "object" => "a table",
        other => other,
    }
}

/// Returns the name of the unit type that a schema refers to, if any.
fn units_name(schema: &Json) -> Option<&str> {
    // An optional quantity is `anyOf [quantity, null]`.
    let optional = branches(schema);
    let schema = match optional.as_slice() {
        [one, null] if null["type"] == "null" => one,
        _ => schema,
    };
    let name = schema["$ref"].as_str()?.strip_prefix("#/$defs/")?;
    ["Duration", "Rate", "Bytes"].contains(&name).then_some(name)
}

/// Fields of a struct and of everything flattened into it, with their schemas.
#[derive(Default)]
struct Fields<'a> {
    known: BTreeMap<&'a str, &'a Json>,
    required: Vec<&'a str>,
    /// True if the tag is wrong, so that some fields are unknown.
    incomplete: bool,
}

#[cfg(test)]
mod tests;
