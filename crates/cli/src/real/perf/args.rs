//! The command line of `pathweave perf`.

// What documents an argument is its help text, in which brackets are brackets.
#![allow(rustdoc::broken_intra_doc_links)]

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use pathweave_datapath::{MAX_MESSAGE_BYTES, Uncontrolled};
use pathweave_scenario::units::{Bytes, Duration, Rate};

use pathweave_bypass::dpdk::{Local, Vdev};
use pathweave_perf::{Check, ClientOptions, Directions, Kind, MAX_DEPTH, Op, ServerOptions, Service, Test};

use crate::failure::Failure;
use crate::options::Talk;

/// Port of `pathweave perf server` unless said otherwise, as that of the RDMA perftests.
pub(crate) const DEFAULT_PORT: u16 = 18_515;

/// How long a measurement takes unless said otherwise.
const DEFAULT_TIME: std::time::Duration = std::time::Duration::from_secs(2);

/// Measures the real datapath between two hosts: bandwidth, message rate, latency, CPU time, and what each path did.
#[derive(Args, Debug)]
pub(crate) struct PerfArgs {
    #[command(subcommand)]
    pub(crate) command: PerfCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PerfCommand {
    /// Serve clients, several at once, until Ctrl-C or until --clients have been served
    Server(ServerArgs),
    /// Measure against a server
    Client(ClientArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ServerArgs {
    /// Address and port to serve at; port 0: any that is free, which is printed. Several with commas, one of each network
    /// interface: paths are spread over all of them
    #[arg(long, value_name = "ADDR", value_delimiter = ',', default_values_t = [SocketAddr::from(([0, 0, 0, 0], DEFAULT_PORT))])]
    pub(crate) bind: Vec<SocketAddr>,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Memory a client may ask for, in each direction
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size)]
    pub(crate) max_memory: u64,
    /// Which schemes without congestion control (rps-nocc) clients may choose: none, or all, which a network must bear
    #[arg(long, value_enum, default_value_t = UncontrolledKind::None, value_name = "WHICH")]
    pub(crate) uncontrolled: UncontrolledKind,
    /// End after so many clients, at once or one after the other, and refuse further ones. A client that measures several
    /// sizes counts once [default: serve until Ctrl-C]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) clients: Option<u64>,
    /// Print only errors and the address
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// When it ends, print as JSON what each client measured, on standard output and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ClientArgs {
    /// The server: host, host:port, [v6address]:port; the port is 18515 unless said otherwise. Several with commas: the first
    /// that answers
    #[arg(value_name = "ADDR")]
    pub(crate) server: String,
    /// Addresses to send from with commas, one of each network interface: paths are spread over all of them [default: as
    /// routing says]
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    pub(crate) bind: Vec<IpAddr>,
    /// What to measure [default: write; with --transport erd send, which is all there is]
    #[arg(long, value_enum)]
    pub(crate) op: Option<Verb>,
    /// Bytes of a message: 65536, 64KiB, 1MB; several with commas [default: 64KiB; with --latency 8]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = message_size)]
    pub(crate) size: Vec<u64>,
    /// All powers of two from 2 bytes to 8 MiB
    #[arg(long, conflicts_with = "size")]
    pub(crate) all_sizes: bool,
    /// Messages under way at a time
    #[arg(
        long,
        value_name = "N",
        default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_DEPTH))
    )]
    pub(crate) depth: u32,
    /// Scheme that decides rates and paths; `pathweave list schemes` [default: weave; with --transport erd: erd]
    #[arg(long, value_name = "NAME")]
    pub(crate) scheme: Option<String>,
    /// Seconds to measure each size for: 10, 0.5 [default: 2]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "iterations")]
    pub(crate) time: Option<std::time::Duration>,
    /// Messages of each size, instead of a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    pub(crate) iterations: Option<u64>,
    /// Measure latency: one message at a time, there and back
    #[arg(long)]
    pub(crate) latency: bool,
    /// Both ends send at once
    #[arg(long, conflicts_with = "latency")]
    pub(crate) bidirectional: bool,
    /// Check every byte that arrives. What is measured then includes making and checking them
    #[arg(long)]
    pub(crate) verify: bool,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Give up a server that does not answer after so many seconds
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) timeout: std::time::Duration,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// How an end of a measurement is opened.
#[derive(Args, Debug)]
pub(crate) struct DeviceArgs {
    /// What carries messages; the same at both ends
    #[arg(long, value_enum, default_value_t = Transport::Rc)]
    pub(crate) transport: Transport,
    /// Paths to send on: UDP source ports, 1 to 256. Each direction of a connection has as many as the end with fewer
    /// [default: 16; with --transport erd 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) paths: Option<u16>,
    /// MTU of the links, bytes, IP header included; the smaller of both ends' is used
    #[arg(long, value_name = "BYTES", default_value_t = 1_500, value_parser = clap::value_parser!(u32).range(448..=65_536))]
    pub(crate) mtu: u32,
    /// What carries packets: UDP sockets; AF_XDP or DPDK, past the kernel's network stack (docs/bypass.md); or AF_XDP if there is
    /// any, otherwise UDP sockets, and says why
    #[arg(long, value_enum, default_value_t = BackendKind::Udp, value_name = "WHAT")]
    pub(crate) backend: BackendKind,
    /// The network interface for --backend af-xdp: eth0
    #[arg(long, value_name = "NAME")]
    pub(crate) interface: Option<String>,
    #[command(flatten)]
    pub(crate) port: PortArgs,
    /// Rate of the network interface, of all together if there are several: the most a connection sends
    #[arg(long, value_name = "RATE", default_value = "100Gbps")]
    pub(crate) line_rate: Rate,
    #[command(flatten)]
    pub(crate) protection: ProtectionArgs,
    /// Poll for packets all the time; takes a whole core
    #[arg(long, conflicts_with = "blocking")]
    pub(crate) busy_poll: bool,
    /// Always sleep when there is nothing to do [default: sleep, but look for answers that come at once]
    #[arg(long)]
    pub(crate) blocking: bool,
    /// Run on this core only
    #[arg(long, value_name = "N")]
    pub(crate) cpu: Option<usize>,
    /// Who sends and receives packets: the thread that posts work, or one of the device's own
    #[arg(long, value_enum, default_value_t = DrivenBy::Caller, value_name = "WHO")]
    pub(crate) driven_by: DrivenBy,
}

/// A port of DPDK.
#[derive(Args, Debug)]
pub(crate) struct PortArgs {
    /// A virtual device for --backend dpdk: net_memif0,role=client,socket=FILE, net_af_packet0,iface=eth0
    #[arg(long, value_name = "DEVICE", value_parser = str::parse::<Vdev>, conflicts_with = "pci")]
    pub(crate) vdev: Option<Vdev>,
    /// A network adapter for --backend dpdk, by PCI address: 0000:03:00.0
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) pci: Option<String>,
    /// Address of a port that the kernel does not know, with its network: 10.0.0.1/24
    #[arg(long, value_name = "ADDR/BITS", value_parser = str::parse::<Local>)]
    pub(crate) address: Option<Local>,
    /// Who passes packets of such a port on to other networks
    #[arg(long, value_name = "ADDR")]
    pub(crate) gateway: Option<IpAddr>,
    /// Whether DPDK's packets lie in huge pages
    #[arg(long, value_enum, default_value_t = HugePagesKind::Auto, value_name = "WHEN")]
    pub(crate) huge_pages: HugePagesKind,
}

/// Whether packets lie in huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HugePagesKind {
    /// If enough are free
    Auto,
    /// Yes, or fail
    Always,
    /// No
    Never,
}

/// What carries packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackendKind {
    /// UDP sockets
    Udp,
    /// AF_XDP sockets at one network interface, --interface
    AfXdp,
    /// A port of DPDK, --vdev or --pci
    Dpdk,
    /// AF_XDP if there is any, otherwise UDP sockets
    Auto,
}

/// How packets are protected; both ends alike.
#[derive(Args, Debug)]
pub(crate) struct ProtectionArgs {
    /// The cluster's key: a line of 64 hexadecimal digits, the same file at both ends
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Authenticate packets but do not encrypt them
    #[arg(long, conflicts_with = "insecure")]
    pub(crate) auth_only: bool,
    /// No protection: for closed fabrics and measurements
    #[arg(long)]
    pub(crate) insecure: bool,
}

/// Schemes without congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum UncontrolledKind {
    /// They are refused
    None,
    /// They are accepted
    All,
}

/// What carries messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// A reliable connection
    Rc,
    /// Reliable datagrams: one endpoint for any number of peers
    Erd,
}

/// A verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verb {
    /// To the server's next receive
    Send,
    /// To the server's memory
    Write,
    /// From the server's memory
    Read,
}

impl Transport {
    fn service(self) -> Service {
        match self {
            Transport::Rc => Service::Connection,
            Transport::Erd => Service::Datagram,
        }
    }
}

impl ServerArgs {
    /// # Errors
    /// Something about the device cannot be.
    pub(crate) fn options(&self) -> Result<ServerOptions, Failure> {
        let mut device = self.device.config(&self.bind)?;
        device.uncontrolled = match self.uncontrolled {
            // The server's own scheme is a controlled one.
            UncontrolledKind::None => Uncontrolled::Own,
            UncontrolledKind::All => Uncontrolled::All,
        };
        Ok(ServerOptions {
            service: self.device.transport.service(),
            device,
            carrier: self.device.carrier()?,
            max_memory_bytes: self.max_memory,
            clients: self.clients,
        })
    }
}

impl ClientArgs {
    /// # Errors
    /// There is no such server, or something about the device cannot be.
    pub(crate) fn options(&self) -> Result<ClientOptions, Failure> {
        let (server, other_servers) = super::resolve_all(&self.server)?;
        if self.device.transport == Transport::Erd && !other_servers.is_empty() {
            return Err(Failure::Input("several addresses of a server are for --transport rc".to_owned()));
        }
        let mut bind: Vec<SocketAddr> = self.bind.iter().map(|ip| SocketAddr::new(*ip, 0)).collect();
        if bind.is_empty() {
            bind.push(pathweave_perf::any_port_for(server));
        }
        let mut device = self.device.config(&bind)?;
        device.connect_timeout = self.timeout;
        Ok(ClientOptions {
            service: self.device.transport.service(),
            server,
            other_servers,
            device,
            carrier: self.device.carrier()?,
            scheme: self.scheme.clone(),
            tests: self.tests(),
            time: self.time.unwrap_or(DEFAULT_TIME),
        })
    }

    /// A test a size.
    fn tests(&self) -> Vec<Test> {
        let op = match (self.op, self.device.transport) {
            (Some(Verb::Send), _) | (None, Transport::Erd) => Op::Send,
            (Some(Verb::Write), _) | (None, Transport::Rc) => Op::Write,
            (Some(Verb::Read), _) => Op::Read,
        };
        let test = |size_bytes| Test {
            kind: if self.latency { Kind::Latency } else { Kind::Bandwidth },
            op,
            size_bytes,
            depth: if self.latency { 1 } else { self.depth },
            iterations: self.iterations,
            directions: if self.bidirectional { Directions::Both } else { Directions::One },
            check: if self.verify { Check::EveryByte } else { Check::Off },
        };
        self.sizes().into_iter().map(test).collect()
    }

    /// Sizes of messages, one measurement each.
    fn sizes(&self) -> Vec<u64> {
        match (self.all_sizes, self.size.is_empty(), self.latency) {
            (true, _, _) => (1..=23).map(|power| 1 << power).collect(),
            (false, false, _) => self.size.clone(),
            (false, true, true) => vec![8],
            (false, true, false) => vec![64 << 10],
        }
    }
}

/// Who runs a device's loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DrivenBy {
    /// The thread that posts and waits: fewest changes of thread
    Caller,
    /// A thread of its own: sends while the application computes
    Thread,
}

/// A span of seconds, at most a day.
pub(crate) fn seconds(text: &str) -> Result<std::time::Duration, String> {
    const LONGEST_S: f64 = 86_400.0;
    let with_unit = || text.parse::<Duration>().ok().map(Duration::as_secs_f64);
    let seconds = text.parse::<f64>().ok().or_else(with_unit);
    match seconds {
        Some(seconds) if (0.001..=LONGEST_S).contains(&seconds) => {
            Ok(std::time::Duration::from_secs_f64(seconds))
        }
        _ => Err("allowed are 0.001 to 86400 seconds".into()),
    }
}

/// Bytes, with or without a unit.
fn size(text: &str) -> Result<u64, String> {
    if let Ok(bytes) = text.trim().parse::<u64>() {
        return Ok(bytes);
    }
    text.parse::<Bytes>().map(Bytes::get).map_err(|why| format!("{why}; or a number of bytes without unit"))
}

fn message_size(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    if (1..=MAX_MESSAGE_BYTES).contains(&bytes) {
        Ok(bytes)
    } else {
        Err(format!("a message has 1 to {MAX_MESSAGE_BYTES} bytes (4 GiB)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_need_no_unit_but_may_have_one() {
        assert_eq!(message_size("65536"), Ok(65_536));
        assert_eq!(message_size("1MiB"), Ok(1 << 20));
        assert_eq!(message_size("4GiB"), Ok(MAX_MESSAGE_BYTES));
        assert!(message_size("0").unwrap_err().contains("1 to 4294967296 bytes"));
        assert!(message_size("5GiB").unwrap_err().contains("1 to 4294967296 bytes"));
        assert!(message_size("1 mile").unwrap_err().contains("KiB"));
    }

    #[test]
    fn spans_are_seconds_unless_they_say_otherwise() {
        assert_eq!(seconds("0.5"), Ok(std::time::Duration::from_millis(500)));
        assert_eq!(seconds("20ms"), Ok(std::time::Duration::from_millis(20)));
        for wrong in ["0", "-1", "nan", "1e9", "soon"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
