//! `pathweave man`: manual pages.

use clap::{Args, Command};
use std::path::PathBuf;

use crate::failure::{Failure, Outcome};

#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Folder to which pathweave.1 and one page for each command are written
    pub(crate) folder: PathBuf,
}

pub(crate) fn man(args: &ManArgs, program: Command) -> Result<Outcome, Failure> {
    clap_mangen::generate_to(program, &args.folder)
        .map_err(|why| Failure::Input(format!("cannot write {}: {why}", args.folder.display())))?;
    Ok(Outcome::Done)
}
