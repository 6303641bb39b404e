//! Import of the `topology.txt` of HPCC and the simulators that took it over.
//!
//! The format is a stream of words: numbers of nodes, switches and links; the ids of the switches; then
//! `src dst rate delay error_rate` for each link. What follows the links is prose and ignored, unless it is
//! a further link between the nodes. Nodes that are no switches are hosts.
//!
//! Hosts keep the order of their ids. Where the ids of hosts are not `0..hosts`, they are renumbered in that
//! order, and their names keep the id of the file: "host5" is the node that the file calls 5. Switches are
//! named likewise: "switch320".

use std::path::{Path, PathBuf};

use pathweave_units::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Build;
use crate::error::{Location, TopoError};
use crate::graph::{Link, MAX_LINKS, MAX_NODES, NodeId, Switch, Topology};
use crate::import::Import;
use crate::read::read_text;

/// The `topology.txt` of HPCC, ConWeave and other ns-3 simulators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HpccFile {
    /// The file, relative to the scenario file.
    pub path: PathBuf,
}

impl Build for HpccFile {
    fn build(&self, base_dir: &Path) -> Result<Topology, TopoError> {
        let (file, text) = read_text(base_dir, &self.path)?;
        parse_hpcc_topology(&file, &text)
    }
}

/// Reads the text of a `topology.txt`; `file` is its name in errors.
pub fn parse_hpcc_topology(file: &str, text: &str) -> Result<Topology, TopoError> {
    let mut words = Words { file, text, at: 0, next: 0 };
    let header = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let header: Vec<_> = header.split_whitespace().collect();
    if header.len() == 6 && header[5].parse::<u64>().is_err() {
        let what = format!(
            "the header has 6 words and ends in \"{}\": this is SimAI's variant of the format, which cannot be \
             imported; HPCC's header is three numbers: nodes, switches, links",
            header[5]
        );
        return Err(words.refuse(header[5].as_ptr() as usize - text.as_ptr() as usize, what));
    }
    let nodes = words.number("the number of nodes", 1, u64::from(MAX_NODES))? as u32;
    let switches = words.number("the number of switches", 0, u64::from(nodes - 1))? as u32;
    let links = words.number("the number of links", 1, MAX_LINKS as u64)?;

    // Ids of the file to ids of ours.
    let mut is_switch = vec![false; nodes as usize];
    for i in 0..switches {
        let what = format!("the id of switch {} of {switches}", i + 1);
        let id = words.number(&what, 0, u64::from(nodes - 1))? as usize;
        if std::mem::replace(&mut is_switch[id], true) {
            return Err(words.refuse_last(format!("switch {id} is listed twice")));
        }
    }
    let hosts = nodes - switches;
    let (mut next_host, mut next_switch) = (0, hosts);
    let node_of: Vec<NodeId> = is_switch
        .iter()
        .map(|&is_switch| {
            let next = if is_switch { &mut next_switch } else { &mut next_host };
            *next += 1;
            NodeId(*next - 1)
        })
        .collect();

    let mut parsed = Vec::new();
    for i in 0..links {
        parsed.push(words.link(i + 1, links, &node_of)?);
    }
    words.no_further_link(links, nodes)?;

    let ids = |switch: bool| (0..nodes).filter(move |&id| is_switch[id as usize] == switch);
    let renumbered = ids.clone()(false).zip(0..).any(|(id, host)| id != host);
    let host_names = renumbered.then(|| ids.clone()(false).map(|id| format!("host{id}")).collect());
    let switches: Vec<_> =
        ids(true).map(|id| Switch { name: format!("switch{id}"), tier: 0, group: None }).collect();
    let no_tiers = vec![None; switches.len()];
    let name = format!("imported topology of {hosts} hosts");
    Import { file, name, hosts, host_names, switches, tiers: no_tiers, links: parsed }.finish()
}

/// The words of a text with their places.
struct Words<'a> {
    file: &'a str,
    text: &'a str,
    /// Where the last word read begins.
    at: usize,
    /// Where to look for the next.
    next: usize,
}

impl<'a> Words<'a> {
    fn peek(&self) -> Option<(usize, &'a str)> {
        let rest = &self.text[self.next..];
        let start = self.next + rest.find(|c: char| !c.is_whitespace())?;
        Some((start, self.text[start..].split_whitespace().next()?))
    }
    fn word(&mut self, what: &str) -> Result<&'a str, TopoError> {
        match self.peek() {
            Some((start, word)) => {
                (self.at, self.next) = (start, start + word.len());
                Ok(word)
            }
            None => Err(self.refuse(self.text.len(), format!("the file ends where {what} is expected"))),
        }
    }
    fn refuse(&self, offset: usize, what: String) -> TopoError {
        TopoError::File { at: Location::of_offset(self.file, self.text, offset), what }
    }
    fn refuse_last(&self, what: String) -> TopoError {
        self.refuse(self.at, what)
    }

    fn number(&mut self, what: &str, least: u64, most: u64) -> Result<u64, TopoError> {
        let word = self.word(what)?;
        let value = word.parse().ok().filter(|value| (least..=most).contains(value));
        value.ok_or_else(|| {
            self.refuse_last(format!("{what} is \"{}\"; expected a number from {least} to {most}", cut(word)))
        })
    }

    fn link(&mut self, i: u64, links: u64, node_of: &[NodeId]) -> Result<Link, TopoError> {
        let field = |name: &str| format!("the {name} of link {i} of {links}");
        let last = node_of.len() as u64 - 1;
        let src = self.number(&field("first end"), 0, last)?;
        let dst = self.number(&field("second end"), 0, last)?;
        if src == dst {
            return Err(self.refuse_last(format!("link {i} of {links} connects node {src} to itself")));
        }
        let rate = self.word(&field("rate"))?;
        let rate = parse_rate(rate)
            .map_err(|why| self.refuse_last(format!("{} is \"{}\": {why}", field("rate"), cut(rate))))?;
        let delay = self.word(&field("delay"))?;
        let delay: Duration = delay
            .parse()
            .map_err(|why| self.refuse_last(format!("{} is \"{}\": {why}", field("delay"), cut(delay))))?;
        let loss = self.word(&field("error rate"))?;
        let error_rate = loss.parse().ok().filter(|p| (0.0..=1.0).contains(p)).ok_or_else(|| {
            let what = field("error rate");
            self.refuse_last(format!("{what} is \"{}\"; expected a number from 0 to 1", cut(loss)))
        })?;
        Ok(Link { a: node_of[src as usize], b: node_of[dst as usize], rate, delay, error_rate })
    }

    /// Text may follow the links. A further link between nodes that exist is a wrong count; links of other
    /// nodes are left over from a larger network (HPCC's own star has them) and ignored like prose.
    fn no_further_link(&self, links: u64, nodes: u32) -> Result<(), TopoError> {
        let Some((start, _)) = self.peek() else { return Ok(()) };
        let mut rest = self.text[start..].split_whitespace();
        let is_node = |word: &&str| word.parse::<u32>().is_ok_and(|id| id < nodes);
        let ends = rest.by_ref().take(2).filter(is_node).count();
        if ends == 2 && rest.next().is_some_and(|word| parse_rate(word).is_ok()) {
            let what = format!("here is a further link, but the header announces {links}");
            return Err(self.refuse(start, what));
        }
        Ok(())
    }
}

/// A rate as ns-3 writes it: "100Gbps" or "100Gb/s"; an upper-case B stands for bytes.
fn parse_rate(word: &str) -> Result<Rate, String> {
    let bytes = word.contains('B');
    let rate: Rate = word.replace("/s", "ps").replace('B', "b").parse().map_err(|why| format!("{why}"))?;
    let bps = rate.as_bps().checked_mul(if bytes { 8 } else { 1 }).ok_or("out of range")?;
    if bps == 0 {
        return Err("rates must be above 0".into());
    }
    Ok(Rate::from_bps(bps))
}

/// A word short enough for an error text.
fn cut(word: &str) -> &str {
    const LONGEST: usize = 40;
    word.char_indices().nth(LONGEST).map_or(word, |(end, _)| &word[..end])
}
