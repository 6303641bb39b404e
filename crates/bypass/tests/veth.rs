//! Devices over AF_XDP between two network namespaces. A test is skipped with a message if this process may not
//! create namespaces.

mod support;

use netlink_packet_route::link::LinkFlags;
use pathweave_bypass::xdp::{XdpBackend, XdpConfig, XdpError};
use pathweave_datapath::backend::{Cuts, Faults, Faulty};
use pathweave_datapath::secure::{ClusterKey, Protection};
use pathweave_datapath::{Device, DeviceConfig};
use support::{
    End, Family, INTERFACE, Net, backend, board, bypass, config, connect, make, wait_until,
    write_and_compare, write_until_it_bypasses,
};

/// Bytes that need many packets of any size.
const MUCH: usize = 3_000_000;

fn fit(config: DeviceConfig, mtu_bytes: u32) -> DeviceConfig {
    let mut config = config;
    config.fit_link(mtu_bytes as usize).expect("an MTU");
    config
}

/// Writes and reads in both directions, bypassing the kernel's network stack.
fn exchange(mtu_bytes: u32, family: Family, change: impl Fn(&mut DeviceConfig)) {
    let Some(net) = make("exchange", mtu_bytes, 1) else { return };
    let open = |end| {
        let mut config = fit(config(end, family), mtu_bytes);
        change(&mut config);
        bypass(&net, end, config)
    };
    let ((near, near_counts), (far, far_counts)) = (open(End::Near), open(End::Far));
    let (there, back) = connect(&near, &far);
    let (near_board, far_board) = (board(&near, MUCH), board(&far, MUCH));
    write_until_it_bypasses(&there, &far_board, &near_counts);
    write_until_it_bypasses(&back, &near_board, &far_counts);
    let by_kernel = [&near_counts, &far_counts].map(|counts| counts.read().sent_by_kernel);
    for (salt, len) in (1..).zip([1, 100, mtu_bytes as usize, MUCH]) {
        write_and_compare(&there, &far_board, len, salt);
        write_and_compare(&back, &near_board, len, salt + 100);
    }
    let (near, far) = (near_counts.read(), far_counts.read());
    for (tally, by_kernel) in [near, far].into_iter().zip(by_kernel) {
        // Both directions carry much data.
        let packets = (MUCH / mtu_bytes as usize) as u64;
        assert!(tally.sent > packets && tally.received > packets, "{tally:?}");
        assert_eq!(tally.sent_by_kernel, by_kernel, "{tally:?}");
        assert_eq!((tally.foreign, tally.flawed), (0, [0; 8]), "{tally:?}");
    }
}

#[test]
fn messages_go_past_the_kernel() {
    exchange(1_500, Family::V4, |_| {});
}

#[test]
fn messages_go_past_the_kernel_over_ipv6() {
    exchange(1_500, Family::V6, |_| {});
}

#[test]
fn jumbo_packets_are_of_several_pieces() {
    exchange(9_000, Family::V4, |_| {});
    exchange(9_000, Family::V6, |_| {});
}

#[test]
fn protected_packets_go_past_the_kernel() {
    exchange(1_500, Family::V4, |config| {
        config.protection = Protection::Encrypt;
        config.key = Some(ClusterKey::from_bytes([7; 32]));
    });
}

#[test]
fn peers_may_use_sockets() {
    for mtu_bytes in [1_500, 9_000] {
        let Some(net) = make("peers_may_use_sockets", mtu_bytes, 1) else { return };
        let (near, counters) = bypass(&net, End::Near, fit(config(End::Near, Family::V4), mtu_bytes));
        let far = net.sockets(End::Far, fit(config(End::Far, Family::V4), mtu_bytes));
        let (there, back) = connect(&near, &far);
        let (far_board, near_board) = (board(&far, MUCH), board(&near, MUCH));
        write_until_it_bypasses(&there, &far_board, &counters);
        write_and_compare(&there, &far_board, MUCH, 1);
        write_and_compare(&back, &near_board, MUCH, 2);
        let tally = counters.read();
        let packets = (MUCH / mtu_bytes as usize) as u64;
        assert!(tally.sent > packets && tally.received > packets, "{tally:?}");
        assert_eq!(tally.flawed, [0; 8], "{tally:?}");
    }
}

#[test]
fn packets_of_all_queues_are_received() {
    let Some(net) = make("packets_of_all_queues_are_received", 1_500, 4) else { return };
    let open = |end| bypass(&net, end, DeviceConfig { paths: 16, ..config(end, Family::V4) });
    let ((near, counters), (far, far_counts)) = (open(End::Near), open(End::Far));
    let (_there, back) = connect(&near, &far);
    let near_board = board(&near, MUCH);
    write_until_it_bypasses(&back, &near_board, &far_counts);
    write_and_compare(&back, &near_board, MUCH, 1);
    assert!(counters.read().received > MUCH as u64 / 1_500, "{:?}", counters.read());
}

fn refusal(net: &Net, end: End, interface: &str, config: &DeviceConfig) -> XdpError {
    let config = XdpConfig::new(interface, config.udp());
    match net.within(end, || XdpBackend::open(&config)) {
        Ok(backend) => panic!("it opens: {}", backend.describe()),
        Err(why) => why,
    }
}

#[test]
fn impossible_setups_are_refused_with_a_remedy() {
    let Some(net) = make("impossible_setups_are_refused_with_a_remedy", 1_500, 1) else { return };
    let good = config(End::Near, Family::V4);
    let why = refusal(&net, End::Near, "lnik0", &good).to_string();
    assert_eq!(why, "there is no network interface \"lnik0\"; did you mean \"link0\"? (there are lo, link0)",);

    let elsewhere = DeviceConfig { bind: "192.0.2.1:0".parse().unwrap(), ..good.clone() };
    let why = refusal(&net, End::Near, INTERFACE, &elsewhere).to_string();
    let has = "the network interface link0 has not the address 192.0.2.1; it has 10.99.0.1, fd99::1";
    assert!(why.starts_with(has), "{why}");

    let two = DeviceConfig { also_bind: vec!["10.99.0.9:0".parse().unwrap()], ..good.clone() };
    let why = refusal(&net, End::Near, INTERFACE, &two).to_string();
    assert_eq!(why, "2 addresses were given; over AF_XDP a device has one, that of its interface");

    let (_first, _) = bypass(&net, End::Near, good.clone());
    let why = refusal(&net, End::Near, INTERFACE, &good).to_string();
    assert!(why.starts_with("another XDP program or AF_XDP socket has the network interface link0"), "{why}");

    net.set_link(End::Far, LinkFlags::empty());
    let why = refusal(&net, End::Far, INTERFACE, &config(End::Far, Family::V4)).to_string();
    assert_eq!(why, "the network interface link0 is down: `ip link set link0 up`");
}

#[test]
fn an_unspecified_address_stands_for_the_interfaces_first() {
    let Some(net) = make("an_unspecified_address_stands_for_the_interfaces_first", 1_500, 1) else {
        return;
    };
    for (any, family) in [("0.0.0.0:0", Family::V4), ("[::]:0", Family::V6)] {
        let config = DeviceConfig { bind: any.parse().unwrap(), ..config(End::Near, family) };
        let (device, _) = bypass(&net, End::Near, config);
        assert_eq!(device.local_addr().ip(), support::address(End::Near, family));
    }
}

/// Two devices over AF_XDP with a connection, and memory to write through it.
struct Carrying {
    net: Net,
    near: Device,
    there: pathweave_datapath::Connection,
    _back: pathweave_datapath::Connection,
    far_board: pathweave_datapath::Registration,
    counters: pathweave_bypass::ether::Counters,
}

impl Carrying {
    fn over(net: Net) -> Self {
        let (near, counters) = bypass(&net, End::Near, config(End::Near, Family::V4));
        let (far, _) = bypass(&net, End::Far, config(End::Far, Family::V4));
        let (there, back) = connect(&near, &far);
        let far_board = board(&far, MUCH);
        write_and_compare(&there, &far_board, MUCH, 1);
        Carrying { net, near, there, _back: back, far_board, counters }
    }
}

#[test]
fn an_interface_that_is_down_for_a_while_loses_nothing() {
    let Some(net) = make("an_interface_that_is_down_for_a_while_loses_nothing", 1_500, 1) else {
        return;
    };
    let carrying = Carrying::over(net);
    let sent_before = carrying.counters.read().sent;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for salt in 2..8 {
                write_and_compare(&carrying.there, &carrying.far_board, MUCH, salt);
            }
        });
        wait_until("it is under way", || carrying.counters.read().sent > sent_before);
        carrying.net.set_link(End::Far, LinkFlags::empty());
        std::thread::sleep(std::time::Duration::from_millis(300));
        carrying.net.set_link(End::Far, LinkFlags::Up);
    });
    assert!(carrying.near.stats().is_some(), "the loop lives");
}

#[test]
fn without_the_program_the_kernels_sockets_carry_everything() {
    let Some(net) = make("without_the_program", 1_500, 1) else { return };
    let near_config = config(End::Near, Family::V4);
    let (near, counters) = net.within(End::Near, || {
        let backend = backend(&near_config).expect("AF_XDP");
        backend.detach().expect("it comes off");
        let counters = backend.counters();
        (Device::with_backend(near_config, backend).expect("a device"), counters)
    });
    let (far, _) = bypass(&net, End::Far, config(End::Far, Family::V4));
    let (there, back) = connect(&near, &far);
    write_and_compare(&there, &board(&far, MUCH), MUCH, 1);
    write_and_compare(&back, &board(&near, MUCH), MUCH, 2);
    let tally = counters.read();
    assert!(tally.received == 0 && tally.received_by_kernel > 0, "{tally:?}");
}

#[test]
fn marks_arrive() {
    let Some(net) = make("marks_arrive", 1_500, 1) else { return };
    for family in [Family::V4, Family::V6] {
        let near_config = config(End::Near, family);
        let faults = Faults { mark: 1.0, ..Faults::default() };
        let near = net.within(End::Near, || {
            let backend = backend(&near_config).expect("AF_XDP");
            let backend = Faulty::new(backend, faults, Cuts::default(), 1);
            Device::with_backend(near_config, backend).expect("a device")
        });
        let (far, counters) = bypass(&net, End::Far, config(End::Far, family));
        let (there, _back) = connect(&near, &far);
        write_and_compare(&there, &board(&far, MUCH), MUCH, 1);
        // The peer has reported the marks packet by packet.
        let marked: u64 = there.stats().expect("it lives").paths.iter().map(|path| path.marked).sum();
        assert!(marked > 1_000, "{marked} packets were acknowledged as marked");
        assert!(
            counters.read().stamped > 1_000,
            "the driver notes when packets arrive: {:?}",
            counters.read()
        );
    }
}
