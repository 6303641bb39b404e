//! JSON Schema of scenario files, for editors: the layout of a complete scenario, extended by the shorthands that
//! files may use.

use serde_json::{Value as Json, json};

use crate::model::Scenario;

/// Returns the JSON Schema of scenario files.
pub fn schema() -> Json {
    let mut schema = schemars::schema_for!(Scenario).to_value();
    schema["title"] = json!("pathweave scenario");
    if let Some(required) = schema["required"].as_array_mut() {
        // Both have defaults, which a complete scenario sets explicitly.
        required.retain(|field| field != "name" && field != "scheme");
    }
    let scheme_names: Vec<&str> = pathweave_policy::schemes()
        .iter()
        .flat_map(|info| [info.name].into_iter().chain(info.aliases.iter().copied()))
        .collect();
    let named = json!({
        "type": "string",
        "description": "Name of a scheme, built-in or defined under [schemes.NAME].",
        "examples": scheme_names,
    });
    let complete = schema["$defs"]["NamedScheme"].take();
    let refined = refinement(
        &[&complete],
        "A scheme with changes: its fields replace those of the base.",
        (
            "base",
            json!({ "type": "string", "description": "Name of the scheme to start from.", "examples": scheme_names }),
        ),
    );
    schema["$defs"]["NamedScheme"] = json!({ "anyOf": [named, refined, complete] });
    schema["properties"]["schemes"] = json!({
        "type": "object",
        "description": "Schemes of this scenario's own, by name.",
        "additionalProperties": { "$ref": "#/$defs/NamedScheme" },
    });
    let presets: Vec<&str> = pathweave_topo::presets().iter().map(|preset| preset.name).collect();
    let kinds = schema["$defs"]["TopologyConfig"].take();
    let preset = refinement(
        &kinds["oneOf"].as_array().map(|kinds| kinds.iter().collect::<Vec<_>>()).unwrap_or_default(),
        "A topology preset: further fields replace those of the preset.",
        (
            "preset",
            json!({ "type": "string", "description": "Name of the preset to start from.", "enum": presets }),
        ),
    );
    schema["$defs"]["TopologyConfig"] = json!({ "anyOf": [kinds, preset] });
    let routing = schema["$defs"]["RoutingConfig"].take();
    let kind = json!({ "type": "string", "description": "The kind, with its defaults.", "enum": ["ecmp", "source", "sender-switch", "next-hops"] });
    schema["$defs"]["RoutingConfig"] = json!({ "anyOf": [kind, routing] });
    schema
}

/// Returns the schema of a table that starts from a named item in the field `base` and may set any field of the
/// `complete` tables. None of these fields is required.
fn refinement(complete: &[&Json], description: &str, (base, names): (&str, Json)) -> Json {
    let mut properties = serde_json::Map::new();
    for (name, property) in complete.iter().filter_map(|table| table["properties"].as_object()).flatten() {
        // A nested table may be refined, too, which its own schema would not allow.
        let is_plain = property.get("type").is_some() || property["$ref"].as_str().is_some_and(is_quantity);
        let description = property["description"].clone();
        let loose = if is_plain { property.clone() } else { json!({ "description": description }) };
        properties.insert(name.clone(), loose);
    }
    properties.remove("kind");
    properties.insert(base.to_owned(), names);
    json!({
        "type": "object",
        "description": description,
        "properties": properties,
        "required": [base],
        "additionalProperties": false,
    })
}

fn is_quantity(reference: &str) -> bool {
    ["Bytes", "Duration", "Rate"].iter().any(|name| reference.ends_with(&format!("/{name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_knows_shorthands_and_refuses_unknown_fields() {
        let schema = schema();
        assert_eq!(schema["additionalProperties"], json!(false));
        assert!(schema["properties"].get("schemes").is_some());
        let required: Vec<_> =
            schema["required"].as_array().unwrap().iter().map(|r| r.as_str().unwrap()).collect();
        assert_eq!(required, ["topology", "workload"]);
        let text = schema.to_string();
        assert!(text.contains("udmp-320") && text.contains("fat-tree"));
    }

    /// Editors accept the same files as the program: every shipped scenario, with its shorthands, fits the schema.
    #[test]
    fn shipped_scenarios_fit_the_schema() {
        let shape = crate::text::shape::SchemaCheck::from_schema(schema());
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let mut count = 0;
        let entries = |folder: &std::path::Path| std::fs::read_dir(folder).unwrap();
        for entry in entries(&folder).chain(entries(&folder.join("settings"))) {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                let (tree, _) = crate::text::read_document(&path).unwrap();
                assert_eq!(shape.check(&tree), [], "{}", path.display());
                count += 1;
            }
        }
        assert!(count >= 30, "only {count} scenarios found");
    }

    /// Every reference resolves, although the shorthands rearrange definitions.
    #[test]
    fn references_resolve() {
        fn visit(node: &Json, root: &Json) {
            if let Some(name) = node["$ref"].as_str() {
                let name = name.strip_prefix("#/$defs/").unwrap();
                assert!(root["$defs"].get(name).is_some(), "{name}");
            }
            match node {
                Json::Object(map) => map.values().for_each(|value| visit(value, root)),
                Json::Array(items) => items.iter().for_each(|value| visit(value, root)),
                _ => {}
            }
        }
        let schema = schema();
        visit(&schema, &schema);
    }
}
