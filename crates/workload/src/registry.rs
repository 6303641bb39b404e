//! Kinds of workload, as `pathweave list workloads` shows them. All texts come from the configuration types.

use schemars::Schema;
use serde_json::Value;

/// A kind of workload.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadInfo {
    /// Value of `kind`.
    pub name: &'static str,
    /// Description in one line.
    pub help: &'static str,
    pub(crate) schema: fn() -> Schema,
}

/// A field of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldInfo {
    /// Name of the field.
    pub name: String,
    /// Meaning and unit, in one paragraph.
    pub help: String,
    /// True if the field must be given.
    pub required: bool,
    /// Default in TOML syntax. Empty if the field is required or absent by default.
    pub default: String,
    /// Values allowed, if they are a fixed set.
    pub choices: Vec<String>,
}

/// Returns all kinds of workload.
pub fn workloads() -> &'static [WorkloadInfo] {
    crate::kinds::KINDS
}

impl WorkloadInfo {
    /// Returns the full description, with its source if it has one.
    pub fn description(&self) -> String {
        text((self.schema)().get("description"))
    }
    /// Returns the fields: first the required ones, then the others, each sorted by name.
    pub fn fields(&self) -> Vec<FieldInfo> {
        let schema = (self.schema)();
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return Vec::new();
        };
        let field = |(name, property): (&String, &Value)| FieldInfo {
            name: name.clone(),
            help: text(property.get("description")),
            required: required.contains(&name.as_str()),
            default: property.get("default").filter(|d| !d.is_null()).map_or(String::new(), Value::to_string),
            choices: choices(property, &schema),
        };
        let mut fields: Vec<FieldInfo> = properties.iter().map(field).collect();
        fields.sort_by(|a, b| (!a.required, &a.name).cmp(&(!b.required, &b.name)));
        fields
    }
}

/// Returns the constants that an enumeration allows. Follows the reference to its definition.
fn choices(property: &Value, schema: &Schema) -> Vec<String> {
    let name = property.get("$ref").and_then(Value::as_str).and_then(|r| r.rsplit('/').next());
    let definition = name.and_then(|n| schema.get("$defs")?.get(n));
    let Some(variants) = definition.and_then(|d| d.get("oneOf")).and_then(Value::as_array) else {
        return Vec::new();
    };
    variants.iter().filter_map(|v| v.get("const")?.as_str()).map(str::to_owned).collect()
}

/// Returns the text of a doc comment, with its lines joined.
fn text(description: Option<&Value>) -> String {
    let lines = description.and_then(Value::as_str).unwrap_or_default().lines();
    lines.map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_and_field_is_documented() {
        assert_eq!(workloads().len(), 15);
        for kind in workloads() {
            assert!(!kind.help.is_empty() && !kind.description().is_empty(), "{}", kind.name);
            for field in kind.fields() {
                assert!(!field.help.is_empty(), "{}.{}", kind.name, field.name);
            }
        }
    }

    #[test]
    fn fields_of_the_permutation() {
        let fields = workloads()[0].fields();
        let of = |name: &str| fields.iter().find(|f| f.name == name).unwrap();
        assert!(of("size").required && of("size").default.is_empty());
        assert_eq!(of("repetitions").default, "1");
        assert_eq!(of("pattern").default, "\"random\"");
        assert_eq!(of("pattern").choices, ["random", "inter-rack", "inter-pod", "shift"]);
        assert!(of("shift").default.is_empty() && !of("shift").required);
    }
}
