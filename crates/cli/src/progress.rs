//! Progress of a run on standard error: a bar on a terminal, plain lines elsewhere, and no output with `--quiet`.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration as Wall, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use pathweave_scenario::units::Time;

use crate::batch::Batch;
use crate::live::ProgressFile;
use crate::options::{OutputOptions, ProgressBarMode};
use crate::terminal;

/// Interval between plain lines. The first comes after one interval.
const LINE_EVERY: Wall = Wall::from_secs(5);
/// Shortest interval over which rates are computed.
const RATE_OVER: Wall = Wall::from_millis(500);
const BAR_STEPS: u64 = 1_000;

/// Progress of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Snapshot {
    /// Simulated time.
    pub(crate) simulated: Time,
    /// Number of packet-hops so far.
    pub(crate) packet_hops: u64,
    /// Payload bytes delivered.
    pub(crate) bytes: u64,
    /// Number of finished flows, and number of all flows.
    pub(crate) flows: (u64, u64),
    /// Fraction of the run that is done, 0 to 1.
    pub(crate) done: f64,
}

impl From<&pathweave_sim::Snapshot> for Snapshot {
    fn from(at: &pathweave_sim::Snapshot) -> Self {
        Snapshot {
            simulated: at.now,
            packet_hops: at.packet_hops,
            bytes: u64::try_from(at.bytes_done).unwrap_or(u64::MAX),
            flows: (at.flows_done as u64, at.flows_total as u64),
            done: at.share_done(),
        }
    }
}

/// Display of any number of concurrent runs.
pub(crate) enum Reporter {
    Bars(MultiProgress),
    Lines,
    Silent,
}

/// Display of one run.
pub(crate) struct RunProgress {
    show: Show,
    label: String,
    started: Instant,
    /// Instant and `packet_hops` from which the current rate is computed.
    rate_from: (Instant, u64),
    hops_per_s: f64,
    /// Progress file for `pathweave view`, and the number of this run in it.
    live: Option<(Arc<ProgressFile>, usize)>,
}

enum Show {
    Bar(ProgressBar),
    Lines {
        next: Instant,
    },
    /// Run of a batch, which displays the common progress.
    Part(Arc<Batch>, usize),
    Silent,
}

impl Reporter {
    pub(crate) fn new(talk: &OutputOptions) -> Self {
        let bar = match talk.progress {
            ProgressBarMode::Always => true,
            ProgressBarMode::Never => false,
            ProgressBarMode::Auto => std::io::stderr().is_terminal(),
        };
        match (talk.quiet, bar) {
            (true, _) => Reporter::Silent,
            (false, false) => Reporter::Lines,
            (false, true) => {
                // A bar that is requested explicitly is drawn even into a file.
                let target = match talk.progress {
                    ProgressBarMode::Always => ProgressDrawTarget::term_like(Box::new(indicatif_stderr())),
                    _ => ProgressDrawTarget::stderr(),
                };
                Reporter::Bars(MultiProgress::with_draw_target(target))
            }
        }
    }

    /// Begins the display of a run. `label_width` aligns the labels of several runs.
    pub(crate) fn start(&self, label: &str, label_width: usize) -> RunProgress {
        let now = Instant::now();
        let show = match self {
            Reporter::Silent => Show::Silent,
            Reporter::Lines => Show::Lines { next: now + LINE_EVERY },
            Reporter::Bars(bars) => {
                let template = format!("{{prefix:<{label_width}}} {{bar:24}} {{msg}}");
                let style = ProgressStyle::with_template(&template).expect("the template is fixed and valid");
                let bar = bars.add(ProgressBar::new(BAR_STEPS).with_style(style.progress_chars("=> ")));
                Show::Bar(bar.with_prefix(label.to_owned()))
            }
        };
        RunProgress {
            show,
            label: label.to_owned(),
            started: now,
            rate_from: (now, 0),
            hops_per_s: 0.0,
            live: None,
        }
    }

    /// Prints a line for the user that is not part of the result.
    pub(crate) fn print_line(&self, line: &str) {
        match self {
            Reporter::Silent => {}
            Reporter::Lines => terminal::note(line),
            Reporter::Bars(bars) => bars.suspend(|| terminal::note(line)),
        }
    }
}

impl RunProgress {
    /// Creates a display for a run that another process displays.
    pub(crate) fn silent() -> Self {
        Reporter::Silent.start("", 0)
    }

    /// Creates the display of run `index` of a batch.
    pub(crate) fn part(batch: &Arc<Batch>, index: usize) -> Self {
        let now = Instant::now();
        let show = Show::Part(Arc::clone(batch), index);
        RunProgress {
            show,
            label: String::new(),
            started: now,
            rate_from: (now, 0),
            hops_per_s: 0.0,
            live: None,
        }
    }

    /// Reports the progress to `live`, too, as run `index`.
    pub(crate) fn telling(self, live: &Arc<ProgressFile>, index: usize) -> Self {
        RunProgress { live: Some((Arc::clone(live), index)), ..self }
    }

    /// Displays the progress. Cheap enough to be called many times a second.
    pub(crate) fn update(&mut self, now: Instant, at: Snapshot) {
        if let Some((live, index)) = &self.live {
            live.update(*index, at);
        }
        let (since, hops) = self.rate_from;
        let span = now.saturating_duration_since(since);
        if span >= RATE_OVER {
            self.hops_per_s = at.packet_hops.saturating_sub(hops) as f64 / span.as_secs_f64();
            self.rate_from = (now, at.packet_hops);
        }
        let elapsed = now.saturating_duration_since(self.started);
        match &mut self.show {
            Show::Silent => {}
            Show::Bar(bar) => {
                bar.set_position((at.done.clamp(0.0, 1.0) * BAR_STEPS as f64) as u64);
                bar.set_message(describe(at, elapsed, self.hops_per_s));
            }
            Show::Lines { next } if now >= *next => {
                *next = now + LINE_EVERY;
                terminal::note(&format!("{}: {}", self.label, describe(at, elapsed, self.hops_per_s)));
            }
            Show::Lines { .. } => {}
            Show::Part(batch, index) => batch.update(*index, Some(at.done)),
        }
    }

    /// Ends the display of a run. `words` describe how the run ended.
    pub(crate) fn finish(self, words: &str) {
        if let Some((live, index)) = &self.live {
            live.finish_run(*index);
        }
        match self.show {
            Show::Silent => {}
            Show::Bar(bar) => {
                bar.set_position(BAR_STEPS);
                bar.finish_with_message(words.to_owned());
            }
            Show::Lines { .. } => terminal::note(&format!("{}: {words}", self.label)),
            Show::Part(batch, index) => batch.update(index, None),
        }
    }
}

fn indicatif_stderr() -> impl indicatif::TermLike {
    console::Term::stderr()
}

/// Formats the progress: "43 %  1.20 ms simulated  12.3 M packet-hops/s  0:42 left".
fn describe(at: Snapshot, elapsed: Wall, hops_per_s: f64) -> String {
    let simulated_us = at.simulated.as_ns() as f64 / 1e3;
    let simulated = if simulated_us < 1e3 {
        format!("{simulated_us:.1} us")
    } else {
        format!("{:.2} ms", simulated_us / 1e3)
    };
    let left = time_left(at.done, elapsed).map_or("-:--".to_owned(), clock);
    format!(
        "{:>3.0} %  {simulated} simulated  {:.1} M packet-hops/s  {left} left",
        at.done * 100.0,
        hops_per_s / 1e6
    )
}

/// Extrapolates the remaining time from the time of the finished part. Returns `None` while the estimate is
/// meaningless.
fn time_left(done: f64, elapsed: Wall) -> Option<Wall> {
    let telling = done > 0.001 && elapsed >= Wall::from_millis(300);
    telling.then(|| Wall::from_secs_f64(elapsed.as_secs_f64() * (1.0 - done.min(1.0)) / done))
}

/// Formats hours, minutes and seconds.
pub(crate) fn clock(span: Wall) -> String {
    let s = span.as_secs_f64().round() as u64;
    if s >= 3_600 {
        format!("{}:{:02}:{:02}", s / 3_600, s / 60 % 60, s % 60)
    } else {
        format!("{}:{:02}", s / 60, s % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_follows_from_the_part_that_is_done() {
        assert_eq!(time_left(0.25, Wall::from_secs(10)), Some(Wall::from_secs(30)));
        assert_eq!(time_left(1.0, Wall::from_secs(10)), Some(Wall::ZERO));
        assert_eq!(time_left(0.0, Wall::from_secs(10)), None);
    }

    #[test]
    fn a_line_says_it_all() {
        let at = Snapshot { simulated: Time::from_us(1_250), done: 0.5, ..Snapshot::default() };
        let line = describe(at, Wall::from_secs(61), 12.34e6);
        assert_eq!(line, " 50 %  1.25 ms simulated  12.3 M packet-hops/s  1:01 left");
        assert_eq!(clock(Wall::from_secs(3_661)), "1:01:01");
    }
}
