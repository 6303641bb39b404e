//! Cache of finished runs. An interrupted run of a paper continues from it, and a changed claim is judged again
//! without running anything.

use std::collections::BTreeMap;

use crate::sweep::{ENGINE, RunStore};
use serde::{Deserialize, Serialize};

use crate::paper::error::PaperError;
use crate::paper::model::{FigureFile, PlotKind};
use crate::paper::observe::Observed;
use crate::paper::plan::{AtPoint, Observations, Plan};

/// File whose presence marks a run as finished.
const OBSERVED_FILE: &str = "observed.json";
/// Identifier of the file format.
const SCHEMA: &str = "pathweave.paper-run";
/// Version of the format, part of every key. Increase it if a field is renamed, removed or changes meaning; older
/// runs then run again.
const SCHEMA_VERSION: u32 = 1;

/// Cached content of a finished run.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CachedRun {
    schema: String,
    pub(crate) key: String,
    engine: String,
    /// Description for people: the first figure, panel, curve, value and seed that requested the run.
    label: String,
    /// Observations by [`observation_digest`] digest. Figures with the same measures and traces share an entry.
    observed: BTreeMap<String, SerializedObserved>,
}

/// Serialised [`Observed`]. Numbers are stored as text, which restores every bit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SerializedObserved {
    values: Vec<Option<String>>,
    samples: Vec<String>,
    traces: Vec<Vec<(String, String)>>,
    digest: String,
    unfinished: usize,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    said: String,
}

impl SerializedObserved {
    fn new(observed: &Observed) -> Self {
        let text = |value: &f64| value.to_string();
        let trace = |line: &Vec<(f64, f64)>| line.iter().map(|(at, value)| (text(at), text(value))).collect();
        SerializedObserved {
            values: observed.values.iter().map(|value| value.as_ref().map(text)).collect(),
            samples: observed.samples.iter().map(text).collect(),
            traces: observed.traces.iter().map(trace).collect(),
            digest: observed.digest.clone(),
            unfinished: observed.unfinished,
            said: observed.method.clone(),
        }
    }

    /// Restores the observation. `None` if a text is not a number, which means that the file was edited.
    fn read(&self) -> Option<Observed> {
        let number = |text: &String| text.parse::<f64>().ok();
        let value = |value: &Option<String>| match value {
            None => Some(None),
            Some(text) => number(text).map(Some),
        };
        let trace = |line: &Vec<(String, String)>| {
            line.iter().map(|(at, value)| Some((number(at)?, number(value)?))).collect::<Option<Vec<_>>>()
        };
        Some(Observed {
            values: self.values.iter().map(value).collect::<Option<_>>()?,
            samples: self.samples.iter().map(number).collect::<Option<_>>()?,
            traces: self.traces.iter().map(trace).collect::<Option<_>>()?,
            digest: self.digest.clone(),
            unfinished: self.unfinished,
            method: self.said.clone(),
        })
    }
}

/// Returns the key of a run: a digest of its complete scenario, its seed, the contents of referenced files and the
/// engine version.
pub(crate) fn key(identity: &str) -> String {
    crate::sweep::run_key("paper", SCHEMA_VERSION, identity)
}

/// Returns a digest of everything that a figure takes from a run: measures, traces, and the quantity of a
/// distribution.
pub(crate) fn observation_digest(figure: &FigureFile) -> String {
    let samples = (figure.plot.kind == PlotKind::Cdf).then_some(figure.plot.of).flatten();
    let text = format!("{:?}\n{:?}\n{samples:?}", figure.measure, figure.trace);
    crate::sweep::run_key("paper look", SCHEMA_VERSION, &text)
}

/// Store of a paper's finished runs.
#[derive(Debug)]
pub struct RunCache {
    store: RunStore,
}

impl RunCache {
    pub(crate) fn new(store: RunStore) -> Self {
        RunCache { store }
    }

    /// Returns what run `run` of `plan` yielded. `None` if it must run: it is not finished, or a figure needs other
    /// observations.
    pub fn look(&self, plan: &Plan, run: usize) -> Option<Observations> {
        let record = self.get(&plan.runs[run].key)?;
        let of = |seen: AtPoint<()>| {
            let kept = record.observed.get(&plan.figures[seen.figure].observation_digest)?;
            Some(seen.with(kept.read()?))
        };
        plan.uses(run).map(of).collect::<Option<Vec<_>>>().map(Observations)
    }

    /// Stores what was taken from run `run` of `plan`, in addition to the observations of other figures.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn put(&self, plan: &Plan, run: usize, look: &Observations) -> Result<(), PaperError> {
        let Some(key) = plan.runs.get(run).map(|run| run.key.clone()) else { return Ok(()) };
        let mut observed = self.get(&key).map(|record| record.observed).unwrap_or_default();
        for seen in &look.0 {
            observed.insert(
                plan.figures[seen.figure].observation_digest.clone(),
                SerializedObserved::new(&seen.what),
            );
        }
        let record = CachedRun {
            schema: SCHEMA.to_owned(),
            key: key.clone(),
            engine: ENGINE.to_owned(),
            label: plan.runs[run].label.clone(),
            observed,
        };
        self.insert(&record)
    }

    /// Stores a run under its key.
    pub(crate) fn insert(&self, run: &CachedRun) -> Result<(), PaperError> {
        let text = serde_json::to_vec(run).expect("plain data with text keys serialises");
        Ok(self.store.put(&run.key, &vec![(OBSERVED_FILE.to_owned(), text)])?)
    }

    /// Returns the finished run with this key.
    pub(crate) fn get(&self, key: &str) -> Option<CachedRun> {
        let text = std::fs::read(self.store.folder(key).join(OBSERVED_FILE)).ok()?;
        let record: CachedRun = serde_json::from_slice(&text).ok()?;
        (record.schema == SCHEMA && record.key == key).then_some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_to_the_last_bit() {
        let observed = Observed {
            values: vec![Some(0.1 + 0.2), None, Some(f64::MIN_POSITIVE), Some(1.0 / 3.0)],
            samples: vec![1e300, 123_456_789.123_456_78, f64::INFINITY],
            traces: vec![vec![(1.0, -0.0), (2.5e-12, 7.0)], Vec::new()],
            digest: "ab".to_owned(),
            unfinished: 3,
            method: "on two cores".to_owned(),
        };
        let text = serde_json::to_string(&SerializedObserved::new(&observed)).unwrap();
        let mut kept: SerializedObserved = serde_json::from_str(&text).unwrap();
        assert_eq!(kept.read().unwrap(), observed);
        kept.samples[1].push('x');
        assert_eq!(kept.read(), None);
    }

    #[test]
    fn what_is_looked_at_decides_and_claims_do_not() {
        let figure = |more: &str| -> FigureFile {
            let head = "title = 't'\nsection = 's'\nscenario = 's.toml'\nseries = [{ name = 'a' }]\n";
            let rest = "plot = { kind = 'lines', measure = 'm' }\n[[measure]]\nname = 'm'\nof = 'fct'\n";
            toml::from_str(&format!("{head}{rest}{more}")).unwrap()
        };
        let claim = "[[claim]]\ntext = 't'\nsource = 's'\npublished = 'p'\nmeasure = 'm'\nshow = 'ratio'\nseries = 'a'\n";
        assert_eq!(observation_digest(&figure("")), observation_digest(&figure(claim)));
        assert_ne!(observation_digest(&figure("")), observation_digest(&figure("stat = 'p99'\n")));
    }
}
