//! All-reduce over two binary trees, half of the vector on each.

use super::{Arrived, Blocks, Medium, Transfer};
use crate::error::WorkloadError;

/// A tree of ranks.
pub(crate) struct Tree {
    pub(crate) parent: Vec<Option<usize>>,
    /// Ranks from the root on, parents before children.
    pub(crate) order: Vec<usize>,
}

impl Tree {
    fn new(parent: Vec<Option<usize>>) -> Self {
        let mut children = vec![Vec::new(); parent.len()];
        let mut order = Vec::with_capacity(parent.len());
        for (rank, &above) in parent.iter().enumerate() {
            match above {
                Some(above) => children[above].push(rank),
                None => order.push(rank),
            }
        }
        let mut next = 0;
        while let Some(&rank) = order.get(next) {
            next += 1;
            order.extend(&children[rank]);
        }
        Tree { parent, order }
    }

    /// Adds up blocks towards the root. Returns the transfers that each rank waits for.
    fn up<M: Medium>(&self, on: &mut M, blocks: Blocks) -> Result<Arrived<M::Sent>, WorkloadError> {
        let mut arrived: Arrived<M::Sent> = vec![Vec::new(); self.parent.len()];
        for &src in self.order.iter().rev() {
            if let Some(dst) = self.parent[src] {
                let sent = on.send(Transfer { src, dst, blocks, own: true }, &arrived[src])?;
                arrived[dst].push(sent);
            }
        }
        Ok(arrived)
    }

    /// Sends blocks from the root to all ranks. The root has the blocks once `arrived` has.
    fn down<M: Medium>(
        &self,
        on: &mut M,
        blocks: Blocks,
        mut arrived: Arrived<M::Sent>,
    ) -> Result<(), WorkloadError> {
        for &dst in &self.order {
            if let Some(src) = self.parent[dst] {
                let own = self.parent[src].is_none();
                arrived[dst] = vec![on.send(Transfer { src, dst, blocks, own }, &arrived[src])?];
            }
        }
        Ok(())
    }
}

/// Returns the parent of a position in a tree of `n` positions. The lowest set bit of the position gives its
/// height. Its parent is the position one level higher that differs in the next bit, or, if that one does not
/// exist, the lower one. Odd positions are leaves.
fn parent_of(place: usize, n: usize) -> Option<usize> {
    if place == 0 {
        return None;
    }
    let low = place & place.wrapping_neg();
    let up = (place ^ low) | (low << 1);
    Some(if up < n { up } else { place ^ low })
}

/// The two trees of Sanders, Speck and Träff ("Two-tree algorithms for full bandwidth broadcast, reduction
/// and scan", 2009), in NCCL's form. The second tree is the first one mirrored if `n` is even, and shifted by
/// one if `n` is odd. So a leaf of one tree is an inner node of the other.
pub(crate) fn double_tree(n: usize) -> [Tree; 2] {
    let seat = |place: usize| if n.is_multiple_of(2) { n - 1 - place } else { (place + 1) % n };
    let mut second = vec![None; n];
    for place in 0..n {
        second[seat(place)] = parent_of(place, n).map(seat);
    }
    [Tree::new((0..n).map(|place| parent_of(place, n)).collect()), Tree::new(second)]
}

/// All-reduce of `n` ranks: each tree adds up its half of the vector, divided into `chunks`, towards its root
/// and sends the sum down again. Chunks are pipelined through the tree.
pub(super) fn double_binary_all_reduce<M: Medium>(
    on: &mut M,
    n: usize,
    chunks: usize,
) -> Result<(), WorkloadError> {
    let trees = double_tree(n);
    for chunk in 0..chunks {
        for (half, tree) in trees.iter().enumerate() {
            let blocks = Blocks::Range { first: half * chunks + chunk, count: 1 };
            let arrived = tree.up(on, blocks)?;
            tree.down(on, blocks, arrived)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insides(tree: &Tree) -> Vec<usize> {
        (0..tree.parent.len()).filter(|&rank| tree.parent.contains(&Some(rank))).collect()
    }

    #[test]
    fn eight_ranks_by_hand() {
        let [first, second] = double_tree(8);
        assert_eq!(first.parent, [None, Some(2), Some(4), Some(2), Some(0), Some(6), Some(4), Some(6)]);
        assert_eq!(second.parent, [Some(1), Some(3), Some(1), Some(7), Some(5), Some(3), Some(5), None]);
    }

    #[test]
    fn leaves_of_one_tree_are_inner_nodes_of_the_other() {
        for n in 2..70 {
            let [a, b] = double_tree(n);
            assert_eq!((a.order.len(), b.order.len()), (n, n), "{n}: connected");
            let both = insides(&a).iter().filter(|rank| insides(&b).contains(rank)).count();
            // An odd `n` has more inner positions than half, so one rank is an inner node of both trees.
            assert_eq!(both, if n % 2 == 0 { 0 } else { 1 }, "{n}");
            let children = |tree: &Tree, rank| tree.parent.iter().filter(|&&p| p == Some(rank)).count();
            assert!((0..n).all(|rank| children(&a, rank) <= 2 && children(&b, rank) <= 2), "{n}");
        }
    }
}
