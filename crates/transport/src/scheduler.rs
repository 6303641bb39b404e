//! Whose turn it is to send: round robin over the queue pairs that may have something.

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
/// linger and are skipped by whoever takes them out.
#[derive(Debug)]
pub(crate) struct Scheduler {
    ready: VecDeque<QpNum>,
    ports: Vec<VecDeque<QpNum>>,
    /// Bit i: somebody waits for port i.
    waiting: u64,
}

impl Scheduler {
    pub(crate) fn new(ports: u8) -> Self {
        Scheduler { ready: VecDeque::new(), ports: (0..ports).map(|_| VecDeque::new()).collect(), waiting: 0 }
    }

    /// To the end of the ready queue.
    #[inline]
    pub(crate) fn ready(&mut self, turn: &mut Turn, qp: QpNum) {
        *turn = Turn::Ready;
        self.ready.push_back(qp);
    }

    /// To the end of a port's queue.
    pub(crate) fn wait_for(&mut self, turn: &mut Turn, qp: QpNum, port: u8) {
        *turn = Turn::Port;
        self.ports[usize::from(port)].push_back(qp);
        self.waiting |= 1 << port;
    }

    /// Takes out the next queue pair. Those that waited for a port which is now open come first: they have been
    /// through the ready queue.
    #[inline]
    pub(crate) fn next(&mut self, gate: Gate) -> Option<QpNum> {
        let open = self.waiting & gate.data_ports;
        if open != 0 {
            let port = open.trailing_zeros() as usize;
            let queue = &mut self.ports[port];
            let qp = queue.pop_front();
            if queue.is_empty() {
                self.waiting &= !(1 << port);
            }
            return qp;
        }
        self.ready.pop_front()
    }

    /// The queue pair that is next if all ports are open.
    #[inline]
    pub(crate) fn peek(&self) -> Option<QpNum> {
        self.ready.front().copied()
    }

    /// Whether any queue pair is in a queue.
    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        self.waiting != 0 || !self.ready.is_empty()
    }

    /// How often `qp` is in the ready queue and in the queues of ports.
    pub(crate) fn count(&self, qp: QpNum) -> (usize, usize) {
        let count = |queue: &VecDeque<QpNum>| queue.iter().filter(|&&other| other == qp).count();
        (count(&self.ready), self.ports.iter().map(count).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
