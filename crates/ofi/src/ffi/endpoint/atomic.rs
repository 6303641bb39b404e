//! `struct fi_ops_atomic`.

use std::ffi::{c_int, c_void};
use std::slice;

use pathweave_tagged::{AtomicForm, AtomicOp, AtomicType, MAX_ATOMIC_BYTES};

use super::super::handles::EpHandle;
use smallvec::smallvec;

use super::super::memory::{Span, Spans};
use crate::abi::atomic::*;
use crate::abi::errno::{FI_EINVAL, FI_EOPNOTSUPP};
use crate::abi::fid::Ep;
use crate::endpoint::{Amo, AtomicFetch, Wanted, flags};
use crate::getinfo::IOV_LIMIT;
use crate::guard::{Errno, FiResult, count, refused, status};

pub(super) static ATOMIC_OPS: OpsAtomic = OpsAtomic {
    size: size_of::<OpsAtomic>(),
    write,
    writev,
    writemsg,
    inject,
    readwrite,
    readwritev,
    readwritemsg,
    compwrite,
    compwritev,
    compwritemsg,
    writevalid,
    readwritevalid,
    compwritevalid,
};

fn kind_of(datatype: u32) -> FiResult<AtomicType> {
    AtomicType::ALL.get(datatype as usize).copied().ok_or(Errno(FI_EOPNOTSUPP))
}

/// Returns the operation of a number. The engine's operations are in libfabric's order, without products.
fn op_of(op: u32) -> FiResult<AtomicOp> {
    let index = match op {
        0..FI_PROD => op,
        FI_PROD => return Err(Errno(FI_EOPNOTSUPP)),
        _ => op - 1,
    };
    AtomicOp::ALL.get(index as usize).copied().ok_or(Errno(FI_EOPNOTSUPP))
}

/// Returns the largest number of values of an operation, and the bytes of one value. `flags` are those of
/// fi_query_atomic.
///
/// # Errors
///
/// Returns FI_EOPNOTSUPP if the operation does not exist for this type, and FI_EINVAL for contradictory
/// flags.
pub(crate) fn valid(datatype: u32, op: u32, flags: u64) -> FiResult<(usize, usize)> {
    let form = match (flags & FI_FETCH_ATOMIC != 0, flags & FI_COMPARE_ATOMIC != 0) {
        (false, false) => AtomicForm::Plain,
        (true, false) => AtomicForm::Fetch,
        (false, true) => AtomicForm::Compare,
        (true, true) => return Err(Errno(FI_EINVAL)),
    };
    let (kind, op) = (kind_of(datatype)?, op_of(op)?);
    if !op.is_valid(kind, form) {
        return Err(Errno(FI_EOPNOTSUPP));
    }
    Ok((MAX_ATOMIC_BYTES as usize / kind.size(), kind.size()))
}

/// Values of an operation, as callers pass them.
#[derive(Clone, Copy)]
enum Values {
    /// Contiguous values: pointer and number.
    At(*const c_void, usize),
    /// Vectors of values: pointer and number of vectors.
    In(*const Ioc, usize),
}

impl Values {
    /// Returns the memory of the values.
    ///
    /// # Safety
    ///
    /// The values stay valid until the operation is done.
    unsafe fn spans(self, size: usize) -> FiResult<Spans> {
        let bytes = |values: usize| {
            let all = values.checked_mul(size);
            all.ok_or_else(|| refused(FI_EINVAL, format_args!("{values} values of {size} bytes")))
        };
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self {
                Values::At(start, values) => Ok(smallvec![Span::new(start, bytes(values)?)?]),
                Values::In(_, vectors) if vectors > IOV_LIMIT => {
                    Err(refused(FI_EINVAL, format_args!("{vectors} vectors; offered: at most {IOV_LIMIT}")))
                }
                Values::In(_, 0) => Ok(Spans::new()),
                Values::In(iov, _) if iov.is_null() => {
                    Err(refused(FI_EINVAL, "vectors of values are at NULL"))
                }
                Values::In(iov, vectors) => slice::from_raw_parts(iov, vectors)
                    .iter()
                    .map(|ioc| Span::new(ioc.addr, bytes(ioc.count)?))
                    .collect(),
            }
        }
    }
}

/// Values that an operation returns.
enum Back {
    Nothing,
    Old(Values),
    Compared(Values, Values),
}

/// Target and parameters of an operation.
struct Order {
    peer: u64,
    address: u64,
    key: u64,
    datatype: u32,
    op: u32,
    /// Flags; `None` for the endpoint's defaults.
    flags: Option<u64>,
    wanted: Wanted,
}

/// # Safety
///
/// `ep` is an endpoint of this provider. The values stay valid until the operation is done.
unsafe fn post(ep: *mut Ep, operand: Values, back: Back, order: Order) -> isize {
    count(|| {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let endpoint = EpHandle::here(ep)?;
            let (kind, op) = (kind_of(order.datatype)?, op_of(order.op)?);
            let fetch = match back {
                Back::Nothing => AtomicFetch::Nothing,
                Back::Old(result) => AtomicFetch::Old { result: result.spans(kind.size())? },
                Back::Compared(compare, result) => AtomicFetch::Compared {
                    compare: compare.spans(kind.size())?,
                    result: result.spans(kind.size())?,
                },
            };
            // A read takes nothing from its operand, which may be NULL.
            let operand = if op.has_operand() { operand.spans(kind.size())? } else { Spans::new() };
            let values_of = match (&fetch, op.has_operand()) {
                (AtomicFetch::Old { result }, false) => result,
                _ => &operand,
            };
            let bytes: usize = values_of.iter().map(|span| span.len()).sum();
            let amo = Amo {
                peer: order.peer,
                operand: operand.clone(),
                address: order.address,
                key: order.key,
                op,
                kind,
                count: bytes / kind.size(),
                flags: order.flags.unwrap_or_else(|| flags(&endpoint.transmit_flags)),
                wanted: order.wanted,
                fetch,
            };
            endpoint.with(|core| core.atomic(amo))?;
        }
        Ok(0)
    })
}

/// # Safety
///
/// `ep` is an endpoint of this provider. The values of the message stay valid until the operation is done.
unsafe fn post_message(ep: *mut Ep, msg: *const MsgAtomic, back: Back, given: u64) -> isize {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let Some(msg) = msg.as_ref() else { return -(FI_EINVAL as isize) };
        // Scattered values of a peer would need one message each, so they are not supported.
        if msg.rma_iov_count != 1 || msg.rma_iov.is_null() {
            return -(FI_EINVAL as isize);
        }
        let far = &*msg.rma_iov;
        let order = Order {
            peer: msg.addr,
            address: far.addr,
            key: far.key,
            datatype: msg.datatype,
            op: msg.op,
            flags: Some(given),
            wanted: Wanted::Context(msg.context as usize),
        };
        post(ep, Values::In(msg.msg_iov, msg.iov_count), back, order)
    }
}

fn order(peer: u64, address: u64, key: u64, datatype: u32, op: u32, context: *mut c_void) -> Order {
    let wanted = Wanted::Context(context as usize);
    Order { peer, address, key, datatype, op, flags: None, wanted }
}

// The functions below have the parameters that the manual documents. Each one forwards them.

unsafe extern "C" fn write(
    ep: *mut Ep,
    buf: *const c_void,
    count: usize,
    _: *mut c_void,
    peer: u64,
    address: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> isize {
    let order = order(peer, address, key, datatype, op, context);
    // SAFETY: the arguments of fi_atomic.
    unsafe { post(ep, Values::At(buf, count), Back::Nothing, order) }
}

unsafe extern "C" fn writev(
    ep: *mut Ep,
    iov: *const Ioc,
    _: *mut *mut c_void,
    count: usize,
    peer: u64,
    address: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> isize {
    let order = order(peer, address, key, datatype, op, context);
    // SAFETY: the arguments of fi_atomicv.
    unsafe { post(ep, Values::In(iov, count), Back::Nothing, order) }
}

unsafe extern "C" fn writemsg(ep: *mut Ep, msg: *const MsgAtomic, flags: u64) -> isize {
    // SAFETY: the arguments of fi_atomicmsg.
    unsafe { post_message(ep, msg, Back::Nothing, flags) }
}

unsafe extern "C" fn inject(
    ep: *mut Ep,
    buf: *const c_void,
    count: usize,
    peer: u64,
    address: u64,
    key: u64,
    datatype: u32,
    op: u32,
) -> isize {
    let order =
        Order { wanted: Wanted::Nothing, ..order(peer, address, key, datatype, op, std::ptr::null_mut()) };
    // SAFETY: the arguments of fi_inject_atomic.
    unsafe { post(ep, Values::At(buf, count), Back::Nothing, order) }
}

unsafe extern "C" fn readwrite(
    ep: *mut Ep,
    buf: *const c_void,
    count: usize,
    _: *mut c_void,
    result: *mut c_void,
    _: *mut c_void,
    peer: u64,
    address: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> isize {
    let order = order(peer, address, key, datatype, op, context);
    // SAFETY: the arguments of fi_fetch_atomic.
    unsafe { post(ep, Values::At(buf, count), Back::Old(Values::At(result, count)), order) }
}

unsafe extern "C" fn readwritev(
    ep: *mut Ep,
    iov: *const Ioc,
    _: *mut *mut c_void,
    count: usize,
    result: *mut Ioc,
    _: *mut *mut c_void,
    result_count: usize,
    peer: u64,
    address: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> isize {
    let order = order(peer, address, key, datatype, op, context);
    // SAFETY: the arguments of fi_fetch_atomicv.
    unsafe { post(ep, Values::In(iov, count), Back::Old(Values::In(result, result_count)), order) }
}

unsafe extern "C" fn readwritemsg(
    ep: *mut Ep,
    msg: *const MsgAtomic,
    result: *mut Ioc,
    _: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> isize {
    // SAFETY: the arguments of fi_fetch_atomicmsg.
    unsafe { post_message(ep, msg, Back::Old(Values::In(result, result_count)), flags) }
}

unsafe extern "C" fn compwrite(
    ep: *mut Ep,
    buf: *const c_void,
    count: usize,
    _: *mut c_void,
    compare: *const c_void,
    _: *mut c_void,
    result: *mut c_void,
    _: *mut c_void,
    peer: u64,
    address: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> isize {
    let order = order(peer, address, key, datatype, op, context);
    let back = Back::Compared(Values::At(compare, count), Values::At(result, count));
    // SAFETY: the arguments of fi_compare_atomic.
    unsafe { post(ep, Values::At(buf, count), back, order) }
}

unsafe extern "C" fn compwritev(
    ep: *mut Ep,
    iov: *const Ioc,
    _: *mut *mut c_void,
    count: usize,
    compare: *const Ioc,
    _: *mut *mut c_void,
    compare_count: usize,
    result: *mut Ioc,
    _: *mut *mut c_void,
    result_count: usize,
    peer: u64,
    address: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> isize {
    let order = order(peer, address, key, datatype, op, context);
    let back = Back::Compared(Values::In(compare, compare_count), Values::In(result, result_count));
    // SAFETY: the arguments of fi_compare_atomicv.
    unsafe { post(ep, Values::In(iov, count), back, order) }
}

unsafe extern "C" fn compwritemsg(
    ep: *mut Ep,
    msg: *const MsgAtomic,
    compare: *const Ioc,
    _: *mut *mut c_void,
    compare_count: usize,
    result: *mut Ioc,
    _: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> isize {
    let back = Back::Compared(Values::In(compare, compare_count), Values::In(result, result_count));
    // SAFETY: the arguments of fi_compare_atomicmsg.
    unsafe { post_message(ep, msg, back, flags) }
}

/// # Safety
///
/// `count` is NULL or writable.
unsafe fn tell_valid(datatype: u32, op: u32, flags: u64, count: *mut usize) -> c_int {
    status(|| {
        let (most, _) = valid(datatype, op, flags)?;
        // SAFETY: guaranteed by the caller.
        if let Some(count) = unsafe { count.as_mut() } {
            *count = most;
        }
        Ok(())
    })
}

unsafe extern "C" fn writevalid(_: *mut Ep, datatype: u32, op: u32, count: *mut usize) -> c_int {
    // SAFETY: the arguments of fi_atomicvalid.
    unsafe { tell_valid(datatype, op, 0, count) }
}

unsafe extern "C" fn readwritevalid(_: *mut Ep, datatype: u32, op: u32, count: *mut usize) -> c_int {
    // SAFETY: the arguments of fi_fetch_atomicvalid.
    unsafe { tell_valid(datatype, op, FI_FETCH_ATOMIC, count) }
}

unsafe extern "C" fn compwritevalid(_: *mut Ep, datatype: u32, op: u32, count: *mut usize) -> c_int {
    // SAFETY: the arguments of fi_compare_atomicvalid.
    unsafe { tell_valid(datatype, op, FI_COMPARE_ATOMIC, count) }
}
