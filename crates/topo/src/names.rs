//! Names of nodes and links, and lookup by name.
//!
//! A link is named after its ends, "tor0-agg0.1". The second and later of parallel links have a number from 1:
//! "tor0-agg0.1#1". Lookup accepts the ends in either order.

use std::borrow::Cow;
use std::collections::HashMap;

use pathweave_units::{Glob, HostId, closest_name};

use crate::directions::Ways;
use crate::error::TopoError;
use crate::graph::{LinkId, NodeId, PortRef, Switch, Topology};

impl Topology {
    /// Returns the name of a node: "host12", "tor3", "agg0.1".
    pub fn node_name(&self, node: NodeId) -> Cow<'_, str> {
        match self.switch_index(node) {
            Some(index) => Cow::Borrowed(&self.switches()[index].name),
            None => match &self.names().hosts {
                Some(names) => Cow::Borrowed(&names[node.index()]),
                None => Cow::Owned(format!("host{}", node.0)),
            },
        }
    }

    /// Returns the name of a link: "tor0-agg0.1", "tor0-agg0.1#1".
    pub fn link_name(&self, link: LinkId) -> String {
        let (a, b, number) = self.parts_of_name(link);
        format!("{a}-{b}{number}")
    }

    /// Returns the names of a link's ends, and the number of a parallel link: "", "#1".
    pub(crate) fn parts_of_name(&self, link: LinkId) -> (Cow<'_, str>, Cow<'_, str>, String) {
        let (a, b) = (self.link(link).a, self.link(link).b);
        let before = self.ports(a).iter().filter(|port| port.peer == b && port.link < link).count();
        let number = if before > 0 { format!("#{before}") } else { String::new() };
        (self.node_name(a), self.node_name(b), number)
    }

    /// Returns the node with this name.
    pub fn node_by_name(&self, name: &str) -> Result<NodeId, TopoError> {
        self.find_node(name).ok_or_else(|| TopoError::UnknownName {
            kind: "node",
            name: name.to_owned(),
            nearest: self.nearest_node(name),
            known: self.kinds_of_names(),
        })
    }

    /// Returns the link with this name.
    pub fn link_by_name(&self, name: &str) -> Result<LinkId, TopoError> {
        self.find_link(name, "-").map(|(link, _)| link)
    }

    /// Returns the link with this name and the directions that it means: one with "->" in place of the dash, such as
    /// "tor0->agg0.1", otherwise both.
    pub fn ways_by_name(&self, name: &str) -> Result<(LinkId, Ways), TopoError> {
        match self.find_link(name, "-") {
            Ok((link, _)) => Ok((link, Ways::Both)),
            Err(_) if name.contains("->") => {
                let (link, from) = self.find_link(name, "->")?;
                Ok((link, if self.link(link).a == from { Ways::FromA } else { Ways::FromB }))
            }
            Err(why) => Err(why),
        }
    }

    /// Returns the link with this name and the end that is named first. `dash` is the text between the ends.
    fn find_link(&self, name: &str, dash: &str) -> Result<(LinkId, NodeId), TopoError> {
        let joined = |port: &PortRef| {
            let (a, b, number) = self.parts_of_name(port.link);
            match port.is_a || dash == "-" {
                true => format!("{a}{dash}{b}{number}"),
                false => format!("{b}{dash}{a}{number}"),
            }
        };
        let unknown = |nearest: Option<String>| {
            let known = match self.links().len() {
                0 => String::new(),
                _ => format!("links of nodes, such as \"{}\"", self.link_name(LinkId(0))),
            };
            TopoError::UnknownName { kind: "link", name: name.to_owned(), nearest, known }
        };
        let (ends, number) = match name.rsplit_once('#') {
            Some((ends, digits)) => (ends, digits.parse().map_err(|_| unknown(Some(ends.to_owned())))?),
            None => (name, 0usize),
        };
        let mut almost = None;
        // Names may contain "-" themselves, so every occurrence is tried as the separator.
        for (at, _) in ends.match_indices(dash) {
            let (a, b) = (self.find_node(&ends[..at]), self.find_node(&ends[at + dash.len()..]));
            if let (Some(a), Some(b)) = (a, b) {
                let between: Vec<_> = self.ports(a).iter().filter(|port| port.peer == b).collect();
                match (between.get(number), between.first()) {
                    (Some(port), _) => return Ok((port.link, a)),
                    (None, Some(port)) => almost = Some(joined(port)),
                    (None, None) => almost = Some(joined(self.between_routers(a, b).unwrap_or(&self.ports(a)[0]))),
                }
            } else if let Some(node) = a.or(b) {
                almost = almost.or_else(|| {
                    let names: Vec<_> = self.ports(node).iter().map(joined).collect();
                    closest_name(name, names.iter().map(String::as_str)).map(str::to_owned)
                });
            }
        }
        Err(unknown(almost))
    }

    /// Returns the link between the routers of two GPUs that forward, if there is one.
    fn between_routers(&self, a: NodeId, b: NodeId) -> Option<&PortRef> {
        let router = |node: NodeId| self.servers()?.router(self.as_host(node)?).map(|index| self.switch_node(index));
        let (from, to) = (router(a)?, router(b)?);
        self.ports(from).iter().find(|port| port.peer == to)
    }

    /// Returns the hosts whose names match a pattern ([`Glob`]), in order of their numbers; at least one.
    ///
    /// # Errors
    /// The pattern is malformed, or no host has such a name.
    pub fn hosts_matching(&self, pattern: &str) -> Result<Vec<HostId>, TopoError> {
        // A name may contain the letters of patterns.
        if let Some(host) = self.find_node(pattern).and_then(|node| self.as_host(node)) {
            return Ok(vec![host]);
        }
        let glob = Glob::parse(pattern).map_err(TopoError::Pattern)?;
        let all = (0..self.hosts()).map(HostId);
        let hosts: Vec<HostId> = all.filter(|&host| glob.matches(&self.node_name(host.into()))).collect();
        if !hosts.is_empty() {
            return Ok(hosts);
        }
        let names: Vec<_> = (0..self.hosts()).map(|host| self.node_name(NodeId(host))).collect();
        let nearest = closest_name(&glob.example(), names.iter().map(AsRef::as_ref)).map(str::to_owned);
        let known = match names.as_slice() {
            [] => String::new(),
            [only] => only.clone().into_owned(),
            [first, .., last] => format!("{first} to {last}"),
        };
        Err(TopoError::UnknownName { kind: "host", name: pattern.to_owned(), nearest, known })
    }

    fn find_node(&self, name: &str) -> Option<NodeId> {
        self.names().node_of.get(name).copied().or_else(|| {
            let counted = self.names().hosts.is_none();
            default_host_id(name).filter(|&id| counted && id < self.hosts()).map(NodeId)
        })
    }

    fn nearest_node(&self, name: &str) -> Option<String> {
        if self.names().hosts.is_none() && name.starts_with("host") {
            return Some(format!("host{}", self.hosts() - 1));
        }
        let hosts = self.names().hosts.iter().flatten();
        let all = hosts.chain(self.switches().iter().map(|switch| &switch.name));
        closest_name(name, all.map(String::as_str)).map(str::to_owned)
    }

    /// Returns the existing names by prefix: "host0 to host63, gpu0.0 to gpu7.7, rail0".
    fn kinds_of_names(&self) -> String {
        /// Number of prefixes that are shown.
        const SHOWN: usize = 8;
        let kind = |node: NodeId| {
            let name = self.node_name(node);
            name.split(|c: char| c.is_ascii_digit()).next().unwrap_or_default().to_owned()
        };
        let mut kinds: Vec<(String, NodeId, NodeId)> = Vec::new();
        for node in (0..self.nodes()).map(NodeId) {
            let of_node = kind(node);
            match kinds.last_mut() {
                Some((kind, _, last)) if *kind == of_node => *last = node,
                _ => kinds.push((of_node, node, node)),
            }
            if kinds.len() > SHOWN {
                kinds.pop();
                break;
            }
        }
        let texts = kinds.iter().map(|&(_, first, last)| match first == last {
            true => self.node_name(first).into_owned(),
            false => format!("{} to {}", self.node_name(first), self.node_name(last)),
        });
        texts.collect::<Vec<_>>().join(", ")
    }
}

/// Names of the nodes.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct Names {
    /// Names of hosts. `None`: "host0", "host1", ...
    pub(crate) hosts: Option<Vec<String>>,
    /// Nodes whose names do not follow from their numbers. The map is never iterated.
    node_of: HashMap<String, NodeId>,
}

impl Names {
    /// Creates the names. Returns an error with the name if two nodes have the same.
    pub(crate) fn new(
        host_count: u32,
        hosts: Option<Vec<String>>,
        switches: &[Switch],
    ) -> Result<Self, String> {
        debug_assert!(hosts.as_ref().is_none_or(|names| names.len() == host_count as usize));
        let mut node_of = HashMap::with_capacity(switches.len());
        let switch_names = (host_count..).zip(switches.iter().map(|switch| &switch.name));
        for (id, name) in (0..).zip(hosts.iter().flatten()).chain(switch_names) {
            let is_default_host =
                hosts.is_none() && default_host_id(name).is_some_and(|host| host < host_count);
            if is_default_host || node_of.insert(name.clone(), NodeId(id)).is_some() {
                return Err(name.clone());
            }
        }
        Ok(Names { hosts, node_of })
    }

    /// Returns the bytes that the names occupy on the heap.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let text = |name: &String| size_of::<String>() + name.capacity();
        let of_hosts: usize = self.hosts.iter().flatten().map(text).sum();
        // A hash table keeps an eighth of its slots free and has a byte for each.
        let entry = size_of::<(String, NodeId)>() + 1;
        let texts: usize = self.node_of.keys().map(String::capacity).sum();
        (of_hosts + texts + self.node_of.capacity() * entry * 8 / 7) as u64
    }
}

/// Returns 12 for "host12", and `None` for "host012" or "switch12".
fn default_host_id(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("host")?;
    let canonical = digits == "0" || digits.starts_with(|c: char| ('1'..='9').contains(&c));
    digits.parse().ok().filter(|_| canonical)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Build, FatTree, LeafSpine};

    fn leaf_spine() -> Topology {
        LeafSpine { leaf_spine_links: 2, ..LeafSpine::new(2, 2, 2) }.build(Path::new(".")).unwrap()
    }

    #[test]
    fn every_name_leads_back() {
        let topology = leaf_spine();
        for node in (0..topology.nodes()).map(NodeId) {
            assert_eq!(topology.node_by_name(&topology.node_name(node)), Ok(node));
        }
        for link in (0..topology.links().len() as u32).map(LinkId) {
            assert_eq!(topology.link_by_name(&topology.link_name(link)), Ok(link));
        }
    }

    #[test]
    fn parallel_links_are_numbered_and_ends_may_be_swapped() {
        let topology = leaf_spine();
        let second = topology.link_by_name("leaf1-spine0#1").unwrap();
        assert_eq!(topology.link_name(second), "leaf1-spine0#1");
        assert_eq!(topology.link_by_name("spine0-leaf1#1"), Ok(second));
        assert_eq!(topology.link_name(LinkId(second.0 - 1)), "leaf1-spine0");
    }

    #[test]
    fn an_unknown_name_is_answered_with_a_near_one() {
        let topology = FatTree::k_ary(4).build(Path::new(".")).unwrap();
        let error = |result: Result<NodeId, TopoError>| result.unwrap_err().to_string();
        assert_eq!(
            error(topology.node_by_name("host16")),
            "no node is named \"host16\"; did you mean \"host15\"?"
        );
        assert_eq!(
            error(topology.node_by_name("aggr0.1")),
            "no node is named \"aggr0.1\"; did you mean \"agg0.1\"?"
        );
        assert_eq!(
            error(topology.node_by_name("scale-up0")),
            "no node is named \"scale-up0\"; there are host0 to host15, tor0 to tor7, agg0.0 to agg3.1, core0 to core3"
        );
        assert!(topology.node_by_name("host01").is_err());
        let error = topology.link_by_name("tor0-agg0.7").unwrap_err();
        assert_eq!(error.to_string(), "no link is named \"tor0-agg0.7\"; did you mean \"tor0-agg0.0\"?");
        assert!(topology.link_by_name("tor0-core0").is_err());
        assert!(topology.link_by_name("tor0-agg0.0#1").is_err());
    }

    #[test]
    fn patterns_select_hosts() {
        let topology = FatTree::k_ary(4).build(Path::new(".")).unwrap();
        let hosts = |pattern: &str| topology.hosts_matching(pattern);
        let ids = |ids: &[u32]| Ok(ids.iter().copied().map(HostId).collect::<Vec<_>>());
        assert_eq!(hosts("host[2-4]"), ids(&[2, 3, 4]));
        assert_eq!(hosts("host1?"), ids(&[10, 11, 12, 13, 14, 15]));
        assert_eq!(hosts("host7"), ids(&[7]));
        let error = |pattern: &str| hosts(pattern).unwrap_err().to_string();
        assert_eq!(error("hots[2-4]"), "no host is named \"hots[2-4]\"; did you mean \"host2\"?");
        assert_eq!(error("tor*"), "no host is named \"tor*\"; there are host0 to host15");
        assert_eq!(error("tor0"), "no host is named \"tor0\"; there are host0 to host15");
        assert!(error("host[3-").contains("has no \"]\""));
    }

    #[test]
    fn two_nodes_cannot_share_a_name() {
        let switch = |name: &str| Switch { name: name.into(), tier: 0, group: None };
        assert_eq!(Names::new(2, None, &[switch("a"), switch("a")]), Err("a".into()));
        assert_eq!(Names::new(2, None, &[switch("host1")]), Err("host1".into()));
        assert!(Names::new(2, None, &[switch("host2")]).is_ok());
        assert!(Names::new(1, Some(vec!["x".into()]), &[switch("x")]).is_err());
    }
}
