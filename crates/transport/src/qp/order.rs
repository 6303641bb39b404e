//! Packets out of order: reports of the receiver, and the effect of notices.

use core::ops::Range;

use pathweave_policy::Policy;
use pathweave_units::{PathId, Time};
use pathweave_wire::{Body, Missing, MissingCause};

use super::Qp;
use crate::common::EndpointShared;
use crate::timers::TimerKind;

/// Largest number of packets that report one range: 16 of them cover 1,024 PSNs.
const REPORTS_AT_ONCE: usize = 16;

impl<P: Policy> Qp<P> {
    /// Records that a report of missing packets has left.
    pub(crate) fn report_left(&mut self) {
        if let Some(reorder) = &mut self.receive.reorder {
            reorder.report_left();
        }
    }

    /// Returns true if packets ahead of a gap have an effect besides their acknowledgement.
    #[inline]
    pub(super) fn heeds_gaps(&self) -> bool {
        self.receive.reorder.is_some() || self.receive.cnp.notifies_of_gaps()
    }

    /// Handles a packet that was accepted ahead of a gap and acknowledged.
    #[cold]
    pub(super) fn arrived_ahead(&mut self, now: Time, psn: u64, path: PathId, common: &mut EndpointShared) {
        let notifies = self.receive.cnp.notifies_of_gaps();
        let Some(reorder) = &mut self.receive.reorder else {
            if notifies {
                self.order.get_or_insert_default().ahead_received += 1;
                self.notify_congestion(now, path, common);
            }
            return;
        };
        let verdict = reorder.on_ahead(now, psn, &self.receive.recovery);
        self.receive.acks.notices =
            reorder.notice_permission(self.receive.recovery.held() * u64::from(common.mtu_payload(self.num)));
        if !verdict.shielded {
            self.order.get_or_insert_default().ahead_received += 1;
            if let Some(range) = verdict.report {
                self.report(range, MissingCause::Lost, path, common);
            }
            if notifies {
                self.notify_congestion(now, path, common);
            }
        }
    }

    /// Updates the permission for notices after packets left the reorder buffer.
    #[cold]
    pub(super) fn gap_closed(&mut self, common: &EndpointShared) {
        if let Some(reorder) = &mut self.receive.reorder {
            let held = self.receive.recovery.held();
            self.receive.acks.notices =
                reorder.notice_permission(held * u64::from(common.mtu_payload(self.num)));
        }
    }

    /// Reports the packets of shields that have ended.
    pub(super) fn on_reorder_timer(&mut self, now: Time, common: &mut EndpointShared) {
        while let Some(reorder) = &mut self.receive.reorder
            && let Some(range) = reorder.expire(now, &self.receive.recovery)
        {
            self.report(range, MissingCause::Lost, PathId(0), common);
            if self.receive.cnp.notifies_of_gaps() {
                self.notify_congestion(now, PathId(0), common);
            }
        }
        self.arm_reorder(common);
    }

    /// Arms the timer for the end of a shield. It shares the timer of acknowledgements, since both belong to the
    /// receiver.
    pub(super) fn arm_reorder(&mut self, common: &mut EndpointShared) {
        if let Some(deadline) = self.receive.reorder.as_ref().and_then(|reorder| reorder.deadline()) {
            common.timers.arm(&mut self.armed, self.num, TimerKind::DelayedAck, deadline);
        }
    }

    /// Reports the missing packets of a range; of very many, only the first. Whatever the peer sends, one packet
    /// causes only a few reports, and none while many wait to leave. Packets that are not reported are found by the
    /// sender's timer, or reported later.
    pub(super) fn report(
        &mut self,
        range: Range<u64>,
        cause: MissingCause,
        path: PathId,
        common: &mut EndpointShared,
    ) {
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
