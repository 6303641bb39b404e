//! Future events, sorted by time and in a fixed order at the same time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pathweave_execution::Step;
use pathweave_units::Time;
use pathweave_workload::TaskId;

/// Event at a time that is known in advance. The order of the variants is the order of events at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Step(Step),
    /// A part of a message has arrived at its receiver.
    Delivered {
        message: u32,
        part: u16,
    },
    /// The sender has the last acknowledgement of a message.
    Acknowledged {
        message: u32,
    },
    /// A queue pair has sent a short message.
    LaneFree(u32),
}

/// Number of bits of a task number, as graphs have fewer than 2^30 tasks.
const TASK: u32 = 30;
/// Number of bits below the kind of an event.
const NUMBERS: u32 = 61;

impl Event {
    /// Returns the kind and the two numbers of the event as one integer. Integers sort as events do.
    pub(crate) fn code(self) -> u64 {
        let (kind, second, number) = match self {
            Event::Step(Step::Told { task, by }) => (0, by.0, task.0),
            Event::Step(Step::Computed(task)) => (1, 0, task.0),
            Event::Step(Step::Begin(task)) => (2, 0, task.0),
            Event::Delivered { message, part } => (3, u32::from(part), message),
            Event::Acknowledged { message } => (4, 0, message),
            Event::LaneFree(lane) => (5, 0, lane),
        };
        kind << NUMBERS | u64::from(second) << TASK | u64::from(number)
    }

    pub(crate) fn from_code(code: u64) -> Self {
        let numbers = code & ((1 << NUMBERS) - 1);
        let (second, number) = ((numbers >> TASK) as u32, (numbers & ((1 << TASK) - 1)) as u32);
        match code >> NUMBERS {
            0 => Event::Step(Step::Told { task: TaskId(number), by: TaskId(second) }),
            1 => Event::Step(Step::Computed(TaskId(number))),
            2 => Event::Step(Step::Begin(TaskId(number))),
            3 => Event::Delivered { message: number, part: second as u16 },
            4 => Event::Acknowledged { message: number },
            _ => Event::LaneFree(numbers as u32),
        }
    }
}

/// Priority queue of events by time. Events for the current time are stored separately, so that they need not pass
/// through the heap of future events.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    /// Time and code of future events.
    later: BinaryHeap<Reverse<u128>>,
    /// Codes of events at time `now`.
    due: BinaryHeap<Reverse<u64>>,
    now: u64,
}

impl EventQueue {
    /// Adds an event at time `at`, which must not be before the current time.
    pub(crate) fn push(&mut self, at: Time, event: Event) {
        let (at, code) = (at.as_ps(), event.code());
        if at == self.now {
            self.due.push(Reverse(code));
        } else {
            self.later.push(Reverse(u128::from(at) << 64 | u128::from(code)));
        }
    }

    /// Returns the time of the next event. No event of the current time may be left.
    pub(crate) fn next(&self) -> Time {
        self.later.peek().map_or(Time::MAX, |Reverse(key)| Time::from_ps((key >> 64) as u64))
    }

    /// Advances the current time.
    pub(crate) fn begin(&mut self, now: Time) {
        debug_assert!(self.due.is_empty() && self.next() >= now);
        self.now = now.as_ps();
    }

    /// Returns the code of the first remaining event of the current time.
    pub(crate) fn first(&self) -> Option<u64> {
        let due = self.due.peek().map(|Reverse(code)| *code);
        let later = self.later.peek().filter(|Reverse(key)| (key >> 64) as u64 == self.now);
        let later = later.map(|Reverse(key)| *key as u64);
        due.into_iter().chain(later).min()
    }

    /// Removes the event that [`first`](EventQueue::first) returned.
    pub(crate) fn pop(&mut self, code: u64) {
        if self.due.peek() == Some(&Reverse(code)) {
            self.due.pop();
        } else {
            self.later.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_events_are_read_back() {
        let last = TaskId((1 << TASK) - 1);
        for event in [
            Event::Step(Step::Told { task: TaskId(7), by: last }),
            Event::Step(Step::Computed(last)),
            Event::Step(Step::Begin(TaskId(0))),
            Event::Delivered { message: 9, part: u16::MAX },
            Event::Acknowledged { message: last.0 },
            Event::LaneFree(u32::MAX),
        ] {
            assert_eq!(Event::from_code(event.code()), event);
        }
    }

    #[test]
    fn events_of_an_instant_are_in_their_order_whenever_they_became_known() {
        let us = Time::from_us;
        let events = [5, 3, 9].map(|message| Event::Acknowledged { message });
        let mut agenda = EventQueue::default();
        agenda.push(us(2), events[0]);
        agenda.push(us(1), events[2]);
        assert_eq!(agenda.next(), us(1));
        agenda.begin(us(1));
        agenda.push(us(2), events[1]);
        let take = |agenda: &mut EventQueue| {
            let code = agenda.first()?;
            agenda.pop(code);
            Some(Event::from_code(code))
        };
        assert_eq!([take(&mut agenda), take(&mut agenda)], [Some(events[2]), None]);
        agenda.begin(us(2));
        let begin = Event::Step(Step::Begin(TaskId(8)));
        agenda.push(us(2), Event::Acknowledged { message: 4 });
        agenda.push(us(2), begin);
        let order = [begin, events[1], Event::Acknowledged { message: 4 }, events[0]];
        assert_eq!(order.map(|_| take(&mut agenda)), order.map(Some));
        assert_eq!((take(&mut agenda), agenda.next()), (None, Time::MAX));
    }
}
