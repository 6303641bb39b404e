//! Heat maps: one row per panel, one column per curve. Each number is coloured by its ratio to the best of its row.

use pathweave_records::Quantity;
use pathweave_report::Estimate;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::paper::labels::Lettering;
use crate::paper::model::Metric;
use crate::paper::picture::{Area, Backend, DrawError, FONT, Picture};
use crate::paper::plan::{FigurePlan, Traffic};
use crate::paper::table::quantity;

/// Cell of a map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    /// Mean and interval over seeds. `None` if a seed has no value.
    pub(crate) estimate: Option<Estimate>,
    /// Ratio of the mean to the smallest mean of the row.
    pub(crate) ratio: Option<f64>,
    /// Unfinished flows over all seeds.
    pub(crate) unfinished: usize,
}

impl Cell {
    /// Returns true if the cell is the best of its row, to three decimals.
    pub(crate) fn best(&self) -> bool {
        self.ratio.is_some_and(|ratio| ratio < 1.0005)
    }
    /// Returns the text of the cell.
    pub(crate) fn text(&self, quantity: Quantity) -> String {
        match self.estimate {
            Some(estimate) => quantity.format(estimate.mean),
            None if self.unfinished > 0 => format!("{} left", self.unfinished),
            None => "-".to_owned(),
        }
    }
    /// Returns the index of the cell's level in [`LEVELS`], or `LEVELS.len()` if there is no number.
    pub(crate) fn level(&self) -> usize {
        level(self.ratio)
    }
}

/// Returns the index of the level of a ratio in [`LEVELS`], or `LEVELS.len()` if there is none.
pub(crate) fn level(ratio: Option<f64>) -> usize {
    let at = |ratio: f64| LEVELS.iter().position(|&(most, _)| ratio <= most).unwrap_or(LEVELS.len() - 1);
    ratio.map_or(LEVELS.len(), at)
}

/// Upper bounds of the ratio to the row's best, with the text of the legend.
pub(crate) const LEVELS: [(f64, &str); 8] = [
    (1.02, "within 2 % of the row's best"),
    (1.05, "5 %"),
    (1.1, "10 %"),
    (1.25, "25 %"),
    (1.5, "50 %"),
    (2.0, "twice"),
    (4.0, "four times"),
    (f64::INFINITY, "more"),
];

/// Legend text for a cell with unfinished flows.
pub(crate) const UNFINISHED_TEXT: &str = "flows failed or never ended";

/// Row of a map. Cells are indexed by curve, with `None` for a curve that the row does not have.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) panel: usize,
    pub(crate) cells: Vec<Option<Cell>>,
}

/// Returns the rows of the map of a measure. If only rows with jobs are judged by it, the map has no other rows.
pub(crate) fn rows(figure: &FigurePlan, measure: usize) -> Vec<Row> {
    let file = &figure.figure.file;
    let of_jobs = file.plot.judged.as_ref().is_some_and(|judged| judged.jobs == file.measure[measure].name);
    let has = |panel: &usize| !of_jobs || figure.traffic.get(*panel) == Some(&Traffic::Jobs);
    let rows = (0..figure.panels.len()).filter(has).map(|panel| row(figure, panel, measure));
    match file.measure[measure].of {
        Metric::SpuriousTimeouts => rows.filter_map(without_losses).collect(),
        _ => rows.collect(),
    }
}

/// Returns the row without the cells of runs that lost packets, or `None` if no cell is left.
fn without_losses(mut row: Row) -> Option<Row> {
    row.cells.iter_mut().for_each(|cell| *cell = cell.filter(|cell| cell.estimate.is_some()));
    row.cells.iter().any(Option::is_some).then_some(row)
}

/// Returns the row of a panel.
pub(crate) fn row(figure: &FigurePlan, panel: usize, measure: usize) -> Row {
    let mut cells = vec![None; figure.figure.file.series.len()];
    for point in figure.points.iter().filter(|point| point.panel == panel) {
        let unfinished = point.observed.iter().flatten().map(|seen| seen.unfinished).sum();
        let estimate = figure.estimate(point, measure);
        cells[point.series] = Some(Cell { estimate, ratio: None, unfinished });
    }
    let means = cells.iter().flatten().filter_map(|cell| Some(cell.estimate?.mean));
    let least = means.reduce(f64::min);
    for cell in cells.iter_mut().flatten() {
        let ratio = |mean: f64, least: f64| if mean == least { 1.0 } else { mean / least };
        cell.ratio = cell.estimate.zip(least).map(|(estimate, least)| ratio(estimate.mean, least));
    }
    Row { panel, cells }
}

const LEFT_WIDTH: i32 = 250;
const CELL_WIDTH: i32 = 74;
pub(crate) const LINE: i32 = 22;
pub(crate) const INK: RGBColor = RGBColor(30, 30, 30);
pub(crate) const LABEL: Lettering = Lettering { points: 13, ink: INK };

type Rgb = (u8, u8, u8);

/// Fill and ink colours of each level, the last for cells without a number. They go from light to dark, so that the
/// map is readable without colour.
const FILLS: [(Rgb, Rgb); 9] = [
    ((226, 240, 233), (20, 40, 30)),
    ((244, 246, 226), (40, 40, 20)),
    ((253, 236, 196), (50, 35, 10)),
    ((250, 209, 146), (55, 30, 5)),
    ((242, 170, 104), (50, 20, 0)),
    ((221, 122, 74), (30, 5, 0)),
    ((178, 66, 48), (255, 255, 255)),
    ((112, 24, 36), (255, 255, 255)),
    ((60, 60, 66), (255, 255, 255)),
];

/// Picture of the map of a measure.
pub(crate) struct HeatMap<'f> {
    figure: &'f FigurePlan,
    measure: usize,
    rows: Vec<Row>,
}

impl<'f> HeatMap<'f> {
    pub(crate) fn new(figure: &'f FigurePlan, measure: usize) -> Self {
        HeatMap { figure, measure, rows: rows(figure, measure) }
    }

    /// Returns the width of the names of rows.
    fn left_width(&self) -> i32 {
        let panels = self.rows.iter().map(|row| &self.figure.panels[row.panel].name);
        let widest = panels.map(|name| LABEL.width(name)).max().unwrap_or(0);
        LEFT_WIDTH.max(widest as i32 + 24)
    }

    /// Returns the lines of the name of each column.
    fn column_names(&self) -> Vec<Vec<String>> {
        let all = &self.figure.figure.file.series;
        all.iter().map(|series| LABEL.wrap(&series.label(), CELL_WIDTH as u32 - 6)).collect()
    }

    /// Returns the height of the names of columns beyond one line.
    fn more_of_names(&self) -> i32 {
        let lines = self.column_names().iter().map(Vec::len).max().unwrap_or(1).max(1);
        (lines as i32 - 1) * LABEL.line() as i32
    }
}

/// Draws the legend of the levels. `top` is its upper edge.
pub(crate) fn draw_legend<B: Backend>(root: &Area<B>, top: i32) -> Result<(), DrawError> {
    let mut x = 8;
    for (level, says) in legend().enumerate() {
        let (fill, _) = colours(level);
        root.draw(&Rectangle::new([(x, top), (x + 16, top + 14)], fill.filled()))?;
        root.draw_text(says, &style_of(13, &INK, HPos::Left), (x + 21, top + 8))?;
        x += 36 + LABEL.width(says) as i32;
    }
    Ok(())
}

/// Returns the texts of the legend.
fn legend() -> impl Iterator<Item = &'static str> {
    LEVELS.iter().map(|level| level.1).chain([UNFINISHED_TEXT])
}

pub(crate) fn legend_width() -> i32 {
    legend().map(|says| 36 + LABEL.width(says) as i32).sum::<i32>() + 8
}

impl Picture for HeatMap<'_> {
    fn size(&self) -> (u32, u32) {
        let width = self.left_width() + CELL_WIDTH * self.figure.figure.file.series.len() as i32 + 12;
        let lines = self.rows.len() + headings(self.figure, &self.rows).iter().flatten().count() + 4;
        (width.max(legend_width()) as u32, (LINE * lines as i32 + 12 + self.more_of_names()) as u32)
    }

    fn draw<B: Backend>(&self, root: &Area<B>) -> Result<(), DrawError> {
        let HeatMap { figure, measure, rows } = self;
        let file = &figure.figure.file;
        let measure = &file.measure[*measure];
        let quantity = quantity(measure.of, measure.stat);
        let headings = headings(figure, rows);
        root.draw_text(&measure.name, &style_of(17, &INK, HPos::Left), (8, LINE * 2 / 3))?;
        let left = self.left_width();
        draw_legend(root, LINE + 6)?;
        let mut y = LINE * 3 + self.more_of_names();
        for (column, name) in (0..).zip(self.column_names()) {
            let at = left + CELL_WIDTH * column + CELL_WIDTH / 2;
            // The last line stands above the first row.
            let top = y + LABEL.line() as i32 / 2 - name.len() as i32 * LABEL.line() as i32;
            LABEL.draw(root, &name, (at, top))?;
        }
        for (row, heading) in rows.iter().zip(&headings) {
            y += LINE;
            if let Some(heading) = heading {
                root.draw_text(heading, &style_of(15, &INK, HPos::Left), (8, y))?;
                y += LINE;
            }
            let name = &figure.panels[row.panel].name;
            root.draw_text(name, &style_of(13, &INK, HPos::Left), (16, y))?;
            for (column, cell) in (0..).zip(&row.cells) {
                let Some(cell) = cell else { continue };
                let (fill, ink) = colours(cell.level());
                let at = (left + CELL_WIDTH * column, y - LINE / 2);
                let to = (at.0 + CELL_WIDTH - 2, at.1 + LINE - 2);
                root.draw(&Rectangle::new([at, to], fill.filled()))?;
                if cell.best() {
                    root.draw(&Rectangle::new([at, to], INK.stroke_width(2)))?;
                }
                let middle = (at.0 + CELL_WIDTH / 2 - 1, y);
                root.draw_text(&cell.text(quantity), &style_of(13, &ink, HPos::Center), middle)?;
            }
        }
        Ok(())
    }
}

pub(crate) fn style_of(size: i32, colour: &RGBColor, at: HPos) -> TextStyle<'_> {
    TextStyle::from((FONT, size).into_font()).color(colour).pos(Pos::new(at, VPos::Center))
}

/// Returns the heading above each row, for the rows that begin a group.
pub(crate) fn headings<'a>(figure: &'a FigurePlan, rows: &[Row]) -> Vec<Option<&'a str>> {
    let mut last = "";
    let heading = |row: &Row| {
        let group = figure.panels[row.panel].group.as_str();
        (std::mem::replace(&mut last, group) != group).then_some(group)
    };
    rows.iter().map(heading).collect()
}

pub(crate) fn colours(level: usize) -> (RGBColor, RGBColor) {
    let ((r, g, b), ink) = FILLS[level.min(FILLS.len() - 1)];
    (RGBColor(r, g, b), RGBColor(ink.0, ink.1, ink.2))
}

/// Returns the colours as CSS classes `h0` to `h8`, for light and dark pages.
pub(crate) fn style() -> String {
    let rule = |level: usize| {
        let (fill, ink) = colours(level);
        let hex = |c: RGBColor| format!("#{:02x}{:02x}{:02x}", c.0, c.1, c.2);
        format!(".h{level}{{background:{};color:{}}}", hex(fill), hex(ink))
    };
    (0..FILLS.len()).map(rule).collect::<String>() + DARK
}

/// Colours in dark mode: the best cells are darkest and the worst are brightest.
const DARK: &str = "@media (prefers-color-scheme:dark){\
.h0{background:#14352b;color:#d9f2e6}.h1{background:#2a3620;color:#eef2d8}.h2{background:#473a14;color:#fbeecb}\
.h3{background:#6a4a12;color:#ffefd2}.h4{background:#95591a;color:#fff3e2}.h5{background:#c9702f;color:#1c0900}\
.h6{background:#ee8f5c;color:#240800}.h7{background:#ffb9a0;color:#2b0500}.h8{background:#e8e8ee;color:#16161a}}";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::picture::svg;
    use crate::paper::testing::map;

    #[test]
    fn rows_by_hand() {
        let one = |value: f64| [Some(value)];
        let plan = map(
            "",
            &[&[&one(1.0), &one(1.02), &[None]], &[&one(3.0), &one(2.0), &one(9.0)], &[&one(5.0), &one(5.0)]],
        );
        let rows = rows(&plan, 0);
        let ratio = |row: usize, column: usize| rows[row].cells[column].as_ref().map(|cell| cell.ratio);
        assert_eq!((ratio(0, 0), ratio(0, 1), ratio(0, 2)), (Some(Some(1.0)), Some(Some(1.02)), Some(None)));
        assert_eq!((ratio(1, 0), ratio(1, 2), ratio(2, 2)), (Some(Some(1.5)), Some(Some(4.5)), None));
        let levels: Vec<_> =
            rows.iter().flat_map(|row| row.cells.iter().flatten().map(Cell::level)).collect();
        assert_eq!(levels, [0, 0, 8, 4, 0, 7, 0, 0]);
        let best: Vec<_> = rows.iter().flat_map(|row| row.cells.iter().flatten().map(Cell::best)).collect();
        assert_eq!(best, [true, false, false, false, true, false, true, true]);
        assert_eq!(rows[0].cells[2].as_ref().unwrap().text(Quantity::Plain), "1 left");
        assert_eq!(headings(&plan, &rows), [Some("G"), None, Some("H")]);
    }

    #[test]
    fn a_picture_names_rows_and_curves() {
        let plan = map("", &[&[&[Some(1.5)], &[Some(2.0)], &[None]]]);
        let svg = svg(&HeatMap::new(&plan, 0)).unwrap();
        for text in ["first", "1.500", "1 left", UNFINISHED_TEXT] {
            assert!(svg.contains(text), "{text}");
        }
    }
}
