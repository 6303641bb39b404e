//! Collection of papers, embedded in the program or read from a folder.

use std::collections::BTreeMap;
use std::path::Path;

use include_dir::{Dir, include_dir};

use crate::paper::error::{PaperError, unknown};
use crate::paper::model::{FigureFile, PaperFile, Reading, Series, Variant};
use crate::text_files::{self, TextFiles};

/// File in a paper's folder that records the results of its figures.
pub(crate) const RECORD_FILE: &str = "results.json";
/// File that makes a folder a paper.
const PAPER_FILE: &str = "paper.toml";
/// Folder of papers in error messages.
const ROOT: &str = "papers";

static EMBEDDED: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/papers");

/// Collection of papers.
#[derive(Clone, Debug)]
pub struct Catalogue {
    files: TextFiles,
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
    /// Contents of the files in the paper's folder, by name.
    files: BTreeMap<String, String>,
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
        Catalogue { files: TextFiles::embedded(ROOT, &EMBEDDED) }
    }

    /// Reads a paper from each folder in `folder`.
    pub fn read(folder: &Path) -> Result<Self, PaperError> {
        let mut papers = text_files::names(folder)?;
        papers.retain(|name| folder.join(name).join(PAPER_FILE).is_file());
        let wanted = |name: &str| name == RECORD_FILE || name.ends_with(".toml");
        Ok(Catalogue { files: TextFiles::read(ROOT, folder, &papers, wanted)? })
    }

    /// Returns the names of the papers.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.files.paths().filter_map(|path| path.strip_suffix(PAPER_FILE)?.strip_suffix('/'))
    }

    /// Returns the paper of this name.
    pub fn paper(&self, name: &str) -> Result<Paper, PaperError> {
        if !self.names().any(|known| known == name) {
            return Err(unknown("paper", name, self.names()));
        }
        let place = |file: &str| format!("{name}/{file}");
        let in_file =
            |file: &str, message| PaperError::File { file: self.files.place(&place(file)), message };
        let file: PaperFile = self.files.parse(&place(PAPER_FILE))?;
        let mut figures = Vec::new();
        for id in &file.figures {
            let mut figure: FigureFile = self.files.parse(&place(&format!("{id}.toml")))?;
            if figure.series.is_empty() {
                figure.series.clone_from(&file.series);
            }
            figure.series.append(&mut figure.more);
            expand_readings(&mut figure, &file.reading)
                .map_err(|message| in_file(&format!("{id}.toml"), message))?;
            figures.push(Figure { id: id.clone(), file: figure });
        }
        for figure in &figures {
            check_reasons(figure, &file.figures)
                .map_err(|message| in_file(&format!("{}.toml", figure.id), message))?;
        }
        for shown in &file.shown {
            let ids = || file.figures.iter().map(String::as_str);
            if let Some(id) = shown.figures.iter().find(|id| !file.figures.contains(id)) {
                let message = format!("\"{}\": {}", shown.name, unknown("figure", id, ids()));
                return Err(in_file(PAPER_FILE, message));
            }
        }
        let files = self.files.within(name).map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
        Ok(Paper { name: name.to_owned(), file, figures, files })
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
