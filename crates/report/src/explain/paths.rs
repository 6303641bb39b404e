//! Paths of flows over the links of a run.

use std::collections::VecDeque;

use pathweave_records::Direction;

use super::facts::{Facts, Flow, Link};

/// Links away from each node. Hosts forward nothing, so that only those that begin a path have any use.
pub(super) struct Neighbours {
    /// Nodes next to each node, and the links to them.
    next: Vec<Vec<(u32, u32)>>,
    is_host: Vec<bool>,
}

impl Neighbours {
    fn new(links: &[Link]) -> Self {
        let nodes = links.iter().map(|link| link.from_node.max(link.to_node) + 1).max().unwrap_or(0);
        let (mut next, mut is_host) = (vec![Vec::new(); nodes as usize], vec![false; nodes as usize]);
        for (number, link) in (0..).zip(links) {
            next[link.from_node as usize].push((link.to_node, number));
            is_host[link.from_node as usize] |= link.is_from_host();
        }
        Neighbours { next, is_host }
    }

    /// Returns the number of links from a host to each node over links that are up, or `None` where it reaches none.
    fn hops_from(&self, host: u32, is_up: impl Fn(usize) -> bool) -> Vec<Option<u32>> {
        let mut hops = vec![None; self.next.len()];
        let mut queue = VecDeque::new();
        if let Some(own) = hops.get_mut(host as usize) {
            *own = Some(0);
            queue.push_back((host, 0));
        }
        while let Some((node, far)) = queue.pop_front() {
            if node != host && self.is_host[node as usize] {
                continue;
            }
            for &(to, link) in &self.next[node as usize] {
                if hops[to as usize].is_none() && is_up(link as usize) {
                    hops[to as usize] = Some(far + 1);
                    queue.push_back((to, far + 1));
                }
            }
        }
        hops
    }
}

impl Facts {
    fn neighbours(&self) -> &Neighbours {
        self.neighbours.get_or_init(|| Neighbours::new(&self.links))
    }

    fn hops_from(&self, host: u32) -> Vec<Option<u32>> {
        self.neighbours().hops_from(host, |_| true)
    }

    /// Returns true if a path leads from one host to another over links that are up.
    pub(super) fn has_path(&self, src_host: u32, dst_host: u32, is_up: impl Fn(usize) -> bool) -> bool {
        let hops = self.neighbours().hops_from(src_host, is_up);
        hops.get(dst_host as usize).copied().flatten().is_some()
    }

    /// Returns the links beside a link: for a link up or level all links of its switch, for a link down all links into
    /// its switch, of the same tier and direction. The link itself is included.
    fn links_beside(&self, link: usize) -> Vec<usize> {
        let at = &self.links[link];
        let alike = |other: &Link| {
            let shares_end = match at.direction {
                Direction::Down => other.to_node == at.to_node,
                _ => other.from_node == at.from_node,
            };
            other.tier == at.tier && other.direction == at.direction && shares_end
        };
        (0..self.links.len()).filter(|&other| alike(&self.links[other])).collect()
    }

    /// Returns the links beside a link over which this flow has paths of the same length. Without a flow, links between
    /// switches of a tier have none beside them but those between the same two, as others lead elsewhere. The link itself is
    /// included.
    pub(super) fn parallel_links(&self, link: usize, flow: Option<&Flow>) -> Vec<usize> {
        let mut beside = self.links_beside(link);
        let at = &self.links[link];
        if flow.is_none() && at.direction == Direction::Level {
            beside.retain(|&other| self.links[other].to_node == at.to_node);
        }
        let Some(flow) = flow.filter(|_| beside.len() > 1) else { return beside };
        let (end, host): (fn(&Link) -> u32, u32) = match self.links[link].direction {
            Direction::Down => (|link| link.from_node, flow.src_host),
            _ => (|link| link.to_node, flow.dst_host),
        };
        // Every cable has two directions, so it is as far back.
        let hops = self.hops_from(host);
        let own = hops[end(&self.links[link]) as usize];
        beside.retain(|&other| hops[end(&self.links[other]) as usize] == own);
        beside
    }

    /// Returns the links of the shortest paths of a flow by their distance from its sender, as if none was down.
    pub(super) fn layers_of_paths(&self, flow: &Flow) -> Vec<Vec<usize>> {
        self.layers_between(flow.src_host, flow.dst_host)
    }

    /// Returns the links of the shortest paths between two hosts by their distance from the first, as if none was down.
    pub(super) fn layers_between(&self, src_host: u32, dst_host: u32) -> Vec<Vec<usize>> {
        let (from, to) = (self.hops_from(src_host), self.hops_from(dst_host));
        let all = from.get(dst_host as usize).copied().flatten().unwrap_or(0);
        let mut layers = vec![Vec::new(); all as usize];
        for (index, link) in self.links.iter().enumerate() {
            if let (Some(Some(before)), Some(Some(after))) =
                (from.get(link.from_node as usize).copied(), to.get(link.to_node as usize).copied())
                && before + 1 + after == all
            {
                layers[before as usize].push(index);
            }
        }
        layers
    }
}
