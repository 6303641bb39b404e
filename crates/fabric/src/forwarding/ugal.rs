//! UGAL-L (Kim et al., "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008, after Singh's UGAL): each packet
//! goes the shortest way, or by a random other switch if what waits here for that is so much less that it makes up for
//! the detour.
//!
//! The choice is made once, at the switch of the sender, by what that switch alone can see: bytes waiting at the two
//! ports, each times the hops of its way. The switch in between is any with hosts (Valiant's choice of a node; the paper
//! draws a group, which in a Dragonfly comes to the same but for the last hop inside it).
//!
//! A lossless fabric wants a class for each part of such a way, or its pauses may wait for each other in a circle; here
//! is one class, and the watch on pauses names the circle if there is one.

use pathweave_units::{HostId, Time};

use super::Balancer;
use crate::fabric::Fabric;
use crate::forwarding::config::UgalConfig;
use crate::forwarding::dice::SwitchDice;
use crate::forwarding::ecmp_hash;
use crate::forwarding::routes::Candidates;
use crate::packet::Header;
use crate::port::PortId;

/// The state of all switches.
pub(crate) struct Ugal {
    bias_bytes: u64,
    leaf_of_host: Vec<u32>,
    /// Switches with hosts, ascending, and one of their hosts, which stands for the switch in routes.
    leaves: Vec<(u32, HostId)>,
    /// By place of a packet's content: the host that stands for the switch it goes by, until it is there.
    by: Vec<Option<HostId>>,
    dice: SwitchDice,
}

impl Ugal {
    pub(crate) fn new(config: &UgalConfig, seed: u64, leaf_of_host: Vec<u32>, switches: usize) -> Self {
        let mut leaves: Vec<(u32, HostId)> = leaf_of_host.iter().copied().zip((0..).map(HostId)).collect();
        leaves.sort_unstable();
        leaves.dedup_by_key(|(leaf, _)| *leaf);
        Ugal {
            bias_bytes: config.bias.get(),
            leaf_of_host,
            leaves,
            by: Vec::new(),
            dice: SwitchDice::new(seed, switches),
        }
    }

    fn leaf(&self, host: HostId) -> u32 {
        self.leaf_of_host[host.index()]
    }

    /// A random switch with hosts that is neither of the two, if there is one.
    fn detour(&mut self, from: u32, to: u32) -> Option<HostId> {
        let others = self.leaves.len().checked_sub(2).filter(|&n| n > 0)? as u32;
        let mut drawn = Candidates::Range(0, others).by_hash(self.dice.draw(from)) as usize;
        let place = |leaf| self.leaves.binary_search_by_key(&leaf, |(leaf, _)| *leaf).expect("it has hosts");
        let (from, to) = (place(from), place(to));
        for skipped in [from.min(to), from.max(to)] {
            drawn += usize::from(drawn >= skipped);
        }
        Some(self.leaves[drawn].1)
    }

    fn set(&mut self, header: &Header, by: Option<HostId>) {
        let place = header.content();
        if self.by.len() <= place {
            self.by.resize(place + 1, None);
        }
        self.by[place] = by;
    }
}

impl<P: Copy, const C: usize> Fabric<P, C> {
    fn ugal_state(&mut self) -> &mut Ugal {
        let Balancer::Ugal(ugal) = &mut self.balancer else { unreachable!("asked for by UGAL only") };
        ugal
    }

    /// The port for a packet that can be reached.
    pub(crate) fn ugal(&mut self, now: Time, switch: u32, header: &Header) -> PortId {
        let shortest = self.port_towards(switch, header, header.dst());
        let ugal = self.ugal_state();
        let (from, to) = (ugal.leaf(header.src()), ugal.leaf(header.dst()));
        // Control goes the shortest way.
        if header.class() == 0 || from == to {
            return shortest;
        }
        if switch != from {
            let by = ugal.by.get(header.content()).copied().flatten();
            return match by {
                Some(host) if ugal.leaf(host) != switch => self.port_towards(switch, header, host),
                Some(_) => {
                    ugal.set(header, None);
                    shortest
                }
                None => shortest,
            };
        }
        let detour = ugal.detour(from, to);
        ugal.set(header, None);
        let Some(host) = detour else { return shortest };
        let longer = self.port_towards(switch, header, host);
        let through = self.ugal_state().leaf(host);
        let (direct, first) = (self.hops(from, header.dst()), self.hops(from, host));
        let (Some(direct), Some(first), Some(second)) = (direct, first, self.hops(through, header.dst()))
        else {
            return shortest;
        };
        self.advance(now, shortest);
        self.advance(now, longer);
        let cost_direct = self.unsent_bytes(now, shortest) * direct;
        let cost_longer = (self.unsent_bytes(now, longer) + self.ugal_state().bias_bytes) * (first + second);
        if cost_direct <= cost_longer {
            return shortest;
        }
        self.ugal_state().set(header, Some(host));
        self.forwarding_stats.reroutes += 1;
        longer
    }

    fn port_towards(&self, switch: u32, header: &Header, host: HostId) -> PortId {
        let at = &self.switches[switch as usize];
        let candidates = at.routes.candidates(header.src(), host);
        match candidates.len() {
            // Routing has lost that switch: the packet goes on as if it were there.
            0 => at.routes.candidates(header.src(), header.dst()).get(0),
            1 => candidates.get(0),
            _ => candidates.by_hash(ecmp_hash(at.hash_seed, header.src(), header.dst(), header.path())),
        }
    }

    /// Links from a switch to that of a host.
    fn hops(&self, mut switch: u32, host: HostId) -> Option<u64> {
        for hops in 0..u64::from(u8::MAX) {
            let candidates = self.switches[switch as usize].routes.candidates(host, host);
            if candidates.len() == 0 {
                return None;
            }
            match self.ports[candidates.get(0) as usize].peer_node.checked_sub(self.wires.hosts) {
                Some(next) => switch = next,
                None => return Some(hops),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detour_is_by_any_switch_but_the_two() {
        // Hosts 0 to 5 at switches 3, 3, 5, 7, 9, 9.
        let config = UgalConfig::default();
        let mut ugal = Ugal::new(&config, 1, vec![3, 3, 5, 7, 9, 9], 10);
        let mut count = [0; 10];
        for _ in 0..1_000 {
            let host = ugal.detour(7, 3).expect("there are others");
            count[ugal.leaf(host) as usize] += 1;
        }
        assert_eq!(count[5] + count[9], 1_000);
        assert!((400..600).contains(&count[5]), "{count:?}");
        let mut two = Ugal::new(&config, 1, vec![0, 1], 2);
        assert_eq!(two.detour(0, 1), None);
    }
}
