//! The addresses of both ends of a connection, in pairs: by which of them packets come through, and which pair each path
//! takes.
//!
//! Which address of the one end reaches which of the other is not assumed: hosts may have a network for each of their
//! interfaces, or one for all. A connection begins with all paths on the pair of its handshake, which has proved the peer's
//! address. By every other pair this end asks. A question has a secret, and its answer counts if it has the same one and
//! comes by the same pair: an address that the peer has listed and does not receive at is not used. Until the address has
//! answered, questions are short and few (see [`unproven`](super::unproven)). Then they are as long as the longest packet of
//! data, and a pair by which one was answered takes its part of the paths. It keeps them: when it falls silent its paths are
//! dead as any that is silent, and are probed until they live.
//!
//! Hosts mostly answer for all their addresses on every interface. So what is sent by one interface to an address in the
//! network of another may well arrive, and the answer comes by that other one: two links where one would do, and whichever
//! fails takes the pair with it. Such a pair is held in reserve, for when nothing else lives.

use std::net::{IpAddr, SocketAddr};

use pathweave_units::{Duration, PathId, Time};

use super::control::Length;
use super::unproven::{Invited, Purse, Unproven};
use crate::backend::Rail;
use crate::secure::SecureRandom;

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
    /// No answer has come by it.
    Asked,
    /// One has, to a short question: the peer receives there. Only answers go by it.
    Answered,
    /// One has, to a question as long as packets of data.
    Proven,
    /// No packet may go there.
    Closed,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    rail: Rail,
    to: SocketAddr,
    state: State,
    /// Time of the last question, time of the next one, and the wait after that.
    asked: Option<Time>,
    next: Time,
    wait: Duration,
    /// Secrets of its short questions, and of its full ones.
    secrets: [u64; 2],
    invited: Invited,
    /// The peer's address is in the network of another rail.
    in_reserve: bool,
}

impl Pair {
    fn is_asked(&self) -> bool {
        matches!(self.state, State::Asked | State::Answered)
    }

    /// The peer has answered by it.
    fn has_answered(&self) -> bool {
        matches!(self.state, State::Answered | State::Proven)
    }

    fn ask_from(&mut self, now: Time) {
        (self.next, self.wait) = (now, ASK_AGAIN);
    }
}

/// A question to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// Number of its pair.
    pub(crate) pair: u8,
    pub(crate) length: Length,
    pub(crate) secret: u64,
}

/// An answer that has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// Number of its pair, as it says.
    pub(crate) pair: u8,
    pub(crate) secret: u64,
    /// Where it has come, and from where.
    pub(crate) rail: Rail,
    pub(crate) from: IpAddr,
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
    /// Number of the pair of the handshake.
    met: u8,
    /// Questions that may go to addresses that have not proved themselves.
    purse: Purse,
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
    /// `None` where each end has but one address, or there are no random bytes for secrets.
    pub(crate) fn new(
        now: Time,
        ends: &Ends<'_>,
        paths: u16,
        random: &mut dyn SecureRandom,
    ) -> Option<Box<Self>> {
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
            met: 0,
            purse: Purse::new(now),
        };
        for number in 0..number_of_pairs {
            let (rail, remote) = made.place(number as u8);
            let to = made.remotes[remote];
            // What a peer lists is for others to reach it, not for this host to reach itself.
            let open = to.is_ipv4() == peer.is_ipv4() && to.ip().is_loopback() == peer.ip().is_loopback();
            let state = if open { State::Asked } else { State::Closed };
            let is_near = |(rail, prefix): &(IpAddr, Option<u8>)| is_in_network(*rail, *prefix, to.ip());
            let in_reserve = !is_near(&ends.rails[rail]) && ends.rails.iter().any(is_near);
            let (mut short, mut full) = ([0; 8], [0; 8]);
            random.fill(&mut short).and(random.fill(&mut full)).ok()?;
            let secrets = [u64::from_ne_bytes(short), u64::from_ne_bytes(full)];
            let (rail, invited) = (Rail(rail as u8), Invited::default());
            let (asked, next, wait) = (None, now, ASK_AGAIN);
            made.pairs.push(Pair { rail, to, state, asked, next, wait, secrets, invited, in_reserve });
        }
        made.met = made.number(rail, peer.ip())?;
        made.pairs[usize::from(made.met)].state = State::Proven;
        made.own = vec![made.met; usize::from(paths)].into();
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
            && self.pairs[usize::from(number)].has_answered()
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

    /// The peer has asked by a pair. Where the answer goes, and what is asked back; `None`: nothing goes there.
    pub(crate) fn asked(
        &mut self,
        now: Time,
        rail: Rail,
        from: IpAddr,
        unproven: &mut Unproven,
    ) -> Option<((Rail, SocketAddr), Option<Question>)> {
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
                // It is in reserve here, or has been silent for a while.
                pair.ask_from(now);
                Some((back, self.ask(now, number, unproven)))
            }
        }
    }

    /// The way of a question by a pair.
    pub(crate) fn to_ask(&self, number: u8) -> (Rail, SocketAddr) {
        self.of(number)
    }

    /// An answer has come. Whether more follows from it than was known.
    pub(crate) fn answered(&mut self, now: Time, answer: &Answer, unproven: &mut Unproven) -> bool {
        let Some(pair) = self.pairs.get_mut(usize::from(answer.pair)) else { return false };
        if (pair.rail, pair.to.ip()) != (answer.rail, answer.from) {
            return false;
        }
        let [short, full] = pair.secrets;
        match pair.state {
            State::Asked | State::Answered if answer.secret == full => {
                pair.state = State::Proven;
                self.deal();
            }
            State::Asked if answer.secret == short => {
                pair.state = State::Answered;
                pair.ask_from(now);
            }
            _ => return false,
        }
        self.purse.answered();
        unproven.answered(now, answer.from);
        true
    }

    /// Something last came from the peer at `heard`.
    pub(crate) fn heard_last(&mut self, heard: Time) {
        self.purse.heard(heard);
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

    /// What to ask now, and when to look again. `need`: whether pairs in reserve are needed.
    pub(crate) fn due(
        &mut self,
        now: Time,
        need: Need,
        unproven: &mut Unproven,
    ) -> (Vec<Question>, Option<Time>) {
        if need == Need::Dire {
            self.draw_on_reserve();
        }
        let is_wanted = |pair: &Pair| pair.is_asked() && (!pair.in_reserve || pair.invited.any());
        let numbered = (0u8..).zip(&self.pairs).filter(|(_, pair)| is_wanted(pair) && pair.next <= now);
        let mut due: Vec<u8> = numbered.map(|(number, _)| number).collect();
        // What was asked least goes first, as not all may be. Hosts mostly list their networks in the same order.
        due.sort_by_key(|number| {
            let (rail, remote) = self.place(*number);
            (self.pairs[usize::from(*number)].wait, rail.abs_diff(remote), *number)
        });
        let questions = due.into_iter().filter_map(|number| self.ask(now, number, unproven)).collect();
        let soonest = self.pairs.iter().filter(|pair| is_wanted(pair)).map(|pair| pair.next).min();
        (questions, soonest)
    }

    /// Asks by a pair, if that may be now.
    fn ask(&mut self, now: Time, number: u8, unproven: &mut Unproven) -> Option<Question> {
        let to = self.pairs[usize::from(number)].to;
        let is_proven = self.pairs.iter().any(|pair| pair.to == to && pair.has_answered());
        let pair = &mut self.pairs[usize::from(number)];
        pair.next = now.saturating_add(pair.wait);
        if !is_proven && !unproven.may_ask(now, to.ip(), &mut pair.invited, &mut self.purse) {
            return None;
        }
        pair.wait = Duration::from_ps(pair.wait.as_ps() * 2).min(ASK_AGAIN_MOST);
        pair.asked = Some(now);
        let [short, full] = pair.secrets;
        let (length, secret) = if is_proven { (Length::Full, full) } else { (Length::Short, short) };
        Some(Question { pair: number, length, secret })
    }

    /// Nothing else lives: pairs in reserve are as good as others, but for the one by which the ends have met.
    fn draw_on_reserve(&mut self) {
        let mut any = false;
        for (pair, _) in self.pairs.iter_mut().zip(0u8..).filter(|(_, number)| *number != self.met) {
            any |= pair.in_reserve && pair.state == State::Proven;
            pair.in_reserve = false;
        }
        if any {
            self.deal();
        }
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

    /// Rail and remote address of a pair, by their places in the lists.
    fn place(&self, number: u8) -> (usize, usize) {
        let number = usize::from(number);
        match self.role {
            Role::Initiator => (number / self.remotes.len(), number % self.remotes.len()),
            Role::Responder => (number % self.rails, number / self.rails),
        }
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
#[path = "rails_test.rs"]
mod tests;
