//! Parallel paths that are alike: every link of a hop has the same rate and delay.

use std::collections::BTreeMap;

use pathweave_units::{Duration, HostId, Rate};

use crate::graph::{PortRef, Topology};
use crate::routing::Routing;
use crate::scale_up_ports::scale_up_ports;

type Properties = (Rate, Duration);

impl Topology {
    /// Returns true if the links between switches of any two tiers have one rate and delay in each direction, and
    /// switches of one tier are joined only at the top or within servers. Equally long paths between the same ends then
    /// differ at most in the links of hosts.
    fn has_regular_links(&self) -> bool {
        *self.known_regular().0.get_or_init(|| {
            let top = self.switches().iter().map(|switch| switch.tier).max();
            let mut known: BTreeMap<(u8, u8), Properties> = BTreeMap::new();
            (0..self.switches().len()).all(|index| {
                let from = self.switches()[index].tier;
                self.ports(self.switch_node(index)).iter().all(|port| {
                    let Some(to) = self.tier_of(port) else { return true };
                    let regular = from.abs_diff(to) == 1
                        || from == to && (Some(from) == top || self.servers().is_some());
                    let link = self.egress(port);
                    let own = (link.rate, link.delay);
                    regular && *known.entry((from, to)).or_insert(own) == own
                })
            })
        })
    }

    /// Returns true if all shortest paths from these ports of `src` to `dst` surely have links of the same rates and
    /// delays in the same order. Few steps give the answer.
    pub fn has_alike_paths(&self, routing: &Routing, (src, dst): (HostId, HostId), out: u64) -> bool {
        self.has_regular_links() && self.is_left_alike(src, out) && self.is_reached_alike(routing, src, dst)
    }

    fn is_left_alike(&self, src: HostId, out: u64) -> bool {
        let used = (0..).zip(self.ports(src.into())).filter(|(index, _)| out >> index & 1 == 1);
        are_equal(used.map(|(_, port)| (self.egress(port).rate, self.egress(port).delay, self.tier_of(port))))
    }

    /// Packets may arrive even by ports that are too slow to send by.
    fn is_reached_alike(&self, routing: &Routing, src: HostId, dst: HostId) -> bool {
        let ports = self.ports(dst.into());
        if ports.len() == 1 {
            return true;
        }
        let inside = scale_up_ports(self, dst, src);
        let near = routing.from_host(dst, src);
        let is_inside = near.iter().any(|port| inside >> port & 1 == 1);
        let used = near.iter().filter(|port| !is_inside || inside >> port & 1 == 1);
        are_equal(used.map(|port| {
            let port = &ports[usize::from(port)];
            (self.ingress(port).rate, self.ingress(port).delay, self.tier_of(port))
        }))
    }

    fn tier_of(&self, port: &PortRef) -> Option<u8> {
        self.switch_index(port.peer).map(|index| self.switches()[index].tier)
    }
}

fn are_equal<T: PartialEq>(mut values: impl Iterator<Item = T>) -> bool {
    let Some(first) = values.next() else { return true };
    values.all(|value| value == first)
}
