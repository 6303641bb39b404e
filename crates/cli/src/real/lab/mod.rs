//! `pathweave lab`: a small real network on this machine.

mod args;
mod backend;
mod exec;
mod run;
mod show;
mod temporary;
mod up;

pub(crate) use args::LabArgs;
pub(super) use backend::LabBackend;
pub(super) use temporary::{Temporary, workplace_to_make};

use pathweave_lab::{Lab, LabError, LabName, LabNamespaces, LinkState, Removed, keep_workplace};

use args::{DownArgs, LabCommand, LabSelection, RerouteAfter, State};

use crate::failure::{Failure, Outcome};
use crate::terminal;

pub(crate) fn lab(args: &LabArgs) -> Result<Outcome, Failure> {
    match &args.command {
        LabCommand::Up(args) => up::up(args),
        LabCommand::Down(args) => down(args),
        LabCommand::Run(args) => run::run(args),
        LabCommand::List { json } => show::list(*json),
        LabCommand::Show { which, json } => show::show(&find(which)?, *json),
        LabCommand::Exec(args) => exec::exec(args),
        LabCommand::Agent(args) => exec::agent(args),
        LabCommand::Fail { which, link, state, reroute_after } => {
            let mut lab = find(which)?;
            let link = lab.link(link)?;
            lab.set_link(link, state.into_lab())?;
            if let RerouteAfter::Time(span) = reroute_after {
                std::thread::sleep(*span);
                lab.reroute()?;
            }
            Ok(Outcome::Done)
        }
        LabCommand::KeepWorkplace => match keep_workplace()? {},
    }
}

impl State {
    fn into_lab(self) -> LinkState {
        match self {
            State::Up => LinkState::Up,
            State::Down => LinkState::Down,
        }
    }
}

/// Returns the lab that a command refers to.
fn find(which: &LabSelection) -> Result<Lab, Failure> {
    reach_labs()?;
    Ok(Lab::open(&name(which.lab.as_ref())?)?)
}

/// Enters the namespace that holds this user's labs. Returns an error if there can be none. Labs of other users must
/// not be changed.
fn reach_labs() -> Result<LabNamespaces, Failure> {
    match LabNamespaces::enter()? {
        LabNamespaces::None => Err(LabError::NoLab.into()),
        found => Ok(found),
    }
}

fn name(given: Option<&LabName>) -> Result<LabName, Failure> {
    given.map_or_else(|| Ok(Lab::single()?), |name| Ok(name.clone()))
}

fn down(args: &DownArgs) -> Result<Outcome, Failure> {
    let workplace = reach_labs()?;
    let names: Vec<LabName> = if args.all {
        Lab::all()?.into_iter().map(|listing| listing.lab).collect()
    } else {
        vec![name(args.name.as_ref().or(args.lab.as_ref()))?]
    };
    for name in &names {
        let Removed { namespaces, processes } = Lab::remove(name)?;
        for process in processes {
            terminal::note(&format!("ended process {} ({})", process.pid, process.name));
        }
        terminal::note(&format!("removed {name}: {namespaces} network namespaces"));
    }
    workplace.close_if_empty()?;
    Ok(Outcome::Done)
}
