//! Duties of the whole network at instants known in advance: faults, samples, and the PFC watch. A window ends where
//! a duty is due.

use pathweave_units::{Duration, Time};

use crate::faults::Entry;
use crate::spec::SimSpec;

/// Action to perform between two windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum GlobalAction {
    Fault(Entry),
    Sample,
    Watch,
}

/// Times at which duties are due.
pub(crate) struct Calendar {
    /// Ordered by time.
    faults: Vec<Entry>,
    next_fault: usize,
    sample: Time,
    watch: Time,
    watch_every: Duration,
}

impl Calendar {
    pub(crate) fn new(spec: &SimSpec, faults: Vec<Entry>) -> Self {
        let pfc = &spec.switch.pfc;
        let tables = || spec.switch.tables.iter().filter_map(|table| table.pfc.as_ref()?.enabled);
        let watch = if pfc.enabled || tables().any(|enabled| enabled) {
            Time::ZERO + pfc.deadlock_after
        } else {
            Time::MAX
        };
        let sample = spec.observe.sampling().map_or(Time::MAX, |interval| Time::ZERO + interval);
        Calendar { faults, next_fault: 0, sample, watch, watch_every: pfc.deadlock_after }
    }

    /// Returns the time of the next duty, or [`Time::MAX`] if there is none.
    pub(crate) fn next(&self) -> Time {
        self.fault_at().min(self.sample).min(self.watch)
    }

    /// Returns true if faults or repairs are still to come.
    pub(crate) fn has_faults(&self) -> bool {
        self.next_fault < self.faults.len()
    }

    /// Removes and returns the next duty if it is due at `now` or before.
    pub(crate) fn first(&mut self, now: Time) -> Option<(Time, GlobalAction)> {
        let at = self.next();
        if at > now {
            return None;
        }
        Some((
            at,
            if self.fault_at() == at {
                self.next_fault += 1;
                GlobalAction::Fault(self.faults[self.next_fault - 1])
            } else if self.sample == at {
                self.sample = Time::MAX;
                GlobalAction::Sample
            } else {
                self.watch = at + self.watch_every;
                GlobalAction::Watch
            },
        ))
    }

    /// Sets the time of the next sample.
    pub(crate) fn sample_at(&mut self, at: Time) {
        self.sample = at;
    }

    fn fault_at(&self) -> Time {
        self.faults.get(self.next_fault).map_or(Time::MAX, |entry| entry.at)
    }
}
