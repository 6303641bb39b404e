//! One run: the simulator, watched, timed and interruptible.

use std::time::Instant;

use pathweave_heap::usage;
use pathweave_results::{EndReason, FlowStatus, RunResult, Summary};
use pathweave_scenario::Loaded;
use pathweave_sim::{Control, Fidelity, Monitor, RankSimulation, SimSpec, Simulation, Tap};

use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::progress::{self, RunProgress};
use crate::ranks::Company;

/// A run and its figures.
pub(crate) struct Finished {
    pub(crate) run: RunResult,
    pub(crate) summary: Summary,
}

/// Makes this run to its end, or to where the user interrupts it. `tap` is shown its packets.
pub(crate) fn execute(
    loaded: &Loaded,
    spec: &SimSpec,
    progress: RunProgress,
    interrupt: &Interrupt,
    tap: Option<&mut dyn Tap>,
) -> Result<Finished, Failure> {
    let mut watcher = Watcher { progress, interrupt };
    let (wall, cpu_s) = (Instant::now(), usage::thread_cpu_s());
    let run = match tap {
        Some(tap) => Simulation::new(spec).map(|simulation| simulation.watched_by(tap).run(&mut watcher)),
        None => pathweave_scenario::run(spec, &mut watcher),
    };
    let run = run.map_err(|why| Failure::Scenario(loaded.sim_error(&why)))?;
    let used = [usage::thread_cpu_s() - cpu_s, usage::peak_rss_bytes() as f64];
    Ok(watcher.finish(run, wall, used))
}

/// The share of this rank in a run of all of them. Rank 0 has its figures.
pub(crate) fn execute_among(
    company: &mut Company,
    loaded: &Loaded,
    spec: &SimSpec,
    progress: RunProgress,
    interrupt: &Interrupt,
    tap: Option<&mut dyn Tap>,
) -> Result<Option<Finished>, Failure> {
    let mut watcher = Watcher { progress, interrupt };
    let (wall, cpu_s) = (Instant::now(), usage::thread_cpu_s());
    let simulation = RankSimulation::new(spec, company.ranks());
    let run = simulation.map(|simulation| match tap {
        Some(tap) => simulation.watched_by(tap).run(&mut watcher),
        None => simulation.run(&mut watcher),
    });
    let run = match run {
        Ok(run) => run,
        // All have found the same.
        Err(why) if company.is_lead() => return Err(Failure::Scenario(loaded.sim_error(&why))),
        Err(_) => return Err(Failure::SaidByLead),
    };
    let used = company.sums([usage::thread_cpu_s() - cpu_s, usage::peak_rss_bytes() as f64]);
    Ok(run.map(|run| watcher.finish(run, wall, used)))
}

struct Watcher<'a> {
    progress: RunProgress,
    interrupt: &'a Interrupt,
}

impl Watcher<'_> {
    /// The run is over, began at `wall` and has used so many seconds of main threads and bytes of memory.
    fn finish(self, mut run: RunResult, wall: Instant, [cpu_s, peak_rss_bytes]: [f64; 2]) -> Finished {
        let info = &mut run.info;
        info.wall_s = wall.elapsed().as_secs_f64();
        info.cpu_s += cpu_s;
        info.peak_rss_bytes = peak_rss_bytes as u64;
        info.version = env!("CARGO_PKG_VERSION").to_owned();
        let summary = Summary::from_run(&run);
        let (moved, what) = match run.info.fidelity {
            Fidelity::Packet => (run.info.packet_hops as f64 / 1e6, "M packet-hops"),
            Fidelity::Flow => (run.flows.len() as f64 / 1e3, "k messages"),
        };
        let words = format!(
            "{} in {}, {:.1} {what}/s",
            run.info.ended.name().replace('_', " "),
            progress::clock(wall.elapsed()),
            moved / run.info.wall_s.max(1e-9)
        );
        self.progress.finish(&words);
        Finished { run, summary }
    }
}

impl Monitor for Watcher<'_> {
    fn look(&mut self, at: &pathweave_sim::Snapshot) -> Control {
        self.progress.update(Instant::now(), progress::Snapshot::from(at));
        if self.interrupt.requested() { Control::Stop } else { Control::Continue }
    }
}

impl Finished {
    /// What the run means for the exit code.
    pub(crate) fn outcome(&self) -> Outcome {
        if self.run.info.ended == EndReason::Interrupted {
            return Outcome::Interrupted;
        }
        let all_done = self.run.foreground().all(|flow| flow.status == FlowStatus::Finished);
        if all_done { Outcome::Done } else { Outcome::Unfinished }
    }

    /// Which flows did not finish and why the run ended, for people; nothing if all is well.
    pub(crate) fn complaint(&self) -> Option<String> {
        const SHOWN: usize = 10;
        let run = &self.run;
        let open: Vec<_> = run.foreground().filter(|flow| flow.status != FlowStatus::Finished).collect();
        if open.is_empty() {
            return None;
        }
        let detail = match run.info.ended_detail.as_str() {
            "" => String::new(),
            detail => format!(" ({detail})"),
        };
        let mut text = format!(
            "{}: {} of {} flows did not finish; the run ended because: {}{detail}",
            run.info.name,
            open.len(),
            run.foreground().count(),
            run.info.ended.meaning().trim_end_matches('.')
        );
        let host =
            |host: u32| run.nodes.get(host as usize).map_or(format!("host{host}"), |node| node.name.clone());
        for flow in open.iter().take(SHOWN) {
            text.push_str(&format!(
                "\n  flow {} of group {}: {} to {}, {} bytes, {}; {} packets sent, {} of them again, {} dropped, {} timeouts",
                flow.flow,
                run.info.groups.get(usize::from(flow.group)).map_or("", String::as_str),
                host(flow.src_host),
                host(flow.dst_host),
                flow.size_bytes,
                flow.status.name().replace('_', " "),
                flow.sent_packets,
                flow.retransmitted_packets,
                flow.dropped_packets,
                flow.timeouts,
            ));
        }
        if open.len() > SHOWN {
            text.push_str(&format!(
                "\n  and {} more: see the rows of flows.parquet by status",
                open.len() - SHOWN
            ));
        }
        Some(text)
    }
}
