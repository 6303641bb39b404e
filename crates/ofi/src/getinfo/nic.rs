//! Hardware properties of an interface, as the system reports them. Properties that the system does not
//! report are left out.

use std::ffi::OsStr;
use std::path::Path;

use crate::abi::fabric::{FI_LINK_DOWN, FI_LINK_UNKNOWN, FI_LINK_UP};
use pathweave_door::file_text as said;

/// Hardware of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Nic {
    /// Hexadecimal numbers of the PCI function: device, and below revision and vendor.
    pub(crate) device_id: Option<String>,
    pub(crate) device_version: Option<String>,
    pub(crate) vendor_id: Option<String>,
    pub(crate) driver: Option<String>,
    /// Address of the link layer.
    pub(crate) address: Option<String>,
    /// One of `FI_LINK_*`.
    pub(crate) state: u32,
    pub(crate) network_type: Option<&'static str>,
}

impl Nic {
    /// Reads the folder of an interface, such as `/sys/class/net/eth0`.
    pub(crate) fn read(folder: &Path) -> Self {
        let of = |what: &str| said(&folder.join(what));
        let device = folder.join("device").canonicalize().ok();
        let driver = device.as_ref().and_then(|device| device.join("driver").canonicalize().ok());
        let mut nic = Nic {
            driver: driver.and_then(|driver| Some(driver.file_name()?.to_str()?.to_owned())),
            // Loopback and tunnels have an address of zeros, or none.
            address: of("address").filter(|address| address.contains(|digit| !matches!(digit, '0' | ':'))),
            state: state(of("operstate").as_deref(), of("carrier").as_deref()),
            network_type: of("type").and_then(|number| network_type(&number)),
            ..Nic::default()
        };
        // A virtio device is below the PCI function that carries it.
        let mut above = device.iter().flat_map(|device| device.ancestors());
        if let Some(function) = above.find(|path| path.file_name().is_some_and(is_function)) {
            nic.device_id = said(&function.join("device"));
            nic.device_version = said(&function.join("revision"));
            nic.vendor_id = said(&function.join("vendor"));
        }
        nic
    }
}

/// Returns true if this is the name of a PCI function: domain, bus, device and function in hexadecimal digits, such as
/// `0000:3b:00.1`.
fn is_function(name: &OsStr) -> bool {
    let parts = || {
        let (domain, rest) = name.to_str()?.split_once(':')?;
        let (bus, rest) = rest.split_once(':')?;
        let (device, function) = rest.split_once('.')?;
        Some([domain, bus, device, function])
    };
    parts().is_some_and(|parts| parts.iter().all(|digits| u32::from_str_radix(digits, 16).is_ok()))
}

/// Returns the link state. Drivers without operational states report `unknown`; then the carrier decides.
fn state(operation: Option<&str>, carrier: Option<&str>) -> u32 {
    match (operation, carrier) {
        (Some("up"), _) | (Some("unknown"), Some("1")) => FI_LINK_UP,
        (Some("down" | "lowerlayerdown" | "notpresent"), _) | (Some("unknown"), Some("0")) => FI_LINK_DOWN,
        _ => FI_LINK_UNKNOWN,
    }
}

/// `ARPHRD_ETHER` and `ARPHRD_INFINIBAND`.
fn network_type(number: &str) -> Option<&'static str> {
    match number {
        "1" => Some("Ethernet"),
        "32" => Some("InfiniBand"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// Makes a tree like `/sys`, with one interface whose device is at `device` below the root.
    fn tree(name: &str, device: &str, files: &[(&str, &str)]) -> std::path::PathBuf {
        let root = std::env::temp_dir().join(format!("pathweave-nic-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let interface = root.join("class/net/eth7");
        fs::create_dir_all(&interface).unwrap();
        if !device.is_empty() {
            fs::create_dir_all(root.join(device)).unwrap();
            symlink(root.join(device), interface.join("device")).unwrap();
        }
        for (path, text) in files {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        root
    }

    #[test]
    fn a_port_of_a_card_has_its_numbers_and_its_driver() {
        let function = "devices/pci0000:3a/0000:3a:00.0/0000:3b:1f.1";
        let files = [
            ("devices/pci0000:3a/0000:3a:00.0/0000:3b:1f.1/vendor", "0x15b3\n"),
            ("devices/pci0000:3a/0000:3a:00.0/0000:3b:1f.1/device", "0x101e\n"),
            ("devices/pci0000:3a/0000:3a:00.0/0000:3b:1f.1/revision", "0x00\n"),
            ("class/net/eth7/address", "b8:ce:f6:00:00:01\n"),
            ("class/net/eth7/operstate", "up\n"),
            ("class/net/eth7/type", "1\n"),
            ("bus/pci/drivers/mlx5_core/bind", ""),
        ];
        let root = tree("card", function, &files);
        symlink(root.join("bus/pci/drivers/mlx5_core"), root.join(function).join("driver")).unwrap();
        let nic = Nic::read(&root.join("class/net/eth7"));
        let some = |text: &str| Some(text.to_owned());
        let expected = Nic {
            device_id: some("0x101e"),
            device_version: some("0x00"),
            vendor_id: some("0x15b3"),
            driver: some("mlx5_core"),
            address: some("b8:ce:f6:00:00:01"),
            state: FI_LINK_UP,
            network_type: Some("Ethernet"),
        };
        assert_eq!(nic, expected);
        // A virtio device is below the PCI function.
        fs::remove_file(root.join("class/net/eth7/device")).unwrap();
        let virtio = root.join(function).join("virtio2");
        fs::create_dir_all(&virtio).unwrap();
        symlink(&virtio, root.join("class/net/eth7/device")).unwrap();
        let nic = Nic::read(&root.join("class/net/eth7"));
        assert_eq!((nic.vendor_id, nic.driver), (some("0x15b3"), None));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn nothing_is_claimed_of_what_is_no_device() {
        let files = [
            ("class/net/eth7/address", "00:00:00:00:00:00\n"),
            ("class/net/eth7/operstate", "unknown\n"),
            ("class/net/eth7/carrier", "1\n"),
            ("class/net/eth7/type", "772\n"),
        ];
        let root = tree("none", "", &files);
        let nic = Nic::read(&root.join("class/net/eth7"));
        assert_eq!(nic, Nic { state: FI_LINK_UP, ..Nic::default() });
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(Nic::read(&root), Nic::default());
        let functions = ["virtio2", "pci0000:00", "10000:00:1f.6"].map(|name| is_function(OsStr::new(name)));
        assert_eq!(functions, [false, false, true], "domains of virtual machines have more than 16 bits");
    }

    #[test]
    fn a_link_is_up_or_down_where_the_system_says_so() {
        let of = |operation, carrier| state(Some(operation), carrier);
        assert_eq!((of("up", None), of("unknown", Some("1"))), (FI_LINK_UP, FI_LINK_UP));
        assert_eq!((of("down", None), of("unknown", Some("0"))), (FI_LINK_DOWN, FI_LINK_DOWN));
        assert_eq!((of("dormant", Some("1")), state(None, None)), (FI_LINK_UNKNOWN, FI_LINK_UNKNOWN));
    }
}
