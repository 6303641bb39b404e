//! Properties of the device that NCCL sees: all interfaces together.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use pathweave_door::{Interface, Settings, file_text};

/// Rate that is reported if the system knows none.
const UNKNOWN_SPEED_MBPS: u64 = 10_000;

/// Properties, with strings that live as long as the process.
pub(crate) struct Properties {
    /// Names of the interfaces.
    pub(crate) name: CString,
    /// Folder of the PCI device, if there is one interface and it has one. NCCL takes a device without one for attached
    /// to the processor.
    pub(crate) pci_path: Option<CString>,
    /// Hardware address of the first interface.
    pub(crate) guid: u64,
    /// Total rate.
    pub(crate) speed_mbps: u64,
}

impl Properties {
    pub(crate) fn of(interfaces: &[&Interface], settings: &Settings) -> Self {
        let mut names: Vec<&str> = interfaces.iter().map(|interface| interface.name.as_str()).collect();
        names.dedup();
        let rate = settings.rate(interfaces.iter().copied());
        let folders: Vec<_> = interfaces.iter().map(|interface| interface.folder()).collect();
        Properties {
            name: CString::new(names.join("+")).unwrap_or_default(),
            pci_path: folders.first().filter(|_| folders.len() == 1).and_then(|folder| pci_path(folder)),
            guid: folders.first().and_then(|folder| guid(folder)).unwrap_or_default(),
            speed_mbps: rate.map_or(UNKNOWN_SPEED_MBPS, |rate| rate.as_bps() / 1_000_000).max(1),
        }
    }
}

/// Returns the folder of an interface's device.
fn pci_path(folder: &Path) -> Option<CString> {
    let path = folder.join("device").canonicalize().ok()?;
    CString::new(path.as_os_str().as_bytes()).ok()
}

/// Returns the hardware address of an interface as a number.
fn guid(folder: &Path) -> Option<u64> {
    let text = file_text(&folder.join("address"))?;
    u64::from_str_radix(&text.replace(':', ""), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_device_has_the_place_and_the_address_that_the_system_reports() {
        let root = std::env::temp_dir().join(format!("pathweave-nccl-{}", std::process::id()));
        let (device, interface) = (root.join("pci0000:3a/0000:3b:00.1"), root.join("eth7"));
        fs::create_dir_all(&device).unwrap();
        fs::create_dir_all(&interface).unwrap();
        assert_eq!((pci_path(&interface), guid(&interface)), (None, None));
        std::os::unix::fs::symlink(&device, interface.join("device")).unwrap();
        fs::write(interface.join("address"), "b8:ce:f6:00:00:01\n").unwrap();
        let device = CString::new(device.canonicalize().unwrap().as_os_str().as_bytes()).unwrap();
        assert_eq!((pci_path(&interface), guid(&interface)), (Some(device), Some(0xb8ce_f600_0001)));
        fs::remove_dir_all(&root).unwrap();
    }
}
