//! Names of nodes and links, and the way back from a name.
//!
//! A link is named after its ends, "tor0-agg0.1"; the second and later of parallel links carry a number
//! from 1: "tor0-agg0.1#1". Lookup takes the ends in either order.

use std::borrow::Cow;

use crate::error::{TopoError, nearest};
use crate::graph::{LinkId, NodeId, Topology};

impl Topology {
    /// Name of a node: "host12", "tor3", "agg0.1".
    pub fn node_name(&self, node: NodeId) -> Cow<'_, str> {
        match self.switch_index(node) {
            Some(index) => Cow::Borrowed(&self.switches()[index].name),
            None => match self.host_names() {
                Some(names) => Cow::Borrowed(&names[node.index()]),
                None => Cow::Owned(format!("host{}", node.0)),
            },
        }
    }

    /// Name of a link: "tor0-agg0.1", "tor0-agg0.1#1".
    pub fn link_name(&self, link: LinkId) -> String {
        let (a, b) = (self.link(link).a, self.link(link).b);
        let before = self.ports(a).iter().filter(|port| port.peer == b && port.link < link).count();
        let number = if before > 0 { format!("#{before}") } else { String::new() };
        format!("{}-{}{number}", self.node_name(a), self.node_name(b))
    }

    /// The node of that name.
    pub fn node_by_name(&self, name: &str) -> Result<NodeId, TopoError> {
        self.find_node(name).ok_or_else(|| TopoError::UnknownName {
            kind: "node",
            name: name.to_owned(),
            nearest: self.nearest_node(name),
        })
    }

    /// The link of that name.
    pub fn link_by_name(&self, name: &str) -> Result<LinkId, TopoError> {
        let unknown = |nearest| TopoError::UnknownName { kind: "link", name: name.to_owned(), nearest };
        let (ends, number) = match name.rsplit_once('#') {
            Some((ends, digits)) => (ends, digits.parse().map_err(|_| unknown(Some(ends.to_owned())))?),
            None => (name, 0usize),
        };
        let mut almost = None;
        // Names may contain "-" themselves, so that every one is tried as the separator.
        for (at, _) in ends.match_indices('-') {
            let (a, b) = (self.find_node(&ends[..at]), self.find_node(&ends[at + 1..]));
            if let (Some(a), Some(b)) = (a, b) {
                let between: Vec<_> = self.ports(a).iter().filter(|port| port.peer == b).collect();
                match (between.get(number), between.first()) {
                    (Some(port), _) => return Ok(port.link),
                    (None, Some(port)) => almost = Some(self.link_name(port.link)),
                    (None, None) => almost = Some(self.link_name(self.ports(a)[0].link)),
                }
            } else if let Some(node) = a.or(b) {
                almost = almost.or_else(|| {
                    let names: Vec<_> = self.ports(node).iter().map(|p| self.link_name(p.link)).collect();
                    nearest(name, names.iter().map(String::as_str))
                });
            }
        }
        Err(unknown(almost))
    }

    fn find_node(&self, name: &str) -> Option<NodeId> {
        if let Some(index) = self.switches().iter().position(|switch| switch.name == name) {
            return Some(self.switch_node(index));
        }
        match self.host_names() {
            Some(names) => names.iter().position(|host| host == name).map(|i| NodeId(i as u32)),
            None => {
                let digits = name.strip_prefix("host")?;
                let canonical = digits == "0" || !digits.starts_with(['0', '+']);
                let id: u32 = digits.parse().ok().filter(|_| canonical)?;
                (id < self.hosts()).then_some(NodeId(id))
            }
        }
    }

    fn nearest_node(&self, name: &str) -> Option<String> {
        if self.host_names().is_none() && name.starts_with("host") {
            return Some(format!("host{}", self.hosts() - 1));
        }
        let hosts = self.host_names().unwrap_or_default().iter();
        nearest(name, hosts.chain(self.switches().iter().map(|switch| &switch.name)).map(String::as_str))
    }
}
