//! What is of the whole run and not of one of its parts: what is due between windows, and what is recorded.

use pathweave_execution::Execution;
use pathweave_fabric::{PfcTrouble, PfcWatch};
use pathweave_results::EndReason;
use pathweave_topo::NodeId;
use pathweave_units::Time;

use crate::calendar::{Calendar, Duty};
use crate::digest::Trace;
use crate::groups::GroupSums;
use crate::monitor::Snapshot;
use crate::observe::Recorder;
use crate::spec::SimSpec;
use crate::tap::{Tap, show};
use crate::whole::Whole;

/// Duties and observers of the whole run.
pub(crate) struct Central<'a> {
    pub(crate) spec: &'a SimSpec,
    pub(crate) calendar: Calendar,
    pub(crate) recorder: Recorder,
    /// By group.
    pub(crate) group_sums: Vec<GroupSums>,
    /// Packets lost.
    pub(crate) lost: Trace,
    pub(crate) tap: Option<&'a mut dyn Tap>,
    watch: PfcWatch,
}

impl<'a> Central<'a> {
    /// Of a run with so many ports.
    pub(crate) fn new(spec: &'a SimSpec, calendar: Calendar, ports: u32) -> Self {
        Central {
            spec,
            calendar,
            recorder: Recorder::new(spec, ports),
            group_sums: vec![GroupSums::default(); spec.groups.len()],
            lost: Trace::new(),
            tap: None,
            watch: PfcWatch::default(),
        }
    }

    /// A window has ended: does what concerns several hosts, and takes note of what happened.
    pub(crate) fn after_window<const C: usize>(&mut self, whole: &mut Whole<'_, '_, C>, end: Time) {
        whole.settle_barriers(end);
        self.take_notes(whole);
        if let Some(tap) = &mut self.tap {
            let seen = whole.shards.iter_mut().filter_map(|shard| shard.observers.seen.as_mut());
            show(*tap, seen.flat_map(std::mem::take).collect());
        }
    }

    /// Does what concerns the whole network: everything before this instant is done, nothing at it.
    #[cold]
    pub(crate) fn on_duty<const C: usize>(
        &mut self,
        whole: &mut Whole<'_, '_, C>,
        now: Time,
        duty: Duty,
    ) -> Option<(EndReason, String)> {
        whole.deliver();
        match duty {
            Duty::Fault(entry) => {
                self.recorder.fault(now, &entry);
                whole.on_fault(now, entry);
                self.take_notes(whole);
            }
            Duty::Sample => self.on_sample(whole, now),
            Duty::Watch => {
                let fabrics: Vec<_> = whole.shards.iter().map(|shard| &shard.network.fabric).collect();
                let storm_after = self.spec.switch.pfc.storm_after;
                if let Some(trouble) = self.watch.look(&fabrics, now, storm_after) {
                    return Some(self.explain(&trouble, |port| fabrics[0].ends(port)));
                }
            }
        }
        whole.exchange();
        None
    }

    fn explain(&self, trouble: &PfcTrouble, ends: impl Fn(u32) -> (u32, u32)) -> (EndReason, String) {
        let name = |port: u32| {
            let (from, to) = ends(port);
            let node = |id| self.spec.topology.node_name(NodeId(id)).into_owned();
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

    /// How far the run has come.
    pub(crate) fn snapshot<const C: usize>(&self, whole: &Whole<'_, '_, C>, now: Time) -> Snapshot {
        let executions = || whole.shards.iter().map(|shard| &shard.traffic.execution);
        Snapshot {
            now,
            until: self.spec.stop.until,
            events: whole.events(),
            packet_hops: whole.packet_hops(),
            bytes_done: executions().map(Execution::bytes_done).sum(),
            bytes_total: self.spec.graph.total_bytes(),
            flows_done: executions().map(Execution::flows_done).sum(),
            flows_total: self.spec.graph.messages().len(),
        }
    }
}
