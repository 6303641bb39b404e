//! The words of `topology.txt`, and what HPCC's form and SimAI's have in common.

use pathweave_units::{Duration, Rate};

use crate::error::{Location, TopoError};
use crate::graph::{Link, MAX_LINKS, MAX_NODES, NodeId, Switch, Topology};
use crate::import::Import;

/// The words of the first line that has some.
pub fn header_words(text: &str) -> Vec<&str> {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().split_whitespace().collect()
}

/// Whether the header is that of SimAI: six words of which the last, the kind of GPU, is no number. Returns that word.
pub(crate) fn is_simai(text: &str) -> Option<&str> {
    let words = header_words(text);
    (words.len() == 6 && words[5].parse::<u64>().is_err()).then(|| words[5])
}

/// The words of a text with their places.
pub(super) struct Words<'a> {
    file: &'a str,
    text: &'a str,
    /// Where the last word read begins.
    at: usize,
    /// Where to look for the next.
    next: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        Words { file, text, at: 0, next: 0 }
    }
    fn peek(&self) -> Option<(usize, &'a str)> {
        let rest = &self.text[self.next..];
        let start = self.next + rest.find(|c: char| !c.is_whitespace())?;
        Some((start, self.text[start..].split_whitespace().next()?))
    }
    pub(super) fn word(&mut self, what: &str) -> Result<&'a str, TopoError> {
        match self.peek() {
            Some((start, word)) => {
                (self.at, self.next) = (start, start + word.len());
                Ok(word)
            }
            None => Err(self.refuse(self.text.len(), format!("the file ends where {what} is expected"))),
        }
    }
    pub(super) fn refuse(&self, offset: usize, what: String) -> TopoError {
        TopoError::File { at: Location::of_offset(self.file, self.text, offset), what }
    }
    pub(super) fn refuse_last(&self, what: String) -> TopoError {
        self.refuse(self.at, what)
    }

    pub(super) fn number(&mut self, what: &str, least: u64, most: u64) -> Result<u64, TopoError> {
        let word = self.word(what)?;
        let value = word.parse().ok().filter(|value| (least..=most).contains(value));
        value.ok_or_else(|| {
            self.refuse_last(format!("{what} is \"{}\"; expected a number from {least} to {most}", cut(word)))
        })
    }

    pub(super) fn node_count(&mut self) -> Result<u32, TopoError> {
        Ok(self.number("the number of nodes", 1, u64::from(MAX_NODES))? as u32)
    }
    pub(super) fn link_count(&mut self) -> Result<u64, TopoError> {
        self.number("the number of links", 1, MAX_LINKS as u64)
    }

    /// What follows the header: the ids of switches, so many of each kind, and the links. All other nodes are hosts.
    pub(super) fn network(
        mut self,
        nodes: u32,
        kinds: &[(&str, u32)],
        links: u64,
    ) -> Result<Topology, TopoError> {
        // The kind of switch that each node is.
        let mut kind_of: Vec<Option<&str>> = vec![None; nodes as usize];
        for &(kind, count) in kinds {
            for i in 0..count {
                let what = format!("the id of {kind} {} of {count}", i + 1);
                let id = self.number(&what, 0, u64::from(nodes - 1))? as usize;
                if kind_of[id].replace(kind).is_some() {
                    return Err(self.refuse_last(format!("switch {id} is listed twice")));
                }
            }
        }
        let (host_ids, switch_ids): (Vec<u32>, Vec<u32>) =
            (0..nodes).partition(|&id| kind_of[id as usize].is_none());
        let hosts = host_ids.len() as u32;
        // Ids of the file to ids of ours.
        let mut node_of = vec![NodeId(0); nodes as usize];
        for (&id, node) in host_ids.iter().chain(&switch_ids).zip(0..) {
            node_of[id as usize] = NodeId(node);
        }

        let mut parsed = Vec::new();
        for i in 0..links {
            parsed.push(self.link(i + 1, links, &node_of)?);
        }
        self.no_further_link(links, nodes)?;

        let renumbered = host_ids.iter().zip(0..).any(|(&id, host)| id != host);
        let host_names = renumbered.then(|| host_ids.iter().map(|id| format!("host{id}")).collect());
        let switch = |&id: &u32| {
            let kind = kind_of[id as usize].expect("it is a switch");
            Switch { name: format!("{kind}{id}"), tier: 0, group: None }
        };
        let switches: Vec<_> = switch_ids.iter().map(switch).collect();
        let no_tiers = vec![None; switches.len()];
        let name = format!("imported topology of {hosts} hosts");
        Import { file: self.file, name, hosts, host_names, switches, tiers: no_tiers, links: parsed }.finish()
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
