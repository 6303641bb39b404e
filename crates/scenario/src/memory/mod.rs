//! How much memory a run takes, told before it is made: bytes by part.
//!
//! What is there from the start is counted: so many pieces of each kind, each as large as the compiler makes it
//! ([`Sizes`]). What grows while the run goes follows from what its messages pass and how many packets are on their way at
//! a time (`ways.rs`). This is an estimate, and too low where networks are oversubscribed and queues stay full;
//! docs/scenario.md has figures.

mod flows;
mod open;
mod ways;

use std::num::NonZeroU16;

use pathweave_results::FlowFile;
use pathweave_sim::{
    Calibrate, Fidelity, Footprint, RouteChoice, SimSpec, Sizes, records_can_be_written_singly,
};
use pathweave_topo::Routing;
use pathweave_units::Time;
use serde::Serialize;

use crate::{calibrate, doubt};
use open::Open;
use ways::Ways;

/// Flows of which a run with samples remembers what they waited for, at most, and bytes of one.
const WAITS_REMEMBERED: usize = 1 << 14;
const WAITS_OF_A_FLOW: f64 = 400.0;

/// What a run takes of memory, and of which program in which way it is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Threads the run is made by.
    pub threads: u16,
    /// Its parts, in the order in which they come to be.
    pub parts: Vec<MemoryPart>,
    /// All of them, bytes.
    pub total_bytes: u64,
}

/// A part of a run, and the memory it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryPart {
    /// Its name.
    pub part: &'static str,
    /// Bytes, at their most.
    pub bytes: u64,
    /// What is in it.
    pub what: &'static str,
}

/// The process in which a run is made, as far as its memory hangs on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Threads the run is made by. Each has a copy of the network and of the state of all messages.
    pub threads: NonZeroU16,
    /// What the process takes without the run, bytes.
    pub own_bytes: u64,
    /// What becomes of the records of flows while the run goes on.
    pub records: Records,
}

/// What becomes of the records of flows while a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// They stay in memory to the end, as in programs that use them.
    Kept,
    /// They are written as they become known, as in a run of the program; those of jobs and activities at the end, one by one.
    Written,
}

impl Process {
    /// What the program takes before it has read anything, bytes: most of it its own text as far as it has been touched.
    pub const USUAL_OWN_BYTES: u64 = 16_700_000;

    /// One thread of a program that keeps records.
    pub const ONE_THREAD: Process =
        Process { threads: NonZeroU16::MIN, own_bytes: Process::USUAL_OWN_BYTES, records: Records::Kept };
}

/// Bytes that a host allocates before it has sent anything: the key to its memory. A test weighs it.
const IDLE_HOST_HEAP: f64 = 160.0;
/// What a queue pair and its policy allocate, and the maps from queue pairs to messages at the host: of each end of a
/// connection with a message under way. A test weighs it.
const QUEUE_PAIR_HEAP: f64 = 220.0;
/// What is due at a host that is not idle: the first places of its agenda. A test weighs it.
const AGENDA: f64 = 4.0 * (40.0 + 32.0);
/// A vector that grows by doubling is as likely as not to have any size between what it needs and twice that: on average
/// it takes 1/ln 2 of what is in it.
const GROWN: f64 = std::f64::consts::LOG2_E;
/// The list of samples grows by doubling, and is there twice while every two instants become one.
const SAMPLES_GROWN: f64 = 1.5;
/// Bytes of the name of a node or link, rounded up to what the allocator hands out.
const NAME: f64 = 32.0;
/// The page of the report with its data while it is written, and tables of Parquet on their way to their files.
const REPORT: f64 = 6e6;
/// What a run and its report touch of the program and its libraries, beyond what is resident when the program starts: the
/// smallest run takes 14 MB more than `--version`, and 6 MB of that are [`REPORT`]. Measured, release and debug alike.
const AT_WORK: f64 = 8e6;
/// The list of a figure of each flow while its percentiles are found, and the same by size, where lists grow.
const SUMMARY_OF_A_FLOW: f64 = 2.0 * 8.0;

impl Memory {
    /// Of a run in this process. `routing` is that of the whole topology; `completion` is before the end of any run.
    pub(crate) fn new(
        spec: &SimSpec,
        routing: &Routing,
        footprint: &Footprint,
        completion: Time,
        process: Process,
    ) -> Self {
        if spec.fidelity == Fidelity::Flow {
            let flows = flows::memory(spec, footprint, routes(spec, routing), process);
            let packets = match spec.calibrate {
                Calibrate::Never => None,
                Calibrate::InDoubt => doubt::may_be_measured(spec).then(|| doubt::of_packets(spec)),
                Calibrate::Always => calibrate::of_packets(spec),
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
        let ways = Ways::new(spec, routing, &sizes);
        let open = Open::new(spec, footprint, &ways);

        let network = count(ports, sizes.port)
            + count(nodes, sizes.node)
            + count(switches, sizes.switch)
            // The map of ports, and which links are down.
            + count(nodes, size_of::<u32>())
            + count(links, 3 * size_of::<u32>());
        // Only while it is built.
        let cables = count(links, sizes.cable) * threads;
        let routes = routes(spec, routing);
        let hosts_at_rest = count(hosts, sizes.host) + IDLE_HOST_HEAP * hosts as f64;
        let of_connections =
            count(connections, sizes.connection) * threads + count(connections, sizes.connection_numbers);
        let writes = process.records == Records::Written && records_can_be_written_singly(spec);
        let known = if writes { open::known_at_once(spec, &sizes, ways.round_trip) } else { messages };
        let of_messages = count(known, sizes.message) * threads;
        // What each task still waits for, and what it waited for last.
        let waiting = if spec.graph.has_dependencies() { count(spec.graph.task_count(), 8) } else { 0.0 };
        let packets = ways.places * sizes.place as f64
            + open.packets * GROWN * sizes.content as f64
            + open.waiting * GROWN * sizes.place as f64
            + open.slots_in_flight * sizes.in_flight as f64;
        let packets = packets.max(cables);
        let queue_pairs = open.places * sizes.queue_pair as f64
            + open.queue_pair_ends * QUEUE_PAIR_HEAP
            + open.numbers * size_of::<u32>() as f64
            + open.busy_hosts * AGENDA;
        let sampled = open.samples(spec, completion.max(ways.completion))
            * ways.sampled_at_a_time
            * sizes.sample as f64
            * SAMPLES_GROWN;
        let remembered = if spec.observe.sampling().is_some() { messages.min(WAITS_REMEMBERED) } else { 0 };
        let sampling = count(ports, 8) + count(hosts, 8) + WAITS_OF_A_FLOW * remembered as f64;
        let of_flows = match writes {
            // And those that wait for the disk.
            true => {
                count(messages, sizes.flow_figures)
                    + count(messages.min(FlowFile::WAITING), sizes.flow_record)
            }
            false => count(messages, sizes.flow_record),
        };
        let records = of_flows
            + (count(ports, sizes.link_record) + NAME * ports as f64)
            + (count(nodes, sizes.node_record) + NAME * nodes as f64);
        // The allocator keeps what the run has freed by then.
        let figures = if writes { 0.0 } else { sizes.flow_figures as f64 };
        let results = REPORT + (SUMMARY_OF_A_FLOW + figures) * messages as f64;

        let part = |part, bytes: f64, what| MemoryPart { part, bytes: bytes as u64, what };
        let parts = vec![
            part("program", process.own_bytes as f64 + AT_WORK, "the program and its libraries"),
            part("topology", topology.memory_bytes() as f64, "nodes, links and their names"),
            part("messages", spec.graph.memory_bytes() as f64, "the graph of messages and computations"),
            part("execution", of_messages + waiting * threads, "how far each message has come, a thread"),
            part("connections", of_connections, "connections, open or not, a thread"),
            part("network", network * threads, "ports, links and switches, a thread"),
            part("routes", routes * threads, "routes and paths, a thread"),
            part("hosts", hosts_at_rest, "hosts at rest"),
            part("queue pairs", queue_pairs, "queue pairs open at a time"),
            part("packets", packets, "packets on their way, and places for them in queues and on links"),
            part("samples", sampled + sampling, "samples over time"),
            part("records", records, "records of flows, links and nodes"),
            part("results", results, "the report while it is written"),
        ];
        let total_bytes = parts.iter().map(|part| part.bytes).sum();
        Memory { threads: process.threads.get(), parts, total_bytes }
    }
}

/// Routes of switches, and what the run knows of paths besides.
fn routes(spec: &SimSpec, routing: &Routing) -> f64 {
    let tables = match routing.destination_classes() {
        // In the ports' numbers once more for each switch, and the class of each host.
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
