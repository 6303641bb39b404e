//! Frames that are none of ours, or no frames at all: counted, dropped, and nothing else comes of them.

mod support;

use std::net::SocketAddr;

use pathweave_wire::Ecn;
use pathweave_xdp::frame::{Ends, Flaw, MAX_HEADERS, Template};
use support::raw::Raw;
use support::{End, Family, Net, board, config, connect, wait_until, write_and_compare};

const MUCH: usize = 1_000_000;
/// Where things stand in an IPv4 frame.
const IP: usize = 14;
const UDP: usize = 34;

fn frame(family: Family, to: SocketAddr, datagram: &[u8]) -> Vec<u8> {
    let from = SocketAddr::new(support::address(End::Far, family), 40_000);
    let ends = Ends { from_mac: [2, 0, 0, 0, 0, 2], to_mac: [2, 0, 0, 0, 0, 1], from, to };
    let template = Template::new(ends, Ecn::NotCapable).expect("one family");
    let mut out = vec![0; MAX_HEADERS + datagram.len()];
    let len = template.write(datagram, &mut out).expect("it fits");
    out.truncate(len);
    out
}

/// Gives an IPv4 header its checksum again.
fn seal(frame: &mut [u8]) {
    let header = &mut frame[IP..UDP];
    header[10..12].fill(0);
    let mut sum: u32 = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    header[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[test]
fn hostile_frames_are_counted_and_dropped() {
    let Some(net) = Net::make("hostile_frames_are_counted_and_dropped", 1_500, 1) else { return };
    let (near, counters) = net.bypass(End::Near, config(End::Near, Family::V4));
    let (far, _) = net.bypass(End::Far, config(End::Far, Family::V4));
    let (there, back) = connect(&near, &far);
    write_and_compare(&back, &board(&near, MUCH), MUCH, 1);
    let before = counters.read();
    assert_eq!(before.flawed, [0; 8], "{before:?}");

    let raw = net.within(End::Far, Raw::open).expect("a packet socket");
    let good = || frame(Family::V4, near.local_addr(), b"a datagram of nobody");
    let send = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = good();
        change(&mut frame);
        raw.send(&frame);
    };
    // What the program takes for ours and the parser refuses.
    send(&|frame| frame[IP + 8] ^= 1);
    send(&|frame| frame[UDP + 10] ^= 0x10);
    send(&|frame| {
        frame[IP + 3] += 1;
        seal(frame);
    });
    send(&|frame| frame[UDP + 5] += 1);
    send(&|frame| frame[UDP + 5] = 7);
    send(&|frame| frame[UDP..UDP + 2].fill(0));
    // What goes to the kernel: a virtual network, fragments, options, another port, another protocol, too short for headers.
    send(&|frame| {
        frame.splice(12..12, [0x81, 0, 0, 5]);
    });
    send(&|frame| {
        frame[IP + 6] = 0x20;
        seal(frame);
    });
    send(&|frame| {
        frame[IP] = 0x46;
        seal(frame);
    });
    send(&|frame| frame[UDP + 3] ^= 1);
    send(&|frame| {
        frame[IP + 9] = 6;
        seal(frame);
    });
    send(&|frame| frame.truncate(41));
    // Whole, and for us, and none of ours: the loop refuses it. It is the last, and packets do not overtake each other here.
    let refused = |device: &pathweave_datapath::Device| device.stats().expect("it lives").refused_datagrams;
    let refused_before = refused(&near);
    send(&|_| {});
    wait_until("the last one is refused", || refused(&near) > refused_before);

    let after = counters.read();
    assert_eq!(
        (after.flawed(Flaw::Checksum), after.flawed(Flaw::Truncated), after.flawed(Flaw::Port)),
        (2, 3, 1)
    );
    assert_eq!(after.flawed.iter().sum::<u64>(), 6, "{after:?}");
    assert_eq!(refused(&near), refused_before + 1, "nothing else reached the loop");
    write_and_compare(&back, &board(&near, MUCH), MUCH, 2);
    write_and_compare(&there, &board(&far, MUCH), MUCH, 3);
}

#[test]
fn any_bytes_behind_good_headers_do_no_harm() {
    let Some(net) = Net::make("any_bytes_behind_good_headers_do_no_harm", 1_500, 1) else { return };
    let (near, counters) = net.bypass(End::Near, config(End::Near, Family::V6));
    let (far, _) = net.bypass(End::Far, config(End::Far, Family::V6));
    let (_there, back) = connect(&near, &far);
    let raw = net.within(End::Far, Raw::open).expect("a packet socket");
    let before = counters.read().received;
    for len in 1..400 {
        raw.send(&frame(Family::V6, near.local_addr(), &support::pattern(len, 5)));
    }
    wait_until("they have come", || counters.read().received >= before + 399);
    write_and_compare(&back, &board(&near, MUCH), MUCH, 1);
}

#[test]
fn an_interface_that_is_removed_ends_connections_and_nothing_else() {
    let Some(net) = Net::make("an_interface_that_is_removed", 1_500, 1) else { return };
    let mut short = config(End::Near, Family::V4);
    short.peer_timeout = std::time::Duration::from_secs(1);
    let (near, _) = net.bypass(End::Near, short);
    let (far, _) = net.bypass(End::Far, config(End::Far, Family::V4));
    let (there, _back) = connect(&near, &far);
    write_and_compare(&there, &board(&far, MUCH), MUCH, 1);
    net.remove_link();
    let nothing = pathweave_datapath::Region::zeroed(100).expect("memory");
    // It may have noticed by itself.
    let _ = there.send(1, nothing.all());
    wait_until("the connection ends", || {
        // It is over once all its completions have been taken.
        while there.take().is_some() {}
        there.ended().is_some()
    });
    assert!(near.stats().is_some(), "the loop lives");
}
