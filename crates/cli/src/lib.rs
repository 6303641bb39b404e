//! The `pathweave` program: the command line around the scenario, simulator, study and datapath crates.
//!
//! [`main`] runs the program and returns its exit code. Each subcommand is a file of `commands/`, or of `real/` for
//! real networks. The crate is also a library, for environments that run the program without an executable, such as
//! the Python package.

mod args;
mod batch;
mod commands;
mod execute;
mod failure;
mod flow_stream;
mod folder;
mod index_page;
mod inputs;
mod interrupt;
mod live;
mod memory;
mod options;
mod output;
mod progress;
mod ranks;
#[cfg(feature = "datapath")]
mod real;
#[cfg(not(feature = "datapath"))]
#[path = "not_real.rs"]
mod real;
mod scenario_input;
#[cfg(feature = "datapath")]
mod self_command;
mod simulation_speed;
// This allows its tests to run together with those of the whole program.
#[cfg(all(test, feature = "datapath"))]
#[allow(dead_code, reason = "only parts that tests look at are used")]
mod not_real;
mod terminal;
mod traces;
mod view;

use std::ffi::OsString;
#[cfg(feature = "datapath")]
use std::path::PathBuf;

use clap::CommandFactory;
use pathweave_heap as _;

use args::{Cli, Command};
use failure::{Failure, Outcome};

/// Runs the program with `args`, the first of which is its own name, and returns its exit code (docs/cli.md). Ends
/// the process if the command line is wrong or asks for help, and if standard output cannot be written.
pub fn main(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    let cli = args::parse(&args);
    let style = terminal::error_style(cli.color);
    // A panic is a bug in pathweave. Print the information needed to find it, and keep the exit code for bugs.
    let result = std::panic::catch_unwind(|| dispatch(&cli.command)).unwrap_or_else(|_| {
        let command: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
        let what = format!(
            "this is a bug in pathweave {}; the command was: {}",
            env!("CARGO_PKG_VERSION"),
            command.join(" ")
        );
        Err(Failure::Internal(what))
    });
    match result {
        Ok(outcome) => outcome.exit_code(),
        Err(Failure::SaidByLead) => Failure::SaidByLead.exit_code(),
        Err(failure) => {
            terminal::note(&failure.render(style));
            failure.exit_code()
        }
    }
}

/// Returns the name of a command that makes several runs.
fn several_runs(command: &Command) -> Option<&'static str> {
    match command {
        Command::Compare(_) => Some("compare"),
        Command::Demo(_) => Some("demo"),
        Command::Paper(_) => Some("paper"),
        Command::Sweep(_) => Some("sweep"),
        Command::Validate(_) => Some("validate"),
        Command::ScanPeriod(_) => Some("scan-period"),
        _ => None,
    }
}

/// Runs the program like [`main`] in a process of another program, such as an interpreter that loads this library.
/// `started_by` holds the words, without arguments, that start this program again. A lab needs further processes of
/// it. `libraries` is the folder of the libraries that are packaged with it, for other programs.
///
/// The caller sets up signals as a program expects them (`SIGINT` ends it, `SIGPIPE` is ignored).
#[cfg(feature = "datapath")]
pub fn main_within(
    started_by: Vec<OsString>,
    libraries: PathBuf,
    args: impl IntoIterator<Item = OsString>,
) -> u8 {
    self_command::started_by(started_by);
    self_command::libraries_are_in(libraries);
    main(args)
}

fn dispatch(command: &Command) -> Result<Outcome, Failure> {
    if let Some(name) = several_runs(command) {
        ranks::check_started_alone(name)?;
    }
    match command {
        Command::Run(args) => commands::run(args),
        Command::Compare(args) => commands::compare(args),
        Command::Check(args) => commands::check(args),
        Command::Explain(args) => commands::explain(args),
        Command::Diff(args) => commands::diff(args),
        Command::List(args) => commands::list(args),
        Command::Show(args) => commands::show(args),
        Command::Convert(args) => commands::convert(args),
        Command::Demo(args) => commands::demo(args),
        Command::Paper(args) => commands::paper(args),
        Command::Validate(args) => commands::validate(args),
        Command::Sweep(args) => commands::sweep(args),
        Command::Plan(args) => commands::plan(args),
        Command::ScanPeriod(args) => commands::scan_period(args),
        Command::Nccl(args) => commands::nccl(args),
        Command::Fit(args) => commands::fit(args),
        Command::Real(command) => real::dispatch(command),
        Command::View(args) => view::view(args),
        Command::Schema => {
            let schema = serde_json::to_string_pretty(&pathweave_scenario::schema());
            terminal::out(&(schema.expect("a JSON value serialises") + "\n"));
            Ok(Outcome::Done)
        }
        Command::Man(args) => commands::man(args, Cli::command()),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "pathweave", &mut text);
            terminal::out(&String::from_utf8_lossy(&text));
            Ok(Outcome::Done)
        }
    }
}
