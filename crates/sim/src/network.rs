//! Network between the hosts: the fabric, the routes through it, and the state of its links.

use std::sync::Arc;

use pathweave_fabric::config::AckClass;
use pathweave_fabric::{BuildError, Fabric, PortId};
use pathweave_policy::{PathView, PortSet};
use pathweave_topo::{LinkId, NodeId, Topology};
use pathweave_transport::{Endpoint, EndpointConfig};
use pathweave_units::{Duration, HostId, PathId};

use crate::chosen_routes::ChosenRoutes;
use crate::departures::DepartureLog;
use crate::edge;
use crate::host::{Content, Host};
use crate::hosts::Hosts;
use crate::link_states::LinkStates;
use crate::packet_bytes::full_and_ack_bytes;
use crate::partition::ShardLayout;
use crate::plan::{NetworkPlan, cable_of};
use crate::routes::View;
use crate::spec::{ErrorSource, RouteChoice, SimError, SimSpec};
use crate::switch_classes::setting_of_buffer;
use crate::switch_routes::switch_routes;

/// The fabric of a shard, with its routes and the state of all links.
pub(crate) struct Network<const C: usize> {
    pub(crate) plan: Arc<NetworkPlan>,
    pub(crate) routes: ChosenRoutes,
    /// The shard's part of the fabric.
    pub(crate) fabric: Fabric<Content, C>,
    /// State of all links of the network.
    pub(crate) links: LinkStates,
}

impl<const C: usize> Network<C> {
    /// Builds the network of the shard at `place`.
    pub(crate) fn new(spec: &SimSpec, plan: Arc<NetworkPlan>, place: &ShardLayout) -> Result<Self, SimError> {
        let topology = &*spec.topology;
        let numbers = plan.numbers(topology, place);
        let view = View { topology, alive: &|_| true, rate: &|port| topology.egress(port).rate };
        let routing = plan.switch_routing.as_deref();
        let routes = switch_routes((&plan, &numbers), &spec.routing, routing, &view);
        let cable = |index| cable_of(topology, index);
        let mut fabric = Fabric::of_part(&plan.blueprint(spec, &cable), numbers, routes)
            .map_err(|error| refused(spec, error))?;
        if let RouteChoice::SenderSwitches(_) = &spec.routing {
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
            fabric.set_explicit_paths(plan.lists.clone().expect("switches of senders choose explicit paths"));
        }
        if let Some(telemetry) = plan.telemetry {
            fabric.write_telemetry(telemetry.units);
        }
        edge::attach(&mut fabric, spec, &plan.routes)?;
        let mut network = Network { routes: plan.routes.clone(), plan, fabric, links: LinkStates::default() };
        network.set_impairments(topology);
        for node in topology.switches_of_hosts() {
            network.fabric.numbers().ports(node.0).for_each(|port| network.fabric.disable_marking(port));
        }
        Ok(network)
    }

    /// Sets the error rates of the topology's links.
    fn set_impairments(&mut self, topology: &Topology) {
        for link in (0..topology.links().len() as u32).map(LinkId) {
            for from_a in [true, false] {
                let error_rate = topology.direction(link, from_a).error_rate;
                if error_rate > 0.0
                    && let Some(port) = self.port(link, from_a)
                {
                    self.fabric.set_impairment_of_direction(port, 0.0, error_rate);
                }
            }
        }
    }

    /// Creates the hosts of a shard and connects them to their ports.
    pub(crate) fn hosts(&self, spec: &SimSpec, part: &ShardLayout) -> Hosts {
        let acks_as_data = spec.switch.acks == AckClass::Data;
        let headers = matches!(spec.routing, RouteChoice::Sources(_)).then(|| self.routes.headers());
        let host = |id| {
            let ports = self.fabric.numbers().ports(id);
            let mut endpoint = Endpoint::new(EndpointConfig {
                mtu_payload: spec.network.mtu.get() as u16,
                framing: spec.network.framing,
                nic_ports: (ports.end - ports.start) as u8,
                seed: spec.seed,
                ..EndpointConfig::new(HostId(id))
            });
            // Each packet that is sent again counts for its message.
            endpoint.report_losses();
            let mut host = Host::new(endpoint, ports, acks_as_data);
            host.nic.trimmable = self.plan.classes.each().any(|config| config.trim.enabled);
            if self.plan.telemetry.is_some() {
                host.nic.has_telemetry = true;
                host.telemetry = Some(Box::default());
            }
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
        let own = ports.iter().map(|port| port.link).filter(|link| self.links.is_down(*link));
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
        self.fabric.numbers().ports(src.0).start + PortId::from(ports.port_of(path))
    }

    /// Returns the longest window in which no packet can be both sent and received.
    pub(crate) fn longest_window(&self) -> Duration {
        self.fabric.lookahead() - Duration::from_ps(1)
    }

    /// Returns the port that feeds a direction of a link, or `None` if the link is between two other shards.
    pub(crate) fn port(&self, link: LinkId, from_a: bool) -> Option<PortId> {
        let (at_a, at_b) = self.plan.map.ends(link.index());
        self.fabric.numbers().local(if from_a { at_a } else { at_b })
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
            field: setting_of_buffer(topology, &spec.switch, switch as usize),
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
