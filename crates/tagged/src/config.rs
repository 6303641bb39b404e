//! Limits of an engine.

/// Largest inject in bytes (inject_size). Fits the smallest receive that is ever granted.
pub const MAX_INJECT: u64 = 1024;
/// Largest operand of an atomic in bytes. Operand, comparand and header together fit the smallest receive.
pub const MAX_ATOMIC_BYTES: u64 = 960;
/// Largest message in bytes (max_msg_size).
pub const MAX_MESSAGE: u64 = 1 << 40;

/// Number and size in bytes of the receives that each side of a connection has posted at first. The dialled side may
/// use them without a grant.
pub const FIRST_RECEIVES: (u16, u32) = (4, 2048);
/// Largest number of receives posted for a peer.
pub const MOST_RECEIVES: u16 = 64;

/// Limits of an engine. The defaults are those of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Longest message that is sent eagerly, in bytes (PATHWEAVE_EAGER). Default 16 KiB.
    pub eager: u32,
    /// Size of the receives of busy peers, in bytes: `eager` plus a header. A size below that of the
    /// [`FIRST_RECEIVES`] is raised to it. Default 16 KiB + 64.
    pub busy_receive: u32,
    /// Limit on all receives posted for peers together, in bytes. Every peer has the [`FIRST_RECEIVES`], even beyond
    /// this limit. Default 64 MiB.
    pub pool: u64,
    /// Limit on unexpected payload, in bytes (PATHWEAVE_UNEXPECTED_BYTES). At the limit, peers are granted receives
    /// for announcements only. Payload granted earlier, at most [`pool`](Self::pool), may still arrive. Default 64
    /// MiB.
    pub unexpected_bytes: u64,
    /// Limit on unexpected messages, with or without payload. At the limit, peers wait. Default 2^24.
    pub unexpected_messages: u64,
    /// Limit on operations that wait or are in flight (tx size). Announced messages do not count. Default 4096.
    pub operations: usize,
    /// Limit on completion entries of peers' writes that the application has not read. At the limit, peers wait.
    /// Default 65536.
    pub notices: u64,
    /// Largest READ or WRITE request, in bytes. Default 512 KiB.
    pub chunk: u64,
    /// READs in flight to a peer. Equal to the outstanding READs of a queue pair, since one more would block the
    /// messages behind it. Default 16.
    pub reads_in_flight: u32,
    /// WRITEs in flight to a peer. Default 64.
    pub writes_in_flight: u32,
    /// Bytes of READs in flight to a peer, and likewise of WRITEs; a single longer request is allowed. Read responses
    /// leave in order, so this bounds the delay of a message behind them. Default 2 MiB.
    pub bytes_in_flight: u64,
    /// Secret seed of the hash tables, so that a peer cannot choose tags that collide. Default 0.
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
