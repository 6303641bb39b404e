//! Last step of every file format: conversion of the parsed content to a topology.

use crate::error::{Location, TopoError};
use crate::graph::{Link, NodeId, Switch, Topology};
use crate::names::HostNames;
use crate::routing::{Classes, Routing};

/// Largest number of entries of a routing table: 512 MiB.
const MAX_ROUTES: u64 = 1 << 27;

/// Content of a file.
pub(crate) struct ParsedTopology<'a> {
    pub(crate) file: &'a str,
    pub(crate) name: String,
    pub(crate) hosts: u32,
    pub(crate) host_names: Option<Vec<String>>,
    pub(crate) switches: Vec<Switch>,
    /// Tier of each switch; `None` derives it from the links.
    pub(crate) tiers: Vec<Option<u8>>,
    pub(crate) links: Vec<Link>,
}

impl ParsedTopology<'_> {
    /// Creates the topology, derives missing tiers, and determines whether routing is arithmetic. Returns an error if
    /// some host cannot reach another, or if routes exceed the limit.
    pub(crate) fn finish(self) -> Result<Topology, TopoError> {
        let ParsedTopology { file, name, hosts, host_names, switches, tiers, links } = self;
        let refuse =
            |what| TopoError::File { at: Location { file: file.to_owned(), line: 0, column: 0 }, what };
        let host_names = host_names.map_or(HostNames::Counted, HostNames::Listed);
        let mut topology = Topology::with_host_names(name, hosts, host_names, switches, links).map_err(
            |error| match error {
                TopoError::Graph { what, .. } => refuse(what),
                other => other,
            },
        )?;
        for (switch, tier) in find_tiers(&topology).into_iter().enumerate() {
            topology.set_tier(switch, tiers[switch].unwrap_or(tier));
        }
        let classes = Classes::by_attachment(&topology, &|_| true).members.len() as u64;
        let routes = classes * u64::from(topology.nodes());
        if routes > MAX_ROUTES {
            return Err(refuse(format!(
                "its routing table would have {routes} entries (nodes times groups of hosts that share their \
                 switches); at most {MAX_ROUTES} are allowed"
            )));
        }
        let table = Routing::compute_table(&topology, &|_| true);
        if let Some((src, dst)) = table.unreachable_pair() {
            let (src, dst) = (topology.node_name(src.into()), topology.node_name(dst.into()));
            return Err(refuse(format!("there is no path from {src} to {dst}: hosts forward nothing")));
        }
        let regular = Routing::arithmetic_holds(&topology, &table);
        Ok(if regular { topology.with_arithmetic_routing() } else { topology })
    }
}

/// Returns the tier of each switch: the number of hops to the nearest host, minus one.
pub(crate) fn find_tiers(topology: &Topology) -> Vec<u8> {
    let mut tiers: Vec<Option<u8>> = vec![None; topology.switches().len()];
    let mut reached: Vec<NodeId> = (0..topology.hosts()).map(NodeId).collect();
    let mut next = 0;
    while let Some(&node) = reached.get(next) {
        next += 1;
        let tier = topology.switch_index(node).and_then(|index| tiers[index]);
        let above = tier.map_or(0, |tier| tier.saturating_add(1));
        for port in topology.ports(node) {
            if let Some(index) = topology.switch_index(port.peer)
                && tiers[index].is_none()
            {
                tiers[index] = Some(above);
                reached.push(port.peer);
            }
        }
    }
    tiers.into_iter().map(Option::unwrap_or_default).collect()
}
