//! Axes of parallelism of a plan: every combination of their degrees.

use pathweave_scenario::{Diagnostic, FieldPath, TrainingOutlook};
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Value;

use crate::sweep::cells::MOST_RUNS;
use crate::sweep::model::{Bundle, BundleValue};

/// Name of the axis of combinations.
pub(crate) const PARALLELISM: &str = "parallelism";

/// Degrees of parallelism of a transformer. Every combination is a candidate; those that the model or the GPUs do not
/// allow are listed with the reason.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParallelismAxes {
    /// Place of the transformer among the workloads of the scenario, from 0. Default: 0.
    #[serde(default)]
    pub workload: usize,
    /// Degrees of tensor parallelism. Default: that of the workload.
    #[serde(default)]
    pub tp: Vec<u32>,
    /// Numbers of pipeline stages. Default: that of the workload.
    #[serde(default)]
    pub pp: Vec<u32>,
    /// Degrees of context parallelism. Default: that of the workload.
    #[serde(default)]
    pub cp: Vec<u32>,
    /// Degrees of expert parallelism. Default: that of the workload.
    #[serde(default)]
    pub ep: Vec<u32>,
    /// Numbers of chunks of a stage. Default: that of the workload.
    #[serde(default)]
    pub vp: Vec<u32>,
    /// Degrees of data parallelism that are candidates: the GPUs over TP x CP x PP. Default: all.
    #[serde(default)]
    pub dp: Vec<u32>,
}

impl ParallelismAxes {
    /// Returns the axes that set a field, in the order of names.
    fn axes(&self) -> impl Iterator<Item = (&'static str, &Vec<u32>)> {
        let all = [("tp", &self.tp), ("pp", &self.pp), ("cp", &self.cp), ("ep", &self.ep), ("vp", &self.vp)];
        all.into_iter().filter(|(_, degrees)| !degrees.is_empty())
    }

    /// Checks rules that the schema cannot express.
    pub(crate) fn check(&self) -> Vec<Diagnostic> {
        let place = FieldPath::root().key(PARALLELISM);
        let mut found = Vec::new();
        for (name, degrees) in self.axes().chain([("dp", &self.dp)]) {
            for (i, degree) in degrees.iter().enumerate() {
                let at = place.key(name).index(i);
                if *degree == 0 {
                    let message = format!("`{name}` cannot be 0: expected 1 or more, such as 1");
                    found.push(Diagnostic::new(at, message));
                } else if degrees[..i].contains(degree) {
                    found.push(Diagnostic::new(at, format!("`{name}` has {degree} twice")));
                }
            }
        }
        let count = self.axes().map(|(_, degrees)| degrees.len() as u64).fold(1, u64::saturating_mul);
        if self.axes().next().is_none() {
            let message = "no axis of parallelism is varied";
            found.push(
                Diagnostic::new(place, message).allowed("give tp, pp, cp, ep or vp, such as tp = [4, 8]"),
            );
        } else if count > MOST_RUNS {
            let message = format!("{count} combinations, at most {MOST_RUNS} are allowed");
            found.push(Diagnostic::new(place, message));
        }
        found
    }

    /// Returns all combinations as an axis of a sweep.
    pub(crate) fn bundle(&self) -> Bundle {
        let mut values = vec![BundleValue { name: String::new(), set: Vec::new() }];
        for (name, degrees) in self.axes() {
            let with = |value: &BundleValue, (i, degree): (usize, &u32)| {
                let mut value = value.clone();
                let gap = if value.name.is_empty() { "" } else { " " };
                value.name = format!("{}{gap}{}{degree}", value.name, name.to_uppercase());
                let at = FieldPath::root().key(PARALLELISM).key(name).index(i);
                let key = format!("workload[{}].{name}", self.workload);
                value.set.push((key, Value::Integer(i64::from(*degree)), at));
                value
            };
            let all =
                values.iter().flat_map(|value| degrees.iter().enumerate().map(move |of| with(value, of)));
            values = all.collect();
        }
        Bundle { key: PARALLELISM, values }
    }

    /// Returns the field and the reason for which a combination is no candidate, although its job could run.
    pub(crate) fn objection(&self, outlook: &TrainingOutlook) -> Option<(String, String)> {
        let degrees = outlook.parallelism;
        if !self.dp.is_empty() && !self.dp.contains(&degrees.dp) {
            let near = self.dp.iter().min_by_key(|dp| dp.abs_diff(degrees.dp)).expect("there is one");
            let why = format!(
                "DP is {} on {} GPUs, which is not listed; the nearest is {near}",
                degrees.dp, outlook.gpus
            );
            return Some(("dp".to_owned(), why));
        }
        (degrees.vp > 1 && degrees.pp == 1)
            .then(|| ("vp".to_owned(), format!("VP {} divides stages, and PP is 1", degrees.vp)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_are_named_and_set_their_fields() {
        let axes =
            ParallelismAxes { tp: vec![4, 8], vp: vec![1, 2], workload: 1, ..ParallelismAxes::default() };
        let bundle = axes.bundle();
        let names: Vec<&str> = bundle.values.iter().map(|value| value.name.as_str()).collect();
        assert_eq!(names, ["TP4 VP1", "TP4 VP2", "TP8 VP1", "TP8 VP2"]);
        let (key, value, place) = &bundle.values[3].set[1];
        assert_eq!(
            (key.as_str(), value, place.to_string().as_str()),
            ("workload[1].vp", &Value::Integer(2), "parallelism.vp[1]")
        );
    }
}
