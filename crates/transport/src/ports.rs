//! NIC ports of a host with several: which of them lead to which peer, and which are up.

use alloc::collections::BTreeMap;

use pathweave_policy::PortSet;
use pathweave_units::HostId;

/// Change of the NIC ports of a host. Ports are given as bit sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChange {
    /// Ports that lead to a peer when a queue pair to it is opened.
    Leads {
        /// Peer host.
        to: HostId,
        /// Set of ports, at least one.
        ports: u64,
    },
    /// Ports by which routing reaches a peer from now on. With the empty set, all ports that ever led there are
    /// tried.
    Reaches {
        /// Peer host.
        to: HostId,
        /// Set of ports.
        ports: u64,
    },
    /// Ports that are up from now on. A packet of a path whose port is down leaves by another port that leads to the
    /// peer.
    Works {
        /// Set of ports.
        ports: u64,
    },
}

/// Ports by which a peer is reached, as bit sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PeerPorts {
    /// Ports that led to the peer at any time. Paths are divided among them.
    leading: u64,
    /// Ports by which the peer is reached now, as far as routing knows.
    reaching: u64,
}

/// Ports of a host that has several.
#[derive(Clone, Debug)]
pub(crate) struct PortTable {
    all: u64,
    /// Ports that are up.
    working: u64,
    /// Entries for peers to which not all ports lead, or that not all ports reach now.
    peers: BTreeMap<HostId, PeerPorts>,
}

impl PortTable {
    /// Returns a table in which all ports are up and lead to every peer.
    pub(crate) fn new(nic_ports: u8) -> Self {
        let all = PortSet::first(nic_ports).leading();
        PortTable { all, working: all, peers: BTreeMap::new() }
    }

    /// Returns the ports for packets to a peer.
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

    /// Applies a change of ports.
    ///
    /// # Panics
    /// If a [`PortChange::Leads`] names no port of the host.
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

    /// Sets the ports that reach a peer. The empty set means that routing has no route; then all leading ports are
    /// tried.
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
        // The only port of this peer is down. It is used all the same: if packets are lost for good, the retry limit
        // applies.
        table.change(PortChange::Works { ports: 0b1110 });
        assert_eq!(table.to(near), PortSet::new(0b0001, 0b0001));
        // Routing has no route, so all leading ports are tried.
        table.reach(far, 0);
        assert_eq!(table.to(far), PortSet::new(0b1110, 0b1110));
        table.change(PortChange::Works { ports: 0b1111 });
        table.reach(HostId(3), 0b0111);
        table.lead(HostId(3), 0b0111);
        assert_eq!(table.to(HostId(3)), PortSet::new(0b1111, 0b0111));
    }
}
