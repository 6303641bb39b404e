//! Credit of a sending queue pair.

use pathweave_policy::CreditParams;
use pathweave_policy::credit::{Ask, Demand, Unused};
use pathweave_units::{Duration, PathId, Time};
use pathweave_wire::CreditNumber;

/// Credit that a queue pair has been granted and has not spent, and its requests.
#[derive(Debug)]
pub(crate) struct CreditSender {
    pub(crate) terms: CreditParams,
    /// Unspent credit in bytes. A packet may leave while it is positive, so it falls below zero by less than a
    /// packet.
    credit: i64,
    /// Total quanta granted, as far as known, and total quanta wanted, as last reported.
    granted: u64,
    reported: u64,
    /// True until an ACK, NACK or grant arrives from the receiver: credit spent so far was never granted.
    is_new: bool,
    /// True if the queue pair counts among the active senders of this host.
    pub(crate) is_active: bool,
    /// Path of the latest packet, which requests take.
    path: PathId,
    /// Time of the latest ACK, NACK or grant from the receiver, and time of the latest request.
    pub(crate) heard_at: Time,
    pub(crate) asked_at: Option<Time>,
    /// Number of requests since the last new grant; number of consecutive unanswered ones, and the time of the first
    /// of these.
    requests: u32,
    pub(crate) unanswered: u32,
    pub(crate) silent_since: Time,
    /// Time at which a request may be due.
    pub(crate) due: Option<Time>,
}

impl CreditSender {
    pub(crate) fn new(now: Time, terms: CreditParams) -> Self {
        CreditSender {
            credit: i64::try_from(terms.window_bytes).unwrap_or(i64::MAX),
            terms,
            granted: 0,
            reported: 0,
            is_new: true,
            is_active: false,
            path: PathId(0),
            heard_at: now,
            asked_at: None,
            requests: 0,
            unanswered: 0,
            silent_since: now,
            due: None,
        }
    }

    /// Returns true if a packet may leave.
    #[inline]
    pub(crate) fn can_send(&self) -> bool {
        self.credit > 0
    }

    pub(crate) fn path(&self) -> PathId {
        self.path
    }

    /// Spends credit for a packet that leaves on this path.
    pub(crate) fn spend(&mut self, wire_bytes: u32, path: PathId) {
        self.credit -= self.terms.cost_of(wire_bytes);
        self.path = path;
    }

    /// Handles the loss of a packet without a header. If the receiver grants credit for arrivals, it will grant none
    /// for this packet, so its credit is returned. Otherwise each loss would reduce the packets in flight for good.
    pub(crate) fn lost(&mut self, wire_bytes: u32) {
        if self.terms.config.demand == Demand::Arrivals {
            self.earn(self.terms.cost_of(wire_bytes));
        }
    }

    fn earn(&mut self, bytes: i64) {
        let most = i64::try_from(self.terms.window_bytes).unwrap_or(i64::MAX);
        self.credit = self.credit.saturating_add(bytes).min(most);
    }

    /// Handles an ACK, NACK or grant from the receiver. Unspent credit of the first window may lapse then.
    pub(crate) fn heard(&mut self, now: Time) {
        self.heard_at = now;
        if core::mem::take(&mut self.is_new) && self.terms.config.unused == Unused::Lapses {
            self.credit = self.credit.min(0);
        }
    }

    /// Applies a grant with its cumulative number.
    pub(crate) fn pulled(&mut self, number: CreditNumber) {
        self.unanswered = 0;
        let granted = number.quanta(self.granted);
        let Some(quanta) = granted.checked_sub(self.granted).filter(|&quanta| quanta > 0) else { return };
        self.requests = 0;
        self.earn(quanta.saturating_mul(self.terms.quantum_bytes.into()).min(i64::MAX as u64) as i64);
        self.granted = granted;
    }

    /// Total quanta wanted by a sender with `backlog` bytes to send and its own window of `window` bytes, if any,
    /// among `active` senders on this host.
    pub(crate) fn wanted(&self, backlog: u64, window: Option<u64>, active: u32) -> u64 {
        let packet = u64::from(self.terms.packet_bytes);
        let most = window.map_or(self.terms.window_bytes, |own| self.terms.window_bytes.min(own + packet));
        let mut bytes = backlog.min(most) as i64 - self.credit;
        let config = &self.terms.config;
        // Wanted even if the message is short and the first window covers it, because the packet may be trimmed.
        if self.is_new && config.demand == Demand::Target && backlog > 0 {
            bytes = bytes.max(packet as i64);
        }
        if config.ask == Ask::Shared && active > 1 {
            bytes /= i64::from(active);
        }
        self.granted + self.terms.quanta(bytes.max(0) as u64)
    }

    /// Equals [`wanted`](Self::wanted), and records that the total is reported now.
    pub(crate) fn tell(&mut self, backlog: u64, window: Option<u64>, active: u32) -> CreditNumber {
        let wanted = self.wanted(backlog, window, active);
        self.reported = self.reported.max(wanted);
        CreditNumber::new(wanted)
    }

    /// Returns true if the receiver knows of all that is wanted.
    pub(crate) fn is_told(&self, wanted: u64) -> bool {
        wanted <= self.reported
    }

    /// Earliest time of the next request: one per round trip.
    pub(crate) fn may_ask_at(&self) -> Time {
        self.asked_at.map_or(Time::ZERO, |asked_at| asked_at.saturating_add(self.terms.base_rtt))
    }

    /// Records that a request leaves.
    pub(crate) fn asks(&mut self, now: Time) {
        if self.unanswered == 0 {
            self.silent_since = now;
        }
        self.unanswered = self.unanswered.saturating_add(1);
        self.requests = self.requests.saturating_add(1);
        self.asked_at = Some(now);
    }

    /// Time without a packet from the receiver after which a request leaves although the receiver knows the target.
    /// `patience`, doubled for each request since the last new grant, at most `most`.
    pub(crate) fn wait(&self, patience: Duration, most: Duration) -> Duration {
        let doubled = patience.as_ps().saturating_mul(1 << self.requests.min(30));
        Duration::from_ps(doubled.min(most.as_ps().max(patience.as_ps())).max(1))
    }

    /// Unspent credit in bytes; for tests.
    #[cfg(test)]
    pub(crate) fn credit_bytes(&self) -> i64 {
        self.credit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_policy::{CreditConfig, PolicyEnv};
    use pathweave_units::Rate;

    /// 100 Gb/s with a round trip of 12 us: a window of 225,000 bytes; packets of 4,150.
    fn spender(config: CreditConfig) -> CreditSender {
        let base_rtt = Duration::from_us(12);
        let env = PolicyEnv {
            mtu_wire_bytes: 4_150,
            mtu_payload_bytes: 4_086,
            ..PolicyEnv::new(Rate::from_gbps(100), base_rtt, 64)
        };
        CreditSender::new(Time::ZERO, config.terms(&env, env.line_rate))
    }

    #[test]
    fn the_first_window_leaves_unasked_and_lapses_when_the_receiver_is_heard() {
        let mut rccc = spender(CreditConfig::rccc());
        assert!((0..54).all(|_| {
            rccc.spend(4_150, PathId(1));
            rccc.can_send()
        }));
        // The 55th packet makes the credit negative: -3,250.
        rccc.spend(4_150, PathId(1));
        assert!(!rccc.can_send());
        rccc.heard(Time::from_us(1));
        assert_eq!(rccc.credit_bytes(), 225_000 - 55 * 4_150);
        // Thirteen quanta make it positive again.
        rccc.pulled(CreditNumber::new(12));
        assert!(!rccc.can_send());
        rccc.pulled(CreditNumber::new(13));
        assert_eq!(rccc.credit_bytes(), 13 * 256 - 3_250);
        // An older number changes nothing, and no number gives more than the window.
        rccc.pulled(CreditNumber::new(3));
        assert_eq!(rccc.credit_bytes(), 78);
        rccc.pulled(CreditNumber::new(13 + (1 << 20)));
        assert_eq!(rccc.credit_bytes(), 225_000);

        let mut early = spender(CreditConfig::rccc());
        early.spend(4_150, PathId(1));
        early.heard(Time::from_us(1));
        assert_eq!(early.credit_bytes(), 0);
        let mut ndp = spender(CreditConfig::ndp());
        ndp.spend(100, PathId(1));
        ndp.heard(Time::from_us(1));
        assert_eq!(
            ndp.credit_bytes(),
            225_000 - 4_150,
            "a packet of any size costs one, and the rest may leave"
        );
    }

    /// With NDP each arriving packet earns the next, and a lost one earns none. Other schemes grant what is still
    /// wanted.
    #[test]
    fn lost_packets_cost_no_credit_where_grants_are_for_arrivals() {
        for (config, left) in
            [(CreditConfig::ndp(), 225_000 - 4_150), (CreditConfig::rccc(), 225_000 - 3 * 4_150)]
        {
            let mut spender = spender(config);
            (0..3).for_each(|_| spender.spend(4_150, PathId(0)));
            (0..2).for_each(|_| spender.lost(4_150));
            assert_eq!(spender.credit_bytes(), left);
        }
        let mut ndp = spender(CreditConfig::ndp());
        ndp.lost(4_150);
        assert_eq!(ndp.credit_bytes(), 225_000, "no more than the window");
    }

    #[test]
    fn pull_targets_by_hand() {
        let mut rccc = spender(CreditConfig::rccc());
        // New sender: quanta for one packet, 17, whatever the credit.
        assert_eq!(rccc.wanted(1_000, None, 1), 17);
        assert_eq!(rccc.wanted(0, None, 1), 0);
        rccc.spend(4_150, PathId(0));
        rccc.heard(Time::ZERO);
        // 100,000 bytes without credit: 391 quanta; among four senders, a quarter.
        assert_eq!([1, 4].map(|active| rccc.wanted(100_000, None, active)), [391, 98]);
        assert_eq!(rccc.wanted(1 << 40, None, 1), 879, "a window at most");
        assert_eq!(rccc.wanted(1 << 40, Some(50_000), 1), 212, "a window of its own, and a packet");
        assert!(!rccc.is_told(391));
        assert_eq!(rccc.tell(100_000, None, 1), CreditNumber::new(391));
        assert!(rccc.is_told(391) && !rccc.is_told(392));
        rccc.pulled(CreditNumber::new(391));
        assert_eq!(rccc.wanted(100_000, None, 1), 391, "it has it");
    }

    #[test]
    fn requests_wait_longer_each_time() {
        let mut rccc = spender(CreditConfig::rccc());
        let (us, most) = (Duration::from_us(1), Duration::from_us(6));
        let waits = [0, 1, 2, 3].map(|second| {
            let wait = rccc.wait(us, most);
            rccc.asks(Time::from_us(second));
            wait
        });
        assert_eq!(waits, [us, us * 2, us * 4, us * 6]);
        assert_eq!((rccc.unanswered, rccc.silent_since), (4, Time::ZERO));
        assert_eq!(rccc.may_ask_at(), Time::from_us(15));
        // The request is answered without a grant; then a grant follows.
        rccc.pulled(CreditNumber::new(0));
        assert_eq!((rccc.unanswered, rccc.wait(us, most)), (0, us * 6));
        rccc.pulled(CreditNumber::new(1));
        assert_eq!(rccc.wait(us, most), us);
    }
}
