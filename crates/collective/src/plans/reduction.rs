//! Values of all ranks are combined.

use super::{EAGER_BYTES, HALVING_BYTES, Place, Reduction};
use crate::dtype::ReduceOp;
use crate::plan::{Plan, Span, StepId, TEMPORARY, chunk};
use crate::reduce::Order;

/// Every rank gets the combination of all values, in place. Short vectors are exchanged as a whole with ranks at distance
/// 1, 2, 4; longer ones are halved and doubled, the longest go around a ring.
pub fn all_reduce(at: Place, how: Reduction, whole: Span) -> Plan {
    let mut plan = Plan::new(at.ranks);
    if at.ranks == 1 || whole.len == 0 {
        return plan;
    }
    if whole.len <= EAGER_BYTES {
        doubling(&mut plan, at, how, whole);
    } else if whole.len <= HALVING_BYTES && at.ranks.is_power_of_two() {
        halving(&mut plan, at, how, whole);
    } else {
        let done = ring(&mut plan, at, how, whole);
        around(&mut plan, at, how, whole, done);
    }
    plan
}

/// Returns the order of operands that is the same at both of two ranks.
fn order(own: u32, other: u32) -> Order {
    if own < other { Order::OwnFirst } else { Order::ReceivedFirst }
}

/// Divides a sum that is complete, for an average.
fn finish(plan: &mut Plan, how: Reduction, of: Span, after: Option<StepId>) -> Option<StepId> {
    if how.op == ReduceOp::Avg && of.len > 0 { plan.divide(of, after) } else { after }
}

/// Ranks beyond the largest power of two give their values to another one, and get the result from it.
fn doubling(plan: &mut Plan, at: Place, how: Reduction, whole: Span) {
    let core = 1 << at.ranks.ilog2();
    if at.rank >= core {
        plan.send(at.rank - core, whole, None);
        plan.receive(at.rank - core, whole, None);
        return;
    }
    let guest = Some(at.rank + core).filter(|guest| *guest < at.ranks);
    let mut last = guest.and_then(|guest| plan.combine(guest, whole, Order::OwnFirst, None));
    let mut distance = 1;
    while distance < core {
        let other = at.rank ^ distance;
        // A short transfer has left its memory when its step is complete.
        last = plan.send(other, whole, last);
        last = plan.combine(other, whole, order(at.rank, other), last);
        distance *= 2;
    }
    last = finish(plan, how, whole, last);
    if let Some(guest) = guest {
        plan.send(guest, whole, last);
    }
}

/// Each rank exchanges halves with ranks at distance 1, 2, 4, each half of the one before; then the same backwards with
/// results. Bytes that a rank has sent are written again only by results that contain them.
fn halving(plan: &mut Plan, at: Place, how: Reduction, whole: Span) {
    let element = how.dtype.bytes();
    let (mut own, mut last, mut distance) = (whole, None, 1);
    let mut sent = Vec::new();
    while distance < at.ranks {
        let other = at.rank ^ distance;
        let (low, high) = (chunk(own, element, 2, 0), chunk(own, element, 2, 1));
        let (kept, given) = if at.rank & distance == 0 { (low, high) } else { (high, low) };
        if given.len > 0 {
            plan.send(other, given, last);
        }
        if kept.len > 0 {
            last = plan.combine(other, kept, order(at.rank, other), last);
        }
        sent.push((other, kept, given));
        own = kept;
        distance *= 2;
    }
    last = finish(plan, how, own, last);
    // Results come in any order; each is sent on with all that were received before.
    for (other, kept, given) in sent.into_iter().rev() {
        if kept.len > 0 {
            plan.send(other, kept, last);
        }
        if given.len > 0 {
            last = plan.receive(other, given, last);
        }
    }
}

/// Step by step, each rank passes one part to the next rank, which combines it with its own. Returns the steps that
/// complete the segments of part `rank + 1`, which this rank has at the end.
fn ring(plan: &mut Plan, at: Place, how: Reduction, whole: Span) -> Vec<Option<StepId>> {
    let part = |index: u32| chunk(whole, how.dtype.bytes(), at.ranks, index);
    let mut done: Vec<Option<StepId>> = Vec::new();
    for step in 0..at.ranks - 1 {
        for (index, segment) in part(at.minus(step)).segments().enumerate() {
            plan.send(at.plus(1), segment, done.get(index).copied().flatten());
        }
        let received = part(at.minus(step + 1)).segments();
        done =
            received.map(|segment| plan.combine(at.minus(1), segment, Order::ReceivedFirst, None)).collect();
    }
    let own = part(at.plus(1)).segments();
    own.zip(done).map(|(segment, done)| finish(plan, how, segment, done)).collect()
}

/// The parts that the ring has completed go around it.
fn around(plan: &mut Plan, at: Place, how: Reduction, whole: Span, mut done: Vec<Option<StepId>>) {
    let part = |index: u32| chunk(whole, how.dtype.bytes(), at.ranks, index);
    for step in 0..at.ranks - 1 {
        for (index, segment) in part(at.minus(step + at.ranks - 1)).segments().enumerate() {
            plan.send(at.plus(1), segment, done.get(index).copied().flatten());
        }
        let received = part(at.minus(step)).segments();
        done = received.map(|segment| plan.receive(at.minus(1), segment, None)).collect();
    }
}

/// The root gets the combination of all values, in place. The others' values stay.
pub fn reduce(at: Place, how: Reduction, root: u32, whole: Span) -> Plan {
    let mut plan = Plan::new(at.ranks);
    if at.ranks == 1 || whole.len == 0 {
        return plan;
    }
    let mut own = whole;
    let mut copied = None;
    if at.rank != root {
        own = Span::whole(TEMPORARY, whole.len);
        plan.temporary_bytes = whole.len;
        copied = plan.copy(whole, own, None);
    }
    if whole.len <= EAGER_BYTES {
        tree(&mut plan, at, how, root, own, copied);
        return plan;
    }
    // The copy is the first step and is done at once, so the steps of the ring come after it.
    let mut done = ring(&mut plan, at, how, own);
    let part = |index: u32| chunk(own, how.dtype.bytes(), at.ranks, index);
    if at.rank != root {
        for (segment, done) in part(at.plus(1)).segments().zip(done.drain(..)) {
            plan.send(root, segment, done);
        }
        return plan;
    }
    for other in at.others() {
        for segment in part((other + 1) % at.ranks).segments() {
            plan.receive(other, segment, None);
        }
    }
    plan
}

/// Combines along a binomial tree.
fn tree(plan: &mut Plan, at: Place, how: Reduction, root: u32, own: Span, mut last: Option<StepId>) {
    let relative = at.minus(root);
    let mut distance = 1;
    while distance < at.ranks {
        if relative & distance != 0 {
            plan.send((relative - distance + root) % at.ranks, own, last);
            return;
        }
        if relative + distance < at.ranks {
            let child = (relative + distance + root) % at.ranks;
            last = plan.combine(child, own, Order::OwnFirst, last);
        }
        distance *= 2;
    }
    finish(plan, how, own, last);
}

/// Rank `r` gets the combination of block `r` of all. The blocks, of equal length, stay.
pub fn reduce_scatter(at: Place, how: Reduction, blocks: &[Span], to: Span) -> Plan {
    let mut plan = Plan::new(at.ranks);
    let own = blocks[at.rank as usize];
    if at.ranks == 1 || to.len == 0 {
        plan.copy(own, to, None);
        return plan;
    }
    if to.len <= EAGER_BYTES && to.len * (at.ranks as usize) <= 4 * EAGER_BYTES {
        let mut last = plan.copy(own, to, None);
        for distance in 1..at.ranks {
            let next = at.plus(distance);
            plan.send(next, blocks[next as usize], None);
        }
        for distance in 1..at.ranks {
            last = plan.combine(at.minus(distance), to, Order::OwnFirst, last);
        }
        finish(&mut plan, how, to, last);
        return plan;
    }
    // Sums go around the ring; block r starts at rank r + 1. Those that are passed on are kept in turn in two places.
    plan.temporary_bytes = 2 * to.len;
    let temporary = Span::whole(TEMPORARY, 2 * to.len);
    let places = [temporary.part(0, to.len), temporary.part(to.len, to.len)];
    let count = to.segments().count();
    let mut done: Vec<Option<StepId>> = vec![None; count];
    let mut sends: [Vec<Option<StepId>>; 2] = [vec![None; count], vec![None; count]];
    for step in 0..at.ranks - 1 {
        // Where the sums of the step before are.
        let from = if step == 0 { blocks[at.minus(1) as usize] } else { places[step as usize % 2] };
        let mut sent = Vec::with_capacity(count);
        for (segment, done) in from.segments().zip(&done) {
            sent.push(plan.send(at.plus(1), segment, *done));
        }
        sends[step as usize % 2] = sent;
        let with = blocks[at.minus(step + 2) as usize];
        let into = if step == at.ranks - 2 { to } else { places[(step as usize + 1) % 2] };
        for (index, (with, into)) in with.segments().zip(into.segments()).enumerate() {
            // The place is free once its former content has left.
            let reused = step >= 2 && step < at.ranks - 2;
            let free = sends[(step as usize + 1) % 2][index].filter(|_| reused);
            done[index] = plan.combine_into(at.minus(1), with, into, Order::ReceivedFirst, [free, None]);
        }
    }
    for (segment, done) in to.segments().zip(done) {
        finish(&mut plan, how, segment, done);
    }
    plan
}
