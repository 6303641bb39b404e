//! Network devices: pairs of virtual Ethernet ports, with addresses, labels and counters.

use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::plan::{HOSTS_PREFIX, Mac};
use crate::settings::SuperPackets;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, State,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use pathweave_linux::netlink::{Netlink, SystemError};

/// Index of the loopback device, the same in every namespace.
pub(crate) const LOOPBACK: u32 = 1;
/// Index of port 0. Port `p` has this index plus `p`, far above the devices that some kernels create in every new
/// namespace.
const FIRST_PORT: u32 = 1_000;

/// Returns the index of the device of a port.
pub(crate) fn index_of_port(port: u16) -> u32 {
    FIRST_PORT + u32::from(port)
}

/// End of a pair to create.
pub(crate) struct NewEnd<'a> {
    pub(crate) port: u16,
    pub(crate) device: &'a str,
    pub(crate) mac: Mac,
}

/// Existing device.
pub(crate) struct Device {
    pub(crate) index: u32,
    pub(crate) alias: Option<String>,
    /// True if packets given to the device are transmitted.
    pub(crate) ready: bool,
    pub(crate) counters: Counters,
}

/// Counters of a device since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent, including Ethernet headers.
    pub sent_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Bytes received, including Ethernet headers.
    pub received_bytes: u64,
}

/// Creates a pair of ports: `near` in the socket's namespace and `far` in the namespace `far_namespace`.
pub(crate) fn create_pair(
    netlink: &mut Netlink,
    near: &NewEnd<'_>,
    far: &NewEnd<'_>,
    far_namespace: BorrowedFd<'_>,
    mtu_bytes: u32,
    super_packets: SuperPackets,
) -> Result<(), SystemError> {
    let common = |end: &NewEnd<'_>| {
        let mut message = LinkMessage::default();
        message.header.index = index_of_port(end.port);
        message.attributes.push(LinkAttribute::IfName(end.device.to_owned()));
        message.attributes.push(LinkAttribute::Address(end.mac.to_vec()));
        message.attributes.push(LinkAttribute::Mtu(mtu_bytes));
        if super_packets == SuperPackets::Off {
            // A packet of several segments is split before it enters the device.
            message.attributes.push(LinkAttribute::GsoMaxSegs(1));
        }
        message
    };
    let mut peer = common(far);
    peer.attributes.push(LinkAttribute::NetNsFd(far_namespace.as_raw_fd()));
    let mut message = common(near);
    message.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
    ]));
    netlink.request(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
}

/// Writes a label on a device.
pub(crate) fn set_alias(netlink: &mut Netlink, index: u32, alias: &str) -> Result<(), SystemError> {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.attributes.push(LinkAttribute::IfAlias(alias.to_owned()));
    netlink.request(RouteNetlinkMessage::SetLink(message), 0)
}

/// Sets a device up.
pub(crate) fn set_up(netlink: &mut Netlink, index: u32) -> Result<(), SystemError> {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    netlink.request(RouteNetlinkMessage::SetLink(message), 0)
}

/// Adds an address without a subnet to a device.
pub(crate) fn add_address(netlink: &mut Netlink, index: u32, address: Ipv4Addr) -> Result<(), SystemError> {
    netlink.request(
        RouteNetlinkMessage::NewAddress(address_message(index, address, 32)),
        NLM_F_CREATE | NLM_F_EXCL,
    )
}

/// Adds an address in the subnet of all hosts to a device, for programs that look for one there. Routes stay
/// unchanged.
pub(crate) fn add_subnet_address(
    netlink: &mut Netlink,
    index: u32,
    address: Ipv4Addr,
) -> Result<(), SystemError> {
    let mut message = address_message(index, address, HOSTS_PREFIX);
    message.attributes.push(AddressAttribute::Flags(AddressFlags::Noprefixroute));
    netlink.request(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
}

fn address_message(index: u32, address: Ipv4Addr, prefix: u8) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.prefix_len = prefix;
    message.header.index = index;
    message.attributes.push(AddressAttribute::Local(address.into()));
    message.attributes.push(AddressAttribute::Address(address.into()));
    message
}

/// Returns true if the device is a port of a lab.
pub(crate) fn is_port(device: &Device) -> bool {
    device.index >= FIRST_PORT
}

/// Returns all devices of a namespace.
pub(crate) fn list(netlink: &mut Netlink) -> Result<Vec<Device>, SystemError> {
    let messages = netlink.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
    let devices = messages.into_iter().filter_map(|message| match message {
        RouteNetlinkMessage::NewLink(link) => Some(link),
        _ => None,
    });
    Ok(devices.map(device).collect())
}

fn device(link: LinkMessage) -> Device {
    let mut device =
        Device { index: link.header.index, alias: None, ready: false, counters: Counters::default() };
    for attribute in link.attributes {
        match attribute {
            LinkAttribute::IfAlias(alias) => device.alias = Some(alias),
            LinkAttribute::OperState(state) => device.ready = state == State::Up,
            LinkAttribute::Stats64(stats) => {
                device.counters = Counters {
                    sent_packets: stats.tx_packets,
                    sent_bytes: stats.tx_bytes,
                    received_packets: stats.rx_packets,
                    received_bytes: stats.rx_bytes,
                }
            }
            _ => {}
        }
    }
    device
}
