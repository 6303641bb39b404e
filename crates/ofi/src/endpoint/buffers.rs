//! The application's memory, by the numbers under which the engine knows it, and the bridge between the engine's wishes and
//! the datapath's registrations.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use pathweave_datapath::{self as datapath, Device, Events, Region, Registration, Slices};
use pathweave_shm::{Lane, Place, Reader};
use pathweave_tagged::{Access, Buffer, Memory, PeerId, Piece, Remote};
use slab::Slab;

use crate::ffi::memory::{self, Span, Spans};
use crate::object::{Map, lock};

/// What stands behind a number.
enum Stored {
    /// Bytes of the application.
    Lent(Spans),
    /// A copy of ours.
    Owned(Box<[u8]>),
}

struct Slot {
    stored: Stored,
    /// As the datapath knows it, made at first need: a region for each span.
    regions: Vec<Region>,
    /// Registrations that were given up, and that the loop may still answer from.
    releasing: u32,
    fate: Fate,
}

/// Which way bytes are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    FromPeer,
    ToPeer,
}

/// Whether messages of a peer go through shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Near {
    Yes,
    No,
}

/// What is open to peers under a key of the device.
struct Opened {
    registration: Registration,
    piece: Piece,
    access: Access,
}

/// What is open to one peer on this host, which copies from and to it by itself or asks this end to. The device does not know of
/// it, and its key, [`near_key`], is none of the device's: of those 40 bits are random, so that they are all ones in no run.
struct Loan {
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

/// Whether an operation still has a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Used,
    /// It goes with its last release.
    Forgotten,
}

/// All buffers of an endpoint.
pub(crate) struct Buffers {
    slots: Slab<Slot>,
    registrations: HashMap<u64, Opened>,
    /// Keys whose memory was taken away, until no peer uses them.
    withdrawn: HashMap<u64, Registration>,
    loans: Slab<Loan>,
    /// What is being released, by token.
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
    /// `words` is held while a word is changed.
    pub(crate) fn new(device: Device, events: Events, words: Arc<Mutex<()>>) -> Self {
        let (slots, registrations, releasing) = (Slab::new(), HashMap::new(), Slab::new());
        let (loans, near, withdrawn) = (Slab::new(), Map::default(), HashMap::new());
        Buffers { slots, registrations, withdrawn, loans, releasing, device, events, words, near }
    }

    /// From now on messages of a peer go through shared memory, or not.
    pub(crate) fn set_near(&mut self, peer: PeerId, near: Near) {
        match near {
            Near::Yes => self.near.insert(peer, ()),
            Near::No => self.near.remove(&peer),
        };
    }

    /// The piece that a peer on this host means by a place, if that is open to it for this.
    pub(crate) fn lent(&self, peer: PeerId, at: Place, len: u64, way: Direction) -> Option<Piece> {
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

    /// Fills a piece with what comes through a lane.
    pub(crate) fn fill(&self, into: Piece, from: &mut Reader<'_>) {
        self.spans(into, |_, part| match part {
            Part::Lent(span) => span.fill(from),
            // Copies of ours are only ever sent.
            Part::Owned(_) => {}
        });
    }

    /// Shows the bytes of a piece, part by part.
    pub(crate) fn each(&self, piece: Piece, mut look: impl FnMut(&[u8])) {
        self.spans(piece, |_, part| match part {
            Part::Lent(span) => span.show(&mut look),
            Part::Owned(bytes) => look(bytes),
        });
    }

    /// Copies memory of a peer on this host to a piece.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn copy(&self, lane: &Lane, into: Piece, address: u64) -> io::Result<()> {
        let mut spans = Vec::new();
        self.spans(into, |_, part| match part {
            Part::Lent(span) => spans.push(span),
            // Copies of ours are only ever sent.
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

    /// Takes in memory of the application; no bytes need no buffer.
    pub(crate) fn lend(&mut self, spans: Spans) -> Piece {
        let len: usize = spans.iter().map(|span| span.len()).sum();
        if len == 0 {
            return Piece::NONE;
        }
        Piece::whole(self.insert(Stored::Lent(spans)), len as u64)
    }

    /// Takes in a copy of scattered memory, in one piece.
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

    /// Forgets a buffer that no operation uses.
    pub(crate) fn forget(&mut self, buffer: Buffer) {
        match self.slots.get_mut(index(buffer)) {
            Some(slot) if slot.releasing > 0 => slot.fate = Fate::Forgotten,
            Some(_) => drop(self.slots.remove(index(buffer))),
            None => {}
        }
    }

    /// The loop may still read the buffer, for a peer that has not heard an answer.
    pub(crate) fn is_in_use(&self, buffer: Buffer) -> bool {
        self.slots.get(index(buffer)).is_some_and(|slot| slot.releasing > 0)
    }

    /// Whether there is any such buffer.
    pub(crate) fn any_in_use(&self) -> bool {
        !self.releasing.is_empty()
    }

    /// The loop is to give up memory; by which token it tells.
    fn begin_release(&mut self, buffer: Buffer) -> u64 {
        if let Some(slot) = self.slots.get_mut(index(buffer)) {
            slot.releasing += 1;
        }
        self.releasing.insert(buffer) as u64
    }

    /// The loop has given up a registration; the buffer that it was of.
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

    /// Where a piece begins in the application's memory; 0 for none of its.
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

    /// A piece as the memory of a request.
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

    /// Address of the first byte of a piece, if the others follow it.
    pub(crate) fn start_of_one(&self, piece: Piece) -> Option<u64> {
        let mut parts = 0;
        self.spans(piece, |_, _| parts += 1);
        self.start(piece).filter(|_| parts == 1)
    }

    /// Where the first byte of a piece is.
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

    /// Calls `each` with the spans of a piece, and where each lies in it.
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

/// Bytes that follow each other.
enum Part<'a> {
    Lent(Span),
    Owned(&'a [u8]),
}

impl Memory for Buffers {
    fn place(&mut self, at: Piece, bytes: &[u8]) {
        self.spans(at, |offset, part| match part {
            Part::Lent(span) => span.store(&bytes[offset..offset + span.len()]),
            // Copies of ours are only ever sent.
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
        self.place(at, word);
    }

    fn keep(&mut self, piece: Piece) -> Option<Buffer> {
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
            let index = self.loans.insert(Loan { peer, address, piece, access });
            return Some(Remote { address, rkey: near_key(index) });
        }
        let slices = self.slots.get(index(piece.buffer))?;
        let region = match &slices.stored {
            Stored::Lent(spans) if spans.len() == 1 => {
                spans[0].part(piece.offset as usize, piece.len as usize).region()?
            }
            // What is to be read by peers is in one piece.
            Stored::Lent(_) => return None,
            Stored::Owned(bytes) => {
                let range = piece.offset as usize..(piece.offset + piece.len) as usize;
                Region::from_bytes(&bytes[range]).ok()?
            }
        };
        let allowed = datapath::Access { read: access.reads(), write: access.writes() };
        // Named by its address here: a peer on this host copies from there without asking.
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
