//! A small heat map for tests.

use std::collections::BTreeMap;

use crate::paper::catalogue::Figure;
use crate::paper::check::check;
use crate::paper::observe::Observed;
use crate::paper::plan::{FigurePlan, Point};

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
        changes_text: String::new(),
        observation_digest: String::new(),
        looks: None,
        figure,
    }
}
