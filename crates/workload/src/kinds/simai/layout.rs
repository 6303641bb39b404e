//! Layout of groups over GPUs.

use crate::files::Span;

/// Sizes of groups. GPU = tensor rank + TP x (data rank + DP x stage). If data-parallel ranks are adjacent,
/// `tp` is the number of data-parallel ranks and `dp` that of tensor ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kinds) struct GroupLayout {
    pub(in crate::kinds) tp: usize,
    pub(in crate::kinds) ep: usize,
    pub(in crate::kinds) dp: usize,
    pub(in crate::kinds) pp: usize,
}

impl GroupLayout {
    pub(in crate::kinds) fn gpus(&self) -> usize {
        self.tp * self.dp * self.pp
    }
    /// Returns the GPUs of a stage.
    pub(in crate::kinds) fn stage(&self, stage: usize) -> std::ops::Range<usize> {
        let each = self.tp * self.dp;
        stage * each..(stage + 1) * each
    }
    /// Returns the number of ranks in a group.
    pub(in crate::kinds) fn ranks(&self, span: Span) -> usize {
        match span {
            Span::Tp | Span::InnerDp => self.tp,
            Span::Dp | Span::OuterTp => self.dp,
            Span::Ep => self.ep,
            Span::DpEp => self.dp / self.ep,
            Span::AllTp | Span::AllDp => self.tp * self.dp,
        }
    }
    /// Returns the groups of a stage.
    pub(in crate::kinds) fn groups(&self, span: Span, stage: usize) -> Vec<Vec<usize>> {
        let GroupLayout { tp, ep, dp, .. } = *self;
        let gpu = |t: usize, d: usize| t + tp * (d + dp * stage);
        // Data ranks of each group. These groups exist for each tensor rank.
        let data: Vec<Vec<usize>> = match span {
            Span::AllTp | Span::AllDp => return vec![self.stage(stage).collect()],
            Span::Tp | Span::InnerDp => {
                return (0..dp).map(|d| (0..tp).map(|t| gpu(t, d)).collect()).collect();
            }
            Span::Dp | Span::OuterTp => vec![(0..dp).collect()],
            Span::Ep => (0..dp / ep).map(|block| (block * ep..(block + 1) * ep).collect()).collect(),
            Span::DpEp => (0..ep).map(|expert| (expert..dp).step_by(ep).collect()).collect(),
        };
        let of = |t: usize| data.iter().map(move |ranks| ranks.iter().map(|&d| gpu(t, d)).collect());
        (0..tp).flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_gpus_by_hand() {
        let layout = GroupLayout { tp: 2, ep: 2, dp: 4, pp: 2 };
        assert_eq!((layout.gpus(), layout.stage(1)), (16, 8..16));
        assert_eq!(layout.groups(Span::Tp, 1), [[8, 9], [10, 11], [12, 13], [14, 15]]);
        assert_eq!(layout.groups(Span::Dp, 0), [[0, 2, 4, 6], [1, 3, 5, 7]]);
        assert_eq!(layout.groups(Span::Ep, 0), [[0, 2], [4, 6], [1, 3], [5, 7]]);
        assert_eq!(layout.groups(Span::DpEp, 0), [[0, 4], [2, 6], [1, 5], [3, 7]]);
        assert_eq!(layout.groups(Span::AllDp, 1), [[8, 9, 10, 11, 12, 13, 14, 15]]);
        for span in [Span::Tp, Span::Dp, Span::Ep, Span::DpEp, Span::AllTp] {
            assert!(layout.groups(span, 1).iter().all(|group| group.len() == layout.ranks(span)));
        }
    }
}
