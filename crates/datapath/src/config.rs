//! Configuration of a device.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use pathweave_transport::{MAX_MTU_PAYLOAD, MIN_MTU_PAYLOAD};
use pathweave_units::Rate;
use thiserror::Error;

use crate::backend::{SourcePorts, UdpConfig};
use crate::secure::{ClusterKey, MAX_ADDRESSES, MAX_PRIVATE_DATA_LEN, Protection};

/// Bytes of headers and protection around a full payload on a link, for policies that count wire bytes.
pub(crate) const AROUND_PAYLOAD_BYTES: u32 = 130;
/// Largest number of connections of a device, bounded by the connection number.
const MOST_CONNECTIONS: usize = 65_536;
/// Largest number of outstanding requests of a connection; the same for receives.
const MOST_QUEUE_DEPTH: u32 = 1 << 20;
/// Largest number of paths of a device.
pub const MAX_PATHS: u16 = 256;
/// Largest size of the IP, UDP, transport and protection headers, tag and padding around a payload, in bytes.
const AROUND_PAYLOAD: usize = 40 + 8 + 64 + 28 + 3;

/// Payload of a full packet of [`DeviceConfig::loopback`]: that of jumbo frames, so that tests and examples segment
/// messages like hosts of a network.
const LOOPBACK_MTU_PAYLOAD: u16 = 8_960;

/// Thread that drives the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driving {
    /// A thread of the device.
    Thread {
        /// Core to which the thread is pinned; `None`: the system chooses.
        core: Option<usize>,
    },
    /// The threads that call the device: posting, polling and waiting drive the loop. This saves two context switches
    /// a message and gives the lowest latency. But nothing is sent or answered between calls (acknowledgements, too,
    /// leave with the next call). Call often or [`wait`](crate::Connection::wait), or peers will declare this end
    /// dead.
    Caller,
    /// The callers, as with `Caller`, and a thread of the device while none of them calls. The thread takes the loop
    /// over after half a millisecond without a call, or at once when a caller [announces](crate::Device::rest) that
    /// it goes to sleep elsewhere. It gives the loop back to a caller that polls. Messages thus have the latency of
    /// `Caller`, and an application that computes still answers its peers.
    Standby,
}

/// Behaviour of an idle loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Polls again at once, after it has yielded the core to other threads. Uses a whole core.
    Busy,
    /// Sleeps until something arrives or a timer is due.
    Blocking {
        /// Time for which the loop polls before it sleeps.
        spin: Duration,
    },
    /// Sleeps like `Blocking`, but polls for the next answer if small messages have recently been answered at once.
    /// Between two polls it yields the core to other threads, above all to the other end. After polling in vain it
    /// sleeps through as many waits as make up for the loss. Uses no CPU time while no messages are exchanged.
    Adaptive {
        /// Longest time for which the loop polls.
        most: Duration,
    },
}

impl Waiting {
    /// Suitable for most hosts: sleeps, except for answers that arrive within the time of a sleep and a wake-up (25
    /// us).
    pub const ADAPTIVE: Waiting = Waiting::Adaptive { most: Duration::from_micros(25) };
}

/// Addresses on which a device may run without packet protection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unprotected {
    /// Loopback only, between processes of this machine. A device that is reachable from elsewhere does not open
    /// without protection.
    #[default]
    OnLoopback,
    /// Any address. Any host that can send to the device can read and write its registered memory, so this is for
    /// closed networks and measurements.
    Anywhere,
}

/// Schemes without congestion control that peers may choose. Their packets leave at the line rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Uncontrolled {
    /// The device's own scheme only, if it has no congestion control.
    #[default]
    Own,
    /// All of them: for closed networks and measurements. A peer can make this end flood the network.
    All,
}

/// Configuration of a device. Start with [`DeviceConfig::new`] and change fields as needed.
#[derive(Clone, Debug)]
pub struct DeviceConfig {
    /// Address at which peers reach the device. Port 0 selects any free port
    /// ([`Device::local_addr`](crate::Device::local_addr) returns it).
    pub bind: SocketAddr,
    /// Further addresses of this machine's network interfaces. The paths of a connection are spread over all of them,
    /// as far as packets reach the peer's addresses. At most 7, all of the family of `bind`, none twice. Default
    /// none.
    pub also_bind: Vec<SocketAddr>,
    /// Number of paths (UDP source ports) to send on, 1 to 256. A connection uses at most as many as its peer has. If
    /// file descriptors or ports run short there are fewer, with a warning in the log
    /// ([`Device::paths`](crate::Device::paths)). Default 16.
    pub paths: u16,
    /// Source ports of the paths. Default: any free ones.
    pub source_ports: SourcePorts,
    /// Payload of a full packet in bytes, 256 to 32,576; the smaller value of both ends is used. See
    /// [`DeviceConfig::fit_link`]. Default 1,344.
    pub mtu_payload: u16,
    /// Rate of the network interface, or of all together if there are several: the upper bound on the sending rate. 1
    /// Mb/s to 10 Tb/s, default 100 Gb/s.
    pub line_rate: Rate,
    /// Round-trip time between idle hosts, their software included. With `line_rate` it determines the bytes that a
    /// connection may have in flight initially; schemes that measure the round-trip time adapt from there. More than
    /// 0, at most an hour, default 50 us.
    pub base_rtt: Duration,
    /// Delay that host software adds, which is no sign of network congestion. Schemes that react to delay (UDMP,
    /// LAPS, Swift, TIMELY, REPS) ignore this much delay beyond the network's; other schemes are not affected. Less
    /// than 1 s, default 1 ms.
    pub host_delay: Duration,
    /// Lower bound on the first retransmission timeout, at most 60 s. The device itself uses ten times the larger of
    /// `base_rtt` and `host_delay`, at least 1 ms; the longer of both applies. Default 0.
    pub retransmit_after: Duration,
    /// Scheme of connections that this end opens; a name of [`pathweave_policy::schemes`]. The accepting end uses the
    /// same scheme if it is one of its `accepted_schemes`. Default `weave`.
    pub scheme: String,
    /// Schemes that peers may choose for connections to this end, by name or alias; others are refused. Default: all
    /// connection schemes. Datagram endpoints ignore this field and use their own scheme.
    pub accepted_schemes: Vec<String>,
    /// Restriction on accepted schemes without congestion control. Default: only the device's own.
    pub uncontrolled: Uncontrolled,
    /// Thread that drives the loop. Default: a thread of the device, not pinned.
    pub driving: Driving,
    /// Behaviour of the idle loop. Default [`Waiting::ADAPTIVE`].
    pub waiting: Waiting,
    /// Protection of packets; must be the same at both ends. Default: encryption.
    pub protection: Protection,
    /// Addresses on which `protection` may be none. Default: loopback only.
    pub unprotected: Unprotected,
    /// Key of the cluster; required unless packets are unprotected. Default none.
    pub key: Option<ClusterKey>,
    /// Buffer size in bytes that is requested from the kernel for each socket. Default 8 MiB.
    pub socket_buffer_bytes: usize,
    /// Largest number of connections, opened and accepted together; 1 to 65,536, default 4,096.
    pub max_connections: usize,
    /// Largest number of connections with one address; 1 to 65,536, default 1,024.
    pub max_connections_per_peer: usize,
    /// Largest number of half-open connections: a peer has requested them with knowledge of the cluster key, and sent
    /// nothing since. 1 to 65,536, default 1,024.
    pub max_half_open: usize,
    /// Largest number of half-open connections with one address; 1 to 65,536, default 128. If hosts open more
    /// connections at once, the excess is refused and must be retried.
    pub max_half_open_per_peer: usize,
    /// Largest number of requests of a connection that are outstanding or whose completions have not been taken; the
    /// same for receives. 1 to 1,048,576, default 4,096.
    pub queue_depth: u32,
    /// Data that peers which open a connection get in [`ConnectionInfo::private_data`](crate::ConnectionInfo), at
    /// most 196 bytes. Default none.
    pub answer_data: Vec<u8>,
    /// Time within which a connection must open. More than 0, at most an hour, default 5 s.
    pub connect_timeout: Duration,
    /// Time for which a peer may be silent while something is expected from it; then the connection fails. More than
    /// 0, at most an hour, default 5 s.
    pub peer_timeout: Duration,
    /// Silence of an idle peer after which it is probed. More than 0, at most an hour, default 1 s.
    pub keepalive: Duration,
    /// Seed of the device's random choices (above all of paths); `None`: from the system. Keys never depend on it.
    /// Default `None`.
    pub seed: Option<u64>,
}

impl DeviceConfig {
    /// Returns the defaults: 16 paths, 1,344-byte payloads (which fit 1,500-byte links), scheme `weave`, a thread
    /// that sleeps when idle, and encryption, which needs a key.
    pub fn new(bind: SocketAddr) -> Self {
        DeviceConfig {
            bind,
            also_bind: Vec::new(),
            paths: 16,
            source_ports: SourcePorts::Any,
            mtu_payload: 1_344,
            line_rate: Rate::from_gbps(100),
            base_rtt: Duration::from_micros(50),
            host_delay: Duration::from_millis(1),
            retransmit_after: Duration::ZERO,
            scheme: "weave".into(),
            accepted_schemes: crate::scheme::of_connections().map(String::from).collect(),
            uncontrolled: Uncontrolled::default(),
            driving: Driving::Thread { core: None },
            waiting: Waiting::ADAPTIVE,
            protection: Protection::default(),
            unprotected: Unprotected::default(),
            key: None,
            socket_buffer_bytes: 8 << 20,
            max_connections: 4_096,
            max_connections_per_peer: 1_024,
            max_half_open: 1_024,
            max_half_open_per_peer: 128,
            queue_depth: 4_096,
            answer_data: Vec::new(),
            connect_timeout: Duration::from_secs(5),
            peer_timeout: Duration::from_secs(5),
            keepalive: Duration::from_secs(1),
            seed: None,
        }
    }

    /// Returns the configuration of an unprotected device on loopback, for tests and examples on one machine. A
    /// device bound to another address does not open, unless [`unprotected`](DeviceConfig::unprotected) permits it.
    /// Payloads have 8,960 bytes; `fit_link(65_536)` sets the largest that loopback accepts, which costs less CPU
    /// time per byte.
    pub fn loopback() -> Self {
        DeviceConfig {
            protection: Protection::Insecure,
            mtu_payload: LOOPBACK_MTU_PAYLOAD,
            ..DeviceConfig::new(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0))
        }
    }

    /// Sets `mtu_payload` to the largest multiple of 64 that fits packets of `link_mtu` bytes (IP header included).
    ///
    /// # Errors
    /// [`ConfigError::OutOfRange`] for links of less than 448 bytes.
    pub fn fit_link(&mut self, link_mtu: usize) -> Result<(), ConfigError> {
        let room = link_mtu.saturating_sub(AROUND_PAYLOAD) / 64 * 64;
        if room < usize::from(MIN_MTU_PAYLOAD) {
            return Err(ConfigError::OutOfRange {
                field: "link MTU",
                value: link_mtu.to_string(),
                allowed: "at least 448 bytes",
            });
        }
        self.mtu_payload = room.min(usize::from(MAX_MTU_PAYLOAD) / 64 * 64) as u16;
        Ok(())
    }

    /// Lowers `mtu_payload` to a multiple of `line_bytes`, so that no line of a message is spread over two packets if
    /// the message begins with one. A smaller payload of the peer applies to a connection, so both ends have to do
    /// this. See [`Region::in_order`](crate::Region::in_order).
    ///
    /// # Errors
    /// [`ConfigError::OutOfRange`] if no multiple of at least 256 bytes is left.
    ///
    /// ```
    /// use pathweave_datapath::DeviceConfig;
    ///
    /// let mut config = DeviceConfig::loopback();
    /// config.fit_link(1_500)?;
    /// assert_eq!(config.mtu_payload, 1_344);
    /// config.payload_of_lines(128)?;
    /// assert_eq!(config.mtu_payload, 1_280);
    /// # Ok::<(), pathweave_datapath::ConfigError>(())
    /// ```
    pub fn payload_of_lines(&mut self, line_bytes: u16) -> Result<(), ConfigError> {
        let payload = self.mtu_payload.checked_div(line_bytes).unwrap_or(0) * line_bytes;
        let allowed = "1 byte up to the payload of a packet, with a multiple of at least 256 within it";
        check(payload >= MIN_MTU_PAYLOAD, "line_bytes", line_bytes, allowed)?;
        self.mtu_payload = payload;
        Ok(())
    }

    /// Returns the MTU in bytes of a link on which [`fit_link`](DeviceConfig::fit_link) selects at least this
    /// payload.
    pub fn link_mtu_for(mtu_payload: u16) -> usize {
        usize::from(mtu_payload).next_multiple_of(64) + AROUND_PAYLOAD
    }

    /// Checks all fields; the error names the first invalid one.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.validate_but_scheme()?;
        check(!self.accepted_schemes.is_empty(), "accepted_schemes", "empty", "at least one scheme")?;
        let mut all = self.accepted_schemes.iter().chain([&self.scheme]);
        all.try_for_each(|name| crate::scheme::find(name).map(|_| ()))
    }

    /// Returns true if peers may open connections with the scheme of this name or alias.
    pub(crate) fn accepts(&self, scheme: &str) -> bool {
        let name = |alias: &str| pathweave_policy::find_scheme(alias).map(|info| info.name);
        let Some(wanted) = pathweave_policy::find_scheme(scheme) else { return false };
        let is_wanted = |known: &String| name(known) == Some(wanted.name);
        let harmless = match self.uncontrolled {
            Uncontrolled::All => true,
            Uncontrolled::Own => is_wanted(&self.scheme) || (wanted.make)().controls_congestion(),
        };
        harmless && self.accepted_schemes.iter().any(is_wanted)
    }

    /// Checks all fields as [`validate`](DeviceConfig::validate) does, except for the scheme.
    pub(crate) fn validate_but_scheme(&self) -> Result<(), ConfigError> {
        check((1..=MAX_PATHS).contains(&self.paths), "paths", self.paths.to_string(), "1 to 256")?;
        self.validate_addresses()?;
        if let SourcePorts::From(first) = self.source_ports {
            let fits = first > 0 && first.checked_add(self.paths - 1).is_some();
            check(
                fits,
                "first source port",
                first.to_string(),
                "1 to 65535, with all paths' ports after it",
            )?;
        }
        let mtu = (MIN_MTU_PAYLOAD..=MAX_MTU_PAYLOAD).contains(&self.mtu_payload);
        check(mtu, "mtu_payload", self.mtu_payload.to_string(), "256 to 32576 bytes")?;
        let rate = self.line_rate >= Rate::from_mbps(1) && self.line_rate <= Rate::from_gbps(10_000);
        check(rate, "line_rate", self.line_rate.to_string(), "1 Mb/s to 10 Tb/s")?;
        for (field, value) in [
            ("base_rtt", self.base_rtt),
            ("connect_timeout", self.connect_timeout),
            ("peer_timeout", self.peer_timeout),
            ("keepalive", self.keepalive),
        ] {
            let sound = !value.is_zero() && value <= Duration::from_secs(3_600);
            check(sound, field, format!("{value:?}"), "more than 0, at most an hour")?;
        }
        check(
            self.host_delay < Duration::from_secs(1),
            "host_delay",
            format!("{:?}", self.host_delay),
            "less than 1 s",
        )?;
        check(
            self.retransmit_after <= Duration::from_secs(60),
            "retransmit_after",
            format!("{:?}", self.retransmit_after),
            "at most 60 s",
        )?;
        for (field, value) in [
            ("max_connections", self.max_connections),
            ("max_connections_per_peer", self.max_connections_per_peer),
            ("max_half_open", self.max_half_open),
            ("max_half_open_per_peer", self.max_half_open_per_peer),
        ] {
            check((1..=MOST_CONNECTIONS).contains(&value), field, value, "1 to 65536")?;
        }
        check(
            (1..=MOST_QUEUE_DEPTH).contains(&self.queue_depth),
            "queue_depth",
            self.queue_depth,
            "1 to 1048576",
        )?;
        let answer = self.answer_data.len();
        check(answer <= MAX_PRIVATE_DATA_LEN, "answer_data length", answer, "at most 196 bytes")?;
        if let Driving::Thread { core: Some(core) } = self.driving {
            let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            // Only the system knows which cores exist; this check rejects impossible values.
            check(core < cores.max(1_024), "core", core.to_string(), "a core of this machine")?;
        }
        if self.protection != Protection::Insecure && self.key.is_none() {
            return Err(ConfigError::NoKey { protection: self.protection });
        }
        let mut bound = std::iter::once(self.bind).chain(self.also_bind.iter().copied());
        match bound.find(|address| !address.ip().to_canonical().is_loopback()) {
            Some(bind)
                if self.protection == Protection::Insecure && self.unprotected == Unprotected::OnLoopback =>
            {
                Err(ConfigError::Unprotected { bind })
            }
            _ => Ok(()),
        }
    }

    /// Checks that the addresses can be used together.
    fn validate_addresses(&self) -> Result<(), ConfigError> {
        if self.also_bind.is_empty() {
            return Ok(());
        }
        let count = 1 + self.also_bind.len();
        check(count <= MAX_ADDRESSES, "number of addresses", count, "1 to 8")?;
        let all = || std::iter::once(&self.bind).chain(&self.also_bind);
        for (index, address) in all().enumerate() {
            let ip = address.ip();
            let known = all().take(index).any(|other| other.ip() == ip);
            let of_one_link = matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
            let of_a_host = !ip.is_unspecified() && !ip.is_multicast() && !of_one_link;
            let sound = !known && of_a_host && address.is_ipv4() == self.bind.is_ipv4();
            let allowed = "addresses of one family (IPv4 or IPv6), each of an interface, given once, and not of one link alone";
            check(sound, "also_bind", address, allowed)?;
        }
        Ok(())
    }

    /// Returns the configuration of the sockets, to open a [backend](crate::backend) that is then passed to
    /// [`Device::with_backend`](crate::Device::with_backend).
    pub fn udp(&self) -> UdpConfig {
        UdpConfig {
            bind: self.bind,
            also_bind: self.also_bind.clone(),
            paths: self.paths,
            source_ports: self.source_ports,
            socket_buffer_bytes: self.socket_buffer_bytes,
        }
    }
}

/// Returns an error that names the field, unless `ok`.
pub(crate) fn check(
    ok: bool,
    field: &'static str,
    value: impl ToString,
    allowed: &'static str,
) -> Result<(), ConfigError> {
    if ok { Ok(()) } else { Err(ConfigError::OutOfRange { field, value: value.to_string(), allowed }) }
}

/// Error in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A value is out of its range.
    #[error("{field} is {value}; allowed: {allowed}")]
    OutOfRange {
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: String,
        /// Allowed values.
        allowed: &'static str,
    },
    /// There is no scheme with this name.
    #[error("there is no scheme {name:?}{} (there are {all})", pathweave_units::suggestion(.nearest.as_deref()))]
    UnknownScheme {
        /// Requested name.
        name: String,
        /// Most similar name, if there is one.
        nearest: Option<&'static str>,
        /// Names of all schemes.
        all: String,
    },
    /// The scheme reads telemetry of switches, and packets on real hosts carry none.
    #[error(
        "scheme {name:?} needs switches that write telemetry into packets, which only simulated ones do; the nearest \
         scheme without them is \"swift\""
    )]
    NeedsTelemetry {
        /// Name of the scheme.
        name: String,
    },
    /// The scheme's queue pairs serve several connections.
    #[error("scheme {name:?} has queue pairs that serve more than one connection; see datagram endpoints")]
    NotConnections {
        /// Name of the scheme.
        name: String,
    },
    /// A connection scheme where a datagram scheme is required.
    #[error("scheme {name:?} is one of connections; of datagrams there are: {all}")]
    NotDatagrams {
        /// Name of the scheme.
        name: String,
        /// Names of the datagram schemes.
        all: String,
    },
    /// Packets are unprotected on an address that other hosts can reach.
    #[error(
        "bind is {bind}, an address that other hosts can send to, and protection is insecure, so those hosts \
         could read and write registered memory; set a key and protection encrypt, bind a loopback address, \
         or on a closed network set unprotected to Anywhere"
    )]
    Unprotected {
        /// The address.
        bind: SocketAddr,
    },
    /// Protection is configured without a key.
    #[error(
        "protection {protection} needs the cluster's key; give a key file, or choose insecure on a closed fabric"
    )]
    NoKey {
        /// Configured protection.
        protection: Protection,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_sound_once_there_is_a_key() {
        let mut config = DeviceConfig::new("127.0.0.1:0".parse().unwrap());
        assert_eq!(config.validate(), Err(ConfigError::NoKey { protection: Protection::Encrypt }));
        config.protection = Protection::Insecure;
        assert_eq!(config.validate(), Ok(()));
        assert_eq!(DeviceConfig::loopback().validate(), Ok(()));
    }

    #[test]
    fn insecure_public_addresses_need_an_explicit_setting() {
        let open_to_all = |bind: &str, unprotected| {
            let bind = bind.parse().unwrap();
            DeviceConfig { bind, unprotected, ..DeviceConfig::loopback() }.validate()
        };
        for bind in ["127.0.0.1:0", "127.9.9.9:7", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
            assert_eq!(open_to_all(bind, Unprotected::OnLoopback), Ok(()), "{bind}");
        }
        for bind in ["0.0.0.0:0", "192.0.2.7:18515", "[::]:0", "[2001:db8::1]:0"] {
            let error = ConfigError::Unprotected { bind: bind.parse().unwrap() };
            assert_eq!(open_to_all(bind, Unprotected::OnLoopback), Err(error), "{bind}");
            assert_eq!(open_to_all(bind, Unprotected::Anywhere), Ok(()), "{bind}");
        }
        let mut secure = DeviceConfig::new("0.0.0.0:0".parse().unwrap());
        secure.key = Some(ClusterKey::from_bytes([1; 32]));
        assert_eq!(secure.validate(), Ok(()));
    }

    #[test]
    fn a_scheme_without_congestion_control_is_accepted_where_it_is_the_devices_own_or_all_are() {
        let refused = |config: &DeviceConfig| {
            let all = crate::scheme::of_connections().filter(|name| !config.accepts(name));
            all.collect::<Vec<_>>()
        };
        let mut config = DeviceConfig::loopback();
        assert_eq!(refused(&config), ["rps-nocc"], "credit controls congestion, too");
        config.scheme = "rps-nocc".into();
        assert_eq!(refused(&config), [""; 0]);
        config = DeviceConfig { uncontrolled: Uncontrolled::All, ..DeviceConfig::loopback() };
        assert_eq!(refused(&config), [""; 0]);
        config.accepted_schemes = vec!["udmp".into()];
        assert!(!config.accepts("rps-nocc") && config.accepts("udmp"));
    }

    #[test]
    fn invalid_values_are_named_with_the_allowed_ones() {
        let wrong = |change: fn(&mut DeviceConfig)| {
            let mut config = DeviceConfig::loopback();
            change(&mut config);
            config.validate().unwrap_err().to_string()
        };
        assert_eq!(wrong(|c| c.paths = 257), "paths is 257; allowed: 1 to 256");
        assert_eq!(wrong(|c| c.mtu_payload = 32_577), "mtu_payload is 32577; allowed: 256 to 32576 bytes");
        let port = wrong(|c| c.source_ports = SourcePorts::From(65_530));
        assert_eq!(port, "first source port is 65530; allowed: 1 to 65535, with all paths' ports after it");
        let scheme = wrong(|c| c.scheme = "udpm".into());
        assert!(
            scheme.starts_with("there is no scheme \"udpm\"; did you mean \"udmp\"? (there are "),
            "{scheme}"
        );
        assert_eq!(wrong(|c| c.max_connections = 0), "max_connections is 0; allowed: 1 to 65536");
        assert_eq!(
            wrong(|c| c.max_connections_per_peer = 65_537),
            "max_connections_per_peer is 65537; allowed: 1 to 65536"
        );
        assert_eq!(wrong(|c| c.max_half_open = 0), "max_half_open is 0; allowed: 1 to 65536");
        assert_eq!(
            wrong(|c| c.max_half_open_per_peer = 0),
            "max_half_open_per_peer is 0; allowed: 1 to 65536"
        );
        assert_eq!(
            wrong(|c| c.answer_data = vec![0; 197]),
            "answer_data length is 197; allowed: at most 196 bytes"
        );
        assert_eq!(wrong(|c| c.queue_depth = 0), "queue_depth is 0; allowed: 1 to 1048576");
        assert_eq!(
            wrong(|c| c.accepted_schemes.clear()),
            "accepted_schemes is empty; allowed: at least one scheme"
        );
        let scheme = wrong(|c| c.accepted_schemes.push("lapss".into()));
        assert!(scheme.starts_with("there is no scheme \"lapss\"; did you mean \"laps\"?"), "{scheme}");
        let scheme = wrong(|c| c.scheme = "erd".into());
        assert!(scheme.starts_with("scheme \"erd\" has queue pairs that serve more"), "{scheme}");
    }

    #[test]
    fn payloads_fit_the_usual_links() {
        let mut config = DeviceConfig::loopback();
        let mut fit = |mtu| {
            config.fit_link(mtu).unwrap();
            config.mtu_payload
        };
        assert_eq!([fit(1_500), fit(9_000), fit(16_000), fit(65_536)], [1_344, 8_832, 15_808, 32_576]);
        for payload in [448, 1_344, 1_400, 8_192] {
            config.fit_link(DeviceConfig::link_mtu_for(payload)).unwrap();
            assert!(
                (payload..payload + 64).contains(&config.mtu_payload),
                "{payload}: {}",
                config.mtu_payload
            );
        }
        assert!(config.fit_link(300).is_err());
    }
}
