//! The real side: two devices, over loopback unless stated otherwise, with fault injection around their backends.

use std::net::{Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::time::Duration;

use pathweave_datapath::backend::{Backend, Cuts, FaultCounters, Faulty, UdpBackend};
use pathweave_datapath::secure::ClusterKey;
use pathweave_datapath::{
    Access, Connection, Device, DeviceConfig, Listener, Region, Registration, Status, Uncontrolled,
    Unprotected, WaitError,
};

use crate::support::{PATIENCE, loopback};
use crate::world::{
    Done, End, Fences, Key, MTU, PATHS, Request, Restarts, SCHEME, Setup, Start, Troubles, Verb, World,
};

/// Location of both ends, and the backends between them.
pub(crate) trait Wires: Sync {
    /// Name for messages.
    const NAME: &'static str;
    /// Payload of a full packet, in bytes.
    const MTU_PAYLOAD: u16;
    fn open() -> Self;
    /// Returns an address of an end, with any port.
    fn address(&self, end: End) -> SocketAddr;
    /// Runs `work` at the location of an end.
    fn at<T: Send>(&self, end: End, work: impl FnOnce() -> T + Send) -> T;
    /// Opens a backend at the location of the end.
    fn backend(&self, end: End, config: &DeviceConfig) -> Box<dyn Backend>;
}

/// UDP sockets on IPv4 loopback.
pub(crate) struct Loopback;

impl Wires for Loopback {
    const NAME: &'static str = "real";
    const MTU_PAYLOAD: u16 = MTU as u16;

    fn open() -> Self {
        Loopback
    }
    fn address(&self, _end: End) -> SocketAddr {
        loopback().bind
    }
    fn at<T: Send>(&self, _end: End, work: impl FnOnce() -> T + Send) -> T {
        work()
    }
    fn backend(&self, _end: End, config: &DeviceConfig) -> Box<dyn Backend> {
        Box::new(UdpBackend::open(&config.udp()).expect("sockets"))
    }
}

/// UDP sockets on IPv6 loopback.
pub(crate) struct Loopback6;

impl Wires for Loopback6 {
    const NAME: &'static str = "real, IPv6";
    const MTU_PAYLOAD: u16 = MTU as u16;

    fn open() -> Self {
        Loopback6
    }
    fn address(&self, _end: End) -> SocketAddr {
        (Ipv6Addr::LOCALHOST, 0).into()
    }
    fn at<T: Send>(&self, _end: End, work: impl FnOnce() -> T + Send) -> T {
        work()
    }
    fn backend(&self, end: End, config: &DeviceConfig) -> Box<dyn Backend> {
        Loopback.backend(end, config)
    }
}

struct Host {
    // Dropped in this order.
    connection: Option<Connection>,
    listener: Option<Listener>,
    memory: Registration,
    device: Device,
}

pub(crate) struct Real<W = Loopback> {
    wires: W,
    setup: Setup,
    cuts: Cuts,
    near: Host,
    /// `None` while the far end is down.
    far: Option<Host>,
    /// Number of devices opened so far.
    opened: u64,
}

fn open<W: Wires>(
    wires: &W,
    setup: &Setup,
    (end, bind): (End, SocketAddr),
    cuts: &Cuts,
    number: u64,
) -> Host {
    let config = DeviceConfig {
        bind,
        unprotected: Unprotected::Anywhere,
        mtu_payload: W::MTU_PAYLOAD,
        paths: PATHS,
        scheme: setup.scheme.unwrap_or(SCHEME).into(),
        uncontrolled: Uncontrolled::All,
        protection: setup.protection,
        key: Some(ClusterKey::from_bytes([7; 32])),
        peer_timeout: setup.peer_timeout,
        keepalive: setup.peer_timeout / 4,
        connect_timeout: PATIENCE,
        seed: Some(setup.seed + number),
        ..loopback()
    };
    let device = wires.at(end, || {
        let backend = wires.backend(end, &config);
        let backend = Faulty::new(backend, setup.faults, cuts.clone(), setup.seed + number);
        Device::with_backend(config, backend).expect("a device")
    });
    let region = Region::zeroed(setup.memory_bytes).expect("memory");
    let memory = device.register(&region, Access::READ_WRITE).expect("a key");
    Host { connection: None, listener: None, memory, device }
}

impl<W: Wires> Real<W> {
    fn host(&self, end: End) -> &Host {
        match end {
            End::Near => &self.near,
            End::Far => self.far.as_ref().expect("it is up"),
        }
    }

    fn connection(&self, end: End) -> &Connection {
        self.host(end).connection.as_ref().expect("connected")
    }

    fn connect(&mut self) {
        let far = self.far.as_mut().expect("it is up");
        let listener = far.listener.get_or_insert_with(|| far.device.listen().expect("nobody listens yet"));
        self.near.connection = Some(self.near.device.connect(far.device.local_addr()).expect("a connection"));
        far.connection = Some(listener.accept(PATIENCE).expect("the other end of it"));
    }
}

impl<W: Wires> World for Real<W> {
    const NAME: &'static str = W::NAME;
    const FENCES: Fences = Fences::Kept;

    fn open(setup: &Setup) -> Self {
        let (cuts, wires) = (Cuts::default(), W::open());
        let host = |end, number| open(&wires, setup, (end, wires.address(end)), &cuts, number);
        let (near, far) = (host(End::Near, 0), Some(host(End::Far, 1)));
        let mut real = Real { wires, setup: *setup, cuts, near, far, opened: 2 };
        real.connect();
        real
    }

    fn cut(&mut self, paths: u64) {
        self.cuts.set(paths);
    }

    fn narrow(&mut self, longest: usize) {
        self.cuts.set_longest(longest);
    }

    fn stall(&mut self, time: Duration) {
        self.cuts.stall(time);
    }

    fn close(self) -> FaultCounters {
        let Real { cuts, near, far, .. } = self;
        drop((near, far));
        cuts.happened()
    }

    fn pass(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn post(&mut self, end: End, request: &Request) {
        let Request { wr_id, verb, imm, key, .. } = *request;
        let local = self.host(end).memory.region().slice(request.local.clone()).expect("within it");
        let mut there = self.host(end.other()).memory.remote(request.remote as u64);
        if key == Key::Wrong {
            there.rkey ^= 1 << 20;
        }
        let connection = self.connection(end);
        let fenced = connection.fenced();
        match (request.start, verb) {
            (Start::AtOnce, Verb::Send) => connection.send(wr_id, local),
            (Start::AtOnce, Verb::SendImm) => connection.send_imm(wr_id, local, imm),
            (Start::AtOnce, Verb::Write) => connection.write(wr_id, local, there),
            (Start::AtOnce, Verb::WriteImm) => connection.write_imm(wr_id, local, there, imm),
            (Start::AtOnce, Verb::Read) => connection.read(wr_id, local, there),
            (Start::Fenced, Verb::Send) => fenced.send(wr_id, local),
            (Start::Fenced, Verb::SendImm) => fenced.send_imm(wr_id, local, imm),
            (Start::Fenced, Verb::Write) => fenced.write(wr_id, local, there),
            (Start::Fenced, Verb::WriteImm) => fenced.write_imm(wr_id, local, there, imm),
            (Start::Fenced, Verb::Read) => fenced.read(wr_id, local, there),
        }
        .expect("posted");
    }

    fn receive(&mut self, end: End, wr_id: u64, place: Range<usize>) {
        let place = self.host(end).memory.region().slice(place).expect("within it");
        self.connection(end).recv(wr_id, place).expect("posted");
    }

    fn next(&mut self, end: End) -> Option<Done> {
        match self.connection(end).wait(PATIENCE) {
            Ok(done) => Some(Done {
                wr_id: done.wr_id,
                status: done.status,
                opcode: done.opcode,
                byte_len: done.byte_len,
                imm: done.imm,
            }),
            Err(WaitError::Timeout(_)) => None,
            Err(error) => panic!("the {end:?} end: {error}"),
        }
    }

    fn write(&mut self, end: End, offset: usize, bytes: &[u8]) {
        self.host(end).memory.region().write(offset, bytes).expect("within it");
    }

    fn memory(&self, end: End) -> Vec<u8> {
        let region = self.host(end).memory.region();
        region.to_vec(0..region.len()).expect("all of it")
    }

    fn troubles(&mut self) -> Troubles {
        End::BOTH
            .map(|end| self.host(end).device.stats().expect("the device is open"))
            .map(|stats| Troubles::of(&stats.counters, stats.refused_datagrams))
            .into_iter()
            .fold(Troubles::default(), |sum, one| sum + one)
    }

    fn state(&mut self) -> String {
        let of = |end| {
            let connection = self.connection(end);
            // The first failed completion that is not merely flushed has the cause.
            let failed = std::iter::from_fn(|| connection.poll())
                .find(|done| !matches!(done.status, Status::Success | Status::Flushed));
            let (state, reason) = (connection.state(), connection.close_reason());
            format!("{end:?}: {state:?}, {reason:?}, {failed:?}, {:?}", connection.stats())
        };
        End::BOTH.map(of).join("; ")
    }
}

impl<W: Wires> Restarts for Real<W> {
    fn crash_far(&mut self) {
        // Messages that the device sends when it closes are lost, too.
        self.cuts.set(u64::MAX);
    }

    fn revive_far(&mut self) {
        let address = self.host(End::Far).device.local_addr();
        drop(self.far.take());
        self.far = Some(open(&self.wires, &self.setup, (End::Far, address), &self.cuts, self.opened));
        self.opened += 1;
        self.cuts.set(0);
    }

    fn reconnect(&mut self) {
        // The old connection ends with its handle.
        self.near.connection = None;
        self.connect();
    }
}
