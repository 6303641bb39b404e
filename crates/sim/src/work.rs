//! Execution of the workload: posts messages as they become due, and records how they end.

use pathweave_execution::{
    ConnId, Connection, MessagePart, PartCompletion, ReceiverCounters, ScheduledStep, SenderCounters, Step,
    shares,
};
use pathweave_fabric::config::FaultConfig;
use pathweave_policy::{Adapt, PathView, PolicyConfig, PolicyEnv, Service};
use pathweave_records::FlowRecord;
use pathweave_topo::rate_of_ports;
use pathweave_transport::{Buffer, Op, QpConfig, Status, WorkRequest};
use pathweave_units::{Duration, HostId, QpNum, Time};

use crate::agenda::{Item, Opening, Rank};
use crate::check;
use crate::config::Verb;
use crate::contexts::Side;
use crate::datagram::is_raw;
use crate::host::Host;
use crate::ideal::{ack_wire_bytes, ideal_fct};
use crate::opening::{policy_stream, queue_pair_config};
use crate::paths::{PathProfile, PathUse};
use crate::shard::{QueuePair, Shard, Traffic};
use crate::side::SIDE_MESSAGE;
use crate::spec::RouteChoice;
use crate::transfer::RemoteItem;

impl<const C: usize> Shard<'_, C> {
    /// Handles the items due at a host besides packets, transmitter and timers.
    pub(crate) fn on_agenda(&mut self, now: Time, host: usize) {
        while let Some(item) = self.hosts[host].pop_due(now) {
            match item {
                Item::Step(step) => self.on_step_due(now, HostId(host as u32), step),
                Item::Expect { flow, opening } => self.register_incoming(now, flow, opening),
                Item::Close(conn) => self.close_receiver(conn),
                Item::GivenUp { flow } => self.note_context(flow, Side::Receiver, false),
                Item::Posted { flow, at, granted } => self.issue_work_request(now, at, flow, granted),
                Item::InMemory(datagram) => self.on_in_memory(now, HostId(host as u32), datagram),
                Item::Handled(qp) => self.on_handled(now, HostId(host as u32), qp),
                Item::ScaleUpDelivered { flow } => self.delivered_over_scale_up(now, flow),
                Item::ScaleUpSent { flow } => self.sent_over_scale_up(now, flow),
                Item::Side { from, message } => self.on_side(now, HostId(host as u32), from, &message),
                Item::SideSent { from, message } => self.expect_side(HostId(host as u32), from, message),
            }
        }
    }

    fn on_step_due(&mut self, now: Time, host: HostId, step: Step) {
        if let Some(flow) = self.traffic.execution.step(now, host, step) {
            self.post(now, flow);
        }
        self.drain_new_steps();
    }

    /// Enters new steps of tasks at the hosts concerned.
    #[inline]
    pub(crate) fn drain_new_steps(&mut self) {
        while let Some(due) = self.traffic.execution.next_step() {
            self.schedule_step(due);
        }
    }

    #[cold]
    fn schedule_step(&mut self, ScheduledStep { at, host, step }: ScheduledStep) {
        match step {
            // The notification comes from another host.
            Step::Told { .. } => self.send_to_host(at, host, Rank::Step(step), Item::Step(step)),
            Step::Computed(_) | Step::Begin(_) => self.schedule_own(at, host, Item::Step(step)),
        }
    }

    /// Sends an item from one host to another.
    pub(crate) fn send_to_host(&mut self, at: Time, to: HostId, rank: Rank, item: Item) {
        debug_assert!(at >= self.windows.end, "{item:?} would reach host {} in the window at hand", to.0);
        if self.place.has(to.0) {
            self.deliver_due(at, to, rank, item);
        } else {
            self.outbox.push(self.place.part_of(to.0), RemoteItem { at, to, rank, item });
        }
    }

    /// Adds an item to the agenda of a host of this shard.
    pub(crate) fn deliver_due(&mut self, at: Time, to: HostId, rank: Rank, item: Item) {
        let alarm = self.hosts[to.index()].push_due(at, rank, item);
        self.next = self.next.min(alarm);
        self.network.fabric.make_host_due(to, alarm);
    }

    /// Adds an item that a host schedules for itself.
    pub(crate) fn schedule_own(&mut self, at: Time, host: HostId, item: Item) {
        let alarm = self.hosts[host.index()].schedule_own(at, item);
        self.network.fabric.make_host_due(host, alarm);
    }

    fn post(&mut self, now: Time, flow: u32) {
        if let Some(carrier) = &mut self.scale_up
            && self.traffic.execution.post_over(carrier, now, flow)
        {
            return;
        }
        match &self.spec.network.nic {
            None => self.issue_work_request(now, now, flow, false),
            Some(nic) => {
                let src = self.spec.graph.messages()[flow as usize].src;
                self.schedule_own(
                    now + nic.post_delay(),
                    src,
                    Item::Posted { flow, at: now, granted: false },
                );
            }
        }
    }

    /// Returns the profiles by which the ideal time of a message goes. `paths` are those of the topology.
    fn idle_paths(&self, (src, dst): (HostId, HostId), paths: Vec<PathProfile>) -> Vec<PathProfile> {
        match &self.network.plan.at_best {
            Some(best) => self.network.routes.profiles(best, src, dst),
            None => paths,
        }
    }

    /// Returns the least time of an acknowledgement of a message on the idle network, or `None` if it returns on the
    /// path of its packet, whose profile is among `paths`.
    fn fastest_return(
        &self,
        (src, dst): (HostId, HostId),
        paths: &[PathProfile],
        ack_wire: u32,
    ) -> Option<Duration> {
        let follow = matches!(self.spec.routing, RouteChoice::Sources(_));
        let is_only = matches!(paths, [path] if path.nic_ports == (1, 1));
        if follow || is_only && !self.spec.topology.has_directions() {
            return None;
        }
        let topology = self.network.plan.at_best.as_deref().unwrap_or(&self.spec.topology);
        let back = self.network.routes.profiles(topology, dst, src);
        back.iter().map(|path| path.one_way(ack_wire)).min()
    }

    /// Tries a message without a path again after a timeout, as long as its sender does not give up and a link or switch is
    /// yet to work again. Otherwise reports its receiver as unreachable.
    fn wait_for_path(&mut self, now: Time, posted: Time, record: FlowRecord, granted: bool) {
        let timer = &self.spec.network.retransmission;
        let comes_back =
            self.spec.faults.iter().filter_map(FaultConfig::up_again).any(|at| Time::ZERO + at > now);
        if !comes_back || now.saturating_since(posted) >= timer.give_up_after() {
            return self.traffic.execution.unreachable(now, record);
        }
        let again = Item::Posted { flow: record.flow, at: posted, granted };
        self.schedule_own(now + timer.timeout, HostId(record.src_host), again);
    }

    /// Issues the work request of a message that was posted at `posted` and has reached the NIC.
    fn issue_work_request(&mut self, now: Time, posted: Time, flow: u32, granted: bool) {
        let message = self.spec.graph.messages()[flow as usize];
        let conn = self.traffic.execution.connections.of(flow);
        let record = FlowRecord { start_ps: posted.as_ps(), ..self.traffic.execution.record(flow) };
        let paths = self.network.routes.profiles(&self.spec.topology, message.src, message.dst);
        if paths.is_empty() {
            return self.wait_for_path(now, posted, record, granted);
        }
        let spec = self.spec;
        let service = &spec.scheme_of(message.group).scheme.service;
        if *service == Service::EndToEnd && !granted && !self.take_context(conn, flow, posted) {
            return;
        }
        self.note_context(flow, Side::Sender, true);
        if let Service::Datagram(config) = service {
            let idle = self.idle_paths((message.src, message.dst), paths.clone());
            return self.post_datagram(now, flow, (&paths, &idle), config, record);
        }
        let opening = self.traffic.execution.connections[conn].queue_pairs.is_empty().then(|| {
            let opening = self.opening(conn, (message.src, message.dst), &paths);
            self.open_sender(now, conn, &opening, &paths);
            Box::new(opening)
        });
        let framing = self.spec.network.framing;
        let mtu = self.spec.network.mtu.get() as u16;
        let used = PathUse::of(&self.spec.scheme_of(message.group).scheme, self.network.plan.forwarding);
        let paths = self.idle_paths((message.src, message.dst), paths);
        let paths: Vec<PathProfile> = paths.into_iter().map(|path| path.used(used)).collect();
        let queue_pairs = self.traffic.execution.connections[conn].queue_pairs.len();
        let ideal_of =
            |path| ideal_fct(path, message.size.get(), queue_pairs, mtu, framing, self.spec.network.verb);
        let ideal = paths.iter().map(ideal_of).min();
        let ack_wire = ack_wire_bytes(framing);
        let acked = match self.fastest_return((message.src, message.dst), &paths, ack_wire) {
            Some(back) => ideal.map(|ideal| ideal + back),
            None => paths.iter().map(|path| ideal_of(path) + path.one_way(ack_wire)).min(),
        };
        let record = FlowRecord {
            ideal_fct_ps: ideal.map_or(0, Duration::as_ps),
            ideal_acked_ps: acked.map(Duration::as_ps),
            ..record
        };
        let qps = self.traffic.execution.connections[conn].queue_pairs.clone();
        let parts = shares(message.size.get(), qps.len());
        self.traffic.execution.posted(record, parts.len() as u16);
        let src = message.src.index();
        if let Some(followed) = self.observers.followed() {
            let carriers = qps.iter().take(parts.len());
            followed.posted(
                flow,
                carriers.clone().map(|qp| qp.0).collect(),
                carriers.map(|qp| qp.1).collect(),
            );
        }
        self.announce(now, flow, opening);
        for (MessagePart { offset, len }, (src_qp, _)) in parts.zip(qps) {
            let op = match self.spec.network.verb {
                Verb::Send => Op::Send,
                Verb::Write => {
                    Op::Write { rkey: self.traffic.rkey, remote_addr: check::flow_address(flow) + offset }
                }
            };
            let request = WorkRequest { wr_id: u64::from(flow), op, local: Buffer(0), len };
            if self.hosts[src].endpoint.post(now, src_qp, request).is_ok() {
                self.hosts[src].outgoing.entry(src_qp).or_default().push(flow);
            } else {
                // The connection failed with an earlier message.
                self.on_completion(now, u64::from(flow), Status::Flushed);
            }
        }
        self.after_input(now, src);
    }

    /// Announces a posted message to its receiver, ahead of its first packet.
    pub(crate) fn announce(&mut self, now: Time, flow: u32, opening: Option<Box<Opening>>) {
        let dst = self.spec.graph.messages()[flow as usize].dst;
        self.send_to_host(
            now + self.windows.longest,
            dst,
            Rank::Expect(flow),
            Item::Expect { flow, opening },
        );
    }

    /// Registers a message that is about to arrive.
    fn register_incoming(&mut self, now: Time, flow: u32, opening: Option<Box<Opening>>) {
        self.note_context(flow, Side::Receiver, true);
        let message = self.spec.graph.messages()[flow as usize];
        let scheme = &self.spec.scheme_of(message.group).scheme;
        if let Service::Datagram(config) = &scheme.service {
            return self.expect_datagram(now, flow, config, opening);
        }
        let conn = self.traffic.execution.connections.of(flow);
        if let Some(opening) = opening {
            self.open_receiver(now, conn, &opening);
        }
        let queue_pairs = usize::from(scheme.queue_pairs);
        let parts = shares(message.size.get(), queue_pairs).len();
        for index in 0..parts {
            let (at_src, at_dst) = self.queue_pair(conn, index as u16);
            let incoming = self.hosts[message.dst.index()].incoming.entry(at_dst).or_default();
            if let Some(followed) =
                self.observers.inspect.as_mut().and_then(|inspect| inspect.followed.as_mut())
            {
                let carrier = (parts > 1).then_some(index as u16);
                followed.expected(flow, (message.src, at_src, incoming.len() as u32), carrier);
            }
            incoming.push(flow);
        }
        self.traffic.execution.expected(flow, parts as u16);
    }

    /// Returns the parameters from which both ends of a connection are created.
    fn opening(&self, conn: ConnId, pair: (HostId, HostId), paths: &[PathProfile]) -> Opening {
        let scheme = &self.spec.scheme_of(self.traffic.execution.connections[conn].group).scheme;
        self.network.opening(self.spec, scheme, pair, paths)
    }

    /// Returns the policy of a connection's queue pairs, adapted to the fabric.
    fn policy(&self, conn: ConnId, opening: &Opening) -> PolicyConfig {
        let group = self.traffic.execution.connections[conn].group;
        let awaited = self.spec.groups[group.index()].awaited;
        self.network.policy(&self.spec.scheme_of(group).scheme, awaited, opening)
    }

    /// Returns the numbers of a connection's queue pair at both ends, which are known before it exists.
    pub(crate) fn queue_pair(&self, conn: ConnId, index: u16) -> QueuePair {
        let [at_src, at_dst] = self.traffic.queue_pairs[conn as usize];
        (QpNum(at_src + u32::from(index)), QpNum(at_dst + u32::from(index)))
    }

    /// Creates the queue pairs at the sender of a connection.
    fn open_sender(&mut self, now: Time, conn: ConnId, opening: &Opening, paths: &[PathProfile]) {
        debug_assert!(!paths.is_empty());
        let connection = &self.traffic.execution.connections[conn];
        let (src, dst) = (connection.src, connection.dst);
        let scheme = &self.spec.scheme_of(connection.group).scheme;
        let views = self.network.sender_views(self.spec, scheme, (src, dst));
        self.open_end(now, conn, (src, dst), opening, &views);
        let queue_pairs = (0..scheme.queue_pairs).map(|index| self.queue_pair(conn, index)).collect();
        self.traffic.execution.connections[conn].queue_pairs = queue_pairs;
    }

    /// Creates the queue pairs at the receiver of a connection.
    fn open_receiver(&mut self, now: Time, conn: ConnId, opening: &Opening) {
        let connection = &self.traffic.execution.connections[conn];
        let (src, dst) = (connection.src, connection.dst);
        let views = self.network.views(self.spec, (dst, src));
        self.open_end(now, conn, (dst, src), opening, &views);
    }

    fn open_end(
        &mut self,
        now: Time,
        conn: ConnId,
        (own, peer): (HostId, HostId),
        opening: &Opening,
        views: &[PathView],
    ) {
        let spec = self.spec;
        let group = self.traffic.execution.connections[conn].group;
        let is_sender = own == self.traffic.execution.connections[conn].src;
        let class = spec.groups[group.index()].class;
        let scheme = &spec.scheme_of(group).scheme;
        let leading = self.network.routes.leading_ports(&spec.topology, own, peer);
        let wished = scheme.paths_over(leading.count_ones() as u16);
        let env = PolicyEnv { paths: self.network.routes.count(own, peer, wished), ..opening.env };
        let policy = self.policy(conn, opening);
        let reads_telemetry = policy.reads_telemetry();
        // Total rate of the receiver's own ports, of which it grants a share.
        let line = rate_of_ports(&spec.topology, own, leading);
        self.hosts[own.index()].note_leading_ports(now, peer, leading);
        for index in 0..scheme.queue_pairs {
            let (at_src, at_dst) = self.queue_pair(conn, index);
            let (qp, remote) = if is_sender { (at_src, at_dst) } else { (at_dst, at_src) };
            let mut rng = policy_stream(spec.seed, conn, index, is_sender);
            let base = QpConfig::new(peer, policy.build(&env, &mut rng), views);
            let config = QpConfig {
                credit: scheme.credit_terms(&env, line),
                ..queue_pair_config(spec, scheme, (opening, &env, self.network.plan.when_full), base)
            };
            let host = &mut self.hosts[own.index()];
            host.endpoint.create_qp_as(now, qp, config);
            host.endpoint.connect(qp, remote).expect("just made");
            if let Some(telemetry) = host.telemetry.as_mut().filter(|_| reads_telemetry) {
                telemetry.ask(qp);
            }
            if class != 1 {
                host.nic.classes.get_or_insert_default().insert(qp, class);
            }
        }
    }

    /// Handles the arrival of all bytes of one queue pair's share of a message.
    pub(crate) fn on_delivered(&mut self, now: Time, host: usize, qp: QpNum, msn: u32, bytes: u64) {
        if qp.0 >= self.traffic.first_side {
            return self.on_side_bytes(now, HostId(host as u32), qp);
        }
        let flow = self.hosts[host].incoming[&qp][msn as usize];
        // The host detects the delivery after the NIC's completion has crossed PCIe.
        let nic = self.spec.network.nic.as_ref();
        self.delivered(now + nic.map_or(Duration::ZERO, |nic| nic.arrival_delay(0)), flow, bytes);
    }

    /// Records the arrival of a message, or of one queue pair's share of it, of `bytes`.
    pub(crate) fn delivered(&mut self, now: Time, flow: u32, bytes: u64) {
        if !self.traffic.execution.part_delivered(now, flow, bytes) {
            return;
        }
        if let Some(ledger) = self.observers.ledger() {
            ledger.delivered(flow, self.spec.graph.messages()[flow as usize].size.get());
        }
        let conn = self.traffic.execution.connections.of(flow);
        let connection = &self.traffic.execution.connections[conn];
        let scheme = &self.spec.scheme_of(connection.group).scheme;
        if !matches!(scheme.service, Service::Datagram(_)) {
            let [_, first] = self.traffic.queue_pairs[conn as usize];
            let tally = receiver_tally(&self.hosts[connection.dst.index()], first, scheme.queue_pairs);
            self.traffic.execution.received(flow, tally);
        }
        self.note_context(flow, Side::Receiver, false);
        self.drain_new_steps();
    }

    /// Handles the completion of one queue pair's share of a message at the sender.
    pub(crate) fn on_completion(&mut self, now: Time, wr_id: u64, status: Status) {
        if wr_id == SIDE_MESSAGE {
            return;
        }
        let flow = wr_id as u32;
        let completed = self.traffic.execution.part_completed(now, flow, status);
        if completed == PartCompletion::NotYet {
            return;
        }
        let conn = self.traffic.execution.connections.of(flow);
        let (src, dst) =
            (self.traffic.execution.connections[conn].src, self.traffic.execution.connections[conn].dst);
        self.note_context(flow, Side::Sender, false);
        let service = &self.spec.scheme_of(self.traffic.execution.connections[conn].group).scheme.service;
        if completed == PartCompletion::Failed {
            let at = now + self.traffic.notification;
            self.send_to_host(at, dst, Rank::GivenUp(flow), Item::GivenUp { flow });
        }
        if is_raw(service) {
            self.traffic.execution.mark_unacknowledged(flow);
        } else {
            self.traffic.execution.ended(now, flow);
        }
        self.drain_new_steps();
        if let Service::Datagram(_) = service {
            return;
        }
        if *service == Service::EndToEnd {
            self.free_context(now, src, conn);
        }
        if let Some(followed) = self.observers.followed() {
            followed.ended(flow);
        }
        let tally = sender_tally(&self.hosts[src.index()], &self.traffic.execution.connections[conn]);
        if self.traffic.execution.release_connection(flow, tally) {
            self.close_sender(conn);
            self.send_to_host(now + self.traffic.notification, dst, Rank::Close(conn), Item::Close(conn));
        }
    }

    fn close_sender(&mut self, conn: ConnId) {
        let connection = &mut self.traffic.execution.connections[conn];
        let src = connection.src;
        for (at_src, _) in std::mem::take(&mut connection.queue_pairs) {
            self.hosts[src.index()].close(at_src);
        }
    }

    /// Closes the receiving end of a connection that the sender has finished.
    fn close_receiver(&mut self, conn: ConnId) {
        let connection = &self.traffic.execution.connections[conn];
        let (dst, group) = (connection.dst, connection.group);
        for index in 0..self.spec.scheme_of(group).scheme.queue_pairs {
            let (_, at_dst) = self.queue_pair(conn, index);
            self.hosts[dst.index()].close(at_dst);
        }
    }

    /// Assigns, at the end of the run, the counters of each open connection to its unfinished message, and those of
    /// datagrams to theirs.
    pub(crate) fn settle_open(&mut self) {
        let Shard { traffic, hosts, spec, .. } = self;
        let Traffic { execution, queue_pairs: numbers, .. } = traffic;
        for sent in hosts.iter().flat_map(Host::outstanding_datagrams) {
            execution.count_sent(sent.wr_id as u32, sent.sent_packets, sent.retransmitted);
        }
        let queue_pairs = |connection: &Connection<QueuePair>| {
            let scheme = &spec.scheme_of(connection.group).scheme;
            (!matches!(scheme.service, Service::Datagram(_))).then_some(scheme.queue_pairs)
        };
        execution.attribute_counters_at_end(
            |_, connection| {
                queue_pairs(connection)?;
                Some(sender_tally(&hosts[connection.src.index()], connection))
            },
            |conn, connection| {
                let [_, first] = numbers[conn as usize];
                Some(receiver_tally(&hosts[connection.dst.index()], first, queue_pairs(connection)?))
            },
        );
    }
}

/// Returns the counters of a connection's sender.
fn sender_tally(sender: &Host, connection: &Connection<QueuePair>) -> SenderCounters {
    let mut tally = SenderCounters::default();
    for &(at_src, _) in &connection.queue_pairs {
        tally.add(&sender.endpoint.qp_counters(at_src).unwrap_or_default());
    }
    tally
}

/// Returns the counters of a connection's receiver, whose queue pairs there have numbers from `first` on.
fn receiver_tally(receiver: &Host, first: u32, queue_pairs: u16) -> ReceiverCounters {
    let mut tally = ReceiverCounters::default();
    for number in first..first + u32::from(queue_pairs) {
        tally.add(&receiver.endpoint.qp_counters(QpNum(number)).unwrap_or_default());
    }
    tally
}
