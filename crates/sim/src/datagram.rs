//! Datagram queue pairs on the fabric, and what a NIC and its host do beyond the link.

use std::collections::{BTreeMap, VecDeque};

use pathweave_execution::ConnId;
use pathweave_policy::{AnyPolicy, DatagramConfig, Leg, PolicyEnv, Repair, Service};
use pathweave_results::FlowRecord;
use pathweave_transport::Status;
use pathweave_transport::rd::{PeerId, RdConfig, RdEvent, RdHost, RdQp, SideMessage};
use pathweave_units::{Bytes, Duration, HostId, PathId, QpNum, Rate, Rng, Time};
use pathweave_wire::{Body, RdData, Segment};

use crate::ideal::{ack_wire_bytes, data_wire_bytes, ideal_datagrams};
use crate::later::{Agenda, Later};
use crate::nic::{Cores, Datagram, Engine, NicConfig, Reorder};
use crate::paths::PathProfile;
use crate::runner::Runner;
use crate::spec::{SimError, SimSpec};

/// What a run has besides, if any of its schemes has datagram queue pairs or its NICs are modelled.
#[derive(Debug, Default)]
pub(crate) struct Beyond {
    pub(crate) agenda: Agenda,
    /// Connections of datagram queue pairs, by sender and receiver.
    flows: BTreeMap<(PeerId, PeerId), ConnId>,
    /// Side channels, by host and host.
    channels: BTreeMap<(HostId, HostId), Channel>,
    /// Messages that wait for an end-to-end context, with when they were posted; there while it is in use.
    pub(crate) waiting: BTreeMap<ConnId, VecDeque<(u32, Time)>>,
}

/// A direction of a side channel.
#[derive(Clone, Copy, Debug)]
struct Channel {
    free_at: Time,
    latency: Duration,
}

/// What such a host has besides.
#[derive(Debug)]
pub(crate) struct Extra {
    pub(crate) rd: RdHost<AnyPolicy>,
    /// `None`: the NIC sends at line rate whatever it has to keep.
    pub(crate) engine: Option<Engine>,
    cores: Cores,
    /// Where the NIC puts datagrams in order.
    reorder: Option<Reorder>,
    /// Datagrams and connections take turns at the NIC: whose it was.
    pub(crate) datagrams_next: bool,
    /// Where sources choose explicit routes: how many paths of datagrams there are to each host, and of how many the
    /// scheme knows.
    routes: BTreeMap<HostId, (u16, u16)>,
    /// Datagrams that were sent again, until somebody takes note.
    pub(crate) sent_again: Vec<SentAgain>,
}

/// A datagram that was sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentAgain {
    pub(crate) at: Time,
    pub(crate) qp: QpNum,
    pub(crate) psn: u64,
    pub(crate) path: PathId,
    /// Its message.
    pub(crate) flow: u32,
}

impl Extra {
    pub(crate) fn new(nic: Option<&NicConfig>, line_rate: Rate) -> Self {
        let reorders = nic.filter(|nic| nic.reorder_buffer > Bytes::ZERO);
        Extra {
            rd: RdHost::default(),
            engine: nic.map(|nic| Engine::new(line_rate, nic.clone())),
            cores: Cores::default(),
            reorder: reorders.map(|nic| Reorder::new(nic.reorder_buffer.get())),
            datagrams_next: false,
            sent_again: Vec::new(),
            routes: BTreeMap::new(),
        }
    }

    /// Whether a packet without data is for a datagram queue pair.
    pub(crate) fn is_notified(&self, from: HostId, segment: &Segment) -> bool {
        let peer = PeerId { host: from, qp: segment.src_qp };
        self.rd.get(segment.dst_qp).is_some_and(|qp| qp.expected_psn(peer).is_some())
    }

    /// The route that stands for a path of datagrams. A queue pair counts the same paths to all its peers; they are
    /// spread over the routes there are.
    pub(crate) fn route(&self, to: HostId, path: PathId) -> PathId {
        match self.routes.get(&to) {
            Some(&(routes, paths)) if routes > paths => {
                PathId((u32::from(path.0) * u32::from(routes) / u32::from(paths)) as u16)
            }
            Some(&(routes, _)) => PathId(path.0 % routes.max(1)),
            None => path,
        }
    }
}

impl SimSpec {
    /// Names what is wrong with NICs, side channels and datagram queue pairs.
    pub(crate) fn check_beyond(&self) -> Result<(), SimError> {
        self.host.side_channel.validate()?;
        self.host.nic.as_ref().map_or(Ok(()), NicConfig::validate)?;
        // Queue pair numbers have 24 bits, 15 of which tell processes apart, and one datagrams from connections.
        if self.has_datagrams() && self.groups.len() > 1 << 8 {
            return Err(SimError::Network(
                "datagram queue pairs with more than 256 groups of messages".into(),
            ));
        }
        Ok(())
    }
}

/// Numbers of datagram queue pairs have this bit; those of connections do not before a place for one is used a 33rd time.
const DATAGRAMS: u32 = 1 << 23;

/// The queue pair of a process for the messages of a group.
fn queue_pair(group: usize, groups: usize, process: u16) -> QpNum {
    QpNum(DATAGRAMS | (u32::from(process) * groups as u32 + group as u32))
}

impl<const C: usize> Runner<'_, C> {
    /// Gives every host what it has besides, if the run needs it.
    pub(crate) fn set_up_beyond(&mut self) {
        let nic = self.spec.host.nic.as_ref();
        let others = self.spec.schemes.iter().any(|named| !named.scheme.service.is_connection());
        if nic.is_none() && !others {
            return;
        }
        self.beyond = Some(Box::default());
        for host in 0..self.hosts.len() {
            let ports = self.map.ports(host as u32);
            let rate: u64 = ports.map(|port| self.fabric.link(port).0.as_bps()).sum();
            self.hosts[host].set_extra(Extra::new(nic, Rate::from_bps(rate)));
        }
    }

    /// Lets something happen later.
    pub(crate) fn later(&mut self, at: Time, what: Later) {
        let beyond = self.beyond.as_mut().expect("there is nothing later without it");
        beyond.agenda.push(at, what);
        self.schedule_later();
    }

    /// Does what is due.
    pub(crate) fn on_later(&mut self, now: Time) {
        while let Some(what) = self.beyond.as_mut().and_then(|beyond| beyond.agenda.pop(now)) {
            match what {
                Later::Posted { flow, at, granted } => self.issue(now, at, flow, granted),
                Later::InMemory { host, datagram } => {
                    if self.extra(host).cores.arrive(datagram) {
                        self.handle_next(now, host, datagram.segment.dst_qp);
                    }
                }
                Later::Handled { host, qp } => {
                    if let Some(datagram) = self.extra(host).cores.finish(qp) {
                        self.handle(now, host, &datagram);
                    }
                    self.handle_next(now, host, qp);
                }
                Later::Side { host, from, message } => {
                    self.extra(host).rd.on_side(now, from, &message);
                    self.after_input(now, host.index());
                }
            }
        }
        self.schedule_later();
    }

    fn extra(&mut self, host: HostId) -> &mut Extra {
        self.hosts[host.index()].extra().expect("every host of such a run has it")
    }

    /// A datagram has reached the NIC of its host.
    pub(crate) fn on_datagram(&mut self, now: Time, host: HostId, datagram: Datagram) {
        let len = match datagram.segment.body {
            Body::Rd(data) => data.len,
            _ => 0,
        };
        if !self.put_in_order(host, &datagram) {
            return;
        }
        self.hosts[host.index()].received_bytes += u64::from(len);
        match &self.spec.host.nic {
            None => self.handle(now, host, &datagram),
            Some(nic) => {
                let at = now + nic.arrival_delay(len);
                self.later(at, Later::InMemory { host, datagram });
            }
        }
    }

    /// Where the NIC does so; false if it had no room for the packet, which is lost.
    fn put_in_order(&mut self, host: HostId, datagram: &Datagram) -> bool {
        let Datagram { from, segment, .. } = datagram;
        let Extra { rd, reorder: Some(reorder), .. } = self.extra(host) else { return true };
        let Body::Rd(data) = segment.body else { return true };
        let peer = PeerId { host: *from, qp: segment.src_qp };
        let passed = rd.get(segment.dst_qp).and_then(|qp| qp.expected_psn(peer)).unwrap_or(0);
        let room = reorder.admit(segment.dst_qp, peer, data.psn, data.len, passed);
        if !room {
            self.lost_datagram(*from, host, segment, &data);
        }
        room
    }

    /// The core of a queue pair begins with the next datagram, if there is one.
    fn handle_next(&mut self, now: Time, host: HostId, qp: QpNum) {
        let nic = self.spec.host.nic.as_ref().expect("cores are part of it");
        let extra = self.extra(host);
        let Some(Datagram { from, segment, .. }) = extra.cores.current(qp) else { return };
        let in_order =
            extra.reorder.is_some() || extra.rd.get(qp).is_none_or(|qp| qp.is_next(*from, segment));
        let cost = nic.packet_cost + if in_order { Duration::ZERO } else { nic.reorder_cost };
        self.later(now + cost, Later::Handled { host, qp });
    }

    /// Host software takes a datagram.
    fn handle(&mut self, now: Time, host: HostId, datagram: &Datagram) {
        let Datagram { from, segment, ce } = datagram;
        let Some(place) = self.extra(host).rd.on_packet(now, *from, segment, *ce) else {
            if *ce || !matches!(segment.body, Body::Rd(_)) {
                // A mark may have to be told, a rate has changed.
                self.after_input(now, host.index());
            }
            return;
        };
        let to = PeerId { host, qp: segment.dst_qp };
        if let Some(flow) = self.flow_of(place.from, to, place.msg) {
            if let Some(record) = self.execution.record_mut(flow) {
                record.ooo_packets += u32::from(!place.in_order);
            }
            if let Some(ledger) = self.inspect.as_mut().and_then(|inspect| inspect.ledger.as_mut()) {
                let offset = crate::check::flow_address(flow) + u64::from(place.offset);
                let buffer = pathweave_transport::Buffer(0);
                ledger.placed(&pathweave_transport::Placement { buffer, offset, len: place.len });
            }
        }
        self.after_input(now, host.index());
    }

    fn flow_of(&self, from: PeerId, to: PeerId, msg: u64) -> Option<u32> {
        let conn = *self.beyond.as_ref()?.flows.get(&(from, to))?;
        self.execution.connections[conn].posted.get(msg as usize).copied()
    }

    /// Drains what datagram queue pairs of a host have to say.
    pub(crate) fn drain_extra(&mut self, now: Time, host: usize) {
        while let Some((qp, event)) = self.hosts[host].extra().and_then(|extra| extra.rd.poll_event()) {
            let to = PeerId { host: HostId(host as u32), qp };
            match event {
                RdEvent::Delivered { from, msg, bytes } => {
                    let flow = self.flow_of(from, to, msg).expect("delivered after it was posted");
                    self.delivered(now, flow, bytes);
                    self.end_raw(flow);
                }
                RdEvent::Abandoned { .. } => {}
                RdEvent::Completion { wr_id, status, sent_packets, retransmitted, .. } => {
                    let flow = wr_id as u32;
                    if let Some(record) = self.execution.record_mut(flow) {
                        record.sent_packets = sent_packets;
                        record.retransmitted_packets = retransmitted;
                    }
                    self.on_completion(now, wr_id, status);
                }
            }
        }
        while let Some(sent) = self.hosts[host].extra().and_then(|extra| extra.sent_again.pop()) {
            self.note_sent_again(host, &sent);
        }
        while let Some((to, message)) = self.hosts[host].extra().and_then(|extra| extra.rd.poll_side()) {
            self.send_side(now, HostId(host as u32), to, message);
        }
    }

    fn send_side(&mut self, now: Time, from: HostId, to: HostId, message: SideMessage) {
        let config = &self.spec.host.side_channel;
        let time = config.rate.time_for(message.encoded_len() as u64);
        // What is to be done about it at a sender must reach the NIC, and what it is about has reached the host.
        let crossing = match (&message, &self.spec.host.nic) {
            (SideMessage::Nack { .. }, Some(nic)) => nic.post_delay(),
            _ => Duration::ZERO,
        };
        let beyond = self.beyond.as_mut().expect("there are datagrams");
        let channel = beyond.channels.get_mut(&(from, to)).expect("its ends have been introduced");
        channel.free_at = channel.free_at.max(now) + time;
        let at = channel.free_at + channel.latency + crossing;
        self.later(at, Later::Side { host: to, from, message });
    }

    /// Posts a message to a datagram queue pair, which is made if need be.
    pub(crate) fn post_datagram(
        &mut self,
        now: Time,
        flow: u32,
        path: &PathProfile,
        config: &DatagramConfig,
        record: FlowRecord,
    ) {
        let message = self.spec.graph.messages()[flow as usize];
        let conn = self.execution.connections.of(flow);
        let groups = self.spec.groups.len();
        let (src, dst) = message.processes();
        let at = |host, process| PeerId { host, qp: queue_pair(message.group.index(), groups, process) };
        let (from, to) = (at(message.src, src), at(message.dst, dst));
        if self.execution.connections[conn].posted.is_empty() {
            self.introduce(now, conn, (from, to), path, config);
        }
        let framing = self.spec.host.framing;
        let mtu = self.spec.host.mtu.get() as u16;
        let ideal = ideal_datagrams(path, message.size.get(), config.capacity(mtu), framing);
        let record = FlowRecord { ideal_fct_ps: ideal.as_ps(), ..record };
        self.execution.posted(record, 1);
        let rd = &mut self.extra(message.src).rd;
        let qp = rd.get_mut(from.qp).expect("introduced");
        match qp.post(now, to, u64::from(flow), message.size.get()) {
            Ok(()) => self.execution.connections[conn].posted.push(flow),
            // More is outstanding than numbers can tell apart: it counts as refused.
            Err(_) => self.on_completion(now, u64::from(flow), Status::LocalOperation),
        }
        self.after_input(now, message.src.index());
    }

    /// Makes the two queue pairs, if they are new, and makes them known to each other.
    fn introduce(
        &mut self,
        now: Time,
        conn: ConnId,
        (from, to): (PeerId, PeerId),
        path: &PathProfile,
        config: &DatagramConfig,
    ) {
        let spec = self.spec;
        let group = self.execution.connections[conn].group;
        let scheme = &spec.scheme_of(group).scheme;
        let mtu = spec.host.mtu.get() as u16;
        let mtu_wire = data_wire_bytes(spec.host.framing, spec.host.verb, 1, mtu, false);
        let idle = path.round_trip(mtu_wire, ack_wire_bytes(spec.host.framing));
        let hosts =
            spec.host.nic.as_ref().map_or(Duration::ZERO, |nic| nic.post_delay() + nic.arrival_delay(mtu));
        let rtt = idle + hosts * 2;
        let env = PolicyEnv {
            line_rate: path.line_rate(),
            base_rtt: idle,
            mtu_wire_bytes: mtu_wire,
            mtu_payload_bytes: u32::from(mtu),
            paths: scheme.paths,
            measured: Leg { base_rtt: idle, links: u8::try_from(path.hops.len()).unwrap_or(u8::MAX) },
            edge: None,
        };
        for (own, peer) in [(from, to), (to, from)] {
            let host = self.hosts[own.host.index()].with_extra();
            let (endpoint, nic, extra) = host.expect("every host of such a run has it");
            let nic_ports = endpoint.config().nic_ports;
            let class = spec.groups[group.index()].class;
            if extra.rd.get(own.qp).is_none() {
                let stream = u64::from(own.host.0) << 24 | u64::from(own.qp.0);
                let mut rng = Rng::for_component(spec.seed, "rd-policy", stream);
                let (policy, control) = scheme.datagram_policy(&env, &mut rng);
                extra.rd.add(RdQp::new(RdConfig {
                    num: own.qp,
                    policy,
                    control,
                    behaviour: *config,
                    mtu_payload: mtu,
                    framing: spec.host.framing,
                    nic_ports,
                    seed: spec.seed ^ u64::from(own.host.0) << 32,
                    rtt,
                    nack_delay: spec.host.nic.as_ref().map_or(Duration::ZERO, |nic| nic.pcie_latency),
                }));
                if class != 1 {
                    nic.classes.get_or_insert_default().insert(own.qp, class);
                }
            }
            if nic.source_routed {
                let routes = self.ways.count(own.host, peer.host, scheme.paths);
                extra.routes.insert(peer.host, (routes, scheme.paths));
            }
            extra.rd.get_mut(own.qp).expect("made if it was not there").add_peer(now, peer, rtt);
        }
        let latency = path.one_way(MIN_FRAME_BYTES) + spec.host.side_channel.stack * 2;
        let beyond = self.beyond.as_mut().expect("there are datagrams");
        for (a, b) in [(from.host, to.host), (to.host, from.host)] {
            beyond.channels.entry((a, b)).or_insert(Channel { free_at: Time::ZERO, latency });
        }
        beyond.flows.insert((from, to), conn);
    }

    /// Raw datagrams are over when they are there or lost; nobody else notices.
    fn end_raw(&mut self, flow: u32) {
        let group = self.spec.graph.messages()[flow as usize].group;
        if is_raw(&self.spec.scheme_of(group).scheme.service) {
            self.execution.ended(flow);
        }
    }

    /// The fabric has lost a datagram. Returns the flow it belonged to.
    pub(crate) fn lost_datagram(
        &mut self,
        from: HostId,
        to: HostId,
        segment: &Segment,
        data: &RdData,
    ) -> Option<u32> {
        let (from, to) = (PeerId { host: from, qp: segment.src_qp }, PeerId { host: to, qp: segment.dst_qp });
        let conn = *self.beyond.as_ref()?.flows.get(&(from, to))?;
        let posted = &self.execution.connections[conn].posted;
        // The latest message with these 16 bits.
        let last = posted.len().checked_sub(1)?;
        let index = last - usize::from((last as u16).wrapping_sub(data.msg_id));
        let flow = *posted.get(index)?;
        self.execution.record_mut(flow)?.dropped_packets += 1;
        self.end_raw(flow);
        Some(flow)
    }
}

/// An Ethernet frame as small as can be, with preamble and gap.
const MIN_FRAME_BYTES: u32 = 84;

pub(crate) fn is_raw(service: &Service) -> bool {
    matches!(service, Service::Datagram(config) if config.repair == Repair::Never)
}
