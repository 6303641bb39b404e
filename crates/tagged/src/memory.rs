//! Memory of the application, which the engine knows by handles only.

/// The engine's name for an endpoint of the other side: one for each pair of address and boot number. The driver hands
/// them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u32);

impl PeerId {
    /// This endpoint: what is sent to it stays within the engine.
    pub const SELF: PeerId = PeerId(u32::MAX);
}

/// A buffer of the application, possibly scattered, by the number that the driver gave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Buffer(pub u64);

/// Bytes of a buffer that follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The buffer.
    pub buffer: Buffer,
    /// Where in it, in bytes.
    pub offset: u64,
    /// How many bytes.
    pub len: u64,
}

impl Piece {
    /// No bytes of no buffer.
    pub const NONE: Piece = Piece { buffer: Buffer(0), offset: 0, len: 0 };

    /// The first `len` bytes of a buffer.
    pub const fn whole(buffer: Buffer, len: u64) -> Self {
        Piece { buffer, offset: 0, len }
    }
    /// `len` bytes from `offset` on, where that lies within.
    pub fn part(self, offset: u64, len: u64) -> Option<Self> {
        let end = offset.checked_add(len)?;
        (end <= self.len).then(|| Piece { offset: self.offset + offset, len, ..self })
    }
    /// As [`part`](Self::part), cut off where it ends.
    pub(crate) fn within(self, offset: u64, len: u64) -> Self {
        let offset = offset.min(self.len);
        Piece { offset: self.offset + offset, len: len.min(self.len - offset), ..self }
    }
}

/// What others may do with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// READ it.
    Read,
    /// WRITE it.
    Write,
    /// Both, and fetching atomics.
    ReadWrite,
}

impl Access {
    /// READ is among it.
    pub const fn reads(self) -> bool {
        !matches!(self, Access::Write)
    }
    /// WRITE is among it.
    pub const fn writes(self) -> bool {
        !matches!(self, Access::Read)
    }
}

/// Where registered memory is found by the transport of another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Address of the first byte, as the transport counts.
    pub address: u64,
    /// The transport's key.
    pub rkey: u64,
}

/// What the driver does with the application's memory on behalf of the engine, within a call of the engine.
///
/// Pieces that it is given lie within what the application posted or opened.
pub trait Memory {
    /// Puts bytes at a piece of the same length.
    fn place(&mut self, at: Piece, bytes: &[u8]);

    /// Gets the bytes of a piece of the same length.
    fn fetch(&mut self, from: Piece, into: &mut [u8]);

    /// Copies between pieces of the same length, which do not overlap unless they are the same.
    fn copy(&mut self, from: Piece, to: Piece) {
        let mut chunk = [0; 1024];
        let mut done = 0;
        while done < from.len {
            let len = (from.len - done).min(1024);
            let bytes = &mut chunk[..len as usize];
            self.fetch(from.within(done, len), bytes);
            self.place(to.within(done, len), bytes);
            done += len;
        }
    }

    /// Lets `change` alter one word of 1, 2, 4 or 8 bytes, atomically against all other calls of `update` for the same
    /// memory, from whatever endpoint. A driver whose engines share memory takes their common lock here.
    fn update(&mut self, at: Piece, change: &mut dyn FnMut(&mut [u8])) {
        let mut word = [0; 8];
        let word = &mut word[..at.len.min(8) as usize];
        self.fetch(at, word);
        change(word);
        self.place(at, word);
    }

    /// A copy of a piece, in a buffer of the driver's that lives until [`release`](Self::release); `None` where there is
    /// no memory for it.
    fn keep(&mut self, piece: Piece) -> Option<Buffer>;

    /// A buffer of [`keep`](Self::keep) is not needed any more.
    fn release(&mut self, buffer: Buffer);

    /// Opens a piece to one peer, or to all that are connected; `None` where the transport takes no more regions.
    fn register(&mut self, piece: Piece, access: Access, to: Option<PeerId>) -> Option<Remote>;

    /// Closes what was opened under this key. No request that was made of it is in flight any more, unless a peer was too slow to
    /// hear that it is [withdrawn](crate::Engine::withdraw_region); but answers that the peer has may yet be sent again: the
    /// transport must bear that.
    fn deregister(&mut self, rkey: u64);

    /// Takes away the memory that was opened under this key, and leaves the key: requests of peers that have not heard of it go
    /// elsewhere, or end their connections. [`deregister`](Self::deregister) follows.
    fn withdraw(&mut self, _rkey: u64) {}
}
