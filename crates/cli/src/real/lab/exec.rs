//! `pathweave lab exec`: a program on one host, or an application on all hosts.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use pathweave_lab::{
    Application, CommandResult, Lab, LabError, LabNamespaces, Plan, RemoteCommand, Schedule, Signals,
    host_names, wait_for_command,
};

use super::args::{AgentArgs, ExecArgs};
use super::temporary::Temporary;
use super::up::Planned;
use crate::failure::{Failure, Outcome};
use crate::real::libraries::PROVIDER;
use crate::self_command;
use crate::terminal;

/// Location where a command runs.
enum CommandLocation<'a> {
    /// On the first host of a lab that is created for the command.
    Made(&'a Path),
    /// On the first host of an existing lab.
    Up,
    /// On this host or switch of an existing lab, without access to other hosts.
    Node(&'a str),
}

pub(crate) fn exec(args: &ExecArgs) -> Result<Outcome, Failure> {
    match place(args)? {
        CommandLocation::Node(name) => {
            let lab = super::find(&args.which)?;
            let node = lab.node(name)?;
            let (program, arguments) = args.command.split_first().expect("clap requires at least one");
            Err(lab.exec(node, program, arguments).into())
        }
        CommandLocation::Up => {
            let provider = provider(args.provider.as_deref())?;
            let workplace = super::reach_labs()?;
            let mut lab = Lab::open(&super::name(args.which.lab.as_ref())?)?;
            let signals = Signals::block()?;
            run(&mut lab, workplace, provider, &args.command, &Schedule::default(), &signals)
        }
        CommandLocation::Made(file) => {
            let provider = provider(args.provider.as_deref())?;
            let planned = Planned::read(file, args.name.clone(), &args.settings, &args.changes)?;
            let schedule = planned.schedule()?;
            let workplace = super::workplace_to_make()?;
            let signals = Signals::block()?;
            in_a_lab(planned.plan, workplace, provider, &args.command, &schedule, &signals)
        }
    }
}

/// Interprets the argument before "--" as a file or a host. Returns an error for options that do not fit.
fn place(args: &ExecArgs) -> Result<CommandLocation<'_>, Failure> {
    const FILES: [&str; 3] = ["toml", "txt", "topo"];
    let is_file = |place: &str| {
        let extension = Path::new(place).extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| FILES.contains(&extension)) || Path::new(place).is_file()
    };
    let place = match args.place.as_deref() {
        Some(file) if args.which.lab.is_none() && is_file(file) => CommandLocation::Made(Path::new(file)),
        Some(host) => CommandLocation::Node(host),
        None => CommandLocation::Up,
    };
    let settings = &args.settings;
    let for_made = [
        ("--name", args.name.is_some()),
        ("--rate-scale", settings.rate_scale.is_some()),
        ("--mtu", settings.mtu.is_some()),
        ("--super-packets", settings.super_packets.is_some()),
        ("--queue", settings.queue.is_some()),
        ("--set", !args.changes.set.is_empty()),
        ("--seed", args.changes.seed.is_some()),
    ];
    let refuse = |option: &str, needs: &str| {
        let found = args
            .place
            .as_ref()
            .map_or("nothing is".to_owned(), |host| format!("\"{host}\" is a host's name"));
        Err(Failure::Input(format!("{option} {needs}, and before -- {found}")))
    };
    match (&place, for_made.iter().find(|(_, given)| *given)) {
        (CommandLocation::Node(_) | CommandLocation::Up, Some((option, _))) => {
            refuse(option, "is for a lab that is made: it needs a scenario or topology file")
        }
        (CommandLocation::Node(_), None) if args.provider.is_some() => {
            refuse("--provider", "is for an application on all hosts: it needs a file, or nothing")
        }
        _ => Ok(place),
    }
}

/// Returns the folder of the provider's library: the given folder, which must contain it, or one beside this program.
fn provider(given: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
    match given {
        Some(folder) => PROVIDER.given(folder).map(Some),
        None => Ok(PROVIDER.beside_the_program()?.folder()),
    }
}

/// Creates the lab, runs the command in it, and removes the lab in any case.
fn in_a_lab(
    plan: Plan,
    workplace: LabNamespaces,
    provider: Option<PathBuf>,
    command: &[OsString],
    schedule: &Schedule,
    signals: &Signals,
) -> Result<Outcome, Failure> {
    let mut made = match Temporary::make(plan, workplace, &|| signals.termination_signal().is_some()) {
        Ok(made) => made,
        Err(LabError::Interrupted) => return Ok(Outcome::Interrupted),
        Err(why) => return Err(why.into()),
    };
    let lab = made.lab();
    for note in lab.notes().iter().chain(schedule.notes()) {
        terminal::note(&format!("note: {note}"));
    }
    run(lab, workplace, provider, command, schedule, signals)
}

/// Runs the command on the first host, with access to all hosts, and applies faults at their times.
fn run(
    lab: &mut Lab,
    workplace: LabNamespaces,
    provider: Option<PathBuf>,
    command: &[OsString],
    schedule: &Schedule,
    signals: &Signals,
) -> Result<Outcome, Failure> {
    let program = self_command::command_words()?;
    let name = lab.plan().lab().clone();
    let agent = |folder: &Path| -> Vec<OsString> {
        let words = ["lab", "agent", "--lab", name.as_str(), "--folder"].map(OsString::from);
        let command = program.iter().cloned().chain(words);
        command.chain([folder.into(), "--".into()]).collect()
    };
    let application = Application::prepare(lab.plan(), workplace, &agent, provider)?;
    let mut child = self_command::command()?
        .args(["lab", "agent", "--first", "--lab", name.as_str(), "--folder"])
        .arg(application.folder())
        .arg("--")
        .args(command)
        .envs(application.variables(&|name| std::env::var_os(name).is_some()))
        .spawn()
        .map_err(|why| Failure::Input(format!("cannot run {}: {why}", program[0].display())))?;
    let (over, broken) = (AtomicBool::new(false), AtomicBool::new(false));
    let since = Instant::now();
    let (ended, played) = std::thread::scope(|scope| {
        let faults = scope.spawn(|| {
            let played = schedule.run(lab, &|| over.load(Ordering::Relaxed));
            broken.store(played.is_err(), Ordering::Relaxed);
            played
        });
        let ended = wait_for_command(&mut child, signals, &|| broken.load(Ordering::Relaxed));
        over.store(true, Ordering::Relaxed);
        (ended, faults.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    played?;
    let later = schedule.changes().iter().filter(|(at, _)| *at > since.elapsed()).count();
    if later > 0 {
        terminal::note(&format!(
            "note: the command ended before {later} of {} changes to the network",
            schedule.changes().len()
        ));
    }
    let ended = ended?;
    if let CommandResult::LeftBehind(_) = ended {
        terminal::note("the command does not end");
    }
    Ok(Outcome::Command(ended.code()))
}

/// Replaces the process with a command on a host of an application's lab.
pub(crate) fn agent(args: &AgentArgs) -> Result<Outcome, Failure> {
    super::reach_labs()?;
    let lab = Lab::open(&args.lab)?;
    let hosts = host_names(lab.plan());
    let names = Application::etc_hosts_file(&args.folder);
    if args.first {
        let first = hosts.first().ok_or_else(|| Failure::Input("the lab has no hosts".to_owned()))?;
        let (program, arguments) = args.arguments.split_first().expect("clap requires at least one");
        return Err(lab.exec_on_host(first, &names, program, arguments).into());
    }
    let command = RemoteCommand::parse(&args.arguments)?;
    let Some(host) = hosts.iter().find(|host| host.matches_name(&command.host)) else {
        // The error lists the existing hosts.
        let node = lab.node(&command.host)?;
        let name = &lab.plan().node(node).name;
        return Err(Failure::Input(format!("{name} is a switch: applications run on hosts")));
    };
    let line = [OsString::from("-c"), command.line];
    Err(lab.exec_on_host(host, &names, "/bin/sh".as_ref(), &line).into())
}
