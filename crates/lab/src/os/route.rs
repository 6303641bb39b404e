//! Neighbour entries and routes.

use std::net::Ipv4Addr;

use crate::plan::Mac;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteNextHop, RouteNextHopFlags, RouteProtocol,
    RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use pathweave_linux::netlink::{Netlink, SystemError};

/// Equal-cost next hop.
pub(crate) struct NextHop {
    /// Index of the device.
    pub(crate) device: u32,
    /// Address of the node at the other end.
    pub(crate) gateway: Ipv4Addr,
}

/// Adds a permanent neighbour entry for the other end of a device, so that no address resolution is needed.
pub(crate) fn set_neighbour(
    netlink: &mut Netlink,
    device: u32,
    address: Ipv4Addr,
    mac: Mac,
) -> Result<(), SystemError> {
    let mut message = NeighbourMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.ifindex = device;
    message.header.state = NeighbourState::Permanent;
    message.attributes.push(NeighbourAttribute::Destination(NeighbourAddress::Inet(address)));
    message.attributes.push(NeighbourAttribute::LinkLayerAddress(mac.to_vec()));
    netlink.request(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_REPLACE)
}

/// Sets the next hops to `to/prefix`, in place of previous ones. `source` is the source address of packets from this
/// node.
pub(crate) fn set_route(
    netlink: &mut Netlink,
    (to, prefix): (Ipv4Addr, u8),
    next_hops: &[NextHop],
    source: Option<Ipv4Addr>,
) -> Result<(), SystemError> {
    let mut message = RouteMessage::default();
    message.header.address_family = AddressFamily::Inet;
    message.header.destination_prefix_length = prefix;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Static;
    message.header.scope = RouteScope::Universe;
    message.header.kind = RouteType::Unicast;
    message.attributes.push(RouteAttribute::Destination(RouteAddress::Inet(to)));
    message.attributes.extend(source.map(|source| RouteAttribute::PrefSource(RouteAddress::Inet(source))));
    let hops = next_hops.iter().map(|hop| {
        let mut next = RouteNextHop::default();
        // Links have no addresses, so the flag tells the kernel that the gateway is on this link.
        next.flags = RouteNextHopFlags::Onlink;
        next.interface_index = hop.device;
        next.attributes.push(RouteAttribute::Gateway(RouteAddress::Inet(hop.gateway)));
        next
    });
    message.attributes.push(RouteAttribute::MultiPath(hops.collect()));
    netlink.request(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE)
}
