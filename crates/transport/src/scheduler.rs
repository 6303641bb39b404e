//! Round-robin scheduler over the queue pairs that may have data to send.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use pathweave_units::QpNum;

use crate::transmit::FreePorts;

/// Scheduling state of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchedState {
    /// In no queue: the queue pair has nothing to send, or is blocked until feedback, a timer or a request makes it
    /// ready.
    Off,
    /// In the ready queue.
    Ready,
    /// In the queue of a NIC port that was busy.
    Port,
    /// In no queue: the pacing timer will make it ready.
    Paced,
}

/// Queues of queue pairs. Each queue pair is in at most one, given by its [`SchedState`]. Numbers of destroyed queue pairs
/// may linger; they are skipped when they come up.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Scheduler {
    /// Bit i is set if a queue pair waits for port i.
    waiting: u64,
    /// Number of ready queue pairs, and the first of them. Mostly it is the only one, so that the queue of the others
    /// is seldom touched.
    ready: u32,
    first: QpNum,
    queues: Box<Queues>,
}

/// Queues, kept apart from the fields that every packet touches.
#[derive(Debug)]
struct Queues {
    rest: VecDeque<QpNum>,
    ports: Vec<VecDeque<QpNum>>,
    /// Queue pairs that can use any of several ports, with the set of these ports.
    several: VecDeque<(QpNum, u64)>,
    /// True if the last queue pair that `next_waiting` took came from `several`.
    several_last: bool,
}

impl Scheduler {
    pub(crate) fn new(ports: u8) -> Self {
        Scheduler {
            waiting: 0,
            ready: 0,
            first: QpNum(0),
            queues: Box::new(Queues {
                rest: VecDeque::new(),
                ports: (0..ports).map(|_| VecDeque::new()).collect(),
                several: VecDeque::new(),
                several_last: false,
            }),
        }
    }

    /// Appends a queue pair to the ready queue.
    #[inline]
    pub(crate) fn ready(&mut self, turn: &mut SchedState, qp: QpNum) {
        *turn = SchedState::Ready;
        if self.ready == 0 {
            self.first = qp;
        } else {
            self.queues.rest.push_back(qp);
        }
        self.ready += 1;
    }

    /// Appends a queue pair to the queue of a port, or, if `ports` has several bits, to the queue for any of them.
    pub(crate) fn wait_for(&mut self, turn: &mut SchedState, qp: QpNum, ports: u64) {
        *turn = SchedState::Port;
        if ports.is_power_of_two() {
            self.queues.ports[ports.trailing_zeros() as usize].push_back(qp);
        } else {
            self.queues.several.push_back((qp, ports));
        }
        self.waiting |= ports;
    }

    /// Removes and returns a queue pair that waits for one of the ports in `open`; there must be one. Queue pairs
    /// that wait for a single port and those that wait for any of several take turns.
    #[inline(never)]
    fn next_waiting(&mut self, open: u64) -> Option<QpNum> {
        let Queues { ports, several, several_last, .. } = &mut *self.queues;
        let place = several.iter().position(|(_, any)| any & open != 0);
        let lone = (0..ports.len()).find(|port| open >> port & 1 == 1 && !ports[*port].is_empty());
        let qp = match (lone, place) {
            (Some(port), place) if place.is_none() || *several_last => {
                *several_last = false;
                ports[port].pop_front()
            }
            (_, place) => {
                *several_last = true;
                place.and_then(|place| several.remove(place)).map(|(qp, _)| qp)
            }
        };
        let lone = ports.iter().enumerate().filter(|(_, queue)| !queue.is_empty());
        let mut waiting = lone.fold(0, |bits, (port, _)| bits | 1 << port);
        for (_, any) in several.iter() {
            waiting |= any;
            // Mostly the first one waits for all ports.
            if waiting.count_ones() as usize == ports.len() {
                break;
            }
        }
        self.waiting = waiting;
        qp
    }

    /// Empties the queues of all ports, after a change of ports. The caller must make the returned queue pairs ready.
    pub(crate) fn take_waiting(&mut self) -> Vec<QpNum> {
        self.waiting = 0;
        let Queues { ports, several, .. } = &mut *self.queues;
        let lone = ports.iter_mut().flat_map(|queue| queue.drain(..));
        lone.chain(several.drain(..).map(|(qp, _)| qp)).collect()
    }

    /// Removes and returns the next queue pair. Those that waited for a port which is now open come first, because
    /// they have already been through the ready queue.
    #[inline]
    pub(crate) fn next(&mut self, gate: FreePorts) -> Option<QpNum> {
        let open = self.waiting & gate.data_ports;
        if open != 0 {
            return self.next_waiting(open);
        }
        self.ready = self.ready.checked_sub(1)?;
        let qp = self.first;
        if self.ready > 0 {
            self.first = self.queues.rest.pop_front().expect("all that are ready but the first");
        }
        Some(qp)
    }

    /// Next queue pair if all ports are open.
    #[inline]
    pub(crate) fn peek(&self) -> Option<QpNum> {
        (self.ready > 0).then_some(self.first)
    }

    /// Returns true if any queue pair is in a queue.
    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        self.waiting != 0 || self.ready != 0
    }

    /// Number of entries of `qp` in the ready queue, and in the queues of ports.
    pub(crate) fn count(&self, qp: QpNum) -> (usize, usize) {
        let count = |queue: &VecDeque<QpNum>| queue.iter().filter(|&&other| other == qp).count();
        let first = usize::from(self.ready > 0 && self.first == qp);
        let several = self.queues.several.iter().filter(|(other, _)| *other == qp).count();
        (first + count(&self.queues.rest), self.queues.ports.iter().map(count).sum::<usize>() + several)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_queue_pairs_keep_their_order() {
        let (mut scheduler, mut turn) = (Scheduler::new(1), SchedState::Off);
        let take = |scheduler: &mut Scheduler| scheduler.next(FreePorts::CONTROL).map(|qp| qp.0);
        (2..5).for_each(|qp| scheduler.ready(&mut turn, QpNum(qp)));
        assert_eq!((scheduler.count(QpNum(2)), scheduler.count(QpNum(4))), ((1, 0), (1, 0)));
        assert_eq!([take(&mut scheduler), take(&mut scheduler)], [Some(2), Some(3)]);
        scheduler.ready(&mut turn, QpNum(9));
        assert_eq!([(); 3].map(|()| take(&mut scheduler)), [Some(4), Some(9), None]);
        assert!(!scheduler.has_ready());
    }

    #[test]
    fn waiters_for_several_ports_take_turns_with_waiters_for_one() {
        let (mut scheduler, mut turn) = (Scheduler::new(3), SchedState::Off);
        (2..4).for_each(|qp| scheduler.wait_for(&mut turn, QpNum(qp), 0b110));
        (4..6).for_each(|qp| scheduler.wait_for(&mut turn, QpNum(qp), 0b100));
        assert_eq!(scheduler.count(QpNum(3)), (0, 1));
        assert_eq!(scheduler.next(FreePorts::port(0)), None);
        let order: Vec<u32> =
            core::iter::from_fn(|| scheduler.next(FreePorts::port(2))).map(|qp| qp.0).collect();
        assert_eq!(order, [2, 4, 3, 5]);
        scheduler.wait_for(&mut turn, QpNum(2), 0b011);
        scheduler.wait_for(&mut turn, QpNum(3), 0b100);
        assert_eq!((scheduler.next(FreePorts::port(1)), scheduler.has_ready()), (Some(QpNum(2)), true));
        assert_eq!((scheduler.take_waiting(), scheduler.has_ready()), (alloc::vec![QpNum(3)], false));
    }

    #[test]
    fn waiters_for_a_port_come_first() {
        let (mut scheduler, mut turn) = (Scheduler::new(2), SchedState::Off);
        scheduler.ready(&mut turn, QpNum(2));
        scheduler.wait_for(&mut turn, QpNum(3), 0b10);
        assert_eq!(scheduler.next(FreePorts::port(0)), Some(QpNum(2)));
        assert_eq!(scheduler.next(FreePorts::port(0)), None);
        assert_eq!(scheduler.next(FreePorts::OPEN), Some(QpNum(3)));
        assert_eq!(scheduler.next(FreePorts::OPEN), None);
    }
}
