//! The reference in `docs/scenario.md` is generated from the schema and compared with it. To regenerate it:
//! `UPDATE_DOCS=1 cargo test -p pathweave-scenario --test all reference`.

use std::fmt::Write as _;
use std::path::Path;

use pathweave_scenario::Scenario;
use serde_json::Value as Json;

const MARK: &str = "<!-- From here on written by";

#[test]
fn the_reference_is_up_to_date() {
    let schema = schemars::schema_for!(Scenario).to_value();
    let mut reference = Reference { root: &schema, text: String::new(), undocumented: Vec::new() };
    reference.text.push_str("\n## Reference\n");
    reference.table("", &schema);
    assert_eq!(reference.undocumented, [""; 0], "fields without documentation");

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.md");
    let written = std::fs::read_to_string(&path).unwrap();
    let mark = written.find(MARK).expect("the document has the mark");
    let by_hand = &written[..mark + written[mark..].find('\n').unwrap() + 1];
    let text = format!("{by_hand}{}", reference.text);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &text).unwrap();
    } else {
        assert!(written == text, "docs/scenario.md is out of date; UPDATE_DOCS=1 writes it anew");
    }
}

struct Reference<'a> {
    root: &'a Json,
    text: String,
    undocumented: Vec<String>,
}

/// Table that is described after its parent.
struct Below<'a> {
    path: String,
    schema: &'a Json,
}

/// Type of a field in words, and true if the field is a table with a section of its own.
type TypeOf = (String, bool);

impl<'a> Reference<'a> {
    /// Follows a reference, including that of an optional field.
    fn resolve(&self, schema: &'a Json) -> &'a Json {
        let schema = match variants(schema).as_slice() {
            [one, null] if null["type"] == "null" => one,
            _ => schema,
        };
        match schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
            Some(name) => &self.root["$defs"][name],
            None => schema,
        }
    }

    /// Writes a table, its kinds if it has any, and its nested tables.
    fn table(&mut self, path: &str, schema: &'a Json) {
        let title = if path.is_empty() { "The file".to_owned() } else { format!("`{path}`") };
        writeln!(self.text, "\n### {title}").unwrap();
        if let (Some(help), false) = (schema["description"].as_str(), path.is_empty()) {
            write!(self.text, "\n{}\n", one_line(help)).unwrap();
        }
        let mut below = Vec::new();
        self.fields(path, schema, &mut below);
        for variant in variants(schema) {
            let variant = self.resolve(variant);
            let kind = variant["properties"]["kind"]["const"].as_str().expect("tables differ by their kind");
            let help = one_line(variant["description"].as_str().unwrap_or_default());
            write!(self.text, "\n**`kind = \"{kind}\"`** {help}\n").unwrap();
            self.fields(path, variant, &mut below);
        }
        for Below { path, schema } in below {
            self.table(&path, schema);
        }
    }

    fn fields(&mut self, path: &str, schema: &'a Json, below: &mut Vec<Below<'a>>) {
        let Some(properties) = schema["properties"].as_object() else { return };
        let required: Vec<_> =
            schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        let mut rows = String::new();
        for (name, property) in properties.iter().filter(|(name, _)| *name != "kind") {
            let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let (type_name, nested) = self.type_of(&inner, property, below);
            let own = property["description"].as_str();
            let help = own.or_else(|| self.resolve(property)["description"].as_str());
            let Some(help) = help.map(one_line) else {
                self.undocumented.push(inner);
                continue;
            };
            // A complete scenario has these fields; a file may omit them.
            let has_shorthand = path.is_empty() && ["name", "scheme"].contains(&name.as_str());
            let default = match &property["default"] {
                _ if path.starts_with("scheme") && required.contains(&name.as_str()) => {
                    "as `base`".to_owned()
                }
                _ if required.contains(&name.as_str()) && !has_shorthand => "required".to_owned(),
                Json::Null => String::new(),
                _ if nested => String::new(),
                value => format!("`{value}`"),
            };
            writeln!(rows, "| `{name}` | {type_name} | {default} | {} |", help.replace('|', "\\|")).unwrap();
        }
        if !rows.is_empty() {
            write!(self.text, "\n| Field | Type | Default | Meaning |\n|---|---|---|---|\n{rows}").unwrap();
        }
    }

    fn type_of(&self, path: &str, property: &'a Json, below: &mut Vec<Below<'a>>) -> TypeOf {
        let plain = |word: &str| (word.to_owned(), false);
        let schema = self.resolve(property);
        for (definition, word) in [("Duration", "time"), ("Rate", "rate"), ("Bytes", "size")] {
            if std::ptr::eq(schema, &self.root["$defs"][definition]) {
                return plain(word);
            }
        }
        let names = enum_names(schema);
        let kind = match &schema["type"] {
            Json::Array(several) => several[0].as_str().unwrap_or_default(),
            one => one.as_str().unwrap_or_default(),
        };
        let is_table = |schema: &Json| schema.get("properties").is_some() || schema.get("oneOf").is_some();
        match kind {
            "array" if path == "topology.site" => plain("tables as `topology`"),
            _ if path == "topology.scale_out" => plain("table as `topology`"),
            _ if variants(schema).iter().any(|variant| variant["type"] == "array") => {
                let words = |variant| {
                    let variant = self.resolve(variant);
                    match (enum_names(variant), variant["type"].as_str()) {
                        (names, Some("string" | "integer")) if names.is_empty() => {
                            vec![self.type_of(path, variant, &mut Vec::new()).0]
                        }
                        (names, _) => names.into_iter().map(|name| format!("`\"{name}\"`")).collect(),
                    }
                };
                let words: Vec<_> = variants(schema).into_iter().flat_map(words).collect();
                plain(&format!("{} or array", words.join(", ")))
            }
            "object" if schema["additionalProperties"].is_object() => {
                let values = variants(self.resolve(&schema["additionalProperties"]));
                let tables = values.into_iter().map(|value| self.resolve(value));
                let table = tables.into_iter().find(|value| value.get("properties").is_some());
                below.extend(table.map(|schema| Below { path: format!("{path}.NAME"), schema }));
                ("table".to_owned(), table.is_some())
            }
            "array" => {
                let items = self.resolve(&schema["items"]);
                if !is_table(items) {
                    return plain("array");
                }
                below.push(Below { path: format!("{path}[]"), schema: items });
                ("tables".to_owned(), true)
            }
            "string" if names.is_empty() => plain("text"),
            "integer" => plain("whole number"),
            "number" => plain("number"),
            "boolean" => plain("true or false"),
            _ if !names.is_empty() => {
                let listed: Vec<_> = names.iter().map(|name| format!("`\"{name}\"`")).collect();
                let has_tables = variants(schema).iter().any(|variant| variant.get("properties").is_some());
                plain(&format!("{}{}", listed.join(", "), if has_tables { " or a table" } else { "" }))
            }
            _ if ["workload[].scheme", "workload[].between_sites"].contains(&path) => plain("as `scheme`"),
            _ if is_table(schema) => {
                below.push(Below { path: path.to_owned(), schema });
                ("table".to_owned(), true)
            }
            _ => plain("text"),
        }
    }
}

fn variants(schema: &Json) -> Vec<&Json> {
    let list = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
    list.map(|list| list.iter().collect()).unwrap_or_default()
}

/// Returns the names that an enum allows.
fn enum_names(schema: &Json) -> Vec<&str> {
    let of = [schema].into_iter().chain(variants(schema));
    of.flat_map(|one| {
        let several = one["enum"].as_array().into_iter().flatten().filter_map(Json::as_str);
        one["const"].as_str().into_iter().chain(several)
    })
    .collect()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
