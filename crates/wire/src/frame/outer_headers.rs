//! Checks of the headers and trailers around the extension header: IPv4, UDP, BTH, lengths and CRC.

use super::checksum::{icrc, ipv4_checksum, udp_residue};
use super::error::ParseError;
use super::layout::{
    BTH_LEN, COMMON_LEN, ICRC_LEN, IP_PROTOCOL_UDP, IPV4_LEN, PKEY, PULL_TARGET_LEN, ROCE_PORT, UDP_LEN, bth,
    ext, flag,
};
use super::opcode::{Opcode, SYNDROME_ACK, nack_reason};
use super::read::{array, take, u16_at, zero};

/// Returns the IPv4 packet at the start of `frame`, cut to its total length. It has room for UDP, BTH and ICRC.
pub(super) fn ipv4(frame: &[u8]) -> Result<&[u8], ParseError> {
    let header = take(frame, IPV4_LEN, "IPv4 header")?;
    if header[0] >> 4 != 4 {
        return Err(ParseError::IpVersion(header[0] >> 4));
    }
    if header[0] & 0x0f != 5 {
        return Err(ParseError::IpHeaderWords(header[0] & 0x0f));
    }
    let residue = ipv4_checksum(header);
    if residue != 0 {
        let found = u16_at(header, 10);
        let mut copy: [u8; IPV4_LEN] = array(header, 0);
        copy[10..12].fill(0);
        return Err(ParseError::IpChecksum { found, computed: ipv4_checksum(&copy) });
    }
    // Every bit except Don't Fragment: reserved, More Fragments, fragment offset.
    let fragment = u16_at(header, 6);
    if fragment & 0xbfff != 0 {
        return Err(ParseError::IpFragment(fragment));
    }
    if header[9] != IP_PROTOCOL_UDP {
        return Err(ParseError::IpProtocol(header[9]));
    }
    let total = usize::from(u16_at(header, 2));
    let packet = take(frame, total, "IPv4 packet")?;
    take(packet, IPV4_LEN + UDP_LEN + BTH_LEN + ICRC_LEN, "IPv4 packet with UDP, BTH and ICRC")?;
    Ok(packet)
}

/// Checks the UDP header. Returns the bytes from BTH to ICRC.
pub(super) fn udp_payload<'a>(ip_header: &[u8], udp: &'a [u8]) -> Result<&'a [u8], ParseError> {
    let port = u16_at(udp, 2);
    if port != ROCE_PORT {
        return Err(ParseError::UdpPort(port));
    }
    let (len, ip) = (u16_at(udp, 4), udp.len() as u16);
    if len != ip {
        return Err(ParseError::UdpLength { udp: len, ip });
    }
    let checksum = u16_at(udp, 6);
    if checksum != 0 && udp_residue(ip_header, udp) != 0 {
        return Err(ParseError::UdpChecksum(checksum));
    }
    Ok(&udp[UDP_LEN..])
}

pub(super) fn check_icrc(ip: &[u8], roce: &[u8]) -> Result<(), ParseError> {
    let found = u32::from_le_bytes(array(roce, roce.len() - ICRC_LEN));
    let computed = icrc(&ip[..ip.len() - ICRC_LEN]);
    if found == computed { Ok(()) } else { Err(ParseError::Icrc { found, computed }) }
}

/// Checks the BTH of `roce`, which reaches from BTH to padding. Returns the opcode, the length of all headers, and
/// the offset of the end of the payload.
#[inline(always)]
pub(super) fn bth_and_lengths(roce: &[u8]) -> Result<(Opcode, usize, usize), ParseError> {
    let version = roce[bth::FLAGS] & 0x0f;
    if version != 0 {
        return Err(ParseError::BthVersion(version));
    }
    let byte = roce[bth::OPCODE];
    let opcode = Opcode::from_byte(byte).ok_or(ParseError::Opcode(byte))?;
    let pkey = u16_at(roce, bth::PKEY);
    if pkey != PKEY {
        return Err(ParseError::PartitionKey(pkey));
    }
    let mut nack = false;
    if opcode == Opcode::Acknowledge {
        let syndrome = take(&roce[BTH_LEN..], 1, "AETH")?[0];
        nack = nack_reason(syndrome).is_some();
        if !nack && syndrome != SYNDROME_ACK {
            return Err(ParseError::Syndrome(syndrome));
        }
    }
    let mut headers_len = opcode.header_len(nack);
    debug_assert!(headers_len >= BTH_LEN + COMMON_LEN, "every packet has the common extension");
    take(roce, headers_len, "BTH, extended headers and extension")?;
    if matches!(opcode, Opcode::Transfer(..) | Opcode::ReadRequest)
        && roce[BTH_LEN + opcode.standard_len() + ext::FLAGS] & flag::PULL_TARGET != 0
    {
        headers_len += PULL_TARGET_LEN;
        take(roce, headers_len, "BTH, extended headers, extension and pull target")?;
    }

    let pad = (roce[bth::FLAGS] >> 4) & 3;
    let rest = &roce[headers_len..];
    let wrong_length = |expected| ParseError::BodyLength { opcode: opcode.name(), len: rest.len(), expected };
    // All headers but the EETH have a multiple of 4 bytes.
    if !roce.len().is_multiple_of(4) {
        return Err(wrong_length("padding to words of 4 bytes"));
    }
    if !matches!(opcode, Opcode::Transfer(..) | Opcode::Rd) && !rest.is_empty() {
        return Err(wrong_length("none"));
    }
    let Some(payload) = rest.len().checked_sub(usize::from(pad)) else {
        return Err(ParseError::PadCount { pad, available: rest.len() });
    };
    for &byte in &rest[payload..] {
        zero("padding", byte.into())?;
    }
    Ok((opcode, headers_len, headers_len + payload))
}
