//! Commands that need the real datapath: labs, measurements, the libfabric provider. Excluded without the feature
//! `datapath`.

mod key;
mod lab;
mod libraries;
pub(crate) mod nccl;
mod ofi;
mod perf;
mod ping;
mod testbed;

use clap::Subcommand;
pub(crate) use testbed::{Testbed, TestbedArgs};

use crate::failure::{Failure, Outcome};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a small real network on this machine from a scenario or topology file
    Lab(lab::LabArgs),
    /// Measure the real datapath between two hosts
    Perf(Box<perf::PerfArgs>),
    /// Survey the paths to a `pathweave perf server`: round-trip times, losses, marks
    Ping(ping::PingArgs),
    /// Make the key file of a cluster, or check one
    Key(key::KeyArgs),
    /// Set up the libfabric provider: shell variables and capabilities
    Ofi(ofi::OfiArgs),
}

pub(crate) fn dispatch(command: &Command) -> Result<Outcome, Failure> {
    match command {
        Command::Lab(args) => lab::lab(args),
        Command::Perf(args) => perf::perf(args),
        Command::Ping(args) => ping::ping(args),
        Command::Key(args) => key::key(args),
        Command::Ofi(args) => ofi::ofi(args),
    }
}

impl From<pathweave_perf::Failure> for Failure {
    fn from(why: pathweave_perf::Failure) -> Self {
        match why {
            pathweave_perf::Failure::Input(what) => Failure::Input(what),
            pathweave_perf::Failure::Internal(what) => Failure::Internal(what),
        }
    }
}
