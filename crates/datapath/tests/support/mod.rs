//! Two devices and a connection between them.
#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod endpoints;
pub(crate) mod liar;
pub(crate) mod peer;
pub(crate) mod raw;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use pathweave_datapath::backend::{Cuts, Faults, Faulty, UdpBackend};
use pathweave_datapath::rdm::RdmConfig;
use pathweave_datapath::{Access, Connection, Device, DeviceConfig, Listener, Region, Registration, Status};

/// Timeout longer than any operation here on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Returns a separate loopback address for each caller. A released port is thus still free when it is opened again,
/// and packets to a closed socket reach no other test.
pub(crate) fn own_address() -> IpAddr {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let [high, low] = (TAKEN.fetch_add(1, Ordering::Relaxed) + 1).to_be_bytes();
    let process = std::process::id() as u8 | 0x80;
    IpAddr::V4(Ipv4Addr::new(127, process, high, low))
}

/// Returns [`DeviceConfig::loopback`] at a separate address.
pub(crate) fn loopback() -> DeviceConfig {
    let mut config = DeviceConfig::loopback();
    config.bind.set_ip(own_address());
    config
}

/// Returns [`RdmConfig::loopback`] at a separate address.
pub(crate) fn rdm_loopback() -> RdmConfig {
    let mut config = RdmConfig::loopback();
    config.device.bind.set_ip(own_address());
    config
}

/// Both ends of a connection.
pub(crate) struct Pair {
    pub(crate) client: Device,
    pub(crate) server: Device,
    pub(crate) listener: Listener,
    pub(crate) near: Connection,
    pub(crate) far: Connection,
}

impl Pair {
    pub(crate) fn new() -> Self {
        Pair::with(&loopback())
    }

    pub(crate) fn with(config: &DeviceConfig) -> Self {
        let open = || Device::open(config.clone()).expect("a device");
        Pair::of(open(), open())
    }

    /// Opens a pair with fault injection, independent for each direction.
    pub(crate) fn faulty(config: &DeviceConfig, faults: Faults, cuts: &Cuts, seed: u64) -> Self {
        let open = |seed| {
            let backend = UdpBackend::open(&config.udp()).expect("sockets");
            let backend = Faulty::new(backend, faults, cuts.clone(), seed);
            Device::with_backend(config.clone(), backend).expect("a device")
        };
        Pair::of(open(seed), open(seed + 1))
    }

    /// Opens a connection between these devices.
    pub(crate) fn of(client: Device, server: Device) -> Self {
        let listener = server.listen().expect("nobody listens yet");
        let near = client.connect(server.local_addr()).expect("a connection");
        let far = listener.accept(PATIENCE).expect("the other end of it");
        Pair { client, server, listener, near, far }
    }

    /// Registers memory of the server, open to the client.
    pub(crate) fn board(&self, len: usize, access: Access) -> Registration {
        let region = Region::zeroed(len).expect("memory");
        self.server.register(&region, access).expect("a key")
    }
}

/// Returns bytes that identify their origin.
pub(crate) fn pattern(len: usize, salt: u64) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9e37_79b9).wrapping_add(salt * 77) >> 8) as u8).collect()
}

pub(crate) fn region_of(bytes: &[u8]) -> Region {
    Region::from_bytes(bytes).expect("memory")
}

/// Waits for the next completion, which must be that of this request, and successful.
#[track_caller]
pub(crate) fn done(connection: &Connection, wr_id: u64) -> u64 {
    let completion = connection.wait(PATIENCE).expect("a completion");
    assert_eq!((completion.wr_id, completion.status), (wr_id, Status::Success), "{completion:?}");
    completion.byte_len
}

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn until(what: &str, is: impl FnMut() -> bool) {
    until_or(is, || what.to_owned());
}

/// Waits until a condition holds; `words` describes the state if it does not.
#[track_caller]
pub(crate) fn until_or(mut is: impl FnMut() -> bool, words: impl Fn() -> String) {
    let give_up = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < give_up, "{}", words());
        std::thread::sleep(Duration::from_millis(1));
    }
}
