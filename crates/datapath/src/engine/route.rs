//! Order in which an attempt to connect tries rails, addresses and ports when there is no answer.

use pathweave_units::PathId;

use crate::backend::Rail;

/// Number of consecutive unanswered datagrams after which an address pair that has answered before is given up.
const PATIENCE: u8 = 3;

/// Address pairs of an attempt: each rail with each address of the peer. Each pair has one source port for each path
/// and one default port. Each port, and the answer to it, takes another path through the network.
#[derive(Clone, Debug)]
pub(super) struct ConnectAttemptOrder {
    /// Pairs in order of preference. The address of the peer is an index into the attempt's list.
    ways: Vec<(Rail, usize)>,
    at: usize,
    /// Path whose port is used; `None`: the port at which peers usually reach this end.
    path: Option<PathId>,
    paths: u16,
    /// Number of consecutive unanswered datagrams since the peer answered on this pair; `None` if it has not.
    answered: Option<u8>,
}

impl ConnectAttemptOrder {
    /// `towards`: the rail from which routing would send to each address of the peer.
    pub(super) fn new(rails: usize, towards: &[Rail], paths: u16) -> Self {
        let mut ways: Vec<(Rail, usize)> = towards.iter().enumerate().map(|(to, rail)| (*rail, to)).collect();
        for (to, likely) in towards.iter().enumerate() {
            ways.extend((0..rails).map(|rail| (Rail(rail as u8), to)).filter(|(rail, _)| rail != likely));
        }
        ConnectAttemptOrder { ways, at: 0, path: None, paths, answered: None }
    }

    /// Returns the number of pairs.
    pub(super) fn ways(&self) -> usize {
        self.ways.len()
    }

    /// Returns the current rail and the index of the peer's address.
    pub(super) fn way(&self) -> (Rail, usize) {
        self.ways[self.at]
    }

    pub(super) fn path(&self) -> Option<PathId> {
        self.path
    }

    /// Records that a datagram was not answered.
    pub(super) fn on_no_answer(&mut self) {
        match &mut self.answered {
            // A cookie is valid for one address, so a change of address restarts the handshake.
            Some(silent) if *silent < PATIENCE => {
                *silent += 1;
                self.next_path();
            }
            _ => self.next_way(),
        }
    }

    /// Moves to the next pair at once, because the current one does not exist.
    pub(super) fn next_way(&mut self) {
        self.answered = None;
        self.at += 1;
        if self.at == self.ways.len() {
            self.at = 0;
            self.next_path();
        }
    }

    /// Records an answer that arrived at this rail and path, from the peer's address with index `to` if it is in the
    /// list.
    pub(super) fn answered(&mut self, rail: Rail, to: Option<usize>, path: Option<PathId>) {
        let to = to.unwrap_or(self.way().1);
        if let Some(at) = self.ways.iter().position(|way| *way == (rail, to)) {
            (self.at, self.path, self.answered) = (at, path, Some(0));
        }
    }

    fn next_path(&mut self) {
        let next = self.path.map_or(0, |path| path.0 + 1);
        self.path = (next < self.paths).then_some(PathId(next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_one_way_each_port_is_asked_from_in_turn() {
        let mut routes = ConnectAttemptOrder::new(1, &[Rail(0)], 2);
        let mut paths = vec![];
        for _ in 0..4 {
            assert_eq!(routes.way(), (Rail(0), 0));
            paths.push(routes.path());
            routes.on_no_answer();
        }
        assert_eq!(paths, [None, Some(PathId(0)), Some(PathId(1)), None]);
    }

    #[test]
    fn every_address_is_asked_the_likely_way_first_and_then_any_way() {
        let mut routes = ConnectAttemptOrder::new(2, &[Rail(0), Rail(1)], 2);
        let mut ways = vec![];
        for _ in 0..5 {
            ways.push((routes.way().0.0, routes.way().1, routes.path()));
            routes.on_no_answer();
        }
        let first = Some(PathId(0));
        assert_eq!(ways, [(0, 0, None), (1, 1, None), (1, 0, None), (0, 1, None), (0, 0, first)]);
    }

    #[test]
    fn where_an_answer_has_come_it_is_asked_again_for_a_while() {
        let mut routes = ConnectAttemptOrder::new(2, &[Rail(0)], 16);
        routes.on_no_answer();
        assert_eq!(routes.way(), (Rail(1), 0));
        routes.answered(Rail(0), Some(0), None);
        let mut ways = vec![];
        for _ in 0..5 {
            ways.push((routes.way().0.0, routes.path().map(|path| path.0)));
            routes.on_no_answer();
        }
        assert_eq!(ways, [(0, None), (0, Some(0)), (0, Some(1)), (0, Some(2)), (1, Some(2))]);
        // An answer from outside the list of pairs changes nothing.
        routes.answered(Rail(7), None, None);
        assert!(routes.way().0.0 < 2);
    }
}
