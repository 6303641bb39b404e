//! `pathweave ping`: survey of the paths to a server.

// Doc comments of arguments are their help texts, in which brackets are plain text.
#![allow(rustdoc::broken_intra_doc_links)]

use std::time::Duration;

use clap::Args;
use pathweave_datapath::{DeviceConfig, Driving};
use pathweave_perf::SurveyOptions;

use crate::failure::{Failure, Outcome};
use crate::real::perf::{ProtectionArgs, Screen, resolve, seconds};
use crate::terminal;

/// Surveys the paths to a `pathweave perf server`: sends probes and small messages on each path at intervals.
#[derive(Args, Debug)]
pub(crate) struct PingArgs {
    /// Server: host, host:port, [v6address]:port; the default port is 18515
    #[arg(value_name = "ADDR")]
    server: String,
    /// Number of paths to survey, which are UDP source ports, 1 to 256; at most as many as the server has
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    paths: u16,
    /// Number of probes on each path
    #[arg(long, short, value_name = "N", default_value_t = 10, value_parser = crate::options::whole(1..=1_000_000))]
    count: u64,
    /// Interval between probes, seconds: 0.1, 20ms
    #[arg(long, short, value_name = "SECONDS", default_value = "0.1", value_parser = seconds)]
    interval: Duration,
    /// MTU of the links, bytes; the smaller one of both ends is used
    #[arg(long, value_name = "BYTES", default_value_t = 1_500, value_parser = clap::value_parser!(u32).range(448..=65_536))]
    mtu: u32,
    #[command(flatten)]
    protection: ProtectionArgs,
    /// Seconds without an answer after which to give up the server
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    timeout: Duration,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn ping(args: &PingArgs) -> Result<Outcome, Failure> {
    let server = resolve(&args.server)?;
    let mut device = DeviceConfig::new(pathweave_perf::any_port_for(server));
    device.paths = args.paths;
    device.fit_link(args.mtu as usize).map_err(|why| Failure::Input(format!("--mtu: {why}")))?;
    device.driving = Driving::Caller;
    device.connect_timeout = args.timeout;
    args.protection.apply(&mut device)?;
    let screen = Screen::of_survey()?;
    let options = SurveyOptions { server, device, count: args.count, interval: args.interval };
    let survey = pathweave_perf::survey(&options, &screen)?;
    terminal::out(&if args.json { survey.json() } else { survey.text() });
    Ok(if survey.is_interrupted() { Outcome::Interrupted } else { Outcome::Done })
}
