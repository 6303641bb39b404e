//! Detection of scenarios in which latency, not bandwidth, determines the time of jobs.

use pathweave_records::{Quantity, least_scale};
use pathweave_sim::SimSpec;
use pathweave_units::{Duration, Time};
use pathweave_workload::{Awaited, Bounds, Message, latency_chain};

/// Returns a note if the messages of jobs that wait for each other take longer to arrive, on an idle network, than all
/// bytes and computations. Start times and delays that the workload sets belong to neither.
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
        let given = latency_chain(&spec.graph, Duration::ZERO, Duration::ZERO);
        let scale = match least_scale(&spec.scenario_toml) {
            Some(scale) => format!(", with `scale = {scale}`"),
            None => String::new(),
        };
        let time = |time: Time| Quantity::TimeNs.format(time.saturating_since(given).as_ps() as f64 / 1e3);
        let waiting = if spec.graph.has_dependencies() { " that wait for each other" } else { "" };
        let after = if given > Time::ZERO { ", start times left out" } else { "" };
        format!(
            "latency rules: messages of jobs{waiting} take at least {} to arrive, bytes and computations at least {}{after}; \
             messages have {} in the mean{scale}; fabrics that differ in rate will look alike",
            time(arrival),
            time(bytes),
            Quantity::Bytes.format(mean_bytes),
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::load::{Changes, Loaded};

    fn note(workload: &str) -> String {
        let text = format!(
            "topology = {{ kind = \"star\", hosts = 2, rate = \"100Gbps\", delay = \"1us\" }}\n{workload}"
        );
        let loaded =
            Loaded::parse(&text, "a.toml", ".", &Changes::default()).unwrap_or_else(|why| panic!("{why}"));
        let notes = loaded.prepare().unwrap_or_else(|why| panic!("{why}")).notes;
        notes.into_iter().find(|note| note.starts_with("latency rules")).expect("it is reported")
    }

    /// A message takes 2 us over two links, and 1,000 B take 80 ns at 100 Gb/s.
    #[test]
    fn start_times_are_neither_latency_nor_bytes() {
        let flows = |second: &str| {
            format!(
                "[[workload]]\nkind = \"flows\"\nflows = [{{ src = 0, dst = 1, size = \"1KB\" }}, \
                 {{ src = 0, dst = 1, size = \"1KB\"{second} }}]\n"
            )
        };
        let at_once = note(&flows(""));
        assert!(at_once.contains("messages of jobs take at least 2.000 us to arrive, "), "{at_once}");
        let later = note(&flows(", start = \"300us\""));
        let expected = "messages of jobs take at least 2.000 us to arrive, bytes and computations at least 80.00 ns, start \
                        times left out;";
        assert!(later.contains(expected), "{later}");
    }

    /// Two steps of a ring of two hosts.
    #[test]
    fn messages_that_wait_for_each_other_are_named() {
        let ring = note("[[workload]]\nkind = \"ring-all-reduce\"\nsize = \"2KB\"\n");
        assert!(ring.contains("that wait for each other take at least 4.000 us"), "{ring}");
    }
}
