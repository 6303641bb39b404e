//! Ctrl-C: the first asks the run to stop and write what it has, the second kills.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;
use crate::terminal;

/// Set once the user wants to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens for Ctrl-C (and a polite kill). Once a process.
    pub(crate) fn listen() -> Result<Self, Failure> {
        Self::listen_saying("stopping: results so far will be written; Ctrl-C again gives them up")
    }
    /// The same in a process beside another that says it.
    pub(crate) fn listen_quietly() -> Result<Self, Failure> {
        Self::listen_and_say(None)
    }
    /// The same, saying something else when it comes.
    pub(crate) fn listen_saying(answer: &'static str) -> Result<Self, Failure> {
        Self::listen_and_say(Some(answer))
    }
    fn listen_and_say(answer: Option<&'static str>) -> Result<Self, Failure> {
        const SECOND: i32 = 130;
        let interrupt = Interrupt::default();
        let flag = Arc::clone(&interrupt.0);
        let handler = move || {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(SECOND);
            }
            if let Some(answer) = answer {
                terminal::note(answer);
            }
        };
        ctrlc::set_handler(handler).map_err(|why| Failure::Internal(format!("no signal handler: {why}")))?;
        Ok(interrupt)
    }
    /// Stops everything as if the user wanted it.
    pub(crate) fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
    /// Whether the user wants to stop.
    pub(crate) fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
