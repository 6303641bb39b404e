//! Iteration over the paths in laps, each lap in a different order: indices from 0 on, XORed with a random mask
//! (uet-htsim).

use pathweave_units::{PathId, Rng};

use super::PathSet;

/// Position of a picker in its laps.
#[derive(Clone, Debug)]
pub(super) struct PathRotation {
    paths: PathSet,
    /// Number of positions in a lap: a power of two, at least the number of paths.
    places: u32,
    at: RotationPosition,
    /// Mask of the next lap. Drawn ahead, so that reading it does not change the state.
    next_mask: u32,
}

/// A position in a lap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RotationPosition {
    index: u32,
    mask: u32,
    /// True if the position is in the next lap.
    is_later: bool,
}

impl PathRotation {
    pub(super) fn new(paths: PathSet, rng: &mut Rng) -> Self {
        let places = paths.len().next_power_of_two();
        let mask = rng.below(places);
        let at = RotationPosition { index: 0, mask, is_later: false };
        PathRotation { paths, places, at, next_mask: rng.below(places) }
    }

    pub(super) fn paths(&self) -> &PathSet {
        &self.paths
    }

    /// Returns the first position from `place` on that has a path, and its path.
    #[inline]
    pub(super) fn first_from(&self, mut place: RotationPosition) -> (RotationPosition, PathId) {
        loop {
            let number = place.index ^ place.mask;
            // If the number of paths is not a power of two, fewer than half of the positions have no path.
            if number < self.paths.len() {
                return (place, self.paths.get(number));
            }
            place = self.after(place);
        }
    }

    /// Returns the current position.
    #[inline]
    pub(super) fn here(&self) -> RotationPosition {
        self.at
    }

    /// Returns the position after `place`.
    #[inline]
    pub(super) fn after(&self, place: RotationPosition) -> RotationPosition {
        if place.index + 1 < self.places {
            RotationPosition { index: place.index + 1, ..place }
        } else {
            RotationPosition { index: 0, mask: self.next_mask, is_later: true }
        }
    }

    /// Moves to a position.
    #[inline]
    pub(super) fn go_to(&mut self, place: RotationPosition, rng: &mut Rng) {
        self.at = RotationPosition { is_later: false, ..place };
        if place.is_later {
            self.next_mask = rng.below(self.places);
        }
    }
}
