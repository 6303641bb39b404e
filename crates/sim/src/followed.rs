//! Flows that are followed over time: the rate their policy allows, what they have in flight, the paths their packets
//! take. Which they are is known before the run, so that a packet of any other costs one look-up, and a run that
//! follows none costs nothing.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pathweave_policy::Policy;
use pathweave_results::SeriesKind;
use pathweave_transport::Placement;
use pathweave_units::{Bytes, HostId, PathId, QpNum, Time};
use pathweave_wire::{Body, Segment};

use crate::check::Ledger;
use crate::host::Host;
use crate::samples::Samples;
use crate::spec::SimSpec;

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
type Part = (HostId, QpNum, u32);

/// The flows to follow.
pub(crate) struct Followed {
    /// By message; nothing while it is not under way.
    flows: BTreeMap<u32, Option<UnderWay>>,
    /// The flow of each part under way, and which of its queue pairs that is, where there are several.
    parts: BTreeMap<Part, (u32, Option<u16>)>,
    /// To count paths in.
    room: Vec<PathId>,
}

/// A flow under way.
struct UnderWay {
    src: HostId,
    qps: Vec<QpNum>,
    dst: HostId,
    /// Those of `dst`, of as many as carry the message.
    receivers: Vec<QpNum>,
    /// Packets that arrived since the last sample, by path, or by queue pair where it has several.
    arrived: BTreeMap<u16, u32>,
    /// Its sender knows that it has ended: one more sample.
    ended: bool,
}

impl Followed {
    /// The largest messages of the foreground and the background alike, of equal ones the first; nothing if none is to
    /// be followed.
    pub(crate) fn new(spec: &SimSpec) -> Option<Self> {
        let (count, messages) = (spec.observe.flows as usize, spec.graph.messages());
        if count == 0 || spec.observe.sampling().is_none() {
            return None;
        }
        let mut order: Vec<u32> = (0..messages.len() as u32).collect();
        order.sort_by_key(|&m| (Reverse(messages[m as usize].size), m));
        let flows = order.into_iter().take(count).map(|m| (m, None)).collect();
        Some(Followed { flows, parts: BTreeMap::new(), room: Vec::new() })
    }

    /// A message was posted: its sender and the queue pairs that carry it, each with the message's number there, and its
    /// receiver with those of its own.
    pub(crate) fn posted(
        &mut self,
        flow: u32,
        (src, parts): (HostId, &[(QpNum, u32)]),
        (dst, receivers): (HostId, Vec<QpNum>),
    ) {
        let Some(way) = self.flows.get_mut(&flow) else { return };
        for (&(qp, msn), number) in parts.iter().zip(0..) {
            self.parts.insert((src, qp, msn), (flow, (parts.len() > 1).then_some(number)));
        }
        let qps = parts.iter().map(|&(qp, _)| qp).collect();
        *way = Some(UnderWay { src, qps, dst, receivers, arrived: BTreeMap::new(), ended: false });
    }

    /// A packet arrived.
    pub(crate) fn arrived(&mut self, src: HostId, segment: &Segment) {
        let Body::Data(data) = &segment.body else { return };
        let Some(&(flow, queue_pair)) = self.parts.get(&(src, segment.src_qp, data.msn)) else { return };
        if let Some(Some(way)) = self.flows.get_mut(&flow) {
            *way.arrived.entry(queue_pair.unwrap_or(segment.path.0)).or_default() += 1;
        }
    }

    /// The sender knows that a message has ended, well or not.
    pub(crate) fn ended(&mut self, flow: u32) {
        if let Some(Some(way)) = self.flows.get_mut(&flow) {
            way.ended = true;
        }
    }

    /// Samples what is under way, zeros too: a flow without a sample is not under way. Packets carry `mtu` bytes of
    /// payload.
    pub(crate) fn sample(&mut self, now: Time, hosts: &[Host], mtu: Bytes, samples: &mut Samples) {
        for (&flow, slot) in &mut self.flows {
            let Some(way) = slot else { continue };
            let mut add = |kind, value: f64| samples.add(kind, flow, 0, value);
            let sender = &hosts[way.src.index()].endpoint;
            let rates = way.qps.iter().filter_map(|&qp| sender.policy(qp)?.rate(now));
            if let Some(rate) = rates.map(|rate| rate.as_bps() as f64).reduce(|a, b| a + b) {
                add(SeriesKind::PolicyRateBps, rate);
            }
            let inflight: u64 =
                way.qps.iter().filter_map(|&qp| sender.inflight(qp)).map(|(_, bytes)| bytes).sum();
            add(SeriesKind::InflightBytes, inflight as f64);
            // Of a message over several queue pairs the paths of each: they do not share ports.
            let distinct = way.qps.iter().filter_map(|&qp| sender.paths_in_flight(qp, &mut self.room));
            add(SeriesKind::InflightPaths, distinct.sum::<usize>() as f64);
            let receiver = &hosts[way.dst.index()].endpoint;
            let held: u64 = way.receivers.iter().filter_map(|&qp| receiver.held_ahead(qp)).sum();
            add(SeriesKind::HeldBytes, (held * mtu.get()) as f64);
            samples.add_shares(flow, std::mem::take(&mut way.arrived).into_iter());
            if way.ended {
                *slot = None;
                self.parts.retain(|_, (of, _)| *of != flow);
            }
        }
    }
}
