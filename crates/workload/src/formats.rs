//! File formats that `pathweave convert` reads and writes. A new format needs its parser and writer, and an
//! entry here.

use crate::error::FileError;
use crate::files::{
    FlowFile, HtsimDialect, Ns3Dialect, parse_csv, parse_htsim_cm, parse_ns3, process_groups_file,
    write_chakra_rank, write_csv, write_htsim_cm, write_ns3,
};
use crate::graph::MessageGraph;
use crate::to_chakra::to_chakra;

/// Parser of a flow list. The second text is the file's name in error messages.
pub type ParseFlows = fn(&str, &str) -> Result<FlowFile, FileError>;
/// Writer of a flow list. It adds information that the format cannot express to the list. It fails if nothing
/// can be written.
pub type WriteFlows = fn(&FlowFile, &mut Vec<String>) -> Result<String, String>;

/// A format of flow lists.
#[derive(Clone, Copy, Debug)]
pub struct FlowListFormat {
    /// Name of the format.
    pub name: &'static str,
    /// Description in one line.
    pub help: &'static str,
    /// File extension that identifies the format, if any.
    pub extension: Option<&'static str>,
    /// Parser.
    pub parse: ParseFlows,
    /// Writer.
    pub write: WriteFlows,
}

/// A format of traces. The workload kind of the same name reads it.
#[derive(Clone, Copy, Debug)]
pub struct TraceFormat {
    /// Name of the format and of its workload kind.
    pub name: &'static str,
    /// Description in one line.
    pub help: &'static str,
    /// File extension that identifies the format, if any.
    pub extension: Option<&'static str>,
    /// Field of the workload that names the file.
    pub field: &'static str,
    /// Writer, if the format can be written.
    pub write: Option<WriteTrace>,
}

/// Writes a graph as the files of a trace, whose names begin with the given prefix. The error is the reason
/// why it cannot.
pub type WriteTrace = fn(&MessageGraph, &str) -> Result<TraceFiles, String>;

/// Files of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceFiles {
    /// Name and content of each file.
    pub files: Vec<(String, Vec<u8>)>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Information about the graph that the files lack.
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

/// Formats of flow lists.
pub const FLOW_LISTS: &[FlowListFormat] = &[
    FlowListFormat {
        name: "csv",
        help: "Our list of flows: comma-separated, with dependencies",
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
        help: "Connection matrix of htsim, with triggers; starts in the unit of the file, written in \
               microseconds",
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
