//! Links and what they carried, where they are: each link of a small topology, matrices of a large one.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Budget, rounded};
use crate::columns::ns;
use crate::records::{NodeKind, RunResult};
use crate::summary_fabric::direction;

/// What is drawn. A *row* is what has one colour: a link, or links that share a cell of a matrix.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "mode")]
pub(super) enum Fabric {
    /// Every node and link; a row a link.
    Graph { nodes: Vec<Node>, totals: Totals, from: Vec<u32>, to: Vec<u32> },
    /// A matrix for each tier and direction; a row a cell.
    Matrices { panels: Vec<Panel>, totals: Totals },
}

#[derive(Debug, Serialize)]
pub(super) struct Node {
    name: String,
    kind: NodeKind,
    tier: u8,
}

/// What the links of each row did in the whole run.
#[derive(Debug, Default, Serialize)]
pub(super) struct Totals {
    /// Mean over its links.
    utilisation: Vec<f64>,
    /// Sums.
    tx_bytes: Vec<u64>,
    dropped: Vec<u64>,
    marked: Vec<u64>,
    pauses: Vec<u64>,
    paused_ns: Vec<f64>,
    /// The largest.
    max_queue_bytes: Vec<u64>,
}

/// Links between two tiers in one direction: `owners` nodes (or equal runs of nodes) times `ports` links of each.
/// Their cells follow each other in the rows, owner after owner.
#[derive(Debug, Serialize)]
pub(super) struct Panel {
    tier: u8,
    direction: &'static str,
    owners: usize,
    ports: usize,
    first_row: usize,
    /// Nodes before any were put together.
    owner_nodes: usize,
    links: usize,
    first_owner: String,
    last_owner: String,
}

/// Which row each link is of.
pub(super) struct Rows {
    /// By link.
    pub(super) of_link: Vec<u32>,
    /// Links of each row.
    pub(super) links: Vec<u32>,
}

impl Rows {
    fn new(of_link: Vec<u32>, rows: usize) -> Self {
        let mut links = vec![0; rows];
        of_link.iter().for_each(|&row| links[row as usize] += 1);
        Rows { of_link, links }
    }
}

/// The picture of the links of a run.
pub(super) fn fabric(run: &RunResult, budget: &Budget) -> (Fabric, Rows) {
    if run.links.len() <= budget.links && run.nodes.len() <= budget.links {
        let rows = Rows::new((0..run.links.len() as u32).collect(), run.links.len());
        let node = |n: &crate::NodeInfo| Node { name: n.name.clone(), kind: n.kind, tier: n.tier };
        let fabric = Fabric::Graph {
            nodes: run.nodes.iter().map(node).collect(),
            totals: totals(run, &rows),
            from: run.links.iter().map(|l| l.from_node).collect(),
            to: run.links.iter().map(|l| l.to_node).collect(),
        };
        return (fabric, rows);
    }
    let mut tiers: BTreeMap<(u8, u8, &'static str), Vec<usize>> = BTreeMap::new();
    for (number, link) in run.links.iter().enumerate() {
        let (order, word) = direction(run, link.from_node, link.to_node);
        tiers.entry((link.tier, order, word)).or_default().push(number);
    }
    let cells = budget.links / tiers.len().max(1);
    let mut of_link = vec![0; run.links.len()];
    let mut panels: Vec<Panel> = Vec::new();
    for ((tier, _, direction), links) in tiers {
        let first_row = panels.last().map_or(0, |p| p.first_row + p.owners * p.ports);
        panels.push(panel(run, (tier, direction), &links, cells, first_row, &mut of_link));
    }
    let rows = panels.last().map_or(0, |p| p.first_row + p.owners * p.ports);
    let rows = Rows::new(of_link, rows);
    (Fabric::Matrices { panels, totals: totals(run, &rows) }, rows)
}

fn totals(run: &RunResult, rows: &Rows) -> Totals {
    let count = rows.links.len();
    let mut totals = Totals {
        utilisation: vec![0.0; count],
        tx_bytes: vec![0; count],
        dropped: vec![0; count],
        marked: vec![0; count],
        pauses: vec![0; count],
        paused_ns: vec![0.0; count],
        max_queue_bytes: vec![0; count],
    };
    for (link, &row) in run.links.iter().zip(&rows.of_link) {
        let row = row as usize;
        totals.utilisation[row] += link.utilisation(run.info.simulated_ps) / f64::from(rows.links[row]);
        totals.tx_bytes[row] += link.tx_bytes;
        totals.dropped[row] += link.dropped_packets;
        totals.marked[row] += link.ecn_marked_packets;
        totals.pauses[row] += link.pfc_pauses;
        totals.paused_ns[row] += ns(link.paused_ps);
        totals.max_queue_bytes[row] = totals.max_queue_bytes[row].max(link.max_queue_bytes);
    }
    totals.utilisation.iter_mut().chain(&mut totals.paused_ns).for_each(|v| *v = rounded(*v));
    totals
}

fn panel(
    run: &RunResult,
    (tier, direction): (u8, &'static str),
    links: &[usize],
    cells: usize,
    first_row: usize,
    of_link: &mut [u32],
) -> Panel {
    // Owners are the side with fewer nodes: ToRs own host links.
    let ends = |side: fn(&crate::LinkTotals) -> u32| links.iter().map(|&l| side(&run.links[l])).collect();
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
    Panel {
        tier,
        direction,
        owners,
        ports,
        first_row,
        owner_nodes: by_owner.len(),
        links: links.len(),
        first_owner: name(by_owner.keys().next()),
        last_owner: name(by_owner.keys().next_back()),
    }
}
