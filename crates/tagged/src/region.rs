//! Memory opened to peers, and its keys.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::memory::{Access, Memory, PeerId, Piece, Remote};
use crate::table::Table;
use crate::wire::{RemoteRegion, Told};

/// Memory to open to peers (fi_mr_reg).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The application's key, unique among open regions.
    pub key: u64,
    /// What peers call its first byte: 0 with offsets, its address with FI_MR_VIRT_ADDR. `base + piece.len` is below 2^64.
    pub base: u64,
    /// The memory.
    pub piece: Piece,
    /// What peers may do.
    pub access: Access,
    /// What the application hears of.
    pub events: RegionEvents,
}

/// Which accesses of peers are told with a completion ([`Kind::RemoteWrite`](crate::Kind::RemoteWrite),
/// [`Kind::RemoteRead`](crate::Kind::RemoteRead)), besides writes with data, which are always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionEvents {
    /// None.
    None,
    /// Writes (FI_REMOTE_WRITE).
    Writes,
    /// Reads (FI_REMOTE_READ).
    Reads,
    /// Both (FI_RMA_EVENT).
    All,
}

impl RegionEvents {
    pub(crate) fn told(self) -> Told {
        Told {
            of_writes: matches!(self, RegionEvents::Writes | RegionEvents::All),
            of_reads: matches!(self, RegionEvents::Reads | RegionEvents::All),
        }
    }
}

/// The engine's name for a region, of which there may be several with the same key one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub(crate) u64);

#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) region: Region,
    exposure: Exposure,
    /// Peers that know of it.
    askers: BTreeSet<PeerId>,
}

/// True if the transport knows a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exposure {
    /// No peer has asked yet.
    None,
    /// By this.
    Open(Remote),
    /// Not any more: peers are still to give it up, and reach nothing until then. The key that is to be closed then.
    Withdrawn(Option<u64>),
}

impl Opened {
    /// The piece of an access, if it lies within.
    pub(crate) fn piece(&self, address: u64, len: u64) -> Option<Piece> {
        self.region.piece.part(address.checked_sub(self.region.base)?, len)
    }
}

/// All regions.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    all: Table<Opened>,
    open: BTreeMap<u64, u64>,
}

impl Regions {
    /// `None` if the key is in use.
    pub(crate) fn open(&mut self, region: Region) -> Option<RegionId> {
        if self.open.contains_key(&region.key) {
            return None;
        }
        let id = self.all.insert(Opened { region, exposure: Exposure::None, askers: BTreeSet::new() });
        self.open.insert(region.key, id);
        Some(RegionId(id))
    }
    /// An open region, for this endpoint itself.
    pub(crate) fn by_key(&self, key: u64) -> Option<&Opened> {
        self.all.get(*self.open.get(&key)?)
    }
    /// The state of a region for a peer that names it.
    pub(crate) fn of_asker(&self, id: u64, peer: PeerId) -> Known<'_> {
        match self.all.get(id).filter(|opened| opened.askers.contains(&peer)) {
            None => Known::No,
            Some(Opened { exposure: Exposure::Withdrawn(_), .. }) => Known::Withdrawn,
            Some(opened) => Known::Yes(opened),
        }
    }
    /// What a peer that asks for a key is told.
    pub(crate) fn ask(&mut self, key: u64, peer: PeerId, memory: &mut dyn Memory) -> Option<RemoteRegion> {
        let id = *self.open.get(&key)?;
        let opened = self.all.get_mut(id)?;
        let Region { base, piece, access, events, .. } = opened.region;
        let remote = match opened.exposure {
            Exposure::Open(remote) => remote,
            // What is withdrawn is not open under its key.
            Exposure::None | Exposure::Withdrawn(_) => memory.register(piece, access, None)?,
        };
        opened.exposure = Exposure::Open(remote);
        opened.askers.insert(peer);
        Some(RemoteRegion { region: id, remote, base, len: piece.len, access, told: events.told() })
    }
    /// No peer learns of the region any more; those that know of it.
    pub(crate) fn close(&mut self, id: RegionId, memory: &mut dyn Memory) -> BTreeSet<PeerId> {
        let Some(opened) = self.all.get(id.0) else { return BTreeSet::new() };
        if self.open.get(&opened.region.key) == Some(&id.0) {
            self.open.remove(&opened.region.key);
        }
        let askers = opened.askers.clone();
        self.end_if_unknown(id.0, memory);
        askers
    }
    /// A peer does not use the region any more; `None` if it never knew of it or it is still open.
    pub(crate) fn give_up(&mut self, id: u64, peer: PeerId, memory: &mut dyn Memory) -> Option<()> {
        let opened = self.all.get_mut(id)?;
        if self.open.get(&opened.region.key) == Some(&id) || !opened.askers.remove(&peer) {
            return None;
        }
        self.end_if_unknown(id, memory);
        Some(())
    }
    /// A peer is gone.
    pub(crate) fn lose(&mut self, peer: PeerId, memory: &mut dyn Memory) {
        for id in self.all.ids(|opened| opened.askers.contains(&peer)) {
            if let Some(opened) = self.all.get_mut(id) {
                opened.askers.remove(&peer);
            }
            self.end_if_unknown(id, memory);
        }
    }
    fn end_if_unknown(&mut self, id: u64, memory: &mut dyn Memory) {
        let Some(opened) = self.all.get(id) else { return };
        if !opened.askers.is_empty() || self.open.get(&opened.region.key) == Some(&id) {
            return;
        }
        match self.all.remove(id).map(|opened| opened.exposure) {
            Some(Exposure::Open(Remote { rkey, .. }) | Exposure::Withdrawn(Some(rkey))) => {
                memory.deregister(rkey);
            }
            Some(Exposure::None | Exposure::Withdrawn(None)) | None => {}
        }
    }
    /// Takes a closed region back from peers that have not given it up: the transport's key, and those peers. If they were asked to
    /// give it up the key stays: what they get under it they do not take for the region.
    pub(crate) fn withdraw(
        &mut self,
        id: RegionId,
        were_asked: bool,
        memory: &mut dyn Memory,
    ) -> Option<(u64, BTreeSet<PeerId>)> {
        let opened = self.all.get_mut(id.0).filter(|o| self.open.get(&o.region.key) != Some(&id.0))?;
        let Exposure::Open(remote) = opened.exposure else { return None };
        opened.exposure = Exposure::Withdrawn(were_asked.then_some(remote.rkey));
        if were_asked {
            memory.withdraw(remote.rkey);
        } else {
            memory.deregister(remote.rkey);
        }
        Some((remote.rkey, opened.askers.clone()))
    }
    /// Peers that have not given a region up.
    pub(crate) fn askers(&self, id: RegionId) -> impl Iterator<Item = PeerId> {
        self.all.get(id.0).into_iter().flat_map(|opened| opened.askers.iter().copied())
    }
    /// True if peers reach a region, open or closing.
    pub(crate) fn is_reached(&self, id: RegionId) -> bool {
        self.all.get(id.0).is_some_and(|opened| !matches!(opened.exposure, Exposure::Withdrawn(_)))
    }
}

/// The state of a region for a peer.
pub(crate) enum Known<'a> {
    /// The peer was told of it; open or closing.
    Yes(&'a Opened),
    /// The peer was told of it, and has not heard yet that it is gone.
    Withdrawn,
    /// The peer was not told of it, or has given it up.
    No,
}
