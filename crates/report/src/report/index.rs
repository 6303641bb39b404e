//! Index by name of the nodes and links of a large fabric, whose picture has only blocks and cells.

use pathweave_records::{RunResult, ns};
use serde::Serialize;

use super::rounded;
use crate::blocks::Blocks;

/// The index, one list a figure, in the order of the run's nodes and links. Of too many links it has those with most
/// drops, and the busiest.
#[derive(Debug, Default, Serialize)]
pub(super) struct Index {
    /// Names of nodes in order, run-length encoded as a text with consecutive numbers: `("host", 0, 3)` is host0,
    /// host1, host2. An entry without a number is one name. GPUs of servers are left out, for their names follow from
    /// their numbers.
    names: Vec<(String, Option<u32>, u32)>,
    /// Block of each node in the picture.
    block: Vec<u32>,
    /// Number of links of the network.
    of_links: usize,
    from: Vec<u32>,
    to: Vec<u32>,
    /// Cell of each link.
    row: Vec<u32>,
    rate_bps: Vec<u64>,
    utilisation: Vec<f64>,
    tx_bytes: Vec<u64>,
    max_queue_bytes: Vec<u64>,
    dropped: Vec<u64>,
    marked: Vec<u64>,
    pauses: Vec<u64>,
    paused_ns: Vec<f64>,
}

/// Nodes in an index for each link in it, at most.
const NODES_FOR_LINK: usize = 10;

/// Builds the index of a run whose links are in the cells `of_link`, of at most `most` links. Returns `None` if there are
/// too many nodes.
pub(super) fn index(run: &RunResult, blocks: &Blocks, of_link: &[u32], most: usize) -> Option<Index> {
    if run.nodes.len() > NODES_FOR_LINK * most {
        return None;
    }
    let gpus = run.info.servers.as_ref().map_or(0, |servers| servers.servers * servers.gpus) as usize;
    let mut index = Index {
        names: runs(run.nodes.iter().skip(gpus).map(|node| node.name.as_str())),
        block: blocks.of_node.clone(),
        of_links: run.links.len(),
        ..Index::default()
    };
    for number in notable(run, most) {
        let link = &run.links[number];
        index.row.push(of_link[number]);
        index.from.push(link.from_node);
        index.to.push(link.to_node);
        index.rate_bps.push(link.rate_bps);
        index.utilisation.push(rounded(link.utilisation(run.info.simulated_ps)));
        index.tx_bytes.push(link.tx_bytes);
        index.max_queue_bytes.push(link.max_queue_bytes);
        index.dropped.push(link.dropped_packets);
        index.marked.push(link.ecn_marked_packets);
        index.pauses.push(link.pfc_pauses);
        index.paused_ns.push(rounded(ns(link.paused_ps)));
    }
    Some(index)
}

/// Returns the numbers of at most `most` links in ascending order: all, or those with most drops, then the busiest.
fn notable(run: &RunResult, most: usize) -> Vec<usize> {
    let mut links: Vec<usize> = (0..run.links.len()).collect();
    if links.len() > most {
        let rank = |link: &usize| {
            let link = &run.links[*link];
            std::cmp::Reverse((link.dropped_packets, link.busy_ps, link.tx_bytes))
        };
        links.select_nth_unstable_by_key(most, |link| (rank(link), *link));
        links.truncate(most);
        links.sort_unstable();
    }
    links
}

/// Encodes names with consecutive numbers.
fn runs<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(String, Option<u32>, u32)> {
    let mut out: Vec<(String, Option<u32>, u32)> = Vec::new();
    for name in names {
        let text = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &name[text.len()..];
        // A number with leading zeros could not be restored.
        let number = digits.parse::<u32>().ok().filter(|number| number.to_string() == digits);
        match (out.last_mut(), number) {
            (Some((last, Some(first), count)), Some(number))
                if last == text && first.checked_add(*count) == Some(number) =>
            {
                *count += 1;
            }
            (_, Some(number)) => out.push((text.to_owned(), Some(number), 1)),
            (_, None) => out.push((name.to_owned(), None, 1)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The busiest two of three links are kept, after those with drops.
    #[test]
    fn notable_links_come_first() {
        let link = |link, dropped_packets, busy_ps| pathweave_records::LinkTotals {
            link,
            dropped_packets,
            busy_ps,
            ..Default::default()
        };
        let run =
            RunResult { links: vec![link(0, 0, 9), link(1, 0, 5), link(2, 1, 0)], ..Default::default() };
        assert_eq!(notable(&run, 2), [0, 2]);
        assert_eq!(notable(&run, 3), [0, 1, 2]);
    }

    #[test]
    fn names_that_count_up_are_one_entry_and_come_back() {
        let names = [
            "host0",
            "host1",
            "host2",
            "agg0.0",
            "agg0.1",
            "agg1.0",
            "tor07",
            "tor08",
            "core",
            "core0",
            "4294967296",
        ];
        let found = runs(names.into_iter());
        let back: Vec<String> = found
            .iter()
            .flat_map(|(text, first, count)| {
                (0..*count).map(move |i| first.map_or(text.clone(), |first| format!("{text}{}", first + i)))
            })
            .collect();
        assert_eq!(back, names);
        assert_eq!(found[0], ("host".to_owned(), Some(0), 3));
        assert_eq!(found.len(), 8);
    }
}
