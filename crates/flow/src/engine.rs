//! Engine of a run: executes the workload over flows that share links, from one event time to the next.

use pathweave_execution::{Execution, ScaleUpCarrier, ScheduledStep, Step};
use pathweave_records::EndReason;
use pathweave_sim::{Monitor, MonitorDecision, SimError, SimSpec, Snapshot, scale_up_changes};
use pathweave_units::{Duration, Time};
use pathweave_workload::Task;

use crate::agenda::{Event, EventQueue};
use crate::brief::SentShort;
use crate::gauge::LinkLoad;
use crate::heap::IndexedHeap;
use crate::lane::{SendQueue, Service};
use crate::ledger::LinkBytes;
use crate::model::Model;
use crate::network::Network;
use crate::queue::{PortQueue, QueueConstants};
use crate::recovery::RecoveringFlows;
use crate::refuse;
use crate::short::ShortLoads;
use crate::sizes::Sizes;
use crate::slow::SlowRecovery;
use crate::validity::ValidityChecks;
use pathweave_execution::max_min::{FlowId, ResourceId, Solver, Use};

/// Number of events between two calls of the monitor.
const MONITOR_EVERY: u64 = 1 << 16;

/// Run in progress.
pub(crate) struct Engine<'a> {
    pub(crate) spec: &'a SimSpec,
    pub(crate) models: Vec<Model>,
    pub(crate) network: Network<'a>,
    pub(crate) solver: Solver,
    /// Execution of the workload. Its queue pairs are lanes.
    pub(crate) execution: Execution<u32>,
    pub(crate) agenda: EventQueue,
    /// Messages over the scale-up networks of servers, if there are such networks.
    pub(crate) scale_up: Option<ScaleUpCarrier>,
    /// Messages that wait for a path, with the times at which they were posted.
    pub(crate) without_path: Vec<(Time, u32)>,
    pub(crate) lanes: Vec<SendQueue>,
    pub(crate) free_lanes: Vec<u32>,
    /// Services by flow of the solver.
    pub(crate) services: Vec<Option<Service>>,
    pub(crate) completions: IndexedHeap,
    pub(crate) sizes: Sizes,
    pub(crate) law: QueueConstants,
    /// Queues by resource.
    pub(crate) queues: Vec<PortQueue>,
    pub(crate) shorts: ShortLoads,
    pub(crate) sent_shorts: Vec<SentShort>,
    /// Traffic by class: up from its switch, and down to it.
    pub(crate) levels: Vec<[LinkLoad; 2]>,
    /// Traffic sent by each pair of the network.
    pub(crate) levels_of_pairs: Vec<LinkLoad>,
    /// Rate controls by timers. `recovering` is used if messages begin together or wait for each other, `slow` if
    /// they begin at random.
    pub(crate) recovering: RecoveringFlows,
    pub(crate) slow: SlowRecovery,
    pub(crate) ledger: LinkBytes,
    pub(crate) validity: ValidityChecks,
    pub(crate) uses: Vec<Use>,
    pub(crate) touched_flows: Vec<FlowId>,
    pub(crate) touched_resources: Vec<ResourceId>,
    pub(crate) next_change: usize,
    pub(crate) events: u64,
    /// Latest end of the run, with its reason.
    pub(crate) deadline: (Time, EndReason),
    /// Latest time whose events have already been recorded.
    pub(crate) recorded_until: Time,
}

impl<'a> Engine<'a> {
    /// Sets up a run whose links have this share of their capacity.
    ///
    /// # Errors
    /// Errors that also apply to packets, and features that depend on packets.
    pub(crate) fn new(spec: &'a SimSpec, efficiency: f64) -> Result<Self, SimError> {
        let refuse::Admitted { ways, models, connections } = refuse::admit(spec)?;
        let execution =
            Execution::new(spec.graph.clone(), &spec.groups, connections, spec.task_notification()?);
        let spread: Vec<_> = models.iter().map(|model| model.spread).collect();
        let mut solver = Solver::default();
        let network = Network::new(spec, ways, (&spread, efficiency), &mut solver);
        let law =
            models.iter().map(|model| model.law).reduce(QueueConstants::max).expect("messages have groups");
        let mut engine = Engine {
            spec,
            validity: ValidityChecks::new(spec, network.routes.switches(), &models),
            models,
            solver,
            execution,
            agenda: EventQueue::default(),
            without_path: Vec::new(),
            scale_up: match spec.topology.scale_up() {
                Some(network) => Some(ScaleUpCarrier::new(network.clone(), &scale_up_changes(spec)?)),
                None => None,
            },
            lanes: Vec::new(),
            free_lanes: Vec::new(),
            services: Vec::new(),
            completions: IndexedHeap::default(),
            sizes: Sizes::new(&spec.network),
            law,
            queues: Vec::new(),
            shorts: ShortLoads::default(),
            sent_shorts: Vec::new(),
            levels: vec![[LinkLoad::default(); 2]; network.gauges.len()],
            levels_of_pairs: vec![LinkLoad::default(); network.pairs.len()],
            recovering: RecoveringFlows::default(),
            slow: SlowRecovery::default(),
            ledger: LinkBytes::new(&network),
            network,
            uses: Vec::new(),
            touched_flows: Vec::new(),
            touched_resources: Vec::new(),
            next_change: 0,
            events: 0,
            deadline: (spec.run.until.map_or(Time::MAX, |span| Time::ZERO + span), EndReason::TimeLimit),
            recorded_until: Time::ZERO,
        };
        engine.on_network();
        Ok(engine)
    }

    /// Resets the state by resource after resources and pairs have changed.
    pub(crate) fn on_network(&mut self) {
        let resources = self.network.capacity.len();
        self.queues.clear();
        self.queues.resize(resources, PortQueue::default());
        self.shorts = ShortLoads::new(resources);
        self.sizes.on_paths(&self.network.profiles, self.network.efficiency);
    }

    /// Runs to the end. Returns the reason of the end and its time.
    pub(crate) fn run(&mut self, monitor: &mut dyn Monitor) -> (EndReason, Time) {
        let most_events = self.spec.run.max_events.unwrap_or(u64::MAX);
        let mut now = Time::ZERO;
        let mut looked_at = 0;
        let end = loop {
            let next = self.next();
            if let Some(over) = self.execution.over_since()
                && over < next
            {
                break (EndReason::Completed, over);
            }
            let (until, why) = self.deadline;
            if next > until {
                break (why, until);
            }
            if next == Time::MAX {
                break (EndReason::Stalled, now);
            }
            now = next;
            self.process_time(now);
            if self.events - looked_at >= MONITOR_EVERY {
                looked_at = self.events;
                if monitor.look(&self.snapshot(now)) == MonitorDecision::Stop {
                    self.stop(now, EndReason::Interrupted);
                }
            }
            if self.events >= most_events {
                self.stop(now, EndReason::EventLimit);
            }
        };
        monitor.look(&self.snapshot(now));
        end
    }

    /// Ends the run at the first time after all recorded events.
    fn stop(&mut self, now: Time, why: EndReason) {
        let at = self.recorded_until.max(now);
        if at < self.deadline.0 {
            self.deadline = (at, why);
        }
    }

    /// Returns the time of the next event.
    fn next(&self) -> Time {
        let changes = self.network.routes.changes();
        let change = changes.get(self.next_change).map_or(Time::MAX, |change| change.at);
        let agenda = self.agenda.next();
        let scale_up = self.scale_up.as_ref().map_or(Time::MAX, ScaleUpCarrier::next);
        let completion = self.completions.first().map_or(Time::MAX, |(at, _)| Time::from_ps(at));
        let tasks = self.execution.next().unwrap_or(Time::MAX);
        // Loads are updated only as long as anything else happens.
        let rest = change.min(agenda).min(scale_up).min(completion).min(tasks);
        if rest == Time::MAX { rest } else { rest.min(self.tick()) }
    }

    /// Returns the time of the next update of short-message loads or recovering flows.
    fn tick(&self) -> Time {
        self.shorts.due.min(self.recovering.due).min(self.slow.due)
    }

    /// Handles all events of one time, then solves for the rates from then on.
    fn process_time(&mut self, now: Time) {
        self.agenda.begin(now);
        self.change(now);
        self.run_scale_up(now);
        while let Some((at, flow)) = self.completions.first()
            && at <= now.as_ps()
        {
            self.events += 1;
            self.finish(now, flow);
        }
        if self.shorts.due <= now {
            self.shorts.tick(now, &self.network.capacity, &mut self.solver);
        }
        if self.recovering.due <= now {
            let (services, lanes) = (&self.services[..], &mut self.lanes[..]);
            let models = (&self.models[..], &self.network.at_switch[..]);
            self.recovering.tick(now, (services, lanes), models, &mut self.solver);
        }
        if self.slow.due <= now {
            self.slow.tick(now, &self.services, &mut self.solver);
        }
        let after = now + Duration::from_ps(1);
        let mut root = self.execution.root_before(after);
        loop {
            let begins = root.map(|due| Event::Step(due.step).code());
            let first = self.agenda.first();
            if let Some(code) = begins
                && first.is_none_or(|first| code <= first)
            {
                self.events += 1;
                self.on_event(now, Event::from_code(code));
                root = self.execution.root_before(after);
            } else if let Some(code) = first {
                self.agenda.pop(code);
                self.events += 1;
                self.on_event(now, Event::from_code(code));
            } else {
                break;
            }
        }
        if self.execution.next().is_some_and(|at| at <= now) {
            self.execution.settle_barriers(after);
            self.schedule_steps();
        }
        self.deliver_shorts(now);
        self.settle(now);
    }

    fn change(&mut self, now: Time) {
        let due = self.next_change;
        while let Some(&change) = self.network.routes.changes().get(self.next_change)
            && change.at <= now
        {
            self.next_change += 1;
            self.events += 1;
            self.network.routes.apply(now, change.action);
        }
        if self.next_change > due {
            self.rebuild(now);
            self.post_waiting(now);
        }
    }

    /// Schedules the steps of tasks that have become known.
    pub(crate) fn schedule_steps(&mut self) {
        while let Some(ScheduledStep { at, step, .. }) = self.execution.next_step() {
            self.agenda.push(at, Event::Step(step));
        }
    }

    fn on_event(&mut self, now: Time, event: Event) {
        match event {
            Event::Step(step) => self.on_step(now, step),
            Event::Delivered { message, part } => self.on_delivered(now, message, part),
            Event::Acknowledged { message } => self.on_acknowledged(now, message),
            Event::LaneFree(lane) => {
                self.lanes[lane as usize].waits_until_free = false;
                self.serve_next(now, lane);
            }
        }
    }

    fn on_step(&mut self, now: Time, step: Step) {
        let (Step::Told { task, .. } | Step::Computed(task) | Step::Begin(task)) = step;
        let home = match self.spec.graph.task(task) {
            Task::Message(message) => Some(message.src),
            Task::Compute(compute) => compute.host,
        };
        // Steps of barriers are settled inside the execution and never appear here.
        let Some(home) = home else { return };
        if let Some(message) = self.execution.step(now, home, step) {
            self.post(now, message);
        }
        self.schedule_steps();
    }

    fn snapshot(&self, now: Time) -> Snapshot {
        Snapshot {
            now,
            until: self.spec.run.until,
            events: self.events,
            packet_hops: 0,
            bytes_done: self.execution.bytes_done(),
            bytes_total: self.spec.graph.total_bytes(),
            flows_done: self.execution.flows_done(),
            flows_total: self.spec.graph.messages().len(),
        }
    }
}
