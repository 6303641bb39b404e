//! Measures the datapath between two hosts: bandwidth, message rate, latency, CPU time, and the traffic of each path.
//!
//! A client ([`measure`]) requests one measurement after the other from a server ([`serve`]). [`survey()`] probes the
//! paths to a server. The client, the report and the server's part in a measurement (`end.rs`) are common to both
//! services of the datapath. The modules `connection` and `datagram` hold the parts that differ: set-up, control
//! messages and counters. The program that runs a measurement receives its progress through a [`Console`], and can
//! stop it there.

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
mod report;
mod samples;
mod server;
mod survey;
mod tally;
mod test;
mod work;

pub use client::{Report, measure};
pub use console::{Console, Failure, Health, Note, Progress, Service};
pub use meet::ClientOptions;
pub use open::any_port_for;
pub use report::Ended;
pub use server::{Served, ServerOptions, serve};
pub use survey::{Survey, SurveyOptions, survey};
pub use test::{Check, Directions, Kind, MAX_DEPTH, Op, Test};

/// Serialises a value. Plain data with text keys cannot fail.
fn json(value: &impl serde::Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("plain data with text keys serialises");
    text.push('\n');
    text
}
