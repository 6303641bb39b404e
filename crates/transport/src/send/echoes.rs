//! Departures and their echoes. An acknowledgement echoes the departure time of its packet, and an answer that of its
//! question. The first echo of a departure measures its path. Every further echo belongs to a copy that the network
//! made: it measures the age of the copy, not the path. This file remembers departures that nothing else keeps.

use alloc::collections::VecDeque;

use pathweave_units::{PathId, Time};

/// Number of departures that are remembered, the newest ones. It exceeds the number of packets that are declared lost
/// by mistake before the first of them is echoed.
const MOST: usize = 256;

/// An echo of a departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Echo {
    /// The echo is the first one of its departure.
    First,
    /// The echo is not the first, or its departure is unknown.
    Again,
}

/// A packet that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// A packet declared lost, or a copy that a policy asked for.
    Packet(u64),
    /// A question of the policy.
    Question(PathId),
}

/// Departures that have not been echoed.
#[derive(Debug, Default)]
pub(crate) struct Unechoed(VecDeque<(Departure, Time)>);

impl Unechoed {
    pub(crate) fn left(&mut self, what: Departure, at: Time) {
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back((what, at));
    }

    /// Records an echo of a departure.
    pub(crate) fn echoed(&mut self, what: Departure, at: Time) -> Echo {
        match self.0.iter().rposition(|departure| *departure == (what, at)) {
            Some(place) => {
                self.0.remove(place);
                Echo::First
            }
            None => Echo::Again,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_departure_is_echoed_once() {
        let mut unechoed = Unechoed::default();
        let (packet, question) = (Departure::Packet(7), Departure::Question(PathId(7)));
        unechoed.left(packet, Time::from_us(1));
        unechoed.left(packet, Time::from_us(2));
        unechoed.left(question, Time::from_us(2));
        let mut echoed = |what, us| unechoed.echoed(what, Time::from_us(us));
        assert_eq!([echoed(packet, 1), echoed(packet, 1)], [Echo::First, Echo::Again]);
        assert_eq!([echoed(question, 2), echoed(packet, 2)], [Echo::First; 2]);
        assert_eq!([echoed(question, 2), echoed(packet, 3)], [Echo::Again; 2]);
    }

    #[test]
    fn the_newest_are_remembered() {
        let mut unechoed = Unechoed::default();
        let all = MOST as u64 + 1;
        (0..all).for_each(|psn| unechoed.left(Departure::Packet(psn), Time::from_us(psn)));
        let first = (0..all)
            .filter(|psn| unechoed.echoed(Departure::Packet(*psn), Time::from_us(*psn)) == Echo::First);
        assert!(first.eq(1..all));
    }
}
