//! All-to-all, as in expert-parallel training: every member of a group sends to every other one.

use pathweave_units::{Bytes, Duration};
use serde::{Deserialize, Serialize};

use super::placement::{GroupSize, Placement, groups};
use crate::algorithm::Algorithm;
use crate::builder::{Draft, Stream};
use crate::collective::Operation;
use crate::error::WorkloadError;
use crate::graph::{JobId, PROCESS_BITS};
use crate::sink::{Generate, Steps, WorkloadBuilder};

/// Every host of a group, or every process on its hosts, sends to every other one. Each round of each group
/// is a job.
///
/// In step s (1 to n - 1), member i sends to member i + s, so each step is a permutation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AllToAll {
    /// Size of the message of each ordered pair of hosts or processes, 1 B to 4 GiB.
    pub size: Bytes,
    /// Number of hosts in a group, or a list of numbers, one for each group. Default: one group of all
    /// hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_size: Option<GroupSize>,
    /// Number of processes in a group, 2 to 32768 for each host. Process p is on host p modulo the number of
    /// hosts of the group. Each process sends to every process on another host. Default: one process on each
    /// host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// Delay between the starts of consecutive steps: messages of step s start no earlier than (s - 1) times
    /// this value. Messages with the same start are posted in the order of their receivers. So without
    /// `window` and `stagger`, all hosts send to the first host first; with "1ps", messages are posted in the
    /// order of steps. Default: 0s.
    #[serde(default)]
    pub stagger: Duration,
    /// Assignment of hosts to groups.
    #[serde(default)]
    pub placement: Placement,
    /// Largest number of messages that a host has outstanding: step s begins once the host's message of step
    /// s - `window` is acknowledged. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
    /// Number of rounds, one after another (default 1). A host begins the next round when it has sent and
    /// received all messages of the previous one.
    #[serde(default = "one")]
    pub repetitions: u32,
    /// Duration of a computation at each host after each round, as part of the round's job (default 0).
    #[serde(default)]
    pub compute: Duration,
}

/// A process of a group: its host, and its number on that host.
struct Process {
    host: u32,
    local: u16,
}

/// A message of a round, and the members at its ends.
struct Sent {
    from: usize,
    to: usize,
    message: Draft,
}

fn one() -> u32 {
    1
}

impl Generate for AllToAll {
    fn generate(&self, out: &mut WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
        if self.repetitions == 0 {
            return out.field_error("repetitions", 0, "expected 1 or more");
        }
        if self.window == Some(0) {
            return out.field_error("window", 0, "expected 1 or more; leave it out to send all at once");
        }
        let groups = groups(out, self.group_size.as_ref(), self.placement)?;
        let processes_of = |hosts: &Vec<u32>| self.processes.unwrap_or(hosts.len() as u32);
        for hosts in &groups {
            let processes = processes_of(hosts);
            if processes < 2 || processes > (hosts.len() as u32).saturating_mul(1 << PROCESS_BITS) {
                return out.field_error(
                    "processes",
                    processes,
                    format!("expected 2 to {} a host", 1 << PROCESS_BITS),
                );
            }
        }
        let pairs = |hosts: &Vec<u32>| f64::from(processes_of(hosts)) * f64::from(processes_of(hosts));
        out.check_count(groups.iter().map(pairs).sum::<f64>() * f64::from(self.repetitions))?;
        for (g, hosts) in groups.iter().enumerate() {
            let processes = processes_of(hosts);
            let members: Vec<Process> = (0..processes as usize)
                .map(|p| Process { host: hosts[p % hosts.len()], local: (p / hosts.len()) as u16 })
                .collect();
            let members = &members[..];
            let (mut ready, mut sent, mut before): (Vec<Draft>, Vec<Sent>, _) =
                (Vec::new(), Vec::new(), None);
            for round in 0..self.repetitions {
                let job = out.next_job(format_args!("group {g}, round {round}"), &mut before)?;
                // Without a computation the wait belongs to the round that it delays: the one before is over with its
                // last message, although senders still lack acknowledgements.
                if round > 0 && self.compute == Duration::ZERO {
                    out.label_activity("wait");
                    ready = self.tasks_after(out, job, members, &sent)?;
                }
                sent = self.messages(out, job, members, round, &ready)?;
                if self.compute > Duration::ZERO {
                    out.doing("compute", format_args!("round {round}"));
                    ready = self.tasks_after(out, job, members, &sent)?;
                }
            }
        }
        Ok(())
    }
}

impl AllToAll {
    /// Declares a task for each member that takes `compute`, after all messages that the member sends or receives.
    fn tasks_after(
        &self,
        out: &mut WorkloadBuilder<'_>,
        job: JobId,
        members: &[Process],
        sent: &[Sent],
    ) -> Result<Vec<Draft>, WorkloadError> {
        let tasks: Result<Vec<Draft>, _> =
            members.iter().map(|member| out.compute(member.host, self.compute, job)).collect();
        let tasks = tasks?;
        for &Sent { from, to, message } in sent {
            out.after(tasks[from], message)?;
            out.after(tasks[to], message)?;
        }
        Ok(tasks)
    }

    /// Declares the messages of one round. `ready` holds the tasks after which each member may begin; it is empty in the
    /// first round.
    fn messages(
        &self,
        out: &mut WorkloadBuilder<'_>,
        job: JobId,
        members: &[Process],
        round: u32,
        ready: &[Draft],
    ) -> Result<Vec<Sent>, WorkloadError> {
        let n = members.len();
        let window = self.window.map_or(n, |w| w as usize);
        let mut all = Vec::new();
        // sent[step - 1][i] is the message of member i in that step. If that step stays within its host, it
        // is the member's last message before.
        let size = self.size.get() * n as u64;
        let measure = Operation::AllToAll.measure(n, size);
        out.measure(job, measure);
        let steps = Steps {
            kind: "all-to-all",
            ranks: n,
            algorithm: Algorithm::Direct.name(),
            measure: Some(measure),
            parallelism: None,
        };
        out.collective(format_args!("round {round}"), steps);
        let mut sent: Vec<Vec<Option<Draft>>> = Vec::with_capacity(n - 1);
        for step in 1..n {
            let mut row = Vec::with_capacity(n);
            let start = Duration::from_ps(self.stagger.as_ps().saturating_mul(step as u64 - 1));
            for (i, src) in members.iter().enumerate() {
                let to = (i + step) % n;
                let dst = &members[to];
                let earlier = if step > window { sent[step - 1 - window][i] } else { None };
                if src.host == dst.host {
                    row.push(earlier);
                    continue;
                }
                let stream = Stream::between_processes(src.local, dst.local);
                let message = out.message((src.host, dst.host), self.size, start, stream, Some(job))?;
                if let Some(before) = earlier.or_else(|| ready.get(i).copied()) {
                    out.after(message, before)?;
                }
                all.push(Sent { from: i, to, message });
                row.push(Some(message));
            }
            sent.push(row);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pathweave_units::{HostId, Time};

    use super::*;
    use crate::kinds::Traffic;
    use crate::testing::{graph_of, job_ends};

    fn all_to_all(window: Option<u32>, group_size: Option<u32>, repetitions: u32) -> Traffic {
        let group_size = group_size.map(GroupSize::from);
        Traffic::AllToAll(AllToAll {
            size: Bytes::new(1000),
            group_size,
            processes: None,
            stagger: Duration::ZERO,
            placement: Placement::Strided,
            window,
            repetitions,
            compute: Duration::ZERO,
        })
    }

    #[test]
    fn every_ordered_pair_of_a_group_once() {
        let graph = graph_of(6, all_to_all(None, Some(3), 1));
        assert!(!graph.has_dependencies());
        let found: BTreeSet<(u32, u32)> = graph.messages().iter().map(|m| (m.src.0, m.dst.0)).collect();
        let of = |g: [u32; 3]| g.into_iter().flat_map(move |a| g.into_iter().map(move |b| (a, b)));
        let expected: BTreeSet<_> = of([0, 2, 4]).chain(of([1, 3, 5])).filter(|(a, b)| a != b).collect();
        assert_eq!(found, expected);
        assert_eq!(graph.messages().len(), 12);
        assert_eq!(graph.jobs().len(), 2);
        // Of three parts of a rank's vector two leave it.
        let part = graph.messages()[0].size.get();
        let sizes = graph.jobs().iter().map(|job| job.measure.map(|it| (it.size.get(), it.bus.get())));
        assert!(sizes.eq([Some((3 * part, 2 * part)); 2]));
    }

    #[test]
    fn steps_follow_the_window_and_rounds_follow_each_other() {
        // A message takes a microsecond. 4 steps take 2 us in pairs, 4 us one by one, and 1 us all at once.
        for (window, us) in [(Some(2), 2), (Some(1), 4), (None, 1)] {
            let graph = graph_of(5, all_to_all(window, None, 2));
            assert_eq!(job_ends(&graph), [Time::from_us(us), Time::from_us(2 * us)]);
        }
    }

    #[test]
    fn processes_send_to_those_of_other_hosts() {
        // Processes 0 and 3 are on host 0, 1 and 4 on host 1, and 2 on host 2.
        let Traffic::AllToAll(config) = all_to_all(None, None, 1) else { panic!("an all-to-all") };
        let graph = graph_of(
            3,
            Traffic::AllToAll(AllToAll { processes: Some(5), stagger: Duration::from_ps(1), ..config }),
        );
        assert_eq!(graph.messages().len(), 5 * 4 - 4, "4 pairs share a host");
        let number = |host: HostId, local: u16| host.0 + 3 * u32::from(local);
        for message in graph.messages() {
            let (src, dst) = message.processes();
            let (from, to) = (number(message.src, src), number(message.dst, dst));
            assert!(from < 5 && to < 5 && message.src != message.dst);
            // Messages are posted in the order of steps.
            assert_eq!(message.start, Time::from_ps(u64::from((to + 5 - from) % 5 - 1)));
        }
        let pairs: BTreeSet<_> = graph.messages().iter().map(|m| (m.src, m.dst, m.stream)).collect();
        assert_eq!(pairs.len(), 16);
    }

    #[test]
    fn rounds_of_processes_follow_each_other() {
        let Traffic::AllToAll(config) = all_to_all(Some(1), None, 2) else { panic!("an all-to-all") };
        let graph = graph_of(3, Traffic::AllToAll(AllToAll { processes: Some(6), ..config }));
        // With a window of 1 there are 5 steps, of which the third stays within the host.
        assert_eq!(job_ends(&graph), [Time::from_us(4), Time::from_us(8)]);
    }

    #[test]
    fn groups_of_the_udmp_evaluation() {
        // UDMP paper, Fig. 11: 320 hosts in 20 groups of 16.
        let graph = graph_of(320, all_to_all(None, Some(16), 1));
        assert_eq!((graph.messages().len(), graph.jobs().len()), (20 * 16 * 15, 20));
        assert!(graph.messages().iter().all(|m| m.dst.0 % 20 == m.src.0 % 20));
    }
}
