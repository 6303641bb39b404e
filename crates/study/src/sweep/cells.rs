//! Cells of a sweep: every combination of the values in its file.

use std::collections::{BTreeMap, BTreeSet};

use pathweave_records::Quantity;
use pathweave_scenario::units::{Bytes, Duration, Rate};
use pathweave_scenario::{Diagnostic, Diagnostics, Document, FieldPath, Setting};
use serde::Serialize;
use toml::Value;

use crate::sweep::model::{BundleValue, NamedCell, Seeds, SweepFile};
use crate::sweep::range;

/// Largest number of runs in a sweep. More are taken for a mistake in the file.
pub(crate) const MOST_RUNS: u64 = 1_000_000;

/// Source of an axis's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AxisKind {
    /// Named cells.
    List,
    /// Grid: every value is combined with every value of the other axes.
    Grid,
    /// Points of a Latin hypercube.
    Sampled,
}

/// Axis of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Axis {
    /// Name of the field, or "cell" for named cells.
    pub key: String,
    /// Source of the values.
    pub kind: AxisKind,
    /// Values as text, in the order of the file, or of the samples for a sampled axis.
    pub values: Vec<String>,
    /// Values as numbers in one unit, if they are numbers.
    pub numbers: Option<Vec<f64>>,
    /// Quantity in which the numbers are shown.
    pub quantity: Quantity,
}

/// One value for every axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Description for people, for instance "scheme=rps, topology.hosts=8".
    pub label: String,
    /// Index of the value on each axis.
    pub value_indices: Vec<usize>,
    /// Settings in order, in the syntax of `--set`.
    pub set: Vec<String>,
    /// Settings with their places in the sweep file.
    pub(crate) settings: Vec<Setting>,
}

/// Settings that are applied together: a value of a grid axis, a named cell, or a sample.
struct JointSettings {
    /// Index of the value, for each axis that the choice covers.
    at: Vec<usize>,
    set: Vec<String>,
    settings: Vec<Setting>,
}

impl JointSettings {
    fn new(at: Vec<usize>) -> Self {
        JointSettings { at, set: Vec::new(), settings: Vec::new() }
    }

    fn add(
        mut self,
        key: &str,
        value: &Value,
        setting: Result<Setting, Diagnostics>,
    ) -> Result<Self, Diagnostics> {
        self.set.push(format!("{key}={value}"));
        self.settings.push(setting?);
        Ok(self)
    }

    /// Adds every entry of a table.
    fn add_all(
        self,
        set: &BTreeMap<String, Value>,
        document: &Document,
        table: &FieldPath,
    ) -> Result<Self, Diagnostics> {
        set.iter().try_fold(self, |choice, (key, value)| {
            choice.add(key, value, document.setting_of(table, key, value))
        })
    }
}

/// Returns the axes and cells of `file`. Errors carry their place in `document`.
pub(crate) fn cells(file: &SweepFile, document: &Document) -> Result<(Vec<Axis>, Vec<Cell>), Diagnostics> {
    let found = check(file);
    Diagnostics::check(found.into_iter().map(|finding| document.place(finding)).collect())?;
    let root = FieldPath::root();
    let (mut axes, mut parts) = (Vec::new(), Vec::new());
    if !file.list.is_empty() {
        let names: Vec<Value> = file.list.iter().map(|named| named.name.clone().into()).collect();
        axes.push(axis("cell", AxisKind::List, &names));
        let cell = |(i, named): (usize, &NamedCell)| {
            JointSettings::new(vec![i]).add_all(&named.set, document, &root.key("list").index(i).key("set"))
        };
        parts.push(file.list.iter().enumerate().map(cell).collect::<Result<Vec<_>, _>>()?);
    }
    for bundle in &file.bundles {
        let names: Vec<Value> = bundle.values.iter().map(|value| value.name.clone().into()).collect();
        axes.push(axis(bundle.key, AxisKind::List, &names));
        let choice = |(i, value): (usize, &BundleValue)| {
            value.set.iter().try_fold(JointSettings::new(vec![i]), |choice, (key, value, at)| {
                choice.add(key, value, document.setting(key, at, value, at))
            })
        };
        parts.push(bundle.values.iter().enumerate().map(choice).collect::<Result<Vec<_>, _>>()?);
    }
    for (a, one) in file.grid.iter().enumerate() {
        axes.push(axis(&one.key, AxisKind::Grid, &one.values));
        let place = root.key("grid").index(a);
        let choice = |(i, value): (usize, &Value)| {
            let at = (place.key("key"), place.key("values").index(i));
            JointSettings::new(vec![i]).add(&one.key, value, document.setting(&one.key, &at.0, value, &at.1))
        };
        parts.push(one.values.iter().enumerate().map(choice).collect::<Result<_, _>>()?);
    }
    if let Some(cube) = &file.latin_hypercube {
        let place = root.key("latin-hypercube").key("axis");
        let points = range::points(cube).map_err(|(d, field, why)| {
            let message = format!("axis \"{}\": {why}", cube.axis[d].key);
            Diagnostics::from(document.place(Diagnostic::new(place.index(d).key(field), message)))
        })?;
        for (d, one) in cube.axis.iter().enumerate() {
            let values: Vec<Value> = points.iter().map(|point| point[d].clone()).collect();
            axes.push(axis(&one.key, AxisKind::Sampled, &values));
        }
        let choice = |(i, point): (usize, &Vec<Value>)| {
            let mut axes = cube.axis.iter().zip(point).enumerate();
            axes.try_fold(JointSettings::new(vec![i; cube.axis.len()]), |choice, (d, (axis, value))| {
                let key_at = place.index(d).key("key");
                choice.add(&axis.key, value, document.setting(&axis.key, &key_at, value, &key_at))
            })
        };
        parts.push(points.iter().enumerate().map(choice).collect::<Result<_, _>>()?);
    }
    let count = parts.iter().map(|part: &Vec<JointSettings>| part.len() as u64).fold(1, u64::saturating_mul);
    let seeds = match &file.seeds {
        Seeds::Count(count) => *count,
        Seeds::List(list) => list.len() as u64,
    };
    let runs = count.saturating_mul(seeds);
    if runs > MOST_RUNS {
        let message = format!("the sweep has {runs} runs, at most {MOST_RUNS} are allowed");
        let finding = Diagnostic::new(root.key("seeds"), message)
            .help(format!("that is {count} cells with {seeds} seeds each"));
        return Err(document.place(finding).into());
    }
    let of_all = JointSettings::new(Vec::new()).add_all(&file.set, document, &root.key("set"))?;
    let mut cells = vec![Cell {
        label: String::new(),
        value_indices: Vec::new(),
        set: of_all.set,
        settings: of_all.settings,
    }];
    let mut first_axis = 0;
    for part in &parts {
        let here = &axes[first_axis..first_axis + part[0].at.len()];
        cells = cells.iter().flat_map(|cell| part.iter().map(|choice| extend(cell, choice, here))).collect();
        first_axis += here.len();
    }
    Ok((axes, cells))
}

fn extend(cell: &Cell, choice: &JointSettings, axes: &[Axis]) -> Cell {
    let mut cell = cell.clone();
    for (axis, &at) in axes.iter().zip(&choice.at) {
        if !cell.label.is_empty() {
            cell.label.push_str(", ");
        }
        match axis.kind {
            AxisKind::List => cell.label.push_str(&axis.values[at]),
            _ => cell.label.push_str(&format!("{}={}", axis.key, axis.values[at])),
        }
    }
    cell.value_indices.extend(&choice.at);
    cell.set.extend(choice.set.iter().cloned());
    cell.settings.extend(choice.settings.iter().cloned());
    cell
}

/// Returns the seeds of each cell, limited to the largest number of runs.
pub(crate) fn seeds(file: &SweepFile) -> Vec<u64> {
    match &file.seeds {
        Seeds::Count(count) => (1..=(*count).min(MOST_RUNS)).collect(),
        Seeds::List(list) => list.clone(),
    }
}

/// Checks rules that the schema cannot express.
fn check(file: &SweepFile) -> Vec<Diagnostic> {
    let root = FieldPath::root();
    let mut found = Vec::new();
    let mut report = |field: FieldPath, message: String| found.push(Diagnostic::new(field, message));
    if file.list.is_empty() && file.grid.is_empty() && file.latin_hypercube.is_none() {
        report(root.clone(), "nothing is varied: give [[grid]], [[list]] or [latin-hypercube]".to_owned());
    }
    match &file.seeds {
        Seeds::Count(0) => report(root.key("seeds"), "a sweep needs a seed".to_owned()),
        Seeds::List(list) if list.is_empty() => report(root.key("seeds"), "a sweep needs a seed".to_owned()),
        Seeds::Count(_) => {}
        Seeds::List(list) => {
            let mut seen = BTreeSet::new();
            if let Some((i, seed)) = list.iter().enumerate().find(|(_, seed)| !seen.insert(**seed)) {
                report(root.key("seeds").index(i), format!("seed {seed} is there twice"));
            }
        }
    }
    let mut keys: Vec<&str> = Vec::new();
    let grid = file.grid.iter().enumerate().map(|(i, axis)| (root.key("grid").index(i), axis.key.as_str()));
    let cube = file.latin_hypercube.iter().flat_map(|cube| cube.axis.iter().enumerate());
    let place = root.key("latin-hypercube").key("axis");
    let cube = cube.map(|(i, axis)| (place.index(i), axis.key.as_str()));
    for (place, key) in grid.chain(cube) {
        if key == "seed" {
            report(place.key("key"), "seeds are not an axis: give `seeds`".to_owned());
        }
        if keys.contains(&key) {
            report(place.key("key"), format!("`{key}` is an axis twice"));
        }
        keys.push(key);
    }
    for (i, axis) in file.grid.iter().enumerate() {
        let place = root.key("grid").index(i).key("values");
        if axis.values.is_empty() {
            report(place, format!("axis \"{}\" has no values", axis.key));
        } else if let Some(twice) =
            (1..axis.values.len()).find(|&v| axis.values[..v].contains(&axis.values[v]))
        {
            let message = format!("axis \"{}\" has {} twice", axis.key, axis.values[twice]);
            report(place.index(twice), message);
        }
    }
    check_settings(file, &mut report);
    let mut names = BTreeSet::new();
    for (i, named) in file.list.iter().enumerate() {
        if !names.insert(&named.name) {
            report(
                root.key("list").index(i).key("name"),
                format!("a cell \"{}\" is there twice", named.name),
            );
        }
    }
    if let Some(cube) = &file.latin_hypercube {
        if cube.samples == 0 {
            report(root.key("latin-hypercube").key("samples"), "a Latin hypercube needs a sample".to_owned());
        }
        if u64::from(cube.samples) > MOST_RUNS {
            let message = format!("{} samples, at most {MOST_RUNS} are allowed", cube.samples);
            report(root.key("latin-hypercube").key("samples"), message);
        }
        if cube.axis.is_empty() {
            report(root.key("latin-hypercube").key("axis"), "a Latin hypercube needs an axis".to_owned());
        }
    }
    found
}

/// Reports settings without effect: those of a field that each cell gets from an axis, or from `seeds`.
fn check_settings(file: &SweepFile, report: &mut impl FnMut(FieldPath, String)) {
    let root = FieldPath::root();
    let of_cell = |(i, named): (usize, &'_ NamedCell)| {
        let keys = named.set.keys().cloned().collect::<Vec<_>>();
        (root.key("list").index(i).key("set"), keys)
    };
    let of_all = (root.key("set"), file.set.keys().cloned().collect::<Vec<_>>());
    for (table, keys) in std::iter::once(of_all).chain(file.list.iter().enumerate().map(of_cell)) {
        for key in keys {
            let sampled = file.latin_hypercube.iter().flat_map(|cube| &cube.axis).map(|axis| &axis.key);
            let mut axes = file.grid.iter().map(|axis| &axis.key).chain(sampled);
            if key == "seed" {
                report(table.key(&key), "`seed` has no effect beside `seeds`: give `seeds`".to_owned());
            } else if let Some(axis) = axes.find(|axis| is_within(&key, axis)) {
                let message = format!("`{key}` has no effect: axis \"{axis}\" sets it in every cell");
                report(table.key(&key), message);
            }
        }
    }
}

/// Returns true if the field `key` is `outer` or a part of it, both in the syntax of `--set`.
fn is_within(key: &str, outer: &str) -> bool {
    key.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn axis(key: &str, kind: AxisKind, values: &[Value]) -> Axis {
    let texts: Vec<String> = values.iter().map(value_text).collect();
    let (numbers, quantity) = numbers(values);
    Axis { key: key.to_owned(), kind, values: texts, numbers, quantity }
}

/// Returns a value as text, strings without their quotes.
fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the values in one unit, if all of them are numbers of one kind.
fn numbers(values: &[Value]) -> (Option<Vec<f64>>, Quantity) {
    let all = |of: fn(&Value) -> Option<f64>| values.iter().map(of).collect::<Option<Vec<f64>>>();
    let plain = all(|value| value.as_integer().map(|v| v as f64).or(value.as_float()));
    let time = || all(|value| value.as_str()?.parse::<Duration>().ok().map(|d| d.as_ps() as f64 / 1e3));
    let size = || all(|value| value.as_str()?.parse::<Bytes>().ok().map(|b| b.get() as f64));
    let rate = || all(|value| value.as_str()?.parse::<Rate>().ok().map(|r| r.as_bps() as f64));
    let found = plain.map(|numbers| (numbers, Quantity::Plain));
    let found = found.or_else(|| Some((time()?, Quantity::TimeNs)));
    let found = found.or_else(|| Some((size()?, Quantity::Bytes)));
    match found.or_else(|| Some((rate()?, Quantity::RateBps))) {
        Some((numbers, quantity)) => (Some(numbers), quantity),
        None => (None, Quantity::Plain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(Vec<Axis>, Vec<Cell>), String> {
        let document = Document::parse(text, "s.toml", "").map_err(|why| why.to_string())?;
        let file = document.to::<SweepFile>().map_err(|why| why.to_string())?;
        cells(&file, &document).map_err(|why| why.to_string())
    }

    #[test]
    fn all_combinations_in_order_the_last_axis_fastest() {
        let text = "scenario = 'a.toml'\nset = { 'run.until' = 4 }\n[[list]]\nname = 'one'\nset = { a = 1 }\n[[list]]\nname = 'two'\n\
                    [[grid]]\nkey = 'scheme'\nvalues = ['ecmp', 'rps']\n\
                    [[grid]]\nkey = 'workload[0].size'\nvalues = ['1KB', '2MB', '3KiB']\n";
        let (axes, cells) = parse(text).unwrap();
        assert_eq!(cells.len(), 12);
        assert_eq!(cells[0].label, "one, scheme=ecmp, workload[0].size=1KB");
        assert_eq!(cells[0].set, ["run.until=4", "a=1", "scheme=\"ecmp\"", "workload[0].size=\"1KB\""]);
        assert_eq!(
            (cells[1].value_indices.clone(), cells[11].value_indices.clone()),
            (vec![0, 0, 1], vec![1, 1, 2])
        );
        assert_eq!(axes[1].numbers, None);
        assert_eq!(
            (axes[2].numbers.clone(), axes[2].quantity),
            (Some(vec![1e3, 2e6, 3072.0]), Quantity::Bytes)
        );
    }

    #[test]
    fn a_hypercube_is_one_choice_of_all_its_axes() {
        let text = "scenario = 'a.toml'\n[[grid]]\nkey = 'scheme'\nvalues = ['ecmp', 'rps']\n\
                    [latin-hypercube]\nsamples = 5\n[[latin-hypercube.axis]]\nkey = 'x'\nfrom = 1\nto = 9\n\
                    [[latin-hypercube.axis]]\nkey = 'y'\nfrom = '1us'\nto = '9us'\n";
        let (axes, cells) = parse(text).unwrap();
        assert_eq!((axes.len(), cells.len()), (3, 10));
        assert_eq!(cells[3].value_indices, [0, 3, 3]);
        assert_eq!(
            cells[3].set[1..],
            [format!("x={}", axes[1].values[3]), format!("y=\"{}\"", axes[2].values[3])]
        );
        // Both schemes have the same points.
        assert_eq!(cells[3].set[1..], cells[8].set[1..]);
    }

    #[test]
    fn mistakes_are_named_and_placed() {
        let grid = |rest: &str| parse(&format!("scenario = 'a.toml'\n{rest}")).unwrap_err();
        let empty = grid("[[grid]]\nkey = 'scheme'\nvalues = []\n");
        assert!(empty.contains("axis \"scheme\" has no values") && empty.contains("s.toml:4"), "{empty}");
        assert!(grid("").contains("nothing is varied"));
        assert!(grid("seeds = []\n[[list]]\nname = 'a'\n").contains("needs a seed"));
        assert!(grid("[[grid]]\nkey = 'a'\nvalues = [1, 2, 1]\n").contains("has 1 twice"));
        assert!(grid("seeds = [3, 3]\n[[list]]\nname = 'a'\n").contains("seed 3 is there twice"));
        assert!(grid("[[grid]]\nkey = 'seed'\nvalues = [1]\n").contains("give `seeds`"));
        assert!(grid("[[list]]\nname = 'a'\n[[list]]\nname = 'a'\n").contains("\"a\" is there twice"));
        let set = grid("set = { scheme = 'rps' }\n[[grid]]\nkey = 'scheme'\nvalues = ['ecmp', 'rps']\n");
        assert!(set.contains("`scheme` has no effect: axis \"scheme\" sets it"), "{set}");
        assert!(set.contains("s.toml:2"), "{set}");
        let cube = "[latin-hypercube]\nsamples = 2\n[[latin-hypercube.axis]]\nkey = 'x'\nfrom = 1\nto = 3\n";
        let list = grid(&format!("[[list]]\nname = 'a'\nset = {{ 'x.y' = 1 }}\n{cube}"));
        assert!(
            list.contains("`x.y` has no effect: axis \"x\" sets it") && list.contains("s.toml:4"),
            "{list}"
        );
        let seed = grid("set = { seed = 4 }\n[[list]]\nname = 'a'\n");
        assert!(seed.contains("give `seeds`") && seed.contains("s.toml:2"), "{seed}");
        // A field of what an axis sets refines it only afterwards, and names may begin alike.
        let after = "[[grid]]\nkey = 'x'\nvalues = [1]\n[[grid]]\nkey = 'x.y'\nvalues = [1]\n";
        let alike = format!("scenario = 'a.toml'\nset = {{ xy = 1 }}\n{after}");
        assert!(parse(&alike).is_ok(), "{:?}", parse(&alike));
        let near = grid("[[grid]]\nkey = 'a'\nvalue = [1]\n");
        assert!(near.contains("did you mean `values`?") && near.contains("s.toml:4"), "{near}");
        let range =
            grid("[latin-hypercube]\nsamples = 2\n[[latin-hypercube.axis]]\nkey = 'x'\nfrom = 3\nto = 1\n");
        assert!(range.contains("1 is not above 3") && range.contains("s.toml:7"), "{range}");
        let many =
            grid("[latin-hypercube]\nsamples = 4000000000\naxis = [{ key = 'x', from = 1, to = 2 }]\n");
        assert!(many.contains("4000000000 samples") && many.contains("s.toml:3"), "{many}");
        let many = grid("seeds = 1000000000\n[[list]]\nname = 'a'\n[[list]]\nname = 'b'\n");
        assert!(many.contains("the sweep has 2000000000 runs, at most 1000000 are allowed"), "{many}");
        assert!(many.contains("s.toml:2:9") && many.contains("2 cells with 1000000000 seeds each"), "{many}");
    }
}
