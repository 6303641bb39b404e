//! Whose turn it is to send: round robin over the queue pairs that may have something.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use pathweave_units::QpNum;

use crate::transmit::Gate;

/// Where a queue pair stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// In no queue: nothing to send, or blocked until feedback, a timer or a request wakes it.
    Off,
    /// In the ready queue.
    Ready,
    /// In the queue of a NIC port that was busy.
    Port,
    /// The pacing timer will wake it.
    Paced,
}

/// Queues of queue pairs. A queue pair is in at most one, as its [`Turn`] says; numbers of destroyed ones may
/// linger and are skipped when they are taken out.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Scheduler {
    /// Bit i: a queue pair waits for port i.
    waiting: u64,
    /// How many are ready, and the first of them: mostly the only one, so that the queue of the rest is seldom
    /// looked at.
    ready: u32,
    first: QpNum,
    queues: Box<Queues>,
}

/// Apart, beside nothing that every packet touches.
#[derive(Debug)]
struct Queues {
    rest: VecDeque<QpNum>,
    ports: Vec<VecDeque<QpNum>>,
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
            }),
        }
    }

    /// To the end of the ready queue.
    #[inline]
    pub(crate) fn ready(&mut self, turn: &mut Turn, qp: QpNum) {
        *turn = Turn::Ready;
        if self.ready == 0 {
            self.first = qp;
        } else {
            self.queues.rest.push_back(qp);
        }
        self.ready += 1;
    }

    /// To the end of a port's queue.
    pub(crate) fn wait_for(&mut self, turn: &mut Turn, qp: QpNum, port: u8) {
        *turn = Turn::Port;
        self.queues.ports[usize::from(port)].push_back(qp);
        self.waiting |= 1 << port;
    }

    /// Takes out the next queue pair. Those that waited for a port which is now open come first: they have been
    /// through the ready queue.
    #[inline]
    pub(crate) fn next(&mut self, gate: Gate) -> Option<QpNum> {
        let open = self.waiting & gate.data_ports;
        if open != 0 {
            let port = open.trailing_zeros() as usize;
            let queue = &mut self.queues.ports[port];
            let qp = queue.pop_front();
            if queue.is_empty() {
                self.waiting &= !(1 << port);
            }
            return qp;
        }
        self.ready = self.ready.checked_sub(1)?;
        let qp = self.first;
        if self.ready > 0 {
            self.first = self.queues.rest.pop_front().expect("all that are ready but the first");
        }
        Some(qp)
    }

    /// The queue pair that is next if all ports are open.
    #[inline]
    pub(crate) fn peek(&self) -> Option<QpNum> {
        (self.ready > 0).then_some(self.first)
    }

    /// Whether any queue pair is in a queue.
    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        self.waiting != 0 || self.ready != 0
    }

    /// How often `qp` is in the ready queue and in the queues of ports.
    pub(crate) fn count(&self, qp: QpNum) -> (usize, usize) {
        let count = |queue: &VecDeque<QpNum>| queue.iter().filter(|&&other| other == qp).count();
        let first = usize::from(self.ready > 0 && self.first == qp);
        (first + count(&self.queues.rest), self.queues.ports.iter().map(count).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_are_ready_keep_their_order() {
        let (mut scheduler, mut turn) = (Scheduler::new(1), Turn::Off);
        let take = |scheduler: &mut Scheduler| scheduler.next(Gate::CONTROL).map(|qp| qp.0);
        (2..5).for_each(|qp| scheduler.ready(&mut turn, QpNum(qp)));
        assert_eq!((scheduler.count(QpNum(2)), scheduler.count(QpNum(4))), ((1, 0), (1, 0)));
        assert_eq!([take(&mut scheduler), take(&mut scheduler)], [Some(2), Some(3)]);
        scheduler.ready(&mut turn, QpNum(9));
        assert_eq!([(); 3].map(|()| take(&mut scheduler)), [Some(4), Some(9), None]);
        assert!(!scheduler.has_ready());
    }

    #[test]
    fn those_who_waited_for_a_port_come_first() {
        let (mut scheduler, mut turn) = (Scheduler::new(2), Turn::Off);
        scheduler.ready(&mut turn, QpNum(2));
        scheduler.wait_for(&mut turn, QpNum(3), 1);
        assert_eq!(scheduler.next(Gate::port(0)), Some(QpNum(2)));
        assert_eq!(scheduler.next(Gate::port(0)), None);
        assert_eq!(scheduler.next(Gate::OPEN), Some(QpNum(3)));
        assert_eq!(scheduler.next(Gate::OPEN), None);
    }
}
