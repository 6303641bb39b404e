//! Credit of a host: the grants to those who send to it, and the credit granted to its own queue pairs.
//!
//! Grants are paced for the whole host, because all arriving data shares its link. The state therefore belongs to the
//! endpoint and has its own timer.

mod fabric;
mod pacer;
mod spender;

use alloc::collections::{BTreeMap, BTreeSet};

use pathweave_policy::CreditParams;
use pathweave_units::{QpNum, Time};

pub(crate) use fabric::{Crossing, Fabric};
pub(crate) use pacer::{ArrivalKind, Pacer, Pull, Sender};
pub(crate) use spender::CreditSender;

/// Credit of all queue pairs of a host that use any.
#[derive(Debug)]
pub(crate) struct HostCredit {
    pub(crate) pacer: Pacer,
    spenders: BTreeMap<QpNum, CreditSender>,
    /// Number of spenders with credit and data.
    active: u32,
    /// Times at which a queue pair may have to request credit.
    due: BTreeSet<(Time, QpNum)>,
    /// Time for which the endpoint's credit timer is armed, or [`Time::MAX`].
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

    /// Adds a queue pair that sends and receives under these terms.
    pub(crate) fn join(&mut self, now: Time, qp: QpNum, terms: CreditParams) {
        self.pacer.join(qp, terms);
        self.spenders.insert(qp, CreditSender::new(now, terms));
    }

    /// Removes a queue pair.
    pub(crate) fn leave(&mut self, qp: QpNum) {
        self.pacer.leave(qp);
        self.set_active(qp, false);
        self.set_due(qp, None);
        self.spenders.remove(&qp);
    }

    /// Returns true if no queue pair uses credit.
    pub(crate) fn is_empty(&self) -> bool {
        self.spenders.is_empty()
    }

    /// Number of queue pairs of this host that have credit and data.
    pub(crate) fn active(&self) -> u32 {
        self.active
    }

    pub(crate) fn spender(&self, qp: QpNum) -> Option<&CreditSender> {
        self.spenders.get(&qp)
    }

    /// Returns a spender for changes, and the number of active ones of this host.
    pub(crate) fn spender_mut(&mut self, qp: QpNum) -> Option<(&mut CreditSender, u32)> {
        let active = self.active;
        self.spenders.get_mut(&qp).map(|spender| (spender, active))
    }

    /// Records if a queue pair has both credit and data.
    pub(crate) fn set_active(&mut self, qp: QpNum, is_active: bool) {
        let Some(spender) = self.spenders.get_mut(&qp) else { return };
        if core::mem::replace(&mut spender.is_active, is_active) != is_active {
            self.active = if is_active { self.active + 1 } else { self.active - 1 };
        }
    }

    /// Sets the time at which a queue pair may have to request credit.
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

    /// Removes and returns the next queue pair that may have to request credit, if it is due.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<QpNum> {
        let &(_, qp) = self.due.first().filter(|(at, _)| *at <= now)?;
        self.set_due(qp, None);
        Some(qp)
    }

    /// Time of the next grant or request.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let due = self.due.first().map(|(at, _)| *at);
        self.pacer.next_at().into_iter().chain(due).min()
    }

    /// Panics unless the state is consistent.
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
