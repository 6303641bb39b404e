//! Chart of curves against kinds of fabrics: the job time over the best, as a picture and as an HTML table.

use pathweave_report::escape;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use crate::paper::heat::{INK, LABEL, LINE, Row, colours, draw_legend, legend_width, level, style_of};
use crate::paper::judged::{Mean, fabrics, means};
use crate::paper::picture::{Area, Backend, DrawError, Picture};
use crate::paper::plan::FigurePlan;
use crate::paper::table::quoted;

/// Heading of the last column.
const ALL: &str = "all";
const TITLE: &str = "Job time over the best scheme of each row, geometric mean";

/// Chart of a figure: a line for each curve, best first, and a column for each kind of fabrics.
pub(crate) struct ByJobs {
    /// Names of the columns with their numbers of rows.
    columns: Vec<(String, usize)>,
    lines: Vec<Line>,
}

struct Line {
    series: String,
    /// Summary by column. `None` if the column has no row of the curve.
    cells: Vec<Option<Mean>>,
}

impl ByJobs {
    /// Returns the chart, or `None` if the figure names no kinds of fabrics, or has no rows with jobs of these kinds.
    pub(crate) fn new(figure: &FigurePlan) -> Option<Self> {
        let mut kinds = fabrics(figure);
        // A row of two kinds counts once.
        let mut all: Vec<Row> = kinds.iter().flat_map(|(_, rows)| rows).cloned().collect();
        all.sort_by_key(|row| row.panel);
        all.dedup_by_key(|row| row.panel);
        if all.is_empty() {
            return None;
        }
        let order = means(all.iter());
        kinds.push((ALL.to_owned(), all));
        let columns: Vec<Vec<Mean>> = kinds.iter().map(|(_, rows)| means(rows.iter())).collect();
        let line = |mean: &Mean| Line {
            series: figure.figure.file.series[mean.series].label(),
            cells: columns
                .iter()
                .map(|all| all.iter().find(|of| of.series == mean.series).cloned())
                .collect(),
        };
        let lines = order.iter().map(line).collect();
        Some(ByJobs { columns: kinds.into_iter().map(|(name, rows)| (name, rows.len())).collect(), lines })
    }

    /// Returns the chart as a table of a page.
    pub(crate) fn html(&self) -> String {
        let mut text = format!("<h3>By jobs: {TITLE}</h3>\n<table class=\"map\"><tr><th></th>");
        for (name, rows) in &self.columns {
            text.push_str(&format!("<th>{} <small>{rows}</small></th>", escape(name)));
        }
        text.push_str("</tr>\n");
        for line in &self.lines {
            text.push_str(&format!("<tr><th>{}</th>", escape(&line.series)));
            for cell in &line.cells {
                text.push_str(&cell.as_ref().map_or("<td></td>".to_owned(), |mean| {
                    format!("<td class=\"h{}\">{}</td>", shade(mean), words(mean))
                }));
            }
            text.push_str("</tr>\n");
        }
        text + "</table>\n<p class=\"note\">Small: number of rows. A scheme that leaves a job of a column unfinished has no \
                number there, only the number of such rows.</p>\n"
    }

    /// Returns a line for each curve and column, without a heading. `id` is the figure's.
    pub(crate) fn csv(&self, id: &str) -> String {
        let mut text = String::new();
        for line in &self.lines {
            for ((name, _), mean) in self.columns.iter().zip(&line.cells) {
                let Some(mean) = mean else { continue };
                text.push_str(&format!(
                    "{},{},{},{},{},{}\n",
                    quoted(id),
                    quoted(&line.series),
                    quoted(name),
                    mean.rows,
                    mean.unfinished,
                    shown(mean).map(|ratio| ratio.to_string()).unwrap_or_default()
                ));
            }
        }
        text
    }

    fn left_width(&self) -> i32 {
        self.lines.iter().map(|line| LABEL.width(&line.series)).max().unwrap_or(0) as i32 + 24
    }

    fn headings(&self) -> Vec<Vec<String>> {
        self.columns.iter().map(|(name, _)| LABEL.wrap(name, COLUMN as u32 - 8)).collect()
    }

    fn heading_height(&self) -> i32 {
        self.headings().iter().map(Vec::len).max().unwrap_or(1) as i32 * LABEL.line() as i32
    }
}

/// Heading of [`ByJobs::csv`].
pub(crate) const CSV_HEAD: &str = "figure,series,fabric,rows,unfinished_rows,job_time_over_best\n";

/// Returns the ratio, unless an unfinished job would make it a mean of the other rows only.
fn shown(mean: &Mean) -> Option<f64> {
    mean.ratio.filter(|_| mean.unfinished == 0)
}

fn words(mean: &Mean) -> String {
    match shown(mean) {
        Some(ratio) => format!("{ratio:.3}"),
        None if mean.unfinished > 0 => format!("{} unfinished", mean.unfinished),
        None => "-".to_owned(),
    }
}

fn shade(mean: &Mean) -> usize {
    level(shown(mean))
}

/// Width of a column in points.
const COLUMN: i32 = 92;

impl Picture for ByJobs {
    fn size(&self) -> (u32, u32) {
        let width = self.left_width() + COLUMN * self.columns.len() as i32 + 12;
        let height = LINE * (self.lines.len() as i32 + 3) + self.heading_height() + 12;
        (width.max(legend_width()) as u32, height as u32)
    }

    fn draw<B: Backend>(&self, root: &Area<B>) -> Result<(), DrawError> {
        root.draw_text(TITLE, &style_of(17, &INK, HPos::Left), (8, LINE * 2 / 3))?;
        draw_legend(root, LINE + 6)?;
        let (left, top) = (self.left_width(), LINE * 2 + 8);
        let middle = |column: i32| left + COLUMN * column + COLUMN / 2;
        for (column, lines) in (0..).zip(self.headings()) {
            LABEL.draw(root, &lines, (middle(column), top))?;
        }
        let mut y = top + self.heading_height() + LINE * 2 / 3;
        for line in &self.lines {
            root.draw_text(&line.series, &style_of(13, &INK, HPos::Left), (8, y))?;
            for (column, mean) in (0..).zip(&line.cells) {
                let Some(mean) = mean else { continue };
                let (fill, ink) = colours(shade(mean));
                let at = (left + COLUMN * column, y - LINE / 2);
                root.draw(&Rectangle::new([at, (at.0 + COLUMN - 2, at.1 + LINE - 2)], fill.filled()))?;
                root.draw_text(&words(mean), &style_of(13, &ink, HPos::Center), (middle(column) - 1, y))?;
            }
            y += LINE;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::picture::svg;
    use crate::paper::plan::Traffic;
    use crate::paper::testing::judged_map;

    /// Job times of a row by curve.
    fn row(times: [Option<f64>; 3]) -> (Traffic, [[Option<f64>; 3]; 3]) {
        (Traffic::Jobs, times.map(|time| [time, Some(1.0), None]))
    }

    #[test]
    fn schemes_are_in_the_order_of_all_rows_and_unfinished_ones_last() {
        let plan = judged_map(&[
            row([Some(2.0), Some(1.0), Some(1.0)]),
            row([Some(1.0), Some(4.0), None]),
            row([Some(1.0), Some(1.0), Some(1.0)]),
        ]);
        let chart = ByJobs::new(&plan).unwrap();
        assert_eq!(
            chart.csv("rows"),
            // Of a: the cube root of 2 x 1 x 1, of b: of 1 x 4 x 1.
            format!(
                "rows,a,x,1,0,2\nrows,a,y,2,0,1\nrows,a,all,3,0,{}\nrows,b,x,1,0,1\nrows,b,y,2,0,2\nrows,b,all,3,0,{}\n\
                 rows,c,x,1,0,1\nrows,c,y,1,1,\nrows,c,all,2,1,\n",
                (2f64.ln() / 3.0).exp(),
                (4f64.ln() / 3.0).exp()
            )
        );
        let page = chart.html();
        assert!(page.contains("<th>y <small>2</small></th>"), "{page}");
        assert!(
            page.contains("<tr><th>c</th><td class=\"h0\">1.000</td><td class=\"h8\">1 unfinished</td>"),
            "{page}"
        );
        let picture = svg(&chart).unwrap();
        for text in ["all", "1.260", "1.587", "1 unfinished", TITLE] {
            assert!(picture.contains(text), "{text}");
        }
    }

    #[test]
    fn a_figure_without_rows_with_jobs_has_no_chart() {
        let arrivals = (Traffic::Arrivals, [[None, Some(1.0), None]; 3]);
        assert!(ByJobs::new(&judged_map(&[arrivals])).is_none());
        assert!(ByJobs::new(&crate::paper::testing::map("", &[&[&[Some(1.0)]]])).is_none());
    }
}
