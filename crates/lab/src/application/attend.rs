//! Wait for a foreground command, and handling of signals for it.

use std::cell::Cell;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

use crate::error::{LabError, WithContext};

/// Signals that would end this process without removing its lab.
const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];
/// Time that a command may take to end after it was asked to, before it is left running.
const TERMINATION_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval in ms at which the stop condition is polled.
const POLL_MS: u16 = 50;

/// Blocked signals of this process, read on demand.
#[derive(Debug)]
pub struct Signals {
    waiting: SignalFd,
    asked: Cell<Option<Signal>>,
}

/// Received signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReceivedSignal {
    signal: Signal,
    sender: Sender,
}

/// Sender of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    /// The terminal, which sends it to all foreground processes, so the command has received it, too.
    Terminal,
    /// A process that sent it to this one only.
    Process,
}

/// End of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandResult {
    /// The command exited with a status.
    Exited(ExitStatus),
    /// The command did not end after this signal and continues to run.
    LeftBehind(Signal),
}

impl CommandResult {
    /// Returns the exit code as shells compute it: 128 plus the signal's number if a signal ended the command.
    pub fn code(self) -> u8 {
        let of_signal = |signal: i32| 128u8.saturating_add(u8::try_from(signal).unwrap_or(u8::MAX));
        match self {
            // Only eight bits of an exit code are transmitted.
            CommandResult::Exited(status) => status.code().map_or_else(
                || of_signal(status.signal().unwrap_or_default()),
                |code| u8::try_from(code).unwrap_or(u8::MAX),
            ),
            CommandResult::LeftBehind(signal) => of_signal(signal as i32),
        }
    }
}

impl Signals {
    /// Blocks the signals that would end this process: Ctrl-C, SIGTERM, the end of the terminal. Must be called
    /// before any thread is started, since threads inherit the mask. Child programs do not inherit it.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn block() -> Result<Signals, LabError> {
        let mut set: SigSet = ENDING.into_iter().collect();
        // The end of a child then wakes the wait.
        set.add(Signal::SIGCHLD);
        let doing = || "hold back signals".to_owned();
        set.thread_block().context(doing)?;
        let waiting =
            SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).context(doing)?;
        Ok(Signals { waiting, asked: Cell::new(None) })
    }

    /// Returns the first signal that asked this process to end, if there is one.
    pub fn termination_signal(&self) -> Option<Signal> {
        while self.next().is_some() {}
        self.asked.get()
    }

    /// Returns the next signal that asks this process to end.
    fn next(&self) -> Option<ReceivedSignal> {
        /// Codes of signals from the kernel are above 0, those from processes are 0 or less (sigaction(2)).
        const KERNEL: std::ops::RangeFrom<i32> = 1..;
        loop {
            let Ok(Some(info)) = self.waiting.read_signal() else { return None };
            let signal =
                i32::try_from(info.ssi_signo).ok().and_then(|number| Signal::try_from(number).ok())?;
            if ENDING.contains(&signal) {
                self.asked.set(self.asked.get().or(Some(signal)));
                let sender = if KERNEL.contains(&info.ssi_code) { Sender::Terminal } else { Sender::Process };
                return Some(ReceivedSignal { signal, sender });
            }
        }
    }

    fn wait(&self) {
        let mut files = [PollFd::new(self.waiting.as_fd(), PollFlags::POLLIN)];
        // A premature return is harmless: the caller checks its condition again.
        let _ = poll(&mut files, PollTimeout::from(POLL_MS));
    }
}

/// Waits for the end of a foreground command. A signal from another process is forwarded to it; one from the terminal
/// has already reached it. When `stop` returns true, the command is asked to end with SIGTERM. If it takes more than
/// ten seconds after such a request, or another signal arrives, it is left running.
///
/// # Errors
/// The operating system cannot determine whether the command has ended.
pub fn wait_for_command(
    child: &mut Child,
    signals: &Signals,
    stop: &dyn Fn() -> bool,
) -> Result<CommandResult, LabError> {
    let pid = Pid::from_raw(child.id().cast_signed());
    let mut asked: Option<(Signal, Instant)> = None;
    loop {
        if let Some(status) = child.try_wait().context(|| "wait for the command".to_owned())? {
            return Ok(CommandResult::Exited(status));
        }
        let caught =
            signals.next().filter(|caught| caught.sender == Sender::Process).map(|caught| caught.signal);
        match (asked, caught) {
            (Some((first, _)), Some(_)) => return Ok(CommandResult::LeftBehind(first)),
            (Some((first, since)), None) if since.elapsed() > TERMINATION_TIMEOUT => {
                return Ok(CommandResult::LeftBehind(first));
            }
            (None, None) if !stop() => signals.wait(),
            (None, signal) => {
                let signal = signal.unwrap_or(Signal::SIGTERM);
                // The command may have just ended; the next check finds that.
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
        let status = |raw| CommandResult::Exited(ExitStatus::from_raw(raw));
        assert_eq!((status(0).code(), status(7 << 8).code(), status(255 << 8).code()), (0, 7, 255));
        assert_eq!(status(9).code(), 137);
        assert_eq!(CommandResult::LeftBehind(Signal::SIGTERM).code(), 143);
    }
}
