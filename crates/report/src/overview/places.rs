//! Places of nodes in a drawing of a topology, and the lines between them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::f64::consts::TAU;

use pathweave_records::NodeKind;

use crate::template::escape;

const WIDTH: f64 = 440.0;
const LEFT: f64 = 8.0;
const ROW: f64 = 104.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 14.0;
/// Radius of a ring of nodes.
const RING: f64 = 130.0;
/// Depth of a loop, and of an arc for each square root of its width. Arcs of unlike widths leave a node at unlike angles.
const LOOP: f64 = 10.0;
const ARC: f64 = 2.0;

/// A node, or a block of nodes.
pub(super) struct End {
    pub(super) name: String,
    pub(super) kind: NodeKind,
    pub(super) tier: u8,
}

/// A line from one end to another.
pub(super) struct Line {
    pub(super) from: u32,
    pub(super) to: u32,
    /// Links that the line stands for.
    pub(super) links: Vec<usize>,
}

/// Places of the ends of lines. The ends of each tier have a row, the highest on top and hosts below. Ends of a single row
/// with lines to each other are on a ring.
pub(super) struct Places {
    at: BTreeMap<u32, (f64, f64)>,
    shape: Shape,
    height: f64,
    radius: f64,
    /// Texts with their vertical positions.
    names: Vec<(String, f64)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Rows,
    Ring,
}

impl Places {
    /// Places the ends of lines. `what` follows the number of ends in the name of each row.
    pub(super) fn of(ends: &[End], lines: &[Line], what: &str) -> Places {
        let mut rows: BTreeMap<(bool, Reverse<u8>), Vec<u32>> = BTreeMap::new();
        let mut shown: Vec<u32> = lines.iter().flat_map(|line| [line.from, line.to]).collect();
        shown.sort_unstable();
        shown.dedup();
        for end in shown {
            let of = ends.get(end as usize);
            let is_host = of.is_some_and(|end| end.kind == NodeKind::Host);
            rows.entry((is_host, Reverse(of.map_or(0, |end| end.tier)))).or_default().push(end);
        }
        let widest = rows.values().map(Vec::len).max().unwrap_or(1) as f64;
        let shape = if rows.len() == 1 && widest > 1.0 { Shape::Ring } else { Shape::Rows };
        let mut places = Places {
            at: BTreeMap::new(),
            shape,
            height: 0.0,
            radius: (130.0 / widest).clamp(1.2, 5.0),
            names: Vec::new(),
        };
        for (row, ((is_host, tier), members)) in rows.into_iter().enumerate() {
            let y = TOP + row as f64 * ROW;
            // The same names as in reports.
            let name = if is_host { "hosts".to_owned() } else { format!("tier {}", tier.0) };
            places.names.push((format!("{name} ({}{what})", members.len()), y - 10.0));
            let all = members.len() as f64;
            let place = |i: usize| match shape {
                Shape::Rows => (LEFT + (i as f64 + 0.5) * (WIDTH - 2.0 * LEFT) / all, y),
                Shape::Ring => {
                    let (sin, cos) = (TAU * i as f64 / all).sin_cos();
                    (WIDTH / 2.0 - RING * cos, TOP + RING - RING * sin)
                }
            };
            places.at.extend(members.into_iter().enumerate().map(|(i, end)| (end, place(i))));
        }
        let middles = lines.iter().filter_map(|line| Some(places.ends(line)?.1.1));
        let lowest = places.at.values().map(|at| at.1).chain(middles).fold(TOP, f64::max);
        places.height = (lowest + BOTTOM).ceil();
        places
    }

    /// Returns the place at which a line begins, and that of its middle. Lines within a row are bent below it, and lines
    /// within a block are loops.
    fn ends(&self, line: &Line) -> Option<((f64, f64), (f64, f64))> {
        let (&from, &to) = (self.at.get(&line.from)?, self.at.get(&line.to)?);
        let bow = match (line.from == line.to, self.shape) {
            (true, _) => LOOP,
            (false, Shape::Rows) if from.1 == to.1 => ARC * (from.0 - to.0).abs().sqrt(),
            (false, _) => 0.0,
        };
        Some((from, ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0 + bow)))
    }

    /// Returns the beginning of the drawing. `label` describes it to readers that do not see it.
    pub(super) fn opened(&self, label: &str) -> String {
        format!("<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"{}\">", self.height, escape(label))
    }

    /// Draws the half of a line beside the end that it leaves. `strength` is 0 to 1.
    pub(super) fn line(&self, line: &Line, class: &str, strength: f64, words: Option<&str>) -> String {
        let Some((from, middle)) = self.ends(line) else { return String::new() };
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

    /// Draws the nodes and the names of the rows.
    pub(super) fn nodes(&self) -> String {
        let circle = |(x, y): &(f64, f64)| {
            format!("<circle class=\"node\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\"/>", self.radius)
        };
        let name = |(name, y): &(String, f64)| format!("<text x=\"{LEFT}\" y=\"{y:.1}\">{name}</text>");
        self.at.values().map(circle).chain(self.names.iter().map(name)).collect()
    }
}
