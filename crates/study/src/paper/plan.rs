//! Plan of the runs of a paper: every point of every figure, with equal runs merged.

use std::collections::BTreeMap;

use pathweave_policy::{AnyPolicy, MpRdma, PolicyConfig, Udmp, find_scheme};
use pathweave_records::{Role, RunResult};
use pathweave_scenario::{Changes, Loaded, Prepared};
use toml::{Table, Value};

use crate::paper::catalogue::{Figure, Paper};
use crate::paper::check::check;
use crate::paper::error::PaperError;
use crate::paper::looks::Looks;
use crate::paper::model::{Metric, Panel, Part, Series, Variant, value_text};
use crate::paper::observe::{Observed, observe};
use crate::paper::run_cache;
use crate::paper::select::{Extent, Selection, Size};

/// Point of a figure: one bar, or one point of a curve.
#[derive(Clone, Debug)]
pub struct Point {
    /// Index of the panel.
    pub panel: usize,
    /// Index of the curve.
    pub series: usize,
    /// Index of the sweep value. 0 without a sweep.
    pub x: usize,
    /// Observations by seed. `None` until the run is recorded.
    pub observed: Vec<Option<Observed>>,
}

/// Traffic of a panel, which decides how its row is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Jobs: all messages are given at the start, or begin when others end.
    Jobs,
    /// Flows that arrive over time.
    Arrivals,
}

impl Traffic {
    fn of(prepared: &Prepared) -> Self {
        let spec = &prepared.spec;
        let mut groups = spec.graph.jobs().iter().map(|job| &spec.groups[usize::from(job.group.0)]);
        if groups.any(|group| group.role == Role::Foreground) { Traffic::Jobs } else { Traffic::Arrivals }
    }
}

/// Figure with its points.
#[derive(Clone, Debug)]
pub struct FigurePlan {
    /// The figure.
    pub figure: Figure,
    /// Panels of the figure. There is at least one.
    pub panels: Vec<Panel>,
    /// Values of the sweep as text. One empty text without a sweep.
    pub xs: Vec<String>,
    /// Seeds of each point.
    pub seeds: Vec<u64>,
    /// Every combination of panel, curve and sweep value.
    pub points: Vec<Point>,
    /// Traffic of each panel of a heat map with rules of judgement. Empty for other figures.
    pub traffic: Vec<Traffic>,
    /// Description of the changes against the paper.
    pub changes_text: String,
    /// Digest of everything that the figure takes from a run.
    pub(crate) observation_digest: String,
    /// Schedule by which runs stop once the claims are decided. `None` if every point has all seeds.
    pub looks: Option<Looks>,
}

impl FigurePlan {
    /// Returns the descriptions of the measurements behind its points, in order and without duplicates.
    pub fn methods(&self) -> Vec<&str> {
        let mut said: Vec<&str> = Vec::new();
        for observed in self.points.iter().flat_map(|point| point.observed.iter().flatten()) {
            if !observed.method.is_empty() && !said.contains(&observed.method.as_str()) {
                said.push(&observed.method);
            }
        }
        said
    }
}

/// Run with the points that use it.
#[derive(Debug)]
pub struct Run {
    /// Description for people: figure, panel, curve, value, seed.
    pub label: String,
    /// Scenario of the run.
    pub loaded: Loaded,
    /// Digest of everything that the outcome depends on: scenario, contents of referenced files, seed, engine. 32
    /// hexadecimal digits.
    pub key: String,
    /// Bytes sent, from which the run time is estimated.
    pub cost: f64,
    /// True if real hosts execute the run, in a lab.
    pub measured: bool,
    /// Indices of figure, point and seed that use the run.
    uses: Vec<(usize, usize, usize)>,
}

/// Plan of a paper's runs.
#[derive(Debug)]
pub struct Plan {
    /// The paper.
    pub paper: Paper,
    /// Size of the runs.
    pub size: Size,
    /// Extent of the figures.
    pub extent: Extent,
    /// The figures, in order.
    pub figures: Vec<FigurePlan>,
    /// The runs to execute.
    pub runs: Vec<Run>,
    /// Description of the measurement, as far as results depend on it. Part of the keys of measured runs.
    method: String,
}

impl Plan {
    /// Plans the selected part of `paper` and checks all scenarios. `seeds` replaces the number of seeds in the
    /// paper's files.
    pub fn new(
        paper: Paper,
        selection: &Selection,
        size: Size,
        seeds: Option<u32>,
    ) -> Result<Self, PaperError> {
        Self::measured(paper, selection, size, seeds, "")
    }

    /// Plans a paper with measured curves ([`Paper::on_testbed`]). `how` describes the measurement, and distinguishes
    /// the keys of measured runs.
    ///
    /// # Errors
    /// The errors of [`Plan::new`].
    pub fn measured(
        paper: Paper,
        selection: &Selection,
        size: Size,
        seeds: Option<u32>,
        how: &str,
    ) -> Result<Self, PaperError> {
        for figure in &paper.figures {
            check(&paper.name, &paper.file.part, figure)?;
        }
        let wanted = selection.apply(&paper, size)?;
        let extent = selection.extent();
        let mut plan =
            Plan { paper, size, extent, figures: Vec::new(), runs: Vec::new(), method: how.to_owned() };
        let mut known = BTreeMap::new();
        for figure in wanted {
            plan.add(figure, seeds, &mut known)?;
        }
        Ok(plan)
    }

    fn add(
        &mut self,
        figure: Figure,
        seeds: Option<u32>,
        known: &mut BTreeMap<String, usize>,
    ) -> Result<(), PaperError> {
        let file = &figure.file;
        let (change, of_paper) = match self.size {
            Size::Quick => (&file.quick, &self.paper.file.quick),
            Size::Full => (&file.full, &self.paper.file.full),
        };
        // A figure without a scenario does not depend on seeds.
        let asked =
            if file.scenario.is_some() { seeds.or(change.seeds).unwrap_or(of_paper.seeds) } else { 1 };
        let seeds: Vec<u64> = (1..=u64::from(asked)).collect();
        let panels = if file.panel.is_empty() { vec![Panel::default()] } else { file.panel.clone() };
        let sweep: Vec<Option<Value>> = match &file.sweep {
            None => vec![None],
            Some(sweep) => {
                let quick = sweep.quick.as_ref().filter(|_| self.size == Size::Quick);
                quick.unwrap_or(&sweep.values).iter().cloned().map(Some).collect()
            }
        };
        let xs = sweep.iter().map(|value| value.as_ref().map(value_text).unwrap_or_default()).collect();
        let number = self.figures.len();
        let (mut points, mut traffic) = (Vec::new(), Vec::new());
        for (p, panel) in panels.iter().enumerate() {
            for (s, series) in file.series.iter().enumerate().filter(|(_, series)| series.is_in(panel)) {
                for (x, value) in sweep.iter().enumerate() {
                    let mut observed = vec![None; seeds.len()];
                    if file.scenario.is_none() {
                        observed = vec![Some(static_measures(&figure, series)); seeds.len()];
                    }
                    let mut of_first = None;
                    for (k, &seed) in seeds.iter().enumerate().filter(|_| file.scenario.is_some()) {
                        let label = label(&figure, panel, series, value.as_ref(), seed);
                        let set = self.settings(&figure, panel, series, value.as_ref());
                        let loaded = self.load(&figure, &label, set, seed)?;
                        let identity = loaded
                            .identity()
                            .map_err(|findings| PaperError::Scenario { label: label.clone(), findings })?;
                        let variant = series.variant.as_ref().map(Variant::name);
                        let measured = variant == Some(Variant::MEASURED);
                        let key = match measured {
                            true => run_cache::key(&format!("{identity}\nmeasured: {}", self.method)),
                            false => run_cache::key(&identity),
                        };
                        if file.plot.judged.is_some() && traffic.len() == p {
                            traffic.push(Traffic::of(&prepared(&loaded, &label)?));
                        }
                        let run = match known.get(&key) {
                            Some(&run) => run,
                            None => {
                                // The cost is computed for the first seed only. All seeds send about as many bytes
                                // and have the same mistakes.
                                let cost = match of_first {
                                    Some(cost) => cost,
                                    None => *of_first.insert(cost(&loaded, &label)?),
                                };
                                self.runs.push(Run {
                                    key: key.clone(),
                                    cost,
                                    measured,
                                    label,
                                    loaded,
                                    uses: Vec::new(),
                                });
                                known.insert(key, self.runs.len() - 1);
                                self.runs.len() - 1
                            }
                        };
                        self.runs[run].uses.push((number, points.len(), k));
                    }
                    points.push(Point { panel: p, series: s, x, observed });
                }
            }
        }
        let says = change.says.clone();
        let looked_at = run_cache::observation_digest(file);
        self.figures.push(FigurePlan {
            panels,
            xs,
            seeds,
            points,
            traffic,
            changes_text: says,
            observation_digest: looked_at,
            looks: None,
            figure,
        });
        Ok(())
    }

    /// Returns the scenario settings in order. Later ones override earlier ones.
    fn settings(
        &self,
        figure: &Figure,
        panel: &Panel,
        series: &Series,
        value: Option<&Value>,
    ) -> Vec<String> {
        let file = &figure.file;
        let of_size = match self.size {
            Size::Quick => &file.quick.set,
            Size::Full => &file.full.set,
        };
        let own = Part { set: panel.set.clone(), quick: panel.quick.clone(), full: panel.full.clone() };
        let parts = panel.parts.iter().filter_map(|name| self.paper.file.part.get(name));
        let mut set: Vec<String> = Vec::new();
        let mut add = |table: &Table| set.extend(table.iter().map(|(key, value)| format!("{key}={value}")));
        add(&file.set);
        add(of_size);
        for part in parts.chain([&own]) {
            add(&part.set);
            add(match self.size {
                Size::Quick => &part.quick,
                Size::Full => &part.full,
            });
        }
        set.extend(series.scheme.iter().map(|scheme| format!("scheme={scheme}")));
        set.extend(series.set.iter().map(|(key, value)| format!("{key}={value}")));
        if let (Some(sweep), Some(value)) = (&file.sweep, value) {
            let scaled = panel.scale.zip(number(value)).map(|(factor, value)| Value::Float(value * factor));
            set.push(format!("{}={}", sweep.key, scaled.as_ref().unwrap_or(value)));
        }
        set
    }

    fn load(&self, figure: &Figure, label: &str, set: Vec<String>, seed: u64) -> Result<Loaded, PaperError> {
        let wrong = |message: &str| PaperError::File {
            file: format!("papers/{}/{}.toml", self.paper.name, figure.id),
            message: message.to_owned(),
        };
        let (text, name) = match figure.file.scenario.as_ref() {
            Some(Value::String(file)) => {
                let text = self.paper.text(file);
                (text.ok_or_else(|| wrong(&format!("there is no scenario {file}")))?.to_owned(), file.clone())
            }
            Some(Value::Table(table)) => (table.to_string(), format!("{}.toml", figure.id)),
            _ => return Err(wrong("`scenario` is the name of a file or a table")),
        };
        let changes = Changes { set, seed: Some(seed), ..Changes::default() };
        Loaded::parse(&text, &format!("papers/{}/{name}", self.paper.name), "", &changes)
            .map_err(|findings| PaperError::Scenario { label: label.to_owned(), findings })
    }

    /// Takes from the result of a run the numbers that its points need.
    pub fn observe(&self, run: usize, result: &RunResult) -> Observations {
        self.observe_measured(run, result, "")
    }

    /// Takes the same numbers from a measured run. `said` describes the measurement.
    pub fn observe_measured(&self, run: usize, result: &RunResult, said: &str) -> Observations {
        let payload_share = pathweave_scenario::payload_share(&self.runs[run].loaded.scenario.network);
        let of = |seen: AtPoint<()>| {
            let observed = observe(&self.figures[seen.figure].figure.file, result, payload_share);
            seen.with(Observed { method: said.to_owned(), ..observed })
        };
        Observations(self.uses(run).map(of).collect())
    }

    /// Returns the points that use a run.
    pub(crate) fn uses(&self, run: usize) -> impl Iterator<Item = AtPoint<()>> {
        self.runs[run].uses.iter().map(|&(figure, point, seed)| AtPoint { figure, point, seed, what: () })
    }

    /// Stores the observations in the points of the plan.
    pub fn record(&mut self, look: Observations) {
        for AtPoint { figure, point, seed, what } in look.0 {
            self.figures[figure].points[point].observed[seed] = Some(what);
        }
    }
}

/// Observations of one run, for the points that use it.
#[derive(Debug)]
pub struct Observations(pub(crate) Vec<AtPoint<Observed>>);

/// Point and seed of a figure, with a value attached.
#[derive(Debug)]
pub(crate) struct AtPoint<T> {
    pub(crate) figure: usize,
    pub(crate) point: usize,
    pub(crate) seed: usize,
    pub(crate) what: T,
}

impl<T> AtPoint<T> {
    /// Returns the same point with another value.
    pub(crate) fn with<U>(self, what: U) -> AtPoint<U> {
        AtPoint { figure: self.figure, point: self.point, seed: self.seed, what }
    }
}

/// Returns the value of a sweep as a number, if it is one.
pub(crate) fn number(value: &Value) -> Option<f64> {
    value.as_float().or(value.as_integer().map(|value| value as f64))
}

fn label(figure: &Figure, panel: &Panel, series: &Series, value: Option<&Value>, seed: u64) -> String {
    let parts =
        [figure.id.clone(), panel.name.clone(), series.label(), value.map(value_text).unwrap_or_default()];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{} seed {seed}", parts.join(", "))
}

fn prepared(loaded: &Loaded, label: &str) -> Result<Prepared, PaperError> {
    loaded.prepare().map_err(|findings| PaperError::Scenario { label: label.to_owned(), findings })
}

fn cost(loaded: &Loaded, label: &str) -> Result<f64, PaperError> {
    let prepared = prepared(loaded, label)?;
    Ok(prepared.spec.graph.messages().iter().map(|message| message.size.get() as f64).sum())
}

/// Returns the measures of a scheme that are known without a run: the size of its state.
fn static_measures(figure: &Figure, series: &Series) -> Observed {
    let bytes = series.scheme.as_deref().and_then(find_scheme).map(|info| match (info.make)().policy {
        PolicyConfig::Udmp(_) | PolicyConfig::UdmpPublished(_) => size_of::<Udmp>(),
        PolicyConfig::Mprdma(_) => size_of::<MpRdma>(),
        _ => size_of::<AnyPolicy>(),
    });
    let value = |of| bytes.filter(|_| of == Metric::StateBytes).map(|bytes| bytes as f64);
    Observed { values: figure.file.measure.iter().map(|m| value(m.of)).collect(), ..Observed::default() }
}

impl Series {
    /// Returns the name with the variant.
    pub fn label(&self) -> String {
        match &self.variant {
            None => self.name.clone(),
            Some(variant) => format!("{} ({})", self.name, variant.name()),
        }
    }
}
