//! What our pages beside the viewer have in common: one file, nothing fetched, our look, errors of scripts shown.

use super::tables::escape;

const TEMPLATE: &str = include_str!("../../assets/report.html");
const STYLE: &str = include_str!("../../assets/report.css");
/// Colours, numbers with units and small helpers, under the name `pw`.
const LOOK: &str = include_str!("../../assets/look.js");

/// A page with everything in it.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Text of the title.
    pub title: String,
    /// Style beside ours.
    pub style: &'static str,
    /// HTML at the top.
    pub header: String,
    /// HTML of the rest.
    pub body: String,
    /// HTML at the end.
    pub footer: String,
    /// JSON that scripts find by its id.
    pub data: Vec<(&'static str, String)>,
    /// Scripts, in order.
    pub scripts: Vec<&'static str>,
}

impl Page {
    /// The helpers that scripts of pages build on.
    pub fn look() -> &'static str {
        LOOK
    }

    /// The page as HTML.
    pub fn html(&self) -> String {
        let data = self.data.iter().map(|(id, json)| {
            // JSON that cannot end the script element it is in.
            let safe = json.replace('<', "\\u003c");
            format!("<script type=\"application/json\" id=\"{id}\">{safe}</script>\n")
        });
        let fill = [
            ("title", escape(&self.title)),
            ("style", format!("{}\n{STYLE}", self.style)),
            ("header", self.header.clone()),
            ("body", self.body.clone()),
            ("footer", self.footer.clone()),
            ("data", data.collect()),
            ("scripts", self.scripts.join("\n")),
        ];
        let mut page = String::new();
        let mut rest = TEMPLATE;
        // One pass over the template, so that nothing inserted is searched for placeholders.
        while let Some((before, after)) = rest.split_once("{{") {
            let (key, after) = after.split_once("}}").expect("the template closes what it opens");
            let (_, text) = fill.iter().find(|(k, _)| *k == key).expect("the template asks for known parts");
            page.push_str(before);
            page.push_str(text);
            rest = after;
        }
        page + rest
    }
}
