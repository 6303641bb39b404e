//! Programs at the two ends, with the CPU time they take.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit of a program, longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);
/// Clock ticks per second in `/proc`. Linux shows 100 to user space on every machine.
const TICKS_A_SECOND: f64 = 100.0;

/// Running program. It is killed on drop if it still runs.
pub(crate) struct Running(Option<Child>);

/// Result of a program that has ended.
pub(crate) struct ProcessResult {
    pub(crate) output: String,
    pub(crate) cpu_seconds: f64,
}

/// Reason why there is no figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProcessError {
    /// The program had not ended after this time and was killed.
    Hung(Duration),
    /// The program reported an error.
    Failed(String),
}

impl std::fmt::Display for ProcessError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ProcessError::Hung(time) => write!(f, "not done after {time:?}"),
            ProcessError::Failed(why) => f.write_str(why),
        }
    }
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Result<Running, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        Ok(Running(Some(command.spawn().map_err(|why| format!("{name}: {why}"))?)))
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("it has not been waited for")
    }

    /// Waits for the end of the program. Its output must fit a pipe.
    pub(crate) fn finish(self) -> Result<ProcessResult, String> {
        self.finish_within(PATIENCE).map_err(|broken| broken.to_string())
    }

    /// Waits for the end of the program for at most `patience`.
    pub(crate) fn finish_within(mut self, patience: Duration) -> Result<ProcessResult, ProcessError> {
        let since = Instant::now();
        let id = self.child().id();
        let cpu_seconds = loop {
            match stat(id) {
                // The process is dead and not yet reaped, so all its CPU time is known.
                Some(('Z', cpu_seconds)) => break cpu_seconds,
                Some(_) if since.elapsed() < patience => std::thread::sleep(Duration::from_millis(2)),
                _ => return Err(ProcessError::Hung(patience)),
            }
        };
        let child = self.0.take().expect("it has not been waited for");
        let output = child.wait_with_output().map_err(|why| ProcessError::Failed(why.to_string()))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if !output.status.success() {
            let (out, err) = (text(&output.stdout), text(&output.stderr));
            return Err(ProcessError::Failed(format!("{}: {} {}", output.status, out.trim(), err.trim())));
        }
        Ok(ProcessResult { output: text(&output.stdout), cpu_seconds })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns state and CPU time of a process, over all its threads.
fn stat(id: u32) -> Option<(char, f64)> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    parse_stat(&text)
}

fn parse_stat(text: &str) -> Option<(char, f64)> {
    // The preceding name is in brackets and may contain any characters.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let user: f64 = fields.nth(10)?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((state, (user + system) / TICKS_A_SECOND))
}

/// Returns true if the program is installed.
pub(crate) fn is_installed(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("-h").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_where_the_manual_says() {
        let text = "42 (a (b) c) Z 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20 0 1 0 99";
        assert_eq!(parse_stat(text), Some(('Z', 1.75)));
        assert_eq!(parse_stat("42"), None);
    }

    #[test]
    fn a_program_is_waited_for_with_its_time() {
        let mut command = Command::new("sh");
        command.args(["-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; echo $i"]);
        let ran = Running::start({
            command.stdout(Stdio::piped());
            command
        });
        let ran = ran.unwrap().finish().unwrap();
        assert_eq!(ran.output, "30000\n");
        assert!(ran.cpu_seconds < 20.0);
        let mut command = Command::new("false");
        command.stdout(Stdio::piped());
        assert!(Running::start(command).unwrap().finish().is_err());
    }
}
