//! Links beside a picture that save it: as SVG and CSV on pages without script, as PNG where scripts run.

use std::fmt::Write;

use crate::chart::colours_of_both_themes;
use crate::export::quoted;
use crate::template::escape;

/// Script that draws the PNG of each picture from its SVG when it is asked for. Pages with [`SavedPicture::links`] end
/// with it.
pub const PNG_SCRIPT: &str = include_str!("png.js");

/// Height of a line of text in a saved picture, and the space around the picture.
const LINE: f64 = 18.0;
const PAD: f64 = 10.0;

/// Style of every saved picture.
const STYLE: &str = "text{font:12px sans-serif;fill:var(--soft)}text.title{font-weight:700;fill:var(--text)}\
                     text.legend,text.point{fill:var(--text)}.grid{stroke:var(--grid);fill:none}\
                     .level{stroke:var(--soft);stroke-dasharray:4 4;fill:none}\
                     .curve{fill:none;stroke-width:2}.less,.busy{stroke:var(--c0);fill:none}.more{stroke:var(--c1);fill:none}\
                     .node{fill:var(--soft)}";

/// Picture of a page, with the numbers behind it.
#[derive(Clone, Debug)]
pub struct SavedPicture<'a> {
    /// Title, from which the files have their names.
    pub name: &'a str,
    /// Picture, an `svg` element with a `viewBox`.
    pub svg: &'a str,
    /// Rules for classes that only pictures of this page have.
    pub style: &'a str,
    /// Names with the numbers of their colours.
    pub legend: &'a [(&'a str, usize)],
    /// Numbers of the picture, with units in the headings.
    pub csv: &'a str,
}

impl SavedPicture<'_> {
    /// Returns the links as a paragraph.
    pub fn links(&self) -> String {
        let name = file_name(self.name);
        let link = |kind: &str, data: &str, content: &str| {
            format!(
                "<a download=\"{name}.{}\" aria-label=\"Save {} as {kind}\" href=\"data:{data};charset=utf-8,{}\">{kind}</a>",
                kind.to_lowercase(),
                escape(self.name),
                escape(&encoded(content))
            )
        };
        let png = format!(
            "<a class=\"png\" hidden download=\"{name}.png\" aria-label=\"Save {} as PNG\" href=\"#\">PNG</a>",
            escape(self.name)
        );
        let svg = link("SVG", "image/svg+xml", &self.file());
        format!("<p class=\"export\">Save {svg} {png} {}</p>\n", link("CSV", "text/csv", self.csv))
    }

    /// Returns the picture as a file of its own, with title and legend, light or dark as the reader prefers.
    fn file(&self) -> String {
        let (head, body) = self.svg.split_once('>').unwrap_or_default();
        let size = head.split_once("viewBox=\"0 0 ").and_then(|(_, rest)| rest.split_once('"'));
        let size = size.and_then(|(size, _)| size.split_once(' '));
        let number = |text: &str| text.parse::<f64>().unwrap_or(0.0);
        let (width, height) = size.map_or((0.0, 0.0), |(width, height)| (number(width), number(height)));
        let body = body.split_once("</svg>").map_or(body, |(body, _)| body);
        let whole = height + LINE * (1 + self.legend.len()) as f64 + PAD;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{whole}\" viewBox=\"0 0 {width} {whole}\">\
             <style>{}{STYLE}{}</style><rect width=\"100%\" height=\"100%\" fill=\"var(--card)\"/>\
             <text class=\"title\" x=\"4\" y=\"14\">{}</text>\
             <svg y=\"{LINE}\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">{body}</svg>",
            colours_of_both_themes(),
            self.style,
            escape(self.name)
        );
        for (place, (name, colour)) in self.legend.iter().enumerate() {
            let y = height + LINE * (place + 2) as f64;
            let _ = write!(
                out,
                "<rect x=\"4\" y=\"{}\" width=\"10\" height=\"10\" style=\"fill:var(--c{colour})\"/>\
                 <text class=\"legend\" x=\"20\" y=\"{y}\">{}</text>",
                y - 9.0,
                escape(name)
            );
        }
        out + "</svg>"
    }
}

/// Returns a line of CSV.
pub fn csv_line(cells: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let cells: Vec<String> = cells.into_iter().map(|cell| quoted(cell.as_ref())).collect();
    cells.join(",") + "\n"
}

/// Encodes what ends or changes a data URL.
fn encoded(text: &str) -> String {
    text.replace('%', "%25")
        .replace('#', "%23")
        .replace('\n', "%0A")
        .replace('\t', "%09")
        .replace('\r', "%0D")
}

/// Returns a title as the name of a file: "Flows that are slower than ..." is `flows-that-are-slower-than`.
fn file_name(title: &str) -> String {
    let lower = title.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    if words.is_empty() { "picture".to_owned() } else { words.join("-") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_picture_stands_alone_with_title_and_legend() {
        let csv = csv_line(["name", "time (ns)"]) + &csv_line(["a, b", "7"]);
        assert_eq!(csv, "name,time (ns)\n\"a, b\",7\n");
        let picture = SavedPicture {
            name: "Load & time ...",
            svg: "<svg class=\"x\" viewBox=\"0 0 200 100\" role=\"img\"><path class=\"curve\" d=\"M0 0\"/></svg>",
            style: ".own{fill:red}",
            legend: &[("ecmp", 7)],
            csv: &csv,
        };
        let file = picture.file();
        // 100 of the picture, 18 for each of title and legend, and 10 below.
        assert!(
            file.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"200\" height=\"146\""),
            "{file}"
        );
        for part in [
            "Load &amp; time ...",
            "<path class=\"curve\" d=\"M0 0\"/></svg><rect",
            "fill:var(--c7)",
            ">ecmp</text></svg>",
            ".own{fill:red}",
            "prefers-color-scheme:dark",
        ] {
            assert!(file.contains(part), "{part} in {file}");
        }
        let links = picture.links();
        assert!(links.contains("download=\"load-time.svg\"") && links.contains("download=\"load-time.png\""));
        assert!(
            links.contains("href=\"data:text/csv;charset=utf-8,name,time (ns)%0A&quot;a, b&quot;,7%0A\""),
            "{links}"
        );
        let (_, svg) = links.split_once("href=\"").unwrap();
        assert!(!svg.split('"').next().unwrap().contains('#'), "a # would end the picture");
    }
}
