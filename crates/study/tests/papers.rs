//! Checks every paper: its files are well-formed, its names are defined, its scenarios resolve.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};

use pathweave_study::paper::model::{Metric, PlotKind};
use pathweave_study::paper::{Catalogue, Plan, Selection, Size};

#[test]
fn every_scenario_of_every_paper_resolves_when_shortened() {
    assert!(Catalogue::embedded().names().count() > 0);
    every_scenario_resolves(Size::Quick);
}

#[test]
fn every_scenario_of_every_paper_resolves_at_its_own_size() {
    every_scenario_resolves(Size::Full);
}

/// Checks figures in parallel, as the largest take a minute. At full size only the first sweep value is checked: the
/// others differ in a number only, and generating their messages would take CI minutes. Of a heat map, every row is
/// checked with one scheme, and one row with every scheme.
fn every_scenario_resolves(size: Size) {
    let catalogue = &Catalogue::embedded();
    let figures_of = |name| catalogue.paper(name).unwrap_or_else(|why| panic!("{why}")).figures;
    let figures: Vec<(&str, String)> = catalogue
        .names()
        .flat_map(|name| figures_of(name).into_iter().map(move |it| (name, it.id)))
        .collect();
    let (figures, next) = (&figures, &AtomicUsize::new(0));
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(move || {
                while let Some((name, id)) = figures.get(next.fetch_add(1, Ordering::Relaxed)) {
                    resolves(catalogue, name, id, size);
                }
            });
        }
    });
}

fn resolves(catalogue: &Catalogue, name: &str, id: &str, size: Size) {
    let mut paper = catalogue.paper(name).unwrap_or_else(|why| panic!("{why}"));
    let mut rows_only = Selection { figure: Some(id.to_owned()), ..Selection::default() };
    let mut columns_only = None;
    for file in paper.figures.iter_mut().filter(|figure| figure.id == id).map(|figure| &mut figure.file) {
        // Other schemes matter in a row only if some rows leave them out.
        let left_out = file.panel.iter().flat_map(|panel| panel.without.clone());
        let first = file.series[0].name.clone();
        let few: Vec<String> = left_out.chain([first]).collect();
        if file.plot.kind == PlotKind::HeatMap {
            let row = file.panel[0].name.clone();
            columns_only = Some(Selection { panels: vec![row], ..rows_only.clone() });
            rows_only.series = few.clone();
        }
        if size == Size::Full {
            // Claims and published curves refer to all values, and are checked at the quick size.
            (file.claim, file.published) = Default::default();
            file.sweep.iter_mut().for_each(|sweep| sweep.values.truncate(1));
            // Schemes and their settings were checked at the quick size. Others of a series may depend on the fabric.
            file.series.retain(|one| {
                let of_fabric = one.set.keys().any(|key| !key.starts_with("scheme"));
                few.contains(&one.name) || columns_only.is_none() && of_fabric
            });
        }
    }
    let selections = [Some(rows_only), columns_only.filter(|_| size == Size::Quick)];
    for selection in selections.into_iter().flatten() {
        let plan = Plan::new(paper.clone(), &selection, size, Some(1));
        let plan = plan.unwrap_or_else(|why| panic!("{name} {id}: {why}"));
        let [figure] = &plan.figures[..] else { panic!("{name} {id}: {} figures", plan.figures.len()) };
        let shortened = size == Size::Quick || figure.figure.file.quick.set.is_empty();
        assert!(shortened || !figure.figure.file.quick.says.is_empty(), "{name} {id}");
    }
}

#[test]
fn every_file_of_a_paper_is_used() {
    let catalogue = Catalogue::embedded();
    for name in catalogue.names() {
        let paper = catalogue.paper(name).unwrap();
        let scenarios: Vec<_> = paper
            .figures
            .iter()
            .filter_map(|f| f.file.scenario.as_ref()?.as_str().map(str::to_owned))
            .collect();
        for file in paper.files() {
            let figure =
                file.strip_suffix(".toml").is_some_and(|id| paper.file.figures.iter().any(|f| f == id));
            let used = file == "paper.toml"
                || file == "results.json"
                || figure
                || scenarios.iter().any(|s| s == file);
            assert!(used, "papers/{name}/{file} is neither a figure of paper.toml nor a scenario of one");
        }
    }
}

/// A mean completion time must not appear alone (UDMP errata E9).
#[test]
fn incasts_show_fairness_tail_and_queue_beside_the_mean() {
    let paper = Catalogue::embedded().paper("udmp").unwrap();
    let incast = paper.figure("10").unwrap();
    for of in [Metric::Fct, Metric::Throughput, Metric::Queue] {
        assert!(incast.file.measure.iter().any(|measure| measure.of == of));
    }
    assert_eq!(paper.figure("Figure 6a").unwrap().id, "6a");
    assert_eq!(paper.figure("fig6A").unwrap().id, "6a");
}
