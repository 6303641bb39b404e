//! Refusal of runs that the fluid model cannot represent, with the alternative.

use std::collections::{BTreeMap, BTreeSet};

use pathweave_execution::Connections;
use pathweave_execution::max_min::bytes_per_ps;
use pathweave_fabric::config::FaultConfig;
use pathweave_policy::Service;
use pathweave_sim::{ErrorSource, PacketFreeNetwork, RouteChoice, SimError, SimSpec};
use pathweave_topo::{LinkId, NamedLink, NamedNode, NodeId, Topology};
use pathweave_units::Forwarding;

use crate::model::{Model, models};

fn refused(blame: ErrorSource, why: &str, instead: &str) -> SimError {
    SimError::Fidelity {
        blame,
        message: format!("{why}, which run.fidelity = \"flow\" does not model"),
        advice: format!("{instead}, or set run.fidelity to \"packet\""),
    }
}

/// Accepted run: its routes and models, and the queue pairs that messages share.
pub(crate) struct Admitted<'a> {
    pub(crate) ways: PacketFreeNetwork<'a>,
    pub(crate) models: Vec<Model>,
    pub(crate) connections: Connections<u32>,
}

/// Checks a spec and sets up the run.
///
/// # Errors
/// Features that depend on packets, and errors that also apply to packets.
pub(crate) fn admit(spec: &SimSpec) -> Result<Admitted<'_>, SimError> {
    check(spec)?;
    let (ways, connections) = PacketFreeNetwork::new(spec)?;
    let models = models(spec, &ways);
    check_network(spec, &ways, &models)?;
    Ok(Admitted { ways, models, connections })
}

/// Refuses features that the scenario alone shows.
fn check(spec: &SimSpec) -> Result<(), SimError> {
    if !matches!(spec.routing, RouteChoice::Switches) {
        let why = "explicit paths carry the packets";
        return Err(refused(ErrorSource::Routing, why, "leave out `routing`"));
    }
    let observe = &spec.observe;
    for (is_set, field, why) in [
        (spec.network.nic.is_some(), "network.nic", "NICs and hosts cost time"),
        (spec.switch.classes() > 2, "switch.weights", "there are several classes of data"),
        (spec.switch.external.has_middlebox(), "switch.external", "middleboxes answer packets"),
        (observe.departures, "observe.departures", "packets are counted as they leave their hosts"),
        (observe.flows > 0, "observe.flows", "packets of messages are followed"),
        (!observe.follow.is_empty(), "observe.follow", "packets of messages are followed"),
        (spec.run.verify, "run.verify", "the placement of packets is verified"),
    ] {
        if is_set {
            return Err(refused(ErrorSource::Field(field), why, &format!("leave out {field}")));
        }
    }
    let loses = |link: &LinkId| {
        [true, false].into_iter().any(|from_a| spec.topology.direction(*link, from_a).error_rate > 0.0)
    };
    if let Some(link) = (0..spec.topology.links().len() as u32).map(LinkId).find(loses) {
        let link = spec.topology.link(link);
        let [a, b] = [link.a, link.b].map(|node: NodeId| spec.topology.node_name(node).into_owned());
        let why = format!("the link of {a} and {b} loses packets");
        return Err(refused(ErrorSource::Topology, &why, "set its error rate to 0"));
    }
    check_schemes(spec)?;
    check_faults(spec)
}

/// Refuses schemes that depend on packets.
fn check_schemes(spec: &SimSpec) -> Result<(), SimError> {
    for group in &spec.groups {
        let named = &spec.schemes[usize::from(group.scheme)];
        let why = match &named.scheme.service {
            _ if named.scheme.policy.is_about_feedback() => "concerns answers of switches to packets",
            _ if named.scheme.as_fluid().spread.is_none() => "has paths picked packet by packet by a program",
            Service::Datagram(_) => "sends datagrams and concerns the repair of missing ones",
            Service::EndToEnd => "has contexts that carry one message at a time",
            Service::Connection | Service::SharedReceive(_) => continue,
        };
        let why = format!("scheme \"{}\" {why}", named.name);
        return Err(refused(
            ErrorSource::Scheme(named.name.clone()),
            &why,
            "choose another scheme, such as \"udmp\"",
        ));
    }
    Ok(())
}

fn check_faults(spec: &SimSpec) -> Result<(), SimError> {
    let goes_back = spec.groups.iter().map(|group| &spec.schemes[usize::from(group.scheme)]);
    let goes_back = goes_back.clone().find(|named| named.scheme.recovery.goes_back());
    for (index, fault) in spec.faults.iter().enumerate() {
        let refuse = |why: &str| Err(refused(ErrorSource::Fault(index), why, "leave out this fault"));
        match fault {
            FaultConfig::LinkRate { .. } => {}
            FaultConfig::LinkDown { .. } | FaultConfig::LinkFlap { .. } | FaultConfig::SwitchDown { .. } => {
                if let Some(named) = goes_back.filter(|_| !concerns_scale_up(fault, &spec.topology)) {
                    let why = format!(
                        "packets are lost, and scheme \"{}\" goes back to them (go-back-N)",
                        named.name
                    );
                    return refuse(&why);
                }
            }
            FaultConfig::LinkDelay { .. } => return refuse("the delay of a link changes"),
            FaultConfig::LinkLoss { .. } | FaultConfig::LinkCorruption { .. } => {
                return refuse("packets are lost one by one");
            }
            FaultConfig::PauseStorm { .. } => return refuse("a host pauses its switch"),
        }
    }
    Ok(())
}

/// Returns true for a fault of a link or chip of a scale-up network, which carries no packets.
fn concerns_scale_up(fault: &FaultConfig, topology: &Topology) -> bool {
    match fault {
        FaultConfig::LinkDown { link, .. } | FaultConfig::LinkFlap { link, .. } => {
            matches!(topology.link_or_scale_up(link), Ok(NamedLink::ScaleUp(_)))
        }
        FaultConfig::SwitchDown { switch, .. } => {
            matches!(topology.node_or_chip(switch), Ok(NamedNode::Chip(_)))
        }
        _ => false,
    }
}

/// Refuses features that schemes and switches show: detours, and buffers that overflow without flow control.
fn check_network(spec: &SimSpec, ways: &PacketFreeNetwork<'_>, models: &[Model]) -> Result<(), SimError> {
    if spec.graph.folding().is_some() && models.iter().any(|model| model.spread.is_single()) {
        return Err(SimError::Fidelity {
            blame: ErrorSource::Field("run.fold"),
            message:
                "ranks that are alike are run once, and switches choose single paths, so the ranks differ"
                    .to_owned(),
            advice: "set run.fold to \"never\"".to_owned(),
        });
    }
    if ways.forwarding().kind == Some(Forwarding::Ugal) {
        let asks = spec.schemes.iter().find(|named| named.scheme.forwarding == Some(Forwarding::Ugal));
        let blame = asks.map_or(ErrorSource::Kind, |named| ErrorSource::Scheme(named.name.clone()));
        return Err(refused(blame, "switches send packets by detours (\"ugal\")", "choose another scheme"));
    }
    if ways.switches().each().all(|switch| switch.pfc.enabled) {
        return Ok(());
    }
    // All senders that may send to a host at once, each before it learns of a queue.
    let mut senders: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for message in spec.graph.messages() {
        let to = spec.graph.representative(message.dst);
        senders.entry((to, message.group)).or_default().insert((message.src, message.dst));
    }
    for ((host, group), senders) in senders {
        let port = spec.topology.ports(host.into())[0];
        let Some(leaf) = spec.topology.switch_index(port.peer) else { continue };
        let leaf = ways.switches().of(leaf as u32);
        if leaf.pfc.enabled {
            continue;
        }
        let rate = bytes_per_ps(spec.topology.egress(&port).rate);
        let burst = models[group.index()].law.feedback_delay * rate * senders.len() as f64;
        if burst > leaf.buffer.get() as f64 {
            let why = format!(
                "{} hosts send to {} and may have {:.0} kB at once at a switch whose buffer is {}, so that packets are lost",
                senders.len(),
                spec.topology.node_name(host.into()),
                burst / 1e3,
                leaf.buffer
            );
            return Err(refused(ErrorSource::Field("switch.pfc"), &why, "set switch.pfc.enabled to true"));
        }
    }
    Ok(())
}
