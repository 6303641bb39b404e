//! Drawing of the topology, coloured by the difference in bytes that links carry under two schemes.

use pathweave_records::{LinkTotals, NodeInfo, NodeKind, Quantity, RunResult};

use super::places::{End, Line, Places};
use crate::blocks::Blocks;
use crate::saved::csv_line;
use crate::template::escape;

/// Largest number of links with a line each. With more links, all links between two blocks are one line.
const MOST: usize = 1_500;
/// Part of the bytes of the busiest link from which a difference has the full colour: one in as many.
const FAINT: u64 = 10;
/// Number of lines with a tooltip.
const EXPLAINED: usize = 60;

/// Draws the difference. `None` if the two runs have different topologies, or if no link differs.
pub(super) fn svg(base: &RunResult, other: &RunResult) -> Option<String> {
    if base.links.len() != other.links.len() || base.nodes != other.nodes {
        return None;
    }
    let sketch = Sketch::of(base);
    let differences = differences(base, other, &sketch);
    let largest = differences.first().map(|d| d.1.unsigned_abs()).filter(|&most| most > 0)?;
    // Differences that are small beside what links carry are pale.
    let carried_most = [base, other].into_iter().flat_map(|run| &run.links).map(|link| link.tx_bytes).max();
    let scale = largest.max(carried_most.unwrap_or(0) / FAINT);
    let places = sketch.places();
    let names = (&base.info.name, &other.info.name);
    let mut out = places.opened(&format!("What links carry under {} and under {}", names.0, names.1));
    // The largest differences are drawn on top.
    out.extend(differences.iter().enumerate().rev().map(|(rank, &(line, difference))| {
        let strength = (difference.unsigned_abs() as f64 / scale as f64).sqrt();
        let class = if difference > 0 { "more" } else { "less" };
        let line = &sketch.lines[line];
        let words = (rank < EXPLAINED).then(|| {
            let carried =
                |run: &RunResult| sketch.format_value(line, Quantity::Bytes, |link| carried(run, link));
            format!(
                "{}: {} under {}, {} under {}",
                sketch.ends(line),
                carried(base),
                names.0,
                carried(other),
                names.1
            )
        });
        places.line(line, class, strength, words.as_deref())
    }));
    out += &places.nodes();
    let key = key(&differences, scale, (names.1, names.0));
    Some(out + &format!("</svg>{key}{}", sketch.note()))
}

/// Returns what each link between switches carries in two runs as CSV.
pub(super) fn csv(base: &RunResult, other: &RunResult) -> String {
    let sent = |run: &RunResult| format!("sent {} (bytes)", run.info.name);
    let name = |node: u32| base.nodes.get(node as usize).map_or("?", |node| node.name.as_str());
    let line = |link: usize| {
        let LinkTotals { from_node, to_node, .. } = base.links[link];
        let bytes = [base, other].map(|run| run.links[link].tx_bytes.to_string());
        csv_line([name(from_node), name(to_node), &bytes[0], &bytes[1]])
    };
    csv_line(["from", "to", &sent(base), &sent(other)])
        + &drawn(base).into_iter().map(line).collect::<String>()
}

/// Draws the utilisation of the links of one run, or returns `None` if it has no links.
pub(super) fn of_one(run: &RunResult) -> Option<String> {
    let sketch = Sketch::of(run);
    let share = |link: usize| run.links[link].utilisation(run.info.simulated_ps);
    let fullest = |line: &Line| line.links.iter().copied().max_by(|&a, &b| share(a).total_cmp(&share(b)));
    let mut busiest: Vec<(&Line, usize)> =
        sketch.lines.iter().filter_map(|line| Some((line, fullest(line)?))).collect();
    busiest.sort_by(|a, b| share(b.1).total_cmp(&share(a.1)));
    let most = busiest.first()?.1;
    let places = sketch.places();
    // Idle links are seen in a small fabric; they would hide the busy ones of a large one.
    let faintest = (16.0 / busiest.len() as f64).min(0.25);
    let mut out = places.opened("How busy the links were");
    out.extend(busiest.iter().enumerate().rev().map(|(rank, &(line, link))| {
        let words = (rank < EXPLAINED).then(|| {
            format!(
                "{}: busy {} of the time",
                sketch.ends(line),
                sketch.format_value(line, Quantity::Percent, share)
            )
        });
        let strength = faintest + (1.0 - faintest) * share(link).clamp(0.0, 1.0);
        places.line(line, "busy", strength, words.as_deref())
    }));
    out += &places.nodes();
    let name = |node: u32| run.nodes.get(node as usize).map_or("?", |node| node.name.as_str());
    let busiest = format!(
        "{} to {} was busy {} of the time",
        name(run.links[most].from_node),
        name(run.links[most].to_node),
        Quantity::Percent.format(share(most))
    );
    Some(
        out + &format!(
            "</svg><p class=\"mapkey\">0 %<i class=\"busy\"></i>100 %; {}</p>{}",
            escape(&busiest),
            sketch.note()
        ),
    )
}

fn carried(run: &RunResult, link: usize) -> f64 {
    run.links[link].tx_bytes as f64
}

/// Ends and lines to draw. In a large fabric these are blocks, and all links from one block to another.
struct Sketch {
    ends: Vec<End>,
    lines: Vec<Line>,
    /// Number of links behind the lines, if ends are blocks.
    links: Option<usize>,
}

impl Sketch {
    /// Creates the sketch of the links between switches. A fabric of one switch has only links of hosts.
    fn of(run: &RunResult) -> Sketch {
        let drawn = drawn(run);
        if drawn.len() <= MOST {
            let line = |&link: &usize| Line {
                from: run.links[link].from_node,
                to: run.links[link].to_node,
                links: vec![link],
            };
            let end = |node: &NodeInfo| End { name: node.name.clone(), kind: node.kind, tier: node.tier };
            let ends = run.nodes.iter().map(end).collect();
            return Sketch { ends, lines: drawn.iter().map(line).collect(), links: None };
        }
        let blocks = Blocks::from_run(run);
        let is_drawn = |links: &[usize]| drawn.binary_search(&links[0]).is_ok();
        let pairs = blocks.pairs(run).into_iter().filter(|(_, links)| is_drawn(links));
        Sketch {
            ends: blocks
                .blocks
                .into_iter()
                .map(|block| End { name: block.name, kind: block.kind, tier: block.tier })
                .collect(),
            lines: pairs.map(|((from, to), links)| Line { from, to, links }).collect(),
            links: Some(drawn.len()),
        }
    }

    fn places(&self) -> Places {
        let what = if self.links.is_some() { " blocks" } else { "" };
        Places::of(&self.ends, &self.lines, what)
    }

    fn ends(&self, line: &Line) -> String {
        let name = |end: u32| self.ends.get(end as usize).map_or("?", |end| end.name.as_str());
        match line.links.len() {
            1 => format!("{} to {}", name(line.from), name(line.to)),
            n => format!("{} to {}, {n} links", name(line.from), name(line.to)),
        }
    }

    /// Formats the value of one link, or the mean and the largest of several.
    fn format_value(&self, line: &Line, quantity: Quantity, value: impl Fn(usize) -> f64) -> String {
        let most = line.links.iter().map(|&link| value(link)).fold(0.0, f64::max);
        if line.links.len() == 1 {
            return quantity.format(most);
        }
        let mean = line.links.iter().map(|&link| value(link)).sum::<f64>() / line.links.len() as f64;
        format!("mean {}, busiest {}", quantity.format(mean), quantity.format(most))
    }

    fn note(&self) -> String {
        self.links.map_or(String::new(), |links| {
            format!(
                "<p class=\"mapkey\">Aggregated: a line is all links between two groups of switches ({} links in {}), coloured by \
                 the busiest of them.</p>",
                Quantity::Count.format(links as f64),
                self.lines.len()
            )
        })
    }
}

/// Returns the links between switches in ascending order. A fabric of one switch has only links of hosts.
fn drawn(run: &RunResult) -> Vec<usize> {
    let between_switches = |link: &LinkTotals| {
        [link.from_node, link.to_node].iter().all(|&n| run.nodes[n as usize].kind != NodeKind::Host)
    };
    let only_hosts = !run.links.iter().any(between_switches);
    (0..run.links.len()).filter(|&l| only_hosts || between_switches(&run.links[l])).collect()
}

/// Describes the colours: the largest differences in either direction, and the one from which a line has the full colour.
fn key(differences: &[(usize, i64)], scale: u64, (name, base): (&str, &str)) -> String {
    let bytes = |bytes: u64| Quantity::Bytes.format(bytes as f64);
    let largest = |words: &str, of: fn(i64) -> bool| {
        let most = differences.iter().map(|d| d.1).find(|&difference| of(difference));
        most.map(|most| format!("{} {words}", bytes(most.unsigned_abs())))
    };
    let less = largest("less", |difference| difference < 0);
    let most: Vec<String> = less.into_iter().chain(largest("more", |difference| difference > 0)).collect();
    format!(
        "<p class=\"mapkey\"><span class=\"less\">less</span><i></i><span class=\"more\">more</span> on a link under {} than \
         under {}: at most {}; full colour from {} on</p>",
        escape(name),
        escape(base),
        most.join(" and "),
        bytes(scale)
    )
}

/// Returns for each line the additional bytes of its busiest link under `other`. The lines that differ most come
/// first.
fn differences(base: &RunResult, other: &RunResult, sketch: &Sketch) -> Vec<(usize, i64)> {
    let most = |run: &RunResult, line: &Line| {
        let most = line.links.iter().map(|&link| run.links[link].tx_bytes).max().unwrap_or(0);
        i64::try_from(most).unwrap_or(i64::MAX)
    };
    let difference = |line: &Line| most(other, line).saturating_sub(most(base, line));
    let mut all: Vec<(usize, i64)> = sketch.lines.iter().map(difference).enumerate().collect();
    all.sort_by_key(|&(line, difference)| (std::cmp::Reverse(difference.unsigned_abs()), line));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_numbers_of_a_map_are_bytes_of_links_between_switches() {
        let (a, b) = (run("a", [9_000, 1_000, 5_000]), run("b", [1_000, 3_000, 1_000]));
        assert_eq!(csv(&a, &b), "from,to,sent a (bytes),sent b (bytes)\nn1,n2,1000,3000\nn2,n1,5000,1000\n");
    }

    #[test]
    fn links_between_switches_show_what_they_carry_more_or_less() {
        let (a, b) = (run("a", [9_000, 1_000, 5_000]), run("<b>", [1_000, 3_000, 1_000]));
        assert_eq!(differences(&a, &b, &Sketch::of(&a)), [(1, -4_000), (0, 2_000)]);
        let svg = svg(&a, &b).unwrap();
        assert_eq!(svg.matches("<path").count(), 2, "the link of the host is left out");
        assert!(svg.contains("<title>n2 to n1: 5.000 KB under a, 1.000 KB under &lt;b&gt;</title>"), "{svg}");
        // 4 KB of 5 KB less on one link, 2 KB more on the other.
        let key = "on a link under &lt;b&gt; than under a: at most 4.000 KB less and 2.000 KB more; full colour from 4.000 KB";
        assert!(svg.contains(key) && svg.contains("class=\"more\"") && !svg.contains("<b>"), "{svg}");
    }

    /// 4 KB more on a link that carries 9 MB are hardly seen.
    #[test]
    fn differences_without_weight_are_pale() {
        let (a, b) = (run("a", [9_000_000, 9_000_000, 0]), run("b", [9_000_000, 9_000_000, 4_000]));
        let svg = svg(&a, &b).unwrap();
        let opacity =
            |svg: &str| svg.split("class=\"more\" style=\"stroke-opacity:").nth(1).unwrap()[..4].to_owned();
        assert_eq!(opacity(&svg), "0.14", "{svg}");
        // A tenth of 9 MB has the full colour, which no link has.
        assert!(svg.contains("at most 4.000 KB more; full colour from 900.0 KB on"), "{svg}");
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
        // From .08 + .92 x .25 of an idle link to 1, in proportion to the use: .31 + .69 x .25, .31 + .69 x .9.
        for opacity in ["0.48", "0.93"] {
            assert!(
                svg.contains(&format!("class=\"busy\" style=\"stroke-opacity:{opacity}")),
                "{opacity}: {svg}"
            );
        }
        assert!(
            svg.find("n1 to n2: busy 25").unwrap() < svg.find("n2 to n1: busy 90").unwrap(),
            "busiest on top"
        );
        assert!(of_one(&RunResult::default()).is_none());
    }

    /// 60 switches below 30, each joined to each in both directions: 3,600 links.
    #[test]
    fn a_large_fabric_is_drawn_in_blocks_and_says_so() {
        let wide = |name: &str, hot: u64| {
            let mut run = RunResult::default();
            run.info.name = name.to_owned();
            run.info.simulated_ps = 1_000;
            for node in 0..90 {
                let (kind, tier) = (NodeKind::Switch, u8::from(node >= 60));
                run.nodes.push(NodeInfo { node, name: format!("s{node}"), kind, tier, pod: None });
            }
            for (from_node, to_node) in (0..60).flat_map(|a| (60..90).flat_map(move |b| [(a, b), (b, a)])) {
                let link = run.links.len() as u32;
                let tx_bytes = if (from_node, to_node) == (0, 60) { hot } else { 100 };
                run.links.push(LinkTotals {
                    link,
                    from_node,
                    to_node,
                    tx_bytes,
                    busy_ps: tx_bytes,
                    ..LinkTotals::default()
                });
            }
            run
        };
        let (a, b) = (wide("a", 900), wide("b", 100));
        let svg = svg(&a, &b).unwrap();
        // 16 blocks below 16, in both directions.
        assert_eq!(svg.matches("<path").count(), 2 * 16 * 16);
        assert!(svg.contains("Aggregated") && svg.contains("3,600 links in 512"), "{svg}");
        assert!(svg.contains("s0 to s2 to s60, 3 links: mean 366.7 B, busiest 900.0 B under a, mean 100.0 B, busiest 100.0 B under b"), "{svg}");
        assert!(svg.contains("800.0 B less"), "{svg}");
        assert!(of_one(&a).unwrap().contains("s0 to s60 was busy 90.00 % of the time"));
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
