//! `struct fid_av`.

use std::ffi::{c_char, c_int, c_void};
use std::net::{SocketAddr, ToSocketAddrs};
use std::ptr;
use std::sync::{Arc, Mutex};

use super::handle::{Handle, class_of, fid};
use super::handles::{Addresses, AvHandle, DomainHandle, EqHandle};
use super::{address, text, unsupported};
use crate::abi::domain::*;
use crate::abi::eq::{EqEntry, FI_AV_COMPLETE};
use crate::abi::errno::{FI_EINVAL, FI_ENOSYS};
use crate::abi::fabric::*;
use crate::guard::{FiResult, count, refused, status};
use crate::object::events::{Event, Failed};
use crate::object::lock;

static OPS: Ops = Ops { close, bind, ..unsupported::OPS };

static AV_OPS: OpsAv = OpsAv {
    size: size_of::<OpsAv>(),
    insert,
    insertsvc,
    insertsym,
    remove,
    lookup,
    straddr,
    av_set: no_slot,
    insert_auth_key: no_slot,
    lookup_auth_key: no_slot,
    set_user_id: no_slot,
};

unsafe extern "C" fn no_slot(_: *mut FidAv, _: *mut c_void, _: *mut c_void, _: *mut c_void, _: u64) -> c_int {
    -FI_ENOSYS
}

pub(super) unsafe extern "C" fn open(
    domain: *mut FidDomain,
    attr: *mut AvAttr,
    to: *mut *mut FidAv,
    context: *mut c_void,
) -> c_int {
    status(|| {
        // SAFETY: the domain was made by this provider.
        let domain = unsafe { DomainHandle::here(domain) }?;
        // SAFETY: `attr` is NULL or points to an attribute structure.
        let attr = unsafe { attr.as_mut() }
            .ok_or_else(|| refused(FI_EINVAL, "the attribute of an address vector is NULL"))?;
        // Only shared vectors have names.
        if !attr.name.is_null() || attr.rx_ctx_bits != 0 {
            return Err(refused(FI_ENOSYS, "shared address vectors and receive contexts are not offered"));
        }
        if to.is_null() || attr.type_ > FI_AV_TABLE {
            return Err(refused(
                FI_EINVAL,
                format_args!("an address vector of type {}, or at NULL", attr.type_),
            ));
        }
        let local = SocketAddr::new(domain.interface.address, 0);
        let object = Arc::new(Addresses {
            vector: Arc::default(),
            address_bytes: address::length_of(local),
            family_is_4: local.is_ipv4(),
            events: Mutex::new(None),
        });
        let face = FidAv { fid: fid(FI_CLASS_AV, context, &OPS), ops: &raw const AV_OPS };
        // SAFETY: `to` is not NULL.
        unsafe { Handle::give(face, object, Some(domain.uses.begin()), to) };
        // Maps and tables are the same here, because addresses are indices. A caller that leaves the type
        // open is told which one it gets.
        if attr.type_ == FI_AV_UNSPEC {
            attr.type_ = FI_AV_TABLE;
        }
        Ok(())
    })
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    // SAFETY: the address vector was made by this provider, and the caller gives it up.
    status(|| unsafe { AvHandle::close(fid, |addresses| &addresses.vector.uses) })
}

unsafe extern "C" fn bind(fid: *mut Fid, other: *mut Fid, _: u64) -> c_int {
    status(|| {
        // SAFETY: the address vector was made by this provider, and `other` is a fid.
        unsafe {
            let addresses = AvHandle::here(fid)?;
            if class_of(other)? != FI_CLASS_EQ {
                return Err(refused(FI_EINVAL, "the object bound to an address vector is no event queue"));
            }
            let queue = EqHandle::here(other)?;
            *lock(&addresses.events) = Some((queue.clone(), queue.uses.begin()));
        }
        Ok(())
    })
}

/// Report of an insertion: the number of inserted addresses, and the ones that failed.
struct Insertion<'a> {
    addresses: &'a Addresses,
    fid: *mut FidAv,
    numbers: *mut u64,
    flags: u64,
    context: *mut c_void,
    done: usize,
    good: usize,
}

impl Insertion<'_> {
    /// Inserts one more address. `None` is an invalid one.
    ///
    /// # Safety
    ///
    /// `numbers` is NULL or has room for one more number, and so has `context` with FI_SYNC_ERR.
    unsafe fn put(&mut self, found: Option<SocketAddr>) {
        let fitting = found.filter(|address| address.is_ipv4() == self.addresses.family_is_4);
        let number = fitting.and_then(|address| self.addresses.vector.insert(address));
        self.good += usize::from(number.is_some());
        // SAFETY: guaranteed by the caller.
        unsafe {
            if !self.numbers.is_null() {
                self.numbers.add(self.done).write(number.unwrap_or(FI_ADDR_NOTAVAIL));
            }
            if self.flags & FI_SYNC_ERR != 0 && !self.context.is_null() {
                self.context.cast::<c_int>().add(self.done).write(if number.is_some() {
                    0
                } else {
                    FI_EINVAL
                });
            }
        }
        if number.is_none() {
            self.tell(Event::Failed(Failed {
                fid: self.fid as usize,
                context: self.context as usize,
                data: self.done as u64,
                errno: FI_EINVAL,
            }));
        }
        self.done += 1;
    }

    fn tell(&self, event: Event) {
        if self.flags & FI_SYNC_ERR == 0
            && let Some((queue, _)) = &*lock(&self.addresses.events)
        {
            // A full event queue is not read, so the event may be lost.
            let _ = queue.push(event);
        }
    }

    /// Returns the result of the call. With an event queue, the number of addresses is in its event.
    fn finish(self) -> isize {
        let has_queue = lock(&self.addresses.events).is_some();
        if !has_queue {
            return self.good as isize;
        }
        let entry = EqEntry { fid: self.fid.cast(), context: self.context, data: self.good as u64 };
        let mut bytes = vec![0; size_of::<EqEntry>()];
        // SAFETY: the vector has as many bytes as the entry, which has no padding.
        unsafe { bytes.as_mut_ptr().copy_from((&raw const entry).cast(), bytes.len()) };
        self.tell(Event::Read { kind: FI_AV_COMPLETE, bytes });
        if self.flags & FI_SYNC_ERR == 0 { 0 } else { self.good as isize }
    }
}

/// # Safety
///
/// The arguments are those of an insertion.
unsafe fn insertion<'a>(
    av: *mut FidAv,
    numbers: *mut u64,
    flags: u64,
    context: *mut c_void,
) -> FiResult<Insertion<'a>> {
    // SAFETY: the address vector was made by this provider.
    let addresses = unsafe { AvHandle::here(av) }?;
    Ok(Insertion { addresses, fid: av, numbers, flags, context, done: 0, good: 0 })
}

unsafe extern "C" fn insert(
    av: *mut FidAv,
    from: *const c_void,
    many: usize,
    numbers: *mut u64,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    count(|| {
        // SAFETY: the arguments are those of fi_av_insert: `many` addresses of this domain's family.
        unsafe {
            let mut insertion = insertion(av, numbers, flags, context)?;
            let bytes = insertion.addresses.address_bytes;
            for index in 0..many {
                insertion.put(address::read(from.cast::<u8>().add(index * bytes).cast(), bytes));
            }
            Ok(insertion.finish())
        }
    }) as c_int
}

fn resolve(node: Option<&str>, service: Option<&str>, is_4: bool) -> Option<SocketAddr> {
    let port: u16 = service?.parse().ok()?;
    (node?, port).to_socket_addrs().ok()?.find(|address| address.is_ipv4() == is_4)
}

unsafe extern "C" fn insertsvc(
    av: *mut FidAv,
    node: *const c_char,
    service: *const c_char,
    numbers: *mut u64,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    count(|| {
        // SAFETY: the arguments are those of fi_av_insertsvc.
        unsafe {
            let mut insertion = insertion(av, numbers, flags, context)?;
            let (node, service) = (text::read(node), text::read(service));
            let found = resolve(node.as_deref(), service.as_deref(), insertion.addresses.family_is_4);
            insertion.put(found);
            Ok(insertion.finish())
        }
    }) as c_int
}

/// Returns the name of a node. Names count up in the digits at their end; IPv4 addresses count up as numbers.
fn next_node(node: &str, step: usize) -> Option<String> {
    if let Ok(address) = node.parse::<std::net::Ipv4Addr>() {
        let next = address.to_bits().checked_add(u32::try_from(step).ok()?)?;
        return Some(std::net::Ipv4Addr::from_bits(next).to_string());
    }
    let digits = node.len() - node.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (stem, number) = node.split_at(node.len() - digits);
    if step == 0 {
        return Some(node.to_owned());
    }
    let next = number.parse::<u64>().ok()?.checked_add(step as u64)?;
    Some(format!("{stem}{next:0digits$}"))
}

unsafe extern "C" fn insertsym(
    av: *mut FidAv,
    node: *const c_char,
    nodes: usize,
    service: *const c_char,
    services: usize,
    numbers: *mut u64,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    count(|| {
        // SAFETY: the arguments are those of fi_av_insertsym.
        unsafe {
            let mut insertion = insertion(av, numbers, flags, context)?;
            let first_node = text::read(node).ok_or_else(|| refused(FI_EINVAL, "the first node is NULL"))?;
            let first: usize = text::read(service)
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| refused(FI_EINVAL, "the first service is no port"))?;
            for node in 0..nodes {
                for port in first..first + services {
                    let name = next_node(&first_node, node);
                    let found =
                        resolve(name.as_deref(), Some(&port.to_string()), insertion.addresses.family_is_4);
                    insertion.put(found);
                }
            }
            Ok(insertion.finish())
        }
    }) as c_int
}

unsafe extern "C" fn remove(av: *mut FidAv, numbers: *mut u64, many: usize, _: u64) -> c_int {
    status(|| {
        // SAFETY: the address vector was made by this provider.
        let addresses = unsafe { AvHandle::here(av) }?;
        for index in 0..many {
            // SAFETY: the caller passes `many` numbers.
            if !addresses.vector.remove(unsafe { *numbers.add(index) }) {
                return Err(refused(FI_EINVAL, "an address to remove is not in the address vector"));
            }
        }
        Ok(())
    })
}

unsafe extern "C" fn lookup(av: *mut FidAv, number: u64, to: *mut c_void, len: *mut usize) -> c_int {
    status(|| {
        // SAFETY: the vector was made by this provider; there is room for `*len` bytes.
        unsafe {
            let found = AvHandle::here(av)?.vector.address(number).ok_or_else(|| {
                refused(FI_EINVAL, format_args!("number {number} is not in the address vector"))
            })?;
            let bytes = address::write(found, to, *len);
            len.write(bytes);
        }
        Ok(())
    })
}

unsafe extern "C" fn straddr(
    av: *mut FidAv,
    from: *const c_void,
    to: *mut c_char,
    len: *mut usize,
) -> *const c_char {
    let written = count(|| {
        // SAFETY: the vector was made by this provider, `from` is an address of its family, and there is room
        // for `*len` bytes.
        unsafe {
            let bytes = AvHandle::of(av).object.address_bytes;
            let found = address::read(from, bytes).ok_or_else(|| refused(FI_EINVAL, "this is no address"))?;
            let scheme = if found.is_ipv4() { "fi_sockaddr_in" } else { "fi_sockaddr_in6" };
            let needed = text::write(&format!("{scheme}://{found}"), to, *len);
            len.write(needed);
        }
        Ok(0)
    });
    if written == 0 { to } else { ptr::null() }
}

#[cfg(test)]
mod tests {
    use super::next_node;

    #[test]
    fn nodes_are_counted_on() {
        assert_eq!(next_node("10.0.0.255", 1).as_deref(), Some("10.0.1.0"));
        assert_eq!(next_node("host09", 2).as_deref(), Some("host11"));
        assert_eq!(next_node("host", 0).as_deref(), Some("host"));
        assert_eq!(next_node("host", 1), None);
    }
}
