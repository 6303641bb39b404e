//! The usable paths.

use alloc::boxed::Box;

use pathweave_units::{PathId, Rng};

use crate::{Egress, PathState, PathView};

/// The paths that are up, or all if none is. Takes no heap memory while all are up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSet {
    /// Number of usable paths.
    len: u32,
    /// Sorted identifiers; `None` if they are 0 to `len - 1`.
    some: Option<Box<[PathId]>>,
}

impl PathSet {
    /// Creates paths 0 to `count - 1`, all up.
    pub fn all(count: u16) -> Self {
        assert!(count > 0, "a queue pair needs a path");
        PathSet { len: u32::from(count), some: None }
    }
    /// Creates the set of the usable ones of `paths`.
    pub fn usable(paths: &[PathView]) -> Self {
        assert!(!paths.is_empty(), "a queue pair needs a path");
        let up = |path: &&PathView| path.state == PathState::Up;
        // The usual case, at the start of every queue pair: no list is allocated.
        if let Ok(count) = u16::try_from(paths.len())
            && paths.iter().enumerate().all(|(i, path)| up(&path) && path.id.index() == i)
        {
            return PathSet::all(count);
        }
        let any_up = paths.iter().any(|path| up(&path));
        let mut some: Box<[PathId]> =
            paths.iter().filter(|path| !any_up || up(path)).map(|path| path.id).collect();
        some.sort_unstable();
        let len = some.len() as u32;
        let dense = some.iter().enumerate().all(|(i, path)| path.index() == i);
        PathSet { len, some: (!dense).then_some(some) }
    }
    /// Returns the number of paths, if they are numbered from 0 without gaps.
    pub fn dense_len(&self) -> Option<u16> {
        if self.some.is_none() { u16::try_from(self.len).ok() } else { None }
    }
    /// Returns the number of paths; never 0.
    #[expect(clippy::len_without_is_empty, reason = "a path set is never empty")]
    pub fn len(&self) -> u32 {
        self.len
    }
    /// Returns the `n`-th path in order of identifiers.
    #[inline]
    pub fn get(&self, n: u32) -> PathId {
        match &self.some {
            None => {
                debug_assert!(n < self.len);
                PathId(n as u16)
            }
            Some(some) => some[n as usize],
        }
    }
    /// Draws a path uniformly.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> PathId {
        self.get(rng.below(self.len))
    }
    /// Returns true if the path is in the set.
    pub fn contains(&self, path: PathId) -> bool {
        match &self.some {
            None => u32::from(path.0) < self.len,
            Some(some) => some.binary_search(&path).is_ok(),
        }
    }
    /// Draws a path other than `path` uniformly; returns `path` itself if there is no other.
    pub fn draw_other(&self, path: PathId, rng: &mut Rng) -> PathId {
        if self.len == 1 || !self.contains(path) {
            return self.draw(rng);
        }
        // The last path replaces the excluded one.
        let drawn = self.get(rng.below(self.len - 1));
        if drawn == path { self.get(self.len - 1) } else { drawn }
    }
    /// Returns `path` if its NIC port is free or none is. Otherwise returns the same inner path at a free port, or if
    /// that is not usable, the next usable path whose port is free.
    #[inline]
    pub fn move_to_free_port(&self, path: PathId, egress: Egress) -> PathId {
        if egress.is_settled(path) { path } else { self.move_to_another_port(path, egress) }
    }

    /// Equals [`PathSet::move_to_free_port`], for a path that may be moved.
    fn move_to_another_port(&self, path: PathId, egress: Egress) -> PathId {
        let settled = egress.move_to_free_port(path, |like| self.contains(like));
        match &self.some {
            Some(some) if egress.free() != 0 && !egress.is_free(settled) => next_free(some, settled, egress),
            _ => settled,
        }
    }
    /// Returns `path` if it is usable, or else a random path.
    pub fn keep_or_draw(&self, path: PathId, rng: &mut Rng) -> PathId {
        if self.contains(path) { path } else { self.draw(rng) }
    }
}

/// Returns the path of the list that follows `path` cyclically and whose port is free; `path` if there is none.
fn next_free(list: &[PathId], path: PathId, egress: Egress) -> PathId {
    let (before, after) = list.split_at(list.partition_point(|other| *other <= path));
    after.iter().chain(before).copied().find(|other| egress.is_free(*other)).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn views(states: &[PathState]) -> Vec<PathView> {
        let view = |(i, &state)| PathView::new(PathId(i as u16), state);
        states.iter().enumerate().map(view).collect()
    }

    #[test]
    fn a_set_without_gaps_takes_no_list() {
        use PathState::{Down, Up};
        assert_eq!(PathSet::usable(&views(&[Up, Up, Up])), PathSet::all(3));
        assert_eq!(PathSet::usable(&views(&[Up, Up, Down])), PathSet::all(2));
    }

    #[test]
    fn a_path_that_is_down_is_not_drawn() {
        use PathState::{Down, Up};
        let set = PathSet::usable(&views(&[Up, Down, Up, Down]));
        assert_eq!((set.len(), set.get(0), set.get(1)), (2, PathId(0), PathId(2)));
        let mut rng = Rng::for_component(1, "test", 0);
        for _ in 0..100 {
            assert!(set.contains(set.draw(&mut rng)));
        }
        assert!(!set.contains(PathId(1)) && !set.contains(PathId(9)));
        assert_eq!(set.keep_or_draw(PathId(2), &mut rng), PathId(2));
    }

    #[test]
    fn with_every_path_down_all_are_tried() {
        assert_eq!(PathSet::usable(&views(&[PathState::Down; 4])), PathSet::all(4));
    }
}
