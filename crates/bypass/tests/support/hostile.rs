//! Foreign and malformed frames must be counted and dropped without further effect.
#![allow(dead_code, reason = "each test file uses its part")]

use std::net::SocketAddr;

use pathweave_bypass::ether::Counters;
use pathweave_bypass::ether::frame::{FrameAddresses, MAX_HEADERS, Mac, ParseError, Template};
use pathweave_datapath::Device;
use pathweave_wire::Ecn;

use super::namespaces::{End, Family, address, board, connect, pattern, wait_until, write_and_compare};
use super::raw::Raw;

const MUCH: usize = 1_000_000;
/// Offsets in an IPv4 frame.
const IP: usize = 14;
const UDP: usize = 34;

/// Builds a frame from an unused port at the far end.
pub(crate) fn frame(family: Family, to_mac: Mac, to: SocketAddr, datagram: &[u8]) -> Vec<u8> {
    let from = SocketAddr::new(address(End::Far, family), 40_000);
    let ends = FrameAddresses { from_mac: [2, 0, 0, 0, 0, 2], to_mac, from, to };
    let template = Template::new(ends, Ecn::NotCapable).expect("one family");
    let mut out = vec![0; MAX_HEADERS + datagram.len()];
    let len = template.write(datagram, &mut out).expect("it fits");
    out.truncate(len);
    out
}

/// Recomputes the checksum of an IPv4 header.
fn set_ip_checksum(frame: &mut [u8]) {
    let header = &mut frame[IP..UDP];
    header[10..12].fill(0);
    let mut sum: u32 = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    header[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

/// Computes the checksum of a UDP datagram over IPv4, as the kernel's sockets do.
fn sum_up(frame: &mut [u8]) {
    let udp = frame.len() - UDP;
    let words = frame[UDP - 8..]
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    // The pseudo-header adds protocol and length.
    let mut sum: u32 = words.sum::<u32>() + 17 + udp as u32;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    let sum = !(sum as u16);
    frame[UDP + 6..UDP + 8].copy_from_slice(&if sum == 0 { 0xffff } else { sum }.to_be_bytes());
}

/// Device that receives the frames, its peer, and the socket that sends them.
pub(crate) struct Target<'a> {
    pub(crate) near: &'a Device,
    pub(crate) near_mac: Mac,
    pub(crate) counters: &'a Counters,
    pub(crate) far: &'a Device,
    pub(crate) raw: Raw,
}

/// Numbers of invalid frames by flaw. The XDP program steers the first group to the device and passes the second to
/// the kernel.
pub(crate) const FOR_US: [(ParseError, u64); 3] =
    [(ParseError::Checksum, 2), (ParseError::Truncated, 3), (ParseError::Port, 1)];
pub(crate) const FOR_OTHERS: [(ParseError, u64); 5] = [
    (ParseError::Vlan, 1),
    (ParseError::Fragment, 1),
    (ParseError::Options, 1),
    (ParseError::NotUdp, 1),
    (ParseError::Truncated, 1),
];

/// The near end must count exactly the expected flaws and continue to work.
pub(crate) fn hostile_frames_are_counted_and_dropped(target: Target<'_>, expected: &[(ParseError, u64)]) {
    let Target { near, near_mac, counters, far, raw } = target;
    let (there, back) = connect(near, far);
    write_and_compare(&back, &board(near, MUCH), MUCH, 1);
    let before = counters.read();
    let expected =
        |flaw: ParseError| expected.iter().filter(|(of, _)| *of == flaw).map(|(_, count)| count).sum::<u64>();
    let good = || {
        let mut frame = frame(Family::V4, near_mac, near.local_addr(), b"a datagram of nobody");
        sum_up(&mut frame);
        frame
    };
    let send = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = good();
        change(&mut frame);
        raw.send(&frame);
    };
    // Frames that the program steers to the device and the parser rejects.
    send(&|frame| frame[IP + 8] ^= 1);
    send(&|frame| frame[UDP + 10] ^= 0x10);
    send(&|frame| {
        frame[IP + 3] += 1;
        set_ip_checksum(frame);
    });
    send(&|frame| frame[UDP + 5] += 1);
    send(&|frame| frame[UDP + 5] = 7);
    send(&|frame| frame[UDP..UDP + 2].fill(0));
    // Frames that go to the kernel: VLAN, fragments, options, another port, another protocol, too short for headers.
    send(&|frame| {
        frame.splice(12..12, [0x81, 0, 0, 5]);
    });
    send(&|frame| {
        frame[IP + 6] = 0x20;
        set_ip_checksum(frame);
    });
    send(&|frame| {
        frame[IP] = 0x46;
        set_ip_checksum(frame);
    });
    send(&|frame| {
        frame[UDP + 2..UDP + 4].copy_from_slice(&9u16.to_be_bytes());
        frame[UDP + 6..UDP + 8].fill(0);
    });
    send(&|frame| {
        frame[IP + 9] = 6;
        set_ip_checksum(frame);
    });
    send(&|frame| frame.truncate(41));
    // A complete frame for the device whose datagram the event loop refuses. It is the last one, and frames keep
    // their order here.
    let refused = |device: &Device| device.stats().expect("it lives").refused_datagrams;
    let refused_before = refused(near);
    send(&|_| {});
    wait_until("the last one is refused", || refused(near) > refused_before);

    let after = counters.read();
    for flaw in ParseError::ALL {
        let counted = after.flawed(flaw) - before.flawed(flaw);
        // The kernel at the other end also sends ICMPv6 messages.
        let expected = expected(flaw);
        let is_as_expected =
            counted == expected || flaw == ParseError::NotUdp && expected > 0 && counted > expected;
        assert!(is_as_expected, "{flaw}: {counted} of {expected}");
    }
    assert_eq!(refused(near), refused_before + 1, "nothing else reached the loop");
    write_and_compare(&back, &board(near, MUCH), MUCH, 2);
    write_and_compare(&there, &board(far, MUCH), MUCH, 3);
}

/// Sends datagrams of random bytes to the near end's port.
pub(crate) fn any_bytes_behind_good_headers_do_no_harm(target: Target<'_>, family: Family) {
    let Target { near, near_mac, counters, far, raw } = target;
    let (_there, back) = connect(near, far);
    let before = counters.read().received;
    for len in 1..400 {
        raw.send(&frame(family, near_mac, near.local_addr(), &pattern(len, 5)));
    }
    wait_until("they have come", || counters.read().received >= before + 399);
    write_and_compare(&back, &board(near, MUCH), MUCH, 1);
}
