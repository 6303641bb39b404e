//! What an end has posted, done and seen.

use crate::meter::Meter;
use crate::pattern::Pattern;
use crate::test::{Check, Directions, Kind, Op, Role, Test};
use crate::work::{Watch, Work};

/// What an end has posted, done and seen, whichever service carries it.
pub(crate) struct Tally {
    pub(crate) test: Test,
    role: Role,
    pub(crate) pattern: Pattern,
    pub(crate) posted: u64,
    pub(crate) done: u64,
    /// Messages the other end has looked at.
    pub(crate) credited: u64,
    pub(crate) arrived: u64,
    /// Messages looked at, of which the other end has not been told.
    owed: u64,
    wrong: u64,
    first_wrong: Option<String>,
    stopped: bool,
    meter: Meter,
}

impl Tally {
    pub(crate) fn new(test: Test, role: Role) -> Self {
        Tally {
            test,
            role,
            pattern: Pattern::new(),
            posted: 0,
            done: 0,
            credited: 0,
            arrived: 0,
            owed: 0,
            wrong: 0,
            first_wrong: None,
            stopped: false,
            meter: Meter::default(),
        }
    }

    /// Bytes are looked at.
    pub(crate) fn checks(&self) -> bool {
        self.test.check == Check::EveryByte
    }

    /// This end has messages of its own.
    pub(crate) fn sends(&self) -> bool {
        let both = self.test.directions == Directions::Both || self.test.kind == Kind::Latency;
        both || self.role == Role::Client
    }

    /// It sends them as fast as it can.
    fn streams(&self) -> bool {
        self.sends() && self.test.kind == Kind::Bandwidth
    }

    /// Whether the next message may be posted without being asked for, where all but the first `behind` are under way.
    pub(crate) fn may_post(&self, behind: u64, window: u64) -> bool {
        let left = self.test.iterations.is_none_or(|all| self.posted < all);
        self.streams() && !self.stopped && left && self.posted - behind < window
    }

    /// The next message is posted.
    pub(crate) fn post(&mut self) {
        if self.posted == 0 {
            self.meter.begin();
        }
        self.posted += 1;
    }

    /// A message of this end is done.
    pub(crate) fn complete(&mut self) {
        self.done += 1;
        self.meter.note(self.test.size_bytes);
    }

    /// The bytes of a message are wrong.
    pub(crate) fn note_wrong(&mut self, what: impl FnOnce(Role) -> String) {
        self.wrong += 1;
        let role = self.role;
        self.first_wrong.get_or_insert_with(|| what(role));
    }

    /// Another message of the other end has been looked at: how many it is to be told of now, if `enough` are.
    pub(crate) fn owes(&mut self, enough: u64) -> Option<u64> {
        self.owed += 1;
        (self.owed >= enough).then(|| std::mem::take(&mut self.owed))
    }

    /// No more is to be posted.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    /// All this end wanted is posted and done.
    pub(crate) fn is_done(&self) -> bool {
        let all = self.test.iterations.is_some_and(|all| self.posted >= all);
        (!self.streams() || self.stopped || all) && self.done == self.posted
    }

    /// What this end has done since the watch was started: what it has sent, or read.
    pub(crate) fn work(&self, watch: &Watch) -> Work {
        let looked_at = if self.test.op == Op::Read { self.done } else { self.arrived };
        Work {
            checked_messages: if self.checks() { looked_at } else { 0 },
            wrong_messages: self.wrong,
            first_wrong: self.first_wrong.clone(),
            ..watch.work(self.done, self.test.size_bytes, &self.meter)
        }
    }
}
