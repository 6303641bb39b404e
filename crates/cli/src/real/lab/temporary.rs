//! A lab for the time of one command.

use pathweave_lab::{KEEPER_ARGUMENTS, Lab, LabError, Plan, Removed, Workplace};

use crate::failure::Failure;
use crate::itself;
use crate::terminal;

impl From<LabError> for Failure {
    fn from(why: LabError) -> Self {
        Failure::Input(why.to_string())
    }
}

/// Goes to where labs are made, making that place if need be. Before any thread is started.
pub(crate) fn workplace_to_make() -> Result<Workplace, Failure> {
    Ok(Workplace::enter_or_make(itself::command()?.args(KEEPER_ARGUMENTS))?)
}

/// A lab that is removed with this value, and with it the workplace, if it was the last there; [`Workplace::None`]: that is for
/// somebody else to do.
pub(crate) struct Temporary {
    lab: Lab,
    workplace: Workplace,
}

impl Temporary {
    pub(crate) fn make(
        plan: Plan,
        workplace: Workplace,
        stop: &dyn Fn() -> bool,
    ) -> Result<Temporary, LabError> {
        match Lab::make(plan, stop) {
            Ok(lab) => Ok(Temporary { lab, workplace }),
            Err(why) => {
                said(workplace.close_if_empty());
                Err(why)
            }
        }
    }

    pub(crate) fn lab(&mut self) -> &mut Lab {
        &mut self.lab
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let removed = Lab::remove(self.lab.plan().lab()).map(|Removed { processes, .. }| {
            for process in processes {
                terminal::note(&format!("ended process {} ({})", process.pid, process.name));
            }
        });
        said(removed.and_then(|()| self.workplace.close_if_empty()));
    }
}

/// There is nobody left to whom an error could go.
fn said(done: Result<(), LabError>) {
    if let Err(why) = done {
        terminal::note(&format!("the lab is not removed: {why}"));
    }
}
