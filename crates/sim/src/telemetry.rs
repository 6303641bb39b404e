//! Telemetry for schemes that read it: switches write it into data packets, and acknowledgements, negative ones too, return
//! it. It travels beside the segments. Its bytes are added below the transport, like those of a source route.

use std::collections::{BTreeMap, BTreeSet};

use pathweave_policy::{Adapt, AnyPolicy};
use pathweave_topo::{NodeId, Topology};
use pathweave_transport::{Endpoint, Transmit};
use pathweave_units::{Duration, HostId, QpNum, Rate, Telemetry, TelemetryUnits};
use pathweave_wire::{Body, Segment};

use crate::chosen_routes::ChosenRoutes;
use crate::packet_bytes::full_and_ack_bytes;
use crate::spec::SimSpec;

/// Telemetry of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TelemetryPlan {
    /// Units in which switches count.
    pub(crate) units: TelemetryUnits,
    /// Longest round trip of a full packet and its acknowledgement between two hosts of the idle network, without
    /// telemetry.
    pub(crate) longest_rtt: Duration,
}

impl TelemetryPlan {
    /// Returns the plan of a run, or `None` if no scheme reads telemetry.
    pub(crate) fn new(spec: &SimSpec, routes: &ChosenRoutes) -> Option<Self> {
        if !spec.schemes.iter().any(|named| named.scheme.policy.reads_telemetry()) {
            return None;
        }
        let topology = &*spec.topology;
        let rates = (0..topology.hosts()).flat_map(|host| topology.ports(NodeId(host)));
        let fastest = rates.map(|port| topology.egress(port).rate).max().unwrap_or(Rate::ZERO);
        let (full, ack) = full_and_ack_bytes(&spec.network);
        let ends = representatives(topology);
        let pairs = ends.iter().flat_map(|&src| ends.iter().map(move |&dst| (src, dst)));
        let longest = pairs
            .filter(|(src, dst)| src != dst)
            .filter_map(|(src, dst)| {
                let profiles = routes.profiles(topology, src, dst);
                routes.longest_round_trip(topology, (src, dst), &profiles, (full, ack))
            })
            .max();
        Some(TelemetryPlan {
            units: TelemetryUnits::for_hosts(fastest),
            longest_rtt: longest.unwrap_or(Duration::ZERO),
        })
    }
}

/// Returns two hosts for each different link to a set of switches. Hosts with such equal links are at the same
/// distances from all others.
fn representatives(topology: &Topology) -> Vec<HostId> {
    let mut seen: BTreeMap<Vec<(NodeId, Rate, Duration)>, u8> = BTreeMap::new();
    let hosts = (0..topology.hosts()).filter(|&host| {
        let ports = topology.ports(NodeId(host)).iter();
        let links = ports.map(|port| {
            let link = topology.egress(port);
            (port.peer, link.rate, link.delay)
        });
        let alike = seen.entry(links.collect()).or_default();
        *alike += 1;
        *alike <= 2
    });
    hosts.map(HostId).collect()
}

/// Telemetry of a host's queue pairs.
#[derive(Debug, Default)]
pub(crate) struct HostTelemetry {
    /// Queue pairs whose data packets ask for telemetry.
    asking: BTreeSet<QpNum>,
    /// Telemetry of the data packet or trimmed header that arrived last, with its PSN, by the queue pair that answers it.
    arrived: BTreeMap<QpNum, (u64, Telemetry)>,
}

/// Telemetry of a packet that leaves a host.
pub(crate) enum Departure {
    /// Switches are to write it.
    Asks,
    /// The packet returns that of the packet which it answers.
    Returns(Telemetry),
}

impl HostTelemetry {
    /// Has the data packets of a queue pair ask for telemetry.
    pub(crate) fn ask(&mut self, qp: QpNum) {
        self.asking.insert(qp);
    }

    pub(crate) fn close(&mut self, qp: QpNum) {
        self.asking.remove(&qp);
        self.arrived.remove(&qp);
    }

    /// Returns the telemetry with which a packet leaves, or `None` if it has none.
    pub(crate) fn departure(&mut self, packet: &Transmit) -> Option<Departure> {
        let segment = &packet.segment;
        if let Body::Data(_) = &segment.body {
            return self.asking.contains(&segment.src_qp).then_some(Departure::Asks);
        }
        let answered = answered_psn(&segment.body)?;
        let (psn, _) = self.arrived.get(&segment.src_qp)?;
        if *psn != answered {
            return None;
        }
        self.arrived.remove(&segment.src_qp).map(|(_, telemetry)| Departure::Returns(telemetry))
    }

    /// Stores the telemetry of a data packet that has arrived, or passes that of an answer on to the policy.
    pub(crate) fn arrival(
        &mut self,
        endpoint: &mut Endpoint<AnyPolicy>,
        segment: &Segment,
        telemetry: Telemetry,
    ) {
        if let Body::Data(data) = &segment.body {
            self.arrived.insert(segment.dst_qp, (data.psn, telemetry));
        } else if let Some(psn) = answered_psn(&segment.body) {
            endpoint.put_telemetry(segment.dst_qp, psn, telemetry);
        }
    }
}

/// Returns the PSN of the packet that an ACK or a NACK answers, or `None` for other bodies.
fn answered_psn(body: &Body) -> Option<u64> {
    match body {
        Body::Ack(ack) => Some(ack.trigger()),
        Body::Nack(nack) => Some(nack.psn),
        _ => None,
    }
}
