//! Fields of a scenario according to its schema, each with other valid values.

use serde_json::Value as Json;

/// Field that holds a value, not a table.
pub(crate) struct Field {
    pub(crate) path: String,
    /// Other values, as TOML or as text for `--set`.
    pub(crate) candidates: Vec<String>,
}

/// Returns the fields of a scenario below `under`, those of tables in arrays included. Absent tables are left out.
pub(crate) fn fields(schema: &Json, value: &Json, under: &str) -> Vec<Field> {
    let mut walk = Walk { root: schema, found: Vec::new() };
    walk.field(under, &schema["properties"][under], &value[under]);
    walk.found
}

struct Walk<'a> {
    root: &'a Json,
    found: Vec<Field>,
}

impl Walk<'_> {
    fn field(&mut self, path: &str, schema: &Json, value: &Json) {
        let schema = self.resolve(schema).clone();
        let alternatives = variants(&schema);
        let tagged = alternatives.iter().any(|one| self.resolve(one)["properties"].get("kind").is_some());
        if tagged {
            self.table(path, &schema, value);
            for one in alternatives {
                let one = self.resolve(&one).clone();
                if one["properties"]["kind"]["const"] == value["kind"] && !value["kind"].is_null() {
                    self.table(path, &one, value);
                }
            }
        } else if let Some(items) = value.as_array().filter(|items| items.iter().any(Json::is_object)) {
            for (index, item) in items.iter().enumerate() {
                self.field(&format!("{path}[{index}]"), &schema["items"], item);
            }
        } else if schema["properties"].is_object() {
            if value.is_object() {
                self.table(path, &schema, value);
            }
        } else {
            let mut texts: Vec<String> = Vec::new();
            for one in [schema.clone()].iter().chain(&alternatives) {
                let one = self.resolve(one);
                let listed = one["enum"].as_array().into_iter().flatten();
                texts.extend(
                    listed.chain([&one["const"]]).filter_map(|text| text.as_str()).map(str::to_owned),
                );
            }
            texts.retain(|text| Some(text.as_str()) != value.as_str());
            if path.ends_with(".window") {
                texts.push("{packets=2}".to_owned());
            }
            let candidates = if texts.is_empty() { Self::others(&schema, value) } else { texts };
            if !candidates.is_empty() {
                self.found.push(Field { path: path.to_owned(), candidates });
            }
        }
    }

    fn table(&mut self, path: &str, schema: &Json, value: &Json) {
        let Some(properties) = schema["properties"].as_object() else { return };
        for (name, property) in properties.clone() {
            if name != "kind" && name != "name" && name != "preset" {
                self.field(&format!("{path}.{name}"), &property, &value[&name]);
            }
        }
    }

    fn resolve<'s>(&'s self, schema: &'s Json) -> &'s Json {
        let schema = match &variants(schema)[..] {
            [one, null] if null["type"] == "null" => match one["$ref"].as_str() {
                Some(_) => &schema[if schema.get("anyOf").is_some() { "anyOf" } else { "oneOf" }][0],
                None => schema,
            },
            _ => schema,
        };
        match schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
            Some(name) => &self.root["$defs"][name],
            None => schema,
        }
    }

    fn others(schema: &Json, value: &Json) -> Vec<String> {
        let types: Vec<&str> = match &schema["type"] {
            Json::String(one) => vec![one],
            Json::Array(all) => all.iter().filter_map(Json::as_str).collect(),
            _ => vec![],
        };
        let has = |name: &str| types.contains(&name);
        if has("boolean") {
            return vec![
                (!value.as_bool().unwrap_or(false)).to_string(),
                value.as_bool().unwrap_or(true).to_string(),
            ];
        }
        if has("integer") {
            let now = value.as_u64().unwrap_or(4);
            let mut all = vec![now * 4, now / 4, now + 1, now.saturating_sub(1), 1, 0, 2, 8, 64, 100_000];
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
        vec![]
    }
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

fn variants(schema: &Json) -> Vec<Json> {
    let list = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
    list.cloned().unwrap_or_default()
}
