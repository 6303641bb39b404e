//! Middleboxes at external switches: their placement, their view of packets, and the delays that hosts may expect of
//! them.

use std::sync::Arc;

use pathweave_fabric::config::{ExternalConfig, Forwarding};
use pathweave_fabric::{
    ContentAccess, ContentView, Fabric, MiddleboxStats, QueueingThresholds, SwitchPosition,
};
use pathweave_policy::{MeasuredSection, queued_rtt};
use pathweave_records::MiddleboxTotals;
use pathweave_topo::{Sites, Topology};
use pathweave_units::{Duration, HostId, QpNum, Time};
use pathweave_wire::{Body, Control, Framing, Segment};

use crate::chosen_routes::ChosenRoutes;
use crate::forwarding;
use crate::host::Content;
use crate::ideal::{ack_wire_bytes, data_wire_bytes, segment};
use crate::paths::PathProfile;
use crate::spec::{RouteChoice, SimError, SimSpec};

/// Returns the functions by which a middlebox reads and modifies a segment.
fn lens(framing: Framing) -> ContentAccess<Content> {
    ContentAccess { look, restamp, answer, answer_bytes: answer_bytes(framing) }
}

fn answer_bytes(framing: Framing) -> u32 {
    framing.wire_bytes(&segment(Body::Control(Control::EdgeEcho { sent_at: Time::ZERO })))
}

/// Returns the key of a flow: the sender's queue pair in the upper half, the receiver's in the lower.
fn flow(sender: QpNum, receiver: QpNum) -> u64 {
    u64::from(sender.0) << 32 | u64::from(receiver.0)
}

fn look(segment: &Segment) -> ContentView {
    match &segment.body {
        Body::Data(data) => {
            ContentView::Data { flow: flow(segment.src_qp, segment.dst_qp), sent_at: data.sent_at }
        }
        Body::Control(Control::Probe { .. }) => {
            ContentView::Probe { flow: flow(segment.src_qp, segment.dst_qp) }
        }
        Body::Ack(ack) => {
            ContentView::Ack { flow: flow(segment.dst_qp, segment.src_qp), echo: ack.echo_sent_at }
        }
        _ => ContentView::Other,
    }
}

fn restamp(segment: &mut Segment, stamp: Time) {
    match &mut segment.body {
        Body::Data(data) => data.sent_at = stamp,
        Body::Ack(ack) => ack.echo_sent_at = stamp,
        _ => {}
    }
}

fn answer(segment: &Segment) -> Segment {
    let sent_at = match &segment.body {
        Body::Data(data) => data.sent_at,
        _ => Time::ZERO,
    };
    Segment {
        dst_qp: segment.src_qp,
        src_qp: segment.dst_qp,
        path: segment.path,
        pull_target: None,
        body: Body::Control(Control::EdgeEcho { sent_at }),
    }
}

/// Attaches middleboxes to the external switches of a network, as configured.
pub(crate) fn attach<const C: usize>(
    fabric: &mut Fabric<Content, C>,
    spec: &SimSpec,
    routes: &ChosenRoutes,
) -> Result<(), SimError> {
    let config = &spec.switch.external;
    if !config.has_middlebox() {
        return Ok(());
    }
    let kind = forwarding::of_run(spec)?;
    if spec.routing != RouteChoice::Switches {
        return Err(SimError::Middlebox(
            "middleboxes need routing.kind = \"switches\": where sources choose every hop, acknowledgements need not \
             come back by the same switch"
                .into(),
        ));
    }
    if kind != Forwarding::Ecmp {
        return Err(SimError::Middlebox(format!(
            "external switches with middleboxes choose ports by a hash, but switches are to do \"{}\"; leave out \
             switch.external.nsf and switch.external.ndt, or set switch.forwarding.kind = \"ecmp\"",
            kind.name()
        )));
    }
    let topology = &*spec.topology;
    let sites = topology.sites().ok_or_else(|| {
        SimError::Middlebox(
            "this network has no external switches; a topology of kind \"cross-dc\" has them".into(),
        )
    })?;
    check_way_back(topology, sites)?;
    let of_host: Arc<[u32]> = sites.of_hosts().into();
    for &(node, site) in sites.external() {
        if !fabric.numbers().owns(node.0) {
            continue;
        }
        let switch = topology.switch_index(node).expect("an external switch is a switch") as u32;
        let queued = queued(spec, sites, routes, site);
        let place = SwitchPosition { site, queued, of_host: of_host.clone() };
        fabric.attach_middlebox(switch, config, lens(spec.network.framing), place);
    }
    Ok(())
}

/// Returns the delays between the external switch of a site and its farthest host, with a queue on the path.
fn queued(spec: &SimSpec, sites: &Sites, routes: &ChosenRoutes, site: u32) -> QueueingThresholds {
    let topology = &*spec.topology;
    let network = &spec.network;
    let mtu = network.mtu.get() as u16;
    let data_bytes = data_wire_bytes(network.framing, network.verb, 1, mtu, false);
    let ack_bytes = ack_wire_bytes(network.framing);
    let hosts = || (0..topology.hosts()).map(HostId);
    let elsewhere = hosts().find(|&host| sites.of_host(host) != site);
    let (mut there, mut round_trip, mut packet) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    for inside in hosts().filter(|&host| sites.of_host(host) == site) {
        let outwards = elsewhere.map(|outside| routes.profiles(topology, inside, outside));
        for way in outwards.iter().flatten().filter_map(PathProfile::up_to_edge) {
            let slowest = way.hops.iter().map(|(rate, _)| rate.time_for(u64::from(data_bytes))).max();
            there = there.max(way.one_way(data_bytes));
            round_trip = round_trip.max(way.round_trip(data_bytes, ack_bytes));
            packet = packet.max(slowest.unwrap_or(Duration::ZERO));
        }
    }
    QueueingThresholds { one_way: queued_rtt(there, packet), round_trip: queued_rtt(round_trip, packet) }
}

/// Checks that every path into a site and out of it leads over one switch. With several switches the measurements of
/// a middlebox would be meaningless.
fn check_way_back(topology: &Topology, sites: &Sites) -> Result<(), SimError> {
    for pair in sites.external().windows(2) {
        let [(one, site), (other, of_other)] = pair else { continue };
        if site == of_other {
            let (one, other) = (topology.node_name(*one), topology.node_name(*other));
            return Err(SimError::Middlebox(format!(
                "site {site} has two external switches, {one} and {other}: data may come by one of them and its \
                 acknowledgement return by the other, whose clock did not stamp it, so the delay measured would mean \
                 nothing; set topology.external_switches = 1, or leave out switch.external.nsf and \
                 switch.external.ndt"
            )));
        }
    }
    Ok(())
}

/// Returns the round trip to the external switch of the sender's site, if that switch answers for the network behind
/// it.
pub(crate) fn leg(
    config: &ExternalConfig,
    framing: Framing,
    profile: &PathProfile,
    data_wire_bytes: u32,
) -> Option<MeasuredSection> {
    config.nsf.as_ref()?;
    let way = profile.up_to_edge()?;
    let links = profile.to_edge?;
    let base_rtt = way.one_way(data_wire_bytes) + way.one_way(answer_bytes(framing));
    Some(MeasuredSection { base_rtt, links })
}

/// Returns the counters of all middleboxes. `stats` returns those of a switch, if it has a middlebox.
pub(crate) fn totals(
    topology: &Topology,
    stats: impl Fn(u32) -> Option<MiddleboxStats>,
) -> Vec<MiddleboxTotals> {
    let switches = topology.switches().iter().zip(0..);
    let counted = switches.filter_map(|(switch, index)| Some((switch, stats(index)?)));
    counted
        .map(|(switch, stats)| {
            let (nsf, ndt) = (stats.nsf.unwrap_or_default(), stats.ndt.unwrap_or_default());
            MiddleboxTotals {
                name: switch.name.clone(),
                nsf_data_packets: nsf.data_packets,
                nsf_hot_packets: nsf.hot_packets,
                nsf_answers: nsf.answers,
                nsf_answers_lost: nsf.answers_lost,
                nsf_untracked_packets: nsf.untracked_packets,
                nsf_max_flows: nsf.max_flows,
                ndt_data_packets: ndt.data_packets,
                ndt_controlled_packets: ndt.controlled_packets,
                ndt_samples: ndt.samples,
                ndt_congested_samples: ndt.congested_samples,
                ndt_isolated_flows: ndt.isolated_flows,
                ndt_guarded_recovery_packets: ndt.guarded_recovery,
                ndt_guarded_isolation_packets: ndt.guarded_isolation,
                ndt_pauses: ndt.pauses,
                ndt_timed_out_pauses: ndt.timed_out_pauses,
                ndt_paused_ns: ndt.paused.as_ns(),
                ndt_max_controlled_bytes: ndt.max_controlled_bytes,
                ndt_untracked_packets: ndt.untracked_packets,
                ndt_max_flows: ndt.max_flows,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::profile;
    use pathweave_fabric::config::NsfConfig;
    use pathweave_topo::{Routing, presets};
    use pathweave_units::{Duration, HostId};
    use std::path::Path;

    #[test]
    fn the_way_to_the_edge_by_hand() {
        let preset = presets().iter().find(|preset| preset.name == "reflex-32").expect("a preset");
        let topology = preset.config.build(Path::new(".")).expect("two sites");
        let routing = Routing::all_links_up(&topology);
        let config = ExternalConfig { nsf: Some(NsfConfig::default()), ..ExternalConfig::default() };
        let between = |config: &ExternalConfig, dst| {
            let ends = (HostId(0), HostId(dst));
            let profile = profile(&topology, &routing, ends.0, ends.1).expect("a way");
            leg(config, Framing::Ns3, &profile, 1_048)
        };
        // Three links of 1 us; 1,048 bytes out and 60 back at 100 Gb/s.
        let base_rtt = Duration::from_ps(6_000_000 + 3 * (83_840 + 4_800));
        assert_eq!(between(&config, 20), Some(MeasuredSection { base_rtt, links: 3 }));
        assert_eq!(between(&config, 5), None, "it stays inside");
        assert_eq!(between(&ExternalConfig::default(), 20), None, "nobody answers");
    }
}
