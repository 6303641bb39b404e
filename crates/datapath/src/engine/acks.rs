//! Joins several acknowledgements into one with the same information.
//!
//! The endpoint acknowledges each packet separately when packets arrive out of order, as they do on several paths. A
//! batch of arrivals thus produces a batch of acknowledgements, each with a system call at both ends. The last one
//! contains all information of the earlier ones as long as its bitmap reaches back to them. Only that one is sent,
//! with the counts of all.

use pathweave_wire::{Ack, Body, Segment};

/// Number of packets that the bitmap of an acknowledgement covers.
const BITMAP: u64 = 64;

/// Joins `later` into `earlier` if both have the same queue pairs and path. Returns false, and changes nothing, if
/// one acknowledgement cannot hold the information of both.
///
/// The echoed fields are those of the packet with the higher PSN, in whichever order the two arrived.
/// Acknowledgements of different paths are not joined: ACK-clocked schemes send on the path of each acknowledgement,
/// and remember only a few at a time.
pub(crate) fn join(earlier: &mut Segment, later: &Segment) -> bool {
    if (earlier.dst_qp, earlier.src_qp, earlier.path) != (later.dst_qp, later.src_qp, later.path) {
        return false;
    }
    let (Body::Ack(old), Body::Ack(new)) = (&mut earlier.body, &later.body) else { return false };
    let cumulative = old.cumulative.max(new.cumulative);
    let (high, low) = if new.psn >= old.psn { (new, &*old) } else { (&*old, new) };
    let distance = high.psn - low.psn;
    // The cumulative number covers all PSNs below it; the bitmap must reach the others.
    let lowest = low.psn.saturating_sub(u64::from(63 - (low.sack | 1).leading_zeros()));
    if lowest.max(cumulative) <= low.psn && high.psn - lowest.max(cumulative) >= BITMAP {
        return false;
    }
    let joined = Ack {
        cumulative,
        sack: if distance < BITMAP { high.sack | low.sack << distance } else { high.sack },
        packets: old.packets.saturating_add(new.packets),
        marked: old.marked.saturating_add(new.marked),
        notices: new.notices,
        ..*high
    };
    *old = joined;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_units::{PathId, QpNum, Time};
    use pathweave_wire::NoticePermission;
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
            back: 0,
            sack,
            echo_sent_at: Time::from_ns(psn),
            received_at: Time::from_us(psn),
            packets: 1,
            marked: psn.is_multiple_of(3).into(),
            notices: NoticePermission::Welcome,
        });
        Segment { dst_qp: QpNum(2), src_qp: QpNum(3), path: PathId(0), pull_target: None, body }
    }

    /// PSNs that an acknowledgement reports as received.
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
    fn packets_that_overtake_one_another_nearby_need_one_too() {
        let (mut arrived, mut sent) = (BTreeSet::new(), Vec::<Segment>::new());
        // Two paths, one of them 20 packets late.
        let order = (0..200u64).flat_map(|n| [2 * n, (2 * n + 1).wrapping_sub(40)]).filter(|psn| *psn < 400);
        for psn in order {
            arrived.insert(psn);
            let next = ack(&arrived, psn);
            if !sent.last_mut().is_some_and(|last| join(last, &next)) {
                sent.push(next);
            }
        }
        assert_eq!(sent.len(), 1);
        let Body::Ack(ack) = sent[0].body else { panic!("an acknowledgement") };
        assert_eq!((ack.psn, ack.packets, ack.echo_sent_at), (398, 380, Time::from_ns(398)));
    }

    #[test]
    fn queue_pairs_and_paths_are_not_mixed() {
        let mut first = ack(&BTreeSet::from([0]), 0);
        let other = Segment { src_qp: QpNum(9), ..ack(&BTreeSet::from([0, 1]), 1) };
        assert!(!join(&mut first, &other));
        let elsewhere = Segment { path: PathId(1), ..ack(&BTreeSet::from([0, 1]), 1) };
        assert!(!join(&mut first, &elsewhere));
    }
}
