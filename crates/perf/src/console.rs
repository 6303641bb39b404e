//! Who runs a measurement.

use std::time::Duration;

/// What carries messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// A reliable connection.
    Connection,
    /// Reliable datagrams: one endpoint for any number of peers.
    Datagram,
}

/// Who runs a measurement: is told of it, and may want it to end.
pub trait Console {
    /// Whether it is to end.
    fn is_interrupted(&self) -> bool;
    /// Something that is not the result: where a server serves, who has come.
    fn note(&self, note: Note<'_>);
    /// How far a measurement is; called some ten times a second. `health` costs a look at all counters.
    fn progress(&mut self, progress: Progress, health: &mut dyn FnMut() -> Health);
}

/// Something that a [`Console`] is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note<'a> {
    /// Where a server serves.
    Listening(&'a str),
    /// What a client of a server has done.
    Client(&'a str),
    /// What is other than was asked for.
    Remark(&'a str),
}

/// How far a measurement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of a message.
    pub size_bytes: u64,
    /// Messages there are to be, if not as many as the time allows.
    pub iterations: Option<u64>,
    /// Messages that are done.
    pub done: u64,
    /// Since it began.
    pub elapsed: Duration,
    /// How long it takes, if that is given.
    pub time: Option<Duration>,
}

/// How a connection, or a peer of datagrams, is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Packets sent again.
    pub retransmitted: u64,
    /// Paths that are up.
    pub paths_up: usize,
    /// All paths.
    pub paths: usize,
}

/// Why there is no measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// What was asked for cannot be; the text says what, where, and what to do.
    Input(String),
    /// A bug, or a system that does not work.
    Internal(String),
}
