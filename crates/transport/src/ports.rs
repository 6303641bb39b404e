//! NIC ports of a host with several: which of them lead to which peer, and which work.

use alloc::collections::BTreeMap;

use pathweave_policy::PortSet;
use pathweave_units::HostId;

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

    /// These ports lead to a peer, as a queue pair to it finds that is opened.
    ///
    /// # Panics
    /// No port of the host leads there.
    pub(crate) fn lead(&mut self, peer: HostId, leading: u64) {
        let leading = leading & self.all;
        assert!(leading != 0, "no port leads to {peer}");
        if self.peers.contains_key(&peer) {
            self.reach(peer, leading);
        } else if leading != self.all {
            self.peers.insert(peer, PeerPorts { leading, reaching: leading });
        }
    }

    /// These ports lead to a peer from now on; none: there is no way, and those that led there are tried.
    pub(crate) fn reach(&mut self, peer: HostId, reaching: u64) {
        let (all, reaching) = (self.all, reaching & self.all);
        let ports = self.peers.entry(peer).or_insert(PeerPorts { leading: all, reaching: all });
        *ports = PeerPorts { leading: ports.leading | reaching, reaching };
    }

    /// Sets which ports of the host work, a bit each.
    pub(crate) fn set_working(&mut self, working: u64) {
        self.working = working & self.all;
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
        table.set_working(0b0111);
        assert_eq!(table.to(far), PortSet::new(0b1110, 0b0010));
        // The only port there is dead: it is used all the same, as the retry limit ends what is lost for good.
        table.set_working(0b1110);
        assert_eq!(table.to(near), PortSet::new(0b0001, 0b0001));
        // Routing has found no way: those that led there are tried.
        table.reach(far, 0);
        assert_eq!(table.to(far), PortSet::new(0b1110, 0b1110));
        table.set_working(0b1111);
        table.reach(HostId(3), 0b0111);
        table.lead(HostId(3), 0b0111);
        assert_eq!(table.to(HostId(3)), PortSet::new(0b1111, 0b0111));
    }
}
