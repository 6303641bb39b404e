//! Counters of successful and failed operations.

use std::sync::{Mutex, Weak};
use std::time::{Duration, Instant};

use super::makers::Feeders;
use super::uses::Uses;
use super::wait::{Arming, Object, Waiting, Woken};
use super::{Progress, lock};
use crate::abi::errno::{FI_EAGAIN, FI_EAVAIL, FI_ETIMEDOUT};
use crate::guard::{Errno, FiResult};

/// Values of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) good: u64,
    pub(crate) bad: u64,
}

struct State {
    counts: Counts,
    arming: Arming,
}

impl AsMut<Arming> for State {
    fn as_mut(&mut self) -> &mut Arming {
        &mut self.arming
    }
}

/// A counter.
pub(crate) struct Counter {
    pub(crate) uses: Uses,
    waiting: Waiting,
    state: Mutex<State>,
    makers: Feeders,
    nap: Duration,
}

impl Counter {
    /// Makes a counter.
    ///
    /// # Errors
    ///
    /// Returns FI_ENOMEM if no file descriptor is available.
    pub(crate) fn new(object: Object, nap: Duration) -> FiResult<Self> {
        let state = State { counts: Counts::default(), arming: Arming::default() };
        Ok(Counter {
            uses: Uses::default(),
            waiting: Waiting::new(object)?,
            state: Mutex::new(state),
            makers: Feeders::default(),
            nap,
        })
    }

    pub(crate) fn waiting(&self) -> &Waiting {
        &self.waiting
    }

    /// Adds an endpoint whose operations count here.
    pub(crate) fn fed_by(&self, maker: Weak<dyn Progress>) {
        self.makers.add(maker);
    }

    /// Returns the values, after a progress pass.
    pub(crate) fn read(&self) -> Counts {
        self.makers.each(|maker| {
            maker.progress(None);
        });
        lock(&self.state).counts
    }

    /// Returns the values, after preparing the endpoints for a sleep of the caller.
    fn read_and_rest(&self) -> Counts {
        self.makers.each(|maker| maker.rest());
        lock(&self.state).counts
    }

    /// Changes the values.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Counts)) {
        let mut state = lock(&self.state);
        change(&mut state.counts);
        self.waiting.notify(&mut state.arming);
    }

    /// Sleeps until `good` is at least `threshold`.
    ///
    /// # Errors
    ///
    /// Returns FI_EAVAIL if an operation fails meanwhile, and FI_ETIMEDOUT after the deadline.
    pub(crate) fn wait(&self, threshold: u64, deadline: Option<Instant>) -> FiResult {
        let bad = lock(&self.state).counts.bad;
        loop {
            let counts = self.read_and_rest();
            if counts.good >= threshold {
                return Ok(());
            }
            if counts.bad != bad {
                return Err(Errno(FI_EAVAIL));
            }
            let state = lock(&self.state);
            if state.counts != counts {
                continue;
            }
            if let (_, Woken::TooLate) = self.waiting.sleep(state, deadline, self.nap) {
                return Err(Errno(FI_ETIMEDOUT));
            }
        }
    }

    /// Prepares for a wait on the descriptor.
    ///
    /// # Errors
    ///
    /// Returns FI_EAGAIN if a progress pass has changed the values.
    pub(crate) fn try_wait(&self) -> FiResult {
        let before = lock(&self.state).counts;
        self.read_and_rest();
        let mut state = lock(&self.state);
        if state.counts != before {
            return Err(Errno(FI_EAGAIN));
        }
        self.waiting.arm(&mut state.arming);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn it_waits_for_a_threshold_and_reports_failures() {
        let counter = Arc::new(Counter::new(Object::Unspecified, Duration::from_secs(1)).unwrap());
        let soon = || Some(Instant::now() + Duration::from_millis(50));
        assert_eq!(counter.wait(1, soon()), Err(Errno(FI_ETIMEDOUT)));
        let other = counter.clone();
        let counting =
            std::thread::spawn(move || (0..100).for_each(|_| other.change(|counts| counts.good += 1)));
        assert_eq!(counter.wait(100, None), Ok(()));
        counting.join().unwrap();
        let other = counter.clone();
        let failing = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            other.change(|counts| counts.bad += 1);
        });
        assert_eq!(counter.wait(101, None), Err(Errno(FI_EAVAIL)));
        failing.join().unwrap();
        assert_eq!(counter.read(), Counts { good: 100, bad: 1 });
    }
}
