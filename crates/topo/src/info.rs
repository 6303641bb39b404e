//! What there is to choose from, for `list`, documentation and error texts. Derived from the configuration
//! structs themselves, so that it cannot disagree with them.

use std::sync::LazyLock;

use crate::build::{TopologyConfig, all_presets, kinds};

/// A kind of topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyInfo {
    /// The kind as written in a scenario: `kind = "fat-tree"`.
    pub name: &'static str,
    /// What it is.
    pub help: String,
    /// Its fields.
    pub fields: Vec<FieldInfo>,
}

/// A field of a topology's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldInfo {
    /// The field as written in a scenario.
    pub name: String,
    /// Meaning, unit, and the source of its default.
    pub help: String,
    /// The default as written in a scenario, or `None`: see `required`.
    pub default: Option<String>,
    /// Whether it has to be given. A field that is neither required nor has a default is derived from others
    /// as its help says.
    pub required: bool,
}

/// Named settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// The name: `kind = "preset"`, `name = "udmp-320"`.
    pub name: &'static str,
    /// What it is and where it comes from.
    pub help: &'static str,
    /// The settings.
    pub config: TopologyConfig,
}

/// All kinds of topology.
pub fn topologies() -> &'static [TopologyInfo] {
    static ALL: LazyLock<Vec<TopologyInfo>> =
        LazyLock::new(|| kinds().into_iter().map(|(name, schema)| describe(name, &schema)).collect());
    &ALL
}

/// All presets.
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
