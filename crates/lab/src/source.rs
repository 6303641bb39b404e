//! What kind of file a lab is to be made from.

use std::path::Path;

use pathweave_topo::{
    Build, HpccFile, HtsimFile, SimAiTopology, TopoError, Topology, TopologyFile, is_topology_file,
    read_text_file, topology_format_of_header,
};

/// Bytes of a file that are looked at to tell what it is; a larger one is refused later.
const MOST_BYTES: u64 = 64 << 20;

/// The topology of a file that is one: a topology file of ours, or one of another simulator. `None`: a TOML file that is
/// something else, which is to say a scenario.
pub fn topology_of_file(path: &Path) -> Result<Option<Topology>, TopoError> {
    // What cannot be read is reported where it is read as a topology or a scenario.
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
