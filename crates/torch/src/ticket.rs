//! Outcome of an operation.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use pathweave_collective::OpId;

use crate::lock;
use crate::process::Process;

/// Time for the answer of a rank that is asked if it is there.
const ANSWER: Duration = Duration::from_millis(500);
/// Time for the reason of a rank that waits itself.
const REASON: Duration = Duration::from_secs(2);

/// An operation that has been started.
pub struct Ticket {
    process: Weak<Process>,
    /// Number of the operation; 0 while it is being started.
    op: AtomicU64,
    outcome: OnceLock<Result<Option<u32>, String>>,
    /// Queue that gets a number at the end.
    listener: Mutex<Option<(Sender<u64>, u64)>>,
}

/// Return of a wait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Done,
    Late,
}

impl Ticket {
    pub(crate) fn new(process: &Arc<Process>) -> Arc<Self> {
        Arc::new(Ticket {
            process: Arc::downgrade(process),
            op: AtomicU64::new(0),
            outcome: OnceLock::new(),
            listener: Mutex::new(None),
        })
    }

    pub(crate) fn is_for(&self, op: OpId) {
        self.op.store(op, Ordering::Release);
    }

    pub(crate) fn end(&self, outcome: Result<Option<u32>, String>) {
        let _ = self.outcome.set(outcome);
        self.ring();
    }

    /// Tells the listener, once.
    fn ring(&self) {
        if let Some((queue, number)) = lock(&self.listener).take() {
            // Without a receiver nobody listens any more.
            let _ = queue.send(number);
        }
    }

    /// Puts a number into a queue when the operation has ended.
    pub fn tell(&self, queue: Sender<u64>, number: u64) {
        *lock(&self.listener) = Some((queue, number));
        if self.outcome.get().is_some() {
            self.ring();
        }
    }

    /// Returns the outcome, once there is one: the rank that a message came from, or the reason of the failure.
    pub fn outcome(&self) -> Option<&Result<Option<u32>, String>> {
        self.outcome.get()
    }

    /// Waits for the outcome. Returns false if there is none after `patience`.
    pub fn wait(&self, patience: Duration) -> bool {
        if self.outcome.get().is_some() {
            return true;
        }
        match self.process.upgrade() {
            Some(process) => process.wait(self, patience) == Waited::Done,
            None => {
                self.end(Err("the backend was closed".into()));
                true
            }
        }
    }

    /// Fails an operation that has lasted too long, with an error that names the ranks from which something is missing.
    /// A collective that fails breaks its group. Those ranks are asked before: one that waits itself fails for the right
    /// reason, and tells this one.
    pub fn expire(&self, started: Instant) {
        let (None, Some(process)) = (self.outcome.get(), self.process.upgrade()) else { return };
        let (op, lasted) = (self.op.load(Ordering::Acquire), started.elapsed());
        if process.ask(op) && !self.wait(ANSWER) && process.waits_for_waiting(op) {
            let _ = self.wait(REASON);
        }
        if self.outcome.get().is_none() {
            process.expire(op, lasted);
        }
    }
}
