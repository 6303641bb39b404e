//! What a device is opened with.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use pathweave_transport::{MAX_MTU_PAYLOAD, MIN_MTU_PAYLOAD};
use pathweave_units::Rate;
use thiserror::Error;

use crate::backend::{SourcePorts, UdpConfig};
use crate::secure::{ClusterKey, MAX_ADDRESSES, MAX_PRIVATE_DATA_LEN, Protection};

/// Bytes of headers and protection around a full payload on a link, for policies that count wire bytes.
pub(crate) const AROUND_PAYLOAD_BYTES: u32 = 130;
/// Connections of a device that have numbers at a time.
const MOST_CONNECTIONS: usize = 65_536;
/// Requests of a connection, and as many receives.
const MOST_QUEUE_DEPTH: u32 = 1 << 20;
/// Most paths of a device.
pub const MAX_PATHS: u16 = 256;
/// Bytes of IP, UDP, transport and protection headers, tag and padding around a payload, at most.
const AROUND_PAYLOAD: usize = 40 + 8 + 64 + 28 + 3;

/// Payload of a full packet of [`DeviceConfig::loopback`]: that of jumbo frames, so that tests and examples divide messages
/// as hosts of a network do.
const LOOPBACK_MTU_PAYLOAD: u16 = 8_960;

/// Who runs the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driving {
    /// A thread of the device's own.
    Thread {
        /// The core it stays on; `None`: wherever the system puts it.
        core: Option<usize>,
    },
    /// The callers of the device: posting, polling and waiting run the loop. Saves two changes of thread a message,
    /// which is the best latency there is; but nothing is sent or
    /// answered while no call is made (acknowledgements, too, leave with the next call), so call often or
    /// [`wait`](crate::Connection::wait), or peers will think this end dead.
    Caller,
    /// The callers, as with `Caller`, and a thread of the device's own while none of them calls: it takes the loop over after
    /// half a millisecond without a call, or at once when a caller [says](crate::Device::rest) that it goes to sleep elsewhere, and
    /// gives it back to who polls. So messages have the latency of `Caller`, and an application that computes is alive to its
    /// peers.
    Standby,
}

/// What the loop does when there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Looks again at once, having offered the core to other threads. Takes a whole core.
    Busy,
    /// Sleeps until something arrives or a timer is due.
    Blocking {
        /// Looks again for so long before it sleeps.
        spin: Duration,
    },
    /// As `Blocking`, but where small messages have lately been answered at once it looks for the next answer instead of
    /// sleeping, and lets others have the core between two looks, the other end above all. Unless that has proved wrong:
    /// then it sleeps as many times as make up for what was lost. Takes nothing while no messages go to and fro.
    Adaptive {
        /// The longest that it looks.
        most: Duration,
    },
}

impl Waiting {
    /// What most hosts want: sleeps, but for answers that come within the time a sleep and a wake-up would take.
    pub const ADAPTIVE: Waiting = Waiting::Adaptive { most: Duration::from_micros(25) };
}

/// Where packets without protection may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unprotected {
    /// Between processes of this machine: a device that is reached from elsewhere does not open without protection.
    #[default]
    OnLoopback,
    /// Anywhere. Any host that can send to the device can read and write what it has registered, so this is for closed networks
    /// and measurements.
    Anywhere,
}

/// Schemes without congestion control that peers may choose. Their packets leave as fast as the line lets them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Uncontrolled {
    /// The device's own scheme, if it is one of them.
    #[default]
    Own,
    /// All of them: for closed networks and measurements. A peer can make this end flood the network.
    All,
}

/// What a device is opened with. Start with [`DeviceConfig::new`] and change what you like.
#[derive(Clone, Debug)]
pub struct DeviceConfig {
    /// Where peers reach the device; port 0: any that is free ([`Device::local_addr`](crate::Device::local_addr) tells).
    pub bind: SocketAddr,
    /// Further addresses at which this machine has network interfaces: a connection's paths are spread over all of them, as far
    /// as packets come through to addresses of the peer. At most 7, all of the family of `bind`, none twice.
    pub also_bind: Vec<SocketAddr>,
    /// Paths (UDP source ports) to send on, 1 to 256. A connection uses no more than its peer has. Where descriptors or ports run
    /// short there are fewer, and a line of the log tells ([`Device::paths`](crate::Device::paths)).
    pub paths: u16,
    /// Source ports of the paths.
    pub source_ports: SourcePorts,
    /// Payload of a full packet in bytes, 256 to 32,576; of both ends' the smaller is used. See
    /// [`DeviceConfig::fit_link`].
    pub mtu_payload: u16,
    /// Rate of the network interface, of all together where there are several: the most a connection sends.
    pub line_rate: Rate,
    /// Round-trip time between idle hosts, their software included. With `line_rate` it says how much a connection
    /// may have in flight; schemes that measure the round-trip time go on from there.
    pub base_rtt: Duration,
    /// Delay that hosts add by themselves and that says nothing of the network. Schemes that steer by delay (UDMP, LAPS,
    /// Swift, TIMELY, REPS) take so much above the network's for none; others do not hear of it.
    pub host_delay: Duration,
    /// Shortest first retransmission timeout. By itself a device waits for ten times `base_rtt` or `host_delay`, whichever
    /// is more, at least 1 ms; the longer of both holds.
    pub retransmit_after: Duration,
    /// Scheme of connections this end opens; a name of [`pathweave_policy::schemes`]. The accepting end follows, if it
    /// is one of its `accepted_schemes`.
    pub scheme: String,
    /// Schemes of connections that peers may open to this end, by name or alias; others are refused. By default all that
    /// connections have. Datagram endpoints speak the one they are opened with, and do not look at this.
    pub accepted_schemes: Vec<String>,
    /// Of the accepted schemes, those without congestion control that peers may choose.
    pub uncontrolled: Uncontrolled,
    /// Who runs the loop.
    pub driving: Driving,
    /// What it does when there is nothing to do.
    pub waiting: Waiting,
    /// Protection of packets; the same at both ends.
    pub protection: Protection,
    /// Where packets may go without protection, if `protection` is to be none.
    pub unprotected: Unprotected,
    /// The cluster's key; needed unless packets are not protected.
    pub key: Option<ClusterKey>,
    /// Bytes the kernel is asked to buffer for each socket.
    pub socket_buffer_bytes: usize,
    /// Connections at a time, both opened and accepted.
    pub max_connections: usize,
    /// Connections at a time with one address.
    pub max_connections_per_peer: usize,
    /// Connections at a time that peers have asked for and not confirmed: they know the cluster key, and have not been
    /// heard since.
    pub max_half_open: usize,
    /// The same with one address. Where hosts open many connections at once, more than this are refused, to ask again.
    pub max_half_open_per_peer: usize,
    /// Requests that may be outstanding on a connection, and as many receives: posted, and their completions not yet taken.
    pub queue_depth: u32,
    /// What peers that open a connection find in [`ConnectionInfo::private_data`](crate::ConnectionInfo), at most 196 bytes.
    pub answer_data: Vec<u8>,
    /// How long opening a connection may take.
    pub connect_timeout: Duration,
    /// How long a peer may be silent while something is expected of it before the connection fails.
    pub peer_timeout: Duration,
    /// After this long without a word from the peer it is asked whether it is still there.
    pub keepalive: Duration,
    /// Seed of the device's random choices (paths above all); `None`: from the system. Keys never depend on it.
    pub seed: Option<u64>,
}

impl DeviceConfig {
    /// The defaults: 16 paths, 1,344-byte payloads (which fit 1,500-byte links), scheme `weave`, a thread that sleeps
    /// when idle, and encryption, which needs a key.
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

    /// A device on loopback, unprotected: for tests and examples in one machine. Bound to another address it does not
    /// open, unless [`unprotected`](DeviceConfig::unprotected) says that it may. Packets have payloads of 8,960 bytes;
    /// `fit_link(65_536)` sets the most that loopback takes, which costs less CPU time per byte.
    pub fn loopback() -> Self {
        DeviceConfig {
            protection: Protection::Insecure,
            mtu_payload: LOOPBACK_MTU_PAYLOAD,
            ..DeviceConfig::new(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0))
        }
    }

    /// Sets `mtu_payload` to the most that fits packets of `link_mtu` bytes (IP header included), in multiples of 64.
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

    /// The MTU of a link that carries packets of so much payload, in bytes: [`fit_link`](DeviceConfig::fit_link) finds room for
    /// as much there.
    pub fn link_mtu_for(mtu_payload: u16) -> usize {
        usize::from(mtu_payload).next_multiple_of(64) + AROUND_PAYLOAD
    }

    /// Names the first field that is wrong.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.validate_but_scheme()?;
        check(!self.accepted_schemes.is_empty(), "accepted_schemes", "empty", "at least one scheme")?;
        let mut all = self.accepted_schemes.iter().chain([&self.scheme]);
        all.try_for_each(|name| crate::scheme::find(name).map(|_| ()))
    }

    /// Whether peers may open connections with the scheme of this name or alias.
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

    /// As [`validate`](DeviceConfig::validate), whatever the scheme is of.
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
            // Which cores exist is for the system to say; this only catches what cannot be.
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

    /// Whether the addresses go together.
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

    /// Its sockets: what a [backend](crate::backend) is opened with that is then given to
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

/// An error that names the field, unless `ok`.
pub(crate) fn check(
    ok: bool,
    field: &'static str,
    value: impl ToString,
    allowed: &'static str,
) -> Result<(), ConfigError> {
    if ok { Ok(()) } else { Err(ConfigError::OutOfRange { field, value: value.to_string(), allowed }) }
}

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A value out of its range.
    #[error("{field} is {value}; allowed: {allowed}")]
    OutOfRange {
        /// Which field.
        field: &'static str,
        /// Its value.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// No scheme has this name.
    #[error("there is no scheme {name:?}{} (there are {all})", pathweave_units::did_you_mean(.nearest.as_deref()))]
    UnknownScheme {
        /// The name that was asked for.
        name: String,
        /// A name that is much like it, if one is.
        nearest: Option<&'static str>,
        /// All names.
        all: String,
    },
    /// A scheme whose queue pairs are not a connection's own.
    #[error("scheme {name:?} has queue pairs that serve more than one connection; see datagram endpoints")]
    NotConnections {
        /// Its name.
        name: String,
    },
    /// A scheme of connections, where datagrams are meant.
    #[error("scheme {name:?} is one of connections; of datagrams there are: {all}")]
    NotDatagrams {
        /// Its name.
        name: String,
        /// Names of those that are.
        all: String,
    },
    /// No protection, on an address that others can send to.
    #[error(
        "bind is {bind}, which others can send to, and protection is insecure: whoever can could read and write what \
         is registered; give a key and protection encrypt, bind a loopback address, or on a closed network set \
         unprotected to Anywhere"
    )]
    Unprotected {
        /// The address.
        bind: SocketAddr,
    },
    /// Protection without a key.
    #[error(
        "protection {protection} needs the cluster's key; give a key file, or choose insecure on a closed fabric"
    )]
    NoKey {
        /// What was asked for.
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
    fn what_others_can_send_to_is_open_to_all_only_if_that_was_said() {
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
    fn what_is_wrong_is_named_with_what_is_allowed() {
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
