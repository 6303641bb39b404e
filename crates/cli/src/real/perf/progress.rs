//! Progress of a measurement: a line that changes on a terminal, plain lines elsewhere, and no output with `--quiet`.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pathweave_perf::{Health, Progress};

use crate::options::{OutputOptions, ProgressBarMode};
use crate::progress::clock;
use crate::terminal;

/// Interval between plain lines.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// Interval between updates of the changing line, suitable for human readers.
const DRAW_EVERY: Duration = Duration::from_millis(250);
const BAR_STEPS: u64 = 1_000;

pub(crate) struct Live {
    show: Show,
    next: Instant,
    /// Time and number of messages at the latest update.
    last: (Duration, u64),
}

enum Show {
    Bar(ProgressBar),
    Lines,
    Silent,
}

impl Live {
    pub(crate) fn new(talk: &OutputOptions) -> Self {
        let bar = match talk.progress {
            ProgressBarMode::Always => Some(ProgressDrawTarget::term_like(Box::new(console::Term::stderr()))),
            ProgressBarMode::Auto if std::io::stderr().is_terminal() => Some(ProgressDrawTarget::stderr()),
            ProgressBarMode::Auto | ProgressBarMode::Never => None,
        };
        let show = match (talk.quiet, bar) {
            (true, _) => Show::Silent,
            (false, None) => Show::Lines,
            (false, Some(target)) => {
                let style =
                    ProgressStyle::with_template("{bar:24} {msg}").expect("the template is fixed and valid");
                let bar = ProgressBar::with_draw_target(Some(BAR_STEPS), target);
                Show::Bar(bar.with_style(style.progress_chars("=> ")))
            }
        };
        let next = Instant::now() + if matches!(show, Show::Bar(_)) { DRAW_EVERY } else { LINE_EVERY };
        Live { show, next, last: (Duration::ZERO, 0) }
    }

    /// Displays the progress of a test if an update is due.
    pub(crate) fn look(&mut self, progress: Progress, health: &mut dyn FnMut() -> Health) {
        let Progress { size_bytes, iterations, done, elapsed, time } = progress;
        let every = match self.show {
            Show::Silent => return,
            Show::Bar(_) => DRAW_EVERY,
            Show::Lines => LINE_EVERY,
        };
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + every;
        if elapsed < self.last.0 {
            // A new test has begun.
            self.last = (Duration::ZERO, 0);
        }
        let (then, before) = std::mem::replace(&mut self.last, (elapsed, done));
        let rate = done.saturating_sub(before) as f64 / (elapsed - then).as_secs_f64().max(1e-9);
        let share = match (time, iterations) {
            (Some(time), _) => elapsed.as_secs_f64() / time.as_secs_f64(),
            (None, Some(all)) => done as f64 / all as f64,
            (None, None) => 0.0,
        };
        let Health { retransmitted, paths_up, paths } = health();
        let words = format!(
            "{} B  {:.1} MB/s  {rate:.0} messages/s  retransmitted {retransmitted}  paths {paths_up}/{paths}  {}",
            size_bytes,
            rate * size_bytes as f64 / 1e6,
            clock(elapsed)
        );
        match &self.show {
            Show::Bar(bar) => {
                bar.set_position((share.clamp(0.0, 1.0) * BAR_STEPS as f64) as u64);
                bar.set_message(words);
            }
            Show::Lines => terminal::note(&words),
            Show::Silent => {}
        }
    }

    /// Ends the display.
    pub(crate) fn end(&self) {
        if let Show::Bar(bar) = &self.show {
            bar.finish_and_clear();
        }
    }
}
