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
        let mut count = self.target.saturating_sub(self.count);
        let mut size = if self.target > first_count { config.busy_receive } else { first_size };
        if count > 0 && pool.posted + u64::from(count) * u64::from(size) > for_busy(config) {
            // Full: no more than everyone has.
            size = first_size;
            count = first_count.saturating_sub(self.count);
        }
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
