//! Output folder of a paper: finished runs as they complete, and at the end the page with its data.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::sweep::{LOCK, RUNS, RunStore};
use serde::Serialize;

use crate::paper::by_jobs::{ByJobs, CSV_HEAD};
use crate::paper::claims::Verdict;
use crate::paper::draw;
use crate::paper::error::PaperError;
use crate::paper::page;
use crate::paper::picture::{DrawError, RenderedPicture};
use crate::paper::plan::Plan;
use crate::paper::run_cache::RunCache;
use crate::paper::scores;
use crate::paper::table;

/// Origin of the results.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Command that reproduces the results.
    pub command: String,
    /// Version of the program.
    pub version: String,
    /// True if the program was interrupted, so that figures have gaps.
    pub partial: bool,
}

/// Output folder of a paper's results. This process holds its lock while the value lives.
#[derive(Debug)]
pub struct Destination {
    path: PathBuf,
    kept: RunCache,
}

impl Destination {
    /// Opens the folder at `path`, a new one or one of an earlier call. It is checked before any work is done.
    ///
    /// # Errors
    /// If `path` holds anything else, if another run of a paper writes there, or if it cannot be written.
    pub fn open(path: &Path) -> Result<Self, PaperError> {
        check(path)?;
        let path = std::path::absolute(path).map_err(output(path))?;
        let store = RunStore::open(&path)?;
        let left = path.join(NEW);
        if left.exists() {
            fs::remove_dir_all(&left).map_err(output(&left))?;
        }
        Ok(Destination { kept: RunCache::new(store), path })
    }

    /// Returns the finished runs.
    pub fn kept(&self) -> &RunCache {
        &self.kept
    }

    /// Writes pictures, data and the page, and replaces older ones.
    ///
    /// # Errors
    /// If a picture cannot be drawn or a file cannot be written. The older files then stay in place.
    pub fn write(&self, plan: &Plan, verdicts: &[Verdict], settings: &Settings) -> Result<(), PaperError> {
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        let mut file = |name: String, content: Vec<u8>| files.push((name, content));
        let mut pictures = Vec::new();
        for figure in &plan.figures {
            let id = &figure.figure.id;
            let failed = |why: DrawError| PaperError::Plot { figure: id.clone(), message: why.to_string() };
            let Some(drawn) = draw::picture(figure) else {
                pictures.push(None);
                continue;
            };
            let RenderedPicture { svg, png } = drawn.map_err(failed)?;
            file(format!("{}.png", stem(id)), png);
            file(format!("{}.svg", stem(id)), svg.clone().into_bytes());
            file(format!("{}-numbers.csv", stem(id)), table::figure_csv(plan, figure).into_bytes());
            pictures.push(Some(svg));
        }
        for (figure, chart) in plan.figures.iter().filter_map(|figure| Some((figure, ByJobs::new(figure)?))) {
            let id = &figure.figure.id;
            let failed = |why: DrawError| PaperError::Plot { figure: id.clone(), message: why.to_string() };
            let RenderedPicture { svg, png } = RenderedPicture::new(&chart).map_err(failed)?;
            file(format!("{}-by-jobs.png", stem(id)), png);
            file(format!("{}-by-jobs.svg", stem(id)), svg.into_bytes());
            let csv = format!("{}{}", CSV_HEAD, chart.csv(id));
            file(format!("{}-by-jobs.csv", stem(id)), csv.into_bytes());
        }
        file("claims.json".to_owned(), json(verdicts).into_bytes());
        file("measures.csv".to_owned(), table::measures_csv(plan).into_bytes());
        file("samples.csv".to_owned(), table::samples_csv(plan).into_bytes());
        file("traces.csv".to_owned(), table::traces_csv(plan).into_bytes());
        let tables = [
            ("scores.csv", scores::scores_csv(plan)),
            ("rows.csv", scores::rows_csv(plan)),
            ("by-jobs.csv", scores::by_jobs_csv(plan)),
        ];
        for (name, text) in tables {
            if let Some(text) = text {
                file(name.to_owned(), text.into_bytes());
            }
        }
        // The page is written last, so that its presence proves that the rest is complete.
        file("index.html".to_owned(), page::html(plan, verdicts, &pictures, settings).into_bytes());
        self.replace(&files)
    }

    /// Replaces everything in the folder but the runs by `files`. All files are first written to a temporary folder,
    /// so that a full disk loses nothing.
    fn replace(&self, files: &[(String, Vec<u8>)]) -> Result<(), PaperError> {
        let new = self.path.join(NEW);
        fs::create_dir(&new).map_err(output(&new))?;
        for (name, content) in files {
            let path = new.join(name);
            fs::write(&path, content).map_err(output(&path))?;
        }
        check(&self.path)?;
        for name in names(&self.path)?.iter().filter(|name| !OURS.contains(&name.as_str())) {
            if !files.iter().any(|(known, _)| known == name) {
                let old = self.path.join(name);
                fs::remove_file(&old).map_err(output(&old))?;
            }
        }
        for (name, _) in files {
            let path = self.path.join(name);
            fs::rename(new.join(name), &path).map_err(output(&path))?;
        }
        fs::remove_dir(&new).map_err(output(&new))
    }
}

/// Returns the stem of file names: "6a" gives "figure-6a", and "table-1" stays as it is.
pub(crate) fn stem(id: &str) -> String {
    if id.starts_with(|c: char| c.is_ascii_digit()) { format!("figure-{id}") } else { id.to_owned() }
}

/// Returns the verdicts as `--json` prints them.
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
/// Temporary folder for the files until all of them are written.
const NEW: &str = ".new";
/// Names of this program that the folder may hold besides result files.
const OURS: [&str; 3] = [RUNS, LOCK, NEW];

/// Checks that `path` is free or empty, or holds only the output of an earlier call.
fn check(path: &Path) -> Result<(), PaperError> {
    let occupied = |found: &str| Err(PaperError::Occupied { path: path.to_owned(), found: found.to_owned() });
    match fs::symlink_metadata(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(output(path)(why)),
        Ok(metadata) if !metadata.is_dir() => return occupied("a file"),
        Ok(_) => {}
    }
    let mut names = names(path)?;
    names.retain(|name| !OURS.contains(&name.as_str()));
    let foreign =
        |name: &&String| !EXTENSIONS.iter().any(|extension| name.ends_with(&format!(".{extension}")));
    match names.iter().find(foreign) {
        Some(name) => occupied(name),
        None if !names.is_empty() && !names.iter().any(|name| name == "claims.json") => occupied(&names[0]),
        None => Ok(()),
    }
}

/// Returns the names in a folder, sorted.
fn names(path: &Path) -> Result<Vec<String>, PaperError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(output(path))? {
        names.push(entry.map_err(output(path))?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
