//! Command line of `pathweave lab`.

// Doc comments of arguments are their help texts, in which brackets are plain text.
#![allow(rustdoc::broken_intra_doc_links)]

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use pathweave_lab::{LabName, RateScale, SuperPackets};
use pathweave_scenario::units::{Bytes, Duration};

use super::backend::LabBackend;
use crate::options::{Changes, OutputOptions};

/// A lab is a network inside this machine. Each host and switch is a network namespace, and each link is a pair of
/// virtual Ethernet ports with a token bucket.
#[derive(Args, Debug)]
#[command(after_help = PRIVILEGES)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

const PRIVILEGES: &str = "\
Labs need Linux, and root or user namespaces. Without root a lab lives in a user namespace that every
command finds again; there switches mark nothing and links lose nothing at random, because loading
BPF programs is for root.";

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Create a lab
    Up(UpArgs),
    /// Remove a lab, even an incomplete one, and end its processes
    Down(DownArgs),
    /// Create a lab, run a scenario's traffic on it with the real datapath, write results, and remove the lab
    Run(RunArgs),
    /// List labs
    List {
        /// Print the list as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show hosts, switches and links of a lab: addresses, rates, packets sent and dropped
    Show {
        #[command(flatten)]
        which: LabSelection,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a program on a host or switch, or an application (MPI) on all hosts
    Exec(Box<ExecArgs>),
    /// Take a link down or bring it up
    Fail {
        #[command(flatten)]
        which: LabSelection,
        /// Link, by the names of its ends: leaf0-spine1
        link: String,
        /// New state. A link that is down loses all packets without notice
        state: State,
        /// Time until routes avoid the link or use it again; "never" does not change routes
        #[arg(long, value_name = "TIME", default_value = "1ms")]
        reroute_after: RerouteAfter,
    },
    /// Keep the namespaces of a user who is not root
    #[command(hide = true)]
    KeepWorkplace,
    /// Run a command on a host, called like ssh by an application's launcher
    #[command(hide = true)]
    Agent(AgentArgs),
}

/// Program in a lab, on one host or with access to all hosts.
#[derive(Args, Debug)]
#[command(after_help = WAYS)]
pub(crate) struct ExecArgs {
    /// Scenario or topology file: an existing file, or a name that ends in .toml, .txt or .topo, unless --lab is
    /// given. Otherwise the name of a host or switch
    #[arg(value_name = "FILE|HOST")]
    pub(crate) place: Option<String>,
    #[command(flatten)]
    pub(crate) which: LabSelection,
    /// With FILE: name of the lab [default: the scenario's, or the file's]
    #[arg(long, value_name = "NAME", conflicts_with = "lab")]
    pub(crate) name: Option<LabName>,
    /// Without HOST: folder with libpathweave-fi.so, the libfabric provider [default: the one installed
    /// with this program; without one, FI_PROVIDER is not set]
    #[arg(long, value_name = "DIR")]
    pub(crate) provider: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// Program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

const WAYS: &str = "\
The argument before \"--\" decides:
  HOST     the program runs on that host or switch of a lab that is up
  FILE     a lab is made from it, the program runs on its first host, and the lab is removed when the program has ended,
           in any case; the scenario's faults come at their times from the program's start
  nothing  the program runs on the first host of a lab that is up
With FILE or nothing the launchers of Open MPI, MPICH and Intel MPI find the other hosts, and deal out ranks to
all of them in turn. Variables that are set already stay as they are.";

#[derive(Args, Debug)]
pub(crate) struct AgentArgs {
    /// Name of the lab
    #[arg(long, value_name = "NAME")]
    pub(crate) lab: LabName,
    /// Folder of the application
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Run a program on the first host; otherwise the arguments are those of ssh
    #[arg(long)]
    pub(crate) first: bool,
    /// Options, host and command in the form of ssh, or a program and its arguments
    #[arg(last = true, required = true, value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Args, Debug)]
pub(crate) struct UpArgs {
    /// Scenario (TOML), topology file (TOML), or topology.txt of HPCC
    #[arg(value_name = "SCENARIO|TOPOLOGY")]
    pub(crate) file: PathBuf,
    /// Name of the lab [default: the scenario's, or the file's]
    #[arg(long, visible_alias = "lab", value_name = "NAME")]
    pub(crate) name: Option<LabName>,
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
    #[command(flatten)]
    pub(crate) changes: Changes,
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Scenario file (TOML)
    pub(crate) scenario: PathBuf,
    /// Name of the lab [default: the scenario's]
    #[arg(long, visible_alias = "lab", value_name = "NAME")]
    pub(crate) name: Option<LabName>,
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// Packet backend
    #[arg(long, value_enum, default_value_t = LabBackend::Udp, value_name = "NAME")]
    pub(crate) backend: LabBackend,
    /// Also simulate the scenario, and compare both
    #[arg(long)]
    pub(crate) simulate: bool,
    /// Result folder [default: results/NAME-lab-seedN]. An existing folder is replaced only if it holds results
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) talk: OutputOptions,
}

/// Differences between the lab and the network that it represents.
#[derive(Args, Debug)]
pub(crate) struct SettingsArgs {
    /// Link rates relative to the file's: 1/1000, 0.001 [default: the largest power of ten that limits the fastest
    /// link to 1 Gb/s]
    #[arg(long, value_name = "F")]
    pub(crate) rate_scale: Option<RateScale>,
    /// IPv4 MTU of all links, bytes [default: 9000]
    #[arg(long, value_name = "N")]
    pub(crate) mtu: Option<u32>,
    /// Let one send with segmentation offload cross links as one packet of up to 64 KB [default: off]
    #[arg(long, value_enum)]
    pub(crate) super_packets: Option<OnOff>,
    /// Size of the queue in front of a switch's link, beyond which packets are dropped: 200KB [default: half the
    /// scenario's switch buffer, 16MB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) queue: Option<Bytes>,
}

#[derive(Args, Debug)]
pub(crate) struct DownArgs {
    /// Name of the lab [default: the only one there is]
    #[arg(conflicts_with = "all")]
    pub(crate) name: Option<LabName>,
    /// Name of the lab, as for other commands
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "all"])]
    pub(crate) lab: Option<LabName>,
    /// Remove all labs
    #[arg(long)]
    pub(crate) all: bool,
}

/// Selection of a lab.
#[derive(Args, Debug)]
pub(crate) struct LabSelection {
    /// Name of the lab [default: the only one there is]
    #[arg(long, value_name = "NAME")]
    pub(crate) lab: Option<LabName>,
}

/// State of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    /// The link carries packets
    Up,
    /// The link loses all packets
    Down,
}

/// Choice between on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnOff {
    /// Enabled
    On,
    /// Disabled
    Off,
}

impl From<OnOff> for SuperPackets {
    fn from(choice: OnOff) -> Self {
        match choice {
            OnOff::On => SuperPackets::On,
            OnOff::Off => SuperPackets::Off,
        }
    }
}

/// Delay until routes follow a change of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RerouteAfter {
    /// Routes change after this time.
    Time(std::time::Duration),
    /// Routes do not change.
    Never,
}

impl std::str::FromStr for RerouteAfter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        /// Limit on the delay.
        const LONGEST: Duration = Duration::from_ms(3_600_000);
        if text == "never" {
            return Ok(RerouteAfter::Never);
        }
        let span: Duration = text.parse().map_err(|why| format!("{why}; or \"never\""))?;
        if span > LONGEST {
            return Err(format!("at most {LONGEST}, or \"never\""));
        }
        Ok(RerouteAfter::Time(std::time::Duration::from_secs_f64(span.as_secs_f64())))
    }
}
