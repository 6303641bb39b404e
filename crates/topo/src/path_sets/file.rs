//! Paths from a file (TOML). `docs/explicit-paths.md` describes the format for users.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::config::PathFile;
use super::search::{Hop, MAX_PATHS, MAX_SWITCHES, PathSearch, PathSets, RequestedPairs};
use crate::error::TopoError;
use crate::graph::{NodeId, Topology};
use crate::read::{SourceText, read_text};

pub(super) fn build(config: &PathFile, plan: PathSearch<'_>, base_dir: &Path) -> Result<PathSets, TopoError> {
    let (file, text) = read_text(base_dir, &config.path)?;
    parse(&file, &text, plan)
}

/// Parses the text of a path file for a topology. `file` is its name in errors.
pub fn parse_path_file(
    file: &str,
    text: &str,
    topology: &Topology,
    wanted: RequestedPairs<'_>,
) -> Result<PathSets, TopoError> {
    parse(file, text, PathSearch::new(topology, wanted)?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    #[serde(default)]
    path: Vec<PathText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathText {
    via: Spanned<Vec<Spanned<String>>>,
    id: Option<Spanned<u32>>,
    #[serde(default = "yes")]
    both_ways: bool,
}

fn yes() -> bool {
    true
}

/// Path of a pair, and the number that the file gives it, if any.
struct Numbered {
    id: Option<Spanned<u32>>,
    hops: Vec<Hop>,
}

fn parse(file: &str, text: &str, plan: PathSearch<'_>) -> Result<PathSets, TopoError> {
    let source = SourceText { file, text };
    let parsed: FileText = toml::from_str(text)
        .map_err(|error| source.refuse(error.span().unwrap_or(0..0), error.message().trim()))?;
    let with_hosts: BTreeSet<NodeId> = plan.edges.iter().flatten().copied().collect();
    let mut pairs: BTreeMap<[NodeId; 2], Vec<Numbered>> = BTreeMap::new();
    for path in parsed.path {
        let hops = hops_of(&source, plan.topology, &path)?;
        let (first, last) = (&path.via.get_ref()[0], path.via.get_ref().last().expect("two at least"));
        let edge = |name: &Spanned<String>| {
            let node = plan.topology.node_by_name(switch_name(name)).expect("found before");
            with_hosts.get(&node).copied().ok_or_else(|| {
                let what = format!(
                    "\"{}\" has no hosts; a path begins and ends at a switch that has",
                    name.get_ref()
                );
                source.refuse(name.span(), what)
            })
        };
        let (from, to) = (edge(first)?, edge(last)?);
        if path.both_ways {
            let back = hops.iter().rev().map(|hop| hop.reversed()).collect();
            pairs.entry([to, from]).or_default().push(Numbered { id: path.id.clone(), hops: back });
        }
        pairs.entry([from, to]).or_default().push(Numbered { id: path.id, hops });
    }
    let mut in_order = BTreeMap::new();
    for (ends, paths) in pairs {
        let [from, to] = ends.map(|switch| plan.topology.node_name(switch));
        in_order.insert(ends, order(&source, &format!("{from} to {to}"), paths)?);
    }
    let none = |pair| source.refuse(0..0, format!("it has no path {pair}, whose hosts communicate"));
    plan.collect_or(none, |_, ends, out| {
        let paths = in_order.get(&ends.switches).into_iter().flatten();
        paths.for_each(|hops: &Vec<Hop>| out.path(hops.iter().copied()));
        Ok(())
    })
}

/// Returns "spine0" for "spine0" and for "spine0#1".
fn switch_name(name: &Spanned<String>) -> &str {
    name.get_ref().split('#').next().unwrap_or_default()
}

/// Returns the links of a path, derived from its list of switches.
fn hops_of(source: &SourceText<'_>, topology: &Topology, path: &PathText) -> Result<Vec<Hop>, TopoError> {
    let via = path.via.get_ref();
    if !(2..=MAX_SWITCHES).contains(&via.len()) {
        let what = format!("{} switches; a path has 2 to {MAX_SWITCHES}", via.len());
        return Err(source.refuse(path.via.span(), what));
    }
    let mut nodes: Vec<NodeId> = Vec::new();
    let mut hops = Vec::new();
    for name in via {
        let node = topology
            .node_by_name(switch_name(name))
            .map_err(|error| source.refuse(name.span(), error.to_string()))?;
        if topology.is_host(node) {
            let what = format!("\"{}\" is a host; a path lists the switches between hosts", name.get_ref());
            return Err(source.refuse(name.span(), what));
        }
        if nodes.contains(&node) {
            return Err(
                source.refuse(name.span(), format!("the path visits \"{}\" twice", switch_name(name)))
            );
        }
        if let Some(&before) = nodes.last() {
            hops.push(hop(source, topology, before, node, name)?);
        }
        nodes.push(node);
    }
    Ok(hops)
}

fn hop(
    source: &SourceText<'_>,
    topology: &Topology,
    from: NodeId,
    to: NodeId,
    name: &Spanned<String>,
) -> Result<Hop, TopoError> {
    let mut links = topology.ports(from).iter().filter(|port| port.peer == to);
    let count = links.clone().count();
    if count == 0 {
        let what = format!("no link from \"{}\" to \"{}\"", topology.node_name(from), topology.node_name(to));
        return Err(source.refuse(name.span(), what));
    }
    let number = match name.get_ref().split_once('#') {
        None => 0,
        Some((_, digits)) => digits.parse().unwrap_or(usize::MAX),
    };
    links.nth(number).map(Hop::out_of_port).ok_or_else(|| {
        let what = format!("\"{}\": there are {count} links there, numbered from 0", name.get_ref());
        source.refuse(name.span(), what)
    })
}

/// Returns the paths of a pair ordered by their numbers, or in the order of the file if none has a number.
fn order(source: &SourceText<'_>, pair: &str, paths: Vec<Numbered>) -> Result<Vec<Vec<Hop>>, TopoError> {
    let count = paths.len();
    if count > MAX_PATHS as usize {
        return Err(
            source.refuse(0..0, format!("{count} paths from {pair}; at most {MAX_PATHS} are allowed"))
        );
    }
    let with_id = paths.iter().filter(|path| path.id.is_some()).count();
    if with_id == 0 {
        return Ok(paths.into_iter().map(|path| path.hops).collect());
    }
    let mut ordered: Vec<Option<Vec<Hop>>> = vec![None; count];
    for Numbered { id, hops } in paths {
        let Some(id) = id else {
            let what = format!(
                "of the {count} paths from {pair}, {with_id} have an `id`; give all or none of them one"
            );
            return Err(source.refuse(0..0, what));
        };
        let Some(place) = ordered.get_mut(*id.get_ref() as usize) else {
            let what = format!(
                "{} is out of range: the {count} paths from {pair} are numbered from 0",
                id.get_ref()
            );
            return Err(source.refuse(id.span(), what));
        };
        if place.replace(hops).is_some() {
            return Err(
                source.refuse(id.span(), format!("{} is the id of two paths from {pair}", id.get_ref()))
            );
        }
    }
    Ok(ordered.into_iter().map(|hops| hops.expect("as many numbers as places, none twice")).collect())
}
