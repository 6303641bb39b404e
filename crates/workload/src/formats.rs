//! The formats of files that `pathweave convert` reads and writes messages in. To add one: its parser and writer, and a line
//! here.

use crate::error::FileError;
use crate::files::{
    FlowFile, HtsimDialect, Ns3Dialect, parse_csv, parse_htsim_cm, parse_ns3, process_groups_file,
    write_chakra_rank, write_csv, write_htsim_cm, write_ns3,
};
use crate::graph::MessageGraph;
use crate::to_chakra::to_chakra;

/// Reads a list of flows; the second text is the file's name in errors.
pub type ParseFlows = fn(&str, &str) -> Result<FlowFile, FileError>;
/// Writes a list of flows. Adds what the format cannot say to the list, and fails where nothing can be written.
pub type WriteFlows = fn(&FlowFile, &mut Vec<String>) -> Result<String, String>;

/// A format of lists of flows.
#[derive(Clone, Copy, Debug)]
pub struct FlowListFormat {
    /// Its name.
    pub name: &'static str,
    /// One line about it.
    pub help: &'static str,
    /// The extension of its files, if that tells it.
    pub extension: Option<&'static str>,
    /// Reads one.
    pub parse: ParseFlows,
    /// Writes one.
    pub write: WriteFlows,
}

/// A format of traces: what is done with it is the business of a kind of workload.
#[derive(Clone, Copy, Debug)]
pub struct TraceFormat {
    /// Its name, which is also that of the kind of workload.
    pub name: &'static str,
    /// One line about it.
    pub help: &'static str,
    /// The extension of its files, if that tells it.
    pub extension: Option<&'static str>,
    /// The field of the workload that names the file.
    pub field: &'static str,
    /// Writes one, if that can be done.
    pub write: Option<WriteTrace>,
}

/// Writes a graph of messages as the files of a trace, whose names begin with the text; or says why none can be written.
pub type WriteTrace = fn(&MessageGraph, &str) -> Result<TraceFiles, String>;

/// The files of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceFiles {
    /// Name and content of each.
    pub files: Vec<(String, Vec<u8>)>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Parts of the graph that are not in the files.
    pub lost: Vec<String>,
}

fn write_chakra(graph: &MessageGraph, prefix: &str) -> Result<TraceFiles, String> {
    let trace = to_chakra(graph)?;
    let of_rank = |(rank, nodes)| (format!("{prefix}.{rank}.et"), write_chakra_rank(rank, nodes));
    let mut files: Vec<(String, Vec<u8>)> =
        (0..).zip(trace.ranks.iter().map(Vec::as_slice)).map(of_rank).collect();
    if !trace.groups.is_empty() {
        files.push(("process_groups.json".to_owned(), process_groups_file(&trace.groups).into_bytes()));
    }
    Ok(TraceFiles { files, notes: trace.notes, lost: trace.lost })
}

/// Formats of lists of flows.
pub const FLOW_LISTS: &[FlowListFormat] = &[
    FlowListFormat {
        name: "csv",
        help: "Our list of flows: comma-separated, with what flows wait for",
        extension: Some("csv"),
        parse: parse_csv,
        write: write_csv,
    },
    FlowListFormat {
        name: "hpcc-flows",
        help: "flow.txt of HPCC",
        extension: None,
        parse: |text, file| parse_ns3(text, file, Some(Ns3Dialect::Hpcc)),
        write: |flows, lost| write_ns3(flows, Ns3Dialect::Hpcc, lost),
    },
    FlowListFormat {
        name: "conweave-flows",
        help: "flow.txt of ConWeave",
        extension: None,
        parse: |text, file| parse_ns3(text, file, Some(Ns3Dialect::Conweave)),
        write: |flows, lost| write_ns3(flows, Ns3Dialect::Conweave, lost),
    },
    FlowListFormat {
        name: "htsim-flows",
        help: "Connection matrix of htsim, with triggers; starts as the file tells, written in microseconds",
        extension: Some("cm"),
        parse: |text, file| parse_htsim_cm(text, file, None),
        write: |flows, lost| write_htsim_cm(flows, HtsimDialect::Uet, lost),
    },
    FlowListFormat {
        name: "uet-htsim-flows",
        help: "The same, with starts in microseconds",
        extension: None,
        parse: |text, file| parse_htsim_cm(text, file, Some(HtsimDialect::Uet)),
        write: |flows, lost| write_htsim_cm(flows, HtsimDialect::Uet, lost),
    },
    FlowListFormat {
        name: "csg-htsim-flows",
        help: "The same, with starts in picoseconds",
        extension: None,
        parse: |text, file| parse_htsim_cm(text, file, Some(HtsimDialect::Csg)),
        write: |flows, lost| write_htsim_cm(flows, HtsimDialect::Csg, lost),
    },
];

/// Formats of traces.
pub const TRACES: &[TraceFormat] = &[
    TraceFormat {
        name: "chakra",
        help: "Chakra traces, a file a rank",
        extension: Some("et"),
        field: "trace",
        write: Some(write_chakra),
    },
    TraceFormat {
        name: "goal",
        help: "Schedule of LogGOPSim or ATLAHS",
        extension: Some("goal"),
        field: "file",
        write: None,
    },
    TraceFormat {
        name: "simai",
        help: "Workload file of SimAI",
        extension: None,
        field: "file",
        write: None,
    },
];
