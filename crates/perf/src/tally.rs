//! Counters of one end.

use crate::meter::Meter;
use crate::pattern::Pattern;
use crate::test::{Check, Directions, Kind, Op, Role, Test};
use crate::work::{Watch, Work};

/// Counters of posted, completed and received messages of one end, independent of the service.
pub(crate) struct Counters {
    pub(crate) test: Test,
    role: Role,
    pub(crate) pattern: Pattern,
    pub(crate) posted: u64,
    pub(crate) done: u64,
    /// Messages that the peer has checked.
    pub(crate) credited: u64,
    pub(crate) arrived: u64,
    /// Messages checked by this end that it has not yet reported to the peer.
    owed: u64,
    wrong: u64,
    first_wrong: Option<String>,
    stopped: bool,
    meter: Meter,
}

impl Counters {
    pub(crate) fn new(test: Test, role: Role) -> Self {
        Counters {
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

    /// Returns true if bytes are checked.
    pub(crate) fn checks(&self) -> bool {
        self.test.check == Check::EveryByte
    }

    /// Returns true if this end sends messages of its own.
    pub(crate) fn sends(&self) -> bool {
        let both = self.test.directions == Directions::Both || self.test.kind == Kind::Latency;
        both || self.role == Role::Client
    }

    /// Returns true if this end sends as fast as it can.
    fn streams(&self) -> bool {
        self.sends() && self.test.kind == Kind::Bandwidth
    }

    /// Returns true if the next message may be posted now. `behind` is the number of messages that no longer count
    /// against the window.
    pub(crate) fn may_post(&self, behind: u64, window: u64) -> bool {
        let left = self.test.iterations.is_none_or(|all| self.posted < all);
        self.streams() && !self.stopped && left && self.posted - behind < window
    }

    /// Counts a posted message.
    pub(crate) fn post(&mut self) {
        if self.posted == 0 {
            self.meter.begin();
        }
        self.posted += 1;
    }

    /// Counts a completed message.
    pub(crate) fn complete(&mut self) {
        self.done += 1;
        self.meter.note(self.test.size_bytes);
    }

    /// Counts a message with wrong bytes.
    pub(crate) fn note_wrong(&mut self, what: impl FnOnce(Role) -> String) {
        self.wrong += 1;
        let role = self.role;
        self.first_wrong.get_or_insert_with(|| what(role));
    }

    /// Counts a checked message of the peer. Returns the number to report once it reaches `enough`.
    pub(crate) fn count_checked(&mut self, enough: u64) -> Option<u64> {
        self.owed += 1;
        (self.owed >= enough).then(|| std::mem::take(&mut self.owed))
    }

    /// Stops posting.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Returns true if everything this end had to send is posted and completed.
    pub(crate) fn is_done(&self) -> bool {
        let all = self.test.iterations.is_some_and(|all| self.posted >= all);
        (!self.streams() || self.stopped || all) && self.done == self.posted
    }

    /// Returns the work of this end since the watch was started: messages sent, or read.
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
