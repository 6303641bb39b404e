//! Routing: the ports that lead to a host on a shortest path (in hops; equal-cost multipath).
//!
//! Routes have two representations with equal results. In a regular Clos the hosts below a switch form one interval, in
//! the order of their numbers or another (rails), so the ports follow from arithmetic: 32 bytes for each switch, and no
//! table that misses the cache. The same holds for equal planes, to each of which every host has a port. All other
//! networks, and a Clos with failed links, use a table by *class* of destination: hosts attached to the same switches
//! share a column.

mod interval;
mod table;

use std::sync::Arc;

use pathweave_units::HostId;

use crate::graph::{LinkId, NodeId, Topology};
use interval::Intervals;
pub(crate) use table::Classes;
use table::Table;

/// Next hops from every node to every host. They are computed and not stored for each pair of hosts.
#[derive(Clone, Debug)]
pub struct Routing {
    hosts: u32,
    form: Representation,
}

#[derive(Clone, Debug)]
enum Representation {
    Intervals(Intervals),
    Table(Table),
}

/// Routes of a switch of a regular Clos in closed form. Hosts are counted by their places ([`Routing::places`]). Child `c`
/// has the hosts from `first_host + c * hosts_per_child` and is behind the ports from `down_base + c * down_bundle`. All other hosts are
/// behind the ports from `up_base`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arithmetic {
    /// First host below the switch.
    pub first_host: u32,
    /// Number of hosts below each child.
    pub hosts_per_child: u32,
    /// Number of children.
    pub children: u32,
    /// First port to the first child.
    pub down_base: u16,
    /// Number of ports to each child.
    pub down_bundle: u16,
    /// First port up.
    pub up_base: u16,
    /// Number of ports up.
    pub up_count: u16,
}

/// Ports on shortest paths, in ascending order and without repetition.
#[derive(Clone, Copy, Debug)]
pub enum NextHops<'a> {
    /// Consecutive ports.
    Range {
        /// First port.
        first: u16,
        /// Number of ports; 0 means that the host is unreachable.
        count: u16,
    },
    /// Arbitrary ports.
    List(&'a [u16]),
}

impl NextHops<'_> {
    /// No ports: the host is unreachable.
    pub const NONE: NextHops<'static> = NextHops::Range { first: 0, count: 0 };

    /// Returns the number of ports to choose from.
    #[inline]
    pub fn len(self) -> u32 {
        match self {
            NextHops::Range { count, .. } => u32::from(count),
            NextHops::List(ports) => ports.len() as u32,
        }
    }
    /// Returns true if the host is unreachable.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
    /// Returns the `i`-th port. Panics unless `i < len()`.
    #[inline]
    pub fn get(self, i: u32) -> u16 {
        match self {
            NextHops::Range { first, count } => {
                assert!(i < u32::from(count), "choice {i} of {count} ports");
                first + i as u16
            }
            NextHops::List(ports) => ports[i as usize],
        }
    }
    /// Iterates over all ports.
    pub fn iter(self) -> impl Iterator<Item = u16> {
        (0..self.len()).map(move |i| self.get(i))
    }
}

impl PartialEq for NextHops<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}
impl Eq for NextHops<'_> {}

impl Routing {
    /// Computes routes over the links for which `alive` returns true. A failed switch is one whose links are all
    /// down.
    ///
    /// The computation is cheap for a complete regular Clos. Otherwise it makes a breadth-first search for each class
    /// of destination: time is classes x links, memory 4 bytes x switches x classes.
    pub fn compute(topology: &Topology, alive: &dyn Fn(LinkId) -> bool) -> Self {
        let all_alive = || (0..topology.links().len() as u32).all(|link| alive(LinkId(link)));
        if topology.is_regular_clos()
            && all_alive()
            && let Some(intervals) = Intervals::detect(topology)
        {
            return Routing { hosts: topology.hosts(), form: Representation::Intervals(intervals) };
        }
        Self::compute_table(topology, alive)
    }

    /// Returns true if arithmetic gives the routes of the whole topology, according to a comparison with the table.
    pub(crate) fn arithmetic_holds(topology: &Topology, table: &Routing) -> bool {
        /// Largest number of comparisons. More of them would take longer than the slower lookups in the table cost.
        const MOST_COMPARISONS: u64 = 1 << 24;
        if u64::from(topology.nodes()) * u64::from(topology.hosts()) > MOST_COMPARISONS {
            return false;
        }
        let Some(intervals) = Intervals::detect(topology) else { return false };
        let arithmetic = Routing { hosts: topology.hosts(), form: Representation::Intervals(intervals) };
        let agree = |node, dst| arithmetic.next_hops(node, dst) == table.next_hops(node, dst);
        let hosts = || (0..topology.hosts()).map(HostId);
        let from_hosts = |dst| hosts().all(|src| arithmetic.from_host(src, dst) == table.from_host(src, dst));
        (topology.hosts()..topology.nodes()).all(|node| hosts().all(|dst| agree(NodeId(node), dst)))
            && (topology.ports(NodeId(0)).len() == 1 || hosts().all(from_hosts))
    }

    /// Computes routes with every link up.
    pub fn all_links_up(topology: &Topology) -> Self {
        Self::compute(topology, &|_| true)
    }

    /// Computes routes like [`Routing::compute`], always as a table. For tests of the other representation.
    pub fn compute_table(topology: &Topology, alive: &dyn Fn(LinkId) -> bool) -> Self {
        Routing { hosts: topology.hosts(), form: Representation::Table(Table::compute(topology, alive)) }
    }

    /// Returns true if routes are arithmetic and not a table.
    pub fn is_arithmetic(&self) -> bool {
        matches!(self.form, Representation::Intervals(_))
    }

    /// Returns the routes of a switch in closed form, if routes are arithmetic.
    pub fn arithmetic(&self, switch: NodeId) -> Option<Arithmetic> {
        match &self.form {
            Representation::Intervals(intervals) => {
                Some(intervals.arithmetic((switch.0 - self.hosts) as usize))
            }
            Representation::Table(_) => None,
        }
    }

    /// Returns the place of each host by which [`Arithmetic`] counts the hosts, if that is not its number.
    pub fn places(&self) -> Option<&Arc<[u32]>> {
        match &self.form {
            Representation::Intervals(intervals) => intervals.places(),
            Representation::Table(_) => None,
        }
    }

    /// Returns the class of each host, and the first host of each class, if routes are a table. A switch to which
    /// none of a class's hosts is attached has the same next hops to all of them.
    pub fn destination_classes(&self) -> Option<(&[u32], &[HostId])> {
        match &self.form {
            Representation::Intervals(_) => None,
            Representation::Table(table) => Some(table.classes()),
        }
    }

    /// Returns the ports of switch `switch` that lead to host `dst`. For hosts see [`Routing::from_host`].
    #[inline]
    pub fn next_hops(&self, switch: NodeId, dst: HostId) -> NextHops<'_> {
        debug_assert!(switch.0 >= self.hosts, "{switch:?} is a host");
        debug_assert!(dst.0 < self.hosts, "there is no host {dst}");
        match &self.form {
            Representation::Intervals(intervals) => {
                intervals.next_hops((switch.0 - self.hosts) as usize, dst)
            }
            Representation::Table(table) => table.next_hops(switch, dst),
        }
    }

    /// Returns the ports of host `src` on shortest paths to host `dst`. Empty if `src` is `dst` or there is no route.
    pub fn from_host(&self, src: HostId, dst: HostId) -> NextHops<'_> {
        match &self.form {
            _ if src == dst => NextHops::NONE,
            Representation::Intervals(intervals) => intervals.next_hops_of_hosts(),
            Representation::Table(table) => table.next_hops(src.into(), dst),
        }
    }

    /// Returns [`Routing::next_hops`] for a switch, and [`Routing::from_host`] for a host.
    pub fn from_node(&self, node: NodeId, dst: HostId) -> NextHops<'_> {
        if node.0 < self.hosts { self.from_host(HostId(node.0), dst) } else { self.next_hops(node, dst) }
    }

    /// Returns a pair of hosts of which the first cannot reach the second, if there is one. Such pairs exist even in
    /// connected topologies, because hosts do not forward.
    pub fn unreachable_pair(&self) -> Option<(HostId, HostId)> {
        match &self.form {
            Representation::Intervals(_) => None,
            Representation::Table(table) => table.unreachable_pair(self.hosts),
        }
    }

    /// Returns the memory of the routes in bytes.
    pub fn memory_bytes(&self) -> u64 {
        match &self.form {
            Representation::Intervals(intervals) => intervals.memory_bytes(),
            Representation::Table(table) => table.memory_bytes(),
        }
    }
}
