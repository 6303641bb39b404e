//! Virtual devices in the syntax of DPDK's `--vdev`: `net_af_packet0,iface=eth0`.

use std::fmt;
use std::str::FromStr;

use pathweave_units::closest_name;

use crate::dpdk::error::DpdkError;

/// Drivers of virtual network devices in DPDK 22.11.
const DRIVERS: [&str; 10] = [
    "net_af_packet",
    "net_af_xdp",
    "net_bonding",
    "net_memif",
    "net_null",
    "net_pcap",
    "net_ring",
    "net_tap",
    "net_vhost",
    "net_virtio_user",
];

/// Virtual device: a name, which begins with that of its driver, and arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vdev {
    name: String,
    arguments: Vec<(String, Option<String>)>,
}

impl Vdev {
    /// Returns the name, for instance `net_af_packet0`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the driver, which is the name without its number: `net_af_packet`.
    pub fn driver(&self) -> &str {
        self.name.trim_end_matches(|c: char| c.is_ascii_digit())
    }

    /// Returns the value of an argument.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.arguments.iter().find(|(known, _)| known == key)?.1.as_deref()
    }

    /// Adds an argument, unless it has a value already.
    #[must_use]
    pub(crate) fn with_default(mut self, key: &str, value: impl fmt::Display) -> Vdev {
        if self.get(key).is_none() {
            self.arguments.push((key.to_owned(), Some(value.to_string())));
        }
        self
    }

    /// Returns the arguments in DPDK's syntax.
    pub(crate) fn arguments(&self) -> String {
        let one = |(key, value): &(String, Option<String>)| match value {
            Some(value) => format!("{key}={value}"),
            None => key.clone(),
        };
        self.arguments.iter().map(one).collect::<Vec<_>>().join(",")
    }

    /// Returns a known driver with a similar name, if the driver is unknown.
    pub(crate) fn suggested_driver(&self) -> Option<&'static str> {
        let driver = self.driver();
        closest_name(driver, DRIVERS).filter(|known| *known != driver)
    }

    /// Returns the names of all drivers.
    pub(crate) fn drivers() -> String {
        DRIVERS.join(", ")
    }
}

impl FromStr for Vdev {
    type Err = DpdkError;
    fn from_str(text: &str) -> Result<Vdev, DpdkError> {
        let mut words = text.split(',');
        let name = words.next().unwrap_or_default().to_owned();
        let is_name = |name: &str| {
            name.len() > "net_".len()
                && name.starts_with("net_")
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let arguments = words.map(|word| match word.split_once('=') {
            Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
            None => (word.to_owned(), None),
        });
        let arguments: Vec<_> = arguments.collect();
        if !is_name(&name) || arguments.iter().any(|(key, _)| key.is_empty()) {
            return Err(DpdkError::Vdev { text: text.to_owned() });
        }
        Ok(Vdev { name, arguments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vdev(text: &str) -> Vdev {
        text.parse().unwrap()
    }

    #[test]
    fn a_device_is_its_driver_a_number_and_arguments() {
        let device = vdev("net_memif12,role=client,socket=/run/a.sock,zero-copy");
        assert_eq!((device.name(), device.driver()), ("net_memif12", "net_memif"));
        assert_eq!(
            (device.get("role"), device.get("zero-copy"), device.get("id")),
            (Some("client"), None, None)
        );
        let device = device.with_default("role", "server").with_default("bsize", 1_536);
        assert_eq!(device.arguments(), "role=client,socket=/run/a.sock,zero-copy,bsize=1536");
        assert_eq!(vdev("net_ring0").arguments(), "");
        assert_eq!(vdev("net_af_packte0").suggested_driver(), Some("net_af_packet"));
        assert_eq!(vdev("net_af_packet0").suggested_driver(), None);
    }

    #[test]
    fn invalid_devices_are_refused() {
        for wrong in ["", "eth0", "net_", "net_memif0,,", "net_memif0,=1", "net_me mif0"] {
            let why = wrong.parse::<Vdev>().unwrap_err().to_string();
            assert!(why.starts_with(&format!("{wrong:?} is no virtual device")), "{why}");
        }
    }
}
