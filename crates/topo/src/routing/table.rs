//! Routing of any network by a table of destination classes.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use pathweave_units::HostId;

use super::NextHops;
use crate::bfs::Distances;
use crate::graph::{LinkId, NodeId, Topology};

/// Routing table. Rows are switches, and hosts with several ports; columns are classes of destinations. Hosts
/// attached to the same nodes by equally many links form one class: every node that is not attached to them has the
/// same routes to all of them.
#[derive(Clone, Debug)]
pub(super) struct Table {
    class_of: Vec<u32>,
    members: Vec<HostId>,
    classes: u32,
    /// Row of each node.
    row_of: Vec<u32>,
    entries: Vec<Ports>,
    /// Ports of the nodes attached to host `h`: `attached[first_attached[h]..first_attached[h + 1]]`.
    attached_ports: Vec<(NodeId, Ports)>,
    first_attached: Vec<u32>,
    pool: Pool,
}

/// Set of ports. Consecutive ports are stored inline (count << 16 | first), others in the pool (top bit, then index).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ports(u32);

/// Pool that holds each distinct list of ports once.
#[derive(Clone, Debug, Default)]
struct Pool {
    lists: Vec<u16>,
    /// List `i` is `lists[ends[i - 1]..ends[i]]`.
    ends: Vec<u32>,
    index: BTreeMap<Box<[u16]>, u32>,
}

const POOLED: u32 = 1 << 31;
/// Row of hosts with one port. They have no row, because they have no choice.
const SINGLE_PORT: u32 = u32::MAX;

impl Pool {
    /// Stores `ports`, which are in ascending order.
    fn intern(&mut self, ports: &[u16]) -> Ports {
        let Some(&first) = ports.first() else { return Ports(0) };
        let consecutive = ports.iter().zip(first..).all(|(&port, expected)| port == expected);
        if consecutive && ports.len() < 1 << 15 {
            return Ports((ports.len() as u32) << 16 | u32::from(first));
        }
        if let Some(&known) = self.index.get(ports) {
            return Ports(POOLED | known);
        }
        let new = self.ends.len() as u32;
        self.lists.extend_from_slice(ports);
        self.ends.push(self.lists.len() as u32);
        self.index.insert(ports.into(), new);
        Ports(POOLED | new)
    }
    #[inline]
    fn get(&self, ports: Ports) -> NextHops<'_> {
        if ports.0 & POOLED == 0 {
            return NextHops::Range { first: ports.0 as u16, count: (ports.0 >> 16) as u16 };
        }
        let i = (ports.0 & !POOLED) as usize;
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        NextHops::List(&self.lists[start..self.ends[i] as usize])
    }
}

impl Table {
    pub(super) fn compute(topology: &Topology, alive: &dyn Fn(LinkId) -> bool) -> Self {
        let classes = Classes::by_attachment(topology, alive);
        let mut rows = 0;
        let row_of: Vec<u32> = (0..topology.nodes())
            .map(NodeId)
            .map(|node| {
                if topology.is_host(node) && topology.ports(node).len() == 1 {
                    return SINGLE_PORT;
                }
                rows += 1;
                rows - 1
            })
            .collect();
        let mut pool = Pool::default();
        let width = classes.members.len();
        let mut entries = vec![Ports(0); rows as usize * width];
        let mut distances = Distances::new(topology);
        let mut ports = Vec::new();
        for (class, &member) in classes.members.iter().enumerate() {
            distances.compute(topology, member, alive);
            for node in (0..topology.nodes()).map(NodeId) {
                let row = row_of[node.index()];
                if row != SINGLE_PORT {
                    distances.next_hops(topology, node, alive, &mut ports);
                    entries[row as usize * width + class] = pool.intern(&ports);
                }
            }
        }
        let mut attached = Vec::new();
        let mut first_attached = vec![0];
        for host in (0..topology.hosts()).map(NodeId) {
            for (peer, ports) in peers(topology, host, alive) {
                attached.push((peer, pool.intern(&ports)));
            }
            first_attached.push(attached.len() as u32);
        }
        Table {
            class_of: classes.class_of,
            members: classes.members,
            classes: width as u32,
            row_of,
            entries,
            attached_ports: attached,
            first_attached,
            pool,
        }
    }

    #[inline]
    pub(super) fn next_hops(&self, node: NodeId, dst: HostId) -> NextHops<'_> {
        for (peer, ports) in self.attached_to(dst) {
            if *peer == node {
                return self.pool.get(*ports);
            }
        }
        let row = self.row_of[node.index()];
        if row == SINGLE_PORT {
            return NextHops::Range { first: 0, count: 1 };
        }
        let column = self.class_of[dst.index()];
        self.pool.get(self.entries[row as usize * self.classes as usize + column as usize])
    }

    /// Returns the class of each host, and the first host of each class.
    pub(super) fn classes(&self) -> (&[u32], &[HostId]) {
        (&self.class_of, &self.members)
    }

    fn attached_to(&self, host: HostId) -> &[(NodeId, Ports)] {
        let (first, end) = (self.first_attached[host.index()], self.first_attached[host.index() + 1]);
        &self.attached_ports[first as usize..end as usize]
    }

    pub(super) fn unreachable_pair(&self, hosts: u32) -> Option<(HostId, HostId)> {
        // Reachability is equal for all hosts of a class, except that hosts of one class reach each other over any
        // attached switch. One check for each pair of classes is enough.
        let mut first_of = BTreeMap::new();
        let mut second_of = BTreeMap::new();
        for host in (0..hosts).map(HostId) {
            let class = self.class_of[host.index()];
            match first_of.entry(class) {
                Entry::Vacant(entry) => _ = entry.insert(host),
                Entry::Occupied(_) => _ = second_of.entry(class).or_insert(host),
            }
        }
        for (class, &dst) in &first_of {
            for (other, &src) in &first_of {
                let src = if other == class { second_of.get(class).copied() } else { Some(src) };
                if let Some(src) = src
                    && !self.reaches(src, dst)
                {
                    return Some((src, dst));
                }
            }
        }
        None
    }

    /// Returns true if `src` reaches `dst`, over a link between them or over a switch to which it is attached.
    fn reaches(&self, src: HostId, dst: HostId) -> bool {
        let to = self.attached_to(dst);
        let column = self.class_of[dst.index()] as usize;
        self.attached_to(src).iter().any(|&(peer, _)| {
            let is_host = peer.index() < self.class_of.len();
            let attached = || to.iter().any(|&(other, _)| other == peer);
            let row = || self.row_of[peer.index()] as usize * self.classes as usize;
            peer == dst.into() || !is_host && (attached() || self.entries[row() + column] != Ports(0))
        })
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let lists = size_of_val(&self.pool.lists[..]) * 2 + size_of_val(&self.pool.ends[..]);
        let tables = size_of_val(&self.entries[..]) + size_of_val(&self.attached_ports[..]);
        let hosts = size_of_val(&self.class_of[..]) + size_of_val(&self.first_attached[..]);
        (lists + tables + hosts + size_of_val(&self.row_of[..])) as u64
    }
}

/// Returns the nodes to which `host` is attached by links that are up, each with its ports to the host.
fn peers(topology: &Topology, host: NodeId, alive: &dyn Fn(LinkId) -> bool) -> BTreeMap<NodeId, Vec<u16>> {
    let mut peers: BTreeMap<NodeId, Vec<u16>> = BTreeMap::new();
    for port in topology.ports(host).iter().filter(|port| alive(port.link)) {
        peers.entry(port.peer).or_default().push(port.peer_port);
    }
    for ports in peers.values_mut() {
        ports.sort_unstable();
    }
    peers
}

/// Classes of hosts by attachment.
pub(crate) struct Classes {
    /// Class of each host.
    pub(crate) class_of: Vec<u32>,
    /// First host of each class.
    pub(crate) members: Vec<HostId>,
}

impl Classes {
    pub(crate) fn by_attachment(topology: &Topology, alive: &dyn Fn(LinkId) -> bool) -> Self {
        let mut known: BTreeMap<Vec<NodeId>, u32> = BTreeMap::new();
        let mut members = Vec::new();
        let class_of = (0..topology.hosts())
            .map(|host| {
                let ports = topology.ports(NodeId(host)).iter();
                let mut key: Vec<_> = ports.filter(|port| alive(port.link)).map(|port| port.peer).collect();
                key.sort_unstable();
                *known.entry(key).or_insert_with(|| {
                    members.push(HostId(host));
                    members.len() as u32 - 1
                })
            })
            .collect();
        Classes { class_of, members }
    }
}
