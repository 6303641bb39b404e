//! Lists of available topologies and presets, for `list`, documentation and error texts. They are derived from the
//! configuration structs, so they always agree with them.

use std::sync::LazyLock;

use crate::build::{TopologyConfig, all_presets, kinds};

/// Description of a kind of topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyInfo {
    /// Kind as written in a scenario: `kind = "fat-tree"`.
    pub name: &'static str,
    /// Description of the kind.
    pub help: String,
    /// Fields of its configuration.
    pub fields: Vec<FieldInfo>,
}

/// Field of a topology's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldInfo {
    /// Name of the field as written in a scenario.
    pub name: String,
    /// Meaning, unit, and the source of the default.
    pub help: String,
    /// Default as written in a scenario, or `None` if there is none; see `required`.
    pub default: Option<String>,
    /// True if the field must be given. A field that is neither required nor has a default is derived from others, as
    /// its help describes.
    pub required: bool,
}

/// Named settings of a topology.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// Name of the preset: `kind = "preset"`, `name = "udmp-320"`.
    pub name: &'static str,
    /// Description and source of the preset.
    pub help: &'static str,
    /// Settings of the preset.
    pub config: TopologyConfig,
}

/// Returns all kinds of topology.
pub fn topologies() -> &'static [TopologyInfo] {
    static ALL: LazyLock<Vec<TopologyInfo>> =
        LazyLock::new(|| kinds().into_iter().map(|(name, schema)| describe(name, &schema)).collect());
    &ALL
}

/// Returns all presets.
pub fn presets() -> &'static [Preset] {
    static ALL: LazyLock<Vec<Preset>> = LazyLock::new(|| {
        all_presets().into_iter().map(|(name, help, config)| Preset { name, help, config }).collect()
    });
    &ALL
}

fn describe(name: &'static str, schema: &schemars::Schema) -> TopologyInfo {
    let text = |value: Option<&serde_json::Value>| {
        value.and_then(|v| v.as_str()).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let required = |field: &str| {
        schema.get("required").and_then(|r| r.as_array()).is_some_and(|r| r.iter().any(|f| f == field))
    };
    let properties = schema.get("properties").and_then(|p| p.as_object());
    let fields = properties.into_iter().flatten().map(|(field, property)| FieldInfo {
        name: field.clone(),
        help: text(property.get("description")),
        default: property.get("default").filter(|d| !d.is_null()).map(ToString::to_string),
        required: required(field),
    });
    TopologyInfo { name, help: text(schema.get("description")), fields: fields.collect() }
}
