//! State of the whole run rather than of one shard: duties between windows, and recorded observations. In a
//! run over several processes each rank has one. Records are kept at the lead, except samples, which each rank keeps
//! for its own nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use pathweave_execution::{Execution, ScheduledStep};
use pathweave_fabric::{PausedPort, PfcFailure, PfcWatch};
use pathweave_records::{EndReason, FlowRecord, FlowSink};
use pathweave_topo::NodeId;
use pathweave_units::Time;

use crate::busy::BusyTimes;
use crate::calendar::{Calendar, GlobalAction};
use crate::digest::Trace;
use crate::faults::Action;
use crate::footprint::flows_can_leave;
use crate::groups::GroupSums;
use crate::locked_shards::LockedShards;
use crate::monitor::Snapshot;
use crate::observe::{Notes, Recorder};
use crate::plan::NetworkPlan;
use crate::pulse::Progress;
use crate::ranks::{RankExchange, pack, put, take};
use crate::spec::SimSpec;
use crate::tap::Tap;
use crate::waits::Waits;

/// Output of flow records: to a sink as soon as they are final, or kept until the end.
#[derive(Default)]
pub(crate) struct FlowOutput<'a> {
    pub(crate) sink: Option<&'a mut dyn FlowSink>,
    /// Number of chunks of messages already passed to the sink.
    chunks: usize,
    /// Buffer, kept to reuse its memory.
    records: Vec<FlowRecord>,
    /// Time that flows have spent by kind of wait.
    pub(crate) waits: Waits,
}

impl FlowOutput<'_> {
    /// Passes chunks of final messages to the sink, in order, if nothing can happen to them any more. Chunks stay if
    /// the run has jobs or activities, because these need all records to the end. A run over several processes never
    /// calls this.
    fn emit_final_chunks<const C: usize>(&mut self, spec: &SimSpec, whole: &mut LockedShards<'_, '_, C>) {
        let Some(sink) = &mut self.sink else { return };
        if !flows_can_leave(spec) {
            return;
        }
        let chunks = whole.shards[0].traffic.execution.chunks();
        while self.chunks < chunks {
            let mut parts: Vec<_> =
                whole.shards.iter_mut().map(|shard| &mut shard.traffic.execution).collect();
            if !Execution::retire_chunk(&mut parts, self.chunks, &mut self.records) {
                return;
            }
            self.waits.store_records(&self.records);
            sink.take(&self.records);
            self.records.clear();
            self.chunks += 1;
        }
    }

    /// Passes all remaining records to the sink. Returns them instead if there is no sink.
    pub(crate) fn emit_rest<Q>(&mut self, execution: &mut Execution<Q>) -> Vec<FlowRecord> {
        let Some(sink) = &mut self.sink else {
            let records = execution.flow_records();
            self.waits.store_records(&records);
            return records;
        };
        for chunk in self.chunks..execution.chunks() {
            execution.take_records(chunk, &mut self.records);
            self.waits.store_records(&self.records);
            sink.take(&self.records);
            self.records.clear();
        }
        Vec::new()
    }
}

/// Duties and observers of the whole run.
pub(crate) struct Coordinator<'a> {
    pub(crate) spec: &'a SimSpec,
    pub(crate) calendar: Calendar,
    pub(crate) recorder: Recorder,
    /// Sums indexed by group.
    pub(crate) group_sums: Vec<GroupSums>,
    /// Running hash of the packets lost.
    pub(crate) lost: Trace,
    pub(crate) tap: Option<&'a mut dyn Tap>,
    pub(crate) leaving: FlowOutput<'a>,
    /// True if the monitor has asked to end the run.
    pub(crate) stop: bool,
    pub(crate) meeting: RankExchange<'a>,
    watch: PfcWatch,
    pub(crate) plan: Arc<NetworkPlan>,
    /// Transmission times of links whose rate has changed.
    pub(crate) busy: BusyTimes,
}

impl<'a> Coordinator<'a> {
    /// Creates the state for a run.
    pub(crate) fn new(
        spec: &'a SimSpec,
        calendar: Calendar,
        meeting: RankExchange<'a>,
        plan: Arc<NetworkPlan>,
    ) -> Self {
        Coordinator {
            spec,
            calendar,
            recorder: Recorder::new(spec, plan.map.len()),
            group_sums: vec![GroupSums::default(); spec.groups.len()],
            lost: Trace::new(),
            tap: None,
            leaving: FlowOutput::default(),
            stop: false,
            watch: PfcWatch::default(),
            meeting,
            plan,
            busy: BusyTimes::default(),
        }
    }

    /// Combines the progress of this process, `own`, with that of all other ranks.
    pub(crate) fn pulse(&mut self, own: Progress) -> Progress {
        Progress::of_all(self.meeting.all_gather(Progress { stop: self.stop, ..own }))
    }

    /// Performs the work between several hosts after a window and records what happened. Returns the progress of the
    /// run.
    pub(crate) fn after_window<const C: usize>(
        &mut self,
        whole: &mut LockedShards<'_, '_, C>,
        end: Time,
        window: usize,
    ) -> Progress {
        let mut notes = whole.take_notes();
        let own = Progress { stop: self.stop, ..whole.pulse(&notes.barriers) };
        let pulse = if self.meeting.several() { self.exchange(whole, window, own, &mut notes) } else { own };
        let barriers = std::mem::take(&mut notes.barriers);
        let settles = pulse.barrier < end;
        let news = whole.settle_barriers(barriers, settles.then_some(end));
        let told = self.record_notes(whole, notes, news, settles);
        if !self.meeting.several() {
            self.leaving.emit_final_chunks(self.spec, whole);
        }
        if told { self.pulse(whole.pulse(&[])) } else { pulse }
    }

    /// Distributes the effects of a duty to the shards and ranks concerned. Returns the progress of the run.
    fn after_duty<const C: usize>(&mut self, whole: &mut LockedShards<'_, '_, C>) -> Progress {
        whole.send_out();
        let mut notes = whole.take_notes();
        if self.meeting.several() {
            let own = whole.pulse(&notes.barriers);
            self.exchange(whole, 0, own, &mut notes);
        }
        let news = whole.settle_barriers(std::mem::take(&mut notes.barriers), None);
        self.record_notes(whole, notes, news, false);
        whole.take_in();
        self.pulse(whole.pulse(&[]))
    }

    /// Records the events left in the endpoints at the end of the run.
    pub(crate) fn take_last_notes<const C: usize>(&mut self, whole: &mut LockedShards<'_, '_, C>) {
        whole.note_last_losses();
        let mut notes = whole.take_notes();
        if self.meeting.several() {
            let own = whole.pulse(&[]);
            self.exchange(whole, 0, own, &mut notes);
        }
        self.record_notes(whole, notes, Vec::new(), false);
    }

    /// Records events that all ranks know, and delivers to hosts the steps that barriers have caused. `settles` is
    /// true if barriers may have caused steps; `news` holds those of this rank. Returns true if the ranks exchanged
    /// messages for it.
    fn record_notes<const C: usize>(
        &mut self,
        whole: &mut LockedShards<'_, '_, C>,
        mut notes: Notes,
        news: Vec<ScheduledStep>,
        settles: bool,
    ) -> bool {
        notes.sort_log();
        let tells = settles || notes.has_losses();
        let mut flows = BTreeMap::new();
        if tells {
            let lost = whole.note_lost(&notes.log);
            for (news, lost) in self.meeting.all_gather((news, lost)) {
                whole.deliver_steps(&news);
                flows.extend(lost);
            }
            whole.end_lost(&notes.log, &flows);
        }
        if self.meeting.is_lead() {
            self.record(notes, &flows);
        }
        if !self.meeting.several() && self.tap.as_ref().is_some_and(|tap| !tap.needs_more()) {
            self.tap = None;
            whole.stop_watching();
        }
        tells
    }

    /// Sends each other rank its share of the results of a window and receives theirs. Returns the progress of the
    /// run.
    fn exchange<const C: usize>(
        &mut self,
        whole: &LockedShards<'_, '_, C>,
        window: usize,
        own: Progress,
        notes: &mut Notes,
    ) -> Progress {
        // Every rank gets the log, because a loss concerns both a sender and a receiver.
        let to_others = pack(&(own, Notes { log: notes.log.clone(), ..Notes::default() }));
        self.meeting.exchange(|to, message| {
            match to {
                0 => put(message, &(own, &*notes)),
                _ => message.extend_from_slice(&to_others),
            }
            whole.boxes.collect(window, to, message);
        });
        if !self.meeting.is_lead() {
            // The notes are now at the lead.
            *notes = Notes { log: std::mem::take(&mut notes.log), ..Notes::default() };
        }
        let mut pulse = own;
        for (_, mut answer) in self.meeting.answers() {
            let (theirs, told): (Progress, Notes) = take(&mut answer);
            pulse = Progress::of_all([pulse, theirs]);
            notes.add(told);
            whole.boxes.unpack_into_slots(window, answer);
        }
        pulse
    }

    /// Performs a duty of the whole network. All events before `now` have been simulated, none at `now`. Returns the
    /// progress of the run.
    ///
    /// # Errors
    /// The reason and an explanation, if the run must end here.
    #[cold]
    pub(crate) fn on_duty<const C: usize>(
        &mut self,
        whole: &mut LockedShards<'_, '_, C>,
        now: Time,
        duty: GlobalAction,
    ) -> Result<Progress, (EndReason, String)> {
        whole.take_all_in();
        match duty {
            GlobalAction::Fault(entry) => {
                if let Some(port) = entry.action.port(&self.plan.map) {
                    self.recorder.fault(now, &entry, (Some(port), self.plan.map.node_of(port)));
                    if let Action::Rate(..) = entry.action {
                        self.busy.settle_before_change(whole, now, port);
                    }
                }
                if let Action::ScaleUp(part, _) = entry.action {
                    self.recorder.fault(now, &entry, (None, self.spec.topology.scale_up_host(part).0));
                }
                whole.on_fault(now, entry);
            }
            GlobalAction::Sample => self.on_sample(whole, now),
            GlobalAction::Watch => {
                let fabrics = || whole.shards.iter().map(|shard| &shard.network.fabric);
                let paused: Vec<PausedPort> = fabrics().flat_map(|fabric| fabric.paused_ports(now)).collect();
                let paused = self.meeting.all_gather(paused);
                let look = self.watch.check(paused.into_iter().flatten(), self.spec.switch.pfc.storm_after);
                let waits: Vec<_> = fabrics().flat_map(|fabric| fabric.waits_for(look.stuck())).collect();
                let waits = self.meeting.all_gather(waits);
                if let Some(trouble) = look.trouble(waits.into_iter().flatten()) {
                    return Err(self.explain(&trouble));
                }
            }
        }
        Ok(self.after_duty(whole))
    }

    fn explain(&self, trouble: &PfcFailure) -> (EndReason, String) {
        let name = |port: u32| {
            let (from, to) = self.plan.ends(&self.spec.topology, port);
            let node = |id| self.spec.topology.node_name(NodeId(id)).into_owned();
            format!("{} -> {}", node(from), node(to))
        };
        match trouble {
            PfcFailure::Deadlock(cycle) => {
                let links: Vec<String> = cycle.iter().map(|&p| name(p)).collect();
                let text = format!(
                    "PFC deadlock: each of these links is paused because the next one is: {}. No scheme can \
                     recover from it. Routes that go up again after going down, and failed links, cause such \
                     cycles.",
                    links.join(", ")
                );
                (EndReason::PfcDeadlock, text)
            }
            PfcFailure::Storm(port, span) => {
                let text = format!(
                    "PFC storm: link {} has been paused for {span} without a break; a NIC that cannot stop pausing, or \
                     a receiver that does not drain.",
                    name(*port)
                );
                (EndReason::PfcStorm, text)
            }
        }
    }

    /// Returns the progress of the run for its monitor.
    pub(crate) fn snapshot(&self, pulse: &Progress, now: Time) -> Snapshot {
        Snapshot {
            now,
            until: self.spec.run.until,
            events: pulse.events,
            packet_hops: pulse.packet_hops,
            bytes_done: pulse.bytes_done,
            bytes_total: self.spec.graph.total_bytes(),
            flows_done: pulse.flows_done as usize,
            flows_total: self.spec.graph.messages().len(),
        }
    }
}
