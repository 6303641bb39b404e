//! Answers to requests, and the last run.

use pathweave_records::{EventKind, RunResult, SeriesKind, Summary};
use pathweave_scenario::Prepared;
use pathweave_sim::{Fidelity, SimSpec, Simulation};
use pathweave_topo::{NodeId, Topology};
use serde::Serialize;
use serde_json::{Value, json};

use crate::catalogue::Catalogue;
use crate::film::Film;
use crate::instant::Instant;
use crate::progress::Teller;
use crate::request::{InstantRequest, ScenarioRequest};

/// Names of the columns of a run, in the order of their numbers. A hop is a packet on a link, an arrival one of data at
/// its host, a flow a message, a sample the queue and use of a link at an instant, and a drop a packet that was lost.
pub const COLUMNS: [&str; 24] = [
    "hop_entered_ps",
    "hop_start_ps",
    "hop_arrival_ps",
    "hop_link",
    "hop_packet",
    "hop_pair",
    "hop_kind",
    "arrival_ps",
    "arrival_pair",
    "arrival_number",
    "arrival_kind",
    "flow_src",
    "flow_dst",
    "flow_bytes",
    "flow_start_ps",
    "flow_finish_ps",
    "queue_ps",
    "queue_link",
    "queue_bytes",
    "use_ps",
    "use_link",
    "use_share",
    "drop_ps",
    "drop_link",
];

/// Largest number of hosts that a film can number.
const MOST_HOSTS: u32 = 1 << 16;

/// The last run, and answers to requests.
#[derive(Default)]
pub struct Session {
    run: RunResult,
    film: Film,
    /// Columns of flows, samples and drops, which follow those of the film.
    columns: Vec<Vec<f64>>,
}

/// A node for the page.
#[derive(Serialize)]
struct Node {
    name: String,
    /// 0 for hosts, 1 for the switches at hosts, and so on.
    level: u8,
    group: Option<u32>,
}

impl Session {
    /// Creates a session without a run.
    pub fn new() -> Self {
        Session::default()
    }

    /// Answers with the schemes and the situations of the demo.
    pub fn catalogue(&mut self) -> String {
        text(&Catalogue::new())
    }

    /// Answers with the size of a scenario and notes on it, or with `error`.
    pub fn check(&mut self, request: &str) -> String {
        prepared(request).map_or_else(refused, |(_, prepared)| {
            let spec = &prepared.spec;
            let bytes: u64 = spec.graph.messages().iter().map(|message| message.size.get()).sum();
            text(&json!({
                "name": spec.name,
                "hosts": spec.topology.hosts(),
                "switches": spec.topology.switches().len(),
                "links": spec.topology.links().len(),
                "messages": spec.graph.messages().len(),
                "bytes": bytes,
                "notes": prepared.notes,
            }))
        })
    }

    /// Runs a scenario. Answers with its summary, digest and network, or with `error`. Columns then hold the rest.
    pub fn run(&mut self, request: &str) -> String {
        self.try_run(request).unwrap_or_else(refused)
    }

    fn try_run(&mut self, request: &str) -> Result<String, String> {
        let (request, Prepared { spec, notes, .. }) = prepared(request)?;
        let is_filmed = spec.run.fidelity == Fidelity::Packet && spec.topology.hosts() <= MOST_HOSTS;
        self.film = Film::new(if is_filmed { request.most_hops } else { 0 });
        self.run = execute(&spec, &mut self.film)?;
        self.columns = columns(&self.run);
        let run = &self.run;
        Ok(text(&json!({
            "name": run.info.name,
            "digest": run.info.digest_hex(),
            "scheme": run.info.schemes.first(),
            "notes": notes,
            "simulated_ps": run.info.simulated_ps,
            "ended": run.info.ended,
            "ended_detail": run.info.ended_detail,
            "film_ends_ps": if request.most_hops == 0 { Some(0.0) } else { self.film.ends_at },
            "hosts": spec.topology.hosts(),
            "nodes": nodes(&spec.topology),
            "links": links(&spec.topology, run),
            "columns": COLUMNS,
            "summary": Summary::from_run(run),
        })))
    }

    /// Answers with the state of links and flows of the last run at an instant, or with `error`.
    pub fn instant(&mut self, request: &str) -> String {
        let request: Result<InstantRequest, _> = serde_json::from_str(request);
        request.map_or_else(
            |why| refused(why.to_string()),
            |request| text(&Instant::new(&self.run, &self.film, request.time_ps, request.window_ps)),
        )
    }

    /// Returns a column of the last run, or an empty one. [`COLUMNS`] has the names.
    pub fn column(&self, column: usize) -> &[f64] {
        let film = &self.film;
        let of_film: [&[f64]; 11] = [
            &film.hop_entered,
            &film.hop_start,
            &film.hop_arrival,
            &film.hop_link,
            &film.hop_packet,
            &film.hop_pair,
            &film.hop_kind,
            &film.arrival_at,
            &film.arrival_pair,
            &film.arrival_number,
            &film.arrival_kind,
        ];
        let others = || self.columns.get(column - of_film.len()).map_or(&[][..], Vec::as_slice);
        of_film.get(column).copied().unwrap_or_else(others)
    }
}

fn execute(spec: &SimSpec, film: &mut Film) -> Result<RunResult, String> {
    let refused = |why: pathweave_sim::SimError| why.to_string();
    if spec.run.fidelity == Fidelity::Flow {
        return pathweave_scenario::run(spec, &mut Teller).map_err(refused);
    }
    let tap: Option<&mut dyn pathweave_sim::Tap> = if film.is_wanted() { Some(film) } else { None };
    Ok(Simulation::new(spec).map_err(refused)?.watched_by(tap).run(&mut Teller))
}

fn prepared(request: &str) -> Result<(ScenarioRequest, Prepared), String> {
    let request: ScenarioRequest = serde_json::from_str(request).map_err(|why| why.to_string())?;
    let prepared = request.load().and_then(|loaded| loaded.draft()).map_err(|why| why.to_string())?;
    Ok((request, prepared))
}

fn refused(why: String) -> String {
    text(&json!({ "error": why }))
}

fn text(answer: &impl Serialize) -> String {
    serde_json::to_string(answer).expect("answers are plain values with text keys")
}

fn nodes(topology: &Topology) -> Vec<Node> {
    let node = |id: NodeId| {
        let switch = topology.switch_index(id).map(|index| &topology.switches()[index]);
        Node {
            name: topology.node_name(id).into_owned(),
            level: switch.map_or(0, |switch| switch.tier + 1),
            group: switch.and_then(|switch| switch.group),
        }
    };
    (0..topology.nodes()).map(|id| node(NodeId(id))).collect()
}

/// Returns the directed links, by number, with the name of the cable of each for faults.
fn links(topology: &Topology, run: &RunResult) -> Vec<Value> {
    let ports = (0..topology.nodes()).flat_map(|node| topology.ports(NodeId(node)));
    let delay_ps = |port: &pathweave_topo::PortRef| topology.egress(port).delay.as_ps();
    let link = |(port, link): (&pathweave_topo::PortRef, &pathweave_records::LinkTotals)| {
        json!({
            "from": link.from_node,
            "to": link.to_node,
            "cable": port.link.0,
            "name": topology.link_name(port.link),
            "rate_bps": link.rate_bps,
            "delay_ps": delay_ps(port),
            "tx_bytes": link.tx_bytes,
            "max_queue_bytes": link.max_queue_bytes,
            "dropped": link.dropped_packets,
        })
    };
    ports.zip(&run.links).map(link).collect()
}

/// Returns the columns of flows, samples and drops.
fn columns(run: &RunResult) -> Vec<Vec<f64>> {
    let flows = |value: &dyn Fn(&pathweave_records::FlowRecord) -> f64| run.flows.iter().map(value).collect();
    let samples = |kind, value: fn(&pathweave_records::SeriesSample) -> f64| {
        run.series.iter().filter(|sample| sample.kind == kind).map(value).collect()
    };
    let drops = |value: &dyn Fn(&pathweave_records::EventRecord) -> f64| {
        run.events.iter().filter(|event| event.kind == EventKind::Drop).map(value).collect()
    };
    vec![
        flows(&|flow| f64::from(flow.src_host)),
        flows(&|flow| f64::from(flow.dst_host)),
        flows(&|flow| flow.size_bytes as f64),
        flows(&|flow| flow.start_ps as f64),
        flows(&|flow| flow.finish_ps.map_or(f64::NAN, |at| at as f64)),
        samples(SeriesKind::QueueBytes, |sample| sample.time_ps as f64),
        samples(SeriesKind::QueueBytes, |sample| f64::from(sample.entity)),
        samples(SeriesKind::QueueBytes, |sample| sample.value),
        samples(SeriesKind::LinkUtilisation, |sample| sample.time_ps as f64),
        samples(SeriesKind::LinkUtilisation, |sample| f64::from(sample.entity)),
        samples(SeriesKind::LinkUtilisation, |sample| sample.value),
        drops(&|event| event.time_ps as f64),
        drops(&|event| event.link.map_or(f64::NAN, f64::from)),
    ]
}
