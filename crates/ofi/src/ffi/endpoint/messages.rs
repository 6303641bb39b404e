//! `struct fi_ops_msg` and `struct fi_ops_tagged`.

use std::ffi::c_void;

use libc::iovec;
use pathweave_tagged::MatchOn;

use super::super::handles::EpHandle;
use super::super::memory::{Spans, one, several};
use crate::abi::endpoint::{Msg, OpsMsg};
use crate::abi::errno::FI_EINVAL;
use crate::abi::fabric::*;
use crate::abi::fid::Ep;
use crate::abi::tagged::{MsgTagged, OpsTagged};
use crate::endpoint::{Incoming, MessageKind, Outgoing, Wanted, flags};
use crate::guard::{FiResult, count};

pub(super) static MSG_OPS: OpsMsg = OpsMsg {
    size: size_of::<OpsMsg>(),
    recv,
    recvv,
    recvmsg,
    send,
    sendv,
    sendmsg,
    inject,
    senddata,
    injectdata,
};

pub(super) static TAGGED_OPS: OpsTagged = OpsTagged {
    size: size_of::<OpsTagged>(),
    recv: trecv,
    recvv: trecvv,
    recvmsg: trecvmsg,
    send: tsend,
    sendv: tsendv,
    sendmsg: tsendmsg,
    inject: tinject,
    senddata: tsenddata,
    injectdata: tinjectdata,
};

/// Source of an operation's flags.
#[derive(Clone, Copy)]
enum Flags {
    /// Default flags of the endpoint.
    Default,
    /// Flags given with the operation.
    Given(u64),
}

/// Parameters of a send, except its bytes.
struct Envelope {
    to: u64,
    kind: MessageKind,
    data: Option<u64>,
    flags: Flags,
    wanted: Wanted,
}

/// # Safety
///
/// `ep` is an endpoint of this provider. The bytes stay valid until the send is done.
unsafe fn post_send(ep: *mut Ep, bytes: FiResult<Spans>, envelope: Envelope) -> isize {
    count(|| {
        // SAFETY: guaranteed by the caller.
        let endpoint = unsafe { EpHandle::here(ep) }?;
        let flags = match envelope.flags {
            Flags::Default => flags(&endpoint.transmit_flags),
            Flags::Given(flags) => flags,
        };
        let Envelope { to, kind, data, wanted, .. } = envelope;
        let message = Outgoing { to, kind, spans: bytes?, data, flags, wanted };
        endpoint.with(|core| core.send(message))?;
        Ok(0)
    })
}

/// Parameters of a receive, except its bytes.
struct Wish {
    from: u64,
    want: MatchOn,
    flags: Flags,
    context: *mut c_void,
}

/// # Safety
///
/// `ep` is an endpoint of this provider. The bytes stay valid until the receive is done.
unsafe fn post_receive(ep: *mut Ep, bytes: FiResult<Spans>, wish: Wish) -> isize {
    count(|| {
        // SAFETY: guaranteed by the caller.
        let endpoint = unsafe { EpHandle::here(ep) }?;
        let flags = match wish.flags {
            Flags::Default => flags(&endpoint.receive_flags),
            Flags::Given(flags) => flags,
        };
        let looks = matches!(wish.flags, Flags::Given(_)) && flags & (FI_PEEK | FI_CLAIM | FI_DISCARD) != 0;
        // A search has no use for a buffer, which may be invalid.
        let spans = if looks && flags & (FI_PEEK | FI_DISCARD) != 0 { Spans::new() } else { bytes? };
        let least_room = endpoint.least_room.load(std::sync::atomic::Ordering::Relaxed);
        let context = wish.context as usize;
        let incoming = Incoming { from: wish.from, want: wish.want, spans, flags, context, least_room };
        endpoint.with(|core| if looks { core.look(incoming) } else { core.receive(incoming) })?;
        Ok(0)
    })
}

fn plain(to: u64, context: *mut c_void) -> Envelope {
    let wanted = Wanted::Context(context as usize);
    Envelope { to, kind: MessageKind::Plain, data: None, flags: Flags::Default, wanted }
}

fn tagged(to: u64, tag: u64, context: *mut c_void) -> Envelope {
    Envelope { kind: MessageKind::Tagged(tag), ..plain(to, context) }
}

/// Returns the immediate data of a message with these flags.
fn data_of(data: u64, flags: u64) -> Option<u64> {
    (flags & FI_REMOTE_CQ_DATA != 0).then_some(data)
}

fn any(from: u64, context: *mut c_void) -> Wish {
    Wish { from, want: MatchOn::Message, flags: Flags::Default, context }
}

fn with_tag(from: u64, tag: u64, ignore: u64, context: *mut c_void) -> Wish {
    Wish { want: MatchOn::Tagged { tag, ignore }, ..any(from, context) }
}

// The functions below have the parameters that the manual documents. Each one forwards them.

unsafe extern "C" fn recv(
    ep: *mut Ep,
    to: *mut c_void,
    len: usize,
    _: *mut c_void,
    from: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the arguments of fi_recv.
    unsafe { post_receive(ep, one(to, len), any(from, context)) }
}

unsafe extern "C" fn recvv(
    ep: *mut Ep,
    iov: *const iovec,
    _: *mut *mut c_void,
    count: usize,
    from: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the arguments of fi_recvv.
    unsafe { post_receive(ep, several(iov, count), any(from, context)) }
}

unsafe extern "C" fn recvmsg(ep: *mut Ep, msg: *const Msg, flags: u64) -> isize {
    // SAFETY: the arguments of fi_recvmsg.
    unsafe {
        let Some(msg) = msg.as_ref() else { return -(FI_EINVAL as isize) };
        let wish = Wish { flags: Flags::Given(flags), ..any(msg.addr, msg.context) };
        post_receive(ep, several(msg.msg_iov, msg.iov_count), wish)
    }
}

unsafe extern "C" fn send(
    ep: *mut Ep,
    from: *const c_void,
    len: usize,
    _: *mut c_void,
    to: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the arguments of fi_send.
    unsafe { post_send(ep, one(from, len), plain(to, context)) }
}

unsafe extern "C" fn sendv(
    ep: *mut Ep,
    iov: *const iovec,
    _: *mut *mut c_void,
    count: usize,
    to: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the arguments of fi_sendv.
    unsafe { post_send(ep, several(iov, count), plain(to, context)) }
}

unsafe extern "C" fn sendmsg(ep: *mut Ep, msg: *const Msg, flags: u64) -> isize {
    // SAFETY: the arguments of fi_sendmsg.
    unsafe {
        let Some(msg) = msg.as_ref() else { return -(FI_EINVAL as isize) };
        let data = data_of(msg.data, flags);
        let envelope = Envelope { data, flags: Flags::Given(flags), ..plain(msg.addr, msg.context) };
        post_send(ep, several(msg.msg_iov, msg.iov_count), envelope)
    }
}

unsafe extern "C" fn inject(ep: *mut Ep, from: *const c_void, len: usize, to: u64) -> isize {
    // SAFETY: the arguments of fi_inject.
    unsafe {
        post_send(ep, one(from, len), Envelope { wanted: Wanted::Nothing, ..plain(to, std::ptr::null_mut()) })
    }
}

unsafe extern "C" fn senddata(
    ep: *mut Ep,
    from: *const c_void,
    len: usize,
    _: *mut c_void,
    data: u64,
    to: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the arguments of fi_senddata.
    unsafe { post_send(ep, one(from, len), Envelope { data: Some(data), ..plain(to, context) }) }
}

unsafe extern "C" fn injectdata(ep: *mut Ep, from: *const c_void, len: usize, data: u64, to: u64) -> isize {
    let envelope = Envelope { data: Some(data), wanted: Wanted::Nothing, ..plain(to, std::ptr::null_mut()) };
    // SAFETY: the arguments of fi_injectdata.
    unsafe { post_send(ep, one(from, len), envelope) }
}

unsafe extern "C" fn trecv(
    ep: *mut Ep,
    to: *mut c_void,
    len: usize,
    _: *mut c_void,
    from: u64,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the arguments of fi_trecv.
    unsafe { post_receive(ep, one(to, len), with_tag(from, tag, ignore, context)) }
}

unsafe extern "C" fn trecvv(
    ep: *mut Ep,
    iov: *const iovec,
    _: *mut *mut c_void,
    count: usize,
    from: u64,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the arguments of fi_trecvv.
    unsafe { post_receive(ep, several(iov, count), with_tag(from, tag, ignore, context)) }
}

unsafe extern "C" fn trecvmsg(ep: *mut Ep, msg: *const MsgTagged, flags: u64) -> isize {
    // SAFETY: the arguments of fi_trecvmsg.
    unsafe {
        let Some(msg) = msg.as_ref() else { return -(FI_EINVAL as isize) };
        let wish =
            Wish { flags: Flags::Given(flags), ..with_tag(msg.addr, msg.tag, msg.ignore, msg.context) };
        post_receive(ep, several(msg.msg_iov, msg.iov_count), wish)
    }
}

unsafe extern "C" fn tsend(
    ep: *mut Ep,
    from: *const c_void,
    len: usize,
    _: *mut c_void,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the arguments of fi_tsend.
    unsafe { post_send(ep, one(from, len), tagged(to, tag, context)) }
}

unsafe extern "C" fn tsendv(
    ep: *mut Ep,
    iov: *const iovec,
    _: *mut *mut c_void,
    count: usize,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the arguments of fi_tsendv.
    unsafe { post_send(ep, several(iov, count), tagged(to, tag, context)) }
}

unsafe extern "C" fn tsendmsg(ep: *mut Ep, msg: *const MsgTagged, flags: u64) -> isize {
    // SAFETY: the arguments of fi_tsendmsg.
    unsafe {
        let Some(msg) = msg.as_ref() else { return -(FI_EINVAL as isize) };
        let data = data_of(msg.data, flags);
        let envelope =
            Envelope { data, flags: Flags::Given(flags), ..tagged(msg.addr, msg.tag, msg.context) };
        post_send(ep, several(msg.msg_iov, msg.iov_count), envelope)
    }
}

unsafe extern "C" fn tinject(ep: *mut Ep, from: *const c_void, len: usize, to: u64, tag: u64) -> isize {
    let envelope = Envelope { wanted: Wanted::Nothing, ..tagged(to, tag, std::ptr::null_mut()) };
    // SAFETY: the arguments of fi_tinject.
    unsafe { post_send(ep, one(from, len), envelope) }
}

unsafe extern "C" fn tsenddata(
    ep: *mut Ep,
    from: *const c_void,
    len: usize,
    _: *mut c_void,
    data: u64,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the arguments of fi_tsenddata.
    unsafe { post_send(ep, one(from, len), Envelope { data: Some(data), ..tagged(to, tag, context) }) }
}

unsafe extern "C" fn tinjectdata(
    ep: *mut Ep,
    from: *const c_void,
    len: usize,
    data: u64,
    to: u64,
    tag: u64,
) -> isize {
    let envelope =
        Envelope { data: Some(data), wanted: Wanted::Nothing, ..tagged(to, tag, std::ptr::null_mut()) };
    // SAFETY: the arguments of fi_tinjectdata.
    unsafe { post_send(ep, one(from, len), envelope) }
}
