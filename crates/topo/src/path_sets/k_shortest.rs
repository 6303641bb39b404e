//! The k paths of fewest hops without a loop, by Yen's algorithm.

use pathfinding::directed::yen::yen;

use super::{KShortest, MAX_SWITCHES, PathSets, Plan};
use crate::build::refuse;
use crate::error::TopoError;
use crate::graph::{NodeId, Topology};

const MAX_K: u32 = 256;

pub(super) fn build(config: &KShortest, plan: Plan<'_>) -> Result<PathSets, TopoError> {
    if !(1..=MAX_K).contains(&config.k) {
        return Err(refuse("k", config.k, format!("must be 1 to {MAX_K}")));
    }
    if config.max_extra_hops as usize > MAX_SWITCHES - 2 {
        let allowed = format!("must be 0 to {}", MAX_SWITCHES - 2);
        return Err(refuse("max_extra_hops", config.max_extra_hops, allowed));
    }
    let neighbours = neighbours(plan.topology);
    let first_switch = plan.topology.hosts();
    plan.collect(|plan, from, to, out| {
        let [src, dst] = [from, to].map(|edge| plan.edges[edge].0 - first_switch);
        let [to_src, to_dst] = [src, dst].map(|end| distances(&neighbours, end));
        let longest = to_src[dst as usize].saturating_add(config.max_extra_hops);
        // The search need not go where no path that counts can lead.
        let near = |&switch: &u32| to_src[switch as usize].saturating_add(to_dst[switch as usize]) <= longest;
        let successors =
            |switch: &u32| neighbours[*switch as usize].iter().copied().filter(near).map(|next| (next, 1u32));
        let mut paths = yen(&src, successors, |switch| *switch == dst, config.k as usize);
        paths.retain(|(path, hops)| *hops <= longest && path.len() <= MAX_SWITCHES);
        paths.sort_unstable_by(|(a, a_hops), (b, b_hops)| (a_hops, a).cmp(&(b_hops, b)));
        for (path, _) in paths {
            let nodes: Vec<NodeId> = path.iter().map(|switch| NodeId(first_switch + switch)).collect();
            out.path_over(&nodes);
        }
        Ok(())
    })
}

/// The switches linked to each switch, ascending, each once.
fn neighbours(topology: &Topology) -> Vec<Vec<u32>> {
    let of = |index: usize| {
        let ports = topology.ports(topology.switch_node(index)).iter();
        let mut peers: Vec<u32> =
            ports.filter_map(|port| topology.switch_index(port.peer)).map(|peer| peer as u32).collect();
        peers.sort_unstable();
        peers.dedup();
        peers
    };
    (0..topology.switches().len()).map(of).collect()
}

/// Hops from a switch to each other one over switches only.
fn distances(neighbours: &[Vec<u32>], from: u32) -> Vec<u32> {
    let mut hops = vec![u32::MAX; neighbours.len()];
    hops[from as usize] = 0;
    let mut order = vec![from as usize];
    let mut next = 0;
    while let Some(&switch) = order.get(next) {
        next += 1;
        for &peer in &neighbours[switch] {
            if hops[peer as usize] == u32::MAX {
                hops[peer as usize] = hops[switch] + 1;
                order.push(peer as usize);
            }
        }
    }
    hops
}
