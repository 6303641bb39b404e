//! The thread that drives the loop while no caller does.
//!
//! The owner of the loop's lock drives the loop. Callers only ever try the lock. Every [`LULL`] the thread checks
//! whether any caller has driven the loop, by a counter that callers write under the lock. If none has, it takes the
//! lock and sleeps in the loop, where arrivals wake it. A caller that finds the thread there several times in a row
//! wants the loop back, and the thread leaves at once. A caller that itself sleeps in the loop is no lull: the thread
//! then sleeps until that caller leaves. Callers that sleep only briefly count as polling.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::driver::{self, CLOSED, Turns, guarded};
use crate::error::OpenError;
use crate::event_loop::Until;
use crate::shared::{Shared, lock};

/// Time without a caller in the loop after which the thread takes it over.
const LULL: Duration = Duration::from_micros(500);
/// The same time while callers take naps. Other threads then need their cores, and a caller that is absent has most
/// likely lost its core to them. Taking the loop over and giving it back would cost more than that caller's turn.
const LULL_IN_A_CROWD: Duration = Duration::from_millis(8);
/// Longest sleep of a polling caller that counts as a nap.
const LONGEST_NAP: Duration = Duration::from_millis(1);
/// Number of calls that find the thread in the loop before it leaves. A caller that polls only occasionally leaves it
/// there.
const CALLS_TO_TAKE_OVER: u32 = 8;

/// The callers' handle of the thread.
pub(crate) struct Standby {
    relief: Arc<SharedState>,
    handle: Mutex<Option<JoinHandle<()>>>,
}

/// State shared by the callers and the thread.
#[derive(Default)]
struct SharedState {
    /// True while the thread has the loop.
    on_duty: AtomicBool,
    /// True if a caller wants it.
    wanted: AtomicBool,
    /// Number of calls that have found the thread in the loop.
    in_vain: AtomicU32,
    watch: Mutex<Watch>,
    bell: Condvar,
}

#[derive(Default)]
struct Watch {
    /// True if the thread is to take the loop without waiting for a lull.
    is_due: bool,
    stopping: bool,
    /// Number of callers that sleep in the loop.
    sleepers: usize,
    /// Number of naps of callers, at present and at the thread's last check.
    naps: u64,
    naps_seen: u64,
    /// True while the thread sleeps until one of them leaves.
    waits_for_sleepers: bool,
}

/// Guard that marks a caller as sleeping in the loop.
pub(super) struct Asleep<'a>(&'a SharedState);

impl Standby {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(super) fn start<C: Send + 'static, H: Send + 'static>(
        turns: &Arc<Turns>,
        shared: &Arc<Shared<C, H>>,
        local: SocketAddr,
    ) -> Result<Self, OpenError> {
        let relief: Arc<SharedState> = Arc::default();
        let (turns, shared, own) = (turns.clone(), shared.clone(), relief.clone());
        let body = move || own.run(&turns, &shared);
        let handle = driver::spawn(body, local, None)?;
        Ok(Standby { relief, handle: Mutex::new(Some(handle)) })
    }

    /// Records that a polling caller has found another thread in the loop.
    #[inline]
    pub(super) fn missed<C, H>(&self, shared: &Shared<C, H>) {
        let relief = &*self.relief;
        if relief.on_duty.load(Ordering::Relaxed)
            && relief.in_vain.fetch_add(1, Ordering::Relaxed) + 1 >= CALLS_TO_TAKE_OVER
        {
            self.want(shared);
        }
    }

    /// Requests the loop for a caller, if the thread has it.
    #[cold]
    pub(super) fn want<C, H>(&self, shared: &Shared<C, H>) {
        let relief = &*self.relief;
        if relief.on_duty.load(Ordering::Acquire) && !relief.wanted.swap(true, Ordering::AcqRel) {
            shared.interrupt();
        }
    }

    /// Marks the caller as sleeping in the loop until the guard is dropped, at most until the deadline.
    pub(super) fn asleep(&self, deadline: Option<Instant>) -> Asleep<'_> {
        let naps = deadline
            .is_some_and(|deadline| deadline.saturating_duration_since(Instant::now()) <= LONGEST_NAP);
        let mut watch = lock(&self.relief.watch);
        watch.sleepers += 1;
        watch.naps += u64::from(naps);
        drop(watch);
        Asleep(&self.relief)
    }

    /// Lets the thread take over, since a caller goes to sleep elsewhere.
    pub(super) fn rest(&self) {
        if !self.relief.on_duty.load(Ordering::Acquire) {
            self.relief.call(|watch| watch.is_due = true);
        }
    }

    /// Waits for the end of the loop, which a command has requested. Does not wait if the caller runs within the
    /// hook.
    pub(super) fn stop(&self, is_in_hook: bool) {
        self.relief.call(|watch| watch.stopping = true);
        let handle = lock(&self.handle).take();
        if let Some(handle) =
            handle.filter(|handle| !is_in_hook && handle.thread().id() != std::thread::current().id())
        {
            let _ = handle.join();
        }
    }
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        let mut watch = lock(&self.0.watch);
        watch.sleepers -= 1;
        if watch.waits_for_sleepers && watch.sleepers == 0 {
            self.0.bell.notify_one();
        }
    }
}

impl SharedState {
    /// Changes the shared state and wakes the thread.
    fn call(&self, what: impl FnOnce(&mut Watch)) {
        what(&mut lock(&self.watch));
        self.bell.notify_one();
    }

    /// Body of the thread.
    fn run<C, H>(&self, turns: &Turns, shared: &Shared<C, H>) {
        while !turns.has_ended() {
            let stopping = self.watch(turns);
            let engine = match turns.engine.try_lock() {
                Ok(engine) => Some(engine),
                // No handle is left, except for a caller that drops the last one within the hook and then leaves.
                Err(_) if stopping => Some(turns.engine.lock().unwrap_or_else(PoisonError::into_inner)),
                // A caller has the loop.
                Err(_) => None,
            };
            let Some(mut engine) = engine else { continue };
            self.wanted.store(false, Ordering::Relaxed);
            self.in_vain.store(0, Ordering::Relaxed);
            self.on_duty.store(true, Ordering::Release);
            while !turns.has_ended() && !self.wanted.load(Ordering::Acquire) {
                let turned = guarded(|| {
                    let turn = engine.turn()?;
                    if !turn.stopped {
                        engine.park(&turn, Until::Timer)?;
                    }
                    Ok(turn.stopped)
                });
                match turned {
                    Ok(false) => {}
                    Ok(true) => turns.end(&mut **engine, shared, CLOSED.into()),
                    Err(reason) => turns.end(&mut **engine, shared, reason),
                }
            }
            self.on_duty.store(false, Ordering::Release);
            drop(engine);
            // Threads that wait for the loop may take it now.
            shared.signal.notify();
        }
        shared.notify();
        let _ = shared.call_hook();
    }

    /// Waits until no caller drives the loop. Returns true if the thread is to end.
    fn watch(&self, turns: &Turns) -> bool {
        let mut watch = lock(&self.watch);
        loop {
            if watch.stopping || std::mem::take(&mut watch.is_due) {
                return watch.stopping;
            }
            let calls = turns.calls();
            // A caller that naps wakes up soon, and need not wake this thread when it does.
            let naps = watch.naps != watch.naps_seen;
            watch.naps_seen = watch.naps;
            watch.waits_for_sleepers = watch.sleepers > 0 && !naps;
            watch = if watch.waits_for_sleepers {
                self.bell.wait(watch).unwrap_or_else(PoisonError::into_inner)
            } else {
                let lull = if naps { LULL_IN_A_CROWD } else { LULL };
                self.bell.wait_timeout(watch, lull).unwrap_or_else(PoisonError::into_inner).0
            };
            let lull = !watch.waits_for_sleepers && watch.sleepers == 0 && turns.calls() == calls;
            watch.waits_for_sleepers = false;
            if lull {
                return watch.stopping;
            }
        }
    }
}
