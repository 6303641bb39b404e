//! The workload in motion: posting messages as they become due, noting how they end.

use pathweave_execution::{Begin, Completed, ConnId, Connection, Share, Tally, shares};
use pathweave_policy::{Adapt, FabricEnv, Leg, PolicyEnv, Ports, Service, WhenFull};
use pathweave_results::FlowRecord;
use pathweave_transport::{Buffer, Op, QpConfig, ReceiveMode, RnrConfig, Status, WorkRequest};
use pathweave_units::{Duration, HostId, QpNum, Rng, Time};
use pathweave_workload::TaskId;

use crate::check;
use crate::datagram::is_raw;
use crate::distinct::distinct_paths;
use crate::edge;
use crate::host::Host;
use crate::ideal::{ack_wire_bytes, data_wire_bytes, ideal_fct};
use crate::later::Later;
use crate::paths::PathProfile;
use crate::runner::{QueuePair, Runner};
use crate::spec::Verb;

impl<const C: usize> Runner<'_, C> {
    /// Begins every task that is due.
    pub(crate) fn on_work(&mut self, now: Time) {
        while let Some(begin) = self.execution.begin(now) {
            match begin {
                Begin::Message(flow) => self.post(now, flow),
                Begin::Computed => self.schedule_freed(),
            }
        }
        self.schedule_work();
    }

    /// Tasks may have become free.
    fn schedule_freed(&mut self) {
        if self.execution.any_freed() {
            self.schedule_work();
        }
    }

    fn post(&mut self, now: Time, flow: u32) {
        match &self.spec.host.nic {
            None => self.issue(now, now, flow, false),
            Some(nic) => self.later(now + nic.post_delay(), Later::Posted { flow, at: now, granted: false }),
        }
    }

    /// The NIC has the work request of a message that was posted at `posted`.
    pub(crate) fn issue(&mut self, now: Time, posted: Time, flow: u32, granted: bool) {
        let message = self.spec.graph.messages()[flow as usize];
        let conn = self.execution.connections.of(flow);
        let record = FlowRecord { start_ps: posted.as_ps(), ..self.execution.record(flow) };
        let paths = self.ways.profiles(&self.spec.topology, message.src, message.dst);
        if paths.is_empty() {
            return self.execution.unreachable(record);
        }
        let spec = self.spec;
        let service = &spec.scheme_of(message.group).scheme.service;
        if *service == Service::EndToEnd && !granted && !self.take_context(conn, flow, posted) {
            return;
        }
        self.note_contexts(flow, true);
        if let Service::Datagram(config) = service {
            return self.post_datagram(now, flow, &paths[0], config, record);
        }
        if self.execution.connections[conn].queue_pairs.is_empty() {
            self.open(now, conn, &paths);
        }
        let framing = self.spec.host.framing;
        let mtu = self.spec.host.mtu.get() as u16;
        let ideal_of = |path| ideal_fct(path, message.size.get(), mtu, framing, self.spec.host.verb);
        let ideal = paths.iter().map(ideal_of).min();
        let ack_wire = ack_wire_bytes(framing);
        let acked = paths.iter().map(|path| ideal_of(path) + path.one_way(ack_wire)).min();
        let record = FlowRecord {
            ideal_fct_ps: ideal.map_or(0, Duration::as_ps),
            ideal_acked_ps: acked.map(Duration::as_ps),
            ..record
        };
        let qps = self.execution.connections[conn].queue_pairs.clone();
        let parts = shares(message.size.get(), qps.len());
        self.execution.posted(record, parts.len() as u16);
        let (src, dst) = (message.src.index(), message.dst.index());
        if let Some(followed) = self.inspect.as_mut().and_then(|inspect| inspect.followed.as_mut()) {
            let outgoing = &self.hosts[src].outgoing;
            let number = |qp| outgoing.get(qp).map_or(0, Vec::len) as u32;
            let carriers: Vec<_> =
                qps.iter().take(parts.len()).map(|(src_qp, _)| (*src_qp, number(src_qp))).collect();
            let receivers = qps.iter().take(carriers.len()).map(|(_, dst_qp)| *dst_qp).collect();
            followed.posted(flow, (message.src, &carriers), (message.dst, receivers));
        }
        for (Share { offset, len }, (src_qp, dst_qp)) in parts.zip(qps) {
            let op = match self.spec.host.verb {
                Verb::Send => Op::Send,
                Verb::Write => {
                    Op::Write { rkey: self.hosts[dst].rkey, remote_addr: check::flow_address(flow) + offset }
                }
            };
            let request = WorkRequest { wr_id: u64::from(flow), op, local: Buffer(0), len };
            if self.hosts[src].endpoint.post(now, src_qp, request).is_ok() {
                self.hosts[src].outgoing.entry(src_qp).or_default().push(flow);
                self.hosts[dst].incoming.entry(dst_qp).or_default().push(flow);
            } else {
                // The connection failed with an earlier message.
                self.on_completion(now, u64::from(flow), Status::Flushed);
            }
        }
        self.after_input(now, src);
    }

    /// Makes the queue pairs of a connection.
    fn open(&mut self, now: Time, conn: ConnId, paths: &[PathProfile]) {
        let spec = self.spec;
        let (src, dst, group) = {
            let c = &self.execution.connections[conn];
            (c.src, c.dst, c.group)
        };
        let class = spec.groups[group.index()].class;
        let scheme = &spec.scheme_of(group).scheme;
        let mut policy = scheme.policy.clone();
        let mtu = spec.host.mtu.get() as u16;
        let mtu_wire = data_wire_bytes(spec.host.framing, spec.host.verb, 1, mtu, false);
        let ack_wire = ack_wire_bytes(spec.host.framing);
        let nearest =
            paths.iter().min_by_key(|path| path.round_trip(mtu_wire, ack_wire)).expect("there is a path");
        let base_rtt = nearest.round_trip(mtu_wire, ack_wire);
        policy.adapt_to_fabric(&FabricEnv {
            when_full: if spec.switch.pfc.enabled { WhenFull::Pause } else { WhenFull::Drop },
            longest_path: self.longest_path.as_ref(),
            line_rate: nearest.line_rate(),
            packet_bytes: u64::from(mtu_wire),
        });
        let env = PolicyEnv {
            line_rate: nearest.line_rate(),
            base_rtt,
            mtu_wire_bytes: mtu_wire,
            mtu_payload_bytes: u32::from(mtu),
            paths: scheme.paths,
            measured: Leg { base_rtt, links: u8::try_from(nearest.hops.len()).unwrap_or(u8::MAX) },
            edge: edge::leg(&spec.switch.external, spec.host.framing, nearest, mtu_wire),
        };
        let [mut there, back] = [(src, dst), (dst, src)].map(|(from, to)| {
            let env = PolicyEnv { paths: self.ways.count(from, to, scheme.paths), ..env };
            (env, self.ways.views(&spec.topology, (from, to), (mtu_wire, ack_wire)))
        });
        if scheme.ports == Ports::Distinct && there.1.is_empty() {
            there.1 = distinct_paths(&self.fabric, (src, dst), scheme.paths);
        }
        self.execution.connections[conn].queue_pairs.reserve_exact(usize::from(scheme.queue_pairs));
        for index in 0..scheme.queue_pairs {
            let make = |host: &mut Host, peer: HostId, side: u64| -> QpNum {
                let (env, views) = if side == 0 { &there } else { &back };
                let stream = u64::from(conn) << 20 | u64::from(index) << 1 | side;
                let mut rng = Rng::for_component(spec.seed, "policy", stream);
                let config = QpConfig {
                    recovery: scheme.recovery,
                    acks: scheme.acks,
                    cnp: scheme.cnp,
                    reordering: scheme.reordering,
                    rto: spec.host.rto,
                    rnr: RnrConfig::default(),
                    receive: ReceiveMode::Discard,
                    ..QpConfig::new(peer, policy.build(env, &mut rng), views)
                };
                let qp = host.endpoint.create_qp(now, config);
                if class != 1 {
                    host.nic.classes.get_or_insert_default().insert(qp, class);
                }
                qp
            };
            let at_src = make(&mut self.hosts[src.index()], dst, 0);
            let at_dst = make(&mut self.hosts[dst.index()], src, 1);
            self.hosts[src.index()].endpoint.connect(at_src, at_dst).expect("just made");
            self.hosts[dst.index()].endpoint.connect(at_dst, at_src).expect("just made");
            self.execution.connections[conn].queue_pairs.push((at_src, at_dst));
        }
    }

    /// Where sources choose their paths: tells the queue pairs whose paths have failed or come back since links were as
    /// in `before`.
    pub(crate) fn tell_of_paths(&mut self, now: Time, before: &[bool]) {
        let spec = self.spec;
        let mtu = spec.host.mtu.get() as u16;
        let data_wire = data_wire_bytes(spec.host.framing, spec.host.verb, 1, mtu, false);
        let bytes = (data_wire, ack_wire_bytes(spec.host.framing));
        for conn in 0..self.execution.connections.len() as ConnId {
            let connection = &self.execution.connections[conn];
            let (src, dst, qps) = (connection.src, connection.dst, connection.queue_pairs.clone());
            if qps.is_empty() {
                continue;
            }
            for (from, to, at_from) in [(src, dst, true), (dst, src, false)] {
                if !self.ways.differs(&spec.topology, before, from, to) {
                    continue;
                }
                let views = self.ways.views(&spec.topology, (from, to), bytes);
                for &(at_src, at_dst) in &qps {
                    let qp = if at_from { at_src } else { at_dst };
                    // One that has failed has no use for paths.
                    let _ = self.hosts[from.index()].endpoint.set_paths(now, qp, &views);
                }
                self.after_input(now, from.index());
            }
        }
    }

    /// All bytes of one queue pair's share of a message have arrived.
    pub(crate) fn on_delivered(&mut self, now: Time, host: usize, qp: QpNum, msn: u32, bytes: u64) {
        let flow = self.hosts[host].incoming[&qp][msn as usize];
        // The host hears of it when its NIC has told.
        let nic = self.spec.host.nic.as_ref();
        self.delivered(now + nic.map_or(Duration::ZERO, |nic| nic.arrival_delay(0)), flow, bytes);
    }

    /// A message, or the share of one queue pair in it, of so many bytes, has arrived.
    pub(crate) fn delivered(&mut self, now: Time, flow: u32, bytes: u64) {
        if self.execution.part_delivered(now, flow, bytes) {
            if let Some(ledger) = self.inspect.as_mut().and_then(|inspect| inspect.ledger.as_mut()) {
                ledger.delivered(flow, self.spec.graph.messages()[flow as usize].size.get());
            }
            self.schedule_freed();
            self.uncouple(flow);
        }
    }

    /// The sender knows how one queue pair's share of a message ended.
    pub(crate) fn on_completion(&mut self, now: Time, wr_id: u64, status: Status) {
        let flow = wr_id as u32;
        match self.execution.part_completed(now, flow, status) {
            Completed::NotYet => return,
            Completed::Acknowledged => self.schedule_freed(),
            Completed::Failed => {}
        }
        self.uncouple(flow);
        let conn = self.execution.connections.of(flow);
        self.note_contexts(flow, false);
        let service = &self.spec.scheme_of(self.execution.connections[conn].group).scheme.service;
        if is_raw(service) {
            // Sent, and nobody will say whether it arrived.
            if let Some(record) = self.execution.record_mut(flow) {
                record.acked_ps = None;
            }
        } else {
            self.execution.ended(flow);
        }
        if let Service::Datagram(_) = service {
            return;
        }
        if *service == Service::EndToEnd {
            self.free_context(now, conn);
        }
        let tally = tally(&self.hosts, &self.execution.connections[conn]);
        if let Some(followed) = self.inspect.as_mut().and_then(|inspect| inspect.followed.as_mut()) {
            followed.ended(flow);
        }
        if self.execution.done_with(flow, tally) {
            self.close(conn);
        }
    }

    /// A message has ended for one of its ends, perhaps for both.
    fn uncouple(&mut self, flow: u32) {
        if !self.execution.is_arriving(flow) && !self.execution.is_open(flow) {
            self.coupling.has_ended(&self.spec.graph, TaskId(flow));
        }
    }

    fn close(&mut self, conn: ConnId) {
        let connection = &mut self.execution.connections[conn];
        let (src, dst) = (connection.src.index(), connection.dst.index());
        for (at_src, at_dst) in std::mem::take(&mut connection.queue_pairs) {
            for (host, qp) in [(src, at_src), (dst, at_dst)] {
                let host = &mut self.hosts[host];
                host.endpoint.destroy_qp(qp).expect("open until now");
                host.outgoing.remove(&qp);
                host.incoming.remove(&qp);
                if let Some(classes) = &mut host.nic.classes {
                    classes.remove(&qp);
                }
            }
        }
    }
}

/// Counters of a connection's queue pairs, summed.
pub(crate) fn tally(hosts: &[Host], connection: &Connection<QueuePair>) -> Tally {
    let (src, dst) = (&hosts[connection.src.index()], &hosts[connection.dst.index()]);
    let mut tally = Tally::default();
    for &(at_src, at_dst) in &connection.queue_pairs {
        let sender = src.endpoint.qp_counters(at_src).unwrap_or_default();
        let order = src.endpoint.order_counters(at_src).unwrap_or_default();
        tally.add_sender(&sender, &order);
        tally.add_receiver(&dst.endpoint.qp_counters(at_dst).unwrap_or_default());
    }
    tally
}
