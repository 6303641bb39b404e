//! `pathweave perf`: what the real datapath achieves between two hosts.
//!
//! One client (`client.rs`), one report (`show.rs`) and the server's part in a measurement (`end.rs`) are for both services.
//! What each of them has of its own is `connection` and `datagram`: how ends meet, what they say to each other, what they count.

mod args;
mod broken;
mod client;
mod clients;
mod connection;
mod datagram;
mod device;
mod end;
mod meet;
mod meter;
mod pattern;
mod progress;
mod samples;
mod server;
mod show;
mod test;
mod work;

pub(crate) use args::{PerfArgs, ProtectionArgs, seconds};
pub(crate) use broken::Broken;
pub(crate) use clients::draw_number;
pub(crate) use connection::{ConnectionEnd, meet};
pub(crate) use device::{any_port_for, note_paths, open, resolve};
pub(crate) use meet::Asks;
pub(crate) use samples::{Latency, Samples};
pub(crate) use test::{Check, Directions, Kind, Op, Test};

use args::PerfCommand;

use crate::failure::{Failure, Outcome};

pub(crate) fn perf(args: &PerfArgs) -> Result<Outcome, Failure> {
    match &args.command {
        PerfCommand::Server(args) => server::server(args),
        PerfCommand::Client(args) => client::client(args),
    }
}
