//! Paths of LAPS's simulator, `laps-PIT.txt`. A line has one path: its number, a priority, the ports it takes and the
//! nodes it visits, including both hosts.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use pathweave_units::HostId;

use super::config::LapsPathFile;
use super::search::{Hop, MAX_PATHS, MAX_SWITCHES, PathSearch, PathSets, RequestedPairs};
use crate::error::{Location, TopoError};
use crate::graph::{NodeId, Topology};
use crate::read::read_text;

pub(super) fn build(
    config: &LapsPathFile,
    plan: PathSearch<'_>,
    base_dir: &Path,
) -> Result<PathSets, TopoError> {
    let (file, text) = read_text(base_dir, &config.path)?;
    parse(&file, &text, plan)
}

/// Parses the text of a `laps-PIT.txt` for a topology that keeps its ids. `file` is its name in errors.
pub fn parse_laps_paths(
    file: &str,
    text: &str,
    topology: &Topology,
    wanted: RequestedPairs<'_>,
) -> Result<PathSets, TopoError> {
    parse(file, text, PathSearch::new(topology, wanted)?)
}

/// Paths from one host to another, in the order of the file: NIC ports of both hosts, and links between switches.
struct PathsOfPair {
    line: u32,
    paths: Vec<([u8; 2], Vec<Hop>)>,
}

fn parse(file: &str, text: &str, plan: PathSearch<'_>) -> Result<PathSets, TopoError> {
    let topology = plan.topology;
    let at = |line: u32, what: String| TopoError::File {
        at: Location { file: file.to_owned(), line, column: 0 },
        what,
    };
    let nodes = nodes_by_id(topology).map_err(|what| at(0, what))?;
    // Lines of path numbers. The map is never iterated.
    let mut line_of: HashMap<u64, u32> = HashMap::new();
    let mut pairs: BTreeMap<(HostId, HostId), PathsOfPair> = BTreeMap::new();
    for (line, content) in (1u32..).zip(text.lines()) {
        let words: Vec<&str> = content.split_whitespace().take(MOST_COLUMNS + 1).collect();
        if words.is_empty() {
            continue;
        }
        let (number, path) = path(&words, topology, &nodes).map_err(|what| at(line, what))?;
        if let Some(first) = line_of.insert(number, line) {
            return Err(at(line, format!("path {number} is that of line {first} already")));
        }
        let of_pair = pairs.entry(path.ends).or_insert_with(|| PathsOfPair { line, paths: Vec::new() });
        let path = (path.ports, path.hops);
        if of_pair.paths.contains(&path) {
            return Err(at(line, format!("path {number} has the links of another path of its hosts")));
        }
        if of_pair.paths.len() == MAX_PATHS as usize {
            return Err(at(line, format!("more than {MAX_PATHS} paths of a pair of hosts")));
        }
        of_pair.paths.push(path);
    }
    // Hosts at the same switch have the same paths.
    let mut of_edges: BTreeMap<(u32, u32), ((HostId, HostId), PathsOfPair)> = BTreeMap::new();
    for ((src, dst), of_pair) in pairs {
        let edges = (plan.edge_of[src.index()], plan.edge_of[dst.index()]);
        let Some((first, known)) = of_edges.get(&edges) else {
            of_edges.insert(edges, ((src, dst), of_pair));
            continue;
        };
        if known.paths != of_pair.paths {
            let name = |host: HostId| topology.node_name(host.into());
            let what = format!(
                "the paths from {} to {} differ from those from {} to {}, which are at the same switches; hosts of a switch \
                 have the same paths here",
                name(src),
                name(dst),
                name(first.0),
                name(first.1)
            );
            return Err(at(of_pair.line, what));
        }
    }
    let none = |pair| at(0, format!("it has no path {pair}, whose hosts communicate"));
    plan.collect_or(none, |_, ends, out| {
        let [from, to] = ends.edges.map(|edge| edge as u32);
        let listed = of_edges.get(&(from, to)).into_iter().flat_map(|(_, of_pair)| &of_pair.paths);
        let paths = listed.filter(|(ports, _)| *ports == ends.ports);
        paths.for_each(|(_, hops)| out.path(hops.iter().copied()));
        Ok(())
    })
}

/// Number of columns of the longest path: number, priority, the ports of its links and one node more than links.
const MOST_COLUMNS: usize = 2 + 2 * (MAX_SWITCHES + 1) + 1;

struct HostPath {
    ends: (HostId, HostId),
    ports: [u8; 2],
    hops: Vec<Hop>,
}

/// Parses a path and its number.
fn path(
    words: &[&str],
    topology: &Topology,
    nodes: &HashMap<u64, NodeId>,
) -> Result<(u64, HostPath), String> {
    let number = |column: usize, what: &str| {
        words[column].parse::<u64>().map_err(|_| {
            let shown: String = words[column].chars().take(40).collect();
            format!("{what} = {shown}: expected a whole number at or above 0")
        })
    };
    let columns = words.len();
    if columns > MOST_COLUMNS {
        return Err(format!(
            "more than {MOST_COLUMNS} columns; a path visits {MAX_SWITCHES} switches at most"
        ));
    }
    // Number and priority, h ports, h + 1 nodes, from host to host over at least one switch.
    if columns < 7 || columns.is_multiple_of(2) {
        return Err(format!(
            "{columns} columns; expected 2h + 3 for a path of h links, 2 at least: path priority port{{h}} node{{h+1}}"
        ));
    }
    let links = (columns - 3) / 2;
    let id = number(0, "path")?;
    if words[1].parse::<i64>().is_err() {
        let shown: String = words[1].chars().take(40).collect();
        return Err(format!("priority = {shown}: expected a whole number"));
    }
    let mut visited: Vec<NodeId> = Vec::new();
    for i in 0..=links {
        let node = number(2 + links + i, &format!("node {i} of path {id}"))?;
        let Some(&known) = nodes.get(&node) else {
            return Err(format!("node {i} of path {id} = {node}: the topology has no node of this id"));
        };
        if visited.contains(&known) {
            return Err(format!("path {id} visits node {node} twice"));
        }
        if topology.is_host(known) != (i == 0 || i == links) {
            let (is, there) =
                if topology.is_host(known) { ("host", "switches") } else { ("switch", "hosts") };
            return Err(format!("node {i} of path {id} = {node}: it is a {is}; {there} are expected there"));
        }
        visited.push(known);
    }
    let mut hops = Vec::new();
    let mut ports = [0; 2];
    for i in 0..links {
        let what = format!("port {i} of path {id}");
        let port = number(2 + i, &what)?;
        let all = topology.ports(visited[i]);
        // Ports are numbered from 1, in the order of the links.
        let found = usize::try_from(port).ok().and_then(|port| all.get(port.checked_sub(1)?));
        let Some(found) = found else {
            return Err(format!(
                "{what} = {port}: {} has {} ports, numbered from 1",
                topology.node_name(visited[i]),
                all.len()
            ));
        };
        if found.peer != visited[i + 1] {
            return Err(format!(
                "{what} = {port}: it leads from {} to {}, not to {}",
                topology.node_name(visited[i]),
                topology.node_name(found.peer),
                topology.node_name(visited[i + 1])
            ));
        }
        // Hosts have at most 64 ports, so the cast is lossless.
        match i {
            0 => ports[0] = (port - 1) as u8,
            _ if i + 1 == links => ports[1] = found.peer_port as u8,
            _ => hops.push(Hop::out_of_port(found)),
        }
    }
    let host = |node: NodeId| topology.as_host(node).expect("the ends are hosts");
    Ok((id, HostPath { ends: (host(visited[0]), host(visited[links])), ports, hops }))
}

/// Returns the nodes by the ids that their names keep.
fn nodes_by_id(topology: &Topology) -> Result<HashMap<u64, NodeId>, String> {
    let mut nodes = HashMap::new();
    for node in (0..topology.nodes()).map(NodeId) {
        let name = topology.node_name(node);
        let kind = if topology.is_host(node) { "host" } else { "switch" };
        let id = name.strip_prefix(kind).and_then(|id| id.parse().ok());
        let Some(id) = id else {
            return Err(format!(
                "it numbers nodes as a TOPO.txt does, but a node of the topology is named \"{name}\"; expected a topology of \
                 kind = \"laps\""
            ));
        };
        if nodes.insert(id, node).is_some() {
            return Err(format!(
                "it numbers nodes as a TOPO.txt does, but two nodes of the topology have number {id}; expected a topology of \
                 kind = \"laps\""
            ));
        }
    }
    Ok(nodes)
}
