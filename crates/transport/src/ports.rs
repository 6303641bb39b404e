//! NIC ports of a host with several: which of them lead to which peer, and which work.

use alloc::collections::BTreeMap;

use pathweave_policy::PortSet;
use pathweave_units::HostId;

/// What has become of the NIC ports of a host, a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChange {
    /// These lead to a peer, at the time a queue pair to it is opened.
    Leads {
        /// The peer.
        to: HostId,
        /// At least one.
        ports: u64,
    },
    /// By these routing reaches a peer from now on; by none: those that led there are tried.
    Reaches {
        /// The peer.
        to: HostId,
        /// The ports.
        ports: u64,
    },
    /// These work from now on. Packets of a path whose port does not leave by another one that leads to the peer.
    Works {
        /// The ports.
        ports: u64,
    },
}

/// Ports by which a peer is reached, a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PeerPorts {
    /// Those that led there at any time: paths are divided among them.
    leading: u64,
    /// Those by which the peer is reached now, as far as routing knows.
    reaching: u64,
}

/// The ports of a host that has several.
#[derive(Clone, Debug)]
pub(crate) struct PortTable {
    all: u64,
    /// Those that work.
    working: u64,
    /// Of peers that not all ports lead to, or reach now.
    peers: BTreeMap<HostId, PeerPorts>,
}

impl PortTable {
    /// All ports lead to every peer and work.
    pub(crate) fn new(nic_ports: u8) -> Self {
        let all = PortSet::first(nic_ports).leading();
        PortTable { all, working: all, peers: BTreeMap::new() }
    }

    /// The ports of the packets to a peer.
    pub(crate) fn to(&self, peer: HostId) -> PortSet {
        match self.peers.get(&peer) {
            None => PortSet::new(self.all, self.working),
            Some(ports) => {
                let reached = PortSet::new(ports.leading, ports.reaching);
                let working = reached.working() & self.working;
                PortSet::new(ports.leading, if working == 0 { reached.working() } else { working })
            }
        }
    }

    /// Takes in what has become of ports.
    ///
    /// # Panics
    /// No port of the host leads to the peer of a [`PortChange::Leads`].
    pub(crate) fn change(&mut self, change: PortChange) {
        match change {
            PortChange::Leads { to, ports } => self.lead(to, ports),
            PortChange::Reaches { to, ports } => self.reach(to, ports),
            PortChange::Works { ports } => self.working = ports & self.all,
        }
    }

    fn lead(&mut self, peer: HostId, leading: u64) {
        let leading = leading & self.all;
        assert!(leading != 0, "no port leads to {peer}");
        if self.peers.contains_key(&peer) {
            self.reach(peer, leading);
        } else if leading != self.all {
            self.peers.insert(peer, PeerPorts { leading, reaching: leading });
        }
    }

    /// None: there is no way, and those that led there are tried.
    fn reach(&mut self, peer: HostId, reaching: u64) {
        let (all, reaching) = (self.all, reaching & self.all);
        let ports = self.peers.entry(peer).or_insert(PeerPorts { leading: all, reaching: all });
        *ports = PeerPorts { leading: ports.leading | reaching, reaching };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_those_that_lead_reach_and_work() {
        let mut table = PortTable::new(4);
        let (near, far) = (HostId(1), HostId(2));
        assert_eq!(table.to(near), PortSet::first(4));
        table.lead(near, 0b0001);
        table.lead(far, 0b1110);
        table.reach(far, 0b1010);
        assert_eq!(table.to(near), PortSet::new(0b0001, 0b0001));
        assert_eq!(table.to(far), PortSet::new(0b1110, 0b1010));
        table.change(PortChange::Works { ports: 0b0111 });
        assert_eq!(table.to(far), PortSet::new(0b1110, 0b0010));
        // The only port there is dead: it is used all the same, as the retry limit ends what is lost for good.
        table.change(PortChange::Works { ports: 0b1110 });
        assert_eq!(table.to(near), PortSet::new(0b0001, 0b0001));
        // Routing has found no way: those that led there are tried.
        table.reach(far, 0);
        assert_eq!(table.to(far), PortSet::new(0b1110, 0b1110));
        table.change(PortChange::Works { ports: 0b1111 });
        table.reach(HostId(3), 0b0111);
        table.lead(HostId(3), 0b0111);
        assert_eq!(table.to(HostId(3)), PortSet::new(0b1111, 0b0111));
    }
}
