//! `struct fid_fabric`.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use super::handle::{Handle, class_of, fid};
use super::handles::{CntrHandle, CqHandle, EqHandle, FabricHandle};
use super::{domain, eq, text, unsupported};
use crate::abi::errno::{FI_EINVAL, FI_ENODATA, FI_ENOSYS};
use crate::abi::fabric::*;
use crate::guard::{Errno, FiResult, refused, status};
use crate::object::domain::Fabric;

static OPS: Ops = Ops { close, ..unsupported::OPS };

static FABRIC_OPS: OpsFabric = OpsFabric {
    size: size_of::<OpsFabric>(),
    domain: domain::open,
    passive_ep: unsupported::open4,
    eq_open: eq::open,
    wait_open: unsupported::open3,
    trywait,
    domain2: domain::open2,
};

/// Opens a fabric.
///
/// # Safety
///
/// The arguments are those of `fi_fabric`, and none is NULL.
pub(super) unsafe fn open(attr: &FabricAttr, to: *mut *mut FidFabric, context: *mut c_void) -> FiResult {
    // SAFETY: a string or NULL.
    let name = unsafe { text::read(attr.name) }.unwrap_or_default();
    let known = pathweave_door::interfaces().iter().any(|interface| interface.subnet().to_string() == name);
    if !known {
        return Err(Errno(FI_ENODATA));
    }
    let face = FidFabric {
        fid: fid(FI_CLASS_FABRIC, context, &OPS),
        ops: &raw const FABRIC_OPS,
        api_version: attr.api_version,
    };
    let fabric = Arc::new(Fabric { name, api_version: attr.api_version, uses: Default::default() });
    // SAFETY: `to` is not NULL.
    unsafe { Handle::give(face, fabric, None, to) };
    Ok(())
}

/// Returns the subnet of a fabric, if it belongs to this provider.
///
/// # Safety
///
/// `fabric` points to a fabric of any provider.
pub(super) unsafe fn name_of(fabric: *const FidFabric) -> Option<String> {
    // SAFETY: guaranteed by the caller; a fabric with this table belongs to this provider.
    unsafe { ((*fabric).ops == &raw const FABRIC_OPS).then(|| FabricHandle::of(fabric).object.name.clone()) }
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    // SAFETY: the fabric was made by this provider, and the caller gives it up.
    status(|| unsafe { FabricHandle::close(fid, |fabric| &fabric.uses) })
}

/// Returns success if the caller may wait for all of the objects, otherwise FI_EAGAIN.
unsafe extern "C" fn trywait(_: *mut FidFabric, fids: *mut *mut Fid, count: c_int) -> c_int {
    status(|| {
        let count = usize::try_from(count)
            .map_err(|_| refused(FI_EINVAL, format_args!("{count} objects to wait for")))?;
        for index in 0..count {
            // SAFETY: the caller passes `count` pointers.
            let fid = unsafe { *fids.add(index) };
            // SAFETY: a fid of this provider, of the class that it states.
            unsafe {
                match class_of(fid)? {
                    FI_CLASS_CQ => CqHandle::here(fid)?.try_wait()?,
                    FI_CLASS_CNTR => CntrHandle::here(fid)?.try_wait()?,
                    FI_CLASS_EQ => EqHandle::here(fid)?.try_wait()?,
                    class => {
                        return Err(refused(FI_ENOSYS, format_args!("class {class} is not waited for")));
                    }
                }
            }
        }
        Ok(())
    })
}
