//! Ring of the paths whose packets returned last, as in REPS (Bonato et al., arXiv 2407.21625).

use pathweave_units::PathId;

use crate::Egress;

/// The last paths whose packets returned, at most 255. The paths stay in the ring after their use, until others take
/// their places.
#[derive(Clone, Debug)]
pub(crate) struct PathRing<P> {
    paths: P,
    /// Place of the next path.
    head: u8,
    /// Number of fresh paths, which have not been used since they returned. They are in the places before `head`.
    fresh: u8,
}

impl<P: AsRef<[PathId]> + AsMut<[PathId]>> PathRing<P> {
    /// Creates a ring with these places, none of them fresh.
    pub(crate) fn new(paths: P) -> Self {
        PathRing { paths, head: 0, fresh: 0 }
    }
    fn len(&self) -> usize {
        self.paths.as_ref().len()
    }
    /// Returns the place of the fresh path of this age; 0 is the oldest.
    #[inline]
    fn place(&self, age: usize) -> usize {
        (usize::from(self.head) + self.len() - usize::from(self.fresh) + age) % self.len()
    }
    /// Returns the number of fresh paths.
    #[inline]
    pub(crate) fn fresh(&self) -> u8 {
        self.fresh
    }
    /// Returns the place of the next path.
    pub(crate) fn head(&self) -> u8 {
        self.head
    }
    /// Returns the path at a place, fresh or not.
    #[inline]
    pub(crate) fn at(&self, place: usize) -> PathId {
        self.paths.as_ref()[place]
    }
    /// Iterates over the fresh paths, oldest first.
    #[inline]
    fn fresh_paths(&self) -> impl Iterator<Item = PathId> {
        (0..usize::from(self.fresh)).map(|age| self.at(self.place(age)))
    }
    /// Returns the oldest fresh path whose NIC port is free.
    #[inline]
    pub(crate) fn oldest_free(&self, egress: Egress) -> Option<PathId> {
        self.fresh_paths().find(|path| egress.is_free(*path))
    }
    /// Returns the oldest fresh path.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<PathId> {
        self.fresh_paths().next()
    }
    /// Adds a path that returned, in place of the oldest one.
    #[inline]
    pub(crate) fn push(&mut self, path: PathId) {
        let (head, len) = (usize::from(self.head), self.len());
        self.paths.as_mut()[head] = path;
        self.head = ((head + 1) % len) as u8;
        self.fresh = self.fresh.saturating_add(1).min(len as u8);
    }
    /// Takes a fresh path, the oldest of this number. Older paths stay fresh and move up. Returns the place that is no
    /// longer fresh, or `None` if the path is not fresh.
    #[inline]
    pub(crate) fn take(&mut self, path: PathId) -> Option<usize> {
        let taken = self.fresh_paths().position(|other| other == path)?;
        for age in (0..taken).rev() {
            let (from, to) = (self.place(age), self.place(age + 1));
            self.paths.as_mut()[to] = self.at(from);
        }
        let place = self.place(0);
        self.fresh -= 1;
        Some(place)
    }
    /// Advances the place of the next path. Only without fresh paths.
    pub(crate) fn skip(&mut self) {
        debug_assert_eq!(self.fresh, 0);
        self.head = ((usize::from(self.head) + 1) % self.len()) as u8;
    }
    /// Empties the ring, as it was at the beginning.
    pub(crate) fn restart(&mut self) {
        self.paths.as_mut().fill(PathId(0));
        (self.head, self.fresh) = (0, 0);
    }
    /// Returns all places, fresh or not.
    pub(crate) fn all_mut(&mut self) -> &mut [PathId] {
        self.paths.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh(ring: &PathRing<[PathId; 4]>) -> alloc::vec::Vec<u16> {
        ring.fresh_paths().map(|path| path.0).collect()
    }

    #[test]
    fn a_path_is_fresh_until_it_is_taken_or_displaced() {
        let mut ring = PathRing::new([PathId(0); 4]);
        (1..=5).for_each(|path| ring.push(PathId(path)));
        assert_eq!(fresh(&ring), [2, 3, 4, 5]);
        // The oldest, path 2, is in place 1. It moves to the place of path 3, which leaves place 1.
        assert_eq!(ring.take(PathId(3)), Some(1));
        assert_eq!((fresh(&ring), ring.at(1), ring.at(2)), (alloc::vec![2, 4, 5], PathId(2), PathId(2)));
        assert_eq!((ring.take(PathId(3)), ring.oldest()), (None, Some(PathId(2))));
        ring.push(PathId(6));
        assert_eq!((fresh(&ring), ring.head()), (alloc::vec![2, 4, 5, 6], 2));
    }
}
