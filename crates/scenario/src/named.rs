//! Names in the JSON Schema of scenarios: the values of a field that has named choices, with their fields. New choices
//! appear in listings without further lines.

use std::sync::LazyLock;

use pathweave_topo::{Server, server_models};
use serde_json::Value as Json;

use crate::catalogue::{Entry, Field, Section, settings};
use crate::schema::schema;

/// A definition of the schema, and the heading of its names.
type Definition = (&'static str, &'static str);

/// Returns congestion controls, and presets of TIMELY.
pub fn controls() -> Vec<Section> {
    sections(&[
        ("CcConfig", "Congestion controls: scheme.policy.cc.kind = \"NAME\""),
        ("TimelyPreset", "Parameters of TIMELY: scheme.policy.cc.preset = \"NAME\""),
        ("NsccProfile", "Profiles of NSCC: scheme.policy.cc.profile = \"NAME\""),
    ])
}

/// Returns path pickers, and policies that decide rate and path together.
pub fn pickers() -> Vec<Section> {
    sections(&[
        ("PickerConfig", "Path pickers: scheme.policy.picker = \"NAME\""),
        ("PolicyConfig", "Policies, which decide rate and path together: scheme.policy.kind = \"NAME\""),
    ])
}

/// Returns the other parts of schemes.
pub fn transports() -> Vec<Section> {
    sections(&[
        ("Recovery", "Loss recoveries: scheme.recovery.kind = \"NAME\""),
        ("Service", "Services of queue pairs: scheme.service.kind = \"NAME\""),
        ("Reordering", "Reactions of receivers to gaps: scheme.reordering.kind = \"NAME\""),
        ("CnpPolicy", "Congestion notifications: scheme.cnp.kind = \"NAME\""),
        ("Framing", "Formats of packets: network.framing = \"NAME\""),
    ])
}

/// Returns load balancing of switches, and routes.
pub fn switching() -> Vec<Section> {
    sections(&[
        ("Forwarding", "Load balancing of switches: switch.forwarding.kind = \"NAME\""),
        ("RoutingConfig", "Routing: routing.kind = \"NAME\""),
        ("PathSetConfig", "Sets of explicit paths: routing.paths.kind = \"NAME\""),
        ("Asic", "Chips of switches: asic = \"NAME\" in [[switch.for]]"),
    ])
}

/// Returns faults, and delays of computations.
pub fn faults() -> Vec<Section> {
    sections(&[
        ("FaultConfig", "Faults: [[fault]] kind = \"NAME\""),
        ("Jitter", "Delays of computations: workload.stragglers.jitter.kind = \"NAME\""),
    ])
}

/// Returns models that are trained.
pub fn models() -> Vec<Section> {
    sections(&[
        ("TransformerModel", "Transformers: model = \"NAME\" of kind = \"transformer\""),
        ("Model", "Models of layers: model = \"NAME\" of kind = \"training\""),
    ])
}

/// Returns models of servers, GPUs, CPUs and scale-up networks.
pub fn hardware() -> Vec<Section> {
    let title = "Servers: topology.server.preset = \"NAME\" of kind = \"cluster\"";
    let servers =
        Section { title, entries: server_models().map(|(name, server)| model(name, &server)).collect() };
    let mut all = vec![servers];
    all.extend(sections(&[
        ("GpuModel", "GPUs that compute: gpu = \"NAME\" of kind = \"transformer\""),
        ("Gpu", "GPUs as collectives of NCCL depend on them: gpu = \"NAME\" of kind = \"nccl\""),
        ("Cpu", "CPUs, likewise: cpu = \"NAME\" of kind = \"nccl\""),
        ("ScaleUpConfig", "Scale-up networks of servers: topology.server.scale_up.kind = \"NAME\""),
    ]));
    all
}

/// Returns the entry of a server model, described by its settings.
fn model(name: &str, server: &Server) -> Entry {
    let count = |number: Option<u32>, one: &str| match number.unwrap_or(1) {
        1 => format!("1 {one}"),
        many => format!("{many} {one}s"),
    };
    let rate = server.port_rate.map_or(String::new(), |rate| format!(" of {rate}"));
    let domain =
        server.domain.map_or(String::new(), |gpus| format!("; one scale-up network joins {gpus} GPUs"));
    let (gpus, nics) = (count(server.gpus, "GPU"), count(server.nics, "NIC"));
    let help = format!("{gpus}, {nics} with {}{rate}{domain}.", count(server.nic_ports, "port"));
    let fields = settings(server);
    Entry { name: name.to_owned(), aliases: Vec::new(), help, source: "docs/clusters.md".to_owned(), fields }
}

/// Returns collectives and their algorithms.
pub fn collectives() -> Vec<Section> {
    sections(&[
        ("Operation", "Collectives: operation = \"NAME\""),
        ("Algorithm", "Algorithms: algorithm = \"NAME\" of kind = \"collective\""),
        ("NcclAlgorithm", "Algorithms of NCCL: algorithm = \"NAME\" of kind = \"nccl\""),
        ("NcclProtocol", "Protocols of NCCL: protocol = \"NAME\" of kind = \"nccl\""),
    ])
}

static SCHEMA: LazyLock<Json> = LazyLock::new(schema);

fn sections(definitions: &[Definition]) -> Vec<Section> {
    let section = |&(name, title): &Definition| Section { title, entries: entries(definition(name)) };
    definitions.iter().map(section).collect()
}

fn definition(name: &str) -> &'static Json {
    &SCHEMA["$defs"][name]
}

/// Returns the schema behind a reference, or the schema itself.
fn resolved(schema: &'static Json) -> &'static Json {
    schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")).map_or(schema, definition)
}

fn alternatives(schema: &'static Json) -> impl Iterator<Item = &'static Json> {
    ["oneOf", "anyOf"].into_iter().flat_map(|key| schema[key].as_array().into_iter().flatten())
}

/// Returns the named alternatives of a definition: constants, tables with a constant `kind`, and tables with one key
/// that is the name.
fn entries(definition: &'static Json) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    for choice in alternatives(definition) {
        let nested = entries(choice);
        match entry(choice) {
            Some(entry) if !found.iter().any(|known| known.name == entry.name) => found.push(entry),
            _ => found.extend(nested),
        }
    }
    found
}

fn entry(choice: &'static Json) -> Option<Entry> {
    let help = text(&choice["description"]);
    let (name, fields) = if let Some(name) = choice["const"].as_str() {
        (name, Vec::new())
    } else if let Some(name) = choice["properties"]["kind"]["const"].as_str() {
        (name, fields(choice))
    } else {
        let (name, inside) = choice["properties"].as_object().filter(|one| one.len() == 1)?.iter().next()?;
        (name.as_str(), fields(resolved(inside)))
    };
    Some(Entry { name: name.to_owned(), aliases: Vec::new(), help, source: String::new(), fields })
}

fn fields(table: &'static Json) -> Vec<Field> {
    let required = |name: &str| {
        let all = table["required"].as_array();
        all.is_some_and(|all| all.iter().any(|field| field.as_str() == Some(name)))
    };
    let field = |(name, schema): (&String, &'static Json)| Field {
        name: name.clone(),
        default: default(&schema["default"]),
        required: required(name),
        help: described(schema),
    };
    let all = table["properties"].as_object().into_iter().flatten();
    all.filter(|(name, _)| *name != "kind").map(field).collect()
}

/// Returns the description of a field with the names that it may have, if there are few.
fn described(schema: &'static Json) -> String {
    let inner = alternatives(schema).map(resolved).chain([resolved(schema)]);
    let names: Vec<String> =
        inner.flat_map(entries).filter(|entry| entry.fields.is_empty()).map(|entry| entry.name).collect();
    let help = text(&schema["description"]);
    let told = names.iter().all(|name| help.contains(name.as_str()));
    if told { help } else { format!("{help} One of {}.", names.join(", ")) }
}

fn default(value: &Json) -> String {
    if value.is_null() { String::new() } else { value.to_string() }
}

/// Returns a description without its line breaks.
fn text(description: &Json) -> String {
    description.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    #[test]
    fn names_have_help_and_stand_once_in_a_section() {
        for sections in
            [controls(), pickers(), transports(), switching(), faults(), models(), hardware(), collectives()]
        {
            for section in sections {
                assert!(!section.entries.is_empty(), "{}", section.title);
                let mut names: Vec<_> = section.entries.iter().map(|entry| &entry.name).collect();
                names.sort();
                names.dedup();
                assert_eq!(names.len(), section.entries.len(), "{}", section.title);
                let silent: Vec<_> = section.entries.iter().filter(|entry| entry.help.is_empty()).collect();
                assert!(silent.is_empty(), "{silent:?} in {}", section.title);
            }
        }
    }

    #[test]
    fn fields_have_default_and_meaning() {
        let faults = faults();
        let flap = faults[0].entries.iter().find(|entry| entry.name == "link-flap").unwrap();
        let times = flap.fields.iter().find(|field| field.name == "times").unwrap();
        assert!(times.required && times.help.starts_with("Number of failures"), "{times:?}");
        let pickers = pickers();
        let recycled = pickers[0].entries.iter().find(|entry| entry.name == "recycled").unwrap();
        assert!(!recycled.fields.is_empty(), "{recycled:?}");
        assert!(pickers[0].entries.iter().any(|entry| entry.name == "ecmp"));
    }

    #[test]
    fn servers_are_described_by_their_settings() {
        let all = hardware();
        let of = |name: &str| all[0].entries.iter().find(|entry| entry.name == name).unwrap();
        assert_eq!(of("p5").help, "8 GPUs, 32 NICs with 1 port of 100Gbps.");
        let rack = of("gb200-nvl72");
        assert_eq!(rack.help, "4 GPUs, 4 NICs with 1 port of 400Gbps; one scale-up network joins 72 GPUs.");
        let rate = rack.fields.iter().find(|field| field.name == "scale_up.rate").unwrap();
        assert_eq!(rate.default, "\"7200Gbps\"");
    }

    /// Tables of a scenario that have a `kind` are listed by it.
    #[test]
    fn each_kind_of_a_table_is_listed() {
        let listed = [
            catalogue::workload_kinds(),
            catalogue::topology_kinds(),
            controls(),
            pickers(),
            transports(),
            switching(),
            faults(),
            hardware(),
        ];
        let known: Vec<String> = listed
            .iter()
            .flatten()
            .flat_map(|section| &section.entries)
            .map(|entry| entry.name.clone())
            .collect();
        for (definition, schema) in SCHEMA["$defs"].as_object().unwrap() {
            let kinds = alternatives(schema).filter_map(|one| one["properties"]["kind"]["const"].as_str());
            for kind in kinds {
                assert!(known.iter().any(|name| name == kind), "{kind} of {definition} is not listed");
            }
        }
    }
}
