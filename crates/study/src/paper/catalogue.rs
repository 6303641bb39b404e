//! Collection of papers, embedded in the program or read from a folder.

use std::collections::BTreeMap;
use std::path::Path;

use include_dir::{Dir, include_dir};
use pathweave_scenario::read_text_file;
use serde::de::DeserializeOwned;

use crate::paper::error::{PaperError, unknown};
use crate::paper::model::{FigureFile, PaperFile, Reading, Series, Variant};

/// File in a paper's folder that records the results of its figures.
pub(crate) const RECORD_FILE: &str = "results.json";

static EMBEDDED: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/papers");

/// Largest accepted file of a paper, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Contents of the files in a paper's folder, by name.
type Files = BTreeMap<String, String>;

/// Collection of papers.
#[derive(Clone, Debug)]
pub struct Catalogue {
    papers: BTreeMap<String, Files>,
}

/// Paper with its figures.
#[derive(Clone, Debug)]
pub struct Paper {
    /// Name of the paper's folder.
    pub name: String,
    /// Content of `paper.toml`.
    pub file: PaperFile,
    /// Figures and tables, in the order of `paper.toml`.
    pub figures: Vec<Figure>,
    files: Files,
}

/// Figure or table that is repeated.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Id, for instance "6a" or "table-1".
    pub id: String,
    /// Content of the figure's file.
    pub file: FigureFile,
}

impl Catalogue {
    /// Returns the papers that are embedded in the program.
    pub fn embedded() -> Self {
        let mut papers = BTreeMap::new();
        for dir in EMBEDDED.dirs() {
            let mut files = Files::new();
            for file in dir.files() {
                if let (Some(name), Some(text)) = (file.path().file_name(), file.contents_utf8()) {
                    files.insert(name.to_string_lossy().into_owned(), text.to_owned());
                }
            }
            if let Some(name) = dir.path().file_name().filter(|_| files.contains_key("paper.toml")) {
                papers.insert(name.to_string_lossy().into_owned(), files);
            }
        }
        Catalogue { papers }
    }

    /// Reads a paper from each folder in `folder`.
    pub fn read(folder: &Path) -> Result<Self, PaperError> {
        let failed = |path: &Path| {
            let file = path.display().to_string();
            move |why: std::io::Error| PaperError::File { file, message: why.to_string() }
        };
        let mut papers = BTreeMap::new();
        for entry in std::fs::read_dir(folder).map_err(failed(folder))? {
            let path = entry.map_err(failed(folder))?.path();
            if !path.join("paper.toml").is_file() {
                continue;
            }
            let mut files = Files::new();
            for entry in std::fs::read_dir(&path).map_err(failed(&path))? {
                let file = entry.map_err(failed(&path))?.path();
                let record = file.file_name().is_some_and(|name| name == RECORD_FILE);
                if record || file.extension().is_some_and(|extension| extension == "toml") {
                    let text = read_text_file(&file, MAX_FILE_BYTES)
                        .map_err(|message| PaperError::File { file: file.display().to_string(), message })?;
                    files.insert(file.file_name().unwrap_or_default().to_string_lossy().into_owned(), text);
                }
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            papers.insert(name, files);
        }
        Ok(Catalogue { papers })
    }

    /// Returns the names of the papers.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.papers.keys().map(String::as_str)
    }

    /// Returns the paper of this name.
    pub fn paper(&self, name: &str) -> Result<Paper, PaperError> {
        let files = self.papers.get(name).ok_or_else(|| unknown("paper", name, self.names()))?;
        let file: PaperFile = parse(name, files, "paper.toml")?;
        let mut figures = Vec::new();
        for id in &file.figures {
            let mut figure: FigureFile = parse(name, files, &format!("{id}.toml"))?;
            if figure.series.is_empty() {
                figure.series.clone_from(&file.series);
            }
            figure.series.append(&mut figure.more);
            expand_readings(&mut figure, &file.reading)
                .map_err(|message| PaperError::File { file: format!("papers/{name}/{id}.toml"), message })?;
            figures.push(Figure { id: id.clone(), file: figure });
        }
        for figure in &figures {
            check_reasons(figure, &file.figures).map_err(|message| PaperError::File {
                file: format!("papers/{name}/{}.toml", figure.id),
                message,
            })?;
        }
        for shown in &file.shown {
            let ids = || file.figures.iter().map(String::as_str);
            if let Some(id) = shown.figures.iter().find(|id| !file.figures.contains(id)) {
                let message = format!("\"{}\": {}", shown.name, unknown("figure", id, ids()));
                return Err(PaperError::File { file: format!("papers/{name}/paper.toml"), message });
            }
        }
        Ok(Paper { name: name.to_owned(), file, figures, files: files.clone() })
    }
}

/// Expands every curve without a variant into one curve per reading that the figure lists.
fn expand_readings(figure: &mut FigureFile, known: &[Reading]) -> Result<(), String> {
    let names = || known.iter().map(|reading| reading.name.as_str());
    let find = |name: &str| known.iter().find(|reading| reading.name == name);
    for series in &figure.series {
        let name = series.variant.as_ref().map_or("", Variant::name);
        if !name.is_empty() && !Variant::BUILT_IN.contains(&name) && find(name).is_none() {
            let all = Variant::BUILT_IN.into_iter().chain(names());
            return Err(unknown("variant", name, all).to_string());
        }
    }
    let missing = figure.readings.iter().find(|name| find(name).is_none());
    if let Some(name) = missing {
        return Err(unknown("reading", name, names()).to_string());
    }
    let readings: Vec<&Reading> = figure.readings.iter().filter_map(|name| find(name)).collect();
    if readings.is_empty() {
        return Ok(());
    }
    let each = |series: Series| -> Vec<Series> {
        if series.variant.is_some() {
            return vec![series];
        }
        let by = |reading: &&Reading| {
            let mut set = series.set.clone();
            set.extend(reading.set.clone());
            Series { variant: Some(Variant::new(&reading.name)), set, ..series.clone() }
        };
        readings.iter().map(by).collect()
    };
    figure.series = std::mem::take(&mut figure.series).into_iter().flat_map(each).collect();
    Ok(())
}

/// Checks the reasons of all claims: the variant must exist, and the figure that shows the reason must be on the
/// page.
fn check_reasons(figure: &Figure, figures: &[String]) -> Result<(), String> {
    let testbed = [Variant::MEASURED, Variant::SIMULATED, ""];
    let variants = figure.file.series.iter().filter_map(|series| series.variant.as_ref().map(Variant::name));
    for claim in &figure.file.claim {
        for (variant, why) in &claim.why {
            let within = |what: PaperError| format!("claim \"{}\": {what}", claim.text);
            let known = || variants.clone().chain(testbed);
            if !known().any(|name| name == variant) {
                return Err(within(unknown("variant", variant, known())));
            }
            if !figures.contains(&why.figure) {
                return Err(within(unknown("figure", &why.figure, figures.iter().map(String::as_str))));
            }
        }
    }
    Ok(())
}

impl Paper {
    /// Returns a figure by its id. "fig6a", "figure 6a" and "6A" also find 6a.
    pub fn figure(&self, id: &str) -> Result<&Figure, PaperError> {
        let plain = id.to_ascii_lowercase();
        let plain =
            ["figure", "fig."].iter().fold(plain.as_str(), |text, prefix| text.trim_start_matches(prefix));
        let plain = plain.strip_prefix("fig").unwrap_or(plain).trim_matches([' ', '-']);
        let found = self.figures.iter().find(|figure| figure.id == id || figure.id == plain);
        found.ok_or_else(|| {
            unknown(
                &format!("figure of {}", self.name),
                id,
                self.figures.iter().map(|figure| figure.id.as_str()),
            )
        })
    }

    /// Returns the text of a file in the paper's folder.
    pub(crate) fn text(&self, file: &str) -> Option<&str> {
        self.files.get(file).map(String::as_str)
    }

    /// Returns the names of the files in the paper's folder.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }
}

fn parse<T: DeserializeOwned>(paper: &str, files: &Files, name: &str) -> Result<T, PaperError> {
    let file = format!("papers/{paper}/{name}");
    let wrong = |message: String| PaperError::File { file: file.clone(), message };
    let text = files.get(name).ok_or_else(|| wrong("there is no such file".to_owned()))?;
    toml::from_str(text).map_err(|why| wrong(why.to_string().trim_end().to_owned()))
}
