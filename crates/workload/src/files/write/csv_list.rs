//! Writer of the flow list of pathweave.

use pathweave_units::{Duration, Time};

use super::decimal;
use crate::files::csv_list::MOMENTS;
use crate::files::{FlowDependency, FlowFile, FlowRecord};
use crate::graph::Moment;

/// A column: its name, a predicate that tells if a flow needs it, and its value.
type Column = (&'static str, fn(&FlowRecord) -> bool, fn(&FlowRecord) -> String);

const COLUMNS: [Column; 11] = [
    ("src", |_| true, |flow| flow.src.to_string()),
    ("dst", |_| true, |flow| flow.dst.to_string()),
    ("size_bytes", |_| true, |flow| flow.size_bytes.to_string()),
    ("start_ns", |flow| flow.start > Time::ZERO, |flow| ns(flow.start.as_ps())),
    ("id", |flow| flow.id.is_some(), |flow| flow.id.clone().unwrap_or_default()),
    ("after", |flow| !flow.after.is_empty(), after),
    ("after_delays_ns", has_delays, after_delays),
    ("after_moments", has_completions, after_moments),
    ("after_count", |flow| flow.needs.is_some(), |flow| flow.needs.map_or(String::new(), |n| n.to_string())),
    ("delay_ns", |flow| flow.delay > Duration::ZERO, delay),
    (
        "connection",
        |flow| flow.connection.is_some(),
        |flow| flow.connection.map_or(String::new(), |c| c.to_string()),
    ),
];

/// Writes a list in the format of [`parse_csv`], with only the columns that the flows need. No information is
/// lost.
///
/// [`parse_csv`]: crate::parse_csv
pub fn write_csv(flows: &FlowFile, _lost: &mut Vec<String>) -> Result<String, String> {
    let columns: Vec<&Column> =
        COLUMNS.iter().filter(|(name, needs, _)| *name == "src" || flows.flows.iter().any(needs)).collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failed = |why: csv::Error| why.to_string();
    writer.write_record(columns.iter().map(|column| column.0)).map_err(failed)?;
    for flow in &flows.flows {
        writer.write_record(columns.iter().map(|column| column.2(flow))).map_err(failed)?;
    }
    let bytes = writer.into_inner().map_err(|why| why.to_string())?;
    String::from_utf8(bytes).map_err(|why| why.to_string())
}

fn ns(ps: u64) -> String {
    decimal(ps, 1_000)
}

fn after(flow: &FlowRecord) -> String {
    flow.after.iter().map(|after| after.id.as_str()).collect::<Vec<_>>().join(" ")
}

fn has_delays(flow: &FlowRecord) -> bool {
    flow.after.iter().any(|after| after.delay > Duration::ZERO)
}

fn after_delays(flow: &FlowRecord) -> String {
    if !has_delays(flow) {
        return String::new();
    }
    flow.after.iter().map(|after| ns(after.delay.as_ps())).collect::<Vec<_>>().join(" ")
}

fn has_completions(flow: &FlowRecord) -> bool {
    flow.after.iter().any(|after| after.moment != Moment::Delivery)
}

fn after_moments(flow: &FlowRecord) -> String {
    if !has_completions(flow) {
        return String::new();
    }
    let name = |after: &FlowDependency| {
        MOMENTS.iter().find(|(_, moment)| *moment == after.moment).expect("all moments have names").0
    };
    flow.after.iter().map(name).collect::<Vec<_>>().join(" ")
}

fn delay(flow: &FlowRecord) -> String {
    if flow.delay == Duration::ZERO { String::new() } else { ns(flow.delay.as_ps()) }
}
