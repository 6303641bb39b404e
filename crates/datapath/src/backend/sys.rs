//! System calls that the standard library lacks: datagrams with control messages, in batches.
#![allow(unsafe_code, reason = "sendmsg and recvmmsg take pointers; each block says why they are valid")]

use std::io;
use std::mem::{MaybeUninit, size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use super::Arrivals;
use libc::{c_int, c_void, cmsghdr, iovec, mmsghdr, msghdr, sockaddr_storage, socklen_t};

/// Space for the control messages used here: segment size, type of service, timestamp.
const CONTROL_BYTES: usize = 128;

/// Buffer with the alignment that control messages need.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL_BYTES]);

/// Sets an integer option.
pub(super) fn set_option(socket: BorrowedFd<'_>, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: the pointer refers to `value`, whose size is given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            ptr::from_ref(&value).cast(),
            size_of::<c_int>() as socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an integer option.
pub(super) fn get_option(socket: BorrowedFd<'_>, level: c_int, name: c_int) -> io::Result<c_int> {
    let (mut value, mut len): (c_int, _) = (0, size_of::<c_int>() as socklen_t);
    // SAFETY: both pointers refer to locals, and `len` is the size of `value`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            ptr::from_mut(&mut value).cast(),
            ptr::from_mut(&mut len),
        )
    };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// Network interface and prefix of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attachment {
    /// Index of the network interface that has the address.
    pub(super) interface: u32,
    /// Prefix length of its network.
    pub(super) prefix: u8,
    /// Flags of the interface (`IFF_*`).
    flags: u32,
}

impl Attachment {
    /// Returns the largest MTU that applies to packets from this address. An address of the loopback interface, as
    /// routing protocols announce them, uses another interface: the largest MTU of all others.
    pub(super) fn mtu(&self, socket: BorrowedFd<'_>) -> Option<usize> {
        if self.flags & libc::IFF_LOOPBACK as u32 == 0 {
            return interface_mtu(socket, self.interface);
        }
        let others = interfaces().into_iter().filter(|&other| other != self.interface);
        others.filter_map(|other| interface_mtu(socket, other)).max()
    }
}

/// Returns the indices of all network interfaces.
fn interfaces() -> Vec<u32> {
    // SAFETY: returns NULL or a list that ends with index 0 and is freed below.
    let list = unsafe { libc::if_nameindex() };
    let mut numbers = Vec::new();
    if list.is_null() {
        return numbers;
    }
    let mut at = list;
    // SAFETY: an element of the list, which is not freed yet.
    while let number @ 1.. = unsafe { (*at).if_index } {
        numbers.push(number);
        // SAFETY: this element is not the end, so there is a next one.
        at = unsafe { at.add(1) };
    }
    // SAFETY: returned by if_nameindex, and freed once.
    unsafe { libc::if_freenameindex(list) };
    numbers
}

/// Returns the MTU of an interface.
fn interface_mtu(socket: BorrowedFd<'_>, interface: u32) -> Option<usize> {
    // SAFETY: all zeros is a valid ifreq.
    let mut asked: libc::ifreq = unsafe { zeroed() };
    // SAFETY: the name has room for IF_NAMESIZE bytes, the most that is written.
    let name = unsafe { libc::if_indextoname(interface, asked.ifr_name.as_mut_ptr()) };
    if name.is_null() {
        return None;
    }
    // SAFETY: the descriptor is open, and the kernel reads and writes a request of this type.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU, &raw mut asked) };
    // SAFETY: the field is a plain number, which a successful request has written.
    let mtu = unsafe { asked.ifr_ifru.ifru_mtu };
    (done == 0).then(|| usize::try_from(mtu).ok()).flatten()
}

/// Returns the attachment of an address, if an interface has it.
pub(super) fn attachment_of(address: IpAddr) -> Option<Attachment> {
    let mut first: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: on success it writes a list, which is freed below.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return None;
    }
    let (mut at, mut found) = (first, None);
    while !at.is_null() && found.is_none() {
        // SAFETY: the element belongs to the list, which is not freed yet. Its address and mask are NULL or as large
        // as their family requires, and its name is a string.
        unsafe {
            let element = &*at;
            if ip_of(element.ifa_addr) == Some(address) {
                let interface = libc::if_nametoindex(element.ifa_name);
                let prefix = ip_of(element.ifa_netmask).map_or(u8::MAX, bits);
                let flags = element.ifa_flags;
                found = (interface > 0).then_some(Attachment { interface, prefix, flags });
            }
            at = element.ifa_next;
        }
    }
    // SAFETY: returned by getifaddrs, and freed once.
    unsafe { libc::freeifaddrs(first) };
    found
}

/// Returns the prefix length of a mask.
fn bits(mask: IpAddr) -> u8 {
    match mask {
        IpAddr::V4(mask) => mask.to_bits().count_ones() as u8,
        IpAddr::V6(mask) => mask.to_bits().count_ones() as u8,
    }
}

/// Converts a socket address to an IP address.
///
/// # Safety
/// `address` is NULL, or points to as many bytes as its family requires.
unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: not NULL, and every address begins with its family.
    match c_int::from(unsafe { (*address).sa_family }) {
        libc::AF_INET => {
            // SAFETY: the address has this family.
            let raw = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes()).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the address has this family.
            let raw = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(raw.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

/// Converts an address to the kernel's format.
fn to_kernel(address: SocketAddr) -> (sockaddr_storage, socklen_t) {
    // SAFETY: all zeros is a valid sockaddr_storage.
    let mut storage: sockaddr_storage = unsafe { zeroed() };
    match address {
        SocketAddr::V4(v4) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: sockaddr_storage is large enough and aligned for every socket address.
            unsafe { ptr::from_mut(&mut storage).cast::<libc::sockaddr_in>().write(raw) };
            (storage, size_of::<libc::sockaddr_in>() as socklen_t)
        }
        SocketAddr::V6(v6) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as u16,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            unsafe { ptr::from_mut(&mut storage).cast::<libc::sockaddr_in6>().write(raw) };
            (storage, size_of::<libc::sockaddr_in6>() as socklen_t)
        }
    }
}

/// Converts an address from the kernel's format; returns `None` for families other than IP.
fn from_kernel(storage: &sockaddr_storage) -> Option<SocketAddr> {
    match c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the kernel wrote this family, so it wrote this type; sockaddr_storage is large enough for it.
            let raw = unsafe { ptr::from_ref(storage).cast::<libc::sockaddr_in>().read() };
            let ip = Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddrV4::new(ip, u16::from_be(raw.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let raw = unsafe { ptr::from_ref(storage).cast::<libc::sockaddr_in6>().read() };
            let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
            let port = u16::from_be(raw.sin6_port);
            Some(SocketAddrV6::new(ip, port, raw.sin6_flowinfo, raw.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// Appends a control message to `message`, whose control buffer is a [`Control`] with `used` bytes in use.
///
/// # Safety
/// `message.msg_control` points to a `Control`.
unsafe fn push_control<T: Copy>(message: &mut msghdr, used: &mut usize, level: c_int, kind: c_int, value: T) {
    // SAFETY: these only compute.
    let (space, len) =
        unsafe { (libc::CMSG_SPACE(size_of::<T>() as u32), libc::CMSG_LEN(size_of::<T>() as u32)) };
    assert!(*used + space as usize <= CONTROL_BYTES, "control messages fit");
    // SAFETY: `used` is a sum of CMSG_SPACEs, so the header is aligned; the assertion guarantees that it is within
    // the buffer.
    unsafe {
        let header: *mut cmsghdr = message.msg_control.cast::<u8>().add(*used).cast();
        (*header).cmsg_level = level;
        (*header).cmsg_type = kind;
        (*header).cmsg_len = len as _;
        libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
    }
    *used += space as usize;
    message.msg_controllen = *used as _;
}

/// Sends `bytes` to `to`. `tos`: type of service, if it differs from the socket's. `segment`: length of each datagram
/// if the kernel is to divide `bytes`; ignored if it is not less than the total.
pub(super) fn send(
    socket: BorrowedFd<'_>,
    to: SocketAddr,
    tos: Option<u8>,
    segment: Option<u16>,
    bytes: &[u8],
) -> io::Result<usize> {
    let (mut address, address_len) = to_kernel(to);
    let mut control = MaybeUninit::<Control>::uninit();
    let mut vector = iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: all zeros is a valid msghdr.
    let mut message: msghdr = unsafe { zeroed() };
    message.msg_name = ptr::from_mut(&mut address).cast();
    message.msg_namelen = address_len;
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    let mut used = 0;
    let (level, kind) = match to {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    };
    // SAFETY: `msg_control` is a `Control`.
    unsafe {
        if let Some(tos) = tos {
            push_control(&mut message, &mut used, level, kind, c_int::from(tos));
        }
        if let Some(segment) = segment.filter(|&segment| usize::from(segment) < bytes.len()) {
            push_control(&mut message, &mut used, libc::SOL_UDP, libc::UDP_SEGMENT, segment);
        }
    }
    if used == 0 {
        message.msg_control = ptr::null_mut();
    }
    // SAFETY: name, vector and control are locals that outlive the call; `bytes` is only read.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, 0) };
    if sent >= 0 { Ok(sent as usize) } else { Err(io::Error::last_os_error()) }
}

/// Metadata of a received datagram, or of several of one flow that the kernel has joined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meta {
    pub(super) from: Option<SocketAddr>,
    /// Bytes of all datagrams.
    pub(super) len: usize,
    /// Length of each datagram in bytes, except for the last.
    pub(super) segment: usize,
    /// Type of service or traffic class of the IP header.
    pub(super) tos: u8,
    /// Wall clock at arrival, in nanoseconds.
    pub(super) stamp_ns: Option<u64>,
    /// True if the datagram did not fit its buffer.
    pub(super) truncated: bool,
}

/// Buffers for a batch of datagrams, and the structures that the kernel fills.
pub(super) struct Receiver {
    buffers: Vec<u8>,
    buffer_bytes: usize,
    messages: Vec<mmsghdr>,
    vectors: Vec<iovec>,
    names: Vec<sockaddr_storage>,
    controls: Vec<Control>,
}

/// Number of datagrams that the next call for a socket requests. Requesting one more than there are costs a tenth of
/// a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Appetite(usize);

impl Default for Appetite {
    fn default() -> Self {
        Appetite(1)
    }
}

// SAFETY: the pointers in `messages` and `vectors` refer to heap memory of the other fields, which moves with the
// owner.
unsafe impl Send for Receiver {}

impl Receiver {
    /// Creates buffers for `batch` datagrams of up to `buffer_bytes`.
    pub(super) fn new(batch: usize, buffer_bytes: usize) -> Self {
        // SAFETY: all zeros is a valid value of these structures.
        let (message, name): (mmsghdr, sockaddr_storage) = unsafe { (zeroed(), zeroed()) };
        Receiver {
            buffers: vec![0; batch * buffer_bytes],
            buffer_bytes,
            messages: vec![message; batch],
            vectors: vec![iovec { iov_base: ptr::null_mut(), iov_len: 0 }; batch],
            names: vec![name; batch],
            controls: vec![Control([0; CONTROL_BYTES]); batch],
        }
    }

    /// Receives without waiting; returns the number of datagrams, and whether there may be more.
    pub(super) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        appetite: &mut Appetite,
    ) -> io::Result<(usize, Arrivals)> {
        let wanted = appetite.0;
        let base = self.buffers.as_mut_ptr();
        for i in 0..wanted {
            self.vectors[i] = iovec {
                // SAFETY: `buffers` has `batch * buffer_bytes` bytes.
                iov_base: unsafe { base.add(i * self.buffer_bytes) }.cast(),
                iov_len: self.buffer_bytes,
            };
            let header = &mut self.messages[i].msg_hdr;
            header.msg_name = ptr::from_mut(&mut self.names[i]).cast::<c_void>();
            header.msg_namelen = size_of::<sockaddr_storage>() as socklen_t;
            header.msg_iov = &raw mut self.vectors[i];
            header.msg_iovlen = 1;
            header.msg_control = ptr::from_mut(&mut self.controls[i]).cast();
            header.msg_controllen = CONTROL_BYTES as _;
            header.msg_flags = 0;
        }
        // SAFETY: every pointer was set just before, to memory of `self` with the length given next to it.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.messages.as_mut_ptr(),
                wanted as u32,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        if count < 0 {
            *appetite = Appetite::default();
            return Err(io::Error::last_os_error());
        }
        let count = count as usize;
        appetite.0 = (2 * count).clamp(1, self.messages.len());
        Ok(match count {
            0 => (0, Arrivals::None),
            // One was requested and one has arrived: the next sleep ends at once if there is another.
            1 => (1, Arrivals::All),
            _ if count < wanted => (count, Arrivals::All),
            _ => (count, Arrivals::More),
        })
    }

    /// Returns the `index`-th result of the last receive call.
    pub(super) fn get(&mut self, index: usize) -> (Meta, &mut [u8]) {
        let message = &self.messages[index];
        let len = (message.msg_len as usize).min(self.buffer_bytes);
        let mut meta = Meta {
            from: from_kernel(&self.names[index]),
            len,
            segment: len,
            tos: 0,
            stamp_ns: None,
            truncated: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
        };
        read_control(&message.msg_hdr, &mut meta);
        meta.segment = meta.segment.clamp(1, len.max(1));
        let start = index * self.buffer_bytes;
        (meta, &mut self.buffers[start..start + len])
    }
}

fn read_control(header: &msghdr, meta: &mut Meta) {
    // SAFETY: the kernel filled the control buffer and set its length; the macros stay within it.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !next.is_null() {
        // SAFETY: not null, so it is a control message within the buffer, with data of the type that its kind has.
        unsafe {
            let data = libc::CMSG_DATA(next);
            match ((*next).cmsg_level, (*next).cmsg_type) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    meta.segment = data.cast::<c_int>().read_unaligned().max(0) as usize;
                }
                (libc::IPPROTO_IP, libc::IP_TOS) => meta.tos = data.read(),
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    meta.tos = data.cast::<c_int>().read_unaligned() as u8;
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let at = data.cast::<libc::timespec>().read_unaligned();
                    meta.stamp_ns = Some(at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64);
                }
                _ => {}
            }
            next = libc::CMSG_NXTHDR(header, next);
        }
    }
}
