//! Names of nodes and links, and lookup by name.
//!
//! A link is named after its ends, "tor0-agg0.1". The second and later of parallel links have a number from 1:
//! "tor0-agg0.1#1". Lookup accepts the ends in either order.

use std::borrow::Cow;

use pathweave_units::{Glob, HostId, closest_name};

use crate::directions::Ways;
use crate::error::TopoError;
use crate::graph::{LinkId, NodeId, PortRef, Switch, Topology};

impl Topology {
    /// Returns the name of a node: "host12", "tor3", "agg0.1".
    pub fn node_name(&self, node: NodeId) -> Cow<'_, str> {
        match self.switch_index(node) {
            Some(index) => Cow::Borrowed(&self.switches()[index].name),
            None => self.names().hosts.of(node.0),
        }
    }

    /// Returns the name of a link: "tor0-agg0.1", "tor0-agg0.1#1".
    pub fn link_name(&self, link: LinkId) -> String {
        let (a, b, number) = self.parts_of_name(link);
        format!("{a}-{b}{number}")
    }

    /// Returns the name of a direction of a link, as in results: "tor0>agg0.1", "agg0.1>tor0#1".
    pub fn direction_name(&self, link: LinkId, from_a: bool) -> String {
        let (a, b, number) = self.parts_of_name(link);
        let (from, to) = if from_a { (a, b) } else { (b, a) };
        format!("{from}>{to}{number}")
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

    /// Returns the link with this name and the directions that it means: one with "->", or ">" as in results, in place of
    /// the dash, such as "tor0->agg0.1", otherwise both.
    pub fn ways_by_name(&self, name: &str) -> Result<(LinkId, Ways), TopoError> {
        match self.find_link(name, "-") {
            Ok((link, _)) => Ok((link, Ways::Both)),
            Err(_) if name.contains('>') => {
                let arrow = if name.contains("->") { "->" } else { ">" };
                let (link, from) = self.find_link(name, arrow)?;
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
            let known = match (self.find_node(name), self.links().len()) {
                (Some(node), _) => self.links_of(node),
                (None, 0) => String::new(),
                (None, _) => format!("links of nodes, such as \"{}\"", self.link_name(LinkId(0))),
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
                    (None, None) => {
                        almost = Some(joined(self.between_routers(a, b).unwrap_or(&self.ports(a)[0])));
                    }
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

    /// Returns the names of the links of a node, shortened.
    fn links_of(&self, node: NodeId) -> String {
        /// Largest number of links that are named.
        const SHOWN: usize = 8;
        let ports = self.ports(node);
        let names: Vec<_> = ports.iter().take(SHOWN).map(|port| self.link_name(port.link)).collect();
        let more = match ports.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("links of {}: {}{more}", self.node_name(node), names.join(", "))
    }

    /// Returns the link between the routers of two GPUs that forward, if there is one.
    fn between_routers(&self, a: NodeId, b: NodeId) -> Option<&PortRef> {
        let router =
            |node: NodeId| self.servers()?.router(self.as_host(node)?).map(|index| self.switch_node(index));
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
        let Names { hosts, listed } = self.names();
        let implied = hosts.number(name).filter(|host| *host < self.hosts());
        implied.map(NodeId).or_else(|| {
            let place = listed.binary_search_by(|&node| self.node_name(node).as_ref().cmp(name)).ok()?;
            Some(listed[place])
        })
    }

    fn nearest_node(&self, name: &str) -> Option<String> {
        let counted = self.names().hosts == HostNames::Counted;
        if counted && name.starts_with("host") {
            return Some(format!("host{}", self.hosts() - 1));
        }
        let first = if counted { self.hosts() } else { 0 };
        let all: Vec<_> = (first..self.nodes()).map(|node| self.node_name(NodeId(node))).collect();
        closest_name(name, all.iter().map(AsRef::as_ref)).map(str::to_owned)
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

/// Names of the nodes that are not those of switches, and an order for lookups.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct Names {
    pub(crate) hosts: HostNames,
    /// Nodes whose names do not follow from their numbers, in the order of their names.
    listed: Vec<NodeId>,
}

/// Names of the hosts.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) enum HostNames {
    /// "host0", "host1", ...
    #[default]
    Counted,
    /// GPUs of servers: "srv0.gpu0", "srv0.gpu1", ...
    OfServers {
        /// Number of GPUs of a server.
        gpus: u32,
    },
    /// One name for each host.
    Listed(Vec<String>),
}

impl HostNames {
    /// Returns the name of a host.
    fn of(&self, host: u32) -> Cow<'_, str> {
        match self {
            HostNames::Counted => Cow::Owned(format!("host{host}")),
            HostNames::OfServers { gpus } => Cow::Owned(format!("srv{}.gpu{}", host / gpus, host % gpus)),
            HostNames::Listed(names) => Cow::Borrowed(&names[host as usize]),
        }
    }

    /// Returns the number of the host with this name, if numbers follow from names. There may be fewer hosts.
    fn number(&self, name: &str) -> Option<u32> {
        match self {
            HostNames::Counted => number(name.strip_prefix("host")?),
            HostNames::OfServers { gpus } => {
                let (server, gpu) = name.strip_prefix("srv")?.split_once(".gpu")?;
                let gpu = number(gpu).filter(|gpu| gpu < gpus)?;
                number(server)?.checked_mul(*gpus)?.checked_add(gpu)
            }
            HostNames::Listed(_) => None,
        }
    }
}

impl Names {
    /// Creates the names. Returns an error with the name if two nodes have the same.
    pub(crate) fn new(host_count: u32, hosts: HostNames, switches: &[Switch]) -> Result<Self, String> {
        let of_hosts: &[String] = if let HostNames::Listed(names) = &hosts { names } else { &[] };
        debug_assert!(of_hosts.is_empty() || of_hosts.len() == host_count as usize);
        let name = |node: NodeId| match node.0.checked_sub(host_count) {
            Some(switch) => switches[switch as usize].name.as_str(),
            None => of_hosts[node.index()].as_str(),
        };
        let of_switches = (host_count..).zip(switches).map(|(node, _)| node);
        let mut listed: Vec<NodeId> =
            (0..).zip(of_hosts).map(|(node, _)| node).chain(of_switches).map(NodeId).collect();
        listed.sort_by(|&a, &b| name(a).cmp(name(b)));
        let is_implied = |node: &NodeId| hosts.number(name(*node)).is_some_and(|host| host < host_count);
        let twice = listed.windows(2).filter(|pair| name(pair[0]) == name(pair[1])).map(|pair| pair[1]);
        match twice.chain(listed.iter().copied().filter(is_implied)).min() {
            Some(node) => Err(name(node).to_owned()),
            None => Ok(Names { listed, hosts }),
        }
    }

    /// Returns the bytes that the names occupy on the heap.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let of_hosts: usize = match &self.hosts {
            HostNames::Listed(names) => names.iter().map(|name| size_of::<String>() + name.capacity()).sum(),
            HostNames::Counted | HostNames::OfServers { .. } => 0,
        };
        (of_hosts + size_of_val(&self.listed[..])) as u64
    }
}

/// Returns 12 for "12", and `None` for "012", "" or "+12".
fn number(digits: &str) -> Option<u32> {
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
    fn a_direction_has_the_name_of_results_too_and_a_node_the_names_of_its_links() {
        let topology = leaf_spine();
        let arrow = topology.ways_by_name("spine0->leaf1").unwrap();
        assert_eq!(topology.ways_by_name("spine0>leaf1"), Ok(arrow));
        assert!(matches!(arrow.1, Ways::FromA | Ways::FromB));
        let error = topology.ways_by_name("host0").unwrap_err().to_string();
        assert_eq!(error, "no link is named \"host0\"; there are links of host0: host0-leaf0");
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
        let counted = |hosts, switches: &[Switch]| Names::new(hosts, HostNames::Counted, switches);
        assert_eq!(counted(2, &[switch("a"), switch("a")]), Err("a".into()));
        assert_eq!(counted(2, &[switch("host1")]), Err("host1".into()));
        assert!(counted(2, &[switch("host2"), switch("host01")]).is_ok());
        assert!(Names::new(1, HostNames::Listed(vec!["x".into()]), &[switch("x")]).is_err());
        let of_servers = |name: &str| Names::new(8, HostNames::OfServers { gpus: 4 }, &[switch(name)]);
        assert_eq!(of_servers("srv1.gpu3"), Err("srv1.gpu3".into()));
        assert!(["srv2.gpu0", "srv1.gpu4", "srv01.gpu3"].iter().all(|name| of_servers(name).is_ok()));
    }

    /// Names of GPUs follow from their numbers, and back.
    #[test]
    fn names_of_gpus_are_not_stored() {
        let names = HostNames::OfServers { gpus: 3 };
        assert_eq!(names.of(7), "srv2.gpu1");
        assert!((0..30).all(|host| names.number(&names.of(host)) == Some(host)));
        for unknown in ["srv2.gpu3", "srv2.gpu01", "srv.gpu1", "srv2gpu1", "srv1431655766.gpu0", "host7"] {
            assert_eq!(names.number(unknown), None, "{unknown}");
        }
        let stored = |names| Names::new(30, names, &[]).unwrap().memory_bytes();
        assert_eq!(stored(names), 0);
    }
}
