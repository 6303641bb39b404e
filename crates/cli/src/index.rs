//! The page that leads to the reports of several comparisons.

use std::fs;
use std::path::{Path, PathBuf};

use pathweave_results::Summary;

use crate::failure::Failure;

/// A comparison that has been written.
pub(crate) struct Page<'a> {
    pub(crate) name: &'a str,
    pub(crate) folder: PathBuf,
    pub(crate) table: String,
    pub(crate) summaries: Vec<&'a Summary>,
}

/// Writes `index.html` into `target`: appears complete or not at all.
pub(crate) fn write(target: &Path, pages: &[Page<'_>]) -> Result<(), Failure> {
    let path = target.join("index.html");
    let partial = target.join(format!(".index.html.partial-{}", std::process::id()));
    let written = fs::create_dir_all(target)
        .and_then(|()| fs::write(&partial, html(pages)))
        .and_then(|()| fs::rename(&partial, &path));
    written.map_err(|why| {
        let _ = fs::remove_file(&partial);
        Failure::Input(format!("cannot write {}: {why}", path.display()))
    })
}

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
         content=\"width=device-width\"><title>pathweave</title><style>{STYLE}</style></head>\n\
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
