//! Credits: how many receives of which size each side has posted for the other (specification, section 4, "Unexpected,
//! flow control").
//!
//! A SEND without a receive would stall answers and grants of its connection, and one that is larger than its receive
//! fails it. So each side says what it posts, in that order, and the other sends no more than that.
//!
//! **The last receive is kept for a message that grants.** That rules out that both sides wait for each other. Suppose
//! neither may send and nothing is under way. Whoever used its last receive granted at least one with that message; so of
//! the messages that used receives up, the one that arrived last left its receiver with a receive, or its sender with the
//! one that it had to keep. And a side that has receives while the other has none owes the other all it ever posted, which
//! is enough to send a message for.
//!
//! **A message that does nothing but grant costs a receive, too.** It is sent when at least two receives are owed, so each
//! begets at most half a message in return, and the exchange ends.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::config::{Config, FIRST_RECEIVES, MOST_RECEIVES};
use crate::wire::{MORE_RUNS, Run, Use};

/// Most receives a peer may have granted that are not used; more is a violation.
const MOST_CREDITS: u32 = 4096;

/// Receives of a peer that are posted for this side.
#[derive(Debug, Default)]
pub(crate) struct Credits {
    runs: VecDeque<Run>,
    total: u32,
}

impl Credits {
    /// What every connection begins with.
    pub(crate) fn first() -> Self {
        let (count, size) = FIRST_RECEIVES;
        Credits { runs: VecDeque::from([Run { count, size, usage: Use::Anything }]), total: u32::from(count) }
    }
    /// More have been granted; `None` where that breaks the rules.
    pub(crate) fn add(&mut self, run: Run) -> Option<()> {
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
    /// The receive that the next message fills.
    pub(crate) fn next(&self) -> Option<Run> {
        self.runs.front().copied()
    }
    pub(crate) fn total(&self) -> u32 {
        self.total
    }
    /// A message has been sent.
    pub(crate) fn spend(&mut self) {
        let Some(run) = self.runs.front_mut() else { return };
        self.total -= 1;
        run.count -= 1;
        if run.count == 0 {
            self.runs.pop_front();
        }
    }
}

/// The part of the pool that busy peers may have; the rest is for the first receives of others.
fn for_busy(config: &Config) -> u64 {
    config.pool / 8 * 7
}

/// What is posted for all peers.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// Bytes of all receives.
    posted: u64,
    /// Receives.
    receives: u64,
}

impl Pool {
    pub(crate) fn bytes(&self) -> u64 {
        self.posted
    }
    pub(crate) fn receives(&self) -> u64 {
        self.receives
    }
    fn change(&mut self, run: Run, posted: bool) {
        let bytes = u64::from(run.count) * u64::from(run.size);
        let sum = |value: u64, by: u64| if posted { value + by } else { value - by };
        self.posted = sum(self.posted, bytes);
        self.receives = sum(self.receives, u64::from(run.count));
    }
}

/// Receives that are posted for a peer.
#[derive(Debug)]
pub(crate) struct Window {
    /// Those that are posted, in order, as the peer knows them or will.
    posted: VecDeque<Run>,
    count: u16,
    /// The last of them, which the peer has not been told of.
    owed: VecDeque<Run>,
    owed_count: u16,
    /// How many there should be.
    target: u16,
    /// Messages but grants since the target was changed.
    turned: u16,
}

/// Whether the other side knows of the first receives without being told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Already,
    NotYet,
}

/// What may be posted for a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    /// Messages that may come.
    pub(crate) messages: u64,
    /// What they may be.
    pub(crate) usage: Use,
}

impl Window {
    /// The first receives.
    pub(crate) fn first(pool: &mut Pool, known: Known) -> Self {
        let (count, size) = FIRST_RECEIVES;
        let run = Run { count, size, usage: Use::Anything };
        pool.change(run, true);
        let posted = VecDeque::from([run]);
        let (owed, owed_count) = match known {
            Known::Already => (VecDeque::new(), 0),
            Known::NotYet => (posted.clone(), count),
        };
        Window { posted, count, owed, owed_count, target: count, turned: 0 }
    }
    /// The connection is gone.
    pub(crate) fn give_back(self, pool: &mut Pool) {
        for run in self.posted {
            pool.change(run, false);
        }
    }
    /// A message has filled the next receive, which this was; `None` if there was none that the peer knew of.
    pub(crate) fn fill(&mut self, pool: &mut Pool) -> Option<Run> {
        if self.count == self.owed_count {
            return None;
        }
        let run = self.posted.front_mut()?;
        let one = Run { count: 1, ..*run };
        run.count -= 1;
        if run.count == 0 {
            self.posted.pop_front();
        }
        self.count -= 1;
        pool.change(one, false);
        Some(one)
    }
    /// A message that was no mere grant has come: a peer that has turned over a whole window is busy and gets twice as
    /// many.
    pub(crate) fn turn(&mut self, config: &Config, pool: &Pool) {
        self.turned += 1;
        if self.turned < self.target {
            return;
        }
        self.turned = 0;
        let growth = u64::from(self.target) * u64::from(config.busy_receive);
        if pool.posted + growth <= for_busy(config) {
            self.target = (self.target * 2).min(MOST_RECEIVES);
        } else if pool.posted > for_busy(config) / 8 * 7 {
            self.target = (self.target / 2).max(FIRST_RECEIVES.0);
        }
    }
    /// Receives that the peer has sent into and that are not posted again, and those posted that it does not know of.
    fn due(&self) -> u16 {
        self.target.saturating_sub(self.count) + self.owed_count
    }
    /// It is time to post what is missing.
    pub(crate) fn is_refill_due(&self) -> bool {
        self.due() >= (self.target / 4).max(2)
    }
    /// Enough is owed to send a message for it. What cannot be posted does not count, or two sides without room would send
    /// each other grants of one receive for ever.
    pub(crate) fn is_grant_due(&self) -> bool {
        self.owed_count >= (self.count / 4).max(2)
    }
    /// Posts what is missing; what the driver is to post.
    pub(crate) fn refill(&mut self, config: &Config, pool: &mut Pool, allowed: Allowance) -> Option<Run> {
        let (first_count, first_size) = FIRST_RECEIVES;
        let missing = self.target.saturating_sub(self.count);
        let fitting = for_busy(config).saturating_sub(pool.posted) / u64::from(config.busy_receive.max(1));
        let (count, size) = if self.target > first_count && fitting > 0 {
            (fitting.min(missing.into()) as u16, config.busy_receive)
        } else {
            // What everyone has, also where the pool is full.
            (missing.min(first_count.saturating_sub(self.count)), first_size)
        };
        let count = allowed.messages.min(count.into()) as u16;
        if count == 0 {
            return None;
        }
        let run = Run { count, size, usage: allowed.usage };
        pool.change(run, true);
        self.count += count;
        self.owed_count += count;
        for list in [&mut self.posted, &mut self.owed] {
            match list.back_mut() {
                Some(last) if last.size == size && last.usage == run.usage => last.count += count,
                _ => list.push_back(run),
            }
        }
        Some(run)
    }
    /// What the next message grants.
    pub(crate) fn grant(&mut self) -> Option<Run> {
        let run = self.owed.pop_front()?;
        self.owed_count -= run.count;
        Some(run)
    }
    /// What a message for nothing but grants takes besides.
    pub(crate) fn more_grants(&mut self) -> Vec<Run> {
        let most = self.owed.len().min(MORE_RUNS);
        let runs: Vec<Run> = self.owed.drain(..most).collect();
        self.owed_count -= runs.iter().map(|run| run.count).sum::<u16>();
        runs
    }
    pub(crate) fn owes(&self) -> bool {
        self.owed_count > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANYTHING: Allowance = Allowance { messages: u64::MAX, usage: Use::Anything };

    fn run(count: u16, size: u32) -> Run {
        Run { count, size, usage: Use::Anything }
    }

    /// So many messages come and are let in again.
    fn turn(window: &mut Window, pool: &mut Pool, config: &Config, messages: u16) {
        for _ in 0..messages {
            window.fill(pool).expect("there is a receive");
            window.turn(config, pool);
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

    /// By hand: four of 2 KiB; when two have been used, two are owed and worth a message.
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
        window.give_back(&mut pool);
        assert_eq!((pool.bytes(), pool.receives()), (0, 0));
    }

    #[test]
    fn what_the_peer_was_not_told_of_cannot_be_filled() {
        let mut pool = Pool::default();
        let mut window = Window::first(&mut pool, Known::NotYet);
        assert_eq!(window.fill(&mut pool), None);
        assert_eq!(window.grant(), Some(run(4, 2048)));
        assert_eq!(window.fill(&mut pool), Some(run(1, 2048)));
    }

    /// A busy peer has 4, 8, 16, 32, 64 receives, each time that as many messages have come, the later ones of 16 KiB.
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

    /// Room for one busy peer: another one keeps the first four.
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
        let three = Allowance { messages: 3, usage: Use::NoPayload };
        let posted = window.refill(&config, &mut pool, three).expect("three");
        assert_eq!((posted.count, posted.usage), (3, Use::NoPayload));
        assert_eq!(window.refill(&config, &mut pool, Allowance { messages: 0, ..three }), None);
    }
}
