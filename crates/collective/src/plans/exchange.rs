//! Blocks between all ranks, or between all ranks and a root.

use super::Place;
use crate::plan::{Plan, Span};

/// Each rank sends block `to[r]` to rank `r`, and receives `from[r]` from it.
pub fn all_to_all(at: Place, to: &[Span], from: &[Span]) -> Plan {
    let mut plan = Plan::new(at.ranks);
    plan.copy(to[at.rank as usize], from[at.rank as usize], None);
    for distance in 1..at.ranks {
        let (next, before) = (at.plus(distance), at.minus(distance));
        plan.send(next, to[next as usize], None);
        plan.receive(before, from[before as usize], None);
    }
    plan
}

/// The root receives `all[r]` from rank `r`; the others send `own`. `all` is empty elsewhere.
pub fn gather(at: Place, root: u32, own: Span, all: &[Span]) -> Plan {
    let mut plan = Plan::new(at.ranks);
    if own.len == 0 {
        return plan;
    }
    if at.rank != root {
        plan.send(root, own, None);
        return plan;
    }
    plan.copy(own, all[at.rank as usize], None);
    for other in at.others() {
        plan.receive(other, all[other as usize], None);
    }
    plan
}

/// The root sends `all[r]` to rank `r`, which receives `own`. `all` is empty elsewhere.
pub fn scatter(at: Place, root: u32, own: Span, all: &[Span]) -> Plan {
    let mut plan = Plan::new(at.ranks);
    if own.len == 0 {
        return plan;
    }
    if at.rank != root {
        plan.receive(root, own, None);
        return plan;
    }
    plan.copy(all[at.rank as usize], own, None);
    for other in at.others() {
        plan.send(other, all[other as usize], None);
    }
    plan
}

/// In each round, each rank hears of twice as many others.
pub fn barrier(at: Place) -> Plan {
    let mut plan = Plan::new(at.ranks);
    let nothing = Span::whole(0, 0);
    let (mut distance, mut heard) = (1, None);
    while distance < at.ranks {
        plan.send(at.plus(distance), nothing, heard);
        heard = plan.receive(at.minus(distance), nothing, heard);
        distance *= 2;
    }
    plan
}
