//! Links and their totals at their positions: each link of a small topology; blocks of nodes with the links between
//! them, and matrices, of a large one.

use std::collections::{BTreeMap, BTreeSet};

use pathweave_records::{Direction, EventKind, EventRecord, NodeKind, RunResult, ns};
use serde::Serialize;

use super::index::{Index, index};
use super::server_grid::{self, ServerGrid};
use super::{Budget, rounded};
use crate::blocks::Blocks;
use crate::servers::Servers;

/// Data of the picture. A *row* has one colour: it is a link, or several links that are drawn as one.
#[derive(Debug, Serialize)]
pub(super) struct Fabric {
    nodes: Vec<Node>,
    totals: RowTotals,
    /// Node at the start of each line; the index of a line is its row.
    from: Vec<u32>,
    to: Vec<u32>,
    /// Faults on links, if links are drawn one by one.
    outages: Vec<Outage>,
    /// Present if nodes are blocks and lines are all links between two blocks.
    blocks: Option<Aggregated>,
    /// Present if hosts are GPUs of servers.
    servers: Option<ServerGrid>,
}

/// A fault on a link, in both directions, with its begin and end.
#[derive(Debug, Serialize)]
struct Outage {
    row: u32,
    from_ns: f64,
    until_ns: Option<f64>,
}

/// Returns the faults on single links. A repair has the number of its fault.
fn outages(run: &RunResult) -> Vec<Outage> {
    let mut out = Vec::new();
    let is = |event: &EventRecord, kind| event.kind == kind && event.link.is_some();
    for (place, fault) in run.events.iter().enumerate().filter(|(_, event)| is(event, EventKind::Fault)) {
        let ends = |event: &&EventRecord| {
            is(event, EventKind::Repair) && event.link == fault.link && event.value == fault.value
        };
        let until_ns = run.events[place..].iter().find(ends).map(|event| rounded(ns(event.time_ps)));
        let link = fault.link.and_then(|link| run.links.get(link as usize));
        let back = link.and_then(|link| {
            run.links.iter().find(|back| (back.from_node, back.to_node) == (link.to_node, link.from_node))
        });
        for row in link.into_iter().chain(back).map(|link| link.link) {
            out.push(Outage { row, from_ns: rounded(ns(fault.time_ps)), until_ns });
        }
    }
    out
}

/// A large fabric. Its rows are the lines between blocks, followed by the cells of the matrices.
#[derive(Debug, Serialize)]
pub(super) struct Aggregated {
    /// Number of nodes in each block.
    nodes: Vec<usize>,
    /// Number of links in each row.
    links: Vec<u32>,
    /// A matrix for each tier and direction.
    panels: Vec<LinkMatrix>,
    /// Nodes and links by name, if they are not too many.
    index: Option<Index>,
}

#[derive(Debug, Serialize)]
pub(super) struct Node {
    name: String,
    kind: NodeKind,
    tier: u8,
}

/// Totals of the links of each row over the whole run.
#[derive(Debug, Default, Serialize)]
pub(super) struct RowTotals {
    /// Mean utilisation over the links of each row.
    utilisation: Vec<f64>,
    /// Utilisation of the busiest link of each row; `None` if every row is one link.
    busiest: Option<Vec<f64>>,
    /// Sums over the links of each row.
    rate_bps: Vec<u64>,
    tx_bytes: Vec<u64>,
    dropped: Vec<u64>,
    marked: Vec<u64>,
    pauses: Vec<u64>,
    paused_ns: Vec<f64>,
    /// Largest queue of each row.
    max_queue_bytes: Vec<u64>,
}

/// Matrix of the links between two tiers in one direction: `owners` nodes (or equal groups of nodes) times `ports`
/// links of each. Its cells are consecutive rows, owner after owner.
#[derive(Debug, Serialize)]
pub(super) struct LinkMatrix {
    pub(super) tier: u8,
    pub(super) direction: Direction,
    pub(super) owners: usize,
    pub(super) ports: usize,
    pub(super) first_row: usize,
    /// Number of nodes before grouping.
    pub(super) owner_nodes: usize,
    pub(super) links: usize,
    pub(super) first_owner: String,
    pub(super) last_owner: String,
    /// True if owners are servers and the links of one are its lanes.
    pub(super) of_servers: bool,
}

/// Rows to which each link belongs.
pub(super) struct RowMap {
    /// For each link: the row of the link itself, or of its cell of a matrix.
    of_link: Vec<u32>,
    /// For each link: the row of its line between blocks; empty if there are no blocks.
    of_block: Vec<u32>,
    /// Number of links of each row.
    pub(super) links: Vec<u32>,
}

impl RowMap {
    pub(super) fn new(of_link: Vec<u32>, of_block: Vec<u32>, rows: usize) -> Self {
        let mut links = vec![0; rows];
        of_link.iter().chain(&of_block).for_each(|&row| links[row as usize] += 1);
        RowMap { of_link, of_block, links }
    }

    /// Returns the rows of a link; none for a link that does not exist.
    pub(super) fn of(&self, link: u32) -> impl Iterator<Item = usize> {
        let of = |rows: &[u32]| rows.get(link as usize).map(|&row| row as usize);
        of(&self.of_link).into_iter().chain(of(&self.of_block))
    }

    /// Returns true if rows contain several links.
    pub(super) fn are_blocks(&self) -> bool {
        !self.of_block.is_empty()
    }
}

/// Builds the picture of the links of a run.
pub(super) fn fabric(run: &RunResult, budget: &Budget) -> (Fabric, RowMap) {
    let servers = Servers::of(run);
    if run.links.len() <= budget.links && run.nodes.len() <= budget.links {
        let rows = RowMap::new((0..run.links.len() as u32).collect(), Vec::new(), run.links.len());
        let node =
            |n: &pathweave_records::NodeInfo| Node { name: n.name.clone(), kind: n.kind, tier: n.tier };
        let fabric = Fabric {
            nodes: run.nodes.iter().map(node).collect(),
            totals: totals(run, &rows),
            from: run.links.iter().map(|l| l.from_node).collect(),
            to: run.links.iter().map(|l| l.to_node).collect(),
            outages: outages(run),
            blocks: None,
            servers: servers.map(|servers| server_grid::of_links(run, &servers)),
        };
        return (fabric, rows);
    }
    let blocks = Blocks::from_run(run);
    let pairs = blocks.pairs(run);
    let mut of_block = vec![0; run.links.len()];
    for (row, links) in pairs.values().enumerate() {
        links.iter().for_each(|&link| of_block[link] = row as u32);
    }
    let mut tiers: BTreeMap<(u8, Direction), Vec<usize>> = BTreeMap::new();
    let is_lane = |link: usize| servers.as_ref().is_some_and(|servers| servers.lane_of(link).is_some());
    for (number, link) in run.links.iter().enumerate().filter(|(number, _)| !is_lane(*number)) {
        tiers.entry((link.tier, link.direction)).or_default().push(number);
    }
    let cells = budget.links / (tiers.len() + if servers.is_some() { 2 } else { 0 }).max(1);
    let mut of_link = vec![0; run.links.len()];
    let mut panels: Vec<LinkMatrix> = Vec::new();
    let end = |panels: &[LinkMatrix]| panels.last().map_or(pairs.len(), |p| p.first_row + p.owners * p.ports);
    for (of, links) in tiers {
        let first_row = end(&panels);
        panels.push(panel(run, of, &links, cells, first_row, &mut of_link));
    }
    let grid = servers.map(|servers| {
        let first_row = end(&panels);
        let (grid, lanes) = server_grid::of_cells(run, &servers, 2 * cells, first_row, &mut of_link);
        panels.extend(lanes);
        grid
    });
    let index = index(run, &blocks, &of_link, budget.named_links);
    let rows = RowMap::new(of_link, of_block, end(&panels));
    let fabric = Fabric {
        totals: totals(run, &rows),
        from: pairs.keys().map(|&(from, _)| from).collect(),
        to: pairs.keys().map(|&(_, to)| to).collect(),
        outages: Vec::new(),
        blocks: Some(Aggregated {
            nodes: blocks.blocks.iter().map(|block| block.nodes).collect(),
            links: rows.links.clone(),
            panels,
            index,
        }),
        servers: grid,
        nodes: blocks
            .blocks
            .into_iter()
            .map(|block| Node { name: block.name, kind: block.kind, tier: block.tier })
            .collect(),
    };
    (fabric, rows)
}

fn totals(run: &RunResult, rows: &RowMap) -> RowTotals {
    let count = rows.links.len();
    let mut totals = RowTotals {
        utilisation: vec![0.0; count],
        busiest: rows.are_blocks().then(|| vec![0.0; count]),
        rate_bps: vec![0; count],
        tx_bytes: vec![0; count],
        dropped: vec![0; count],
        marked: vec![0; count],
        pauses: vec![0; count],
        paused_ns: vec![0.0; count],
        max_queue_bytes: vec![0; count],
    };
    for (number, link) in run.links.iter().enumerate() {
        let used = link.utilisation(run.info.simulated_ps);
        for row in rows.of(number as u32) {
            totals.utilisation[row] += used / f64::from(rows.links[row]);
            if let Some(busiest) = &mut totals.busiest {
                busiest[row] = busiest[row].max(used);
            }
            totals.rate_bps[row] += link.rate_bps;
            totals.tx_bytes[row] += link.tx_bytes;
            totals.dropped[row] += link.dropped_packets;
            totals.marked[row] += link.ecn_marked_packets;
            totals.pauses[row] += link.pfc_pauses;
            totals.paused_ns[row] += ns(link.paused_ps);
            totals.max_queue_bytes[row] = totals.max_queue_bytes[row].max(link.max_queue_bytes);
        }
    }
    let busiest = totals.busiest.iter_mut().flatten();
    totals.utilisation.iter_mut().chain(&mut totals.paused_ns).chain(busiest).for_each(|v| *v = rounded(*v));
    totals
}

fn panel(
    run: &RunResult,
    (tier, direction): (u8, Direction),
    links: &[usize],
    cells: usize,
    first_row: usize,
    of_link: &mut [u32],
) -> LinkMatrix {
    // Owners are the nodes on the side with fewer nodes: ToRs own host links.
    let ends = |side: fn(&pathweave_records::LinkTotals) -> u32| {
        links.iter().map(|&l| side(&run.links[l])).collect()
    };
    let (froms, tos): (BTreeSet<u32>, BTreeSet<u32>) = (ends(|l| l.from_node), ends(|l| l.to_node));
    let by_from = froms.len() <= tos.len();
    let mut by_owner: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for &number in links {
        let link = &run.links[number];
        by_owner.entry(if by_from { link.from_node } else { link.to_node }).or_default().push(number);
    }
    let most_ports = by_owner.values().map(Vec::len).max().unwrap_or(0);
    let ports = most_ports.min(64).min(cells).max(1);
    let owners = by_owner.len().min((cells / ports).clamp(1, 256)).max(1);
    for (i, links) in by_owner.values().enumerate() {
        for (p, &link) in links.iter().enumerate() {
            let cell = (i * owners / by_owner.len()) * ports + p * ports / most_ports;
            of_link[link] = (first_row + cell) as u32;
        }
    }
    let name = |node: Option<&u32>| {
        node.and_then(|&n| run.nodes.get(n as usize)).map_or(String::new(), |n| n.name.clone())
    };
    LinkMatrix {
        tier,
        direction,
        owners,
        ports,
        first_row,
        owner_nodes: by_owner.len(),
        links: links.len(),
        first_owner: name(by_owner.keys().next()),
        last_owner: name(by_owner.keys().next_back()),
        of_servers: false,
    }
}
