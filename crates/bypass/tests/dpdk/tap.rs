//! Tests of a port whose other end is a kernel interface (`net_tap`): a peer with the kernel's sockets, and hostile
//! frames. The kernel does not know the port.

use std::fs;

use netlink_packet_core::NLM_F_CREATE;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkFlags, LinkMessage};
use pathweave_bypass::dpdk::{DpdkBackend, DpdkError};
use pathweave_bypass::ether::{Counters, Interface};
use pathweave_datapath::{Device, DeviceConfig};
use pathweave_linux::netlink::Netlink;
use std::net::IpAddr;

use crate::link::hostile::{self, Target};
use crate::link::net::{End, Family, Net, address, board, config, connect, write_and_compare};
use crate::link::raw::Raw;
use crate::places::{config_of, local};

const MUCH: usize = 1_000_000;

/// Device at a tap, and a device with the kernel's sockets at its other end. Both are in the namespace of the near
/// end.
struct Tap {
    near: Device,
    counters: Counters,
    near_mac: [u8; 6],
    far: Device,
    interface: u32,
}

impl Tap {
    fn open(net: &Net, number: u32, family: Family) -> Option<Tap> {
        // The addresses of the link move to the two ends of the tap.
        net.remove_link();
        net.within(End::Near, || {
            let name = format!("tap{number}");
            let vdev = format!("net_tap{number},iface={name}");
            let near_config = config(End::Near, family);
            let opened =
                DpdkBackend::open(&config_of(&vdev, Some(local(End::Near, family)), 1_500, &near_config));
            let backend = match opened {
                Ok(backend) => backend,
                Err(why @ DpdkError::Attach { .. }) if fs::metadata("/dev/net/tun").is_err() => {
                    println!("\n*** SKIPPED: a tap: {why} ***\n");
                    return None;
                }
                Err(why) => panic!("{why}"),
            };
            let mut netlink = Netlink::open().expect("netlink");
            let interface = raise(&mut netlink, &name, address(End::Far, family));
            let counters = backend.counters();
            let near_mac = backend.mac();
            let near = Device::with_backend(near_config, backend).expect("a device");
            let far_config = DeviceConfig { ..config(End::Far, family) };
            let far = Device::open(far_config).expect("a device");
            Some(Tap { near, counters, near_mac, far, interface })
        })
    }
}

/// Gives the interface an address and takes it up.
fn raise(netlink: &mut Netlink, name: &str, own: IpAddr) -> u32 {
    let index = Interface::find(netlink, name).expect("the driver has it up").index;
    let mut message = AddressMessage::default();
    message.header.index = index;
    (message.header.family, message.header.prefix_len) = match own {
        IpAddr::V4(_) => (AddressFamily::Inet, 24),
        IpAddr::V6(_) => (AddressFamily::Inet6, 64),
    };
    message.header.flags = AddressHeaderFlags::Nodad;
    message.attributes = vec![AddressAttribute::Local(own), AddressAttribute::Address(own)];
    netlink.request(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE).expect("an address");
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    netlink.request(RouteNetlinkMessage::SetLink(message), 0).expect("it is up");
    index
}

#[test]
fn the_kernel_at_the_other_end_finds_us_and_is_found() {
    for (number, family) in [(0, Family::V4), (1, Family::V6)] {
        let Some(net) = Net::make("the_kernel_at_the_other_end_finds_us_and_is_found", 1_500, 1) else {
            return;
        };
        let Some(tap) = Tap::open(&net, number, family) else { return };
        let (there, back) = connect(&tap.near, &tap.far);
        write_and_compare(&there, &board(&tap.far, MUCH), MUCH, 1);
        write_and_compare(&back, &board(&tap.near, MUCH), MUCH, 2);
        let tally = tap.counters.read();
        assert!(tally.sent > 600 && tally.received > 600 && tally.sent_by_kernel == 0, "{tally:?}");
    }
}

#[test]
fn hostile_frames_from_the_kernel_are_counted_and_dropped() {
    let Some(net) = Net::make("hostile_frames_from_the_kernel_are_counted_and_dropped", 1_500, 1) else {
        return;
    };
    let Some(tap) = Tap::open(&net, 2, Family::V4) else { return };
    let Tap { near, counters, near_mac, far, interface } = &tap;
    // Frames that leave for a tap are not visible to other packet sockets there; they arrive at the port only.
    let raw = net.within(End::Near, || Raw::open_at(*interface)).expect("a packet socket");
    let target = Target { near, near_mac: *near_mac, counters, far, raw };
    let all = [&hostile::FOR_US[..], &hostile::FOR_OTHERS].concat();
    hostile::hostile_frames_are_counted_and_dropped(target, &all);
    assert!(counters.read().foreign > 0, "the one for another port");
}
