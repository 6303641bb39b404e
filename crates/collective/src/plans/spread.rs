//! Values of one rank or of each go to all.

use super::{EAGER_BYTES, Place};
use crate::plan::{Plan, Span};

/// Largest group in which each rank sends a short block to each other one itself.
const FEW_RANKS: u32 = 16;

/// The root's values go to all: short ones along a binomial tree, long ones in segments from each rank to the next.
pub fn broadcast(at: Place, root: u32, whole: Span) -> Plan {
    let mut plan = Plan::new(at.ranks);
    if whole.len == 0 {
        return plan;
    }
    // Ranks as seen from the root, which is 0.
    let (own, absolute) = (at.minus(root), |relative: u32| (relative + root) % at.ranks);
    if whole.len <= EAGER_BYTES {
        let mut got = None;
        if own != 0 {
            let highest = 1 << own.ilog2();
            got = plan.receive(absolute(own - highest), whole, None);
        }
        let mut distance = if own == 0 { 1 } else { 2 << own.ilog2() };
        while own + distance < at.ranks {
            plan.send(absolute(own + distance), whole, got);
            distance *= 2;
        }
        return plan;
    }
    for segment in whole.segments() {
        let got = if own == 0 { None } else { plan.receive(absolute(own - 1), segment, None) };
        if own + 1 < at.ranks {
            plan.send(absolute(own + 1), segment, got);
        }
    }
    plan
}

/// Block `own` of each rank goes to `all[rank]` of all.
pub fn all_gather(at: Place, own: Span, all: &[Span]) -> Plan {
    let mut plan = Plan::new(at.ranks);
    plan.copy(own, all[at.rank as usize], None);
    if own.len == 0 || at.ranks == 1 {
        return plan;
    }
    if own.len <= EAGER_BYTES && at.ranks <= FEW_RANKS {
        for distance in 1..at.ranks {
            plan.send(at.plus(distance), own, None);
            let before = at.minus(distance);
            plan.receive(before, all[before as usize], None);
        }
        return plan;
    }
    // The block that a rank sends in a step is the one that it received in the step before.
    let mut got: Vec<_> = own.segments().map(|_| None).collect();
    for step in 0..at.ranks - 1 {
        let (sent, received) = (at.minus(step), at.minus(step + 1));
        let source = if step == 0 { own } else { all[sent as usize] };
        for (segment, before) in source.segments().zip(&got) {
            plan.send(at.plus(1), segment, *before);
        }
        for (segment, got) in all[received as usize].segments().zip(&mut got) {
            *got = plan.receive(at.minus(1), segment, None);
        }
    }
    plan
}
