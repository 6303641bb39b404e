//! The main loop: window by window, fabric, hosts and workload.

use pathweave_execution::{Connections, Execution};
use pathweave_fabric::{Arrived, PfcTrouble, Step};
use pathweave_results::{EndReason, EventKind, RunResult};
use pathweave_transport::Event;
use pathweave_units::{Duration, HostId, QpNum, Time};
use pathweave_wire::Body;

use crate::calendar::{Calendar, Duty};
use crate::check::Ledger;
use crate::digest::Trace;
use crate::faults::agenda;
use crate::followed::{Followed, Inspect};
use crate::footprint::Footprint;
use crate::forwarding;
use crate::groups::GroupSums;
use crate::host::Host;
use crate::monitor::{Control, Monitor, Quiet, Snapshot};
use crate::network::Network;
use crate::nic::{DATAGRAMS, Datagram};
use crate::observe::Recorder;
use crate::paths::check_distances;
use crate::spec::{SimError, SimSpec, Verb};
use crate::tap::{Tap, Tapped};

/// Events between two looks of the monitor.
const MONITOR_EVERY: u64 = 1 << 16;

/// Queue pairs 0 and 1 are InfiniBand's management queue pairs.
const FIRST_NUMBER: u32 = 2;

/// The two ends of a queue pair: its number at the sender and at the receiver of a connection.
pub(crate) type QueuePair = (QpNum, QpNum);

/// A run in progress, in parts. What a window does to the network and the hosts of it is told to the others.
pub(crate) struct Runner<'a, const C: usize> {
    pub(crate) spec: &'a SimSpec,
    pub(crate) network: Network<C>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) traffic: Traffic,
    pub(crate) observers: Observers<'a>,
    pub(crate) calendar: Calendar,
    pub(crate) windows: Windows,
    /// Events of hosts so far, and the time of the latest.
    pub(crate) host_events: u64,
    pub(crate) latest: Time,
}

/// Messages and what carries them.
pub(crate) struct Traffic {
    /// Tasks, messages and their connections.
    pub(crate) execution: Execution<QueuePair>,
    /// By connection: the number of its first queue pair at the sender and at the receiver. The others follow.
    pub(crate) queue_pairs: Vec<[u32; 2]>,
    /// Key to the memory of any host.
    pub(crate) rkey: u64,
    /// How long it takes until a host knows what has ended at another one.
    pub(crate) notification: Duration,
}

/// What watches the run and does not take part in it.
pub(crate) struct Observers<'a> {
    pub(crate) recorder: Recorder,
    /// By group.
    pub(crate) group_sums: Vec<GroupSums>,
    pub(crate) inspect: Option<Box<Inspect>>,
    /// Packets lost.
    pub(crate) lost: Trace,
    pub(crate) tap: Option<Tapped<'a>>,
}

impl Observers<'_> {
    /// Where every byte has gone, if that is verified.
    pub(crate) fn ledger(&mut self) -> Option<&mut Ledger> {
        self.inspect.as_mut()?.ledger.as_mut()
    }
    /// The flows to follow, if there are any.
    pub(crate) fn followed(&mut self) -> Option<&mut Followed> {
        self.inspect.as_mut()?.followed.as_mut()
    }
}

/// How far hosts are run by themselves.
pub(crate) struct Windows {
    /// Whatever one host does to another takes longer than this, so windows may be as long.
    pub(crate) longest: Duration,
    /// End of the window at hand, or of the last one.
    pub(crate) end: Time,
    /// Hosts to run in the window at hand. Kept for its memory.
    pub(crate) active: Vec<HostId>,
    /// For tests: draws the order of hosts and the lengths of windows.
    #[cfg(test)]
    pub(crate) shuffle: Option<pathweave_units::Rng>,
}

/// Runs a spec to its end and returns what was observed. Wall and CPU time are for the caller to fill in: the
/// simulator knows no clock.
pub fn run(spec: &SimSpec, monitor: &mut dyn Monitor) -> Result<RunResult, SimError> {
    Ok(Simulation::new(spec)?.run(monitor))
}

/// A run that is set up and has not begun: for those who want to time the two apart.
pub struct Simulation<'a>(Width<'a>);

/// A few widths, so that the usual two classes keep a port in two cache lines.
enum Width<'a> {
    Two(Box<Runner<'a, 2>>),
    Four(Box<Runner<'a, 4>>),
    Eight(Box<Runner<'a, 8>>),
}

impl<'a> Simulation<'a> {
    /// Builds fabric and hosts.
    pub fn new(spec: &'a SimSpec) -> Result<Self, SimError> {
        spec.switch.validate().map_err(SimError::Switch)?;
        spec.check_nics()?;
        Ok(Simulation(match spec.switch.classes() {
            0..=2 => Width::Two(Box::new(Runner::new(spec)?)),
            3..=4 => Width::Four(Box::new(Runner::new(spec)?)),
            _ => Width::Eight(Box::new(Runner::new(spec)?)),
        }))
    }

    /// Shows `tap` every packet that reaches a host, in order of time.
    #[must_use]
    pub fn watched_by(mut self, tap: &'a mut dyn Tap) -> Self {
        match &mut self.0 {
            Width::Two(runner) => runner.set_tap(tap),
            Width::Four(runner) => runner.set_tap(tap),
            Width::Eight(runner) => runner.set_tap(tap),
        }
        self
    }

    /// Runs its first window and no more, for what only a run can refuse. No records are made; what its state weighs is
    /// told.
    pub fn try_out(self) -> Footprint {
        match self.0 {
            Width::Two(runner) => runner.try_out(),
            Width::Four(runner) => runner.try_out(),
            Width::Eight(runner) => runner.try_out(),
        }
    }

    /// Runs it to its end.
    pub fn run(self, monitor: &mut dyn Monitor) -> RunResult {
        match self.0 {
            Width::Two(runner) => runner.run(monitor),
            Width::Four(runner) => runner.run(monitor),
            Width::Eight(runner) => runner.run(monitor),
        }
    }
}

impl<'a, const C: usize> Runner<'a, C> {
    pub(crate) fn new(spec: &'a SimSpec) -> Result<Self, SimError> {
        let mut switch = spec.switch.clone();
        switch.forwarding.kind = Some(forwarding::of_run(spec)?);
        let network = Network::new(spec, &switch)?;
        let notification = spec.task_notification()?;
        let hosts = network.hosts(spec);
        let connections = Connections::new(&spec.graph, |group| &spec.scheme_of(group).scheme.service);
        let agenda = agenda(&spec.topology, &network.map, &spec.faults, &switch)?;
        let mut runner = Runner {
            traffic: Traffic {
                queue_pairs: queue_pair_numbers(spec, &connections)?,
                execution: Execution::new(spec.graph.clone(), &spec.groups, connections, notification),
                // They register nothing else, so all have the same.
                rkey: hosts.first().map_or(0, |host| host.rkey),
                notification,
            },
            observers: Observers {
                recorder: Recorder::new(spec, network.map.len()),
                group_sums: vec![GroupSums::default(); spec.groups.len()],
                // A SEND that consumes no posted receive is placed nowhere.
                inspect: Inspect::new(
                    (spec.verify && spec.host.verb == Verb::Write).then(Ledger::default),
                    Followed::new(spec),
                ),
                lost: Trace::new(),
                tap: None,
            },
            windows: Windows {
                longest: network.longest_window().min(notification),
                end: Time::ZERO,
                active: Vec::new(),
                #[cfg(test)]
                shuffle: None,
            },
            calendar: Calendar::new(spec, agenda),
            host_events: 0,
            latest: Time::ZERO,
            network,
            hosts,
            spec,
        };
        check_distances(spec, &runner.network.routes)?;
        runner.set_up_models();
        Ok(runner)
    }

    fn set_tap(&mut self, tap: &'a mut dyn Tap) {
        self.observers.tap = Some(Tapped::new(tap));
    }

    fn try_out(mut self) -> Footprint {
        let footprint = self.footprint();
        self.play(1, &mut Quiet);
        footprint
    }

    pub(crate) fn run(mut self, monitor: &mut dyn Monitor) -> RunResult {
        let (reason, detail, end) = self.play(self.spec.stop.max_events.unwrap_or(u64::MAX), monitor);
        monitor.look(&self.snapshot(end));
        self.record_log();
        self.note_last_losses();
        self.into_result(reason, detail, end)
    }

    /// Goes on until the run is over or has had so many events. Why it ended, and when.
    fn play(&mut self, max_events: u64, monitor: &mut dyn Monitor) -> (EndReason, String, Time) {
        let until = self.spec.stop.until.map_or(Time::MAX, |span| Time::ZERO + span + Duration::from_ps(1));
        let mut looked_at = 0;
        loop {
            let mut next =
                self.traffic.execution.next().unwrap_or(Time::MAX).min(self.network.fabric.next_due());
            // Hosts may have gone on for a window since the last task was over; so they all do, wherever it ended.
            let over = self.traffic.execution.over_since();
            let stop = over.map_or(Time::MAX, |over| over.saturating_add(self.windows.longest));
            if let Some(over) = over.filter(|_| next >= stop) {
                break (EndReason::Completed, String::new(), over);
            }
            if next == Time::MAX {
                if !self.calendar.has_faults() && !self.network.fabric.any_paused() {
                    break (EndReason::Stalled, String::new(), self.latest);
                }
                // A repair may set things going again; the watch explains pauses that do not end.
                next = self.calendar.next();
            }
            if let Some((at, duty)) = self.calendar.first(next) {
                if at >= until {
                    break (EndReason::TimeLimit, String::new(), until - Duration::from_ps(1));
                }
                if let Some((reason, detail)) = self.on_duty(at, duty) {
                    break (reason, detail, at);
                }
                continue;
            }
            if next >= until {
                break (EndReason::TimeLimit, String::new(), until - Duration::from_ps(1));
            }
            let longest = next.saturating_add(self.window());
            self.run_window(longest.min(self.calendar.next()).min(until).min(stop));
            let events = self.events();
            if events - looked_at >= MONITOR_EVERY {
                looked_at = events;
                if monitor.look(&self.snapshot(self.latest)) == Control::Stop {
                    break (EndReason::Interrupted, String::new(), self.latest);
                }
            }
            if events >= max_events {
                break (EndReason::EventLimit, String::new(), self.latest);
            }
        }
    }

    /// How long the next window may be.
    fn window(&mut self) -> Duration {
        #[cfg(test)]
        if let Some(rng) = &mut self.windows.shuffle {
            let thousandths = 1 + u64::from(rng.below(1_000));
            return Duration::from_ps((self.windows.longest.as_ps() / 1_000 * thousandths).max(1));
        }
        self.windows.longest
    }

    /// Events so far, of hosts and of the fabric.
    pub(crate) fn events(&self) -> u64 {
        self.host_events + self.network.fabric.events()
    }

    fn snapshot(&self, now: Time) -> Snapshot {
        Snapshot {
            now,
            until: self.spec.stop.until,
            events: self.events(),
            packet_hops: self.network.fabric.packet_hops(),
            bytes_done: self.traffic.execution.bytes_done(),
            bytes_total: self.spec.graph.total_bytes(),
            flows_done: self.traffic.execution.flows_done(),
            flows_total: self.traffic.execution.flows(),
        }
    }

    #[inline(always)]
    pub(crate) fn on_step(&mut self, now: Time, step: Step) {
        match step {
            Step::Done => {}
            Step::Delivered { host, packet, .. } => {
                let (header, segment) = self.network.fabric.delivered(&packet);
                if let Some(tap) = &mut self.observers.tap {
                    tap.arrived(now, host, header, segment);
                }
                let at = &mut self.hosts[host.index()];
                at.delivered.note(now, host, segment);
                let datagram = match segment.body {
                    Body::Rd(_) => true,
                    Body::Cnp | Body::Control(_) => {
                        at.model().is_some_and(|model| model.is_notified(header.src(), segment))
                    }
                    _ => false,
                };
                if datagram {
                    return self.on_datagram_packet(now, host, packet);
                }
                if let Body::Data(data) = &segment.body {
                    at.received_bytes += u64::from(data.len);
                }
                let placement =
                    at.endpoint.on_packet(now, header.src(), segment, header.congestion_experienced());
                if let Some(inspect) = &mut self.observers.inspect {
                    inspect.arrived(header.src(), segment, placement);
                }
                self.network.fabric.discard(packet);
                self.after_input(now, host.index());
            }
            Step::Resumed { host, .. } => self.transmit(now, host.index()),
        }
    }

    /// Drains an endpoint after something was put into it.
    #[inline(always)]
    pub(crate) fn after_input(&mut self, now: Time, host: usize) {
        if self.hosts[host].endpoint.has_event() {
            self.on_events(now, host);
        }
        self.transmit(now, host);
    }

    #[inline(never)]
    fn on_events(&mut self, now: Time, host: usize) {
        while let Some(event) = self.hosts[host].endpoint.poll_event() {
            match event {
                Event::Delivered { qp, msn, bytes, .. } => self.on_delivered(now, host, qp, msn, bytes),
                Event::Completion(completion) => self.on_completion(now, completion.wr_id, completion.status),
                Event::Retransmitted { packet, at } => {
                    self.note_loss(host, EventKind::Retransmit, &packet, at);
                }
                Event::TimedOut { packet, at } => self.note_loss(host, EventKind::Timeout, &packet, at),
                Event::QpError { .. } => {}
            }
        }
    }

    #[inline(always)]
    pub(crate) fn transmit(&mut self, now: Time, host: usize) {
        let at = &mut self.hosts[host];
        at.transmit(&mut self.network.fabric, now);
        let (id, due) = (at.nic.host, at.nic.wake.min(at.nic.alarm));
        let has_model = at.has_model();
        self.network.fabric.host_due_by(id, due);
        if has_model {
            self.drain_model(now, host);
        }
    }

    #[cold]
    fn on_datagram_packet(&mut self, now: Time, host: HostId, packet: Arrived) {
        let (header, segment) = self.network.fabric.take(packet);
        let (from, ce) = (header.src(), header.congestion_experienced());
        self.on_datagram(now, host, Datagram { from, segment, ce });
    }

    /// Does what concerns the whole network: everything before this instant is done, nothing at it.
    #[cold]
    fn on_duty(&mut self, now: Time, duty: Duty) -> Option<(EndReason, String)> {
        match duty {
            Duty::Fault(entry) => {
                self.on_fault(now, entry);
                // A link may have become shorter. Where all are longer now, what has left before still travels as fast.
                self.windows.longest = self.windows.longest.min(self.network.longest_window());
            }
            Duty::Sample => self.on_sample(now),
            Duty::Watch => {
                let trouble = self.network.trouble(now, self.spec.switch.pfc.storm_after)?;
                return Some(self.explain(&trouble));
            }
        }
        None
    }

    fn explain(&self, trouble: &PfcTrouble) -> (EndReason, String) {
        let name = |port: u32| {
            let (from, to) = self.network.fabric.ends(port);
            let node = |id| self.spec.topology.node_name(pathweave_topo::NodeId(id)).into_owned();
            format!("{} -> {}", node(from), node(to))
        };
        match trouble {
            PfcTrouble::Deadlock(cycle) => {
                let links: Vec<String> = cycle.iter().map(|&p| name(p)).collect();
                let text = format!(
                    "PFC deadlock: each of these links is paused because the next one is: {}. No scheme can recover \
                     from this; routes that go up again after going down, or failed links, make such cycles.",
                    links.join(", ")
                );
                (EndReason::PfcDeadlock, text)
            }
            PfcTrouble::Storm(port, span) => {
                let text = format!(
                    "PFC storm: link {} has been paused for {span} without a break; a NIC that cannot stop pausing, or \
                     a receiver that does not drain.",
                    name(*port)
                );
                (EndReason::PfcStorm, text)
            }
        }
    }
}

/// Numbers for all queue pairs that a run may open, so that a sender can name the other end before it exists: at each
/// host those of its connections, in the order of their first use.
fn queue_pair_numbers(
    spec: &SimSpec,
    connections: &Connections<QueuePair>,
) -> Result<Vec<[u32; 2]>, SimError> {
    let mut next = vec![FIRST_NUMBER; spec.topology.hosts() as usize];
    let numbers: Vec<[u32; 2]> = connections
        .iter()
        .map(|connection| {
            let queue_pairs = u32::from(spec.scheme_of(connection.group).scheme.queue_pairs);
            [connection.src, connection.dst].map(|host| {
                let next = &mut next[host.index()];
                let number = *next;
                *next = next.saturating_add(queue_pairs);
                number
            })
        })
        .collect();
    match next.iter().zip(0..).max() {
        Some((&end, host)) if end > DATAGRAMS => Err(SimError::Network(format!(
            "{} would open {} queue pairs in the run; {} can be told apart",
            spec.topology.node_name(pathweave_topo::NodeId(host)),
            end - FIRST_NUMBER,
            DATAGRAMS - FIRST_NUMBER
        ))),
        _ => Ok(numbers),
    }
}
