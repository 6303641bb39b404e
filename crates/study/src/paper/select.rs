//! Selection of the part of a paper that runs.

use crate::paper::catalogue::{Figure, Paper};
use crate::paper::error::{PaperError, unknown};
use crate::paper::model::{Against, Claim, FigureFile, OnlySize, Panel};

/// Size of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Shortened runs, for a first result within minutes.
    Quick,
    /// Runs of the published size.
    Full,
}

impl Size {
    /// Returns true if `panel` runs at this size.
    pub(crate) fn runs_panel(self, panel: &Panel) -> bool {
        self.allowed_by(panel.only)
    }

    /// Returns true if `only` does not exclude this size.
    pub(crate) fn allowed_by(self, only: Option<OnlySize>) -> bool {
        match only {
            None => true,
            Some(OnlySize::Quick) => self == Size::Quick,
            Some(OnlySize::Full) => self == Size::Full,
        }
    }

    /// Returns the command-line flag that selects this size.
    pub fn flag(self) -> &'static str {
        match self {
            Size::Quick => "--quick",
            Size::Full => "--full",
        }
    }
}

/// Part of a paper, selected by the names in its files. An empty field selects everything.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Id of the only figure to run.
    pub figure: Option<String>,
    /// Panels by name, heading or tag. A figure without any of them is left out.
    pub panels: Vec<String>,
    /// Curves by name. A figure without any of them is left out.
    pub series: Vec<String>,
}

/// Share of each selected figure that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Figures with all their panels and curves.
    Whole,
    /// Some panels or curves only. No verdict follows from them.
    Part,
}

impl Selection {
    /// Returns the extent of the selected figures.
    pub(crate) fn extent(&self) -> Extent {
        if self.panels.is_empty() && self.series.is_empty() { Extent::Whole } else { Extent::Part }
    }

    /// Returns the selected figures, with the selected panels, curves and the claims about them. Unknown names are
    /// errors.
    pub(crate) fn apply(&self, paper: &Paper, size: Size) -> Result<Vec<Figure>, PaperError> {
        let mut figures = match &self.figure {
            Some(id) => vec![paper.figure(id)?.clone()],
            None => paper.figures.clone(),
        };
        for figure in &mut figures {
            figure.file.panel.retain(|panel| size.runs_panel(panel));
        }
        self.check(&figures)?;
        for file in figures.iter_mut().map(|figure| &mut figure.file) {
            self.reduce(file);
        }
        // A figure is left out if a selection by panels or curves leaves it without any.
        let chosen = |file: &FigureFile| {
            (self.panels.is_empty() || !file.panel.is_empty())
                && (self.series.is_empty() || !file.series.is_empty())
        };
        figures.retain(|figure| chosen(&figure.file));
        Ok(figures)
    }

    fn check(&self, figures: &[Figure]) -> Result<(), PaperError> {
        let files = || figures.iter().map(|figure| &figure.file);
        let panels = || files().flat_map(|file| &file.panel);
        for name in &self.panels {
            if panels().next().is_none() {
                let ids: Vec<&str> = figures.iter().map(|figure| figure.id.as_str()).collect();
                return Err(PaperError::NoPanels { figures: ids.join(", ") });
            }
            if !panels().any(|panel| panel.matches_name(name)) {
                return Err(unknown("panel", name, distinct(panels().map(|p| p.name.as_str())).into_iter()));
            }
        }
        let series = || files().flat_map(|file| &file.series);
        for name in &self.series {
            if !series().any(|one| one.name == *name) {
                return Err(unknown("curve", name, distinct(series().map(|s| s.name.as_str())).into_iter()));
            }
        }
        Ok(())
    }

    fn reduce(&self, file: &mut FigureFile) {
        if !self.panels.is_empty() {
            file.panel.retain(|panel| self.panels.iter().any(|name| panel.matches_name(name)));
        }
        if !self.series.is_empty() {
            file.series.retain(|one| self.series.contains(&one.name));
            let names: Vec<&str> = file.series.iter().map(|one| one.name.as_str()).collect();
            file.claim.retain(|claim| can_be_judged(claim, &names));
            file.published.retain(|published| names.contains(&published.series.as_str()));
        }
    }
}

/// Returns true if `names` contains the curves that the claim compares.
pub(crate) fn can_be_judged(claim: &Claim, names: &[&str]) -> bool {
    let versus = claim.versus.as_ref();
    let other = versus.and_then(|versus| versus.series.as_deref());
    let rivals = versus.and_then(|versus| versus.against).is_none_or(|against| match against {
        Against::BestOfPanel | Against::EveryOther => names.len() > 1,
    });
    (claim.series == "*" || names.contains(&claim.series.as_str()))
        && other.is_none_or(|name| names.contains(&name))
        && rivals
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}
