//! Properties of a network interface, as the kernel reports them.

use std::net::IpAddr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkLayerType, LinkMessage};
use pathweave_linux::netlink::{Netlink, SystemError};
use pathweave_units::{closest_name, suggestion};
use thiserror::Error;

use crate::ether::frame::Mac;

/// Network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name of the interface, for instance `eth0`.
    pub name: String,
    /// Index of the interface in its network namespace.
    pub index: u32,
    /// Ethernet address.
    pub mac: Mac,
    /// Size of the largest IP packet in bytes.
    pub mtu_bytes: u32,
    /// Largest number of receive queues that the interface may have. The current number may be lower.
    pub queues: u32,
    /// IP addresses of the interface.
    pub addresses: Vec<IpAddr>,
}

/// Reason why an interface cannot be used. The text names the remedy.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum InterfaceError {
    /// No interface has this name.
    #[error("there is no network interface {name:?}{} (there are {all})", suggestion(.nearest.as_deref()))]
    Unknown {
        /// Requested name.
        name: String,
        /// Similar name, if there is one.
        nearest: Option<String>,
        /// Names of all interfaces.
        all: String,
    },
    /// The interface is down.
    #[error("the network interface {interface} is down: `ip link set {interface} up`")]
    Down {
        /// Name of the interface.
        interface: String,
    },
    /// The interface is not Ethernet.
    #[error(
        "the network interface {interface} is not one of Ethernet, which is needed here; use the backend udp"
    )]
    NotEthernet {
        /// Name of the interface.
        interface: String,
    },
    /// The interface does not have the address.
    #[error(
        "the network interface {interface} has {}; it has {}",
        if .wanted.is_unspecified() { "no address of the requested family".to_owned() } else { format!("not the address {wanted}") },
        if .all.is_empty() { "none" } else { .all }
    )]
    Address {
        /// Name of the interface.
        interface: String,
        /// Requested address.
        wanted: IpAddr,
        /// Addresses of the interface.
        all: String,
    },
    /// The kernel reported an error.
    #[error("cannot list network interfaces: {why}")]
    System {
        /// Message of the kernel.
        why: String,
    },
}

impl Interface {
    /// Finds the interface of this name in the network namespace of the socket.
    ///
    /// # Errors
    /// If there is none, if it is down, or if it is not Ethernet.
    pub fn find(netlink: &mut Netlink, name: &str) -> Result<Interface, InterfaceError> {
        let asking = |why: SystemError| InterfaceError::System { why: why.to_string() };
        let links = netlink.dump(RouteNetlinkMessage::GetLink(LinkMessage::default())).map_err(asking)?;
        let links = links.into_iter().filter_map(|message| match message {
            RouteNetlinkMessage::NewLink(link) => Some((name_of(&link)?, link)),
            _ => None,
        });
        let (found, others): (Vec<_>, Vec<_>) = links.partition(|(known, _)| known == name);
        let Some((name, link)) = found.into_iter().next() else {
            let all: Vec<String> = others.into_iter().map(|(name, _)| name).collect();
            let nearest = closest_name(name, all.iter().map(String::as_str)).map(str::to_owned);
            return Err(InterfaceError::Unknown { name: name.to_owned(), nearest, all: all.join(", ") });
        };
        if !link.header.flags.contains(LinkFlags::Up) {
            return Err(InterfaceError::Down { interface: name });
        }
        if link.header.link_layer_type != LinkLayerType::Ether {
            return Err(InterfaceError::NotEthernet { interface: name });
        }
        let index = link.header.index;
        let mut interface =
            Interface { name, index, mac: Mac::default(), mtu_bytes: 0, queues: 1, addresses: Vec::new() };
        for attribute in link.attributes {
            match attribute {
                LinkAttribute::Address(address) => {
                    if let Ok(mac) = Mac::try_from(address) {
                        interface.mac = mac;
                    }
                }
                LinkAttribute::Mtu(bytes) => interface.mtu_bytes = bytes,
                LinkAttribute::NumRxQueues(queues) => interface.queues = queues.max(1),
                _ => {}
            }
        }
        let addresses =
            netlink.dump(RouteNetlinkMessage::GetAddress(AddressMessage::default())).map_err(asking)?;
        interface.addresses =
            addresses.into_iter().filter_map(|message| address_at(message, index)).collect();
        Ok(interface)
    }

    /// Returns the address on which peers reach us: `wanted`, or if that is unspecified, the interface's first
    /// address of the family.
    ///
    /// # Errors
    /// If the interface does not have this address, or none of the family.
    pub fn address(&self, wanted: IpAddr) -> Result<IpAddr, InterfaceError> {
        let of_family =
            || self.addresses.iter().copied().filter(|address| address.is_ipv4() == wanted.is_ipv4());
        let found = match wanted.is_unspecified() {
            true => of_family().find(|address| !is_link_local(*address)),
            false => of_family().find(|address| *address == wanted),
        };
        found.ok_or_else(|| {
            let all: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
            InterfaceError::Address { interface: self.name.clone(), wanted, all: all.join(", ") }
        })
    }
}

/// Returns true for a link-local address. Peers on other links cannot send to it.
fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

fn name_of(link: &LinkMessage) -> Option<String> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name.clone()),
        _ => None,
    })
}

/// Returns the address in a message about the interface of this index.
fn address_at(message: RouteNetlinkMessage, index: u32) -> Option<IpAddr> {
    let RouteNetlinkMessage::NewAddress(message) = message else { return None };
    if message.header.index != index {
        return None;
    }
    // On a point-to-point link, the attribute "address" is that of the other end.
    let own = message.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Local(address) => Some(*address),
        _ => None,
    });
    own.or_else(|| {
        message.attributes.iter().find_map(|attribute| match attribute {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        })
    })
}
