//! Fields of a scenario according to its schema, each with other valid values.

use std::collections::BTreeSet;

use serde_json::Value as Json;

/// Field that holds a value, not a table.
pub(crate) struct Field {
    pub(crate) path: String,
    /// Name of the field by the type of its table: "Server.nic_ports", "Traffic/incast.size".
    pub(crate) key: String,
    /// Other values, as TOML or as text for `--set`.
    pub(crate) candidates: Vec<String>,
}

/// Returns the fields of a scenario below `under`, those of tables in arrays included. Absent tables are left out.
pub(crate) fn fields(schema: &Json, value: &Json, under: &str) -> Vec<Field> {
    walk(schema, value, under).found
}

/// Returns the keys of the fields and tables that [`fields`] visits.
pub(crate) fn visited(schema: &Json, value: &Json, under: &str) -> BTreeSet<String> {
    walk(schema, value, under).visited
}

fn walk<'a>(schema: &'a Json, value: &Json, under: &str) -> Walk<'a> {
    let mut walk = Walk { root: schema, found: Vec::new(), visited: BTreeSet::new() };
    let key = format!("Scenario.{under}");
    walk.field(under, &key, &schema["properties"][under], &value[under]);
    walk.visited.insert(key);
    walk
}

/// Returns the keys of all fields of a schema.
pub(crate) fn known(schema: &Json) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    add_known(schema, "Scenario", &mut all);
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        add_known(definition, name, &mut all);
    }
    all
}

fn add_known(schema: &Json, owner: &str, all: &mut BTreeSet<String>) {
    let owner = owner_of(schema, owner);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if name != "kind" {
            all.insert(format!("{owner}.{name}"));
        }
        add_known(property, &format!("{owner}.{name}"), all);
    }
    for one in variants(schema) {
        add_known(one, &owner, all);
    }
}

/// Returns the name of a table in keys: that of its type, and its kind.
fn owner_of(schema: &Json, owner: &str) -> String {
    match schema["properties"]["kind"]["const"].as_str() {
        Some(kind) => format!("{owner}/{kind}"),
        None => owner.to_owned(),
    }
}

struct Walk<'a> {
    root: &'a Json,
    found: Vec<Field>,
    visited: BTreeSet<String>,
}

impl<'a> Walk<'a> {
    /// Visits a field.
    fn field(&mut self, path: &str, own_key: &str, schema: &'a Json, value: &Json) {
        let (schema, key) = self.resolve(schema, own_key);
        if let Some(items) = value.as_array().filter(|items| items.iter().any(Json::is_object)) {
            let array = variants(schema).into_iter().find(|one| one["type"] == "array");
            let items_schema = array.map_or(&schema["items"], |array| &array["items"]);
            for (index, item) in items.iter().enumerate() {
                self.field(&format!("{path}[{index}]"), &key, items_schema, item);
            }
        } else if let Some(table) = value.as_object() {
            self.table_or_choice((path, own_key), &key, schema, table);
        } else if schema["properties"].is_null() && schema["additionalProperties"].is_null() {
            self.value(path, own_key, schema, value);
        }
    }

    /// Visits a table, or one of several tables: the one with the same kind, or with all of the fields. `key` names the
    /// type of the table.
    fn table_or_choice(
        &mut self,
        (path, own_key): (&str, &str),
        key: &str,
        schema: &'a Json,
        value: &serde_json::Map<String, Json>,
    ) {
        if let (true, Some(property)) =
            (schema["properties"].is_null(), schema.get("additionalProperties").filter(|of| of.is_object()))
        {
            for (name, entry) in value {
                self.field(&format!("{path}.{name}"), key, property, entry);
            }
            return;
        }
        self.table(path, key, schema, value);
        let mut is_named = false;
        for one in variants(schema) {
            let (one, key) = self.resolve(one, key);
            let Some(properties) = one["properties"].as_object() else { continue };
            let kind = &properties.get("kind").unwrap_or(&Json::Null)["const"];
            let fits = match kind {
                Json::Null => value.keys().all(|name| properties.contains_key(name)),
                kind => value.get("kind") == Some(kind),
            };
            if fits {
                is_named |= kind.is_null();
                self.table(path, &key, one, value);
            }
        }
        // A table among names and numbers may give way to one of them.
        if is_named {
            self.value(path, own_key, schema, &Json::Object(value.clone()));
        }
    }

    fn table(&mut self, path: &str, key: &str, schema: &'a Json, value: &serde_json::Map<String, Json>) {
        let owner = owner_of(schema, key);
        let Some(properties) = schema["properties"].as_object() else { return };
        for (name, property) in properties {
            let inner = value.get(name).unwrap_or(&Json::Null);
            let key = format!("{owner}.{name}");
            let before = self.found.len();
            // A preset of a congestion control stands for the values beside it, which are in the scenario.
            let is_choice = name == "preset" && owner.starts_with("CcConfig");
            if name != "kind" && !is_choice && key != "NamedScheme.name" {
                self.field(&format!("{path}.{name}"), &key, property, inner);
            }
            if self.found.len() > before || !inner.is_null() {
                self.visited.insert(key);
            }
        }
    }

    /// Visits a value that is no table.
    fn value(&mut self, path: &str, key: &str, schema: &'a Json, value: &Json) {
        let mut texts: Vec<String> = Vec::new();
        let mut types: Vec<&str> = Vec::new();
        for one in [schema].into_iter().chain(variants(schema)) {
            let one = self.resolve(one, "").0;
            let listed = one["enum"].as_array().into_iter().flatten();
            let names: Vec<&str> = listed.chain([&one["const"]]).filter_map(Json::as_str).collect();
            match &one["type"] {
                Json::String(one) if names.is_empty() => types.push(one),
                Json::Array(all) if names.is_empty() => types.extend(all.iter().filter_map(Json::as_str)),
                _ => {}
            }
            texts.extend(names.into_iter().map(str::to_owned));
        }
        texts.retain(|text| Some(text.as_str()) != value.as_str());
        if path.ends_with(".window") {
            texts.push("{packets=2}".to_owned());
        }
        let candidates = if texts.is_empty() { others(&types, value) } else { texts };
        if !candidates.is_empty() {
            self.found.push(Field { path: path.to_owned(), key: key.to_owned(), candidates });
        }
    }

    /// Follows a reference, including that of an optional field. Returns the name of the type if there is one, and
    /// otherwise `key`.
    fn resolve(&self, schema: &'a Json, key: &str) -> (&'a Json, String) {
        let schema = match &variants(schema)[..] {
            [one, null] if null["type"] == "null" && one["$ref"].is_string() => *one,
            _ => schema,
        };
        match schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
            Some(name) => (&self.root["$defs"][name], name.to_owned()),
            None => (schema, key.to_owned()),
        }
    }
}

/// Returns other values of these types.
fn others(types: &[&str], value: &Json) -> Vec<String> {
    let has = |name: &str| types.contains(&name);
    if let Some(items) = value.as_array().filter(|items| !items.is_empty()) {
        return other_lists(items);
    }
    if has("boolean") {
        let others = [true, false].into_iter().filter(|other| value.as_bool() != Some(*other));
        return others.map(|other| other.to_string()).collect();
    }
    if has("integer") && !value.is_string() {
        let now = value.as_u64().unwrap_or(4);
        let mut all = vec![now * 4, now / 4, now + 1, now.saturating_sub(1), 1, 0, 2, 4, 8, 64, 100_000];
        all.retain(|&other| value.as_u64() != Some(other));
        return all.iter().map(u64::to_string).collect();
    }
    if has("number") {
        let now = value.as_f64().unwrap_or(0.5);
        return [now * 4.0, now / 4.0, now + 0.1, 0.0, 0.5, 1.0, 20.0].map(|x| format!("{x:?}")).to_vec();
    }
    if has("string") {
        return match value.as_str().map(quantity) {
            Some(Some((number, unit))) if number > 0.0 => [4.0, 0.25, 16.0, 1.0 / 16.0, 256.0, 1e-3]
                .iter()
                .map(|factor| format!("{}{unit}", number * factor))
                .collect(),
            Some(Some((_, unit))) => {
                ["5", "500", "50000"].iter().map(|number| format!("{number}{}", larger(unit))).collect()
            }
            // The unit of a field that is not set is not part of the schema, so all units are tried.
            _ => ["5us", "200us", "10KB", "1MB", "1Gbps", "100Mbps"].map(str::to_owned).to_vec(),
        };
    }
    if has("array") {
        return ["[0, 1]", "[1, 0, 2, 3]", "[3]", "[[1, 0], [2, 3]]"].map(str::to_owned).to_vec();
    }
    vec![]
}

/// Returns lists in another order, shorter by one, longer by one, and with another last entry.
fn other_lists(items: &[Json]) -> Vec<String> {
    let reversed = items.iter().rev().cloned().collect();
    let shorter = items[..items.len() - 1].to_vec();
    let longer = items.iter().chain(items.last()).cloned().collect();
    let mut all = vec![reversed, shorter, longer];
    if let Some(last) = items.last().and_then(Json::as_u64) {
        all.push(items[..items.len() - 1].iter().cloned().chain([(last + 1).into()]).collect());
    }
    all.retain(|other: &Vec<Json>| other != items);
    all.iter().map(|list| Json::Array(list.clone()).to_string()).collect()
}

fn larger(unit: &str) -> &str {
    match unit {
        "s" => "us",
        "bps" => "Mbps",
        other => other,
    }
}

fn quantity(text: &str) -> Option<(f64, &str)> {
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    Some((text[..at].parse().ok()?, &text[at..]))
}

fn variants(schema: &Json) -> Vec<&Json> {
    let list = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
    list.into_iter().flatten().collect()
}
