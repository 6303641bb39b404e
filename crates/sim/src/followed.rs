//! Flows that are followed over time: the rate their policy allows, what they have in flight, the paths their packets
//! take. Which they are is known before the run, so that a packet of any other costs one look-up, and a run that
//! follows none costs nothing.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pathweave_policy::Policy;
use pathweave_results::SeriesKind;
use pathweave_transport::Placement;
use pathweave_units::{HostId, PathId, QpNum, Time};
use pathweave_wire::{Body, Segment};

use crate::check::Ledger;
use crate::samples::Samples;
use crate::spec::SimSpec;
use crate::whole::Whole;

/// What looks at every packet that arrives. Absent, it costs a comparison.
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
            followed.arrived(src, segment);
        }
    }
}

/// The part of a message that one queue pair carries: sender, its queue pair, message sequence number.
pub(crate) type Part = (HostId, QpNum, u32);

/// The flows to follow, as a part of the run knows them: of some the sender is here, of some the receiver.
pub(crate) struct Followed {
    /// At the sender, by message; nothing while it is not under way.
    flows: BTreeMap<u32, Option<UnderWay>>,
    /// At the receiver: the flow of each part under way, and which of its queue pairs that is, where there are several.
    parts: BTreeMap<Part, (u32, Option<u16>)>,
    /// At the receiver, by flow: packets that arrived since the last sample, by path, or by queue pair where it has several.
    arrived: BTreeMap<u32, BTreeMap<u16, u32>>,
    /// To count paths in.
    room: Vec<PathId>,
}

/// A flow under way: its queue pairs at both ends, of as many as carry the message.
struct UnderWay {
    senders: Vec<QpNum>,
    receivers: Vec<QpNum>,
    /// Its sender knows that it has ended: one more sample.
    ended: bool,
}

/// The flows of a run that are followed: the largest messages of the foreground and the background alike, of equal ones the first,
/// and those that are named.
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
    /// Those of the run; nothing if none is to be followed.
    pub(crate) fn new(spec: &SimSpec) -> Option<Self> {
        let follows = spec.observe.follows_any() && spec.observe.sampling().is_some();
        let flows = followed(spec).into_iter().map(|flow| (flow, None)).collect();
        follows.then(|| Followed {
            flows,
            parts: BTreeMap::new(),
            arrived: BTreeMap::new(),
            room: Vec::new(),
        })
    }

    /// At the sender: a message was posted to these queue pairs, with those of the receiver.
    pub(crate) fn posted(&mut self, flow: u32, senders: Vec<QpNum>, receivers: Vec<QpNum>) {
        if let Some(way) = self.flows.get_mut(&flow) {
            *way = Some(UnderWay { senders, receivers, ended: false });
        }
    }

    /// At the receiver: a part of a message is to come, by this of its queue pairs if it has several.
    pub(crate) fn expected(&mut self, flow: u32, part: Part, queue_pair: Option<u16>) {
        if self.flows.contains_key(&flow) {
            self.parts.insert(part, (flow, queue_pair));
        }
    }

    /// A packet arrived.
    pub(crate) fn arrived(&mut self, src: HostId, segment: &Segment) {
        let Body::Data(data) = &segment.body else { return };
        let Some(&(flow, queue_pair)) = self.parts.get(&(src, segment.src_qp, data.msn)) else { return };
        let arrived = self.arrived.entry(flow).or_default();
        *arrived.entry(queue_pair.unwrap_or(segment.path.0)).or_default() += 1;
    }

    /// The sender knows that a message has ended, well or not.
    pub(crate) fn ended(&mut self, flow: u32) {
        if let Some(Some(way)) = self.flows.get_mut(&flow) {
            way.ended = true;
        }
    }

    /// At the sender: takes the flow from those under way if it has ended.
    fn forget_ended(&mut self, flow: u32) -> bool {
        let way = self.flows.get_mut(&flow).expect("it is followed");
        way.take_if(|way| way.ended).is_some()
    }

    /// Those to follow, under way or not.
    fn all(&self) -> Vec<u32> {
        self.flows.keys().copied().collect()
    }

    /// At the receiver: what has arrived of a flow since the last sample.
    fn take_arrived(&mut self, flow: u32) -> BTreeMap<u16, u32> {
        self.arrived.remove(&flow).unwrap_or_default()
    }

    /// At the receiver: the flow has ended.
    fn close(&mut self, flow: u32) {
        self.parts.retain(|_, (of, _)| *of != flow);
    }
}

/// What the sender of a flow under way tells its receiver at a sample: the flow, its queue pairs at the receiver, and whether
/// it has ended.
pub(crate) type Told = (u32, Vec<QpNum>, bool);

impl<const C: usize> Whole<'_, '_, C> {
    /// Samples the flows that are followed and under way at their senders, zeros too: a flow without a sample is not under
    /// way. Returns what their receivers are to know.
    pub(crate) fn sample_senders(&mut self, now: Time, samples: &mut Samples) -> Vec<Told> {
        let spec = self.shards[0].spec;
        let flows = self.shards[0].observers.followed().map(|followed| followed.all()).unwrap_or_default();
        let mut told = Vec::new();
        for flow in flows {
            let src = spec.graph.messages()[flow as usize].src;
            let Some(receivers) = self.sample_sender(now, flow, src, samples) else { continue };
            let followed = self.at(src).and_then(|shard| shard.observers.followed());
            told.push((flow, receivers, followed.is_some_and(|followed| followed.forget_ended(flow))));
        }
        told
    }

    /// Then at their receivers.
    pub(crate) fn sample_receivers(&mut self, told: impl IntoIterator<Item = Told>, samples: &mut Samples) {
        let spec = self.shards[0].spec;
        for (flow, receivers, ended) in told {
            let dst = spec.graph.messages()[flow as usize].dst;
            let Some(shard) = self.at(dst) else { continue };
            let receiver = &shard.hosts[dst.index()].endpoint;
            let held: u64 = receivers.into_iter().filter_map(|qp| receiver.held_ahead(qp)).sum();
            samples.add(SeriesKind::HeldBytes, flow, 0, (held * spec.host.mtu.get()) as f64);
            let followed = shard.observers.followed().expect("all parts follow the same flows");
            samples.add_shares(flow, followed.take_arrived(flow).into_iter());
            if ended {
                followed.close(flow);
            }
        }
    }

    /// Samples what the sender of a flow under way knows. Returns the queue pairs of its receiver.
    fn sample_sender(
        &mut self,
        now: Time,
        flow: u32,
        src: HostId,
        samples: &mut Samples,
    ) -> Option<Vec<QpNum>> {
        let shard = self.at(src)?;
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
        // Of a message over several queue pairs the paths of each: they do not share ports.
        let distinct = way.senders.iter().filter_map(|&qp| sender.paths_in_flight(qp, &mut followed.room));
        add(SeriesKind::InflightPaths, distinct.sum::<usize>() as f64);
        Some(way.receivers.clone())
    }
}
