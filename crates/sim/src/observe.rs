//! Recording: samples over time, rare events.

use pathweave_fabric::{DropReason, Fabric, FabricEvent, FabricEventKind};
use pathweave_results::{DropReason as Reason, EventKind, EventRecord, SeriesKind, SeriesSample};
use pathweave_units::{Duration, Time};
use pathweave_wire::Body;

use crate::faults::{Action, Entry};
use crate::host::{Content, Host};
use crate::runner::Runner;
use crate::spec::{ObserveConfig, SimSpec};

/// Everything recorded so far.
pub(crate) struct Recorder {
    config: ObserveConfig,
    interval: Option<Duration>,
    /// Instants sampled.
    instants: Vec<Time>,
    pub(crate) series: Vec<SeriesSample>,
    pub(crate) events: Vec<EventRecord>,
    pub(crate) events_not_recorded: u64,
    /// Counters at the last sample.
    tx_bytes: Vec<u64>,
    received_bytes: Vec<u64>,
}

impl Recorder {
    pub(crate) fn new(spec: &SimSpec, ports: u32) -> Self {
        Recorder {
            config: spec.observe,
            interval: spec.observe.interval,
            instants: Vec::new(),
            series: Vec::new(),
            events: Vec::new(),
            events_not_recorded: 0,
            tx_bytes: vec![0; ports as usize],
            received_bytes: vec![0; spec.topology.hosts() as usize],
        }
    }

    /// Samples queues, links and hosts; returns when to do so again. Zeros are left out: an entity without a sample
    /// at an instant at which others have one was at zero.
    pub(crate) fn sample<const C: usize>(
        &mut self,
        fabric: &mut Fabric<Content, C>,
        hosts: &[Host],
        now: Time,
    ) -> Time {
        if self.instants.len() as u32 >= self.config.max_samples.max(2) {
            self.thin_out();
        }
        let interval = self.interval.expect("sampling is on");
        let since = now.saturating_since(self.instants.last().copied().unwrap_or(Time::ZERO));
        self.instants.push(now);
        let time_ps = now.as_ps();
        let mut add = |kind, entity, value: f64| {
            if value > 0.0 {
                self.series.push(SeriesSample { time_ps, value, entity, index: 0, kind });
            }
        };
        for port in 0..fabric.port_count() {
            let queued = fabric.queued_bytes(now, port).get();
            add(SeriesKind::QueueBytes, port, queued as f64);
            let sent = fabric.stats(port).tx_bytes;
            let bytes = sent - std::mem::replace(&mut self.tx_bytes[port as usize], sent);
            let (rate, _) = fabric.link(port);
            let busy = rate.time_for(bytes).ratio(since);
            add(SeriesKind::LinkUtilisation, port, busy.min(1.0));
        }
        for host in hosts {
            let last = &mut self.received_bytes[host.nic.host.index()];
            let received = host.received_bytes;
            let bytes = received - std::mem::replace(last, received);
            add(SeriesKind::HostRateBps, host.nic.host.0, bytes as f64 * 8.0 / since.as_secs_f64());
        }
        now + interval
    }

    /// Drops every second instant and samples half as often from now on. Rates of the instants kept are those of the
    /// interval right before each.
    fn thin_out(&mut self) {
        let kept: Vec<Time> = self.instants.iter().copied().skip(1).step_by(2).collect();
        self.series.retain(|s| kept.binary_search(&Time::from_ps(s.time_ps)).is_ok());
        self.instants = kept;
        self.interval = self.interval.map(|i| i * 2);
    }

    fn push(&mut self, event: EventRecord) {
        if self.events.len() < self.config.max_events as usize {
            self.events.push(event);
        } else {
            self.events_not_recorded += 1;
        }
    }

    pub(crate) fn fault(&mut self, now: Time, entry: &Entry) {
        let Some(index) = entry.fault else { return };
        let ends = match entry.action {
            Action::Up(_) | Action::Rate(_, None) | Action::Delay(_, None) | Action::StormStop(_) => true,
            Action::Loss(_, p) | Action::Corruption(_, p) => p == 0.0,
            _ => false,
        };
        self.push(EventRecord {
            time_ps: now.as_ps(),
            value: index as f64,
            node: 0,
            link: None,
            flow: None,
            kind: if ends { EventKind::Repair } else { EventKind::Fault },
            reason: None,
        });
    }
}

impl<const C: usize> Runner<'_, C> {
    /// Moves the fabric's log into the record, the digest and the flows.
    #[cold]
    pub(crate) fn record_log(&mut self) {
        let log: Vec<FabricEvent<Content>> = self.fabric.drain_log().collect();
        for event in log {
            let (node, _) = self.fabric.ends(event.port);
            let mut record = EventRecord {
                time_ps: event.time.as_ps(),
                value: 0.0,
                node,
                link: Some(event.port),
                flow: None,
                kind: EventKind::Drop,
                reason: None,
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
                    self.lost.note(event.time, header.dst(), &content);
                    if let Body::Rd(data) = content.body {
                        record.flow = self.lost_datagram(header.src(), header.dst(), &content, &data);
                    }
                    if let Body::Data(data) = content.body {
                        let sent = &self.hosts[header.src().index()].outgoing;
                        let flow = sent.get(&content.src_qp).and_then(|list| list.get(data.msn as usize));
                        record.flow = flow.copied();
                        if let Some(flow) = flow.and_then(|&f| self.flows[f as usize].as_mut()) {
                            flow.record.dropped_packets += 1;
                        }
                    }
                }
            }
            self.recorder.push(record);
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
