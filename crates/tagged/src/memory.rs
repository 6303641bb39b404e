//! Memory of the application, which the engine accesses through handles only.

/// Engine's number of a remote endpoint: one for each pair of address and boot number. The driver assigns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u32);

impl PeerId {
    /// This endpoint. Messages to it stay within the engine.
    pub const SELF: PeerId = PeerId(u32::MAX);
}

/// Buffer of the application, possibly scattered, by the number that the driver assigned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Buffer(pub u64);

/// Contiguous range of bytes in a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Buffer of the range.
    pub buffer: Buffer,
    /// Start of the range in the buffer, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
}

impl Piece {
    /// Empty range.
    pub const NONE: Piece = Piece { buffer: Buffer(0), offset: 0, len: 0 };

    /// Returns the first `len` bytes of a buffer.
    pub const fn whole(buffer: Buffer, len: u64) -> Self {
        Piece { buffer, offset: 0, len }
    }
    /// Returns `len` bytes starting at `offset`, or `None` if they exceed the piece.
    pub fn part(self, offset: u64, len: u64) -> Option<Self> {
        let end = offset.checked_add(len)?;
        (end <= self.len).then(|| Piece { offset: self.offset + offset, len, ..self })
    }
    /// Like [`part`](Self::part), but cuts the range off at the end of the piece.
    pub(crate) fn within(self, offset: u64, len: u64) -> Self {
        let offset = offset.min(self.len);
        Piece { offset: self.offset + offset, len: len.min(self.len - offset), ..self }
    }
}

/// Access rights of peers to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// READ only.
    Read,
    /// WRITE only.
    Write,
    /// READ, WRITE and fetching atomics.
    ReadWrite,
}

impl Access {
    /// Returns true if READ is allowed.
    pub const fn reads(self) -> bool {
        !matches!(self, Access::Write)
    }
    /// Returns true if WRITE is allowed.
    pub const fn writes(self) -> bool {
        !matches!(self, Access::Read)
    }
}

/// Remote address and key of registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Address of the first byte in the transport's address space.
    pub address: u64,
    /// Key that the transport assigned.
    pub rkey: u64,
}

/// Access to the application's memory, which the driver provides to the engine. The engine calls it only within its
/// own calls.
///
/// All pieces that the engine passes lie within memory that the application posted or opened.
pub trait Memory {
    /// Writes bytes to a piece of the same length.
    fn write(&mut self, at: Piece, bytes: &[u8]);

    /// Reads the bytes of a piece of the same length.
    fn fetch(&mut self, from: Piece, into: &mut [u8]);

    /// Copies between two pieces of the same length, which are either disjoint or identical.
    fn copy(&mut self, from: Piece, to: Piece) {
        let mut chunk = [0; 1024];
        let mut done = 0;
        while done < from.len {
            let len = (from.len - done).min(1024);
            let bytes = &mut chunk[..len as usize];
            self.fetch(from.within(done, len), bytes);
            self.write(to.within(done, len), bytes);
            done += len;
        }
    }

    /// Lets `change` modify one word of 1, 2, 4 or 8 bytes, atomically with respect to all other calls of `update`
    /// for the same memory, from any endpoint. A driver whose engines share memory takes their common lock here.
    fn update(&mut self, at: Piece, change: &mut dyn FnMut(&mut [u8])) {
        let mut word = [0; 8];
        let word = &mut word[..at.len.min(8) as usize];
        self.fetch(at, word);
        change(word);
        self.write(at, word);
    }

    /// Copies a piece into a buffer of the driver, which lives until [`release`](Self::release). Returns `None` if
    /// there is no memory for it.
    fn copy_out(&mut self, piece: Piece) -> Option<Buffer>;

    /// Frees a buffer that [`copy_out`](Self::copy_out) returned.
    fn release(&mut self, buffer: Buffer);

    /// Registers a piece for one peer, or for all connected peers. Returns `None` if the transport takes no more
    /// regions.
    fn register(&mut self, piece: Piece, access: Access, to: Option<PeerId>) -> Option<Remote>;

    /// Deregisters the memory under this key. No request to it is in flight any more, except from a peer that did not
    /// handle the [withdrawal](crate::Engine::withdraw_region) in time. The transport must still be able to
    /// retransmit answers that the peer may already have.
    fn deregister(&mut self, rkey: u64);

    /// Withdraws the memory under this key but keeps the key. Requests of peers that have not processed the
    /// withdrawal then go to other memory or end their connections. [`deregister`](Self::deregister) follows.
    fn withdraw(&mut self, _rkey: u64) {}
}
