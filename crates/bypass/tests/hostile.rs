//! Foreign and malformed frames over AF_XDP.

mod support;

use pathweave_bypass::ether::Counters;
use pathweave_datapath::{Device, Region};
use support::hostile::{self, Target};
use support::raw::Raw;
use support::{End, Family, Net, board, bypass, config, connect, make, wait_until, write_and_compare};

const MUCH: usize = 1_000_000;

/// Devices at both ends, and the sender of frames at the far end.
struct Both {
    near: Device,
    counters: Counters,
    far: Device,
}

impl Both {
    fn open(net: &Net, family: Family) -> Both {
        let (near, counters) = bypass(net, End::Near, config(End::Near, family));
        let (far, _) = bypass(net, End::Far, config(End::Far, family));
        Both { near, counters, far }
    }

    fn target(&self, net: &Net) -> Target<'_> {
        let raw = net.within(End::Far, Raw::open).expect("a packet socket");
        let Both { near, counters, far } = self;
        Target { near, near_mac: [2, 0, 0, 0, 0, 1], counters, far, raw }
    }
}

#[test]
fn hostile_frames_are_counted_and_dropped() {
    let Some(net) = make("hostile_frames_are_counted_and_dropped", 1_500, 1) else { return };
    let both = Both::open(&net, Family::V4);
    // The program passes the other frames to the kernel.
    hostile::hostile_frames_are_counted_and_dropped(both.target(&net), &hostile::FOR_US);
}

#[test]
fn any_bytes_behind_good_headers_do_no_harm() {
    let Some(net) = make("any_bytes_behind_good_headers_do_no_harm", 1_500, 1) else { return };
    let both = Both::open(&net, Family::V6);
    hostile::any_bytes_behind_good_headers_do_no_harm(both.target(&net), Family::V6);
}

#[test]
fn an_interface_that_is_removed_ends_connections_and_nothing_else() {
    let Some(net) = make("an_interface_that_is_removed", 1_500, 1) else { return };
    let mut short = config(End::Near, Family::V4);
    short.peer_timeout = std::time::Duration::from_secs(1);
    let (near, _) = bypass(&net, End::Near, short);
    let (far, _) = bypass(&net, End::Far, config(End::Far, Family::V4));
    let (there, _back) = connect(&near, &far);
    write_and_compare(&there, &board(&far, MUCH), MUCH, 1);
    net.remove_link();
    let nothing = Region::zeroed(100).expect("memory");
    // The connection may have closed already.
    let _ = there.send(1, nothing.all());
    wait_until("the connection ends", || {
        // `ended` reports the close after all completions have been taken.
        while there.take().is_some() {}
        there.ended().is_some()
    });
    assert!(near.stats().is_some(), "the loop lives");
}
