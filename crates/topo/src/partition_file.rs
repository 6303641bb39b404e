//! Partition files, which assign each node to a shard of a run and so to a thread or process. Each line has the name
//! of a node and the number of its shard, from 0. Text after `#` is ignored. Hosts that are not listed belong to the
//! shard of their switch.

use std::path::Path;

use crate::error::{Location, TopoError};
use crate::graph::{NodeId, Topology};
use crate::read::read_text;

/// Returns the shards of all nodes of a topology, hosts first, as specified in the file at `path`.
///
/// # Errors
/// The file cannot be read, names a node that does not exist or lists one twice, or omits a switch.
pub fn read_partition(topology: &Topology, path: &Path, base_dir: &Path) -> Result<Vec<u16>, TopoError> {
    let (file, text) = read_text(base_dir, path)?;
    parse_partition(&file, &text, topology)
}

/// Parses the text of a partition file. `file` is its name in errors.
pub fn parse_partition(file: &str, text: &str, topology: &Topology) -> Result<Vec<u16>, TopoError> {
    let at = |line: u32, what: String| TopoError::File {
        at: Location { file: file.to_owned(), line, column: 0 },
        what,
    };
    let mut of_node: Vec<Option<(u32, u16)>> = vec![None; topology.nodes() as usize];
    for (line, content) in (1u32..).zip(text.lines()) {
        let content = content.split('#').next().unwrap_or_default();
        let words: Vec<&str> = content.split_whitespace().take(3).collect();
        let (name, part) = match words[..] {
            [] => continue,
            [name, part] => (name, part),
            _ => {
                return Err(at(
                    line,
                    "expected a node and the number of its part, such as \"leaf0 3\"".into(),
                ));
            }
        };
        let node = topology.node_by_name(name).map_err(|why| at(line, why.to_string()))?;
        let part: u16 = part.parse().map_err(|_| {
            at(line, format!("the part of {name} is \"{part}\"; expected a number from 0 to {}", u16::MAX))
        })?;
        if let Some((first, _)) = of_node[node.index()].replace((line, part)) {
            return Err(at(line, format!("the part of {name} is in line {first} already")));
        }
    }
    let part = |node: NodeId| of_node[node.index()].map(|(_, part)| part);
    let of_all = (0..topology.nodes()).map(NodeId).map(|node| {
        let with = || topology.ports(node).first().filter(|_| topology.is_host(node)).map(|port| port.peer);
        part(node).or_else(|| part(with()?)).ok_or_else(|| {
            let name = topology.node_name(node);
            let what = format!("{name} has no part; every switch needs one, and every host that is at none");
            TopoError::File { at: Location::of_offset(file, text, text.len()), what }
        })
    });
    of_all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{Build, LeafSpine};

    #[test]
    fn hosts_go_with_their_switch_unless_they_are_named() {
        let topology = LeafSpine::new(2, 1, 2).build(Path::new(".")).expect("a leaf-spine");
        let text = "leaf0 0\nleaf1 1 # the other rack\n\n# shared\nspine0 0\nhost1 1\n";
        assert_eq!(parse_partition("file", text, &topology).expect("sound"), [0, 1, 1, 1, 0, 1, 0]);
        for (text, expected) in [
            ("leaf0 0\nleaf2 1\n", "file:2: no node is named \"leaf2\"; did you mean \"leaf0\"?"),
            ("leaf0 0\nleaf1 x\n", "file:2: the part of leaf1 is \"x\"; expected a number from 0 to 65535"),
            ("leaf0 -1\n", "file:1: the part of leaf0 is \"-1\""),
            ("leaf0\n", "file:1: expected a node and the number of its part"),
            ("leaf0 0\nleaf0 1\n", "file:2: the part of leaf0 is in line 1 already"),
            ("leaf0 0\nleaf1 0\n", "spine0 has no part"),
        ] {
            let why = parse_partition("file", text, &topology).expect_err("it is wrong").to_string();
            assert!(why.contains(expected), "{why}");
        }
    }
}
