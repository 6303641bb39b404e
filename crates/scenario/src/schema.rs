//! The JSON Schema of scenario files, for editors: the layout of the complete scenario, loosened by the shorthands
//! that files may use.

use serde_json::{Value as Json, json};

use crate::model::Scenario;

/// The JSON Schema of scenario files.
pub fn schema() -> Json {
    let mut schema = schemars::schema_for!(Scenario).to_value();
    schema["title"] = json!("pathweave scenario");
    if let Some(required) = schema["required"].as_array_mut() {
        // Both have defaults, which a complete scenario spells out.
        required.retain(|field| field != "name" && field != "scheme");
    }
    let scheme_names: Vec<&str> = pathweave_policy::schemes()
        .iter()
        .flat_map(|info| [info.name].into_iter().chain(info.aliases.iter().copied()))
        .collect();
    let refined = json!({
        "type": "object",
        "description": "A scheme with changes: `base`, and fields that replace those of the base.",
        "properties": { "base": { "type": "string", "description": "Name of a scheme." } },
        "required": ["base"],
    });
    let named = json!({
        "type": "string",
        "description": "Name of a scheme, built-in or defined under [schemes.NAME].",
        "examples": scheme_names,
    });
    let complete = schema["$defs"]["NamedScheme"].take();
    schema["$defs"]["NamedScheme"] = json!({ "anyOf": [named, refined, complete] });
    schema["properties"]["schemes"] = json!({
        "type": "object",
        "description": "Schemes of this scenario's own, by name.",
        "additionalProperties": { "$ref": "#/$defs/NamedScheme" },
    });
    let presets: Vec<&str> = pathweave_topo::presets().iter().map(|preset| preset.name).collect();
    let preset = json!({
        "type": "object",
        "description": "A topology preset; further fields replace those of the preset.",
        "properties": { "preset": { "type": "string", "enum": presets } },
        "required": ["preset"],
    });
    let kinds = schema["$defs"]["TopologyConfig"].take();
    schema["$defs"]["TopologyConfig"] = json!({ "anyOf": [kinds, preset] });
    schema
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

    /// Every reference leads somewhere, as the shorthands rearrange definitions.
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
