//! Schedules of LogGOPSim and ATLAHS as a workload.

use std::collections::BTreeMap;

use pathweave_units::{Bytes, Duration};
use serde::{Deserialize, Serialize};

use super::ranks::{LARGER_TOPOLOGY, Matching, SendOrRecv, cycle, hosts_of_ranks};
use crate::builder::{Draft, Stream};
use crate::error::{FileError, WorkloadError};
use crate::files::{
    GoalAction, GoalDependencyKind, GoalOp, GoalRank, HEAD_BYTES, is_goal_binary, parse_goal,
    parse_goal_binary,
};
use crate::graph::{CoreId, JobId};
use crate::hosts::HostList;
use crate::sink::{Generate, MAX_FILE_BYTES, NamedFile, WorkloadBuilder};

/// A schedule in the text or binary form of GOAL, as LogGOPSim and ATLAHS execute it: computations, sends and
/// receives of each rank, with dependencies. The whole schedule is one job.
///
/// Computations of a rank with the same `cpu` take turns, in the order in which they may begin, and then in that of the file. Sends and
/// receives with the same pair of ranks and tag match in the order of the file. A send begins even if its
/// receive has not been reached. It ends when all bytes are acknowledged, unless it is eager. An operation
/// that waits with `irequires` begins when the other one begins. LogGOPSim's times for the network and the
/// hosts (L, o, g, G, O) are not added, because the network is simulated. `nic` is not used: the paths of a
/// host determine the port it sends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// File of the schedule, relative to the scenario.
    pub file: String,
    /// Host of each rank in order: a list of numbers, names and patterns, or a pattern such as
    /// "srv[0-3].gpu*". Default: rank r is on host r.
    #[serde(default, skip_serializing_if = "HostList::is_empty")]
    pub hosts: HostList,
    /// Largest size of an eager send, which ends for its rank as soon as it begins (S of LogGOPSim). Default:
    /// 0, no send is eager.
    #[serde(default)]
    pub eager: Bytes,
}

impl Generate for Goal {
    fn generate(&self, out: &mut WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
        let head = out.read_bytes(&self.file, HEAD_BYTES).unwrap_or_default();
        let schedule = if is_goal_binary(&head) {
            parse_goal_binary(&out.read_bytes(&self.file, MAX_FILE_BYTES)?, &self.file)?
        } else {
            parse_goal(&out.read(&self.file).map_err(with_binary_form)?, &self.file)?
        };
        let hosts = hosts_of_ranks(out, &self.hosts, schedule.ranks.len(), LARGER_TOPOLOGY)?;
        let job = out.job("schedule")?;
        let mut play =
            Play { config: self, out, hosts, job, pairing: Matching::default(), cores: BTreeMap::new() };
        for (rank, of_rank) in schedule.ranks.iter().enumerate() {
            play.rank(rank, of_rank)?;
        }
        let joined = std::mem::take(&mut play.pairing).matched("size");
        for (receive, message) in joined.or_else(|(line, what)| play.fail(line, what))? {
            play.out.after(receive, message)?;
        }
        let other_nics = schedule.ranks.iter().flat_map(|rank| &rank.ops).filter(|op| op.nic > 0).count();
        if other_nics > 0 {
            out.note(format_args!(
                "{}: nic of {other_nics} operations is not used: the path determines the port",
                self.file
            ));
        }
        Ok(())
    }

    fn files(&mut self) -> Vec<NamedFile<'_>> {
        vec![("file", &mut self.file)]
    }
}

/// Extends the error for a file that is not text with the number that begins the binary form.
fn with_binary_form(why: WorkloadError) -> WorkloadError {
    match why {
        WorkloadError::File(mut why) if why.message.contains("not text") => {
            why.message += "; a schedule in binary form begins with the number 4223";
            why.into()
        }
        other => other,
    }
}

/// An operation in the graph. `begin` waits for its predecessors, and its successors wait for `end`.
#[derive(Clone, Copy)]
struct ConvertedOp {
    begin: Draft,
    end: Draft,
}

struct Play<'a, 's> {
    config: &'a Goal,
    out: &'a mut WorkloadBuilder<'s>,
    hosts: Vec<u32>,
    job: JobId,
    /// Sends and receives, each with its line.
    pairing: Matching<u64>,
    /// Cores by rank and cpu.
    cores: BTreeMap<(usize, u32), CoreId>,
}

impl Play<'_, '_> {
    fn fail<T>(&self, line: u64, what: impl std::fmt::Display) -> Result<T, WorkloadError> {
        Err(FileError::at(&self.config.file, line, what.to_string()).into())
    }

    fn rank(&mut self, rank: usize, of_rank: &GoalRank) -> Result<(), WorkloadError> {
        let mut is_watched = vec![false; of_rank.ops.len()];
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); of_rank.ops.len()];
        for wait in &of_rank.waits {
            is_watched[wait.on as usize] |= wait.until == GoalDependencyKind::Begun;
            before[wait.op as usize].push(wait.on);
        }
        if let Some(cycle) = cycle(&before) {
            let lines: Vec<String> =
                cycle.iter().take(8).map(|&op| of_rank.ops[op as usize].line.to_string()).collect();
            let more = if cycle.len() > 8 { ", ..." } else { "" };
            let line = of_rank.ops[cycle[0] as usize].line;
            // Each operation of the cycle waits for the next one, and the last for the first.
            let what = format!(
                "operations wait for each other in a cycle: line {}{more}, which waits for line {}",
                lines.join(", which waits for line "),
                lines[0]
            );
            return self.fail(line, what);
        }
        let mut placed = Vec::with_capacity(of_rank.ops.len());
        for (op, is_watched) in of_rank.ops.iter().zip(is_watched) {
            placed.push(self.operation(rank, op, is_watched)?);
        }
        for wait in &of_rank.waits {
            let on = placed[wait.on as usize];
            let until = match wait.until {
                GoalDependencyKind::Begun => on.begin,
                GoalDependencyKind::Over => on.end,
            };
            self.out.after(placed[wait.op as usize].begin, until)?;
        }
        Ok(())
    }

    /// Declares an operation. `is_watched` is true if others wait for its begin.
    fn operation(
        &mut self,
        rank: usize,
        op: &GoalOp,
        is_watched: bool,
    ) -> Result<ConvertedOp, WorkloadError> {
        let host = self.hosts[rank];
        match op.act {
            GoalAction::Compute(_) => self.out.doing("calc", format_args!("cpu {}", op.cpu)),
            GoalAction::Send { tag, .. } => self.out.doing("send", format_args!("tag {tag}")),
            GoalAction::Receive { tag, .. } => self.out.doing("recv", format_args!("tag {tag}")),
        }
        let (task, is_eager) = match op.act {
            GoalAction::Compute(duration) if is_watched => {
                // Others begin when this computation has its turn.
                let core = self.core(rank, op.cpu)?;
                let (begin, end) = self.out.compute_with_begin(core, host, duration, self.job)?;
                self.out.name_task(end, &format!("line {}", op.line));
                return Ok(ConvertedOp { begin, end });
            }
            GoalAction::Compute(duration) => {
                let core = self.core(rank, op.cpu)?;
                (self.out.compute_on(Some(core), host, duration, self.job)?, false)
            }
            GoalAction::Send { to, bytes, tag } => {
                self.check_peer(rank, op.line, to)?;
                let pair = (host, self.hosts[to as usize]);
                // The smallest message has one byte.
                let size = Bytes::new(bytes.max(1));
                let message = self.out.message(pair, size, Duration::ZERO, Stream::Shared(0), Some(self.job));
                let message = message.or_else(|why| self.fail(op.line, why))?;
                let half = SendOrRecv { place: op.line, task: message, bytes };
                self.pairing.send((rank as u32, to, i64::from(tag)), half);
                (message, bytes <= self.config.eager.get() && self.config.eager > Bytes::ZERO)
            }
            GoalAction::Receive { from, bytes, tag } => {
                self.check_peer(rank, op.line, from)?;
                let task = self.out.compute(host, Duration::ZERO, self.job)?;
                let half = SendOrRecv { place: op.line, task, bytes };
                self.pairing.receive((from, rank as u32, i64::from(tag)), half);
                (task, false)
            }
        };
        self.out.name_task(task, &format!("line {}", op.line));
        if !is_watched && !is_eager {
            return Ok(ConvertedOp { begin: task, end: task });
        }
        let begin = self.out.compute(host, Duration::ZERO, self.job)?;
        self.out.after(task, begin)?;
        Ok(ConvertedOp { begin, end: if is_eager { begin } else { task } })
    }

    fn core(&mut self, rank: usize, cpu: u32) -> Result<CoreId, WorkloadError> {
        if let Some(&core) = self.cores.get(&(rank, cpu)) {
            return Ok(core);
        }
        let core = self.out.core()?;
        self.cores.insert((rank, cpu), core);
        Ok(core)
    }

    fn check_peer(&self, rank: usize, line: u64, peer: u32) -> Result<(), WorkloadError> {
        if peer as usize == rank {
            return self
                .fail(line, format_args!("rank {peer}: the rank itself; messages go between two ranks"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pathweave_units::{Rate, Time};

    use super::*;
    use crate::bounds::JobSpans;
    use crate::config::{Workload, WorkloadConfig, build};
    use crate::env::WorkloadEnv;
    use crate::kinds::Traffic;
    use crate::testing::job_ends;

    /// Builds a schedule with these blocks of ranks, from a file of its own.
    fn built(
        name: &str,
        blocks: &[&str],
        config: impl FnOnce(&mut Goal),
        hosts: u32,
    ) -> Result<Workload, String> {
        let folder = std::env::temp_dir().join(format!("pathweave-goal-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = format!("{name}.goal");
        let mut text = format!("num_ranks {}\n", blocks.len());
        for (rank, block) in blocks.iter().enumerate() {
            text += &format!("rank {rank} {{\n{block}\n}}\n");
        }
        std::fs::write(folder.join(&file), text).unwrap();
        let mut goal = Goal { file, hosts: HostList::default(), eager: Bytes::ZERO };
        config(&mut goal);
        let env = WorkloadEnv { base_dir: folder, ..WorkloadEnv::new(hosts, Rate::from_gbps(8)) };
        build(&[WorkloadConfig::new(Traffic::Goal(goal))], &env).map_err(|e| e.to_string())
    }

    /// Returns the end of the schedule if a byte takes 1 ns.
    fn end_ns(name: &str, blocks: &[&str], config: impl FnOnce(&mut Goal)) -> Time {
        let graph = built(name, blocks, config, blocks.len() as u32).unwrap().graph;
        job_ends(&graph)[0]
    }

    const PLAIN: fn(&mut Goal) = |_| ();

    #[test]
    fn a_send_between_computations_by_hand() {
        let blocks = [
            "c: calc 1000\ns: send 500b to 1 tag 3\ns requires c",
            "r: recv 500b from 0 tag 3\nx: calc 70\nx requires r",
        ];
        assert_eq!(end_ns("send", &blocks, PLAIN), Time::from_ns(1_570));
        let graph = built("send", &blocks, |goal| goal.hosts = vec![4, 2].into(), 5).unwrap().graph;
        assert_eq!((graph.messages()[0].src.0, graph.messages()[0].dst.0), (4, 2));
        assert_eq!(JobSpans::from_graph(&graph).span(JobId(0)), Duration::from_ns(1_070));
    }

    #[test]
    fn computations_of_a_cpu_take_turns() {
        assert_eq!(end_ns("one-cpu", &["calc 100\ncalc 30"], PLAIN), Time::from_ns(130));
        assert_eq!(end_ns("two-cpus", &["calc 100\ncalc 30 cpu 1"], PLAIN), Time::from_ns(100));
        // Computations run in the order in which they may begin, not in the order of the file. The first one
        // waits for 50 bytes; meanwhile the second one takes 200 ns.
        let blocks = ["a: calc 10\ncalc 200\nr: recv 50b from 1\na requires r", "send 50b to 0"];
        assert_eq!(end_ns("turns", &blocks, PLAIN), Time::from_ns(210));
        // Without messages the schedule takes as long, so none of its time counts as communication.
        let graph = built("turns", &blocks, PLAIN, 2).unwrap().graph;
        assert_eq!(JobSpans::from_graph(&graph).span(JobId(0)), Duration::from_ns(210));
    }

    #[test]
    fn irequires_waits_for_the_begin_only() {
        let send = "send 700b to 1\n";
        let other = "r: recv 700b from 0";
        let with = |word: &str| format!("s: {send}c: calc 300\nc {word} s");
        assert_eq!(end_ns("over", &[&with("requires"), other], PLAIN), Time::from_ns(1_000));
        assert_eq!(end_ns("begun", &[&with("irequires"), other], PLAIN), Time::from_ns(700));
        // A send begins after the operations it requires. Operations that require its begin start with it.
        let chain = format!(
            "c: calc 50\n{}\ns requires c",
            with("irequires").replace("c:", "d:").replace("c i", "d i")
        );
        assert_eq!(end_ns("chain", &[&chain, other], PLAIN), Time::from_ns(750));
        let eager = |size| move |goal: &mut Goal| goal.eager = Bytes::new(size);
        assert_eq!(end_ns("eager", &[&with("requires"), other], eager(700)), Time::from_ns(700));
        assert_eq!(end_ns("not-eager", &[&with("requires"), other], eager(699)), Time::from_ns(1_000));
    }

    /// LogGOPSim marks a computation as begun when it gets its cpu. The last message is of 1,000 bytes.
    #[test]
    fn a_computation_begins_when_it_has_its_turn() {
        let (c, d, r) = ("c: calc 1500\n", "d: calc 100\n", "r: recv 1000b from 0");
        let sent = "s: send 1000b to 1\ns requires c\n";
        // c 0-1500, send at 1500, d 1500-1600.
        let begun = format!("{c}{d}d irequires c\n{sent}");
        assert_eq!(end_ns("turn", &[&begun, r], PLAIN), Time::from_ns(2_500));
        // Computations that may begin at once keep the order of the file, whichever is shorter.
        assert_eq!(end_ns("first", &[&format!("{c}{d}{sent}"), r], PLAIN), Time::from_ns(2_500));
        assert_eq!(end_ns("second", &[&format!("{d}{c}{sent}"), r], PLAIN), Time::from_ns(2_600));
        // x 0-200, c 200-500 and y 500-1100 on one cpu, d 200-1200 on the other: nothing takes the turn of c.
        let queued = "x: calc 200\nc: calc 300\ny: calc 600\nd: calc 1000 cpu 1\nd irequires c\ns: send 900b to 1\ns requires c";
        assert_eq!(end_ns("queued", &[queued, "recv 900b from 0"], PLAIN), Time::from_ns(1_400));
        assert_eq!(end_ns("other", &[&queued[..queued.find("s: ").unwrap()]], PLAIN), Time::from_ns(1_200));
    }

    #[test]
    fn equal_tags_in_the_order_of_the_file() {
        // The second receive of tag 1 gets 20 bytes, whatever the dependencies.
        let blocks = [
            "send 10b to 1 tag 1\nsend 20b to 1 tag 1\nsend 30b to 1",
            "recv 30b from 0\nrecv 10b from 0 tag 1\nrecv 20b from 0 tag 1",
        ];
        let workload = built("tags", &blocks, PLAIN, 2).unwrap();
        assert_eq!(workload.graph.total_bytes(), 60);
        assert!(workload.notes.is_empty());
        let noted = built("nic", &["send 0b to 1 nic 1", "recv 0b from 0"], PLAIN, 2).unwrap();
        assert_eq!(noted.graph.total_bytes(), 1, "a message has a byte at least");
        assert!(noted.notes[0].contains("nic of 1 operations is not used"), "{:?}", noted.notes);
    }

    #[test]
    fn mismatches_are_named_with_their_line() {
        let error = |name: &str, blocks: &[&str]| built(name, blocks, PLAIN, 2).unwrap_err();
        assert_eq!(
            error("unreceived", &["send 5b to 1", ""]),
            "unreceived.goal:3: rank 1 does not receive it (tag 0)"
        );
        assert_eq!(
            error("unsent", &["", "recv 5b from 0 tag 2"]),
            "unsent.goal:6: nothing is sent for it: rank 0 sends rank 1 too few with tag 2"
        );
        assert_eq!(
            error("sizes", &["send 5b to 1", "recv 6b from 0"]),
            "sizes.goal:6: size = 6: the send of rank 0 has 5 bytes"
        );
        assert_eq!(
            error("self", &["send 5b to 0"]),
            "self.goal:3: rank 0: the rank itself; messages go between two ranks"
        );
        assert_eq!(
            error("cycle", &["a: calc 1\nb: calc 2\na requires b\nb irequires a"]),
            "cycle.goal:3: operations wait for each other in a cycle: line 3, which waits for line 4, which waits for line 3"
        );
        let both = |peer: u32| format!("r: recv 5b from {peer}\ns: send 5b to {peer}\ns requires r");
        let across = error("across", &[&both(1), &both(0)]);
        assert!(across.contains("dependencies form a cycle: message \"line 4\""), "{across}");
        assert!(
            error("large", &["send 99999999999b to 1", "recv 99999999999b from 0"])
                .starts_with("large.goal:3: ")
        );
        assert_eq!(
            error("many", &["", "", ""]),
            "workload \"goal\": the trace has 3 ranks, the topology 2 hosts: expected a `topology` with as many hosts, one for each rank"
        );
    }
}
