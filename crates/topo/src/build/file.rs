//! Our own topology file (TOML).

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Build;
use crate::error::TopoError;
use crate::graph::Topology;

/// A topology file of pathweave (TOML); see `docs/topology-file.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TopologyFile {
    /// The file, relative to the scenario file.
    pub path: PathBuf,
}

/// Reads the text of a topology file; `file` is its name in errors.
pub fn parse_topology_file(file: &str, text: &str) -> Result<Topology, TopoError> {
    let _ = text;
    Err(TopoError::Read { path: file.to_owned(), why: "not supported yet".into() })
}

impl Build for TopologyFile {
    fn build(&self, base_dir: &Path) -> Result<Topology, TopoError> {
        let (file, text) = crate::read::read_text(base_dir, &self.path)?;
        parse_topology_file(&file, &text)
    }
}
