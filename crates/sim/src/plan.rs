//! Plan of a run's network: what never changes, and is the same in all shards. A process has one.

use std::sync::Arc;

use pathweave_fabric::config::{Forwarding, Shares, SwitchClasses, SwitchConfig};
use pathweave_fabric::{Blueprint, Cable, PortId, PortMap, PortNumbers, SourceRoutes, Span};
use pathweave_policy::{Adapt, FullBufferAction, PathView, Ports};
use pathweave_topo::{LinkId, NodeId, PortRef, Routing, Topology};

use crate::at_best::topology_at_best;
use crate::chosen_routes::{ChosenRoutes, source_routes};
use crate::ideal::data_wire_bytes;
use crate::partition::ShardLayout;
use crate::spec::{RouteChoice, SimError, SimSpec};
use crate::switch_classes::{switch_classes, when_full};
use crate::telemetry::TelemetryPlan;

/// Immutable description of the network, which all shards of a process share.
pub(crate) struct NetworkPlan {
    /// Numbers of the ports. The k-th port of a node is its k-th port in the topology.
    pub(crate) map: PortMap,
    /// Settings of the switches.
    pub(crate) classes: SwitchClasses,
    /// Routes while all links are up.
    pub(crate) routes: ChosenRoutes,
    /// The topology at its best, by which ideal times go, if faults make a link better than it is at the start.
    pub(crate) at_best: Option<Arc<Topology>>,
    /// Next hops of the switches while all links are up, if they choose routes.
    pub(crate) switch_routing: Option<Arc<Routing>>,
    /// Explicit paths as lists of ports, if sources or the switches of senders choose among them.
    pub(crate) lists: Option<Arc<SourceRoutes>>,
    /// The explicit path that takes a full packet longest. Present if a scheme needs it.
    pub(crate) longest_path: Option<PathView>,
    /// Present if a scheme reads telemetry.
    pub(crate) telemetry: Option<TelemetryPlan>,
    /// Action of full buffers, as schemes see it.
    pub(crate) when_full: FullBufferAction,
    pub(crate) shares: Shares,
    /// Load balancing of all switches.
    pub(crate) forwarding: Forwarding,
    /// First port of each node as its own shard numbers it. Empty if shards use the numbers of the whole network.
    first_in_parts: Vec<PortId>,
}

impl NetworkPlan {
    /// Plans the network. `switch` is the configuration of the run with the requirements of its scheme, `place` any of
    /// the shards.
    pub(crate) fn new(spec: &SimSpec, switch: &SwitchConfig, place: &ShardLayout) -> Result<Self, SimError> {
        let topology = &*spec.topology;
        let map = PortMap::of_ends(topology.nodes(), ends_of_links(topology));
        let classes = switch_classes(topology, switch)?;
        let routes = ChosenRoutes::whole(topology, &spec.routing, &spec.network);
        let shares = switch.forwarding.shares();
        let lists = match &spec.routing {
            RouteChoice::Sources(sets) | RouteChoice::SenderSwitches(sets) => {
                Some(Arc::new(source_routes(topology, &map, sets)))
            }
            RouteChoice::Switches | RouteChoice::NextHops(_) => None,
        };
        let wants_longest = spec.schemes.iter().any(|named| named.scheme.policy.uses_longest_path());
        let longest_path = wants_longest.then(|| {
            let mtu = spec.network.mtu.get() as u16;
            let bytes = data_wire_bytes(spec.network.framing, spec.network.verb, 1, mtu, false);
            routes.longest(topology, bytes)
        });
        let forwarding = switch.forwarding.kind.unwrap_or_default();
        let first_in_parts = match place.is_all() || needs_whole_network(spec, forwarding) {
            true => Vec::new(),
            false => map.first_ports_in_parts(place.parts, |node| place.part_of(node)),
        };
        Ok(NetworkPlan {
            at_best: topology_at_best(spec)?,
            switch_routing: routes.of_switches(topology, shares, &|_| true),
            longest_path: longest_path.flatten(),
            telemetry: TelemetryPlan::new(spec, &routes),
            when_full: when_full(&classes),
            map,
            classes,
            routes,
            lists,
            shares,
            forwarding,
            first_in_parts,
        })
    }

    /// Returns the plan by which fabrics are built. `cable` is [`cable_of`] for the topology.
    pub(crate) fn blueprint<'a>(
        &'a self,
        spec: &SimSpec,
        cable: &'a dyn Fn(usize) -> Cable,
    ) -> Blueprint<'a> {
        Blueprint {
            hosts: spec.topology.hosts(),
            switches: spec.topology.switches().len() as u32,
            cable,
            map: &self.map,
            classes: &self.classes,
            seed: spec.seed,
        }
    }

    /// Returns the numbers of the ports that a shard holds.
    pub(crate) fn numbers(&self, topology: &Topology, place: &ShardLayout) -> PortNumbers {
        match self.first_in_parts.is_empty() {
            true => PortNumbers::all(&self.map),
            false => PortNumbers::of_part(&self.map, |node| place.has(node), ends_of_links(topology)),
        }
    }

    /// Returns the number of a port in the shard that owns its node.
    pub(crate) fn number_in_own_shard(&self, node: u32, port: PortId) -> PortId {
        match self.first_in_parts.get(node as usize) {
            None => port,
            Some(first) => first + (port - self.map.ports(node).start),
        }
    }

    /// Returns a port of the topology by its number, with its node.
    pub(crate) fn port_ref<'t>(&self, topology: &'t Topology, port: PortId) -> (NodeId, &'t PortRef) {
        let node = self.map.node_of(port);
        let place = port - self.map.ports(node).start;
        (NodeId(node), &topology.ports(NodeId(node))[place as usize])
    }

    /// Returns the node that a port belongs to and the node at the other end of its link.
    pub(crate) fn ends(&self, topology: &Topology, port: PortId) -> (u32, u32) {
        let (node, port) = self.port_ref(topology, port);
        (node.0, port.peer.0)
    }

    /// Returns true if the owner of a port pauses it when asked to. A switch without PFC ignores pause frames.
    pub(crate) fn heeds_pauses(&self, topology: &Topology, port: PortId) -> bool {
        let switch = topology.switch_index(NodeId(self.map.node_of(port)));
        switch.is_none_or(|switch| self.classes.of(switch as u32).pfc.enabled)
    }

    /// Returns the port at the other end of a port's link.
    pub(crate) fn peer(&self, topology: &Topology, port: PortId) -> PortId {
        let (_, port) = self.port_ref(topology, port);
        self.map.ports(port.peer.0).start + PortId::from(port.peer_port)
    }
}

/// Returns true if a shard looks at ports and routes of switches that it does not own: to compare ways of different
/// lengths (UGAL), to know idle round trips (ConWeave), to follow explicit paths that switches choose, or to find source
/// ports with different ways.
pub(crate) fn needs_whole_network(spec: &SimSpec, forwarding: Forwarding) -> bool {
    let distinct = || spec.schemes.iter().any(|named| named.scheme.ports == Ports::Distinct);
    match &spec.routing {
        _ if matches!(forwarding, Forwarding::Ugal | Forwarding::ConWeave) => true,
        RouteChoice::SenderSwitches(_) => true,
        RouteChoice::Switches | RouteChoice::NextHops(_) => distinct(),
        RouteChoice::Sources(_) => false,
    }
}

/// Iterates over the nodes at the ends of the links, by link.
fn ends_of_links(topology: &Topology) -> impl Iterator<Item = (u32, u32)> + Clone {
    topology.links().iter().map(|link| (link.a.0, link.b.0))
}

/// Returns the cable of a link.
pub(crate) fn cable_of(topology: &Topology, index: usize) -> Cable {
    let id = LinkId(index as u32);
    let link = topology.link(id);
    let [there, back] = [true, false].map(|from_a| topology.direction(id, from_a));
    let (there, back) = ((there.rate, there.delay), (back.rate, back.delay));
    Cable {
        a: link.a.0,
        b: link.b.0,
        rate: there.0,
        delay: there.1,
        back: (back != there).then_some(back),
        span: span(topology, id),
    }
}

fn span(topology: &Topology, link: LinkId) -> Span {
    match topology.sites() {
        Some(sites) if sites.is_wan(link) => Span::Wan { pfc: sites.wan_pfc() },
        _ => Span::Local,
    }
}
