//! Limits of an engine.

/// Most bytes of an inject (inject_size): fits the smallest receive that is ever granted.
pub const MAX_INJECT: u64 = 1024;
/// Most bytes of one operand of an atomic: operand, comparand and header fit the smallest receive.
pub const MAX_ATOMIC_BYTES: u64 = 960;
/// Most bytes of a message (max_msg_size).
pub const MAX_MESSAGE: u64 = 1 << 40;

/// How many receives of which size a peer has at first, in both directions, without being told.
pub const FIRST_RECEIVES: (u16, u32) = (4, 2048);
/// Most receives a peer has.
pub const MOST_RECEIVES: u16 = 64;

/// Limits of an engine. The defaults are those of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Longest message that is sent eagerly, in bytes (PATHWEAVE_EAGER).
    pub eager: u32,
    /// Bytes of the receives of busy peers: `eager` and a header, but as many as the [`FIRST_RECEIVES`] have at least.
    pub busy_receive: u32,
    /// Bytes of all receives posted for peers. Every peer has [`FIRST_RECEIVES`], beyond it if need be.
    pub pool: u64,
    /// Bytes of unexpected payload (PATHWEAVE_UNEXPECTED_BYTES). Where the engine holds as many, peers are granted receives
    /// for announcements only; what was granted before, at most [`pool`](Self::pool), may yet come.
    pub unexpected_bytes: u64,
    /// Unexpected messages, payload or not; with as many, peers wait.
    pub unexpected_messages: u64,
    /// Operations that wait or are in flight (tx size); an announced message is not among them.
    pub operations: usize,
    /// Entries of peers' writes that the application has not read; with as many, peers wait.
    pub notices: u64,
    /// Bytes of one READ or WRITE.
    pub chunk: u64,
    /// READs in flight to a peer: as many as a queue pair has outstanding, since one more would hold up the messages behind it.
    pub reads_in_flight: u32,
    /// WRITEs in flight to a peer.
    pub writes_in_flight: u32,
    /// Bytes of READs in flight to a peer, and of WRITEs; one may be longer. Answers leave in order, and this is what a
    /// message behind them waits for at most.
    pub bytes_in_flight: u64,
    /// Secret of the hash tables, so that a peer cannot choose tags that collide.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            eager: 16 << 10,
            busy_receive: (16 << 10) + 64,
            pool: 64 << 20,
            unexpected_bytes: 64 << 20,
            unexpected_messages: 1 << 24,
            operations: 4096,
            notices: 1 << 16,
            chunk: 512 << 10,
            reads_in_flight: 16,
            writes_in_flight: 64,
            bytes_in_flight: 2 << 20,
            seed: 0,
        }
    }
}
