//! Classes of hosts that are attached alike.

use std::collections::BTreeMap;

use pathweave_sim::{NetworkChange, PacketFreeNetwork};
use pathweave_topo::{LinkId, Topology, Ways};
use pathweave_units::{HostId, Rate, Time};

/// Change of a link at a time: its kind, its rate, and the two directions that it concerns, `a` to `b` first.
type Change = (Time, u8, Option<u64>, [bool; 2]);

/// Classes of hosts.
pub(crate) struct HostClasses {
    /// Class of each host. Hosts of a class have links of the same rates and delays to the same switches, and the same
    /// faults befall these links.
    pub(crate) of: Vec<u32>,
    /// Class of each host if faults are left out.
    pub(crate) of_attachment: Vec<u32>,
}

impl HostClasses {
    pub(crate) fn new(topology: &Topology, ways: &PacketFreeNetwork<'_>) -> Self {
        let changes = changes_by_link(ways);
        let of_attachment = classes(topology, &BTreeMap::new());
        let of = if changes.is_empty() { of_attachment.clone() } else { classes(topology, &changes) };
        HostClasses { of, of_attachment }
    }

    /// Returns by class the class of its hosts if faults are left out.
    pub(crate) fn attachments(&self) -> Vec<u32> {
        let mut attachments = vec![0; classes_of(&self.of)];
        self.of.iter().zip(&self.of_attachment).for_each(|(&class, &of)| attachments[class as usize] = of);
        attachments
    }
}

/// Returns the changes of rates and of life of each link in the course of the run.
fn changes_by_link(ways: &PacketFreeNetwork<'_>) -> BTreeMap<LinkId, Vec<Change>> {
    let mut changes: BTreeMap<LinkId, Vec<Change>> = BTreeMap::new();
    for change in ways.changes() {
        let (kind, link, ways, rate) = match change.action {
            NetworkChange::Down(link, ways) => (0, link, ways, None),
            NetworkChange::Up(link, ways) => (1, link, ways, None),
            NetworkChange::Rate(link, ways, rate) => (2, link, ways, rate.map(Rate::as_bps)),
            _ => continue,
        };
        let concerned = [ways != Ways::FromB, ways != Ways::FromA];
        changes.entry(link).or_default().push((change.at, kind, rate, concerned));
    }
    changes
}

/// Returns the class of each host.
fn classes(topology: &Topology, changes: &BTreeMap<LinkId, Vec<Change>>) -> Vec<u32> {
    let mut known = BTreeMap::new();
    let class = |host: HostId| {
        let key: Vec<_> = topology
            .ports(host.into())
            .iter()
            .map(|port| {
                let [out, back] =
                    [topology.egress(port), topology.ingress(port)].map(|way| (way.rate.as_bps(), way.delay));
                let mut changes = changes.get(&port.link).cloned().unwrap_or_default();
                if !port.is_a {
                    changes.iter_mut().for_each(|(.., concerned)| concerned.reverse());
                }
                (port.peer, out, back, changes)
            })
            .collect();
        let next = known.len() as u32;
        *known.entry(key).or_insert(next)
    };
    (0..topology.hosts()).map(HostId).map(class).collect()
}

/// Returns the number of classes.
pub(crate) fn classes_of(class_of: &[u32]) -> usize {
    class_of.iter().max().map_or(0, |&last| last as usize + 1)
}
