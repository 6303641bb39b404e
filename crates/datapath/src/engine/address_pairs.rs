//! Address pairs of a connection whose ends have several addresses: which pairs work, and which pair each path uses.
//!
//! Reachability between the addresses of the two ends is not assumed: hosts may have one network for each interface,
//! or one for all. A connection begins with all paths on the pair of its handshake, which has validated the peer's
//! address. The initiator sends an Ask by every other pair, the responder by those by which it was asked. An Ask
//! contains a secret. Its Answer counts only with the same secret and by the same pair, so an address that the peer
//! lists but does not receive at is not used. Until the address has answered, Asks are short and few (see
//! [`unproven`](super::unproven)). Afterwards an Ask is as long as the longest data packet, and a pair by which a full
//! Ask was answered gets its share of the paths. It keeps them: if the pair fails, its paths are declared dead like any
//! silent path, and are probed until they answer.
//!
//! Hosts mostly answer for all their addresses on every interface. A packet sent from one interface to an address in
//! the network of another may thus arrive, with its answer coming through that other interface. Such a pair uses two
//! links where one would do, and fails if either of them does. It is therefore held in reserve and used only if all
//! other pairs fail.

use std::net::{IpAddr, SocketAddr};

use pathweave_units::{Duration, PathId, Time};

use super::control::Length;
use super::unproven::{AskBudget, SolicitedAllowance, Unproven};
use crate::backend::Rail;
use crate::secure::SecureRandom;

/// First interval between two Asks by a pair.
const ASK_AGAIN: Duration = Duration::from_ms(20);
/// Longest interval between two Asks by a pair.
const ASK_AGAIN_MOST: Duration = Duration::from_ms(1_000);

/// Interval between two rotations of the paths.
const TURN_EVERY: Duration = Duration::from_ms(100);

/// Role of this end in the handshake. Both ends number the pairs in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Initiator,
    Responder,
}

/// Urgency with which a connection needs another pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    None,
    /// All its paths are dead, as far as can be determined.
    Dire,
}

/// Validation state of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No Answer has arrived by it.
    Asked,
    /// A short Ask was answered: the peer receives there. Only Answers may be sent by it.
    Answered,
    /// A full Ask was answered, so packets of full length get through.
    Proven,
    /// No packet may be sent there.
    Closed,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    rail: Rail,
    to: SocketAddr,
    state: State,
    /// Time of the last Ask, time of the next one, and the interval after that.
    asked: Option<Time>,
    next: Time,
    wait: Duration,
    /// Secret of its short Asks, and of its full ones.
    secrets: [u64; 2],
    invited: SolicitedAllowance,
    /// True if the peer's address is in the network of another rail.
    in_reserve: bool,
}

impl Pair {
    fn is_asked(&self) -> bool {
        matches!(self.state, State::Asked | State::Answered)
    }

    /// Returns true if the peer has answered by this pair.
    fn has_answered(&self) -> bool {
        matches!(self.state, State::Answered | State::Proven)
    }

    fn ask_from(&mut self, now: Time) {
        (self.next, self.wait) = (now, ASK_AGAIN);
    }
}

/// Ask to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    /// Number of its pair.
    pub(crate) pair: u8,
    pub(crate) length: Length,
    pub(crate) secret: u64,
}

/// Received Answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// Number of its pair, as the Answer states it.
    pub(crate) pair: u8,
    pub(crate) secret: u64,
    /// Rail at which it arrived, and source address.
    pub(crate) rail: Rail,
    pub(crate) from: IpAddr,
}

/// Addresses of a connection with several at an end.
#[derive(Debug)]
pub(crate) struct Rails {
    role: Role,
    rails: usize,
    remotes: Vec<SocketAddr>,
    /// Address pairs by number.
    pairs: Vec<Pair>,
    /// Number of the pair of each path, for packets that are not answers.
    own: Box<[u8]>,
    /// Number of the pair of each path, for answers.
    back: Box<[u8]>,
    /// Offset by which the assignment of paths to pairs has been rotated.
    turned: usize,
    next_turn: Time,
    /// Number of the pair of the handshake.
    met: u8,
    /// Budget of Asks to addresses from which nothing has come. A responder has none: it asks where it was asked.
    purse: Option<AskBudget>,
}

/// Addresses of both ends at the end of the handshake.
#[derive(Debug)]
pub(crate) struct Ends<'a> {
    pub(crate) role: Role,
    /// Addresses of this end, each with the prefix length of its network if that is known.
    pub(crate) rails: &'a [(IpAddr, Option<u8>)],
    /// Addresses listed by the peer; may be empty.
    pub(crate) listed: &'a [SocketAddr],
    /// Address pair of the handshake.
    pub(crate) met: (Rail, SocketAddr),
}

impl Rails {
    /// Returns `None` if each end has only one address, or if there are no random bytes for secrets.
    pub(crate) fn new(
        now: Time,
        ends: &Ends<'_>,
        paths: u16,
        random: &mut dyn SecureRandom,
    ) -> Option<Box<Self>> {
        let (rail, peer) = ends.met;
        let mut remotes = ends.listed.to_vec();
        match remotes.iter_mut().find(|remote| remote.ip() == peer.ip()) {
            // The port may differ from the listed one: it can belong to a path that worked when others did not.
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
            met: 0,
            purse: (ends.role == Role::Initiator).then(|| AskBudget::new(now)),
        };
        for number in 0..number_of_pairs {
            let (rail, remote) = made.place(number as u8);
            let to = made.remotes[remote];
            // The loopback addresses that a peer lists are its own, not those of this host.
            let open = to.is_ipv4() == peer.is_ipv4() && to.ip().is_loopback() == peer.ip().is_loopback();
            let state = if open { State::Asked } else { State::Closed };
            let is_near = |(rail, prefix): &(IpAddr, Option<u8>)| is_in_network(*rail, *prefix, to.ip());
            let in_reserve = !is_near(&ends.rails[rail]) && ends.rails.iter().any(is_near);
            let (mut short, mut full) = ([0; 8], [0; 8]);
            random.fill(&mut short).and(random.fill(&mut full)).ok()?;
            let secrets = [u64::from_ne_bytes(short), u64::from_ne_bytes(full)];
            let (rail, invited) = (Rail(rail as u8), SolicitedAllowance::default());
            let (asked, next, wait) = (None, now, ASK_AGAIN);
            made.pairs.push(Pair { rail, to, state, asked, next, wait, secrets, invited, in_reserve });
        }
        made.met = made.number(rail, peer.ip())?;
        made.pairs[usize::from(made.met)].state = State::Proven;
        made.own = vec![made.met; usize::from(paths)].into();
        made.back = made.own.clone();
        Some(Box::new(made))
    }

    /// Returns the pair for a packet that is not an answer, on a path.
    #[inline]
    pub(crate) fn pair_for_request(&self, path: PathId) -> (Rail, SocketAddr) {
        self.of(self.own[path.index()])
    }

    /// Returns the pair for an answer to a packet of a path.
    #[inline]
    pub(crate) fn pair_for_answer(&self, path: PathId) -> (Rail, SocketAddr) {
        self.of(self.back[path.index()])
    }

    /// Records the pair by which a packet that is not an answer has arrived on a path. Answers to this path return by
    /// the same pair.
    #[inline]
    pub(crate) fn note_arrival(&mut self, path: PathId, rail: Rail, from: IpAddr) {
        let known = self.back.get(path.index()).map(|number| &self.pairs[usize::from(*number)]);
        if known.is_some_and(|pair| pair.rail == rail && pair.to.ip() == from) {
            return;
        }
        if let Some(number) = self.number(rail, from)
            && self.pairs[usize::from(number)].has_answered()
            && let Some(back) = self.back.get_mut(path.index())
        {
            *back = number;
        }
    }

    /// Returns true if the peer receives at this address.
    #[inline]
    pub(crate) fn has_remote(&self, ip: IpAddr) -> bool {
        self.remotes.iter().any(|remote| remote.ip() == ip)
    }

    /// Handles an Ask of the peer by a pair. Returns the pair of the Answer and an Ask to send with it; `None`:
    /// nothing may be sent there.
    pub(crate) fn on_ask(
        &mut self,
        now: Time,
        rail: Rail,
        from: IpAddr,
        unproven: &mut Unproven,
    ) -> Option<((Rail, SocketAddr), Option<Ask>)> {
        let number = self.number(rail, from)?;
        let pair = &mut self.pairs[usize::from(number)];
        let back = (pair.rail, pair.to);
        match pair.state {
            State::Closed => None,
            State::Answered | State::Proven => Some((back, None)),
            State::Asked => {
                pair.invited.asked();
                if pair.asked.is_some_and(|at| now.saturating_since(at) < ASK_AGAIN) {
                    return Some((back, None));
                }
                // The pair is in reserve here, or an earlier Ask was not answered and the next one has been delayed.
                pair.ask_from(now);
                Some((back, self.ask(now, number, unproven)))
            }
        }
    }

    /// Returns the rail and the destination of an Ask by a pair.
    pub(crate) fn to_ask(&self, number: u8) -> (Rail, SocketAddr) {
        self.of(number)
    }

    /// Handles an Answer. Returns true if it changes the state of a pair.
    pub(crate) fn on_answer(&mut self, now: Time, answer: &Answer, unproven: &mut Unproven) -> bool {
        let Some(pair) = self.pairs.get_mut(usize::from(answer.pair)) else { return false };
        if (pair.rail, pair.to.ip()) != (answer.rail, answer.from) {
            return false;
        }
        let [short, full] = pair.secrets;
        match pair.state {
            State::Asked | State::Answered if answer.secret == full => {
                pair.state = State::Proven;
                self.distribute_paths();
            }
            State::Asked if answer.secret == short => {
                pair.state = State::Answered;
                pair.ask_from(now);
            }
            _ => return false,
        }
        if let Some(purse) = &mut self.purse {
            purse.answered();
        }
        unproven.answered(now, answer.from);
        true
    }

    /// Records the time of the last arrival from the peer.
    pub(crate) fn note_last_arrival(&mut self, heard: Time) {
        if let Some(purse) = &mut self.purse {
            purse.heard(heard);
        }
    }

    /// Moves each path to the next pair if no packet is answered. Needed for connections with fewer paths than pairs,
    /// on which a dead path cannot be distinguished from a silent peer.
    pub(crate) fn rotate_paths(&mut self, now: Time) {
        if now >= self.next_turn {
            self.next_turn = now.saturating_add(TURN_EVERY);
            self.turned += 1;
            self.distribute_paths();
        }
    }

    /// Distributes the paths over the usable pairs.
    fn distribute_paths(&mut self) {
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

    /// Returns the Asks to send now, and the time of the next check. `need`: whether pairs in reserve are needed.
    pub(crate) fn due(&mut self, now: Time, need: Need, unproven: &mut Unproven) -> (Vec<Ask>, Option<Time>) {
        if need == Need::Dire {
            self.draw_on_reserve();
        }
        let numbered = (0u8..).zip(&self.pairs).filter(|(_, pair)| self.is_wanted(pair) && pair.next <= now);
        let mut due: Vec<u8> = numbered.map(|(number, _)| number).collect();
        // The pair with the fewest Asks goes first, as the budget may not cover all. Ties: hosts mostly list their
        // networks in the same order.
        due.sort_by_key(|number| {
            let (rail, remote) = self.place(*number);
            (self.pairs[usize::from(*number)].wait, rail.abs_diff(remote), *number)
        });
        let questions = due.into_iter().filter_map(|number| self.ask(now, number, unproven)).collect();
        let soonest = self.pairs.iter().filter(|pair| self.is_wanted(pair)).map(|pair| pair.next).min();
        (questions, soonest)
    }

    /// Returns true if the peer has answered from this address.
    fn is_validated(&self, address: SocketAddr) -> bool {
        self.pairs.iter().any(|pair| pair.to == address && pair.has_answered())
    }

    /// Returns true if Asks by a pair are due at its time. A responder sends none to an address that is not validated,
    /// unless an Ask has come from there.
    fn is_wanted(&self, pair: &Pair) -> bool {
        let may_ask = self.purse.is_some() || self.is_validated(pair.to);
        pair.is_asked() && (pair.invited.any() || may_ask && !pair.in_reserve)
    }

    /// Returns an Ask for a pair if one may be sent now.
    fn ask(&mut self, now: Time, number: u8, unproven: &mut Unproven) -> Option<Ask> {
        let to = self.pairs[usize::from(number)].to;
        let is_proven = self.is_validated(to);
        let pair = &mut self.pairs[usize::from(number)];
        pair.next = now.saturating_add(pair.wait);
        if !is_proven && !unproven.may_ask(now, to.ip(), &mut pair.invited, self.purse.as_mut()) {
            return None;
        }
        pair.wait = Duration::from_ps(pair.wait.as_ps() * 2).min(ASK_AGAIN_MOST);
        pair.asked = Some(now);
        let [short, full] = pair.secrets;
        let (length, secret) = if is_proven { (Length::Full, full) } else { (Length::Short, short) };
        Some(Ask { pair: number, length, secret })
    }

    /// Releases the pairs from reserve, except the pair of the handshake, since no other pair works.
    fn draw_on_reserve(&mut self) {
        let mut any = false;
        for (pair, _) in self.pairs.iter_mut().zip(0u8..).filter(|(_, number)| *number != self.met) {
            any |= pair.in_reserve && pair.state == State::Proven;
            pair.in_reserve = false;
        }
        if any {
            self.distribute_paths();
        }
    }

    fn of(&self, number: u8) -> (Rail, SocketAddr) {
        let pair = &self.pairs[usize::from(number)];
        (pair.rail, pair.to)
    }

    /// Returns a pair's number: in the order of the initiator's addresses, then of the responder's.
    fn number(&self, rail: Rail, remote: IpAddr) -> Option<u8> {
        let remote = self.remotes.iter().position(|known| known.ip() == remote)?;
        let number = match self.role {
            Role::Initiator => rail.index() * self.remotes.len() + remote,
            Role::Responder => remote * self.rails + rail.index(),
        };
        (rail.index() < self.rails).then_some(number as u8)
    }

    /// Returns the indices of a pair's rail and remote address in their lists.
    fn place(&self, number: u8) -> (usize, usize) {
        let number = usize::from(number);
        match self.role {
            Role::Initiator => (number / self.remotes.len(), number % self.remotes.len()),
            Role::Responder => (number % self.rails, number / self.rails),
        }
    }
}

/// Returns true if `other` is in the network of `own`.
fn is_in_network(own: IpAddr, prefix: Option<u8>, other: IpAddr) -> bool {
    let Some(prefix) = prefix else { return false };
    let (own, other, len) = match (own, other) {
        (IpAddr::V4(own), IpAddr::V4(other)) => (own.to_bits().into(), other.to_bits().into(), 32),
        (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits(), other.to_bits(), 128),
        _ => return false,
    };
    let (own, other): (u128, u128) = (own, other);
    // A prefix of length 0 contains all addresses and is ignored.
    prefix > 0 && (own ^ other).checked_shr(len - u32::from(prefix.min(len as u8))) == Some(0)
}

#[cfg(test)]
#[path = "rails_test.rs"]
mod tests;
