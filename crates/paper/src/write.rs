//! The folder of a paper's results: appears complete or not at all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::chart;
use crate::claims::Verdict;
use crate::draw;
use crate::error::PaperError;
use crate::page;
use crate::plan::Plan;
use crate::scores;
use crate::table;

/// How the results came about.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The command that makes them again.
    pub command: String,
    /// Version of the program.
    pub version: String,
    /// It was interrupted: figures have gaps.
    pub partial: bool,
}

/// A folder that results will replace or become.
#[derive(Debug)]
pub struct Destination {
    path: PathBuf,
    partial: PathBuf,
}

impl Destination {
    /// `path` must be free, empty, or a result of ours. Checked before the work, not after it.
    pub fn create(path: &Path) -> Result<Self, PaperError> {
        check(path)?;
        let full = std::path::absolute(path).map_err(output(path))?;
        let name = full.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let parent = full.parent().unwrap_or(Path::new("")).to_owned();
        fs::create_dir_all(&parent).map_err(output(&parent))?;
        let partial = parent.join(format!(".{name}.partial-{}", std::process::id()));
        fs::create_dir(&partial).map_err(output(&partial))?;
        Ok(Destination { path: full, partial })
    }

    /// Writes pictures, data and the page, and puts them in place.
    pub fn write(self, plan: &Plan, verdicts: &[Verdict], settings: &Settings) -> Result<(), PaperError> {
        let mut pictures = Vec::new();
        for figure in &plan.figures {
            let id = &figure.figure.id;
            let failed = |why: Box<dyn std::error::Error + Send + Sync>| PaperError::Plot {
                figure: id.clone(),
                message: why.to_string(),
            };
            let Some(svg) = draw::svg(figure) else {
                pictures.push(None);
                continue;
            };
            let svg = svg.map_err(failed)?;
            self.file(&format!("{}.png", stem(id)), &chart::png(&svg).map_err(failed)?)?;
            self.file(&format!("{}.svg", stem(id)), svg.as_bytes())?;
            pictures.push(Some(svg));
        }
        self.file("claims.json", json(verdicts).as_bytes())?;
        self.file("measures.csv", table::measures_csv(plan).as_bytes())?;
        self.file("samples.csv", table::samples_csv(plan).as_bytes())?;
        self.file("traces.csv", table::traces_csv(plan).as_bytes())?;
        for (name, text) in [("scores.csv", scores::scores_csv(plan)), ("rows.csv", scores::rows_csv(plan))] {
            if let Some(text) = text {
                self.file(name, text.as_bytes())?;
            }
        }
        self.file("index.html", page::html(plan, verdicts, &pictures, settings).as_bytes())?;
        check(&self.path)?;
        if self.path.exists() {
            let old = self.partial.with_extension("old");
            fs::rename(&self.path, &old).map_err(output(&self.path))?;
            if let Err(why) = fs::rename(&self.partial, &self.path) {
                let _ = fs::rename(&old, &self.path);
                return Err(output(&self.path)(why));
            }
            let _ = fs::remove_dir_all(&old);
            return Ok(());
        }
        fs::rename(&self.partial, &self.path).map_err(output(&self.path))
    }

    fn file(&self, name: &str, content: &[u8]) -> Result<(), PaperError> {
        let path = self.partial.join(name);
        fs::write(&path, content).map_err(output(&path))
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        // After a success it is gone already.
        let _ = fs::remove_dir_all(&self.partial);
    }
}

/// "6a" to "figure-6a", "table-1" stays.
pub(crate) fn stem(id: &str) -> String {
    if id.starts_with(|c: char| c.is_ascii_digit()) { format!("figure-{id}") } else { id.to_owned() }
}

/// The verdicts as `--json` prints them.
pub fn json(verdicts: &[Verdict]) -> String {
    #[derive(Serialize)]
    struct Claims<'a> {
        claims: &'a [Verdict],
    }
    let text = serde_json::to_string_pretty(&Claims { claims: verdicts });
    text.expect("plain data with text keys serialises") + "\n"
}

fn output(path: &Path) -> impl Fn(io::Error) -> PaperError + '_ {
    move |source| PaperError::Output { path: path.to_owned(), source }
}

const EXTENSIONS: [&str; 5] = ["svg", "png", "csv", "json", "html"];

/// Whether `path` is free, empty, or holds what an earlier call wrote and nothing else.
fn check(path: &Path) -> Result<(), PaperError> {
    let occupied = |found: &str| Err(PaperError::Occupied { path: path.to_owned(), found: found.to_owned() });
    match fs::symlink_metadata(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(output(path)(why)),
        Ok(metadata) if !metadata.is_dir() => return occupied("a file"),
        Ok(_) => {}
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(output(path))? {
        names.push(entry.map_err(output(path))?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let foreign =
        |name: &&String| !EXTENSIONS.iter().any(|extension| name.ends_with(&format!(".{extension}")));
    match names.iter().find(foreign) {
        Some(name) => occupied(name),
        None if !names.is_empty() && !names.iter().any(|name| name == "claims.json") => occupied(&names[0]),
        None => Ok(()),
    }
}
