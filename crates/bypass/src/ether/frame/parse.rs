//! Parser of received frames. Nothing in them is trusted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

use pathweave_wire::Ecn;

use super::checksum::Sum;
use super::{ETHERNET, IPV4, IPV6, PROTOCOL_FRAGMENT, PROTOCOL_UDP, TYPE_IPV4, TYPE_IPV6, TYPES_VLAN, UDP};

/// UDP datagram in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Address of the sender.
    pub from: SocketAddr,
    /// Address of the receiver.
    pub to: SocketAddr,
    /// ECN codepoint.
    pub ecn: Ecn,
    /// Position of the datagram in the frame.
    pub datagram: Range<usize>,
}

/// Reason why a frame has no valid datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ParseError {
    /// The frame ends before a header or a length field indicates.
    #[error("truncated")]
    Truncated,
    /// The frame has a VLAN tag, which this end does not use.
    #[error("of a virtual network")]
    Vlan,
    /// The frame is not IP, or violates RFC 791 or RFC 8200.
    #[error("not of IP")]
    NotIp,
    /// The packet has IP options or extension headers, which no peer sends.
    #[error("with IP options")]
    Options,
    /// The packet is a fragment. Peers never fragment.
    #[error("a fragment")]
    Fragment,
    /// The packet is not UDP.
    #[error("not of UDP")]
    NotUdp,
    /// The checksum of IP or UDP is wrong.
    #[error("of a wrong checksum")]
    Checksum,
    /// The source or destination port is 0, which is not valid.
    #[error("of port 0")]
    Port,
}

impl ParseError {
    /// All flaws.
    pub const ALL: [ParseError; 8] = [
        ParseError::Truncated,
        ParseError::Vlan,
        ParseError::NotIp,
        ParseError::Options,
        ParseError::Fragment,
        ParseError::NotUdp,
        ParseError::Checksum,
        ParseError::Port,
    ];
}

/// Returns the datagram in a frame.
///
/// # Errors
/// The flaw of the frame.
#[inline]
pub fn parse(frame: &[u8]) -> Result<Parsed, ParseError> {
    let kind =
        u16::from_be_bytes(*frame[..ETHERNET.min(frame.len())].last_chunk().ok_or(ParseError::Truncated)?);
    let ip = frame.get(ETHERNET..).ok_or(ParseError::Truncated)?;
    match kind {
        TYPE_IPV4 => parse_ipv4(ip),
        TYPE_IPV6 => parse_ipv6(ip),
        kind if TYPES_VLAN.contains(&kind) => Err(ParseError::Vlan),
        _ => Err(ParseError::NotIp),
    }
}

fn parse_ipv4(bytes: &[u8]) -> Result<Parsed, ParseError> {
    let header: &[u8; IPV4] = bytes.first_chunk().ok_or(ParseError::Truncated)?;
    match header[0] {
        0x45 => {}
        0x46..=0x4f => return Err(ParseError::Options),
        _ => return Err(ParseError::NotIp),
    }
    if !Sum::default().with(header).is_valid() {
        return Err(ParseError::Checksum);
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    // Bytes beyond the length are padding of a short frame.
    let udp = bytes.get(IPV4..total).ok_or(ParseError::Truncated)?;
    // Either more fragments follow, or this is not the first one.
    if u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0 {
        return Err(ParseError::Fragment);
    }
    if header[9] != PROTOCOL_UDP {
        return Err(ParseError::NotUdp);
    }
    let address = |at: usize| Ipv4Addr::from([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    parse_udp(udp, ETHERNET + IPV4, (address(12).into(), address(16).into()), Ecn::from_bits(header[1]))
}

fn parse_ipv6(bytes: &[u8]) -> Result<Parsed, ParseError> {
    let header: &[u8; IPV6] = bytes.first_chunk().ok_or(ParseError::Truncated)?;
    if header[0] >> 4 != 6 {
        return Err(ParseError::NotIp);
    }
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let udp = bytes[IPV6..].get(..length).ok_or(ParseError::Truncated)?;
    match header[6] {
        PROTOCOL_UDP => {}
        PROTOCOL_FRAGMENT => return Err(ParseError::Fragment),
        // Extension headers: hop-by-hop, routing, destination options.
        0 | 43 | 60 => return Err(ParseError::Options),
        _ => return Err(ParseError::NotUdp),
    }
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().unwrap_or_default();
        Ipv6Addr::from(octets)
    };
    let class = header[0] << 4 | header[1] >> 4;
    parse_udp(udp, ETHERNET + IPV6, (address(8).into(), address(24).into()), Ecn::from_bits(class))
}

/// Parses a UDP header. `bytes` is everything behind the IP header, and starts at `at` in the frame.
#[inline]
fn parse_udp(bytes: &[u8], at: usize, (from, to): (IpAddr, IpAddr), ecn: Ecn) -> Result<Parsed, ParseError> {
    let header: &[u8; UDP] = bytes.first_chunk().ok_or(ParseError::Truncated)?;
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let (from_port, to_port, length) = (word(0), word(2), word(4));
    let all = bytes.get(..usize::from(length)).ok_or(ParseError::Truncated)?;
    if all.len() < UDP {
        return Err(ParseError::Truncated);
    }
    if from_port == 0 || to_port == 0 {
        return Err(ParseError::Port);
    }
    let pseudo = Sum::of_addresses(from, to, PROTOCOL_UDP).with_length(length);
    let written = [header[6], header[7]];
    let sound = match (written, from) {
        // The sender computed no checksum, which only IPv4 permits.
        ([0, 0], from) => from.is_ipv4(),
        // On a virtual link the checksum may be incomplete, as no adapter that completes it was involved. No cable
        // was either, so the kernel accepts such a packet as well.
        (written, _) if u16::from_ne_bytes(written) == pseudo.folded() => true,
        _ => pseudo.with(all).is_valid(),
    };
    if !sound {
        return Err(ParseError::Checksum);
    }
    let datagram = at + UDP..at + all.len();
    Ok(Parsed { from: SocketAddr::new(from, from_port), to: SocketAddr::new(to, to_port), ecn, datagram })
}

#[cfg(test)]
mod tests {
    use super::super::{FrameAddresses, MAX_HEADERS, Template};
    use super::*;
    use proptest::prelude::*;

    fn ends(v6: bool) -> FrameAddresses {
        let (from, to) =
            if v6 { ("[fd00::1]:49152", "[fd00::2]:18515") } else { ("10.0.0.1:49152", "10.0.0.2:18515") };
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        FrameAddresses { from_mac: [2, 0, 0, 0, 0, 1], to_mac: [2, 0, 0, 0, 0, 2], from, to }
    }

    /// Returns a frame as this crate sends it: over IPv4 without a UDP checksum.
    fn sent(v6: bool, datagram: &[u8]) -> Vec<u8> {
        let template = Template::new(ends(v6), Ecn::Capable0).unwrap();
        let mut out = vec![0; MAX_HEADERS + datagram.len()];
        let len = template.write(datagram, &mut out).unwrap();
        out.truncate(len);
        out
    }

    /// Returns a frame as other senders write it, with a UDP checksum in any case.
    fn frame(v6: bool, datagram: &[u8]) -> Vec<u8> {
        let mut frame = sent(v6, datagram);
        if !v6 {
            let udp = &mut frame[ETHERNET + IPV4..];
            let length = udp.len() as u16;
            let (from, to) = (ends(v6).from.ip(), ends(v6).to.ip());
            let sum = Sum::of_addresses(from, to, PROTOCOL_UDP).with_length(length).with(udp).complement();
            udp[6..8].copy_from_slice(&if sum == [0, 0] { [0xff, 0xff] } else { sum });
        }
        frame
    }

    #[test]
    fn a_frame_is_the_one_the_specifications_have() {
        // Computed by hand from RFC 791, 768 and 1071.
        let with_sum = |sum: [u8; 2]| {
            [
                &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0][..],
                &[0x45, 0x02, 0, 32, 0, 0, 0x40, 0, 64, 17, 0x26, 0xc9, 10, 0, 0, 1, 10, 0, 0, 2],
                &[0xc0, 0x00, 0x48, 0x53, 0, 12],
                &sum,
                b"ABCD",
            ]
            .concat()
        };
        assert_eq!(sent(false, b"ABCD"), with_sum([0, 0]), "ours");
        assert_eq!(frame(false, b"ABCD"), with_sum([0x5e, 0xf9]), "another's");
    }

    #[test]
    fn a_frame_of_ipv6_is_the_one_the_specifications_have() {
        // Computed by hand from RFC 8200, 768 and 1071. The words of both addresses, length and protocol are
        // 0xfd00 + 1 + 0xfd00 + 2 + 12 + 17, those of the UDP header 0xc000 + 0x4853 + 12, and those of "ABCD"
        // 0x4142 + 0x4344. The sum is 0x38705, with its carry 0x8708, whose complement is 0x78f7.
        let expected = [
            &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd][..],
            &[0x60, 0x20, 0, 0, 0, 12, 17, 64],
            &[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            &[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2],
            &[0xc0, 0x00, 0x48, 0x53, 0, 12, 0x78, 0xf7],
            b"ABCD",
        ]
        .concat();
        assert_eq!(sent(true, b"ABCD"), expected);
    }

    #[test]
    fn written_values_are_read_back() {
        for (v6, made) in [(false, sent as fn(bool, &[u8]) -> Vec<u8>), (false, frame), (true, sent)] {
            for bytes in [&b"x"[..], b"even", &[0; 1_400], &[0xff; 8_999]] {
                let frame = made(v6, bytes);
                let parsed = parse(&frame).unwrap();
                assert_eq!((parsed.from, parsed.to), (ends(v6).from, ends(v6).to));
                assert_eq!(parsed.ecn, Ecn::Capable0);
                assert_eq!(&frame[parsed.datagram], bytes);
            }
        }
    }

    #[test]
    fn each_flaw_is_told() {
        let flaw = |v6: bool, change: &dyn Fn(&mut Vec<u8>)| {
            let mut frame = frame(v6, b"datagram");
            change(&mut frame);
            parse(&frame).unwrap_err()
        };
        /// Changes the IPv4 header and recomputes its checksum.
        fn ipv4(frame: &mut [u8], change: impl Fn(&mut [u8])) {
            let header = &mut frame[ETHERNET..ETHERNET + IPV4];
            change(header);
            header[10..12].fill(0);
            let sum = Sum::default().with(header).complement();
            header[10..12].copy_from_slice(&sum);
        }
        assert_eq!(flaw(false, &|frame| frame.truncate(13)), ParseError::Truncated);
        assert_eq!(flaw(false, &|frame| frame.truncate(40)), ParseError::Truncated);
        assert_eq!(flaw(false, &|frame| frame.truncate(49)), ParseError::Truncated);
        assert_eq!(flaw(true, &|frame| frame.truncate(60)), ParseError::Truncated);
        assert_eq!(flaw(false, &|frame| ipv4(frame, |ip| ip[3] = 19)), ParseError::Truncated);
        assert_eq!(flaw(false, &|frame| frame[39] = 7), ParseError::Truncated);
        assert_eq!(flaw(false, &|frame| frame[12..14].fill(0x81)), ParseError::NotIp);
        assert_eq!(flaw(false, &|frame| frame[12..14].copy_from_slice(&[0x81, 0])), ParseError::Vlan);
        assert_eq!(flaw(true, &|frame| frame[12..14].copy_from_slice(&[0x88, 0xa8])), ParseError::Vlan);
        assert_eq!(flaw(false, &|frame| frame[ETHERNET] = 0x60), ParseError::NotIp);
        assert_eq!(flaw(true, &|frame| frame[ETHERNET] = 0x45), ParseError::NotIp);
        assert_eq!(flaw(false, &|frame| frame[ETHERNET] = 0x46), ParseError::Options);
        assert_eq!(flaw(true, &|frame| frame[ETHERNET + 6] = 60), ParseError::Options);
        assert_eq!(flaw(false, &|frame| ipv4(frame, |ip| ip[6] = 0x20)), ParseError::Fragment);
        assert_eq!(flaw(false, &|frame| ipv4(frame, |ip| ip[7] = 1)), ParseError::Fragment);
        assert_eq!(flaw(true, &|frame| frame[ETHERNET + 6] = 44), ParseError::Fragment);
        assert_eq!(flaw(false, &|frame| ipv4(frame, |ip| ip[9] = 6)), ParseError::NotUdp);
        assert_eq!(flaw(true, &|frame| frame[ETHERNET + 6] = 58), ParseError::NotUdp);
        assert_eq!(flaw(false, &|frame| frame[ETHERNET + 8] = 1), ParseError::Checksum, "of IP");
        assert_eq!(flaw(false, &|frame| frame[45] ^= 1), ParseError::Checksum, "of UDP");
        assert_eq!(flaw(true, &|frame| frame[60..62].fill(0)), ParseError::Checksum, "IPv6 must have one");
        assert_eq!(flaw(false, &|frame| frame[34..36].fill(0)), ParseError::Port);
    }

    #[test]
    fn checksums_that_nobody_made_are_taken_where_that_is_allowed() {
        let mut none = frame(false, b"datagram");
        none[40..42].fill(0);
        assert!(parse(&none).is_ok());
        // A sender whose adapter completes checksums writes the sum of the pseudo-header only.
        for v6 in [false, true] {
            let mut begun = frame(v6, b"datagram");
            let at = begun.len() - b"datagram".len() - 2;
            let sum = Sum::of_addresses(ends(v6).from.ip(), ends(v6).to.ip(), PROTOCOL_UDP)
                .with_length(16)
                .folded();
            begun[at..at + 2].copy_from_slice(&sum.to_ne_bytes());
            assert!(parse(&begun).is_ok());
            begun[at] ^= 1;
            assert_eq!(parse(&begun), Err(ParseError::Checksum));
        }
    }

    #[test]
    fn short_frames_are_padded() {
        let mut frame = frame(false, b"x");
        frame.resize(60, 0xee);
        let parsed = parse(&frame).unwrap();
        assert_eq!(&frame[parsed.datagram], b"x");
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(parsed) = parse(&bytes) {
                prop_assert!(parsed.datagram.end <= bytes.len());
            }
        }

        #[test]
        fn a_changed_bit_is_noticed_or_harmless(
            v6: bool,
            datagram in proptest::collection::vec(any::<u8>(), 1..100),
            bit in 0usize..4_000,
        ) {
            let mut frame = frame(v6, &datagram);
            let bit = bit % (8 * frame.len());
            frame[bit / 8] ^= 1 << (bit % 8);
            if let Ok(parsed) = parse(&frame) {
                // These bits are covered by Ethernet's frame check sequence only, and in IPv6 the traffic class, flow
                // label and hop limit. In IPv4, a UDP checksum of 0 means that there is none.
                let (at, ip) = (bit / 8, ETHERNET);
                let uncovered = at < 12 || v6 && (at < ip + 4 || at == ip + 7) || !v6 && (40..42).contains(&at);
                prop_assert!(uncovered, "bit {bit} of {frame:?} went unnoticed");
                prop_assert_eq!(&frame[parsed.datagram], &datagram[..]);
            }
        }
    }
}
