//! Interfaces and the subnets they are in.

use std::ffi::OsStr;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

/// Whether an interface carries packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Up,
    /// It may come up later. The system keeps its IPv4 addresses.
    Down,
}

/// An address of a network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) address: IpAddr,
    pub(crate) prefix_bits: u8,
    pub(crate) link: Link,
}

/// A network, as `10.0.0.0/24`: what a fabric is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subnet {
    network: IpAddr,
    prefix_bits: u8,
}

impl Interface {
    /// Whether it carries packets now.
    pub(crate) fn is_up(&self) -> bool {
        self.link == Link::Up
    }

    pub(crate) fn subnet(&self) -> Subnet {
        let bits = u32::from(self.prefix_bits);
        let network = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
            }
        };
        Subnet { network, prefix_bits: self.prefix_bits }
    }

    /// Usable by a peer without knowing which of its links is meant.
    pub(crate) fn is_routable(&self) -> bool {
        match self.address {
            IpAddr::V4(address) => !address.is_unspecified(),
            IpAddr::V6(address) => !address.is_unspecified() && !address.is_unicast_link_local(),
        }
    }

    /// Linux has one, of this name, in every network namespace.
    pub(crate) fn is_loopback(&self) -> bool {
        self.name == "lo"
    }

    /// Bytes of a packet on it; what Ethernet has, if the system does not say.
    pub(crate) fn link_mtu(&self) -> usize {
        self.system_says("mtu").unwrap_or(1_500)
    }

    /// Its rate in Mb/s, where it has one. What stands on no device has none, whatever it says: each end of a virtual pair, which is
    /// as fast as the processor, says 10,000.
    pub(crate) fn speed_mbps(&self) -> Option<u64> {
        let folder = self.folder();
        let is_lower = |name: &OsStr| name.to_string_lossy().starts_with("lower_");
        let stands_on = |folder: &Path| {
            std::fs::read_dir(folder)
                .is_ok_and(|files| files.flatten().any(|file| is_lower(&file.file_name())))
        };
        let is_real = folder.join("device").exists() || stands_on(&folder);
        self.system_says("speed").filter(|_| is_real)
    }

    /// The folder in which the system describes it.
    pub(crate) fn folder(&self) -> PathBuf {
        Path::new(INTERFACES).join(&self.name)
    }

    fn system_says<T: std::str::FromStr>(&self, what: &str) -> Option<T> {
        said(&self.folder().join(what))?.parse().ok()
    }
}

/// Folders of the network interfaces, by name.
const INTERFACES: &str = "/sys/class/net";

/// The text of a file of the system, unless it is empty.
pub(super) fn said(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix_bits)
    }
}
