//! Canonical order of tasks, independent of the order of declaration.

use std::collections::HashMap;

use pathweave_units::{Duration, HostId, Time};

use super::{COMPUTE, Draft, GraphBuilder};
use crate::edges::Edges;
use crate::error::GraphError;
use crate::graph::{Compute, CoreId, GroupId, JobId, Message, MessageGraph, OWN, TaskId};

impl GraphBuilder {
    /// Validates the declarations and makes the graph, in canonical order.
    ///
    /// The order of tasks is by start, then depth (longest chain of predecessors), then all other fields.
    /// Tasks that are still equal keep the order of declaration, as do computations of a core, which take turns in that
    /// order if they may begin at once. That order is deterministic: a generator's
    /// order follows from its configuration, and lists of flows are sorted by content before. Connections of
    /// [`Stream::Own`] are numbered in canonical order for each pair of hosts, so further flows between other
    /// hosts do not change them.
    ///
    /// [`Stream::Own`]: crate::Stream::Own
    pub fn finish(mut self) -> Result<MessageGraph, GraphError> {
        self.order_names();
        let tasks = self.task_count();
        let split = self.messages.len() as u32;
        let index = |draft: Draft| draft.index(split);
        let mut declared = std::mem::take(&mut self.edges);
        declared.iter_mut().for_each(|edge| *edge = edge.renamed(|draft| index(Draft(draft))));
        let edges = Edges::new(tasks, &declared);
        drop(declared);
        let mut delays = vec![Duration::ZERO; if self.delays.is_empty() { 0 } else { tasks }];
        for &(task, delay) in &self.delays {
            let slot = &mut delays[index(task) as usize];
            *slot = slot.as_ps().checked_add(delay.as_ps()).map(Duration::from_ps).ok_or(GraphError::Time)?;
        }
        self.fold_delays_of_roots(&edges, &mut delays)?;

        let depths = self.depths(&edges)?;
        let (order_messages, order_computes) = self.order(&depths);
        let mut position =
            vec![0u32; if edges.predecessors().is_empty() && delays.is_empty() { 0 } else { tasks }];
        if !position.is_empty() {
            for (new, &old) in order_messages.iter().enumerate() {
                position[old as usize] = new as u32;
            }
            for (new, &old) in order_computes.iter().enumerate() {
                position[(split + old) as usize] = split + new as u32;
            }
        }
        let edges = edges.renamed(&position);
        let mut needs: Vec<(TaskId, u32)> = Vec::new();
        for &(task, suffice) in &self.needs {
            let task = TaskId(position.get(index(task) as usize).copied().unwrap_or_default());
            if edges.predecessors().get(task.index()).is_some_and(|&all| suffice < all) {
                needs.push((task, suffice));
            }
        }
        needs.sort_unstable();
        let mut sorted_delays = vec![Duration::ZERO; delays.len()];
        for (old, &delay) in delays.iter().enumerate() {
            sorted_delays[position[old] as usize] = delay;
        }
        if sorted_delays.iter().all(|&d| d == Duration::ZERO) {
            sorted_delays = Vec::new();
        }
        if !self.nominal.is_empty() {
            self.know_nominal();
            arrange(&mut self.nominal, order_computes.clone());
        }
        let labels = self.labelling.finish(&order_messages, &order_computes);
        let (mut messages, mut computes) = (self.messages, self.computes);
        arrange(&mut messages, order_messages);
        arrange(&mut computes, order_computes);
        number_own_streams(&mut messages);
        let cores = number_cores(&mut computes, self.cores);
        Ok(MessageGraph {
            hosts: self.hosts,
            groups: self.groups,
            memory: self.memory,
            jobs: self.jobs,
            total_bytes: messages.iter().map(|message| u128::from(message.size.get())).sum(),
            messages,
            computes,
            nominal: self.nominal,
            cores,
            edges,
            needs,
            delays: sorted_delays,
            labels,
            folding: self.folding,
        })
    }

    /// Sorts groups and jobs by name, so that the order of workloads in a scenario has no effect.
    fn order_names(&mut self) {
        let group_of = sort_with_map(&mut self.groups);
        for job in &mut self.jobs {
            job.group = GroupId(group_of[job.group.index()] as u16);
        }
        let job_of = sort_with_map(&mut self.jobs);
        let rename = |job: &mut Option<JobId>| *job = job.map(|j| JobId(job_of[j.index()]));
        for job in &mut self.jobs {
            rename(&mut job.follows);
            rename(&mut job.parent);
        }
        for message in &mut self.messages {
            message.group = GroupId(group_of[message.group.index()] as u16);
            rename(&mut message.job);
        }
        self.computes.iter_mut().for_each(|c| rename(&mut c.job));
    }

    /// Adds the delay of each task without predecessors to its start.
    fn fold_delays_of_roots(&mut self, edges: &Edges, delays: &mut [Duration]) -> Result<(), GraphError> {
        let split = self.messages.len();
        for (i, delay) in delays.iter_mut().enumerate() {
            if *delay > Duration::ZERO && edges.predecessors().get(i).is_none_or(|&n| n == 0) {
                let start = match self.messages.get_mut(i) {
                    Some(message) => &mut message.start,
                    None => &mut self.computes[i - split].start,
                };
                *start =
                    start.as_ps().checked_add(delay.as_ps()).map(Time::from_ps).ok_or(GraphError::Time)?;
                *delay = Duration::ZERO;
            }
        }
        Ok(())
    }

    /// Returns the length of each task's longest chain of predecessors. Empty if there are no edges.
    fn depths(&self, edges: &Edges) -> Result<Vec<u32>, GraphError> {
        let mut waiting = edges.predecessors().to_vec();
        let mut depths = vec![0u32; waiting.len()];
        let mut free: Vec<u32> = (0..waiting.len() as u32).filter(|&i| waiting[i as usize] == 0).collect();
        let mut done = 0;
        while let Some(i) = free.pop() {
            done += 1;
            for next in edges.all_dependents(TaskId(i)) {
                depths[next.index()] = depths[next.index()].max(depths[i as usize] + 1);
                waiting[next.index()] -= 1;
                if waiting[next.index()] == 0 {
                    free.push(next.0);
                }
            }
        }
        if done == waiting.len() { Ok(depths) } else { Err(self.describe_cycle(edges, &waiting)) }
    }

    /// Describes a cycle among the tasks that still have unfinished predecessors.
    fn describe_cycle(&self, edges: &Edges, waiting: &[u32]) -> GraphError {
        // Each of these tasks has a predecessor among them, so a walk backwards reaches a task twice.
        let mut predecessor: HashMap<u32, u32> = HashMap::new();
        for (from, to) in edges.pairs() {
            if waiting[from.index()] > 0 && waiting[to.index()] > 0 {
                predecessor.entry(to.0).or_insert(from.0);
            }
        }
        let mut at = waiting.iter().position(|&n| n > 0).expect("called only if some task waits") as u32;
        let mut walk = Vec::new();
        let mut seen: HashMap<u32, usize> = HashMap::new();
        while !seen.contains_key(&at) {
            seen.insert(at, walk.len());
            walk.push(at);
            at = predecessor[&at];
        }
        let mut cycle: Vec<u32> = walk.split_off(seen[&at]);
        cycle.reverse();
        let first = (0..cycle.len()).min_by_key(|&i| cycle[i]).expect("a cycle has a task");
        cycle.rotate_left(first);
        let shown = cycle.len().min(8);
        let mut text: Vec<String> = cycle[..shown].iter().map(|&i| self.describe(i as usize)).collect();
        if shown < cycle.len() {
            text.push(format!("{} more", cycle.len() - shown));
        }
        text.push(self.describe(cycle[0] as usize));
        GraphError::Cycle(text.join(", then "))
    }

    fn describe(&self, i: usize) -> String {
        let name = |task: Draft| match self.names.iter().find(|(t, _)| *t == task) {
            Some((_, name)) => format!(" \"{name}\""),
            None => String::new(),
        };
        match self.messages.get(i) {
            Some(m) => {
                let name = name(Draft(i as u32));
                format!("message{name} (host {} to {}, {} bytes)", m.src, m.dst, m.size.get())
            }
            None => {
                let c = &self.computes[i - self.messages.len()];
                let name = name(Draft((i - self.messages.len()) as u32 | COMPUTE));
                match c.host {
                    Some(host) => format!("computation{name} (host {host}, {})", c.duration),
                    None => format!("barrier{name}"),
                }
            }
        }
    }

    /// Returns the old indices of messages and of computations, in canonical order.
    fn order(&self, depths: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let depth = |i: usize| depths.get(i).copied().unwrap_or(0);
        let messages = sorted_indices(
            self.messages.iter().enumerate().map(|(i, m)| (m.start, depth(i), m.src.0)),
            |i| {
                let m = &self.messages[i];
                (m.dst, m.group, m.size, m.stream, m.job)
            },
        );
        let of_computes = |i: usize| match self.computes[i].core {
            Some(_) => 0,
            None => depth(self.messages.len() + i),
        };
        let host = |c: &Compute| c.host.map_or(0, |host| host.0 + 1);
        let computes = sorted_indices(
            self.computes.iter().enumerate().map(|(i, c)| (c.start, of_computes(i), host(c))),
            |i| {
                let c = &self.computes[i];
                (c.core.map_or(c.duration, |_| Duration::ZERO), c.job, c.core)
            },
        );
        (messages, computes)
    }
}

/// Returns indices sorted by the key of `first`, then by `rest`, then by index. `first` holds the fields that
/// decide most often. `rest` is evaluated only on a tie, because each evaluation is a cache miss in a large
/// graph.
fn sorted_indices<K: Ord>(
    first: impl Iterator<Item = (Time, u32, u32)>,
    rest: impl Fn(usize) -> K,
) -> Vec<u32> {
    let mut keys: Vec<_> = first.zip(0u32..).collect();
    keys.sort_unstable_by(|(a, i), (b, j)| {
        a.cmp(b).then_with(|| rest(*i as usize).cmp(&rest(*j as usize))).then(i.cmp(j))
    });
    keys.into_iter().map(|(_, index)| index).collect()
}

/// Permutes `items` in place: `order` holds the old index of each new position. A second copy of a large
/// graph may not fit into memory.
pub(super) fn arrange<T: Copy>(items: &mut [T], mut order: Vec<u32>) {
    for start in 0..items.len() {
        // Follows the cycle that begins at this position. Positions already done hold their own index.
        let first = items[start];
        let mut at = start;
        loop {
            let from = std::mem::replace(&mut order[at], at as u32) as usize;
            if from == start {
                items[at] = first;
                break;
            }
            items[at] = items[from];
            at = from;
        }
    }
}

/// Sorts `items` and returns the new index of each old one.
fn sort_with_map<T: Ord>(items: &mut Vec<T>) -> Vec<u32> {
    let mut numbered: Vec<(T, u32)> = std::mem::take(items).into_iter().zip(0..).collect();
    numbered.sort();
    let mut map = vec![0u32; numbered.len()];
    for (new, (item, old)) in numbered.into_iter().enumerate() {
        map[old as usize] = new as u32;
        items.push(item);
    }
    map
}

fn number_own_streams(messages: &mut [Message]) {
    // The map is only looked up, never iterated, so its order has no effect.
    let mut next = foldhash::HashMap::<(HostId, HostId, GroupId), u32>::default();
    for message in messages.iter_mut().filter(|m| m.stream == OWN) {
        let n = next.entry((message.src, message.dst, message.group)).or_insert(0);
        message.stream = OWN | *n;
        *n += 1;
    }
}

/// Renumbers cores in the order in which computations use them. Returns the number of cores in use.
fn number_cores(computes: &mut [Compute], declared: u32) -> u32 {
    let mut number: Vec<Option<u32>> = vec![None; declared as usize];
    let mut next = 0;
    for core in computes.iter_mut().filter_map(|compute| compute.core.as_mut()) {
        let of_core = number[core.index()].get_or_insert_with(|| {
            next += 1;
            next - 1
        });
        *core = CoreId(*of_core);
    }
    next
}
