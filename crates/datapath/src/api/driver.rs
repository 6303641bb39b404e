//! Driving of the loop: by a thread of the device, by its callers, or by either.

use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::standby::Standby;
use crate::config::{Driving, Waiting};
use crate::error::OpenError;
use crate::event_loop::{Drive, Turn, Until, message};
use crate::shared::{Answer, Shared, lock};
use crate::signals;

/// Interval at which a caller that could not get the loop tries again.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Number of turns of a waiting caller between two checks of its deadline.
const TURNS_A_LOOK: u32 = 2;

pub(crate) enum Driver {
    Thread { handle: Mutex<Option<JoinHandle<()>>>, waiting: Waiting },
    Callers { turns: Arc<Turns>, standby: Option<Standby> },
}

/// The loop, if callers drive it.
pub(crate) struct Turns {
    pub(super) engine: Mutex<Box<dyn Drive>>,
    ended: AtomicBool,
    /// Number of times a caller has driven it.
    calls: AtomicU64,
}

/// Result of a call to drive the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turned {
    /// This call has driven it.
    Here,
    /// Another thread drives it.
    Elsewhere,
}

impl Turns {
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Counts a caller that drives the loop. The lock must be held.
    #[inline]
    fn count_call(&self) {
        self.calls.store(self.calls() + 1, Ordering::Relaxed);
    }

    /// Ends the loop. The lock must be held.
    #[cold]
    pub(super) fn end<C, H>(&self, engine: &mut dyn Drive, shared: &Shared<C, H>, reason: String) {
        self.ended.store(true, Ordering::Release);
        let _ = shared.broken.set(reason);
        let _ = catch_unwind(AssertUnwindSafe(|| engine.abandon()));
    }

    /// Runs one turn and handles the end of the loop. The lock must be held.
    fn turn<C, H>(&self, engine: &mut dyn Drive, shared: &Shared<C, H>) {
        if self.has_ended() {
            return;
        }
        self.count_call();
        // Parking with `AtOnce` makes the next turn check for arrivals again.
        if let Err(reason) = guarded(|| engine.turn().and_then(|turn| engine.park(&turn, Until::AtOnce))) {
            self.end(engine, shared, reason);
        }
    }
}

/// Runs the loop until it is stopped or fails.
pub(crate) fn run<C, H>(mut engine: Box<dyn Drive>, shared: &Shared<C, H>) {
    let reason = turn_to_the_end(&mut *engine);
    let _ = shared.broken.set(reason);
    let _ = catch_unwind(AssertUnwindSafe(|| engine.abandon()));
    shared.notify();
    let _ = shared.call_hook();
}

/// Runs the loop until it has stopped. Returns the reason.
fn turn_to_the_end(engine: &mut dyn Drive) -> String {
    let turns = || loop {
        let turn = engine.turn()?;
        if turn.stopped {
            return Ok(());
        }
        engine.park(&turn, Until::Timer)?;
    };
    match guarded(turns) {
        Ok(()) => CLOSED.into(),
        Err(reason) => reason,
    }
}

pub(super) const CLOSED: &str = "its owner has closed it";

/// Runs a part of the loop. A panic that gets here is a bug outside the work of any peer; otherwise the loop would
/// have contained it. It must not leave callers waiting forever.
///
/// # Errors
/// The reason why the loop cannot continue.
pub(super) fn guarded<T>(work: impl FnOnce() -> io::Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(format!("the loop has failed: {error}")),
        Err(panic) => Err(format!("the loop has panicked, which is a bug: {}", message(&*panic))),
    }
}

impl Driver {
    /// Starts to drive `engine` as configured.
    ///
    /// # Errors
    /// The system cannot start a thread, or cannot pin it to the core.
    pub(crate) fn start<C: Send + 'static, H: Send + 'static>(
        engine: Box<dyn Drive>,
        shared: &Arc<Shared<C, H>>,
        local: SocketAddr,
        driving: Driving,
        waiting: Waiting,
    ) -> Result<Self, OpenError> {
        if let Driving::Thread { core } = driving {
            let own = shared.clone();
            let handle = spawn(move || run(engine, &own), local, core)?;
            return Ok(Driver::Thread { handle: Mutex::new(Some(handle)), waiting });
        }
        let (engine, ended, calls) = (Mutex::new(engine), AtomicBool::new(false), AtomicU64::new(0));
        let turns = Arc::new(Turns { engine, ended, calls });
        let standby = match driving {
            Driving::Standby => Some(Standby::start(&turns, shared, local)?),
            Driving::Thread { .. } | Driving::Caller => None,
        };
        Ok(Driver::Callers { turns, standby })
    }

    /// Passes a command to the loop.
    #[inline]
    pub(crate) fn ask<C, H>(&self, shared: &Shared<C, H>, command: C) {
        shared.ask(command);
        self.push(shared);
    }

    /// Passes a command to the loop and waits for its answer.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub(crate) fn answer<T, C, H>(
        &self,
        shared: &Shared<C, H>,
        command: C,
        answer: &Answer<T>,
    ) -> Result<T, String> {
        self.ask(shared, command);
        match self.wait(shared, None, || lock(answer).take()) {
            Ok(Some(value)) => Ok(value),
            Ok(None) => Err("its loop does not answer".into()),
            Err(reason) => Err(reason),
        }
    }

    /// Waits until `ready` returns a value; returns `Ok(None)` at the deadline.
    ///
    /// # Errors
    /// The reason why the loop has ended.
    pub(crate) fn wait<T, C, H>(
        &self,
        shared: &Shared<C, H>,
        deadline: Option<Instant>,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Result<Option<T>, String> {
        let found = self.wait_for(shared, deadline, || match ready() {
            Some(value) => Some(Ok(value)),
            None => shared.broken.get().map(|reason| Err(reason.clone())),
        });
        found.transpose()
    }

    /// Lets the loop process queued commands at once, if callers drive it.
    #[inline]
    fn push<C, H>(&self, shared: &Shared<C, H>) {
        if let Driver::Callers { turns, .. } = self
            // If another thread has the loop, that thread will see the command.
            && let Ok(mut engine) = turns.engine.try_lock()
            && !turns.has_ended()
            && let Err(reason) = guarded(|| {
                engine.push();
                Ok(())
            })
        {
            turns.end(&mut **engine, shared, reason);
        }
    }

    /// Drives the loop once, if callers do so.
    pub(crate) fn drive_once<C, H>(&self, shared: &Shared<C, H>) -> Turned {
        let Driver::Callers { turns, standby } = self else { return Turned::Elsewhere };
        if let Ok(mut engine) = turns.engine.try_lock() {
            turns.turn(&mut **engine, shared);
            return Turned::Here;
        }
        if let Some(standby) = standby {
            standby.missed(shared);
        }
        Turned::Elsewhere
    }

    /// Announces that the caller goes to sleep where it does not see arrivals.
    pub(crate) fn rest(&self) {
        if let Driver::Callers { standby: Some(standby), .. } = self {
            standby.rest();
        }
    }

    /// Waits until `ready` returns a value; returns `None` at the deadline.
    fn wait_for<T, C, H>(
        &self,
        shared: &Shared<C, H>,
        deadline: Option<Instant>,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        if let Some(value) = ready() {
            return Some(value);
        }
        assert!(!shared.is_in_hook(), "a hook must not wait for the loop that calls it");
        match self {
            Driver::Thread { waiting, .. } => {
                let spin = match waiting {
                    Waiting::Busy => Duration::MAX,
                    Waiting::Blocking { spin } => *spin,
                    // The loop's thread polls; a second polling thread would disturb it.
                    Waiting::Adaptive { .. } => Duration::ZERO,
                };
                if spin > Duration::ZERO
                    && let Some(result) = look(spin, deadline, &mut ready)
                {
                    return result;
                }
                shared.signal.wait(deadline, ready)
            }
            Driver::Callers { turns, standby } => loop {
                match turns.engine.try_lock() {
                    Ok(mut engine) => {
                        let asleep = standby.as_ref().map(|standby| standby.asleep(deadline));
                        let result = drive(&mut **engine, turns, shared, deadline, &mut ready);
                        drop((engine, asleep));
                        shared.signal.notify();
                        return result;
                    }
                    Err(TryLockError::Poisoned(_)) => return None,
                    Err(TryLockError::WouldBlock) => {
                        if let Some(standby) = standby {
                            standby.want(shared);
                        }
                        // Another thread drives the loop, and may leave at any time.
                        let soon = Instant::now() + LOOK_AGAIN;
                        let until = deadline.map_or(soon, |deadline| deadline.min(soon));
                        let is_free = || turns.engine.try_lock().is_ok();
                        let look = || ready().map(Some).or_else(|| is_free().then_some(None));
                        if let Some(Some(value)) = shared.signal.wait(Some(until), look) {
                            return Some(value);
                        }
                        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                            return None;
                        }
                    }
                }
            },
        }
    }

    /// Waits for the end of the loop, which a command has requested.
    pub(crate) fn stop<C, H>(&self, shared: &Shared<C, H>) {
        match self {
            Driver::Thread { handle, .. } => {
                // The loop's own thread does not wait for itself; the loop ends later.
                if let Some(handle) = lock(handle).take().filter(|_| !shared.is_in_hook()) {
                    let _ = handle.join();
                }
            }
            Driver::Callers { standby: Some(standby), .. } => standby.stop(shared.is_in_hook()),
            Driver::Callers { turns, standby: None } => {
                let mut engine = turns.engine.lock().unwrap_or_else(PoisonError::into_inner);
                if !turns.has_ended() {
                    let reason = turn_to_the_end(&mut **engine);
                    turns.end(&mut **engine, shared, reason);
                }
            }
        }
    }
}

/// Polls for a while. Returns `None` to continue otherwise.
fn look<T>(
    spin: Duration,
    deadline: Option<Instant>,
    ready: &mut impl FnMut() -> Option<T>,
) -> Option<Option<T>> {
    let start = Instant::now();
    loop {
        for _ in 0..64 {
            if let Some(value) = ready() {
                return Some(Some(value));
            }
            std::hint::spin_loop();
        }
        let now = Instant::now();
        if deadline.is_some_and(|deadline| now >= deadline) {
            return Some(None);
        }
        if now - start >= spin {
            return None;
        }
    }
}

/// Drives the loop until `ready` returns a value.
fn drive<T, C, H>(
    engine: &mut dyn Drive,
    turns: &Turns,
    shared: &Shared<C, H>,
    deadline: Option<Instant>,
    ready: &mut impl FnMut() -> Option<T>,
) -> Option<T> {
    let mut looks = 0u32;
    loop {
        if turns.has_ended() {
            return ready();
        }
        turns.count_call();
        let result: Result<Turn, String> = guarded(|| engine.turn());
        if let Some(value) = ready() {
            return Some(value);
        }
        // Reading the clock costs up to a tenth of a system call, and the deadline mostly has not passed.
        looks += 1;
        if looks.is_multiple_of(TURNS_A_LOOK) && deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return None;
        }
        let until = deadline.map_or(Until::Timer, Until::Deadline);
        if let Err(reason) = result.and_then(|turn| guarded(|| engine.park(&turn, until))) {
            turns.end(engine, shared, reason);
        }
    }
}

/// Starts the loop's thread, on its core and with the system's most precise timers.
pub(super) fn spawn(
    work: impl FnOnce() + Send + 'static,
    local: SocketAddr,
    core: Option<usize>,
) -> Result<JoinHandle<()>, OpenError> {
    let (report, outcome) = std::sync::mpsc::sync_channel(1);
    let body = move || {
        let placed = match core {
            Some(core) => stay_on(core),
            None => Ok(()),
        };
        let fine = placed.is_ok();
        let _ = report.send(placed);
        if fine {
            // Without this the kernel may wake the thread 50 us late. If it is refused, pacing is that imprecise.
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZero::new(1));
            work();
        }
    };
    let thread = std::thread::Builder::new().name(format!("pathweave-{}", local.port()));
    let handle = signals::blocked(|| thread.spawn(body))
        .map_err(|source| OpenError::System { address: local, source })?;
    match (outcome.recv(), core) {
        (Ok(Err(source)), Some(core)) => Err(OpenError::Core { core, source }),
        _ => Ok(handle),
    }
}

fn stay_on(core: usize) -> io::Result<()> {
    let mut cores = rustix::thread::CpuSet::new();
    if core >= rustix::thread::CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    cores.set(core);
    Ok(rustix::thread::sched_setaffinity(None, &cores)?)
}
