//! `struct fid_nic`: the hardware of an answer of `fi_getinfo`. `fi_freeinfo` closes it, and `fi_dupinfo`
//! requests a copy, so all of it is allocated with the C library.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use super::handle::fid;
use super::{text, unsupported};
use crate::abi::errno::{FI_ENOMEM, FI_ENOSYS};
use crate::abi::fabric::*;
use crate::getinfo::Nic;
use crate::guard::{Errno, status};

static OPS: Ops = Ops { close, control, ..unsupported::OPS };

/// Link attributes that come from the answer, not from the hardware.
pub(super) struct Link<'a> {
    pub(super) name: &'a str,
    pub(super) mtu: usize,
    /// Rate in bit/s; zero if unknown.
    pub(super) bits_per_second: u64,
}

/// Makes the structure. Returns NULL without memory.
///
/// The place on the PCI bus is left out. MPICH looks it up in its own hwloc, and ends the program if that one does not
/// know PCI, as in the package of the Python index. Without a place it looks for the name of the domain, which is that
/// of the interface.
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
    let link = LinkAttr {
        address: optional(nic.address.as_deref()),
        mtu: link.mtu,
        speed: link.bits_per_second as usize,
        state: nic.state,
        network_type: optional(nic.network_type),
    };
    whole(&device, BusAttr { bus_type: FI_BUS_UNSPEC, attr: PciAttr::default() }, &link)
}

/// Assembles the structure and takes over the strings. Returns NULL without memory, after freeing all parts.
fn whole(device: &DeviceAttr, bus: BusAttr, link: &LinkAttr) -> *mut FidNic {
    let (device_attr, bus_attr, link_attr) = (text::boxed(*device), text::boxed(bus), text::boxed(*link));
    let fid = fid(FI_CLASS_NIC, ptr::null_mut(), &OPS);
    let nic = FidNic { fid, device_attr, bus_attr, link_attr, prov_attr: ptr::null_mut() };
    let boxed = text::boxed(nic);
    if device_attr.is_null() || bus_attr.is_null() || link_attr.is_null() || boxed.is_null() {
        // SAFETY: the parts were made by the caller and here, and have no other owner.
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
///
/// The strings are NULL or allocated with the C library, and are not used any more.
unsafe fn free_strings(device: &DeviceAttr, link: &LinkAttr) {
    let DeviceAttr { name, device_id, device_version, vendor_id, driver, firmware } = *device;
    for text in
        [name, device_id, device_version, vendor_id, driver, firmware, link.address, link.network_type]
    {
        // SAFETY: guaranteed by the caller.
        unsafe { libc::free(text.cast()) };
    }
}

/// Frees the structure.
///
/// # Safety
///
/// `nic` is NULL, or comes from [`made`] of this library or of another copy of this provider, and is not used
/// any more.
pub(super) unsafe fn free(nic: *mut FidNic) {
    // SAFETY: guaranteed by the caller.
    let Some(FidNic { device_attr, bus_attr, link_attr, .. }) = (unsafe { nic.as_ref() }).copied() else {
        return;
    };
    // SAFETY: as above; none of the three is NULL.
    unsafe {
        free_strings(&*device_attr, &*link_attr);
        for part in [device_attr.cast(), bus_attr.cast(), link_attr.cast(), nic.cast::<c_void>()] {
            libc::free(part);
        }
    }
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    status(|| {
        // SAFETY: the structure was made by this provider, and the caller gives it up.
        unsafe { free(fid.cast()) };
        Ok(())
    })
}

unsafe extern "C" fn control(fid: *mut Fid, command: c_int, to: *mut c_void) -> c_int {
    status(|| {
        if command != FI_DUP {
            return Err(Errno(FI_ENOSYS));
        }
        // SAFETY: the structure was made by this provider, and `to` has room for a pointer.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_has_no_place_on_a_bus_in_which_mpich_would_not_find_it() {
        let card =
            Nic { vendor_id: Some("0x15b3".into()), driver: Some("mlx5_core".into()), ..Nic::default() };
        let link = Link { name: "eth7", mtu: 1_500, bits_per_second: 0 };
        let nic = made(&card, &link);
        // SAFETY: the structure was just made, and is freed once.
        unsafe {
            assert_eq!((*(*nic).bus_attr).bus_type, FI_BUS_UNSPEC);
            assert_eq!(text::read((*(*nic).device_attr).vendor_id).as_deref(), Some("0x15b3"));
            free(nic);
        }
    }
}
