//! Main loop of a run: all shards execute one window after another in parallel.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pathweave_execution::Connections;
use pathweave_records::{EndReason, FlowSink, RunResult};
use pathweave_units::{Duration, Time};

use crate::calendar::Calendar;
use crate::coordinator::Coordinator;
use crate::division::Division;
use crate::faults::agenda;
use crate::footprint::Weight;
use crate::forwarding;
use crate::locked_shards::LockedShards;
use crate::mailbox::Mailboxes;
use crate::monitor::{Monitor, MonitorDecision, NoMonitor};
use crate::paths::check_distances;
use crate::plan::NetworkPlan;
use crate::pulse::Progress;
use crate::ranks::{RankExchange, Ranks};
use crate::records::End;
use crate::rounds::{Rounds, make_all, with_crew};
use crate::shard::{Shard, queue_pair_numbers};
use crate::spec::{SimError, SimSpec};
use crate::tap::Tap;

/// Number of events between two calls of the monitor.
const MONITOR_EVERY: u64 = 1 << 16;

/// Number of events per shard in a window below which the main thread runs the next window alone. Waking the other
/// threads would take longer.
const WORTH_WAKING: u64 = 32;

/// Run in progress.
pub(crate) struct Runner<'a, const C: usize> {
    spec: &'a SimSpec,
    /// Shards of this process, each executed by its own thread.
    shards: Vec<Mutex<Shard<'a, C>>>,
    /// Range of shard numbers of each rank.
    ranks: Vec<Range<u16>>,
    central: Coordinator<'a>,
    /// For tests: random generator of window lengths.
    #[cfg(test)]
    pub(crate) shuffle: Option<pathweave_units::Rng>,
}

/// Runs a spec to its end and returns the observations. The simulator reads no clock, so the caller adds the wall
/// time and the CPU time of the calling thread.
pub fn run(spec: &SimSpec, monitor: &mut dyn Monitor) -> Result<RunResult, SimError> {
    Ok(Simulation::new(spec)?.run(monitor))
}

/// Run that is set up but not started, so that callers can time set-up and execution separately.
pub struct Simulation<'a>(Width<'a>);

/// Run with storage for 2, 4 or 8 classes in each port. With the usual two classes a port fits two cache lines.
enum Width<'a> {
    Two(Box<Runner<'a, 2>>),
    Four(Box<Runner<'a, 4>>),
    Eight(Box<Runner<'a, 8>>),
}

impl<'a> Simulation<'a> {
    /// Builds the fabric and the hosts.
    pub fn new(spec: &'a SimSpec) -> Result<Self, SimError> {
        let threads = spec.threads.map_or(1, std::num::NonZeroU16::get);
        Simulation::of(spec, &Division::new(spec, &[threads])?, RankExchange::alone())
    }

    /// Builds the run that [`Simulation::try_out`] needs, in one shard, whatever number of threads will execute the
    /// spec later.
    pub fn whole(spec: &'a SimSpec) -> Result<Self, SimError> {
        Simulation::of(spec, &Division::new(spec, &[1])?, RankExchange::alone())
    }

    fn of(spec: &'a SimSpec, division: &Division, meeting: RankExchange<'a>) -> Result<Self, SimError> {
        spec.switch.validate().map_err(SimError::Switch)?;
        spec.check_nics()?;
        Ok(Simulation(match spec.switch.classes() {
            0..=2 => Width::Two(Box::new(Runner::new(spec, division, meeting)?)),
            3..=4 => Width::Four(Box::new(Runner::new(spec, division, meeting)?)),
            _ => Width::Eight(Box::new(Runner::new(spec, division, meeting)?)),
        }))
    }

    /// Registers a tap, if any, that gets every packet that reaches a host, in order of time.
    #[must_use]
    pub fn watched_by(mut self, tap: Option<&'a mut dyn Tap>) -> Self {
        let Some(tap) = tap else { return self };
        match &mut self.0 {
            Width::Two(runner) => runner.set_tap(tap),
            Width::Four(runner) => runner.set_tap(tap),
            Width::Eight(runner) => runner.set_tap(tap),
        }
        self
    }

    /// Registers a sink, if any, that gets the records of flows in order, as soon as neither a record nor those
    /// before it can change. The result then holds no flow records.
    #[must_use]
    pub fn recorded_by(mut self, sink: Option<&'a mut dyn FlowSink>) -> Self {
        match &mut self.0 {
            Width::Two(runner) => runner.central.leaving.sink = sink,
            Width::Four(runner) => runner.central.leaving.sink = sink,
            Width::Eight(runner) => runner.central.leaving.sink = sink,
        }
        self
    }

    /// Runs only the first window, to detect errors that only a run can detect. Makes no records.
    pub fn try_out(self) {
        match self.0 {
            Width::Two(runner) => runner.try_out(),
            Width::Four(runner) => runner.try_out(),
            Width::Eight(runner) => runner.try_out(),
        }
    }

    /// Runs to the end.
    pub fn run(self, monitor: &mut dyn Monitor) -> RunResult {
        self.run_and_weigh(monitor).0
    }

    /// Runs to the end. Also returns the memory that the shards occupied.
    pub fn run_and_weigh(self, monitor: &mut dyn Monitor) -> (RunResult, Weight) {
        self.finish(monitor).expect("a run in one process has its result there")
    }

    fn finish(self, monitor: &mut dyn Monitor) -> Option<(RunResult, Weight)> {
        match self.0 {
            Width::Two(runner) => runner.run(monitor),
            Width::Four(runner) => runner.run(monitor),
            Width::Eight(runner) => runner.run(monitor),
        }
    }
}

/// One rank's share of a run over several processes. Every rank creates one from the same spec and runs it.
pub struct RankSimulation<'a>(Simulation<'a>);

impl<'a> RankSimulation<'a> {
    /// Builds the fabric and the hosts. `spec.threads` is the number of threads of this rank and may differ between
    /// ranks.
    ///
    /// # Errors
    /// As [`Simulation::new`], and if there are more ranks than nodes, or ranks have different runs or versions. All
    /// ranks return the same error.
    pub fn new(spec: &'a SimSpec, ranks: &'a mut dyn Ranks) -> Result<Self, SimError> {
        let mut meeting = RankExchange::of(ranks);
        let division = Division::among(spec, &mut meeting)?;
        Simulation::of(spec, &division, meeting).map(RankSimulation)
    }

    /// Registers a tap, if any, that gets every packet that reaches a host, in order of time. All ranks must call
    /// this. The tap of rank 0 gets the packets of all ranks.
    #[must_use]
    pub fn watched_by(self, tap: Option<&'a mut dyn Tap>) -> Self {
        RankSimulation(self.0.watched_by(tap))
    }

    /// Registers a sink, if any, that gets the records of all flows at the end, at rank 0. The result then holds no
    /// flow records.
    #[must_use]
    pub fn recorded_by(self, sink: Option<&'a mut dyn FlowSink>) -> Self {
        RankSimulation(self.0.recorded_by(sink))
    }

    /// Runs to the end. Rank 0 returns the result. The monitor of any rank can end the run, and observes the progress
    /// of all ranks.
    pub fn run(self, monitor: &mut dyn Monitor) -> Option<RunResult> {
        self.0.finish(monitor).map(|(result, _)| result)
    }
}

/// Current window, read by the threads that execute it.
#[derive(Default)]
struct Order {
    end_ps: AtomicU64,
    /// Number of windows so far.
    number: AtomicUsize,
}

impl Order {
    fn next(&self, end: Time) {
        self.end_ps.store(end.as_ps(), Ordering::Relaxed);
        self.number.fetch_add(1, Ordering::Relaxed);
    }

    fn end(&self) -> Time {
        Time::from_ps(self.end_ps.load(Ordering::Relaxed))
    }

    fn number(&self) -> usize {
        self.number.load(Ordering::Relaxed)
    }
}

impl<'a, const C: usize> Runner<'a, C> {
    /// Builds all shards of this process.
    pub(crate) fn new(
        spec: &'a SimSpec,
        division: &Division,
        meeting: RankExchange<'a>,
    ) -> Result<Self, SimError> {
        let mut switch = spec.switch.clone();
        switch.forwarding.kind = Some(forwarding::of_run(spec)?);
        let connections = Connections::new(&spec.graph, |group| &spec.scheme_of(group).scheme.service);
        let queue_pairs: Arc<[[u32; 2]]> = queue_pair_numbers(spec, &connections)?.into();
        let places = division.places(meeting.own());
        let plan = Arc::new(NetworkPlan::new(spec, &switch, &places[0])?);
        let copies = std::iter::repeat_n(connections, places.len());
        let parts = make_all(places.into_iter().zip(copies).collect(), |(place, connections)| {
            Shard::new(spec, plan.clone(), place, queue_pairs.clone(), connections)
        });
        let shards = parts.into_iter().collect::<Result<Vec<Shard<'a, C>>, SimError>>()?;
        let agenda = agenda(&spec.topology, &plan.map, &spec.faults, &switch)?;
        check_distances(spec, &plan.routes)?;
        Ok(Runner {
            central: Coordinator::new(spec, Calendar::new(spec, agenda), meeting, plan),
            shards: shards.into_iter().map(Mutex::new).collect(),
            ranks: division.ranks().to_vec(),
            spec,
            #[cfg(test)]
            shuffle: None,
        })
    }

    /// Iterates over the shards of this process.
    pub(crate) fn shards(&mut self) -> impl Iterator<Item = &mut Shard<'a, C>> {
        self.shards.iter_mut().map(|shard| shard.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    fn set_tap(&mut self, tap: &'a mut dyn Tap) {
        self.central.tap = Some(tap);
        self.shards().for_each(|shard| {
            shard.observers.seen = Some(Vec::new());
            #[cfg(feature = "hops")]
            shard.network.fabric.record_hops();
        });
    }

    fn try_out(mut self) {
        let boxes = Mailboxes::new(self.ranks.clone(), self.central.meeting.own());
        self.play(&boxes, 1, &mut NoMonitor);
    }

    pub(crate) fn run(mut self, monitor: &mut dyn Monitor) -> Option<(RunResult, Weight)> {
        let most = self.spec.run.max_events.unwrap_or(u64::MAX);
        let boxes = Mailboxes::new(self.ranks.clone(), self.central.meeting.own());
        let ((how, pulse), others_cpu_s) = self.play(&boxes, most, monitor);
        let Runner { shards, mut central, .. } = self;
        let mut whole = LockedShards::new(&shards, &boxes);
        monitor.look(&central.snapshot(&pulse, how.2));
        central.take_last_notes(&mut whole);
        central.into_result(&mut whole, how, (pulse, others_cpu_s))
    }

    /// Runs until the end or until `max_events`. Returns the end and the progress of the run, and the CPU time of the
    /// other threads in seconds.
    fn play(
        &mut self,
        boxes: &Mailboxes,
        max_events: u64,
        monitor: &mut dyn Monitor,
    ) -> ((End, Progress), f64) {
        let (shards, order) = (&self.shards, Order::default());
        let round = |part: usize| {
            let mut shard = shards[part].lock().unwrap_or_else(PoisonError::into_inner);
            shard.round(order.end(), boxes, order.number());
        };
        let mut play = Play {
            spec: self.spec,
            shards,
            boxes,
            order: &order,
            central: &mut self.central,
            #[cfg(test)]
            shuffle: self.shuffle.take(),
        };
        with_crew(shards.len(), round, |rounds| play.go_on(rounds, max_events, monitor))
    }
}

/// Borrowed state of a run for its main loop.
struct Play<'p, 'a, const C: usize> {
    spec: &'a SimSpec,
    shards: &'p [Mutex<Shard<'a, C>>],
    boxes: &'p Mailboxes,
    order: &'p Order,
    central: &'p mut Coordinator<'a>,
    #[cfg(test)]
    shuffle: Option<pathweave_units::Rng>,
}

impl<const C: usize> Play<'_, '_, C> {
    fn go_on(
        &mut self,
        rounds: &mut Rounds<'_, impl Fn(usize) + Sync>,
        max_events: u64,
        monitor: &mut dyn Monitor,
    ) -> (End, Progress) {
        let until = self.spec.run.until.map_or(Time::MAX, |span| Time::ZERO + span + Duration::from_ps(1));
        let little = WORTH_WAKING * self.shards.len() as u64;
        let (mut looked_at, mut events, mut latest_events) = (0, 0, 0);
        let mut whole = LockedShards::new(self.shards, self.boxes);
        let mut pulse = self.central.pulse(whole.pulse(&[]));
        let end = loop {
            if pulse.stop {
                break (EndReason::Interrupted, String::new(), pulse.latest);
            }
            if pulse.events >= max_events {
                break (EndReason::EventLimit, String::new(), pulse.latest);
            }
            let mut next = pulse.next;
            let longest = whole.shards[0].windows.longest;
            // Hosts may have simulated up to one window beyond the end of the last task. All of them therefore
            // simulate this window, wherever the task ended.
            let over = pulse.outstanding.ended_at();
            let stop = over.map_or(Time::MAX, |over| over.saturating_add(longest));
            if let Some(over) = over.filter(|_| next >= stop) {
                break (EndReason::Completed, String::new(), over);
            }
            if next == Time::MAX {
                if !self.central.calendar.has_faults() && !pulse.any_paused {
                    break (EndReason::Stalled, String::new(), pulse.latest);
                }
                // A repair may resume traffic. The PFC watch reports pauses that do not end.
                next = self.central.calendar.next();
            }
            if let Some((at, duty)) = self.central.calendar.first(next) {
                if at >= until {
                    break (EndReason::TimeLimit, String::new(), until - Duration::from_ps(1));
                }
                match self.central.on_duty(&mut whole, at, duty) {
                    Ok(now) => pulse = now,
                    Err((reason, detail)) => break (reason, detail, at),
                }
                continue;
            }
            if next >= until {
                break (EndReason::TimeLimit, String::new(), until - Duration::from_ps(1));
            }
            let end = next.saturating_add(self.window(longest));
            let end = end.min(self.central.calendar.next()).min(until).min(stop);
            drop(whole);
            self.order.next(end);
            if latest_events < little {
                rounds.alone();
            } else {
                rounds.together();
            }
            whole = LockedShards::new(self.shards, self.boxes);
            pulse = self.central.after_window(&mut whole, end, self.order.number());
            let here = whole.events();
            latest_events = here - events;
            events = here;
            if pulse.events - looked_at >= MONITOR_EVERY {
                looked_at = pulse.events;
                let control = monitor.look(&self.central.snapshot(&pulse, pulse.latest));
                self.central.stop |= control == MonitorDecision::Stop;
                // Other ranks learn of the stop with the next window.
                pulse.stop |= self.central.stop && !self.central.meeting.several();
            }
        };
        (end, pulse)
    }

    /// Returns the length of the next window. In tests it is random, up to `longest`.
    fn window(&mut self, longest: Duration) -> Duration {
        #[cfg(test)]
        if let Some(rng) = &mut self.shuffle {
            let thousandths = 1 + u64::from(rng.below(1_000));
            return Duration::from_ps((longest.as_ps() / 1_000 * thousandths).max(1));
        }
        longest
    }
}
