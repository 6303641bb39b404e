//! Network between the hosts: the fabric, the routes through it, and the state of its links.

use std::sync::Arc;

use pathweave_fabric::config::{AckClass, Forwarding, Shares, SwitchClasses, SwitchConfig};
use pathweave_fabric::{BuildError, Fabric, PortId, PortMap};
use pathweave_policy::{Adapt, FullBufferAction, PathView, PortSet};
use pathweave_topo::{LinkId, NodeId, Topology};
use pathweave_transport::{Endpoint, EndpointConfig};
use pathweave_units::{Duration, HostId, PathId};

use crate::chosen_routes::{ChosenRoutes, source_routes};
use crate::departures::DepartureLog;
use crate::edge;
use crate::host::{Content, Host};
use crate::hosts::Hosts;
use crate::ideal::data_wire_bytes;
use crate::opening::{full_and_ack_bytes, when_full};
use crate::partition::ShardLayout;
use crate::routes::{self, View};
use crate::spec::{ErrorSource, RouteChoice, SimError, SimSpec};
use crate::switch_classes::switch_classes;

/// The fabric, with its routes and the state of its links.
pub(crate) struct Network<const C: usize> {
    pub(crate) map: PortMap,
    pub(crate) routes: ChosenRoutes,
    /// The explicit path that takes a full packet longest. Present if a scheme needs it.
    pub(crate) longest_path: Option<PathView>,
    pub(crate) fabric: Fabric<Content, C>,
    /// Number of faults that hold each direction of each link down: from its end `a`, and from `b`.
    pub(crate) held_down: Vec<[u32; 2]>,
    /// Settings of the switches.
    pub(crate) classes: SwitchClasses,
    /// Action of full buffers, as schemes see it.
    pub(crate) when_full: FullBufferAction,
    pub(crate) shares: Shares,
    /// Load balancing of all switches.
    pub(crate) forwarding: Forwarding,
}

impl<const C: usize> Network<C> {
    /// Builds the network. `switch` is the configuration of the run with the requirements of its scheme.
    pub(crate) fn new(spec: &SimSpec, switch: &SwitchConfig) -> Result<Self, SimError> {
        let topology = &*spec.topology;
        let (cables, map) = routes::cables(topology);
        let shares = switch.forwarding.shares();
        let view = View { topology, alive: &|_| true, rate: &|port| topology.egress(port).rate, shares };
        let classes = switch_classes(topology, switch)?;
        let mut fabric = Fabric::new(
            topology.hosts(),
            topology.switches().len() as u32,
            &cables,
            &map,
            ChosenRoutes::switch_routes(&map, &spec.routing, &view),
            &classes,
            spec.seed,
        )
        .map_err(|error| refused(spec, error))?;
        if let RouteChoice::SenderSwitches(sets) = &spec.routing {
            if let Some(host) = (0..topology.hosts()).find(|host| topology.ports(NodeId(*host)).len() > 1) {
                return Err(SimError::Forwarding {
                    blame: ErrorSource::Topology,
                    message: format!(
                        "the switch of a sender chooses among explicit paths, but {} is at more than one switch",
                        topology.node_name(NodeId(host))
                    ),
                    advice: "choose a topology whose hosts have one NIC port, or routing by \"source\" or \"next-hops\"",
                });
            }
            fabric.set_explicit_paths(Arc::new(source_routes(topology, &map, sets)));
        }
        for link in (0..topology.links().len() as u32).map(LinkId) {
            let (at_a, at_b) = map.ends(link.index());
            for (port, from_a) in [(at_a, true), (at_b, false)] {
                let error_rate = topology.direction(link, from_a).error_rate;
                if error_rate > 0.0 {
                    fabric.set_impairment_of_direction(port, 0.0, error_rate);
                }
            }
        }
        let unmarked = topology.switches_of_hosts().into_iter().flat_map(|node| map.ports(node.0));
        unmarked.for_each(|port| fabric.disable_marking(port));
        let routes = ChosenRoutes::whole(topology, &spec.routing, &spec.network);
        edge::attach(&mut fabric, spec, &routes)?;
        let wants_longest = spec.schemes.iter().any(|named| named.scheme.policy.uses_longest_path());
        let longest_path = wants_longest.then(|| {
            let mtu = spec.network.mtu.get() as u16;
            let bytes = data_wire_bytes(spec.network.framing, spec.network.verb, 1, mtu, false);
            routes.longest(topology, bytes)
        });
        Ok(Network {
            longest_path: longest_path.flatten(),
            held_down: vec![[0; 2]; topology.links().len()],
            when_full: when_full(&classes),
            classes,
            map,
            routes,
            fabric,
            shares,
            forwarding: switch.forwarding.kind.unwrap_or_default(),
        })
    }

    /// Creates the hosts of a shard and connects them to their ports.
    pub(crate) fn hosts(&self, spec: &SimSpec, part: &ShardLayout) -> Hosts {
        let acks_as_data = spec.switch.acks == AckClass::Data;
        let headers = matches!(spec.routing, RouteChoice::Sources(_)).then(|| self.routes.headers());
        let host = |id| {
            let ports = self.map.ports(id);
            let mut endpoint = Endpoint::new(EndpointConfig {
                mtu_payload: spec.network.mtu.get() as u16,
                framing: spec.network.framing,
                nic_ports: (ports.end - ports.start) as u8,
                seed: spec.seed,
                ..EndpointConfig::new(HostId(id))
            });
            if spec.observe.max_events > 0 {
                endpoint.report_losses();
            }
            let mut host = Host::new(endpoint, ports, acks_as_data);
            host.nic.trimmable = self.classes.each().any(|config| config.trim.enabled);
            if let Some(headers) = &headers {
                host.nic.source_routed = true;
                host.route_headers = headers.cloned();
            }
            if spec.observe.departures {
                host.departures = Some(Box::new(DepartureLog::new()));
            }
            host
        };
        Hosts::new(spec.topology.hosts(), part, host)
    }

    /// Returns the views of a pair's paths as its sender knows them, or none if switches choose. A host with several
    /// ports detects the failure of its own link before routing does, because it can use the others.
    pub(crate) fn views(&self, spec: &SimSpec, pair: (HostId, HostId)) -> Vec<PathView> {
        let ports = spec.topology.ports(pair.0.into());
        let own = ports.iter().map(|port| port.link).filter(|link| self.is_down(*link));
        let own: Vec<LinkId> = if ports.len() > 1 { own.collect() } else { Vec::new() };
        self.routes.views(&spec.topology, pair, full_and_ack_bytes(&spec.network), &own)
    }

    /// Returns the ports of [`ChosenRoutes::leading_ports`], or `None` if there is no route.
    pub(crate) fn port_set(&self, topology: &Topology, src: HostId, dst: HostId) -> Option<PortSet> {
        let leading = self.routes.leading_ports(topology, src, dst);
        (leading != 0).then(|| PortSet::new(leading, leading))
    }

    /// Returns the port of `src` by which packets on this path leave, of those in `ports`.
    pub(crate) fn port_of(&self, src: HostId, ports: PortSet, path: PathId) -> PortId {
        self.map.ports(src.0).start + PortId::from(ports.port_of(path))
    }

    /// Returns the longest window in which no packet can be both sent and received.
    pub(crate) fn longest_window(&self) -> Duration {
        self.fabric.lookahead() - Duration::from_ps(1)
    }

    /// Returns the port that feeds a direction of a link.
    pub(crate) fn port(&self, link: LinkId, from_a: bool) -> PortId {
        let (at_a, at_b) = self.map.ends(link.index());
        if from_a { at_a } else { at_b }
    }

    /// Returns true if a fault holds any direction of a link down.
    pub(crate) fn is_down(&self, link: LinkId) -> bool {
        self.held_down[link.index()] != [0; 2]
    }
}

/// Converts an error of the fabric into an error of the run.
fn refused(spec: &SimSpec, error: BuildError) -> SimError {
    let topology = &*spec.topology;
    match error {
        BuildError::BufferTooSmall { switch, headroom, buffer } => SimError::BufferTooSmall {
            switch: topology.switches()[switch as usize].name.clone(),
            headroom,
            buffer,
        },
        BuildError::ManyLeaves { host, forwarding } => SimError::Forwarding {
            blame: ErrorSource::Topology,
            message: format!(
                "switches that do \"{}\" work between the switches of the two hosts, but {} is at more than one switch",
                forwarding.name(),
                topology.node_name(host.into())
            ),
            advice: "choose a topology whose hosts have one switch each, or another scheme",
        },
        BuildError::TooManyLinkKinds => SimError::Network(
            "more than 65,536 different links: rates, delays and settings of switches".into(),
        ),
    }
}
