//! Two processes on the hosts of a wire, each with an endpoint, and their orders.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use crate::script::End;
use crate::wire::Host;

/// Longest time of an order. It is longer than the limit of an endpoint itself, whose error is more precise.
const PATIENCE: Duration = Duration::from_secs(90);

/// A process with an endpoint.
pub(crate) struct Process {
    child: Child,
    said: Receiver<String>,
    end: End,
}

impl Process {
    pub(crate) fn start(host: &Host, end: End) -> Self {
        let network = host.network.as_raw_fd();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--ignored", "--exact", "one_end", "--nocapture"])
            .env("PATHWEAVE_TEST_END", format!("{end:?}"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // These are set before the first order; otherwise the defaults of the tests would apply.
        command.env("PATHWEAVE_ADDRESS", "0.0.0.0").env("PATHWEAVE_PROTECTION", "encrypt");
        // SAFETY: the closure makes one system call.
        unsafe {
            command.pre_exec(move || match libc::setns(network, libc::CLONE_NEWNET) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (give, said) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if give.send(line).is_err() {
                    break;
                }
            }
        });
        Process { child, said, end }
    }

    pub(crate) fn tell(&mut self, order: &str) {
        let told = writeln!(self.child.stdin.as_mut().unwrap(), "{order}");
        if told.is_err() {
            let end = self.end;
            panic!("the {end:?} end is gone before {order:?}: {}", self.rest());
        }
    }

    /// Waits until an order is executed. Returns the memory of the process, KiB.
    pub(crate) fn has(&mut self, order: &str) -> u64 {
        let begin = format!("says {order} ");
        loop {
            match self.said.recv_timeout(PATIENCE) {
                Ok(line) => {
                    if let Some(kib) = line.strip_prefix(&begin) {
                        return kib.parse().expect("a number");
                    }
                }
                Err(why) => {
                    let end = self.end;
                    let what = if why == RecvTimeoutError::Timeout { "is stuck" } else { "is gone" };
                    panic!("the {end:?} end {what} in {order:?}: {}", self.rest());
                }
            }
        }
    }

    /// Returns the last output of the process.
    fn rest(&mut self) -> String {
        std::iter::from_fn(|| self.said.recv_timeout(Duration::from_millis(500)).ok())
            .collect::<Vec<_>>()
            .join("\n")
    }

    pub(crate) fn signal(&self, signal: i32) {
        // SAFETY: a child process that was not waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
