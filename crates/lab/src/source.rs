//! What kind of file a lab is to be made from.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use pathweave_topo::{Build, HpccFile, TopoError, Topology, TopologyFile};

/// Bytes of a file that are looked at to tell what it is; a larger one is refused later.
const MOST_BYTES: u64 = 64 << 20;

/// The topology of a file that is one: a topology file of ours, or one of HPCC. `None`: a TOML file that is something
/// else, which is to say a scenario.
pub fn topology_of_file(path: &Path) -> Result<Option<Topology>, TopoError> {
    if path.extension().is_none_or(|extension| extension != "toml") {
        return HpccFile { path: path.to_owned() }.build(Path::new("")).map(Some);
    }
    // What cannot be read is reported by whoever reads it as a scenario.
    let mut text = String::new();
    if let Ok(file) = File::open(path) {
        let _ = file.take(MOST_BYTES).read_to_string(&mut text);
    }
    if !is_topology(&text) {
        return Ok(None);
    }
    TopologyFile { path: path.to_owned() }.build(Path::new("")).map(Some)
}

/// A topology file has links at its top; a scenario has a topology and a workload there, and no links.
fn is_topology(text: &str) -> bool {
    let headers = || text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let key = |line: &str, key: &str| line.split_once('=').is_some_and(|(name, _)| name.trim() == key);
    let scenario =
        |line: &str| line.starts_with("[topology") || line.starts_with("[[workload") || key(line, "topology");
    headers().any(|line| line == "[[link]]" || key(line, "link")) && !headers().any(scenario)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topologies_are_known_by_their_links() {
        assert!(is_topology("hosts = 2\n  [[link]] # the only one\na = \"x\""));
        assert!(is_topology("hosts = 2\nlink = [\n    { a = \"x\", b = \"y\" },\n]\n"));
        assert!(!is_topology("[topology]\nkind = \"star\"\n[[workload]]\n"));
        assert!(!is_topology("[topology]\n# [[link]]\n"));
        assert!(!is_topology("topology = \"testbed\"\n"));
    }
}
