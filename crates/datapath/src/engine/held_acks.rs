//! Acknowledgements that wait to be sent: those of this turn, and those held so that they can share a batch with
//! data.

use pathweave_units::{Duration, HostId, Time};
use pathweave_wire::Segment;

use super::acks::join;

/// Pending acknowledgements, each with the host number of its connection.
#[derive(Default)]
pub(super) struct HeldAcks {
    pub(super) list: Vec<(HostId, Segment)>,
    /// Time since which some of them are held.
    pub(super) since: Option<Time>,
    /// True if a peer waits for one of them before it continues.
    pub(super) awaited: bool,
    /// Time at which the application last got events of the acknowledged packets, if it has sent nothing since.
    told: Option<Time>,
    /// Observed behaviour of the application on receiving events.
    pub(super) habit: ReplyPattern,
}

/// Reaction of the application to events, as far as observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ReplyPattern {
    /// Does not answer at once, or is unknown.
    #[default]
    Silent,
    /// Sends data at once.
    Answers,
}

impl HeldAcks {
    /// Adds an acknowledgement, joined with the last one if possible.
    #[inline]
    pub(super) fn push(&mut self, to: HostId, segment: &Segment) {
        let last = self.list.last_mut();
        if !last.is_some_and(|(host, last)| *host == to && join(last, segment)) {
            self.list.push((to, *segment));
        }
    }

    /// Records that the application has received events of the packets to be acknowledged.
    pub(super) fn on_events_delivered(&mut self, now: Time) {
        self.told = Some(now);
    }

    /// Records that data leaves. It counts as an answer if the application received events less than `at_once` ago.
    #[inline]
    pub(super) fn on_data_sent(&mut self, now: Time, at_once: Duration) {
        if let Some(told) = self.told.take() {
            self.habit = if now.saturating_since(told) < at_once {
                ReplyPattern::Answers
            } else {
                ReplyPattern::Silent
            };
        }
    }

    /// Records that acknowledgements were held in vain.
    pub(super) fn on_hold_expired(&mut self) {
        (self.told, self.habit) = (None, ReplyPattern::Silent);
    }

    /// Resets the holding state if no acknowledgement is left.
    pub(super) fn settle(&mut self) {
        if self.list.is_empty() {
            (self.since, self.awaited) = (None, false);
        }
    }

    /// Drops all of them.
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.settle();
    }

    /// Drops those to one peer.
    pub(super) fn forget(&mut self, host: HostId) {
        self.list.retain(|(to, _)| *to != host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_answers_are_expected_until_one_is_late() {
        let (mut acks, at_once) = (HeldAcks::default(), Duration::from_us(50));
        assert_eq!(acks.habit, ReplyPattern::Silent);
        acks.on_data_sent(Time::from_us(1), at_once);
        assert_eq!(acks.habit, ReplyPattern::Silent, "it was told nothing");
        acks.on_events_delivered(Time::from_us(100));
        acks.on_data_sent(Time::from_us(149), at_once);
        assert_eq!(acks.habit, ReplyPattern::Answers);
        acks.on_data_sent(Time::from_us(900), at_once);
        assert_eq!(acks.habit, ReplyPattern::Answers, "more of the same answer");
        acks.on_events_delivered(Time::from_us(1_000));
        acks.on_data_sent(Time::from_us(1_050), at_once);
        assert_eq!(acks.habit, ReplyPattern::Silent, "too late");
        acks.habit = ReplyPattern::Answers;
        acks.on_events_delivered(Time::from_us(2_000));
        acks.on_hold_expired();
        assert_eq!(acks.habit, ReplyPattern::Silent);
    }
}
