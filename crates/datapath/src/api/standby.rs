//! The thread that turns the loop while no caller does.
//!
//! Callers and the thread take turns by the loop's lock: whoever has it, turns. Callers only ever try it. The thread looks after
//! each [`LULL`] whether any has called, which costs callers a counter that they write under the lock, and takes the lock when
//! none has; from then on it sleeps where packets arrive. A caller that finds it there a few times in a row wants the loop back,
//! and the thread leaves at once. Who sleeps where packets arrive, too, is no lull: then the thread sleeps until that caller
//! leaves. Callers that nap look in a loop, and count as such.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::driver::{self, CLOSED, Turns, guarded};
use crate::error::OpenError;
use crate::event_loop::Until;
use crate::shared::{Shared, lock};

/// How long no caller may have turned the loop before the thread does.
const LULL: Duration = Duration::from_micros(500);
/// The same where callers nap: others want their cores, and who has not called has most likely lost his to them. To take the loop from
/// him and to give it back costs more than his turn would.
const LULL_IN_A_CROWD: Duration = Duration::from_millis(8);
/// A sleep of no more than this, in a loop that looks, is a nap.
const LONGEST_NAP: Duration = Duration::from_millis(1);
/// Calls that find the thread at the loop before it leaves: who looks once in a while leaves it there.
const CALLS_TO_TAKE_OVER: u32 = 8;

/// The thread, as callers see it.
pub(crate) struct Standby {
    relief: Arc<Relief>,
    handle: Mutex<Option<JoinHandle<()>>>,
}

/// What callers and the thread agree by.
#[derive(Default)]
struct Relief {
    /// The thread has the loop.
    on_duty: AtomicBool,
    /// A caller wants it.
    wanted: AtomicBool,
    /// Calls that have found the thread at it.
    in_vain: AtomicU32,
    watch: Mutex<Watch>,
    bell: Condvar,
}

#[derive(Default)]
struct Watch {
    /// The thread is to take the loop without waiting for a lull.
    is_due: bool,
    stopping: bool,
    /// Callers that sleep where packets arrive.
    sleepers: usize,
    /// Naps of callers, now and when the thread looked last.
    naps: u64,
    naps_seen: u64,
    /// The thread sleeps until one of them leaves.
    waits_for_sleepers: bool,
}

/// While this is there, a caller sleeps where packets arrive.
pub(super) struct Asleep<'a>(&'a Relief);

impl Standby {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has none.
    pub(super) fn start<C: Send + 'static, H: Send + 'static>(
        turns: &Arc<Turns>,
        shared: &Arc<Shared<C, H>>,
        local: SocketAddr,
    ) -> Result<Self, OpenError> {
        let relief: Arc<Relief> = Arc::default();
        let (turns, shared, own) = (turns.clone(), shared.clone(), relief.clone());
        let body = move || own.run(&turns, &shared);
        let handle = driver::spawn(body, local, None)?;
        Ok(Standby { relief, handle: Mutex::new(Some(handle)) })
    }

    /// A caller that only looks has found somebody else at the loop.
    #[inline]
    pub(super) fn missed<C, H>(&self, shared: &Shared<C, H>) {
        let relief = &*self.relief;
        if relief.on_duty.load(Ordering::Relaxed)
            && relief.in_vain.fetch_add(1, Ordering::Relaxed) + 1 >= CALLS_TO_TAKE_OVER
        {
            self.want(shared);
        }
    }

    /// A caller wants the loop, if the thread has it.
    #[cold]
    pub(super) fn want<C, H>(&self, shared: &Shared<C, H>) {
        let relief = &*self.relief;
        if relief.on_duty.load(Ordering::Acquire) && !relief.wanted.swap(true, Ordering::AcqRel) {
            shared.rouse();
        }
    }

    /// From now on until this is dropped the caller sleeps with the loop, at most until the deadline.
    pub(super) fn asleep(&self, deadline: Option<Instant>) -> Asleep<'_> {
        let naps = deadline
            .is_some_and(|deadline| deadline.saturating_duration_since(Instant::now()) <= LONGEST_NAP);
        let mut watch = lock(&self.relief.watch);
        watch.sleepers += 1;
        watch.naps += u64::from(naps);
        drop(watch);
        Asleep(&self.relief)
    }

    /// A caller goes to sleep elsewhere: the thread takes over.
    pub(super) fn rest(&self) {
        if !self.relief.on_duty.load(Ordering::Acquire) {
            self.relief.call(|watch| watch.is_due = true);
        }
    }

    /// The loop is to end, as it was told by a command; waits until it has, unless the caller is within the hook.
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

impl Relief {
    /// Tells the thread something.
    fn call(&self, what: impl FnOnce(&mut Watch)) {
        what(&mut lock(&self.watch));
        self.bell.notify_one();
    }

    /// The thread's body.
    fn run<C, H>(&self, turns: &Turns, shared: &Shared<C, H>) {
        while !turns.has_ended() {
            let stopping = self.watch(turns);
            let engine = match turns.engine.try_lock() {
                Ok(engine) => Some(engine),
                // Nobody has a handle any more, but who drops the last one in the hook, and then leaves.
                Err(_) if stopping => Some(turns.engine.lock().unwrap_or_else(PoisonError::into_inner)),
                // A caller is there.
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
            // Who waits for the loop may have it.
            shared.signal.notify();
        }
        shared.tell();
        let _ = shared.call_hook();
    }

    /// Waits until no caller looks after the loop. True if it is to end.
    fn watch(&self, turns: &Turns) -> bool {
        let mut watch = lock(&self.watch);
        loop {
            if watch.stopping || std::mem::take(&mut watch.is_due) {
                return watch.stopping;
            }
            let calls = turns.calls();
            // Who naps is awake again soon, and need not wake this thread for it.
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
