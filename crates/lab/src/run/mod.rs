//! A scenario's traffic on a lab, moved by the real datapath, with results in the simulator's schema.
//!
//! # Time
//!
//! A lab with a thousandth of the rates is its network in slow motion. Results are told in the network's time: a second
//! of the lab counts as a millisecond, so that they stand beside the simulator's for the same scenario. What the
//! software of this machine takes is thereby shrunk like everything else. `wall_s` of the results is real.

mod ends;
mod pace;
mod records;
mod series;
mod traffic;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use pathweave_datapath::{Device, DeviceConfig};
use pathweave_execution::Connections;
use pathweave_results::RunResult;
use pathweave_sim::SimSpec;
use pathweave_units::Time;

use crate::error::{Doing, LabError};
use crate::lab::Lab;
use crate::schedule::Schedule;
use crate::settings::{MIN_RATE, RateScale, Settings};
use ends::Ends;
use pace::{Demand, Measured, Ticks};
use series::Meter;
use traffic::Traffic;

/// What a run has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Time of the network since the start.
    pub now: Time,
    /// Payload delivered so far.
    pub bytes_done: u128,
    /// Payload of all messages.
    pub bytes_total: u128,
}

/// How a run went beside its records.
#[derive(Debug)]
pub struct LabRun {
    /// The records. The digest is 0: no two runs of a real network are the same.
    pub result: RunResult,
    /// What differs from the scenario, as sentences.
    pub notes: Vec<String>,
    /// What the run took of this machine.
    pub load: Load,
}

/// What a run took of this machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Cores that the process may use.
    pub cores: usize,
    /// The part of all cores' time that none of them was idle, 0 to 1, whoever kept them busy.
    pub busy: f64,
    /// How much later than asked for loops woke up on the mean.
    pub late: Duration,
}

/// Where the device of a host is opened: on a thread in the host's network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// The first network interface of the host, which has its address.
    pub interface: String,
    /// Bytes of the longest IP packet of its link.
    pub mtu_bytes: u32,
}

/// Opens the device of a host, or says why it cannot be.
pub type OpenDevice<'a> = dyn Fn(&HostPort, DeviceConfig) -> Result<Device, String> + Sync + 'a;

/// A device over UDP sockets, which use all ports of a host.
///
/// # Errors
/// What the device says.
pub fn over_sockets(_: &HostPort, config: DeviceConfig) -> Result<Device, String> {
    Device::open(config).map_err(|why| why.to_string())
}

/// The network's time in a lab.
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
    /// The lab's time for a span of the network's.
    fn real(&self, span: pathweave_units::Duration) -> Duration {
        Duration::from_secs_f64((span.as_secs_f64() / self.scale.share()).min(1e9))
    }
}

/// What is wrong with running `spec` in a lab with these settings on this machine, if its cores are too few for all that
/// hosts send, and the scale of rates that would fit. An estimate: how the run went is in its result.
pub fn foreseen_shortage(spec: &SimSpec, settings: &Settings) -> Option<String> {
    Demand::of(spec, settings).foreseen(pace::cores(), settings.rate_scale)
}

/// The scale of rates at which this machine carries what `spec` sends, with these settings otherwise, and at which a round trip
/// takes no longer than in the network, with what hosts made of software add to it: the largest power of ten that brings
/// the fastest link down to 1 Gb/s at least. Where none does, the smallest that links allow.
pub fn fitting_scale(spec: &SimSpec, settings: &Settings) -> RateScale {
    let round_trip_s = ends::longest_round_trip_s(spec);
    let mut scale = RateScale::automatic(spec.topology.links().iter().map(|link| link.rate));
    loop {
        let settings = Settings { rate_scale: scale, ..settings.clone() };
        let is_quick = ends::hosts_rtt().as_secs_f64() * scale.share() <= round_trip_s;
        let slower = scale.a_tenth();
        let slowest = spec.topology.links().iter().map(|link| slower.apply(link.rate)).min();
        if is_quick && foreseen_shortage(spec, &settings).is_none()
            || slowest.is_none_or(|rate| rate < MIN_RATE)
        {
            return scale;
        }
        scale = slower;
    }
}

/// Runs a scenario's traffic and faults on a lab of its topology. Hosts get their devices of `open`. `look` is told how far it is, many times a second;
/// once it says no, the run ends and what there is becomes the result. Where the machine did not keep up, so that the
/// result is not of the network, its `ended_detail` says so with what was measured.
///
/// # Errors
/// Schemes with settings of their own, which the datapath does not take; more connections or bytes than a machine should
/// carry; a host that cannot open its device or reach another; a fault that cannot be made; and payload that arrives
/// changed, which would be a bug.
pub fn run(
    lab: &mut Lab,
    spec: &SimSpec,
    open: &OpenDevice<'_>,
    look: &mut dyn FnMut(Seen) -> bool,
) -> Result<LabRun, LabError> {
    let scale = lab.plan().settings().rate_scale;
    let schedule = Schedule::new(lab.plan().topology(), &spec.faults, spec.switch.reroute_after, scale)?;
    let mut notes = schedule.notes().to_vec();
    if spec.routing != pathweave_sim::RouteChoice::Switches {
        notes.push("nobody chooses whole routes in a lab: its switches choose ports, by a hash".to_owned());
    }
    let mut connections = Connections::new(&spec.graph, |group| &spec.scheme_of(group).scheme.service);
    let ends = Ends::open(lab, spec, open, &mut connections, &mut notes)?;
    let before = records::Fabric::read(lab)?;
    let (cpu_s, ticks, paced) = (cpu_s(), Ticks::now(), ends.paced());
    let meter = Meter::new(lab, &spec.observe, ends.devices(), &Clock { start: Instant::now(), scale })?;
    let clock = Clock { start: Instant::now(), scale };
    let over = AtomicBool::new(false);
    let mut traffic = Traffic::new(spec, &ends, connections, clock)?;
    let (ended, changes, series) = std::thread::scope(|scope| {
        let (lab, over) = (&mut *lab, &over);
        let changes = scope.spawn(|| schedule.play(lab, &|| over.load(Ordering::Relaxed)));
        let series = meter.as_ref().map(|meter| scope.spawn(move || meter.watch(&clock, over)));
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
    let series = series.transpose().doing(|| "read the counters of the lab".to_owned())?;
    let (ended, end, late, done) = ended?;
    let measured = Measured {
        cores: pace::cores(),
        wall_s: clock.start.elapsed().as_secs_f64(),
        process_cpu_s: self::cpu_s() - cpu_s,
        machine_busy: ticks.zip(Ticks::now()).and_then(|(before, now)| now.busy_since(&before)),
        late: late.max(ends.paced().late_since(&paced)),
    };
    ends.verify(&done.flows)?;
    let fabric = records::Fabric::read(lab)?;
    let wall = clock.start.elapsed();
    let mut result = records::result(spec, done, fabric.since(&before), end);
    result.series = series.unwrap_or_default();
    result.events = records::events(&schedule, &spec.faults, lab.plan().topology(), scale, end);
    result.info.ended = ended;
    result.info.wall_s = wall.as_secs_f64();
    result.info.cpu_s = measured.process_cpu_s;
    let demand = Demand::of(spec, lab.plan().settings());
    result.info.ended_detail = measured.verdict(&demand, scale).unwrap_or_default();
    Ok(LabRun { result, notes, load: measured.load() })
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// CPU time of this process so far, in seconds: all hosts of a lab run in it.
fn cpu_s() -> f64 {
    use nix::sys::time::TimeValLike;
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF);
    usage.map_or(0.0, |usage| {
        (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6
    })
}
