//! Attachment of programs to devices.

use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcBpfFlags, TcFilterBpfOption, TcHandle, TcMessage, TcOption};
use pathweave_linux::netlink::{Netlink, SystemError};

/// Direction of the packets that a program processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Packets that arrive.
    Ingress,
    /// Packets that leave, before they enter the queue.
    Egress,
}

/// Prepares a device for programs.
pub(crate) fn add_clsact(netlink: &mut Netlink, device: u32) -> Result<(), SystemError> {
    let mut message = TcMessage::with_index(device as i32);
    message.header.parent = TcHandle::CLSACT;
    message.header.handle = TcHandle { major: u16::MAX, minor: 0 };
    message.attributes = vec![TcAttribute::Kind("clsact".to_owned())];
    netlink.request(RouteNetlinkMessage::NewQueueDiscipline(message), NLM_F_CREATE | NLM_F_REPLACE)
}

/// Attaches a program in place of a previous one. The kernel keeps it as long as the device.
pub(crate) fn attach(
    netlink: &mut Netlink,
    device: u32,
    direction: Direction,
    program: BorrowedFd<'_>,
) -> Result<(), SystemError> {
    const PRIORITY: u32 = 1;
    /// ETH_P_ALL in network byte order.
    const ALL_PROTOCOLS: u16 = 0x0003u16.to_be();
    let minor = match direction {
        Direction::Ingress => TcHandle::MIN_INGRESS,
        Direction::Egress => TcHandle::MIN_EGRESS,
    };
    let mut message = TcMessage::with_index(device as i32);
    message.header.parent = TcHandle { major: u16::MAX, minor };
    message.header.handle = TcHandle { major: 0, minor: 1 };
    message.header.info = PRIORITY << 16 | u32::from(ALL_PROTOCOLS);
    let options = [
        TcFilterBpfOption::ProgFd(program.as_raw_fd().cast_unsigned()),
        TcFilterBpfOption::ProgName("pathweave-lab".to_owned()),
        TcFilterBpfOption::Flags(TcBpfFlags::DirectAction),
    ];
    message.attributes =
        vec![TcAttribute::Kind("bpf".to_owned()), TcAttribute::Options(options.map(TcOption::Bpf).to_vec())];
    netlink.request(RouteNetlinkMessage::NewTrafficFilter(message), NLM_F_CREATE | NLM_F_REPLACE)
}
