//! Interfaces and their subnets.

use std::ffi::OsStr;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

/// Operational state of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Carries packets.
    Up,
    /// The interface may come up later. The system keeps its IPv4 addresses.
    Down,
}

/// An address of a network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name, such as `eth0`.
    pub name: String,
    /// The address.
    pub address: IpAddr,
    /// Length of the prefix of its network.
    pub prefix_bits: u8,
    /// State.
    pub link: Link,
}

/// A subnet, such as `10.0.0.0/24`. It is the name of a fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    network: IpAddr,
    prefix_bits: u8,
}

impl Interface {
    /// Returns true if the interface carries packets now.
    pub fn is_up(&self) -> bool {
        self.link == Link::Up
    }

    /// Returns the network of the address.
    pub fn subnet(&self) -> Subnet {
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

    /// Returns true if a peer can use the address without knowing the link it belongs to.
    pub fn is_routable(&self) -> bool {
        match self.address {
            IpAddr::V4(address) => !address.is_unspecified(),
            IpAddr::V6(address) => !address.is_unspecified() && !address.is_unicast_link_local(),
        }
    }

    /// Returns true for the loopback interface. Linux has one, with this name, in every network namespace.
    pub fn is_loopback(&self) -> bool {
        self.name == "lo"
    }

    /// Returns the link MTU in bytes, or Ethernet's if the system does not report it.
    pub fn link_mtu(&self) -> usize {
        self.system_says("mtu").unwrap_or(1_500)
    }

    /// Returns the rate in Mb/s, if the interface has one. An interface without a device below it has none,
    /// whatever it reports: each end of a veth pair, which is as fast as the CPU, reports 10,000.
    pub fn speed_mbps(&self) -> Option<u64> {
        let folder = self.folder();
        let is_lower = |name: &OsStr| name.to_string_lossy().starts_with("lower_");
        let stands_on = |folder: &Path| {
            std::fs::read_dir(folder)
                .is_ok_and(|files| files.flatten().any(|file| is_lower(&file.file_name())))
        };
        let is_real = folder.join("device").exists() || stands_on(&folder);
        self.system_says("speed").filter(|_| is_real)
    }

    /// Returns the folder in which the system describes the interface.
    pub fn folder(&self) -> PathBuf {
        Path::new(INTERFACES).join(&self.name)
    }

    fn system_says<T: std::str::FromStr>(&self, what: &str) -> Option<T> {
        file_text(&self.folder().join(what))?.parse().ok()
    }
}

/// Folder that contains the folders of all network interfaces.
const INTERFACES: &str = "/sys/class/net";

/// Returns the text of a system file, or `None` if it is empty or missing.
pub fn file_text(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix_bits)
    }
}
