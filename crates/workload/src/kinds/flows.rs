//! A list of flows, from the scenario or a file.

use std::collections::HashMap;
use std::path::Path;

use pathweave_units::{Bytes, Duration, Time};
use serde::{Deserialize, Serialize};

use crate::builder::{Draft, Stream};
use crate::error::{FileError, WorkloadError};
use crate::files::{FlowFile, FlowRecord, Ns3Dialect, parse_csv, parse_ns3};
use crate::graph::MAX_MESSAGE_SIZE;
use crate::sink::{Generate, Sink};

/// How a file writes flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowFormat {
    /// CSV if the name ends in ".csv", else HPCC or ConWeave by the number of columns.
    #[default]
    Auto,
    /// Comma-separated with column names: src, dst, size_bytes, and if wanted start_ns, id, after, delay_ns,
    /// connection.
    Csv,
    /// `flow.txt` of HPCC: src dst pg dport bytes start_seconds.
    Hpcc,
    /// `flow.txt` of ConWeave: src dst pg bytes start_seconds.
    Conweave,
}

/// One flow of an inline list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Sending host.
    pub src: u64,
    /// Receiving host.
    pub dst: u64,
    /// Payload, 1 B to 4 GiB.
    pub size: Bytes,
    /// Earliest start, since the start of the workload.
    #[serde(default)]
    pub start: Duration,
    /// A name by which other flows refer to this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Ids of flows that must be delivered before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Time from the last of them to this flow.
    #[serde(default)]
    pub delay: Duration,
    /// Flows with the same number between the same hosts share a connection. Default: one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<u32>,
}

/// A list of flows, inline or from a file. The whole is one job.
///
/// Hosts are host numbers, or with an imported topology the ids of its file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flows {
    /// The flows. Give this or `file`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowSpec>,
    /// A file of flows, relative to the scenario. Give this or `flows`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// How the file writes flows.
    #[serde(default)]
    pub format: FlowFormat,
    /// Shift all starts so that the first flow starts at once (files of ns-3 often begin at 2 s).
    #[serde(default)]
    pub rebase: bool,
}

impl Generate for Flows {
    fn generate(&self, out: &mut Sink<'_>) -> Result<(), WorkloadError> {
        let (list, file) = match (&self.file, self.flows.is_empty()) {
            (Some(file), true) => (self.read(out, file)?, Some(file.as_str())),
            (None, false) => (FlowFile { flows: self.inline(), notes: Vec::new() }, None),
            (Some(file), false) => return out.bad("file", file, "expected file or flows, not both"),
            (None, true) => return out.bad("flows", "none", "expected a list of flows, or a file"),
        };
        list.notes.iter().for_each(|note| out.note(note));
        emit(&list.flows, file, self.rebase, out)
    }
}

impl Flows {
    fn read(&self, out: &Sink<'_>, file: &str) -> Result<FlowFile, WorkloadError> {
        let text = out.read(file)?;
        let is_csv = Path::new(file).extension().is_some_and(|e| e.eq_ignore_ascii_case("csv"));
        let list = match self.format {
            FlowFormat::Csv => parse_csv(&text, file)?,
            FlowFormat::Auto if is_csv => parse_csv(&text, file)?,
            FlowFormat::Auto => parse_ns3(&text, file, None)?,
            FlowFormat::Hpcc => parse_ns3(&text, file, Some(Ns3Dialect::Hpcc))?,
            FlowFormat::Conweave => parse_ns3(&text, file, Some(Ns3Dialect::Conweave))?,
        };
        if list.flows.is_empty() {
            return Err(FileError::whole(file, "no flows").into());
        }
        Ok(list)
    }

    fn inline(&self) -> Vec<FlowRecord> {
        let record = |(line, flow): (u64, &FlowSpec)| FlowRecord {
            line,
            id: flow.id.clone(),
            src: flow.src,
            dst: flow.dst,
            size_bytes: flow.size.get(),
            start: Time::ZERO + flow.start,
            after: flow.after.clone(),
            delay: flow.delay,
            connection: flow.connection,
        };
        (0..).zip(&self.flows).map(record).collect()
    }
}

/// Declares the flows. `file` is where they come from; without one, `line` is the index in the inline list.
fn emit(
    flows: &[FlowRecord],
    file: Option<&str>,
    rebase: bool,
    out: &mut Sink<'_>,
) -> Result<(), WorkloadError> {
    let fail = |out: &Sink<'_>, flow: &FlowRecord, what: String| match file {
        Some(file) => FileError::at(file, flow.line, what).into(),
        None => out.bad::<()>("flows", format_args!("[.. no. {} ..]", flow.line), what).unwrap_err(),
    };
    let job = Some(out.job("flows")?);
    let origin = if rebase { flows.iter().map(|f| f.start).min().unwrap_or_default() } else { Time::ZERO };
    // Both maps are only looked up; their order cannot leak.
    let mut drafts: Vec<Draft> = Vec::with_capacity(flows.len());
    let mut by_id: HashMap<&str, usize> = HashMap::new();
    for (i, flow) in flows.iter().enumerate() {
        let host = |field: &str, id: u64| out.env.host_of(id).map_err(|why| format!("{field} = {id}: {why}"));
        let (src, dst) = match (host("src", flow.src), host("dst", flow.dst)) {
            (Ok(src), Ok(dst)) => (src.0, dst.0),
            (Err(why), _) | (_, Err(why)) => return Err(fail(out, flow, why)),
        };
        if src == dst {
            return Err(fail(out, flow, format!("dst = {}: the same as src; they must differ", flow.dst)));
        }
        let max = MAX_MESSAGE_SIZE.get();
        if !(1..=max).contains(&flow.size_bytes) {
            return Err(fail(out, flow, format!("size = {} bytes: expected 1 to {max}", flow.size_bytes)));
        }
        if flow.connection.is_some_and(|c| c >= 1 << 31) {
            return Err(fail(out, flow, "connection: expected a number below 2147483648".to_owned()));
        }
        if let Some(id) = &flow.id
            && let Some(first) = by_id.insert(id, i)
        {
            let place = if file.is_some() { "on line" } else { "by no." };
            let what = format!("id = {id}: already used {place} {}; ids must differ", flows[first].line);
            return Err(fail(out, flow, what));
        }
        let stream = flow.connection.map_or(Stream::Own, Stream::Shared);
        let draft = out.message((src, dst), Bytes::new(flow.size_bytes), flow.start - origin, stream, job)?;
        out.delay(draft, flow.delay);
        drafts.push(draft);
    }
    for (i, flow) in flows.iter().enumerate() {
        for before in &flow.after {
            match by_id.get(before.as_str()) {
                Some(&j) => out.after(drafts[i], drafts[j])?,
                None => {
                    let hint = crate::names::nearest(before, by_id_names(flows))
                        .map_or(String::new(), |n| format!("; did you mean \"{n}\"?"));
                    return Err(fail(out, flow, format!("after = {before}: no flow has this id{hint}")));
                }
            }
        }
    }
    Ok(())
}

fn by_id_names(flows: &[FlowRecord]) -> impl Iterator<Item = &str> {
    flows.iter().filter_map(|f| f.id.as_deref())
}
