//! Datagram queue pairs on the fabric, and delays of NIC and host beyond the link.

use pathweave_policy::{DatagramConfig, MeasuredSection, PolicyEnv, Repair, Service};
use pathweave_records::FlowRecord;
use pathweave_transport::rd::{PeerId, RdConfig, RdEvent, RdQp};
use pathweave_transport::{PortChange, Status, Transport};
use pathweave_units::{Duration, HostId, QpNum, Rate, Rng, Time};
use pathweave_wire::Body;

use crate::agenda::{Item, Opening};
use crate::ideal::{ack_wire_bytes, data_wire_bytes, ideal_datagrams};
use crate::nic::{DATAGRAMS, Datagram, DatagramRoutes, NicConfig, NicModel, SideRoute};
use crate::paths::PathProfile;
use crate::shard::Shard;
use crate::spec::{SimError, SimSpec};

impl SimSpec {
    /// Returns an error that names the setting if NICs, side channels or datagram queue pairs are misconfigured.
    pub(crate) fn check_nics(&self) -> Result<(), SimError> {
        self.network.side_channel.validate()?;
        self.network.nic.as_ref().map_or(Ok(()), NicConfig::validate)?;
        // Queue pair numbers have 24 bits. One distinguishes datagrams from connections, 15 distinguish processes,
        // which leaves 8 for groups.
        if self.has_datagrams() && self.groups.len() > 1 << 8 {
            return Err(SimError::Network(
                "datagram queue pairs with more than 256 groups of messages".into(),
            ));
        }
        Ok(())
    }
}

/// Returns the number of the queue pair by which a process exchanges the messages of a group.
fn queue_pair(group: usize, groups: usize, process: u16) -> QpNum {
    QpNum(DATAGRAMS | (u32::from(process) * groups as u32 + group as u32))
}

impl<const C: usize> Shard<'_, C> {
    /// Creates the NIC model of every host, if the run needs one.
    pub(crate) fn set_up_models(&mut self) {
        let nic = self.spec.network.nic.as_ref();
        let others = self.spec.schemes.iter().any(|named| !named.scheme.service.is_connection());
        if nic.is_none() && !others {
            return;
        }
        for host in (0..self.spec.topology.hosts()).filter(|&host| self.place.has(host)) {
            let ports = self.network.fabric.numbers().ports(host);
            let rate: u64 = ports.map(|port| self.network.fabric.link(port).0.as_bps()).sum();
            self.hosts[host as usize].set_model(NicModel::new(nic, Rate::from_bps(rate)));
        }
    }

    /// Handles a datagram that has been written to the memory of its host.
    pub(crate) fn on_in_memory(&mut self, now: Time, host: HostId, datagram: Datagram) {
        if self.model(host).cores.arrive(datagram) {
            self.handle_next(now, host, datagram.segment.dst_qp);
        }
    }

    /// Handles the datagram that the core of a queue pair has finished, and starts the next.
    pub(crate) fn on_handled(&mut self, now: Time, host: HostId, qp: QpNum) {
        if let Some(datagram) = self.model(host).cores.finish(qp) {
            self.handle(now, host, &datagram);
        }
        self.handle_next(now, host, qp);
    }

    pub(crate) fn model(&mut self, host: HostId) -> &mut NicModel {
        self.hosts[host.index()].model().expect("every host of such a run has it")
    }

    /// Handles a datagram that has reached the NIC of its host.
    pub(crate) fn on_datagram(&mut self, now: Time, host: HostId, datagram: Datagram) {
        let len = match datagram.segment.body {
            Body::Rd(data) => data.len,
            _ => 0,
        };
        if !self.put_in_order(now, host, &datagram) {
            return;
        }
        self.hosts[host.index()].received_bytes += u64::from(len);
        match &self.spec.network.nic {
            None => self.handle(now, host, &datagram),
            Some(nic) => {
                let at = now + nic.arrival_delay(len);
                self.schedule_own(at, host, Item::InMemory(datagram));
            }
        }
    }

    /// Admits a datagram to the reorder buffer of the NIC, if it has one. Returns false if the buffer has no room, in
    /// which case the packet is lost.
    fn put_in_order(&mut self, now: Time, host: HostId, datagram: &Datagram) -> bool {
        let Datagram { from, segment, .. } = datagram;
        let NicModel { rd, reorder: Some(reorder), .. } = self.model(host) else { return true };
        let Body::Rd(data) = segment.body else { return true };
        let peer = PeerId { host: *from, qp: segment.src_qp };
        let passed = rd.get(segment.dst_qp).and_then(|qp| qp.expected_psn(peer)).unwrap_or(0);
        let room = reorder.admit(segment.dst_qp, peer, data.psn, data.len, passed);
        if !room
            && let Some(flow) =
                NicModel::latest(self.model(host).incoming.get(&(segment.dst_qp, peer)), data.msg_id)
        {
            self.traffic.execution.note_lost(flow);
            self.end_raw(now, flow);
        }
        room
    }

    /// Starts the core of a queue pair on the next datagram, if there is one.
    fn handle_next(&mut self, now: Time, host: HostId, qp: QpNum) {
        let nic = self.spec.network.nic.as_ref().expect("cores are part of it");
        let model = self.model(host);
        let Some(Datagram { from, segment, .. }) = model.cores.current(qp) else { return };
        let in_order =
            model.reorder.is_some() || model.rd.get(qp).is_none_or(|qp| qp.is_next(*from, segment));
        let cost = nic.packet_cost + if in_order { Duration::ZERO } else { nic.reorder_cost };
        self.schedule_own(now + cost, host, Item::Handled(qp));
    }

    /// Passes a datagram to the host software.
    fn handle(&mut self, now: Time, host: HostId, datagram: &Datagram) {
        let Datagram { from, segment, ce } = datagram;
        let Some(place) = self.model(host).rd.on_packet(now, *from, segment, *ce) else {
            if *ce || !matches!(segment.body, Body::Rd(_)) {
                // A mark may need to be reported, or a rate may have changed.
                self.after_input(now, host.index());
            }
            return;
        };
        if let Some(flow) = self.flow_of(host, segment.dst_qp, place.from, place.msg) {
            if !place.in_order {
                self.traffic.execution.note_out_of_order(flow);
            }
            if let Some(ledger) = self.observers.ledger() {
                let offset = crate::check::flow_address(flow) + u64::from(place.offset);
                let buffer = pathweave_transport::Buffer(0);
                ledger.placed(&pathweave_transport::Placement { buffer, offset, len: place.len });
            }
        }
        self.after_input(now, host.index());
    }

    /// Returns the flow of a message that a queue pair of this host receives from a peer.
    fn flow_of(&mut self, host: HostId, qp: QpNum, from: PeerId, msg: u64) -> Option<u32> {
        self.model(host).incoming.get(&(qp, from))?.get(msg as usize).copied()
    }

    /// Processes all pending events of the datagram queue pairs of a host.
    pub(crate) fn drain_model(&mut self, now: Time, host: usize) {
        while let Some((qp, event)) = self.hosts[host].model().and_then(|model| model.rd.poll_event()) {
            match event {
                RdEvent::Delivered { from, msg, bytes } => {
                    let flow = self.flow_of(HostId(host as u32), qp, from, msg);
                    let flow = flow.expect("delivered after it was announced");
                    self.delivered(now, flow, bytes);
                    self.end_raw(now, flow);
                }
                RdEvent::Abandoned { .. } => {}
                RdEvent::Completion { wr_id, status, sent_packets, retransmitted, .. } => {
                    self.traffic.execution.count_sent(wr_id as u32, sent_packets, retransmitted);
                    self.on_completion(now, wr_id, status);
                }
            }
        }
        while let Some(sent) = self.hosts[host].model().and_then(|model| model.sent_again.pop()) {
            self.note_sent_again(host, &sent);
        }
        let mut sent = false;
        while let Some((to, message)) = self.hosts[host].model().and_then(|model| model.rd.poll_side()) {
            self.send_side(now, HostId(host as u32), to, message);
            sent = true;
        }
        if sent && self.spec.network.side_channel.via == SideRoute::Fabric {
            self.transmit(now, host);
        }
    }

    /// Posts a message to a datagram queue pair, which is created if needed.
    pub(crate) fn post_datagram(
        &mut self,
        now: Time,
        flow: u32,
        (paths, idle): (&[PathProfile], &[PathProfile]),
        config: &DatagramConfig,
        record: FlowRecord,
    ) {
        let src = self.spec.graph.messages()[flow as usize].src;
        let (from, to) = self.peers_of(flow);
        let mut opening = None;
        if !self.model(src).outgoing.contains_key(&(from.qp, to)) {
            let made = self.datagram_opening(flow, &paths[0]);
            self.introduce(now, flow, (from, to), config, &made);
            opening = Some(Box::new(made));
        }
        let framing = self.spec.network.framing;
        let mtu = self.spec.network.mtu.get() as u16;
        let size = record.size_bytes;
        let ideals = idle.iter().map(|path| ideal_datagrams(path, size, config.capacity(mtu), framing));
        let ideal = ideals.min().unwrap_or(Duration::ZERO);
        self.traffic.execution.posted(FlowRecord { ideal_fct_ps: ideal.as_ps(), ..record }, 1);
        let model = self.model(src);
        match model.rd.get_mut(from.qp).expect("introduced").post(now, to, u64::from(flow), size) {
            Ok(()) => {
                model.outgoing.entry((from.qp, to)).or_default().push(flow);
                self.announce(now, flow, opening);
            }
            // More messages are outstanding than message numbers can distinguish, so the message counts as refused.
            Err(_) => self.on_completion(now, u64::from(flow), Status::LocalOperation),
        }
        self.after_input(now, src.index());
    }

    /// Registers a message of datagrams that is about to arrive.
    pub(crate) fn expect_datagram(
        &mut self,
        now: Time,
        flow: u32,
        config: &DatagramConfig,
        opening: Option<Box<Opening>>,
    ) {
        let (from, to) = self.peers_of(flow);
        if let Some(opening) = opening {
            self.introduce(now, flow, (to, from), config, &opening);
        }
        self.model(to.host).incoming.entry((to.qp, from)).or_default().push(flow);
        self.traffic.execution.expected(flow, 1);
    }

    /// Returns the sending and the receiving queue pair of a message.
    fn peers_of(&self, flow: u32) -> (PeerId, PeerId) {
        let message = self.spec.graph.messages()[flow as usize];
        let groups = self.spec.groups.len();
        let (src, dst) = message.processes();
        let at = |host, process| PeerId { host, qp: queue_pair(message.group.index(), groups, process) };
        (at(message.src, src), at(message.dst, dst))
    }

    /// Returns the parameters from which the queue pairs at both ends are created.
    fn datagram_opening(&self, flow: u32, path: &PathProfile) -> Opening {
        let spec = self.spec;
        let scheme = &spec.scheme_of(spec.graph.messages()[flow as usize].group).scheme;
        let mtu = spec.network.mtu.get() as u16;
        let mtu_wire = data_wire_bytes(spec.network.framing, spec.network.verb, 1, mtu, false);
        let idle = path.round_trip(mtu_wire, ack_wire_bytes(spec.network.framing));
        let hosts =
            spec.network.nic.as_ref().map_or(Duration::ZERO, |nic| nic.post_delay() + nic.arrival_delay(mtu));
        let env = PolicyEnv {
            line_rate: path.line_rate,
            base_rtt: idle,
            mtu_wire_bytes: mtu_wire,
            mtu_payload_bytes: u32::from(mtu),
            paths: scheme.paths_over(path.nic_ports.0 as u16),
            measured: MeasuredSection {
                base_rtt: idle,
                links: u8::try_from(path.hops.len()).unwrap_or(u8::MAX),
            },
            edge: None,
        };
        let side_latency = self.side_latency(path);
        Opening {
            env,
            port_rate: path.port_rate(),
            nic_ports: path.nic_ports.0 as u16,
            rtt: idle + hosts * 2,
            side_latency,
        }
    }

    /// Creates the host's queue pair for the group of a message, unless it exists, and registers the peer with it.
    fn introduce(
        &mut self,
        now: Time,
        flow: u32,
        (own, peer): (PeerId, PeerId),
        config: &DatagramConfig,
        opening: &Opening,
    ) {
        let spec = self.spec;
        let group = spec.graph.messages()[flow as usize].group;
        let scheme = &spec.scheme_of(group).scheme;
        let host = self.hosts[own.host.index()].with_model();
        let (endpoint, nic, model) = host.expect("every host of such a run has it");
        let nic_ports = endpoint.config().nic_ports;
        let class = spec.groups[group.index()].class;
        if model.rd.get(own.qp).is_none() {
            let stream = u64::from(own.host.0) << 24 | u64::from(own.qp.0);
            let mut rng = Rng::for_component(spec.seed, "rd-policy", stream);
            let (policy, control) = scheme.datagram_policy(&opening.env, &mut rng);
            model.rd.add(RdQp::new(RdConfig {
                num: own.qp,
                policy,
                control,
                behaviour: *config,
                mtu_payload: spec.network.mtu.get() as u16,
                framing: spec.network.framing,
                paths: opening.env.paths,
                nic_ports,
                seed: spec.seed ^ u64::from(own.host.0) << 32,
                rtt: opening.rtt,
                nack_delay: spec.network.nic.as_ref().map_or(Duration::ZERO, |nic| nic.pcie_latency),
            }));
            if class != 1 {
                nic.classes.get_or_insert_default().insert(own.qp, class);
            }
        }
        let leading = self.network.routes.leading_ports(&spec.topology, own.host, peer.host);
        if nic.source_routed {
            let routes = self.network.routes.count(own.host, peer.host, scheme.paths);
            let paths = opening.env.paths / leading.count_ones().max(1) as u16;
            model.routes.insert(peer.host, DatagramRoutes { routes, paths, ports: leading });
        }
        let qp = model.rd.get_mut(own.qp).expect("made if it was not there");
        if nic_ports > 1 && leading != 0 {
            qp.change_ports(PortChange::Leads { to: peer.host, ports: leading });
        }
        qp.add_peer(now, peer, opening.rtt);
        self.open_side(now, (own.host, peer.host), opening);
    }

    /// Ends a message of raw datagrams, whose packets have all arrived or been lost. The sender gets no
    /// acknowledgement.
    pub(crate) fn end_raw(&mut self, now: Time, flow: u32) {
        let group = self.spec.graph.messages()[flow as usize].group;
        if is_raw(&self.spec.scheme_of(group).scheme.service) {
            self.traffic.execution.abandon_at_receiver(now, flow);
        }
    }
}

pub(crate) fn is_raw(service: &Service) -> bool {
    matches!(service, Service::Datagram(config) if config.repair == Repair::Never)
}
