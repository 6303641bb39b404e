//! Keeps DPDK's control thread away from ports while frames go through them.
//!
//! The driver of shared memory (memif) takes memory away in that thread as soon as the other process goes, whoever may be reading
//! from it. Therefore the thread works only while nobody is inside: DPDK lets it call us between what else it does, and there it
//! rests until its next turn.

#![allow(unsafe_code, reason = "a call to DPDK; the block says why it is sound")]

use std::ffi::c_void;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};

use super::ffi;

/// The control thread rests so long between two turns.
const REST: Duration = Duration::from_millis(20);
/// And so long while a link is down: two processes that meet take some ten turns.
const SHORT_REST: Duration = Duration::from_millis(2);
/// A link that was found down is taken to be down for so long.
const DOWN_FOR: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
struct Gate {
    inside: Mutex<Inside>,
    changed: Condvar,
}

/// Who is inside.
#[derive(Debug)]
enum Inside {
    /// The control thread, or it is about to be.
    Control { waits_for: u32 },
    /// So many others.
    Frames(u32),
}

impl Default for Inside {
    /// It runs from the beginning.
    fn default() -> Self {
        Inside::Control { waits_for: 0 }
    }
}

static GATE: OnceLock<Gate> = OnceLock::new();
/// Numbers of descriptors that were closed, see [`occupy`].
static PLACES: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());
/// Descriptors a device closes, at most.
const MOST_CLOSED: usize = 16;
/// Until when a link is taken to be down.
static DOWN_UNTIL: Mutex<Option<Instant>> = Mutex::new(None);
static PACED: OnceLock<Result<(), i32>> = OnceLock::new();

/// The control thread stays outside as long as this lives.
#[derive(Debug)]
pub(super) struct Pass(&'static Gate);

/// Begins to pace the control thread. The error is DPDK's number.
pub(super) fn open() -> Result<(), i32> {
    // SAFETY: DPDK has been started, or there would be no port to open the gate for; the function lives as long as the process.
    *PACED.get_or_init(|| match unsafe { ffi::pathweave_dpdk_pace(rests) } {
        0 => Ok(()),
        why => Err(why),
    })
}

/// Waits until the control thread is outside; `None`: it is not paced. Who is inside must not enter once more.
pub(super) fn enter() -> Option<Pass> {
    PACED.get()?.ok()?;
    Some(GATE.get_or_init(Gate::default).enter())
}

/// A device has closed descriptors. The control thread may have been told of them before its rest, and after it would read from
/// others of the same numbers, without end: so nobody gets these numbers until it has had its turn.
pub(super) fn occupy() {
    // Where it is not paced it does not rest.
    if PACED.get().is_none_or(Result::is_err) {
        return;
    }
    let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
    places.extend((0..MOST_CLOSED).map_while(|_| eventfd(0, EventfdFlags::CLOEXEC).ok()));
}

/// A link is down: those that have something to tell about it wait less long.
pub(super) fn hurry() {
    *DOWN_UNTIL.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + DOWN_FOR);
}

fn rest() -> Duration {
    let until = *DOWN_UNTIL.lock().unwrap_or_else(PoisonError::into_inner);
    if until.is_some_and(|until| Instant::now() < until) { SHORT_REST } else { REST }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut inside = self.0.lock();
        match &mut *inside {
            Inside::Frames(count) => *count -= 1,
            Inside::Control { waits_for } => {
                *waits_for -= 1;
                if *waits_for == 0 {
                    self.0.changed.notify_all();
                }
            }
        }
    }
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&'static self) -> Pass {
        let mut inside = self.lock();
        loop {
            if let Inside::Frames(count) = &mut *inside {
                *count += 1;
                return Pass(self);
            }
            inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A rest of the control thread.
    fn rest(&self, rest: impl FnOnce()) {
        *self.lock() = Inside::Frames(0);
        self.changed.notify_all();
        rest();
        let mut inside = self.lock();
        let Inside::Frames(count) = *inside else { return };
        *inside = Inside::Control { waits_for: count };
        while !matches!(*inside, Inside::Control { waits_for: 0 }) {
            inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

extern "C" fn rests(_argument: *mut c_void) {
    PLACES.lock().unwrap_or_else(PoisonError::into_inner).clear();
    GATE.get_or_init(Gate::default).rest(|| std::thread::sleep(rest()));
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn the_control_thread_is_never_inside_with_others() {
        static GATE_OF_TEST: OnceLock<Gate> = OnceLock::new();
        let gate = GATE_OF_TEST.get_or_init(Gate::default);
        let (controls, frames, seen) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let pass = gate.enter();
                        frames.fetch_add(1, Ordering::SeqCst);
                        assert_eq!(controls.load(Ordering::SeqCst), 0);
                        std::hint::spin_loop();
                        frames.fetch_sub(1, Ordering::SeqCst);
                        drop(pass);
                    }
                    seen.fetch_add(1, Ordering::SeqCst);
                });
            }
            scope.spawn(|| {
                while seen.load(Ordering::SeqCst) < 2 {
                    controls.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(frames.load(Ordering::SeqCst), 0);
                    controls.fetch_sub(1, Ordering::SeqCst);
                    gate.rest(std::thread::yield_now);
                }
                *gate.lock() = Inside::Frames(0);
                gate.changed.notify_all();
            });
        });
    }
}
