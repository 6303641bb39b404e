//! Packets out of order: what the receiver says of them, and what a notice changes.

use core::ops::Range;

use pathweave_policy::{CnpMode, Policy};
use pathweave_units::{PathId, Time};
use pathweave_wire::{Body, Cause, Missing};

use super::Qp;
use crate::common::Common;
use crate::timers::TimerKind;

/// Messages that report one range: 1,024 packets.
const REPORTS_AT_ONCE: usize = 16;

impl<P: Policy> Qp<P> {
    /// A report of missing packets has left.
    pub(crate) fn report_left(&mut self) {
        if let Some(reorder) = &mut self.receive.reorder {
            reorder.report_left();
        }
    }

    /// Whether a marked packet that had arrived before makes a congestion notification.
    #[cold]
    pub(super) fn notifies_copies(&self) -> bool {
        self.receive.reorder.as_ref().is_none_or(|reorder| reorder.notifies_copies())
    }

    /// A packet has been taken ahead of a gap, and acknowledged.
    #[cold]
    pub(super) fn arrived_ahead(&mut self, now: Time, psn: u64, path: PathId, common: &mut Common) {
        let notifies = self.receive.cnp.mode == CnpMode::OnMarkOrGap;
        let Some(reorder) = &mut self.receive.reorder else {
            if notifies {
                self.order.get_or_insert_default().ahead_received += 1;
                self.notify_congestion(now, path, common);
            }
            return;
        };
        let verdict = reorder.on_ahead(now, psn, &self.receive.recovery);
        self.receive.acks.notices =
            reorder.welcome(self.receive.recovery.held() * u64::from(common.mtu_payload(self.num)));
        if !verdict.shielded {
            self.order.get_or_insert_default().ahead_received += 1;
            if let Some(range) = verdict.report {
                self.report(range, Cause::Lost, path, common);
            }
            if notifies {
                self.notify_congestion(now, path, common);
            }
        }
    }

    /// Packets held have been passed.
    #[cold]
    pub(super) fn gap_closed(&mut self, common: &Common) {
        if let Some(reorder) = &mut self.receive.reorder {
            let held = self.receive.recovery.held();
            self.receive.acks.notices = reorder.welcome(held * u64::from(common.mtu_payload(self.num)));
        }
    }

    /// Time has come to the end of a shield, perhaps.
    pub(super) fn on_reorder_timer(&mut self, now: Time, common: &mut Common) {
        while let Some(reorder) = &mut self.receive.reorder
            && let Some(range) = reorder.expire(now, &self.receive.recovery)
        {
            self.report(range, Cause::Lost, PathId(0), common);
            if self.receive.cnp.mode == CnpMode::OnMarkOrGap {
                self.notify_congestion(now, PathId(0), common);
            }
        }
        self.arm_reorder(common);
    }

    /// The end of a shield shares the timer of acknowledgements: both are the receiver's.
    pub(super) fn arm_reorder(&mut self, common: &mut Common) {
        if let Some(deadline) = self.receive.reorder.as_ref().and_then(|reorder| reorder.deadline()) {
            common.timers.arm(&mut self.armed, self.num, TimerKind::DelayedAck, deadline);
        }
    }

    /// Tells which packets of a range are missing; of very many, the first. Whatever the other end says, it gets no more
    /// than a few messages for one, and none while many wait to leave: what is left out is lost sooner or later to its
    /// timer, or reported again.
    pub(super) fn report(&mut self, range: Range<u64>, cause: Cause, path: PathId, common: &mut Common) {
        let mut from = range.start;
        for _ in 0..REPORTS_AT_ONCE {
            let Some(first) = self.receive.recovery.first_missing(from, range.end) else { return };
            if self.receive.reorder.as_mut().is_some_and(|reorder| !reorder.may_report()) {
                return;
            }
            let end = range.end.min(first + 64);
            let mut missing = 0u64;
            let mut next = first;
            while let Some(psn) = self.receive.recovery.first_missing(next, end) {
                missing |= 1 << (psn - first);
                next = psn + 1;
            }
            self.order.get_or_insert_default().missing_named += u64::from(missing.count_ones());
            self.control(path, Body::Missing(Missing { first, missing, cause }), common);
            from = end;
        }
    }
}
