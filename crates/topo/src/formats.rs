//! Formats of topology files that `pathweave convert` reads and writes. To add a format, write its parser, its writer
//! if it has one, and an entry here.

use crate::build::{
    header_words, parse_astra_network, parse_hpcc_topology, parse_htsim_topology, parse_laps_topology,
    parse_simai_topology, parse_topology_file,
};
use crate::error::TopoError;
use crate::graph::Topology;
use crate::write::{write_hpcc, write_own};

/// Writes a topology. Features that the format cannot express are appended to the list.
pub type WriteTopology = fn(&Topology, &mut Vec<String>) -> String;

/// Format of topology files.
#[derive(Clone, Copy, Debug)]
pub struct TopologyFormat {
    /// Name of the format.
    pub name: &'static str,
    /// Description in one line.
    pub help: &'static str,
    /// File extension, if it identifies the format.
    pub extension: Option<&'static str>,
    /// Parses a file. The first argument is the file's name in errors, the second its text.
    pub parse: fn(&str, &str) -> Result<Topology, TopoError>,
    /// Writes a topology, if the format can be written.
    pub write: Option<WriteTopology>,
}

/// All formats of topology files.
pub const TOPOLOGY_FORMATS: &[TopologyFormat] = &[
    TopologyFormat {
        name: "topology",
        help: "Our topology file (TOML)",
        extension: Some("toml"),
        parse: parse_topology_file,
        write: Some(write_own),
    },
    TopologyFormat {
        name: "hpcc-topology",
        help: "topology.txt of HPCC and ConWeave",
        extension: None,
        parse: parse_hpcc_topology,
        write: Some(write_hpcc),
    },
    TopologyFormat {
        name: "simai-topology",
        help: "Topology of SimAI: GPUs, NVSwitches, switches",
        extension: None,
        parse: parse_simai_topology,
        write: None,
    },
    TopologyFormat {
        name: "laps-topology",
        help: "TOPO.txt of LAPS's simulator",
        extension: None,
        parse: parse_laps_topology,
        write: None,
    },
    TopologyFormat {
        name: "htsim-topology",
        help: "Shape of a Clos in htsim's format",
        extension: Some("topo"),
        parse: parse_htsim_topology,
        write: None,
    },
    TopologyFormat {
        name: "astra-network",
        help: "network.yml of ASTRA-sim's analytical backend",
        extension: Some("yml"),
        parse: parse_astra_network,
        write: None,
    },
];

/// Returns true if a TOML text is a topology file and not a scenario. A topology file has links at the top level; a
/// scenario has a topology and workloads.
pub fn is_topology_file(text: &str) -> bool {
    let headers = || text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let key = |line: &str, key: &str| line.split_once('=').is_some_and(|(name, _)| name.trim() == key);
    let scenario =
        |line: &str| line.starts_with("[topology") || line.starts_with("[[workload") || key(line, "topology");
    headers().any(|line| line == "[[link]]" || key(line, "link")) && !headers().any(scenario)
}

/// Identifies the format of a topology by its header, if its extension does not. Six words of which the last is not a
/// number mean SimAI, three numbers HPCC. Two numbers, followed by a line with five, mean LAPS.
pub fn topology_format_of_header(text: &str) -> Option<&'static str> {
    let words = header_words(text);
    let numbers = words.iter().filter(|word| word.parse::<u64>().is_ok()).count();
    match (words.len(), numbers) {
        (3, 3) => Some("hpcc-topology"),
        (6, 5) => Some("simai-topology"),
        (2, 2) => {
            let link = text.lines().filter(|line| !line.trim().is_empty()).nth(1)?;
            (link.split_whitespace().take(6).count() == 5).then_some("laps-topology")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topologies_are_known_by_their_links() {
        assert!(is_topology_file("hosts = 2\n  [[link]] # the only one\na = \"x\""));
        assert!(is_topology_file("hosts = 2\nlink = [\n    { a = \"x\", b = \"y\" },\n]\n"));
        assert!(!is_topology_file("[topology]\nkind = \"star\"\n[[workload]]\n"));
        assert!(!is_topology_file("[topology]\n# [[link]]\n"));
        assert!(!is_topology_file("topology = \"testbed\"\n"));
    }

    #[test]
    fn headers_tell_formats() {
        assert_eq!(topology_format_of_header("\n336 16 1024\n"), Some("hpcc-topology"));
        assert_eq!(topology_format_of_header("9 2 2 3 12 H100\n"), Some("simai-topology"));
        assert_eq!(topology_format_of_header("1 2\n0 1 0 100 1\n1 2 0 100 1\n"), Some("laps-topology"));
        assert_eq!(topology_format_of_header("0 0\n1000 0.5\n"), None, "sizes and their distribution");
        assert_eq!(topology_format_of_header("2\n2 1 3 100 5 2\n"), None);
    }
}
