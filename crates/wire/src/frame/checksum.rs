//! The Internet checksum and RoCEv2's invariant CRC.

use super::layout::{IPV4_LEN, UDP_LEN, bth};

/// One's-complement sum of big-endian 16-bit words, folded (RFC 1071). An odd last byte counts as a high byte.
fn ones_complement_sum(bytes: &[u8], start: u32) -> u32 {
    let mut sum = start;
    for word in bytes.chunks(2) {
        let low = word.get(1).copied().unwrap_or(0);
        sum += u32::from(u16::from_be_bytes([word[0], low]));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

/// Checksum of an IPv4 header whose checksum field is zero. Over an intact header with its checksum the result is
/// zero.
pub(crate) fn ipv4_checksum(header: &[u8]) -> u16 {
    !(ones_complement_sum(header, 0) as u16)
}

/// Residue of a UDP datagram, given the IPv4 header before it (RFC 768). Zero if the datagram is intact.
pub(crate) fn udp_residue(ip: &[u8], udp: &[u8]) -> u16 {
    let pseudo = ones_complement_sum(&ip[12..20], u32::from(ip[9]) + udp.len() as u32);
    !(ones_complement_sum(udp, pseudo) as u16)
}

/// Invariant CRC of an IPv4 packet without its last four bytes (RoCEv2 annex A17.3.3). It is Ethernet's CRC-32 over
/// eight bytes of ones in place of a local route header, then the packet with every field that a router may change
/// set to ones. These fields are type of service, time to live, header checksum, UDP checksum, and the BTH byte that
/// holds FECN and BECN. The wire carries it least significant byte first.
pub(crate) fn icrc(packet: &[u8]) -> u32 {
    const BTH: usize = IPV4_LEN + UDP_LEN;
    const MASKED: usize = BTH + bth::RESERVED + 1;
    let mut head = [0xff; 8 + MASKED];
    head[8..].copy_from_slice(&packet[..MASKED]);
    for masked in [1, 8, 10, 11, IPV4_LEN + 6, IPV4_LEN + 7, BTH + bth::RESERVED] {
        head[8 + masked] = 0xff;
    }
    let mut crc = crc32fast::Hasher::new();
    crc.update(&head);
    crc.update(&packet[MASKED..]);
    crc.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A CNP captured from a ConnectX-4 Lx adapter (public capture in scapy's RoCE tests), from the IPv4 header on.
    const CAPTURED_CNP: [u8; 60] = [
        0x45, 0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 0x0a, 0x00, 0x11, 0x01, 0x0a,
        0x00, 0x12, 0x01, 0x00, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x81, 0x00, 0xff, 0xff, 0x40, 0x00,
        0x01, 0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x82, 0xfd, 0x00, 0x2a,
    ];

    #[test]
    fn invariant_crc_agrees_with_hardware() {
        assert_eq!(icrc(&CAPTURED_CNP[..56]).to_le_bytes(), [0x82, 0xfd, 0x00, 0x2a]);
    }

    #[test]
    fn invariant_crc_ignores_what_routers_change() {
        let mut packet = CAPTURED_CNP;
        packet[1] ^= 0x03; // congestion experienced
        packet[8] -= 1; // time to live
        packet[10..12].fill(0x12);
        packet[26..28].fill(0x34);
        packet[32] ^= 0x80; // FECN
        assert_eq!(icrc(&packet[..56]), icrc(&CAPTURED_CNP[..56]));
        packet[33] ^= 1; // destination queue pair
        assert_ne!(icrc(&packet[..56]), icrc(&CAPTURED_CNP[..56]));
    }

    #[test]
    fn ipv4_checksum_agrees_with_hardware() {
        let mut header = CAPTURED_CNP[..20].to_vec();
        assert_eq!(ipv4_checksum(&header), 0);
        header[10..12].fill(0);
        assert_eq!(ipv4_checksum(&header), 0x9161);
    }

    #[test]
    fn udp_checksum_by_hand() {
        let mut ip = [0u8; 20];
        ip[9] = 17;
        ip[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        // Pseudo-header 0a00+0001+0a00+0002+0011+0009 = 141d; UDP 0001+12b7+0009+ab00 = bdc1; sum d1de.
        let mut udp = [0x00, 0x01, 0x12, 0xb7, 0x00, 0x09, 0x00, 0x00, 0xab];
        assert_eq!(udp_residue(&ip, &udp), !0xd1de);
        udp[6..8].copy_from_slice(&(!0xd1deu16).to_be_bytes());
        assert_eq!(udp_residue(&ip, &udp), 0);
    }

    use std::vec::Vec;
    #[test]
    fn long_input_does_not_overflow() {
        let ones: Vec<u8> = std::vec![0xff; 65_535];
        assert_eq!(ipv4_checksum(&ones[..65_534]), 0);
    }
}
