//! Environment variables, checked as a whole before anything is opened.
//!
//! | variable | meaning |
//! |---|---|
//! | `PATHWEAVE_KEY_FILE` | file with the cluster's key: 64 hexadecimal digits, readable only by its owner |
//! | `PATHWEAVE_PROTECTION` | `encrypt` (default), `auth-only` or `insecure`; `insecure` needs no key |
//! | `PATHWEAVE_IFACE` | names of network interfaces, separated by commas |
//! | `PATHWEAVE_ADDRESS` | addresses of network interfaces, separated by commas; instead of `PATHWEAVE_IFACE` |
//! | `PATHWEAVE_BACKEND` | carrier of packets: `udp` (default), `af-xdp` at the one interface, or `auto`: AF_XDP where it can |
//! | `PATHWEAVE_PATHS` | number of paths of each connection, 1 to 256; default 32, on loopback 1 |
//! | `PATHWEAVE_SCHEME` | transport scheme; default `weave` |
//! | `PATHWEAVE_LINE_RATE` | total rate of the interfaces, such as `25Gbps`; default: as the system reports |
//! | `PATHWEAVE_MTU` | bytes of a packet on the link, IP header included; default: the interface's MTU |
//! | `PATHWEAVE_PORTS` | UDP ports to listen on, such as `18500-18600`; default: any free port |
//! | `PATHWEAVE_WAITING` | behaviour of the idle event loop: `adaptive` (default), `busy` or `blocking` |
//! | `PATHWEAVE_PEER_TIMEOUT` | seconds of silence after which a peer's operations fail, 1 to 3600; default 60 |
//! | `PATHWEAVE_EAGER` | bytes of the largest message that is sent at once and copied, 1024 to 65536; default 16384 |
//! | `PATHWEAVE_UNEXPECTED_BYTES` | bytes of unexpected messages' payload that an endpoint keeps; default 64 MiB |
//! | `PATHWEAVE_SHARED_MEMORY` | shared memory within a host: `on` (default), `messages` or `off`, see below |
//! | `PATHWEAVE_PROGRESS` | driver of the event loop: `auto` (default), `thread` or `caller`, see below |
//!
//! With `PATHWEAVE_SHARED_MEMORY=messages`, long messages go through the shared memory too, and the kernel
//! copies nothing. With `off`, ranks of one host communicate over the network. With
//! `PATHWEAVE_PROGRESS=auto`, callers drive the loop, and a thread does while there is no call. With
//! `thread`, only the thread drives it. With `caller` there is no thread; this is for tests.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use pathweave_datapath::secure::{ClusterKey, KeyError, MAX_ADDRESSES, Protection};
use pathweave_datapath::{ConfigError, DeviceConfig, Driving, MAX_PATHS, Unprotected, Waiting};
use pathweave_units::Rate;
use thiserror::Error;

use crate::interfaces::Interface;
use crate::log::say_once;
use crate::unknown::unread;

/// Default scheme, the same as that of the device. Applications send in bursts. After a burst, `weave` does not spread
/// the next one evenly over all paths, so that it need not wait for the slowest.
const DEFAULT_SCHEME: &str = "weave";

const NAMES: &str = "a network interface such as eth0, or up to 8 with commas, each once";
const ADDRESSES: &str = "an address such as 10.0.0.1, or up to 8 with commas, all IPv4 or all IPv6, each of an interface and once";

/// Error of an environment variable. The library offers nothing in this case.
#[derive(Debug, Error)]
pub enum SettingError {
    /// There is no key, though one is needed.
    #[error("there is no key: set PATHWEAVE_KEY_FILE, or on a closed network PATHWEAVE_PROTECTION=insecure")]
    NoKey,
    /// The key file is wrong.
    #[error("PATHWEAVE_KEY_FILE: {0}")]
    Key(#[from] KeyError),
    /// A value is not allowed.
    #[error("{variable} is {value:?}; allowed: {allowed}")]
    Value {
        /// Name of the variable.
        variable: &'static str,
        /// Value that it has.
        value: String,
        /// Allowed values.
        allowed: String,
    },
    /// There is no such scheme, or connections cannot have it.
    #[error("PATHWEAVE_SCHEME: {0}")]
    Scheme(ConfigError),
    /// Two variables contradict each other.
    #[error("PATHWEAVE_IFACE and PATHWEAVE_ADDRESS are both set; one of them is enough")]
    TwoInterfaces,
}

/// Interfaces that may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// Any interface; loopback only if there is no other.
    Anywhere,
    /// The interfaces with these names, all together as one.
    Interfaces(Vec<String>),
    /// The interfaces with these addresses, all together as one.
    Addresses(Vec<IpAddr>),
}

/// Carrier of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// UDP sockets.
    Udp,
    /// AF_XDP at the network interface. Without it nothing is opened.
    AfXdp,
    /// AF_XDP where one interface is used and takes it, otherwise UDP sockets.
    Auto,
}

/// Driver of the event loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Callers, and a thread while there is no call.
    Auto,
    /// A thread.
    Thread,
    /// Callers only.
    Caller,
}

/// Communication between ranks on one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedMemory {
    /// Through shared memory where possible. The kernel copies long messages where it permits that.
    On,
    /// Through shared memory, without copies by the kernel.
    Messages,
    /// Over the network, as with other peers.
    Off,
}

/// All settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Key of the cluster.
    pub key: Option<ClusterKey>,
    /// Protection of packets.
    pub protection: Protection,
    /// Interfaces that may be used.
    pub place: Where,
    /// Carrier of packets.
    pub backend: Backend,
    /// Number of paths, if set.
    pub paths: Option<u16>,
    /// Scheme of connections.
    pub scheme: String,
    /// Total rate of the interfaces, if set.
    pub line_rate: Option<Rate>,
    /// Bytes of a packet on the link, if set.
    pub link_mtu: Option<usize>,
    /// UDP ports to listen on, if set.
    pub ports: Option<RangeInclusive<u16>>,
    /// Behaviour of the idle event loop.
    pub waiting: Waiting,
    /// Silence after which a peer's operations fail.
    pub peer_timeout: Duration,
    /// Bytes of the largest message that is sent at once and copied.
    pub eager_bytes: usize,
    /// Bytes of unexpected messages' payload that an endpoint keeps.
    pub unexpected_bytes: usize,
    /// Driver of the event loop.
    pub progress: Progress,
    /// Communication within a host.
    pub shared_memory: SharedMemory,
}

/// Reads the current environment, and names on standard error variables with our prefix that nothing reads.
///
/// # Errors
///
/// Returns an error about the first variable that is wrong.
pub fn from_environment() -> Result<Settings, SettingError> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    unread(names).iter().for_each(|line| say_once(line));
    Settings::read(&|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
}

/// Default number of paths of a connection through a network. Switches hash source ports. With four spines,
/// 16 paths miss a given spine in one connection of 100, and 32 paths in one of 10,000; the connection loses
/// the rate of that spine.
const PATHS: u16 = 32;

impl Settings {
    /// Returns the configuration of a device at `bind` that uses these interfaces together. The others listen on the
    /// same port, if the address is that of one of them.
    pub fn device(&self, interfaces: &[&Interface], bind: SocketAddr) -> DeviceConfig {
        let mut config = DeviceConfig::new(bind);
        // Loopback has one path, whatever the ports of packets.
        let paths = if bind.ip().is_loopback() { 1 } else { PATHS };
        config.paths = self.paths.unwrap_or(paths);
        config.protection = self.protection;
        config.key = self.key.clone();
        // This has an effect only if protection is disabled by name in the environment.
        config.unprotected = Unprotected::Anywhere;
        config.scheme.clone_from(&self.scheme);
        if interfaces.iter().any(|interface| interface.address == bind.ip()) {
            let others = interfaces.iter().filter(|other| other.address != bind.ip());
            config.also_bind = others.map(|other| SocketAddr::new(other.address, bind.port())).collect();
        }
        if let Some(rate) = self.rate(interfaces.iter().copied()) {
            config.line_rate = rate;
        }
        let smallest = interfaces.iter().map(|interface| interface.link_mtu()).min();
        // If the link MTU is too small, opening the device fails.
        let _ = config.fit_link(self.link_mtu.or(smallest).unwrap_or(1_500));
        config.driving = match self.progress {
            Progress::Auto => Driving::Standby,
            Progress::Thread => Driving::Thread { core: None },
            Progress::Caller => Driving::Caller,
        };
        config.waiting = self.waiting;
        config.peer_timeout = self.peer_timeout;
        config.connect_timeout = self.peer_timeout;
        config.max_connections_per_peer = config.max_connections;
        config
    }

    /// Returns the total rate of interfaces that are used together: the configured one, or the sum of the
    /// rates that the system reports.
    pub fn rate<'a>(&self, interfaces: impl Iterator<Item = &'a Interface>) -> Option<Rate> {
        let speed: Option<u64> = interfaces.map(Interface::speed_mbps).sum();
        let speed = speed.filter(|mbps| (1..=10_000_000).contains(mbps));
        self.line_rate.or(speed.map(Rate::from_mbps))
    }

    /// Reads and checks all variables with `get`.
    ///
    /// # Errors
    ///
    /// Returns an error about the first variable that is wrong.
    pub fn read(get: &dyn Fn(&str) -> Option<String>) -> Result<Self, SettingError> {
        let from = Variables(get);
        let protection = from.parsed("PATHWEAVE_PROTECTION", "encrypt, auth-only or insecure", |text| {
            Protection::ALL.into_iter().find(|mode| mode.name() == text)
        })?;
        let protection = protection.unwrap_or_default();
        let key = match from.text("PATHWEAVE_KEY_FILE") {
            Some(path) => Some(ClusterKey::read(Path::new(&path))?),
            None if protection == Protection::Insecure => None,
            None => return Err(SettingError::NoKey),
        };
        let place = match (from.text("PATHWEAVE_IFACE"), from.text("PATHWEAVE_ADDRESS")) {
            (Some(_), Some(_)) => return Err(SettingError::TwoInterfaces),
            (Some(_), None) => {
                from.parsed("PATHWEAVE_IFACE", NAMES, names)?.map_or(Where::Anywhere, Where::Interfaces)
            }
            (None, _) => from
                .parsed("PATHWEAVE_ADDRESS", ADDRESSES, addresses)?
                .map_or(Where::Anywhere, Where::Addresses),
        };
        let scheme = from.text("PATHWEAVE_SCHEME").unwrap_or_else(|| DEFAULT_SCHEME.into());
        check_scheme(&scheme)?;
        let rate = |text: &str| {
            text.parse().ok().filter(|rate| (Rate::from_mbps(1)..=Rate::from_gbps(10_000)).contains(rate))
        };
        Ok(Settings {
            key,
            protection,
            place,
            backend: from
                .parsed("PATHWEAVE_BACKEND", "udp, af-xdp or auto", backend)?
                .unwrap_or(Backend::Udp),
            paths: from.number("PATHWEAVE_PATHS", 1..=u64::from(MAX_PATHS))?.map(|paths| paths as u16),
            scheme,
            line_rate: from.parsed("PATHWEAVE_LINE_RATE", "1Mbps to 10000Gbps, as 25Gbps", rate)?,
            link_mtu: from.number("PATHWEAVE_MTU", 448..=65_536)?.map(|bytes| bytes as usize),
            ports: from.parsed("PATHWEAVE_PORTS", "two ports of 1 to 65535, as 18500-18600", ports)?,
            waiting: from
                .parsed("PATHWEAVE_WAITING", "adaptive, busy or blocking", waiting)?
                .unwrap_or(Waiting::ADAPTIVE),
            peer_timeout: Duration::from_secs(
                from.number("PATHWEAVE_PEER_TIMEOUT", 1..=3_600)?.unwrap_or(60),
            ),
            eager_bytes: from.number("PATHWEAVE_EAGER", 1_024..=65_536)?.unwrap_or(16 << 10) as usize,
            unexpected_bytes: from
                .number("PATHWEAVE_UNEXPECTED_BYTES", 1 << 20..=1 << 40)?
                .unwrap_or(64 << 20) as usize,
            progress: from
                .parsed("PATHWEAVE_PROGRESS", "auto, thread or caller", progress)?
                .unwrap_or(Progress::Auto),
            shared_memory: from
                .parsed("PATHWEAVE_SHARED_MEMORY", "on, messages or off", shared_memory)?
                .unwrap_or(SharedMemory::On),
        })
    }
}

struct Variables<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Variables<'_> {
    /// Returns the text of a variable. An empty variable counts as unset.
    fn text(&self, variable: &str) -> Option<String> {
        (self.0)(variable).filter(|value| !value.is_empty())
    }

    fn parsed<T>(
        &self,
        variable: &'static str,
        allowed: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, SettingError> {
        let Some(value) = self.text(variable) else { return Ok(None) };
        match parse(&value) {
            Some(parsed) => Ok(Some(parsed)),
            None => Err(SettingError::Value { variable, value, allowed: allowed.into() }),
        }
    }

    fn number(
        &self,
        variable: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, SettingError> {
        let allowed = format!("{} to {}", range.start(), range.end());
        self.parsed(variable, &allowed, |text| text.parse().ok().filter(|number| range.contains(number)))
    }
}

fn check_scheme(name: &str) -> Result<(), SettingError> {
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut config = DeviceConfig::new(address);
    config.protection = Protection::Insecure;
    config.scheme = name.into();
    config.validate().map_err(SettingError::Scheme)
}

/// Parses a comma-separated list. Returns `None` if it is too long or has duplicates.
fn list<T: PartialEq>(text: &str, parse: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    let all: Vec<T> = text.split(',').map(|part| parse(part.trim())).collect::<Option<_>>()?;
    let once = (1..all.len()).all(|index| !all[..index].contains(&all[index]));
    (once && all.len() <= MAX_ADDRESSES).then_some(all)
}

fn names(text: &str) -> Option<Vec<String>> {
    list(text, |name| (!name.is_empty()).then(|| name.to_owned()))
}

fn addresses(text: &str) -> Option<Vec<IpAddr>> {
    let all = list(text, |address| address.parse::<IpAddr>().ok())?;
    let sound = |address: &IpAddr| address.is_ipv4() == all[0].is_ipv4() && !address.is_unspecified();
    all.iter().all(sound).then_some(all)
}

fn ports(text: &str) -> Option<RangeInclusive<u16>> {
    let (low, high) = text.split_once('-')?;
    let (low, high) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
    (0 < low && low <= high).then_some(low..=high)
}

fn backend(text: &str) -> Option<Backend> {
    match text {
        "udp" => Some(Backend::Udp),
        "af-xdp" => Some(Backend::AfXdp),
        "auto" => Some(Backend::Auto),
        _ => None,
    }
}

fn waiting(text: &str) -> Option<Waiting> {
    match text {
        "adaptive" => Some(Waiting::ADAPTIVE),
        "busy" => Some(Waiting::Busy),
        "blocking" => Some(Waiting::Blocking { spin: Duration::ZERO }),
        _ => None,
    }
}

fn shared_memory(text: &str) -> Option<SharedMemory> {
    match text {
        "on" => Some(SharedMemory::On),
        "messages" => Some(SharedMemory::Messages),
        "off" => Some(SharedMemory::Off),
        _ => None,
    }
}

fn progress(text: &str) -> Option<Progress> {
    match text {
        "auto" => Some(Progress::Auto),
        "thread" => Some(Progress::Thread),
        "caller" => Some(Progress::Caller),
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Reads these variables instead of the environment.
    pub(crate) fn read(variables: &[(&str, &str)]) -> Result<Settings, String> {
        let get = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.to_string())
        };
        Settings::read(&get).map_err(|error| error.to_string())
    }

    pub(crate) const OPEN: (&str, &str) = ("PATHWEAVE_PROTECTION", "insecure");

    #[test]
    fn protection_needs_a_key_unless_it_is_given_up() {
        let error = read(&[]).unwrap_err();
        assert!(error.contains("no key") && error.contains("PATHWEAVE_KEY_FILE"), "{error}");
        let settings = read(&[OPEN]).unwrap();
        assert_eq!((settings.protection, settings.paths), (Protection::Insecure, None));
        let error = read(&[("PATHWEAVE_KEY_FILE", "/nonexistent/key")]).unwrap_err();
        assert!(error.contains("/nonexistent/key"), "{error}");
    }

    #[test]
    fn what_is_out_of_range_is_named_with_what_is_allowed() {
        for (variable, value, allowed) in [
            ("PATHWEAVE_PROTECTION", "none", "encrypt, auth-only or insecure"),
            ("PATHWEAVE_ADDRESS", "localhost", "an address"),
            ("PATHWEAVE_ADDRESS", "10.0.0.1,", "an address"),
            ("PATHWEAVE_ADDRESS", "10.0.0.1,10.0.0.1", "each of an interface and once"),
            ("PATHWEAVE_ADDRESS", "10.0.0.1,fd00::1", "all IPv4 or all IPv6"),
            ("PATHWEAVE_ADDRESS", "0.0.0.0", "each of an interface"),
            ("PATHWEAVE_ADDRESS", "::1,::2,::3,::4,::5,::6,::7,::8,::9", "up to 8"),
            ("PATHWEAVE_IFACE", "eth0,eth0", "each once"),
            ("PATHWEAVE_IFACE", "eth0,,eth1", "a network interface"),
            ("PATHWEAVE_BACKEND", "dpdk", "udp, af-xdp or auto"),
            ("PATHWEAVE_PATHS", "0", "1 to 256"),
            ("PATHWEAVE_PATHS", "257", "1 to 256"),
            ("PATHWEAVE_SCHEME", "wave", "weave"),
            ("PATHWEAVE_LINE_RATE", "0Gbps", "1Mbps"),
            ("PATHWEAVE_MTU", "447", "448 to 65536"),
            ("PATHWEAVE_PORTS", "9-8", "two ports"),
            ("PATHWEAVE_PORTS", "0-8", "two ports"),
            ("PATHWEAVE_WAITING", "sleep", "adaptive"),
            ("PATHWEAVE_PEER_TIMEOUT", "0", "1 to 3600"),
            ("PATHWEAVE_EAGER", "100", "1024 to 65536"),
            ("PATHWEAVE_UNEXPECTED_BYTES", "1", "1048576"),
            ("PATHWEAVE_PROGRESS", "manual", "auto, thread or caller"),
            ("PATHWEAVE_SHARED_MEMORY", "0", "on, messages or off"),
        ] {
            let error = match variable {
                "PATHWEAVE_PROTECTION" => read(&[(variable, value)]),
                _ => read(&[OPEN, (variable, value)]),
            };
            let error = error.unwrap_err();
            assert!(
                error.starts_with(variable) && error.contains(value) && error.contains(allowed),
                "{error}"
            );
            assert!(!error.contains('\n'), "one line: {error}");
            assert!(!error.contains("allowed: there is"), "{error}");
        }
    }

    #[test]
    fn good_values_arrive() {
        let settings = read(&[
            OPEN,
            ("PATHWEAVE_IFACE", "eth1"),
            ("PATHWEAVE_PATHS", "4"),
            ("PATHWEAVE_LINE_RATE", "25Gbps"),
            ("PATHWEAVE_PORTS", "18500-18600"),
            ("PATHWEAVE_WAITING", "busy"),
            ("PATHWEAVE_PEER_TIMEOUT", "7"),
            ("PATHWEAVE_EAGER", "2048"),
            ("PATHWEAVE_SHARED_MEMORY", "off"),
            ("PATHWEAVE_MTU", ""),
        ])
        .unwrap();
        assert_eq!(settings.place, Where::Interfaces(vec!["eth1".into()]));
        let two = read(&[OPEN, ("PATHWEAVE_ADDRESS", "10.0.1.1, 10.0.2.1")]).unwrap().place;
        assert_eq!(two, Where::Addresses(["10.0.1.1", "10.0.2.1"].map(|ip| ip.parse().unwrap()).to_vec()));
        assert_eq!((settings.paths, settings.ports), (Some(4), Some(18_500..=18_600)));
        assert_eq!(settings.line_rate, Some(Rate::from_gbps(25)));
        assert_eq!((settings.waiting, settings.peer_timeout), (Waiting::Busy, Duration::from_secs(7)));
        assert_eq!((settings.eager_bytes, settings.link_mtu), (2_048, None));
        assert_eq!(settings.shared_memory, SharedMemory::Off);
        let both = read(&[OPEN, ("PATHWEAVE_IFACE", "eth1"), ("PATHWEAVE_ADDRESS", "10.0.0.1")]);
        assert!(both.unwrap_err().contains("one of them"));
    }
}
