//! Room on links beside a link at which flows waited.

use std::collections::BTreeMap;

use pathweave_records::{Direction, WaitKind};

use super::facts::{Facts, Flow};

/// Largest number of hosts, those with the longest waits, whose paths are looked up for a link.
const LOOKED_UP: usize = 16;
/// Part of the waits at a link from which room on other links matters.
const MOST_WAITS: f64 = 0.5;

/// Wait of a flow that crossed a link without a wait, for a run in which none waited there.
const LEAST_NS: f64 = 1e-3;

/// Factor by which parallel links must be less busy, in the mean, to count as having room.
pub(super) const SPARE: f64 = 0.75;

/// Other links that flows could have used instead of a link, which were far less busy.
pub(super) struct Room {
    pub(super) links: Vec<usize>,
    /// Mean utilisation of the links, in proportion to their rates.
    pub(super) busy: f64,
}

impl Facts {
    /// Returns links that were far less busy than a link and lay on paths, as short, of those of `flows` that waited there
    /// for most of the time.
    pub(super) fn room_beside(&self, link: usize, flows: &[usize]) -> Option<Room> {
        let is_down = self.links[link].direction == Direction::Down;
        // Flows to one host have the same links ahead of them, and flows from one host the same behind them.
        let mut by_host: BTreeMap<u32, (f64, &Flow)> = BTreeMap::new();
        for flow in flows.iter().map(|&flow| &self.flows[flow]) {
            if flow.crosses(link) {
                let host = if is_down { flow.src_host } else { flow.dst_host };
                by_host.entry(host).or_insert((LEAST_NS, flow)).0 += waited_ns(flow, link);
            }
        }
        if by_host.is_empty() {
            return self.room(link, self.parallel_links(link, None));
        }
        let mut waits: Vec<(f64, &Flow)> = by_host.into_values().collect();
        waits.sort_by(|a, b| b.0.total_cmp(&a.0));
        waits.truncate(LOOKED_UP);
        let all_ns: f64 = waits.iter().map(|(ns, _)| ns).sum();
        let mut with_room_ns = 0.0;
        let mut found = None;
        for (ns, flow) in waits {
            if let Some(room) = self.room(link, self.parallel_links(link, Some(flow))) {
                with_room_ns += ns;
                found = found.or(Some(room));
            }
        }
        found.filter(|_| with_room_ns >= MOST_WAITS * all_ns)
    }

    fn room(&self, link: usize, beside: Vec<usize>) -> Option<Room> {
        let links: Vec<usize> = beside.into_iter().filter(|&other| other != link).collect();
        let busy = self.mean_busy(&links);
        (busy < SPARE * self.links[link].busy).then_some(Room { links, busy })
    }

    /// Returns the mean utilisation of links, in proportion to their rates.
    fn mean_busy(&self, links: &[usize]) -> f64 {
        let rate = |&link: &usize| self.links[link].rate_bps;
        let busy = |link: &usize| self.links[*link].busy * rate(link);
        links.iter().map(busy).sum::<f64>() / links.iter().map(rate).sum::<f64>()
    }
}

/// Returns the time that a flow waited at a link.
fn waited_ns(flow: &Flow, link: usize) -> f64 {
    let here = flow.parts.iter().filter(|part| part.link == Some(link) && part.kind != WaitKind::Travel);
    here.map(|part| part.time_ns).sum()
}
