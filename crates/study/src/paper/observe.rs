//! Reduction of a run to the numbers that a figure needs, so that the run itself need not be stored.

use std::collections::{BTreeMap, BTreeSet};

use pathweave_records::{
    Departures, FlowRecord, FlowStatus, Role, RunResult, SeriesKind, group_jobs, jain_index, job_time_ns,
    percentile,
};

use crate::paper::model::{FigureFile, Measure, Metric, PlotKind, Stat, Term, Trace};

/// Numbers that a figure takes from a run. Times are in nanoseconds, rates in bits per second, sizes in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Value of each measure. `None` if it has no value, for instance because a flow did not finish.
    pub values: Vec<Option<f64>>,
    /// Values of the drawn distribution, sorted.
    pub samples: Vec<f64>,
    /// Samples of each trace: time in nanoseconds, and value.
    pub traces: Vec<Vec<(f64, f64)>>,
    /// Digest of the run. Empty if nothing ran.
    pub digest: String,
    /// Number of unfinished foreground flows.
    pub unfinished: usize,
    /// Description of the measurement, for people. Empty for simulations.
    pub method: String,
}

/// Takes from `run` the numbers that `figure` needs. `payload_share` is the payload of a full packet over its bytes
/// on a link.
pub fn observe(figure: &FigureFile, run: &RunResult, payload_share: f64) -> Observed {
    let traces: Vec<_> = figure.trace.iter().map(|trace| sum_trace(trace, run, payload_share)).collect();
    let value = |measure: &Measure| match measure.of {
        Metric::GapShare => run.departures.share_above((measure.from_us * 1e3) as u64),
        Metric::LengthShare => run.departures.normalised_share(measure.links?),
        Metric::Trace => {
            let index = figure.trace.iter().position(|trace| Some(&trace.name) == measure.trace.as_ref());
            span_statistic(measure, &traces[index?])
        }
        of => statistic(measure.stat, values(of, &FlowFilter::new(measure), run)?),
    };
    let mut samples = Vec::new();
    if figure.plot.kind == PlotKind::Cdf
        && let Some(of) = figure.plot.of
    {
        samples = values(of, &FlowFilter::default(), run).unwrap_or_default();
        samples.sort_by(f64::total_cmp);
    }
    let unfinished = |flow: &&FlowRecord| flow.status != FlowStatus::Finished;
    Observed {
        values: figure.measure.iter().map(value).collect(),
        samples,
        traces,
        digest: run.info.digest_hex(),
        unfinished: run.foreground().filter(unfinished).count(),
        method: String::new(),
    }
}

/// Filter of the flows that a measure covers.
#[derive(Default)]
struct FlowFilter<'a> {
    group: Option<&'a str>,
    larger_than_bytes: Option<u64>,
}

impl<'a> FlowFilter<'a> {
    fn new(measure: &'a Measure) -> Self {
        FlowFilter { group: measure.group.as_deref(), larger_than_bytes: measure.larger_than_bytes }
    }
    fn takes(&self, flow: &FlowRecord) -> bool {
        self.larger_than_bytes.is_none_or(|size| flow.size_bytes > size)
    }
}

/// Returns the values that a statistic is computed over. Returns `None` if some are missing, because a statistic of
/// the finished flows alone would favour a scheme with unfinished ones.
fn values(of: Metric, which: &FlowFilter<'_>, run: &RunResult) -> Option<Vec<f64>> {
    let of_group = |index: u16| which.group.is_none_or(|name| run.info.groups[usize::from(index)] == name);
    // Without a group, only foreground traffic counts.
    let measured = |index: u16| which.group.is_some() || run.info.role(index) == Role::Foreground;
    let flows =
        || run.flows.iter().filter(|flow| of_group(flow.group) && measured(flow.group) && which.takes(flow));
    let totals = || {
        let of_run = (0..).zip(&run.groups);
        of_run.filter(|&(index, _)| of_group(index) && measured(index)).map(|(_, totals)| totals)
    };
    let per_flow = |get: fn(&FlowRecord) -> Option<f64>| flows().map(get).collect::<Option<Vec<_>>>();
    let total = |value: u64| Some(vec![value as f64]);
    match of {
        Metric::Fct => per_flow(|flow| Some(flow.fct_ps()? as f64 / 1e3)),
        Metric::AckedFct => per_flow(|flow| Some(flow.acked_fct_ps()? as f64 / 1e3)),
        Metric::Throughput => per_flow(FlowRecord::goodput_bps),
        Metric::Slowdown => per_flow(FlowRecord::slowdown),
        Metric::HostThroughput => host_throughput(flows()).map(|rate| vec![rate]),
        Metric::OooDegree => per_flow(|flow| Some(f64::from(flow.ooo_degree_max))),
        Metric::OooPackets => per_flow(|flow| Some(f64::from(flow.ooo_packets))),
        Metric::OooShare => {
            let sent: u64 = flows().map(|flow| u64::from(flow.sent_packets)).sum();
            let late: u64 = flows().map(|flow| u64::from(flow.ooo_packets)).sum();
            (sent > 0).then(|| vec![late as f64 / sent as f64])
        }
        Metric::Cnps => per_flow(|flow| Some(f64::from(flow.cnp_packets))),
        Metric::Copies => total(flows().map(|flow| u64::from(flow.copied_packets)).sum()),
        Metric::Notices => total(flows().map(|flow| u64::from(flow.notice_packets)).sum()),
        Metric::Overhead => {
            let payload: u64 = flows().map(|flow| flow.size_bytes).sum();
            let extra: u64 = flows().map(|flow| flow.extra_wire_bytes).sum();
            (payload > 0).then(|| vec![extra as f64 / payload as f64])
        }
        Metric::PolicyRate => totals().map(|totals| totals.policy_rate_bps).collect(),
        Metric::Held => totals().map(|totals| totals.held_bytes).collect(),
        Metric::JobTime => {
            let jobs = run.jobs.iter().filter(|job| of_group(job.group) && measured(job.group));
            jobs.map(|job| Some(job.completion_ps()? as f64 / 1e3)).collect()
        }
        Metric::TimeOfJobs => {
            let jobs = group_jobs(run, |index| of_group(index) && measured(index));
            job_time_ns(&jobs).map(|time| vec![time])
        }
        Metric::SpuriousTimeouts => {
            let lost: u64 = run.links.iter().map(|link| link.dropped_packets + link.trimmed_packets).sum();
            let timeouts = flows().map(|flow| u64::from(flow.timeouts)).sum();
            total(timeouts).filter(|_| lost == 0)
        }
        Metric::Queue => Some(run.links.iter().map(|link| link.max_queue_bytes as f64).collect()),
        Metric::AckShare => ack_share(run).map(|share| vec![share]),
        Metric::Answers => total(run.middleboxes.iter().map(|at| at.nsf_answers).sum()),
        Metric::IsolatedFlows => total(isolated_flows(run)),
        Metric::IsolatedShare => {
            let all = flows().count();
            (all > 0).then(|| vec![isolated_flows(run) as f64 / all as f64])
        }
        Metric::Pauses => total(run.links.iter().map(|link| link.pfc_pauses).sum()),
        Metric::Drops => total(run.links.iter().map(|link| link.dropped_packets).sum()),
        Metric::LossShare => {
            let sent: u64 = flows().map(|flow| u64::from(flow.sent_packets)).sum();
            let lost: u64 = run.links.iter().map(|link| link.dropped_packets).sum();
            (sent > 0).then(|| vec![lost as f64 / sent as f64])
        }
        Metric::Retransmissions => total(flows().map(|flow| u64::from(flow.retransmitted_packets)).sum()),
        Metric::Unfinished => {
            total(flows().filter(|flow| flow.status != FlowStatus::Finished).count() as u64)
        }
        Metric::Gaps => Some(gaps(&run.departures)),
        Metric::GapShare | Metric::LengthShare | Metric::Trace | Metric::StateBytes => None,
    }
}

/// Returns the number of flows of which an external switch put a packet into a controlled queue.
fn isolated_flows(run: &RunResult) -> u64 {
    run.middleboxes.iter().map(|at| at.ndt_isolated_flows).sum()
}

/// Approximate upper bound on the values that represent the distribution of gaps.
const GAP_SAMPLES: f64 = 4_000.0;

/// Returns times between packets in nanoseconds. Each bin contributes a number of values proportional to its share.
fn gaps(seen: &Departures) -> Vec<f64> {
    let all: u64 = seen.gaps.iter().map(|gaps| gaps.packets).sum();
    let scale = (GAP_SAMPLES / all as f64).min(1.0);
    let (mut before, mut values) = (0, Vec::new());
    for gaps in &seen.gaps {
        let bound = if gaps.up_to_ns == u64::MAX { gaps.above_ns } else { gaps.up_to_ns };
        let from = (before as f64 * scale).round() as usize;
        before += gaps.packets;
        let to = (before as f64 * scale).round() as usize;
        values.extend(std::iter::repeat_n(bound as f64, to - from));
    }
    values
}

/// Returns the delivered payload in bits per second, from the first post to the last delivery, per host that sends.
/// Undelivered payload does not count.
fn host_throughput<'a>(flows: impl Iterator<Item = &'a FlowRecord>) -> Option<f64> {
    let (mut bits, mut start, mut end, mut hosts) = (0.0, u64::MAX, 0, BTreeSet::new());
    for flow in flows {
        start = start.min(flow.start_ps);
        hosts.insert(flow.src_host);
        if let Some(finish) = flow.finish_ps {
            bits += 8.0 * flow.size_bytes as f64;
            end = end.max(finish);
        }
    }
    (end > start).then(|| bits / ((end - start) as f64 * 1e-12) / hosts.len() as f64)
}

/// Header bytes of every data packet, as the ns-3 simulators count.
const NS3_HEADER_BYTES: u64 = 48;

/// Returns the share of bytes sent by hosts that are not data packets.
fn ack_share(run: &RunResult) -> Option<f64> {
    let from_hosts = run.links.iter().filter(|link| (link.from_node as usize) < hosts(run));
    let sent: u64 = from_hosts.map(|link| link.tx_bytes).sum();
    // The formula ignores the payload of retransmissions, so it holds for runs without loss only.
    if run.flows.iter().any(|flow| flow.retransmitted_packets > 0 || flow.status != FlowStatus::Finished) {
        return None;
    }
    let data: u64 =
        run.flows.iter().map(|f| f.size_bytes + NS3_HEADER_BYTES * u64::from(f.sent_packets)).sum();
    (sent > 0).then(|| sent.saturating_sub(data) as f64 / sent as f64)
}

fn hosts(run: &RunResult) -> usize {
    run.nodes.iter().filter(|node| node.kind == pathweave_records::NodeKind::Host).count()
}

/// Reduces values to one number. Returns `None` for no values.
pub fn statistic(stat: Stat, mut values: Vec<f64>) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let sum = || values.iter().sum::<f64>();
    match stat {
        Stat::Mean => Some(sum() / values.len() as f64),
        Stat::Sum => Some(sum()),
        Stat::Min => values.first().copied(),
        Stat::Max => values.last().copied(),
        Stat::P1 => Some(percentile(&values, 10)),
        Stat::P50 => Some(percentile(&values, 500)),
        Stat::P99 => Some(percentile(&values, 990)),
        Stat::MaxOverMean => {
            Some(values.last()? * values.len() as f64 / sum()).filter(|ratio| ratio.is_finite())
        }
        Stat::Jain => jain_index(&values),
        Stat::TimeBelow => None,
    }
}

/// Returns a statistic of a trace within the measure's span.
fn span_statistic(measure: &Measure, trace: &[(f64, f64)]) -> Option<f64> {
    let (from, to) = (measure.from_us * 1e3, measure.to_us.map_or(f64::INFINITY, |us| us * 1e3));
    let inside: Vec<(f64, f64)> = trace.iter().copied().filter(|(at, _)| *at > from && *at <= to).collect();
    if measure.stat == Stat::TimeBelow {
        return longest_below(&inside, from, measure.below);
    }
    statistic(measure.stat, inside.iter().map(|(_, value)| *value).collect())
}

/// Returns the longest uninterrupted time for which samples are below `level`. A sample represents the time since the
/// sample before it.
fn longest_below(samples: &[(f64, f64)], from: f64, level: f64) -> Option<f64> {
    let (mut longest, mut current, mut last) = (0.0_f64, 0.0, from);
    for &(at, value) in samples {
        current = if value < level { current + (at - last) } else { 0.0 };
        longest = longest.max(current);
        last = at;
    }
    (!samples.is_empty()).then_some(longest)
}

/// Returns the sum of a trace's terms at every sampled time. A missing sample counts as zero.
fn sum_trace(trace: &Trace, run: &RunResult, payload_share: f64) -> Vec<(f64, f64)> {
    let mut at: BTreeMap<u64, f64> = run.series.iter().map(|sample| (sample.time_ps, 0.0)).collect();
    for term in &trace.terms {
        let Some((kind, entity, scale)) = resolve(term, run) else { return Vec::new() };
        let scale = if term.payload { scale * payload_share } else { scale };
        for sample in run.series.iter().filter(|sample| sample.kind == kind && sample.entity == entity) {
            *at.entry(sample.time_ps).or_default() += sample.value * scale;
        }
    }
    at.into_iter().map(|(ps, value)| (ps as f64 / 1e3, value)).collect()
}

/// Returns the series that a term names, and the factor that converts its samples to the unit of the term.
fn resolve(term: &Term, run: &RunResult) -> Option<(SeriesKind, u32, f64)> {
    let link = |name: &str| run.links.iter().find(|link| link.name == name);
    if let Some(name) = &term.host {
        let node = run.nodes.iter().find(|node| node.name == *name)?;
        return Some((SeriesKind::HostRateBps, node.node, term.factor));
    }
    if let Some(name) = &term.queue {
        return Some((SeriesKind::QueueBytes, link(name)?.link, term.factor));
    }
    if let Some(flow) = term.flow_rate {
        return Some((SeriesKind::PolicyRateBps, flow, term.factor));
    }
    if let Some(flow) = term.flow_held {
        return Some((SeriesKind::HeldBytes, flow, term.factor));
    }
    let link = link(term.link.as_deref()?)?;
    Some((SeriesKind::LinkUtilisation, link.link, term.factor * link.rate_bps as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_records::{
        Gaps, JobRecord, LinkTotals, NodeInfo, NodeKind, PathLength, RunInfo, SeriesSample,
    };

    fn measure(text: &str) -> Measure {
        toml::from_str(text).unwrap()
    }

    fn term(text: &str) -> Term {
        toml::from_str(text).unwrap()
    }

    /// Two flows of 1 MB that took 1 ms and 2 ms, hence 8 and 4 Gb/s.
    fn two_flows() -> RunResult {
        let flow = |flow: u32, ms: u64| FlowRecord {
            flow,
            size_bytes: 1_000_000,
            start_ps: 500,
            finish_ps: Some(500 + ms * 1_000_000_000),
            ideal_fct_ps: 500_000_000,
            sent_packets: 100,
            status: FlowStatus::Finished,
            ..FlowRecord::default()
        };
        let node =
            |node, name: &str, kind| NodeInfo { node, name: name.to_owned(), kind, tier: 0, pod: None };
        let link = |link, name: &str, from_node, tx_bytes| LinkTotals {
            link,
            name: name.to_owned(),
            from_node,
            tx_bytes,
            rate_bps: 10_000_000_000,
            max_queue_bytes: 7 * u64::from(link),
            ..LinkTotals::default()
        };
        RunResult {
            info: RunInfo { groups: vec!["g".to_owned()], ..RunInfo::default() },
            flows: vec![flow(0, 1), flow(1, 2)],
            nodes: vec![node(0, "host0", NodeKind::Host), node(1, "switch0", NodeKind::Switch)],
            links: vec![link(0, "host0>switch0", 0, 2_100_000), link(1, "switch0>host0", 1, 9)],
            ..RunResult::default()
        }
    }

    fn of(run: &RunResult, what: &str) -> Option<f64> {
        let m = measure(&format!("name = \"m\"\n{what}"));
        statistic(m.stat, values(m.of, &FlowFilter::new(&m), run)?)
    }

    #[test]
    fn flows_by_hand() {
        let run = two_flows();
        assert_eq!(of(&run, "of = \"fct\"\nstat = \"mean\""), Some(1.5e6));
        assert_eq!(of(&run, "of = \"fct\"\nstat = \"max\""), Some(2e6));
        assert_eq!(of(&run, "of = \"throughput\"\nstat = \"p1\""), Some(4e9));
        assert_eq!(of(&run, "of = \"slowdown\"\nstat = \"min\""), Some(2.0));
        assert_eq!(of(&run, "of = \"fct\"\nstat = \"max-over-mean\""), Some(2.0 / 1.5));
        // (8 + 4)^2 / (2 (64 + 16))
        assert_eq!(of(&run, "of = \"throughput\"\nstat = \"jain\""), Some(0.9));
        // 16 Mbit in 2 ms from one host.
        assert_eq!(of(&run, "of = \"host-throughput\""), Some(8e9));
        assert_eq!(of(&run, "of = \"loss-share\""), Some(0.0));
        assert_eq!(of(&run, "of = \"queue\"\nstat = \"max\""), Some(7.0));
        assert_eq!(of(&run, "of = \"fct\"\ngroup = \"g\""), Some(1.5e6));
        assert_eq!(of(&run, "of = \"fct\"\ngroup = \"other\""), None);
        // 2 MB of payload and 200 headers of 48 bytes. The rest of the 2.1 MB are acknowledgements.
        assert_eq!(of(&run, "of = \"ack-share\""), Some((2_100_000.0 - 2_009_600.0) / 2_100_000.0));
    }

    #[test]
    fn departures_by_hand() {
        let gap = |above_ns, up_to_ns, packets| Gaps { above_ns, up_to_ns, packets };
        let gaps = vec![gap(70, 100, 6_000), gap(30_000, 50_000, 1_990), gap(50_000, 70_000, 10)];
        let lengths = vec![PathLength { links: 4, wire_bytes: 30, uniform_bytes: 20.0 }];
        let run = RunResult { departures: Departures { gaps, lengths }, ..two_flows() };
        let figure = |what: &str| -> Option<f64> {
            let text = format!(
                "title = \"t\"\nsection = \"s\"\nscenario = \"s.toml\"\nplot = {{ kind = \"cdf\", of = \"gaps\" }}\n[[measure]]\nname = \"m\"\n{what}"
            );
            let observed = observe(&toml::from_str(&text).unwrap(), &run, 1.0);
            // 8,000 gaps are represented by 4,000 values.
            assert_eq!(observed.samples.len(), 4_000);
            assert_eq!(observed.samples.iter().filter(|&&ns| ns > 50_000.0).count(), 5);
            observed.values[0]
        };
        assert_eq!(figure("of = \"gap-share\"\nfrom_us = 50"), Some(10.0 / 8_000.0));
        assert_eq!(figure("of = \"gaps\"\nstat = \"p50\""), Some(100.0));
        assert_eq!(figure("of = \"length-share\"\nlinks = 4"), Some(1.5));
        assert_eq!(figure("of = \"length-share\"\nlinks = 6"), None);
    }

    /// Returns a run with one flow inside a site and one between sites, with these slowdowns.
    fn inside_and_between(slowdowns: [f64; 2]) -> RunResult {
        let mut run = two_flows();
        run.info.groups = vec!["intra".to_owned(), "inter".to_owned()];
        for (index, (flow, slowdown)) in (0..).zip(run.flows.iter_mut().zip(slowdowns)) {
            flow.group = index;
            flow.finish_ps = Some(flow.start_ps + (slowdown * flow.ideal_fct_ps as f64) as u64);
        }
        run
    }

    #[test]
    fn the_gain_of_all_is_that_of_both_groups_weighed_by_what_they_took_before() {
        // Reflex, figure 6. Gains of 30.3 % inside and 52.8 % between sites make 32.9 % overall, if flows inside
        // accounted for 88.4 % of the sum before. With Swift, 54.0 and 20.8 % make 49.2 % at a share of 85.5 %.
        for (inside, between, weight, all) in [(0.303, 0.528, 0.884, 0.329), (0.540, 0.208, 0.855, 0.492)] {
            let before = [10.0 * weight, 10.0 * (1.0 - weight)];
            let after = [before[0] * (1.0 - inside), before[1] * (1.0 - between)];
            let gain = |what: &str| {
                let mean = |slowdowns| of(&inside_and_between(slowdowns), what).unwrap();
                1.0 - mean(after) / mean(before)
            };
            assert!((gain("of = \"slowdown\"\ngroup = \"intra\"") - inside).abs() < 1e-6);
            assert!((gain("of = \"slowdown\"\ngroup = \"inter\"") - between).abs() < 1e-6);
            assert!((gain("of = \"slowdown\"") - all).abs() < 0.000_5, "{}", gain("of = \"slowdown\""));
        }
    }

    #[test]
    fn a_flow_that_hangs_leaves_no_figure_of_the_others() {
        let mut run = two_flows();
        run.flows[1].finish_ps = None;
        run.flows[1].status = FlowStatus::Unfinished;
        assert_eq!(of(&run, "of = \"fct\""), None);
        assert_eq!(of(&run, "of = \"unfinished\""), Some(1.0));
    }

    #[test]
    fn jobs_have_one_time_and_timeouts_are_spurious_without_a_loss() {
        let mut run = two_flows();
        assert_eq!(of(&run, "of = \"time-of-jobs\""), None, "a run without jobs");
        let job = |job, us: u64| JobRecord { job, finish_ps: Some(us * 1_000_000), ..JobRecord::default() };
        run.jobs = vec![job(0, 3), job(1, 7)];
        assert_eq!(of(&run, "of = \"time-of-jobs\""), Some(7e3));
        run.jobs[0].finish_ps = None;
        assert_eq!(of(&run, "of = \"time-of-jobs\""), None);
        run.flows[0].timeouts = 2;
        run.flows[1].timeouts = 3;
        assert_eq!(of(&run, "of = \"spurious-timeouts\""), Some(5.0));
        run.links[0].dropped_packets = 1;
        assert_eq!(of(&run, "of = \"spurious-timeouts\""), None);
    }

    #[test]
    fn traces_add_up_and_missing_samples_are_zero() {
        let mut run = two_flows();
        let sample =
            |us: u64, kind, value| SeriesSample { time_ps: us * 1_000_000, value, entity: 0, index: 0, kind };
        run.series = vec![
            sample(10, SeriesKind::HostRateBps, 6e9),
            sample(10, SeriesKind::LinkUtilisation, 0.5),
            sample(20, SeriesKind::HostRateBps, 8e9),
            sample(30, SeriesKind::LinkUtilisation, 0.1),
            // A sample without any activity in the network.
            sample(40, SeriesKind::Interval, 10_000.0),
        ];
        let trace = Trace {
            name: "t".to_owned(),
            terms: vec![term("host = \"host0\""), term("link = \"host0>switch0\"\nfactor = -1.0")],
        };
        let line = sum_trace(&trace, &run, 0.5);
        assert_eq!(line, [(10e3, 1e9), (20e3, 8e9), (30e3, -1e9), (40e3, 0.0)]);
        // Half of what crosses the link is payload.
        let payload = Trace { terms: vec![term("link = \"host0>switch0\"\npayload = true")], ..trace };
        assert_eq!(sum_trace(&payload, &run, 0.5), [(10e3, 2.5e9), (20e3, 0.0), (30e3, 0.5e9), (40e3, 0.0)]);
        let m =
            |text: &str| span_statistic(&measure(&format!("name = \"m\"\nof = \"trace\"\n{text}")), &line);
        assert_eq!(m("from_us = 10\nstat = \"max\""), Some(8e9));
        assert_eq!(m("to_us = 20"), Some(4.5e9));
        // Below 2 Gb/s from 0 to 10 us and from 20 to 40 us. The two spans are not joined to 30 us.
        assert_eq!(m("stat = \"time-below\"\nbelow = 2e9"), Some(20e3));
        assert_eq!(m("from_us = 20"), Some(-0.5e9));
        assert_eq!(m("from_us = 40"), None);
    }

    #[test]
    fn a_flow_over_time_and_what_came_late_of_all() {
        let mut run = two_flows();
        let sample = |us: u64, entity, kind, value| SeriesSample {
            time_ps: us * 1_000_000,
            value,
            entity,
            index: 0,
            kind,
        };
        run.series = vec![
            sample(10, 1, SeriesKind::PolicyRateBps, 6e9),
            sample(10, 0, SeriesKind::PolicyRateBps, 1e9),
            sample(20, 1, SeriesKind::HeldBytes, 3e3),
        ];
        let line =
            |text: &str| sum_trace(&Trace { name: "t".to_owned(), terms: vec![term(text)] }, &run, 1.0);
        assert_eq!(line("flow_rate = 1"), [(10e3, 6e9), (20e3, 0.0)]);
        assert_eq!(line("flow_held = 1"), [(10e3, 0.0), (20e3, 3e3)]);
        run.flows[1].ooo_packets = 5;
        // 5 of 2 x 100 packets.
        assert_eq!(of(&run, "of = \"ooo-share\""), Some(0.025));
    }
}
