//! Devices as the command line describes them.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use pathweave_datapath::secure::{ClusterKey, Protection};
use pathweave_datapath::{
    ConfigError, ConnectError, Device, DeviceConfig, Driving, OpenError, Unprotected, Waiting, queue_pairs_of,
};

use super::args::{DEFAULT_PORT, DeviceArgs, DrivenBy, ProtectionArgs};
use super::connection::{Bundle, Member};
use crate::failure::Failure;
use crate::terminal;

impl ProtectionArgs {
    pub(crate) fn protection(&self) -> Protection {
        match (self.insecure, self.auth_only) {
            (true, _) => Protection::Insecure,
            (false, true) => Protection::AuthOnly,
            (false, false) => Protection::Encrypt,
        }
    }

    /// Sets protection and key.
    ///
    /// # Errors
    /// The key file cannot be used, or there is none.
    pub(crate) fn apply(&self, config: &mut DeviceConfig) -> Result<(), Failure> {
        config.protection = self.protection();
        // Whoever says `--insecure` means it, wherever the device is bound.
        config.unprotected = Unprotected::Anywhere;
        let read = |path: &std::path::PathBuf| {
            ClusterKey::read(path).map_err(|why| Failure::Input(format!("--key: {why}")))
        };
        config.key = self.key.as_ref().map(read).transpose()?;
        if config.protection != Protection::Insecure && config.key.is_none() {
            return Err(Failure::Input(format!(
                "packets are protected ({}), which needs the cluster's key: give its file with --key FILE, the same \
                 at both ends, or measure without protection on a closed fabric with --insecure",
                config.protection
            )));
        }
        Ok(())
    }
}

impl DeviceArgs {
    /// # Errors
    /// Something about it cannot be.
    pub(crate) fn config(&self, bind: SocketAddr) -> Result<DeviceConfig, Failure> {
        let mut config = DeviceConfig::new(bind);
        config.paths = self.paths();
        config.fit_link(self.mtu as usize).map_err(|why| Failure::Input(format!("--mtu: {why}")))?;
        config.line_rate = self.line_rate;
        self.protection.apply(&mut config)?;
        config.waiting = match (self.busy_poll, self.blocking) {
            (true, _) => Waiting::Busy,
            (false, true) => Waiting::Blocking { spin: Duration::ZERO },
            (false, false) => Waiting::ADAPTIVE,
        };
        config.driving = match self.driven_by {
            DrivenBy::Caller => Driving::Caller,
            DrivenBy::Thread => Driving::Thread { core: self.cpu },
        };
        if let (DrivenBy::Caller, Some(core)) = (self.driven_by, self.cpu) {
            stay_on(core)?;
        }
        Ok(config)
    }
}

/// Keeps this thread on a core.
fn stay_on(core: usize) -> Result<(), Failure> {
    let wrong = |why: String| Failure::Input(format!("--cpu {core}: {why}"));
    let mut cores = rustix::thread::CpuSet::new();
    if core >= rustix::thread::CpuSet::MAX_CPU {
        return Err(wrong(format!("allowed are 0 to {}", rustix::thread::CpuSet::MAX_CPU - 1)));
    }
    cores.set(core);
    rustix::thread::sched_setaffinity(None, &cores).map_err(|why| {
        let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        wrong(format!("this machine has no such core for us ({why}); it has {count}, counted from 0"))
    })
}

/// # Errors
/// What the device says, as a user can understand it.
pub(crate) fn open(config: DeviceConfig) -> Result<Device, Failure> {
    Device::open(config).map_err(opening)
}

/// What is wrong with how a device is to be opened, as a user can understand it.
pub(super) fn opening(why: OpenError) -> Failure {
    match why {
        OpenError::Config(why) => wrong_setting(&why),
        why => Failure::Input(why.to_string()),
    }
}

fn wrong_setting(why: &ConfigError) -> Failure {
    Failure::Input(match why {
        ConfigError::UnknownScheme { .. }
        | ConfigError::NotConnections { .. }
        | ConfigError::NotDatagrams { .. } => format!("--scheme: {why}"),
        why => why.to_string(),
    })
}

/// As many queue pairs as the scheme divides a flow over, as one connection.
///
/// # Errors
/// There is no connection, and why.
pub(crate) fn connect(
    device: &Device,
    peer: SocketAddr,
    scheme: &str,
    hello: &[u8],
) -> Result<Bundle, Failure> {
    let of = queue_pairs_of(scheme).map_err(|why| wrong_setting(&why))?;
    let tag = RandomState::new().hash_one(std::process::id());
    let connect = |index| {
        let said = if of == 1 { Vec::new() } else { Member { tag, index, of }.encode() };
        device.connect_with(peer, scheme, &[&said, hello].concat()).map_err(|why| match why {
            ConnectError::Config(why) => wrong_setting(&why),
            ConnectError::LinkMtu { .. } => {
                Failure::Input(format!("{why} (with --mtu, which is that of the link)"))
            }
            why => Failure::Input(why.to_string()),
        })
    };
    let connections = (0..of).map(connect).collect::<Result<_, _>>()?;
    Ok(Bundle::new(device, connections))
}

/// Says so if there are fewer paths than asked for.
pub(crate) fn note_paths(connection: &Bundle, wanted: u16) {
    let has = connection.info().paths;
    if has < wanted {
        terminal::note(&format!(
            "note: {has} paths instead of {wanted}, because the server has no more (--paths)"
        ));
    }
}

/// The address of a server.
///
/// # Errors
/// It is none, or has no address.
pub(crate) fn resolve(text: &str) -> Result<SocketAddr, Failure> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address);
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, DEFAULT_PORT));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => {
            let port = port.parse().map_err(|_| {
                Failure::Input(format!("{text}: {port:?} is no port; allowed are 1 to 65535"))
            })?;
            (host, port)
        }
        None => (text, DEFAULT_PORT),
    };
    let unknown = |why: &dyn std::fmt::Display| {
        Failure::Input(format!(
            "{text}: no address of that name ({why}); expected host, host:port, or [v6]:port"
        ))
    };
    let mut found = (host, port).to_socket_addrs().map_err(|why| unknown(&why))?;
    found.next().ok_or_else(|| unknown(&"it has none"))
}

/// Any port of this end, in the address family of `peer`.
pub(crate) fn any_port_for(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V4(_) => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        SocketAddr::V6(_) => SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_may_be_left_out() {
        let of = |text| resolve(text).unwrap().to_string();
        assert_eq!(of("127.0.0.1"), "127.0.0.1:18515");
        assert_eq!(of("127.0.0.1:7"), "127.0.0.1:7");
        assert_eq!(of("::1"), "[::1]:18515");
        assert_eq!(of("[::1]:9"), "[::1]:9");
        let wrong = |text| resolve(text).unwrap_err().render(pathweave_scenario::Style::Plain);
        assert!(wrong("127.0.0.1:70000").contains("\"70000\" is no port"));
        assert!(wrong("no host").contains("no address of that name"));
    }
}
