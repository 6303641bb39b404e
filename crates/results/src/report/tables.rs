//! The tables of the report.

use std::fmt::Write;

use crate::grid::Grid;

/// `text` with the characters HTML gives a meaning replaced; safe in an attribute too.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// A grid as an HTML table. Each figure carries the number its text was made from in `data-value`.
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
                None if column == "ratio" => write!(out, "<td class=\"ratio\">{text}</td>"),
                None => write!(out, "<td>{text}</td>"),
            };
        }
        out.push_str("</tr>\n");
    }
    out + "</tbody></table></div>\n"
}
