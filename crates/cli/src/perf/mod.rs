//! `pathweave perf`: what the real datapath achieves between two hosts.

mod args;
mod bundle;
mod client;
mod clients;
mod device;
mod erd;
mod flow;
mod meter;
mod pattern;
mod progress;
mod samples;
mod server;
mod session;
mod show;
mod side;
mod test;
mod words;
mod work;

pub(crate) use args::{PerfArgs, ProtectionArgs, seconds};
pub(crate) use client::{Asks, Ready, meet};
pub(crate) use clients::draw_number;
pub(crate) use device::{any_port_for, note_paths, open, resolve};
pub(crate) use samples::{Latency, Samples};
pub(crate) use test::{Check, Directions, Kind, Op, Test};
pub(crate) use words::Broken;

use args::{PerfCommand, Transport};

use crate::failure::{Failure, Outcome};

pub(crate) fn perf(args: &PerfArgs) -> Result<Outcome, Failure> {
    match &args.command {
        PerfCommand::Server(args) => match args.device.transport {
            Transport::Rc => server::server(args),
            Transport::Erd => erd::server(args),
        },
        PerfCommand::Client(args) => match args.device.transport {
            Transport::Rc => client::client(args),
            Transport::Erd => erd::client(args),
        },
    }
}
