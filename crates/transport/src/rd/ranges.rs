//! Ranges of PSNs.

use alloc::collections::BTreeMap;

/// Disjoint ranges that do not touch: the start of each, and one more than its last number.
#[derive(Debug, Default)]
pub(super) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds `from..to` and merges it with the ranges that it touches.
    pub(super) fn add(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        let (mut from, mut to) = (from, to);
        if let Some((&start, &end)) = self.0.range(..=from).next_back()
            && end >= from
        {
            (from, to) = (start, to.max(end));
        }
        while let Some((&start, &end)) = self.0.range(from..=to).next() {
            to = to.max(end);
            self.0.remove(&start);
        }
        self.0.insert(from, to);
    }

    /// End of the range that contains `psn`.
    pub(super) fn end_of(&self, psn: u64) -> Option<u64> {
        self.0.range(..=psn).next_back().map(|(_, &end)| end).filter(|&end| psn < end)
    }

    pub(super) fn contains(&self, psn: u64) -> bool {
        self.end_of(psn).is_some()
    }

    /// Removes the ranges that end at or below `psn`.
    pub(super) fn forget_below(&mut self, psn: u64) {
        while let Some(first) = self.0.first_entry()
            && *first.get() <= psn
        {
            first.remove();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_merge_where_they_touch() {
        let mut ranges = Ranges::default();
        ranges.add(10, 20);
        ranges.add(30, 40);
        assert_eq!((ranges.len(), ranges.end_of(19), ranges.end_of(20)), (2, Some(20), None));
        ranges.add(20, 30);
        assert_eq!((ranges.len(), ranges.end_of(10)), (1, Some(40)));
        ranges.add(50, 50);
        ranges.add(5, 60);
        assert_eq!((ranges.len(), ranges.end_of(5)), (1, Some(60)));
        ranges.forget_below(59);
        assert!(ranges.contains(59));
        ranges.forget_below(60);
        assert!(ranges.is_empty());
    }

    proptest! {
        #[test]
        fn agree_with_a_list_of_flags(all in prop::collection::vec((0u64..80, 0u64..20), 0..40), cut in 0u64..100) {
            let (mut ranges, mut flags) = (Ranges::default(), [false; 100]);
            for (start, len) in all {
                flags[start as usize..(start + len) as usize].fill(true);
                ranges.add(start, start + len);
                let runs = flags.split(|there| !there).filter(|run| !run.is_empty()).count();
                prop_assert_eq!(ranges.len(), runs);
            }
            ranges.forget_below(cut);
            for psn in 0..100 {
                let there = flags[psn as usize];
                prop_assert!(ranges.contains(psn) == there || psn < cut);
            }
        }
    }
}
