//! Event queues, which carry everything except data transfers. The provider has one kind of event, inserted
//! addresses. Events that an application writes are returned unchanged.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::lock;
use super::uses::Uses;
use super::wait::{Arming, Object, Waiting, Woken};
use crate::abi::errno::{FI_EAGAIN, FI_EAVAIL, FI_ETOOSMALL};
use crate::guard::{Errno, FiResult};

/// Largest number of stored events. Beyond it, writing fails.
pub(crate) const MOST_EVENTS: usize = 65_536;

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// An event to read: its kind, and its bytes in C's layout.
    Read { kind: u32, bytes: Vec<u8> },
    /// An error.
    Failed(Failed),
}

/// An error of an event queue. Pointers are stored as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) fid: usize,
    pub(crate) context: usize,
    pub(crate) data: u64,
    pub(crate) errno: i32,
}

/// Mode of a read: remove the event, or leave it in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Take,
    Peek,
}

struct State {
    events: VecDeque<Event>,
    arming: Arming,
}

impl AsMut<Arming> for State {
    fn as_mut(&mut self) -> &mut Arming {
        &mut self.arming
    }
}

/// An event queue.
pub(crate) struct EventQueue {
    pub(crate) uses: Uses,
    waiting: Waiting,
    state: Mutex<State>,
}

impl EventQueue {
    /// Makes an event queue.
    ///
    /// # Errors
    ///
    /// Returns FI_ENOMEM if no file descriptor is available.
    pub(crate) fn new(object: Object) -> FiResult<Self> {
        let state = State { events: VecDeque::new(), arming: Arming::default() };
        Ok(EventQueue { uses: Uses::default(), waiting: Waiting::new(object)?, state: Mutex::new(state) })
    }

    pub(crate) fn waiting(&self) -> &Waiting {
        &self.waiting
    }

    /// Adds an event.
    ///
    /// # Errors
    ///
    /// Returns FI_EAGAIN if the queue is full.
    pub(crate) fn push(&self, event: Event) -> FiResult {
        let mut state = lock(&self.state);
        if state.events.len() >= MOST_EVENTS {
            return Err(Errno(FI_EAGAIN));
        }
        state.events.push_back(event);
        self.waiting.notify(&mut state.arming);
        Ok(())
    }

    /// Returns the next event, whose bytes must fit into `room`.
    ///
    /// # Errors
    ///
    /// Returns FI_EAGAIN without an event, FI_EAVAIL if it is an error, and FI_ETOOSMALL if it does not fit.
    pub(crate) fn read(&self, room: usize, look: Look) -> FiResult<(u32, Vec<u8>)> {
        let mut state = lock(&self.state);
        let (kind, bytes) = match state.events.front() {
            None => return Err(Errno(FI_EAGAIN)),
            Some(Event::Failed(_)) => return Err(Errno(FI_EAVAIL)),
            Some(Event::Read { bytes, .. }) if bytes.len() > room => return Err(Errno(FI_ETOOSMALL)),
            Some(Event::Read { kind, bytes }) => (*kind, bytes.clone()),
        };
        if look == Look::Take {
            state.events.pop_front();
        }
        Ok((kind, bytes))
    }

    /// Works as [`read`](EventQueue::read), but sleeps until there is an event.
    ///
    /// # Errors
    ///
    /// Returns the errors of `read`, and FI_EAGAIN after the timeout.
    pub(crate) fn read_waiting(
        &self,
        room: usize,
        look: Look,
        deadline: Option<Instant>,
    ) -> FiResult<(u32, Vec<u8>)> {
        loop {
            match self.read(room, look) {
                Err(Errno(FI_EAGAIN)) => {}
                other => return other,
            }
            let state = lock(&self.state);
            if !state.events.is_empty() {
                continue;
            }
            if let (_, Woken::TooLate | Woken::Signalled) =
                self.waiting.sleep(state, deadline, Duration::from_secs(1))
            {
                return Err(Errno(FI_EAGAIN));
            }
        }
    }

    /// Returns the next event, if it is an error.
    ///
    /// # Errors
    ///
    /// Returns FI_EAGAIN if it is not an error.
    pub(crate) fn read_error(&self, look: Look) -> FiResult<Failed> {
        let mut state = lock(&self.state);
        let Some(&Event::Failed(failed)) = state.events.front() else { return Err(Errno(FI_EAGAIN)) };
        if look == Look::Take {
            state.events.pop_front();
        }
        Ok(failed)
    }

    /// Prepares for a wait on the descriptor.
    ///
    /// # Errors
    ///
    /// Returns FI_EAGAIN if there is an event.
    pub(crate) fn try_wait(&self) -> FiResult {
        let mut state = lock(&self.state);
        if !state.events.is_empty() {
            return Err(Errno(FI_EAGAIN));
        }
        self.waiting.arm(&mut state.arming);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_events_can_be_peeked_and_read() {
        let queue = EventQueue::new(Object::Unspecified).unwrap();
        assert_eq!(queue.read(64, Look::Take), Err(Errno(FI_EAGAIN)));
        queue.push(Event::Read { kind: 7, bytes: vec![1, 2, 3] }).unwrap();
        assert_eq!(queue.read(2, Look::Take), Err(Errno(FI_ETOOSMALL)));
        assert_eq!(queue.read(3, Look::Peek), Ok((7, vec![1, 2, 3])));
        assert_eq!(queue.read(3, Look::Take), Ok((7, vec![1, 2, 3])));
        let failed = Failed { fid: 1, context: 2, data: 3, errno: 22 };
        queue.push(Event::Failed(failed)).unwrap();
        assert_eq!(queue.read(64, Look::Take), Err(Errno(FI_EAVAIL)));
        assert_eq!(queue.read_error(Look::Take), Ok(failed));
        assert_eq!(queue.read_error(Look::Take), Err(Errno(FI_EAGAIN)));
        (0..MOST_EVENTS).for_each(|_| queue.push(Event::Failed(failed)).unwrap());
        assert_eq!(queue.push(Event::Failed(failed)), Err(Errno(FI_EAGAIN)));
    }
}
