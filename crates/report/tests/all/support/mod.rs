//! Synthetic runs that resemble real ones: a two- or three-tier Clos, flows of mixed sizes, queues that fill.
#![allow(dead_code)] // each test uses its part

pub(crate) mod servers;

use pathweave_records::*;
use pathweave_units::Rng;

/// Shape of a synthetic run.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) tors: u32,
    pub(crate) hosts_per_tor: u32,
    pub(crate) spines: u32,
    pub(crate) flows: u32,
    /// Degree of congestion; 1 is mild.
    pub(crate) load: f64,
    pub(crate) seed: u64,
}

impl Shape {
    pub(crate) const SMALL: Shape =
        Shape { tors: 6, hosts_per_tor: 4, spines: 4, flows: 2_000, load: 1.0, seed: 7 };
    pub(crate) const HOSTS_320: Shape =
        Shape { tors: 20, hosts_per_tor: 16, spines: 10, flows: 20_000, load: 1.2, seed: 9 };
    pub(crate) const LARGE: Shape =
        Shape { tors: 64, hosts_per_tor: 16, spines: 16, flows: 20_000, load: 1.5, seed: 8 };
}

const END_PS: u64 = 4_000_000_000;
const RATE_BPS: u64 = 100_000_000_000;

/// Creates a run of two workload groups called `name`.
pub(crate) fn run(name: &str, shape: Shape) -> RunResult {
    let mut rng = Rng::for_component(shape.seed, "synthetic run", 0);
    let mut run = RunResult {
        info: RunInfo {
            name: name.to_owned(),
            version: "0.1.0".to_owned(),
            seed: shape.seed,
            scenario_toml: "[topology]\nkind = \"leaf_spine\"\n\n[workload.background]\nload = 0.6 # <b>&\n"
                .into(),
            schemes: vec!["rps-dcqcn".into(), "ecmp-dcqcn".into()],
            groups: vec!["websearch".into(), "incast".into()],
            roles: vec![],
            digest: 0x0123_4567_89ab_cdef,
            simulated_ps: END_PS,
            wall_s: 3.2,
            cpu_s: 3.1,
            events: 50_000_000,
            packet_hops: 48_000_000,
            peak_rss_bytes: 312_000_000,
            ended: EndReason::Completed,
            ended_detail: String::new(),
            ..RunInfo::default()
        },
        ..RunResult::default()
    };
    topology(&mut run, shape, &mut rng);
    flows(&mut run, shape, &mut rng);
    observations(&mut run, shape, &mut rng);
    run
}

fn topology(run: &mut RunResult, shape: Shape, rng: &mut Rng) {
    let hosts = shape.tors * shape.hosts_per_tor;
    for i in 0..hosts + shape.tors + shape.spines {
        let (name, kind, tier) = if i < hosts {
            (format!("h{i}"), NodeKind::Host, 0)
        } else if i < hosts + shape.tors {
            (format!("tor{}", i - hosts), NodeKind::Switch, 0)
        } else {
            (format!("spine{}", i - hosts - shape.tors), NodeKind::Switch, 1)
        };
        run.nodes.push(NodeInfo { node: i, name, kind, tier, pod: None });
    }
    let mut pair = |run: &mut RunResult, a: u32, b: u32, tier: u8| {
        for (from, to, direction) in [(a, b, Direction::Up), (b, a, Direction::Down)] {
            let used = (0.25 + 0.5 * rng.unit_f64() + 0.1 * shape.load).min(0.99);
            let link = run.links.len() as u32;
            let busy_ps = (END_PS as f64 * used) as u64;
            let hot = rng.below(20) == 0;
            run.links.push(LinkTotals {
                link,
                name: format!("{}->{}", run.nodes[from as usize].name, run.nodes[to as usize].name),
                from_node: from,
                to_node: to,
                tier,
                direction,
                rate_bps: RATE_BPS,
                delay_ps: 1_000_000,
                tx_bytes: busy_ps / 80,
                tx_packets: busy_ps / 80 / 4_096,
                busy_ps,
                dropped_packets: if hot { rng.below(40).into() } else { 0 },
                ecn_marked_packets: rng.below(5_000).into(),
                trimmed_packets: 0,
                pfc_pauses: rng.below(30).into(),
                paused_ps: rng.below(10_000_000).into(),
                max_queue_bytes: rng.below(900_000).into(),
            });
        }
    };
    for h in 0..hosts {
        pair(run, h, hosts + h / shape.hosts_per_tor, 0);
    }
    for t in 0..shape.tors {
        for s in 0..shape.spines {
            pair(run, hosts + t, hosts + shape.tors + s, 1);
        }
    }
}

fn flows(run: &mut RunResult, shape: Shape, rng: &mut Rng) {
    let hosts = shape.tors * shape.hosts_per_tor;
    for flow in 0..shape.flows {
        let group = u16::from(flow % 5 == 0);
        let size_bytes =
            if group == 1 { 64_000 } else { (200.0 * 10f64.powf(5.2 * rng.unit_f64())) as u64 + 1 };
        let start_ps = (rng.unit_f64() * 2e9) as u64;
        let ideal_fct_ps = 4_000_000 + size_bytes * 80;
        let queued = shape.load * 12e6 * rng.unit_f64().powi(4) * 10.0;
        let fct = (ideal_fct_ps as f64 * (1.05 + shape.load * rng.unit_f64().powi(3) * 3.0) + queued) as u64;
        let finished = flow % 997 != 996;
        run.flows.push(FlowRecord {
            flow,
            group,
            scheme: group,
            job: (group == 1).then_some(flow % 3),
            label: (group == 1).then_some(2 + flow % 3),
            src_host: rng.below(hosts),
            dst_host: rng.below(hosts),
            size_bytes,
            start_ps,
            finish_ps: finished.then_some(start_ps + fct),
            acked_ps: finished.then_some(start_ps + fct + 2_000_000),
            ideal_fct_ps,
            ideal_acked_ps: Some(ideal_fct_ps + 2_000_000),
            sent_packets: size_bytes.div_ceil(4_096) as u32,
            retransmitted_packets: rng.below(100) / 99,
            dropped_packets: rng.below(100) / 99,
            ooo_packets: rng.below(20),
            ooo_degree_max: rng.below(12),
            copied_packets: 0,
            notice_packets: 0,
            extra_wire_bytes: 0,
            cnp_packets: 0,
            timeouts: 0,
            status: if finished { FlowStatus::Finished } else { FlowStatus::Unfinished },
        });
    }
    activities(run, hosts);
    for job in 0..3u32 {
        let start_ps = u64::from(job) * END_PS / 8;
        let finish_ps = (job < 2).then_some(start_ps + END_PS / 2);
        run.jobs.push(JobRecord {
            job,
            name: format!("allreduce {job}"),
            group: 1,
            start_ps,
            before_ps: None,
            finish_ps,
            compute_ps: END_PS / 4,
            size_bytes: Some(1_000_000),
            bus_bytes: Some(1_875_000),
            training: None,
        });
    }
}

/// Adds three jobs. Each computes twice and reduces once, and the last one does not end.
fn activities(run: &mut RunResult, hosts: u32) {
    let collective = |number| CollectiveLabel {
        number,
        ranks: hosts,
        algorithm: "ring",
        size_bytes: Some(1_000_000),
        bus_bytes: Some(1_875_000),
    };
    let label = |activity: &str, part: Option<String>, collective: Option<CollectiveLabel>| ActivityLabel {
        activity: activity.to_owned(),
        object: part,
        parallelism: collective.map(|_| Parallelism::Data),
        collective,
    };
    run.labels = vec![label("forward", None, None), label("backward", Some("layer 1".to_owned()), None)];
    let reductions = (0..3).map(|n| label("all-reduce", Some(format!("bucket {n}")), Some(collective(n))));
    run.labels.extend(reductions);
    // Critical path of the first job: both computations of the last host, a wait, and a message.
    let step = END_PS / 64;
    let late = u64::from((hosts - 1).min(4)) * END_PS / 1_000;
    let on_path = |number, kind, label, from: u64, to: u64| CriticalStep {
        step: number,
        kind,
        host: hosts - 1,
        label,
        start_ps: from,
        finish_ps: to,
        ..CriticalStep::default()
    };
    run.critical = vec![
        on_path(0, StepKind::Computation, Some(0), 0, 2 * step),
        on_path(1, StepKind::Computation, Some(1), 2 * step, 4 * step + late),
        on_path(2, StepKind::Wait, None, 4 * step + late, 5 * step + late),
        CriticalStep {
            peer_host: Some(0),
            flow: Some(3),
            ideal_ps: Some(step),
            ..on_path(3, StepKind::Message, Some(2), 5 * step + late, END_PS / 2)
        },
    ];
    for host in 0..hosts {
        for job in 0..3u32 {
            let start_ps = u64::from(job) * END_PS / 8;
            let step = END_PS / 64;
            let late = u64::from(host % 5) * END_PS / 1_000;
            let activity = |kind, label, from: u64, to: u64| ActivityRecord {
                host,
                group: 1,
                job: Some(job),
                kind,
                label,
                start_ps: start_ps + from,
                finish_ps: Some(start_ps + to),
                ..ActivityRecord::default()
            };
            run.activities.push(activity(ActivityKind::Computation, 0, 0, 2 * step));
            run.activities.push(activity(ActivityKind::Computation, 1, 2 * step, 4 * step + late));
            run.activities.push(ActivityRecord {
                finish_ps: (job < 2).then_some(start_ps + 7 * step + late),
                flows: 2 * (hosts - 1),
                sent_bytes: 1_875_000,
                received_bytes: 1_875_000,
                ..activity(ActivityKind::Communication, 2 + job, 3 * step, 0)
            });
        }
    }
}

fn observations(run: &mut RunResult, shape: Shape, rng: &mut Rng) {
    let (links, hosts) = (run.links.len() as u32, shape.tors * shape.hosts_per_tor);
    let mut queues = vec![0.0f64; links.min(200) as usize];
    for tick in 1..=400u64 {
        let time_ps = tick * 10_000_000;
        let interval = SeriesKind::Interval;
        run.series.push(SeriesSample { time_ps, value: 10_000.0, entity: 0, index: 0, kind: interval });
        // No activity for a while in between.
        if (200..240).contains(&tick) {
            continue;
        }
        let wave = (tick as f64 / 40.0).sin().max(0.0) * shape.load;
        for (entity, queue) in (0u32..).zip(&mut queues) {
            *queue = (*queue * 0.8 + (rng.unit_f64() - 0.4) * 90_000.0 * (0.2 + wave)).max(0.0);
            let sample = |kind, value| SeriesSample { time_ps, value, entity, index: 0, kind };
            if *queue > 0.0 {
                run.series.push(sample(SeriesKind::QueueBytes, *queue));
            }
            let used = (0.2 + 0.5 * wave / (1.0 + wave) + 0.3 * rng.unit_f64()).min(1.0);
            run.series.push(sample(SeriesKind::LinkUtilisation, used));
            if entity < 4 {
                run.series.push(sample(SeriesKind::PolicyRateBps, RATE_BPS as f64 * used));
                run.series.push(sample(SeriesKind::GoodputBps, RATE_BPS as f64 * used * 0.9));
                run.series.push(sample(SeriesKind::UnfinishedBytes, 1e5 * (400 - tick) as f64));
                for path in 0..4 {
                    let share = 0.25 + 0.1 * (f64::from(path) - 1.5) * wave;
                    run.series.push(SeriesSample { index: path, ..sample(SeriesKind::PathShare, share) });
                }
            }
            if entity < hosts {
                let rate = RATE_BPS as f64 * (0.5 + 0.4 * wave / (1.0 + wave) + 0.1 * rng.unit_f64());
                run.series.push(sample(SeriesKind::HostRateBps, rate));
            }
        }
        for _ in 0..(wave * 12.0) as u64 {
            let roll = rng.below(10);
            let kind = match roll {
                0 => EventKind::Drop,
                1..4 => EventKind::Retransmit,
                4 => EventKind::Timeout,
                _ => EventKind::PfcPause,
            };
            let paused = kind == EventKind::PfcPause;
            let at = time_ps + u64::from(rng.below(10_000_000));
            let mut event = EventRecord {
                value: if paused { 3.0 } else { 1.0 },
                link: Some(rng.below(links)),
                reason: (kind == EventKind::Drop).then_some(DropReason::BufferFull),
                ..EventRecord::new(at, kind, 0)
            };
            if matches!(kind, EventKind::Retransmit | EventKind::Timeout) {
                let lost = EventRecord { flow: Some(3), peer_host: Some(1), queue_pair: Some(2), ..event };
                event = EventRecord { link: None, path: Some(rng.below(4)), ..lost };
            }
            run.events.push(event);
            if paused {
                let resumed = at + u64::from(rng.below(40_000_000));
                run.events.push(EventRecord { time_ps: resumed, kind: EventKind::PfcResume, ..event });
            }
        }
    }
    run.events.sort_by_key(|e| e.time_ps);
}
