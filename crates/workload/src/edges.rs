//! Dependencies between tasks, in compressed sparse rows.

use crate::graph::{Moment, TaskId};

/// Dependencies by source task. All fields are empty if there is no edge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Edges {
    /// Rows for each [`Moment`], in the order of its values.
    rows: [Rows; 2],
    predecessors: Vec<u32>,
}

/// Compressed sparse rows. Both fields are empty if no row has an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rows {
    /// Index in `targets` at which the row of each task begins. Has one entry more than there are tasks.
    offsets: Vec<u32>,
    targets: Vec<TaskId>,
}

/// A dependency to declare. Eight bytes, because graphs have hundreds of millions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    /// The predecessor, with the bit [`OF_COMPLETION`].
    from: u32,
    to: u32,
}

/// Bit of edges that wait for a completion. Task numbers are smaller. The bit above it marks drafts of
/// computations.
const OF_COMPLETION: u32 = 1 << 30;

impl Edge {
    pub(crate) fn new(from: u32, to: u32, moment: Moment) -> Self {
        let bit = if moment == Moment::Completion { OF_COMPLETION } else { 0 };
        Edge { from: from | bit, to }
    }
    fn from(self) -> u32 {
        self.from & !OF_COMPLETION
    }
    fn moment(self) -> Moment {
        if self.from & OF_COMPLETION == 0 { Moment::Delivery } else { Moment::Completion }
    }
    /// Returns the same edge with its tasks renamed.
    pub(crate) fn renamed(self, name: impl Fn(u32) -> u32) -> Self {
        Edge::new(name(self.from()), name(self.to), self.moment())
    }
}

impl Rows {
    /// Makes the rows of `tasks` tasks from edges. Counts the entries of each row first, then fills them in.
    /// Removes duplicates.
    fn new(tasks: usize, edges: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut offsets = vec![0u32; tasks + 1];
        let mut all = 0usize;
        for (from, _) in edges.clone() {
            offsets[from as usize + 1] += 1;
            all += 1;
        }
        if all == 0 {
            return Rows::default();
        }
        for i in 0..tasks {
            offsets[i + 1] += offsets[i];
        }
        let mut targets = vec![TaskId(0); all];
        // During the fill, the offset of a row is the index of its next entry. Afterwards it is the begin of
        // the next row.
        for (from, to) in edges {
            let next = &mut offsets[from as usize];
            targets[*next as usize] = TaskId(to);
            *next += 1;
        }
        offsets.copy_within(0..tasks, 1);
        offsets[0] = 0;
        let mut rows = Rows { offsets, targets };
        rows.sort_each();
        rows
    }

    /// Sorts each row and removes duplicates.
    fn sort_each(&mut self) {
        let (mut begin, mut kept) = (0, 0);
        for row in 1..self.offsets.len() {
            let end = self.offsets[row] as usize;
            self.targets[begin..end].sort_unstable();
            let first = kept;
            for i in begin..end {
                let target = self.targets[i];
                if kept == first || self.targets[kept - 1] != target {
                    self.targets[kept] = target;
                    kept += 1;
                }
            }
            self.offsets[row] = kept as u32;
            begin = end;
        }
        self.targets.truncate(kept);
    }

    fn dependents(&self, id: TaskId) -> &[TaskId] {
        match self.offsets.get(id.index()..id.index() + 2) {
            Some(row) => &self.targets[row[0] as usize..row[1] as usize],
            None => &[],
        }
    }

    /// Returns the same rows with task `i` renamed to `position[i]`.
    fn renamed(&self, position: &[u32]) -> Self {
        if self.targets.is_empty() {
            return Rows::default();
        }
        let mut offsets = vec![0u32; self.offsets.len()];
        for (old, &new) in position.iter().enumerate() {
            offsets[new as usize + 1] = self.offsets[old + 1] - self.offsets[old];
        }
        for i in 1..offsets.len() {
            offsets[i] += offsets[i - 1];
        }
        let mut targets = vec![TaskId(0); self.targets.len()];
        for (old, &new) in position.iter().enumerate() {
            let row = &mut targets[offsets[new as usize] as usize..offsets[new as usize + 1] as usize];
            let renamed =
                self.dependents(TaskId(old as u32)).iter().map(|target| TaskId(position[target.index()]));
            row.iter_mut().zip(renamed).for_each(|(slot, target)| *slot = target);
            row.sort_unstable();
        }
        Rows { offsets, targets }
    }
}

impl Edges {
    /// Makes the edges of `tasks` tasks. Removes duplicates.
    pub(crate) fn new(tasks: usize, edges: &[Edge]) -> Self {
        if edges.is_empty() {
            return Edges::default();
        }
        let rows = [Moment::Delivery, Moment::Completion].map(|moment| {
            Rows::new(tasks, edges.iter().filter(|e| e.moment() == moment).map(|e| (e.from(), e.to)))
        });
        let mut predecessors = vec![0u32; tasks];
        rows.iter().flat_map(|rows| &rows.targets).for_each(|to| predecessors[to.index()] += 1);
        Edges { rows, predecessors }
    }
    pub(crate) fn len(&self) -> usize {
        self.rows.iter().map(|rows| rows.targets.len()).sum()
    }
    pub(crate) fn memory_bytes(&self) -> usize {
        let rows =
            self.rows.iter().map(|rows| size_of_val(&rows.offsets[..]) + size_of_val(&rows.targets[..]));
        rows.sum::<usize>() + size_of_val(&self.predecessors[..])
    }
    pub(crate) fn after(&self, id: TaskId, moment: Moment) -> &[TaskId] {
        self.rows[moment as usize].dependents(id)
    }
    pub(crate) fn all_dependents(&self, id: TaskId) -> impl Iterator<Item = TaskId> + '_ {
        self.rows.iter().flat_map(move |rows| rows.dependents(id)).copied()
    }
    pub(crate) fn predecessors(&self) -> &[u32] {
        &self.predecessors
    }
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (TaskId, TaskId)> + '_ {
        (0..self.predecessors.len() as u32)
            .flat_map(|i| self.all_dependents(TaskId(i)).map(move |t| (TaskId(i), t)))
    }
    /// Returns the same edges with task `i` renamed to `position[i]`.
    pub(crate) fn renamed(self, position: &[u32]) -> Self {
        if self.predecessors.is_empty() {
            return self;
        }
        let mut predecessors = vec![0u32; self.predecessors.len()];
        for (&new, &count) in position.iter().zip(&self.predecessors) {
            predecessors[new as usize] = count;
        }
        Edges { rows: self.rows.map(|rows| rows.renamed(position)), predecessors }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(list: &[(u32, u32, Moment)]) -> Edges {
        let list: Vec<Edge> = list.iter().map(|&(from, to, moment)| Edge::new(from, to, moment)).collect();
        Edges::new(4, &list)
    }

    #[test]
    fn rows_by_moment_without_duplicates() {
        use Moment::{Completion, Delivery};
        let edges = edges(&[
            (2, 3, Delivery),
            (0, 3, Delivery),
            (0, 1, Delivery),
            (0, 3, Delivery),
            (0, 3, Completion),
            (2, 1, Completion),
        ]);
        let of = |id, moment| edges.after(TaskId(id), moment).iter().map(|t| t.0).collect::<Vec<_>>();
        assert_eq!((of(0, Delivery), of(0, Completion)), (vec![1, 3], vec![3]));
        assert_eq!((of(2, Delivery), of(2, Completion)), (vec![3], vec![1]));
        assert!(of(1, Delivery).is_empty() && of(3, Completion).is_empty());
        assert_eq!((edges.predecessors(), edges.len()), ([0, 2, 0, 3].as_slice(), 5));
        // Tasks 0, 1, 2, 3 become 3, 0, 1, 2.
        let renamed = edges.renamed(&[3, 0, 1, 2]);
        assert_eq!(renamed.after(TaskId(3), Delivery), [TaskId(0), TaskId(2)]);
        assert_eq!(renamed.after(TaskId(1), Completion), [TaskId(0)]);
        assert_eq!(renamed.predecessors(), [2, 0, 3, 0]);
    }

    #[test]
    fn no_edge_takes_no_room() {
        assert_eq!(edges(&[]), Edges::default());
        let rows = edges(&[(0, 1, Moment::Delivery)]).rows;
        assert_eq!(rows[Moment::Completion as usize], Rows::default());
        assert_eq!(size_of::<Edge>(), 8);
    }
}
