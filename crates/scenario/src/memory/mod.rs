//! Estimate of a run's memory before it starts: bytes by part.
//!
//! Everything that exists from the start is counted: number of items of each kind times the size the compiler gives
//! them ([`Sizes`]). Everything that grows during the run is derived from the links and queues that messages pass and
//! the number of packets in flight (`ways.rs`). The estimate is too low for oversubscribed networks whose queues stay
//! full; docs/scenario.md has figures.

mod flows;
mod in_progress;
mod link_usage;

use std::num::NonZeroU16;

use pathweave_records::ROWS_A_GROUP;
use pathweave_sim::{
    Calibrate, Fidelity, Footprint, RouteChoice, SimSpec, Sizes, ports_of_all_threads,
    records_can_be_written_singly,
};
use pathweave_topo::Routing;
use pathweave_units::Time;
use serde::Serialize;

use crate::{calibrate, outside_check};
use in_progress::InProgress;
use link_usage::LinkUsage;

/// Largest number of flows whose waiting times a run with samples stores, and bytes of one flow.
const WAITS_REMEMBERED: usize = 1 << 14;
const WAITS_OF_A_FLOW: f64 = 400.0;

/// Estimated memory of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Number of threads of the run.
    pub threads: u16,
    /// Parts of the memory, in the order of their allocation.
    pub parts: Vec<MemoryPart>,
    /// Total memory in bytes.
    pub total_bytes: u64,
}

/// Part of the memory of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryPart {
    /// Name of the part.
    pub part: &'static str,
    /// Peak size in bytes.
    pub bytes: u64,
    /// Content of the part.
    pub what: &'static str,
}

/// Properties of the process that affect the memory of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Number of threads of the run. Each thread has its part of the network and the state of all messages.
    pub threads: NonZeroU16,
    /// Memory of the process without the run, in bytes.
    pub own_bytes: u64,
    /// Treatment of flow records during the run.
    pub records: Records,
}

/// Treatment of flow records during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// Records stay in memory to the end, for programs that use them.
    Kept,
    /// Records are written as they become known, as in a run of the program. Those of jobs and activities are written
    /// one by one at the end.
    Written,
}

impl Process {
    /// Memory of the program before it has read anything, in bytes. Most of it is the program's code, as far as it
    /// has been paged in.
    pub const USUAL_OWN_BYTES: u64 = 16_700_000;

    /// One thread in a program that keeps records.
    pub const ONE_THREAD: Process =
        Process { threads: NonZeroU16::MIN, own_bytes: Process::USUAL_OWN_BYTES, records: Records::Kept };
}

/// Heap bytes of a host that has sent nothing: the key to its memory. A test measures it.
const IDLE_HOST_HEAP: f64 = 160.0;
/// Heap bytes of a queue pair and its policy at each end of a connection with a message in progress, including the
/// host's maps from queue pairs to messages. A test measures it.
const QUEUE_PAIR_HEAP: f64 = 220.0;
/// Bytes of the events due at a busy host: the initial capacity of its agenda. A test measures it.
const AGENDA_BYTES: f64 = 4.0 * (40.0 + 32.0);
/// Average overhead of a vector that grows by doubling. Its capacity is uniformly distributed on a logarithmic scale
/// between its length and twice that, so the mean is 1/ln 2 of the length.
const GROWTH_FACTOR: f64 = std::f64::consts::LOG2_E;
/// Overhead of the list of samples. It grows by doubling, and exists twice while pairs of samples are merged.
const SAMPLES_GROWN: f64 = 1.5;
/// Bytes of the name of a node or link, rounded up to the allocator's size class.
const NAME: f64 = 32.0;
/// Bytes of the report page and its data while it is written, and of Parquet tables that wait for their files.
const REPORT: f64 = 6e6;
/// Bytes of the program and its libraries that a run and its report page in after the start of the program. Measured:
/// the smallest run takes 14 MB more than `--version`, of which 6 MB are [`REPORT`]; release and debug builds alike.
const RUNTIME_BYTES: f64 = 8e6;
/// Bytes for each flow of the list from which percentiles are computed, and of the same list by size, whose vectors
/// grow.
const SUMMARY_OF_A_FLOW: f64 = 2.0 * 8.0;

impl Memory {
    /// Estimates a run in this process. `routing` is that of the whole topology; `completion` is a lower bound of the
    /// run's end.
    pub(crate) fn new(
        spec: &SimSpec,
        routing: &Routing,
        footprint: &Footprint,
        completion: Time,
        process: Process,
    ) -> Self {
        if spec.run.fidelity == Fidelity::Flow {
            let flows = flows::memory(spec, footprint, routes(spec, routing), process);
            let packets = match spec.run.calibrate {
                Calibrate::Off => None,
                Calibrate::Auto => {
                    outside_check::can_calibrate(spec).then(|| outside_check::of_packets(spec))
                }
                Calibrate::Prefix => calibrate::of_packets(spec),
            };
            return match packets {
                None => flows,
                Some(packets) => flows::measured(
                    flows,
                    Memory::new(&packets, routing, footprint, completion, process),
                    spec,
                ),
            };
        }
        let sizes = Sizes::of(spec);
        let count = |number: usize, bytes: usize| number as f64 * bytes as f64;
        let topology = &*spec.topology;
        let (hosts, switches) = (topology.hosts() as usize, topology.switches().len());
        let (links, nodes) = (topology.links().len(), topology.nodes() as usize);
        let ports = 2 * links;
        let (messages, connections) = (spec.graph.messages().len(), footprint.connections as usize);
        let threads = f64::from(process.threads.get());
        let ways = LinkUsage::new(spec, routing, &sizes);
        let open = InProgress::new(spec, footprint, &ways);

        // The map of ports exists once, and so do the ports, but for those at links between threads.
        let network = count(ports_of_all_threads(spec, process.threads.get()), sizes.port)
            + (count(nodes, sizes.node) + count(switches, sizes.switch)) * threads
            + count(nodes, size_of::<u32>())
            + count(links, 2 * size_of::<u32>());
        let routes = routes(spec, routing);
        let hosts_at_rest = count(hosts, sizes.host) + IDLE_HOST_HEAP * hosts as f64;
        let of_connections =
            count(connections, sizes.connection) * threads + count(connections, sizes.connection_numbers);
        let writes = process.records == Records::Written && records_can_be_written_singly(spec);
        let known =
            if writes { in_progress::max_resident_messages(spec, &sizes, ways.round_trip) } else { messages };
        let of_messages = count(known, sizes.message) * threads;
        // Number of predecessors that each task still waits for, and the last predecessor.
        let waiting = if spec.graph.has_dependencies() { count(spec.graph.task_count(), 8) } else { 0.0 };
        let packets = ways.packet_slots * sizes.place as f64
            + open.packets * GROWTH_FACTOR * sizes.content as f64
            + open.waiting * GROWTH_FACTOR * sizes.place as f64
            + open.slots_in_flight * sizes.in_flight as f64;
        let queue_pairs = open.places * sizes.queue_pair as f64
            + open.queue_pair_ends * QUEUE_PAIR_HEAP
            + open.numbers * size_of::<u32>() as f64
            + open.busy_hosts * AGENDA_BYTES;
        let sampled = open.samples(spec, completion.max(ways.completion))
            * ways.sampled_at_a_time
            * sizes.sample as f64
            * SAMPLES_GROWN;
        let remembered = if spec.observe.sampling().is_some() { messages.min(WAITS_REMEMBERED) } else { 0 };
        let sampling = match spec.observe.sampling() {
            Some(_) => count(ports, 8) + count(hosts, 8) + WAITS_OF_A_FLOW * remembered as f64,
            None => 0.0,
        };
        let of_flows = match writes {
            // The second term is the records that wait for the disk.
            true => {
                count(messages, sizes.flow_figures) + count(messages.min(ROWS_A_GROUP), sizes.flow_record)
            }
            false => count(messages, sizes.flow_record),
        };
        let records = of_flows
            + (count(ports, sizes.link_record) + NAME * ports as f64)
            + (count(nodes, sizes.node_record) + NAME * nodes as f64);
        // The allocator retains memory that the run has freed by then.
        let figures = if writes { 0.0 } else { sizes.flow_figures as f64 };
        let results = REPORT + (SUMMARY_OF_A_FLOW + figures) * messages as f64;

        let part = |part, bytes: f64, what| MemoryPart { part, bytes: bytes as u64, what };
        let parts = vec![
            part("program", process.own_bytes as f64 + RUNTIME_BYTES, "the program and its libraries"),
            part("topology", topology.memory_bytes() as f64, "nodes, links and their names"),
            part("messages", spec.graph.memory_bytes() as f64, "the graph of messages and computations"),
            part("execution", of_messages + waiting * threads, "progress of each message, a thread"),
            part("connections", of_connections, "connections, open or not, a thread"),
            part("network", network, "ports, links and switches"),
            part("routes", routes, "routes and paths"),
            part("hosts", hosts_at_rest, "hosts at rest"),
            part("queue pairs", queue_pairs, "queue pairs open at a time"),
            part("packets", packets, "packets in flight, and slots for them in queues and on links"),
            part("samples", sampled + sampling, "samples over time"),
            part("records", records, "records of flows, links and nodes"),
            part("results", results, "the report while it is written"),
        ];
        let total_bytes = parts.iter().map(|part| part.bytes).sum();
        Memory { threads: process.threads.get(), parts, total_bytes }
    }
}

/// Estimates the memory of the switches' routes and of the paths that the run stores.
fn routes(spec: &SimSpec, routing: &Routing) -> f64 {
    let tables = match routing.destination_classes() {
        // Once more for each switch, in its port numbers, plus the class of each host.
        Some((of_host, members)) => {
            let switches = spec.topology.switches().len();
            size_of_val(of_host) as f64 + (switches * members.len() * 2 * size_of::<u32>()) as f64
        }
        None => 0.0,
    };
    let explicit = match &spec.routing {
        RouteChoice::Switches => 0.0,
        RouteChoice::Sources(sets) | RouteChoice::SenderSwitches(sets) | RouteChoice::NextHops(sets) => {
            2.0 * sets.memory_bytes() as f64
        }
    };
    routing.memory_bytes() as f64 + tables + explicit
}
