//! Charts with curves and bars.

use pathweave_report::SCHEME_COLOURS;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::paper::labels::{Lettering, axis_labels};
use crate::paper::picture::{Area, Backend, DrawError, FONT, Picture};

/// One or more pictures side by side with a common legend.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chart {
    pub(crate) panels: Vec<PanelChart>,
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) log: bool,
    /// Horizontal lines, as label and value.
    pub(crate) levels: Vec<(String, f64)>,
    /// True if the y axis is a share from 0 to 1.
    pub(crate) share: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct PanelChart {
    pub(crate) title: String,
    pub(crate) curves: Vec<Curve>,
    /// Labels of x = 0, 1, ... Empty if x is a number.
    pub(crate) categories: Vec<String>,
    /// True for bars, false for lines.
    pub(crate) bars: bool,
    /// Published bands, in the colours of the curves that they are relative to.
    pub(crate) bands: Vec<Band>,
}

/// A published band, or a bound where both ends are equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Band {
    pub(crate) x: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) colour: usize,
    /// Index among the bands of one bar or point, and their number.
    pub(crate) place: (usize, usize),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// Half widths of the confidence intervals, by point. Empty if there are none.
    pub(crate) errors: Vec<f64>,
    pub(crate) look: CurveStyle,
}

/// Colour, stroke and marks of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CurveStyle {
    pub(crate) colour: usize,
    pub(crate) stroke: Stroke,
    pub(crate) marked: bool,
}

/// Stroke of a curve, or fill of a bar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stroke {
    #[default]
    Solid,
    Dashed,
    Dotted,
    /// Published values: pale, with hollow marks.
    Published,
}

impl Stroke {
    /// Returns the pixels of a dash and of the following gap. `None` for a continuous line.
    fn dashes(self) -> Option<(u32, u32)> {
        match self {
            Stroke::Solid | Stroke::Published => None,
            Stroke::Dashed => Some((7, 4)),
            Stroke::Dotted => Some((2, 4)),
        }
    }
}

impl CurveStyle {
    fn ink(self) -> RGBColor {
        let (red, green, blue) = SCHEME_COLOURS[self.colour % SCHEME_COLOURS.len()];
        RGBColor(red, green, blue)
    }

    fn opacity(self) -> f64 {
        if self.stroke == Stroke::Published { 0.4 } else { 1.0 }
    }

    /// Returns the fill of a bar.
    fn fill(self) -> ShapeStyle {
        let opacity = match self.stroke {
            Stroke::Solid => 1.0,
            Stroke::Dashed => 0.5,
            Stroke::Dotted | Stroke::Published => 0.25,
        };
        self.ink().mix(opacity).filled()
    }
}

const WIDTH: u32 = 560;
const HEIGHT: u32 = 400;
const LEGEND_LINE: u32 = 24;
const INK: RGBColor = RGBColor(40, 40, 40);
const TITLE: Lettering = Lettering { points: 18, ink: INK };
const LABEL: Lettering = Lettering { points: 14, ink: INK };
const LEGEND: Lettering = Lettering { points: 15, ink: INK };
/// Label of a horizontal line.
const LEVEL: Lettering = Lettering { points: 13, ink: INK };
/// Width of the labels of the y axis.
const Y_LABELS: u32 = 66;
/// Margins of a panel.
const MARGIN: u32 = 14;
const RIGHT_MARGIN: u32 = 24;
const GRID: RGBColor = RGBColor(225, 225, 225);
/// Share of a group's width that its bars occupy.
const BARS: f64 = 0.8;

impl Chart {
    /// Returns the centre of a bar in its group of `count` bars.
    pub(crate) fn bar(index: usize, count: usize) -> f64 {
        BARS * ((index as f64 + 0.5) / count as f64 - 0.5)
    }

    /// Returns the columns and rows of panels, and the width of a panel in points.
    fn grid(&self) -> (u32, u32, u32) {
        let columns = self.panels.len().clamp(1, 3) as u32;
        let rows = (self.panels.len() as u32).div_ceil(columns).max(1);
        // A chart with many groups of bars needs space for their names.
        let crowded = self.panels.iter().any(|panel| panel.categories.len() > 5 && panel.bars);
        (columns, rows, if crowded && columns == 1 { 2 * WIDTH } else { WIDTH })
    }
}

/// Returns the height of a legend in points.
fn legend_height(lines: &[Placed<'_>]) -> u32 {
    12 + LEGEND_LINE * lines.last().map_or(0, |last| last.line + last.name.len() as u32)
}

impl Picture for Chart {
    fn size(&self) -> (u32, u32) {
        let (columns, rows, width) = self.grid();
        let legend = legend(self);
        (columns * width, rows * HEIGHT + legend_height(&place(&legend, columns * width)))
    }

    fn draw<B: Backend>(&self, root: &Area<B>) -> Result<(), DrawError> {
        let (columns, rows, width) = self.grid();
        let legend = legend(self);
        let lines = place(&legend, columns * width);
        let (top, below) = root.split_vertically(legend_height(&lines));
        draw_legend(&top, &lines)?;
        for (panel, area) in self.panels.iter().zip(below.split_evenly((rows as usize, columns as usize))) {
            draw_panel(self, panel, &area)?;
        }
        Ok(())
    }
}

/// Entry of a legend.
struct Entry {
    name: String,
    look: CurveStyle,
    mark: Mark,
}

/// Mark of a legend entry.
enum Mark {
    Line,
    Bar,
    /// The frame of published bands.
    Band,
}

/// Returns the names and looks of all panels without duplicates.
fn legend(chart: &Chart) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    for panel in &chart.panels {
        for curve in &panel.curves {
            if !found.iter().any(|entry| entry.name == curve.name) {
                let mark = if panel.bars { Mark::Bar } else { Mark::Line };
                found.push(Entry { name: curve.name.clone(), look: curve.look, mark });
            }
        }
    }
    if chart.panels.iter().any(|panel| !panel.bands.is_empty()) {
        let name = "published, in the colour of its counterpart".to_owned();
        found.push(Entry { name, look: CurveStyle::default(), mark: Mark::Band });
    }
    found
}

/// Legend entry with its line, its x position, and the lines of its name.
struct Placed<'a> {
    entry: &'a Entry,
    line: u32,
    x: u32,
    name: Vec<String>,
}

/// Places legend entries beside each other. An entry that is wider than the picture has lines of its own.
fn place(legend: &[Entry], width: u32) -> Vec<Placed<'_>> {
    const LEFT: u32 = 20;
    /// Width of the mark and of the gap to the next entry.
    const MARK: u32 = 58;
    let (mut line, mut x) = (0, LEFT);
    let mut placed = Vec::new();
    for entry in legend {
        let name = LEGEND.wrap(&entry.name, width.saturating_sub(LEFT + MARK));
        let needed = MARK + name.iter().map(|line| LEGEND.width(line)).max().unwrap_or(0);
        if x + needed > width && x > LEFT {
            (line, x) = (line + 1, LEFT);
        }
        let more = (name.len() as u32).saturating_sub(1);
        placed.push(Placed { entry, line, x, name });
        (line, x) = (line + more, if more > 0 { width } else { x + needed });
    }
    placed
}

fn draw_legend<B: Backend>(area: &Area<B>, placed: &[Placed<'_>]) -> Result<(), DrawError> {
    let style = TextStyle::from((FONT, LEGEND.points).into_font()).color(&INK);
    for Placed { entry: Entry { look, mark, .. }, line, x, name } in placed {
        let (x, y) = (*x as i32, (12 + line * LEGEND_LINE) as i32);
        let colour = look.ink();
        match mark {
            Mark::Bar => area.draw(&Rectangle::new([(x + 8, y), (x + 32, y + 14)], look.fill()))?,
            Mark::Band => area.draw(&Rectangle::new([(x + 8, y), (x + 32, y + 14)], INK.stroke_width(2)))?,
            Mark::Line => {
                let (dash, gap) = look.stroke.dashes().unwrap_or((36, 0));
                for from in (x..x + 34).step_by((dash + gap) as usize) {
                    let to = (from + dash as i32).min(x + 34);
                    let stroke = colour.mix(look.opacity()).stroke_width(2);
                    area.draw(&PathElement::new([(from, y + 7), (to, y + 7)], stroke))?;
                }
            }
        }
        for (line, y) in name.iter().zip((y..).step_by(LEGEND_LINE as usize)) {
            area.draw_text(line, &style, (x + 40, y))?;
        }
    }
    Ok(())
}

fn draw_panel<B: Backend>(chart: &Chart, panel: &PanelChart, area: &Area<B>) -> Result<(), DrawError> {
    let points = || panel.curves.iter().flat_map(|curve| curve.points.iter());
    let (x_low, x_high) = bounds(points().map(|p| p.0));
    let levels = chart.levels.iter().map(|level| level.1);
    let tops = panel
        .curves
        .iter()
        .flat_map(|c| c.points.iter().enumerate().map(|(i, p)| p.1 + c.errors.get(i).unwrap_or(&0.0)));
    let bands = panel.bands.iter().flat_map(|band| [band.low, band.high]);
    let (y_low, y_high) = bounds(tops.chain(points().map(|p| p.1)).chain(levels).chain(bands));
    let x = if panel.categories.is_empty() {
        let room = (x_high - x_low).max(x_high.abs() * 0.02).max(1e-9) * 0.03;
        (x_low - room).max(if x_low >= 0.0 { 0.0 } else { f64::MIN })..x_high + room
    } else {
        -0.5..panel.categories.len() as f64 - 0.5
    };
    match (chart.share, chart.log) {
        (true, true) => mesh(chart, panel, area, (x.start.max(1e-9)..x.end).log_scale(), 0.0..1.0_f64, 0.0),
        (true, false) => mesh(chart, panel, area, x, 0.0..1.0_f64, 0.0),
        (false, true) => {
            let low = y_low.max(1e-9) / 1.5;
            mesh(chart, panel, area, x, (low..y_high * 1.5).log_scale(), low)
        }
        (false, false) => {
            let low = y_low.min(0.0);
            mesh(chart, panel, area, x, low..(y_high + (y_high - low) * 0.06).max(low + 1e-9), low)
        }
    }
}

fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    if low > high { (0.0, 1.0) } else { (low, high) }
}

fn mesh<B, X, Y>(
    chart: &Chart,
    panel: &PanelChart,
    area: &Area<B>,
    x: X,
    y: Y,
    floor: f64,
) -> Result<(), DrawError>
where
    B: Backend,
    X: plotters::coord::ranged1d::AsRangedCoord<Value = f64>,
    Y: plotters::coord::ranged1d::AsRangedCoord<Value = f64>,
    X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let width = area.dim_in_pixel().0;
    let title = TITLE.wrap(&panel.title, width.saturating_sub(2 * MARGIN));
    let slot = width.saturating_sub(MARGIN + RIGHT_MARGIN + Y_LABELS) / panel.categories.len().max(1) as u32;
    let (step, labels) = axis_labels(LABEL, &panel.categories, slot, panel.bars);
    let lines = labels.iter().map(Vec::len).max().unwrap_or(0).max(1) as u32;
    let mut builder = ChartBuilder::on(area);
    builder
        .margin(MARGIN)
        .margin_right(RIGHT_MARGIN)
        .margin_top(MARGIN + title.len() as u32 * (TITLE.line() + 2))
        .x_label_area_size(48 + (lines - 1) * LABEL.line())
        .y_label_area_size(Y_LABELS);
    let mut plot = builder.build_cartesian_2d(x, y)?;
    TITLE.draw(area, &title, (width as i32 / 2, MARGIN as i32))?;
    let number = |value: &f64| number(*value);
    let mut mesh = plot.configure_mesh();
    mesh.x_desc(&chart.x)
        .y_desc(&chart.y)
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style((FONT, 14, &INK))
        .axis_desc_style((FONT, 16, &INK))
        .y_label_formatter(&number)
        .x_label_formatter(&number)
        .y_labels(8)
        .x_labels(8);
    if !panel.categories.is_empty() {
        // A tick at every half; the texts are drawn below.
        mesh.disable_x_mesh().x_label_formatter(&|_| String::new()).x_labels(2 * panel.categories.len() + 1);
    }
    mesh.draw()?;
    let (left, top) = area.get_base_pixel();
    for (index, lines) in labels.iter().enumerate().step_by(step) {
        let (x, y) = plot.backend_coord(&(index as f64, floor));
        LABEL.draw(area, lines, (x - left, y - top + 10))?;
    }
    for (i, curve) in panel.curves.iter().enumerate() {
        let colour = curve.look.ink();
        let stroke = colour.mix(curve.look.opacity()).stroke_width(2);
        if panel.bars {
            let width = BARS / panel.curves.len() as f64;
            let from = Chart::bar(i, panel.curves.len()) - width / 2.0;
            let fill = curve.look.fill();
            for (k, &(x, y)) in curve.points.iter().enumerate() {
                let (a, b) = (x + from + width * 0.06, x + from + width * 0.94);
                plot.draw_series([Rectangle::new([(a, floor), (b, y)], fill)])?;
                error_bar(&mut plot, (a + b) / 2.0, y, curve.errors.get(k))?;
            }
            continue;
        }
        match curve.look.stroke.dashes() {
            Some((dash, gap)) => {
                plot.draw_series(DashedLineSeries::new(curve.points.iter().copied(), dash, gap, stroke))?;
            }
            None => {
                plot.draw_series(LineSeries::new(curve.points.iter().copied(), stroke))?;
            }
        }
        if curve.look.marked {
            let fill = if curve.look.stroke == Stroke::Published { stroke } else { colour.filled() };
            plot.draw_series(curve.points.iter().map(|&p| Circle::new(p, 4, fill)))?;
            for (k, &(x, y)) in curve.points.iter().enumerate() {
                error_bar(&mut plot, x, y, curve.errors.get(k))?;
            }
        }
    }
    let half = if panel.bars { 0.5 * BARS / panel.curves.len() as f64 } else { 0.06 };
    for band in &panel.bands {
        let colour = CurveStyle { colour: band.colour, ..CurveStyle::default() }.ink();
        let (place, count) = (band.place.0 as f64, band.place.1.max(1) as f64);
        let edge = |place: f64| band.x - half + 2.0 * half * place / count;
        let ends = [(edge(place), band.low), (edge(place + 1.0), band.high)];
        plot.draw_series([Rectangle::new(ends, colour.mix(0.4).filled())])?;
        plot.draw_series([Rectangle::new(ends, INK.stroke_width(1))])?;
        if band.low == band.high {
            plot.draw_series([PathElement::new(ends, INK.stroke_width(3))])?;
        }
    }
    let range = plot.x_range();
    let mut named: Vec<(&str, i32, i32)> = Vec::new();
    for (name, at) in &chart.levels {
        let ends = [(range.start, *at), (range.end, *at)];
        plot.draw_series(DashedLineSeries::new(ends, 3, 3, INK.stroke_width(1)))?;
        let (x, y) = plot.backend_coord(&(range.start, *at));
        named.push((name, x - left + 9, y - top));
    }
    draw_levels(area, named)
}

/// Draws names of horizontal lines above them. Where two lines are close, the name of one is right of the other.
fn draw_levels<B: Backend>(area: &Area<B>, named: Vec<(&str, i32, i32)>) -> Result<(), DrawError> {
    let above = Pos::new(HPos::Left, VPos::Bottom);
    let style = TextStyle::from((FONT, LEVEL.points).into_font()).color(&INK).pos(above);
    let mut drawn: Vec<(i32, i32)> = Vec::new();
    for (name, left, y) in named {
        let close = drawn.iter().filter(|(_, other)| (other - y).abs() < LEVEL.line() as i32);
        let x = close.map(|(right, _)| right + 12).fold(left, i32::max);
        area.draw_text(name, &style, (x, y))?;
        drawn.push((x + LEVEL.width(name) as i32, y));
    }
    Ok(())
}

fn error_bar<B, X, Y>(
    plot: &mut ChartContext<'_, B, Cartesian2d<X, Y>>,
    x: f64,
    y: f64,
    half: Option<&f64>,
) -> Result<(), DrawError>
where
    B: Backend,
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    if let Some(&half) = half.filter(|half| **half > 0.0) {
        plot.draw_series([PathElement::new([(x, (y - half).max(0.0)), (x, y + half)], INK.stroke_width(1))])?;
    }
    Ok(())
}

/// Formats a tick with as few digits as distinguish it from the others.
fn number(value: f64) -> String {
    if value != 0.0 && (value.abs() >= 1e6 || value.abs() < 1e-3) {
        return format!("{value:.0e}");
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::picture::svg;

    /// Left, top, right and bottom of a text of a picture.
    type Bounds = (f64, f64, f64, f64);

    /// Returns the bounds of the upright texts of an SVG.
    fn texts(svg: &str) -> Vec<(String, Bounds)> {
        let of = |element: &str, name: &str| {
            let from = element.find(&format!(" {name}=\"")).map(|at| at + name.len() + 3)?;
            Some(element[from..].split('"').next()?.to_owned())
        };
        let texts = svg.split("<text").skip(1).filter(|element| !element.contains("rotate"));
        let bounds = |element: &str| -> Option<(String, Bounds)> {
            let number = |name| of(element, name)?.parse::<f64>().ok();
            let text = element.split('>').nth(1)?.split('<').next()?.trim().to_owned();
            let font = number("font-size")?;
            // Plotters divides the size by this.
            let width = Lettering { points: (font * 1.24).round() as u32, ink: INK }.width(&text);
            let (x, y) = (number("x")?, number("y")?);
            let down = match of(element, "dy").as_deref() {
                Some("0.76em") => 0.76 * font,
                Some("0.5ex") => 0.25 * font,
                _ => -0.25 * font,
            };
            let (top, bottom) = (y + down - 0.76 * font, y + down + 0.2 * font);
            let left = match of(element, "text-anchor").as_deref() {
                Some("middle") => x - f64::from(width) / 2.0,
                Some("end") => x - f64::from(width),
                _ => x,
            };
            Some((text, (left, top, left + f64::from(width), bottom)))
        };
        texts.filter_map(bounds).filter(|(text, _)| !text.is_empty()).collect()
    }

    #[test]
    fn no_label_overlaps_another_one() {
        let names = ["30 %", "50 %", "70 %", "70 %, one byte in five between sites", "incomprehensibilities"];
        let panel = |title: &str| PanelChart {
            title: title.to_owned(),
            curves: vec![Curve {
                name: "A scheme with a name that is far longer than one picture is wide, as a reading may be"
                    .into(),
                points: (0..names.len()).map(|x| (x as f64, 1.0 + x as f64)).collect(),
                ..Curve::default()
            }],
            categories: names.map(str::to_owned).into(),
            bars: true,
            bands: Vec::new(),
        };
        let long =
            "70 %, one byte in five between sites, P99 of long flows inside and between sites, as published";
        for panels in [vec![panel(long)], vec![panel(long), panel(long), panel("short")]] {
            let chart = Chart {
                panels,
                x: "Load".into(),
                levels: vec![("ideal".into(), 3.0), ("bound".into(), 3.02)],
                ..Chart::default()
            };
            let (width, _) = chart.size();
            let texts = texts(&svg(&chart).expect("it is drawn"));
            assert!(texts.len() > 20, "{texts:?}");
            for (i, (a, one)) in texts.iter().enumerate() {
                assert!(one.0 >= 0.0 && one.2 <= f64::from(width), "{a} leaves the picture: {one:?}");
                for (b, other) in &texts[..i] {
                    let apart = one.2 <= other.0 || other.2 <= one.0 || one.3 <= other.1 || other.3 <= one.1;
                    assert!(apart, "{a} {one:?} and {b} {other:?}");
                }
            }
        }
    }
}
