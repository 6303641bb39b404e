//! `pathweave lab list` and `pathweave lab show`.

use pathweave_lab::{Lab, LabError, LabNamespaces, Listing, Summary};
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::terminal;

/// Entry of the list of labs.
#[derive(Serialize)]
struct ListedLab {
    name: String,
    topology: Option<String>,
    hosts: Option<u32>,
    switches: Option<usize>,
    links: Option<usize>,
    down: Vec<String>,
    rate_scale: Option<f64>,
    processes: usize,
    namespaces: usize,
    /// Reason why the lab is incomplete, if it is.
    incomplete: Option<String>,
}

impl From<Listing> for ListedLab {
    fn from(listing: Listing) -> Self {
        let (summary, incomplete) = match listing.state {
            Ok(summary) => (Some(summary), None),
            Err(why) => (None, Some(why)),
        };
        let of = |summary: &Option<Summary>| summary.clone();
        ListedLab {
            name: listing.lab.to_string(),
            hosts: summary.as_ref().map(|summary| summary.hosts),
            switches: summary.as_ref().map(|summary| summary.switches),
            links: summary.as_ref().map(|summary| summary.links),
            rate_scale: summary.as_ref().map(|summary| summary.rate_scale.share()),
            down: of(&summary).map(|summary| summary.down).unwrap_or_default(),
            topology: of(&summary).map(|summary| summary.topology),
            processes: listing.processes.len(),
            namespaces: listing.namespaces,
            incomplete,
        }
    }
}

pub(crate) fn list(json: bool) -> Result<Outcome, Failure> {
    let labs = match LabNamespaces::enter()? {
        // Labs that are only in the machine's list belong to another user.
        LabNamespaces::None => Vec::new(),
        _ => Lab::all()?,
    };
    let labs: Vec<ListedLab> = labs.into_iter().map(ListedLab::from).collect();
    if json {
        terminal::out(&crate::commands::json(&labs));
        return Ok(Outcome::Done);
    }
    for lab in &labs {
        let line = match (&lab.incomplete, lab.hosts, lab.switches, lab.links) {
            (None, Some(hosts), Some(switches), Some(links)) => {
                let down = if lab.down.is_empty() { "none".to_owned() } else { lab.down.join(", ") };
                format!(
                    "{}  {}; hosts: {hosts}, switches: {switches}, links: {links}, down: {down}; processes: {}",
                    lab.name,
                    lab.topology.as_deref().unwrap_or_default(),
                    lab.processes
                )
            }
            (why, ..) => format!("{}  {}", lab.name, why.as_deref().unwrap_or("incomplete")),
        };
        terminal::out(&format!("{line}\n"));
    }
    if labs.is_empty() {
        terminal::note("there is no lab");
    }
    Ok(Outcome::Done)
}

/// Host or switch with its ports.
#[derive(Serialize)]
struct Node {
    name: String,
    address: String,
    namespace: String,
    ports: Vec<Port>,
}

#[derive(Serialize)]
struct Port {
    device: String,
    link: String,
    to: String,
    rate_bps: u64,
    up: bool,
    sent_packets: u64,
    sent_bytes: u64,
    received_packets: u64,
    received_bytes: u64,
    dropped_packets: u64,
}

pub(crate) fn show(lab: &Lab, json: bool) -> Result<Outcome, Failure> {
    let nodes = nodes(lab)?;
    if json {
        terminal::out(&crate::commands::json(&nodes));
        return Ok(Outcome::Done);
    }
    for node in &nodes {
        terminal::out(&format!("{}  {}\n", node.name, node.address));
        for port in &node.ports {
            let rate = pathweave_scenario::units::Rate::from_bps(port.rate_bps);
            let state = if port.up { "up" } else { "DOWN" };
            terminal::out(&format!(
                "  {} to {}: {rate}, {state}; packets sent: {}, received: {}, dropped: {}\n",
                port.device, port.to, port.sent_packets, port.received_packets, port.dropped_packets
            ));
        }
    }
    Ok(Outcome::Done)
}

fn nodes(lab: &Lab) -> Result<Vec<Node>, LabError> {
    let topology = lab.plan().topology();
    let mut nodes = Vec::new();
    for planned in lab.plan().nodes() {
        let counters = lab.counters(lab.node(&planned.name)?)?;
        let ports = planned.ports.iter().zip(counters).map(|(port, counted)| Port {
            device: port.device.clone(),
            link: topology.link_name(port.link),
            to: lab.plan().node(port.peer).name.clone(),
            rate_bps: port.rate.as_bps(),
            up: !lab.down().any(|link| link == port.link),
            sent_packets: counted.counters.sent_packets,
            sent_bytes: counted.counters.sent_bytes,
            received_packets: counted.counters.received_packets,
            received_bytes: counted.counters.received_bytes,
            dropped_packets: counted.dropped_packets,
        });
        nodes.push(Node {
            name: planned.name.clone(),
            address: planned.address.to_string(),
            namespace: planned.namespace.clone(),
            ports: ports.collect(),
        });
    }
    Ok(nodes)
}
