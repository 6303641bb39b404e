//! Diagrams with two axes, as SVG in the colours of the page around them: `--grid`, `--soft`, `--card`, and `--c0` and
//! up for schemes. Texts never overlap.

use std::fmt::Write;

use pathweave_records::round_ticks;

use crate::template::{STYLE, escape};

/// Axis from one value to another.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    from: f64,
    to: f64,
    log: bool,
}

impl Axis {
    /// Creates an axis on which equal differences have equal lengths.
    pub fn linear(from: f64, to: f64) -> Self {
        Axis { from, to, log: false }
    }

    /// Creates an axis on which equal ratios have equal lengths. Both ends are above zero.
    pub fn log(from: f64, to: f64) -> Self {
        Axis { from, to, log: true }
    }

    /// Returns the value at which the axis begins.
    pub fn from(self) -> f64 {
        self.from
    }

    /// Returns the position of a value on the axis, from 0 to 1. Values beyond an end are at that end.
    pub fn share(self, value: f64) -> f64 {
        let of = |value: f64| if self.log { value.max(1e-300).log10() } else { value };
        ((of(value) - of(self.from)) / (of(self.to) - of(self.from)).max(1e-12)).clamp(0.0, 1.0)
    }

    /// Returns at most `most` round values. On an axis of ratios: 1, 2 and 5 times powers of ten, or the powers alone
    /// over more than two and a half decades.
    pub fn ticks(self, most: u32) -> Vec<f64> {
        if !self.log {
            return round_ticks(self.from, self.to, most);
        }
        let decades = self.from.log10().floor() as i32..=self.to.log10().ceil() as i32;
        let steps: &[f64] = if (self.to / self.from).log10() > 2.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let all = decades.flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)));
        all.filter(|tick| (self.from * 0.999..=self.to * 1.001).contains(tick)).collect()
    }
}

/// Size of a diagram, and the margins around its field.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Width with margins.
    pub width: f64,
    /// Height with margins.
    pub height: f64,
    /// Left margin, for the labels of the vertical axis.
    pub left: f64,
    /// Right margin.
    pub right: f64,
    /// Top margin.
    pub top: f64,
    /// Bottom margin, for the labels and the title of the horizontal axis.
    pub bottom: f64,
}

/// Part of a text that is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The first character.
    Start,
    /// The centre.
    Middle,
    /// The last character.
    End,
}

/// Connection of consecutive points of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// A straight line.
    Straight,
    /// A horizontal line and then a vertical one: nothing changes between two points.
    Steps,
    /// A vertical line and then a horizontal one: the value of a point holds from the point before.
    StepsBefore,
}

/// Diagram with two axes.
#[derive(Clone, Debug)]
pub struct Chart {
    frame: Frame,
    x: Axis,
    y: Axis,
    body: String,
    /// Areas of the texts: left, top, right and bottom.
    texts: Vec<[f64; 4]>,
}

/// Largest usual width of a character, and the heights above and below the base line, at 12 pixels.
const TEXT: (f64, f64, f64) = (7.6, 9.0, 3.0);

impl Chart {
    /// Creates a diagram with an empty field.
    pub fn new(frame: Frame, x: Axis, y: Axis) -> Self {
        Chart { frame, x, y, body: String::new(), texts: Vec::new() }
    }

    /// Returns the position of a pair of values in the picture.
    pub fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let Frame { width, height, left, right, top, bottom } = self.frame;
        let (wide, high) = (width - left - right, height - top - bottom);
        (left + self.x.share(x) * wide, top + (1.0 - self.y.share(y)) * high)
    }

    /// Adds an SVG element.
    pub fn draw(&mut self, element: &str) {
        self.body.push_str(element);
    }

    /// Draws vertical lines at some values, with their labels below. A label that would cover another one is left out.
    pub fn x_ticks(&mut self, ticks: &[f64], label: impl Fn(f64) -> String) {
        let Frame { height, top, bottom, .. } = self.frame;
        for &tick in ticks {
            let (at, _) = self.place((tick, self.y.to));
            let _ =
                write!(self.body, "<path class=\"grid\" d=\"M{at:.1} {top}v{:.1}\"/>", height - top - bottom);
            self.text((at, height - bottom + 18.0), Anchor::Middle, "tick", &label(tick));
        }
    }

    /// Draws horizontal lines at some values, with their labels to the left.
    pub fn y_ticks(&mut self, ticks: &[f64], label: impl Fn(f64) -> String) {
        let Frame { width, left, right, .. } = self.frame;
        for &tick in ticks {
            let (_, at) = self.place((self.x.to, tick));
            let _ =
                write!(self.body, "<path class=\"grid\" d=\"M{left} {at:.1}h{:.1}\"/>", width - left - right);
            self.text((left - 6.0, at + 4.0), Anchor::End, "tick", &label(tick));
        }
    }

    /// Writes the title of the horizontal axis below it.
    pub fn x_title(&mut self, words: &str) {
        let Frame { width, height, left, right, .. } = self.frame;
        self.text(((left + width - right) / 2.0, height - 8.0), Anchor::Middle, "tick", words);
    }

    /// Draws a horizontal line with a name.
    pub fn level(&mut self, y: f64, name: &str) {
        let Frame { width, left, right, .. } = self.frame;
        let (_, at) = self.place((self.x.to, y));
        let _ =
            write!(self.body, "<path class=\"level\" d=\"M{left} {at:.1}h{:.1}\"/>", width - left - right);
        self.text((width - right, at - 5.0), Anchor::End, "tick", name);
    }

    /// Draws a curve with these attributes through at least two points.
    pub fn curve(&mut self, points: impl IntoIterator<Item = (f64, f64)>, join: Join, attributes: &str) {
        let mut line = String::new();
        let mut count = 0;
        for point in points {
            let (x, y) = self.place(point);
            let _ = match (count, join) {
                (0, _) => write!(line, "M{x:.1} {y:.1}"),
                (_, Join::Steps) => write!(line, "H{x:.1}V{y:.1}"),
                (_, Join::StepsBefore) => write!(line, "V{y:.1}H{x:.1}"),
                (_, Join::Straight) => write!(line, "L{x:.1} {y:.1}"),
            };
            count += 1;
        }
        if count > 1 {
            let _ = write!(self.body, "<path class=\"curve\" {attributes} d=\"{line}\"/>");
        }
    }

    /// Writes the name of a point beside it, where it covers no other text. It is left out if there is no such place.
    pub fn point_label(&mut self, (x, y): (f64, f64), words: &str) {
        let sides = [(7.0, Anchor::Start), (-7.0, Anchor::End)];
        let places =
            [-6.0, 14.0].into_iter().flat_map(|down| sides.map(|(right, anchor)| (right, down, anchor)));
        for (right, down, anchor) in places {
            let at = (x + right, y + down);
            if self.moved_inside(at.0, anchor, words) == 0.0 && self.text(at, anchor, "point", words) {
                return;
            }
        }
    }

    /// Writes a text of a class. A text that would leave the picture is moved inside. A text that would cover another
    /// one is left out; then the result is false.
    pub fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, words: &str) -> bool {
        if words.is_empty() {
            return true;
        }
        let x = x + self.moved_inside(x, anchor, words);
        let [left, right] = ends(x, anchor, words);
        let area = [left, y - TEXT.1, right, y + TEXT.2];
        let covers = |other: &[f64; 4]| {
            area[0] < other[2] && other[0] < area[2] && area[1] < other[3] && other[1] < area[3]
        };
        if self.texts.iter().any(covers) {
            return false;
        }
        self.texts.push(area);
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let words = escape(words);
        let _ = write!(
            self.body,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"
        );
        true
    }

    /// Returns the distance by which a text has to be moved to the right to be inside the picture.
    fn moved_inside(&self, x: f64, anchor: Anchor, words: &str) -> f64 {
        let [left, right] = ends(x, anchor, words);
        if left < 0.0 { -left } else { (self.frame.width - right).min(0.0) }
    }

    /// Returns the diagram as an element of a page, with these attributes. `label` describes it to readers that do not
    /// see it.
    pub fn svg(&self, attributes: &str, label: &str) -> String {
        let Frame { width, height, .. } = self.frame;
        format!(
            "<svg {attributes} viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">{}</svg>",
            escape(label),
            self.body
        )
    }

    /// Returns the diagram as a file of its own, light or dark as the reader prefers.
    pub fn file(&self, label: &str) -> String {
        let style = format!(
            "{}svg{{background:var(--card)}}\
             text{{font:12px sans-serif;fill:var(--soft)}}.grid{{stroke:var(--grid)}}\
             .level{{stroke:var(--soft);stroke-dasharray:4 4}}.curve{{fill:none;stroke-width:2}}",
            colours_of_both_themes()
        );
        let svg = self.svg("xmlns=\"http://www.w3.org/2000/svg\"", label);
        svg.replacen("\">", &format!("\"><style>{style}</style>"), 1) + "\n"
    }
}

/// Returns the colours of pages as a style of SVG files, light or dark as the reader prefers.
pub(crate) fn colours_of_both_themes() -> String {
    let colours = |theme: &str| STYLE.split_once(theme).and_then(|(_, rest)| rest.split('}').next());
    let (light, dark) = (colours(":root {"), colours(":root[data-theme=\"dark\"] {"));
    format!(
        "svg{{{}}}@media(prefers-color-scheme:dark){{svg{{{}}}}}",
        light.unwrap_or_default(),
        dark.unwrap_or_default()
    )
}

/// Returns the left and the right end of a text.
fn ends(x: f64, anchor: Anchor, words: &str) -> [f64; 2] {
    let width = TEXT.0 * words.chars().count() as f64;
    let left = match anchor {
        Anchor::Start => x,
        Anchor::Middle => x - width / 2.0,
        Anchor::End => x - width,
    };
    [left, left + width]
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Frame =
        Frame { width: 200.0, height: 150.0, left: 40.0, right: 10.0, top: 10.0, bottom: 40.0 };

    fn chart() -> Chart {
        Chart::new(FRAME, Axis::linear(0.0, 10.0), Axis::linear(0.0, 1.0))
    }

    #[test]
    fn ticks_are_round_and_values_in_proportion() {
        assert_eq!(Axis::linear(0.0, 10.6).ticks(5), [0.0, 5.0, 10.0]);
        assert_eq!(Axis::log(1.0, 40.0).ticks(5), [1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(Axis::log(3.0, 60.0).ticks(5), [5.0, 10.0, 20.0, 50.0]);
        assert_eq!(Axis::log(3.0, 60_000.0).ticks(5), [10.0, 100.0, 1_000.0, 10_000.0]);
        assert_eq!((Axis::log(0.5, 2.0).share(1.0), Axis::log(0.5, 2.0).share(9.0)), (0.5, 1.0));
        assert_eq!(chart().place((5.0, 1.0)), (115.0, 10.0));
        assert_eq!(chart().place((10.0, 0.0)), (190.0, 110.0));
    }

    #[test]
    fn curves_go_through_their_points() {
        let mut chart = chart();
        chart.curve([(0.0, 0.0), (10.0, 1.0)], Join::Straight, "id=\"a\"");
        chart.curve([(0.0, 0.0), (10.0, 1.0)], Join::Steps, "id=\"b\"");
        chart.curve([(0.0, 0.0)], Join::Straight, "id=\"c\"");
        let svg = chart.svg("id=\"d\"", "a < b");
        assert!(svg.contains("id=\"a\" d=\"M40.0 110.0L190.0 10.0\""), "{svg}");
        assert!(svg.contains("id=\"b\" d=\"M40.0 110.0H190.0V10.0\"") && !svg.contains("id=\"c\""), "{svg}");
        assert!(
            svg.starts_with("<svg id=\"d\" viewBox=\"0 0 200 150\"") && svg.contains("a &lt; b"),
            "{svg}"
        );
    }

    #[test]
    fn texts_stay_inside_and_apart() {
        let mut chart = chart();
        let all: Vec<f64> = (0..=10).map(f64::from).collect();
        chart.x_ticks(&all, |tick| format!("{tick} wide"));
        // A label is as wide as the distance of three ticks.
        assert_eq!(chart.texts.len(), 3, "{:?}", chart.texts);
        assert_eq!(chart.body.matches("class=\"grid\"").count(), 11);
        assert!(chart.text((199.0, 20.0), Anchor::Middle, "", "long name"));
        assert!(chart.text((1.0, 20.0), Anchor::End, "", "x"));
        for [left, _, right, _] in &chart.texts {
            assert!(*left >= -1e-9 && *right <= 200.0 + 1e-9, "{left} {right}");
        }
        assert!(!chart.text((150.0, 22.0), Anchor::Start, "", "below"));
    }

    #[test]
    fn a_point_is_named_where_there_is_room() {
        let mut chart = chart();
        for name in ["one", "two", "three", "four", "none"] {
            chart.point_label((100.0, 60.0), name);
        }
        let names: Vec<bool> =
            ["one", "two", "three", "four", "none"].map(|name| chart.body.contains(name)).into();
        assert_eq!(names, [true, true, true, true, false]);
        // To the left of a point at the right edge.
        let mut chart = self::chart();
        chart.point_label((195.0, 60.0), "edge");
        assert!(chart.body.contains("x=\"188.0\" y=\"54.0\" text-anchor=\"end\""), "{}", chart.body);
    }

    #[test]
    fn a_file_has_the_colours_of_both_themes() {
        let file = chart().file("empty");
        assert!(file.starts_with("<svg xmlns=") && file.contains("prefers-color-scheme:dark"), "{file}");
        assert_eq!(file.matches("--c0: #").count(), 2, "{file}");
    }
}
