//! Waiting for a queue or a counter: threads that sleep in a call, and a file descriptor for those that poll.
//!
//! The descriptor is readable once something has come since it was armed. Arming and coming happen under the lock of what
//! is waited for, so that nothing comes unnoticed in between.

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
use crate::guard::{Answer, Errno, refused};

/// How a queue may be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    /// Not by descriptor.
    None,
    /// However we like.
    Unspecified,
    /// By descriptor.
    Descriptor,
}

impl Object {
    /// From an attribute.
    ///
    /// # Errors
    /// FI_ENOSYS for kinds that we do not have.
    pub(crate) fn of(wait_obj: u32) -> Answer<Self> {
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

    /// As C has it.
    pub(crate) fn number(self) -> u32 {
        match self {
            Object::None => FI_WAIT_NONE,
            Object::Unspecified => FI_WAIT_UNSPEC,
            Object::Descriptor => FI_WAIT_FD,
        }
    }
}

/// Who is to be told of the next that comes. Belongs under the lock.
#[derive(Debug, Default)]
pub(crate) struct Arming {
    /// Those who poll the descriptor.
    armed: bool,
    pub(super) sleepers: usize,
    /// Who sleeps at a device.
    away: Option<Away>,
    /// `signal` was called while nobody slept: the next sleep ends at once.
    signalled: bool,
}

impl Arming {
    /// Whether a signal has come that ended no sleep. It is told once.
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

/// What stands beside the lock.
#[derive(Debug)]
pub(crate) struct Waiting {
    object: Object,
    pub(super) descriptor: Option<OwnedFd>,
    condition: Condvar,
    /// Grows with each call of `signal`.
    signals: AtomicU64,
    /// Grows when there may be another place to sleep at.
    changes: AtomicU64,
}

/// Why sleeping ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Something may have come.
    Perhaps,
    /// `signal` was called.
    Signalled,
    /// The time is over.
    TooLate,
}

impl Waiting {
    /// # Errors
    /// FI_ENOMEM without a descriptor.
    pub(crate) fn new(object: Object) -> Answer<Self> {
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

    /// The descriptor's number, for `FI_GETWAIT`.
    ///
    /// # Errors
    /// FI_ENOSYS where there is none.
    pub(crate) fn descriptor(&self) -> Answer<i32> {
        self.descriptor
            .as_ref()
            .map(AsRawFd::as_raw_fd)
            .ok_or_else(|| refused(FI_ENOSYS, "what was opened without a descriptor is asked for it"))
    }

    /// The next that comes makes the descriptor readable; until then it is not.
    pub(crate) fn arm(&self, arming: &mut Arming) {
        if let Some(descriptor) = &self.descriptor {
            let mut count = [0; 8];
            let _ = rustix::io::read(descriptor.as_fd(), &mut count);
            arming.armed = true;
        }
    }

    /// Something has come.
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
        // Who brings himself something is awake.
        if let Some(away) = &arming.away
            && away.thread != thread::current().id()
        {
            away.device.rouse();
        }
    }

    /// Ends the sleep of all that sleep now; if nobody does, the next sleep, for who is about to sleep cannot be told from who is not.
    pub(crate) fn signal(&self, arming: &mut Arming) {
        self.signals.fetch_add(1, Ordering::Relaxed);
        arming.signalled = arming.sleepers == 0 && arming.away.is_none();
        self.notify(arming);
    }

    /// A signal has ended a sleep that it was not meant for: it ends the next.
    pub(crate) fn signal_again(&self, arming: &mut Arming) {
        arming.signalled = true;
    }

    /// Who sleeps at a device is to look for another place.
    pub(crate) fn move_on(&self, arming: &mut Arming) {
        self.changes.fetch_add(1, Ordering::Relaxed);
        self.notify(arming);
    }

    /// Sleeps at `device`, looking after it, until something comes, of which `is_there` tells without a lock; at most until
    /// `deadline`, and no longer than `nap`. `None`: that is no place to sleep at, or another thread sleeps there.
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
        // What came before others knew of this sleep is seen now, and what comes later ends it.
        let waited = device.wait_until(left, || (is_there() || count() != before).then_some(()));
        (*lock(guarded)).as_mut().away = None;
        waited.ok().map(|_| self.since(before.0))
    }

    /// What has happened since there were so many signals.
    fn since(&self, signals: u64) -> Woken {
        if self.signals.load(Ordering::Relaxed) == signals { Woken::Perhaps } else { Woken::Signalled }
    }

    /// Sleeps until something comes; at most until `deadline`, and no longer than `nap`.
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

/// How long to sleep: until the deadline, at most for `nap`.
fn left(deadline: Option<Instant>, nap: Duration) -> Duration {
    deadline.map_or(nap, |deadline| deadline.saturating_duration_since(Instant::now()).min(nap))
}

/// The deadline of a timeout in milliseconds; negative: none.
pub(crate) fn deadline(timeout_ms: i32) -> Option<Instant> {
    let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis)?;
    Instant::now().checked_add(timeout)
}
