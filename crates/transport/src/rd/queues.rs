//! Order in which the packets of a queue pair leave.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use pathweave_policy::RetryOrder;
use pathweave_units::Time;

/// Candidate for the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A requested retransmission, by its PSN.
    Retry { flow: u32, psn: u64 },
    /// The next packet of a message that has not been sent completely.
    Fresh { flow: u32, msg: u64 },
}

impl Next {
    pub(super) fn flow(self) -> u32 {
        match self {
            Next::Retry { flow, .. } | Next::Fresh { flow, .. } => flow,
        }
    }
}

/// Requested retransmissions, and messages in the order of posting.
#[derive(Debug, Default)]
struct FlowQueue {
    /// Flow and message.
    fresh: VecDeque<(u32, u64)>,
    /// Flow and PSN.
    retries: VecDeque<(u32, u64)>,
    /// True if the last packet was a retransmission.
    was_retry: bool,
}

impl FlowQueue {
    fn next(&self, order: RetryOrder) -> Option<Next> {
        let retry = self.retries.front().map(|&(flow, psn)| Next::Retry { flow, psn });
        let fresh = self.fresh.front().map(|&(flow, msg)| Next::Fresh { flow, msg });
        let retry_first = match order {
            RetryOrder::First => true,
            RetryOrder::Half => !self.was_retry,
            RetryOrder::Last => false,
        };
        if retry_first { retry.or(fresh) } else { fresh.or(retry) }
    }

    fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.retries.is_empty()
    }
}

/// Packets that wait to be sent by a queue pair.
///
/// There is one order for all destinations, as in the paper. If each destination has its own rate, there is one order
/// for each instead: destinations take turns, packet by packet, and one that must wait delays no other.
#[derive(Debug)]
pub(super) struct Queues {
    lanes: QueueMode,
    /// Retransmissions that wait, so that none is queued twice.
    queued: BTreeSet<(u32, u64)>,
}

#[derive(Debug)]
enum QueueMode {
    Common(FlowQueue),
    Each(Box<RoundRobin>),
}

/// Destinations with packets to send. Each is either ready or waiting.
#[derive(Debug, Default)]
struct RoundRobin {
    lanes: BTreeMap<u32, FlowQueue>,
    ready: VecDeque<u32>,
    waiting: BTreeSet<(Time, u32)>,
}

impl RoundRobin {
    /// Returns the lane of a flow. A new lane is ready.
    fn lane(&mut self, flow: u32) -> &mut FlowQueue {
        let RoundRobin { lanes, ready, .. } = self;
        lanes.entry(flow).or_insert_with(|| {
            ready.push_back(flow);
            FlowQueue::default()
        })
    }

    /// Makes the flows ready whose waiting time is over.
    fn wake(&mut self, now: Time) {
        while let Some(&(at, flow)) = self.waiting.first()
            && at <= now
        {
            self.waiting.pop_first();
            self.ready.push_back(flow);
        }
    }
}

impl Queues {
    /// `each`: destinations have their own rates.
    pub(super) fn new(each: bool) -> Self {
        let lanes =
            if each { QueueMode::Each(Box::default()) } else { QueueMode::Common(FlowQueue::default()) };
        Queues { lanes, queued: BTreeSet::new() }
    }

    fn lane(&mut self, flow: u32) -> &mut FlowQueue {
        match &mut self.lanes {
            QueueMode::Common(lane) => lane,
            QueueMode::Each(turns) => turns.lane(flow),
        }
    }

    /// Appends a posted message.
    pub(super) fn post(&mut self, flow: u32, msg: u64) {
        self.lane(flow).fresh.push_back((flow, msg));
    }

    /// Appends a retransmission. Returns false if it is queued already.
    pub(super) fn retry(&mut self, flow: u32, psn: u64) -> bool {
        let new = self.queued.insert((flow, psn));
        if new {
            self.lane(flow).retries.push_back((flow, psn));
        }
        new
    }

    /// Returns the next packet, or `None`. The packet stays in the queue until it [has left](Queues::left) or [is
    /// removed](Queues::take).
    pub(super) fn next(&mut self, now: Time, order: RetryOrder) -> Option<Next> {
        match &mut self.lanes {
            QueueMode::Common(lane) => lane.next(order),
            QueueMode::Each(turns) => {
                turns.wake(now);
                turns.lanes.get(turns.ready.front()?)?.next(order)
            }
        }
    }

    /// Suspends the flow whose turn it is until `until`.
    pub(super) fn wait(&mut self, until: Time) {
        if let QueueMode::Each(turns) = &mut self.lanes
            && let Some(flow) = turns.ready.pop_front()
        {
            turns.waiting.insert((until, flow));
        }
    }

    /// Records that the next packet has left. `done`: its message has no further packets.
    pub(super) fn left(&mut self, next: Next, done: bool) {
        self.lane(next.flow()).was_retry = matches!(next, Next::Retry { .. });
        if done || matches!(next, Next::Retry { .. }) {
            self.take(next);
        }
        if let QueueMode::Each(turns) = &mut self.lanes
            && turns.lanes.contains_key(&next.flow())
        {
            // The turn passes to the other flows.
            turns.ready.rotate_left(1);
        }
    }

    /// Removes the next packet, which has left or need not be sent any more.
    pub(super) fn take(&mut self, next: Next) {
        let flow = next.flow();
        let lane = self.lane(flow);
        if let Next::Retry { psn, .. } = next {
            lane.retries.pop_front();
            self.queued.remove(&(flow, psn));
        } else {
            lane.fresh.pop_front();
        }
        if let QueueMode::Each(turns) = &mut self.lanes
            && turns.lanes.get(&flow).is_some_and(FlowQueue::is_empty)
        {
            turns.lanes.remove(&flow);
            turns.ready.pop_front();
        }
    }

    /// Removes all entries of a flow.
    pub(super) fn forget(&mut self, flow: u32) {
        match &mut self.lanes {
            QueueMode::Common(lane) => {
                lane.fresh.retain(|(other, _)| *other != flow);
                lane.retries.retain(|(other, _)| *other != flow);
            }
            QueueMode::Each(turns) => {
                turns.lanes.remove(&flow);
                turns.ready.retain(|other| *other != flow);
                turns.waiting.retain(|(_, other)| *other != flow);
            }
        }
        self.queued.retain(|(other, _)| *other != flow);
    }

    /// Returns true if nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        match &self.lanes {
            QueueMode::Common(lane) => lane.is_empty(),
            QueueMode::Each(turns) => turns.lanes.is_empty(),
        }
    }

    /// Returns true if a packet may be sent once a NIC port is free.
    #[inline]
    pub(super) fn is_ready(&self, now: Time) -> bool {
        match &self.lanes {
            QueueMode::Common(lane) => !lane.is_empty(),
            QueueMode::Each(turns) => {
                !turns.ready.is_empty() || turns.waiting.first().is_some_and(|&(at, _)| at <= now)
            }
        }
    }

    /// Earliest time at which a waiting destination may be sent to, or [`Time::MAX`].
    pub(super) fn opens_at(&self) -> Time {
        match &self.lanes {
            QueueMode::Common(_) => Time::MAX,
            QueueMode::Each(turns) => turns.waiting.first().map_or(Time::MAX, |&(at, _)| at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const NOW: Time = Time::ZERO;

    /// Sends everything and returns the order. Each message has one packet.
    fn drain(queues: &mut Queues, order: RetryOrder) -> Vec<Next> {
        core::iter::from_fn(|| {
            let next = queues.next(NOW, order)?;
            queues.left(next, true);
            Some(next)
        })
        .collect()
    }

    fn fresh(flow: u32, msg: u64) -> Next {
        Next::Fresh { flow, msg }
    }

    #[test]
    fn in_one_order_the_first_posted_is_the_first() {
        let mut queues = Queues::new(false);
        for (flow, msg) in [(1, 0), (1, 1), (2, 0)] {
            queues.post(flow, msg);
        }
        assert!(queues.retry(1, 9) && !queues.retry(1, 9));
        let retry = Next::Retry { flow: 1, psn: 9 };
        assert_eq!(drain(&mut queues, RetryOrder::First), [retry, fresh(1, 0), fresh(1, 1), fresh(2, 0)]);
        assert!(queues.is_empty() && queues.retry(1, 9));
    }

    #[test]
    fn destinations_take_turns_and_one_that_waits_holds_nobody_up() {
        let mut queues = Queues::new(true);
        for (flow, msg) in [(1, 0), (1, 1), (2, 0), (3, 0)] {
            queues.post(flow, msg);
        }
        queues.retry(2, 7);
        let first = queues.next(NOW, RetryOrder::First);
        assert_eq!(first, Some(fresh(1, 0)));
        queues.wait(Time::from_us(1));
        let retry = Next::Retry { flow: 2, psn: 7 };
        assert_eq!(drain(&mut queues, RetryOrder::First), [retry, fresh(3, 0), fresh(2, 0)]);
        assert!(!queues.is_empty() && !queues.is_ready(NOW) && queues.is_ready(Time::from_us(1)));
        assert_eq!(queues.opens_at(), Time::from_us(1));
        // The waiting time is over. A message of two packets keeps its position in the flow.
        queues.post(4, 0);
        let now = Time::from_us(1);
        assert_eq!(queues.next(now, RetryOrder::First), Some(fresh(4, 0)));
        queues.left(fresh(4, 0), false);
        assert_eq!(drain(&mut queues, RetryOrder::First), [fresh(1, 0), fresh(4, 0), fresh(1, 1)]);
        assert!(queues.is_empty() && queues.opens_at() == Time::MAX);
    }

    #[test]
    fn a_flow_that_is_forgotten_leaves_nothing() {
        for each in [false, true] {
            let mut queues = Queues::new(each);
            (0..3).for_each(|flow| queues.post(flow, 0));
            queues.retry(1, 3);
            queues.next(NOW, RetryOrder::First);
            queues.wait(Time::from_us(1));
            (0..3).for_each(|flow| queues.forget(flow));
            assert!(queues.is_empty() && !queues.is_ready(Time::MAX));
            assert!(queues.retry(1, 3));
        }
    }
}
