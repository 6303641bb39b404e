//! A connection and the places for notes, which both ends have.

use pathweave_datapath::{Connection, Region, RegionError, Slice};

use crate::abi::{Fault, MAX_GROUPS};
use crate::guard::{Outcome, warn};
use crate::notes::MAX_NOTE_BYTES;

/// Bytes of a place for a note.
const PLACE_BYTES: usize = 256;
/// Number of places for notes: twice the groups in progress, since the acknowledgement of a note may arrive after the
/// message that it asked for.
pub(crate) const PLACES: usize = 2 * MAX_GROUPS;
const _: () = assert!(MAX_NOTE_BYTES <= PLACE_BYTES);

/// A connection with its places.
pub(crate) struct Link {
    pub(crate) connection: Connection,
    board: Region,
}

impl Link {
    pub(crate) fn new(connection: Connection) -> Result<Self, RegionError> {
        Ok(Link { connection, board: Region::zeroed(PLACES * PLACE_BYTES)? })
    }

    /// Returns a place, to receive a note in.
    pub(crate) fn place(&self, place: usize) -> Result<Slice, RegionError> {
        self.board.slice(place * PLACE_BYTES..(place + 1) * PLACE_BYTES)
    }

    /// Writes a note into a place, to be sent.
    pub(crate) fn write(&self, place: usize, bytes: &[u8]) -> Result<Slice, RegionError> {
        let at = place * PLACE_BYTES;
        self.board.write(at, bytes)?;
        self.board.slice(at..at + bytes.len())
    }

    /// Returns the bytes that have arrived in a place.
    pub(crate) fn read(&self, place: usize, bytes: usize) -> Result<Vec<u8>, RegionError> {
        let at = place * PLACE_BYTES;
        self.board.to_vec(at..at + bytes.min(PLACE_BYTES))
    }

    /// Returns no bytes, as the memory of a request.
    pub(crate) fn nothing(&self) -> Outcome<Slice> {
        self.board.slice(0..0).map_err(|_| Fault::Internal)
    }

    /// Ends the connection because the peer breaks the protocol.
    pub(crate) fn reject(&self, why: &str) {
        warn(format_args!("{}: {why}; the connection is closed", self.connection.peer_addr()));
        self.connection.close();
    }
}
