//! Resources of a network: the links that flows share, and the links that each pair of hosts uses.
//!
//! Hosts of one *class* have the same attachment, so pairs of the same two classes spray alike. If all traffic is
//! sprayed, two kinds of links need no resource of their own. Links with the same signature share a resource: their
//! loads have the same ratio to their rates under any traffic. The signature is a sum over pairs of classes of a
//! random number times the fraction that crosses the link. Links that cannot be filled by what the hosts send have no
//! resource. In a Clos network without oversubscription, only the links of hosts remain.

use std::collections::{BTreeSet, HashMap};

use pathweave_execution::max_min::{ResourceId, Solver, Use, bytes_per_ps};
use pathweave_fabric::PortId;
use pathweave_sim::{PacketFreeNetwork, PathProfile, SimSpec};
use pathweave_topo::{NodeId, Topology};
use pathweave_units::{HostId, PathId, Rate, Spread};
use pathweave_workload::Folding;
use smallvec::SmallVec;

use crate::classes::{HostClasses, classes_of};
use crate::fold::{Orbits, carried_ports};
use crate::ports::{other_end, port_rates, ports_of_hosts};
use crate::profile::Profile;
use crate::representatives::representatives;
use crate::walk::{Crossing, DeadLinks, Walker};
use crate::wanted::{ClassPairs, PairOfClasses};

/// Marks a port without a resource.
pub(crate) const NONE: ResourceId = ResourceId::MAX;

/// Ports of a host, with the fraction of bytes that crosses each. Mostly there is one.
pub(crate) type Ports = SmallVec<[(u16, f64); 1]>;

/// Resources that a pair of classes uses, apart from the links of the individual hosts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pair {
    /// Sender's ports.
    pub(crate) first: Ports,
    /// Resources between the hosts' switches.
    pub(crate) between: Vec<CoreUse>,
    /// Receiver's ports.
    pub(crate) last: Ports,
    /// Dead links of which routing does not yet know.
    pub(crate) dead: DeadLinks,
    /// Index into [`Network::profiles`] of the hops when idle. `None` if there is no route.
    pub(crate) profile: Option<u32>,
    /// True if all paths surely have equal rates and delays.
    pub(crate) is_alike: bool,
    /// Indices of the [`SwitchLinks`]s of both classes, if the hosts have one port each, at different switches.
    pub(crate) gauges: Option<(u32, u32)>,
}

/// Links that share a resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CoreUse {
    pub(crate) resource: ResourceId,
    /// Fraction of a message that crosses the link whose capacity the resource has.
    pub(crate) share: f64,
    /// Largest sum of the fractions over links of the same hop.
    pub(crate) crosses: f64,
    /// Hop of the last of the links, and the sum of the fractions over its links.
    pub(crate) hop: u8,
    at_hop: f64,
}

impl CoreUse {
    /// Adds a fraction that crosses another of the links.
    fn add(&mut self, hop: u8, share: f64) {
        self.at_hop = if hop == self.hop { self.at_hop + share } else { share };
        self.hop = hop;
        self.crosses = self.crosses.max(self.at_hop);
    }
}

/// Links from a switch with hosts to other switches, in one direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SwitchLinks {
    /// Total capacity in bytes per picosecond.
    pub(crate) capacity: f64,
    /// Mean capacity of one link in bytes per picosecond.
    pub(crate) link_capacity: f64,
    /// Number of links.
    pub(crate) links: f64,
}

/// Set of links that the solver models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Every link, because some traffic takes single paths.
    EachLink,
    /// Links that can be filled, with one resource for equivalent links. Used if all traffic is sprayed.
    BottleneckLinks,
}

/// Network of a run.
pub(crate) struct Network<'a> {
    pub(crate) routes: PacketFreeNetwork<'a>,
    topology: &'a Topology,
    detail: Detail,
    /// True if some traffic is sprayed.
    sprays: bool,
    /// Share of the links' capacity that is used.
    pub(crate) efficiency: f64,
    /// Egress port at the other end of the link, by egress port.
    other_end: Vec<PortId>,
    /// Resource, by egress port.
    pub(crate) resource_of: Vec<ResourceId>,
    /// True if the resource is a port of a switch, which has a queue. The ports of a NIC that is a switch are those of
    /// hosts: it holds their traffic back. Indexed by resource.
    pub(crate) at_switch: Vec<bool>,
    /// Capacity in bytes per picosecond, by resource.
    pub(crate) capacity: Vec<f64>,
    /// Port whose capacity a resource has, by resource.
    port_of: Vec<PortId>,
    class_of: Vec<u32>,
    wanted: ClassPairs,
    /// Pairs, by index in `wanted`.
    pub(crate) pairs: Vec<Pair>,
    pub(crate) profiles: Vec<Profile>,
    /// Links of switches, by class of hosts if faults are left out.
    pub(crate) gauges: Vec<SwitchLinks>,
    /// Index into `gauges` by class.
    gauge_of: Vec<u32>,
    /// Rate of each egress port as the network was last built, whether its link is up or down.
    pub(crate) rates: Vec<Rate>,
    folding: Option<FoldedNetwork>,
    walker: Walker<'a>,
}

/// Representatives, if the graph contains only some of the hosts that symmetries map to each other.
struct FoldedNetwork {
    order: u32,
    /// Pairs of ports that symmetries map to each other.
    carried: Vec<(PortId, PortId)>,
    ports: Orbits,
    classes: Orbits,
    /// Orbits of resources.
    resources: Orbits,
}

impl FoldedNetwork {
    fn new(folding: &Folding, ways: &PacketFreeNetwork<'_>, topology: &Topology, class_of: &[u32]) -> Self {
        let order = folding.order();
        let carried = carried_ports(folding, ways, topology);
        let ports = ways.ports().ports(topology.nodes() - 1).end as usize;
        let hosts = (0..topology.hosts()).map(HostId);
        let of_classes = folding.symmetries().iter().flat_map(|symmetry| {
            hosts.clone().map(|host| (class_of[host.index()], class_of[symmetry.host(host).index()]))
        });
        FoldedNetwork {
            order,
            ports: Orbits::new(ports, order, carried.iter().copied()),
            classes: Orbits::new(classes_of(class_of), order, of_classes),
            resources: Orbits::new(0, order, []),
            carried,
        }
    }
}

impl<'a> Network<'a> {
    /// Creates the network of a run. `spread` gives the spreading of each group's messages. Resources are added to
    /// the solver.
    pub(crate) fn new(
        spec: &'a SimSpec,
        ways: PacketFreeNetwork<'a>,
        (spread, efficiency): (&[Spread], f64),
        solver: &mut Solver,
    ) -> Self {
        let topology = &*spec.topology;
        let classes = HostClasses::new(topology, &ways);
        let gauge_of = classes.attachments();
        let HostClasses { of: class_of, of_attachment } = classes;
        let wanted = ClassPairs::new(&spec.graph, &class_of, spread);
        let folding = spec.graph.folding();
        let folding = folding.map(|folding| FoldedNetwork::new(folding, &ways, topology, &class_of));
        let detail = if spread.iter().any(|spread| spread.is_single()) {
            Detail::EachLink
        } else {
            Detail::BottleneckLinks
        };
        let mut gauges = gauges(topology, &of_attachment);
        if let Some(FoldedNetwork { classes, .. }) = &folding {
            (0..)
                .zip(&mut gauges)
                .for_each(|(class, gauge)| gauge.capacity *= classes.capacity_factor(class));
        }
        let ports = ways.ports().ports(topology.nodes() - 1).end;
        let other_end = (0..ports).map(|port| other_end(&ways, topology, port)).collect();
        let mut network = Network {
            routes: ways,
            topology,
            detail,
            sprays: spread.iter().any(|spread| !spread.is_single()),
            efficiency,
            other_end,
            resource_of: Vec::new(),
            at_switch: Vec::new(),
            capacity: Vec::new(),
            port_of: Vec::new(),
            class_of,
            wanted,
            pairs: Vec::new(),
            profiles: Vec::new(),
            gauges,
            gauge_of,
            rates: Vec::new(),
            folding,
            walker: Walker::new(topology),
        };
        network.rebuild(solver);
        network
    }

    /// Rebuilds resources and pairs for the current links and routes. The solver must have no flow.
    pub(crate) fn rebuild(&mut self, solver: &mut Solver) {
        let Network { routes: ways, topology, walker, wanted, class_of, detail, efficiency, .. } = self;
        walker.forget();
        let ports = ways.ports().ports(topology.nodes() - 1).end as usize;
        let links = port_rates(ways, topology, ports);
        let rates: Vec<f64> = links
            .iter()
            .map(|&(alive, rate)| if alive { *efficiency * bytes_per_ps(rate) } else { 0.0 })
            .collect();
        self.rates = links.into_iter().map(|(_, rate)| rate).collect();
        let representative = ways.with_capacities(|capacities| match detail {
            Detail::EachLink => (0..ports as PortId).map(Some).collect(),
            Detail::BottleneckLinks => {
                representatives(ways, topology, walker, capacities, wanted, class_of, (&rates, *efficiency))
            }
        });
        self.add_resources(solver, &representative, &rates);
        self.find_pairs();
    }

    /// Adds the resources of host links and of representative links.
    fn add_resources(&mut self, solver: &mut Solver, representative: &[Option<PortId>], rates: &[f64]) {
        solver.clear();
        self.at_switch.clear();
        self.capacity.clear();
        self.port_of.clear();
        self.resource_of = vec![NONE; rates.len()];
        let of_hosts = ports_of_hosts(self.topology, self.routes.ports());
        for (port, of) in (0..).zip(representative) {
            if *of == Some(port) {
                self.resource_of[port as usize] = solver.add_resource(rates[port as usize]);
                self.at_switch.push(!of_hosts[port as usize]);
                self.capacity.push(rates[port as usize]);
                self.port_of.push(port);
            }
        }
        for (port, of) in representative.iter().enumerate() {
            if let Some(of) = of {
                self.resource_of[port] = self.resource_of[*of as usize];
            }
        }
        self.fold_resources(solver);
        for link in 0..self.topology.links().len() {
            let (a, b) = self.routes.ports().ends(link);
            let [a, b] = [a, b].map(|port| {
                (representative[port as usize] == Some(port), self.folded(self.resource_of[port as usize]))
            });
            if a.0 && b.1 != NONE || b.0 && a.1 != NONE {
                solver.join(a.1, b.1);
            }
        }
    }

    /// Merges resources that symmetries map to each other.
    fn fold_resources(&mut self, solver: &mut Solver) {
        let Some(folding) = &mut self.folding else { return };
        let carried =
            folding.carried.iter().map(|&(a, b)| [a, b].map(|port| self.resource_of[port as usize]));
        let carried = carried.filter(|of| !of.contains(&NONE)).map(|[a, b]| (a, b));
        folding.resources = Orbits::new(self.capacity.len(), folding.order, carried);
        for (resource, capacity) in (0..).zip(&mut self.capacity) {
            *capacity *= folding.resources.capacity_factor(resource);
            solver.set_capacity(resource, *capacity);
        }
    }

    /// Returns the representative of a resource.
    fn folded(&self, resource: ResourceId) -> ResourceId {
        match &self.folding {
            Some(folding) if resource != NONE => folding.resources.representative(resource),
            _ => resource,
        }
    }

    /// Returns the resource of an egress port.
    fn resource(&self, port: PortId) -> ResourceId {
        self.folded(self.resource_of[port as usize])
    }

    /// Converts the bytes by port of the messages that are run to the bytes of all messages.
    pub(crate) fn unfold(&self, by_port: &mut [f64]) {
        let Some(FoldedNetwork { ports, .. }) = &self.folding else { return };
        let mut sums = vec![0.0; by_port.len()];
        (0..).zip(&*by_port).for_each(|(port, bytes)| sums[ports.representative(port) as usize] += bytes);
        let whole = (0..).zip(by_port);
        whole.for_each(|(port, bytes)| {
            *bytes = sums[ports.representative(port) as usize] / ports.capacity_factor(port);
        });
    }

    fn find_pairs(&mut self) {
        let Network {
            routes: ways, topology, walker, wanted, resource_of, folding, other_end, sprays, ..
        } = self;
        let (port_of, rates) = (&self.port_of, &self.rates);
        let rate = |port: PortId| rates[port as usize].as_bps() as f64;
        self.pairs.clear();
        self.profiles.clear();
        let mut known = HashMap::new();
        ways.with_capacities(|capacities| {
            for (number, &PairOfClasses { spread, from, to, ends: (src, dst) }) in
                wanted.list.iter().enumerate()
            {
                let walk = walker.walk(ways, capacities, spread, number, (src, dst));
                let mut pair = Pair { dead: walk.dead, ..Pair::default() };
                for &Crossing { port, share, hop } in walk.crossed {
                    let (node, peer) = ways.ends(port);
                    let number = |node: u32, port: PortId| (port - ways.ports().ports(node).start) as u16;
                    let resource = resource_of[port as usize];
                    if node == src.0 {
                        add(&mut pair.first, number(node, port), share);
                    } else if peer == dst.0 {
                        add(&mut pair.last, number(peer, other_end[port as usize]), share);
                    } else if resource != NONE {
                        match pair.between.iter_mut().find(|known| known.resource == resource) {
                            Some(known) => known.add(hop, share),
                            None => {
                                // Links of unlike rates are one resource if they are filled alike.
                                let one = share * (rate(port_of[resource as usize]) / rate(port));
                                let (crosses, at_hop) = (share, share);
                                pair.between.push(CoreUse { resource, share: one, crosses, hop, at_hop });
                            }
                        }
                    }
                }
                pair.is_alike = ways.has_alike_paths(src, dst);
                let delays = match *sprays && !pair.is_alike {
                    true => walker.delays(ways, capacities, spread, (src, dst)),
                    false => Vec::new(),
                };
                pair.profile = Profile::find(ways, (src, dst), delays).map(|profile| {
                    *known.entry(profile.key()).or_insert_with(|| {
                        self.profiles.push(profile);
                        self.profiles.len() as u32 - 1
                    })
                });
                let leaf = |host: HostId| topology.ports(host.into())[0].peer;
                let at_leaf = |ports: &[(u16, f64)]| matches!(ports, [(0, _)]);
                let apart = leaf(src) != leaf(dst) && at_leaf(&pair.first) && at_leaf(&pair.last);
                let gauge_of = |class: u32| self.gauge_of[class as usize];
                pair.gauges = apart.then(|| (gauge_of(from), gauge_of(to)));
                if let Some(FoldedNetwork { resources, classes, .. }) = folding {
                    fold_between(&mut pair.between, resources);
                    pair.gauges = pair
                        .gauges
                        .map(|(from, to)| (classes.representative(from), classes.representative(to)));
                }
                self.pairs.push(pair);
            }
        });
    }

    /// Returns the index of the pair of two hosts. The workload must have a message between their classes.
    pub(crate) fn pair(&self, spread: Spread, src: HostId, dst: HostId) -> u32 {
        self.wanted.index(spread, (self.class_of[src.index()], self.class_of[dst.index()]))
    }

    /// Stores in `uses` the resources of a sprayed message.
    pub(crate) fn sprayed(&self, pair: u32, (src, dst): (HostId, HostId), uses: &mut Vec<Use>) {
        let pair = &self.pairs[pair as usize];
        uses.clear();
        let from = self.routes.ports().ports(src.0).start;
        for &(port, share) in &pair.first {
            uses.push(Use { resource: self.resource(from + PortId::from(port)), share });
        }
        for &(port, share) in &pair.last {
            uses.push(Use { resource: self.resource(self.port_to(dst, port)), share });
        }
        for &CoreUse { resource, share, .. } in &pair.between {
            uses.push(Use { resource, share });
        }
    }

    /// Returns the egress port of the switch at the other end of a host's port.
    pub(crate) fn port_to(&self, host: HostId, port: u16) -> PortId {
        self.other_end(self.routes.ports().ports(host.0).start + PortId::from(port))
    }

    /// Stores in `uses` the resources of a route, given as egress ports.
    pub(crate) fn of_route(&self, route: &[PortId], uses: &mut Vec<Use>) {
        uses.clear();
        uses.extend(route.iter().map(|&port| Use { resource: self.resource(port), share: 1.0 }));
    }

    /// Returns the egress ports of packets on a path. Empty if they do not arrive.
    pub(crate) fn route(&self, src: HostId, dst: HostId, path: PathId) -> Vec<PortId> {
        let route = self.routes.route(src, dst, path).unwrap_or_default();
        // Routing has not yet converged after the latest failures.
        let alive = |port: &PortId| {
            let (node, _) = self.routes.ends(*port);
            let number = (*port - self.routes.ports().ports(node).start) as usize;
            let at = self.topology.ports(NodeId(node))[number];
            self.routes.direction(at.link, at.is_a).0
        };
        if route.iter().all(alive) { route } else { Vec::new() }
    }

    /// Returns the profile of a route of at least one link, at the rates of the moment.
    pub(crate) fn profile_of(&self, route: &[PortId]) -> PathProfile {
        let hop = |port: &PortId| {
            let (node, _) = self.routes.ends(*port);
            let number = (*port - self.routes.ports().ports(node).start) as usize;
            let at = &self.topology.ports(NodeId(node))[number];
            let (_, rate) = self.routes.direction(at.link, at.is_a);
            (rate, self.topology.egress(at).delay)
        };
        PathProfile::chosen(route.iter().map(hop).collect(), None)
    }

    /// Calls `body` for each link between switches that a pair's bytes cross, in the order of pairs. Arguments are
    /// the egress port, the egress port of the reverse direction, and the fraction of the pair's two amounts that
    /// crosses them.
    pub(crate) fn each_crossing(
        &mut self,
        amounts: &[(f64, f64)],
        mut body: impl FnMut(PortId, PortId, (f64, f64)),
    ) {
        let Network { routes: ways, walker, wanted, other_end, .. } = self;
        ways.with_capacities(|capacities| {
            for (number, (pair, amounts)) in wanted.list.iter().zip(amounts).enumerate() {
                if amounts.0 == 0.0 {
                    continue;
                }
                let &PairOfClasses { spread, ends: (src, dst), .. } = pair;
                let walk = walker.walk(ways, capacities, spread, number, (src, dst));
                for &Crossing { port, share, .. } in walk.crossed {
                    let (node, peer) = ways.ends(port);
                    if node != src.0 && peer != dst.0 {
                        let back = other_end[port as usize];
                        body(port, back, (amounts.0 * share, amounts.1 * share));
                    }
                }
            }
        });
    }

    /// Returns the egress port at the other end of the link.
    pub(crate) fn other_end(&self, port: PortId) -> PortId {
        self.other_end[port as usize]
    }
}

/// Replaces resources by their representatives and merges equal ones.
fn fold_between(between: &mut Vec<CoreUse>, resources: &Orbits) {
    for one in &mut *between {
        one.resource = resources.representative(one.resource);
    }
    between.sort_by_key(|one| one.resource);
    between.dedup_by(|next, first| {
        let same = next.resource == first.resource;
        if same {
            first.share += next.share;
            first.add(next.hop, next.crosses);
        }
        same
    });
}

fn add(list: &mut Ports, port: u16, share: f64) {
    match list.iter_mut().find(|(known, _)| *known == port) {
        Some((_, sum)) => *sum += share,
        None => list.push((port, share)),
    }
}

/// Returns by class the links of its first switch to other switches.
fn gauges(topology: &Topology, class_of: &[u32]) -> Vec<SwitchLinks> {
    let mut seen = BTreeSet::new();
    let firsts = (0..).map(HostId).zip(class_of).filter(|(_, class)| seen.insert(**class));
    let gauge = |(host, _): (HostId, &u32)| {
        let leaf = topology.ports(host.into())[0].peer;
        let ports = if topology.is_host(leaf) { &[] } else { topology.ports(leaf) };
        let up = ports.iter().filter(|port| !topology.is_host(port.peer));
        let rates: Vec<f64> = up.map(|port| bytes_per_ps(topology.egress(port).rate)).collect();
        let (capacity, links): (f64, _) = (rates.iter().sum(), (rates.len() as f64).max(1.0));
        SwitchLinks { capacity, link_capacity: capacity / links, links }
    };
    firsts.map(gauge).collect()
}
