//! Credits: number and size of the receives that each side has posted for the other (specification, section 4,
//! "Unexpected, flow control").
//!
//! A SEND without a receive would stall answers and grants on its connection, and a SEND larger than its receive
//! fails the connection. So each side announces the receives that it posts, in that order, and the other sends no
//! more than that.
//!
//! **The last receive is reserved for a message that grants.** This rules out a deadlock. Suppose that neither side
//! may send and nothing is in flight. A side that used its last receive granted at least one with that message.
//! Consider the last message to arrive of those that used receives up: it left its receiver with a receive, or its
//! sender with the reserved one. A side that has receives while the other has none owes the other all receives it
//! ever posted, which is enough to make a grant due.
//!
//! **A message that only grants uses a receive, too.** It is sent when at least two receives are owed, so each causes
//! at most half a message in return, and the exchange ends.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::config::{Config, FIRST_RECEIVES, MOST_RECEIVES};
use crate::wire::{MORE_RUNS, ReceiveRun, ReceiveUse};

/// Largest number of unused receives that a peer may have granted. A peer that grants more breaks the protocol.
const MOST_CREDITS: u32 = 4096;

/// Receives that a peer has posted for this side.
#[derive(Debug, Default)]
pub(crate) struct Credits {
    runs: VecDeque<ReceiveRun>,
    total: u32,
}

impl Credits {
    /// Returns the credits of a dialled connection: the peer's [`FIRST_RECEIVES`].
    pub(crate) fn first() -> Self {
        let (count, size) = FIRST_RECEIVES;
        Credits {
            runs: VecDeque::from([ReceiveRun { count, size, usage: ReceiveUse::Anything }]),
            total: u32::from(count),
        }
    }
    /// Adds granted receives. Returns `None` if the grant breaks a rule: a size below the minimum, or more than
    /// [`MOST_CREDITS`].
    pub(crate) fn add(&mut self, run: ReceiveRun) -> Option<()> {
        let total = self.total + u32::from(run.count);
        if run.size < FIRST_RECEIVES.1 || total > MOST_CREDITS {
            return None;
        }
        self.total = total;
        match self.runs.back_mut() {
            Some(last) if last.size == run.size && last.usage == run.usage && last.count < u16::MAX / 2 => {
                last.count += run.count;
            }
            _ => self.runs.push_back(run),
        }
        Some(())
    }
    /// Returns the receive that the next message fills.
    pub(crate) fn next(&self) -> Option<ReceiveRun> {
        self.runs.front().copied()
    }
    pub(crate) fn total(&self) -> u32 {
        self.total
    }
    /// Consumes the receive that a sent message fills.
    pub(crate) fn spend(&mut self) {
        let Some(run) = self.runs.front_mut() else { return };
        self.total -= 1;
        run.count -= 1;
        if run.count == 0 {
            self.runs.pop_front();
        }
    }
}

/// Returns the bytes of the pool that busy peers may use. The rest is reserved for the first receives of other peers.
fn busy_pool_bytes(config: &Config) -> u64 {
    config.pool / 8 * 7
}

/// Receives posted for all peers together.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// Total bytes of all receives.
    posted: u64,
    /// Number of receives.
    receives: u64,
}

impl Pool {
    pub(crate) fn bytes(&self) -> u64 {
        self.posted
    }
    pub(crate) fn receives(&self) -> u64 {
        self.receives
    }
    fn change(&mut self, run: ReceiveRun, posted: bool) {
        let bytes = u64::from(run.count) * u64::from(run.size);
        let sum = |value: u64, by: u64| if posted { value + by } else { value - by };
        self.posted = sum(self.posted, bytes);
        self.receives = sum(self.receives, u64::from(run.count));
    }
}

/// Receives posted for one peer.
#[derive(Debug)]
pub(crate) struct Window {
    /// All posted receives in order, including those not granted yet.
    posted: VecDeque<ReceiveRun>,
    count: u16,
    /// Last receives of `posted`, which have not been granted to the peer yet.
    ungranted: VecDeque<ReceiveRun>,
    owed_count: u16,
    /// Number of receives that should be posted.
    target: u16,
    /// Messages received since `target` was last changed, without those that only grant.
    received_since_resize: u16,
}

/// State of the first receives: known to the peer without a grant, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Already,
    NotYet,
}

/// Limits on the receives to post for a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    /// Largest number of messages that may arrive.
    pub(crate) messages: u64,
    /// Permitted use of the receives.
    pub(crate) usage: ReceiveUse,
}

impl Window {
    /// Creates the window with the [`FIRST_RECEIVES`] posted.
    pub(crate) fn first(pool: &mut Pool, known: Known) -> Self {
        let (count, size) = FIRST_RECEIVES;
        let run = ReceiveRun { count, size, usage: ReceiveUse::Anything };
        pool.change(run, true);
        let posted = VecDeque::from([run]);
        let (owed, owed_count) = match known {
            Known::Already => (VecDeque::new(), 0),
            Known::NotYet => (posted.clone(), count),
        };
        Window { posted, count, ungranted: owed, owed_count, target: count, received_since_resize: 0 }
    }
    /// Returns all receives to the pool after the connection has ended.
    pub(crate) fn release(self, pool: &mut Pool) {
        for run in self.posted {
            pool.change(run, false);
        }
    }
    /// Removes and returns the receive that a message has filled. Returns `None` if the peer had been granted none.
    pub(crate) fn fill(&mut self, pool: &mut Pool) -> Option<ReceiveRun> {
        if self.count == self.owed_count {
            return None;
        }
        let run = self.posted.front_mut()?;
        let one = ReceiveRun { count: 1, ..*run };
        run.count -= 1;
        if run.count == 0 {
            self.posted.pop_front();
        }
        self.count -= 1;
        pool.change(one, false);
        Some(one)
    }
    /// Counts a message that does more than grant. A peer that has used a whole window is busy and gets twice as many
    /// receives; if the pool is short of space, it gets half as many.
    pub(crate) fn count_filled(&mut self, config: &Config, pool: &Pool) {
        self.received_since_resize += 1;
        if self.received_since_resize < self.target {
            return;
        }
        self.received_since_resize = 0;
        let growth = u64::from(self.target) * u64::from(config.busy_receive);
        if pool.posted + growth <= busy_pool_bytes(config) {
            self.target = (self.target * 2).min(MOST_RECEIVES);
        } else if pool.posted > busy_pool_bytes(config) / 8 * 7 {
            self.target = (self.target / 2).max(FIRST_RECEIVES.0);
        }
    }
    /// Returns the number of receives that the peer has filled and that are not posted again, plus the posted ones
    /// not yet granted.
    fn due(&self) -> u16 {
        self.target.saturating_sub(self.count) + self.owed_count
    }
    /// Returns true if enough receives are missing to post them.
    pub(crate) fn is_refill_due(&self) -> bool {
        self.due() >= (self.target / 4).max(2)
    }
    /// Returns true if enough receives are owed to send a message for them. Receives that cannot be posted do not
    /// count. Otherwise two sides without space would exchange grants of one receive for ever.
    pub(crate) fn is_grant_due(&self) -> bool {
        self.owed_count >= (self.count / 4).max(2)
    }
    /// Posts missing receives and returns the run that the driver must post.
    pub(crate) fn refill(
        &mut self,
        config: &Config,
        pool: &mut Pool,
        allowed: Allowance,
    ) -> Option<ReceiveRun> {
        let (first_count, first_size) = FIRST_RECEIVES;
        let missing = self.target.saturating_sub(self.count);
        let fitting =
            busy_pool_bytes(config).saturating_sub(pool.posted) / u64::from(config.busy_receive.max(1));
        let (count, size) = if self.target > first_count && fitting > 0 {
            (fitting.min(missing.into()) as u16, config.busy_receive)
        } else {
            // Every peer may have the first receives, even if the pool is full.
            (missing.min(first_count.saturating_sub(self.count)), first_size)
        };
        let count = allowed.messages.min(count.into()) as u16;
        if count == 0 {
            return None;
        }
        let run = ReceiveRun { count, size, usage: allowed.usage };
        pool.change(run, true);
        self.count += count;
        self.owed_count += count;
        for list in [&mut self.posted, &mut self.ungranted] {
            match list.back_mut() {
                Some(last) if last.size == size && last.usage == run.usage => last.count += count,
                _ => list.push_back(run),
            }
        }
        Some(run)
    }
    /// Removes and returns the run that the next message grants.
    pub(crate) fn grant(&mut self) -> Option<ReceiveRun> {
        let run = self.ungranted.pop_front()?;
        self.owed_count -= run.count;
        Some(run)
    }
    /// Removes and returns the additional runs that a GRANT message carries.
    pub(crate) fn more_grants(&mut self) -> Vec<ReceiveRun> {
        let most = self.ungranted.len().min(MORE_RUNS);
        let runs: Vec<ReceiveRun> = self.ungranted.drain(..most).collect();
        self.owed_count -= runs.iter().map(|run| run.count).sum::<u16>();
        runs
    }
    pub(crate) fn has_ungranted(&self) -> bool {
        self.owed_count > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANYTHING: Allowance = Allowance { messages: u64::MAX, usage: ReceiveUse::Anything };

    fn run(count: u16, size: u32) -> ReceiveRun {
        ReceiveRun { count, size, usage: ReceiveUse::Anything }
    }

    /// Lets `messages` messages arrive and fill receives.
    fn turn(window: &mut Window, pool: &mut Pool, config: &Config, messages: u16) {
        for _ in 0..messages {
            window.fill(pool).expect("there is a receive");
            window.count_filled(config, pool);
        }
    }

    #[test]
    fn credits_are_spent_in_the_order_they_came() {
        let mut credits = Credits::first();
        credits.add(run(1, 16_448)).expect("allowed");
        for left in [4, 3, 2, 1] {
            assert_eq!(credits.next(), Some(run(left, 2048)));
            credits.spend();
        }
        assert_eq!((credits.next(), credits.total()), (Some(run(1, 16_448)), 1));
        credits.spend();
        credits.spend();
        assert_eq!((credits.next(), credits.total()), (None, 0));
    }

    #[test]
    fn credits_that_nobody_may_give_are_refused() {
        assert_eq!(Credits::default().add(run(1, 2047)), None);
        assert_eq!(Credits::default().add(run(4096, 2048)), Some(()));
        assert_eq!(Credits::first().add(run(4093, 2048)), None);
    }

    /// Computed by hand: four receives of 2 KiB. After two are used, two are owed, which makes a grant due.
    #[test]
    fn a_window_is_filled_up_again_when_half_of_it_is_used() {
        let (config, mut pool) = (Config::default(), Pool::default());
        let mut window = Window::first(&mut pool, Known::Already);
        assert_eq!((pool.bytes(), pool.receives()), (8192, 4));
        window.fill(&mut pool).expect("posted");
        assert!(!window.is_refill_due());
        window.fill(&mut pool).expect("posted");
        assert!(window.is_refill_due() && !window.is_grant_due());
        assert_eq!(window.refill(&config, &mut pool, ANYTHING), Some(run(2, 2048)));
        assert!(window.is_grant_due());
        assert_eq!((window.grant(), window.grant()), (Some(run(2, 2048)), None));
        assert_eq!(pool.bytes(), 8192);
        window.release(&mut pool);
        assert_eq!((pool.bytes(), pool.receives()), (0, 0));
    }

    #[test]
    fn ungranted_receives_cannot_be_filled() {
        let mut pool = Pool::default();
        let mut window = Window::first(&mut pool, Known::NotYet);
        assert_eq!(window.fill(&mut pool), None);
        assert_eq!(window.grant(), Some(run(4, 2048)));
        assert_eq!(window.fill(&mut pool), Some(run(1, 2048)));
    }

    /// A busy peer has 4, 8, 16, 32, 64 receives: each step follows that many messages. New ones have 16 KiB.
    #[test]
    fn a_busy_peer_has_more_and_larger_receives() {
        let (config, mut pool) = (Config::default(), Pool::default());
        let mut window = Window::first(&mut pool, Known::Already);
        for target in [4, 8, 16, 32, 64, 64] {
            assert_eq!((window.target, window.count), (target, target));
            turn(&mut window, &mut pool, &config, target);
            let posted = window.refill(&config, &mut pool, ANYTHING).expect("all are used");
            assert_eq!(posted, run((2 * target).min(64), config.busy_receive));
            window.grant().expect("owed");
        }
        assert_eq!(pool.bytes(), 64 * 16_448);
    }

    /// The pool has room for one busy peer; the other keeps the first four receives.
    #[test]
    fn a_full_pool_leaves_each_peer_four() {
        let (config, mut pool) = (Config { pool: 160_000, ..Config::default() }, Pool::default());
        let mut windows = [0, 1].map(|_| Window::first(&mut pool, Known::Already));
        for window in &mut windows {
            for _ in 0..4 {
                let count = window.count;
                turn(window, &mut pool, &config, count);
                window.refill(&config, &mut pool, ANYTHING).expect("all are used");
                window.grant().expect("owed");
            }
        }
        assert!(windows[0].count == 8 && windows[1].count == 4, "{windows:?}");
        assert!(pool.bytes() <= config.pool);
    }

    #[test]
    fn no_more_is_posted_than_messages_are_allowed() {
        let (config, mut pool) = (Config::default(), Pool::default());
        let mut window = Window::first(&mut pool, Known::Already);
        turn(&mut window, &mut pool, &config, 4);
        let three = Allowance { messages: 3, usage: ReceiveUse::NoPayload };
        let posted = window.refill(&config, &mut pool, three).expect("three");
        assert_eq!((posted.count, posted.usage), (3, ReceiveUse::NoPayload));
        assert_eq!(window.refill(&config, &mut pool, Allowance { messages: 0, ..three }), None);
    }
}
