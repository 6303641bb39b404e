//! Recording: samples over time, rare events.

use pathweave_fabric::{DropReason, FabricEvent, FabricEventKind, Header};
use pathweave_results::{DropReason as Reason, EventKind, EventRecord, SeriesKind};
use pathweave_transport::rd::PeerId;
use pathweave_transport::{Event, SentPacket};
use pathweave_units::{Duration, HostId, PathId, QpNum, Time};
use pathweave_wire::Body;

use crate::central::Central;
use crate::events::Events;
use crate::faults::{Action, Entry};
use crate::host::Content;
use crate::nic::{NicModel, SentAgain};
use crate::samples::Samples;
use crate::shard::Shard;
use crate::spec::SimSpec;
use crate::whole::Whole;

/// Everything recorded so far.
pub(crate) struct Recorder {
    /// Instants kept at most.
    max_samples: u32,
    interval: Option<Duration>,
    pub(crate) samples: Samples,
    pub(crate) events: Events,
    /// Counters at the last sample.
    tx_bytes: Vec<u64>,
    received_bytes: Vec<u64>,
}

impl Recorder {
    pub(crate) fn new(spec: &SimSpec, ports: u32) -> Self {
        Recorder {
            max_samples: spec.observe.max_samples,
            interval: spec.observe.sampling(),
            samples: Samples::default(),
            events: Events::new(spec.observe.max_events),
            tx_bytes: vec![0; ports as usize],
            received_bytes: vec![0; spec.topology.hosts() as usize],
        }
    }

    /// Where there are as many instants as are to be kept, puts every two together and returns when to sample instead of
    /// now: at the end of an interval of twice the length, as all are from then on.
    pub(crate) fn make_room(&mut self, now: Time) -> Option<Time> {
        // An even number, so that every instant has one to go with.
        let most = (self.max_samples.max(2) & !1) as usize;
        let interval = self.interval.expect("sampling is on");
        (self.samples.instants() >= most).then(|| {
            self.samples.halve();
            self.interval = Some(interval * 2);
            now + interval
        })
    }

    /// Samples queues, links and hosts; returns when to do so again, and how long ago it was done before. Zeros are
    /// left out.
    fn sample<const C: usize>(&mut self, whole: &mut Whole<'_, '_, C>, now: Time) -> (Time, Duration) {
        let interval = self.interval.expect("sampling is on");
        let since = self.samples.begin(now);
        for (port, tx_bytes) in (0..).zip(&mut self.tx_bytes) {
            let fabric = &mut whole.at_port(port).network.fabric;
            let queued = fabric.queued_bytes(now, port).get();
            self.samples.add_unless_zero(SeriesKind::QueueBytes, port, queued as f64);
            let sent = fabric.stats(port).tx_bytes;
            let bytes = sent - std::mem::replace(tx_bytes, sent);
            let (rate, _) = fabric.link(port);
            let busy = rate.time_for(bytes).ratio(since);
            self.samples.add_unless_zero(SeriesKind::LinkUtilisation, port, busy.min(1.0));
        }
        for (host, last) in whole.hosts().zip(&mut self.received_bytes) {
            let bytes = host.received_bytes - std::mem::replace(last, host.received_bytes);
            let rate_bps = bytes as f64 * 8.0 / since.as_secs_f64();
            self.samples.add_unless_zero(SeriesKind::HostRateBps, host.nic.host.0, rate_bps);
        }
        (now + interval, since)
    }

    pub(crate) fn fault(&mut self, now: Time, entry: &Entry) {
        let Some(index) = entry.fault else { return };
        let ends = match entry.action {
            Action::Up(_) | Action::Rate(_, None) | Action::Delay(_, None) | Action::StormStop(_) => true,
            Action::Loss(_, p) | Action::Corruption(_, p) => p == 0.0,
            _ => false,
        };
        let kind = if ends { EventKind::Repair } else { EventKind::Fault };
        self.events.push(EventRecord { value: index as f64, ..EventRecord::new(now.as_ps(), kind, 0) });
    }
}

impl Central<'_> {
    /// It is time to sample.
    pub(crate) fn on_sample<const C: usize>(&mut self, whole: &mut Whole<'_, '_, C>, now: Time) {
        if let Some(later) = self.recorder.make_room(now) {
            return self.calendar.sample_at(later);
        }
        let (next, since) = self.recorder.sample(whole, now);
        whole.sample_followed(now, &mut self.recorder.samples);
        self.calendar.sample_at(next);
        whole.sample_groups(now, since, &mut self.group_sums);
    }

    /// Moves what hosts have noted, and then the log of the fabric, into the record, the digest and the flows.
    pub(crate) fn take_notes<const C: usize>(&mut self, whole: &mut Whole<'_, '_, C>) {
        let shards = &mut whole.shards;
        if shards.iter().any(|shard| !shard.observers.events.is_empty()) {
            let mut events: Vec<EventRecord> =
                shards.iter_mut().flat_map(|shard| shard.observers.events.drain(..)).collect();
            // Hosts one by one, wherever they are run.
            events.sort_by_key(|event| event.node);
            events.into_iter().for_each(|event| self.recorder.events.push(event));
        }
        if whole.shards.iter().any(|shard| shard.network.fabric.has_log()) {
            self.record_log(whole);
        }
    }

    #[cold]
    fn record_log<const C: usize>(&mut self, whole: &mut Whole<'_, '_, C>) {
        let shards = whole.shards.iter_mut();
        let mut log: Vec<FabricEvent<Content>> =
            shards.flat_map(|shard| shard.network.fabric.drain_log()).collect();
        // Of one port what was lost before the link comes before what was lost on it, which is noticed at its far end.
        log.sort_by_key(|event| (event.time, event.port, event.hops()));
        for event in log {
            let (node, _) = whole.shards[0].network.fabric.ends(event.port);
            let mut record = EventRecord {
                link: Some(event.port),
                ..EventRecord::new(event.time.as_ps(), EventKind::Drop, node)
            };
            match event.kind {
                FabricEventKind::Paused(class) => {
                    record.kind = EventKind::PfcPause;
                    record.value = f64::from(class);
                }
                FabricEventKind::Resumed(class) => {
                    record.kind = EventKind::PfcResume;
                    record.value = f64::from(class);
                }
                FabricEventKind::Dropped { reason, header, content } => {
                    record.value = f64::from(header.wire_bytes());
                    record.reason = Some(reason_of(reason));
                    record.path = Some(u32::from(content.path.0));
                    self.lost.note(event.time, header.dst(), &content);
                    record.flow = whole.lost(event.time, &header, &content);
                }
            }
            self.recorder.events.push(record);
        }
    }
}

impl<const C: usize> Whole<'_, '_, C> {
    /// The fabric has lost a packet. Returns the flow it belonged to, if it was of one.
    fn lost(&mut self, now: Time, header: &Header, content: &Content) -> Option<u32> {
        let sender = self.at(header.src());
        let flow = match content.body {
            Body::Rd(data) => {
                let peer = PeerId { host: header.dst(), qp: content.dst_qp };
                let sent = sender.model(header.src()).outgoing.get(&(content.src_qp, peer));
                NicModel::latest(sent, data.msg_id)?
            }
            Body::Data(data) => {
                let sent = &sender.hosts[header.src().index()].outgoing;
                *sent.get(&content.src_qp)?.get(data.msn as usize)?
            }
            _ => return None,
        };
        if let Some(record) = sender.traffic.execution.record_mut(flow) {
            record.dropped_packets += 1;
        }
        if let Body::Rd(_) = content.body {
            self.at(header.dst()).end_raw(now, flow);
        }
        Some(flow)
    }

    /// Has hosts note what is left in their endpoints at the end of the run.
    pub(crate) fn note_last_losses(&mut self) {
        for host in 0..self.shards[0].hosts.len() as u32 {
            self.at(HostId(host)).note_last_losses(host as usize);
        }
    }
}

impl<const C: usize> Shard<'_, C> {
    /// A sender tells of a packet that it sent again, or that its timer expired.
    #[cold]
    pub(crate) fn note_loss(&mut self, host: usize, kind: EventKind, packet: &SentPacket, at: Time) {
        let SentPacket { qp, psn, msn, path } = *packet;
        let sent = &self.hosts[host].outgoing;
        let flow = msn.and_then(|msn| sent.get(&qp)?.get(msn as usize).copied());
        self.record_loss(at, kind, (host, qp, psn, path), flow);
    }

    /// The same of a datagram that was sent again.
    pub(crate) fn note_sent_again(&mut self, host: usize, sent: &SentAgain) {
        let &SentAgain { at, qp, psn, path, flow } = sent;
        self.record_loss(at, EventKind::Retransmit, (host, qp, psn, Some(path)), Some(flow));
    }

    fn record_loss(
        &mut self,
        at: Time,
        kind: EventKind,
        (host, qp, psn, path): (usize, QpNum, u64, Option<PathId>),
        flow: Option<u32>,
    ) {
        self.observers.events.push(EventRecord {
            value: psn as f64,
            peer_host: flow.map(|flow| self.spec.graph.messages()[flow as usize].dst.0),
            flow,
            queue_pair: Some(qp.0),
            path: path.map(|path| u32::from(path.0)),
            ..EventRecord::new(at.as_ps(), kind, host as u32)
        });
    }

    /// The same of what is left in an endpoint at the end of the run.
    fn note_last_losses(&mut self, host: usize) {
        while let Some(event) = self.hosts[host].endpoint.poll_event() {
            match event {
                Event::Retransmitted { packet, at } => {
                    self.note_loss(host, EventKind::Retransmit, &packet, at);
                }
                Event::TimedOut { packet, at } => self.note_loss(host, EventKind::Timeout, &packet, at),
                Event::Completion(_) | Event::Delivered { .. } | Event::QpError { .. } => {}
            }
        }
    }
}

fn reason_of(reason: DropReason) -> Reason {
    match reason {
        DropReason::Buffer => Reason::BufferFull,
        DropReason::LinkDown => Reason::LinkDown,
        DropReason::Loss => Reason::RandomLoss,
        DropReason::Corruption => Reason::Corrupted,
        DropReason::NoRoute => Reason::NoRoute,
        DropReason::Loop => Reason::HopLimit,
    }
}
