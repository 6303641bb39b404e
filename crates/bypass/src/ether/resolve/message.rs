//! Messages of address resolution: ARP (RFC 826) and neighbour discovery (RFC 4861).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

use crate::ether::frame::{ETHERNET, IPV6, Mac, Sum, TYPE_IPV6};

const TYPE_ARP: u16 = 0x0806;
/// Size of an ARP message for Ethernet and IPv4, in bytes.
const ARP: usize = 28;
/// Hardware type Ethernet, protocol IPv4, addresses of 6 and 4 bytes.
const ARP_OF_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];
const ARP_ASKS: u16 = 1;
const ARP_TELLS: u16 = 2;

const PROTOCOL_ICMPV6: u8 = 58;
const NEIGHBOUR_ASKS: u8 = 135;
const NEIGHBOUR_TELLS: u8 = 136;
/// Size of a neighbour message in bytes: type, code, checksum, flags, target.
const NEIGHBOUR: usize = 24;
/// Types of options with an Ethernet address: the sender's, the target's. Their lengths are in units of 8 bytes.
const OPTION_SENDER: u8 = 1;
const OPTION_TARGET: u8 = 2;
/// Flags of a neighbour advertisement: solicited and override, and override only.
const SOLICITED_OVERRIDE: u8 = 0x60;
const OVERRIDE: u8 = 0x20;
/// Hop limit of a packet that has not passed a router.
const HOPS_OF_LINK: u8 = 255;

/// Size of the shortest frame in bytes, without its check sequence.
const SHORTEST_FRAME: usize = 60;
const BROADCAST: Mac = [0xff; 6];
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// Request for the Ethernet address of an IP address.
    Request,
    /// Answer or announcement with an Ethernet address.
    Reply,
}

/// Message of address resolution. Both its IP addresses are of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Kind of the message.
    pub kind: MessageKind,
    /// Address of the sender. Unspecified if it has none yet.
    pub from: IpAddr,
    /// Ethernet address: that of the sender of a request, or the announced one.
    pub mac: Mac,
    /// IP address in question.
    pub target: IpAddr,
}

/// Reason why a message is invalid.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum MessageFlaw {
    /// The message ends too early.
    #[error("truncated")]
    Truncated,
    /// ARP between other kinds of addresses than Ethernet and IPv4, or neither a request nor an answer.
    #[error("ARP of another kind")]
    Kind,
    /// The checksum is wrong.
    #[error("of a wrong checksum")]
    Checksum,
    /// The message has passed a router, or has content that such a message must not have.
    #[error("not of this link")]
    NotOfLink,
    /// An address in the message is a group address or unspecified.
    #[error("of an unspecified address")]
    Address,
}

impl Message {
    /// Parses a frame. Returns `None` if it is something else than a message of address resolution.
    ///
    /// # Errors
    /// The flaw of a message of address resolution.
    pub fn parse(frame: &[u8]) -> Result<Option<Message>, MessageFlaw> {
        let Some((header, body)) = frame.split_first_chunk::<ETHERNET>() else { return Ok(None) };
        let source: Mac = [header[6], header[7], header[8], header[9], header[10], header[11]];
        match u16::from_be_bytes([header[12], header[13]]) {
            TYPE_ARP => parse_arp(body).map(Some),
            TYPE_IPV6 => parse_neighbour(body, source),
            _ => Ok(None),
        }
    }

    /// Returns the Ethernet and IP address of the group to which a request about `about` is sent. The owner of the
    /// address belongs to it.
    pub fn group_of(about: IpAddr) -> (Mac, IpAddr) {
        match about {
            IpAddr::V4(_) => (BROADCAST, about),
            IpAddr::V6(address) => {
                let [.., a, b, c] = address.octets();
                let group =
                    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), u16::from_be_bytes([b, c]));
                (multicast(group), group.into())
            }
        }
    }

    /// Returns the frame with the answer of the host that has the requested address and the Ethernet address `mac`.
    pub fn answer(&self, mac: Mac) -> Option<Vec<u8>> {
        let answer = Message { kind: MessageKind::Reply, from: self.target, mac, target: self.target };
        match self.from {
            IpAddr::V6(from) if from.is_unspecified() => answer.emit(multicast(ALL_NODES), ALL_NODES.into()),
            from => answer.emit(self.mac, from),
        }
    }

    /// Returns the frame that announces to all hosts of a link, without a request, that `address` is now at `mac`.
    pub fn announce(address: IpAddr, mac: Mac) -> Option<Vec<u8>> {
        let message = |kind| Message { kind, from: address, mac, target: address };
        match address {
            // A request about one's own address (RFC 5227), which needs no answer.
            IpAddr::V4(_) => message(MessageKind::Request).emit(BROADCAST, address),
            IpAddr::V6(_) => message(MessageKind::Reply).emit(multicast(ALL_NODES), ALL_NODES.into()),
        }
    }

    /// Returns the message as a frame, or `None` if its addresses are of different families.
    pub fn emit(&self, to_mac: Mac, to: IpAddr) -> Option<Vec<u8>> {
        let mut frame = Vec::with_capacity(ETHERNET + IPV6 + NEIGHBOUR + 8);
        frame.extend(to_mac);
        frame.extend(self.mac);
        match (self.from, self.target, to) {
            (IpAddr::V4(from), IpAddr::V4(about), IpAddr::V4(to)) => {
                frame.extend(TYPE_ARP.to_be_bytes());
                frame.extend(self.arp(from, (to_mac, to), about));
            }
            (IpAddr::V6(from), IpAddr::V6(about), IpAddr::V6(to)) => {
                frame.extend(TYPE_IPV6.to_be_bytes());
                frame.extend(self.neighbour(from, to, about));
            }
            _ => return None,
        }
        frame.resize(frame.len().max(SHORTEST_FRAME), 0);
        Some(frame)
    }

    fn arp(&self, from: Ipv4Addr, (to_mac, to): (Mac, Ipv4Addr), about: Ipv4Addr) -> Vec<u8> {
        let (operation, from, to_mac, to) = match self.kind {
            MessageKind::Request => (ARP_ASKS, from, [0; 6], about),
            MessageKind::Reply => (ARP_TELLS, about, to_mac, to),
        };
        let parts: [&[u8]; 6] =
            [&ARP_OF_IPV4, &operation.to_be_bytes(), &self.mac, &from.octets(), &to_mac, &to.octets()];
        parts.concat()
    }

    fn neighbour(&self, from: Ipv6Addr, to: Ipv6Addr, about: Ipv6Addr) -> Vec<u8> {
        let (kind, flags, option) = match self.kind {
            MessageKind::Request => (NEIGHBOUR_ASKS, 0, OPTION_SENDER),
            MessageKind::Reply if to.is_multicast() => (NEIGHBOUR_TELLS, OVERRIDE, OPTION_TARGET),
            MessageKind::Reply => (NEIGHBOUR_TELLS, SOLICITED_OVERRIDE, OPTION_TARGET),
        };
        let mut message = vec![kind, 0, 0, 0, flags, 0, 0, 0];
        message.extend(about.octets());
        // A sender without an address omits the option.
        if self.kind == MessageKind::Reply || !from.is_unspecified() {
            message.extend([option, 1]);
            message.extend(self.mac);
        }
        let bytes = message.len() as u16;
        let sum =
            Sum::of_addresses(from.into(), to.into(), PROTOCOL_ICMPV6).with_length(bytes).with(&message);
        message[2..4].copy_from_slice(&sum.complement());
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend(bytes.to_be_bytes());
        packet.extend([PROTOCOL_ICMPV6, HOPS_OF_LINK]);
        packet.extend(from.octets());
        packet.extend(to.octets());
        packet.extend(message);
        packet
    }
}

fn parse_arp(bytes: &[u8]) -> Result<Message, MessageFlaw> {
    let arp: &[u8; ARP] = bytes.first_chunk().ok_or(MessageFlaw::Truncated)?;
    if !arp.starts_with(&ARP_OF_IPV4) {
        return Err(MessageFlaw::Kind);
    }
    let address = |at: usize| Ipv4Addr::new(arp[at], arp[at + 1], arp[at + 2], arp[at + 3]);
    let (mac, from, to) = ([arp[8], arp[9], arp[10], arp[11], arp[12], arp[13]], address(14), address(24));
    let (kind, about) = match u16::from_be_bytes([arp[6], arp[7]]) {
        ARP_ASKS => (MessageKind::Request, to),
        ARP_TELLS => (MessageKind::Reply, from),
        _ => return Err(MessageFlaw::Kind),
    };
    if !is_unicast(mac) || from.is_multicast() || from.is_broadcast() || !is_host(about.into()) {
        return Err(MessageFlaw::Address);
    }
    Ok(Message { kind, from: from.into(), mac, target: about.into() })
}

fn parse_neighbour(bytes: &[u8], source: Mac) -> Result<Option<Message>, MessageFlaw> {
    let Some((header, rest)) = bytes.split_first_chunk::<IPV6>() else { return Ok(None) };
    if header[0] >> 4 != 6 || header[6] != PROTOCOL_ICMPV6 {
        return Ok(None);
    }
    let length = u16::from_be_bytes([header[4], header[5]]);
    let whole = rest.get(..usize::from(length)).ok_or(MessageFlaw::Truncated)?;
    let kind = match whole.first() {
        Some(&NEIGHBOUR_ASKS) => MessageKind::Request,
        Some(&NEIGHBOUR_TELLS) => MessageKind::Reply,
        _ => return Ok(None),
    };
    let (fixed, options) = whole.split_first_chunk::<NEIGHBOUR>().ok_or(MessageFlaw::Truncated)?;
    let address = |bytes: &[u8]| Ipv6Addr::from(<[u8; 16]>::try_from(bytes).unwrap_or_default());
    let (from, to, about) = (address(&header[8..24]), address(&header[24..40]), address(&fixed[8..24]));
    let sum = Sum::of_addresses(from.into(), to.into(), PROTOCOL_ICMPV6);
    if !sum.with_length(length).with(whole).is_valid() {
        return Err(MessageFlaw::Checksum);
    }
    if header[7] != HOPS_OF_LINK || fixed[1] != 0 {
        return Err(MessageFlaw::NotOfLink);
    }
    let (sender, target) = read_options(options)?;
    let told = if kind == MessageKind::Request { sender } else { target };
    // Without the option, the address is that of the frame. Answers to a single host may omit the option.
    let mac = told.unwrap_or(source);
    let is_nobody = kind == MessageKind::Reply && from.is_unspecified();
    if !is_unicast(mac) || from.is_multicast() || is_nobody || !is_host(about.into()) {
        return Err(MessageFlaw::Address);
    }
    Ok(Some(Message { kind, from: from.into(), mac, target: about.into() }))
}

/// Returns the Ethernet addresses in the options: the sender's, the target's.
fn read_options(mut options: &[u8]) -> Result<(Option<Mac>, Option<Mac>), MessageFlaw> {
    let (mut sender, mut target) = (None, None);
    while let [kind, units, ..] = *options {
        // An option of length 0 would loop forever.
        let bytes = usize::from(units) * 8;
        let option =
            options.get(..bytes).filter(|option| !option.is_empty()).ok_or(MessageFlaw::Truncated)?;
        let mac = option.get(2..8).and_then(|mac| Mac::try_from(mac).ok());
        match kind {
            OPTION_SENDER => sender = mac,
            OPTION_TARGET => target = mac,
            _ => {}
        }
        options = &options[bytes..];
    }
    if options.is_empty() { Ok((sender, target)) } else { Err(MessageFlaw::Truncated) }
}

fn multicast(group: Ipv6Addr) -> Mac {
    let [.., a, b, c, d] = group.octets();
    [0x33, 0x33, a, b, c, d]
}

/// Returns true if the address is neither a group address nor zero.
fn is_unicast(mac: Mac) -> bool {
    mac[0] & 1 == 0 && mac != [0; 6]
}

fn is_host(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !address.is_unspecified() && !address.is_multicast() && !is_broadcast
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NEAR: Mac = [2, 0, 0, 0, 0, 1];
    const FAR: Mac = [2, 0, 0, 0, 0, 2];

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn asks(from: &str, about: &str) -> Message {
        Message { kind: MessageKind::Request, from: ip(from), mac: NEAR, target: ip(about) }
    }

    fn asked(message: &Message) -> Vec<u8> {
        let (mac, to) = Message::group_of(message.target);
        message.emit(mac, to).unwrap()
    }

    #[test]
    fn arp_is_as_rfc_826_has_it() {
        let mut expected = [
            &[0xff; 6][..],
            &NEAR,
            &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1],
            &NEAR,
            &[10, 0, 0, 1],
            &[0; 6],
            &[10, 0, 0, 2],
        ]
        .concat();
        expected.resize(60, 0);
        let question = asks("10.0.0.1", "10.0.0.2");
        assert_eq!(asked(&question), expected);
        assert_eq!(Message::parse(&expected), Ok(Some(question)));
        let mut expected =
            [&NEAR[..], &FAR, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2], &FAR, &[10, 0, 0, 2], &NEAR, &[10, 0, 0, 1]]
                .concat();
        expected.resize(60, 0);
        assert_eq!(question.answer(FAR).unwrap(), expected);
        let answer =
            Message { kind: MessageKind::Reply, from: ip("10.0.0.2"), mac: FAR, target: ip("10.0.0.2") };
        assert_eq!(Message::parse(&expected), Ok(Some(answer)));
    }

    #[test]
    fn neighbour_discovery_is_as_rfc_4861_has_it() {
        let question = asks("fd00::1", "fd00::12:3456");
        let frame = asked(&question);
        // The group is formed from the last three bytes. The checksum was computed by hand from RFC 4443.
        let expected = [
            &[0x33, 0x33, 0xff, 0x12, 0x34, 0x56][..],
            &NEAR,
            &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 58, 255],
            &[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            &[0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0x12, 0x34, 0x56],
            &[135, 0, 0x14, 0xcb, 0, 0, 0, 0],
            &[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 0x56],
            &[1, 1],
            &NEAR,
        ]
        .concat();
        assert_eq!(frame, expected);
        assert_eq!(Message::parse(&frame), Ok(Some(question)));
        let answer = question.answer(FAR).unwrap();
        assert_eq!((&answer[..6], &answer[54..55], answer[58]), (&NEAR[..], &[136][..], 0x60));
        let told =
            Message { kind: MessageKind::Reply, from: question.target, mac: FAR, target: question.target };
        assert_eq!(Message::parse(&answer), Ok(Some(told)));
        // A host that probes whether an address is free has none yet, so the answer goes to all nodes.
        let probe = asks("::", "fd00::2");
        assert_eq!(asked(&probe).len(), ETHERNET + IPV6 + NEIGHBOUR);
        assert_eq!(Message::parse(&asked(&probe)), Ok(Some(probe)));
        let answer = probe.answer(FAR).unwrap();
        assert_eq!((&answer[..6], answer[58]), (&[0x33, 0x33, 0, 0, 0, 1][..], 0x20));
    }

    #[test]
    fn each_flaw_is_told() {
        let flaw = |message: &Message, change: &dyn Fn(&mut Vec<u8>)| {
            let mut frame = asked(message);
            change(&mut frame);
            Message::parse(&frame)
        };
        let arp = asks("10.0.0.1", "10.0.0.2");
        assert_eq!(flaw(&arp, &|frame| frame.truncate(41)), Err(MessageFlaw::Truncated));
        assert_eq!(flaw(&arp, &|frame| frame[15] = 6), Err(MessageFlaw::Kind));
        assert_eq!(flaw(&arp, &|frame| frame[21] = 3), Err(MessageFlaw::Kind));
        assert_eq!(
            flaw(&arp, &|frame| frame[22] = 1),
            Err(MessageFlaw::Address),
            "a group's Ethernet address"
        );
        assert_eq!(flaw(&arp, &|frame| frame[28] = 224), Err(MessageFlaw::Address));
        assert_eq!(flaw(&arp, &|frame| frame[38..42].fill(255)), Err(MessageFlaw::Address));
        assert_eq!(flaw(&arp, &|frame| frame[13] = 0), Ok(None), "IPv4");
        let nd = asks("fd00::1", "fd00::2");
        assert_eq!(flaw(&nd, &|frame| frame.truncate(80)), Err(MessageFlaw::Truncated));
        assert_eq!(flaw(&nd, &|frame| frame[19] = 23), Err(MessageFlaw::Truncated));
        assert_eq!(flaw(&nd, &|frame| frame[21] = 64), Err(MessageFlaw::NotOfLink));
        assert_eq!(flaw(&nd, &|frame| frame[77] ^= 1), Err(MessageFlaw::Checksum));
        assert_eq!(flaw(&nd, &|frame| frame[20] = 17), Ok(None), "UDP");
        assert_eq!(flaw(&nd, &|frame| frame[54] = 128), Ok(None), "an echo request");
        // Changes the length of the option, and adjusts the checksum by the difference.
        let with_units = |units: u8| {
            flaw(&nd, &|frame| {
                let mut sum = u16::from_be_bytes([frame[56], frame[57]]);
                sum = sum.wrapping_add(1).wrapping_sub(units.into());
                frame[56..58].copy_from_slice(&sum.to_be_bytes());
                frame[79] = units;
            })
        };
        assert_eq!(with_units(1), Ok(Some(nd)));
        assert_eq!(with_units(0), Err(MessageFlaw::Truncated));
        assert_eq!(with_units(2), Err(MessageFlaw::Truncated));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..120), at in 0usize..86, to: u8) {
            let _ = Message::parse(&bytes);
            for message in [asks("10.0.0.1", "10.0.0.2"), asks("fd00::1", "fd00::2")] {
                let mut frame = asked(&message);
                let at = at % frame.len();
                frame[at] = to;
                if let Ok(Some(changed)) = Message::parse(&frame) {
                    let again = changed.emit([2; 6], message.from).unwrap();
                    prop_assert_eq!(Message::parse(&again), Ok(Some(changed)));
                }
            }
        }
    }
}
