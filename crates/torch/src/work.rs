//! Orders of the engine, carried out on memory and connections.
#![allow(unsafe_code, reason = "reads and writes memory of tensors")]

use std::any::Any;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

use pathweave_collective::{
    Call, Engine, Frame, Landing, OpId, Output, PeerId, Received, ReduceOp, SEGMENT_BYTES, Span, TEMPORARY,
    Target, combine, divide,
};
use pathweave_datapath::{Access, Device, Events, Region, Registration, Remote, Slice};
use pathweave_door::say_once;

use crate::copies::{Copies, Landings, Next, Note, Offers, Piece};
use crate::peer::{IS_FRAME, IS_WRITE, PLACE_BYTES, Peer, Request};
use crate::record::Cookie;
use crate::ticket::Ticket;

/// Object that keeps the memory of tensors alive.
pub type Keep = Arc<dyn Any + Send + Sync>;

/// Memory of a tensor.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// Address of the first byte.
    pub address: usize,
    /// Number of bytes.
    pub bytes: usize,
}

/// An operation in progress.
pub(crate) struct Running {
    pub(crate) call: Call,
    pub(crate) buffers: Vec<Region>,
    pub(crate) temporary: Option<Region>,
    registered: HashMap<u32, Registration>,
    pub(crate) ticket: Arc<Ticket>,
}

/// Everything that the lock of a process guards.
pub(crate) struct State {
    pub(crate) engine: Engine,
    pub(crate) peers: Vec<Peer>,
    pub(crate) by_cookie: HashMap<Cookie, PeerId>,
    pub(crate) by_connection: HashMap<pathweave_datapath::ConnectionId, PeerId>,
    pub(crate) running: HashMap<OpId, Running>,
    /// Places for bytes to be combined, open to all peers.
    scratch: Vec<(Region, Registration)>,
    /// Memory of frames that are being sent, by number, and numbers that are free.
    frames: Vec<Region>,
    free_frames: Vec<u32>,
    /// Keys of failed operations. Peers may still use them; nothing is written then.
    withdrawn: Vec<Registration>,
    offers: Offers,
    landings: Landings,
    pub(crate) copies: Copies,
    /// Peers to dial.
    pub(crate) wanted: Vec<PeerId>,
}

impl Running {
    /// # Safety
    /// The buffers are valid until `keep` is dropped.
    pub(crate) unsafe fn new(
        call: Call,
        buffers: &[Buffer],
        keep: &Keep,
        temporary_bytes: usize,
        ticket: Arc<Ticket>,
    ) -> Result<Self, String> {
        let region = |buffer: &Buffer| {
            let start = NonNull::new(buffer.address as *mut u8).unwrap_or(NonNull::dangling());
            // SAFETY: guaranteed by the caller; users of tensors wait for the operation before they look at them.
            unsafe { Region::from_raw(start, buffer.bytes, Box::new(keep.clone())) }
        };
        let temporary = match temporary_bytes {
            0 => None,
            bytes => Some(Region::zeroed(bytes).map_err(|error| error.to_string())?),
        };
        let buffers = buffers.iter().map(region).collect();
        Ok(Running { call, buffers, temporary, registered: HashMap::new(), ticket })
    }

    fn region(&self, span: Span) -> Option<&Region> {
        match span.buffer {
            TEMPORARY => self.temporary.as_ref(),
            number => self.buffers.get(number as usize),
        }
    }

    fn slice(&self, span: Span) -> Option<Slice> {
        self.region(span)?.slice(span.start..span.start + span.len).ok()
    }

    /// Returns the first byte of a span that is within its buffer.
    fn pointer(&self, span: Span) -> Option<*mut u8> {
        let slice = self.slice(span)?;
        Some(slice.region().as_ptr().wrapping_add(slice.offset()))
    }

    /// Returns address and key for peers.
    fn open(&mut self, span: Span, device: &Device) -> Option<Remote> {
        if !self.registered.contains_key(&span.buffer) {
            let opened = device.register(self.region(span)?, Access::WRITE).ok()?;
            self.registered.insert(span.buffer, opened);
        }
        Some(self.registered.get(&span.buffer)?.remote(span.start as u64))
    }
}

impl State {
    pub(crate) fn new() -> Self {
        State {
            engine: Engine::new(),
            peers: Vec::new(),
            by_cookie: HashMap::new(),
            by_connection: HashMap::new(),
            running: HashMap::new(),
            scratch: Vec::new(),
            frames: Vec::new(),
            free_frames: Vec::new(),
            withdrawn: Vec::new(),
            offers: Offers::default(),
            landings: Landings::default(),
            copies: Copies::default(),
            wanted: Vec::new(),
        }
    }

    /// Carries out all orders. Returns true if an operation has ended.
    pub(crate) fn obey(&mut self, device: &Device, events: &Events) -> bool {
        let mut ended = false;
        while let Some(output) = self.engine.next_output() {
            ended |= matches!(output, Output::Done { .. });
            if self.carry_out(output, device, events).is_none() {
                // Only a lack of memory or of keys leads here; the peer's patience ends the operation.
                continue;
            }
        }
        ended
    }

    fn carry_out(&mut self, output: Output, device: &Device, events: &Events) -> Option<()> {
        match output {
            Output::Frame { peer, bytes } => self.send(peer, &bytes, &[]),
            Output::Eager { peer, head, op, from } => {
                let running = self.running.get(&op)?;
                let mut payload = [0; pathweave_collective::EAGER_BYTES];
                let payload = payload.get_mut(..from.len)?;
                if from.len > 0 {
                    running.region(from)?.read(from.start, payload).ok()?;
                }
                self.send(peer, &head, payload)
            }
            Output::Announce { peer, op, landing, key, call, bytes, token } => {
                let remote = self.land(op, landing, bytes, device)?;
                let target = Target { address: remote.address, rkey: remote.rkey, token };
                self.landings.add(token, peer, op, landing);
                self.send(peer, &Frame::Ready { key, call, bytes: bytes as u64, target }.encode(), &[])
            }
            Output::Write { peer, op, from, target, id } => {
                let memory = self.running.get(&op)?.slice(from)?;
                let is_near = self.peers.get(peer as usize)?.neighbour.is_some();
                if is_near && from.len > 0 {
                    let note = self.offers.add(peer, memory, target, id);
                    self.send(peer, &note.encode(), &[])
                } else {
                    self.write(peer, memory, target, id)
                }
            }
            Output::Store { op, to, bytes } => {
                if bytes.is_empty() {
                    return Some(());
                }
                self.running.get(&op)?.region(to)?.write(to.start, &bytes).ok()
            }
            Output::Combine { op, with, into, received, order } => {
                self.combine(op, (with, into), &received, order)
            }
            Output::Copy { op, from, to } => {
                let running = self.running.get(&op)?;
                let (source, target) = (running.pointer(from)?, running.pointer(to)?);
                // SAFETY: both spans are within buffers, which live; the ranges may overlap.
                unsafe { ptr::copy(source, target, from.len.min(to.len)) };
                Some(())
            }
            Output::Divide { op, of, by } => {
                let running = self.running.get(&op)?;
                let start = running.pointer(of)?;
                // SAFETY: the span is within a buffer, which lives, and peers do not write into it at this step.
                divide(running.call.dtype, unsafe { slice::from_raw_parts_mut(start, of.len) }, by);
                Some(())
            }
            Output::Done { op, result } => {
                self.end(op, result, events);
                Some(())
            }
        }
    }

    fn combine(
        &mut self,
        op: OpId,
        (with, into): (Span, Span),
        received: &Received,
        order: pathweave_collective::Order,
    ) -> Option<()> {
        let running = self.running.get(&op)?;
        let (source, target) = (running.pointer(with)?, running.pointer(into)?);
        let received = match received {
            Received::Bytes(bytes) => bytes.as_slice(),
            Received::Scratch(number) => {
                let place = self.scratch.get(*number as usize)?.0.as_ptr();
                // SAFETY: the place has as many bytes as the longest transfer, and its peer has finished writing.
                unsafe { slice::from_raw_parts(place, with.len.min(SEGMENT_BYTES)) }
            }
        };
        let len = with.len.min(into.len).min(received.len());
        // SAFETY: both spans are within buffers, which live; peers do not write into them at this step.
        let own = unsafe {
            if source != target {
                ptr::copy(source, target, len);
            }
            slice::from_raw_parts_mut(target, len)
        };
        let how = running.call.op.unwrap_or(ReduceOp::Sum);
        combine(running.call.dtype, how, own, received, order);
        Some(())
    }

    fn write(&mut self, peer: PeerId, memory: Slice, target: Target, id: u64) -> Option<()> {
        let remote = Remote { address: target.address, rkey: target.rkey };
        self.post(peer, Request { number: IS_WRITE | id, memory, target: Some((remote, target.token)) })
    }

    /// Processes a note of a neighbour.
    pub(crate) fn note(&mut self, peer: PeerId, note: Note) {
        match note {
            Note::Fetch { number, token, piece } => {
                let copied = self.fetch(peer, token, &piece).is_some();
                let answer = if copied { Note::Fetched { number } } else { Note::Failed { number } };
                let _ = self.send(peer, &answer.encode(), &[]);
                if copied && piece.is_last() {
                    self.arrived(peer, token, piece.total);
                }
            }
            Note::Fetched { number } => match self.offers.copied(peer, number) {
                Some(Next::Note(note)) => drop(self.send(peer, &note.encode(), &[])),
                Some(Next::Complete) => self.engine.written(number),
                None => {}
            },
            Note::Failed { number } => {
                self.peers[peer as usize].neighbour = None;
                if let Some(offered) = self.offers.take_back(peer, number) {
                    let _ = self.write(peer, offered.memory, offered.target, number);
                }
            }
        }
    }

    /// Copies what a neighbour offers. Nothing is copied for an operation that has ended, which is as good.
    fn fetch(&mut self, peer: PeerId, token: u32, piece: &Piece) -> Option<()> {
        let neighbour = self.peers[peer as usize].neighbour?;
        let (op, landing, room) = self.landings.get(peer, token)?;
        let (start, bytes) = piece.within(room)?;
        let to = match landing {
            Landing::Span(span) => match self.running.get(&op) {
                Some(running) => running.pointer(span)?,
                None => return Some(()),
            },
            Landing::Scratch(number) => self.scratch.get(number as usize)?.0.as_ptr(),
        };
        // SAFETY: the memory was announced to this peer for these bytes, and nobody else uses it meanwhile.
        match unsafe { neighbour.copy(to.wrapping_add(start), bytes, piece.address) } {
            Ok(()) => {
                self.copies.copies += 1;
                self.copies.bytes += bytes as u64;
                Some(())
            }
            // The process has ended, of which an event tells.
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                self.apart(peer, neighbour.refusal(&error));
                None
            }
        }
    }

    /// Takes note of a process of this host whose memory is not copied.
    pub(crate) fn apart(&mut self, peer: PeerId, reason: String) {
        self.peers[peer as usize].neighbour = None;
        say_once(&format!("{reason}; packets are used between processes of this host"));
        self.copies.refused += 1;
        self.copies.refusal = Some(reason);
    }

    /// Processes the end of a peer's WRITE.
    pub(crate) fn arrived(&mut self, peer: PeerId, token: u32, bytes: u64) {
        self.landings.close(peer, token);
        self.engine.arrived(peer, token, bytes);
    }

    /// Forgets transfers with a peer that has gone.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        self.offers.forget(peer);
        self.landings.forget(peer);
    }

    /// Returns where a peer writes.
    fn land(&mut self, op: OpId, landing: Landing, bytes: usize, device: &Device) -> Option<Remote> {
        let number = match landing {
            Landing::Span(span) if bytes > 0 => return self.running.get_mut(&op)?.open(span, device),
            // Nothing is written, but the peer needs a key.
            Landing::Span(_) => 0,
            Landing::Scratch(number) => number as usize,
        };
        while self.scratch.len() <= number {
            let region = Region::zeroed(SEGMENT_BYTES).ok()?;
            let opened = device.register(&region, Access::WRITE).ok()?;
            self.scratch.push((region, opened));
        }
        Some(self.scratch[number].1.remote(0))
    }

    fn send(&mut self, peer: PeerId, head: &[u8], payload: &[u8]) -> Option<()> {
        let number = match self.free_frames.pop() {
            Some(number) => number,
            None => {
                self.frames.push(Region::zeroed(PLACE_BYTES).ok()?);
                self.frames.len() as u32 - 1
            }
        };
        let frame = &self.frames[number as usize];
        frame.write(0, head).ok()?;
        frame.write(head.len(), payload).ok()?;
        let memory = frame.slice(0..head.len() + payload.len()).ok()?;
        self.post(peer, Request { number: IS_FRAME | u64::from(number), memory, target: None })
    }

    fn post(&mut self, peer: PeerId, request: Request) -> Option<()> {
        let to = self.peers.get_mut(peer as usize)?;
        if matches!(to.link, crate::peer::Link::None) {
            self.wanted.push(peer);
        }
        to.post(request);
        Some(())
    }

    /// Takes the memory of a frame back.
    pub(crate) fn frame_left(&mut self, number: u64) {
        self.free_frames.push((number & !IS_FRAME) as u32);
    }

    fn end(&mut self, op: OpId, result: Result<Option<u32>, String>, events: &Events) {
        let Some(running) = self.running.remove(&op) else { return };
        if result.is_err() {
            // Peers may still write: nothing must reach the memory, and their connections must not fail.
            for registration in running.registered.into_values() {
                events.withdraw(&registration, 0);
                self.withdrawn.push(registration);
            }
        }
        running.ticket.end(result);
    }
}
