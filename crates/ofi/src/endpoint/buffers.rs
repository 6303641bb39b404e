//! Memory of the application, under the numbers by which the engine refers to it. Connects the engine's
//! requests to the datapath's registrations.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use pathweave_datapath::{self as datapath, Device, Events, Region, Registration, Slices};
use pathweave_shm::{Reader, RemoteLocation, ShmChannel};
use pathweave_tagged::{Access, Buffer, Memory, PeerId, Piece, Remote};
use slab::Slab;

use crate::ffi::memory::{self, Span, Spans};
use crate::object::{Map, lock};

/// Memory of a buffer.
enum Stored {
    /// Memory of the application.
    Lent(Spans),
    /// A copy that the provider owns.
    Owned(Box<[u8]>),
}

struct Slot {
    stored: Stored,
    /// Regions for the datapath, one per span. They are made at first use.
    regions: Vec<Region>,
    /// Number of registrations that were released but may still serve responses of the event loop.
    releasing: u32,
    fate: Fate,
}

/// Direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    FromPeer,
    ToPeer,
}

/// `Yes` if messages of a peer go through shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Near {
    Yes,
    No,
}

/// Memory that peers may access under a key of the device.
struct Opened {
    registration: Registration,
    piece: Piece,
    access: Access,
}

/// Memory that one peer on this host may access. The peer copies from and to it, or asks this endpoint to
/// copy. The device has no registration for it, and its key, [`near_key`], is never one of the device's. In
/// device keys, 40 bits are random, so they are all ones in no real run.
struct LocalGrant {
    peer: PeerId,
    address: u64,
    piece: Piece,
    access: Access,
}

fn near_key(index: usize) -> u64 {
    u64::MAX - index as u64
}

fn near_index(key: u64) -> usize {
    (u64::MAX - key) as usize
}

/// Use of a buffer by operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Used,
    /// The buffer is removed with its last release.
    Forgotten,
}

/// All buffers of an endpoint.
pub(crate) struct Buffers {
    slots: Slab<Slot>,
    registrations: HashMap<u64, Opened>,
    /// Registrations of memory that was withdrawn, kept until no peer uses them.
    withdrawn: HashMap<u64, Registration>,
    loans: Slab<LocalGrant>,
    /// Buffers that are being released, by token.
    releasing: Slab<Buffer>,
    device: Device,
    events: Events,
    words: Arc<Mutex<()>>,
    /// Peers whose messages go through shared memory.
    near: Map<PeerId, ()>,
}

fn index(buffer: Buffer) -> usize {
    (buffer.0 as usize).wrapping_sub(1)
}

impl Buffers {
    /// Makes an empty set. The lock `words` is held while an atomic operation changes a word.
    pub(crate) fn new(device: Device, events: Events, words: Arc<Mutex<()>>) -> Self {
        let (slots, registrations, releasing) = (Slab::new(), HashMap::new(), Slab::new());
        let (loans, near, withdrawn) = (Slab::new(), Map::default(), HashMap::new());
        Buffers { slots, registrations, withdrawn, loans, releasing, device, events, words, near }
    }

    /// Sets if messages of a peer go through shared memory.
    pub(crate) fn set_near(&mut self, peer: PeerId, near: Near) {
        match near {
            Near::Yes => self.near.insert(peer, ()),
            Near::No => self.near.remove(&peer),
        };
    }

    /// Returns the piece of memory that a peer on this host addresses, if the peer may access it in this
    /// direction.
    pub(crate) fn granted_piece(
        &self,
        peer: PeerId,
        at: RemoteLocation,
        len: u64,
        way: Direction,
    ) -> Option<Piece> {
        let (start, piece, access) = match self.registrations.get(&at.key) {
            Some(Opened { registration, piece, access }) => (registration.address(), *piece, *access),
            None => {
                let loan = self.loans.get(near_index(at.key)).filter(|loan| loan.peer == peer)?;
                (loan.address, loan.piece, loan.access)
            }
        };
        let is_allowed = match way {
            Direction::FromPeer => access.reads(),
            Direction::ToPeer => access.writes(),
        };
        piece.part(at.address.checked_sub(start)?, len).filter(|_| is_allowed)
    }

    /// Fills a piece with data from a lane.
    pub(crate) fn fill(&self, into: Piece, from: &mut Reader<'_>) {
        self.spans(into, |_, part| match part {
            Part::Lent(span) => span.fill(from),
            // The provider's own copies are only sent, never filled.
            Part::Owned(_) => {}
        });
    }

    /// Calls `look` with the bytes of each part of a piece.
    pub(crate) fn each(&self, piece: Piece, mut look: impl FnMut(&[u8])) {
        self.spans(piece, |_, part| match part {
            Part::Lent(span) => span.show(&mut look),
            Part::Owned(bytes) => look(bytes),
        });
    }

    /// Copies memory of a peer on this host to a piece.
    ///
    /// # Errors
    ///
    /// Returns the error of the kernel.
    pub(crate) fn copy(&self, lane: &ShmChannel, into: Piece, address: u64) -> io::Result<()> {
        let mut spans = Vec::new();
        self.spans(into, |_, part| match part {
            Part::Lent(span) => spans.push(span),
            // The provider's own copies are only sent, never filled.
            Part::Owned(_) => {}
        });
        memory::read(lane, &spans, address)
    }

    fn insert(&mut self, stored: Stored) -> Buffer {
        Buffer(
            self.slots.insert(Slot { stored, regions: Vec::new(), releasing: 0, fate: Fate::Used }) as u64
                + 1,
        )
    }

    /// Adds memory of the application. Zero bytes need no buffer.
    pub(crate) fn add(&mut self, spans: Spans) -> Piece {
        let len: usize = spans.iter().map(|span| span.len()).sum();
        if len == 0 {
            return Piece::NONE;
        }
        Piece::whole(self.insert(Stored::Lent(spans)), len as u64)
    }

    /// Adds a contiguous copy of scattered memory.
    pub(crate) fn gather(&mut self, spans: &[Span]) -> Piece {
        let mut bytes = vec![0; spans.iter().map(|span| span.len()).sum()];
        let mut rest = &mut bytes[..];
        for span in spans {
            let (here, behind) = rest.split_at_mut(span.len());
            span.load(here);
            rest = behind;
        }
        let len = bytes.len() as u64;
        if len == 0 { Piece::NONE } else { Piece::whole(self.insert(Stored::Owned(bytes.into())), len) }
    }

    /// Removes a buffer that no operation uses.
    pub(crate) fn forget(&mut self, buffer: Buffer) {
        match self.slots.get_mut(index(buffer)) {
            Some(slot) if slot.releasing > 0 => slot.fate = Fate::Forgotten,
            Some(_) => drop(self.slots.remove(index(buffer))),
            None => {}
        }
    }

    /// Returns true if the event loop may still read the buffer, for a peer that has not received a response.
    pub(crate) fn is_in_use(&self, buffer: Buffer) -> bool {
        self.slots.get(index(buffer)).is_some_and(|slot| slot.releasing > 0)
    }

    /// Returns true if the event loop may still read any buffer.
    pub(crate) fn any_in_use(&self) -> bool {
        !self.releasing.is_empty()
    }

    /// Starts the release of memory by the event loop. Returns the token of the event that reports its end.
    fn begin_release(&mut self, buffer: Buffer) -> u64 {
        if let Some(slot) = self.slots.get_mut(index(buffer)) {
            slot.releasing += 1;
        }
        self.releasing.insert(buffer) as u64
    }

    /// Records that the event loop has released a registration. Returns its buffer.
    pub(crate) fn released(&mut self, token: u64) -> Option<Buffer> {
        let buffer = self.releasing.try_remove(token as usize)?;
        if let Some(slot) = self.slots.get_mut(index(buffer)) {
            slot.releasing -= 1;
            if slot.releasing == 0 && slot.fate == Fate::Forgotten {
                self.slots.remove(index(buffer));
            }
        }
        Some(buffer)
    }

    /// Returns the address of a piece in the application's memory, or 0 if the piece is not in it.
    pub(crate) fn address(&self, piece: Piece) -> usize {
        let Some(Slot { stored: Stored::Lent(spans), .. }) = self.slots.get(index(piece.buffer)) else {
            return 0;
        };
        let mut offset = piece.offset as usize;
        for span in spans {
            if offset < span.len() || (offset == 0 && piece.len == 0) {
                return span.address() + offset;
            }
            offset -= span.len();
        }
        0
    }

    /// Returns a piece as the memory of a datapath request.
    pub(crate) fn slices(&mut self, piece: Piece) -> Option<Slices> {
        let (from, len) = (piece.offset as usize, piece.len as usize);
        let slot = self.slots.get_mut(index(piece.buffer))?;
        if slot.regions.is_empty() {
            slot.regions = match &slot.stored {
                Stored::Lent(spans) => spans.iter().filter_map(|span| span.region()).collect(),
                Stored::Owned(bytes) => vec![Region::from_bytes(bytes).ok()?],
            };
        }
        if let [region] = &slot.regions[..] {
            return region.slice(from..from + len).ok().map(Slices::from);
        }
        let (mut skip, mut left) = (from, len);
        let mut slices = Vec::new();
        for region in &slot.regions {
            let here = region.len().saturating_sub(skip).min(left);
            if here > 0 {
                slices.push(region.slice(skip..skip + here).ok()?);
            }
            skip = skip.saturating_sub(region.len());
            left -= here;
        }
        Slices::of(slices).ok()
    }

    /// Returns the address of a piece's first byte, if the piece is contiguous.
    pub(crate) fn start_of_one(&self, piece: Piece) -> Option<u64> {
        let mut parts = 0;
        self.spans(piece, |_, _| parts += 1);
        self.start(piece).filter(|_| parts == 1)
    }

    /// Returns the address of a piece's first byte.
    fn start(&self, piece: Piece) -> Option<u64> {
        let mut start = None;
        self.spans(piece, |_, part| {
            start = start.or(Some(match part {
                Part::Lent(span) => span.address() as u64,
                Part::Owned(bytes) => bytes.as_ptr() as u64,
            }));
        });
        start
    }

    /// Calls `each` with every part of a piece and its offset within the piece.
    fn spans(&self, piece: Piece, mut each: impl FnMut(usize, Part<'_>)) {
        let (mut skip, mut left) = (piece.offset as usize, piece.len as usize);
        let Some(slot) = self.slots.get(index(piece.buffer)) else { return };
        match &slot.stored {
            Stored::Owned(bytes) => each(0, Part::Owned(&bytes[skip..skip + left])),
            Stored::Lent(spans) => {
                for span in spans {
                    let here = span.len().saturating_sub(skip).min(left);
                    if here > 0 {
                        each(piece.len as usize - left, Part::Lent(span.part(skip, here)));
                    }
                    skip = skip.saturating_sub(span.len());
                    left -= here;
                }
            }
        }
    }
}

/// A contiguous range of bytes.
enum Part<'a> {
    Lent(Span),
    Owned(&'a [u8]),
}

impl Memory for Buffers {
    fn write(&mut self, at: Piece, bytes: &[u8]) {
        self.spans(at, |offset, part| match part {
            Part::Lent(span) => span.store(&bytes[offset..offset + span.len()]),
            // The provider's own copies are only sent, never filled.
            Part::Owned(_) => {}
        });
    }

    fn fetch(&mut self, from: Piece, into: &mut [u8]) {
        self.spans(from, |offset, part| match part {
            Part::Lent(span) => span.load(&mut into[offset..offset + span.len()]),
            Part::Owned(bytes) => into[offset..offset + bytes.len()].copy_from_slice(bytes),
        });
    }

    fn update(&mut self, at: Piece, change: &mut dyn FnMut(&mut [u8])) {
        let words = self.words.clone();
        let _held = lock(&words);
        let mut word = [0; 8];
        let word = &mut word[..at.len.min(8) as usize];
        self.fetch(at, word);
        change(word);
        self.write(at, word);
    }

    fn copy_out(&mut self, piece: Piece) -> Option<Buffer> {
        let mut bytes = vec![0; piece.len as usize].into_boxed_slice();
        self.fetch(piece, &mut bytes);
        Some(self.insert(Stored::Owned(bytes)))
    }

    fn release(&mut self, buffer: Buffer) {
        self.forget(buffer);
    }

    fn register(&mut self, piece: Piece, access: Access, to: Option<PeerId>) -> Option<Remote> {
        if let Some(peer) = to.filter(|peer| self.near.contains_key(peer)) {
            let address = self.start(piece)?;
            let index = self.loans.insert(LocalGrant { peer, address, piece, access });
            return Some(Remote { address, rkey: near_key(index) });
        }
        let slices = self.slots.get(index(piece.buffer))?;
        let region = match &slices.stored {
            Stored::Lent(spans) if spans.len() == 1 => {
                spans[0].part(piece.offset as usize, piece.len as usize).region()?
            }
            // Memory that peers read must be contiguous.
            Stored::Lent(_) => return None,
            Stored::Owned(bytes) => {
                let range = piece.offset as usize..(piece.offset + piece.len) as usize;
                Region::from_bytes(&bytes[range]).ok()?
            }
        };
        let allowed = datapath::Access { read: access.reads(), write: access.writes() };
        // The registration's address is the local one, because a peer on this host copies from it without
        // asking.
        let address = region.as_ptr() as u64;
        let registration = self.device.register_at(&region, address, allowed).ok()?;
        let remote = registration.remote(0);
        self.registrations.insert(registration.rkey(), Opened { registration, piece, access });
        Some(Remote { address: remote.address, rkey: remote.rkey })
    }

    fn deregister(&mut self, rkey: u64) {
        if self.withdrawn.remove(&rkey).is_some() {
            // Dropping the registration closes it.
            return;
        }
        let Some(Opened { registration, piece, .. }) = self.registrations.remove(&rkey) else {
            self.loans.try_remove(near_index(rkey));
            return;
        };
        let token = self.begin_release(piece.buffer);
        self.events.release(registration, token);
    }

    fn withdraw(&mut self, rkey: u64) {
        let Some(Opened { registration, piece, .. }) = self.registrations.remove(&rkey) else { return };
        let token = self.begin_release(piece.buffer);
        self.events.withdraw(&registration, token);
        self.withdrawn.insert(rkey, registration);
    }
}
