//! Memory of a flow simulation: messages and the links they share.

use pathweave_sim::{Footprint, SimSpec, Sizes};

use crate::calibrate::A_MESSAGE_BYTES;

use super::{Memory, MemoryPart, NAME, Process, REPORT, RUNTIME_BYTES, SUMMARY_OF_A_FLOW};

/// Bytes for a message in progress: its entry in the solver with the links it uses, its remaining bytes, and its end.
const MESSAGE_BYTES: f64 = 400.0;
/// Bytes for a link in the solver, with entries for its users.
const LINK_BYTES: f64 = 160.0;

/// Estimates the memory of a flow simulation. It uses one thread, whatever the process has.
pub(super) fn memory(spec: &SimSpec, footprint: &Footprint, routes: f64, process: Process) -> Memory {
    let sizes = Sizes::of(spec);
    let count = |number: usize, bytes: usize| number as f64 * bytes as f64;
    let topology = &*spec.topology;
    let (links, nodes, messages) =
        (topology.links().len(), topology.nodes() as usize, spec.graph.messages().len());
    let connections = footprint.connections as usize;
    let waiting = if spec.graph.has_dependencies() { count(spec.graph.task_count(), 4) } else { 0.0 };
    let network = count(2 * links, sizes.port) + count(nodes, sizes.node) + LINK_BYTES * 2.0 * links as f64;
    let records = count(messages, sizes.flow_record)
        + (count(2 * links, sizes.link_record) + NAME * 2.0 * links as f64)
        + (count(nodes, sizes.node_record) + NAME * nodes as f64);
    let part = |part, bytes: f64, what| MemoryPart { part, bytes: bytes as u64, what };
    let parts = vec![
        part("program", process.own_bytes as f64 + RUNTIME_BYTES, "the program and its libraries"),
        part("topology", topology.memory_bytes() as f64, "nodes, links and their names"),
        part("messages", spec.graph.memory_bytes() as f64, "the graph of messages and computations"),
        part("execution", count(messages, sizes.message) + waiting, "progress of each message"),
        part("connections", count(connections, sizes.connection), "connections, open or not"),
        part("network", network, "ports, links and switches"),
        part("routes", routes, "routes and paths"),
        part(
            "flows",
            MESSAGE_BYTES * connections as f64,
            "messages in progress, if all connections have one",
        ),
        part("records", records, "records of flows, links and nodes"),
        part(
            "results",
            REPORT + (SUMMARY_OF_A_FLOW + sizes.flow_figures as f64) * messages as f64,
            "the report while it is written",
        ),
    ];
    let total_bytes = parts.iter().map(|part| part.bytes).sum();
    Memory { threads: 1, parts, total_bytes }
}

/// Estimates the memory of flows that are calibrated on packets: the larger of the packet simulation, which runs
/// first, and the flow simulation with the packets' completion times.
pub(super) fn measured(mut flows: Memory, packets: Memory, spec: &SimSpec) -> Memory {
    let bytes = (spec.graph.messages().len() * A_MESSAGE_BYTES) as u64;
    flows.parts.push(MemoryPart { part: "calibration", bytes, what: "times of messages as packets" });
    flows.total_bytes += bytes;
    if packets.total_bytes > flows.total_bytes { packets } else { flows }
}
