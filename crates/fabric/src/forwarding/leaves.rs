//! The leaf of each host, for balancers that work between leaves.

use pathweave_units::HostId;

use crate::port::Port;

/// A host that is attached to more than one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ManyLeaves(pub(crate) HostId);

/// Returns the switch of each host.
pub(crate) fn leaf_of_hosts<const C: usize>(ports: &[Port<C>], hosts: u32) -> Result<Vec<u32>, ManyLeaves> {
    let mut leaf = vec![u32::MAX; hosts as usize];
    for port in ports.iter().filter(|port| port.node < hosts) {
        let switch = port.peer_node.checked_sub(hosts).ok_or(ManyLeaves(HostId(port.node)))?;
        let known = &mut leaf[port.node as usize];
        if *known != u32::MAX && *known != switch {
            return Err(ManyLeaves(HostId(port.node)));
        }
        *known = switch;
    }
    Ok(leaf)
}
