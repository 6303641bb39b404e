//! The leaf of each host, for balancers that work between leaves.

use pathweave_units::HostId;

/// A host that is attached to more than one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ManyLeaves(pub(crate) HostId);

/// Returns the switch of each host. `cables` are the nodes at the ends of each cable.
pub(crate) fn leaf_of_hosts(
    hosts: u32,
    cables: impl Iterator<Item = (u32, u32)>,
) -> Result<Vec<u32>, ManyLeaves> {
    let mut leaf = vec![u32::MAX; hosts as usize];
    let mut several: Option<u32> = None;
    let ends = cables.flat_map(|(a, b)| [(a, b), (b, a)]);
    for (host, peer) in ends.filter(|(node, _)| *node < hosts) {
        let known = &mut leaf[host as usize];
        match peer.checked_sub(hosts) {
            Some(switch) if *known == u32::MAX || *known == switch => *known = switch,
            _ => several = Some(several.map_or(host, |first| first.min(host))),
        }
    }
    several.map_or(Ok(leaf), |host| Err(ManyLeaves(HostId(host))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_one_leaf() {
        // Hosts 0 to 2, switches 3 and 4.
        let leaves = |cables: &[(u32, u32)]| leaf_of_hosts(3, cables.iter().copied());
        assert_eq!(leaves(&[(0, 3), (1, 4), (4, 2), (3, 4), (0, 3)]), Ok(vec![0, 1, 1]));
        assert_eq!(leaves(&[(2, 3), (2, 4), (1, 4), (1, 3), (0, 3)]), Err(ManyLeaves(HostId(1))));
        assert_eq!(leaves(&[(0, 1), (2, 3)]), Err(ManyLeaves(HostId(0))));
    }
}
