//! The page that leads to the reports of several comparisons.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use pathweave_results::Summary;

use crate::failure::Failure;
use crate::output::Output;

/// A comparison that has been written.
pub(crate) struct Page<'a> {
    pub(crate) name: &'a str,
    pub(crate) folder: PathBuf,
    pub(crate) table: String,
    pub(crate) summaries: Vec<&'a Summary>,
}

/// Whether the page may be written into `target`: one that is there already must be ours.
pub(crate) fn check(target: &Path) -> Result<(), Failure> {
    let path = target.join("index.html");
    let occupied = |found: &str| {
        Err(Failure::Input(format!(
            "{}: exists and is not a page of ours ({found}); choose another --out or remove it",
            path.display()
        )))
    };
    match fs::symlink_metadata(&path) {
        Err(_) => Ok(()),
        Ok(found) if !found.is_file() => occupied("it is no file"),
        Ok(_) => match fs::read_to_string(&path) {
            Ok(text) if text.contains(TITLE) => Ok(()),
            _ => occupied("it has another title"),
        },
    }
}

/// Writes `index.html` into `target`: appears complete or not at all.
pub(crate) fn write(target: &Path, pages: &[Page<'_>]) -> Result<(), Failure> {
    check(target)?;
    let path = target.join("index.html");
    let made = fs::create_dir_all(target);
    made.map_err(|why| Failure::Input(format!("cannot make {}: {why}", target.display())))?;
    Output::create(&path)?.write(|out| out.write_all(html(pages).as_bytes()))
}

/// By which a page is known to be ours.
const TITLE: &str = "<title>pathweave</title>";

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;\
color:#1c1c1c;background:#fff}pre{font-size:13px;line-height:1.3;overflow-x:auto;background:#f6f6f4;padding:1rem}\
@media(prefers-color-scheme:dark){body{color:#e6e6e3;background:#161616}pre{background:#202020}a{color:#8ab4f8}}";

fn html(pages: &[Page<'_>]) -> String {
    let mut body = String::new();
    for page in pages {
        let folder = page.folder.file_name().unwrap_or_default().to_string_lossy();
        let (name, table) = (escape(page.name), escape(&page.table));
        body.push_str(&format!(
            "<h2>{name}</h2>\n<p><a href=\"{}/report.html\">Report with pictures</a></p>\n<pre>{table}</pre>\n",
            escape(&folder)
        ));
    }
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\">{TITLE}<style>{STYLE}</style></head>\n\
         <body>\n<h1>Comparison</h1>\n{body}</body></html>\n"
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_the_page() {
        let page = Page {
            name: "<b>&\"",
            folder: PathBuf::from("out/b"),
            table: "1 < 2".to_owned(),
            summaries: vec![],
        };
        let html = html(&[page]);
        assert!(html.contains("<h2>&lt;b&gt;&amp;&quot;</h2>") && html.contains("<pre>1 &lt; 2</pre>"));
        assert!(html.contains("href=\"b/report.html\""));
    }
}
