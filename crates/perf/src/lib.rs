//! What the real datapath achieves between two hosts: bandwidth, message rate, latency, CPU time, and what each path did.
//!
//! A client ([`measure`]) asks a server ([`serve`]) for one measurement after the other; [`survey`] probes the paths to a
//! server. One client, one report and one server's part in a measurement (`end.rs`) are for both services of the datapath.
//! What each of them has of its own is in `connection` and `datagram`: how ends meet, what they say to each other, what
//! they count. The program that runs a measurement is told of it, and stops it, through a [`Console`].

mod broken;
mod client;
mod clients;
mod connection;
mod console;
mod datagram;
mod end;
mod meet;
mod meter;
mod open;
mod pattern;
mod samples;
mod server;
mod show;
mod survey;
mod tally;
mod test;
mod work;

pub use client::{Report, measure};
pub use console::{Console, Failure, Health, Note, Progress, Service};
pub use meet::ClientOptions;
pub use open::any_port_for;
pub use server::{Served, ServerOptions, serve};
pub use show::Ended;
pub use survey::{Survey, SurveyOptions, survey};
pub use test::{Check, Directions, Kind, MAX_DEPTH, Op, Test};

/// Plain data with text keys always serialises.
fn json(value: &impl serde::Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("plain data with text keys serialises");
    text.push('\n');
    text
}
