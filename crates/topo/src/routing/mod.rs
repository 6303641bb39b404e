//! Which ports lead to a host on a shortest path (in hops; equal-cost multipath).
//!
//! Two forms with one answer. In a regular Clos the hosts below a switch are one interval, so the ports
//! follow from arithmetic: 24 bytes a switch, no table to miss the cache. Everything else, and a Clos with
//! failed links, uses a table by *class* of destination: hosts attached to the same switches share a column.

mod interval;
mod table;

use pathweave_units::HostId;

use crate::graph::{LinkId, NodeId, Topology};
use interval::Interval;
pub(crate) use table::Classes;
use table::Table;

/// The next hops of every node to every host. Computed, never stored per pair of hosts.
#[derive(Clone, Debug)]
pub struct Routing {
    hosts: u32,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    /// One for each switch. Hosts have one port.
    Intervals(Vec<Interval>),
    Table(Table),
}

/// The routes of a switch of a regular Clos in closed form: child `c` has the hosts from
/// `first_host + c * hosts_per_child` and is behind the ports from `down_base + c * down_bundle`; every other
/// host is behind the ports from `up_base`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arithmetic {
    /// First host below the switch.
    pub first_host: u32,
    /// Hosts below each child.
    pub hosts_per_child: u32,
    /// Children.
    pub children: u32,
    /// First port to the first child.
    pub down_base: u16,
    /// Ports to each child.
    pub down_bundle: u16,
    /// First port up.
    pub up_base: u16,
    /// Ports up.
    pub up_count: u16,
}

/// Ports on shortest paths, in ascending order, each once.
#[derive(Clone, Copy, Debug)]
pub enum NextHops<'a> {
    /// Consecutive ports.
    Range {
        /// The first port.
        first: u16,
        /// How many; 0 means the host cannot be reached.
        count: u16,
    },
    /// Any ports.
    List(&'a [u16]),
}

impl NextHops<'_> {
    /// No way there.
    pub const NONE: NextHops<'static> = NextHops::Range { first: 0, count: 0 };

    /// How many ports there are to choose from.
    #[inline]
    pub fn len(self) -> u32 {
        match self {
            NextHops::Range { count, .. } => u32::from(count),
            NextHops::List(ports) => ports.len() as u32,
        }
    }
    /// Whether the host cannot be reached.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
    /// The `i`-th port. Panics unless `i < len()`.
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
    /// All ports.
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
    /// Routes over the links for which `alive` is true. A dead switch is one whose links are all dead.
    ///
    /// Cheap for a whole regular Clos. Otherwise a breadth-first search for each class of destination: time
    /// is classes x links, memory 4 bytes x switches x classes.
    pub fn compute(topology: &Topology, alive: &dyn Fn(LinkId) -> bool) -> Self {
        let all_alive = || (0..topology.links().len() as u32).all(|link| alive(LinkId(link)));
        if topology.is_regular_clos()
            && all_alive()
            && let Some(intervals) = interval::detect(topology)
        {
            return Routing { hosts: topology.hosts(), form: Form::Intervals(intervals) };
        }
        Self::compute_table(topology, alive)
    }

    /// Whether arithmetic gives the routes of the whole topology, found by comparing it with the table.
    pub(crate) fn arithmetic_holds(topology: &Topology, table: &Routing) -> bool {
        /// Comparing more than this would take longer than the table's slower answers cost.
        const MOST_COMPARISONS: u64 = 1 << 24;
        if u64::from(topology.nodes()) * u64::from(topology.hosts()) > MOST_COMPARISONS {
            return false;
        }
        let Some(intervals) = interval::detect(topology) else { return false };
        let arithmetic = Routing { hosts: topology.hosts(), form: Form::Intervals(intervals) };
        let agree = |node, dst| arithmetic.next_hops(node, dst) == table.next_hops(node, dst);
        let hosts = || (0..topology.hosts()).map(HostId);
        (topology.hosts()..topology.nodes()).all(|node| hosts().all(|dst| agree(NodeId(node), dst)))
    }

    /// Routes with every link alive.
    pub fn whole(topology: &Topology) -> Self {
        Self::compute(topology, &|_| true)
    }

    /// As [`Routing::compute`], always in table form. For tests of the other form.
    pub fn compute_table(topology: &Topology, alive: &dyn Fn(LinkId) -> bool) -> Self {
        Routing { hosts: topology.hosts(), form: Form::Table(Table::compute(topology, alive)) }
    }

    /// Whether routes are arithmetic rather than a table.
    pub fn is_arithmetic(&self) -> bool {
        matches!(self.form, Form::Intervals(_))
    }

    /// The routes of a switch in closed form, if routes are arithmetic.
    pub fn arithmetic(&self, switch: NodeId) -> Option<Arithmetic> {
        match &self.form {
            Form::Intervals(intervals) => Some((&intervals[(switch.0 - self.hosts) as usize]).into()),
            Form::Table(_) => None,
        }
    }

    /// Class of each host, and the first host of each class, if routes are a table. A switch that a host is not
    /// attached to has the same next hops to every host of a class.
    pub fn destination_classes(&self) -> Option<(&[u32], &[HostId])> {
        match &self.form {
            Form::Intervals(_) => None,
            Form::Table(table) => Some(table.classes()),
        }
    }

    /// The ports of switch `switch` that lead to host `dst`. For hosts see [`Routing::from_host`].
    #[inline]
    pub fn next_hops(&self, switch: NodeId, dst: HostId) -> NextHops<'_> {
        debug_assert!(switch.0 >= self.hosts, "{switch:?} is a host");
        debug_assert!(dst.0 < self.hosts, "there is no host {dst}");
        match &self.form {
            Form::Intervals(intervals) => intervals[(switch.0 - self.hosts) as usize].next_hops(dst),
            Form::Table(table) => table.next_hops(switch, dst),
        }
    }

    /// The ports of host `src` on shortest paths to host `dst`; empty if `src` is `dst` or there is no way.
    pub fn from_host(&self, src: HostId, dst: HostId) -> NextHops<'_> {
        match &self.form {
            _ if src == dst => NextHops::NONE,
            Form::Intervals(_) => NextHops::Range { first: 0, count: 1 },
            Form::Table(table) => table.next_hops(src.into(), dst),
        }
    }

    /// As [`Routing::next_hops`] or [`Routing::from_host`], whichever fits `node`.
    pub fn from_node(&self, node: NodeId, dst: HostId) -> NextHops<'_> {
        if node.0 < self.hosts { self.from_host(HostId(node.0), dst) } else { self.next_hops(node, dst) }
    }

    /// A pair of hosts without a way from the first to the second, if there is one. Possible even in a
    /// connected topology, since hosts forward nothing.
    pub fn unreachable_pair(&self) -> Option<(HostId, HostId)> {
        match &self.form {
            Form::Intervals(_) => None,
            Form::Table(table) => table.unreachable_pair(self.hosts),
        }
    }

    /// Memory of the routes in bytes.
    pub fn memory_bytes(&self) -> u64 {
        match &self.form {
            Form::Intervals(intervals) => size_of_val(&intervals[..]) as u64,
            Form::Table(table) => table.memory_bytes(),
        }
    }
}
