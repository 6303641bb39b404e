//! Timeline for ui.perfetto.dev and chrome://tracing: JSON of trace events, times in microseconds.
//!
//! There is one row group each for ranks (computation and communication of each host, if the workload labels them),
//! jobs, critical paths, flows (by sending host), queues (by link, as counters) and pauses (by link). Faults, drops,
//! retransmissions and timeouts are instants. In a large run, messages that belong to activities of ranks are left
//! out.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use pathweave_records::{
    ActivityLabel, DropReason, EventKind, EventRecord, FlowRecord, Parallelism, RunResult, SeriesKind,
};
use serde::Serialize;
use serde_json::{Value, json};

/// Row groups. Their order on the page is set in [`perfetto`].
const JOBS: u32 = 1;
const FLOWS: u32 = 2;
const QUEUES: u32 = 3;
const PAUSES: u32 = 4;
const EVENTS: u32 = 5;
const RANKS: u32 = 6;
const CRITICAL: u32 = 7;
/// Number of flows from which those that belong to activities of ranks are left out, because viewers cannot show more
/// bars.
const MANY_FLOWS: usize = 20_000;

/// Returns the number of a row of a group. Perfetto identifies threads by number alone, whatever their process, and
/// treats 0 as the idle thread of the machine. Each row therefore has a unique number above 0.
fn row(group: u32, number: u32) -> u32 {
    group << 28 | (number + 1)
}

/// A trace event. The fields are those of the format.
#[derive(Serialize)]
struct Item<'a> {
    ph: &'a str,
    name: &'a str,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'a str>,
    /// Identifies the slices that belong together. They may overlap others of the row.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'a str>,
    #[serde(skip_serializing_if = "Value::is_null")]
    args: Value,
}

struct Writer<'a, W> {
    out: &'a mut W,
    first: bool,
}

/// Writes the timeline of `run`. Open slices end with the run.
pub fn perfetto(run: &RunResult, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
    let mut writer = Writer { out, first: true };
    for (place, (pid, name)) in [
        (RANKS, "ranks"),
        (CRITICAL, "critical paths"),
        (JOBS, "jobs"),
        (FLOWS, "flows"),
        (QUEUES, "queues"),
        (PAUSES, "pauses"),
        (EVENTS, "events"),
    ]
    .into_iter()
    .enumerate()
    {
        writer.put(&meta("process_name", pid, row(pid, 0), json!({ "name": name })))?;
        writer.put(&meta("process_sort_index", pid, row(pid, 0), json!({ "sort_index": place })))?;
    }
    writer.ranks(run)?;
    writer.critical(run)?;
    writer.jobs(run)?;
    writer.flows(run)?;
    writer.queues(run)?;
    writer.pauses(run)?;
    writer.instants(run)?;
    let info = &run.info;
    let other = json!({
        "program": format!("pathweave {}", info.version),
        "scenario": info.name,
        "seed": info.seed,
        "digest": info.digest_hex(),
        "events_not_recorded": run.events_not_recorded.values().sum::<u64>(),
    });
    write!(writer.out, "\n],\"otherData\":{other}}}\n")
}

fn meta(name: &str, pid: u32, tid: u32, args: Value) -> Item<'_> {
    Item { ph: "M", name, pid, tid, ts: None, cat: None, id: None, s: None, args }
}

/// Returns microseconds, with three digits of nanoseconds and three of picoseconds.
fn us(ps: u64) -> Value {
    json!(ps as f64 / 1e6)
}

impl<W: Write> Writer<'_, W> {
    fn put(&mut self, item: &Item<'_>) -> io::Result<()> {
        if !self.first {
            self.out.write_all(b",\n")?;
        }
        self.first = false;
        serde_json::to_writer(&mut *self.out, item).map_err(io::Error::from)
    }

    /// Writes a slice that may overlap others.
    fn slice(
        &mut self,
        (pid, tid): (u32, u32),
        (cat, id): (&str, u32),
        name: &str,
        (from_ps, to_ps): (u64, u64),
        args: Value,
    ) -> io::Result<()> {
        let id = Some(format!("{cat}{id}"));
        let item = |ph, at, args| Item {
            ph,
            name,
            pid,
            tid,
            ts: Some(us(at)),
            cat: Some(cat),
            id: id.clone(),
            s: None,
            args,
        };
        self.put(&item("b", from_ps, args))?;
        self.put(&item("e", to_ps, Value::Null))
    }

    fn jobs(&mut self, run: &RunResult) -> io::Result<()> {
        for job in &run.jobs {
            let span = (job.start_ps, job.finish_ps.unwrap_or(run.info.simulated_ps).max(job.start_ps));
            let finished = job.finish_ps.is_some();
            self.slice(
                (JOBS, row(JOBS, 0)),
                ("job", job.job),
                &job.name,
                span,
                json!({ "finished": finished }),
            )?;
        }
        Ok(())
    }

    /// Writes one row a host: computations, and its parts in collectives and exchanges.
    fn ranks(&mut self, run: &RunResult) -> io::Result<()> {
        let hosts: BTreeSet<u32> = run.activities.iter().map(|activity| activity.host).collect();
        for host in hosts {
            self.put(&meta("thread_name", RANKS, row(RANKS, host), json!({ "name": node(run, host) })))?;
        }
        for (activity, id) in run.activities.iter().zip(0..) {
            let Some(label) = run.labels.get(activity.label as usize) else { continue };
            let end = activity.finish_ps.unwrap_or(run.info.simulated_ps).max(activity.start_ps);
            let collective = label.collective;
            let args = json!({
                "kind": activity.kind.name(),
                "job": activity.job.and_then(|job| run.jobs.get(job as usize)).map(|job| &job.name),
                "parallelism": label.parallelism.map(Parallelism::name),
                "algorithm": collective.map(|c| c.algorithm),
                "ranks": collective.map(|c| c.ranks),
                "size_bytes": collective.and_then(|c| c.size_bytes),
                "messages": activity.flows,
                "sent_bytes": activity.sent_bytes,
                "received_bytes": activity.received_bytes,
            });
            let rank = (RANKS, row(RANKS, activity.host));
            self.slice(
                rank,
                (activity.kind.name(), id),
                &label.description(),
                (activity.start_ps, end),
                args,
            )?;
        }
        Ok(())
    }

    /// Writes one row a job: its critical path.
    fn critical(&mut self, run: &RunResult) -> io::Result<()> {
        let mut named = None;
        for (step, id) in run.critical.iter().zip(0..) {
            if named.replace(step.job) != Some(step.job) {
                let name = run.jobs.get(step.job as usize).map_or("", |job| &job.name);
                self.put(&meta("thread_name", CRITICAL, row(CRITICAL, step.job), json!({ "name": name })))?;
            }
            let label = step.label.and_then(|label| run.labels.get(label as usize));
            let name = label.map_or_else(|| step.kind.name().to_owned(), ActivityLabel::description);
            let args = json!({
                "kind": step.kind.name(),
                "host": node(run, step.host),
                "to": step.peer_host.map(|host| node(run, host)),
                "flow": step.flow,
                "lost_ns": step.lost_ps().map(|ps| ps as f64 / 1e3),
            });
            let span = (step.start_ps, step.finish_ps.max(step.start_ps));
            self.slice((CRITICAL, row(CRITICAL, step.job)), ("step", id), &name, span, args)?;
        }
        Ok(())
    }

    fn flows(&mut self, run: &RunResult) -> io::Result<()> {
        let many = run.flows.len() > MANY_FLOWS;
        let shown = || run.flows.iter().filter(|flow| !(many && flow.label.is_some()));
        let senders: BTreeSet<u32> = shown().map(|flow| flow.src_host).collect();
        for host in senders {
            self.put(&meta("thread_name", FLOWS, row(FLOWS, host), json!({ "name": node(run, host) })))?;
        }
        for flow in shown() {
            let name = format!("{} to {}", node(run, flow.src_host), node(run, flow.dst_host));
            let end = flow.finish_ps.unwrap_or(run.info.simulated_ps).max(flow.start_ps);
            let args = flow_args(run, flow);
            let sender = (FLOWS, row(FLOWS, flow.src_host));
            self.slice(sender, ("flow", flow.flow), &name, (flow.start_ps, end), args)?;
        }
        Ok(())
    }

    /// Writes the links that ever had a queue. A counter keeps its value until the next one, so a drained queue is
    /// written as zero at the next sampled instant.
    fn queues(&mut self, run: &RunResult) -> io::Result<()> {
        let mut filled: BTreeSet<u32> = BTreeSet::new();
        for instant in run.series.chunk_by(|a, b| a.time_ps == b.time_ps) {
            let queues = instant.iter().filter(|s| s.kind == SeriesKind::QueueBytes && s.value > 0.0);
            let now: BTreeMap<u32, f64> = queues.map(|s| (s.entity, s.value)).collect();
            let drained = filled.iter().filter(|link| !now.contains_key(link)).map(|&link| (link, 0.0));
            for (on, bytes) in drained.chain(now.iter().map(|(&on, &bytes)| (on, bytes))) {
                let name = link(run, on);
                let item = Item {
                    ph: "C",
                    name: &name,
                    pid: QUEUES,
                    tid: row(QUEUES, 0),
                    ts: Some(us(instant[0].time_ps)),
                    cat: None,
                    id: None,
                    s: None,
                    args: json!({ "bytes": bytes }),
                };
                self.put(&item)?;
            }
            filled = now.into_keys().collect();
        }
        Ok(())
    }

    fn pauses(&mut self, run: &RunResult) -> io::Result<()> {
        let mut open: Vec<(&EventRecord, u32)> = Vec::new();
        let mut named = BTreeSet::new();
        let mut count = 0;
        let mut done = Vec::new();
        for event in &run.events {
            let same =
                |(begun, _): &(&EventRecord, u32)| begun.link == event.link && begun.value == event.value;
            match event.kind {
                EventKind::PfcPause if !open.iter().any(same) => {
                    open.push((event, count));
                    count += 1;
                }
                EventKind::PfcResume => {
                    if let Some(at) = open.iter().position(same) {
                        let (begun, id) = open.swap_remove(at);
                        done.push((begun, id, event.time_ps));
                    }
                }
                _ => {}
            }
        }
        done.extend(
            open.into_iter().map(|(begun, id)| (begun, id, run.info.simulated_ps.max(begun.time_ps))),
        );
        done.sort_by_key(|&(_, id, _)| id);
        for (begun, id, end_ps) in done {
            let on = begun.link.unwrap_or(0);
            if named.insert(on) {
                self.put(&meta("thread_name", PAUSES, row(PAUSES, on), json!({ "name": link(run, on) })))?;
            }
            let name = format!("{} paused", link(run, on));
            let args = json!({ "class": begun.value });
            self.slice((PAUSES, row(PAUSES, on)), ("pause", id), &name, (begun.time_ps, end_ps), args)?;
        }
        Ok(())
    }

    fn instants(&mut self, run: &RunResult) -> io::Result<()> {
        let paused = |kind| matches!(kind, EventKind::PfcPause | EventKind::PfcResume);
        let mut named = BTreeSet::new();
        for event in run.events.iter().filter(|event| !paused(event.kind)) {
            let reason = event.reason.map(DropReason::name);
            let place = event.link.map(|on| link(run, on)).unwrap_or_else(|| node(run, event.node));
            let to = event.peer_host.map(|host| node(run, host));
            let args = json!({
                "at": place,
                "flow": event.flow,
                "to": to,
                "queue_pair": event.queue_pair,
                "path": event.path,
                "value": event.value,
                "reason": reason,
            });
            let ts = Some(us(event.time_ps));
            let (name, tid) = (event.kind.name(), row(EVENTS, event.kind as u32));
            if named.insert(tid) {
                self.put(&meta("thread_name", EVENTS, tid, json!({ "name": name.replace('_', " ") })))?;
            }
            self.put(&Item { ph: "i", name, pid: EVENTS, tid, ts, cat: None, id: None, s: Some("t"), args })?;
        }
        Ok(())
    }
}

fn flow_args(run: &RunResult, flow: &FlowRecord) -> Value {
    json!({
        "flow": flow.flow,
        "group": run.info.groups.get(usize::from(flow.group)),
        "scheme": run.info.schemes.get(usize::from(flow.scheme)),
        "size_bytes": flow.size_bytes,
        "slowdown": flow.slowdown(),
        "retransmitted_packets": flow.retransmitted_packets,
        "status": flow.status.name(),
    })
}

fn node(run: &RunResult, node: u32) -> String {
    run.nodes.get(node as usize).map_or(format!("node{node}"), |node| node.name.clone())
}

fn link(run: &RunResult, link: u32) -> String {
    run.links.get(link as usize).map_or(format!("link{link}"), |link| link.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_records::SeriesSample;

    /// Checks rules of the importer of ui.perfetto.dev, which drops events or mixes up rows if they are violated.
    fn check_rules(all: &[Value]) {
        let mut open = BTreeMap::new();
        let mut process_of = BTreeMap::new();
        for item in all {
            let number = |key: &str| item[key].as_u64().unwrap_or_else(|| panic!("{key} of {item}"));
            let (pid, tid) = (number("pid"), number("tid"));
            assert!(pid > 0 && tid > 0 && tid <= u64::from(u32::MAX), "{item}");
            assert_eq!(*process_of.entry(tid).or_insert(pid), pid, "a row of two groups: {item}");
            let slice = (pid, item["cat"].to_string(), item["id"].to_string(), item["name"].to_string());
            let ts = item["ts"].as_f64();
            match item["ph"].as_str() {
                Some("M") => assert!(item["args"].is_object(), "{item}"),
                Some("b") => {
                    assert!(item["id"].is_string() && item["cat"].is_string(), "{item}");
                    assert_eq!(open.insert(slice, ts.unwrap()), None, "{item}");
                }
                Some("e") => assert!(open.remove(&slice).unwrap() <= ts.unwrap(), "{item}"),
                Some("C") => {
                    assert!(ts.is_some() && item["args"].as_object().unwrap().values().all(Value::is_number));
                }
                Some("i") => assert!(ts.is_some() && ["g", "p", "t"].contains(&item["s"].as_str().unwrap())),
                other => panic!("{other:?}"),
            }
        }
        assert!(open.is_empty(), "without an end: {open:?}");
    }

    #[test]
    fn slices_counters_and_instants() {
        let event =
            |time_ps, kind, value| EventRecord { value, link: Some(3), ..EventRecord::new(time_ps, kind, 0) };
        let sample = |us: u64, kind, entity, value| SeriesSample {
            time_ps: us * 1_000_000,
            value,
            entity,
            index: 0,
            kind,
        };
        let (queue, interval) = (SeriesKind::QueueBytes, SeriesKind::Interval);
        let mut run = RunResult {
            flows: vec![FlowRecord {
                finish_ps: Some(2_000_001),
                start_ps: 1_000_000,
                ..FlowRecord::default()
            }],
            events: vec![
                event(1, EventKind::PfcPause, 1.0),
                event(2, EventKind::PfcPause, 2.0),
                event(3_000_000, EventKind::PfcResume, 1.0),
                event(4_000_000, EventKind::Drop, 64.0),
            ],
            series: vec![
                sample(5, interval, 0, 5_000.0),
                sample(5, queue, 1, 0.0),
                sample(5, queue, 2, 9.0),
                sample(6, interval, 0, 1_000.0),
                sample(6, queue, 2, 8.0),
                sample(7, interval, 0, 1_000.0),
                sample(8, interval, 0, 1_000.0),
            ],
            ..RunResult::default()
        };
        run.info.simulated_ps = 9_000_000;
        let mut out = Vec::new();
        perfetto(&run, &mut out).unwrap();
        let value: Value = serde_json::from_slice(&out).unwrap();
        let all = value["traceEvents"].as_array().unwrap();
        check_rules(all);
        let of = |ph: &str| all.iter().filter(|item| item["ph"] == ph).collect::<Vec<_>>();
        let (begins, ends) = (of("b"), of("e"));
        assert_eq!((begins.len(), ends.len()), (3, 3));
        assert_eq!((begins[0]["ts"].as_f64(), ends[0]["ts"].as_f64()), (Some(1.0), Some(2.000001)));
        // The pause of class 1 ended; that of class 2 lasted to the end.
        assert_eq!((begins[1]["args"]["class"].as_f64(), ends[1]["ts"].as_f64()), (Some(1.0), Some(3.0)));
        assert_eq!((begins[2]["args"]["class"].as_f64(), ends[2]["ts"].as_f64()), (Some(2.0), Some(9.0)));
        assert!(begins.iter().zip(&ends).all(|(b, e)| b["id"] == e["id"] && b["cat"] == e["cat"]));
        // A queue that was always empty is left out. A queue that has drained is written as empty once.
        let counter = |item: &&Value| (item["ts"].as_f64().unwrap(), item["args"]["bytes"].as_f64().unwrap());
        assert_eq!(of("C").iter().map(counter).collect::<Vec<_>>(), [(5.0, 9.0), (6.0, 8.0), (7.0, 0.0)]);
        assert_eq!(of("i")[0]["name"], "drop");
    }
}
