//! Waiting for a queue or a counter: threads that sleep in a call, and a file descriptor for applications
//! that poll.
//!
//! The descriptor becomes readable once an event occurs after it was armed. Arming and events happen under
//! the lock of the queue or counter, so no event between them is missed.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pathweave_datapath::Device;
use rustix::event::{EventfdFlags, eventfd};

use super::lock;
use crate::abi::eq::*;
use crate::abi::errno::{FI_EINVAL, FI_ENOMEM, FI_ENOSYS};
use crate::guard::{Errno, FiResult, refused};

/// Wait object of a queue or counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    /// Waiting by descriptor is not possible.
    None,
    /// The provider chooses.
    Unspecified,
    /// A file descriptor.
    Descriptor,
}

impl Object {
    /// Converts the attribute of a queue or counter.
    ///
    /// # Errors
    ///
    /// Returns FI_ENOSYS for kinds that the provider does not support, and FI_EINVAL for unknown ones.
    pub(crate) fn of(wait_obj: u32) -> FiResult<Self> {
        match wait_obj {
            FI_WAIT_NONE => Ok(Object::None),
            FI_WAIT_UNSPEC | FI_WAIT_YIELD => Ok(Object::Unspecified),
            FI_WAIT_FD => Ok(Object::Descriptor),
            FI_WAIT_SET | FI_WAIT_MUTEX_COND | FI_WAIT_POLLFD => {
                Err(refused(FI_ENOSYS, format_args!("wait object {wait_obj} is not offered")))
            }
            _ => Err(refused(FI_EINVAL, format_args!("there is no wait object {wait_obj}"))),
        }
    }

    /// Returns the value in C.
    pub(crate) fn number(self) -> u32 {
        match self {
            Object::None => FI_WAIT_NONE,
            Object::Unspecified => FI_WAIT_UNSPEC,
            Object::Descriptor => FI_WAIT_FD,
        }
    }
}

/// Waiters to notify of the next event. Guarded by the lock of the queue or counter.
#[derive(Debug, Default)]
pub(crate) struct Arming {
    /// True if the descriptor is armed.
    armed: bool,
    pub(super) sleepers: usize,
    /// Thread that sleeps at a device.
    away: Option<Away>,
    /// True if `signal` was called while no thread slept. Then the next sleep ends at once.
    signalled: bool,
}

impl Arming {
    /// Returns true, once, if a signal has ended no sleep.
    pub(crate) fn take_signal(&mut self) -> bool {
        std::mem::take(&mut self.signalled)
    }
}

/// A thread that sleeps at a device.
#[derive(Debug)]
struct Away {
    thread: ThreadId,
    device: Device,
}

/// Waiting state outside of the lock.
#[derive(Debug)]
pub(crate) struct Waiting {
    object: Object,
    pub(super) descriptor: Option<OwnedFd>,
    condition: Condvar,
    /// Number of calls of `signal`.
    signals: AtomicU64,
    /// Number of changes after which another place to sleep may be better.
    changes: AtomicU64,
}

/// Reason for the end of a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// An event may have occurred.
    Perhaps,
    /// `signal` was called.
    Signalled,
    /// The deadline has passed.
    TooLate,
}

impl Waiting {
    /// Makes the waiting state.
    ///
    /// # Errors
    ///
    /// Returns FI_ENOMEM if no file descriptor is available.
    pub(crate) fn new(object: Object) -> FiResult<Self> {
        let descriptor = match object {
            Object::None => None,
            Object::Unspecified | Object::Descriptor => {
                let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
                Some(made.map_err(|_| Errno(FI_ENOMEM))?)
            }
        };
        let (signals, changes) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Waiting { object, descriptor, condition: Condvar::new(), signals, changes })
    }

    pub(crate) fn object(&self) -> Object {
        self.object
    }

    /// Returns the number of the descriptor, for `FI_GETWAIT`.
    ///
    /// # Errors
    ///
    /// Returns FI_ENOSYS if there is no descriptor.
    pub(crate) fn descriptor(&self) -> FiResult<i32> {
        self.descriptor
            .as_ref()
            .map(AsRawFd::as_raw_fd)
            .ok_or_else(|| refused(FI_ENOSYS, "this object was opened without a descriptor (FI_WAIT_FD)"))
    }

    /// Arms the descriptor: it is not readable until the next event.
    pub(crate) fn arm(&self, arming: &mut Arming) {
        if let Some(descriptor) = &self.descriptor {
            let mut count = [0; 8];
            let _ = rustix::io::read(descriptor.as_fd(), &mut count);
            arming.armed = true;
        }
    }

    /// Notifies all waiters of an event.
    pub(crate) fn notify(&self, arming: &mut Arming) {
        if arming.armed {
            arming.armed = false;
            if let Some(descriptor) = &self.descriptor {
                let _ = rustix::io::write(descriptor.as_fd(), &1u64.to_ne_bytes());
            }
        }
        if arming.sleepers > 0 {
            self.condition.notify_all();
        }
        // A thread that caused the event itself is awake.
        if let Some(away) = &arming.away
            && away.thread != thread::current().id()
        {
            away.device.rouse();
        }
    }

    /// Ends the sleep of all sleeping threads. If none sleeps, it ends the next sleep, because a thread may
    /// be just about to sleep.
    pub(crate) fn signal(&self, arming: &mut Arming) {
        self.signals.fetch_add(1, Ordering::Relaxed);
        arming.signalled = arming.sleepers == 0 && arming.away.is_none();
        self.notify(arming);
    }

    /// Keeps a signal for the next sleep, because it has ended a sleep that it was not meant for.
    pub(crate) fn signal_again(&self, arming: &mut Arming) {
        arming.signalled = true;
    }

    /// Makes a thread that sleeps at a device look for another place to sleep.
    pub(crate) fn recheck_sleep_place(&self, arming: &mut Arming) {
        self.changes.fetch_add(1, Ordering::Relaxed);
        self.notify(arming);
    }

    /// Sleeps at `device` and drives it until an event occurs, which `is_there` detects without a lock.
    /// Sleeps at most until `deadline`, and no longer than `nap`. Returns `None` if the device cannot be
    /// used, or if another thread sleeps there.
    pub(crate) fn sleep_at<T: AsMut<Arming>>(
        &self,
        device: &Device,
        guarded: &Mutex<T>,
        is_there: impl Fn() -> bool,
        deadline: Option<Instant>,
        nap: Duration,
    ) -> Option<Woken> {
        let left = left(deadline, nap);
        if left.is_zero() {
            return Some(Woken::TooLate);
        }
        let count = || (self.signals.load(Ordering::Relaxed), self.changes.load(Ordering::Relaxed));
        let before = {
            let mut held = lock(guarded);
            let arming = (*held).as_mut();
            if arming.take_signal() {
                return Some(Woken::Signalled);
            }
            if arming.away.is_some() {
                return None;
            }
            arming.away = Some(Away { thread: thread::current().id(), device: device.clone() });
            count()
        };
        // Events before the sleep was published are detected by the first check. Later events end the sleep.
        let waited = device.wait_until(left, || (is_there() || count() != before).then_some(()));
        (*lock(guarded)).as_mut().away = None;
        waited.ok().map(|_| self.since(before.0))
    }

    /// Returns the reason for a wake-up, given the number of signals before the sleep.
    fn since(&self, signals: u64) -> Woken {
        if self.signals.load(Ordering::Relaxed) == signals { Woken::Perhaps } else { Woken::Signalled }
    }

    /// Sleeps until an event occurs, at most until `deadline`, and no longer than `nap`.
    pub(crate) fn sleep<'a, T: AsMut<Arming>>(
        &self,
        mut held: MutexGuard<'a, T>,
        deadline: Option<Instant>,
        nap: Duration,
    ) -> (MutexGuard<'a, T>, Woken) {
        if (*held).as_mut().take_signal() {
            return (held, Woken::Signalled);
        }
        let left = left(deadline, nap);
        if left.is_zero() {
            return (held, Woken::TooLate);
        }
        let signals = self.signals.load(Ordering::Relaxed);
        (*held).as_mut().sleepers += 1;
        let (mut held, _) = self.condition.wait_timeout(held, left).unwrap_or_else(PoisonError::into_inner);
        let arming = (*held).as_mut();
        arming.sleepers -= 1;
        let woken = self.since(signals);
        (held, woken)
    }
}

/// Returns the time to sleep: until the deadline, at most `nap`.
fn left(deadline: Option<Instant>, nap: Duration) -> Duration {
    deadline.map_or(nap, |deadline| deadline.saturating_duration_since(Instant::now()).min(nap))
}

/// Returns the deadline of a timeout in milliseconds; `None` if the timeout is negative.
pub(crate) fn deadline(timeout_ms: i32) -> Option<Instant> {
    let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis)?;
    Instant::now().checked_add(timeout)
}
