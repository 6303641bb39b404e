//! Selection of some of many things that have a length: the long ones first, and of similar ones an even part.

/// Selects at most `most` of some things, and returns their indices in ascending order. Long things come first. Of things
/// whose lengths differ by less than a fifth, those selected are spread evenly over the order in which they are given.
pub(super) fn thin(lengths: &[u64], most: usize) -> Vec<usize> {
    if lengths.len() <= most {
        return (0..lengths.len()).collect();
    }
    // Four classes for each doubling of the length.
    let class = |length: u64| {
        let length = length.max(8);
        (length.ilog2(), length >> (length.ilog2() - 2))
    };
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(class(lengths[i])), i));
    let mut chosen = Vec::with_capacity(most);
    for alike in order.chunk_by(|&a, &b| class(lengths[a]) == class(lengths[b])) {
        let part = (most - chosen.len()).min(alike.len());
        chosen.extend((0..part).map(|k| alike[k * alike.len() / part]));
    }
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_long_ones_stay_and_similar_ones_are_thinned_evenly() {
        assert_eq!(thin(&[5, 5, 5], 3), [0, 1, 2]);
        // One long thing among a hundred short ones that are not quite equal.
        let mut lengths: Vec<u64> = (0..100).map(|i| 1_000 + i % 7).collect();
        lengths[50] = 9_000;
        let chosen = thin(&lengths, 11);
        assert_eq!(chosen.len(), 11);
        assert!(chosen.contains(&50), "{chosen:?}");
        assert!(chosen.windows(2).all(|pair| pair[1] - pair[0] <= 11), "{chosen:?}");
    }
}
