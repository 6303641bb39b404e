//! Import of the `topology.txt` of HPCC and its relatives.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Build;
use crate::error::TopoError;
use crate::graph::Topology;

/// The `topology.txt` of HPCC, ConWeave and ns-3 relatives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HpccFile {
    /// The file, relative to the scenario file.
    pub path: PathBuf,
}

/// Reads the text of a topology file; `file` is its name in errors.
pub fn parse_hpcc_topology(file: &str, text: &str) -> Result<Topology, TopoError> {
    let _ = text;
    Err(TopoError::Read { path: file.to_owned(), why: "not supported yet".into() })
}

impl Build for HpccFile {
    fn build(&self, base_dir: &Path) -> Result<Topology, TopoError> {
        let (file, text) = crate::read::read_text(base_dir, &self.path)?;
        parse_hpcc_topology(&file, &text)
    }
}
