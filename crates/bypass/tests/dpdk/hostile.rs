//! Foreign and malformed frames over packet sockets.

use pathweave_bypass::ether::Counters;
use pathweave_bypass::ether::frame::ParseError;
use pathweave_datapath::Device;

use crate::link::hostile::{self, Target};
use crate::link::net::{End, Family, Net};
use crate::link::raw::Raw;
use crate::places::{Ends, config_for_mtu};

/// Devices at both ends.
struct Both {
    near: Device,
    counters: Counters,
    far: Device,
}

impl Both {
    fn open(net: &Net, family: Family) -> Both {
        let (near, counters) = net.open(End::Near, 1_500, config_for_mtu(End::Near, family, 1_500));
        let (far, _) = net.open(End::Far, 1_500, config_for_mtu(End::Far, family, 1_500));
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
    let Some(net) = Net::make("hostile_frames_are_counted_and_dropped", 1_500, 1) else { return };
    let both = Both::open(&net, Family::V4);
    // A packet socket also receives what the kernel is sent. The driver has the kernel reassemble fragments first.
    let mut all = [&hostile::FOR_US[..], &hostile::FOR_OTHERS].concat();
    all.retain(|(flaw, _)| *flaw != ParseError::Fragment);
    hostile::hostile_frames_are_counted_and_dropped(both.target(&net), &all);
    assert!(both.counters.read().foreign > 0, "the one for another port");
}

#[test]
fn any_bytes_behind_good_headers_do_no_harm() {
    let Some(net) = Net::make("any_bytes_behind_good_headers_do_no_harm", 1_500, 1) else { return };
    let both = Both::open(&net, Family::V6);
    hostile::any_bytes_behind_good_headers_do_no_harm(both.target(&net), Family::V6);
}
