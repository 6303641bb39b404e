//! Plan of the runs of a sweep: every cell with every seed, with equal runs merged.

use std::collections::BTreeMap;
use std::path::Path;

use pathweave_report::figures;
use pathweave_scenario::{
    Changes, Diagnostic, Diagnostics, Document, FieldPath, FileKind, Loaded, Setting, closest_name,
};
use toml::Value;

use crate::sweep::cells::{self, Axis, Cell};
use crate::sweep::error::SweepError;
use crate::sweep::model::{StoredOutput, SweepFile};
use crate::sweep::record::{StoredFiles, key_of};

/// Decision about a cell of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The cell has its runs.
    Runs,
    /// The cell has no runs.
    StaysOut,
}

/// Run of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Digest of everything that the outcome depends on: scenario, contents of referenced files, seed, engine. 32
    /// hexadecimal digits.
    pub key: String,
    /// Index of the first cell that uses the run.
    pub cell: usize,
    /// Seed of the run.
    pub seed: u64,
    /// Description for people: cell and seed.
    pub label: String,
    /// Scenario as TOML, with all defaults filled in and absolute file paths.
    pub scenario: String,
}

/// Plan of a sweep.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name of the sweep.
    pub name: String,
    /// Axes of the sweep.
    pub axes: Vec<Axis>,
    /// Seeds of each cell.
    pub seeds: Vec<u64>,
    /// Every combination of values.
    pub cells: Vec<Cell>,
    /// Indices of each cell's runs, one per seed, or the reason why it has none: its settings are incompatible.
    pub runs_of: Vec<Result<Vec<usize>, String>>,
    /// Runs to execute.
    pub runs: Vec<Run>,
    /// Data stored for each run.
    pub keep: StoredFiles,
    /// Figure by which cells are judged, if the file names one.
    pub metric: Option<String>,
    /// Index of the axis whose values are compared.
    pub compare: usize,
}

impl Plan {
    /// Reads a sweep file and checks every cell of it.
    ///
    /// # Errors
    /// If the file is invalid, or if a value of an axis is invalid with all values of the other axes. An incompatible
    /// combination of values is not an error: that cell fails, and the others can run.
    pub fn read(path: &Path) -> Result<Self, SweepError> {
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Self::read_document(&Document::read(path, FileKind::Sweep)?, &name.unwrap_or_default())
    }

    /// Parses a sweep from a text. Errors call it `source_name`. Its file names are relative to `base_dir`.
    pub fn parse(text: &str, source_name: &str, base_dir: &Path) -> Result<Self, SweepError> {
        Self::read_document(
            &Document::parse(text, source_name, base_dir)?,
            source_name.trim_end_matches(".toml"),
        )
    }

    fn read_document(document: &Document, name: &str) -> Result<Self, SweepError> {
        Self::from_file(&document.to()?, document, name)
    }

    /// Plans a sweep that `document` contains, or from which it is derived. Errors carry their place in `document`.
    pub(crate) fn from_file(file: &SweepFile, document: &Document, name: &str) -> Result<Self, SweepError> {
        Self::of_chosen(file, document, name, |_, _| Admission::Runs)
    }

    /// The same, with runs only in those cells that `judge` lets run. It gets each cell that can be loaded,
    /// and its scenario.
    pub(crate) fn of_chosen(
        file: &SweepFile,
        document: &Document,
        name: &str,
        judge: impl FnMut(&Cell, &Loaded) -> Admission,
    ) -> Result<Self, SweepError> {
        let (axes, cells) = cells::cells(file, document)?;
        let seeds = cells::seeds(file);
        let mut plan = Plan {
            name: file.name.clone().unwrap_or_else(|| name.to_owned()),
            metric: metric(file, document)?,
            compare: compare(file, &axes, document)?,
            keep: match file.report.runs {
                StoredOutput::Figures => StoredFiles::Tables(file.tables.clone()),
                StoredOutput::Kept => StoredFiles::Whole,
            },
            axes,
            seeds,
            cells,
            runs_of: Vec::new(),
            runs: Vec::new(),
        };
        plan.load(file, document, judge)?;
        Ok(plan)
    }

    /// Loads the scenario of every cell.
    fn load(
        &mut self,
        file: &SweepFile,
        document: &Document,
        mut judge: impl FnMut(&Cell, &Loaded) -> Admission,
    ) -> Result<(), SweepError> {
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let mut refused: Vec<Option<Diagnostics>> = Vec::new();
        for (number, cell) in self.cells.iter().enumerate() {
            let loaded = match scenario(file, document, &cell.settings) {
                Ok(loaded) => loaded,
                Err(findings) => {
                    self.runs_of.push(Err(findings.to_string()));
                    refused.push(Some(findings));
                    continue;
                }
            };
            refused.push(None);
            let mut runs = Vec::new();
            if judge(cell, &loaded) == Admission::StaysOut {
                self.runs_of.push(Ok(runs));
                continue;
            }
            for &seed in &self.seeds {
                let loaded = loaded.with_seed(seed)?;
                let key = key_of(&loaded.identity()?);
                let run = *known.entry(key.clone()).or_insert_with(|| {
                    let label = format!("{}, seed {seed}", cell.label);
                    self.runs.push(Run { key, cell: number, seed, label, scenario: loaded.resolved() });
                    self.runs.len() - 1
                });
                runs.push(run);
            }
            self.runs_of.push(Ok(runs));
        }
        self.check_values(refused)
    }

    /// Returns an error for a value with which no cell can run. The error is reported before any run starts.
    fn check_values(&self, mut refused: Vec<Option<Diagnostics>>) -> Result<(), SweepError> {
        for (a, axis) in self.axes.iter().enumerate() {
            for v in 0..axis.values.len() {
                let of: Vec<usize> =
                    (0..self.cells.len()).filter(|&cell| self.cells[cell].value_indices[a] == v).collect();
                // A sample is one point among many, so that its failure is not a mistake in the file.
                let hopeless = of.iter().all(|&cell| refused[cell].is_some());
                if hopeless && axis.kind != cells::AxisKind::Sampled {
                    return Err(self.scenario_error(of[0], &mut refused));
                }
            }
        }
        match refused.iter().all(Option::is_some) {
            true => Err(self.scenario_error(0, &mut refused)),
            false => Ok(()),
        }
    }

    fn scenario_error(&self, cell: usize, refused: &mut [Option<Diagnostics>]) -> SweepError {
        let findings = refused[cell].take().expect("the cell was refused");
        SweepError::Scenario { label: self.cells[cell].label.clone(), findings }
    }
}

/// Loads the scenario with `settings`.
fn scenario(file: &SweepFile, document: &Document, settings: &[Setting]) -> Result<Loaded, Diagnostics> {
    let changes = Changes { settings: settings.to_vec(), ..Changes::default() };
    let field = FieldPath::root().key("scenario");
    match &file.scenario {
        Value::String(path) => document.scenario(&field, path, &changes),
        Value::Table(_) => Loaded::within(document, &field, "scenario", &changes),
        other => {
            let message = format!("`scenario` cannot be {}", other.type_str());
            let finding = Diagnostic::new(field, message);
            Err(document
                .place(finding.allowed("expected the path of a file, or a table laid out as one"))
                .into())
        }
    }
}

/// Returns the name of the report's figure, if the file has one, and an error if there is no such figure.
fn metric(file: &SweepFile, document: &Document) -> Result<Option<String>, Diagnostics> {
    let known = known_figures();
    let Some(metric) = file.report.metric.as_ref().filter(|metric| !known.contains(metric)) else {
        return Ok(file.report.metric.clone());
    };
    let names = || known.iter().map(String::as_str);
    let message = format!("no figure is named \"{metric}\"");
    let finding = Diagnostic::new(FieldPath::root().key("report").key("metric"), message)
        .allowed(format!("allowed: {}", names().collect::<Vec<_>>().join(", ")))
        .suggest(closest_name(metric, names()));
    Err(document.place(finding).into())
}

fn known_figures() -> Vec<String> {
    let nothing = pathweave_records::Summary::from_run(&Default::default());
    figures(&nothing).into_iter().map(|figure| figure.name).collect()
}

/// Returns the index of the axis whose values are compared.
fn compare(file: &SweepFile, axes: &[Axis], document: &Document) -> Result<usize, Diagnostics> {
    let find = |key: &str| axes.iter().position(|axis| axis.key == key);
    let Some(key) = &file.report.compare else { return Ok(find("scheme").unwrap_or(0)) };
    find(key).ok_or_else(|| {
        let names = axes.iter().map(|axis| axis.key.as_str());
        let message = format!("no axis is \"{key}\"");
        let finding = Diagnostic::new(FieldPath::root().key("report").key("compare"), message)
            .allowed(format!("axes: {}", names.clone().collect::<Vec<_>>().join(", ")))
            .suggest(closest_name(key, names));
        document.place(finding).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAR: &str = "[scenario.topology]\nkind = 'star'\nhosts = 4\n[[scenario.workload]]\nkind = 'incast'\nsenders = 3\nsize = '10KB'\n";

    fn plan(rest: &str) -> Result<Plan, String> {
        Plan::parse(&format!("{rest}\n{STAR}"), "s.toml", Path::new("")).map_err(|why| why.to_string())
    }

    #[test]
    fn runs_that_are_the_same_run_once_and_keys_tell_others_apart() {
        let plan = plan(
            "seeds = 2\n[[list]]\nname = 'a'\n[[list]]\nname = 'b'\nset = { 'topology.hosts' = 4 }\n[[list]]\nname = 'c'\nset = { scheme = 'ecmp' }\n",
        )
        .unwrap();
        assert_eq!((plan.cells.len(), plan.runs.len()), (3, 4));
        assert_eq!(plan.runs_of[0], plan.runs_of[1]);
        assert_ne!(plan.runs_of[0], plan.runs_of[2]);
        assert_eq!(plan.runs[0].key.len(), 32);
        assert!(plan.runs[1].scenario.contains("seed = 2"));
    }

    #[test]
    fn a_value_that_never_works_is_a_mistake_and_a_combination_a_failed_cell() {
        let why = plan("[[grid]]\nkey = 'scheme'\nvalues = ['rps', 'rsp']\n").unwrap_err();
        assert!(why.contains("scheme=rsp") && why.contains("did you mean `rps`?"), "{why}");
        let why = plan("[[grid]]\nkey = 'topology.hostz'\nvalues = [4, 8]\n").unwrap_err();
        assert!(why.contains("did you mean `hosts`?"), "{why}");
        let some = plan(
            "[[grid]]\nkey = 'topology'\nvalues = [{ kind = 'star', hosts = 4 }, { kind = 'dumbbell' }]\n[[grid]]\nkey = 'topology.hosts'\nvalues = [4, 8]\n",
        );
        assert!(some.unwrap_err().contains("topology"), "no dumbbell has hosts: each of its cells fails");
    }

    #[test]
    fn names_of_the_report_are_checked() {
        let grid = "[[grid]]\nkey = 'scheme'\nvalues = ['rps', 'ecmp']\n[report]\n";
        let why = plan(&format!("{grid}metric = 'slowdwn_p99'\n")).unwrap_err();
        assert!(why.contains("did you mean `slowdown_p99`?") && why.contains("s.toml:5"), "{why}");
        let why = plan(&format!("{grid}compare = 'skheme'\n")).unwrap_err();
        assert!(why.contains("did you mean `scheme`?"), "{why}");
    }

    #[test]
    fn the_scenario_is_a_path_or_a_table() {
        let why = Plan::parse("scenario = 3\n[[list]]\nname = 'a'\n", "s.toml", Path::new("")).unwrap_err();
        assert!(why.to_string().contains("expected the path of a file"), "{why}");
        let why =
            Plan::parse("scenario = 'no.toml'\n[[list]]\nname = 'a'\n", "s.toml", Path::new("")).unwrap_err();
        let why = why.to_string();
        assert!(why.contains("cannot read no.toml") && why.contains("--> s.toml:1:12"), "{why}");
    }

    /// The mistake is in the sweep file, so the error must not name the command line.
    #[test]
    fn wrong_keys_and_values_are_shown_where_the_sweep_has_them() {
        let wrong = |rest: &str, place: &str, what: &str| {
            let why = plan(rest).unwrap_err();
            assert!(why.contains(place) && why.contains(what) && !why.contains("command line"), "{why}");
        };
        wrong(
            "[[grid]]\nkey = 'topology.hostz'\nvalues = [4, 8]\n",
            "--> s.toml:2:7",
            "did you mean `hosts`?",
        );
        wrong(
            "[[grid]]\nkey = 'scheme'\nvalues = [\n  'rps',\n  'rsp',\n]\n",
            "--> s.toml:5:3",
            "did you mean `rps`?",
        );
        wrong("[[grid]]\nkey = 'topology.hosts'\nvalues = [4, -1]\n", "--> s.toml:3:14", "topology.hosts");
        wrong(
            "[[grid]]\nkey = 'a..b'\nvalues = [1]\n",
            "--> s.toml:2:7",
            "`a..b` is not the name of a field",
        );
        wrong(
            "[[list]]\nname = 'a'\nset = { 'workload[7].size' = '1MB' }\n",
            "--> s.toml:3:9",
            "has no item 7",
        );
        wrong(
            "set = { 'topology.hosts' = 'x' }\n[[list]]\nname = 'a'\n",
            "--> s.toml:1:28",
            "topology.hosts",
        );
        wrong(
            "[latin-hypercube]\nsamples = 2\n[[latin-hypercube.axis]]\nkey = 'workload[0].sise'\nfrom = 1\nto = 9\n",
            "--> s.toml:4:7",
            "did you mean `size`?",
        );
    }
}
