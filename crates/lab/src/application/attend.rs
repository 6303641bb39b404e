//! Waiting for a command that runs in the foreground, and for signals that are meant for it.

use std::cell::Cell;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

use crate::error::{Doing, LabError};

/// Signals that would end this process without its lab.
const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];
/// How long a command that was asked to end may take before it is left behind.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often to look whether somebody else wants to stop.
const LOOK: u16 = 50;

/// Signals held back from this process, to be looked at when it suits.
#[derive(Debug)]
pub struct Signals {
    waiting: SignalFd,
    asked: Cell<Option<Signal>>,
}

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Caught {
    signal: Signal,
    sender: Sender,
}

/// Who sent a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    /// The terminal, to all of its foreground: the command has it, too.
    Terminal,
    /// A process, to this one.
    Process,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with a status.
    Exited(ExitStatus),
    /// It was asked to end with this signal and did not; it runs on.
    LeftBehind(Signal),
}

impl Ended {
    /// An exit code for it, as shells have them: 128 and the signal's number where one ended it.
    pub fn code(self) -> u8 {
        let of_signal = |signal: i32| 128u8.saturating_add(u8::try_from(signal).unwrap_or(u8::MAX));
        match self {
            // Of an exit code only eight bits arrive.
            Ended::Exited(status) => status.code().map_or_else(
                || of_signal(status.signal().unwrap_or_default()),
                |code| u8::try_from(code).unwrap_or(u8::MAX),
            ),
            Ended::LeftBehind(signal) => of_signal(signal as i32),
        }
    }
}

impl Signals {
    /// Holds back what would end this process: Ctrl-C, a polite kill, the terminal's end. To be called before any thread
    /// is started, since threads inherit what is held back. Programs that are started do not.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn catch() -> Result<Signals, LabError> {
        let mut set: SigSet = ENDING.into_iter().collect();
        // So that the end of a child ends a wait.
        set.add(Signal::SIGCHLD);
        let doing = || "hold back signals".to_owned();
        set.thread_block().doing(doing)?;
        let waiting =
            SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).doing(doing)?;
        Ok(Signals { waiting, asked: Cell::new(None) })
    }

    /// The first signal that asked this process to end, if one has.
    pub fn asked(&self) -> Option<Signal> {
        while self.next().is_some() {}
        self.asked.get()
    }

    /// The next signal that asks this process to end.
    fn next(&self) -> Option<Caught> {
        /// What the kernel itself sends has a code above 0; what a process sends has 0 or less (sigaction(2)).
        const KERNEL: std::ops::RangeFrom<i32> = 1..;
        loop {
            let Ok(Some(info)) = self.waiting.read_signal() else { return None };
            let signal =
                i32::try_from(info.ssi_signo).ok().and_then(|number| Signal::try_from(number).ok())?;
            if ENDING.contains(&signal) {
                self.asked.set(self.asked.get().or(Some(signal)));
                let sender = if KERNEL.contains(&info.ssi_code) { Sender::Terminal } else { Sender::Process };
                return Some(Caught { signal, sender });
            }
        }
    }

    fn wait(&self) {
        let mut files = [PollFd::new(self.waiting.as_fd(), PollFlags::POLLIN)];
        // Woken up too early by whatever: who waits looks again.
        let _ = poll(&mut files, PollTimeout::from(LOOK));
    }
}

/// Waits for the end of a command in the foreground. A signal from another process is handed on to it; one from the
/// terminal has reached it already, and what it makes of that is its own affair. Once `stop` says yes, it is asked to end.
/// If it then takes more than ten seconds, or another such signal comes, it is left behind.
///
/// # Errors
/// The operating system cannot tell whether it has ended.
pub fn attend(child: &mut Child, signals: &Signals, stop: &dyn Fn() -> bool) -> Result<Ended, LabError> {
    let pid = Pid::from_raw(child.id().cast_signed());
    let mut asked: Option<(Signal, Instant)> = None;
    loop {
        if let Some(status) = child.try_wait().doing(|| "wait for the command".to_owned())? {
            return Ok(Ended::Exited(status));
        }
        let caught =
            signals.next().filter(|caught| caught.sender == Sender::Process).map(|caught| caught.signal);
        match (asked, caught) {
            (Some((first, _)), Some(_)) => return Ok(Ended::LeftBehind(first)),
            (Some((first, since)), None) if since.elapsed() > PATIENCE => {
                return Ok(Ended::LeftBehind(first));
            }
            (None, None) if !stop() => signals.wait(),
            (None, signal) => {
                let signal = signal.unwrap_or(Signal::SIGTERM);
                // It may have ended just now, which the next look finds.
                let _ = kill(pid, signal);
                asked = Some((signal, Instant::now()));
            }
            (Some(_), None) => signals.wait(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_shells() {
        let status = |raw| Ended::Exited(ExitStatus::from_raw(raw));
        assert_eq!((status(0).code(), status(7 << 8).code(), status(255 << 8).code()), (0, 7, 255));
        assert_eq!(status(9).code(), 137);
        assert_eq!(Ended::LeftBehind(Signal::SIGTERM).code(), 143);
    }
}
