//! What the kernel knows of a network interface.

use std::net::IpAddr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkLayerType, LinkMessage};
use pathweave_linux::netlink::{Netlink, SystemError};
use pathweave_units::{did_you_mean, nearest};
use thiserror::Error;

use crate::ether::frame::Mac;

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name: `eth0`.
    pub name: String,
    /// Its number in its network namespace.
    pub index: u32,
    /// Its Ethernet address.
    pub mac: Mac,
    /// The longest IP packet, in bytes.
    pub mtu_bytes: u32,
    /// The most receive queues it may have; those it has now may be fewer.
    pub queues: u32,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

/// Why an interface cannot be used, with what to do.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum InterfaceError {
    /// No interface has this name.
    #[error("there is no network interface {name:?}{} (there are {all})", did_you_mean(.nearest.as_deref()))]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// A name that is much like it, if one is.
        nearest: Option<String>,
        /// All there are.
        all: String,
    },
    /// It is down.
    #[error("the network interface {interface} is down: `ip link set {interface} up`")]
    Down {
        /// Which.
        interface: String,
    },
    /// It carries no Ethernet.
    #[error(
        "the network interface {interface} is not one of Ethernet, which is needed here; use the backend udp"
    )]
    NotEthernet {
        /// Which.
        interface: String,
    },
    /// The address is not the interface's.
    #[error(
        "the network interface {interface} has {}; it has {}",
        if .wanted.is_unspecified() { "no address of the family asked for".to_owned() } else { format!("not the address {wanted}") },
        if .all.is_empty() { "none" } else { .all }
    )]
    Address {
        /// Which interface.
        interface: String,
        /// The address asked for.
        wanted: IpAddr,
        /// Those it has.
        all: String,
    },
    /// The kernel does not answer.
    #[error("cannot ask for network interfaces: {why}")]
    System {
        /// What it said.
        why: String,
    },
}

impl Interface {
    /// The interface of this name, in the network namespace of the socket.
    ///
    /// # Errors
    /// There is none, it is down, or it is not one of Ethernet.
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
            let nearest = nearest(name, all.iter().map(String::as_str)).map(str::to_owned);
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

    /// The address peers reach us at, if `wanted` is unspecified the first there is.
    ///
    /// # Errors
    /// It does not have this one, or none of its family.
    pub fn address(&self, wanted: IpAddr) -> Result<IpAddr, InterfaceError> {
        let of_family =
            || self.addresses.iter().copied().filter(|address| address.is_ipv4() == wanted.is_ipv4());
        let found = match wanted.is_unspecified() {
            true => of_family().find(|address| !is_of_one_link(*address)),
            false => of_family().find(|address| *address == wanted),
        };
        found.ok_or_else(|| {
            let all: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
            InterfaceError::Address { interface: self.name.clone(), wanted, all: all.join(", ") }
        })
    }
}

/// Addresses that mean something on one link only are none peers elsewhere can send to.
fn is_of_one_link(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

fn name_of(link: &LinkMessage) -> Option<String> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name.clone()),
        _ => None,
    })
}

/// An address of the interface of this index.
fn address_at(message: RouteNetlinkMessage, index: u32) -> Option<IpAddr> {
    let RouteNetlinkMessage::NewAddress(message) = message else { return None };
    if message.header.index != index {
        return None;
    }
    // Of a link between two ends the "address" is the other one.
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
