//! Detection of scenarios in which latency, not bandwidth, determines the time of messages.

use pathweave_records::{Quantity, least_scale};
use pathweave_sim::SimSpec;
use pathweave_workload::Message;

/// Returns a note if the average message of a job takes less time on a link than the smallest possible delay between
/// hosts.
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
    let delay_ns = spec.topology.shortest_delay().as_ps() as f64 / 1e3;
    // Two links: from a host to a switch, and from there to a host.
    let least_ns = 2.0 * delay_ns;
    (on_links_ns < least_ns).then(|| {
        let scale = match least_scale(&spec.scenario_toml) {
            Some(scale) => format!(", with `scale = {scale}`"),
            None => String::new(),
        };
        format!(
            "latency rules: messages of jobs have {} in the mean{scale}, which take {} at a host's rate and {} at least to arrive; \
             fabrics that differ in rate will look alike",
            Quantity::Bytes.format(mean_bytes),
            Quantity::TimeNs.format(on_links_ns),
            Quantity::TimeNs.format(least_ns)
        )
    })
}
