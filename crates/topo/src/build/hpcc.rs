//! Import of the `topology.txt` of HPCC and the simulators that took it over.
//!
//! The format is a stream of words: numbers of nodes, switches and links; the ids of the switches; then
//! `src dst rate delay error_rate` for each link. What follows the links is prose and ignored, unless it is
//! a further link between the nodes. Nodes that are no switches are hosts.
//!
//! Hosts keep the order of their ids. Where the ids of hosts are not `0..hosts`, they are renumbered in that
//! order, and their names keep the id of the file: "host5" is the node that the file calls 5. Switches are
//! named likewise: "switch320".

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Build;
use super::words::{Words, is_simai};
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

/// Reads the text of a `topology.txt`; `file` is its name in errors.
pub fn parse_hpcc_topology(file: &str, text: &str) -> Result<Topology, TopoError> {
    let mut words = Words::new(file, text);
    if let Some(gpu) = is_simai(text) {
        let what = format!(
            "the header has 6 words and ends in \"{gpu}\": this is SimAI's variant of the format, kind = \"simai\"; HPCC's \
             header is three numbers: nodes, switches, links"
        );
        return Err(words.refuse(gpu.as_ptr() as usize - text.as_ptr() as usize, what));
    }
    let nodes = words.node_count()?;
    let switches = words.number("the number of switches", 0, u64::from(nodes - 1))? as u32;
    let links = words.link_count()?;
    words.network(nodes, &[("switch", switches)], links)
}
