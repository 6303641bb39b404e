//! The topology, coloured by what its links carry more or less under one scheme than under another.

use std::collections::BTreeMap;

use crate::human::Quantity;
use crate::records::{LinkTotals, NodeKind, RunResult};
use crate::template::escape;

const WIDTH: f64 = 440.0;
const LEFT: f64 = 8.0;
const ROW: f64 = 104.0;
const TOP: f64 = 24.0;
/// Halves of links drawn at most; those that differ most are.
const MOST: usize = 3_000;
/// Links that say in a tooltip what they carry.
const EXPLAINED: usize = 60;

/// The picture; nothing where the two runs are not of one topology, or no link differs.
pub(super) fn svg(base: &RunResult, other: &RunResult) -> Option<String> {
    if base.links.len() != other.links.len() || base.nodes != other.nodes {
        return None;
    }
    let drawn = drawn(base);
    let differences = differences(base, other, &drawn);
    let scale = differences.first().map(|d| d.1.unsigned_abs()).filter(|&most| most > 0)?;
    let places = places(base, &drawn);
    let height = TOP + places.rows.saturating_sub(1) as f64 * ROW + 14.0;
    let names = (&base.info.name, &other.info.name);
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"What links carry under {} and under {}\">",
        escape(names.0),
        escape(names.1)
    );
    let shown = differences.iter().take(MOST).enumerate().rev();
    // What differs most on top.
    out.extend(shown.map(|(rank, &(link, difference))| {
        let strength = (difference.unsigned_abs() as f64 / scale as f64).sqrt();
        let class = if difference > 0 { "more" } else { "less" };
        let words = (rank < EXPLAINED).then(|| {
            let carried = |run: &RunResult| Quantity::Bytes.show(run.links[link].tx_bytes as f64);
            format!(
                "{}: {} under {}, {} under {}",
                ends(base, link),
                carried(base),
                names.0,
                carried(other),
                names.1
            )
        });
        places.line(&base.links[link], class, strength, words.as_deref())
    }));
    out += &places.nodes();
    let most = Quantity::Bytes.show(scale as f64);
    Some(out + &format!("</svg>{}", key(names.1, names.0, &most)))
}

/// How busy the links of one run were; nothing where it has none.
pub(super) fn of_one(run: &RunResult) -> Option<String> {
    let drawn = drawn(run);
    let share = |link: usize| run.links[link].utilisation(run.info.simulated_ps);
    let mut busiest = drawn.clone();
    busiest.sort_by(|&a, &b| share(b).total_cmp(&share(a)));
    let most = share(*busiest.first()?);
    let places = places(run, &drawn);
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"How busy the links were\">",
        TOP + places.rows.saturating_sub(1) as f64 * ROW + 14.0
    );
    out.extend(busiest.iter().take(MOST).enumerate().rev().map(|(rank, &link)| {
        let percent = Quantity::Percent.show(share(link));
        let words = (rank < EXPLAINED).then(|| format!("{}: busy {percent} of the time", ends(run, link)));
        places.line(&run.links[link], "busy", share(link).clamp(0.0, 1.0).powi(2), words.as_deref())
    }));
    out += &places.nodes();
    let busiest = format!("{} was busy {} of the time", ends(run, busiest[0]), Quantity::Percent.show(most));
    Some(out + &format!("</svg><p class=\"mapkey\">0 %<i class=\"busy\"></i>100 %; {}</p>", escape(&busiest)))
}

fn ends(run: &RunResult, link: usize) -> String {
    let name = |node: u32| run.nodes.get(node as usize).map_or("?", |node| node.name.as_str());
    format!("{} to {}", name(run.links[link].from_node), name(run.links[link].to_node))
}

/// Links between switches; a fabric of one switch has nothing else than links of hosts.
fn drawn(run: &RunResult) -> Vec<usize> {
    let between_switches = |link: &LinkTotals| {
        [link.from_node, link.to_node].iter().all(|&n| run.nodes[n as usize].kind != NodeKind::Host)
    };
    let only_hosts = !run.links.iter().any(between_switches);
    (0..run.links.len()).filter(|&l| only_hosts || between_switches(&run.links[l])).collect()
}

fn key(name: &str, base: &str, most: &str) -> String {
    format!(
        "<p class=\"mapkey\"><span class=\"less\">{most} less</span><i></i><span class=\"more\">{most} more</span> \
         on a link under {} than under {}</p>",
        escape(name),
        escape(base)
    )
}

/// Bytes that each of `drawn` carries more under `other`, those that differ most first.
fn differences(base: &RunResult, other: &RunResult, drawn: &[usize]) -> Vec<(usize, i64)> {
    let carried = |run: &RunResult, link: usize| i64::try_from(run.links[link].tx_bytes).unwrap_or(i64::MAX);
    let mut all: Vec<(usize, i64)> =
        drawn.iter().map(|&link| (link, carried(other, link).saturating_sub(carried(base, link)))).collect();
    all.sort_by_key(|&(link, difference)| (std::cmp::Reverse(difference.unsigned_abs()), link));
    all
}

struct Places {
    at: BTreeMap<u32, (f64, f64)>,
    rows: usize,
    radius: f64,
    /// Texts with their heights.
    names: Vec<(String, f64)>,
}

impl Places {
    /// The half of a link beside the node that it leaves; `strength` is 0 to 1.
    fn line(&self, link: &LinkTotals, class: &str, strength: f64, words: Option<&str>) -> String {
        let (Some(from), Some(to)) = (self.at.get(&link.from_node), self.at.get(&link.to_node)) else {
            return String::new();
        };
        // Links within a row bow out below it.
        let bow = if from.1 == to.1 { (from.0 - to.0).abs().min(160.0) / 4.0 } else { 0.0 };
        let middle = ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0 + bow);
        let title = words.map_or(String::new(), |words| format!("<title>{}</title>", escape(words)));
        format!(
            "<path class=\"{class}\" style=\"stroke-opacity:{:.2};stroke-width:{:.1}\" d=\"M{:.1} {:.1}L{:.1} {:.1}\">{title}</path>",
            0.08 + 0.92 * strength,
            0.6 + 2.2 * strength,
            from.0,
            from.1,
            middle.0,
            middle.1
        )
    }

    /// The nodes and the names of the tiers.
    fn nodes(&self) -> String {
        let circle = |(x, y): &(f64, f64)| {
            format!("<circle class=\"node\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\"/>", self.radius)
        };
        let name = |(name, y): &(String, f64)| format!("<text x=\"{LEFT}\" y=\"{y:.1}\">{name}</text>");
        self.at.values().map(circle).chain(self.names.iter().map(name)).collect()
    }
}

/// The ends of the links in rows, the highest tier on top.
fn places(run: &RunResult, drawn: &[usize]) -> Places {
    let mut tiers: BTreeMap<std::cmp::Reverse<u8>, Vec<u32>> = BTreeMap::new();
    let mut ends: Vec<u32> =
        drawn.iter().flat_map(|&l| [run.links[l].from_node, run.links[l].to_node]).collect();
    ends.sort_unstable();
    ends.dedup();
    for node in ends {
        tiers.entry(std::cmp::Reverse(run.nodes[node as usize].tier)).or_default().push(node);
    }
    let widest = tiers.values().map(Vec::len).max().unwrap_or(1) as f64;
    let mut places = Places {
        at: BTreeMap::new(),
        rows: tiers.len(),
        radius: (130.0 / widest).clamp(1.2, 5.0),
        names: vec![],
    };
    for (row, (tier, members)) in tiers.into_iter().enumerate() {
        let (y, room) = (TOP + row as f64 * ROW, (WIDTH - 2.0 * LEFT) / members.len() as f64);
        // As reports name them.
        places.names.push((format!("tier {} ({})", tier.0, members.len()), y - 10.0));
        for (i, node) in members.into_iter().enumerate() {
            places.at.insert(node, (LEFT + (i as f64 + 0.5) * room, y));
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::NodeInfo;

    fn run(name: &str, bytes: [u64; 3]) -> RunResult {
        let node = |(node, kind, tier): (u32, NodeKind, u8)| NodeInfo {
            node,
            name: format!("n{node}"),
            kind,
            tier,
            pod: None,
        };
        let nodes = [(0, NodeKind::Host, 0), (1, NodeKind::Switch, 1), (2, NodeKind::Switch, 2)];
        let ends = [(0, 1), (1, 2), (2, 1)];
        let link = |(i, (from_node, to_node)): (usize, (u32, u32))| LinkTotals {
            link: i as u32,
            from_node,
            to_node,
            tx_bytes: bytes[i],
            ..LinkTotals::default()
        };
        let mut run = RunResult {
            nodes: nodes.map(node).to_vec(),
            links: ends.into_iter().enumerate().map(link).collect(),
            ..RunResult::default()
        };
        run.info.name = name.to_owned();
        run
    }

    #[test]
    fn links_between_switches_show_what_they_carry_more_or_less() {
        let (a, b) = (run("a", [9_000, 1_000, 5_000]), run("<b>", [1_000, 3_000, 1_000]));
        assert_eq!(differences(&a, &b, &[1, 2]), [(2, -4_000), (1, 2_000)]);
        let svg = svg(&a, &b).unwrap();
        assert_eq!(svg.matches("<path").count(), 2, "the link of the host is left out");
        assert!(svg.contains("<title>n2 to n1: 5.000 KB under a, 1.000 KB under &lt;b&gt;</title>"), "{svg}");
        assert!(svg.contains("4.000 KB less") && svg.contains("class=\"more\"") && !svg.contains("<b>"));
    }

    #[test]
    fn links_of_one_run_show_how_busy_they_were() {
        let mut run = run("a", [9_000, 1_000, 5_000]);
        run.info.simulated_ps = 1_000;
        run.links[1].busy_ps = 250;
        run.links[2].busy_ps = 900;
        let svg = of_one(&run).unwrap();
        assert_eq!(svg.matches("<path class=\"busy\"").count(), 2);
        assert!(svg.contains("n2 to n1 was busy 90.00 % of the time"), "{svg}");
        assert!(
            svg.find("n1 to n2: busy 25").unwrap() < svg.find("n2 to n1: busy 90").unwrap(),
            "busiest on top"
        );
        assert!(of_one(&RunResult::default()).is_none());
    }

    #[test]
    fn there_is_no_picture_of_no_difference_nor_of_two_topologies() {
        let a = run("a", [1, 2, 3]);
        assert!(svg(&a, &run("b", [7, 2, 3])).is_none());
        let mut other = run("b", [1, 9, 3]);
        other.nodes[1].name = "else".to_owned();
        assert!(svg(&a, &other).is_none());
    }
}
