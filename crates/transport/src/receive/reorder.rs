//! Judgement of packets that arrive ahead of a gap: earlier ones are lost, or late as a notice has announced (DLBF,
//! section III-D).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::ops::Range;

use pathweave_policy::{CleanNotice, ReportPolicy};
use pathweave_units::Time;
use pathweave_wire::NoticePermission;

use crate::recovery::Receiver;

/// Largest number of notices remembered at a time; the oldest are forgotten first. A sender sends one for each change
/// of path, and those of one round trip cover the same packets in flight.
const MOST_SHIELDS: usize = 16;

/// Largest number of reports of one queue pair that wait to leave. Further ones are dropped, as a link would drop
/// them.
const MOST_WAITING: u32 = 64;

/// Consequence of a packet ahead of a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// True if every packet missing before it was announced as late.
    pub(crate) shielded: bool,
    /// Range whose missing packets must be reported as lost.
    pub(crate) report: Option<Range<u64>>,
}

/// PSNs that a notice has announced as late.
#[derive(Clone, Copy, Debug)]
struct Shield {
    first: u64,
    last: u64,
    /// Time at which those still missing count as lost.
    deadline: Time,
}

/// Judgement of gaps for one queue pair.
#[derive(Debug)]
pub(crate) struct Reorder {
    policy: ReportPolicy,
    shields: VecDeque<Shield>,
    /// PSN below which every missing packet has been reported as lost.
    reported: u64,
    reported_at: Time,
    /// Number of reports that have not left yet.
    waiting: u32,
    notices: NoticePermission,
}

impl Reorder {
    pub(crate) fn new(policy: ReportPolicy) -> Box<Self> {
        Box::new(Reorder {
            policy,
            shields: VecDeque::new(),
            reported: 0,
            reported_at: Time::ZERO,
            waiting: 0,
            notices: NoticePermission::Welcome,
        })
    }

    /// First PSN from `from` on that no shield covers.
    fn floor(&self, mut from: u64) -> u64 {
        // Shields may overlap in any order; each iteration passes one of them.
        while let Some(over) = self.shields.iter().find(|s| s.first <= from && from <= s.last) {
            from = over.last + 1;
        }
        from
    }

    /// Judges a packet that was accepted ahead of a gap.
    pub(crate) fn on_ahead(&mut self, now: Time, psn: u64, receiver: &Receiver) -> Verdict {
        let expected = receiver.expected();
        self.shields.retain(|shield| shield.last >= expected);
        let floor = self.floor(expected);
        let Some(missing) = receiver.first_missing(floor, psn) else {
            return Verdict { shielded: true, report: None };
        };
        let report = if receiver.first_missing(self.reported.max(floor), psn).is_some() {
            Some(self.reported.max(floor)..psn)
        } else if missing < self.reported && now - self.reported_at >= self.policy.repeat {
            Some(missing..psn)
        } else {
            None
        };
        if report.is_some() {
            self.reported = self.reported.max(psn + 1);
            self.reported_at = now;
        }
        Verdict { shielded: false, report }
    }

    /// Processes a notice of late packets. `marked`: the notice carried Congestion Experienced. Returns the range of
    /// missing packets that the sender may want to copy.
    pub(crate) fn on_notice(
        &mut self,
        now: Time,
        late: Range<u64>,
        marked: bool,
        receiver: &Receiver,
    ) -> Option<Range<u64>> {
        receiver.first_missing(late.start, late.end)?;
        if marked || self.policy.clean_notice == CleanNotice::Shield {
            if self.shields.len() == MOST_SHIELDS {
                self.shields.pop_front();
            }
            let deadline = now.saturating_add(self.policy.wait);
            self.shields.push_back(Shield { first: late.start, last: late.end - 1, deadline });
        }
        (!marked).then_some(late.start.max(receiver.expected())..late.end)
    }

    /// Returns true if a report may be queued, and counts it then.
    pub(crate) fn may_report(&mut self) -> bool {
        let room = self.waiting < MOST_WAITING;
        self.waiting += u32::from(room);
        room
    }

    pub(crate) fn report_left(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }

    /// Earliest end of a shield.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.shields.iter().map(|shield| shield.deadline).min()
    }

    /// Returns the next range whose shield has ended with packets missing.
    pub(crate) fn expire(&mut self, now: Time, receiver: &Receiver) -> Option<Range<u64>> {
        while let Some(index) = self.shields.iter().position(|shield| shield.deadline <= now) {
            let Shield { first, last, .. } = self.shields.remove(index)?;
            if let Some(missing) = receiver.first_missing(first, last + 1)
                && self.floor(missing) <= last
            {
                let from = self.floor(missing);
                self.reported = self.reported.max(last + 1);
                self.reported_at = now;
                return Some(from..last + 1);
            }
        }
        None
    }

    /// Applies the buffer rule: permission for notices with that many bytes held.
    pub(crate) fn notice_permission(&mut self, held_bytes: u64) -> NoticePermission {
        if held_bytes > self.policy.high.get() {
            self.notices = NoticePermission::Paused;
        } else if held_bytes < self.policy.low.get() {
            self.notices = NoticePermission::Welcome;
        }
        self.notices
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_policy::Recovery;
    use pathweave_units::{Bytes, Duration};

    const POLICY: ReportPolicy = ReportPolicy {
        repeat: Duration::from_us(4),
        wait: Duration::from_us(100),
        high: Bytes::new(4_000),
        low: Bytes::new(2_000),
        clean_notice: CleanNotice::Shield,
    };

    fn receiver(arrived: &[u64]) -> Receiver {
        let mut receiver = Receiver::new(Recovery::SelectiveRepeat {
            reorder_packets: 0,
            window_packets: Some(64),
            sender_window_packets: None,
        });
        arrived.iter().for_each(|&psn| receiver.accept(psn));
        receiver
    }
    fn notice(first: u64, last: u64) -> Range<u64> {
        first..last + 1
    }
    fn shielded() -> Verdict {
        Verdict { shielded: true, report: None }
    }
    fn lost(report: Option<Range<u64>>) -> Verdict {
        Verdict { shielded: false, report }
    }

    #[test]
    fn a_gap_is_reported_once_and_again_after_a_while() {
        let mut reorder = *Reorder::new(POLICY);
        assert_eq!(reorder.on_ahead(Time::ZERO, 2, &receiver(&[0, 2])), lost(Some(1..2)));
        assert_eq!(reorder.on_ahead(Time::from_us(1), 3, &receiver(&[0, 2, 3])), lost(None));
        // The gap at 4 is new; the old one is not repeated with it.
        assert_eq!(reorder.on_ahead(Time::from_us(2), 5, &receiver(&[0, 2, 3, 5])), lost(Some(3..5)));
        assert_eq!(reorder.on_ahead(Time::from_us(5), 6, &receiver(&[0, 2, 3, 5, 6])), lost(None));
        assert_eq!(reorder.on_ahead(Time::from_us(6), 7, &receiver(&[0, 2, 3, 5, 6, 7])), lost(Some(1..7)));
    }

    /// Oracle 10.
    #[test]
    fn a_marked_notice_waits_for_what_is_late() {
        let mut reorder = *Reorder::new(POLICY);
        assert_eq!(reorder.on_notice(Time::ZERO, notice(1, 3), true, &receiver(&[0])), None);
        assert_eq!(reorder.deadline(), Some(Time::from_us(100)));
        assert_eq!(reorder.on_ahead(Time::from_us(1), 4, &receiver(&[0, 4])), shielded());
        assert_eq!(reorder.expire(Time::from_us(100), &receiver(&[0, 4, 1, 2, 3])), None);
        assert_eq!(reorder.deadline(), None);
        // The same with 2 lost: one report, at the deadline.
        let mut reorder = *Reorder::new(POLICY);
        reorder.on_notice(Time::ZERO, notice(1, 3), true, &receiver(&[0]));
        let late = receiver(&[0, 4, 1, 3]);
        assert_eq!(reorder.on_ahead(Time::from_us(3), 3, &late), shielded());
        assert_eq!(reorder.expire(Time::from_us(99), &late), None);
        assert_eq!(reorder.expire(Time::from_us(100), &late), Some(2..4));
        assert_eq!(reorder.expire(Time::from_us(100), &late), None);
        assert_eq!(reorder.on_ahead(Time::from_us(101), 5, &receiver(&[0, 4, 1, 3, 5])), lost(None));
    }

    /// Oracle 11.
    #[test]
    fn a_clean_notice_asks_for_copies_and_keeps_quiet() {
        let mut reorder = *Reorder::new(POLICY);
        let one = receiver(&[0, 1]);
        assert_eq!(reorder.on_notice(Time::ZERO, notice(1, 3), false, &one), Some(2..4));
        assert_eq!(reorder.on_ahead(Time::from_us(1), 4, &receiver(&[0, 1, 4])), shielded());
        // Without the shield, as in the paper, the gap counts as a loss while the copies are in flight.
        let published = ReportPolicy { clean_notice: CleanNotice::Expose, ..POLICY };
        let mut reorder = *Reorder::new(published);
        assert_eq!(reorder.on_notice(Time::ZERO, notice(1, 3), false, &one), Some(2..4));
        assert_eq!(reorder.on_ahead(Time::from_us(1), 4, &receiver(&[0, 1, 4])), lost(Some(2..4)));
    }

    #[test]
    fn nothing_missing_needs_no_shield_and_a_gap_behind_one_is_a_loss() {
        let mut reorder = *Reorder::new(POLICY);
        assert_eq!(reorder.on_notice(Time::ZERO, notice(0, 1), false, &receiver(&[0, 1])), None);
        assert_eq!(reorder.deadline(), None);
        reorder.on_notice(Time::ZERO, notice(2, 3), true, &receiver(&[0, 1]));
        // 2 and 3 are late; 4, sent after the notice, is missing too.
        assert_eq!(reorder.on_ahead(Time::from_us(1), 5, &receiver(&[0, 1, 5])), lost(Some(4..5)));
    }

    /// Oracle 12.
    #[test]
    fn notices_pause_above_one_level_and_are_welcome_below_the_other() {
        let mut reorder = *Reorder::new(POLICY);
        let levels = [4_000, 4_001, 3_000, 2_000, 1_999, 3_000];
        use NoticePermission::{Paused, Welcome};
        assert_eq!(
            levels.map(|held| reorder.notice_permission(held)),
            [Welcome, Paused, Paused, Paused, Welcome, Welcome]
        );
    }

    #[test]
    fn notices_without_end_take_no_memory_without_end() {
        let mut reorder = *Reorder::new(POLICY);
        for i in 0..1_000 {
            reorder.on_notice(Time::from_ns(i), notice(1, 2 + i), true, &receiver(&[0]));
        }
        assert_eq!(reorder.shields.len(), MOST_SHIELDS);
    }
}
