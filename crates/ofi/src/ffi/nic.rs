//! `struct fid_nic`: the hardware of an answer of `fi_getinfo`. `fi_freeinfo` closes it and `fi_dupinfo` asks it for a copy, so that
//! all of it is of the C library's memory.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use super::handle::fid;
use super::{text, unsupported};
use crate::abi::errno::{FI_ENOMEM, FI_ENOSYS};
use crate::abi::fabric::*;
use crate::getinfo::Nic;
use crate::guard::{Errno, status};

static OPS: Ops = Ops { close, control, ..unsupported::OPS };

/// Of the answer as a whole, beside the hardware.
pub(super) struct Link<'a> {
    pub(super) name: &'a str,
    pub(super) mtu: usize,
    /// Zero: not known.
    pub(super) bits_per_second: u64,
}

/// NULL without memory.
pub(super) fn made(nic: &Nic, link: &Link<'_>) -> *mut FidNic {
    let optional = |text: Option<&str>| text.map_or(ptr::null_mut(), text::duplicate);
    let device = DeviceAttr {
        name: text::duplicate(link.name),
        device_id: optional(nic.device_id.as_deref()),
        device_version: optional(nic.device_version.as_deref()),
        vendor_id: optional(nic.vendor_id.as_deref()),
        driver: optional(nic.driver.as_deref()),
        firmware: ptr::null_mut(),
    };
    let bus_type = if nic.pci.is_some() { FI_BUS_PCI } else { FI_BUS_UNSPEC };
    let link = LinkAttr {
        address: optional(nic.address.as_deref()),
        mtu: link.mtu,
        speed: link.bits_per_second as usize,
        state: nic.state,
        network_type: optional(nic.network_type),
    };
    whole(&device, BusAttr { bus_type, attr: nic.pci.unwrap_or_default() }, &link)
}

/// Strings become the answer's. NULL without memory; then all is free again.
fn whole(device: &DeviceAttr, bus: BusAttr, link: &LinkAttr) -> *mut FidNic {
    let (device_attr, bus_attr, link_attr) = (text::boxed(*device), text::boxed(bus), text::boxed(*link));
    let fid = fid(FI_CLASS_NIC, ptr::null_mut(), &OPS);
    let nic = FidNic { fid, device_attr, bus_attr, link_attr, prov_attr: ptr::null_mut() };
    let boxed = text::boxed(nic);
    if device_attr.is_null() || bus_attr.is_null() || link_attr.is_null() || boxed.is_null() {
        // SAFETY: made by the caller and here, and nobody else has them.
        unsafe {
            free_strings(device, link);
            for part in [device_attr.cast(), bus_attr.cast(), link_attr.cast(), boxed.cast::<c_void>()] {
                libc::free(part);
            }
        }
        return ptr::null_mut();
    }
    boxed
}

/// # Safety
/// The strings are of the C library's memory or NULL, and nobody uses them any more.
unsafe fn free_strings(device: &DeviceAttr, link: &LinkAttr) {
    let DeviceAttr { name, device_id, device_version, vendor_id, driver, firmware } = *device;
    for text in
        [name, device_id, device_version, vendor_id, driver, firmware, link.address, link.network_type]
    {
        // SAFETY: as the caller says.
        unsafe { libc::free(text.cast()) };
    }
}

/// # Safety
/// NULL, or from [`made`] of this library or another of this provider, and nobody uses it any more.
pub(super) unsafe fn free(nic: *mut FidNic) {
    // SAFETY: as the caller says.
    let Some(FidNic { device_attr, bus_attr, link_attr, .. }) = (unsafe { nic.as_ref() }).copied() else {
        return;
    };
    // SAFETY: as above; all three are there.
    unsafe {
        free_strings(&*device_attr, &*link_attr);
        for part in [device_attr.cast(), bus_attr.cast(), link_attr.cast(), nic.cast::<c_void>()] {
            libc::free(part);
        }
    }
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    status(|| {
        // SAFETY: hardware of ours, which the caller gives up.
        unsafe { free(fid.cast()) };
        Ok(())
    })
}

unsafe extern "C" fn control(fid: *mut Fid, command: c_int, to: *mut c_void) -> c_int {
    status(|| {
        if command != FI_DUP {
            return Err(Errno(FI_ENOSYS));
        }
        // SAFETY: hardware of ours, and a place for the copy.
        unsafe {
            let nic = &*fid.cast::<FidNic>();
            let (device, link) = (&*nic.device_attr, &*nic.link_attr);
            let again =
                |text: *mut c_char| text::read(text).map_or(ptr::null_mut(), |text| text::duplicate(&text));
            let device = DeviceAttr {
                name: again(device.name),
                device_id: again(device.device_id),
                device_version: again(device.device_version),
                vendor_id: again(device.vendor_id),
                driver: again(device.driver),
                firmware: again(device.firmware),
            };
            let link =
                LinkAttr { address: again(link.address), network_type: again(link.network_type), ..*link };
            let copy = whole(&device, *nic.bus_attr, &link);
            if copy.is_null() {
                return Err(Errno(FI_ENOMEM));
            }
            to.cast::<*mut FidNic>().write(copy);
        }
        Ok(())
    })
}
