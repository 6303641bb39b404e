//! Discovery of labs by the labels on their devices.

use std::collections::{BTreeMap, BTreeSet};

use pathweave_topo::{LinkId, Topology, parse_topology_file};

use crate::error::{LabError, WithContext};
use crate::label::{LinkEnd, LinkLabel, NodeLabel};
use crate::name::LabName;
use crate::os::netns::Namespace;
use crate::os::{device, queue};
use crate::plan::Plan;

/// Returns the namespaces of each existing lab. Other namespaces are ignored.
pub(crate) fn namespaces() -> Result<BTreeMap<LabName, Vec<Namespace>>, LabError> {
    let mut labs: BTreeMap<LabName, Vec<Namespace>> = BTreeMap::new();
    for namespace in Namespace::all()? {
        if let Some(lab) = LabName::of_namespace(namespace.name()) {
            labs.entry(lab).or_default().push(namespace);
        }
    }
    Ok(labs)
}

/// Returns the namespaces of one lab, or an error if it has none.
pub(crate) fn namespaces_of(lab: &LabName) -> Result<Vec<Namespace>, LabError> {
    let mut all = namespaces()?;
    all.remove(lab).ok_or_else(|| LabError::unknown("lab", lab.as_str(), all.keys().map(LabName::as_str)))
}

/// State of an existing lab: its plan and its closed links.
pub(crate) struct ExistingLab {
    pub(crate) plan: Plan,
    pub(crate) closed: BTreeSet<LinkId>,
}

/// Data read from the namespaces of a lab.
#[derive(Default)]
struct LabelData {
    nodes: BTreeMap<u32, (NodeLabel, String)>,
    /// Both ends of each link, with the node and label of each.
    links: BTreeMap<u32, BTreeMap<LinkEnd, (u32, LinkLabel)>>,
    closed: BTreeSet<LinkId>,
}

/// Reads a lab from its namespaces.
pub(crate) fn read(lab: &LabName, namespaces: &[Namespace]) -> Result<ExistingLab, LabError> {
    let mut evidence = LabelData::default();
    for namespace in namespaces {
        evidence.add(lab, namespace)?;
    }
    let incomplete = |what: String| LabError::Incomplete { lab: lab.to_string(), what };
    let topology = evidence.topology().map_err(incomplete)?;
    let settings = evidence.nodes.first_key_value().map(|(_, (label, _))| label.settings.clone());
    let settings = settings.ok_or_else(|| incomplete("no node has a label".to_owned()))?;
    let plan = Plan::new(lab.clone(), topology, settings)?;
    Ok(ExistingLab { plan, closed: evidence.closed })
}

impl LabelData {
    fn add(&mut self, lab: &LabName, namespace: &Namespace) -> Result<(), LabError> {
        let incomplete = |what: String| LabError::Incomplete { lab: lab.to_string(), what };
        let Some(name) = lab.node_of(namespace.name()) else {
            return Err(incomplete(format!("{} is no node of it", namespace.name())));
        };
        let Ok(mut netlink) = namespace.netlink() else {
            return Err(incomplete(format!("node {name} has no namespace")));
        };
        let doing = || format!("look at the devices of {name}");
        let devices = device::list(&mut netlink).context(doing)?;
        let queues = queue::list(&mut netlink).context(doing)?;
        let labels = || devices.iter().filter_map(|device| Some((device.index, device.alias.as_deref()?)));
        let mine = labels().find(|(index, _)| *index == device::LOOPBACK);
        let Some(label) = mine.and_then(|(_, alias)| alias.parse::<NodeLabel>().ok()) else {
            return Err(incomplete(format!("node {name} has no label of a lab")));
        };
        let node = label.node;
        self.nodes.insert(node, (label, name));
        for (index, alias) in labels() {
            let Ok(label) = alias.parse::<LinkLabel>() else { continue };
            if queues.iter().any(|queue| queue.device == index && queue.closed) {
                self.closed.insert(label.link);
            }
            self.links.entry(label.link.0).or_default().insert(label.end, (node, label));
        }
        Ok(())
    }

    /// Assembles the topology of the lab as a topology file, so that it passes the same checks as a file of a user.
    fn topology(&self) -> Result<Topology, String> {
        let Some((_, (first, _))) = self.nodes.first_key_value() else {
            return Err("it has no nodes".to_owned());
        };
        let (hosts, nodes, links) = (first.hosts as usize, first.nodes as usize, first.links as usize);
        if self.nodes.len() != nodes {
            return Err(format!("{} of {nodes} hosts and switches are there", self.nodes.len()));
        }
        let whole = self.links.values().filter(|ends| ends.len() == 2).count();
        if whole != links || self.links.len() != links {
            return Err(format!("{whole} of {links} links are there"));
        }
        let names: Vec<String> = self.nodes.values().map(|(_, name)| quoted(name)).collect();
        let (host_names, switch_names) = names.split_at(hosts.min(names.len()));
        let mut text =
            format!("name = {}\nhost_names = [{}]\n", quoted(&first.topology), host_names.join(", "));
        text.extend(switch_names.iter().map(|name| format!("[[switch]]\nname = {name}\n")));
        for ends in self.links.values() {
            let ((a, label), (b, _)) = (&ends[&LinkEnd::A], &ends[&LinkEnd::B]);
            let name = |node: &u32| names.get(*node as usize).map_or("\"\"", String::as_str);
            let LinkLabel { rate, delay, error_rate, .. } = label;
            text.push_str(&format!(
                "[[link]]\na = {}\nb = {}\nrate = \"{rate}\"\ndelay = \"{delay}\"\nerror_rate = {error_rate:?}\n",
                name(a),
                name(b)
            ));
        }
        parse_topology_file("its labels", &text).map_err(|why| why.to_string())
    }
}

/// Quotes a text as a TOML string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars().filter(|c| !c.is_control()) {
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::settings::Settings;
    use pathweave_topo::{Build, FatTree, LeafSpine, NodeId, Routing};

    /// Returns the data that the namespaces of a planned lab would contain.
    fn evidence(plan: &Plan) -> LabelData {
        let mut evidence = LabelData::default();
        for (node, id) in plan.nodes().iter().zip(0..) {
            evidence.nodes.insert(id, (plan.node_label(NodeId(id)), node.name.clone()));
            for port in &node.ports {
                let label = plan.link_label(port);
                evidence.links.entry(port.link.0).or_default().insert(label.end, (id, label));
            }
        }
        evidence
    }
    fn plan(topology: Topology) -> Plan {
        Plan::new("t".parse().unwrap(), topology, Settings::new("1/1000".parse().unwrap())).unwrap()
    }

    #[test]
    fn labels_bring_back_the_plan() {
        let here = Path::new(".");
        let uneven = "name = \"say \\\"x\\\"\"\nhosts = 2\nrate = \"1234567890bps\"\ndelay = \"1234567ps\"\n\
            error_rate = 1e-7\n[[switch]]\nname = \"a/b\"\n[[link]]\na = \"host1\"\nb = \"a/b\"\ncount = 2\n\
            [[link]]\na = \"a/b\"\nb = \"host0\"\n";
        for topology in [
            LeafSpine { leaf_spine_links: 2, ..LeafSpine::new(2, 3, 2) }.build(here).unwrap(),
            FatTree::k_ary(4).build(here).unwrap(),
            parse_topology_file("x.toml", uneven).unwrap(),
        ] {
            let original = plan(topology);
            let again = plan(evidence(&original).topology().unwrap());
            assert_eq!(again.nodes(), original.nodes());
            assert_eq!(again.topology().links(), original.topology().links());
            assert_eq!(again.topology().name(), original.topology().name());
            let routes = |plan: &Plan| {
                let routing = Routing::all_links_up(plan.topology());
                (0..plan.topology().nodes())
                    .map(|node| plan.routes(&routing, NodeId(node)))
                    .collect::<Vec<_>>()
            };
            assert_eq!(routes(&again), routes(&original));
        }
    }

    #[test]
    fn missing_parts_are_named() {
        let original = plan(LeafSpine::new(2, 2, 2).build(Path::new(".")).unwrap());
        let mut without_node = evidence(&original);
        without_node.nodes.remove(&3);
        assert_eq!(without_node.topology().unwrap_err(), "7 of 8 hosts and switches are there");
        let mut without_end = evidence(&original);
        without_end.links.get_mut(&5).unwrap().remove(&LinkEnd::B);
        assert_eq!(without_end.topology().unwrap_err(), "7 of 8 links are there");
        assert_eq!(LabelData::default().topology().unwrap_err(), "it has no nodes");
    }
}
