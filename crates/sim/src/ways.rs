//! The ways of messages through the network without their packets, for models of a coarser grain: the same routes, hashes and
//! random streams that packets have.

use pathweave_execution::{ConnId, Connections};
use pathweave_fabric::config::{ForwardingConfig, Shares};
use pathweave_fabric::{PortId, PortMap};
use pathweave_policy::{AnyPolicy, Egress, Grant, Member, Policy, PolicyCx, Sent, Shared, Want};
use pathweave_topo::{LinkId, NodeId, Routing};
use pathweave_transport::queue_pair_stream;
use pathweave_units::{HostId, PathId, QpNum, Rate, Rng, Time};
use pathweave_workload::GroupId;

use crate::chosen_routes::ChosenRoutes;
use crate::faults::agenda;
pub use crate::faults::{Action as NetworkChange, Entry as ScheduledChange};
use crate::forwarding;
use crate::network::Network;
use crate::opening::{full_and_ack_bytes, policy_stream};
use crate::paths::{PathProfile, check_distances};
use crate::routes::View;
use crate::shard::queue_pair_numbers;
use crate::spec::{RouteChoice, SimError, SimSpec};
use crate::weights::Weights;

/// A network as packets would find it, of a run whose switches choose routes and have at most one data class.
pub struct Ways<'a> {
    spec: &'a SimSpec,
    network: Network<2>,
    forwarding: ForwardingConfig,
    /// By connection: the numbers of its first queue pair at both ends.
    queue_pairs: Vec<[u32; 2]>,
    changes: Vec<ScheduledChange>,
}

impl<'a> Ways<'a> {
    /// Of the whole network, at the start; and which messages share queue pairs, of which `Q` is how the caller names
    /// both ends.
    ///
    /// # Errors
    /// What the packet engine refuses, too.
    ///
    /// # Panics
    /// Routes are not the switches' to choose, or there are several data classes.
    pub fn new<Q>(spec: &'a SimSpec) -> Result<(Self, Connections<Q>), SimError> {
        assert!(matches!(spec.routing, RouteChoice::Switches), "switches choose the routes");
        assert!(spec.switch.classes() <= 2, "there is one data class");
        spec.switch.validate().map_err(SimError::Switch)?;
        spec.check_nics()?;
        let mut switch = spec.switch.clone();
        switch.forwarding.kind = Some(forwarding::of_run(spec)?);
        let network = Network::new(spec, &switch)?;
        let changes = agenda(&spec.topology, &network.map, &spec.faults, &switch)?;
        check_distances(spec, &network.routes)?;
        let connections = Connections::new(&spec.graph, |group| &spec.scheme_of(group).scheme.service);
        let queue_pairs = queue_pair_numbers(spec, &connections)?;
        Ok((Ways { spec, network, forwarding: switch.forwarding, queue_pairs, changes }, connections))
    }

    /// What all switches do to balance load, with what schemes ask of them.
    pub fn forwarding(&self) -> &ForwardingConfig {
        &self.forwarding
    }

    /// Egress ports by link and node; each is a direction of a link.
    pub fn ports(&self) -> &PortMap {
        &self.network.map
    }

    /// The node a port belongs to and the one at the far end.
    pub fn ends(&self, port: PortId) -> (u32, u32) {
        self.network.fabric.ends(port)
    }

    /// Next hops, as of when routing last looked.
    pub fn routing(&self) -> &Routing {
        match &self.network.routes {
            ChosenRoutes::Switches(routing) => routing,
            ChosenRoutes::Sources { .. } => unreachable!("switches choose the routes"),
        }
    }

    /// Whether no fault holds a link down, and its rate.
    pub fn link(&self, link: LinkId) -> (bool, Rate) {
        let (rate, _) = self.network.fabric.link(self.network.port(link));
        (self.network.links_down[link.index()] == 0, rate)
    }

    /// The hops of a shortest path; `None`: there is no way.
    pub fn profile(&self, src: HostId, dst: HostId) -> Option<PathProfile> {
        self.network.routes.profiles(&self.spec.topology, src, dst).into_iter().next()
    }

    /// The egress ports of packets on this path, from the sending host on. `None`: they do not arrive.
    pub fn route(&self, src: HostId, dst: HostId, path: PathId) -> Option<Vec<PortId>> {
        let ports = self.network.port_set(&self.spec.topology, src, dst)?;
        let first = self.network.port_of(src, ports, path);
        self.network.fabric.hashed_route_from(first, (src, dst), path)
    }

    /// What chooses the path of a queue pair's messages; `None`: there is no way to the receiver.
    pub fn chooser(
        &self,
        conn: ConnId,
        index: u16,
        group: GroupId,
        (src, dst): (HostId, HostId),
    ) -> Option<Chooser> {
        let spec = self.spec;
        let scheme = &spec.scheme_of(group).scheme;
        let opening = self.network.opening(spec, scheme, &[self.profile(src, dst)?]);
        let mut policy = self
            .network
            .policy(spec, scheme, &opening)
            .build(&opening.env, &mut policy_stream(spec.seed, conn, index, true));
        let number = QpNum(self.queue_pairs[conn as usize][0] + u32::from(index));
        let mut rng = queue_pair_stream(spec.seed, src, number);
        let mut shared = Shared::new();
        let mut cx = PolicyCx { rng: &mut rng, shared: &mut shared };
        policy.on_open(Time::ZERO, &Member { qp: number, peer: dst }, &mut cx);
        let views = self.network.sender_views(spec, scheme, (src, dst));
        if !views.is_empty() {
            policy.on_paths(Time::ZERO, &views, &mut cx);
        }
        Some(Chooser { policy, rng, shared, next_message: 0, packet_bytes: full_and_ack_bytes(&spec.host).0 })
    }

    /// Hands on what tells how many bits a second get through from a node to the switch of a host by one of the node's
    /// ports; nothing gets through a link that is down.
    pub fn with_capacities<R>(
        &self,
        body: impl FnOnce(&mut dyn FnMut(NodeId, u16, HostId) -> u64) -> R,
    ) -> R {
        let rate = |link| match self.link(link) {
            (true, rate) => rate,
            (false, _) => Rate::ZERO,
        };
        let shares = Shares::ByCapacity { most_entries: 1 };
        let view = View { topology: &self.spec.topology, alive: &|_| true, rate: &rate, shares };
        let mut weights = Weights::new(&view, 1);
        body(&mut |node, port, dst| weights.through(self.routing(), node, port, dst))
    }

    /// What happens to the network, in order of time.
    pub fn changes(&self) -> &[ScheduledChange] {
        &self.changes
    }

    /// A change comes about. One that only packets notice does nothing.
    pub fn apply(&mut self, now: Time, change: NetworkChange) {
        let network = &mut self.network;
        match change {
            NetworkChange::Down(link) => drop(network.take_down(now, link)),
            NetworkChange::Up(link) => drop(network.bring_up(now, link)),
            NetworkChange::Rate(link, rate) => {
                let rate = rate.unwrap_or(self.spec.topology.link(link).rate);
                network.fabric.set_link(now, network.port(link), Some(rate), None);
            }
            NetworkChange::Reroute => drop(network.reroute(self.spec)),
            NetworkChange::Delay(..)
            | NetworkChange::Loss(..)
            | NetworkChange::Corruption(..)
            | NetworkChange::StormStart(_)
            | NetworkChange::StormStop(_) => {}
        }
    }
}

/// The policy of a queue pair, asked for nothing but the paths of its messages.
pub struct Chooser {
    policy: AnyPolicy,
    rng: Rng,
    shared: Shared,
    next_message: u32,
    packet_bytes: u32,
}

impl Chooser {
    /// The path of the first packet of the next message, on an idle network.
    pub fn next_path(&mut self) -> PathId {
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut self.shared };
        let msn = self.next_message;
        self.next_message += 1;
        // Each message long after the one before, so that no pacing holds it up.
        let now = Time::from_us(u64::from(msn) * 1_000_000);
        let (payload_bytes, wire_bytes, psn) = (0, self.packet_bytes, u64::from(msn));
        let want = Want {
            psn,
            payload_bytes,
            wire_bytes,
            msn,
            retransmit: false,
            inflight_packets: 0,
            inflight_bytes: 0,
            egress: Egress::ONE,
        };
        // With nothing in flight a policy may pace, or ask for a packet of its own first; the path is the same.
        let path = match self.policy.poll_send(now, &want, &mut cx) {
            Grant::Send(path) | Grant::Control(path) | Grant::Copy { path, .. } => path,
            Grant::At(_) | Grant::Blocked => return PathId(0),
        };
        let sent = Sent { path, psn, msn, payload_bytes, wire_bytes, retransmit: false, inflight_packets: 1 };
        self.policy.on_sent(now, &sent, &mut cx);
        path
    }
}
