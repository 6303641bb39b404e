//! A network that misbehaves: wraps a backend and loses, repeats, reorders and damages what it sends.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pathweave_units::{PathId, Rng};
use pathweave_wire::Ecn;

use super::{Arrivals, Backend, Limits, Rail, Received, SendBatch, Sent, Wait, Waker};

/// How a [`Faulty`] backend treats each datagram it sends. Probabilities are 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// Lost.
    pub lose: f64,
    /// Sent twice.
    pub repeat: f64,
    /// Kept until some of those after it have left.
    pub reorder: f64,
    /// One bit flipped.
    pub damage: f64,
    /// Marked Congestion Experienced, if it is marked as capable.
    pub mark: f64,
}

/// Which paths and rails are cut: everything sent on them is lost. Shared, so that a test can cut and mend while traffic
/// flows. The handshake's own path counts as path 63; paths beyond share bits.
#[derive(Clone, Debug, Default)]
pub struct Cuts {
    paths: Arc<AtomicU64>,
    rails: Arc<AtomicU64>,
}

/// The bit of what is sent from the address at which a backend is reached.
const OWN_ADDRESS: u16 = 63;

impl Cuts {
    /// Cuts exactly the paths whose bits are set.
    pub fn set(&self, paths: u64) {
        self.paths.store(paths, Ordering::Release);
    }

    /// Cuts exactly the rails whose bits are set, with all paths from there.
    pub fn set_rails(&self, rails: u64) {
        self.rails.store(rails, Ordering::Release);
    }

    fn cut(&self, rail: Rail, path: Option<PathId>) -> bool {
        let path = path.map_or(OWN_ADDRESS, |path| path.0);
        let is_in = |set: &AtomicU64, bit: u16| set.load(Ordering::Acquire) >> (bit % 64) & 1 == 1;
        is_in(&self.paths, path) || is_in(&self.rails, rail.0.into())
    }
}

/// A backend that misbehaves as told, the same way for the same seed and traffic.
pub struct Faulty<B> {
    inner: B,
    faults: Faults,
    cuts: Cuts,
    rng: Rng,
    kept: Vec<Kept>,
}

/// A datagram that is kept back.
struct Kept {
    to: SocketAddr,
    rail: Rail,
    path: Option<PathId>,
    ecn: Ecn,
    bytes: Vec<u8>,
    /// Datagrams that may yet overtake it.
    overtakers: u32,
}

/// Most datagrams that overtake one.
const MOST_OVERTAKERS: u32 = 40;

impl<B: Backend> Faulty<B> {
    /// Treats what `inner` sends.
    pub fn new(inner: B, faults: Faults, cuts: Cuts, seed: u64) -> Self {
        Faulty { inner, faults, cuts, rng: Rng::for_component(seed, "faulty backend", 0), kept: Vec::new() }
    }

    fn send_one(&mut self, batch: &SendBatch<'_>, bytes: &[u8], ecn: Ecn) -> io::Result<()> {
        let single = SendBatch { segment_bytes: bytes.len().max(1), bytes, ecn, ..*batch };
        // What finds no room is lost: a network does not wait, either.
        self.inner.send(&single).map(|_| ())
    }

    /// Lets time pass for those that are kept.
    fn overtake(&mut self, all: bool) -> io::Result<()> {
        for kept in &mut self.kept {
            kept.overtakers = kept.overtakers.saturating_sub(1);
        }
        let (due, kept) =
            std::mem::take(&mut self.kept).into_iter().partition(|kept| all || kept.overtakers == 0);
        self.kept = kept;
        let due: Vec<Kept> = due;
        for Kept { to, rail, path, ecn, bytes, .. } in due {
            self.inner.send(&SendBatch {
                to,
                rail,
                path,
                ecn,
                segment_bytes: bytes.len().max(1),
                bytes: &bytes,
            })?;
        }
        Ok(())
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
        if self.faults == Faults::default() {
            return self.inner.send(batch);
        }
        for datagram in batch.bytes.chunks(batch.segment_bytes) {
            self.overtake(false)?;
            if self.rng.chance(self.faults.lose) {
                continue;
            }
            let mut bytes = datagram.to_vec();
            if self.rng.chance(self.faults.damage) {
                let bit = self.rng.below(bytes.len() as u32 * 8) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            let marked = batch.ecn != Ecn::NotCapable && self.rng.chance(self.faults.mark);
            let ecn = if marked { Ecn::Experienced } else { batch.ecn };
            if self.rng.chance(self.faults.repeat) {
                self.send_one(batch, &bytes, ecn)?;
            }
            if self.rng.chance(self.faults.reorder) {
                let overtakers = 1 + self.rng.below(MOST_OVERTAKERS);
                let SendBatch { to, rail, path, .. } = *batch;
                self.kept.push(Kept { to, rail, path, ecn, bytes, overtakers });
            } else {
                self.send_one(batch, &bytes, ecn)?;
            }
        }
        Ok(Sent::Done)
    }

    fn receive(&mut self, sink: &mut dyn FnMut(Received<'_>)) -> io::Result<Arrivals> {
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
