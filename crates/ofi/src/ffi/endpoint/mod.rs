//! `struct fid_ep`.

pub(crate) mod atomic;
mod cm;
mod messages;
mod rma;

use std::ffi::{c_int, c_void};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::handle::{Handle, class_of, fid};
use super::handles::{AvHandle, CntrHandle, CqHandle, DomainHandle, EpHandle, EqHandle};
use super::{address, unsupported};
use crate::abi::domain::FidDomain;
use crate::abi::endpoint::*;
use crate::abi::errno::*;
use crate::abi::fabric::*;
use crate::endpoint::{BoundCounter, BoundQueue, Endpoint, New, Selection};
use crate::getinfo::{ALL, RX_OP_FLAGS, TX_OP_FLAGS};
use crate::guard::{Errno, FiResult, count, refused, status};

static OPS: Ops = Ops { close, bind, control, ..unsupported::OPS };

static EP_OPS: OpsEp = OpsEp {
    size: size_of::<OpsEp>(),
    cancel,
    getopt,
    setopt,
    tx_ctx: unsupported::context,
    rx_ctx: unsupported::context,
    rx_size_left: unsupported::size_left,
    tx_size_left: unsupported::size_left,
};

pub(super) unsafe extern "C" fn open(
    domain: *mut FidDomain,
    info: *mut Info,
    to: *mut *mut FidEp,
    context: *mut c_void,
) -> c_int {
    status(|| {
        // SAFETY: the domain was made by this provider, and `info` is NULL or an info.
        unsafe {
            let domain = DomainHandle::here(domain)?;
            let info = info.as_ref().ok_or_else(|| refused(FI_EINVAL, "the info of an endpoint is NULL"))?;
            if to.is_null() {
                return Err(refused(FI_EINVAL, "the place of an endpoint is NULL"));
            }
            if info.ep_attr.as_ref().is_some_and(|attr| ![FI_EP_UNSPEC, FI_EP_RDM].contains(&attr.type_)) {
                return Err(refused(FI_EINVAL, "endpoints are of type FI_EP_RDM alone"));
            }
            let wish: Option<SocketAddr> = address::read(info.src_addr, info.src_addrlen);
            let caps = if info.caps == 0 { ALL } else { info.caps };
            let endpoint = Endpoint::open(domain.clone(), wish, caps)?;
            let transmit = info.tx_attr.as_ref().map_or(0, |attr| attr.op_flags);
            let receive = info.rx_attr.as_ref().map_or(0, |attr| attr.op_flags);
            endpoint.transmit_flags.store(transmit & TX_OP_FLAGS, Ordering::Relaxed);
            endpoint.receive_flags.store(receive & RX_OP_FLAGS, Ordering::Relaxed);
            let face = FidEp {
                fid: fid(FI_CLASS_EP, context, &OPS),
                ops: &raw const EP_OPS,
                cm: &raw const cm::CM_OPS,
                msg: &raw const messages::MSG_OPS,
                rma: &raw const rma::RMA_OPS,
                tagged: &raw const messages::TAGGED_OPS,
                atomic: &raw const atomic::ATOMIC_OPS,
                collective: std::ptr::null(),
            };
            Handle::give(face, endpoint, Some(domain.uses.begin()), to);
        }
        Ok(())
    })
}

/// Opens an endpoint with flags. Flags request shared endpoints, which the provider does not support.
pub(super) unsafe extern "C" fn open2(
    domain: *mut FidDomain,
    info: *mut Info,
    to: *mut *mut FidEp,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if flags != 0 {
        return -refused(FI_ENOSYS, format_args!("flags {flags:#x} of fi_endpoint2 are not offered")).0;
    }
    // SAFETY: the arguments are those of fi_endpoint.
    unsafe { open(domain, info, to, context) }
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    status(|| {
        // SAFETY: the endpoint was made by this provider, and the caller gives it up.
        let handle = unsafe { EpHandle::take(fid) };
        if handle.process.is_this() {
            handle.object.close();
        } else {
            handle.object.abandon();
        }
        Ok(())
    })
}

/// # Safety
///
/// `other` points to a fid of the class that it states.
unsafe fn bind_to(new: &mut New, other: *mut Fid, flags: u64) -> FiResult {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match class_of(other)? {
            FI_CLASS_CQ => {
                let completions = CqHandle::here(other)?;
                let selection =
                    if flags & FI_SELECTIVE_COMPLETION == 0 { Selection::All } else { Selection::Flagged };
                let held = Arc::new(completions.uses.begin());
                let bound = BoundQueue { queue: completions.queue.clone(), selection, _held: held };
                if flags & (FI_TRANSMIT | FI_RECV) == 0 {
                    return Err(refused(
                        FI_EBADFLAGS,
                        "a completion queue is bound neither for sending nor for receiving",
                    ));
                }
                if flags & FI_TRANSMIT != 0 {
                    new.reporter.transmit = Some(bound.clone());
                }
                if flags & FI_RECV != 0 {
                    new.reporter.receive = Some(bound);
                }
            }
            FI_CLASS_CNTR => {
                let counter = CntrHandle::here(other)?;
                let held = counter.uses.begin();
                new.reporter.counters.push(BoundCounter { counter: counter.clone(), flags, _held: held });
            }
            FI_CLASS_AV => {
                let addresses = AvHandle::here(other)?;
                new.vector = Some((addresses.vector.clone(), addresses.vector.uses.begin()));
            }
            // An endpoint without connections has no events for it.
            FI_CLASS_EQ => drop(EqHandle::here(other)?.uses.begin()),
            class => {
                return Err(refused(FI_ENOSYS, format_args!("class {class} is not bound to an endpoint")));
            }
        }
    }
    Ok(())
}

unsafe extern "C" fn bind(fid: *mut Fid, other: *mut Fid, flags: u64) -> c_int {
    status(|| {
        // SAFETY: the endpoint was made by this provider.
        let endpoint = unsafe { EpHandle::here(fid) }?;
        let mut answer = Ok(());
        // SAFETY: `other` is a fid, guaranteed by the caller of fi_ep_bind.
        endpoint.bind(|new| answer = unsafe { bind_to(new, other, flags) })?;
        answer
    })
}

unsafe extern "C" fn control(fid: *mut Fid, command: c_int, arg: *mut c_void) -> c_int {
    status(|| {
        // SAFETY: the endpoint was made by this provider.
        let endpoint = unsafe { EpHandle::here(fid) }?;
        match command {
            FI_ENABLE => endpoint.enable(),
            FI_GETOPSFLAG | FI_SETOPSFLAG => {
                // SAFETY: the argument has the type that the command requires.
                let flags = unsafe { arg.cast::<u64>().as_mut() }
                    .ok_or_else(|| refused(FI_EINVAL, "the place of flags is NULL"))?;
                let (of, allowed) = match *flags & (FI_TRANSMIT | FI_RECV) {
                    FI_TRANSMIT => (&endpoint.transmit_flags, TX_OP_FLAGS),
                    FI_RECV => (&endpoint.receive_flags, RX_OP_FLAGS),
                    _ => return Err(refused(FI_EINVAL, "flags are either of sending or of receiving")),
                };
                if command == FI_GETOPSFLAG {
                    *flags = of.load(Ordering::Relaxed);
                    return Ok(());
                }
                let wish = *flags & !(FI_TRANSMIT | FI_RECV);
                if wish & !allowed != 0 {
                    return Err(refused(
                        FI_EBADFLAGS,
                        format_args!("default flags {wish:#x}; offered: {allowed:#x}"),
                    ));
                }
                of.store(wish, Ordering::Relaxed);
                Ok(())
            }
            _ => Err(refused(FI_ENOSYS, format_args!("command {command} is not offered"))),
        }
    })
}

unsafe extern "C" fn cancel(fid: *mut Fid, context: *mut c_void) -> isize {
    count(|| {
        // SAFETY: the endpoint was made by this provider.
        let endpoint = unsafe { EpHandle::here(fid) }?;
        endpoint.with(|core| {
            core.cancel(context as usize);
            Ok(0)
        })
    })
}

unsafe extern "C" fn getopt(
    fid: *mut Fid,
    level: c_int,
    name: c_int,
    to: *mut c_void,
    len: *mut usize,
) -> c_int {
    status(|| {
        // SAFETY: the endpoint was made by this provider.
        let endpoint = unsafe { EpHandle::here(fid) }?;
        let value = match (level, name) {
            (FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV) => endpoint.least_room.load(Ordering::Relaxed),
            (FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE) => 0,
            _ => return Err(Errno(FI_ENOPROTOOPT)),
        };
        if to.is_null() || len.is_null() {
            return Err(refused(FI_EINVAL, "the place of an option is NULL"));
        }
        // SAFETY: there is room for `*len` bytes.
        unsafe {
            if *len < size_of::<usize>() {
                return Err(Errno(FI_ETOOSMALL));
            }
            to.cast::<usize>().write_unaligned(value);
            len.write(size_of::<usize>());
        }
        Ok(())
    })
}

unsafe extern "C" fn setopt(
    fid: *mut Fid,
    level: c_int,
    name: c_int,
    from: *const c_void,
    len: usize,
) -> c_int {
    status(|| {
        // SAFETY: the endpoint was made by this provider.
        let endpoint = unsafe { EpHandle::here(fid) }?;
        if (level, name) != (FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV) {
            return Err(Errno(FI_ENOPROTOOPT));
        }
        if from.is_null() || len != size_of::<usize>() {
            return Err(refused(FI_EINVAL, format_args!("an option of {len} bytes, or at NULL")));
        }
        // SAFETY: the caller guarantees this many bytes.
        endpoint.least_room.store(unsafe { from.cast::<usize>().read_unaligned() }, Ordering::Relaxed);
        Ok(())
    })
}
