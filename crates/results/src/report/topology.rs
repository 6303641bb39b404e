//! Link utilisation where the links are: a drawing of a small topology, matrices of a large one.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Budget, rounded};
use crate::records::{LinkTotals, NodeKind, RunResult};
use crate::summary_fabric::direction;

/// Links up to which the topology is drawn link by link.
const DRAWN_LINKS: usize = 1_000;

/// What is drawn.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "mode")]
pub(super) enum Topology {
    /// Every node and link.
    Graph { nodes: Vec<Node>, links: Vec<Link> },
    /// A matrix for each tier and direction.
    Matrices { panels: Vec<Panel> },
}

#[derive(Debug, Serialize)]
pub(super) struct Node {
    name: String,
    kind: NodeKind,
    tier: u8,
}

#[derive(Debug, Serialize)]
pub(super) struct Link {
    from: u32,
    to: u32,
    utilisation: f64,
    dropped: u64,
    pauses: u64,
    max_queue_bytes: u64,
}

/// Mean utilisation of links: `owners` nodes (or equal runs of nodes) times `ports` links of each.
#[derive(Debug, Serialize)]
pub(super) struct Panel {
    tier: u8,
    direction: &'static str,
    owners: usize,
    ports: usize,
    /// Nodes before any were put together.
    owner_nodes: usize,
    links: usize,
    first_owner: String,
    last_owner: String,
    /// Row by row (one a port), -1 where there is no link; per mille.
    utilisation: Vec<i16>,
}

/// The picture of the links of a run.
pub(super) fn topology(run: &RunResult, budget: &Budget) -> Topology {
    if run.links.len() <= DRAWN_LINKS.min(budget.cells) && run.nodes.len() <= DRAWN_LINKS {
        let node = |n: &crate::NodeInfo| Node { name: n.name.clone(), kind: n.kind, tier: n.tier };
        let link = |l: &LinkTotals| Link {
            from: l.from_node,
            to: l.to_node,
            utilisation: rounded(l.utilisation(run.info.simulated_ps)),
            dropped: l.dropped_packets,
            pauses: l.pfc_pauses,
            max_queue_bytes: l.max_queue_bytes,
        };
        return Topology::Graph {
            nodes: run.nodes.iter().map(node).collect(),
            links: run.links.iter().map(link).collect(),
        };
    }
    let mut tiers: BTreeMap<(u8, u8, &'static str), Vec<&LinkTotals>> = BTreeMap::new();
    for link in &run.links {
        let (order, word) = direction(run, link.from_node, link.to_node);
        tiers.entry((link.tier, order, word)).or_default().push(link);
    }
    let cells = budget.cells / tiers.len().max(1);
    let panel = |((tier, _, word), links): (_, Vec<&LinkTotals>)| panel(run, tier, word, &links, cells);
    Topology::Matrices { panels: tiers.into_iter().map(panel).collect() }
}

fn panel(run: &RunResult, tier: u8, direction: &'static str, links: &[&LinkTotals], cells: usize) -> Panel {
    // Owners are the side with fewer nodes: ToRs own host links.
    let froms: BTreeSet<u32> = links.iter().map(|l| l.from_node).collect();
    let tos: BTreeSet<u32> = links.iter().map(|l| l.to_node).collect();
    let by_from = froms.len() <= tos.len();
    let mut by_owner: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for link in links {
        let owner = if by_from { link.from_node } else { link.to_node };
        by_owner.entry(owner).or_default().push(link.utilisation(run.info.simulated_ps));
    }
    let most_ports = by_owner.values().map(Vec::len).max().unwrap_or(0);
    let ports = most_ports.min(64).min(cells).max(1);
    let owners = by_owner.len().min((cells / ports).clamp(1, 256)).max(1);
    let mut sums = vec![(0.0, 0u32); owners * ports];
    for (i, utilisation) in by_owner.values().enumerate() {
        for (p, u) in utilisation.iter().enumerate() {
            let cell = &mut sums[(p * ports / most_ports) * owners + i * owners / by_owner.len()];
            cell.0 += u;
            cell.1 += 1;
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
        owner_nodes: by_owner.len(),
        links: links.len(),
        first_owner: name(by_owner.keys().next()),
        last_owner: name(by_owner.keys().next_back()),
        utilisation: sums
            .iter()
            .map(|&(sum, n)| if n == 0 { -1 } else { (sum / f64::from(n) * 1_000.0).round() as i16 })
            .collect(),
    }
}
