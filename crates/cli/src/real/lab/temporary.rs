//! Lab for the duration of one command.

use pathweave_lab::{KEEPER_ARGUMENTS, Lab, LabError, LabNamespaces, Plan, Removed};

use crate::failure::Failure;
use crate::self_command;
use crate::terminal;

impl From<LabError> for Failure {
    fn from(why: LabError) -> Self {
        Failure::Input(why.to_string())
    }
}

/// Enters the namespace in which labs are created, and creates it if needed. Must be called before any thread is
/// started.
pub(crate) fn workplace_to_make() -> Result<LabNamespaces, Failure> {
    Ok(LabNamespaces::enter_or_create(self_command::command()?.args(KEEPER_ARGUMENTS))?)
}

/// Lab that is removed on drop. The workplace is removed with it if this was its last lab, unless it is
/// [`LabNamespaces::None`]; then its owner removes it.
pub(crate) struct Temporary {
    lab: Lab,
    workplace: LabNamespaces,
}

impl Temporary {
    pub(crate) fn make(
        plan: Plan,
        workplace: LabNamespaces,
        stop: &dyn Fn() -> bool,
    ) -> Result<Temporary, LabError> {
        match Lab::create(plan, stop) {
            Ok(lab) => Ok(Temporary { lab, workplace }),
            Err(why) => {
                print_error(workplace.close_if_empty());
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
        print_error(removed.and_then(|()| self.workplace.close_if_empty()));
    }
}

/// Prints an error of the removal, which cannot be returned.
fn print_error(done: Result<(), LabError>) {
    if let Err(why) = done {
        terminal::note(&format!("the lab is not removed: {why}"));
    }
}
