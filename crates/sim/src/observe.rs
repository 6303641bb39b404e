//! Recording: samples over time, rare events.

use pathweave_fabric::{DropReason, Fabric, FabricEvent, FabricEventKind};
use pathweave_results::{DropReason as Reason, EventKind, EventRecord, SeriesKind};
use pathweave_transport::{Event, SentPacket};
use pathweave_units::{Duration, PathId, QpNum, Time};
use pathweave_wire::Body;

use crate::events::Events;
use crate::faults::{Action, Entry};
use crate::followed::Inspect;
use crate::host::{Content, Host};
use crate::nic::SentAgain;
use crate::runner::{Observers, Runner};
use crate::samples::Samples;
use crate::spec::{ObserveConfig, SimSpec};

/// Everything recorded so far.
pub(crate) struct Recorder {
    config: ObserveConfig,
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
            config: spec.observe,
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
        let most = (self.config.max_samples.max(2) & !1) as usize;
        let interval = self.interval.expect("sampling is on");
        (self.samples.instants() >= most).then(|| {
            self.samples.halve();
            self.interval = Some(interval * 2);
            now + interval
        })
    }

    /// Samples queues, links and hosts; returns when to do so again, and how long ago it was done before. Zeros are
    /// left out.
    pub(crate) fn sample<const C: usize>(
        &mut self,
        fabric: &mut Fabric<Content, C>,
        hosts: &[Host],
        now: Time,
    ) -> (Time, Duration) {
        let interval = self.interval.expect("sampling is on");
        let since = self.samples.begin(now);
        for port in 0..fabric.port_count() {
            let queued = fabric.queued_bytes(now, port).get();
            self.samples.add_unless_zero(SeriesKind::QueueBytes, port, queued as f64);
            let sent = fabric.stats(port).tx_bytes;
            let bytes = sent - std::mem::replace(&mut self.tx_bytes[port as usize], sent);
            let (rate, _) = fabric.link(port);
            let busy = rate.time_for(bytes).ratio(since);
            self.samples.add_unless_zero(SeriesKind::LinkUtilisation, port, busy.min(1.0));
        }
        for host in hosts {
            let last = &mut self.received_bytes[host.nic.host.index()];
            let received = host.received_bytes;
            let bytes = received - std::mem::replace(last, received);
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

impl<const C: usize> Runner<'_, C> {
    /// It is time to sample.
    pub(crate) fn on_sample(&mut self, now: Time) {
        if let Some(later) = self.observers.recorder.make_room(now) {
            return self.calendar.sample_at(later);
        }
        let (next, since) = self.observers.recorder.sample(&mut self.network.fabric, &self.hosts, now);
        let Observers { inspect, recorder, .. } = &mut self.observers;
        if let Some(Inspect { followed: Some(followed), .. }) = inspect.as_deref_mut() {
            followed.sample(now, &self.hosts, self.spec.host.mtu, &mut recorder.samples);
        }
        self.calendar.sample_at(next);
        self.sample_groups(now, since);
    }

    /// Moves the fabric's log into the record, the digest and the flows.
    #[cold]
    pub(crate) fn record_log(&mut self) {
        let log: Vec<FabricEvent<Content>> = self.network.fabric.drain_log().collect();
        for event in log {
            let (node, _) = self.network.fabric.ends(event.port);
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
                    self.observers.lost.note(event.time, header.dst(), &content);
                    if let Body::Rd(data) = content.body {
                        record.flow =
                            self.lost_datagram(event.time, header.src(), header.dst(), &content, &data);
                    }
                    if let Body::Data(data) = content.body {
                        let sent = &self.hosts[header.src().index()].outgoing;
                        let flow = sent.get(&content.src_qp).and_then(|list| list.get(data.msn as usize));
                        record.flow = flow.copied();
                        if let Some(flow) = flow.and_then(|&f| self.traffic.execution.record_mut(f)) {
                            flow.dropped_packets += 1;
                        }
                    }
                }
            }
            self.observers.recorder.events.push(record);
        }
    }
}

impl<const C: usize> Runner<'_, C> {
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
        self.observers.recorder.events.push(EventRecord {
            value: psn as f64,
            peer_host: flow.map(|flow| self.spec.graph.messages()[flow as usize].dst.0),
            flow,
            queue_pair: Some(qp.0),
            path: path.map(|path| u32::from(path.0)),
            ..EventRecord::new(at.as_ps(), kind, host as u32)
        });
    }

    /// The same of what is left in the endpoints at the end of the run.
    pub(crate) fn note_last_losses(&mut self) {
        for host in 0..self.hosts.len() {
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
