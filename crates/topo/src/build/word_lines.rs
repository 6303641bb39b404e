//! Words of `topology.txt`, read line by line, and the common parts of the formats of HPCC, SimAI and LAPS.
//!
//! The programs that defined these formats read a stream of words. If a column is missing in a line, they use the
//! first word of the next line instead. Here a line ends at its end, and errors refer to the line.

use std::iter::Peekable;
use std::str::Lines;

use pathweave_units::{Duration, Rate};

use crate::error::{Location, TopoError};
use crate::graph::{Link, MAX_LINKS, MAX_NODES, NodeId, Switch, Topology};
use crate::import::ParsedTopology;

/// Returns the words of the first line that has any.
pub fn header_words(text: &str) -> Vec<&str> {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().split_whitespace().collect()
}

/// Returns the kind of GPU if the header is that of SimAI: six words, the last of which (the kind) is not a number.
pub(crate) fn is_simai(text: &str) -> Option<&str> {
    let words = header_words(text);
    (words.len() == 6 && words[5].parse::<u64>().is_err()).then(|| words[5])
}

/// Reader of the lines of a text. Empty lines are skipped.
pub(super) struct LineReader<'a> {
    file: &'a str,
    text: &'a str,
    lines: Peekable<Lines<'a>>,
    /// Number of the line read last, from 1.
    line: u32,
}

/// Words of a line.
pub(super) struct Line<'a> {
    file: &'a str,
    content: &'a str,
    number: u32,
    words: Vec<&'a str>,
}

/// Largest number of words of a line that are read. Only lists of ids have as many.
const MAX_WORDS: usize = 16;

impl<'a> LineReader<'a> {
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        LineReader { file, text, lines: text.lines().peekable(), line: 0 }
    }

    /// Skips empty lines. Returns the content of the next line without consuming it.
    fn peek(&mut self) -> Option<&'a str> {
        while self.lines.next_if(|line| line.trim().is_empty()).is_some() {
            self.line = self.line.saturating_add(1);
        }
        self.lines.peek().copied()
    }

    /// Returns the next line with words, or `None` at the end.
    pub(super) fn next(&mut self) -> Option<Line<'a>> {
        let content = self.peek()?;
        self.lines.next();
        self.line = self.line.saturating_add(1);
        Some(Line { file: self.file, content, number: self.line, words: Vec::new() }.split(MAX_WORDS))
    }

    /// Returns the next line, or an error that names the expected content, `what`.
    pub(super) fn expect(&mut self, what: &str) -> Result<Line<'a>, TopoError> {
        self.next().ok_or_else(|| self.refuse_end(format!("the file ends where {what} is expected")))
    }

    pub(super) fn refuse_end(&self, what: String) -> TopoError {
        TopoError::File { at: Location::of_offset(self.file, self.text, self.text.len()), what }
    }

    /// Reads the rest of the file after the header: lists of switch ids, one for each kind, and the links. All other
    /// nodes are hosts.
    pub(super) fn read_body(
        mut self,
        nodes: u32,
        kinds: &[(&str, u32)],
        links: u64,
    ) -> Result<Topology, TopoError> {
        let kind_of = self.switch_ids(nodes, kinds)?;
        let (host_ids, switch_ids): (Vec<u32>, Vec<u32>) =
            (0..nodes).partition(|&id| kind_of[id as usize].is_none());
        let hosts = host_ids.len() as u32;
        // Node of each id of the file.
        let mut node_of = vec![NodeId(0); nodes as usize];
        for (&id, node) in host_ids.iter().chain(&switch_ids).zip(0..) {
            node_of[id as usize] = NodeId(node);
        }

        let mut parsed = Vec::new();
        for i in 1..=links {
            parsed.push(self.link(i, links, &node_of)?);
        }
        self.check_no_further_link(links, nodes)?;

        let renumbered = host_ids.iter().zip(0..).any(|(&id, host)| id != host);
        let host_names = renumbered.then(|| host_ids.iter().map(|id| format!("host{id}")).collect());
        let switch = |&id: &u32| {
            let kind = kind_of[id as usize].expect("it is a switch");
            Switch { name: format!("{kind}{id}"), tier: 0, group: None }
        };
        let switches: Vec<_> = switch_ids.iter().map(switch).collect();
        let no_tiers = vec![None; switches.len()];
        let name = format!("imported topology of {hosts} hosts");
        ParsedTopology { file: self.file, name, hosts, host_names, switches, tiers: no_tiers, links: parsed }
            .finish()
    }

    /// Reads the kind of switch of each node. A list of ids may extend over several lines; its last id must end a
    /// line.
    fn switch_ids<'k>(
        &mut self,
        nodes: u32,
        kinds: &[(&'k str, u32)],
    ) -> Result<Vec<Option<&'k str>>, TopoError> {
        let mut kind_of: Vec<Option<&str>> = vec![None; nodes as usize];
        let announced: u32 = kinds.iter().map(|&(_, count)| count).sum();
        let mut wanted = kinds.iter().flat_map(|&(kind, count)| (1..=count).map(move |i| (kind, i, count)));
        let mut next = wanted.next();
        let mut listed = 0u32;
        while let Some((kind, i, count)) = next {
            let what = format!("the id of {kind} {i} of {count}");
            if self.peek().is_some_and(is_link) {
                let what =
                    format!("{listed} ids of switches, and then a link; the header announces {announced}");
                let line = if listed > 0 { self.line } else { self.line.saturating_add(1) };
                return Err(TopoError::File {
                    at: Location { file: self.file.to_owned(), line, column: 0 },
                    what,
                });
            }
            let line = self.expect(&what)?.split((announced - listed) as usize + 1);
            for column in 0..line.words.len() {
                let Some((kind, i, count)) = next else {
                    let what =
                        format!("here is a further id of a switch, but the header announces {announced}");
                    return Err(line.refuse(column, what));
                };
                let what = format!("the id of {kind} {i} of {count}");
                let id = line.number(column, &what, 0, u64::from(nodes - 1))? as usize;
                if kind_of[id].replace(kind).is_some() {
                    return Err(line.refuse(column, format!("switch {id} is listed twice")));
                }
                listed += 1;
                next = wanted.next();
            }
        }
        Ok(kind_of)
    }

    fn link(&mut self, i: u64, links: u64, node_of: &[NodeId]) -> Result<Link, TopoError> {
        let line = self.expect(&format!("link {i} of {links}"))?;
        line.has_columns(&format!("link {i} of {links}"), &["src", "dst", "rate", "delay", "error_rate"])?;
        let field = |name: &str| format!("the {name} of link {i} of {links}");
        let last = node_of.len() as u64 - 1;
        let src = line.number(0, &field("first end"), 0, last)?;
        let dst = line.number(1, &field("second end"), 0, last)?;
        if src == dst {
            return Err(line.refuse(1, format!("link {i} of {links} connects node {src} to itself")));
        }
        let rate = parse_rate(line.words[2]).map_err(|why| line.refuse_value(2, &field("rate"), &why))?;
        let delay: Duration =
            line.words[3].parse().map_err(|why| line.refuse_value(3, &field("delay"), &format!("{why}")))?;
        let error_rate = line.words[4].parse().ok().filter(|p| (0.0..=1.0).contains(p)).ok_or_else(|| {
            let (what, shown) = (field("error rate"), shorten(line.words[4]));
            line.refuse(4, format!("{what} is \"{shown}\"; expected a number from 0 to 1"))
        })?;
        Ok(Link { a: node_of[src as usize], b: node_of[dst as usize], rate, delay, error_rate })
    }

    /// Checks the text after the links. A further link between existing nodes means that the count is wrong. Links
    /// between other nodes are left over from a larger network (HPCC's own star has them) and are ignored, like other
    /// text.
    fn check_no_further_link(&mut self, links: u64, nodes: u32) -> Result<(), TopoError> {
        let Some(line) = self.next() else { return Ok(()) };
        let is_node = |word: &&str| word.parse::<u32>().is_ok_and(|id| id < nodes);
        if is_link(line.content) && line.words[..2].iter().all(is_node) {
            let what = format!("here is a further link, but the header announces {links}");
            return Err(line.refuse(0, what));
        }
        Ok(())
    }
}

impl Line<'_> {
    /// Splits the line into at most `most` words.
    fn split(mut self, most: usize) -> Self {
        self.words = self.content.split_whitespace().take(most).collect();
        self
    }

    pub(super) fn word(&self, column: usize) -> &str {
        self.words[column]
    }

    /// Returns an error unless the line has exactly these columns.
    pub(super) fn has_columns(&self, what: &str, columns: &[&str]) -> Result<(), TopoError> {
        let found = self.words.len();
        if found == columns.len() {
            return Ok(());
        }
        let found = if found == MAX_WORDS { format!("{found} or more") } else { found.to_string() };
        let expected =
            format!("{what} has {found} columns; expected {}: {}", columns.len(), columns.join(" "));
        Err(self.refuse(0, expected))
    }

    pub(super) fn refuse(&self, column: usize, what: String) -> TopoError {
        let offset = self.words[column].as_ptr() as usize - self.content.as_ptr() as usize;
        let column = self.content[..offset].chars().count() + 1;
        let column = u32::try_from(column).unwrap_or(u32::MAX);
        TopoError::File { at: Location { file: self.file.to_owned(), line: self.number, column }, what }
    }

    fn refuse_value(&self, column: usize, what: &str, why: &str) -> TopoError {
        self.refuse(column, format!("{what} is \"{}\": {why}", shorten(self.words[column])))
    }

    pub(super) fn number(&self, column: usize, what: &str, least: u64, most: u64) -> Result<u64, TopoError> {
        let word = self.words[column];
        let value = word.parse().ok().filter(|value| (least..=most).contains(value));
        value.ok_or_else(|| {
            let allowed = match least == most {
                true => format!("expected {least}"),
                false => format!("expected a number from {least} to {most}"),
            };
            self.refuse(column, format!("{what} is \"{}\"; {allowed}", shorten(word)))
        })
    }

    pub(super) fn node_count(&self, column: usize) -> Result<u32, TopoError> {
        Ok(self.number(column, "the number of nodes", 1, u64::from(MAX_NODES))? as u32)
    }
    pub(super) fn link_count(&self, column: usize) -> Result<u64, TopoError> {
        self.number(column, "the number of links", 1, MAX_LINKS as u64)
    }
}

/// Returns true if a line has the form of a link: its third column is a rate.
fn is_link(content: &str) -> bool {
    content.split_whitespace().nth(2).is_some_and(|word| parse_rate(word).is_ok())
}

/// Parses a rate as ns-3 writes it: "100Gbps" or "100Gb/s". An upper-case B stands for bytes.
fn parse_rate(word: &str) -> Result<Rate, String> {
    let bytes = word.contains('B');
    let rate: Rate = word.replace("/s", "ps").replace('B', "b").parse().map_err(|why| format!("{why}"))?;
    let bps = rate.as_bps().checked_mul(if bytes { 8 } else { 1 }).ok_or("out of range")?;
    if bps == 0 {
        return Err("rates must be above 0".into());
    }
    Ok(Rate::from_bps(bps))
}

/// Shortens a word for an error text.
fn shorten(word: &str) -> &str {
    const LONGEST: usize = 40;
    word.char_indices().nth(LONGEST).map_or(word, |(end, _)| &word[..end])
}
