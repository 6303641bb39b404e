//! `struct fid_domain`.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use super::handle::{Handle, fid};
use super::handles::{DomainHandle, FabricHandle};
use super::{address, cntr, cq, endpoint, info, mr, unsupported, vector};
use crate::abi::atomic::AtomicAttr;
use crate::abi::domain::*;
use crate::abi::errno::{FI_EINVAL, FI_ENODATA, FI_ENOSYS};
use crate::abi::fabric::*;
use crate::getinfo::Target;
use crate::guard::{Errno, FiResult, refused, status};
use crate::log::log_once;
use crate::object::domain::{Domain, RegionNaming};
use crate::settings;

static OPS: Ops = Ops { close, bind, ..unsupported::OPS };

static DOMAIN_OPS: OpsDomain = OpsDomain {
    size: size_of::<OpsDomain>(),
    av_open: vector::open,
    cq_open: cq::open,
    endpoint: endpoint::open,
    scalable_ep: unsupported::open4,
    cntr_open: cntr::open,
    poll_open: unsupported::open3,
    stx_ctx: unsupported::open4,
    srx_ctx: unsupported::open4,
    query_atomic,
    query_collective,
    endpoint2: endpoint::open2,
};

pub(super) unsafe extern "C" fn open(
    fabric: *mut FidFabric,
    info: *mut Info,
    to: *mut *mut FidDomain,
    context: *mut c_void,
) -> c_int {
    status(|| {
        // SAFETY: the fabric was made by this provider, and `info` is NULL or an info.
        unsafe {
            let fabric = FabricHandle::here(fabric)?;
            let info = info.as_ref().ok_or_else(|| refused(FI_EINVAL, "the info of a domain is NULL"))?;
            if to.is_null() {
                return Err(refused(FI_EINVAL, "the place of a domain is NULL"));
            }
            let domain = domain(fabric, info)?;
            let face = FidDomain {
                fid: fid(FI_CLASS_DOMAIN, context, &OPS),
                ops: &raw const DOMAIN_OPS,
                mr: &raw const mr::MR_OPS,
            };
            Handle::give(face, Arc::new(domain), Some(fabric.uses.begin()), to);
        }
        Ok(())
    })
}

/// Opens a domain with flags. Flags request domains that share their endpoints' peers, which the provider
/// does not support.
pub(super) unsafe extern "C" fn open2(
    fabric: *mut FidFabric,
    info: *mut Info,
    to: *mut *mut FidDomain,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if flags != 0 {
        return -refused(FI_ENOSYS, format_args!("flags {flags:#x} of fi_domain2 are not offered")).0;
    }
    // SAFETY: the arguments are those of fi_domain.
    unsafe { open(fabric, info, to, context) }
}

/// Returns the domain behind a pointer, if it belongs to this provider.
///
/// # Safety
///
/// `domain` points to a domain of any provider.
pub(super) unsafe fn opened<'a>(domain: *const FidDomain) -> Option<&'a Domain> {
    // SAFETY: guaranteed by the caller; a domain with this table belongs to this provider.
    unsafe { ((*domain).ops == &raw const DOMAIN_OPS).then(|| &*DomainHandle::of(domain).object) }
}

/// # Safety
///
/// `info` is a complete info.
unsafe fn domain(fabric: &Arc<crate::object::domain::Fabric>, info: &Info) -> FiResult<Domain> {
    let settings = settings::from_environment().map_err(|error| {
        log_once(&error.to_string());
        Errno(FI_ENODATA)
    })?;
    // SAFETY: guaranteed by the caller.
    let hints = unsafe { info::domain_hints(info.domain_attr) }
        .ok_or_else(|| refused(FI_EINVAL, "the attribute of a domain is NULL"))?;
    // SAFETY: as above.
    let src = unsafe { address::read(info.src_addr, info.src_addrlen) };
    let is_meant = |interface: &crate::getinfo::Interface| {
        interface.subnet().to_string() == fabric.name
            && hints.name.as_deref().is_none_or(|name| interface.name == name)
            && src.is_none_or(|src| src.ip().is_unspecified() || src.ip() == interface.address)
    };
    let all = settings.place.all(&pathweave_door::interfaces());
    let interface = all.iter().find(|interface| is_meant(interface)).ok_or(Errno(FI_ENODATA))?.clone();
    // An interface that the environment does not name was requested by name, and is used alone.
    let others = settings.place.others(&interface, &all).unwrap_or_default();
    let naming = RegionNaming::of(hints.attr.mr_mode, Target::of(info.caps));
    Ok(Domain::new(fabric.clone(), (interface, others), settings, naming))
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    // SAFETY: the domain was made by this provider, and the caller gives it up.
    status(|| unsafe { DomainHandle::close(fid, |domain| &domain.uses) })
}

/// Accepts an event queue, which never gets an event, because memory is registered synchronously.
unsafe extern "C" fn bind(_: *mut Fid, _: *mut Fid, _: u64) -> c_int {
    0
}

unsafe extern "C" fn query_atomic(
    _: *mut FidDomain,
    datatype: u32,
    op: u32,
    attr: *mut AtomicAttr,
    flags: u64,
) -> c_int {
    status(|| {
        // SAFETY: `attr` is NULL or points to an attribute structure.
        let attr = unsafe { attr.as_mut() }
            .ok_or_else(|| refused(FI_EINVAL, "the attribute of an atomic is NULL"))?;
        let (count, size) = endpoint::atomic::valid(datatype, op, flags)?;
        *attr = AtomicAttr { count, size };
        Ok(())
    })
}

unsafe extern "C" fn query_collective(_: *mut FidDomain, _: u32, _: *mut c_void, _: u64) -> c_int {
    -FI_ENOSYS
}
