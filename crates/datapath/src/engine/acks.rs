//! One acknowledgement where several would say the same.
//!
//! The endpoint acknowledges packet by packet where packets overtake one another, as they do on several paths. A batch
//! of arrivals so makes a batch of acknowledgements, each a system call here and there. The last of them says all that
//! the others say as long as its bitmap reaches back to them, so only that one is sent, with the counts of all.

use pathweave_wire::{Ack, Body, Segment};

/// Packets the bitmap of an acknowledgement covers.
const BITMAP: u64 = 64;

/// Joins `later` with `earlier` of the same queue pair. False, and nothing changed, if `later` does not say all that
/// `earlier` says.
pub(crate) fn join(earlier: &mut Segment, later: &Segment) -> bool {
    if (earlier.dst_qp, earlier.src_qp) != (later.dst_qp, later.src_qp) {
        return false;
    }
    let (Body::Ack(old), Body::Ack(new)) = (&mut earlier.body, &later.body) else { return false };
    let covered = new.cumulative >= old.cumulative
        && (old.psn < new.cumulative || (old.psn <= new.psn && new.psn - old.psn < BITMAP));
    if !covered || !reaches(old, new) {
        return false;
    }
    let (packets, marked) = (old.packets, old.marked);
    *old = Ack {
        packets: packets.saturating_add(new.packets),
        marked: marked.saturating_add(new.marked),
        ..*new
    };
    earlier.path = later.path;
    true
}

/// Every packet that `old` tells of and that lies beyond the cumulative number of `new` is in reach of its bitmap.
fn reaches(old: &Ack, new: &Ack) -> bool {
    if old.sack == 0 {
        return true;
    }
    let lowest = old.psn.saturating_sub(u64::from(63 - old.sack.leading_zeros()));
    let lowest = lowest.max(new.cumulative);
    lowest > old.psn || new.psn.saturating_sub(lowest) < BITMAP
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_units::{PathId, QpNum, Time};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn ack(arrived: &BTreeSet<u64>, psn: u64) -> Segment {
        let cumulative = (0..).find(|psn| !arrived.contains(psn)).unwrap();
        let sack = (0..64)
            .filter(|&back| psn >= back && arrived.contains(&(psn - back)))
            .fold(0, |bits, back| bits | 1 << back);
        let body = Body::Ack(Ack {
            cumulative,
            psn,
            sack,
            echo_sent_at: Time::from_ns(psn),
            received_at: Time::from_us(psn),
            packets: 1,
            marked: psn.is_multiple_of(3).into(),
        });
        Segment { dst_qp: QpNum(2), src_qp: QpNum(3), path: PathId(psn as u16 % 4), body }
    }

    /// What an acknowledgement says has arrived.
    fn told(segment: &Segment) -> BTreeSet<u64> {
        let Body::Ack(ack) = &segment.body else { panic!("an acknowledgement") };
        let selective = (0..64).filter(|bit| ack.sack >> bit & 1 == 1).map(|bit| ack.psn - bit);
        (0..ack.cumulative).chain(selective).collect()
    }

    proptest! {
        #[test]
        fn nothing_that_was_told_is_lost(order in prop::collection::vec(0..200u64, 1..120)) {
            let mut arrived = BTreeSet::new();
            let (mut all, mut sent) = (BTreeSet::new(), Vec::<Segment>::new());
            let mut marked = 0;
            for &psn in &order {
                arrived.insert(psn);
                let next = ack(&arrived, psn);
                all.extend(told(&next));
                marked += u32::from(psn.is_multiple_of(3));
                if !sent.last_mut().is_some_and(|last| join(last, &next)) {
                    sent.push(next);
                }
            }
            let kept: BTreeSet<u64> = sent.iter().flat_map(told).collect();
            prop_assert_eq!(kept, all);
            let counts = sent.iter().map(|segment| match &segment.body {
                Body::Ack(ack) => (u32::from(ack.packets), u32::from(ack.marked)),
                _ => (0, 0),
            });
            let (packets, marks) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            prop_assert_eq!((packets as usize, marks), (order.len(), marked));
        }
    }

    #[test]
    fn packets_in_order_need_one_acknowledgement() {
        let mut arrived = BTreeSet::from([0]);
        let mut last = ack(&arrived, 0);
        for psn in 1..1_000 {
            arrived.insert(psn);
            assert!(join(&mut last, &ack(&arrived, psn)));
        }
        let Body::Ack(ack) = last.body else { panic!("an acknowledgement") };
        assert_eq!((ack.cumulative, ack.psn, ack.packets), (1_000, 999, 1_000));
    }

    #[test]
    fn queue_pairs_are_not_mixed() {
        let mut first = ack(&BTreeSet::from([0]), 0);
        let other = Segment { src_qp: QpNum(9), ..ack(&BTreeSet::from([0, 1]), 1) };
        assert!(!join(&mut first, &other));
    }
}
