//! Next hops of packets to peers, from the kernel's routes and neighbour tables.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteType, RouteVia};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use pathweave_linux::netlink::Netlink;

use crate::ether::frame::Mac;

/// Time for which an answer of the kernel is used. Routes change, and neighbours get other adapters.
const KNOWN_FOR: Duration = Duration::from_secs(1);
/// Time after which the kernel is asked again about an unresolved peer.
const UNKNOWN_FOR: Duration = Duration::from_millis(5);
/// Largest number of cached peers.
const MOST_KNOWN: usize = 1 << 16;

/// Delivery of packets to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Through our interface, to this Ethernet address.
    Direct(Mac),
    /// Through the kernel, over another interface or because the neighbour is not resolved yet. A packet through the
    /// kernel triggers its resolution.
    Kernel,
}

/// Cached delivery, with its expiry.
#[derive(Clone, Copy, Debug)]
struct Known {
    way: Delivery,
    until: Instant,
}

/// Cache of the deliveries to peers over one interface.
#[derive(Debug)]
pub struct Neighbours {
    netlink: Netlink,
    interface: u32,
    known: HashMap<IpAddr, Known>,
}

/// State of a neighbour in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Neighbour {
    Confirmed(Mac),
    /// Address that was not confirmed lately. The kernel confirms it when it has a packet for the neighbour.
    Stale(Mac),
    Unknown,
}

impl Neighbours {
    /// Creates the cache for the interface of this index, in the network namespace of `netlink`.
    pub fn new(netlink: Netlink, interface: u32) -> Self {
        Neighbours { netlink, interface, known: HashMap::new() }
    }

    /// Returns the delivery of packets to a peer.
    #[inline]
    pub fn delivery_to(&mut self, peer: IpAddr, now: Instant) -> Delivery {
        match self.known.get(&peer) {
            Some(known) if known.until > now => known.way,
            _ => self.query_kernel(peer, now),
        }
    }

    #[cold]
    fn query_kernel(&mut self, peer: IpAddr, now: Instant) -> Delivery {
        let neighbour = self.next_hop(peer).map(|next_hop| self.neighbour(next_hop));
        let (way, this_time, lasts) = match neighbour {
            // The peer is not reached over our interface.
            None => (Delivery::Kernel, Delivery::Kernel, KNOWN_FOR),
            Some(Neighbour::Confirmed(mac)) => (Delivery::Direct(mac), Delivery::Direct(mac), KNOWN_FOR),
            Some(Neighbour::Stale(mac)) => (Delivery::Direct(mac), Delivery::Kernel, KNOWN_FOR),
            Some(Neighbour::Unknown) => (Delivery::Kernel, Delivery::Kernel, UNKNOWN_FOR),
        };
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert(peer, Known { way, until: now + lasts });
        this_time
    }

    /// Returns the next hop of packets to a peer on our interface, or `None` if they take another interface or there
    /// is no route.
    fn next_hop(&mut self, peer: IpAddr) -> Option<IpAddr> {
        let mut message = RouteMessage::default();
        let (family, bits) = family(peer);
        message.header.address_family = family;
        message.header.destination_prefix_length = bits;
        let address = match peer {
            IpAddr::V4(address) => RouteAddress::Inet(address),
            IpAddr::V6(address) => RouteAddress::Inet6(address),
        };
        message.attributes.push(RouteAttribute::Destination(address));
        let answer = self.netlink.get(RouteNetlinkMessage::GetRoute(message)).ok().flatten()?;
        let RouteNetlinkMessage::NewRoute(route) = answer else { return None };
        if route.header.kind != RouteType::Unicast {
            return None;
        }
        let mut next = peer;
        let mut by = None;
        for attribute in route.attributes {
            match attribute {
                RouteAttribute::Oif(index) => by = Some(index),
                RouteAttribute::Gateway(RouteAddress::Inet(gateway))
                | RouteAttribute::Via(RouteVia::Inet(gateway)) => next = gateway.into(),
                RouteAttribute::Gateway(RouteAddress::Inet6(gateway))
                | RouteAttribute::Via(RouteVia::Inet6(gateway)) => next = gateway.into(),
                _ => {}
            }
        }
        (by == Some(self.interface)).then_some(next)
    }

    fn neighbour(&mut self, address: IpAddr) -> Neighbour {
        let mut message = NeighbourMessage::default();
        message.header.family = family(address).0;
        message.header.ifindex = self.interface;
        let destination = match address {
            IpAddr::V4(address) => NeighbourAddress::Inet(address),
            IpAddr::V6(address) => NeighbourAddress::Inet6(address),
        };
        message.attributes.push(NeighbourAttribute::Destination(destination));
        let answer = self.netlink.get(RouteNetlinkMessage::GetNeighbour(message)).ok().flatten();
        let Some(RouteNetlinkMessage::NewNeighbour(found)) = answer else { return Neighbour::Unknown };
        let mac = found.attributes.iter().find_map(|attribute| match attribute {
            NeighbourAttribute::LinkLayerAddress(address) => Mac::try_from(&address[..]).ok(),
            _ => None,
        });
        match (found.header.state, mac) {
            (NeighbourState::Reachable | NeighbourState::Permanent | NeighbourState::Noarp, Some(mac)) => {
                Neighbour::Confirmed(mac)
            }
            (NeighbourState::Stale | NeighbourState::Delay | NeighbourState::Probe, Some(mac)) => {
                Neighbour::Stale(mac)
            }
            _ => Neighbour::Unknown,
        }
    }
}

fn family(address: IpAddr) -> (AddressFamily, u8) {
    match address {
        IpAddr::V4(_) => (AddressFamily::Inet, 32),
        IpAddr::V6(_) => (AddressFamily::Inet6, 128),
    }
}
