//! Fault injection around a backend, so that real sockets meet the same [`FaultModel`] as simulations.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pathweave_units::PathId;
use pathweave_wire::Ecn;

use super::weather::{Arrival, FaultCounters, FaultModel, Faults};
use super::{Arrivals, Backend, Limits, Rail, Received, SendBatch, Sent, Wait, Waker};

/// Faults that affect all datagrams of a network for a while: cut paths and rails, a largest datagram length, a
/// stalled end. Shared, so that a test can change them during traffic. The handshake's own path counts as path 63;
/// paths beyond 63 share bits.
#[derive(Clone, Debug)]
pub struct Cuts {
    paths: Arc<AtomicU64>,
    rails: Arc<AtomicU64>,
    longest: Arc<AtomicUsize>,
    stall_us: Arc<AtomicU64>,
    happened: Arc<Mutex<FaultCounters>>,
}

impl Default for Cuts {
    /// Returns a state without faults.
    fn default() -> Self {
        Cuts {
            paths: Arc::default(),
            rails: Arc::default(),
            longest: Arc::new(AtomicUsize::new(usize::MAX)),
            stall_us: Arc::default(),
            happened: Arc::default(),
        }
    }
}

/// Bit of datagrams sent from the port at which the backend is reached.
const OWN_ADDRESS: u16 = 63;

impl Cuts {
    /// Cuts exactly the paths whose bits are set.
    pub fn set(&self, paths: u64) {
        self.paths.store(paths, Ordering::Release);
    }

    /// Cuts exactly the rails whose bits are set, with all their paths.
    pub fn set_rails(&self, rails: u64) {
        self.rails.store(rails, Ordering::Release);
    }

    /// Drops all datagrams longer than this, like a link whose MTU has changed; `usize::MAX` disables it.
    pub fn set_longest(&self, bytes: usize) {
        self.longest.store(bytes, Ordering::Release);
    }

    /// Stalls the thread of one of the backends, whichever receives first, as if it lost its processor.
    pub fn stall(&self, time: Duration) {
        self.stall_us.store(time.as_micros() as u64, Ordering::Release);
    }

    /// Returns the counters of backends that have been dropped.
    pub fn happened(&self) -> FaultCounters {
        *self.happened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stalls this thread, if one is to be stalled.
    fn suffer(&self) {
        if self.stall_us.load(Ordering::Relaxed) != 0 {
            std::thread::sleep(Duration::from_micros(self.stall_us.swap(0, Ordering::AcqRel)));
        }
    }

    fn cut(&self, rail: Rail, path: Option<PathId>) -> bool {
        let path = path.map_or(OWN_ADDRESS, |path| path.0);
        let is_in = |set: &AtomicU64, bit: u16| set.load(Ordering::Acquire) >> (bit % 64) & 1 == 1;
        is_in(&self.paths, path) || is_in(&self.rails, rail.0.into())
    }
}

/// Destination, path and rail of a datagram.
#[derive(Clone, Copy, Debug)]
struct Route {
    to: SocketAddr,
    rail: Rail,
    path: Option<PathId>,
    ecn: Ecn,
}

/// A backend with injected faults, which are deterministic for the same seed and traffic.
pub struct Faulty<B> {
    inner: B,
    weather: FaultModel<Route>,
    cuts: Cuts,
    kept: Vec<Kept>,
}

/// A delayed datagram.
struct Kept {
    route: Route,
    bytes: Vec<u8>,
    /// Number of datagrams that may still overtake it.
    overtakers: u32,
}

/// Largest number of datagrams that overtake one.
const MOST_OVERTAKERS: f64 = 40.0;

impl<B: Backend> Faulty<B> {
    /// Injects faults into the packets that `inner` sends.
    pub fn new(inner: B, faults: Faults, cuts: Cuts, seed: u64) -> Self {
        Faulty { inner, weather: FaultModel::new(faults, seed), cuts, kept: Vec::new() }
    }

    fn send_one(&mut self, route: &Route, bytes: &[u8]) -> io::Result<()> {
        let Route { to, rail, path, ecn } = *route;
        let single = SendBatch { to, rail, path, ecn, segment_bytes: bytes.len().max(1), bytes };
        // If there is no room the datagram is lost: a network does not wait, either.
        self.inner.send(&single).map(|_| ())
    }

    /// Sends a datagram as the fault model delivers it, at once or later.
    fn deliver(&mut self, arrival: Arrival<Route>) -> io::Result<()> {
        let Arrival { way: mut route, bytes, late, marked, stray } = arrival;
        if marked && route.ecn != Ecn::NotCapable {
            route.ecn = Ecn::Experienced;
        }
        if let Some(number) = stray
            && route.path.is_some()
        {
            route.path = Some(PathId((number % u32::from(self.inner.paths())) as u16));
        }
        if late > 0.0 {
            let overtakers = 1 + (late * MOST_OVERTAKERS) as u32;
            self.kept.push(Kept { route, bytes, overtakers });
            return Ok(());
        }
        self.send_one(&route, &bytes)
    }

    /// Counts a datagram that overtakes the delayed ones, and sends those that are due.
    fn overtake(&mut self, all: bool) -> io::Result<()> {
        for kept in &mut self.kept {
            kept.overtakers = kept.overtakers.saturating_sub(1);
        }
        let (due, kept) =
            std::mem::take(&mut self.kept).into_iter().partition(|kept| all || kept.overtakers == 0);
        self.kept = kept;
        let due: Vec<Kept> = due;
        for Kept { route, bytes, .. } in due {
            self.send_one(&route, &bytes)?;
        }
        Ok(())
    }
}

impl<B> Drop for Faulty<B> {
    fn drop(&mut self) {
        *self.cuts.happened.lock().unwrap_or_else(PoisonError::into_inner) += self.weather.happened();
    }
}

impl<B: Backend> Backend for Faulty<B> {
    fn paths(&self) -> u16 {
        self.inner.paths()
    }
    fn local_addr(&self) -> SocketAddr {
        self.inner.local_addr()
    }
    fn addresses(&self) -> Vec<SocketAddr> {
        self.inner.addresses()
    }
    fn prefixes(&self) -> Vec<Option<u8>> {
        self.inner.prefixes()
    }
    fn rail_towards(&self, peer: SocketAddr) -> Rail {
        self.inner.rail_towards(peer)
    }
    fn limits(&self) -> Limits {
        self.inner.limits()
    }
    fn receive_buffer_bytes(&self) -> Option<usize> {
        self.inner.receive_buffer_bytes()
    }
    fn source_ports(&self) -> Vec<u16> {
        self.inner.source_ports()
    }
    fn link_mtu(&self, peer: SocketAddr) -> Option<usize> {
        self.inner.link_mtu(peer)
    }
    fn flush(&mut self) {
        self.inner.flush();
    }

    fn listen_on(&mut self, rail: Rail, path: PathId) -> io::Result<()> {
        self.inner.listen_on(rail, path)
    }

    fn send(&mut self, batch: &SendBatch<'_>) -> io::Result<Sent> {
        if self.cuts.cut(batch.rail, batch.path) {
            return Ok(Sent::Done);
        }
        let SendBatch { to, rail, path, ecn, segment_bytes, bytes } = *batch;
        let longest = self.cuts.longest.load(Ordering::Acquire);
        if self.weather.is_calm() && segment_bytes.min(bytes.len()) <= longest {
            self.weather.pass(bytes.len().div_ceil(segment_bytes) as u64);
            return self.inner.send(batch);
        }
        let route = Route { to, rail, path, ecn };
        for datagram in bytes.chunks(segment_bytes) {
            self.overtake(false)?;
            if datagram.len() > longest {
                continue;
            }
            let mut arrivals = vec![];
            self.weather.send(route, datagram, |arrival| arrivals.push(arrival));
            for arrival in arrivals {
                self.deliver(arrival)?;
            }
        }
        Ok(Sent::Done)
    }

    fn receive(&mut self, sink: &mut dyn FnMut(Received<'_>)) -> io::Result<Arrivals> {
        self.cuts.suffer();
        self.inner.receive(sink)
    }

    fn wait(&mut self, wait: Wait) -> io::Result<()> {
        self.overtake(true)?;
        self.inner.wait(wait)
    }

    fn waker(&self) -> Waker {
        self.inner.waker()
    }
    fn watch(&mut self, other: OwnedFd) -> bool {
        self.inner.watch(other)
    }
}
