//! Unformatted tables, which the terminal and the report render.

use pathweave_records::{FlowSummary, JobTime, Quantity, Role, Summary, ratio};

use crate::comparison::{Place, Verdict};
use crate::judge::{LEVEL, Measure};
use crate::metrics::{Better, FLOW_METRICS, RUN_METRICS, run_label};

/// A table: a title over the row labels, column headings, rows.
pub(crate) struct Grid {
    pub(crate) title: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

pub(crate) struct Row {
    pub(crate) label: String,
    pub(crate) cells: Vec<Cell>,
}

/// A figure as text. `value` is the number behind the text, `None` for ratios and missing figures.
#[derive(Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) value: Option<f64>,
    /// For a ratio: true if the figure is better than that of the first run, false if it is worse. `None` if they are
    /// level, or if neither direction is better.
    pub(crate) is_better: Option<bool>,
}

/// Returns true if `value` is better than `base`, false if it is worse.
fn compare(better: Better, value: f64, base: f64) -> Option<bool> {
    if (value - base).abs() <= LEVEL * base.abs() {
        return None;
    }
    match better {
        Better::Lower => Some(value < base),
        Better::Higher => Some(value > base),
        Better::Neither => None,
    }
}

/// Returns the tables of one run: flows, then the fabric. Flows have a column for each group. With several groups
/// there is one more column for all flows, or for the foreground, which is never mixed with the background.
pub(crate) fn of_run(summary: &Summary) -> Vec<Grid> {
    let heading = |g: &pathweave_records::GroupSummary| {
        let background = (g.role == Role::Background && g.group != g.role.name()).then_some("background");
        let notes: Vec<&str> = background.into_iter().chain(g.schemes.iter().map(String::as_str)).collect();
        if notes.is_empty() { g.group.clone() } else { format!("{} ({})", g.group, notes.join(", ")) }
    };
    let mut columns: Vec<(String, &FlowSummary)> =
        summary.groups.iter().map(|g| (heading(g), &g.flows)).collect();
    let of_foreground = summary.groups.iter().filter(|g| g.role == Role::Foreground).count();
    match &summary.foreground {
        // If one group is the whole foreground, its column suffices.
        Some(foreground) if of_foreground > 1 => columns.push(("foreground".to_owned(), foreground)),
        None if columns.len() != 1 => columns.push(("all flows".to_owned(), &summary.overall)),
        _ => {}
    }
    let (names, flows): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let flow_rows = FLOW_METRICS.iter().filter_map(|m| {
        let values: Vec<_> = flows.iter().map(|f| (m.get)(f)).collect();
        row(m.label, m.quantity, &values, None)
    });
    let run_rows = RUN_METRICS
        .iter()
        .filter_map(|m| row(&run_label(m, &[summary]), m.quantity, &[(m.get)(summary)], None))
        .collect();
    vec![
        Grid { title: "Flows".to_owned(), columns: names, rows: flow_rows.collect() },
        Grid { title: "Fabric and run".to_owned(), columns: vec![String::new()], rows: run_rows },
    ]
}

/// Number of tables of a comparison before those of jobs and groups.
pub(crate) const MAIN_TABLES: usize = 2;

/// Returns the tables of several runs: the verdict; then figures with ratios to the first run, of all flows, or of the
/// foreground if there is a background, and of the fabric. A table of jobs follows if there are several, and one for
/// each group if the first run has several.
pub(crate) fn of_comparison(runs: &[&Summary]) -> Vec<Grid> {
    let Some(first) = runs.first() else { return Vec::new() };
    let mut columns = Vec::new();
    for (i, summary) in runs.iter().enumerate() {
        columns.push(summary.run.name.clone());
        if i > 0 {
            columns.push("ratio".to_owned());
        }
    }
    let is_open = |flows: &FlowSummary| flows.unfinished + flows.failed > 0;
    let grid = |title: &str, flows: Vec<Option<&FlowSummary>>| {
        let open = flows.iter().flatten().any(|flows| is_open(flows));
        let rows = FLOW_METRICS.iter().filter_map(|m| {
            let values: Vec<_> = flows.iter().map(|f| f.and_then(m.get)).collect();
            row(m.label, m.quantity, &values, Some(m.needs.direction(m.better, open)))
        });
        Grid { title: title.to_owned(), columns: columns.clone(), rows: rows.collect() }
    };
    let mixed = runs.iter().any(|s| s.foreground.is_some());
    let title = if mixed { "Foreground flows" } else { "All flows" };
    let mut all = grid(title, runs.iter().map(|s| Some(s.measured())).collect());
    all.rows.extend(RUN_METRICS.iter().filter_map(|m| {
        let values: Vec<_> = runs.iter().map(|s| (m.get)(s)).collect();
        let open = runs.iter().any(|s| is_open(s.measured()));
        row(&run_label(m, runs), m.quantity, &values, Some(m.needs.direction(m.better, open)))
    }));
    let mut grids = vec![verdict(&Verdict::of(runs)), all];
    grids.extend(jobs(runs));
    if first.groups.len() > 1 {
        grids.extend(first.groups.iter().map(|group| {
            let same = |s: &&'_ Summary| s.groups.iter().position(|g| g.group == group.group);
            let flows = runs.iter().map(|s| same(s).map(|i| &s.groups[i].flows)).collect();
            let background = if group.role == Role::Background { " (background)" } else { "" };
            grid(&format!("Group {}{background}", group.group), flows)
        }));
    }
    grids
}

/// Returns the runs, best first, with what decides and what stands beside it.
fn verdict(verdict: &Verdict) -> Grid {
    let measure = verdict.judged_by();
    let line = |place: &Place| {
        // Slowdowns of the finished flows alone would flatter a scheme.
        let plain =
            |value: Option<f64>| cell(Quantity::Plain, value.filter(|_| place.unfinished_flows == 0), "-");
        let mut cells = vec![
            cell(measure.quantity(), place.value, place.without_value()),
            Cell { text: place.over_best.map_or("-".to_owned(), |over| ratio(over, 1.0)), ..Cell::default() },
            plain(place.slowdown_mean),
            cell(Quantity::Count, place.spurious_timeouts.map(|count| count as f64), "-"),
        ];
        if measure != Measure::TailSlowdown {
            cells.insert(2, plain(place.slowdown_p99));
        }
        Row { label: place.run.clone(), cells }
    };
    let beside = if measure != Measure::TailSlowdown { &["P99 slowdown"][..] } else { &[] };
    let columns = [&[measure.name(), "over best"], beside, &["mean", "spurious RTOs"]].concat();
    Grid {
        title: format!("By {}", measure.name()),
        columns: columns.into_iter().map(str::to_owned).collect(),
        rows: verdict.order.iter().map(line).collect(),
    }
}

fn cell(quantity: Quantity, value: Option<f64>, otherwise: &str) -> Cell {
    let text = value.map_or(otherwise.to_owned(), |value| quantity.format(value));
    Cell { text, value, is_better: None }
}

/// Largest number of jobs in a table.
const LISTED: usize = 12;
/// Largest number of characters of the name of a job.
const NAME: usize = 28;

/// Returns the time of each group of jobs if there are several, and of the longest jobs unless each group has only one,
/// with the ratio to the best of the row. Returns `None` if there is one job.
fn jobs(runs: &[&Summary]) -> Option<Grid> {
    let first = runs.first().filter(|first| first.jobs.count > 1)?;
    let groups = &first.jobs.by_group;
    let mut rows = Vec::new();
    if groups.len() > 1 {
        rows.extend(groups.iter().map(|group| {
            let same = |run: &&Summary| {
                let jobs = run.jobs.by_group.iter().find(|jobs| jobs.group == group.group)?;
                Some(jobs.time_ns)
            };
            times(group.group.clone(), runs.iter().map(same).collect())
        }));
    }
    let mut title = "Job time".to_owned();
    if groups.iter().any(|group| group.count > 1) {
        let listed = listed(runs, first);
        if (listed.len() as u64) < first.jobs.count {
            title = format!("Job time, longest {} of {}", listed.len(), first.jobs.count);
        }
        let of = |job: &JobTime| {
            times(shortened(&job.name), runs.iter().map(|run| time_of(run, job.job)).collect())
        };
        rows.extend(listed.into_iter().map(of));
    }
    Some(Grid { title, columns: runs.iter().map(|run| run.run.name.clone()).collect(), rows })
}

/// Returns the time of a job, `Some(None)` if it did not finish, and `None` if it is not among the longest of the run.
fn time_of(run: &Summary, job: u32) -> Option<Option<f64>> {
    run.jobs.longest.iter().find(|time| time.job == job).map(|time| time.time_ns)
}

/// Returns the jobs that take longest in any run, in the order of their numbers.
fn listed<'a>(runs: &[&Summary], first: &'a Summary) -> Vec<&'a JobTime> {
    let longest = |job: u32| {
        let times = runs.iter().filter_map(|run| time_of(run, job));
        times.map(|time| time.unwrap_or(f64::INFINITY)).fold(0.0, f64::max)
    };
    let mut jobs: Vec<_> = first.jobs.longest.iter().map(|job| (longest(job.job), job)).collect();
    jobs.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.job.cmp(&b.1.job)));
    jobs.truncate(LISTED);
    jobs.sort_by_key(|(_, job)| job.job);
    jobs.into_iter().map(|(_, job)| job).collect()
}

fn times(label: String, values: Vec<Option<Option<f64>>>) -> Row {
    let best = values.iter().flatten().flatten().copied().reduce(f64::min);
    let text = |value: f64| match best {
        Some(best) if best > 0.0 => format!("{} {}", Quantity::TimeNs.format(value), ratio(value, best)),
        _ => Quantity::TimeNs.format(value),
    };
    let cell = |value: Option<Option<f64>>| Cell {
        text: value.map_or("-".to_owned(), |time| time.map_or("unfinished".to_owned(), text)),
        value: value.flatten(),
        is_better: None,
    };
    Row { label, cells: values.into_iter().map(cell).collect() }
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME {
        return name.to_owned();
    }
    name.chars().take(NAME - 3).chain("...".chars()).collect()
}

/// Returns a row with every figure. In a comparison it has the ratio of each later figure to the first, and `ratios`
/// tells which direction is better. Returns `None` if there is no figure at all.
fn row(label: &str, quantity: Quantity, values: &[Option<f64>], ratios: Option<Better>) -> Option<Row> {
    let base = *values.first()?;
    if values.iter().all(Option::is_none) {
        return None;
    }
    let dash = || "-".to_owned();
    let mut cells = Vec::new();
    for (i, &value) in values.iter().enumerate() {
        cells.push(Cell { text: value.map_or_else(dash, |v| quantity.format(v)), value, is_better: None });
        if let Some(better) = ratios.filter(|_| i > 0) {
            let of = |(v, base): (f64, f64)| {
                if base == 0.0 && v > 0.0 { "from 0".to_owned() } else { ratio(v, base) }
            };
            let text = value.zip(base).map_or_else(dash, of);
            let better = value.zip(base).and_then(|(v, base)| compare(better, v, base));
            cells.push(Cell { text, value: None, is_better: better });
        }
    }
    Some(Row { label: label.to_owned(), cells })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Run with jobs of these groups and microseconds.
    fn run(name: &str, jobs: &[(u16, Option<u64>)]) -> Summary {
        let job = |(job, &(group, us)): (u32, &(u16, Option<u64>))| pathweave_records::JobRecord {
            job,
            name: format!("j{job}"),
            group,
            finish_ps: us.map(|us| us * 1_000_000),
            ..Default::default()
        };
        let mut run =
            pathweave_records::RunResult { jobs: (0..).zip(jobs).map(job).collect(), ..Default::default() };
        run.info.name = name.to_owned();
        run.info.groups = vec!["g0".to_owned(), "g1".to_owned()];
        Summary::from_run(&run)
    }

    fn texts(row: &Row) -> Vec<&str> {
        std::iter::once(row.label.as_str()).chain(row.cells.iter().map(|cell| cell.text.as_str())).collect()
    }

    #[test]
    fn the_verdict_comes_first_and_best_first() {
        let runs = [run("a", &[(0, Some(6))]), run("b", &[(0, None)]), run("c", &[(0, Some(4))])];
        let grids = of_comparison(&runs.iter().collect::<Vec<_>>());
        assert_eq!((grids[0].title.as_str(), grids[1].title.as_str()), ("By job time", "All flows"));
        assert_eq!(grids[0].columns[..2], ["job time", "over best"]);
        assert_eq!(texts(&grids[0].rows[0])[..3], ["c", "4.000 us", "1x"]);
        assert_eq!(texts(&grids[0].rows[1])[..3], ["a", "6.000 us", "1.500x"]);
        assert_eq!(texts(&grids[0].rows[2])[..3], ["b", "unfinished", "-"]);
        let mut stopped = runs;
        stopped[1].run.partial = true;
        let grids = of_comparison(&stopped.iter().collect::<Vec<_>>());
        assert_eq!(texts(&grids[0].rows[2])[..3], ["b", "stopped", "-"]);
    }

    #[test]
    fn several_jobs_have_a_line_each() {
        let runs = [run("a", &[(0, Some(6)), (1, Some(2))]), run("b", &[(0, Some(3)), (1, None)])];
        let grids = of_comparison(&runs.iter().collect::<Vec<_>>());
        let found: Vec<_> = grids[MAIN_TABLES].rows.iter().map(texts).collect();
        assert_eq!(grids[MAIN_TABLES].title, "Job time");
        assert_eq!(found, [["g0", "6.000 us 2.000x", "3.000 us 1x"], ["g1", "2.000 us 1x", "unfinished"]]);
    }

    /// The job time of two groups is the root of 2 us x 8 us.
    #[test]
    fn a_mean_over_groups_is_named() {
        let two = run("a", &[(0, Some(2)), (1, Some(8))]);
        let row = |grid: &Grid| {
            grid.rows
                .iter()
                .map(texts)
                .any(|row| row.starts_with(&["Job time, geometric mean of 2 groups", "4.000 us"]))
        };
        assert!(row(&of_run(&two)[1]) && row(&of_comparison(&[&two])[1]));
        let one = of_run(&run("b", &[(0, Some(6))]));
        assert!(one[1].rows.iter().any(|row| texts(row) == ["Job time", "6.000 us"]));
    }

    #[test]
    fn of_many_jobs_the_longest_are_listed() {
        // The first job is short in this run, and unfinished in the other one.
        let first: Vec<_> = (1..=20).map(|us| (0, Some(us))).collect();
        let other: Vec<_> = (1..=20).map(|us| (0, (us > 1).then_some(30))).collect();
        let runs = [run("a", &first), run("b", &other)];
        let grid = jobs(&[&runs[0], &runs[1]]).unwrap();
        assert_eq!((grid.rows.len(), grid.title.as_str()), (12, "Job time, longest 12 of 20"));
        assert_eq!(texts(&grid.rows[0]), ["j0", "1.000 us 1x", "unfinished"]);
        // The others take 30 us each, and the first of equals stay.
        assert_eq!(texts(&grid.rows[11]), ["j11", "12.00 us 1x", "30.00 us 2.500x"]);
        let many: Vec<_> = (0..100).map(|us| (0, Some(us + 1))).collect();
        let turned: Vec<_> = (0..100).map(|us| (0, Some(100 - us))).collect();
        let runs = [run("a", &many), run("b", &turned)];
        // The run lists its longest 64 jobs, which are the last ones here and the first ones there.
        let grid = jobs(&[&runs[0], &runs[1]]).unwrap();
        assert_eq!(texts(&grid.rows[11]), ["j99", "100.0 us 1x", "-"]);
        assert_eq!(shortened("a name that is far too long to be read"), "a name that is far too lo...");
    }

    /// The only flow of `b` that finished was faster than that of `a`; another one failed.
    #[test]
    fn figures_of_survivors_are_neither_better_nor_worse() {
        use pathweave_records::{FlowRecord, FlowStatus};
        let of = |name: &str, ends: &[Option<u64>]| {
            let flow = |&us: &Option<u64>| FlowRecord {
                finish_ps: us.map(|us| us * 1_000_000),
                ideal_fct_ps: 1_000_000,
                status: if us.is_some() { FlowStatus::Finished } else { FlowStatus::RetriesExceeded },
                ..FlowRecord::default()
            };
            let mut run =
                pathweave_records::RunResult { flows: ends.iter().map(flow).collect(), ..Default::default() };
            run.info.name = name.to_owned();
            run.info.groups = vec!["g".to_owned()];
            run.info.schemes = vec!["s".to_owned()];
            Summary::from_run(&run)
        };
        let moods = |runs: [Summary; 2]| {
            let grids = of_comparison(&runs.iter().collect::<Vec<_>>());
            let row = |label: &str| grids[1].rows.iter().find(|row| row.label == label).unwrap();
            ["Slowdown P99", "Failed"].map(|label| row(label).cells[2].is_better)
        };
        let a = || of("a", &[Some(4), Some(4)]);
        assert_eq!(moods([a(), of("b", &[Some(2), None])]), [None, Some(false)]);
        assert_eq!(moods([a(), of("b", &[Some(2), Some(2)])]), [Some(true), None]);
    }

    #[test]
    fn better_depends_on_the_figure_and_level_is_neither() {
        let of = |better, value| compare(better, value, 2.0);
        assert_eq!([1.0, 2.009, 2.02].map(|v| of(Better::Lower, v)), [Some(true), None, Some(false)]);
        assert_eq!([1.0, 1.991, 2.02].map(|v| of(Better::Higher, v)), [Some(false), None, Some(true)]);
        assert_eq!(of(Better::Neither, 9.0), None);
        assert_eq!(compare(Better::Lower, 3.0, 0.0), Some(false), "from nothing to something");
        let row =
            row("Drops", Quantity::Count, &[Some(4.0), Some(2.0), Some(4.0)], Some(Better::Lower)).unwrap();
        let moods: Vec<_> = row.cells.iter().map(|cell| cell.is_better).collect();
        assert_eq!(moods, [None, None, Some(true), None, None]);
        let values = [Some(0.0), Some(2.0), Some(0.0), None];
        let row = super::row("Drops", Quantity::Count, &values, Some(Better::Lower)).unwrap();
        let found: Vec<_> = row.cells.iter().map(|cell| (cell.text.as_str(), cell.is_better)).collect();
        let worse = ("from 0", Some(false));
        assert_eq!(found[1..], [("2", None), worse, ("0", None), ("1x", None), ("-", None), ("-", None)]);
    }
}
