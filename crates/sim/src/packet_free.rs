//! Routes of messages through the network without packets, for coarser models. Routes, hashes and random streams are
//! those of the packet simulation.

use std::sync::Arc;

use pathweave_execution::{ConnId, Connections};
use pathweave_fabric::config::{ForwardingConfig, SwitchClasses};
use pathweave_fabric::{PortId, PortMap};
use pathweave_policy::{AnyPolicy, Egress, Grant, Policy, PolicyCx, QueuePairId, SendRequest, Sent, Shared};
use pathweave_topo::{LinkId, NodeId, PortRef, Routing, Topology, Ways};
use pathweave_transport::queue_pair_stream;
use pathweave_units::{HostId, PathId, QpNum, Rate, Rng, Time};
use pathweave_workload::GroupId;

use crate::chosen_routes::ChosenRoutes;
use crate::faults::agenda;
pub use crate::faults::{Action as NetworkChange, Edge, Entry as ScheduledChange};
use crate::forwarding;
use crate::network::Network;
use crate::opening::policy_stream;
use crate::packet_bytes::full_and_ack_bytes;
use crate::partition::ShardLayout;
use crate::paths::{PathProfile, check_distances};
use crate::plan::NetworkPlan;
use crate::routes::View;
use crate::shard::queue_pair_numbers;
use crate::spec::{RouteChoice, SimError, SimSpec};
use crate::weights::Weights;

/// Network of a run whose switches choose routes and have at most one data class.
pub struct PacketFreeNetwork<'a> {
    spec: &'a SimSpec,
    network: Network<2>,
    forwarding: ForwardingConfig,
    /// Numbers of the first queue pair at both ends of each connection.
    queue_pairs: Vec<[u32; 2]>,
    changes: Vec<ScheduledChange>,
    /// The topology with the rates of the moment, once a rate has changed.
    present: Option<Topology>,
}

impl<'a> PacketFreeNetwork<'a> {
    /// Builds the whole network in its initial state, and the assignment of messages to queue pairs. `Q` is the
    /// caller's type for the two ends of a queue pair.
    ///
    /// # Errors
    /// Errors that the packet simulation returns, too.
    ///
    /// # Panics
    /// Panics if switches do not choose the routes, or if there are several data classes.
    pub fn new<Q>(spec: &'a SimSpec) -> Result<(Self, Connections<Q>), SimError> {
        assert!(matches!(spec.routing, RouteChoice::Switches), "switches choose the routes");
        assert!(spec.switch.classes() <= 2, "there is one data class");
        spec.switch.validate().map_err(SimError::Switch)?;
        spec.check_nics()?;
        let mut switch = spec.switch.clone();
        switch.forwarding.kind = Some(forwarding::of_run(spec)?);
        let whole = ShardLayout::whole();
        let plan = Arc::new(NetworkPlan::new(spec, &switch, &whole)?);
        let network = Network::new(spec, plan, &whole)?;
        let mut changes = agenda(&spec.topology, &network.plan.map, &spec.faults, &switch)?;
        // Scale-up networks have no routes.
        changes.retain(|change| !matches!(change.action, NetworkChange::ScaleUp(..)));
        check_distances(spec, &network.routes)?;
        let connections = Connections::new(&spec.graph, |group| &spec.scheme_of(group).scheme.service);
        let queue_pairs = queue_pair_numbers(spec, &connections)?;
        Ok((
            PacketFreeNetwork {
                spec,
                network,
                forwarding: switch.forwarding,
                queue_pairs,
                changes,
                present: None,
            },
            connections,
        ))
    }

    /// Returns the load balancing of all switches, with the requirements of schemes.
    pub fn forwarding(&self) -> &ForwardingConfig {
        &self.forwarding
    }

    /// Returns the egress ports by link and node. Each is a direction of a link.
    pub fn ports(&self) -> &PortMap {
        &self.network.plan.map
    }

    /// Returns the node that owns a port and the node at the far end.
    pub fn ends(&self, port: PortId) -> (u32, u32) {
        self.network.plan.ends(&self.spec.topology, port)
    }

    /// Returns the next hops as of the last time routing was updated.
    pub fn routing(&self) -> &Routing {
        match &self.network.routes {
            ChosenRoutes::Switches(routing) => routing,
            ChosenRoutes::Sources { .. } => unreachable!("switches choose the routes"),
        }
    }

    /// Returns true if no fault holds a direction of a link down, and the direction's rate. The direction begins at
    /// end `a` of the link, or else at `b`.
    pub fn direction(&self, link: LinkId, from_a: bool) -> (bool, Rate) {
        let links = &self.network.links;
        let (rate, _) = links.direction(&self.spec.topology, link, from_a);
        (links.held(link, from_a) == 0, rate)
    }

    /// Returns the settings of the switches.
    pub fn switches(&self) -> &SwitchClasses {
        &self.network.plan.classes
    }

    /// Returns the profiles of the shortest paths at the rates of the topology, or none if there is no route.
    fn profiles(&self, src: HostId, dst: HostId) -> Vec<PathProfile> {
        self.network.routes.profiles(&self.spec.topology, src, dst)
    }

    /// Returns the profiles of the shortest paths at the rates of the moment, or none if there is no route.
    pub fn present_profiles(&self, src: HostId, dst: HostId) -> Vec<PathProfile> {
        self.network.routes.profiles(self.present(), src, dst)
    }

    /// Returns the profiles of the shortest paths with the links at their best, by which ideal times go, or none if
    /// there is no route.
    pub fn best_profiles(&self, src: HostId, dst: HostId) -> Vec<PathProfile> {
        let at_best = self.network.plan.at_best.as_deref();
        self.network.routes.profiles(at_best.unwrap_or(&self.spec.topology), src, dst)
    }

    /// Returns true if all paths surely have equal rates and delays at the moment.
    pub fn has_alike_paths(&self, src: HostId, dst: HostId) -> bool {
        let out = self.network.routes.leading_ports(self.present(), src, dst);
        self.present().has_alike_paths(self.routing(), (src, dst), out)
    }

    fn present(&self) -> &Topology {
        self.present.as_ref().unwrap_or(&self.spec.topology)
    }

    /// Returns the egress ports of packets on this path, from the sending host on, or `None` if they do not arrive.
    pub fn route(&self, src: HostId, dst: HostId, path: PathId) -> Option<Vec<PortId>> {
        let ports = self.network.port_set(&self.spec.topology, src, dst)?;
        let first = self.network.port_of(src, ports, path);
        self.network.fabric.hashed_route_from(first, (src, dst), path)
    }

    /// Returns the chooser of paths for the messages of a queue pair, or `None` if there is no route to the receiver.
    pub fn chooser(
        &self,
        conn: ConnId,
        index: u16,
        group: GroupId,
        (src, dst): (HostId, HostId),
    ) -> Option<Chooser> {
        let spec = self.spec;
        let scheme = &spec.scheme_of(group).scheme;
        let paths = self.profiles(src, dst);
        if paths.is_empty() {
            return None;
        }
        let opening = self.network.opening(spec, scheme, (src, dst), &paths);
        let mut policy = self
            .network
            .policy(scheme, spec.groups[group.index()].awaited, &opening)
            .build(&opening.env, &mut policy_stream(spec.seed, conn, index, true));
        let number = QpNum(self.queue_pairs[conn as usize][0] + u32::from(index));
        let mut rng = queue_pair_stream(spec.seed, src, number);
        let mut shared = Shared::new();
        let mut cx = PolicyCx { rng: &mut rng, shared: &mut shared };
        policy.on_open(Time::ZERO, &QueuePairId { qp: number, peer: dst }, &mut cx);
        let views = self.network.sender_views(spec, scheme, (src, dst));
        if !views.is_empty() {
            policy.on_paths(Time::ZERO, &views, &mut cx);
        }
        Some(Chooser {
            policy,
            rng,
            shared,
            next_message: 0,
            packet_bytes: full_and_ack_bytes(&spec.network).0,
        })
    }

    /// Calls `body` with a function of a node, one of its ports, and a host. The function returns the rate, in bits
    /// per second, that reaches the host's switch by this port. A link that is down carries nothing.
    pub fn with_capacities<R>(
        &self,
        body: impl FnOnce(&mut dyn FnMut(NodeId, u16, HostId) -> u64) -> R,
    ) -> R {
        let rate = |port: &PortRef| match self.direction(port.link, port.is_a) {
            (true, rate) => rate,
            (false, _) => Rate::ZERO,
        };
        let view = View { topology: &self.spec.topology, alive: &|_| true, rate: &rate };
        let mut weights = Weights::new(&view, 1);
        body(&mut |node, port, dst| weights.through(self.routing(), node, port, dst))
    }

    /// Returns the changes of the network, ordered by time.
    pub fn changes(&self) -> &[ScheduledChange] {
        &self.changes
    }

    /// Applies a change. Changes that affect only packets have no effect.
    pub fn apply(&mut self, now: Time, change: NetworkChange) {
        let network = &mut self.network;
        match change {
            NetworkChange::Down(link, ways) => drop(network.take_down(now, link, ways)),
            NetworkChange::Up(link, ways) => drop(network.bring_up(now, link, ways)),
            NetworkChange::Rate(link, ways, rate) => {
                network.set_rate(now, &self.spec.topology, (link, ways), rate);
                let present = self.present.get_or_insert_with(|| (*self.spec.topology).clone());
                for from_a in ways.begin_at_a() {
                    let rate = rate.unwrap_or_else(|| self.spec.topology.direction(link, from_a).rate);
                    present.set_rate(link, if from_a { Ways::FromA } else { Ways::FromB }, rate);
                }
            }
            NetworkChange::Reroute => {
                let routes = network.new_routes(self.spec);
                network.reroute(self.spec, &routes);
            }
            NetworkChange::Delay(..)
            | NetworkChange::Loss(..)
            | NetworkChange::Corruption(..)
            | NetworkChange::StormStart(_)
            | NetworkChange::StormStop(_)
            | NetworkChange::ScaleUp(..) => {}
        }
    }
}

/// Policy of a queue pair, used only to choose the paths of its messages.
pub struct Chooser {
    policy: AnyPolicy,
    rng: Rng,
    shared: Shared,
    next_message: u32,
    packet_bytes: u32,
}

impl Chooser {
    /// Returns the path of the first packet of the next message on an idle network.
    pub fn next_path(&mut self) -> PathId {
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut self.shared };
        let msn = self.next_message;
        self.next_message += 1;
        // Messages are far apart in time, so that no pacing delays them.
        let now = Time::from_us(u64::from(msn) * 1_000_000);
        let (payload_bytes, wire_bytes, psn) = (0, self.packet_bytes, u64::from(msn));
        let want = SendRequest {
            psn,
            payload_bytes,
            wire_bytes,
            msn,
            retransmit: false,
            inflight_packets: 0,
            inflight_bytes: 0,
            egress: Egress::ONE,
        };
        // With nothing in flight a policy may still pace, or first ask for a packet of its own. The path is the same.
        let path = match self.policy.poll_send(now, &want, &mut cx) {
            Grant::Send(path) | Grant::Control(path) | Grant::Copy { path, .. } => path,
            Grant::At(_) | Grant::Blocked => return PathId(0),
        };
        let sent = Sent { path, psn, msn, payload_bytes, wire_bytes, retransmit: false, inflight_packets: 1 };
        self.policy.on_sent(now, &sent, &mut cx);
        path
    }
}
