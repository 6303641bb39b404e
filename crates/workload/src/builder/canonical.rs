//! Puts declared tasks in an order that does not depend on the order of declaration.

use std::collections::HashMap;

use pathweave_units::{Duration, HostId, Time, mix64};

use super::{Draft, DraftId, GraphBuilder, OWN};
use crate::error::GraphError;
use crate::graph::{Edges, GroupId, JobId, Message, MessageGraph, TaskId};

impl GraphBuilder {
    /// Validates and orders.
    ///
    /// The order of tasks is by start, then depth (longest chain of predecessors), then all other fields, then
    /// by the shape of the graph before and behind the task. What is still equal is interchangeable, save for
    /// contrived graphs whose tasks differ only in how equal tasks are shared; those keep the order of
    /// declaration. Connections of [`Stream::Own`] are numbered in this order for each pair of hosts, so that
    /// further flows elsewhere do not change them.
    pub fn finish(mut self) -> Result<MessageGraph, GraphError> {
        self.order_names();
        let tasks = self.task_count();
        let split = self.messages.len() as u32;
        let index = |draft: Draft| match draft.0 {
            DraftId::Message(i) => i,
            DraftId::Compute(i) => split + i,
        };
        let pairs = self.edges.iter().map(|&(from, to)| (index(from), index(to))).collect();
        let edges = Edges::new(tasks, pairs);
        let mut delays = vec![Duration::ZERO; if self.delays.is_empty() { 0 } else { tasks }];
        for &(task, delay) in &self.delays {
            let slot = &mut delays[index(task) as usize];
            *slot = slot.as_ps().checked_add(delay.as_ps()).map(Duration::from_ps).ok_or(GraphError::Time)?;
        }
        self.fold_delays_of_roots(&edges, &mut delays)?;

        let ranks = self.ranks(&edges, &delays)?;
        let (order_messages, order_computes) = self.order(&ranks);
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
        let edges = Edges::new(
            tasks,
            edges.pairs().map(|(from, to)| (position[from.index()], position[to.index()])).collect(),
        );
        let mut sorted_delays = vec![Duration::ZERO; delays.len()];
        for (old, &delay) in delays.iter().enumerate() {
            sorted_delays[position[old] as usize] = delay;
        }
        if sorted_delays.iter().all(|&d| d == Duration::ZERO) {
            sorted_delays = Vec::new();
        }
        let mut messages: Vec<Message> = order_messages.iter().map(|&i| self.messages[i as usize]).collect();
        number_own_streams(&mut messages);
        Ok(MessageGraph {
            hosts: self.hosts,
            groups: self.groups,
            jobs: self.jobs,
            messages,
            computes: order_computes.iter().map(|&i| self.computes[i as usize]).collect(),
            edges,
            delays: sorted_delays,
        })
    }

    /// Sorts groups and jobs by name, so that the order of workloads in a scenario does not show.
    fn order_names(&mut self) {
        let group_of = sort_with_map(&mut self.groups);
        for job in &mut self.jobs {
            job.group = GroupId(group_of[job.group.index()] as u16);
        }
        let job_of = sort_with_map(&mut self.jobs);
        let rename = |job: &mut Option<JobId>| *job = job.map(|j| JobId(job_of[j.index()]));
        for message in &mut self.messages {
            message.group = GroupId(group_of[message.group.index()] as u16);
            rename(&mut message.job);
        }
        self.computes.iter_mut().for_each(|c| rename(&mut c.job));
    }

    /// A delay of a task without predecessors belongs to its start.
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

    /// What tells tasks with equal fields apart: depth and the shape of the graph around them. Empty if there
    /// are no edges.
    fn ranks(&self, edges: &Edges, delays: &[Duration]) -> Result<Vec<Rank>, GraphError> {
        if edges.predecessors().is_empty() {
            return Ok(Vec::new());
        }
        let order = self.topological_order(edges)?;
        let fields: Vec<u64> = (0..self.task_count()).map(|i| self.hash_fields(i, delays)).collect();
        let mut ranks: Vec<Rank> = vec![Rank::default(); fields.len()];
        // Sums commute, so the hash of a task depends on the set of its neighbours and not on their order.
        for &i in &order {
            let before = mix64(fields[i as usize] ^ mix64(ranks[i as usize].before));
            let depth = ranks[i as usize].depth + 1;
            ranks[i as usize].before = before;
            for &next in edges.of(TaskId(i)) {
                let rank = &mut ranks[next.index()];
                rank.before = rank.before.wrapping_add(before);
                rank.depth = rank.depth.max(depth);
            }
        }
        for &i in order.iter().rev() {
            let sum =
                edges.of(TaskId(i)).iter().fold(0u64, |sum, t| sum.wrapping_add(ranks[t.index()].behind));
            ranks[i as usize].behind = mix64(fields[i as usize] ^ mix64(sum));
        }
        Ok(ranks)
    }

    fn hash_fields(&self, i: usize, delays: &[Duration]) -> u64 {
        let job = |job: Option<JobId>| job.map_or(0, |j| u64::from(j.0) + 1);
        let delay = delays.get(i).map_or(0, |d| d.as_ps());
        let fields = match self.messages.get(i) {
            Some(m) => [
                u64::from(m.src.0) << 32 | u64::from(m.dst.0),
                m.size.get(),
                m.start.as_ps(),
                u64::from(m.group.0) << 32 | u64::from(m.stream),
                job(m.job),
                delay,
            ],
            None => {
                let c = &self.computes[i - self.messages.len()];
                let host = c.host.map_or(u64::MAX, |h| u64::from(h.0));
                [host, c.duration.as_ps(), c.start.as_ps(), u64::MAX, job(c.job), delay]
            }
        };
        fields.iter().fold(0, |hash, &field| mix64(hash ^ mix64(field)))
    }

    fn topological_order(&self, edges: &Edges) -> Result<Vec<u32>, GraphError> {
        let mut waiting = edges.predecessors().to_vec();
        let mut order: Vec<u32> = (0..waiting.len() as u32).filter(|&i| waiting[i as usize] == 0).collect();
        let mut done = 0;
        while done < order.len() {
            for next in edges.of(TaskId(order[done])) {
                waiting[next.index()] -= 1;
                if waiting[next.index()] == 0 {
                    order.push(next.0);
                }
            }
            done += 1;
        }
        if order.len() == waiting.len() { Ok(order) } else { Err(self.describe_cycle(edges, &waiting)) }
    }

    /// Names a cycle among the tasks that never became free.
    fn describe_cycle(&self, edges: &Edges, waiting: &[u32]) -> GraphError {
        // Each of them has a predecessor among them, so walking backwards must come round.
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
        let shown = cycle.len().min(8);
        let mut text: Vec<String> = cycle[..shown].iter().map(|&i| self.describe(i as usize)).collect();
        if shown < cycle.len() {
            text.push(format!("{} more", cycle.len() - shown));
        }
        text.push(self.describe(cycle[0] as usize));
        GraphError::Cycle(text.join(", then "))
    }

    fn describe(&self, i: usize) -> String {
        match self.messages.get(i) {
            Some(m) => format!("message {i} (host {} to {}, {} bytes)", m.src, m.dst, m.size.get()),
            None => {
                let index = i - self.messages.len();
                let c = &self.computes[index];
                match c.host {
                    Some(host) => format!("computation {index} (host {host}, {})", c.duration),
                    None => format!("barrier {index}"),
                }
            }
        }
    }

    /// Old indices of messages and of computations in canonical order.
    fn order(&self, ranks: &[Rank]) -> (Vec<u32>, Vec<u32>) {
        let rank = |i: usize| ranks.get(i).copied().unwrap_or_default();
        let messages = sorted_indices(self.messages.len(), |i| {
            let (m, r) = (&self.messages[i], rank(i));
            (m.start, r.depth, m.src, m.dst, m.group, m.size, m.stream, m.job, r.before, r.behind)
        });
        let computes = sorted_indices(self.computes.len(), |i| {
            let (c, r) = (&self.computes[i], rank(self.messages.len() + i));
            (c.start, r.depth, c.host, c.duration, c.job, r.before, r.behind)
        });
        (messages, computes)
    }
}

/// Depth and neighbourhood of a task.
#[derive(Clone, Copy, Debug, Default)]
struct Rank {
    depth: u32,
    before: u64,
    behind: u64,
}

/// Indices `0..len` in the order of their keys, ties by index.
fn sorted_indices<K: Ord>(len: usize, key: impl Fn(usize) -> K) -> Vec<u32> {
    let mut indices: Vec<u32> = (0..len as u32).collect();
    indices.sort_by_key(|&i| key(i as usize));
    indices
}

/// Sorts and returns the new index of each old one.
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
    // Only looked up, never iterated: its order cannot leak.
    let mut next: HashMap<(HostId, HostId, GroupId), u32> = HashMap::new();
    for message in messages.iter_mut().filter(|m| m.stream == OWN) {
        let n = next.entry((message.src, message.dst, message.group)).or_insert(0);
        message.stream = OWN | *n;
        *n += 1;
    }
}
