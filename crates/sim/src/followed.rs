//! Flows followed over time: their throughput, the bytes still to arrive, the rate their policy allows, the bytes in
//! flight, and the paths of their packets. The set is known before the run. A packet of any other flow therefore costs
//! one look-up, and a run that follows no flow has no cost.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pathweave_policy::Policy;
use pathweave_records::SeriesKind;
use pathweave_transport::Placement;
use pathweave_units::{Duration, HostId, PathId, QpNum, Time};
use pathweave_wire::{Body, Data, Operation, Segment};

use crate::check::Ledger;
use crate::locked_shards::LockedShards;
use crate::samples::Samples;
use crate::spec::SimSpec;

/// Observers that inspect every arriving packet. If absent, they cost one comparison.
pub(crate) struct Inspect {
    pub(crate) ledger: Option<Ledger>,
    pub(crate) followed: Option<Followed>,
}

impl Inspect {
    pub(crate) fn new(ledger: Option<Ledger>, followed: Option<Followed>) -> Option<Box<Self>> {
        (ledger.is_some() || followed.is_some()).then(|| Box::new(Inspect { ledger, followed }))
    }

    #[cold]
    pub(crate) fn arrived(&mut self, src: HostId, segment: &Segment, placement: Option<Placement>) {
        if let (Some(ledger), Some(placement)) = (&mut self.ledger, placement) {
            ledger.placed(&placement);
        }
        if let Some(followed) = &mut self.followed {
            followed.arrived(src, segment, placement);
        }
    }
}

/// Key of the part of a message that one queue pair carries: sending host, its queue pair, message sequence number.
pub(crate) type Part = (HostId, QpNum, u32);

/// State of the followed flows in one shard, which may own the sender, the receiver, or both.
pub(crate) struct Followed {
    /// At the sender: flows by message number; `None` while the flow is not in progress.
    flows: BTreeMap<u32, Option<ActiveFlow>>,
    /// At the receiver: the flow of each part in progress, and the index of the queue pair if the message uses
    /// several.
    parts: BTreeMap<Part, (u32, Option<u16>)>,
    /// At the receiver: packets that arrived since the last sample, by flow and then by path, or by queue pair if the
    /// message uses several.
    arrived: BTreeMap<u32, BTreeMap<u16, u32>>,
    /// At the receiver: payload of each flow in progress.
    accepted: BTreeMap<u32, Accepted>,
    /// Buffer for counting paths.
    scratch: Vec<PathId>,
}

/// Payload of a flow that its receiver has accepted, in bytes.
#[derive(Clone, Copy, Default)]
struct Accepted {
    since_last_sample: u64,
    in_all: u64,
}

/// Queue pairs at both ends of a flow in progress.
struct ActiveFlow {
    senders: Vec<QpNum>,
    receivers: Vec<QpNum>,
    /// True if the sender knows that the flow has ended. One more sample follows.
    ended: bool,
}

/// Returns the flows of a run to follow: the largest messages, foreground and background alike, and those named in
/// the configuration. Of messages of equal size the first come first.
pub fn followed(spec: &SimSpec) -> Vec<u32> {
    if !spec.observe.follows_any() || spec.observe.sampling().is_none() {
        return Vec::new();
    }
    let (count, messages) = (spec.observe.flows as usize, spec.graph.messages());
    let named = spec.observe.follow.iter().copied().filter(|&m| (m as usize) < messages.len());
    let mut order: Vec<u32> = (0..messages.len() as u32).collect();
    order.sort_by_key(|&m| (Reverse(messages[m as usize].size), m));
    order.into_iter().take(count).chain(named).collect()
}

impl Followed {
    /// Creates the state of the followed flows of a run, or `None` if no flow is followed.
    pub(crate) fn new(spec: &SimSpec) -> Option<Self> {
        let follows = spec.observe.follows_any() && spec.observe.sampling().is_some();
        let flows = followed(spec).into_iter().map(|flow| (flow, None)).collect();
        follows.then(|| Followed {
            flows,
            parts: BTreeMap::new(),
            arrived: BTreeMap::new(),
            accepted: BTreeMap::new(),
            scratch: Vec::new(),
        })
    }

    /// At the sender: records that a message was posted to `senders`, whose counterparts are `receivers`.
    pub(crate) fn posted(&mut self, flow: u32, senders: Vec<QpNum>, receivers: Vec<QpNum>) {
        if let Some(way) = self.flows.get_mut(&flow) {
            *way = Some(ActiveFlow { senders, receivers, ended: false });
        }
    }

    /// At the receiver: records that a part of a message is about to arrive, on this queue pair if the message uses
    /// several.
    pub(crate) fn expected(&mut self, flow: u32, part: Part, queue_pair: Option<u16>) {
        if self.flows.contains_key(&flow) {
            self.parts.insert(part, (flow, queue_pair));
        }
    }

    /// Counts a packet that arrived, if its flow is followed.
    pub(crate) fn arrived(&mut self, src: HostId, segment: &Segment, placement: Option<Placement>) {
        let Body::Data(data) = &segment.body else { return };
        let Some(&(flow, queue_pair)) = self.parts.get(&(src, segment.src_qp, data.msn)) else { return };
        let accepted = self.accepted.entry(flow).or_default();
        let bytes = accepted_bytes(data, placement);
        accepted.since_last_sample += bytes;
        accepted.in_all += bytes;
        let arrived = self.arrived.entry(flow).or_default();
        *arrived.entry(queue_pair.unwrap_or(segment.path.0)).or_default() += 1;
    }

    /// Records that the sender knows the end of a message, successful or not.
    pub(crate) fn ended(&mut self, flow: u32) {
        if let Some(Some(way)) = self.flows.get_mut(&flow) {
            way.ended = true;
        }
    }

    /// At the sender: removes the flow from those in progress if it has ended. Returns true if it did.
    fn forget_ended(&mut self, flow: u32) -> bool {
        let way = self.flows.get_mut(&flow).expect("it is followed");
        way.take_if(|way| way.ended).is_some()
    }

    /// Returns all followed flows, in progress or not.
    fn all(&self) -> Vec<u32> {
        self.flows.keys().copied().collect()
    }

    /// At the receiver: returns the packets of a flow that arrived since the last sample, and resets the count.
    fn take_arrived(&mut self, flow: u32) -> BTreeMap<u16, u32> {
        self.arrived.remove(&flow).unwrap_or_default()
    }

    /// At the receiver: returns the payload of a flow that was accepted, and begins a new interval.
    fn take_accepted(&mut self, flow: u32) -> Accepted {
        let accepted = self.accepted.entry(flow).or_default();
        let until_now = *accepted;
        accepted.since_last_sample = 0;
        until_now
    }

    /// At the receiver: removes the parts of a flow that has ended.
    fn close(&mut self, flow: u32) {
        self.accepted.remove(&flow);
        self.parts.retain(|_, (of, _)| *of != flow);
    }
}

/// Returns the payload of a packet if its receiver accepted it. A packet that arrives twice is placed once. A SEND that
/// consumes no posted receive is placed nowhere, so each of its packets counts.
fn accepted_bytes(data: &Data, placement: Option<Placement>) -> u64 {
    let is_send = matches!(data.op, Operation::Send | Operation::SendImm);
    if placement.is_some() || is_send { u64::from(data.len) } else { 0 }
}

/// Report of a flow's sender to its receiver at a sample: the flow, its queue pairs at the receiver, and true if it
/// has ended.
pub(crate) type SenderReport = (u32, Vec<QpNum>, bool);

impl<const C: usize> LockedShards<'_, '_, C> {
    /// Samples all followed flows in progress at their senders. Zeros are recorded too, because a missing sample
    /// means that the flow is not in progress. Returns the reports for the receivers.
    pub(crate) fn sample_senders(&mut self, now: Time, samples: &mut Samples) -> Vec<SenderReport> {
        let spec = self.shards[0].spec;
        let flows = self.shards[0].observers.followed().map(|followed| followed.all()).unwrap_or_default();
        let mut told = Vec::new();
        for flow in flows {
            let src = spec.graph.messages()[flow as usize].src;
            let Some(receivers) = self.sample_sender(now, flow, src, samples) else { continue };
            let followed = self.shard_of_host(src).and_then(|shard| shard.observers.followed());
            told.push((flow, receivers, followed.is_some_and(|followed| followed.forget_ended(flow))));
        }
        told
    }

    /// Samples the followed flows at their receivers, after [`LockedShards::sample_senders`] and `since` after the last
    /// sample.
    pub(crate) fn sample_receivers(
        &mut self,
        told: impl IntoIterator<Item = SenderReport>,
        since: Duration,
        samples: &mut Samples,
    ) {
        let spec = self.shards[0].spec;
        for (flow, receivers, ended) in told {
            let message = &spec.graph.messages()[flow as usize];
            let (dst, size) = (message.dst, message.size.get());
            let Some(shard) = self.shard_of_host(dst) else { continue };
            let receiver = &shard.hosts[dst.index()].endpoint;
            let held: u64 = receivers.into_iter().filter_map(|qp| receiver.held_ahead(qp)).sum();
            samples.add(SeriesKind::HeldBytes, flow, 0, (held * spec.network.mtu.get()) as f64);
            let followed = shard.observers.followed().expect("all parts follow the same flows");
            let accepted = followed.take_accepted(flow);
            let rate_bps = accepted.since_last_sample as f64 * 8.0 / since.as_secs_f64();
            samples.add(SeriesKind::GoodputBps, flow, 0, rate_bps);
            let unfinished = size.saturating_sub(accepted.in_all);
            samples.add(SeriesKind::UnfinishedBytes, flow, 0, unfinished as f64);
            samples.add_shares(flow, followed.take_arrived(flow).into_iter());
            if ended {
                followed.close(flow);
            }
        }
    }

    /// Samples the sender's state of a flow in progress. Returns the queue pairs of its receiver.
    fn sample_sender(
        &mut self,
        now: Time,
        flow: u32,
        src: HostId,
        samples: &mut Samples,
    ) -> Option<Vec<QpNum>> {
        let shard = self.shard_of_host(src)?;
        let sender = &shard.hosts[src.index()].endpoint;
        let followed = shard.observers.inspect.as_mut()?.followed.as_mut()?;
        let way = followed.flows.get(&flow)?.as_ref()?;
        let mut add = |kind, value: f64| samples.add(kind, flow, 0, value);
        let rates = way.senders.iter().filter_map(|&qp| sender.policy(qp)?.rate(now));
        if let Some(rate) = rates.map(|rate| rate.as_bps() as f64).reduce(|a, b| a + b) {
            add(SeriesKind::PolicyRateBps, rate);
        }
        let inflight: u64 =
            way.senders.iter().filter_map(|&qp| sender.inflight(qp)).map(|(_, bytes)| bytes).sum();
        add(SeriesKind::InflightBytes, inflight as f64);
        // Queue pairs of a message do not share ports, so the paths of each are counted.
        let distinct = way.senders.iter().filter_map(|&qp| sender.paths_in_flight(qp, &mut followed.scratch));
        add(SeriesKind::InflightPaths, distinct.sum::<usize>() as f64);
        Some(way.receivers.clone())
    }
}
