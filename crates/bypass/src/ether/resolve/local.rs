//! Address of this end of a link, and the network on the link.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

/// Address of this end on a link with the network's prefix, for instance `10.0.0.1/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    address: IpAddr,
    prefix: u8,
    gateway: Option<IpAddr>,
}

/// Reason why an address is not valid for a host on a link.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LocalError {
    /// The text is not an address with a prefix length.
    #[error(
        "{text:?} is no address with the length of its network's prefix, as 10.0.0.1/24 or fd00::1/64 is"
    )]
    Text {
        /// Text that was given.
        text: String,
    },
    /// The length of the prefix is invalid.
    #[error("a prefix of {prefix} bits; of {address} it has 1 to {most}")]
    Prefix {
        /// Address that was given.
        address: IpAddr,
        /// Prefix length that was given, in bits.
        prefix: u8,
        /// Length of an address in bits.
        most: u8,
    },
    /// The address is not that of a single host.
    #[error("{address} is not the address of a host, but {what}")]
    NotHost {
        /// Address that was given.
        address: IpAddr,
        /// Kind of the address.
        what: &'static str,
    },
    /// The gateway is not on the link.
    #[error("the gateway {gateway} is not another host in the network {local}")]
    Gateway {
        /// Address of the gateway.
        gateway: IpAddr,
        /// Address of this end, with the network's prefix.
        local: Local,
    },
}

impl Local {
    /// Creates an address in a network whose addresses share the first `prefix` bits.
    ///
    /// # Errors
    /// If the prefix is invalid, or the address is not that of a host.
    pub fn new(address: IpAddr, prefix: u8) -> Result<Local, LocalError> {
        let most = bits(address);
        if !(1..=most).contains(&prefix) {
            return Err(LocalError::Prefix { address, prefix, most });
        }
        let local = Local { address, prefix, gateway: None };
        let what = if address.is_unspecified() {
            "no address at all"
        } else if address.is_multicast() {
            "that of a group"
        } else if address.is_loopback() {
            "that of this machine itself"
        } else if address.is_ipv4() && prefix < 31 && local.host_part() == 0 {
            "that of its network"
        } else if address.is_ipv4() && prefix < 31 && local.host_part() == u128::MAX >> (96 + prefix) {
            "that of all hosts of its network"
        } else {
            return Ok(local);
        };
        Err(LocalError::NotHost { address, what })
    }

    /// Sets the host on the link that forwards packets to other networks.
    ///
    /// # Errors
    /// If the gateway is not another host on the link.
    pub fn with_gateway(self, gateway: IpAddr) -> Result<Local, LocalError> {
        if gateway == self.address || !self.is_on_link(gateway) {
            return Err(LocalError::Gateway { gateway, local: self });
        }
        Ok(Local { gateway: Some(gateway), ..self })
    }

    /// Returns the address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the host on the link to which packets for `peer` are sent, or `None` if there is no route.
    pub fn next_hop(&self, peer: IpAddr) -> Option<IpAddr> {
        if self.is_on_link(peer) {
            Some(peer)
        } else {
            self.gateway.filter(|_| peer.is_ipv4() == self.address.is_ipv4())
        }
    }

    /// Returns true if `peer` is an address in the link's network.
    pub fn is_on_link(&self, peer: IpAddr) -> bool {
        let shift = u32::from(bits(self.address) - self.prefix);
        let network = |address| number(address).checked_shr(shift);
        peer.is_ipv4() == self.address.is_ipv4() && network(peer) == network(self.address)
    }

    fn host_part(&self) -> u128 {
        number(self.address) & !(u128::MAX << (bits(self.address) - self.prefix))
    }
}

impl FromStr for Local {
    type Err = LocalError;
    fn from_str(text: &str) -> Result<Local, LocalError> {
        let read = || {
            let (address, prefix) = text.split_once('/')?;
            Some((address.parse().ok()?, prefix.parse().ok()?))
        };
        let (address, prefix) = read().ok_or_else(|| LocalError::Text { text: text.to_owned() })?;
        Local::new(address, prefix)
    }
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

fn bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => Ipv4Addr::BITS as u8,
        IpAddr::V6(_) => Ipv6Addr::BITS as u8,
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(text: &str) -> Local {
        text.parse().unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_prefix_decides_who_is_on_the_link() {
        let four = local("10.1.2.3/22");
        assert_eq!(four.next_hop(ip("10.1.3.255")), Some(ip("10.1.3.255")));
        assert_eq!(four.next_hop(ip("10.1.4.0")), None);
        assert_eq!(four.next_hop(ip("fd00::1")), None);
        let routed = four.with_gateway(ip("10.1.0.1")).unwrap();
        assert_eq!(routed.next_hop(ip("10.1.4.0")), Some(ip("10.1.0.1")));
        assert_eq!(routed.next_hop(ip("10.1.0.9")), Some(ip("10.1.0.9")));
        assert_eq!(routed.next_hop(ip("fd00::1")), None);
        let six = local("fd00::1/64");
        assert!(six.is_on_link(ip("fd00::ffff:1")) && !six.is_on_link(ip("fd00:0:0:1::1")));
        assert!(local("192.0.2.7/32").next_hop(ip("192.0.2.6")).is_none());
        assert!(local("192.0.2.6/31").is_on_link(ip("192.0.2.7")));
    }

    #[test]
    fn addresses_that_are_no_hosts_are_refused() {
        let said = |text: &str| text.parse::<Local>().unwrap_err().to_string();
        assert!(
            said("10.0.0.1")
                .starts_with("\"10.0.0.1\" is no address with the length of its network's prefix")
        );
        assert!(said("10.0.0.x/24").contains("10.0.0.x/24"));
        assert_eq!(said("10.0.0.1/33"), "a prefix of 33 bits; of 10.0.0.1 it has 1 to 32");
        assert_eq!(said("fd00::1/0"), "a prefix of 0 bits; of fd00::1 it has 1 to 128");
        assert_eq!(said("0.0.0.0/8"), "0.0.0.0 is not the address of a host, but no address at all");
        assert_eq!(said("224.0.0.1/8"), "224.0.0.1 is not the address of a host, but that of a group");
        assert_eq!(said("::1/64"), "::1 is not the address of a host, but that of this machine itself");
        assert_eq!(said("10.0.0.0/24"), "10.0.0.0 is not the address of a host, but that of its network");
        assert_eq!(
            said("10.0.0.255/24"),
            "10.0.0.255 is not the address of a host, but that of all hosts of its network"
        );
        let far = local("10.0.0.1/24").with_gateway(ip("10.0.1.1")).unwrap_err().to_string();
        assert_eq!(far, "the gateway 10.0.1.1 is not another host in the network 10.0.0.1/24");
        assert!(local("10.0.0.1/24").with_gateway(ip("10.0.0.1")).is_err());
    }
}
