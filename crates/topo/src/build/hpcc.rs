//! Import of the `topology.txt` of HPCC and of the simulators that adopted it.
//!
//! The first line has the numbers of nodes, switches and links. The ids of the switches follow, then one line
//! `src dst rate delay error_rate` for each link. Text after the links is ignored, unless it is a further link
//! between the nodes. Nodes that are not switches are hosts.
//!
//! Hosts keep the order of their ids. If the ids of hosts are not `0..hosts`, hosts are renumbered in that order, and
//! their names keep the ids of the file: "host5" is the node that the file calls 5. Switches are named likewise:
//! "switch320".

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Build;
use super::word_lines::{LineReader, is_simai};
use crate::error::TopoError;
use crate::graph::Topology;
use crate::read::read_text;

/// The `topology.txt` of HPCC, ConWeave and other ns-3 simulators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HpccFile {
    /// The file, relative to the scenario file.
    pub path: PathBuf,
}

impl Build for HpccFile {
    fn build(&self, base_dir: &Path) -> Result<Topology, TopoError> {
        let (file, text) = read_text(base_dir, &self.path)?;
        parse_hpcc_topology(&file, &text)
    }

    fn file(&mut self) -> Option<&mut PathBuf> {
        Some(&mut self.path)
    }

    fn has_node_ids(&self) -> bool {
        true
    }
}

/// Parses the text of a `topology.txt`. `file` is its name in errors.
pub fn parse_hpcc_topology(file: &str, text: &str) -> Result<Topology, TopoError> {
    let mut lines = LineReader::new(file, text);
    let header = lines.expect("a header with the numbers of nodes, switches and links")?;
    if let Some(gpu) = is_simai(text) {
        let what = format!(
            "the header has 6 words and ends in \"{gpu}\": this is SimAI's variant of the format, kind = \"simai\"; HPCC's \
             header is three numbers: nodes, switches, links"
        );
        return Err(header.refuse(5, what));
    }
    let nodes = header.node_count(0)?;
    header.has_columns("the header", &["nodes", "switches", "links"])?;
    let switches = header.number(1, "the number of switches", 0, u64::from(nodes - 1))? as u32;
    let links = header.link_count(2)?;
    lines.read_body(nodes, &[("switch", switches)], links)
}
