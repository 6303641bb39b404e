//! Opens devices over the backend and at the ports that the variables allow.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use pathweave_bypass::{CarrierError, Fallback, open_af_xdp};
use pathweave_datapath::{ConfigError, Device, DeviceConfig, OpenError};
use thiserror::Error;

use crate::Interface;
use crate::log::say_once;
use crate::settings::{Backend, Settings};

/// Error of opening a device.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// The device, or the backend that carries its packets.
    #[error(transparent)]
    Carrier(#[from] CarrierError),
    /// AF_XDP has the packets of one interface only.
    #[error(
        "PATHWEAVE_BACKEND=af-xdp carries packets of one network interface, not of {names}; name one of them with \
         PATHWEAVE_IFACE, or set PATHWEAVE_BACKEND=udp"
    )]
    SeveralInterfaces {
        /// Names of the interfaces.
        names: String,
    },
}

impl From<OpenError> for DeviceError {
    fn from(why: OpenError) -> Self {
        DeviceError::Carrier(why.into())
    }
}

impl DeviceError {
    /// Returns the error of the device itself, if its backend is not to blame.
    pub fn of_device(&self) -> Option<&OpenError> {
        match self {
            DeviceError::Carrier(CarrierError::Device(why)) => Some(why),
            _ => None,
        }
    }
}

impl Settings {
    /// Opens a device on `address` that uses these interfaces together, at the first of `ports` that is free. `adapt`
    /// changes what the variables leave to the library.
    ///
    /// # Errors
    /// All ports are in use, or the device cannot be opened at one of them for another reason.
    pub fn open(
        &self,
        interfaces: &[&Interface],
        address: IpAddr,
        ports: RangeInclusive<u16>,
        mut adapt: impl FnMut(&mut DeviceConfig) -> Result<(), ConfigError>,
    ) -> Result<Device, DeviceError> {
        let mut open = |port| {
            let mut config = self.device(interfaces, SocketAddr::new(address, port));
            adapt(&mut config).map_err(OpenError::from)?;
            self.open_at(interfaces, config)
        };
        let (first, last) = ports.into_inner();
        let mut opened = open(first);
        for port in first..last {
            match &opened {
                Err(error) if matches!(error.of_device(), Some(OpenError::PortInUse { .. })) => {
                    opened = open(port + 1);
                }
                _ => break,
            }
        }
        opened
    }

    /// Returns what to say if all ports are in use that `PATHWEAVE_PORTS` allows at `address`, or `None` if it is not set.
    pub fn without_a_free_port(&self, address: IpAddr) -> Option<String> {
        let ports = self.ports.as_ref()?;
        let (first, last) = (ports.start(), ports.end());
        Some(format!(
            "no UDP port of PATHWEAVE_PORTS, {first} to {last}, is free at {address}: each endpoint listens on one"
        ))
    }

    fn open_at(&self, interfaces: &[&Interface], config: DeviceConfig) -> Result<Device, DeviceError> {
        let fallback = match self.backend {
            Backend::Udp => return Ok(Device::open(config)?),
            Backend::AfXdp => Fallback::Fail,
            Backend::Auto => Fallback::Udp,
        };
        let opened = match interfaces {
            [one] => open_af_xdp(config, &one.name, fallback)?,
            several if self.backend == Backend::AfXdp => {
                let names: Vec<&str> = several.iter().map(|interface| interface.name.as_str()).collect();
                return Err(DeviceError::SeveralInterfaces { names: names.join(", ") });
            }
            _ => return Ok(Device::open(config)?),
        };
        if let Some(words) = opened.description {
            say_once(&format!("packets go over {words}"));
        }
        Ok(opened.device)
    }
}

/// Makes a peer's timeout include the silence before an idle peer is asked: at most a quarter of it. A dead peer is then
/// lost after the time that the user allows, whether or not anything was sent to it.
pub fn include_keepalive_in_timeout(config: &mut DeviceConfig) {
    config.keepalive = config.keepalive.min(config.peer_timeout / 4);
    config.peer_timeout -= config.keepalive;
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;
    use crate::Link;
    use crate::settings::tests::{OPEN, read};

    fn interface(name: &str, last: u8) -> Interface {
        let address = IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
        Interface { name: name.to_owned(), address, prefix_bits: 8, link: Link::Up }
    }

    /// Opens a device with these variables on the first of two interfaces, or on both.
    fn opened(
        variables: &[(&str, &str)],
        count: usize,
        ports: RangeInclusive<u16>,
    ) -> Result<Device, String> {
        let all = [interface("lo", 1), interface("other", 2)];
        let used: Vec<&Interface> = all.iter().take(count).collect();
        let settings = read(variables).expect("the variables are right");
        let opened = settings.open(&used, used[0].address, ports, |_| Ok(()));
        opened.map_err(|error| error.to_string())
    }

    #[test]
    fn the_first_port_that_is_free_is_taken_and_the_last_reports() {
        let first = opened(&[OPEN], 1, 0..=0).expect("a port of the system's choice");
        let taken = first.local_addr().port();
        let why = opened(&[OPEN], 1, taken..=taken).map(|_| ()).unwrap_err();
        assert!(why.contains(&taken.to_string()), "{why}");
        if let Some(next) = taken.checked_add(20) {
            let second = opened(&[OPEN], 1, taken..=next).expect("one of 21 ports");
            assert!((taken + 1..=next).contains(&second.local_addr().port()));
        }
    }

    #[test]
    fn the_ports_that_are_all_in_use_are_named() {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let said = |variables| read(variables).expect("the variables are right").without_a_free_port(address);
        assert_eq!(
            said(&[OPEN, ("PATHWEAVE_PORTS", "18500-18501")]).as_deref(),
            Some(
                "no UDP port of PATHWEAVE_PORTS, 18500 to 18501, is free at 127.0.0.1: each endpoint listens on one"
            )
        );
        assert_eq!(said(&[OPEN]), None);
    }

    #[test]
    fn af_xdp_takes_one_interface_and_auto_falls_back() {
        let refused = |count| opened(&[OPEN, ("PATHWEAVE_BACKEND", "af-xdp")], count, 0..=0).map(|_| ());
        let why = refused(2).unwrap_err();
        assert!(why.contains("not of lo, other") && why.contains("PATHWEAVE_IFACE"), "{why}");
        // Loopback has several queues and no neighbours: whether for that or for want of permission, it is refused.
        refused(1).unwrap_err();
        for count in [1, 2] {
            opened(&[OPEN, ("PATHWEAVE_BACKEND", "auto")], count, 0..=0).expect("UDP sockets");
        }
    }

    #[test]
    fn the_timeout_includes_the_keepalive() {
        let mut config = DeviceConfig::loopback();
        (config.keepalive, config.peer_timeout) = (Duration::from_secs(1), Duration::from_secs(2));
        include_keepalive_in_timeout(&mut config);
        assert_eq!(
            (config.keepalive, config.peer_timeout),
            (Duration::from_millis(500), Duration::from_millis(1_500))
        );
    }
}
