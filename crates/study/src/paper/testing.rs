//! A small heat map for tests.

use std::collections::BTreeMap;

use crate::paper::catalogue::Figure;
use crate::paper::check::check;
use crate::paper::observe::Observed;
use crate::paper::plan::{FigurePlan, Point, Traffic};

/// Figure with three curves, `a`, `b` and `c`, and one measure `m`. Its rows `first` and `second` share a heading.
/// Its row `third` has no `c`.
pub(crate) const MAP: &str = r#"
    title = "t"
    section = "s"
    scenario = "s.toml"
    panel = [
        { name = "first", group = "G", tags = ["x"], role = "fit" },
        { name = "second", group = "G", tags = ["x"], role = "held-out" },
        { name = "third", group = "H", without = ["c"] },
    ]
    series = [{ name = "a" }, { name = "b" }, { name = "c" }]
    plot = { kind = "heat-map", measures = ["m"] }
    [[measure]]
    name = "m"
    of = "slowdown"
"#;

/// Returns the map's first rows with the given values, by row, curve and seed. `None` stands for a flow that did not
/// finish.
pub(crate) fn map(claims: &str, values: &[&[&[Option<f64>]]]) -> FigurePlan {
    let file: crate::paper::model::FigureFile = toml::from_str(&format!("{MAP}{claims}")).expect("a figure");
    let figure = Figure { id: "rows".to_owned(), file };
    check("p", &BTreeMap::new(), &figure).expect("a figure without mistakes");
    let mut points = Vec::new();
    for (panel, row) in values.iter().enumerate() {
        for (series, seeds) in row.iter().enumerate() {
            let seen = |value: &Option<f64>| {
                let unfinished = usize::from(value.is_none());
                Some(Observed { values: vec![*value], unfinished, ..Observed::default() })
            };
            points.push(Point { panel, series, x: 0, observed: seeds.iter().map(seen).collect() });
        }
    }
    FigurePlan {
        panels: figure.file.panel.iter().take(values.len()).cloned().collect(),
        xs: vec![String::new()],
        seeds: (1..=values[0][0].len() as u64).collect(),
        points,
        traffic: Vec::new(),
        changes_text: String::new(),
        observation_digest: String::new(),
        looks: None,
        figure,
    }
}

/// Figure with three curves and three measures, by which rows are judged.
const JUDGED: &str = r#"
    title = "t"
    section = "s"
    scenario = "s.toml"
    panel = [{ name = "first", tags = ["x"] }, { name = "second", tags = ["y"] }, { name = "third", tags = ["y"] }]
    series = [{ name = "a" }, { name = "b" }, { name = "c" }]
    plot = { kind = "heat-map", measures = ["job time", "P99 slowdown"], judged = { jobs = "job time", arrivals = ["P99 slowdown"], fabrics = ["x", "y"] } }
    measure = [
        { name = "job time", of = "time-of-jobs" },
        { name = "P99 slowdown", of = "slowdown", stat = "p99" },
        { name = "timeouts", of = "spurious-timeouts" },
    ]
"#;

/// Returns a heat map with rules of judgement: the traffic of each row, and its values by curve and measure. A row with
/// jobs whose first value is `None` has an unfinished flow.
pub(crate) fn judged_map(rows: &[(Traffic, [[Option<f64>; 3]; 3])]) -> FigurePlan {
    let figure = Figure { id: "rows".to_owned(), file: toml::from_str(JUDGED).expect("a figure") };
    check("p", &BTreeMap::new(), &figure).expect("a figure without mistakes");
    let mut points = Vec::new();
    for (panel, (traffic, values)) in rows.iter().enumerate() {
        for (series, values) in values.iter().enumerate() {
            let unfinished = usize::from(*traffic == Traffic::Jobs && values[0].is_none());
            let seen = Observed { values: values.to_vec(), unfinished, ..Observed::default() };
            points.push(Point { panel, series, x: 0, observed: vec![Some(seen)] });
        }
    }
    FigurePlan {
        panels: figure.file.panel.iter().take(rows.len()).cloned().collect(),
        xs: vec![String::new()],
        seeds: vec![1],
        points,
        traffic: rows.iter().map(|(traffic, _)| *traffic).collect(),
        changes_text: String::new(),
        observation_digest: String::new(),
        looks: None,
        figure,
    }
}
