//! `pathweave perf`: measurement of the real datapath between two hosts. `pathweave_perf` measures; this module is
//! its command line.

mod args;
mod device;
mod progress;

use pathweave_perf::{Console, Ended, Health, Note, Progress};

use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::terminal;
use args::{ClientArgs, PerfCommand, ServerArgs};
pub(crate) use args::{PerfArgs, ProtectionArgs, seconds};
pub(crate) use device::{resolve, resolve_all};
use progress::Live;

pub(crate) fn perf(args: &PerfArgs) -> Result<Outcome, Failure> {
    match &args.command {
        PerfCommand::Server(args) => server(args),
        PerfCommand::Client(args) => client(args),
    }
}

fn server(args: &ServerArgs) -> Result<Outcome, Failure> {
    let options = args.options()?;
    let interrupt = Interrupt::listen_saying("stopping; Ctrl-C again does not wait for anything")?;
    let screen = Screen { interrupt, live: None, quiet: args.quiet, json: args.json };
    let served = pathweave_perf::serve(&options, &screen)?;
    if args.json {
        terminal::out(&served.json);
    } else if let Some(text) = served.text.filter(|_| !args.quiet) {
        terminal::out(&text);
    }
    Ok(Outcome::Done)
}

fn client(args: &ClientArgs) -> Result<Outcome, Failure> {
    let options = args.options()?;
    let interrupt = Interrupt::listen_saying("stopping: the results so far follow")?;
    let live = Some(Live::new(&args.talk));
    let mut screen = Screen { interrupt, live, quiet: args.talk.quiet, json: args.talk.json };
    let report = pathweave_perf::measure(&options, &mut screen)?;
    screen.live.iter().for_each(Live::end);
    let shown = if args.talk.json { report.json } else { report.text };
    if let Some(shown) = shown.filter(|_| !args.talk.quiet) {
        terminal::out(&shown);
    }
    if let Some(complaint) = report.error {
        terminal::note(&format!("error: {complaint}"));
        return Ok(Outcome::Unfinished);
    }
    match report.wrong_messages {
        Some(wrong) => Err(Failure::Internal(wrong)),
        None if report.ended == Ended::Interrupted => Ok(Outcome::Interrupted),
        None => Ok(Outcome::Done),
    }
}

/// Terminal output of a measurement.
pub(crate) struct Screen {
    interrupt: Interrupt,
    live: Option<Live>,
    quiet: bool,
    /// True if standard output is reserved for JSON.
    json: bool,
}

impl Screen {
    /// # Errors
    /// The handler for Ctrl-C cannot be installed.
    pub(crate) fn of_survey() -> Result<Self, Failure> {
        let interrupt = Interrupt::listen_saying("stopping: the results so far follow")?;
        Ok(Screen { interrupt, live: None, quiet: false, json: false })
    }
}

impl Console for Screen {
    fn is_interrupted(&self) -> bool {
        self.interrupt.requested()
    }

    fn note(&self, note: Note<'_>) {
        match note {
            Note::Listening(line) if !self.json => terminal::out(&format!("{line}\n")),
            Note::Listening(line) | Note::Remark(line) => terminal::note(line),
            Note::Client(line) if !self.quiet => terminal::note(line),
            Note::Client(_) => {}
        }
    }

    fn progress(&mut self, progress: Progress, health: &mut dyn FnMut() -> Health) {
        if let Some(live) = &mut self.live {
            live.look(progress, health);
        }
    }
}
