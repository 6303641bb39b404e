//! The Internet's checksum (RFC 1071).

use std::net::IpAddr;

/// A sum of 16-bit words in one's complement, not folded yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum(u64);

impl Sum {
    /// Of what the checksum of UDP or ICMPv6 covers besides the message and its length: both addresses and the protocol.
    pub(crate) fn of_addresses(from: IpAddr, to: IpAddr, protocol: u8) -> Self {
        let add = |sum: Sum, address: IpAddr| match address {
            IpAddr::V4(address) => sum.with(&address.octets()),
            IpAddr::V6(address) => sum.with(&address.octets()),
        };
        add(add(Sum::default().with_number(protocol.into()), from), to)
    }

    /// With the length of the datagram and its header, as it is counted beside the addresses.
    #[inline]
    pub(crate) fn with_length(self, bytes: u16) -> Self {
        self.with_number(bytes)
    }

    /// With a word that stands in no memory: in the order in which words are read.
    #[inline]
    fn with_number(self, word: u16) -> Self {
        Sum(self.0 + u64::from(word.to_be()))
    }

    /// With these bytes. All but the last piece must have an even number of them.
    #[inline]
    pub(crate) fn with(self, bytes: &[u8]) -> Self {
        // Two independent sums of four bytes each: the carry of a word goes into the upper half of its sum. A packet is far too
        // short to fill it.
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

    /// In 16 bits, in the byte order in which words were read.
    pub(crate) fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// What makes the sum of everything all ones: what stands in a header.
    pub(crate) fn complement(self) -> [u8; 2] {
        (!self.folded()).to_ne_bytes()
    }

    /// Whether it is the sum of something whole, its checksum included.
    pub(crate) fn is_sound(self) -> bool {
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
        fn it_is_what_adding_word_by_word_gives(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut slow = 0u32;
            for word in bytes.chunks(2) {
                slow += u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0));
                slow = (slow & 0xffff) + (slow >> 16);
            }
            let fast = u16::from_be_bytes(Sum::default().with(&bytes).folded().to_ne_bytes());
            // Zero has two forms in one's complement, and a sum of words that are not all zero is never the first.
            prop_assert_eq!(u32::from(fast), slow);
        }
    }
}
