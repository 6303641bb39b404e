//! Ctrl-C: the first stops the run, which writes its results so far; the second kills the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;
use crate::terminal;

/// Flag that is set when the user wants to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Installs the handler for Ctrl-C and other requests to terminate. May be called once in a process.
    pub(crate) fn listen() -> Result<Self, Failure> {
        Self::listen_saying("stopping: results so far will be written; Ctrl-C again gives them up")
    }
    /// Installs the handler like [`Interrupt::listen`], without a message, for a process beside another that prints
    /// it.
    pub(crate) fn listen_quietly() -> Result<Self, Failure> {
        Self::listen_and_say(None)
    }
    /// Installs the handler like [`Interrupt::listen`], with another message.
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
    /// Sets the flag, as if the user had interrupted.
    pub(crate) fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
    /// Returns true if the user wants to stop.
    pub(crate) fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
