//! PFC: the nodes that paused each other, and the pauses that propagated.
//!
//! The far end of a link pauses it for lack of buffer. If the far end had itself been paused by the next switch on
//! the path, its lack of buffer is a consequence of that pause. Pauses thus form trees, and their roots are the
//! points of congestion.

use std::collections::{BTreeMap, HashMap};

use pathweave_records::{EventKind, RunResult, ns};
use serde::Serialize;

use super::{Budget, rounded};

/// A link paused for a while in one priority class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pause {
    pub(super) link: u32,
    pub(super) from_ps: u64,
    pub(super) until_ps: u64,
}

/// Events of pauses.
const KINDS: [EventKind; 2] = [EventKind::PfcPause, EventKind::PfcResume];

/// Returns the recorded pauses, in order of their begin. A pause without an end lasts to the end of the run, or of
/// the record.
pub(super) fn pauses(run: &RunResult) -> Vec<Pause> {
    let last = run.events.last().map_or(0, |e| e.time_ps);
    let end_ps = run.recorded_until_ps(&KINDS).unwrap_or(run.info.simulated_ps.max(last));
    let mut open: HashMap<(u32, u64), usize> = HashMap::new();
    let mut out: Vec<Pause> = Vec::new();
    for event in &run.events {
        let Some(link) = event.link else { continue };
        let key = (link, event.value as u64);
        match event.kind {
            EventKind::PfcPause => {
                open.entry(key).or_insert_with(|| {
                    out.push(Pause { link, from_ps: event.time_ps, until_ps: end_ps });
                    out.len() - 1
                });
            }
            EventKind::PfcResume => {
                if let Some(i) = open.remove(&key) {
                    out[i].until_ps = event.time_ps;
                }
            }
            _ => {}
        }
    }
    out
}

/// Analysis of the pauses of a run.
#[derive(Debug, Serialize)]
pub(super) struct PauseTree {
    /// Number of all paused links. The most paused of them are listed.
    of: usize,
    links: Vec<PausedLink>,
    /// Time until which the record of pauses is complete; `None` if to the end.
    until_ns: Option<f64>,
}

#[derive(Debug, Serialize)]
struct PausedLink {
    link: u32,
    name: String,
    /// Node that was paused, and node that paused it.
    paused: String,
    by: String,
    pauses: u64,
    paused_ns: f64,
    /// Pauses that began while the pausing node was itself paused, by the link on which it was paused.
    passed_on: Vec<Cause>,
}

#[derive(Debug, Serialize)]
struct Cause {
    link: u32,
    pauses: u64,
}

/// Builds the analysis of which node paused which in a run.
pub(super) fn tree(run: &RunResult, budget: &Budget) -> PauseTree {
    #[derive(Default)]
    struct Account {
        pauses: u64,
        paused_ps: u64,
        passed_on: BTreeMap<u32, u64>,
    }
    let mut accounts: BTreeMap<u32, Account> = BTreeMap::new();
    // By node: the links out of it that were paused last, each with the end of its pause. A node has few links.
    let mut held: HashMap<u32, BTreeMap<u32, u64>> = HashMap::new();
    let all = pauses(run);
    for pause in &all {
        let Some(link) = run.links.get(pause.link as usize) else { continue };
        let account = accounts.entry(pause.link).or_default();
        account.pauses += 1;
        account.paused_ps += pause.until_ps - pause.from_ps;
        if let Some(held) = held.get_mut(&link.to_node) {
            held.retain(|_, until| *until > pause.from_ps);
            for &cause in held.keys() {
                *account.passed_on.entry(cause).or_default() += 1;
            }
        }
        let until = held.entry(link.from_node).or_default().entry(pause.link).or_default();
        *until = pause.until_ps.max(*until);
    }
    let name = |node: u32| run.nodes.get(node as usize).map_or(format!("node {node}"), |n| n.name.clone());
    let of = accounts.len();
    let mut ordered: Vec<_> = accounts.into_iter().collect();
    ordered.sort_by_key(|(_, a)| std::cmp::Reverse(a.paused_ps));
    ordered.truncate(budget.pauses);
    let links = ordered.into_iter().map(|(number, account)| {
        let link = &run.links[number as usize];
        let mut passed_on: Vec<_> =
            account.passed_on.into_iter().map(|(link, pauses)| Cause { link, pauses }).collect();
        passed_on.sort_by_key(|cause| std::cmp::Reverse(cause.pauses));
        passed_on.truncate(3);
        PausedLink {
            link: number,
            name: link.name.clone(),
            paused: name(link.from_node),
            by: name(link.to_node),
            pauses: account.pauses,
            paused_ns: rounded(ns(account.paused_ps)),
            passed_on,
        }
    });
    PauseTree {
        of,
        links: links.collect(),
        until_ns: run.recorded_until_ps(&KINDS).map(|ps| rounded(ns(ps))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_records::{EventRecord, LinkTotals, NodeInfo, NodeKind};

    /// Topology h0 -> s1 -> s2 -> h3, links 0 to 2.
    fn line(events: &[(u64, u32, EventKind)]) -> RunResult {
        let kinds = [NodeKind::Host, NodeKind::Switch, NodeKind::Switch, NodeKind::Host];
        let node = |(node, kind): (u32, NodeKind)| NodeInfo {
            node,
            name: format!("n{node}"),
            kind,
            tier: 0,
            pod: None,
        };
        let link = |n: u32| LinkTotals {
            link: n,
            from_node: n,
            to_node: n + 1,
            name: format!("l{n}"),
            ..Default::default()
        };
        let event = |&(time_ps, link, kind): &(u64, u32, EventKind)| EventRecord {
            value: 3.0,
            link: Some(link),
            ..EventRecord::new(time_ps, kind, 0)
        };
        let mut run = RunResult {
            nodes: (0..4).zip(kinds).map(node).collect(),
            links: (0..3).map(link).collect(),
            events: events.iter().map(event).collect(),
            ..RunResult::default()
        };
        run.info.simulated_ps = 1_000_000;
        run
    }

    #[test]
    fn a_pause_during_a_pause_further_on_is_passed_on() {
        use EventKind::{PfcPause, PfcResume};
        // h3 pauses s2 (link 2), and s2 then pauses s1 (link 1). Later s1 pauses h0 (link 0) on its own account.
        let run = line(&[
            (1_000, 2, PfcPause),
            (2_000, 1, PfcPause),
            (3_000, 2, PfcResume),
            (4_000, 1, PfcResume),
            (5_000, 0, PfcPause),
        ]);
        let tree = tree(&run, &Budget::for_runs(1));
        let of = |link: u32| tree.links.iter().find(|l| l.link == link).unwrap();
        assert_eq!((tree.of, tree.until_ns), (3, None));
        assert_eq!((of(2).paused.as_str(), of(2).by.as_str(), of(2).paused_ns), ("n2", "n3", 2.0));
        assert!(of(2).passed_on.is_empty() && of(0).passed_on.is_empty());
        assert_eq!((of(1).passed_on[0].link, of(1).passed_on[0].pauses), (2, 1));
        // Without an end: to the end of the run at 1,000 ns.
        assert_eq!(of(0).paused_ns, 995.0);
    }

    #[test]
    fn a_pause_repeated_is_one_and_a_resume_without_one_nothing() {
        use EventKind::{PfcPause, PfcResume};
        let run = line(&[(5, 0, PfcResume), (10, 0, PfcPause), (20, 0, PfcPause), (30, 0, PfcResume)]);
        assert_eq!(pauses(&run), [Pause { link: 0, from_ps: 10, until_ps: 30 }]);
    }
}
