//! Execution of one run: the simulator with a monitor, timing, and interruption by the user.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use pathweave_heap::usage;
use pathweave_records::{EndReason, FlowSink, FlowStatus, RunResult, Summary};
use pathweave_scenario::Loaded;
use pathweave_sim::{Fidelity, Monitor, MonitorDecision, RankSimulation, SimSpec, Simulation, Tap};

use crate::commands::output;
use crate::failure::{Failure, Outcome};
use crate::flow_stream::FlowStream;
use crate::interrupt::Interrupt;
use crate::progress::{self, RunProgress};
use crate::ranks::RankGroup;

/// Result of a run and its summary.
pub(crate) struct Finished {
    pub(crate) run: RunResult,
    pub(crate) summary: Summary,
}

/// Observers of a run.
#[derive(Default)]
pub(crate) struct Observers<'t> {
    /// Tap for the packets of the run.
    pub(crate) tap: Option<&'t mut dyn Tap>,
    /// Stream for the records of its flows.
    pub(crate) flows: Option<FlowStream>,
}

/// Executes a run until its end or until the user interrupts it.
pub(crate) fn execute(
    loaded: &Loaded,
    spec: &SimSpec,
    progress: RunProgress,
    interrupt: &Interrupt,
    Observers { tap, mut flows }: Observers<'_>,
) -> Result<Finished, Failure> {
    let failed = flows.as_ref().map(FlowStream::failed);
    let mut watcher = Watcher { progress, interrupt, failed };
    let (wall, cpu_s) = (Instant::now(), usage::thread_cpu_s());
    let run = if tap.is_none() && flows.is_none() {
        pathweave_scenario::run(spec, &mut watcher)
    } else {
        let tap = tap.map(|tap| tap as &mut dyn Tap);
        let sink = flows.as_mut().map(|flows| flows as &mut dyn FlowSink);
        Simulation::new(spec).map(|simulation| simulation.watched_by(tap).recorded_by(sink).run(&mut watcher))
    };
    let run = run.map_err(|why| Failure::Scenario(loaded.sim_error(&why)))?;
    let used = [usage::thread_cpu_s() - cpu_s, usage::peak_rss_bytes() as f64];
    watcher.finish(run, flows, wall, used)
}

/// Executes the share of this rank in a run of all ranks. Rank 0 returns the result.
pub(crate) fn execute_rank(
    company: &mut RankGroup,
    loaded: &Loaded,
    spec: &SimSpec,
    progress: RunProgress,
    interrupt: &Interrupt,
    Observers { tap, mut flows }: Observers<'_>,
) -> Result<Option<Finished>, Failure> {
    let failed = flows.as_ref().map(FlowStream::failed);
    let mut watcher = Watcher { progress, interrupt, failed };
    let (wall, cpu_s) = (Instant::now(), usage::thread_cpu_s());
    let simulation = RankSimulation::new(spec, company.ranks());
    let tap = tap.map(|tap| tap as &mut dyn Tap);
    let sink = flows.as_mut().map(|flows| flows as &mut dyn FlowSink);
    let run = simulation.map(|simulation| simulation.watched_by(tap).recorded_by(sink).run(&mut watcher));
    let run = match run {
        Ok(run) => run,
        // All ranks have found the same error.
        Err(why) if company.is_lead() => return Err(Failure::Scenario(loaded.sim_error(&why))),
        Err(_) => return Err(Failure::SaidByLead),
    };
    let used = company.sums([usage::thread_cpu_s() - cpu_s, usage::peak_rss_bytes() as f64]);
    run.map(|run| watcher.finish(run, flows, wall, used)).transpose()
}

struct Watcher<'a> {
    progress: RunProgress,
    interrupt: &'a Interrupt,
    /// Set if records cannot be written.
    failed: Option<Arc<AtomicBool>>,
}

impl Watcher<'_> {
    /// Completes the result of a run that is over. It began at `wall`, and has used these seconds of CPU time of main
    /// threads and bytes of memory.
    fn finish(
        self,
        mut run: RunResult,
        flows: Option<FlowStream>,
        wall: Instant,
        [cpu_s, peak_rss_bytes]: [f64; 2],
    ) -> Result<Finished, Failure> {
        let info = &mut run.info;
        info.wall_s = wall.elapsed().as_secs_f64();
        info.cpu_s += cpu_s;
        info.peak_rss_bytes = peak_rss_bytes as u64;
        info.version = env!("CARGO_PKG_VERSION").to_owned();
        if let Some(flows) = flows {
            flows.finish(&mut run).map_err(output)?;
        }
        let summary = Summary::from_run(&run);
        let (moved, what) = match run.info.fidelity {
            Fidelity::Packet => (run.info.packet_hops as f64 / 1e6, "M packet-hops"),
            Fidelity::Flow => (summary.overall.count as f64 / 1e3, "k messages"),
        };
        let words = format!(
            "{} in {}, {:.1} {what}/s",
            run.info.ended.name().replace('_', " "),
            progress::clock(wall.elapsed()),
            moved / run.info.wall_s.max(1e-9)
        );
        self.progress.finish(&words);
        Ok(Finished { run, summary })
    }
}

impl Monitor for Watcher<'_> {
    fn look(&mut self, at: &pathweave_sim::Snapshot) -> MonitorDecision {
        self.progress.update(Instant::now(), progress::Snapshot::from(at));
        let failed = self.failed.as_ref().is_some_and(|failed| failed.load(Ordering::Relaxed));
        if failed || self.interrupt.requested() { MonitorDecision::Stop } else { MonitorDecision::Continue }
    }
}

impl Finished {
    /// Returns the outcome of the run, which determines the exit code.
    pub(crate) fn outcome(&self) -> Outcome {
        if self.run.info.ended == EndReason::Interrupted {
            return Outcome::Interrupted;
        }
        let flows = self.summary.measured();
        if flows.finished == flows.count { Outcome::Done } else { Outcome::Unfinished }
    }

    /// Returns a message about unfinished flows and the reason why the run ended, or `None` if all flows finished.
    pub(crate) fn failure_message(&self) -> Option<String> {
        const SHOWN: usize = 10;
        let run = &self.run;
        let flows = self.summary.measured();
        let open = (flows.count - flows.finished) as usize;
        if open == 0 {
            return None;
        }
        let known = run.foreground().filter(|flow| flow.status != FlowStatus::Finished);
        let known = known.chain(run.streamed.iter().flat_map(|figures| figures.unfinished()));
        let detail = match run.info.ended_detail.as_str() {
            "" => String::new(),
            detail => format!(" ({detail})"),
        };
        // A failed flow ended with an error. An unfinished one had not ended with the run.
        let states: Vec<String> = [(flows.failed, "failed"), (flows.unfinished, "unfinished")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, state)| format!("{count} {state}"))
            .collect();
        let mut text = format!(
            "{}: {} of {} flows did not finish ({}); the run ended because: {}{detail}",
            run.info.name,
            open,
            flows.count,
            states.join(", "),
            run.info.ended.meaning().trim_end_matches('.')
        );
        let host =
            |host: u32| run.nodes.get(host as usize).map_or(format!("host{host}"), |node| node.name.clone());
        let in_packets = run.info.fidelity == Fidelity::Packet;
        for flow in known.take(SHOWN) {
            text.push_str(&format!(
                "\n  flow {} of group {}: {} to {}, {} bytes, {}",
                flow.flow,
                run.info.groups.get(usize::from(flow.group)).map_or("", String::as_str),
                host(flow.src_host),
                host(flow.dst_host),
                flow.size_bytes,
                flow.status.name().replace('_', " "),
            ));
            if in_packets {
                text.push_str(&format!(
                    "; {} packets sent, {} of them again, {} dropped, {} timeouts",
                    flow.sent_packets, flow.retransmitted_packets, flow.dropped_packets, flow.timeouts
                ));
            }
        }
        if open > SHOWN {
            text.push_str(&format!("\n  and {} more: see the rows of flows.parquet by status", open - SHOWN));
        }
        Some(text)
    }
}
