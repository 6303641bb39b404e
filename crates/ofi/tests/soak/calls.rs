//! Calls of libfabric that no other test needs.

use std::ffi::c_void;
use std::net::IpAddr;
use std::ptr::null_mut;

use crate::client::*;
use crate::script::Form;

/// Returns the name of an endpoint at this address, in libfabric's form.
pub(crate) fn name_of(address: IpAddr, port: u16) -> Vec<u8> {
    let (family, ip) = match address {
        IpAddr::V4(ip) => (libc::AF_INET, [&ip.octets()[..], &[0; 8]].concat()),
        // Flow information comes before the address, and the scope after it.
        IpAddr::V6(ip) => (libc::AF_INET6, [&[0; 4], &ip.octets()[..], &[0; 4]].concat()),
    };
    [&(family as u16).to_ne_bytes()[..], &port.to_be_bytes(), &ip].concat()
}

/// Returns the name of a node, of either family.
pub(crate) fn name(node: &Node) -> Vec<u8> {
    let (mut name, mut len) = (vec![0; 64], 64);
    // SAFETY: the buffer has as many bytes as the length says.
    unsafe { ok(((*(*node.ep).cm).getname)(node.ep.cast(), name.as_mut_ptr().cast(), &mut len)) };
    name.truncate(len);
    name
}

/// Inserts a name into the vector.
pub(crate) fn insert(node: &Node, name: &[u8]) -> u64 {
    let mut number = 0;
    // SAFETY: one address and one number.
    let count =
        unsafe { ((*(*node.av).ops).insert)(node.av, name.as_ptr().cast(), 1, &mut number, 0, null_mut()) };
    assert_eq!(count, 1);
    number
}

/// Destination of bytes.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    Plain,
    Tagged(u64),
    Memory { at: u64, key: u64 },
}

/// Sends or writes bytes in any form. They stay valid until the completion, or are copied.
pub(crate) fn send(
    node: &Node,
    to: u64,
    target: Target,
    form: Form,
    bytes: &[u8],
    data: u64,
    context: usize,
) {
    let (ep, from, len) = (node.ep.cast(), bytes.as_ptr().cast::<c_void>(), bytes.len());
    let (none, context) = (null_mut(), context as *mut c_void);
    // SAFETY: an open endpoint; the caller keeps the bytes.
    let call = || unsafe {
        let (msg, tagged, rma) = (&*(*node.ep).msg, &*(*node.ep).tagged, &*(*node.ep).rma);
        match (target, form) {
            (Target::Plain, Form::Bare) => (msg.send)(ep, from, len, none, to, context),
            (Target::Plain, Form::Data) => (msg.senddata)(ep, from, len, none, data, to, context),
            (Target::Plain, Form::Injected) => (msg.inject)(ep, from, len, to),
            (Target::Plain, Form::InjectedData) => (msg.injectdata)(ep, from, len, data, to),
            (Target::Tagged(tag), Form::Bare) => (tagged.send)(ep, from, len, none, to, tag, context),
            (Target::Tagged(tag), Form::Data) => {
                (tagged.senddata)(ep, from, len, none, data, to, tag, context)
            }
            (Target::Tagged(tag), Form::Injected) => (tagged.inject)(ep, from, len, to, tag),
            (Target::Tagged(tag), Form::InjectedData) => (tagged.injectdata)(ep, from, len, data, to, tag),
            (Target::Memory { at, key }, Form::Bare) => {
                (rma.write)(ep, from, len, none, to, at, key, context)
            }
            (Target::Memory { at, key }, Form::Data) => {
                (rma.writedata)(ep, from, len, none, data, to, at, key, context)
            }
            (Target::Memory { at, key }, Form::Injected) => (rma.inject)(ep, from, len, to, at, key),
            (Target::Memory { at, key }, Form::InjectedData) => {
                (rma.injectdata)(ep, from, len, data, to, at, key)
            }
        }
    };
    node.retry(call).unwrap();
}

pub(crate) fn inject(node: &Node, to: u64, tag: u64, bytes: &[u8]) {
    send(node, to, Target::Tagged(tag), Form::Injected, bytes, 0, 0);
}

/// Adds to a word. The previous value goes to `before`.
pub(crate) fn add(
    node: &Node,
    to: u64,
    (at, key): (u64, u64),
    amount: &[u8],
    before: Option<&mut [u8]>,
    context: usize,
) {
    let (ep, from, none) = (node.ep.cast(), amount.as_ptr().cast(), null_mut());
    let (into, context) = (before.map(<[u8]>::as_mut_ptr), context as *mut c_void);
    // SAFETY: an open endpoint; the caller keeps the bytes.
    let call = || unsafe {
        let atomic = &*(*node.ep).atomic;
        match into {
            None => (atomic.write)(ep, from, 1, none, to, at, key, FI_UINT64, FI_SUM, context),
            Some(into) => (atomic.readwrite)(
                ep,
                from,
                1,
                none,
                into.cast(),
                none,
                to,
                at,
                key,
                FI_UINT64,
                FI_SUM,
                context,
            ),
        }
    };
    node.retry(call).unwrap();
}
