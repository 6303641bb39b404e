//! The workload in motion: posting messages as they become due, noting how they end.

use std::cmp::Reverse;

use pathweave_policy::{Leg, PolicyEnv, Ports, Service};
use pathweave_results::{FlowRecord, FlowStatus};
use pathweave_transport::{Buffer, Op, QpConfig, ReceiveMode, RnrConfig, Status, WorkRequest, part_bytes};
use pathweave_units::{Duration, HostId, QpNum, Rng, Time};
use pathweave_workload::{Due, TaskId};

use crate::check;
use crate::connections::ConnId;
use crate::datagram::is_raw;
use crate::distinct::distinct_paths;
use crate::edge;
use crate::flows::{Flow, Tally};
use crate::ideal::{ack_wire_bytes, data_wire_bytes, ideal_fct, notice_wire_bytes};
use crate::later::Later;
use crate::paths::PathProfile;
use crate::runner::Runner;
use crate::spec::Verb;

impl<const C: usize> Runner<'_, C> {
    /// Begins every task that is due.
    pub(crate) fn on_work(&mut self, now: Time) {
        let graph = self.spec.graph.clone();
        loop {
            if let Some(&Reverse((at, _, task))) = self.due.peek()
                && at <= now
            {
                self.due.pop();
                self.begin(now, task);
            } else if let Some(Due { task, at }) = self.progress.pop_root(&graph, now) {
                if at <= now {
                    self.begin(now, task);
                } else {
                    self.begin_later(task, at);
                }
            } else {
                break;
            }
        }
        self.schedule_work();
    }

    pub(crate) fn begin_later(&mut self, task: TaskId, at: Time) {
        self.due_count += 1;
        self.due.push(Reverse((at, self.due_count, task)));
    }

    /// A message is posted; a computation is over (its due time is its end).
    fn begin(&mut self, now: Time, task: TaskId) {
        if task.index() < self.flows.len() {
            self.post(now, task.0);
        } else {
            self.pending.ended(&self.spec.graph, task);
            self.complete_task(now, task);
        }
    }

    fn complete_task(&mut self, now: Time, task: TaskId) {
        let mut free = Vec::new();
        if let Some(job) = self.progress.complete(&self.spec.graph, task, now, &mut free) {
            self.job_finish[job.index()] = Some(now);
        }
        self.begin_freed(free);
    }

    /// The sender of a message has its last acknowledgement.
    fn acknowledged(&mut self, now: Time, message: TaskId) {
        let mut free = Vec::new();
        self.progress.acknowledged(&self.spec.graph, message, now, &mut free);
        self.begin_freed(free);
    }

    fn begin_freed(&mut self, free: Vec<Due>) {
        for Due { task, at } in free {
            self.pending.freed(&self.spec.graph, task);
            self.begin_later(task, at);
        }
        if !self.due.is_empty() {
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
        let conn = self.connections.of(flow);
        let record = FlowRecord { start_ps: posted.as_ps(), ..self.spec.flow_record(flow) };
        let paths = self.ways.profiles(&self.spec.topology, message.src, message.dst);
        if paths.is_empty() {
            let record = FlowRecord { status: FlowStatus::Unreachable, ..record };
            self.flows[flow as usize] = Some(Flow::posted(record, 0));
            self.connections.list[conn as usize].messages_left -= 1;
            self.pending.ended(&self.spec.graph, TaskId(flow));
            return;
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
        if self.connections.list[conn as usize].qps.is_empty() {
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
        let qps = self.connections.list[conn as usize].qps.clone();
        // A message of fewer bytes than queue pairs leaves some of them idle.
        let parts = (qps.len() as u64).min(message.size.get().max(1));
        self.flows[flow as usize] = Some(Flow::posted(record, parts as u16));
        let (src, dst) = (message.src.index(), message.dst.index());
        if let Some(followed) = self.inspect.as_mut().and_then(|inspect| inspect.followed.as_mut()) {
            let outgoing = &self.hosts[src].outgoing;
            let number = |qp| outgoing.get(qp).map_or(0, Vec::len) as u32;
            let carriers: Vec<_> =
                qps.iter().take(parts as usize).map(|(src_qp, _)| (*src_qp, number(src_qp))).collect();
            let receivers = qps.iter().take(carriers.len()).map(|(_, dst_qp)| *dst_qp).collect();
            followed.posted(flow, (message.src, &carriers), (message.dst, receivers));
        }
        let mut offset = 0;
        for (part, (src_qp, dst_qp)) in (0..parts).zip(qps) {
            let op = match self.spec.host.verb {
                Verb::Send => Op::Send,
                Verb::Write => {
                    Op::Write { rkey: self.hosts[dst].rkey, remote_addr: check::flow_address(flow) + offset }
                }
            };
            let len = part_bytes(message.size.get(), part, parts);
            offset += len;
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
            let c = &self.connections.list[conn as usize];
            (c.src, c.dst, c.group)
        };
        let class = spec.groups[group.index()].class;
        let scheme = &spec.scheme_of(group).scheme;
        let mut policy = scheme.policy.clone();
        if !spec.switch.pfc.enabled {
            policy.suit_drops();
        }
        let mtu = spec.host.mtu.get() as u16;
        let mtu_wire = data_wire_bytes(spec.host.framing, spec.host.verb, 1, mtu, false);
        let ack_wire = ack_wire_bytes(spec.host.framing);
        let nearest =
            paths.iter().min_by_key(|path| path.round_trip(mtu_wire, ack_wire)).expect("there is a path");
        let base_rtt = nearest.round_trip(mtu_wire, ack_wire);
        if let Some(longest) = &self.longest_path {
            policy.suit_longest(longest, nearest.line_rate(), u64::from(mtu_wire));
        }
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
        self.connections.list[conn as usize].qps.reserve_exact(usize::from(scheme.queue_pairs));
        for index in 0..scheme.queue_pairs {
            let make = |host: &mut crate::host::Host, peer: HostId, side: u64| -> QpNum {
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
            self.connections.list[conn as usize].qps.push((at_src, at_dst));
        }
    }

    /// Where sources choose their paths: tells the queue pairs whose paths have failed or come back since links were as
    /// in `before`.
    pub(crate) fn tell_of_paths(&mut self, now: Time, before: &[bool]) {
        let spec = self.spec;
        let mtu = spec.host.mtu.get() as u16;
        let data_wire = data_wire_bytes(spec.host.framing, spec.host.verb, 1, mtu, false);
        let bytes = (data_wire, ack_wire_bytes(spec.host.framing));
        for conn in 0..self.connections.list.len() {
            let connection = &self.connections.list[conn];
            let (src, dst, qps) = (connection.src, connection.dst, connection.qps.clone());
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

    /// Counters of a connection's queue pairs, summed: (senders, receivers).
    fn tallies(&self, conn: ConnId) -> (Tally, Tally) {
        let connection = &self.connections.list[conn as usize];
        let (src, dst) = (&self.hosts[connection.src.index()], &self.hosts[connection.dst.index()]);
        let mut sums = (Tally::default(), Tally::default());
        let notice_bytes = u64::from(notice_wire_bytes(self.spec.host.framing));
        for &(at_src, at_dst) in &connection.qps {
            src.endpoint.qp_counters(at_src).into_iter().for_each(|c| sums.0.add(&c));
            dst.endpoint.qp_counters(at_dst).into_iter().for_each(|c| sums.1.add(&c));
            src.endpoint.order_counters(at_src).into_iter().for_each(|c| sums.0.add_order(&c, notice_bytes));
        }
        sums
    }

    /// All bytes of one queue pair's share of a message have arrived.
    pub(crate) fn on_delivered(&mut self, now: Time, host: usize, qp: QpNum, msn: u32, bytes: u64) {
        self.bytes_done += u128::from(bytes);
        let flow = self.hosts[host].incoming[&qp][msn as usize];
        // The host hears of it when its NIC has told.
        let nic = self.spec.host.nic.as_ref();
        self.delivered(now + nic.map_or(Duration::ZERO, |nic| nic.arrival_delay(0)), flow);
    }

    /// A message, or the share of one queue pair in it, has arrived.
    pub(crate) fn delivered(&mut self, now: Time, flow: u32) {
        let state = self.flows[flow as usize].as_mut().expect("delivered after it was posted");
        if state.part_delivered(now) {
            if let Some(ledger) = self.inspect.as_mut().and_then(|inspect| inspect.ledger.as_mut()) {
                ledger.delivered(flow, state.record.size_bytes);
            }
            self.flows_done += 1;
            self.complete_task(now, TaskId(flow));
            self.uncouple(flow);
        }
    }

    /// The sender knows how one queue pair's share of a message ended.
    pub(crate) fn on_completion(&mut self, now: Time, wr_id: u64, status: Status) {
        let flow = wr_id as u32;
        let state = self.flows[flow as usize].as_mut().expect("completed after it was posted");
        if !state.part_completed(now, status) {
            return;
        }
        if state.record.acked_ps.is_some() {
            self.acknowledged(now, TaskId(flow));
        }
        self.uncouple(flow);
        let conn = self.connections.of(flow);
        self.note_contexts(flow, false);
        let service = &self.spec.scheme_of(self.connections.list[conn as usize].group).scheme.service;
        if is_raw(service) {
            // Sent, and nobody will say whether it arrived.
            if let Some(state) = &mut self.flows[flow as usize] {
                state.record.acked_ps = None;
            }
        } else {
            self.pending.ended(&self.spec.graph, TaskId(flow));
        }
        if let Service::Datagram(_) = service {
            return;
        }
        if *service == Service::EndToEnd {
            self.free_context(now, conn);
        }
        self.settle(flow);
        if let Some(followed) = self.inspect.as_mut().and_then(|inspect| inspect.followed.as_mut()) {
            followed.ended(flow);
        }
        let connection = &mut self.connections.list[conn as usize];
        connection.messages_left -= 1;
        if connection.messages_left == 0 {
            self.close(conn);
        }
    }

    /// A message has ended for one of its ends, perhaps for both.
    fn uncouple(&mut self, flow: u32) {
        let Some(state) = &mut self.flows[flow as usize] else { return };
        if state.may_end && state.parts_to_deliver == 0 && state.parts_to_ack == 0 {
            state.may_end = false;
            self.coupling.has_ended(&self.spec.graph, TaskId(flow));
        }
    }

    /// Takes the counters of a flow's queue pairs into its record.
    pub(crate) fn settle(&mut self, flow: u32) {
        let conn = self.connections.of(flow);
        let now = self.tallies(conn);
        let connection = &mut self.connections.list[conn as usize];
        let taken = connection.taken.as_deref().copied().unwrap_or_default();
        connection.taken = (connection.messages_left > 1).then(|| Box::new(now));
        if let Some(state) = &mut self.flows[flow as usize] {
            state.settle(&now, &taken);
        }
    }

    fn close(&mut self, conn: ConnId) {
        let connection = &mut self.connections.list[conn as usize];
        let (src, dst) = (connection.src.index(), connection.dst.index());
        for (at_src, at_dst) in std::mem::take(&mut connection.qps) {
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
