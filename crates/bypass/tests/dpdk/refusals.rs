//! Impossible configurations are refused with the remedy.

use pathweave_bypass::dpdk::{DpdkBackend, DpdkConfig, HugePages};
use pathweave_datapath::DeviceConfig;

use crate::link::net::{End, Family, Net, config};
use crate::places::{config_of, local};

fn refusal(config: &DpdkConfig) -> String {
    match DpdkBackend::open(config) {
        Ok(backend) => panic!("it opens: {}", backend.describe()),
        Err(why) => why.to_string(),
    }
}

#[test]
fn devices_that_are_none_are_refused() {
    let plain = config(End::Near, Family::V4);
    let near = local(End::Near, Family::V4);
    let of = |vdev: &str, local| config_of(vdev, local, 1_500, &plain);
    assert_eq!(
        refusal(&of("net_memif90,role=client", None)),
        "net_memif90 is unknown to the kernel, so it needs its address: --address 10.0.0.1/24, with its \
         network's prefix"
    );
    let why = refusal(&of("net_memfi90", Some(near)));
    assert!(why.starts_with("DPDK has no driver for net_memfi90; did you mean \"net_memif\"?"), "{why}");
    let why = refusal(&of("net_wireless0", Some(near)));
    assert!(why.starts_with("DPDK cannot use net_wireless0: "), "{why}");
    let why = refusal(&of("net_memif91,role=nobody", Some(near)));
    assert!(why.starts_with("DPDK cannot use net_memif91: ") && why.contains("role"), "{why}");
    let elsewhere = DeviceConfig { bind: "192.0.2.1:0".parse().unwrap(), ..plain.clone() };
    let why = refusal(&config_of("net_ring90", Some(near), 1_500, &elsewhere));
    assert_eq!(why, "192.0.2.1 is not the address of net_ring90, which is 10.99.0.1");
    let two = DeviceConfig { also_bind: vec!["10.99.0.9:0".parse().unwrap()], ..plain.clone() };
    let why = refusal(&config_of("net_ring90", Some(near), 1_500, &two));
    assert_eq!(why, "2 addresses were given; over DPDK a device has one, that of its port");
    let why = refusal(&config_of("net_ring90", Some(near), 65_500, &plain));
    assert!(
        why.starts_with("packets of 65500 bytes are too long for DPDK, which takes 61294 at most"),
        "{why}"
    );
    let mut far_gateway = of("net_ring90", Some(near));
    far_gateway.gateway = Some("10.98.0.1".parse().unwrap());
    assert_eq!(
        refusal(&far_gateway),
        "the gateway 10.98.0.1 is not another host in the network 10.99.0.1/24"
    );
}

#[test]
fn huge_pages_that_are_not_there_are_told() {
    let plain = config(End::Near, Family::V4);
    let mut wants = config_of("net_ring91", Some(local(End::Near, Family::V4)), 1_500, &plain);
    wants.huge_pages = HugePages::Always;
    match DpdkBackend::open(&wants) {
        // The machine has huge pages.
        Ok(_) => {}
        Err(why) => assert!(why.to_string().contains("`sysctl -w vm.nr_hugepages="), "{why}"),
    }
}

#[test]
fn interfaces_that_cannot_be_used_are_told() {
    let Some(net) = Net::make("interfaces_that_cannot_be_used_are_told", 1_500, 1) else { return };
    let plain = config(End::Near, Family::V4);
    let said = |vdev: &str, mtu_bytes| {
        let config = config_of(vdev, None, mtu_bytes, &plain);
        net.within(End::Near, || refusal(&config))
    };
    assert_eq!(
        said("net_af_packet90,iface=lnik0", 1_500),
        "there is no network interface \"lnik0\"; did you mean \"link0\"? (there are lo, link0)"
    );
    let why = said("net_af_packet90,iface=link0", 9_000);
    assert!(
        why.starts_with(
            "packets of 9000 bytes are too long for the network interface link0, which takes 1500"
        ),
        "{why}"
    );
    let mut with_address =
        config_of("net_af_packet90,iface=link0", Some(local(End::Near, Family::V4)), 1_500, &plain);
    let why = net.within(End::Near, || refusal(&with_address));
    assert!(
        why.starts_with("the address of net_af_packet90 is that of the network interface link0"),
        "{why}"
    );
    with_address.local = None;
    with_address.udp.bind = "192.0.2.1:0".parse().unwrap();
    let why = net.within(End::Near, || refusal(&with_address));
    assert!(why.starts_with("the network interface link0 has not the address 192.0.2.1"), "{why}");
}
