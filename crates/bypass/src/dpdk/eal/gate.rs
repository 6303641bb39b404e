//! Mutual exclusion between DPDK's control thread and the threads that move frames.
//!
//! The driver of shared memory (memif) unmaps memory in the control thread as soon as the peer process exits, even
//! while other threads read from it. Therefore the control thread works only while no other thread is inside the
//! gate. Between two rounds of its work DPDK calls a function of ours, in which the thread rests until its next
//! round.

#![allow(unsafe_code, reason = "a call to DPDK; the block says why it is sound")]

use std::ffi::c_void;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};

use super::ffi;

/// Time that the control thread rests between two rounds.
const REST: Duration = Duration::from_millis(20);
/// Rest while a link is down. Two processes need about ten rounds to connect.
const SHORT_REST: Duration = Duration::from_millis(2);
/// Time for which a link counts as down after it was found down.
const DOWN_FOR: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
struct Gate {
    inside: Mutex<GateState>,
    changed: Condvar,
}

/// Threads inside the gate.
#[derive(Debug)]
enum GateState {
    /// The control thread is inside, or waits for this number of other threads to leave.
    Control { waits_for: u32 },
    /// Number of other threads inside.
    Frames(u32),
}

impl Default for GateState {
    /// The control thread runs from the start.
    fn default() -> Self {
        GateState::Control { waits_for: 0 }
    }
}

static GATE: OnceLock<Gate> = OnceLock::new();
/// Descriptors that occupy the numbers of closed ones, see [`occupy`].
static OCCUPIED_DESCRIPTORS: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());
/// Largest number of descriptors that a device closes.
const MOST_CLOSED: usize = 16;
/// Time until which a link counts as down.
static DOWN_UNTIL: Mutex<Option<Instant>> = Mutex::new(None);
static PACED: OnceLock<Result<(), i32>> = OnceLock::new();

/// Keeps the control thread outside the gate while it lives.
#[derive(Debug)]
pub(super) struct GateGuard(&'static Gate);

/// Starts to pace the control thread. The error is DPDK's error number.
pub(super) fn open() -> Result<(), i32> {
    // SAFETY: DPDK has been started, because a port exists that needs the gate. The function lives as long as the
    // process.
    *PACED.get_or_init(|| match unsafe { ffi::pathweave_dpdk_pace(rests) } {
        0 => Ok(()),
        why => Err(why),
    })
}

/// Waits until the control thread is outside. Returns `None` if it is not paced. A thread inside must not enter
/// again.
pub(super) fn enter() -> Option<GateGuard> {
    PACED.get()?.ok()?;
    Some(GATE.get_or_init(Gate::default).enter())
}

/// Occupies the numbers of descriptors that a device has closed, until the control thread has run. The control thread
/// may have been notified about them before its rest. After it, it would read without end from other descriptors that
/// reuse the numbers.
pub(super) fn occupy_closed_descriptors() {
    // Without pacing the control thread does not rest.
    if PACED.get().is_none_or(Result::is_err) {
        return;
    }
    let mut places = OCCUPIED_DESCRIPTORS.lock().unwrap_or_else(PoisonError::into_inner);
    places.extend((0..MOST_CLOSED).map_while(|_| eventfd(0, EventfdFlags::CLOEXEC).ok()));
}

/// Shortens the rests of the control thread while a link is down, so that connections are set up faster.
pub(super) fn shorten_rests() {
    *DOWN_UNTIL.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + DOWN_FOR);
}

fn rest() -> Duration {
    let until = *DOWN_UNTIL.lock().unwrap_or_else(PoisonError::into_inner);
    if until.is_some_and(|until| Instant::now() < until) { SHORT_REST } else { REST }
}

impl Drop for GateGuard {
    fn drop(&mut self) {
        let mut inside = self.0.lock();
        match &mut *inside {
            GateState::Frames(count) => *count -= 1,
            GateState::Control { waits_for } => {
                *waits_for -= 1;
                if *waits_for == 0 {
                    self.0.changed.notify_all();
                }
            }
        }
    }
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&'static self) -> GateGuard {
        let mut inside = self.lock();
        loop {
            if let GateState::Frames(count) = &mut *inside {
                *count += 1;
                return GateGuard(self);
            }
            inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Rests the control thread: lets other threads in, and waits until they have left.
    fn rest(&self, rest: impl FnOnce()) {
        *self.lock() = GateState::Frames(0);
        self.changed.notify_all();
        rest();
        let mut inside = self.lock();
        let GateState::Frames(count) = *inside else { return };
        *inside = GateState::Control { waits_for: count };
        while !matches!(*inside, GateState::Control { waits_for: 0 }) {
            inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

extern "C" fn rests(_argument: *mut c_void) {
    OCCUPIED_DESCRIPTORS.lock().unwrap_or_else(PoisonError::into_inner).clear();
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
                *gate.lock() = GateState::Frames(0);
                gate.changed.notify_all();
            });
        });
    }
}
