//! Import of the `TOPO.txt` of LAPS's simulator.
//!
//! The first line has the numbers of switches and of servers. Each further line is a link: its number from 0, its two
//! nodes, its rate in Gb/s and its delay in microseconds. Nodes `0..switches` are switches; the nodes after them are
//! servers, which are hosts here. Names keep the ids of the file: "switch8", "host80".

use std::path::{Path, PathBuf};

use pathweave_units::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Build;
use super::word_lines::{Line, LineReader};
use crate::error::TopoError;
use crate::graph::{Link, MAX_LINKS, MAX_NODES, NodeId, Switch, Topology};
use crate::import::ParsedTopology;
use crate::read::read_text;

/// The `TOPO.txt` of LAPS's simulator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LapsTopology {
    /// The file, relative to the scenario file.
    pub path: PathBuf,
}

impl Build for LapsTopology {
    fn build(&self, base_dir: &Path) -> Result<Topology, TopoError> {
        let (file, text) = read_text(base_dir, &self.path)?;
        parse_laps_topology(&file, &text)
    }

    fn file(&mut self) -> Option<&mut PathBuf> {
        Some(&mut self.path)
    }

    fn has_node_ids(&self) -> bool {
        true
    }
}

/// Parses the text of a `TOPO.txt`. `file` is its name in errors.
pub fn parse_laps_topology(file: &str, text: &str) -> Result<Topology, TopoError> {
    let mut lines = LineReader::new(file, text);
    let header = lines.expect("a header with the numbers of switches and servers")?;
    header.has_columns("the header", &["switches", "servers"])?;
    let most = u64::from(MAX_NODES);
    let switches = header.number(0, "the number of switches", 0, most - 1)? as u32;
    let hosts = header.number(1, "the number of servers", 1, most - u64::from(switches))? as u32;
    // Converts ids of the file to node ids, in which hosts come first.
    let node =
        |id: u64| NodeId(if id < u64::from(switches) { hosts + id as u32 } else { id as u32 - switches });
    let last = u64::from(switches) + u64::from(hosts) - 1;
    let mut links = Vec::new();
    while let Some(line) = lines.next() {
        let number = links.len();
        let what = format!("link {number}");
        line.has_columns(&what, &["link", "node_a", "node_b", "rate_gbps", "delay_us"])?;
        if number == MAX_LINKS {
            return Err(line.refuse(0, format!("more than {MAX_LINKS} links")));
        }
        if line.number(0, "the number of the link", 0, MAX_LINKS as u64)? != number as u64 {
            let found = line.word(0);
            return Err(line.refuse(
                0,
                format!("the number of the link is {found}; expected {number}, one after the other"),
            ));
        }
        let a = line.number(1, &format!("the first node of {what}"), 0, last)?;
        let b = line.number(2, &format!("the second node of {what}"), 0, last)?;
        if a == b {
            return Err(line.refuse(2, format!("{what} connects node {a} to itself")));
        }
        let rate: Rate = parse_with_unit(&line, 3, &format!("the rate of {what}"), "Gbps")?;
        if rate == Rate::ZERO {
            return Err(line.refuse(3, format!("the rate of {what} is 0; rates must be above 0")));
        }
        let delay: Duration = parse_with_unit(&line, 4, &format!("the delay of {what}"), "us")?;
        links.push(Link { a: node(a), b: node(b), rate, delay, error_rate: 0.0 });
    }
    if links.is_empty() {
        return Err(lines.refuse_end("the file ends where link 0 is expected".to_owned()));
    }
    let switch = |id: u32| Switch { name: format!("switch{id}"), tier: 0, group: None };
    ParsedTopology {
        file,
        name: format!("imported topology of {hosts} hosts"),
        hosts,
        host_names: Some((switches..switches + hosts).map(|id| format!("host{id}")).collect()),
        switches: (0..switches).map(switch).collect(),
        tiers: vec![None; switches as usize],
        links,
    }
    .finish()
}

/// Parses a number whose unit the format leaves out.
fn parse_with_unit<T: std::str::FromStr>(
    line: &Line<'_>,
    column: usize,
    what: &str,
    unit: &str,
) -> Result<T, TopoError> {
    let word = line.word(column);
    let is_plain = word.len() <= 20 && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value = if is_plain { format!("{word}{unit}").parse().ok() } else { None };
    value.ok_or_else(|| {
        let shown: String = word.chars().take(40).collect();
        line.refuse(column, format!("{what} is \"{shown}\"; expected a number of {unit}, without the unit"))
    })
}
