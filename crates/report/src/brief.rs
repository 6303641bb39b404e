//! One table for a terminal of 40 lines and 100 columns: the figures of a run or of a comparison that decide most
//! questions. Rows and numbers are those of the complete tables.

use comfy_table::{CellAlignment, Table, presets};
use pathweave_records::{FlowSummary, GroupJobs, Quantity, Role, RunInfo, Summary, ratio};

use crate::comparison::{Place, Verdict};
use crate::differences;
use crate::judge::Measure;
use crate::metrics::{JOB_TIME, flow_metric, run_metric};
use crate::text;

/// Width of the table, in columns of a terminal.
const WIDTH: usize = 100;
/// Largest number of rows. A terminal of 40 lines has room for the sentences around them.
const ROWS: usize = 24;

/// Largest number of groups whose job times stand beside their mean.
const NAMED_GROUPS: usize = 4;

/// Figures of flows in the table of a comparison, the most important first.
const OF_SCHEMES: &[&str] = &[
    "Unfinished",
    "Failed",
    "Slowdown P99",
    "Slowdown mean",
    "FCT P99",
    "FCT mean",
    "Dropped packets",
    "Retransmissions",
];
/// Figures of runs in that table, likewise.
const OF_SCHEMES_RUN: &[&str] = &[
    "Spurious timeouts",
    "Iteration",
    "Tokens per second",
    "MFU",
    "Bus bandwidth mean",
    "Largest queue",
    "PFC pauses",
    "ECN marks",
];
/// Figures of flows in the table of one run, which has a row for each workload.
const OF_GROUPS: &[&str] = &[
    "Flows",
    "Unfinished",
    "Failed",
    "FCT mean",
    "FCT P99",
    "Slowdown mean",
    "Slowdown P99",
    "Goodput per flow",
    "Dropped packets",
    "Retransmissions",
    "Timeouts",
];
/// Figures below the table of one run.
const OF_RUN: &[&str] = &[
    "Job time",
    "Iteration",
    "Tokens per second",
    "TFLOP/s per GPU",
    "MFU",
    "Pipeline bubble over computation",
    "Exposed communication per job",
    "Bus bandwidth mean",
    "Drops, all packets",
    "Trimmed packets",
    "PFC pauses",
    "ECN marks",
    "Largest queue",
    "Host link utilisation",
    "Fabric link utilisation",
    "Simulated time",
];
/// Figures that are of finished flows only. A scheme that leaves flows unfinished has none of them in a comparison.
const OF_FINISHED: &[&str] = &["Slowdown P99", "Slowdown mean", "FCT P99", "FCT mean"];

/// A column: its heading, the number behind each cell, and the cells.
struct Column {
    heading: String,
    /// Format of the values. `None`: the column stays even if it is empty.
    quantity: Option<Quantity>,
    values: Vec<Option<f64>>,
    cells: Vec<String>,
}

impl Column {
    fn figures(label: &str, quantity: Quantity, values: Vec<Option<f64>>) -> Column {
        let show = |value: &Option<f64>| value.map_or("-".to_owned(), |value| quantity.format(value));
        let cells = values.iter().map(show).collect();
        Column { heading: label.to_owned(), quantity: Some(quantity), values, cells }
    }

    fn is_empty(&self) -> bool {
        self.quantity.is_some() && self.values.iter().all(Option::is_none)
    }

    fn is_zero(&self) -> bool {
        self.quantity == Some(Quantity::Count) && self.values.iter().all(|value| *value == Some(0.0))
    }

    /// Returns the heading in at most two lines of similar length.
    fn lines(&self) -> String {
        let words: Vec<&str> = self.heading.split(' ').collect();
        let split = |at: usize| (words[..at].join(" "), words[at..].join(" "));
        let widest = |at: &usize| {
            let (first, second) = split(*at);
            first.chars().count().max(second.chars().count())
        };
        match (1..words.len()).min_by_key(widest) {
            Some(at) => {
                let (first, second) = split(at);
                format!("{first}\n{second}")
            }
            None => self.heading.clone(),
        }
    }

    /// Width with the space around the text and the border.
    fn width(&self) -> usize {
        let heading = self.lines();
        let texts = heading.lines().chain(self.cells.iter().map(String::as_str));
        3 + texts.map(|text| text.chars().count()).max().unwrap_or(0)
    }
}

/// Returns a comparison as one table, best scheme first, with the sentences that its figures need. The verdict is not
/// part of it.
pub fn brief_comparison(runs: &[&Summary], infos: &[&RunInfo]) -> String {
    let verdict = Verdict::of(runs);
    let order: Vec<&Summary> = verdict.order.iter().map(|place| runs[place.index()]).collect();
    let named = verdict.order.iter().map(|place| place.run.clone()).collect();
    let title = format!("By {}", verdict.measure());
    let (table, left_out) = table(&title, named, of_schemes(&verdict, &order));
    let notes: String =
        runs.iter().map(|run| text::fidelity(run) + &text::ending(run) + &text::warnings(run)).collect();
    notes + &table + &left_out + &besides(infos)
}

/// Returns the columns of a comparison whose runs are in `order`.
fn of_schemes(verdict: &Verdict, order: &[&Summary]) -> Vec<Column> {
    let measure = verdict.judged_by();
    let of = |get: &dyn Fn(&Place) -> Option<f64>| verdict.order.iter().map(get).collect::<Vec<_>>();
    let mut first = Column::figures(measure.name(), measure.quantity(), of(&|place| place.value));
    first.quantity = None;
    for (place, cell) in verdict.order.iter().zip(&mut first.cells).filter(|(place, _)| place.value.is_none())
    {
        *cell = place.without_value().to_owned();
    }
    let over = of(&|place| place.over_best);
    let cells = over.iter().map(|over| over.map_or("-".to_owned(), |over| ratio(over, 1.0))).collect();
    let mut columns =
        vec![first, Column { heading: "over best".to_owned(), quantity: None, values: over, cells }];
    let groups = verdict.order.first().map_or(&[][..], |first| &first.jobs);
    for group in groups.iter().filter(|_| groups.len() > 1) {
        let time = |place: &Place| place.jobs.iter().find(|jobs| jobs.group == group.group)?.time_ns;
        columns.push(Column::figures(&group.group, Quantity::TimeNs, of(&time)));
    }
    let judged = |label: &&&str| match measure {
        Measure::JobTime => true,
        Measure::TailSlowdown => **label != "Slowdown P99",
        Measure::TailTime => **label != "FCT P99",
    };
    for label in OF_SCHEMES.iter().filter(judged) {
        let whole = |run: &Summary| {
            let flows = run.measured();
            !OF_FINISHED.contains(label) || flows.unfinished + flows.failed == 0
        };
        let flows = order.iter().copied().map(|run| whole(run).then(|| run.measured()));
        columns.push(flow_column(label, flows));
    }
    columns.extend(OF_SCHEMES_RUN.iter().map(|label| run_column(label, order)));
    columns
}

/// Returns one run as a table with a row for each workload, and its other figures as a sentence.
pub fn brief_run(summary: &Summary) -> String {
    let mut rows: Vec<(String, &FlowSummary)> = summary.groups.iter().map(of_group).collect();
    match &summary.foreground {
        Some(foreground) if rows.len() > 2 => rows.push(("foreground".to_owned(), foreground)),
        None if rows.len() != 1 => rows.push(("all flows".to_owned(), &summary.overall)),
        _ => {}
    }
    let (names, flows): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    let columns = OF_GROUPS.iter().map(|label| flow_column(label, flows.iter().copied().map(Some)));
    let (table, left_out) = table("Flows", names, columns.collect());
    let figure = |label: &&str| {
        let metric = run_metric(label).expect(LISTED);
        let figure = metric.quantity.format((metric.get)(summary)?);
        let of_what = if *label == JOB_TIME { mean_of_groups(summary) } else { String::new() };
        Some(format!("{label} {figure}{of_what}"))
    };
    let figures: Vec<String> = OF_RUN.iter().filter_map(figure).collect();
    let run = if figures.is_empty() { String::new() } else { wrapped(&format!("{}.", figures.join("; "))) };
    text::fidelity(summary) + &text::ending(summary) + &text::warnings(summary) + &table + &left_out + &run
}

/// Returns the groups of which the job time is a mean, with their times; empty if there is one group.
fn mean_of_groups(summary: &Summary) -> String {
    let groups = &summary.jobs.by_group;
    let of = |group: &GroupJobs| Some(format!("{} {}", group.group, Quantity::TimeNs.format(group.time_ns?)));
    match groups.len() {
        0 | 1 => String::new(),
        2..=NAMED_GROUPS => {
            format!(" (geometric mean of {})", groups.iter().filter_map(of).collect::<Vec<_>>().join(", "))
        }
        count => format!(" (geometric mean of {count} groups)"),
    }
}

fn of_group(group: &pathweave_records::GroupSummary) -> (String, &FlowSummary) {
    let background =
        (group.role == Role::Background && group.group != group.role.name()).then_some("background");
    let notes: Vec<&str> = background.into_iter().chain(group.schemes.iter().map(String::as_str)).collect();
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    (group.group.clone() + &notes, &group.flows)
}

/// Reason why a label of the lists above has a metric.
const LISTED: &str = "a test looks up each label";

fn flow_column<'a>(label: &str, runs: impl Iterator<Item = Option<&'a FlowSummary>>) -> Column {
    let metric = flow_metric(label).expect(LISTED);
    Column::figures(label, metric.quantity, runs.map(|flows| flows.and_then(metric.get)).collect())
}

fn run_column(label: &str, runs: &[&Summary]) -> Column {
    let metric = run_metric(label).expect(LISTED);
    Column::figures(label, metric.quantity, runs.iter().map(|run| (metric.get)(run)).collect())
}

/// Returns the table with the columns that fit, and a sentence on figures that are zero everywhere.
fn table(title: &str, mut names: Vec<String>, mut columns: Vec<Column>) -> (String, String) {
    columns.retain(|column| !column.is_empty());
    let zero: Vec<String> = columns.iter().filter(|c| c.is_zero()).map(|c| c.heading.clone()).collect();
    columns.retain(|column| !column.is_zero());
    let hidden_rows = names.len().saturating_sub(ROWS);
    names.truncate(ROWS);
    let labels = names.iter().map(String::as_str).chain([title]);
    let mut width = 4 + labels.map(|label| label.chars().count()).max().unwrap_or(0);
    let fits = |column: &Column| {
        width += column.width();
        width <= WIDTH
    };
    // The first column is the measure.
    let shown = columns.iter().map(fits).take_while(|fits| *fits).count().max(1).min(columns.len());
    columns.truncate(shown);
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header(std::iter::once(title.to_owned()).chain(columns.iter().map(Column::lines)));
    for (row, name) in names.iter().enumerate() {
        table.add_row([name.as_str()].into_iter().chain(columns.iter().map(|c| c.cells[row].as_str())));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut notes = String::new();
    if hidden_rows > 0 {
        notes += &format!("and {hidden_rows} more rows\n");
    }
    if !zero.is_empty() {
        notes += &wrapped(&format!("Zero in each row: {}.", zero.join("; ")));
    }
    (format!("{table}\n"), notes)
}

/// Returns a sentence with the settings besides the policy in which schemes differ; empty if there are none.
fn besides(infos: &[&RunInfo]) -> String {
    let Some(grid) = differences::of_schemes(infos) else { return String::new() };
    let keys: Vec<&str> = grid.rows.iter().map(|row| row.label.as_str()).collect();
    wrapped(&format!("Besides the policy, the schemes differ in {}.", keys.join(", ")))
}

/// Wraps a sentence to the width of the table.
fn wrapped(sentence: &str) -> String {
    let mut out = String::new();
    let mut length = 0;
    for word in sentence.split(' ') {
        let more = word.chars().count();
        if length > 0 && length + 1 + more > WIDTH {
            out += "\n  ";
            length = 2 + more;
        } else {
            out += if length > 0 { " " } else { "" };
            length += usize::from(length > 0) + more;
        }
        out += word;
    }
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_records::{FlowRecord, FlowStatus, JobRecord, RunResult};

    /// Run of one job with flows of these microseconds, each 1 us on an idle network.
    fn run(name: &str, us: &[u64], lost: u32) -> Summary {
        let flow = |&us: &u64| FlowRecord {
            finish_ps: Some(us * 1_000_000),
            ideal_fct_ps: 1_000_000,
            dropped_packets: lost,
            status: FlowStatus::Finished,
            ..FlowRecord::default()
        };
        let last = us.iter().max().map(|us| us * 1_000_000);
        let mut run = RunResult {
            flows: us.iter().map(flow).collect(),
            jobs: vec![JobRecord { finish_ps: last, ..JobRecord::default() }],
            ..RunResult::default()
        };
        run.info.name = name.to_owned();
        run.info.groups = vec!["all".to_owned()];
        run.info.schemes = vec![name.to_owned()];
        Summary::from_run(&run)
    }

    #[test]
    fn each_label_has_a_figure() {
        let flows = |label: &&str| flow_metric(label).is_some();
        let runs = |label: &&str| run_metric(label).is_some();
        assert!(OF_SCHEMES.iter().chain(OF_GROUPS).chain(OF_FINISHED).all(flows));
        assert!(OF_SCHEMES_RUN.iter().chain(OF_RUN).all(runs));
    }

    #[test]
    fn schemes_are_rows_best_first_and_zero_counts_a_sentence() {
        let runs = [run("slow", &[2, 6], 1), run("fast", &[1, 3], 0)];
        let runs: Vec<&Summary> = runs.iter().collect();
        let text = brief_comparison(&runs, &[]);
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(words).collect();
        assert!(
            lines[1].starts_with("│ By job time job over Slowdown Slowdown FCT FCT Dropped Largest"),
            "{text}"
        );
        // Slowdowns 1 and 3, of mean 2; the P99 of two values is the larger one.
        assert!(lines[4].starts_with("│ fast 3.000 us 1x 3.000 2.000 3.000 us 2.000 us 0"), "{text}");
        assert!(lines[5].starts_with("│ slow 6.000 us 2.000x 6.000 4.000 6.000 us 4.000 us 2"), "{text}");
        assert!(text.contains("Zero in each row: Unfinished; Failed; Retransmissions"), "{text}");
    }

    #[test]
    fn a_table_fits_a_terminal() {
        let names: Vec<String> = (0..60).map(|n| format!("scheme-of-a-long-name-{n}")).collect();
        let runs: Vec<Summary> = names.iter().map(|name| run(name, &[2, 6_000_000], 900_000_000)).collect();
        let text = brief_comparison(&runs.iter().collect::<Vec<_>>(), &[]);
        assert!(text.lines().count() <= 36, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains("and 36 more rows"), "{text}");
    }

    #[test]
    fn an_unfinished_scheme_has_no_slowdown() {
        let mut open = run("open", &[1, 1], 0);
        open.overall.unfinished = 1;
        let text = brief_comparison(&[&open, &run("done", &[9], 0)], &[]);
        let line = text.lines().find(|line| line.contains("open ") && line.starts_with('│')).unwrap();
        assert!(line.matches(" - ").count() >= 4, "{text}");
    }

    /// The job time of two groups is the root of 2 us x 8 us.
    #[test]
    fn a_mean_of_job_times_names_its_groups() {
        let of = |groups: usize| {
            let mut run = run("one", &[2], 0);
            let job = |group: usize| GroupJobs {
                group: format!("g{group}"),
                time_ns: Some([2_000.0, 8_000.0][group % 2]),
                ..GroupJobs::default()
            };
            run.jobs.by_group = (0..groups).map(job).collect();
            run.jobs.time_ns = pathweave_records::job_time_ns(&run.jobs.by_group);
            brief_run(&run).replace("\n  ", " ")
        };
        let two = of(2);
        assert!(two.contains("Job time 4.000 us (geometric mean of g0 2.000 us, g1 8.000 us)"), "{two}");
        assert!(of(6).contains("Job time 4.000 us (geometric mean of 6 groups)"));
        assert!(!of(1).contains("mean of"));
    }

    #[test]
    fn a_run_has_a_row_for_each_workload_and_a_sentence() {
        let text = brief_run(&run("one", &[2, 6], 0));
        assert!(text.contains("all ") && text.contains("Job time 6.000 us"), "{text}");
        assert!(text.lines().count() <= 12, "{text}");
    }
}
