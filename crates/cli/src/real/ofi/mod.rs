//! `pathweave ofi`: the libfabric provider, for shells and for people.

// What documents an argument is its help text, in which brackets are brackets.
#![allow(rustdoc::broken_intra_doc_links)]

mod env;
mod info;
mod shell;

use clap::{Args, Subcommand};

use crate::failure::{Failure, Outcome};

/// MPI, SHMEM and NCCL reach pathweave through libfabric, which loads a library of ours: the provider.
#[derive(Args, Debug)]
pub(crate) struct OfiArgs {
    #[command(subcommand)]
    command: OfiCommand,
}

#[derive(Debug, Subcommand)]
enum OfiCommand {
    /// Print the shell variables that make programs use the provider: eval "$(pathweave ofi env)"
    Env(env::EnvArgs),
    /// Print what the provider offers in this environment, or why it offers nothing
    Info(info::InfoArgs),
}

pub(crate) fn ofi(args: &OfiArgs) -> Result<Outcome, Failure> {
    match &args.command {
        OfiCommand::Env(args) => env::env(args),
        OfiCommand::Info(args) => info::info(args),
    }
}
