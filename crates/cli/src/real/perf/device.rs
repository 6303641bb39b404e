//! Devices as specified on the command line.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use pathweave_bypass::{Carrier, DpdkPort, Fallback, dpdk};
use pathweave_datapath::rdm::RdmConfig;
use pathweave_datapath::secure::{ClusterKey, Protection};
use pathweave_datapath::{DeviceConfig, Driving, Unprotected, Waiting};

use super::args::{
    BackendKind, DEFAULT_PORT, DeviceArgs, DrivenBy, HugePagesKind, PortArgs, ProtectionArgs, Transport,
};
use crate::failure::Failure;

/// Default number of paths of a connection.
const CONNECTION_PATHS: u16 = 16;

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
        // `--insecure` is an explicit choice, valid at any bind address.
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
    /// The options are incompatible.
    pub(crate) fn carrier(&self) -> Result<Carrier, Failure> {
        self.check_for_backend()?;
        let carrier = match (self.backend, &self.interface) {
            (BackendKind::Udp, _) => return Ok(Carrier::Udp),
            (BackendKind::Dpdk, _) => Carrier::Dpdk(self.port()?),
            (BackendKind::AfXdp | BackendKind::Auto, None) => {
                let example = "name the network interface, as in --interface eth0";
                return Err(Failure::Input(format!(
                    "AF_XDP takes packets of one network interface: {example}"
                )));
            }
            (backend, Some(interface)) => {
                let fallback = if backend == BackendKind::Auto { Fallback::Udp } else { Fallback::Fail };
                Carrier::AfXdp { interface: interface.clone(), fallback }
            }
        };
        match self.transport {
            Transport::Rc => Ok(carrier),
            Transport::Erd => {
                Err(Failure::Input("--transport erd is measured over UDP sockets: --backend udp".to_owned()))
            }
        }
    }

    /// Returns an error if options of another backend than the selected one are given.
    fn check_for_backend(&self) -> Result<(), Failure> {
        if let Some(name) = &self.interface
            && !matches!(self.backend, BackendKind::AfXdp | BackendKind::Auto)
        {
            let instead = match self.backend {
                BackendKind::Dpdk => format!("; for dpdk it is in --vdev net_af_packet0,iface={name}"),
                _ => String::new(),
            };
            return Err(Failure::Input(format!(
                "--interface {name} is for --backend af-xdp or auto{instead}"
            )));
        }
        let port = &self.port;
        let given = [
            ("--vdev", port.vdev.is_some()),
            ("--pci", port.pci.is_some()),
            ("--address", port.address.is_some()),
            ("--gateway", port.gateway.is_some()),
            ("--huge-pages", port.huge_pages != HugePagesKind::Auto),
        ];
        match given.iter().find(|(_, is_given)| *is_given && self.backend != BackendKind::Dpdk) {
            Some((option, _)) => Err(Failure::Input(format!("{option} is for --backend dpdk"))),
            None => Ok(()),
        }
    }

    fn port(&self) -> Result<DpdkPort, Failure> {
        let PortArgs { vdev, pci, address, gateway, huge_pages } = &self.port;
        let device = match (vdev, pci) {
            (Some(vdev), _) => dpdk::Device::Vdev(vdev.clone()),
            (None, Some(address)) => dpdk::Device::Pci(address.clone()),
            (None, None) => {
                let example = "--vdev net_memif0,role=client,socket=FILE, or --pci 0000:03:00.0";
                return Err(Failure::Input(format!(
                    "DPDK makes a port of a device: name it, as in {example}"
                )));
            }
        };
        let huge_pages = match huge_pages {
            HugePagesKind::Auto => dpdk::HugePages::Auto,
            HugePagesKind::Always => dpdk::HugePages::Always,
            HugePagesKind::Never => dpdk::HugePages::Never,
        };
        Ok(DpdkPort { device, local: *address, gateway: *gateway, mtu_bytes: self.mtu, huge_pages })
    }

    /// # Errors
    /// A device option is invalid.
    pub(crate) fn config(&self, bind: &[SocketAddr]) -> Result<DeviceConfig, Failure> {
        let (first, others) = bind.split_first().expect("clap gives one where none is given");
        let mut config = DeviceConfig::new(*first);
        config.also_bind = others.to_vec();
        config.paths = self.paths.unwrap_or(match self.transport {
            Transport::Rc => CONNECTION_PATHS,
            Transport::Erd => RdmConfig::DEFAULT_PATHS,
        });
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

/// Binds this thread to a core.
fn stay_on(core: usize) -> Result<(), Failure> {
    let wrong = |why: String| Failure::Input(format!("--cpu {core}: {why}"));
    let mut cores = rustix::thread::CpuSet::new();
    if core >= rustix::thread::CpuSet::MAX_CPU {
        return Err(wrong(format!("allowed: 0 to {}", rustix::thread::CpuSet::MAX_CPU - 1)));
    }
    cores.set(core);
    rustix::thread::sched_setaffinity(None, &cores).map_err(|why| {
        let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        wrong(format!("the program cannot use this core ({why}); the machine has {count}, numbered from 0"))
    })
}

/// Resolves the addresses of a server, separated by commas. Returns the first address and the others.
///
/// # Errors
/// One of them is invalid or has no address.
pub(crate) fn resolve_all(text: &str) -> Result<(SocketAddr, Vec<SocketAddr>), Failure> {
    let (first, others) = text.split_once(',').map_or((text, None), |(first, others)| (first, Some(others)));
    let others = others.into_iter().flat_map(|others| others.split(','));
    Ok((resolve(first)?, others.map(resolve).collect::<Result<_, _>>()?))
}

/// Resolves the address of a server.
///
/// # Errors
/// The address is invalid, or the name has no address.
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
                Failure::Input(format!("{text}: {port:?} is not a port; allowed: 1 to 65535"))
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
        let all = resolve_all("127.0.0.1,127.0.0.2:7").unwrap();
        assert_eq!((all.0.port(), all.1), (18_515, vec!["127.0.0.2:7".parse().unwrap()]));
        assert!(resolve_all("127.0.0.1,127.0.0.2:70000").is_err());
        let wrong = |text| resolve(text).unwrap_err().render(pathweave_scenario::Style::Plain);
        assert!(wrong("127.0.0.1:70000").contains("\"70000\" is not a port"));
        assert!(wrong("no host").contains("no address of that name"));
    }
}
