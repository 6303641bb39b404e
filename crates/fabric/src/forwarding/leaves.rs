//! Which switch each host is at: what schemes that work between leaves are made of.

use pathweave_units::HostId;

use crate::port::Port;

/// The switch of each host, or the first host that is at more than one.
pub(crate) fn leaf_of_hosts<const C: usize>(ports: &[Port<C>], hosts: u32) -> Result<Vec<u32>, HostId> {
    let mut leaf = vec![u32::MAX; hosts as usize];
    for port in ports.iter().filter(|port| port.node < hosts) {
        let switch = port.peer_node.checked_sub(hosts).ok_or(HostId(port.node))?;
        let known = &mut leaf[port.node as usize];
        if *known != u32::MAX && *known != switch {
            return Err(HostId(port.node));
        }
        *known = switch;
    }
    Ok(leaf)
}
