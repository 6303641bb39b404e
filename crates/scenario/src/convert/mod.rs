//! Conversion between file formats of topologies, flow lists and traces.

mod astra_system;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use pathweave_topo::{
    NodeId, TOPOLOGY_FORMATS, Topology, TopologyFormat, header_words, is_topology_file, read_text_file,
    topology_format_of_header,
};
use pathweave_units::Rate;
use pathweave_workload::{
    FLOW_LISTS, FlowFile, FlowListFormat, Fold, MessageGraph, TRACES, TraceFormat, Traffic, WorkloadConfig,
    WorkloadEnv, check_flows, expand, is_goal_binary,
};

use crate::load::{Changes, Loaded};
use crate::text::{Diagnostics, closest_name, suggestion};

/// Number of hosts that ranks of a trace may occupy during conversion: as many as a topology can have.
const MOST_HOSTS: u32 = pathweave_topo::MAX_NODES;
/// Length of the header that identifies a schedule in binary form.
const GOAL_HEAD_BYTES: u64 = 8;
/// Size of the largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 30;

/// File format.
#[derive(Clone, Copy, Debug)]
pub struct FileFormat {
    /// Name of the format.
    pub name: &'static str,
    /// Description in one line.
    pub help: &'static str,
    /// File name extension that identifies the format, if there is one.
    pub extension: Option<&'static str>,
    /// True if the format can be read.
    pub is_read: bool,
    /// True if the format can be written.
    pub is_written: bool,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Topology(&'static TopologyFormat),
    Flows(&'static FlowListFormat),
    Trace(&'static TraceFormat),
    Scenario,
    /// Settings of ASTRA-sim.
    AstraSystem,
    /// Lines of a workload of this program.
    Workload,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Topology(_) => "a topology",
            Kind::Flows(_) => "a list of flows",
            Kind::Trace(_) => "a trace",
            Kind::Scenario => "a scenario",
            Kind::AstraSystem => "settings of ASTRA-sim",
            Kind::Workload => "lines of a workload",
        }
    }
}

/// Returns all supported formats.
pub fn formats() -> Vec<FileFormat> {
    let topologies = TOPOLOGY_FORMATS.iter().map(|format| FileFormat {
        name: format.name,
        help: format.help,
        extension: format.extension,
        is_read: true,
        is_written: format.write.is_some(),
        kind: Kind::Topology(format),
    });
    let flows = FLOW_LISTS.iter().map(|format| FileFormat {
        name: format.name,
        help: format.help,
        extension: format.extension,
        is_read: true,
        is_written: true,
        kind: Kind::Flows(format),
    });
    let traces = TRACES.iter().map(|format| FileFormat {
        name: format.name,
        help: format.help,
        extension: format.extension,
        is_read: true,
        is_written: format.write.is_some(),
        kind: Kind::Trace(format),
    });
    let scenario = FileFormat {
        name: "scenario",
        help: "Scenario of this program: its topology, or all its messages",
        extension: Some("toml"),
        is_read: true,
        is_written: false,
        kind: Kind::Scenario,
    };
    let settings = FileFormat {
        name: "astra-system",
        help: "system.json of ASTRA-sim: algorithms of collectives, rate of computations",
        extension: Some("json"),
        is_read: true,
        is_written: false,
        kind: Kind::AstraSystem,
    };
    let workload = FileFormat {
        name: "workload",
        help: "Lines of a workload of this program, from astra-system",
        extension: None,
        is_read: false,
        is_written: true,
        kind: Kind::Workload,
    };
    topologies.chain(flows).chain(traces).chain([scenario, settings, workload]).collect()
}

/// Formats and settings of a conversion.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conversion<'a> {
    /// Name of the input format. Default: detected from the extension or the beginning of the file.
    pub from: Option<&'a str>,
    /// Name of the output format. Default: detected from the extension.
    pub to: Option<&'a str>,
    /// `key=value` settings: fields of the scenario, or of the workload that a trace becomes.
    pub set: &'a [String],
}

/// Output of a conversion.
#[derive(Clone, Debug)]
pub enum Written {
    /// Content of a text file.
    Text(String),
    /// Files of a new folder: name and content of each.
    Folder(Vec<(String, Vec<u8>)>),
}

/// Result of a conversion.
#[derive(Clone, Debug)]
pub struct Converted {
    /// Output to write.
    pub written: Written,
    /// Input format.
    pub from: &'static str,
    /// Output format.
    pub to: &'static str,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Content that the output format cannot express and that is left out.
    pub lost: Vec<String>,
}

/// Reason why a conversion failed.
#[derive(Clone, Debug)]
pub enum ConvertError {
    /// The scenario is invalid.
    Scenario(Diagnostics),
    /// Any other error, as a message for the user.
    Other(String),
}

impl From<Diagnostics> for ConvertError {
    fn from(found: Diagnostics) -> Self {
        ConvertError::Scenario(found)
    }
}

impl From<String> for ConvertError {
    fn from(what: String) -> Self {
        ConvertError::Other(what)
    }
}

/// Content that was read from the input.
enum Content {
    Lines(String),
    Topology(Box<Topology>),
    Flows(FlowFile),
    Graph(Arc<MessageGraph>),
}

/// Reads `input` and converts its content to the format of `output`. Writes no file.
///
/// # Errors
///
/// [`ConvertError`] if a format is unknown or cannot be read, written or combined, or if the input is invalid.
pub fn convert(input: &Path, output: &Path, how: Conversion<'_>) -> Result<Converted, ConvertError> {
    let from = match how.from {
        Some(name) => named(Direction::From, name)?,
        None => of_input(input)?,
    };
    let to = match how.to {
        Some(name) => named(Direction::To, name)?,
        None => of_output(output, from.kind)?,
    };
    if !matches!(
        (from.kind, to.kind),
        (Kind::Topology(_) | Kind::Scenario, Kind::Topology(_))
            | (Kind::Flows(_) | Kind::Trace(_) | Kind::Scenario, Kind::Flows(_))
            | (Kind::Trace(_) | Kind::Scenario, Kind::Trace(TraceFormat { write: Some(_), .. }))
            | (Kind::AstraSystem, Kind::Workload)
    ) {
        let what = if let (Kind::Flows(format), Kind::Trace(_)) = (from.kind, to.kind) {
            format!(
                "{} is a list of flows, and {} a trace; convert a scenario with a workload of kind = \"flows\" and file = \"{}\" ({})",
                input.display(),
                to.name,
                input.display(),
                format.name
            )
        } else if !from.is_read {
            format!("{} can be written only", from.name)
        } else if to.is_written {
            format!("{} is {}, and {} {}", input.display(), from.kind.name(), to.name, to.kind.name())
        } else {
            format!("{} can be read only", to.name)
        };
        return Err(what.into());
    }
    if !how.set.is_empty() && !matches!(from.kind, Kind::Trace(_) | Kind::Scenario) {
        return Err(format!("--set {}: {} has no settings", how.set[0], from.name).into());
    }
    let mut converted = Converted {
        written: Written::Text(String::new()),
        from: from.name,
        to: to.name,
        notes: Vec::new(),
        lost: Vec::new(),
    };
    let content = read(input, from, to, how.set, &mut converted)?;
    converted.written = match (&content, to.kind) {
        (Content::Lines(lines), Kind::Workload) => Written::Text(lines.clone()),
        (Content::Topology(topology), Kind::Topology(TopologyFormat { write: Some(write), .. })) => {
            converted.notes.extend(topology.notes().iter().cloned());
            Written::Text(write(topology, &mut converted.lost))
        }
        (Content::Flows(flows), Kind::Flows(format)) => {
            let text = (format.write)(flows, &mut converted.lost);
            Written::Text(text.map_err(|why| format!("{}: {why}", input.display()))?)
        }
        (Content::Graph(graph), Kind::Trace(TraceFormat { write: Some(write), .. })) => {
            let trace =
                write(graph, &prefix_of(output)).map_err(|why| format!("{}: {why}", input.display()))?;
            converted.notes.extend(trace.notes);
            converted.lost.extend(trace.lost);
            Written::Folder(trace.files)
        }
        _ => return Err(format!("{} can be read only", to.name).into()),
    };
    Ok(converted)
}

fn read(
    input: &Path,
    from: FileFormat,
    to: FileFormat,
    set: &[String],
    converted: &mut Converted,
) -> Result<Content, ConvertError> {
    let name = input.display().to_string();
    match from.kind {
        Kind::Topology(format) => {
            let topology = (format.parse)(&name, &text_of(input)?).map_err(|why| why.to_string())?;
            Ok(Content::Topology(Box::new(topology)))
        }
        Kind::Flows(format) => {
            let flows = (format.parse)(&text_of(input)?, &name).map_err(|why| why.to_string())?;
            check_flows(&flows, &name).map_err(|why| why.to_string())?;
            converted.notes.extend(flows.notes.iter().cloned());
            converted.lost.extend(flows.unused.iter().cloned());
            Ok(Content::Flows(flows))
        }
        Kind::AstraSystem => {
            let lines = astra_system::workload_lines(&name, &text_of(input)?, &mut converted.lost)?;
            Ok(Content::Lines(lines))
        }
        Kind::Workload => Err(format!("{} can be written only", from.name).into()),
        Kind::Trace(format) => {
            let (graph, notes) = graph_of_trace(input, format, set)?;
            converted.notes.extend(notes);
            if let Kind::Trace(_) = to.kind {
                return Ok(Content::Graph(Arc::new(graph)));
            }
            flows_of(&graph, None, &name, converted)
        }
        Kind::Scenario => {
            let loaded = Loaded::read(input, &Changes { set: set.to_vec(), ..Changes::default() })?;
            let topology = loaded.topology()?;
            if let Kind::Topology(_) = to.kind {
                return Ok(Content::Topology(Box::new(topology.as_ref().clone())));
            }
            let all = Fold::Never("the file has the messages of all ranks".to_owned());
            let (graph, notes) = loaded.messages(&topology, all)?;
            converted.notes.extend(notes);
            if let Kind::Trace(_) = to.kind {
                return Ok(Content::Graph(graph));
            }
            // Flow lists for an imported topology use the host numbers of its file.
            let ids = loaded.scenario.topology.has_node_ids().then(|| host_ids(&topology)).flatten();
            flows_of(&graph, ids.as_deref(), &name, converted)
        }
    }
}

/// Returns the file name prefix for files in the folder `output`.
fn prefix_of(output: &Path) -> String {
    output.file_stem().map_or_else(|| "trace".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// Returns the host numbers that the names of the hosts contain.
fn host_ids(topology: &Topology) -> Option<Vec<u64>> {
    (0..topology.hosts())
        .map(|host| topology.node_name(NodeId(host)).strip_prefix("host")?.parse().ok())
        .collect()
}

fn flows_of(
    graph: &MessageGraph,
    ids: Option<&[u64]>,
    name: &str,
    converted: &mut Converted,
) -> Result<Content, ConvertError> {
    let mut expanded = expand(graph).map_err(|why| format!("{name}: {why}"))?;
    // A trace is read as if the topology had the largest possible number of hosts.
    expanded.flows.hosts =
        expanded.flows.hosts.filter(|hosts| hosts.count < u64::from(MOST_HOSTS) && ids.is_none());
    if let Some(ids) = ids {
        for flow in &mut expanded.flows.flows {
            (flow.src, flow.dst) = (ids[flow.src as usize], ids[flow.dst as usize]);
        }
    }
    converted.lost.extend(expanded.lost);
    Ok(Content::Flows(expanded.flows))
}

/// Returns the messages of a trace, on as many hosts as it has ranks.
fn graph_of_trace(
    input: &Path,
    format: &TraceFormat,
    set: &[String],
) -> Result<(MessageGraph, Vec<String>), ConvertError> {
    let mut config = toml::Table::new();
    config.insert("kind".to_owned(), toml::Value::String(format.name.to_owned()));
    let (base_dir, file) = match (input.parent(), input.file_name()) {
        (Some(folder), Some(name)) => (folder.to_owned(), name.to_string_lossy().into_owned()),
        _ => (input.to_owned(), ".".to_owned()),
    };
    // Any file of a Chakra trace names the whole trace.
    let is_rank = |(prefix, rank): (&str, &str)| rank.parse::<u32>().is_ok().then(|| prefix.to_owned());
    let file = file.strip_suffix(".et").and_then(|file| is_rank(file.rsplit_once('.')?)).unwrap_or(file);
    config.insert(format.field.to_owned(), toml::Value::String(file));
    for change in set {
        merge(&mut config, setting(change)?);
    }
    let refuse = |why: String| ConvertError::Other(format!("{}: {why}", input.display()));
    let traffic: Traffic = serde_path_to_error::deserialize(toml::Value::Table(config))
        .map_err(|why| refuse(why.into_inner().message().to_owned()))?;
    // Only messages between ranks are listed, so the rate of hosts does not matter.
    let env = WorkloadEnv { base_dir, ..WorkloadEnv::new(MOST_HOSTS, Rate::from_gbps(100)) };
    let workload = pathweave_workload::build(&[WorkloadConfig::new(traffic)], &env)
        .map_err(|why| refuse(why.to_string()))?;
    Ok((workload.graph, workload.notes))
}

/// Parses `key=value`, where the value is TOML or an unquoted text.
fn setting(change: &str) -> Result<toml::Table, String> {
    let Some((key, value)) = change.split_once('=') else {
        return Err(format!("--set {change}: expected KEY=VALUE"));
    };
    let quoted = toml::Value::String(value.to_owned()).to_string();
    [value, &quoted]
        .into_iter()
        .find_map(|value| toml::from_str(&format!("{key} = {value}")).ok())
        .ok_or_else(|| format!("--set {change}: \"{key}\" is no name of a field"))
}

fn merge(into: &mut toml::Table, from: toml::Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(toml::Value::Table(known)), toml::Value::Table(more)) => merge(known, more),
            (_, value) => _ = into.insert(key, value),
        }
    }
}

fn text_of(path: &Path) -> Result<String, String> {
    read_text_file(path, MAX_FILE_BYTES).map_err(|why| format!("cannot read {}: {why}", path.display()))
}

/// Side of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    From,
    To,
}

/// Returns the format with this name. The error lists the formats that can be on this side of a conversion.
fn named(side: Direction, name: &str) -> Result<FileFormat, String> {
    let all = formats();
    all.iter().find(|format| format.name == name).copied().ok_or_else(|| {
        let (option, fits): (_, fn(&FileFormat) -> bool) = match side {
            Direction::From => ("--from", |format| format.is_read),
            Direction::To => ("--to", |format| format.is_written),
        };
        let names: Vec<&str> = all.iter().filter(|format| fits(format)).map(|format| format.name).collect();
        let hint = suggestion(closest_name(name, names.iter().copied()));
        format!("{option}: no format is named \"{name}\"{hint} (there are {})", names.join(", "))
    })
}

fn extension_of(path: &Path) -> Option<String> {
    path.extension().map(|extension| extension.to_string_lossy().to_lowercase())
}

/// Detects the format of an input file.
fn of_input(input: &Path) -> Result<FileFormat, String> {
    let by_name = |name: &str| named(Direction::From, name);
    if !input.is_file() && is_chakra(input) {
        return by_name("chakra");
    }
    let extension = extension_of(input);
    if extension.as_deref() == Some("toml") {
        let is_topology = is_topology_file(&text_of(input)?);
        return by_name(if is_topology { "topology" } else { "scenario" });
    }
    if let Some(format) =
        formats().into_iter().find(|f| f.extension.is_some() && f.extension == extension.as_deref())
    {
        return Ok(format);
    }
    let mut head = Vec::new();
    let read = fs::File::open(input).and_then(|file| file.take(GOAL_HEAD_BYTES).read_to_end(&mut head));
    if read.is_ok() && is_goal_binary(&head) {
        return by_name("goal");
    }
    let text = text_of(input)?;
    if let Some(name) = topology_format_of_header(&text) {
        return by_name(name);
    }
    match header_words(&text)[..] {
        [one] if one.parse::<u64>().is_ok() => {
            let flow = text.lines().filter(|line| !line.trim().is_empty()).nth(1).unwrap_or_default();
            by_name(if flow.split_whitespace().count() == 5 { "conweave-flows" } else { "hpcc-flows" })
        }
        [first, ..] if first.starts_with("HYBRID_") => by_name("simai"),
        _ => Err(format!(
            "{}: neither its extension nor its first line determines the format; set --from",
            input.display()
        )),
    }
}

/// Returns true if `path` is the folder of a Chakra trace, or folder and prefix.
fn is_chakra(path: &Path) -> bool {
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let prefix = path.file_name().filter(|_| !path.is_dir()).map(|name| name.to_string_lossy().into_owned());
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.ends_with(".et") && prefix.as_ref().is_none_or(|prefix| name.starts_with(&format!("{prefix}.")))
    })
}

/// Returns the output format for content of this kind.
fn of_output(output: &Path, content: Kind) -> Result<FileFormat, String> {
    let extension = extension_of(output);
    let name = match (extension.as_deref(), content) {
        (Some("toml"), Kind::AstraSystem) => Some("workload"),
        (Some("txt"), Kind::Topology(_)) => Some("hpcc-topology"),
        (Some("txt"), Kind::Flows(_) | Kind::Trace(_)) => Some("hpcc-flows"),
        (Some(extension), _) => formats()
            .into_iter()
            .find(|format| format.is_written && format.extension == Some(extension))
            .map(|format| format.name),
        (None, _) => None,
    };
    match name {
        Some(name) => named(Direction::To, name),
        None => {
            let written: Vec<&str> = formats().iter().filter(|f| f.is_written).map(|f| f.name).collect();
            Err(format!(
                "{}: its extension does not determine the format; set --to to one of {}",
                output.display(),
                written.join(", ")
            ))
        }
    }
}
