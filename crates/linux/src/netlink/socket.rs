//! The rtnetlink socket.

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use crate::netlink::error::SystemError;

/// A netlink socket. It belongs to the network namespace in which it was opened, also if another thread uses it.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

/// Length of a netlink message's header.
const HEADER_BYTES: usize = 16;

impl Netlink {
    /// Opens a socket in the calling thread's network namespace.
    ///
    /// # Errors
    /// Fails if the kernel has no netlink or the process has no free descriptor.
    pub fn open() -> io::Result<Netlink> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // Ask for the error message beside the error number, but without a copy of the request.
        socket.set_ext_ack(true)?;
        socket.set_cap_ack(true)?;
        Ok(Netlink { socket, sequence: 0 })
    }

    /// Requests a change and waits until the kernel has made it. `flags` are those beyond `NLM_F_REQUEST` and
    /// `NLM_F_ACK`.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn request(&mut self, message: RouteNetlinkMessage, flags: u16) -> Result<(), SystemError> {
        let sequence = self.send(message, flags | NLM_F_ACK)?;
        loop {
            for message in self.receive()? {
                if message.header.sequence_number != sequence {
                    continue;
                }
                if let NetlinkPayload::Error(error) = message.payload {
                    return match error.code {
                        None => Ok(()),
                        Some(_) => Err(kernel_error(&error.to_io(), &error.header)),
                    };
                }
            }
        }
    }

    /// Requests one object. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn get(&mut self, message: RouteNetlinkMessage) -> Result<Option<RouteNetlinkMessage>, SystemError> {
        let sequence = self.send(message, 0)?;
        loop {
            for message in self.receive()? {
                if message.header.sequence_number != sequence {
                    continue;
                }
                match message.payload {
                    NetlinkPayload::InnerMessage(inner) => return Ok(Some(inner)),
                    NetlinkPayload::Error(error) => {
                        let why = error.to_io();
                        return match why.kind() {
                            io::ErrorKind::NotFound => Ok(None),
                            _ => Err(kernel_error(&why, &error.header)),
                        };
                    }
                    _ => return Ok(None),
                }
            }
        }
    }

    /// Requests all objects of a kind.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn dump(&mut self, message: RouteNetlinkMessage) -> Result<Vec<RouteNetlinkMessage>, SystemError> {
        let sequence = self.send(message, NLM_F_DUMP)?;
        let mut found = Vec::new();
        loop {
            for message in self.receive()? {
                if message.header.sequence_number != sequence {
                    continue;
                }
                match message.payload {
                    NetlinkPayload::Done(_) => return Ok(found),
                    NetlinkPayload::Error(error) => return Err(kernel_error(&error.to_io(), &error.header)),
                    NetlinkPayload::InnerMessage(inner) => found.push(inner),
                    _ => {}
                }
            }
        }
    }

    fn send(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<u32> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = flags | NLM_F_REQUEST;
        header.sequence_number = self.sequence;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::from(message));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        Ok(self.sequence)
    }

    fn receive(&mut self) -> io::Result<Vec<NetlinkMessage<RouteNetlinkMessage>>> {
        let (bytes, _) = self.socket.recv_from_full()?;
        let mut rest = &bytes[..];
        let mut found = Vec::new();
        while rest.len() >= HEADER_BYTES {
            let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                .map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why.to_string()))?;
            let length = (message.header.length as usize).next_multiple_of(4).max(HEADER_BYTES);
            found.push(message);
            rest = rest.get(length..).unwrap_or_default();
        }
        Ok(found)
    }
}

/// Combines an error number with the text of the extended acknowledgement: attributes after the header of the
/// request.
fn kernel_error(error: &io::Error, payload: &[u8]) -> SystemError {
    const MESSAGE: u16 = 1;
    let mut words = None;
    let mut rest = payload.get(HEADER_BYTES..).unwrap_or_default();
    while let [l0, l1, k0, k1, ..] = *rest {
        let (length, kind) = (usize::from(u16::from_ne_bytes([l0, l1])), u16::from_ne_bytes([k0, k1]));
        let Some(value) = rest.get(4..length) else { break };
        if kind == MESSAGE {
            words = Some(String::from_utf8_lossy(value).trim_end_matches('\0').to_owned());
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    let number = error.raw_os_error().unwrap_or_default();
    SystemError { error: io::Error::from_raw_os_error(number), message: words }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_found_behind_the_header() {
        let mut payload = vec![0; HEADER_BYTES];
        // An attribute of another kind (2, five bytes, padded), then the text.
        payload.extend([5, 0, 2, 0, 9, 0, 0, 0]);
        payload.extend([8, 0, 1, 0, b'b', b'a', b'd', 0]);
        let refused = kernel_error(&io::Error::from_raw_os_error(22), &payload);
        assert_eq!(refused.to_string(), "Invalid argument (os error 22) (bad)");
    }

    #[test]
    fn broken_attributes_are_passed_over() {
        for tail in [&[1u8, 0, 1, 0][..], &[200, 0, 1, 0, 1], &[4], &[0, 0, 0, 0, 0, 0]] {
            let payload: Vec<u8> = [&[0; HEADER_BYTES][..], tail].concat();
            assert_eq!(kernel_error(&io::Error::from_raw_os_error(1), &payload).message, None, "{tail:?}");
        }
    }

    #[test]
    fn a_namespace_lists_its_loopback() {
        let mut netlink = Netlink::open().unwrap();
        let all = netlink.dump(RouteNetlinkMessage::GetLink(Default::default())).unwrap();
        assert!(!all.is_empty());
    }
}
