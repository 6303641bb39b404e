//! Credit of a host: what it grants to those who send to it, and what its own queue pairs have been granted.
//!
//! Grants are paced for the whole host, since what arrives shares its link; so this belongs to the endpoint, and a timer of its
//! own drives it.

mod fabric;
mod pacer;
mod spender;

use alloc::collections::{BTreeMap, BTreeSet};

use pathweave_policy::CreditTerms;
use pathweave_units::{QpNum, Time};

pub(crate) use fabric::{Crossing, Fabric};
pub(crate) use pacer::{Heard, Pacer, Pull, Sender};
pub(crate) use spender::Spender;

/// Credit of all queue pairs of a host that have any.
#[derive(Debug)]
pub(crate) struct HostCredit {
    pub(crate) pacer: Pacer,
    spenders: BTreeMap<QpNum, Spender>,
    /// Spenders with credit and data.
    active: u32,
    /// When to look which spender is to ask.
    due: BTreeSet<(Time, QpNum)>,
    /// When the endpoint will be woken for it, [`Time::MAX`] if it will not.
    pub(crate) armed: Time,
}

impl HostCredit {
    pub(crate) fn new() -> Self {
        HostCredit {
            pacer: Pacer::default(),
            spenders: BTreeMap::new(),
            active: 0,
            due: BTreeSet::new(),
            armed: Time::MAX,
        }
    }

    /// A queue pair sends and receives under these terms.
    pub(crate) fn join(&mut self, now: Time, qp: QpNum, terms: CreditTerms) {
        self.pacer.join(qp, terms);
        self.spenders.insert(qp, Spender::new(now, terms));
    }

    /// It does no more.
    pub(crate) fn leave(&mut self, qp: QpNum) {
        self.pacer.leave(qp);
        self.set_active(qp, false);
        self.set_due(qp, None);
        self.spenders.remove(&qp);
    }

    /// Nobody has joined, or all have left.
    pub(crate) fn is_empty(&self) -> bool {
        self.spenders.is_empty()
    }

    /// How many senders of this host ask.
    pub(crate) fn active(&self) -> u32 {
        self.active
    }

    pub(crate) fn spender(&self, qp: QpNum) -> Option<&Spender> {
        self.spenders.get(&qp)
    }

    /// The same, to change it; with how many senders of this host ask.
    pub(crate) fn spender_mut(&mut self, qp: QpNum) -> Option<(&mut Spender, u32)> {
        let active = self.active;
        self.spenders.get_mut(&qp).map(|spender| (spender, active))
    }

    /// A queue pair has credit and data, or has not.
    pub(crate) fn set_active(&mut self, qp: QpNum, is_active: bool) {
        let Some(spender) = self.spenders.get_mut(&qp) else { return };
        if core::mem::replace(&mut spender.is_active, is_active) != is_active {
            self.active = if is_active { self.active + 1 } else { self.active - 1 };
        }
    }

    /// When to look whether a queue pair is to ask.
    pub(crate) fn set_due(&mut self, qp: QpNum, at: Option<Time>) {
        let Some(spender) = self.spenders.get_mut(&qp) else { return };
        let before = core::mem::replace(&mut spender.due, at);
        if before != at {
            if let Some(before) = before {
                self.due.remove(&(before, qp));
            }
            self.due.extend(at.map(|at| (at, qp)));
        }
    }

    /// The next queue pair at which to look, if it is time.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<QpNum> {
        let &(_, qp) = self.due.first().filter(|(at, _)| *at <= now)?;
        self.set_due(qp, None);
        Some(qp)
    }

    /// When the endpoint must be woken.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let due = self.due.first().map(|(at, _)| *at);
        self.pacer.next_at().into_iter().chain(due).min()
    }

    /// Panics unless all of it agrees.
    pub(crate) fn assert_invariants(&self) {
        let active = self.spenders.values().filter(|spender| spender.is_active).count();
        assert_eq!(active, self.active as usize, "who asks is counted");
        let due: BTreeSet<_> = self.spenders.iter().filter_map(|(&qp, s)| Some((s.due?, qp))).collect();
        assert_eq!(due, self.due, "who is to ask is known by time");
        if let Some(at) = self.next_at() {
            assert!(self.armed <= at, "the endpoint will be woken at {at}");
        }
    }
}
