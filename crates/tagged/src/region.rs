//! Memory opened to peers, and its keys.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::memory::{Access, Memory, PeerId, Piece, Remote};
use crate::table::Table;
use crate::wire::{RemoteRegion, Told};

/// Memory to open to peers (fi_mr_reg).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Key that the application chose, unique among open regions.
    pub key: u64,
    /// Address of the region's first byte as peers give it: 0 for offsets, or its virtual address with
    /// FI_MR_VIRT_ADDR. `base + piece.len` is below 2^64.
    pub base: u64,
    /// Memory of the region.
    pub piece: Piece,
    /// Access rights of peers.
    pub access: Access,
    /// Accesses that are reported to the application.
    pub events: RegionEvents,
}

/// Accesses of peers that produce a completion ([`Kind::RemoteWrite`](crate::Kind::RemoteWrite),
/// [`Kind::RemoteRead`](crate::Kind::RemoteRead)). Writes with data always do.
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
    pub(crate) fn reported_accesses(self) -> Told {
        Told {
            of_writes: matches!(self, RegionEvents::Writes | RegionEvents::All),
            of_reads: matches!(self, RegionEvents::Reads | RegionEvents::All),
        }
    }
}

/// Engine's number of a region. Several regions may have the same key one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub(crate) u64);

#[derive(Debug)]
pub(crate) struct OpenRegion {
    pub(crate) region: Region,
    exposure: Exposure,
    /// Peers that have received the region's description and not released it.
    peers_with_key: BTreeSet<PeerId>,
}

/// State of a region at the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exposure {
    /// Not registered: no peer has asked yet.
    None,
    /// Registered at this remote address and key.
    Open(Remote),
    /// Withdrawn: peers still have to release the region and can no longer access it. The key, if any, is
    /// deregistered once all have released it.
    Withdrawn(Option<u64>),
}

impl OpenRegion {
    /// Returns the piece that an access covers, if it lies within the region.
    pub(crate) fn piece(&self, address: u64, len: u64) -> Option<Piece> {
        self.region.piece.part(address.checked_sub(self.region.base)?, len)
    }
}

/// All regions of an endpoint.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    all: Table<OpenRegion>,
    open: BTreeMap<u64, u64>,
}

impl Regions {
    /// Opens a region. Returns `None` if the key is in use.
    pub(crate) fn open(&mut self, region: Region) -> Option<RegionId> {
        if self.open.contains_key(&region.key) {
            return None;
        }
        let id =
            self.all.insert(OpenRegion { region, exposure: Exposure::None, peers_with_key: BTreeSet::new() });
        self.open.insert(region.key, id);
        Some(RegionId(id))
    }
    /// Returns the open region with this key, for accesses of this endpoint itself.
    pub(crate) fn by_key(&self, key: u64) -> Option<&OpenRegion> {
        self.all.get(*self.open.get(&key)?)
    }
    /// Returns the state of a region for a peer that names it by its number.
    pub(crate) fn view_for_peer(&self, id: u64, peer: PeerId) -> PeerView<'_> {
        match self.all.get(id).filter(|opened| opened.peers_with_key.contains(&peer)) {
            None => PeerView::No,
            Some(OpenRegion { exposure: Exposure::Withdrawn(_), .. }) => PeerView::Withdrawn,
            Some(opened) => PeerView::Yes(opened),
        }
    }
    /// Returns the description of the region for a peer that asks for a key, and registers the region if necessary.
    pub(crate) fn describe_for_peer(
        &mut self,
        key: u64,
        peer: PeerId,
        memory: &mut dyn Memory,
    ) -> Option<RemoteRegion> {
        let id = *self.open.get(&key)?;
        let opened = self.all.get_mut(id)?;
        let Region { base, piece, access, events, .. } = opened.region;
        let remote = match opened.exposure {
            Exposure::Open(remote) => remote,
            // A withdrawn region is not open under its key, so this case does not occur for it.
            Exposure::None | Exposure::Withdrawn(_) => memory.register(piece, access, None)?,
        };
        opened.exposure = Exposure::Open(remote);
        opened.peers_with_key.insert(peer);
        Some(RemoteRegion {
            region: id,
            remote,
            base,
            len: piece.len,
            access,
            told: events.reported_accesses(),
        })
    }
    /// Closes a region to new peers and returns the peers that still know it.
    pub(crate) fn close(&mut self, id: RegionId, memory: &mut dyn Memory) -> BTreeSet<PeerId> {
        let Some(opened) = self.all.get(id.0) else { return BTreeSet::new() };
        if self.open.get(&opened.region.key) == Some(&id.0) {
            self.open.remove(&opened.region.key);
        }
        let askers = opened.peers_with_key.clone();
        self.remove_if_unreferenced(id.0, memory);
        askers
    }
    /// Records that a peer has released a closed region. Returns `None` if the peer never knew the region or it is
    /// still open.
    pub(crate) fn peer_released(&mut self, id: u64, peer: PeerId, memory: &mut dyn Memory) -> Option<()> {
        let opened = self.all.get_mut(id)?;
        if self.open.get(&opened.region.key) == Some(&id) || !opened.peers_with_key.remove(&peer) {
            return None;
        }
        self.remove_if_unreferenced(id, memory);
        Some(())
    }
    /// Forgets a peer whose connection has ended, and ends the regions that only it still knew.
    pub(crate) fn forget_peer(&mut self, peer: PeerId, memory: &mut dyn Memory) {
        for id in self.all.ids(|opened| opened.peers_with_key.contains(&peer)) {
            if let Some(opened) = self.all.get_mut(id) {
                opened.peers_with_key.remove(&peer);
            }
            self.remove_if_unreferenced(id, memory);
        }
    }
    fn remove_if_unreferenced(&mut self, id: u64, memory: &mut dyn Memory) {
        let Some(opened) = self.all.get(id) else { return };
        if !opened.peers_with_key.is_empty() || self.open.get(&opened.region.key) == Some(&id) {
            return;
        }
        match self.all.remove(id).map(|opened| opened.exposure) {
            Some(Exposure::Open(Remote { rkey, .. }) | Exposure::Withdrawn(Some(rkey))) => {
                memory.deregister(rkey);
            }
            Some(Exposure::None | Exposure::Withdrawn(None)) | None => {}
        }
    }
    /// Withdraws a closed region and returns the transport's key and the peers that have not released it. If these
    /// peers were asked to release it, the transport keeps the key until they do: they discard anything they read
    /// under it.
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
        Some((remote.rkey, opened.peers_with_key.clone()))
    }
    /// Returns the peers that have not released a region.
    pub(crate) fn askers(&self, id: RegionId) -> impl Iterator<Item = PeerId> {
        self.all.get(id.0).into_iter().flat_map(|opened| opened.peers_with_key.iter().copied())
    }
    /// Returns true while peers can access a region, open or closing.
    pub(crate) fn is_accessible(&self, id: RegionId) -> bool {
        self.all.get(id.0).is_some_and(|opened| !matches!(opened.exposure, Exposure::Withdrawn(_)))
    }
}

/// State of a region for a peer.
pub(crate) enum PeerView<'a> {
    /// The peer knows the region, which is open or closing.
    Yes(&'a OpenRegion),
    /// The peer knows the region and has not released it since it was withdrawn.
    Withdrawn,
    /// The peer never knew the region, or has released it.
    No,
}
