//! HTML tables of the report.

use std::fmt::Write;

use crate::grid::Grid;
use crate::template::escape;

/// Formats a grid as an HTML table. Each figure carries the underlying number in `data-value`.
pub(super) fn html_table(grid: &Grid) -> String {
    let mut out = format!("<div class=\"scroll\"><table><thead><tr><th>{}</th>", escape(&grid.title));
    for column in &grid.columns {
        let class = if column == "ratio" { " class=\"ratio\"" } else { "" };
        let _ = write!(out, "<th{class}>{}</th>", escape(column));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in &grid.rows {
        let _ = write!(out, "<tr><th>{}</th>", escape(&row.label));
        for (cell, column) in row.cells.iter().zip(&grid.columns) {
            let text = escape(&cell.text);
            let _ = match cell.value {
                Some(value) => write!(out, "<td data-value=\"{value}\">{text}</td>"),
                None if column == "ratio" => {
                    let (mood, word) = match cell.is_better {
                        Some(true) => (" good", " title=\"better\""),
                        Some(false) => (" bad", " title=\"worse\""),
                        None => ("", ""),
                    };
                    write!(out, "<td class=\"ratio{mood}\"{word}>{text}</td>")
                }
                None => write!(out, "<td>{text}</td>"),
            };
        }
        out.push_str("</tr>\n");
    }
    out + "</tbody></table></div>\n"
}
