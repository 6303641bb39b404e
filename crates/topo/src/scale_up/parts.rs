//! Parts of scale-up networks that can fail, their names, and networks in which some have failed.
//!
//! A chip is named "srv3.chip0", or "domain0.chip17" if a domain spans several servers. A link is named after its ends:
//! two GPUs with a direct link, or a GPU and a chip, in either order.

use std::collections::BTreeMap;

use pathweave_units::{HostId, Rate, closest_name};

use super::{ScaleUp, ScaleUpLink};
use crate::directions::Ways;
use crate::error::TopoError;
use crate::graph::{LinkId, NodeId, Topology};

/// Part of the scale-up network of one domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScaleUpPart {
    /// Number of the domain.
    pub domain: u32,
    /// The part.
    pub kind: ScaleUpPartKind,
}

/// Part of a scale-up network. Nodes are GPUs, counted within the domain, followed by the chips of the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScaleUpPartKind {
    /// Chip of the switch, with all its links.
    Chip(u32),
    /// Both directions of a link. The first node is the smaller one, which is a GPU.
    Link(u32, u32),
}

/// State of a part that differs from that of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartState {
    /// Number of faults that hold the part down.
    pub held_down: u32,
    /// Rate of a link instead of its own, before the usable part is taken of it.
    pub rate: Option<Rate>,
}

/// Link found by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NamedLink {
    /// Directions of a link that carries packets.
    Link(LinkId, Ways),
    /// Link of a scale-up network.
    ScaleUp(ScaleUpPart),
}

/// Node found by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedNode {
    /// Host or switch.
    Node(NodeId),
    /// Chip of the switch of a scale-up network.
    Chip(ScaleUpPart),
}

/// Returns the usable part of a rate.
pub(crate) fn usable_rate(rate: Rate, efficiency: f64) -> Rate {
    Rate::from_bps(((rate.as_bps() as f64 * efficiency) as u64).max(1))
}

impl ScaleUp {
    /// Returns the network of a domain in which these parts have failed or changed. The chips of its switch are nodes
    /// of their own. A link that is down is left out.
    pub fn with_faults(&self, parts: &BTreeMap<ScaleUpPartKind, PartState>) -> ScaleUp {
        let mut links = self.links_of_chips();
        for (part, state) in parts {
            for link in &mut links {
                if !self.contains(*part, link) {
                    continue;
                }
                if let Some(rate) = state.rate.filter(|_| link.rate > Rate::ZERO) {
                    link.rate = usable_rate(rate, self.efficiency);
                }
                if state.held_down > 0 {
                    link.rate = Rate::ZERO;
                }
            }
        }
        links.retain(|link| link.rate > Rate::ZERO);
        let nodes = self.domain + self.chips;
        ScaleUp::new(self.domain, nodes, links, self.delay).with_parts(self.chips, self.efficiency)
    }

    /// Returns the rate of a link, before the usable part is taken of it. `None` for a chip.
    pub fn link_rate(&self, part: ScaleUpPart) -> Option<Rate> {
        let ScaleUpPartKind::Link(..) = part.kind else { return None };
        let of = self.links_of_chips().into_iter().find(|link| self.contains(part.kind, link));
        of.map(|link| Rate::from_bps((link.rate.as_bps() as f64 / self.efficiency).round() as u64))
    }

    /// Returns all links, those to a switch divided among its chips.
    pub(crate) fn links_of_chips(&self) -> Vec<ScaleUpLink> {
        if self.chips == 0 {
            return self.links.clone();
        }
        let divided = |link: &ScaleUpLink| {
            let rate = Rate::from_bps((link.rate.as_bps() / u64::from(self.chips)).max(1));
            let (from, to) = (link.from, link.to);
            let node = move |node: u32, chip: u32| if node < self.domain { node } else { self.domain + chip };
            (0..self.chips).map(move |chip| ScaleUpLink { from: node(from, chip), to: node(to, chip), rate })
        };
        self.links.iter().flat_map(divided).collect()
    }

    /// Returns the prefix of the names of chips, if a server has `gpus` GPUs.
    pub(crate) fn prefix(&self, gpus: u32) -> &'static str {
        if self.domain > gpus { "domain" } else { "srv" }
    }

    fn contains(&self, part: ScaleUpPartKind, link: &ScaleUpLink) -> bool {
        let (a, b) = (link.from.min(link.to), link.from.max(link.to));
        match part {
            ScaleUpPartKind::Chip(chip) => b == self.domain + chip,
            ScaleUpPartKind::Link(from, to) => (a, b) == (from, to),
        }
    }

    /// Iterates over the parts of a domain: chips, then links.
    fn parts(&self) -> impl Iterator<Item = ScaleUpPartKind> {
        let links = self.links_of_chips();
        let links = links.into_iter().filter(|link| link.from < link.to);
        let chips = (0..self.chips).map(ScaleUpPartKind::Chip);
        chips.chain(links.map(|link| ScaleUpPartKind::Link(link.from, link.to)))
    }
}

impl Topology {
    /// Returns the link with this name, or directions of it, be it one of packets or of a scale-up network.
    ///
    /// # Errors
    /// There is no such link.
    pub fn link_or_scale_up(&self, name: &str) -> Result<NamedLink, TopoError> {
        let unknown = match self.ways_by_name(name) {
            Ok((link, ways)) => return Ok(NamedLink::Link(link, ways)),
            Err(unknown) => unknown,
        };
        let Some(network) = self.scale_up() else { return Err(unknown) };
        let mut domain = None;
        for (at, _) in name.match_indices('-') {
            let ends = [&name[..at], &name[at + 1..]].map(|end| self.scale_up_node(end));
            if let [Some((here, a)), Some((there, b))] = ends
                && here == there
            {
                let kind = ScaleUpPartKind::Link(a.min(b), a.max(b));
                if network.parts().any(|part| part == kind) {
                    return Ok(NamedLink::ScaleUp(ScaleUpPart { domain: here, kind }));
                }
            }
            domain = domain.or_else(|| ends.iter().flatten().next().map(|(domain, _)| *domain));
        }
        // Two ends of one server were meant to be a link of its scale-up network.
        let Some(domain) = domain else { return Err(unknown) };
        let links = network.parts().filter(|part| matches!(part, ScaleUpPartKind::Link(..)));
        let names: Vec<_> = links.map(|kind| self.scale_up_part_name(ScaleUpPart { domain, kind })).collect();
        let TopoError::UnknownName { kind, name, nearest, known } = unknown else { return Err(unknown) };
        let candidates = names.iter().chain(&nearest).map(String::as_str);
        let nearest = closest_name(&name, candidates).map(str::to_owned).or(nearest.clone());
        Err(TopoError::UnknownName { kind, name, nearest, known })
    }

    /// Returns the node or the chip of a scale-up network with this name.
    ///
    /// # Errors
    /// There is no such node.
    pub fn node_or_chip(&self, name: &str) -> Result<NamedNode, TopoError> {
        let unknown = match self.node_by_name(name) {
            Ok(node) => return Ok(NamedNode::Node(node)),
            Err(unknown) => unknown,
        };
        let Some(network) = self.scale_up() else { return Err(unknown) };
        if let Some((domain, node)) = self.scale_up_node(name)
            && let Some(chip) = node.checked_sub(network.domain)
        {
            return Ok(NamedNode::Chip(ScaleUpPart { domain, kind: ScaleUpPartKind::Chip(chip) }));
        }
        let last = ScaleUpPartKind::Chip(network.chips.saturating_sub(1));
        match (name.rsplit_once(".chip"), unknown) {
            (Some(_), TopoError::UnknownName { kind, name, known, .. }) if network.chips > 0 => {
                let domain = self.domain_prefixed(&name).unwrap_or(0);
                let nearest = Some(self.scale_up_part_name(ScaleUpPart { domain, kind: last }));
                Err(TopoError::UnknownName { kind, name, nearest, known })
            }
            (_, unknown) => Err(unknown),
        }
    }

    /// Returns the name of a part of a scale-up network.
    pub fn scale_up_part_name(&self, part: ScaleUpPart) -> String {
        let size = self.scale_up().map_or(1, ScaleUp::domain_size);
        let chip = |chip: u32| format!("{}{}.chip{chip}", self.domain_prefix(), part.domain);
        let node = |node: u32| match node.checked_sub(size) {
            Some(number) => chip(number),
            None => self.node_name(NodeId(part.domain * size + node)).into_owned(),
        };
        match part.kind {
            ScaleUpPartKind::Chip(number) => chip(number),
            ScaleUpPartKind::Link(a, b) => format!("{}-{}", node(a), node(b)),
        }
    }

    /// Returns a host that belongs to the part: that of the link, or the first of the domain.
    pub fn scale_up_host(&self, part: ScaleUpPart) -> HostId {
        let first = part.domain * self.scale_up().map_or(1, ScaleUp::domain_size);
        HostId(match part.kind {
            ScaleUpPartKind::Chip(_) => first,
            ScaleUpPartKind::Link(gpu, _) => first + gpu,
        })
    }

    fn domain_prefix(&self) -> &'static str {
        let gpus = self.servers().map_or(1, crate::servers::Servers::gpus);
        self.scale_up().map_or("srv", |network| network.prefix(gpus))
    }

    /// Returns the domain of "srv12.chip9".
    fn domain_prefixed(&self, name: &str) -> Option<u32> {
        let (domain, _) = name.strip_prefix(self.domain_prefix())?.split_once('.')?;
        let size = self.scale_up()?.domain_size();
        domain.parse().ok().filter(|domain| *domain < self.hosts() / size)
    }

    /// Returns the domain and the node of a GPU or chip.
    fn scale_up_node(&self, name: &str) -> Option<(u32, u32)> {
        let network = self.scale_up()?;
        if let Ok(node) = self.node_by_name(name) {
            let host = self.as_host(node)?;
            return Some((network.domain_of(host), host.0 % network.domain));
        }
        let domain = self.domain_prefixed(name)?;
        let chip: u32 = name.rsplit_once(".chip")?.1.parse().ok().filter(|chip| *chip < network.chips)?;
        let kind = ScaleUpPartKind::Chip(chip);
        // "srv01.chip00" is not the name of a chip.
        let canonical = self.scale_up_part_name(ScaleUpPart { domain, kind }) == name;
        canonical.then_some((domain, network.domain + chip))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Build, Cluster, EqualLinks, ScaleUpConfig, Server, Star, SwitchLinks, TopologyConfig};

    fn topology(gpus: u32, domain: u32, scale_up: ScaleUpConfig) -> Topology {
        let server = Server {
            gpus: Some(gpus),
            nics: Some(1),
            domain: Some(domain),
            scale_up: Some(scale_up),
            ..Server::default()
        };
        Cluster::new(2, server, TopologyConfig::Star(Star::new(2))).build(Path::new("")).unwrap()
    }

    fn switch(chips: u32) -> ScaleUpConfig {
        ScaleUpConfig::Switch(SwitchLinks { chips, ..SwitchLinks::new(Rate::from_gbps(400)) })
    }

    fn mesh() -> ScaleUpConfig {
        ScaleUpConfig::FullMesh(EqualLinks { efficiency: 0.5, ..EqualLinks::new(Rate::from_gbps(200)) })
    }

    fn down() -> PartState {
        PartState { held_down: 1, rate: None }
    }

    fn alone(network: &ScaleUp, parts: &[(ScaleUpPartKind, PartState)]) -> Rate {
        network.with_faults(&parts.iter().copied().collect()).alone(HostId(0), HostId(1))
    }

    /// One of four chips takes a quarter; so does a link of either GPU. Links to two different chips take two quarters,
    /// because traffic needs both ends of a chip.
    #[test]
    fn a_chip_takes_its_share_of_the_rate() {
        use ScaleUpPartKind::{Chip, Link};
        let topology = topology(4, 4, switch(4));
        let network = topology.scale_up().unwrap();
        let gbps = Rate::from_gbps;
        assert_eq!(alone(network, &[]), gbps(400));
        assert_eq!(alone(network, &[(Chip(2), down())]), gbps(300));
        assert_eq!(alone(network, &[(Link(0, 6), down())]), gbps(300));
        assert_eq!(alone(network, &[(Link(0, 6), down()), (Link(1, 7), down())]), gbps(200));
        assert_eq!(alone(network, &[(Link(2, 6), down())]), gbps(400), "the link of another GPU");
        let all: Vec<_> = (0..4).map(|chip| (Chip(chip), down())).collect();
        let dead = network.with_faults(&all.into_iter().collect());
        assert!(dead.uses(HostId(0), HostId(1)).is_empty());
    }

    /// A pair of a mesh of four without its link has two paths of two links with 100 Gb/s each. At a lower rate, the
    /// direct link is still the only shortest path.
    #[test]
    fn traffic_goes_around_a_link_that_is_down() {
        let topology = topology(4, 4, mesh());
        let network = topology.scale_up().unwrap();
        let link = ScaleUpPartKind::Link(0, 1);
        assert_eq!(alone(network, &[(link, down())]), Rate::from_gbps(200));
        let slow = PartState { held_down: 0, rate: Some(Rate::from_gbps(50)) };
        assert_eq!(alone(network, &[(link, slow)]), Rate::from_gbps(25));
    }

    #[test]
    fn parts_have_names() {
        let servers = topology(4, 4, switch(2));
        let chip = |domain, chip| ScaleUpPart { domain, kind: ScaleUpPartKind::Chip(chip) };
        assert_eq!(servers.node_or_chip("srv1.chip1"), Ok(NamedNode::Chip(chip(1, 1))));
        let link = ScaleUpPart { domain: 1, kind: ScaleUpPartKind::Link(2, 5) };
        for name in ["srv1.gpu2-srv1.chip1", "srv1.chip1-srv1.gpu2"] {
            assert_eq!(servers.link_or_scale_up(name), Ok(NamedLink::ScaleUp(link)));
        }
        assert_eq!(servers.scale_up_part_name(link), "srv1.gpu2-srv1.chip1");
        assert_eq!(servers.scale_up_host(link), HostId(6));
        let error = |result: Result<NamedLink, TopoError>| result.unwrap_err().to_string();
        assert_eq!(
            error(servers.link_or_scale_up("srv1.gpu2-srv1.chip7")),
            "no link is named \"srv1.gpu2-srv1.chip7\"; did you mean \"srv1.gpu2-srv1.chip0\"?"
        );
        assert_eq!(
            servers.node_or_chip("srv1.chip2").unwrap_err().to_string(),
            "no node is named \"srv1.chip2\"; did you mean \"srv1.chip1\"?"
        );
        let rack = topology(4, 8, switch(2));
        assert_eq!(rack.node_or_chip("domain0.chip1"), Ok(NamedNode::Chip(chip(0, 1))));
        assert!(rack.node_or_chip("srv0.chip1").is_err());
        let meshes = topology(4, 4, mesh());
        let link = ScaleUpPart { domain: 1, kind: ScaleUpPartKind::Link(0, 3) };
        assert_eq!(meshes.link_or_scale_up("srv1.gpu3-srv1.gpu0"), Ok(NamedLink::ScaleUp(link)));
        assert!(matches!(meshes.link_or_scale_up("srv0.nic0-switch0"), Ok(NamedLink::Link(..))));
        assert!(meshes.link_or_scale_up("srv0.gpu0-srv1.gpu0").is_err(), "another domain");
    }
}
