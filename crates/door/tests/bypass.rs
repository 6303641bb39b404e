//! Devices of libraries over AF_XDP between two network namespaces. Skipped with a message if this process may not make
//! them.

#[path = "../../bypass/tests/support/namespaces.rs"]
mod namespaces;

use namespaces::{End, Family, INTERFACE, Net, address, board, connect, write_and_compare};
use pathweave_datapath::Device;
use pathweave_door::{DeviceError, Interface, Link, Settings};

/// Opens the device of a library at an end of the link, as these variables say.
fn open(net: &Net, end: End, variables: &[(&str, &str)]) -> Result<Device, DeviceError> {
    // Those who connect ask the kernel for the link's MTU, here in the namespace of the test, which may have less.
    let always = [("PATHWEAVE_PROTECTION", "insecure"), ("PATHWEAVE_MTU", "1200")];
    let all = [&always, variables].concat();
    let get = |name: &str| {
        let found = all.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let settings = Settings::read(&get).expect("the variables are right");
    let address = address(end, Family::V4);
    let interface = Interface { name: INTERFACE.to_owned(), address, prefix_bits: 24, link: Link::Up };
    net.within(end, || settings.open(&[&interface], address, 0..=0, |_| Ok(())))
}

#[test]
fn libraries_communicate_over_af_xdp_and_udp_however_the_loop_is_driven() {
    let Some(net) = Net::make("libraries over AF_XDP", 1_500, 1) else { return };
    for progress in ["auto", "thread"] {
        for [near, far] in [["af-xdp", "af-xdp"], ["af-xdp", "udp"], ["auto", "auto"]] {
            let of = |end, backend| {
                open(&net, end, &[("PATHWEAVE_BACKEND", backend), ("PATHWEAVE_PROGRESS", progress)])
            };
            let (near_device, far_device) = (of(End::Near, near).unwrap(), of(End::Far, far).unwrap());
            // The interface is taken, so packets do go over AF_XDP.
            let again = of(End::Near, "af-xdp").map(|_| ()).unwrap_err().to_string();
            assert!(again.contains("another XDP program") && again.contains(INTERFACE), "{again}");
            let (connection, _accepted) = connect(&near_device, &far_device);
            let memory = board(&far_device, 1 << 20);
            for (salt, len) in [(1, 1), (2, 4_096), (3, 1 << 20)] {
                write_and_compare(&connection, &memory, len, salt);
            }
        }
    }
}
