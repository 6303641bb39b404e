//! Catalogue of all names that a scenario can use, in one form for listings.

use pathweave_policy::{Scheme, Service};
use pathweave_topo::{presets as topology_presets, topologies};
use pathweave_workload::{builtin_cdfs, builtin_simai, workloads};
use serde::Serialize;

pub use crate::named::{collectives, controls, faults, hardware, models, pickers, switching, transports};
use crate::text::value_of;

/// Named item that a scenario can use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Name in a scenario.
    pub name: String,
    /// Alternative names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Description in one line.
    pub help: String,
    /// Source such as a paper; empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Configuration fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
}

/// A field of an [`Entry`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Field {
    /// Name of the field, dotted if nested.
    pub name: String,
    /// Default value with its unit, in TOML syntax; empty if there is none.
    pub default: String,
    /// True if a scenario must set the field.
    pub required: bool,
    /// Meaning, unit, and source of the default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub help: String,
}

/// A list of [`Entry`]s under a heading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Section {
    /// Description of the entries, and the field of a scenario that takes their names.
    pub title: &'static str,
    /// Entries of the section.
    pub entries: Vec<Entry>,
}

/// Returns all schemes, for `scheme = "..."`.
pub fn schemes() -> Vec<Section> {
    let entry = |info: &pathweave_policy::SchemeInfo| Entry {
        name: info.name.to_owned(),
        aliases: info.aliases.iter().map(|&alias| alias.to_owned()).collect(),
        help: info.help.to_owned(),
        source: info.source.to_owned(),
        fields: settings_of(&(info.make)()),
    };
    let entries = pathweave_policy::schemes().iter().map(entry).collect();
    vec![Section {
        title: "Schemes: scheme = \"NAME\", or { base = \"NAME\", ... } with fields of its own",
        entries,
    }]
}

/// Returns all kinds of topology, for `topology.kind`.
pub fn topology_kinds() -> Vec<Section> {
    let field = |field: &pathweave_topo::FieldInfo| Field {
        name: field.name.clone(),
        default: field.default.clone().unwrap_or_default(),
        required: field.required,
        help: field.help.clone(),
    };
    let entries = topologies()
        .iter()
        .map(|info| Entry {
            name: info.name.to_owned(),
            aliases: Vec::new(),
            help: info.help.clone(),
            source: String::new(),
            fields: info.fields.iter().map(field).collect(),
        })
        .collect();
    vec![Section { title: "Topologies: [topology] kind = \"NAME\"", entries }]
}

/// Returns all kinds of workload, for `workload.kind`, and the size distributions they can use.
pub fn workload_kinds() -> Vec<Section> {
    let field = |field: pathweave_workload::FieldInfo| Field {
        help: if field.choices.is_empty() {
            field.help
        } else {
            format!("{} One of {}.", field.help, field.choices.join(", "))
        },
        name: field.name,
        default: field.default,
        required: field.required,
    };
    let kinds = workloads()
        .iter()
        .map(|info| Entry {
            name: info.name.to_owned(),
            aliases: Vec::new(),
            help: info.help.to_owned(),
            source: String::new(),
            fields: info.fields().into_iter().map(field).collect(),
        })
        .collect();
    let sizes = builtin_cdfs().iter().map(|cdf| plain(cdf.name, cdf.help, ""));
    let simai = builtin_simai().iter().map(|file| plain(file.name, file.help, ""));
    vec![
        Section { title: "Workloads: [[workload]] kind = \"NAME\"", entries: kinds },
        Section { title: "Size distributions: sizes = \"NAME\"", entries: sizes.collect() },
        Section { title: "Workload files of SimAI: file = \"NAME\"", entries: simai.collect() },
    ]
}

/// Returns all presets: topologies of published evaluations, and parameters of congestion controls.
pub fn presets() -> Vec<Section> {
    let topologies = topology_presets()
        .iter()
        .map(|preset| Entry { fields: settings(&preset.config), ..plain(preset.name, preset.help, "") });
    let dcqcn = pathweave_policy::presets().iter().map(|preset| {
        let field = |field: pathweave_policy::cc::dcqcn::Field| Field {
            name: field.name.to_owned(),
            default: field.value,
            required: false,
            help: field.help.to_owned(),
        };
        Entry {
            fields: preset.params.fields().into_iter().map(field).collect(),
            ..plain(preset.name, preset.help, preset.source)
        }
    });
    vec![
        Section { title: "Topologies: [topology] preset = \"NAME\"", entries: topologies.collect() },
        Section { title: "DCQCN parameters: scheme.policy.cc.preset = \"NAME\"", entries: dcqcn.collect() },
    ]
}

fn plain(name: &str, help: &str, source: &str) -> Entry {
    Entry {
        name: name.to_owned(),
        aliases: Vec::new(),
        help: help.to_owned(),
        source: source.to_owned(),
        fields: Vec::new(),
    }
}

/// Returns the settings of a scheme that have an effect. Reliable datagrams ignore those of loss recovery and
/// acknowledgements of single packets.
fn settings_of(scheme: &Scheme) -> Vec<Field> {
    let is_datagram = matches!(scheme.service, Service::Datagram(_));
    let inert = |field: &Field| ["recovery.", "acks."].iter().any(|table| field.name.starts_with(table));
    settings(scheme).into_iter().filter(|field| !is_datagram || !inert(field)).collect()
}

/// Returns the fields of a configuration that are set, with their values.
pub(crate) fn settings(config: &impl Serialize) -> Vec<Field> {
    let mut fields = Vec::new();
    leaves("", &value_of(config), &mut fields);
    fields
}

fn leaves(name: &str, value: &toml::Value, out: &mut Vec<Field>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                leaves(&name, value, out);
            }
        }
        leaf => out.push(Field {
            name: name.to_owned(),
            default: leaf.to_string(),
            required: false,
            help: String::new(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_listed_is_named_and_explained_once() {
        for sections in [schemes(), topology_kinds(), workload_kinds(), presets()] {
            for section in sections {
                let mut names: Vec<_> = section.entries.iter().map(|entry| &entry.name).collect();
                assert!(!names.is_empty(), "{}", section.title);
                names.sort();
                names.dedup();
                assert_eq!(names.len(), section.entries.len(), "{}", section.title);
                for entry in section.entries {
                    assert!(!entry.help.is_empty(), "{} has no help", entry.name);
                }
            }
        }
    }

    #[test]
    fn schemes_show_their_settings_with_units() {
        let sections = schemes();
        let rps = sections[0].entries.iter().find(|entry| entry.name == "rps").unwrap();
        let of = |name: &str| {
            rps.fields.iter().find(|field| field.name == name).map(|field| field.default.as_str())
        };
        assert_eq!(of("recovery.kind"), Some("\"timed\""));
        assert_eq!(of("acks.every_packets"), Some("1"));
        // Settings that have no effect with datagrams are not listed.
        let erd = sections[0].entries.iter().find(|entry| entry.name == "erd").unwrap();
        let tables: Vec<&str> = erd.fields.iter().filter_map(|field| field.name.split('.').next()).collect();
        assert!(tables.contains(&"service") && !tables.contains(&"recovery") && !tables.contains(&"acks"));
    }
}
