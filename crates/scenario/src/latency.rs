//! Detection of scenarios in which latency, not bandwidth, determines the time of jobs.

use pathweave_records::{Quantity, least_scale};
use pathweave_sim::SimSpec;
use pathweave_units::{Duration, Time};
use pathweave_workload::{Awaited, Bounds, Message, latency_chain};

/// Returns a note if the messages of jobs that wait for each other take longer to arrive, on an idle network, than all
/// bytes and computations.
pub(crate) fn note(spec: &SimSpec) -> Option<String> {
    let of_jobs = || spec.graph.messages().iter().filter(|message| message.job.is_some());
    let count = of_jobs().count();
    if count == 0 {
        return None;
    }
    let mean_bytes = of_jobs().map(|message| message.size.get() as f64).sum::<f64>() / count as f64;
    let transmission = |message: &Message| {
        let rate = spec.topology.rate_between(message.src, message.dst);
        message.size.get() as f64 * 8e9 / rate.as_bps() as f64
    };
    let on_links_ns = of_jobs().map(transmission).sum::<f64>() / count as f64;
    let delay = spec.topology.shortest_delay();
    // Two links: from a host to a switch, and from there to a host.
    let least = delay + delay;
    if on_links_ns >= least.as_ps() as f64 / 1e3 {
        // A chain that is ruled by latency has small messages. The walk below is long for large graphs.
        return None;
    }
    let notification = spec.task_notification().ok()?;
    let arrival = latency_chain(&spec.graph, notification, least);
    let bytes = Bounds::on_topology((&spec.graph, Awaited::ALL), Duration::ZERO, &spec.topology).completion();
    (arrival > bytes).then(|| {
        let scale = match least_scale(&spec.scenario_toml) {
            Some(scale) => format!(", with `scale = {scale}`"),
            None => String::new(),
        };
        let time = |time: Time| Quantity::TimeNs.format(time.as_ps() as f64 / 1e3);
        format!(
            "latency rules: messages of jobs that wait for each other take at least {} to arrive, bytes and computations \
             at least {}; messages have {} in the mean{scale}; fabrics that differ in rate will look alike",
            time(arrival),
            time(bytes),
            Quantity::Bytes.format(mean_bytes),
        )
    })
}
