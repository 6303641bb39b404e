//! Traffic of a scenario on a lab, carried by the real datapath, with results in the simulator's schema.
//!
//! # Time
//!
//! A lab with a thousandth of the rates is its network in slow motion. Results use the network's time: a second of
//! the lab counts as a millisecond, so the results are comparable with the simulator's for the same scenario. Delays
//! of this machine's software are scaled down likewise. `wall_s` of the results is real time.

mod capacity;
mod devices;
mod ends;
mod records;
mod series;
mod traffic;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use pathweave_execution::Connections;
use pathweave_records::RunResult;
use pathweave_sim::SimSpec;
use pathweave_units::Time;

use crate::error::{LabError, WithContext};
use crate::lab::Lab;
use crate::schedule::Schedule;
use crate::settings::{MIN_RATE, RateScale, Settings};
pub use capacity::Load;
use capacity::{Demand, Measured, Ticks};
pub use devices::{HostPort, OpenDevice, over_sockets};
use ends::Hosts;
use series::CounterSampler;
use traffic::Traffic;

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunProgress {
    /// Time of the network since the start.
    pub now: Time,
    /// Payload delivered so far, in bytes.
    pub bytes_done: u128,
    /// Payload of all messages, in bytes.
    pub bytes_total: u128,
}

/// Result of a run.
#[derive(Debug)]
pub struct LabRun {
    /// Records of the run. The digest is 0, because no two runs of a real network are equal.
    pub result: RunResult,
    /// Notes on differences from the scenario.
    pub notes: Vec<String>,
    /// Load of this machine during the run.
    pub load: Load,
}

/// Clock of the network's time in a lab.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
    scale: RateScale,
}

impl Clock {
    fn now(&self) -> Time {
        let ps = self.start.elapsed().as_secs_f64() * self.scale.share() * 1e12;
        Time::from_ps(ps as u64)
    }
    /// Converts a duration of the network's time to the lab's time.
    fn real(&self, span: pathweave_units::Duration) -> Duration {
        Duration::from_secs_f64((span.as_secs_f64() / self.scale.share()).min(1e9))
    }
}

/// Returns a warning if this machine has too few cores for all that the hosts of `spec` send with these settings,
/// with a rate scale that would fit. This is an estimate; the result of a run contains the measurement.
pub fn capacity_warning(spec: &SimSpec, settings: &Settings) -> Option<String> {
    Demand::of(spec, settings).warning(capacity::cores(), settings.rate_scale)
}

/// Returns the largest power of ten as a rate scale with which this machine can run `spec`. The fastest link then has
/// at most 1 Gb/s. The machine has enough cores even if each packet arrives alone. The delay that software adds to a
/// round trip, in the network's time, is at most the network's round-trip time. If no scale satisfies this, returns
/// the smallest that links allow.
pub fn recommended_rate_scale(spec: &SimSpec, settings: &Settings) -> RateScale {
    fitting_on(capacity::cores(), spec, settings)
}

fn fitting_on(cores: usize, spec: &SimSpec, settings: &Settings) -> RateScale {
    let round_trip_s = ends::longest_round_trip_s(spec);
    let links = || spec.topology.links().iter().map(|link| link.rate);
    let mut scale = RateScale::automatic(links());
    loop {
        let settings = Settings { rate_scale: scale, ..settings.clone() };
        let is_quick = ends::hosts_rtt().as_secs_f64() * scale.share() <= round_trip_s;
        let slower = scale.a_tenth();
        let is_slowest = links().any(|rate| slower.apply(rate) < MIN_RATE);
        if is_slowest || is_quick && Demand::of(spec, &settings).has_capacity_for_single_packets(cores) {
            return scale;
        }
        scale = slower;
    }
}

/// Runs a scenario's traffic and faults on a lab of its topology. `open` opens the devices of hosts. `look` receives
/// the progress many times a second; when it returns false, the run ends with a partial result. If the machine did
/// not keep up, so that the result does not represent the network, `ended_detail` states that with the measurements.
///
/// # Errors
/// - A scheme with modified settings, which the datapath does not support.
/// - More connections or bytes than the limits of a lab.
/// - A host that cannot open its device or reach another one.
/// - A fault that cannot be applied.
/// - Payload that arrives changed, which would be a bug.
pub fn run(
    lab: &mut Lab,
    spec: &SimSpec,
    open: &OpenDevice<'_>,
    look: &mut dyn FnMut(RunProgress) -> bool,
) -> Result<LabRun, LabError> {
    let scale = lab.plan().settings().rate_scale;
    let schedule = Schedule::new(lab.plan().topology(), &spec.faults, spec.switch.reroute_after, scale)?;
    let mut notes = schedule.notes().to_vec();
    if spec.routing != pathweave_sim::RouteChoice::Switches {
        notes.push("nobody chooses whole routes in a lab: its switches choose ports, by a hash".to_owned());
    }
    let mut connections = Connections::new(&spec.graph, |group| &spec.scheme_of(group).scheme.service);
    let ends = Hosts::open(lab, spec, open, &mut connections, &mut notes)?;
    let later = schedule.apply_initial(lab)?;
    let before = records::LinkCounters::read(lab)?;
    let (cpu_s, ticks, paced) = (cpu_s(), Ticks::now(), ends.paced());
    let meter =
        CounterSampler::new(lab, &spec.observe, ends.devices(), &Clock { start: Instant::now(), scale })?;
    let clock = Clock { start: Instant::now(), scale };
    let over = AtomicBool::new(false);
    let mut traffic = Traffic::new(spec, &ends, connections, clock)?;
    let (ended, changes, series) = std::thread::scope(|scope| {
        let (lab, over) = (&mut *lab, &over);
        let changes = scope.spawn(|| later.run(lab, &|| over.load(Ordering::Relaxed)));
        let series = meter.as_ref().map(|meter| scope.spawn(move || meter.sample_until(&clock, over)));
        let ended = traffic.run(look);
        over.store(true, Ordering::Relaxed);
        let changes = joined(changes);
        (
            ended.map(|ended| (ended, clock.now(), traffic.late(), traffic.finish())),
            changes,
            series.map(joined),
        )
    });
    changes?;
    let series = series.transpose().context(|| "read the counters of the lab".to_owned())?;
    let (ended, end, late, done) = ended?;
    let measured = Measured {
        cores: capacity::cores(),
        wall_s: clock.start.elapsed().as_secs_f64(),
        process_cpu_s: self::cpu_s() - cpu_s,
        machine_busy: ticks.zip(Ticks::now()).and_then(|(before, now)| now.busy_since(&before)),
        late: late.max(ends.paced().late_since(&paced)),
    };
    ends.verify(&done.flows)?;
    let fabric = records::LinkCounters::read(lab)?;
    let wall = clock.start.elapsed();
    let mut result = records::result(spec, done, fabric.since(&before), end);
    result.series = series.unwrap_or_default();
    result.events = records::events(&schedule, &spec.faults, lab.plan().topology(), scale, end);
    result.info.ended = ended;
    result.info.wall_s = wall.as_secs_f64();
    result.info.cpu_s = measured.process_cpu_s;
    let demand = Demand::of(spec, lab.plan().settings());
    result.info.ended_detail = measured.overload_reason(&demand, scale).unwrap_or_default();
    Ok(LabRun { result, notes, load: measured.load() })
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns the CPU time of this process so far in seconds. All hosts of a lab run in it.
fn cpu_s() -> f64 {
    use nix::sys::time::TimeValLike;
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF);
    usage.map_or(0.0, |usage| {
        (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use pathweave_sim::NamedScheme;
    use pathweave_topo::{Build, Star};
    use pathweave_units::{Bytes, Duration as Span, Rate};
    use pathweave_workload::{Placement, RingAllReduce, Traffic, WorkloadConfig, WorkloadEnv, build};

    /// Four hosts in a ring at one switch, at 10 Gb/s, with this delay on each link.
    fn ring(delay: Span) -> SimSpec {
        let star = Star { rate: Rate::from_gbps(10), delay, ..Star::new(4) };
        let topology = star.build(Path::new(".")).unwrap();
        let ring = Traffic::RingAllReduce(RingAllReduce {
            size: Bytes::new(1_000_000),
            group_size: None,
            placement: Placement::default(),
            repetitions: 1,
            compute: Span::ZERO,
        });
        let env = WorkloadEnv::new(4, Rate::from_gbps(10));
        let graph = build(&[WorkloadConfig::new(ring)], &env).unwrap().graph;
        SimSpec::new("ring", topology, graph, NamedScheme::find("udmp").unwrap())
    }

    #[test]
    fn a_scale_fits_where_software_is_no_slower_than_the_network() {
        let settings = Settings::new(RateScale::FULL);
        let scale = |cores, delay| fitting_on(cores, &ring(delay), &settings).to_string();
        // A round trip has four links: 2.9 us of delay each, and 4,396 bytes over two hops at 3.5 us each, 18.6 us in
        // total. 1.2 ms of software count as 12 us at 1/100.
        assert_eq!(scale(64, Span::from_ns(2_900)), "1/100");
        // Four hosts at 100 Mb/s send 12,207 packets a second, with 97 us of CPU time each.
        assert_eq!([1, 2].map(|cores| scale(cores, Span::from_ns(2_900))), ["1/1000", "1/100"]);
        // Without delays the round trip takes 7 us.
        assert_eq!(scale(64, Span::ZERO), "1/1000");
        // A link across an ocean is slower than the software.
        assert_eq!(scale(64, Span::from_ms(10)), "1/10");
    }
}
