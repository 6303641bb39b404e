//! Detection of the kind of file from which a lab is created.

use std::path::Path;

use pathweave_topo::{
    Build, HpccFile, HtsimFile, SimAiTopology, TopoError, Topology, TopologyFile, is_topology_file,
    read_text_file, topology_format_of_header,
};

/// Largest number of bytes read to detect the kind of a file. A larger file is refused later.
const MOST_BYTES: u64 = 64 << 20;

/// Reads the topology if the file is a topology file of this project or of another simulator. Returns `None` for any
/// other TOML file, which is then a scenario.
pub fn topology_of_file(path: &Path) -> Result<Option<Topology>, TopoError> {
    // A read error is reported later, when the file is read as a topology or a scenario.
    let text = read_text_file(path, MOST_BYTES).unwrap_or_default();
    let (path, here) = (path.to_owned(), Path::new(""));
    let topology = match path.extension().and_then(|extension| extension.to_str()) {
        Some("toml") if !is_topology_file(&text) => return Ok(None),
        Some("toml") => TopologyFile { path }.build(here),
        Some("topo") => HtsimFile { path }.build(here),
        _ if topology_format_of_header(&text) == Some("simai-topology") => SimAiTopology { path }.build(here),
        _ => HpccFile { path }.build(here),
    };
    topology.map(Some)
}
