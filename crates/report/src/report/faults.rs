//! Faults and repairs, as marks in curves.

use pathweave_records::{EventKind, RunResult, ns};
use serde::Serialize;

use super::rounded;

/// Largest number of marks on a page. More would hide the curves.
const MOST: usize = 200;

/// An instant with faults or repairs.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Mark {
    time_ns: f64,
    /// True for a repair.
    repair: bool,
    /// Name of the first link or node concerned.
    on: String,
    /// Number of links and nodes concerned at that instant.
    count: u32,
}

/// Returns the marks of a run in order of time.
pub(super) fn marks(run: &RunResult) -> Vec<Mark> {
    let mut marks: Vec<(u64, Mark)> = Vec::new();
    for event in run.events.iter().filter(|e| matches!(e.kind, EventKind::Fault | EventKind::Repair)) {
        let repair = event.kind == EventKind::Repair;
        if let Some((_, last)) = marks.iter_mut().find(|(at, m)| *at == event.time_ps && m.repair == repair) {
            last.count += 1;
            continue;
        }
        if marks.len() == MOST {
            break;
        }
        let link = event.link.and_then(|link| run.links.get(link as usize)).map(|link| link.name.clone());
        let node = || run.nodes.get(event.node as usize).map_or(String::new(), |node| node.name.clone());
        let on = link.unwrap_or_else(node);
        marks.push((event.time_ps, Mark { time_ns: rounded(ns(event.time_ps)), repair, on, count: 1 }));
    }
    marks.into_iter().map(|(_, mark)| mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_records::{EventRecord, LinkTotals};

    #[test]
    fn faults_of_one_instant_are_one_mark() {
        let link = |link: u32| LinkTotals { link, name: format!("l{link}"), ..LinkTotals::default() };
        let event = |time_ps, kind, on| EventRecord { link: Some(on), ..EventRecord::new(time_ps, kind, 0) };
        let run = RunResult {
            links: (0..3).map(link).collect(),
            events: vec![
                event(5_000, EventKind::Fault, 1),
                event(5_000, EventKind::Fault, 2),
                event(6_000, EventKind::Drop, 2),
                event(9_000, EventKind::Repair, 2),
            ],
            ..RunResult::default()
        };
        let mark = |time_ns, repair, on: &str, count| Mark { time_ns, repair, on: on.to_owned(), count };
        assert_eq!(marks(&run), [mark(5.0, false, "l1", 2), mark(9.0, true, "l2", 1)]);
    }
}
