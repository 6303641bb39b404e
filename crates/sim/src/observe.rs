//! Recorder of samples over time and of rare events.

use std::collections::BTreeMap;

use borsh::{BorshDeserialize, BorshSerialize};
use pathweave_execution::Step;
use pathweave_fabric::{DropReason, FabricEvent, FabricEventKind, Header};
use pathweave_records::{DropReason as Reason, EventKind, EventRecord, SeriesKind};
use pathweave_transport::rd::PeerId;
use pathweave_transport::{Event, SentPacket};
use pathweave_units::{Duration, HostId, PathId, QpNum, Time};
use pathweave_wire::Body;

use crate::busy::BusyTimes;
use crate::coordinator::Coordinator;
use crate::events::Events;
use crate::faults::{Edge, Entry};
use crate::host::Content;
use crate::locked_shards::LockedShards;
use crate::nic::{NicModel, SentAgain};
use crate::samples::Samples;
use crate::shard::Shard;
use crate::spec::SimSpec;
use crate::tap::{Seen, show};
use crate::waits::BUSY;

/// All data recorded so far.
pub(crate) struct Recorder {
    /// Largest number of sampled instants to keep.
    max_samples: u32,
    interval: Option<Duration>,
    pub(crate) samples: Samples,
    pub(crate) events: Events,
    /// Links that were busy in the interval before the latest sample.
    busy: Vec<u32>,
    /// Transmission time of each port up to the latest sample.
    transmitted: Vec<Duration>,
    /// Bytes that each host had received at the latest sample.
    received_bytes: Vec<u64>,
}

impl Recorder {
    pub(crate) fn new(spec: &SimSpec, ports: u32) -> Self {
        let sampled = spec.observe.sampling().is_some();
        Recorder {
            max_samples: spec.observe.max_samples,
            interval: spec.observe.sampling(),
            samples: Samples::default(),
            events: Events::new(spec.observe.max_events),
            busy: Vec::new(),
            transmitted: vec![Duration::ZERO; if sampled { ports as usize } else { 0 }],
            received_bytes: vec![0; if sampled { spec.topology.hosts() as usize } else { 0 }],
        }
    }

    /// Merges pairs of sampled instants if the limit is reached, and doubles the interval. Returns the instant of the
    /// next sample, at the end of a doubled interval, which replaces the one that is due. Returns `None` below the
    /// limit.
    pub(crate) fn make_room(&mut self, now: Time) -> Option<Time> {
        // The limit is even, so that every instant has a partner.
        let most = (self.max_samples.max(2) & !1) as usize;
        let interval = self.interval.expect("sampling is on");
        (self.samples.instants() >= most).then(|| {
            self.samples.halve();
            self.interval = Some(interval * 2);
            now + interval
        })
    }

    /// Samples queues, links and hosts, leaving out zeros. Returns the time of the next sample, and the interval
    /// since the one before.
    fn sample<const C: usize>(
        &mut self,
        whole: &mut LockedShards<'_, '_, C>,
        times: &BusyTimes,
        now: Time,
    ) -> (Time, Duration) {
        let interval = self.interval.expect("sampling is on");
        let since = self.samples.begin(now);
        self.busy.clear();
        for node in 0..whole.shards[0].spec.topology.nodes() {
            let Some(shard) = whole.shard_of_node(node) else { continue };
            let network = &mut shard.network;
            let fabric = &mut network.fabric;
            for (port, own) in network.plan.map.ports(node).zip(fabric.numbers().ports(node)) {
                let queued = fabric.queued_bytes(now, own).get();
                self.samples.add_unless_zero(SeriesKind::QueueBytes, port, queued as f64);
                let started = times.of(port, fabric.stats(own).tx_bytes, fabric.link(own).0);
                // The packet that is leaving counts up to now.
                let total = started.saturating_sub(fabric.port_free_at(own).saturating_since(now));
                let before = std::mem::replace(&mut self.transmitted[port as usize], total);
                let busy = total.saturating_sub(before).ratio(since);
                self.samples.add_unless_zero(SeriesKind::LinkUtilisation, port, busy.min(1.0));
                if busy >= BUSY {
                    self.busy.push(port);
                }
            }
        }
        for host in whole.hosts() {
            let last = &mut self.received_bytes[host.nic.host.index()];
            let bytes = host.received_bytes - std::mem::replace(last, host.received_bytes);
            let rate_bps = bytes as f64 * 8.0 / since.as_secs_f64();
            self.samples.add_unless_zero(SeriesKind::HostRateBps, host.nic.host.0, rate_bps);
        }
        (now + interval, since)
    }

    /// Records the begin or end of a fault at a link: `link` is the port that feeds it, if it carries packets, and `node`
    /// the node at which it begins.
    pub(crate) fn fault(&mut self, now: Time, entry: &Entry, (link, node): (Option<u32>, u32)) {
        let Some((index, edge)) = entry.fault else { return };
        let kind = match edge {
            Edge::Begin => EventKind::Fault,
            Edge::End => EventKind::Repair,
        };
        self.events.push(EventRecord {
            value: index as f64,
            link,
            ..EventRecord::new(now.as_ps(), kind, node)
        });
    }
}

/// Observations of the current window, or between windows.
#[derive(Default, BorshSerialize, BorshDeserialize)]
pub(crate) struct Notes {
    /// Events of hosts.
    pub(crate) events: Vec<EventRecord>,
    /// Events of the fabric.
    pub(crate) log: Vec<FabricEvent<Content>>,
    /// Packets that have reached hosts, if a tap observes them.
    pub(crate) seen: Vec<Seen>,
    /// Packets put on links, if a tap observes them.
    #[cfg(feature = "hops")]
    pub(crate) hops: Vec<pathweave_fabric::Hop>,
    /// Steps of barriers that became due at shards other than the first, where barriers are kept.
    pub(crate) barriers: Vec<(Time, Step)>,
}

impl Notes {
    /// Appends the observations of another process.
    pub(crate) fn add(&mut self, mut other: Notes) {
        self.events.append(&mut other.events);
        self.log.append(&mut other.log);
        self.seen.append(&mut other.seen);
        #[cfg(feature = "hops")]
        self.hops.append(&mut other.hops);
        self.barriers.append(&mut other.barriers);
    }

    /// Sorts the log into an order that does not depend on shards.
    pub(crate) fn sort_log(&mut self) {
        // At one port, packets lost before the link come before packets lost on it, which its far end detects.
        self.log.sort_by_key(|event| (event.time, event.port, event.hops()));
    }

    /// Returns true if packets of flows have been lost.
    pub(crate) fn has_losses(&self) -> bool {
        let is_lost = |event: &FabricEvent<Content>| matches!(event.kind, FabricEventKind::Dropped { .. });
        self.log.iter().any(is_lost)
    }
}

/// Index of a loss in the log, and the flow concerned.
pub(crate) type LossOfFlow = (u32, u32);

impl Coordinator<'_> {
    /// Performs the sample that is due.
    pub(crate) fn on_sample<const C: usize>(&mut self, whole: &mut LockedShards<'_, '_, C>, now: Time) {
        if let Some(later) = self.recorder.make_room(now) {
            return self.calendar.sample_at(later);
        }
        let (next, since) = self.recorder.sample(whole, &self.busy, now);
        if self.spec.observe.follows_any() {
            let told = whole.sample_senders(now, &mut self.recorder.samples);
            let all = self.meeting.all_gather(told);
            whole.sample_receivers(all.into_iter().flatten(), since, &mut self.recorder.samples);
        }
        self.calendar.sample_at(next);
        let busy = std::mem::take(&mut self.recorder.busy);
        let packet_hops: u64 = self.meeting.all_gather(whole.packet_hops()).into_iter().sum();
        if self.leaving.waits.is_due(since, packet_hops) {
            let sights = self.meeting.all_gather(whole.observe(busy));
            self.leaving.waits.add(self.spec, sights, self.meeting.is_lead());
        }
        whole.sample_groups(now, since, &mut self.group_sums);
    }

    /// Adds the events of hosts, and then the log of the fabric, to the record and the digest. `flows` maps the index
    /// of a loss in the log to the flow concerned.
    pub(crate) fn record(&mut self, notes: Notes, flows: &BTreeMap<u32, u32>) {
        #[cfg(feature = "hops")]
        let mut hops = notes.hops;
        let (mut events, log, seen) = (notes.events, notes.log, notes.seen);
        // Hosts are recorded one by one, whichever shard runs them.
        events.sort_by_key(|event| event.node);
        events.into_iter().for_each(|event| self.recorder.events.push(event));
        for (place, event) in (0..).zip(log) {
            let mut record = EventRecord {
                link: Some(event.port),
                ..EventRecord::new(event.time.as_ps(), EventKind::Drop, self.plan.map.node_of(event.port))
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
                    record.flow = flows.get(&place).copied();
                }
            }
            self.recorder.events.push(record);
        }
        if let Some(tap) = &mut self.tap {
            #[cfg(feature = "hops")]
            {
                hops.sort_by_key(|hop| (hop.start, hop.port));
                hops.iter().for_each(|hop| tap.crossed(hop));
            }
            show(*tap, seen);
        }
    }
}

impl<const C: usize> LockedShards<'_, '_, C> {
    /// Takes the observations of all shards.
    pub(crate) fn take_notes(&mut self) -> Notes {
        let mut notes = Notes { barriers: self.take_barriers(), ..Notes::default() };
        for shard in &mut self.shards {
            notes.events.append(&mut shard.observers.events);
            if shard.network.fabric.has_log() {
                notes.log.extend(shard.network.fabric.drain_log());
            }
            if let Some(seen) = &mut shard.observers.seen {
                notes.seen.append(seen);
            }
            #[cfg(feature = "hops")]
            notes.hops.append(&mut shard.network.fabric.drain_hops());
        }
        notes
    }

    /// Reports lost packets to those of their senders that this process owns. Returns the flows concerned.
    pub(crate) fn note_lost(&mut self, log: &[FabricEvent<Content>]) -> Vec<LossOfFlow> {
        let lost = (0..).zip(log).filter_map(|(place, event)| match &event.kind {
            FabricEventKind::Dropped { header, content, .. } => Some((place, event.time, header, content)),
            FabricEventKind::Paused(_) | FabricEventKind::Resumed(_) => None,
        });
        lost.filter_map(|(place, at, header, content)| Some((place, self.lost(at, header, content)?)))
            .collect()
    }

    /// Reports a lost packet to its sender, if this process owns it. Returns the flow of the packet, if it belongs to
    /// one.
    fn lost(&mut self, at: Time, header: &Header, content: &Content) -> Option<u32> {
        let sender = self.shard_of_host(header.src())?;
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
        sender.traffic.execution.dropped(flow, at);
        Some(flow)
    }

    /// Reports lost datagrams to those of their receivers that this process owns.
    pub(crate) fn end_lost(&mut self, log: &[FabricEvent<Content>], flows: &BTreeMap<u32, u32>) {
        for (&place, &flow) in flows {
            let FabricEvent { time, kind: FabricEventKind::Dropped { header, content, .. }, .. } =
                &log[place as usize]
            else {
                continue;
            };
            if let Body::Rd(_) = content.body
                && let Some(receiver) = self.shard_of_host(header.dst())
            {
                receiver.end_raw(*time, flow);
            }
        }
    }

    /// Records the events left in the endpoints of all hosts at the end of the run.
    pub(crate) fn note_last_losses(&mut self) {
        for host in 0..self.shards[0].spec.topology.hosts() {
            if let Some(shard) = self.shard_of_host(HostId(host)) {
                shard.note_last_losses(host as usize);
            }
        }
    }
}

impl<const C: usize> Shard<'_, C> {
    /// Records a retransmission or an expired timer that a sender reports.
    #[cold]
    pub(crate) fn note_loss(&mut self, host: usize, kind: EventKind, packet: &SentPacket, at: Time) {
        let SentPacket { qp, psn, msn, path } = *packet;
        let sent = &self.hosts[host].outgoing;
        let flow = msn.and_then(|msn| sent.get(&qp)?.get(msn as usize).copied());
        if let (EventKind::Retransmit, Some(flow)) = (kind, flow) {
            self.traffic.execution.sent_again(flow);
        }
        self.record_loss(at, kind, (host, qp, psn, path), flow);
    }

    /// Records a retransmitted datagram.
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
        if self.spec.observe.max_events == 0 {
            return;
        }
        self.observers.events.push(EventRecord {
            value: psn as f64,
            peer_host: flow.map(|flow| self.spec.graph.messages()[flow as usize].dst.0),
            flow,
            queue_pair: Some(qp.0),
            path: path.map(|path| u32::from(path.0)),
            ..EventRecord::new(at.as_ps(), kind, host as u32)
        });
    }

    /// Records the losses left in an endpoint at the end of the run.
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
        DropReason::HeaderQueue => Reason::HeaderQueueFull,
        DropReason::LinkDown => Reason::LinkDown,
        DropReason::Loss => Reason::RandomLoss,
        DropReason::Corruption => Reason::Corrupted,
        DropReason::NoRoute => Reason::NoRoute,
        DropReason::Loop => Reason::HopLimit,
    }
}
