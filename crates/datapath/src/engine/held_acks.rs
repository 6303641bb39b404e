//! Acknowledgements that wait to leave: those of this turn, and some that are held for what goes the same way.

use pathweave_units::{Duration, HostId, Time};
use pathweave_wire::Segment;

use super::acks::join;

/// What is to be acknowledged, by connection's host number.
#[derive(Default)]
pub(super) struct HeldAcks {
    pub(super) list: Vec<(HostId, Segment)>,
    /// Since when some of them are held.
    pub(super) since: Option<Time>,
    /// A peer waits for one of them before it goes on.
    pub(super) awaited: bool,
    /// When the application was last told of what is to be acknowledged, and has sent nothing since.
    told: Option<Time>,
    /// It mostly answers at once when it is told something.
    pub(super) habit: Habit,
}

/// What the application does when it is told something, as far as it has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Habit {
    /// Other things than to answer, or nobody knows.
    #[default]
    Silent,
    /// It answers at once.
    Answers,
}

impl HeldAcks {
    /// Another one, which says more than the last where that is possible.
    #[inline]
    pub(super) fn push(&mut self, to: HostId, segment: &Segment) {
        let last = self.list.last_mut();
        if !last.is_some_and(|(host, last)| *host == to && join(last, segment)) {
            self.list.push((to, *segment));
        }
    }

    /// The application has been told of what is to be acknowledged.
    pub(super) fn told(&mut self, now: Time) {
        self.told = Some(now);
    }

    /// Data leaves: it is an answer if the application was told something so short a time ago.
    #[inline]
    pub(super) fn sends(&mut self, now: Time, at_once: Duration) {
        if let Some(told) = self.told.take() {
            self.habit = if now.saturating_since(told) < at_once { Habit::Answers } else { Habit::Silent };
        }
    }

    /// They have been held in vain.
    pub(super) fn missed(&mut self) {
        (self.told, self.habit) = (None, Habit::Silent);
    }

    /// None is left, so none is held and none is waited for.
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

    /// Drops those to a peer.
    pub(super) fn forget(&mut self, host: HostId) {
        self.list.retain(|(to, _)| *to != host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_answers_at_once_is_known_for_it_until_it_does_not() {
        let (mut acks, at_once) = (HeldAcks::default(), Duration::from_us(50));
        assert_eq!(acks.habit, Habit::Silent);
        acks.sends(Time::from_us(1), at_once);
        assert_eq!(acks.habit, Habit::Silent, "it was told nothing");
        acks.told(Time::from_us(100));
        acks.sends(Time::from_us(149), at_once);
        assert_eq!(acks.habit, Habit::Answers);
        acks.sends(Time::from_us(900), at_once);
        assert_eq!(acks.habit, Habit::Answers, "more of the same answer");
        acks.told(Time::from_us(1_000));
        acks.sends(Time::from_us(1_050), at_once);
        assert_eq!(acks.habit, Habit::Silent, "too late");
        acks.habit = Habit::Answers;
        acks.told(Time::from_us(2_000));
        acks.missed();
        assert_eq!(acks.habit, Habit::Silent);
    }
}
