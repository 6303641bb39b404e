//! Path after path in laps, each lap in an order of its own: indices from 0 on, XORed with a random mask (uet-htsim).

use pathweave_units::{PathId, Rng};

use super::PathSet;

/// Where in its laps a picker is.
#[derive(Clone, Debug)]
pub(super) struct Laps {
    paths: PathSet,
    /// A power of two, not less than the number of paths.
    places: u32,
    at: Place,
    /// Of the lap after this one, drawn ahead so that looking changes nothing.
    next_mask: u32,
}

/// A place in a lap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    index: u32,
    mask: u32,
    /// Not in the lap at hand.
    is_later: bool,
}

impl Laps {
    pub(super) fn new(paths: PathSet, rng: &mut Rng) -> Self {
        let places = paths.len().next_power_of_two();
        let mask = rng.below(places);
        let at = Place { index: 0, mask, is_later: false };
        Laps { paths, places, at, next_mask: rng.below(places) }
    }

    pub(super) fn paths(&self) -> &PathSet {
        &self.paths
    }

    /// The next place that has a path, from this one on, and its path.
    #[inline]
    pub(super) fn first_from(&self, mut place: Place) -> (Place, PathId) {
        loop {
            let number = place.index ^ place.mask;
            // Where paths are no power of two, some places have none: fewer than half of a lap.
            if number < self.paths.len() {
                return (place, self.paths.get(number));
            }
            place = self.after(place);
        }
    }

    /// Where it is.
    #[inline]
    pub(super) fn here(&self) -> Place {
        self.at
    }

    /// The place behind it.
    #[inline]
    pub(super) fn after(&self, place: Place) -> Place {
        if place.index + 1 < self.places {
            Place { index: place.index + 1, ..place }
        } else {
            Place { index: 0, mask: self.next_mask, is_later: true }
        }
    }

    /// Goes on to a place.
    #[inline]
    pub(super) fn go_to(&mut self, place: Place, rng: &mut Rng) {
        self.at = Place { is_later: false, ..place };
        if place.is_later {
            self.next_mask = rng.below(self.places);
        }
    }
}
