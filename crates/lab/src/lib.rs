//! Small real network on one Linux machine, created from a topology of the simulator.
//!
//! A [`Plan`] describes a lab as data. [`Lab::create`] creates it from network namespaces, veth pairs, token buckets
//! and routes, or removes everything again if a step fails. A lab describes itself in labels on its devices, so
//! [`Lab::open`], [`Lab::all`] and [`Lab::remove`] work in any process, and after a crash. [`run()`] sends a
//! scenario's traffic through it with the real datapath.
//!
//! ```no_run
//! use pathweave_lab::{Lab, LinkState, Plan, Settings, LabNamespaces};
//! use pathweave_topo::{Build, LeafSpine};
//!
//! // Root works in the machine's own list of namespaces; others need a workplace first.
//! LabNamespaces::enter()?;
//! let topology = LeafSpine::new(2, 2, 2).build(".".as_ref())?;
//! let plan = Plan::new("demo".parse()?, topology, Settings::new("1/1000".parse()?))?;
//! let mut lab = Lab::create(plan, &|| false)?;
//!
//! let host = lab.node("host0")?;
//! let address = lab.plan().node(host).address;
//! let socket = lab.inside(host, || std::net::UdpSocket::bind((address, 0)))?;
//! lab.set_link(lab.link("leaf0-spine1")?, LinkState::Down)?;
//! lab.reroute()?;
//! Lab::remove(&"demo".parse()?)?;
//! # drop(socket);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | Module | Subject |
//! |---|---|
//! | `plan`, `settings`, `name`, `label` | description of a lab: data, texts, limits |
//! | `create`, `discovery`, `lab`, `processes` | creation, discovery, change and removal |
//! | `privilege`, `inside` | labs without root privileges; execution of programs in a lab |
//! | `application` | third-party programs on several hosts at once |
//! | `schedule`, `run` | faults and traffic of a scenario |
//! | `programs`, `os` | interfaces to the kernel; the only unsafe code is the bpf system call |

mod application;
mod config;
mod create;
mod discovery;
mod error;
mod inside;
mod lab;
mod label;
mod name;
mod os;
mod plan;
mod privilege;
mod processes;
mod programs;
mod run;
mod schedule;
mod settings;
mod source;

pub use application::{
    Application, CommandResult, HostName, PROVIDER_LIBRARY, RemoteCommand, Signals, host_names,
    wait_for_command,
};
pub use error::LabError;
pub use lab::{Lab, LinkState, Listing, PortCounters, Removed, Summary};
pub use name::LabName;
pub use os::device::Counters;
pub use pathweave_linux::netlink::SystemError;
pub use plan::{MAX_LAB_LINKS, MAX_LAB_NODES, NodePlan, NodeRole, Plan, PortPlan, RoutePlan};
pub use privilege::{KEEPER_ARGUMENTS, LabNamespaces, keep_workplace, missing_privileges};
pub use processes::Process;
pub use run::{
    HostPort, LabRun, Load, OpenDevice, RunProgress, capacity_warning, over_sockets, recommended_rate_scale,
    run,
};
pub use schedule::{Change, Schedule};
pub use settings::{MTU_BYTES, Marking, QUEUE_BYTES, RateScale, Settings, SuperPackets};
pub use source::topology_of_file;
