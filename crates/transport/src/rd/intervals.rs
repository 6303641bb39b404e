//! Which bytes of a message are there.

use alloc::vec::Vec;

/// Disjoint ranges of bytes, ascending, none touching the next. A message that arrives in order is one range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Intervals(Vec<(u64, u64)>);

impl Intervals {
    /// Adds `start..end`; returns how many of these bytes are new.
    pub(super) fn add(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        // The first range that ends at or behind the start, and the first that begins behind the end.
        let from = self.0.partition_point(|range| range.1 < start);
        let to = self.0.partition_point(|range| range.0 <= end);
        let known: u64 =
            self.0[from..to].iter().map(|range| range.1.min(end).saturating_sub(range.0.max(start))).sum();
        let merged = match self.0.get(from..to) {
            Some([]) | None => (start, end),
            Some(touched) => (touched[0].0.min(start), touched[touched.len() - 1].1.max(end)),
        };
        self.0.splice(from..to, [merged]);
        end - start - known
    }

    /// Whether all of `0..total` is there and nothing else.
    pub(super) fn is_whole(&self, total: u64) -> bool {
        self.0[..] == [(0, total)]
    }

    /// Where the last byte that is there ends.
    pub(super) fn end(&self) -> u64 {
        self.0.last().map_or(0, |range| range.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_merge_where_they_touch() {
        let mut there = Intervals::default();
        assert_eq!(there.add(10, 20), 10);
        assert_eq!(there.add(30, 40), 10);
        assert_eq!(there.0, [(10, 20), (30, 40)]);
        assert_eq!(there.add(20, 30), 10);
        assert_eq!(there.0, [(10, 40)]);
        assert_eq!(there.add(0, 50), 20);
        assert!(there.is_whole(50) && !there.is_whole(49) && !there.is_whole(51));
        assert_eq!((there.add(5, 5), there.add(49, 52)), (0, 2));
    }

    proptest! {
        #[test]
        fn bytes_are_counted_once(ranges in prop::collection::vec((0u64..80, 0u64..20), 0..40)) {
            let (mut there, mut bytes) = (Intervals::default(), [false; 100]);
            for (start, len) in ranges {
                let new = bytes[start as usize..(start + len) as usize].iter_mut();
                let new = new.filter_map(|byte| (!std::mem::replace(byte, true)).then_some(())).count();
                prop_assert_eq!(there.add(start, start + len), new as u64);
                let whole = bytes.iter().take_while(|byte| **byte).count();
                let all = bytes.iter().filter(|byte| **byte).count();
                prop_assert_eq!(there.is_whole(whole as u64), whole > 0 && all == whole);
                prop_assert!(there.0.windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
        }
    }
}
