//! The addresses of both ends of a connection, in pairs: by which of them packets come through, and which pair each path
//! takes.
//!
//! Which address of the one end reaches which of the other is not assumed: hosts may have a network for each of their
//! interfaces, or one for all. A connection begins with all paths on the pair of its handshake. By every other pair this end
//! asks, with a packet as long as the longest of data, and a pair by which there was an answer takes its part of the paths.
//! It keeps them: when it falls silent its paths are dead as any that is silent, and are probed until they live.
//!
//! Hosts mostly answer for all their addresses on every interface. So what is sent by one interface to an address in the
//! network of another may well arrive, and the answer comes by that other one: two links where one would do, and whichever
//! fails takes the pair with it. Such a pair is held in reserve, for when nothing else lives.

use std::net::{IpAddr, SocketAddr};

use pathweave_units::{Duration, PathId, Time};

use crate::backend::Rail;

/// From one question to the next, at first.
const ASK_AGAIN: Duration = Duration::from_ms(20);
/// And at last.
const ASK_AGAIN_MOST: Duration = Duration::from_ms(1_000);

/// Between two turns of the paths.
const TURN_EVERY: Duration = Duration::from_ms(100);

/// Which end of the handshake this is: both number pairs in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Initiator,
    Responder,
}

/// How much a connection needs another pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    None,
    /// All its paths are dead, as far as can be told.
    Dire,
}

/// How it stands with a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// An answer has come by it.
    Proven,
    /// None yet.
    Asked { next: Time, wait: Duration },
    /// No packet may go there.
    Closed,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    rail: Rail,
    to: SocketAddr,
    state: State,
    /// The peer's address is in the network of another rail.
    in_reserve: bool,
}

/// The addresses of a connection that has several at an end.
#[derive(Debug)]
pub(crate) struct Rails {
    role: Role,
    rails: usize,
    remotes: Vec<SocketAddr>,
    /// By number.
    pairs: Vec<Pair>,
    /// Number of the pair of each path, for packets of this end's own,
    own: Box<[u8]>,
    /// and for answers.
    back: Box<[u8]>,
    /// How far paths have been moved on, from pair to pair.
    turned: usize,
    next_turn: Time,
}

/// What is known of both ends when a connection is there.
#[derive(Debug)]
pub(crate) struct Ends<'a> {
    pub(crate) role: Role,
    /// Addresses of this end, and how many bits name the network each is in, if that is known.
    pub(crate) rails: &'a [(IpAddr, Option<u8>)],
    /// What the peer has listed, perhaps nothing.
    pub(crate) listed: &'a [SocketAddr],
    /// By which pair they have met.
    pub(crate) met: (Rail, SocketAddr),
}

impl Rails {
    /// `None` where each end has but one address.
    pub(crate) fn new(now: Time, ends: &Ends<'_>, paths: u16) -> Option<Box<Self>> {
        let (rail, peer) = ends.met;
        let mut remotes = ends.listed.to_vec();
        match remotes.iter_mut().find(|remote| remote.ip() == peer.ip()) {
            // The port may be another than the listed one: that of a way which lived when others did not.
            Some(remote) => *remote = peer,
            None => remotes.push(peer),
        }
        let rails = ends.rails.len();
        let number_of_pairs = rails * remotes.len();
        if number_of_pairs <= 1 {
            return None;
        }
        let mut made = Rails {
            role: ends.role,
            rails,
            remotes,
            pairs: Vec::with_capacity(number_of_pairs),
            own: Box::default(),
            back: Box::default(),
            turned: 0,
            next_turn: now,
        };
        for number in 0..number_of_pairs {
            let (rail, remote) = match made.role {
                Role::Initiator => (number / made.remotes.len(), number % made.remotes.len()),
                Role::Responder => (number % made.rails, number / made.rails),
            };
            let to = made.remotes[remote];
            // What a peer lists is for others to reach it, not for this host to reach itself.
            let open = to.is_ipv4() == peer.is_ipv4() && to.ip().is_loopback() == peer.ip().is_loopback();
            let state = if open { State::Asked { next: now, wait: ASK_AGAIN } } else { State::Closed };
            let is_near = |(rail, prefix): &(IpAddr, Option<u8>)| is_in_network(*rail, *prefix, to.ip());
            let in_reserve = !is_near(&ends.rails[rail]) && ends.rails.iter().any(is_near);
            made.pairs.push(Pair { rail: Rail(rail as u8), to, state, in_reserve });
        }
        let first = made.number(rail, peer.ip())?;
        made.pairs[usize::from(first)].state = State::Proven;
        made.own = vec![first; usize::from(paths)].into();
        made.back = made.own.clone();
        Some(Box::new(made))
    }

    /// Where a packet of this end's own goes that takes a path.
    #[inline]
    pub(crate) fn way(&self, path: PathId) -> (Rail, SocketAddr) {
        self.of(self.own[path.index()])
    }

    /// Where an answer to a packet of a path goes.
    #[inline]
    pub(crate) fn way_back(&self, path: PathId) -> (Rail, SocketAddr) {
        self.of(self.back[path.index()])
    }

    /// A packet that is no answer has come by a path: what answers it goes back by its pair.
    #[inline]
    pub(crate) fn heard(&mut self, path: PathId, rail: Rail, from: IpAddr) {
        let known = self.back.get(path.index()).map(|number| &self.pairs[usize::from(*number)]);
        if known.is_some_and(|pair| pair.rail == rail && pair.to.ip() == from) {
            return;
        }
        if let Some(number) = self.number(rail, from)
            && self.pairs[usize::from(number)].state != State::Closed
            && let Some(back) = self.back.get_mut(path.index())
        {
            *back = number;
        }
    }

    /// Whether the peer receives at this address.
    #[inline]
    pub(crate) fn has_remote(&self, ip: IpAddr) -> bool {
        self.remotes.iter().any(|remote| remote.ip() == ip)
    }

    /// Where an answer goes to what has come from an address to a rail; `None`: nowhere.
    pub(crate) fn answer_to(&self, rail: Rail, from: IpAddr) -> Option<(Rail, SocketAddr)> {
        let pair = &self.pairs[usize::from(self.number(rail, from)?)];
        (pair.state != State::Closed).then_some((pair.rail, pair.to))
    }

    /// The pair with a number, if by it may be asked.
    pub(crate) fn to_ask(&self, number: u8) -> (Rail, SocketAddr) {
        self.of(number)
    }

    /// An answer has come to a question by this pair. Whether it is the first.
    pub(crate) fn answered(&mut self, number: u8) -> bool {
        let Some(pair) = self.pairs.get_mut(usize::from(number)) else { return false };
        if !matches!(pair.state, State::Asked { .. }) {
            return false;
        }
        // What is in reserve was asked for when nothing else lived, but for the pair by which the ends have met.
        (pair.state, pair.in_reserve) = (State::Proven, false);
        self.deal();
        true
    }

    /// Nothing comes back, whatever is sent: each path takes the next pair. For connections with fewer paths than pairs, on
    /// which a dead one is not told from a peer that is silent.
    pub(crate) fn turn(&mut self, now: Time) {
        if now >= self.next_turn {
            self.next_turn = now.saturating_add(TURN_EVERY);
            self.turned += 1;
            self.deal();
        }
    }

    /// Deals the paths over the pairs by which they may go.
    fn deal(&mut self) {
        let numbered = self.pairs.iter().zip(0u8..).filter(|(pair, _)| pair.state == State::Proven);
        let all: Vec<(bool, u8)> = numbered.map(|(pair, number)| (pair.in_reserve, number)).collect();
        let good = all.iter().filter(|(in_reserve, _)| !in_reserve).map(|(_, number)| *number);
        let mut pairs: Vec<u8> = good.collect();
        if pairs.is_empty() {
            pairs = all.iter().map(|(_, number)| *number).collect();
        }
        for (path, own) in self.own.iter_mut().enumerate() {
            *own = pairs[(path + self.turned) % pairs.len()];
        }
    }

    /// Pairs by which to ask now, and when to look again. `need`: whether those in reserve are needed.
    pub(crate) fn due(&mut self, now: Time, need: Need) -> (Vec<u8>, Option<Time>) {
        let (mut due, mut soonest) = (Vec::new(), None);
        for (pair, number) in self.pairs.iter_mut().zip(0u8..) {
            if pair.in_reserve && need == Need::None {
                continue;
            }
            let State::Asked { next, wait } = &mut pair.state else { continue };
            if *next <= now {
                due.push(number);
                *next = now.saturating_add(*wait);
                *wait = Duration::from_ps(wait.as_ps() * 2).min(ASK_AGAIN_MOST);
            }
            soonest = Some(soonest.map_or(*next, |known: Time| known.min(*next)));
        }
        (due, soonest)
    }

    fn of(&self, number: u8) -> (Rail, SocketAddr) {
        let pair = &self.pairs[usize::from(number)];
        (pair.rail, pair.to)
    }

    /// In the order of the initiator's addresses, then the responder's.
    fn number(&self, rail: Rail, remote: IpAddr) -> Option<u8> {
        let remote = self.remotes.iter().position(|known| known.ip() == remote)?;
        let number = match self.role {
            Role::Initiator => rail.index() * self.remotes.len() + remote,
            Role::Responder => remote * self.rails + rail.index(),
        };
        (rail.index() < self.rails).then_some(number as u8)
    }
}

/// Whether an address is in the network of another.
fn is_in_network(own: IpAddr, prefix: Option<u8>, other: IpAddr) -> bool {
    let Some(prefix) = prefix else { return false };
    let (own, other, len) = match (own, other) {
        (IpAddr::V4(own), IpAddr::V4(other)) => (own.to_bits().into(), other.to_bits().into(), 32),
        (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits(), other.to_bits(), 128),
        _ => return false,
    };
    let (own, other): (u128, u128) = (own, other);
    // A network of all addresses is as good as none.
    prefix > 0 && (own ^ other).checked_shr(len - u32::from(prefix.min(len as u8))) == Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_us(5);

    /// So many rails in networks nothing is known of.
    fn rails(count: usize) -> Vec<(IpAddr, Option<u8>)> {
        (0..count).map(|rail| (IpAddr::from([192, 0, 2, rail as u8]), None)).collect()
    }

    fn addresses(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn ways(of: &Rails, paths: u16) -> Vec<(u8, String)> {
        let way = |path| {
            let (rail, to) = of.way(PathId(path));
            (rail.0, to.to_string())
        };
        (0..paths).map(way).collect()
    }

    #[test]
    fn both_ends_put_a_path_on_the_same_pair() {
        let (near, far) =
            (addresses(&["10.0.1.1:5", "10.0.2.1:6"]), addresses(&["10.0.1.2:7", "10.0.2.2:8"]));
        let asks = Ends { role: Role::Initiator, rails: &rails(2), listed: &far, met: (Rail(0), far[0]) };
        let mut asks = Rails::new(NOW, &asks, 4).unwrap();
        let answers =
            Ends { role: Role::Responder, rails: &rails(2), listed: &near, met: (Rail(0), near[0]) };
        let mut answers = Rails::new(NOW, &answers, 4).unwrap();
        assert_eq!(ways(&asks, 2), [(0, "10.0.1.2:7".into()), (0, "10.0.1.2:7".into())], "as they met");
        // Each asks by the three others. Only the second network has an answer.
        assert_eq!(
            (asks.due(NOW, Need::None).0, answers.due(NOW, Need::None).0),
            (vec![1, 2, 3], vec![1, 2, 3])
        );
        assert_eq!((asks.to_ask(1), answers.to_ask(1)), ((Rail(0), far[1]), (Rail(1), near[0])));
        assert!(asks.answered(3) && answers.answered(3));
        assert!(!asks.answered(3) && !asks.answered(0) && !asks.answered(99), "once");
        for path in 0..4 {
            let ((rail, to), (back, from)) = (asks.way(PathId(path)), answers.way(PathId(path)));
            assert_eq!((near[rail.index()], to), (from, far[back.index()]), "path {path}");
            assert_eq!(rail.0, path as u8 % 2);
        }
    }

    #[test]
    fn answers_go_back_by_the_pair_of_what_they_answer() {
        let far = addresses(&["10.0.1.2:7", "10.0.2.2:8"]);
        let ends = Ends { role: Role::Responder, rails: &rails(1), listed: &far, met: (Rail(0), far[1]) };
        let mut rails = Rails::new(NOW, &ends, 2).unwrap();
        assert_eq!(rails.way_back(PathId(1)), (Rail(0), far[1]));
        rails.heard(PathId(1), Rail(0), far[0].ip());
        assert_eq!(rails.way_back(PathId(1)), (Rail(0), far[0]));
        assert_eq!((rails.way(PathId(1)).1, rails.way_back(PathId(0)).1), (far[1], far[1]));
        // Nothing follows from what is not of the peer, nor of a rail or path there is.
        for (path, rail, from) in [(1, 0, "10.0.3.2"), (1, 1, "10.0.2.2"), (9, 0, "10.0.2.2")] {
            rails.heard(PathId(path), Rail(rail), from.parse().unwrap());
        }
        assert_eq!(rails.way_back(PathId(1)), (Rail(0), far[0]));
        assert!(rails.has_remote(far[0].ip()) && !rails.has_remote("10.0.3.2".parse().unwrap()));
    }

    #[test]
    fn questions_become_rare() {
        let far = addresses(&["10.0.1.2:7", "10.0.2.2:8"]);
        let ends = Ends { role: Role::Initiator, rails: &rails(1), listed: &far, met: (Rail(0), far[0]) };
        let mut rails = Rails::new(NOW, &ends, 2).unwrap();
        let (mut now, mut times) = (NOW, vec![]);
        while times.len() < 9 {
            let (due, next) = rails.due(now, Need::None);
            assert_eq!(due, [1]);
            times.push((now - NOW).as_ns() / 1_000_000);
            assert!(rails.due(now, Need::None).0.is_empty());
            now = next.unwrap();
        }
        assert_eq!(times, [0, 20, 60, 140, 300, 620, 1_260, 2_260, 3_260]);
        rails.answered(1);
        assert_eq!(rails.due(now, Need::None), (vec![], None));
    }

    #[test]
    fn one_address_at_each_end_is_no_pair_and_a_peer_names_nothing_of_this_host() {
        let one = Ends {
            role: Role::Initiator,
            rails: &rails(1),
            listed: &[],
            met: (Rail(0), addresses(&["10.0.0.1:1"])[0]),
        };
        assert!(Rails::new(NOW, &one, 4).is_none());
        let listed = addresses(&["10.0.1.2:7", "127.0.0.1:7"]);
        let ends =
            Ends { role: Role::Initiator, rails: &rails(2), listed: &listed, met: (Rail(0), listed[0]) };
        let mut rails = Rails::new(NOW, &ends, 4).unwrap();
        assert_eq!(
            rails.due(NOW, Need::None).0,
            [2],
            "from the other rail to the address in the network alone"
        );
        assert!(!rails.answered(1), "nobody has asked by it");
        assert_eq!(rails.answer_to(Rail(0), listed[1].ip()), None);
        assert_eq!(rails.answer_to(Rail(1), listed[0].ip()), Some((Rail(1), listed[0])));
        rails.heard(PathId(0), Rail(0), listed[1].ip());
        assert_eq!(rails.way_back(PathId(0)).1, listed[0]);
    }

    #[test]
    fn an_address_in_the_network_of_another_rail_is_asked_when_nothing_else_lives() {
        let own = addresses(&["10.0.1.1:1", "10.0.2.1:1"])
            .iter()
            .map(|own| (own.ip(), Some(24)))
            .collect::<Vec<_>>();
        let listed = addresses(&["10.0.1.2:7", "10.0.2.2:8", "10.0.3.2:9"]);
        let ends = Ends { role: Role::Initiator, rails: &own, listed: &listed, met: (Rail(1), listed[0]) };
        let mut made = Rails::new(NOW, &ends, 6).unwrap();
        // They have met in such a way. Which rail leads to the third network is not known.
        assert_eq!(made.due(NOW, Need::None).0, [0, 2, 4, 5]);
        for pair in [0, 4, 5] {
            assert!(made.answered(pair));
        }
        let now = ways(&made, 3);
        assert_eq!(now, [(0, "10.0.1.2:7".into()), (1, "10.0.2.2:8".into()), (1, "10.0.3.2:9".into())]);
        let later = NOW + Duration::from_ms(5);
        assert_eq!(made.due(later, Need::Dire).0, [1], "it is asked at once");
        assert!(made.answered(1));
        assert_eq!(ways(&made, 4)[1], (0, "10.0.2.2:8".into()));
    }

    #[test]
    fn where_nothing_comes_back_paths_go_by_the_next_pair() {
        let far = addresses(&["10.0.1.2:7", "10.0.2.2:8"]);
        let ends = Ends { role: Role::Initiator, rails: &rails(1), listed: &far, met: (Rail(0), far[0]) };
        let mut made = Rails::new(NOW, &ends, 1).unwrap();
        made.turn(NOW);
        assert_eq!(made.way(PathId(0)).1, far[0], "there is no other");
        made.answered(1);
        let at = |ms| NOW + Duration::from_ms(ms);
        let mut to = vec![];
        for ms in [100, 150, 200, 300] {
            made.turn(at(ms));
            to.push(made.way(PathId(0)).1.port());
        }
        assert_eq!(to, [7, 7, 8, 7]);
    }

    #[test]
    fn networks_are_told_by_their_prefixes() {
        let near = |own: &str, prefix, other: &str| {
            is_in_network(own.parse().unwrap(), prefix, other.parse().unwrap())
        };
        assert!(near("10.0.1.1", Some(24), "10.0.1.255") && !near("10.0.1.1", Some(24), "10.0.2.1"));
        assert!(near("10.0.1.1", Some(22), "10.0.2.1") && !near("10.0.1.1", Some(32), "10.0.1.2"));
        assert!(near("fd00::1", Some(64), "fd00::2:0:0:1") && !near("fd00::1", Some(64), "fd00:0:0:1::1"));
        assert!(!near("10.0.1.1", Some(0), "10.0.1.2") && !near("10.0.1.1", None, "10.0.1.1"));
        assert!(!near("10.0.1.1", Some(24), "fd00::1") && near("10.0.1.1", Some(255), "10.0.1.1"));
    }

    #[test]
    fn who_is_met_at_an_address_that_is_not_listed_is_answered_there() {
        let (listed, met) = (addresses(&["10.0.1.2:7", "10.0.2.2:8"]), addresses(&["192.0.2.1:99"])[0]);
        let ends = Ends { role: Role::Responder, rails: &rails(1), listed: &listed, met: (Rail(0), met) };
        let rails = Rails::new(NOW, &ends, 2).unwrap();
        assert_eq!(rails.way(PathId(1)), (Rail(0), met));
        assert!(rails.has_remote(met.ip()));
    }
}
