//! Detection of runs dominated by latency rather than by rates. In such runs fabrics of different rates look alike.

use std::collections::BTreeMap;

use crate::critical::StepKind;
use crate::figures::FlowStats;
use crate::format::ns;
use crate::records::{Direction, RunResult};

/// Share of the time of jobs from which latency dominates.
pub const LATENCY_DOMINANT_SHARE: f64 = 0.5;

/// Ratio of rates from which a port is of another kind than most: those of scale-up networks are far faster.
const ANOTHER_KIND: f64 = 4.0;

/// Returns the part of a message's time on an idle network that its bytes do not take at the rate of its host. On a
/// slower path bytes take longer, so it is at most twice the time of the way back, `acked_ns - ideal_ns`, if the message
/// has acknowledgements. Those of a scale-up network take no time.
pub fn idle_latency_ns(ideal_ns: f64, acked_ns: Option<f64>, bytes_ns: f64) -> f64 {
    let rest_ns = (ideal_ns - bytes_ns).max(0.0);
    acked_ns.map_or(rest_ns, |acked_ns| rest_ns.min(2.0 * (acked_ns - ideal_ns).max(0.0)))
}

/// Returns the median rate of the hosts, in bits per second: that of all ports of a host together, without those of
/// another kind.
fn host_rate_bps(run: &RunResult) -> Option<f64> {
    let ports = || run.links.iter().filter(|link| link.tier == 0 && link.direction == Direction::Up);
    let usual_bps = median(ports().map(|link| link.rate_bps).collect())?;
    let mut by_host: BTreeMap<u32, u64> = BTreeMap::new();
    for link in ports().filter(|link| link.rate_bps as f64 <= ANOTHER_KIND * usual_bps as f64) {
        *by_host.entry(link.from_node).or_default() += link.rate_bps;
    }
    median(by_host.into_values().collect()).map(|rate_bps| rate_bps as f64)
}

fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// Returns the part of the flows' ideal time that is not transmission of their bytes.
fn share(run: &RunResult, figures: &FlowStats) -> Option<f64> {
    let rate_bps = host_rate_bps(run)?;
    let (mut ideal_ns, mut latency_ns) = (0.0, 0.0);
    for flow in figures.foreground().iter().flat_map(|group| &group.finished) {
        let (of_flow, acked) = (ns(flow.ideal_fct_ps), flow.ideal_acked_ps().map(ns));
        ideal_ns += of_flow;
        latency_ns += idle_latency_ns(of_flow, acked, flow.size_bytes as f64 * 8e9 / rate_bps);
    }
    (ideal_ns > 0.0).then(|| latency_ns / ideal_ns)
}

/// Returns the share of latency in the critical paths of a run's jobs, or `None` without critical paths.
pub(crate) fn of_jobs(run: &RunResult, figures: &FlowStats) -> Option<f64> {
    let time_ns = |kind| {
        run.critical.iter().filter(|step| step.kind == kind).map(|step| ns(step.time_ps())).sum::<f64>()
    };
    let lost_ns: f64 = run.critical.iter().filter_map(|step| step.lost_ps().map(ns)).sum();
    let (messages_ns, wait_ns) = (time_ns(StepKind::Message), time_ns(StepKind::Wait));
    let all_ns = messages_ns + wait_ns + time_ns(StepKind::Computation);
    let latency_ns = (messages_ns - lost_ns).max(0.0) * share(run, figures)? + wait_ns;
    (all_ns > 0.0).then(|| latency_ns / all_ns)
}

/// Returns a warning if the share of latency in a run's jobs is large.
pub(crate) fn warning(run: &RunResult, of_jobs: Option<f64>) -> Option<String> {
    let of_time = of_jobs.filter(|share| *share >= LATENCY_DOMINANT_SHARE)?;
    let scaled = match least_scale(&run.info.scenario_toml) {
        Some(scale) => {
            format!(" `scale = {scale}` makes sizes and computations small, and leaves latency as it is.")
        }
        None => String::new(),
    };
    Some(format!(
        "latency rules: {:.0} % of the time of its jobs is propagation, hops and notifications, not bytes or computation. \
         Fabrics that differ in rate look alike in it.{scaled}",
        of_time * 100.0
    ))
}

/// Returns the smallest factor on sizes and durations of a scenario, if one is below 1.
pub fn least_scale(scenario: &str) -> Option<f64> {
    let scenario: toml::Table = scenario.parse().ok()?;
    let workloads = scenario.get("workload")?.as_array()?;
    let scales = workloads.iter().filter_map(|workload| workload.get("scale")?.as_float());
    scales.filter(|scale| *scale < 1.0).min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::critical::CriticalStep;
    use crate::records::{FlowRecord, FlowStatus, LinkTotals};

    const US: u64 = 1_000_000;

    /// A run with a computation of 5 us, and a message that takes 10 us plus the time of its bytes at 100 Gb/s.
    fn run(bytes: u64, scale: f64) -> RunResult {
        let took_ps = 10 * US + bytes * 80;
        let step = |kind, from_ps, to_ps, ideal_ps| CriticalStep {
            kind,
            start_ps: from_ps,
            finish_ps: to_ps,
            ideal_ps,
            ..CriticalStep::default()
        };
        let mut run = RunResult {
            links: vec![LinkTotals {
                direction: Direction::Up,
                rate_bps: 100_000_000_000,
                ..LinkTotals::default()
            }],
            flows: vec![FlowRecord {
                size_bytes: bytes,
                finish_ps: Some(took_ps),
                ideal_fct_ps: took_ps,
                status: FlowStatus::Finished,
                ..FlowRecord::default()
            }],
            critical: vec![
                step(StepKind::Message, 0, took_ps, Some(took_ps)),
                step(StepKind::Computation, took_ps, took_ps + 5 * US, None),
            ],
            ..RunResult::default()
        };
        run.info.scenario_toml = format!("[[workload]]\nscale = {scale}\n");
        run
    }

    #[test]
    fn small_messages_are_latency_and_large_ones_are_not() {
        let words = |run: &RunResult| warning(run, of_jobs(run, &run.figures()));
        // 10 us of 10 + 0.1 + 5 us.
        let small = words(&run(1_250, 0.001)).unwrap();
        assert!(small.contains(" 66 % ") && small.contains("`scale = 0.001`"), "{small}");
        // 10 us of 10 + 100 + 5 us.
        assert_eq!(words(&run(1_250_000, 0.001)), None);
        assert!(!words(&run(1_250, 1.0)).unwrap().contains("scale"));
    }

    /// 10 MB take .8 ms at 100 Gb/s, and 8 ms on a path of 10 Gb/s or over a scale-up network of this rate. The way back
    /// takes 4 us or no time.
    #[test]
    fn bytes_on_a_slow_path_are_not_latency() {
        let slow = |way_back_us| {
            let mut run = run(10_000_000, 1.0);
            let took_ps = 4 * US + 8_000 * US;
            run.flows[0].finish_ps = Some(took_ps);
            run.flows[0].ideal_fct_ps = took_ps;
            run.flows[0].ideal_acked_ps = Some(took_ps + way_back_us * US);
            run.critical[0].finish_ps = took_ps;
            run.critical[0].ideal_ps = Some(took_ps);
            of_jobs(&run, &run.figures()).unwrap()
        };
        assert!((slow(4) - 8.0 / 8_009.0).abs() < 1e-6, "{}", slow(4));
        assert_eq!(slow(0), 0.0);
    }

    /// 80 KB take 6.4 us over one port of 100 Gb/s and 1.6 us over four. The rest of 12 us is latency: 10.4 us of 17 us.
    #[test]
    fn a_host_sends_over_all_its_ports() {
        let mut run = run(80_000, 1.0);
        run.links = vec![run.links[0].clone(); 4];
        let took_ps = 12 * US;
        run.flows[0].ideal_fct_ps = took_ps;
        run.flows[0].ideal_acked_ps = Some(took_ps + 10 * US);
        run.critical[0].finish_ps = took_ps;
        run.critical[0].ideal_ps = Some(took_ps);
        let of_run = |run: &RunResult| of_jobs(run, &run.figures()).unwrap();
        let at = |rate_gbps: f64| (12.0 - 640.0 / rate_gbps) / 17.0;
        assert!((of_run(&run) - at(400.0)).abs() < 1e-9, "{} not {}", of_run(&run), at(400.0));
        run.links.truncate(1);
        assert!((of_run(&run) - at(100.0)).abs() < 1e-9);
    }
}
