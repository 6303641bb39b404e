//! A list of flows, from the scenario or from a file.

use std::collections::BTreeMap;
use std::path::Path;

use pathweave_units::{Bytes, Duration, HostId, Time, closest_name, suggestion};
use serde::{Deserialize, Serialize};

use crate::builder::{Draft, Stream};
use crate::env::WorkloadEnv;
use crate::error::{FileError, WorkloadError};
use crate::files::{
    FlowDependency, FlowFile, FlowRecord, HostCount, HtsimDialect, Ns3Dialect, parse_csv, parse_htsim_cm,
    parse_ns3,
};
use crate::graph::{MAX_MESSAGE_SIZE, Moment};
use crate::hosts::UnknownHosts;
use crate::sink::{Generate, NamedFile, WorkloadBuilder};

/// Format of a file of flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowFormat {
    /// Detects the format: CSV if the name ends in ".csv", htsim if it ends in ".cm", otherwise HPCC or
    /// ConWeave by the number of columns.
    #[default]
    Auto,
    /// Comma-separated values with column names: src, dst, size_bytes, and optionally start_ns, id, after,
    /// after_delays_ns, after_moments (delivery or completion), after_count, delay_ns, connection.
    Csv,
    /// `flow.txt` of HPCC: src dst pg dport bytes start_seconds.
    Hpcc,
    /// `flow.txt` of ConWeave: src dst pg bytes start_seconds.
    Conweave,
    /// Connection matrix of htsim, with triggers. Starts are microseconds (uet-htsim) or picoseconds
    /// (csg-htsim). They are picoseconds if one of them would be a second or later as microseconds. A note
    /// states which.
    Htsim,
    /// Connection matrix of uet-htsim, with starts in microseconds.
    UetHtsim,
    /// Connection matrix of csg-htsim, with starts in picoseconds.
    CsgHtsim,
}

/// Host of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged, expecting = "expected the number of a host or its name")]
pub enum FlowHost {
    /// Host number, or the identifier in the file of an imported topology.
    Number(u64),
    /// Name of a host, or a pattern that only one name matches.
    Name(String),
}

impl From<u64> for FlowHost {
    fn from(number: u64) -> Self {
        FlowHost::Number(number)
    }
}

/// One flow of an inline list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Sending host: a number or a name.
    pub src: FlowHost,
    /// Receiving host: a number or a name.
    pub dst: FlowHost,
    /// Payload, 1 B to 4 GiB.
    pub size: Bytes,
    /// Earliest start, since the start of the workload (default 0).
    #[serde(default)]
    pub start: Duration,
    /// Name by which other flows refer to this one. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Ids of flows that must end before this one begins. An end counts when the sender of this flow learns
    /// of it. If it is the receiver of the other flow, that is the delivery. If it is the sender of the other
    /// flow, that is the last acknowledgement. Otherwise it is one notification (`network.task_notification`)
    /// after the delivery. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Delay between the last of these ends and the begin of this flow (default 0).
    #[serde(default)]
    pub delay: Duration,
    /// Number of the connection. Flows with the same number between the same hosts share it. Default: a
    /// connection of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<u32>,
}

/// A list of flows, inline or from a file. The whole list is one job.
///
/// Hosts are host numbers or names, or, with an imported topology, the identifiers of its file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flows {
    /// List of flows. Set either `flows` or `file`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowSpec>,
    /// File of flows, relative to the scenario. Set either `flows` or `file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Format of the file.
    #[serde(default)]
    pub format: FlowFormat,
    /// True to shift all starts so that the first flow starts at once (files of ns-3 often begin at 2 s).
    /// Default: false.
    #[serde(default)]
    pub rebase: bool,
}

impl Generate for Flows {
    fn generate(&self, out: &mut WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
        let (mut list, file) = match (&self.file, self.flows.is_empty()) {
            (Some(file), true) => (self.read(out, file)?, Some(file.as_str())),
            (None, false) => {
                if self.format != FlowFormat::default() {
                    out.note_ineffective("format", "there is no `file`");
                }
                (FlowFile { flows: self.inline(out)?, ..FlowFile::default() }, None)
            }
            (Some(file), false) => return out.field_error("file", file, "expected file or flows, not both"),
            (None, true) => return out.field_error("flows", "none", "expected a list of flows, or a file"),
        };
        list.notes.iter().chain(&list.unused).for_each(|note| out.note(note));
        let fail = |flow: &FlowRecord, Fault { field, what }: Fault| match file {
            Some(file) => FileError::at(file, flow.line, what).into(),
            None => {
                WorkloadError::Flow { group: out.name.to_owned(), index: flow.line, field, message: what }
            }
        };
        if let (Some(HostCount { field, line, count }), Some(file)) = (list.hosts, file)
            && count > u64::from(out.env.hosts)
        {
            let what = format!("{field} = {count}: the topology has {} hosts", out.env.hosts);
            return Err(FileError { file: file.to_owned(), line, message: what }.into());
        }
        for flow in &list.flows {
            check(flow, out.env).map_err(|fault| fail(flow, fault))?;
        }
        let place = if file.is_some() { "line" } else { "number" };
        check_ids(&list.flows, place).map_err(|(flow, fault)| fail(flow, fault))?;
        // Sorting by content makes the result independent of the order of the list. Flows that are still
        // equal have no id, so nothing waits for them and they are interchangeable.
        list.flows.iter_mut().for_each(|f| f.after.sort_unstable());
        list.flows.sort_by(|a, b| content(a).cmp(&content(b)));
        declare(&list.flows, self.rebase, out)
    }

    fn files(&mut self) -> Vec<NamedFile<'_>> {
        self.file.as_mut().map(|file| ("file", file)).into_iter().collect()
    }
}

impl Flows {
    fn read(&self, out: &WorkloadBuilder<'_>, file: &str) -> Result<FlowFile, WorkloadError> {
        let text = out.read(file)?;
        let ends_in = |end: &str| Path::new(file).extension().is_some_and(|e| e.eq_ignore_ascii_case(end));
        let list = match self.format {
            FlowFormat::Csv => parse_csv(&text, file)?,
            FlowFormat::Auto if ends_in("csv") => parse_csv(&text, file)?,
            FlowFormat::Auto if ends_in("cm") => parse_htsim_cm(&text, file, None)?,
            FlowFormat::Auto => parse_ns3(&text, file, None)?,
            FlowFormat::Htsim => parse_htsim_cm(&text, file, None)?,
            FlowFormat::UetHtsim => parse_htsim_cm(&text, file, Some(HtsimDialect::Uet))?,
            FlowFormat::CsgHtsim => parse_htsim_cm(&text, file, Some(HtsimDialect::Csg))?,
            FlowFormat::Hpcc => parse_ns3(&text, file, Some(Ns3Dialect::Hpcc))?,
            FlowFormat::Conweave => parse_ns3(&text, file, Some(Ns3Dialect::Conweave))?,
        };
        if list.flows.is_empty() {
            return Err(FileError::whole(file, "no flows").into());
        }
        Ok(list)
    }

    fn inline(&self, out: &WorkloadBuilder<'_>) -> Result<Vec<FlowRecord>, WorkloadError> {
        let record = |(line, flow): (u64, &FlowSpec)| {
            let number = |field, host| {
                number_of(host, out.env).map_err(|why| {
                    let Fault { field, what } = Fault::new(field, why);
                    WorkloadError::Flow { group: out.name.to_owned(), index: line, field, message: what }
                })
            };
            Ok(FlowRecord {
                line,
                id: flow.id.clone(),
                src: number("src", &flow.src)?,
                dst: number("dst", &flow.dst)?,
                size_bytes: flow.size.get(),
                start: Time::ZERO + flow.start,
                after: flow.after.iter().map(|id| FlowDependency::from(id.as_str())).collect(),
                needs: None,
                delay: flow.delay,
                connection: flow.connection,
            })
        };
        (0..).zip(&self.flows).map(record).collect()
    }
}

/// Returns the number of a host in flow lists. The error begins with the name and says what is allowed.
fn number_of(host: &FlowHost, env: &WorkloadEnv) -> Result<u64, String> {
    let name = match host {
        FlowHost::Number(number) => return Ok(*number),
        FlowHost::Name(name) => name,
    };
    let found = env
        .hosts_matching(name)
        .map_err(|UnknownHosts { pattern, allowed }| format!("{pattern}: {allowed}"))?;
    let &[host] = found.as_slice() else {
        return Err(format!("\"{name}\": {} hosts have such a name; expected one", found.len()));
    };
    let id_of = |ids: &BTreeMap<u64, HostId>| ids.iter().find(|(_, of)| of.0 == host).map(|(id, _)| *id);
    Ok(env.node_ids.as_ref().and_then(id_of).unwrap_or(u64::from(host)))
}

/// Returns all of a flow except its line, as a sort key.
fn content(flow: &FlowRecord) -> impl Ord + '_ {
    let FlowRecord { line: _, id, src, dst, size_bytes, start, after, needs, delay, connection } = flow;
    (start, src, dst, size_bytes, connection, delay, id, (after, needs))
}

/// Checks a list as a workload does, except for the existence of its hosts. `file` is its name in error
/// messages.
pub fn check_flows(list: &FlowFile, file: &str) -> Result<(), FileError> {
    let fail = |flow: &FlowRecord, fault: Fault| FileError::at(file, flow.line, fault.what);
    list.flows.iter().try_for_each(|flow| check_itself(flow).map_err(|fault| fail(flow, fault)))?;
    check_ids(&list.flows, "line").map_err(|(flow, fault)| fail(flow, fault))
}

/// Error of a flow.
struct Fault {
    field: Option<&'static str>,
    /// Field, value and what is allowed.
    what: String,
}

impl Fault {
    /// Makes the error of a field. `why` begins with the field's value.
    fn new(field: &'static str, why: impl std::fmt::Display) -> Self {
        Fault { field: Some(field), what: format!("{field} = {why}") }
    }
}

/// Checks a flow by itself, and its hosts.
fn check(flow: &FlowRecord, env: &WorkloadEnv) -> Result<(), Fault> {
    for (field, id) in [("src", flow.src), ("dst", flow.dst)] {
        env.host_of(id).map_err(|why| Fault::new(field, format!("{id}: {why}")))?;
    }
    check_itself(flow)
}

fn check_itself(flow: &FlowRecord) -> Result<(), Fault> {
    if flow.src == flow.dst {
        return Err(Fault::new("dst", format!("{}: the same as src; they must differ", flow.dst)));
    }
    let max = MAX_MESSAGE_SIZE.get();
    if !(1..=max).contains(&flow.size_bytes) {
        return Err(Fault::new("size", format!("{} bytes: expected 1 to {max}", flow.size_bytes)));
    }
    match flow.connection {
        Some(number) if number >= 1 << 31 => {
            Err(Fault::new("connection", format!("{number}: expected a number below 2147483648")))
        }
        _ => Ok(()),
    }
}

/// Checks that ids differ and that every id in `after` exists. `place` is the unit in which flows are
/// counted, for errors.
fn check_ids<'a>(flows: &'a [FlowRecord], place: &str) -> Result<(), (&'a FlowRecord, Fault)> {
    let mut by_id: BTreeMap<&str, &FlowRecord> = BTreeMap::new();
    for flow in flows {
        if let Some(id) = &flow.id
            && let Some(first) = by_id.insert(id, flow)
        {
            let why = format!("{id}: the flow of {place} {} has it already; ids must differ", first.line);
            return Err((flow, Fault::new("id", why)));
        }
    }
    for flow in flows {
        if let Some(missing) =
            flow.after.iter().map(|after| &after.id).find(|id| !by_id.contains_key(id.as_str()))
        {
            let hint = suggestion(closest_name(missing, by_id.keys().copied()));
            return Err((flow, Fault::new("after", format!("{missing}: no flow has this id{hint}"))));
        }
    }
    Ok(())
}

/// Declares flows that have been checked.
fn declare(flows: &[FlowRecord], rebase: bool, out: &mut WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
    let job = out.job("flows")?;
    let origin = if rebase { flows.iter().map(|f| f.start).min().unwrap_or_default() } else { Time::ZERO };
    let mut drafts: Vec<Draft> = Vec::with_capacity(flows.len());
    let mut by_id: BTreeMap<&str, Draft> = BTreeMap::new();
    let env = out.env;
    let host = |id| env.host_of(id).expect("hosts have been checked").0;
    for flow in flows {
        let pair = (host(flow.src), host(flow.dst));
        let stream = flow.connection.map_or(Stream::Own, Stream::Shared);
        let draft = out.message(pair, Bytes::new(flow.size_bytes), flow.start - origin, stream, Some(job))?;
        out.delay(draft, flow.delay);
        if let Some(id) = &flow.id {
            out.name_task(draft, id);
            by_id.insert(id, draft);
        }
        drafts.push(draft);
    }
    let mut pauses: BTreeMap<(Draft, Duration, Moment), Draft> = BTreeMap::new();
    for (flow, &draft) in flows.iter().zip(&drafts) {
        flow.needs.iter().for_each(|&needs| out.needs(draft, needs));
        for FlowDependency { id, delay, moment } in &flow.after {
            let before = by_id[id.as_str()];
            if *delay == Duration::ZERO {
                out.after_moment(draft, before, *moment)?;
                continue;
            }
            // Flows that wait equally long for the same moment share a pause.
            let pause = match pauses.get(&(before, *delay, *moment)) {
                Some(&pause) => pause,
                None => {
                    let pause = out.compute(host(flow.src), *delay, job)?;
                    out.after_moment(pause, before, *moment)?;
                    pauses.insert((before, *delay, *moment), pause);
                    pause
                }
            };
            out.after(draft, pause)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pathweave_units::{HostId, Rate};
    use proptest::prelude::{prop, prop_assert_eq, proptest};

    use super::*;
    use crate::config::{WorkloadConfig, build};
    use crate::kinds::Traffic;
    use crate::testing::{error_of, graph_of};

    fn flow(src: u64, dst: u64, size: u64) -> FlowSpec {
        FlowSpec {
            src: src.into(),
            dst: dst.into(),
            size: Bytes::new(size),
            start: Duration::ZERO,
            id: None,
            after: Vec::new(),
            delay: Duration::ZERO,
            connection: None,
        }
    }
    fn inline(flows: Vec<FlowSpec>) -> Traffic {
        Traffic::Flows(Flows { flows, ..Flows::default() })
    }

    #[test]
    fn connections_and_dependencies() {
        let first = FlowSpec { id: Some("a".to_owned()), connection: Some(5), ..flow(0, 1, 100) };
        let second = FlowSpec {
            after: vec!["a".to_owned()],
            delay: Duration::from_us(1),
            connection: Some(5),
            ..flow(0, 1, 200)
        };
        let graph = graph_of(2, inline(vec![second, first, flow(0, 1, 300)]));
        let sizes: Vec<u64> = graph.messages().iter().map(|m| m.size.get()).collect();
        assert_eq!(sizes, [100, 300, 200]);
        let stream = |i: usize| graph.messages()[i].stream;
        assert!(stream(0) == 5 && stream(2) == 5 && stream(1) != 5);
        let ids: Vec<_> = (0..3).map(crate::graph::TaskId).collect();
        assert_eq!(graph.dependents(ids[0], Moment::Delivery), [ids[2]]);
        assert_eq!(graph.delay_after_deps(ids[2]), Duration::from_us(1));
    }

    #[test]
    fn errors_name_the_flow_the_field_and_what_is_allowed() {
        let named = |id: &str| FlowSpec { id: Some(id.to_owned()), ..flow(0, 1, 1) };
        assert_eq!(
            error_of(4, inline(vec![flow(0, 1, 1), flow(0, 9, 1)])),
            "workload \"flows\": flows[1]: dst = 9: no host has this number; hosts are 0 to 3"
        );
        assert!(
            error_of(4, inline(vec![flow(0, 1, 0)])).contains("size = 0 bytes: expected 1 to 4294967296")
        );
        assert!(error_of(4, inline(vec![flow(2, 2, 1)])).contains("the same as src"));
        assert!(
            error_of(4, inline(vec![named("x"), named("x")]))
                .contains("flows[1]: id = x: the flow of number 0 has it")
        );
        let waits = FlowSpec { after: vec!["ax".to_owned()], ..named("bbbbbb") };
        assert!(error_of(4, inline(vec![named("ab"), waits])).contains("after = ax: no flow has this id"));
        let circle = |id: &str, after: &str| FlowSpec { after: vec![after.to_owned()], ..named(id) };
        let error = error_of(4, inline(vec![circle("a", "b"), circle("b", "a")]));
        assert!(error.contains("cycle: message \"a\" (host 0 to 1, 1 bytes), then message \"b\""), "{error}");
        assert!(error_of(4, inline(Vec::new())).contains("expected a list of flows, or a file"));
    }

    proptest! {
        /// The lists have many equal flows, equal chains and shared predecessors.
        #[test]
        fn the_order_of_the_list_does_not_show(
            rows in prop::collection::vec((0u64..3, 1u64..3, prop::collection::vec(0usize..1000, 0..3), 0u8..4), 1..30),
            seed: u64,
        ) {
            let spec = |(i, (src, size, after, named)): (usize, &(u64, u64, Vec<usize>, u8))| {
                let earlier: Vec<usize> = (0..i).filter(|&j| rows[j].3 > 0).collect();
                let after = after.iter().filter(|_| !earlier.is_empty());
                FlowSpec {
                    id: (*named > 0).then(|| format!("f{i}")),
                    after: after.map(|a| format!("f{}", earlier[a % earlier.len()])).collect(),
                    connection: (*named == 3).then_some(1),
                    ..flow(*src, 3, *size)
                }
            };
            let mut specs: Vec<FlowSpec> = rows.iter().enumerate().map(spec).collect();
            let graph = graph_of(4, inline(specs.clone()));
            pathweave_units::Rng::for_component(seed, "shuffle", 0).shuffle(&mut specs);
            prop_assert_eq!(graph, graph_of(4, inline(specs)));
        }
    }

    /// Reads a file of the repository, on a fabric whose hosts have the ids 1 to 320.
    fn from_file(file: &str, rebase: bool) -> Result<crate::Workload, WorkloadError> {
        let env = WorkloadEnv {
            base_dir: concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/flows").into(),
            node_ids: Some((0..320).map(|h| (u64::from(h) + 1, HostId(h))).collect::<BTreeMap<_, _>>()),
            ..WorkloadEnv::new(320, Rate::from_gbps(100))
        };
        let flows = Flows { file: Some(file.to_owned()), rebase, ..Flows::default() };
        build(&[WorkloadConfig::new(Traffic::Flows(flows))], &env)
    }

    #[test]
    fn a_file_of_hpcc_with_node_ids_of_its_own() {
        let workload = from_file("hpcc.txt", false).unwrap();
        let first = workload.graph.messages()[0];
        assert_eq!((first.src, first.dst, first.start), (HostId(1), HostId(0), Time::from_us(2_000_000)));
        assert!(workload.notes[0].contains("further lines are not read"));
        assert_eq!(from_file("hpcc.txt", true).unwrap().graph.messages()[0].start, Time::ZERO);
    }

    #[test]
    fn a_matrix_has_its_own_ids_and_no_more_nodes_than_there_are_hosts() {
        let folder = std::env::temp_dir().join(format!("pathweave-flows-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let build_on = |hosts: u32, text: &str| {
            std::fs::write(folder.join("m.cm"), text).unwrap();
            let env =
                WorkloadEnv { base_dir: folder.clone(), ..WorkloadEnv::new(hosts, Rate::from_gbps(100)) };
            let flows = Flows { file: Some("m.cm".to_owned()), ..Flows::default() };
            build(&[WorkloadConfig::new(Traffic::Flows(flows))], &env).map_err(|why| why.to_string())
        };
        let ring = "\u{feff}# a comment\nNodes 16\nConnections 2\nTriggers 1\n0->1 id 7 start 0 size 5 send_done_trigger 1\n\
                    1->2 id 8 trigger 1 size 5\ntrigger id 1 oneshot\n";
        let graph = build_on(16, ring).unwrap().graph;
        let first = crate::graph::TaskId(0);
        assert!(graph.dependents(first, Moment::Delivery).is_empty());
        assert_eq!(graph.dependents(first, Moment::Completion), [crate::graph::TaskId(1)]);
        assert_eq!(build_on(8, ring).unwrap_err(), "m.cm:2: Nodes = 16: the topology has 8 hosts");
        let twice = build_on(16, &ring.replace("id 8", "id 7")).unwrap_err();
        assert_eq!(twice, "m.cm:6: id = 7: the flow of line 5 has it already; ids must differ");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn errors_in_files_name_the_line() {
        let error = |file| from_file(file, false).unwrap_err().to_string();
        assert_eq!(error("conweave.txt"), "conweave.txt:5: ends after 4 of 19352 flows; truncated?");
        assert!(error("none.txt").starts_with("none.txt: cannot read it: "));
        assert!(error(".").contains("it is a folder; expected a file"));
    }
}
