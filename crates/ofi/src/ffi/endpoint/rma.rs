//! `struct fi_ops_rma`.

use std::ffi::c_void;
use std::slice;

use libc::iovec;
use pathweave_tagged::{Segment, Segments};

use super::super::handles::EpHandle;
use super::super::memory::{Spans, one, several};
use crate::abi::errno::FI_EINVAL;
use crate::abi::fabric::FI_REMOTE_CQ_DATA;
use crate::abi::fid::Ep;
use crate::abi::rma::{MsgRma, OpsRma, RmaIov};
use crate::endpoint::{Rma, RmaKind, Wanted, flags};
use crate::guard::{FiResult, count, refused};

pub(super) static RMA_OPS: OpsRma = OpsRma {
    size: size_of::<OpsRma>(),
    read,
    readv,
    readmsg,
    write,
    writev,
    writemsg,
    inject,
    writedata,
    injectdata,
};

/// Memory of the peer.
#[derive(Clone, Copy)]
struct Far {
    peer: u64,
    address: u64,
    key: u64,
}

/// # Safety
///
/// `ep` is an endpoint of this provider. The bytes stay valid until the operation is done.
unsafe fn post(ep: *mut Ep, kind: RmaKind, bytes: FiResult<Spans>, far: Far, wanted: Wanted) -> isize {
    count(|| {
        // SAFETY: guaranteed by the caller.
        let endpoint = unsafe { EpHandle::here(ep) }?;
        let spans = bytes?;
        let len = spans.iter().map(|span| span.len() as u64).sum();
        let segments = Segments::from(Segment { key: far.key, address: far.address, len });
        let flags = flags(&endpoint.transmit_flags);
        endpoint.with(|core| core.rma(Rma { kind, peer: far.peer, spans, segments, flags, wanted }))?;
        Ok(0)
    })
}

/// # Safety
///
/// `ep` is an endpoint of this provider. The bytes of the message stay valid until the operation is done.
unsafe fn post_message(
    ep: *mut Ep,
    msg: *const MsgRma,
    flags: u64,
    kind: impl FnOnce(&MsgRma) -> RmaKind,
) -> isize {
    count(|| {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let endpoint = EpHandle::here(ep)?;
            let msg = msg.as_ref().ok_or_else(|| refused(FI_EINVAL, "a message is NULL"))?;
            if msg.rma_iov.is_null() || msg.rma_iov_count > Segments::MOST {
                return Err(refused(
                    FI_EINVAL,
                    format_args!(
                        "{} remote pieces; offered: at most {}, and not at NULL",
                        msg.rma_iov_count,
                        Segments::MOST
                    ),
                ));
            }
            let far = slice::from_raw_parts(msg.rma_iov, msg.rma_iov_count);
            let segment = |of: &RmaIov| Segment { key: of.key, address: of.addr, len: of.len as u64 };
            let segments: Vec<Segment> = far.iter().map(segment).collect();
            let segments =
                Segments::new(&segments).ok_or_else(|| refused(FI_EINVAL, "there are no remote pieces"))?;
            let spans = several(msg.msg_iov, msg.iov_count)?;
            let wanted = Wanted::Context(msg.context as usize);
            let rma = Rma { kind: kind(msg), peer: msg.addr, spans, segments, flags, wanted };
            endpoint.with(|core| core.rma(rma))?;
        }
        Ok(0)
    })
}

fn context(context: *mut c_void) -> Wanted {
    Wanted::Context(context as usize)
}

// The functions below have the parameters that the manual documents. Each one forwards them.

unsafe extern "C" fn read(
    ep: *mut Ep,
    to: *mut c_void,
    len: usize,
    _: *mut c_void,
    peer: u64,
    address: u64,
    key: u64,
    ctx: *mut c_void,
) -> isize {
    // SAFETY: the arguments of fi_read.
    unsafe { post(ep, RmaKind::Read, one(to, len), Far { peer, address, key }, context(ctx)) }
}

unsafe extern "C" fn readv(
    ep: *mut Ep,
    iov: *const iovec,
    _: *mut *mut c_void,
    count: usize,
    peer: u64,
    address: u64,
    key: u64,
    ctx: *mut c_void,
) -> isize {
    // SAFETY: the arguments of fi_readv.
    unsafe { post(ep, RmaKind::Read, several(iov, count), Far { peer, address, key }, context(ctx)) }
}

unsafe extern "C" fn readmsg(ep: *mut Ep, msg: *const MsgRma, flags: u64) -> isize {
    // SAFETY: the arguments of fi_readmsg.
    unsafe { post_message(ep, msg, flags, |_| RmaKind::Read) }
}

const WRITE: RmaKind = RmaKind::Write { data: None };

unsafe extern "C" fn write(
    ep: *mut Ep,
    from: *const c_void,
    len: usize,
    _: *mut c_void,
    peer: u64,
    address: u64,
    key: u64,
    ctx: *mut c_void,
) -> isize {
    // SAFETY: the arguments of fi_write.
    unsafe { post(ep, WRITE, one(from, len), Far { peer, address, key }, context(ctx)) }
}

unsafe extern "C" fn writev(
    ep: *mut Ep,
    iov: *const iovec,
    _: *mut *mut c_void,
    count: usize,
    peer: u64,
    address: u64,
    key: u64,
    ctx: *mut c_void,
) -> isize {
    // SAFETY: the arguments of fi_writev.
    unsafe { post(ep, WRITE, several(iov, count), Far { peer, address, key }, context(ctx)) }
}

unsafe extern "C" fn writemsg(ep: *mut Ep, msg: *const MsgRma, flags: u64) -> isize {
    let kind = |msg: &MsgRma| RmaKind::Write { data: (flags & FI_REMOTE_CQ_DATA != 0).then_some(msg.data) };
    // SAFETY: the arguments of fi_writemsg.
    unsafe { post_message(ep, msg, flags, kind) }
}

unsafe extern "C" fn inject(
    ep: *mut Ep,
    from: *const c_void,
    len: usize,
    peer: u64,
    address: u64,
    key: u64,
) -> isize {
    // SAFETY: the arguments of fi_inject_write.
    unsafe { post(ep, WRITE, one(from, len), Far { peer, address, key }, Wanted::Nothing) }
}

unsafe extern "C" fn writedata(
    ep: *mut Ep,
    from: *const c_void,
    len: usize,
    _: *mut c_void,
    data: u64,
    peer: u64,
    address: u64,
    key: u64,
    ctx: *mut c_void,
) -> isize {
    let kind = RmaKind::Write { data: Some(data) };
    // SAFETY: the arguments of fi_writedata.
    unsafe { post(ep, kind, one(from, len), Far { peer, address, key }, context(ctx)) }
}

unsafe extern "C" fn injectdata(
    ep: *mut Ep,
    from: *const c_void,
    len: usize,
    data: u64,
    peer: u64,
    address: u64,
    key: u64,
) -> isize {
    let kind = RmaKind::Write { data: Some(data) };
    // SAFETY: the arguments of fi_inject_writedata.
    unsafe { post(ep, kind, one(from, len), Far { peer, address, key }, Wanted::Nothing) }
}
