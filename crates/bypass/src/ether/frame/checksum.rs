//! Internet checksum (RFC 1071).

use std::net::IpAddr;

/// One's complement sum of 16-bit words, not folded yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum(u64);

impl Sum {
    /// Returns the sum of both addresses and the protocol, which the checksums of UDP and ICMPv6 cover.
    pub(crate) fn of_addresses(from: IpAddr, to: IpAddr, protocol: u8) -> Self {
        let add = |sum: Sum, address: IpAddr| match address {
            IpAddr::V4(address) => sum.with(&address.octets()),
            IpAddr::V6(address) => sum.with(&address.octets()),
        };
        add(add(Sum::default().with_number(protocol.into()), from), to)
    }

    /// Adds the length of the datagram with its header, which is part of the pseudo-header.
    #[inline]
    pub(crate) fn with_length(self, bytes: u16) -> Self {
        self.with_number(bytes)
    }

    /// Adds a number, in the byte order in which words are read from memory.
    #[inline]
    fn with_number(self, word: u16) -> Self {
        Sum(self.0 + u64::from(word.to_be()))
    }

    /// Adds bytes. All but the last piece must have an even number of them.
    #[inline]
    pub(crate) fn with(self, bytes: &[u8]) -> Self {
        // Two independent sums of four bytes each. The carries of words collect in the upper half of each sum, which
        // no packet is long enough to fill.
        let (pairs, rest) = bytes.as_chunks::<8>();
        let (mut low, mut high) = (0u64, 0u64);
        for pair in pairs {
            let pair = u64::from_ne_bytes(*pair);
            low += pair & 0xffff_ffff;
            high += pair >> 32;
        }
        let mut sum = self.0 + u64::from(Sum(low).folded()) + u64::from(Sum(high).folded());
        let (words, last) = rest.as_chunks::<2>();
        for word in words {
            sum += u64::from(u16::from_ne_bytes(*word));
        }
        if let [byte] = last {
            sum += u64::from(u16::from_ne_bytes([*byte, 0]));
        }
        Sum(sum)
    }

    /// Returns the sum in 16 bits, in the byte order in which words were read.
    pub(crate) fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// Returns the checksum for a header: the value that makes the sum of everything all ones.
    pub(crate) fn complement(self) -> [u8; 2] {
        (!self.folded()).to_ne_bytes()
    }

    /// Returns true if the summed bytes, including their checksum, are intact.
    pub(crate) fn is_valid(self) -> bool {
        self.folded() == 0xffff
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_rfc_1071() {
        let sum = Sum::default().with(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.folded().to_ne_bytes(), [0xdd, 0xf2]);
        assert_eq!(sum.complement(), [0x22, 0x0d]);
    }

    proptest! {
        #[test]
        fn it_equals_the_sum_word_by_word(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut slow = 0u32;
            for word in bytes.chunks(2) {
                slow += u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0));
                slow = (slow & 0xffff) + (slow >> 16);
            }
            let fast = u16::from_be_bytes(Sum::default().with(&bytes).folded().to_ne_bytes());
            // Zero has two forms in one's complement. The sum of words that are not all zero never takes the first
            // one.
            prop_assert_eq!(u32::from(fast), slow);
        }
    }
}
