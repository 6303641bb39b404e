//! Common parts of traces of ranks: placement of ranks, matching of sends and receives, and search for
//! cycles.

use std::collections::{BTreeMap, VecDeque};

use crate::builder::Draft;
use crate::error::WorkloadError;
use crate::hosts::HostList;
use crate::sink::WorkloadBuilder;

/// Remedy for a trace with a fixed number of ranks.
pub(super) const LARGER_TOPOLOGY: &str = "expected a `topology` with as many hosts, one for each rank";

/// Returns the host of each rank. `remedy` states the change that helps if there are too few hosts.
pub(super) fn hosts_of_ranks(
    out: &WorkloadBuilder<'_>,
    listed: &HostList,
    ranks: usize,
    remedy: &'static str,
) -> Result<Vec<u32>, WorkloadError> {
    let hosts = out.env.hosts;
    let listed = out.hosts("hosts", listed)?;
    if listed.is_empty() {
        if ranks > hosts as usize {
            return Err(WorkloadError::TooFewHosts { group: out.name.to_owned(), ranks, hosts, remedy });
        }
        return Ok((0..ranks as u32).collect());
    }
    if listed.len() != ranks {
        let given = format!("{} hosts", listed.len());
        return out.field_error("hosts", given, format!("expected {ranks}, one for each rank of the trace"));
    }
    if let Some(beyond) = listed.iter().find(|&&host| host >= hosts) {
        return out.field_error("hosts", beyond, format!("hosts are 0 to {}", hosts.saturating_sub(1)));
    }
    let mut sorted = listed.clone();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => out.field_error("hosts", twice[0], "this host is given to two ranks"),
        None => Ok(listed),
    }
}

/// Key by which sends and receives match: source rank, destination rank, tag.
pub(super) type Channel = (u32, u32, i64);

/// A send or a receive. `P` is its place in the trace.
#[derive(Clone, Copy)]
pub(super) struct SendOrRecv<P> {
    pub(super) place: P,
    pub(super) task: Draft,
    pub(super) bytes: u64,
}

/// Sends and receives of a trace. The k-th send matches the k-th receive with the same ranks and tag.
pub(super) struct Matching<P> {
    sends: BTreeMap<Channel, VecDeque<SendOrRecv<P>>>,
    receives: BTreeMap<Channel, Vec<SendOrRecv<P>>>,
}

impl<P> Default for Matching<P> {
    fn default() -> Self {
        Matching { sends: BTreeMap::new(), receives: BTreeMap::new() }
    }
}

impl<P: Copy> Matching<P> {
    pub(super) fn send(&mut self, channel: Channel, half: SendOrRecv<P>) {
        self.sends.entry(channel).or_default().push_back(half);
    }

    pub(super) fn receive(&mut self, channel: Channel, half: SendOrRecv<P>) {
        self.receives.entry(channel).or_default().push(half);
    }

    /// Returns each receive with its matching send.
    ///
    /// # Errors
    ///
    /// Returns the place and the reason if a send or receive has no match, or if sizes differ. `size` is the
    /// trace's name of the size.
    pub(super) fn matched(mut self, size: &str) -> Result<Vec<(Draft, Draft)>, (P, String)> {
        let mut pairs = Vec::new();
        for ((from, to, tag), receives) in self.receives {
            let mut sent = self.sends.remove(&(from, to, tag)).unwrap_or_default();
            for SendOrRecv { place, task, bytes } in receives {
                let Some(send) = sent.pop_front() else {
                    let what =
                        format!("nothing is sent for it: rank {from} sends rank {to} too few with tag {tag}");
                    return Err((place, what));
                };
                if send.bytes != bytes {
                    let what = format!("{size} = {bytes}: the send of rank {from} has {} bytes", send.bytes);
                    return Err((place, what));
                }
                pairs.push((task, send.task));
            }
            self.sends.insert((from, to, tag), sent);
        }
        match self.sends.iter().find_map(|(channel, sent)| Some((channel, sent.front()?))) {
            Some(((_, to, tag), send)) => {
                Err((send.place, format!("rank {to} does not receive it (tag {tag})")))
            }
            None => Ok(pairs),
        }
    }
}

/// Returns nodes that form a cycle, if there is one. `before` lists the predecessors of each node.
pub(super) fn cycle(before: &[Vec<u32>]) -> Option<Vec<u32>> {
    let mut waiting: Vec<u32> = before.iter().map(|rows| rows.len() as u32).collect();
    let mut after: Vec<Vec<u32>> = vec![Vec::new(); before.len()];
    for (i, rows) in (0..).zip(before) {
        rows.iter().for_each(|&row| after[row as usize].push(i));
    }
    let mut free: Vec<u32> = (0..before.len() as u32).filter(|&i| waiting[i as usize] == 0).collect();
    while let Some(i) = free.pop() {
        for &next in &after[i as usize] {
            waiting[next as usize] -= 1;
            if waiting[next as usize] == 0 {
                free.push(next);
            }
        }
    }
    // Each remaining node waits for another remaining one, so a walk backwards reaches a node twice.
    let mut at = waiting.iter().position(|&n| n > 0)? as u32;
    let mut walk: Vec<u32> = Vec::new();
    let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
    loop {
        if let Some(&first) = seen.get(&at) {
            return Some(walk.split_off(first));
        }
        seen.insert(at, walk.len());
        walk.push(at);
        let rows = &before[at as usize];
        at = *rows.iter().find(|&&row| waiting[row as usize] > 0).expect("it waits for one of those left");
    }
}
