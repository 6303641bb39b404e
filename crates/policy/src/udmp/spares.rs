//! Good paths that got no packet (spare paths).

use pathweave_units::PathId;

/// Number of spare paths, equal to the entries of the queue of releases: hardly any good path is lost while the pool
/// is short.
const ENTRIES: usize = 8;

/// The latest good paths whose acknowledgements found the pool short, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Spares {
    paths: [PathId; ENTRIES],
    head: u8,
    len: u8,
}

impl Spares {
    /// Adds a path. Replaces the oldest if there is no room.
    #[inline]
    pub(super) fn keep(&mut self, path: PathId) {
        self.paths[usize::from(self.head + self.len) % ENTRIES] = path;
        if usize::from(self.len) < ENTRIES {
            self.len += 1;
        } else {
            self.head = (self.head + 1) % ENTRIES as u8;
        }
    }
    /// Removes and returns the oldest path.
    #[inline]
    pub(super) fn take(&mut self) -> Option<PathId> {
        let path = (self.len > 0).then(|| self.paths[usize::from(self.head)])?;
        self.head = (self.head + 1) % ENTRIES as u8;
        self.len -= 1;
        Some(path)
    }
    /// Removes a path after a packet was lost on it.
    pub(super) fn forget(&mut self, path: PathId) {
        for _ in 0..self.len {
            if let Some(kept) = self.take().filter(|&kept| kept != path) {
                self.keep(kept);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn drain(mut spares: Spares) -> Vec<u16> {
        core::iter::from_fn(|| spares.take()).map(|path| path.0).collect()
    }

    #[test]
    fn the_newest_eight_are_kept_and_the_oldest_is_taken_first() {
        let mut spares = Spares::default();
        (0..11).for_each(|path| spares.keep(PathId(path)));
        assert_eq!(spares.take(), Some(PathId(3)));
        spares.keep(PathId(11));
        assert_eq!(drain(spares), [4, 5, 6, 7, 8, 9, 10, 11]);
        assert!(drain(Spares::default()).is_empty());
    }

    #[test]
    fn a_path_that_lost_a_packet_is_forgotten() {
        let mut spares = Spares::default();
        [5, 6, 5, 7].iter().for_each(|&path| spares.keep(PathId(path)));
        spares.forget(PathId(5));
        assert_eq!(drain(spares), [6, 7]);
    }
}
