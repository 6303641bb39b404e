//! The datagram that a program behind a socket sees equals the bytes between the UDP header and the ICRC of a frame.

use crate::common::{frame, plain_route, segment};
use pathweave_wire::{Datagram, DatagramLayout, EmitError, datagram_crc, emit_datagram_header, layout};
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_datagram_is_the_inside_of_a_frame((segment, near) in segment()) {
        let frame = frame(&segment, &plain_route());
        let inside = &frame[layout::IPV4_LEN + layout::UDP_LEN..frame.len() - layout::ICRC_LEN];
        let datagram = Datagram::parse(inside).expect("our own");
        prop_assert_eq!(datagram.segment(near), segment.normalized());

        let mut header = [0xaa; 96];
        let parts = emit_datagram_header(&segment, &mut header).expect("room");
        prop_assert_eq!(parts, DatagramLayout::for_segment(&segment));
        prop_assert_eq!(parts.len(), inside.len());
        prop_assert_eq!(&header[..parts.header_len], &inside[..parts.header_len]);
        prop_assert_eq!(datagram.payload().len(), parts.payload_len);

        let needed = parts.header_len;
        prop_assert_eq!(
            emit_datagram_header(&segment, &mut header[..needed - 1]),
            Err(EmitError::BufferTooSmall { needed, available: needed - 1 })
        );
    }

    #[test]
    fn any_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        let _ = Datagram::parse(&bytes);
    }

    #[test]
    fn the_crc_finds_every_flipped_bit(mut bytes in prop::collection::vec(any::<u8>(), 1..128), bit in any::<prop::sample::Index>()) {
        let crc = datagram_crc(&bytes);
        let bit = bit.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert_ne!(datagram_crc(&bytes), crc);
    }
}

#[test]
fn the_crc_is_the_one_of_ethernet() {
    assert_eq!(datagram_crc(b"123456789"), 0xcbf4_3926);
}
