//! Two network namespaces with a pair of virtual interfaces between them.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::print_stderr, reason = "what is skipped is said")]

use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::sched::{CloneFlags, setns, unshare};
use pathweave_bypass::ether::Counters;
use pathweave_datapath::secure::Protection;
use pathweave_datapath::{
    Access, Connection, Device, DeviceConfig, Region, Registration, Status, Unprotected,
};
use pathweave_linux::netlink::{Netlink, SystemError};

/// Time limit, longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Name of the interface at either end.
pub(crate) const INTERFACE: &str = "link0";
pub(crate) const INDEX: u32 = 77;

/// End of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Near,
    Far,
}

/// Address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

/// The two namespaces. They are removed on drop.
pub(crate) struct Net {
    near: File,
    far: File,
}

/// Runs `work` on a new thread, because namespaces belong to threads.
fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

fn namespace() -> nix::Result<File> {
    on_thread(|| {
        unshare(CloneFlags::CLONE_NEWNET)?;
        File::open("/proc/thread-self/ns/net")
            .map_err(|why| nix::Error::from_raw(why.raw_os_error().unwrap_or(0)))
    })
}

impl Net {
    /// Creates namespaces with interfaces of this MTU and number of queues. Returns `None`, with a clear message, if
    /// this process may not.
    pub(crate) fn make(test: &str, mtu_bytes: u32, queues: u32) -> Option<Net> {
        let (near, far) = match (namespace(), namespace()) {
            (Ok(near), Ok(far)) => (near, far),
            (Err(why), _) | (_, Err(why)) => {
                eprintln!("\n*** SKIPPED: {test}: making networks needs privileges ({why}) ***\n");
                return None;
            }
        };
        let net = Net { near, far };
        net.set_up(mtu_bytes, queues).expect("a pair of virtual interfaces");
        Some(net)
    }

    fn set_up(&self, mtu_bytes: u32, queues: u32) -> Result<(), SystemError> {
        let end = |mac: u8| {
            let mut message = LinkMessage::default();
            message.header.index = INDEX;
            message.attributes = vec![
                LinkAttribute::IfName(INTERFACE.to_owned()),
                LinkAttribute::Address(vec![2, 0, 0, 0, 0, mac]),
                LinkAttribute::Mtu(mtu_bytes),
                LinkAttribute::NumTxQueues(queues),
                LinkAttribute::NumRxQueues(queues),
                // The kernel segments sends before they enter the link, as on a physical one.
                LinkAttribute::GsoMaxSegs(1),
            ];
            message
        };
        let mut peer = end(2);
        peer.attributes.push(LinkAttribute::NetNsFd(self.far.as_raw_fd()));
        let mut message = end(1);
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        self.within(End::Near, || {
            Netlink::open()?.request(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
        })?;
        for end in [End::Near, End::Far] {
            self.within(end, || {
                let mut netlink = Netlink::open()?;
                for family in [Family::V4, Family::V6] {
                    let address = address(end, family);
                    let message = address_message(address);
                    netlink.request(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)?;
                }
                netlink.request(RouteNetlinkMessage::SetLink(up(LinkFlags::Up)), 0)
            })?;
        }
        Ok(())
    }

    fn file(&self, end: End) -> &File {
        if end == End::Near { &self.near } else { &self.far }
    }

    /// Runs `work` in the namespace of an end.
    pub(crate) fn within<T: Send>(&self, end: End, work: impl FnOnce() -> T + Send) -> T {
        on_thread(|| {
            setns(self.file(end), CloneFlags::CLONE_NEWNET).expect("the namespace is there");
            work()
        })
    }

    /// Opens a device over UDP sockets.
    pub(crate) fn sockets(&self, end: End, config: DeviceConfig) -> Device {
        self.within(end, || Device::open(config).expect("a device"))
    }

    /// Sets an interface up or down.
    pub(crate) fn set_link(&self, end: End, state: LinkFlags) {
        self.within(end, || Netlink::open()?.request(RouteNetlinkMessage::SetLink(up(state)), 0))
            .expect("the link changes");
    }

    /// Removes both interfaces.
    pub(crate) fn remove_link(&self) {
        let mut message = LinkMessage::default();
        message.header.index = INDEX;
        self.within(End::Near, || Netlink::open()?.request(RouteNetlinkMessage::DelLink(message), 0))
            .expect("the link goes");
    }
}

fn up(state: LinkFlags) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = INDEX;
    message.header.flags = state;
    message.header.change_mask = LinkFlags::Up;
    message
}

pub(crate) fn address(end: End, family: Family) -> IpAddr {
    let last = if end == End::Near { "1" } else { "2" };
    let text = match family {
        Family::V4 => format!("10.99.0.{last}"),
        Family::V6 => format!("fd99::{last}"),
    };
    text.parse().expect("an address")
}

fn address_message(address: IpAddr) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.index = INDEX;
    (message.header.family, message.header.prefix_len) = match address {
        IpAddr::V4(_) => (AddressFamily::Inet, 24),
        IpAddr::V6(_) => (AddressFamily::Inet6, 64),
    };
    // The address is unique, so duplicate detection is not needed.
    message.header.flags = AddressHeaderFlags::Nodad;
    message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
    message
}

/// Returns the configuration of an end's device, without protection.
pub(crate) fn config(end: End, family: Family) -> DeviceConfig {
    DeviceConfig {
        protection: Protection::Insecure,
        unprotected: Unprotected::Anywhere,
        connect_timeout: PATIENCE,
        peer_timeout: PATIENCE,
        paths: 4,
        socket_buffer_bytes: 1 << 20,
        ..DeviceConfig::new(SocketAddr::new(address(end, family), 0))
    }
}

/// Connects `near` to `far`. Returns both ends of the connection.
pub(crate) fn connect(near: &Device, far: &Device) -> (Connection, Connection) {
    let listener = far.listen().expect("nobody listens yet");
    let connection = near.connect(far.local_addr()).expect("a connection");
    (connection, listener.accept(PATIENCE).expect("the other end of it"))
}

/// Returns bytes that depend on position and salt.
pub(crate) fn pattern(len: usize, salt: u64) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9e37_79b9).wrapping_add(salt * 77) >> 8) as u8).collect()
}

/// Registers memory of a device for its peers.
pub(crate) fn board(device: &Device, len: usize) -> Registration {
    device.register(&Region::zeroed(len).expect("memory"), Access::READ_WRITE).expect("a key")
}

/// Writes bytes to the peer's memory and checks that they arrive.
#[track_caller]
pub(crate) fn write_and_compare(connection: &Connection, board: &Registration, len: usize, salt: u64) {
    let bytes = pattern(len, salt);
    connection
        .write(salt, Region::from_bytes(&bytes).expect("memory").all(), board.remote(0))
        .expect("posted");
    let done = connection.wait(PATIENCE).expect("a completion");
    assert_eq!((done.wr_id, done.status), (salt, Status::Success), "{done:?}");
    assert!(
        board.region().to_vec(0..len).expect("all of it") == bytes,
        "{len} bytes, {salt}: others arrived"
    );
}

/// Writes single bytes until the backend of the writing end has resolved its peer's Ethernet address, and sends past
/// the kernel. How long that takes depends on the machine.
pub(crate) fn write_until_it_bypasses(connection: &Connection, board: &Registration, counters: &Counters) {
    let first = counters.read();
    wait_until("packets go past the kernel", || {
        write_and_compare(connection, board, 1, 1);
        counters.read().sent > first.sent
    });
}

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the error number of a kernel error.
pub(crate) fn number(why: &io::Error) -> i32 {
    why.raw_os_error().unwrap_or_default()
}
