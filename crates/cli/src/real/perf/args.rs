//! Command line of `pathweave perf`.

// Doc comments of arguments are their help texts, in which brackets are plain text.
#![allow(rustdoc::broken_intra_doc_links)]

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use pathweave_datapath::{MAX_MESSAGE_BYTES, Uncontrolled};
use pathweave_scenario::units::{Bytes, Duration, Rate};

use pathweave_bypass::dpdk::{Local, Vdev};
use pathweave_perf::{Check, ClientOptions, Directions, Kind, MAX_DEPTH, Op, ServerOptions, Service, Test};

use crate::failure::Failure;
use crate::options::{OutputOptions, whole};

/// Default port of `pathweave perf server`, the same as that of the RDMA perftests.
pub(crate) const DEFAULT_PORT: u16 = 18_515;

/// Default duration of a measurement.
const DEFAULT_TIME: std::time::Duration = std::time::Duration::from_secs(2);

/// Measures the real datapath between two hosts: bandwidth, message rate, latency, CPU time, and statistics of each
/// path.
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
    /// Address and port to listen on. Port 0 selects a free one, which is printed. Several with commas, one of each
    /// network interface: paths are spread over all of them
    #[arg(long, value_name = "ADDR", value_delimiter = ',', default_values_t = [SocketAddr::from(([0, 0, 0, 0], DEFAULT_PORT))])]
    pub(crate) bind: Vec<SocketAddr>,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Largest memory that a client may request, in each direction
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size)]
    pub(crate) max_memory: u64,
    /// Schemes without congestion control (rps-nocc) that clients may choose: none, or all, which the network must
    /// tolerate
    #[arg(long, value_enum, default_value_t = UncontrolledKind::None, value_name = "WHICH")]
    pub(crate) uncontrolled: UncontrolledKind,
    /// Exit after N clients, concurrent or consecutive, and refuse further ones. A client that measures several sizes
    /// counts once [default: serve until Ctrl-C]
    #[arg(long, value_name = "N", value_parser = whole(1..=u64::MAX))]
    pub(crate) clients: Option<u64>,
    /// Print only errors and the address
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Print the measurements of all clients as JSON on standard output at the end, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ClientArgs {
    /// Server: host, host:port, [v6address]:port; the default port is 18515. Several with commas: the first that
    /// answers is used
    #[arg(value_name = "ADDR")]
    pub(crate) server: String,
    /// Source addresses with commas, one of each network interface: paths are spread over all of them [default: by
    /// routing]
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    pub(crate) bind: Vec<IpAddr>,
    /// Operation to measure [default: write; with --transport erd send, the only one available]
    #[arg(long, value_enum)]
    pub(crate) op: Option<Verb>,
    /// Bytes of a message: 65536, 64KiB, 1MB; several with commas [default: 64KiB; with --latency 8]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = message_size)]
    pub(crate) size: Vec<u64>,
    /// Measure all powers of two from 2 bytes to 8 MiB
    #[arg(long, conflicts_with = "size")]
    pub(crate) all_sizes: bool,
    /// Number of messages in progress at a time
    #[arg(
        long,
        value_name = "N",
        default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_DEPTH))
    )]
    pub(crate) depth: u32,
    /// Scheme that determines rates and paths; `pathweave list schemes` lists all [default: weave; with --transport
    /// erd: erd]
    #[arg(long, value_name = "NAME")]
    pub(crate) scheme: Option<String>,
    /// Seconds to measure each size for: 10, 0.5 [default: 2]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "iterations")]
    pub(crate) time: Option<std::time::Duration>,
    /// Number of messages of each size, instead of a time
    #[arg(long, value_name = "N", value_parser = whole(1..=1 << 40))]
    pub(crate) iterations: Option<u64>,
    /// Measure latency: one message at a time, forth and back
    #[arg(long)]
    pub(crate) latency: bool,
    /// Send from both ends at once
    #[arg(long, conflicts_with = "latency")]
    pub(crate) bidirectional: bool,
    /// Verify every byte that arrives. Results then include the time to generate and verify the bytes
    #[arg(long)]
    pub(crate) verify: bool,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Seconds without an answer after which to give up the server
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) timeout: std::time::Duration,
    #[command(flatten)]
    pub(crate) talk: OutputOptions,
}

/// Options of the device at one end of a measurement.
#[derive(Args, Debug)]
pub(crate) struct DeviceArgs {
    /// Transport service of messages; the same at both ends
    #[arg(long, value_enum, default_value_t = Transport::Rc)]
    pub(crate) transport: Transport,
    /// Number of paths to send on, which are UDP source ports, 1 to 256. Each direction of a connection uses the
    /// smaller number of the two ends [default: 16; with --transport erd 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) paths: Option<u16>,
    /// MTU of the links, bytes, including the IP header; the smaller one of both ends is used
    #[arg(long, value_name = "BYTES", default_value_t = 1_500, value_parser = clap::value_parser!(u32).range(448..=65_536))]
    pub(crate) mtu: u32,
    /// Packet backend: UDP sockets; AF_XDP or DPDK, which bypass the kernel's network stack (docs/bypass.md); or
    /// auto, which uses AF_XDP if available, otherwise UDP sockets, and prints the reason
    #[arg(long, value_enum, default_value_t = BackendKind::Udp, value_name = "WHAT")]
    pub(crate) backend: BackendKind,
    /// Network interface for --backend af-xdp: eth0
    #[arg(long, value_name = "NAME")]
    pub(crate) interface: Option<String>,
    #[command(flatten)]
    pub(crate) port: PortArgs,
    /// Rate of the network interface, or the total rate of several: the maximum that a connection sends
    #[arg(long, value_name = "RATE", default_value = "100Gbps")]
    pub(crate) line_rate: Rate,
    #[command(flatten)]
    pub(crate) protection: ProtectionArgs,
    /// Poll for packets continuously; occupies a whole core
    #[arg(long, conflicts_with = "blocking")]
    pub(crate) busy_poll: bool,
    /// Sleep whenever there is nothing to do [default: sleep, but poll briefly for answers that come at once]
    #[arg(long)]
    pub(crate) blocking: bool,
    /// Run on this core only
    #[arg(long, value_name = "N")]
    pub(crate) cpu: Option<usize>,
    /// Thread that sends and receives packets: the one that posts work, or a separate thread of the device
    #[arg(long, value_enum, default_value_t = DrivenBy::Caller, value_name = "WHO")]
    pub(crate) driven_by: DrivenBy,
}

/// Port of DPDK.
#[derive(Args, Debug)]
pub(crate) struct PortArgs {
    /// Virtual device for --backend dpdk: net_memif0,role=client,socket=FILE, net_af_packet0,iface=eth0
    #[arg(long, value_name = "DEVICE", value_parser = str::parse::<Vdev>, conflicts_with = "pci")]
    pub(crate) vdev: Option<Vdev>,
    /// Network adapter for --backend dpdk, by PCI address: 0000:03:00.0
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) pci: Option<String>,
    /// Address and network prefix of a port that the kernel does not know: 10.0.0.1/24
    #[arg(long, value_name = "ADDR/BITS", value_parser = str::parse::<Local>)]
    pub(crate) address: Option<Local>,
    /// Gateway to other networks for such a port
    #[arg(long, value_name = "ADDR")]
    pub(crate) gateway: Option<IpAddr>,
    /// Use of huge pages for DPDK's packets
    #[arg(long, value_enum, default_value_t = HugePagesKind::Auto, value_name = "WHEN")]
    pub(crate) huge_pages: HugePagesKind,
}

/// Use of huge pages for packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HugePagesKind {
    /// Used if enough are free
    Auto,
    /// Used, or fail
    Always,
    /// Not used
    Never,
}

/// Packet backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackendKind {
    /// UDP sockets
    Udp,
    /// AF_XDP sockets at one network interface, --interface
    AfXdp,
    /// A port of DPDK, --vdev or --pci
    Dpdk,
    /// AF_XDP if available, otherwise UDP sockets
    Auto,
}

/// Protection of packets, the same at both ends.
#[derive(Args, Debug)]
pub(crate) struct ProtectionArgs {
    /// Key of the cluster: a file with a line of 64 hexadecimal digits, the same at both ends
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
    /// Refused
    None,
    /// Accepted
    All,
}

/// Transport service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// A reliable connection
    Rc,
    /// Reliable datagrams: one endpoint for any number of peers
    Erd,
}

/// Operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verb {
    /// Send to the server's next receive
    Send,
    /// Write to the server's memory
    Write,
    /// Read from the server's memory
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
    /// The device options are invalid.
    pub(crate) fn options(&self) -> Result<ServerOptions, Failure> {
        let mut device = self.device.config(&self.bind)?;
        device.uncontrolled = match self.uncontrolled {
            // The server's own scheme has congestion control.
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
    /// The server cannot be resolved, or the device options are invalid.
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

    /// Returns the tests, one for each size.
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

    /// Returns the sizes of messages to measure.
    fn sizes(&self) -> Vec<u64> {
        match (self.all_sizes, self.size.is_empty(), self.latency) {
            (true, _, _) => (1..=23).map(|power| 1 << power).collect(),
            (false, false, _) => self.size.clone(),
            (false, true, true) => vec![8],
            (false, true, false) => vec![64 << 10],
        }
    }
}

/// Thread that runs a device's loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DrivenBy {
    /// The thread that posts and waits: fewest thread switches
    Caller,
    /// A separate thread: sends while the application computes
    Thread,
}

/// Parses a duration in seconds, at most a day.
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

/// Parses a number of bytes, with or without a unit.
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
