//! `pathweave ofi`: the libfabric provider, for shells and for users.

// Doc comments of arguments are their help texts, in which brackets are plain text.
#![allow(rustdoc::broken_intra_doc_links)]

pub(super) mod env;
mod info;
pub(super) mod shell;

use clap::{Args, Subcommand};

use crate::failure::{Failure, Outcome};

/// MPI, SHMEM and NCCL use pathweave through libfabric, which loads pathweave's library, the provider.
#[derive(Args, Debug)]
pub(crate) struct OfiArgs {
    #[command(subcommand)]
    command: OfiCommand,
}

#[derive(Debug, Subcommand)]
enum OfiCommand {
    /// Print the shell variables that make programs use the provider: eval "$(pathweave ofi env)"
    Env(env::EnvArgs),
    /// Print the offers of the provider in this environment, or the reason why there are none
    Info(info::InfoArgs),
}

pub(crate) fn ofi(args: &OfiArgs) -> Result<Outcome, Failure> {
    match &args.command {
        OfiCommand::Env(args) => env::env(args),
        OfiCommand::Info(args) => info::info(args),
    }
}
