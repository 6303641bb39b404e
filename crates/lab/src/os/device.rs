//! Network devices: pairs of virtual Ethernet ports, their addresses, labels and counters.

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

/// The loopback device's index, the same in every namespace.
pub(crate) const LOOPBACK: u32 = 1;
/// Port `p` has this index plus `p`: far above the devices some kernels put into every new namespace.
const FIRST_PORT: u32 = 1_000;

/// Index of the device of a port.
pub(crate) fn index_of_port(port: u16) -> u32 {
    FIRST_PORT + u32::from(port)
}

/// One end of a pair that is to be made.
pub(crate) struct NewEnd<'a> {
    pub(crate) port: u16,
    pub(crate) device: &'a str,
    pub(crate) mac: Mac,
}

/// A device there is.
pub(crate) struct Device {
    pub(crate) index: u32,
    pub(crate) alias: Option<String>,
    /// Packets given to it go somewhere.
    pub(crate) ready: bool,
    pub(crate) counters: Counters,
}

/// What a device has sent and received since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent, Ethernet headers included.
    pub sent_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Bytes received, Ethernet headers included.
    pub received_bytes: u64,
}

/// Makes a pair of ports, `near` in the socket's namespace and `far` in the namespace `far_namespace`.
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
            // A packet of more than one segment is cut before it enters the device.
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
    netlink.change(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
}

/// Writes a label on a device.
pub(crate) fn set_alias(netlink: &mut Netlink, index: u32, alias: &str) -> Result<(), SystemError> {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.attributes.push(LinkAttribute::IfAlias(alias.to_owned()));
    netlink.change(RouteNetlinkMessage::SetLink(message), 0)
}

/// Sets a device up.
pub(crate) fn set_up(netlink: &mut Netlink, index: u32) -> Result<(), SystemError> {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    netlink.change(RouteNetlinkMessage::SetLink(message), 0)
}

/// Gives a device an address of its own, without a network around it.
pub(crate) fn add_address(netlink: &mut Netlink, index: u32, address: Ipv4Addr) -> Result<(), SystemError> {
    netlink.change(RouteNetlinkMessage::NewAddress(own(index, address, 32)), NLM_F_CREATE | NLM_F_EXCL)
}

/// Gives a device an address in the network of all hosts, for programs that look for one there. Routes stay as they are.
pub(crate) fn add_shown_address(
    netlink: &mut Netlink,
    index: u32,
    address: Ipv4Addr,
) -> Result<(), SystemError> {
    let mut message = own(index, address, HOSTS_PREFIX);
    message.attributes.push(AddressAttribute::Flags(AddressFlags::Noprefixroute));
    netlink.change(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
}

fn own(index: u32, address: Ipv4Addr, prefix: u8) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.prefix_len = prefix;
    message.header.index = index;
    message.attributes.push(AddressAttribute::Local(address.into()));
    message.attributes.push(AddressAttribute::Address(address.into()));
    message
}

/// Whether a device is a port of ours.
pub(crate) fn is_port(device: &Device) -> bool {
    device.index >= FIRST_PORT
}

/// All devices of a namespace.
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
