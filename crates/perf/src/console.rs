//! Interface to the user who runs a measurement.

use std::time::Duration;

/// Transport service that carries messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Reliable connection.
    Connection,
    /// Reliable datagrams: one endpoint for any number of peers.
    Datagram,
}

/// Interface to the user: receives progress and can end the measurement.
pub trait Console {
    /// Returns true if the measurement shall end.
    fn is_interrupted(&self) -> bool;
    /// Reports a fact other than the result, for instance the server's address or a new client.
    fn note(&self, note: Note<'_>);
    /// Reports the progress of a measurement, about ten times a second. Each call of `health` reads all counters.
    fn progress(&mut self, progress: Progress, health: &mut dyn FnMut() -> Health);
}

/// Message to a [`Console`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note<'a> {
    /// Address on which a server listens.
    Listening(&'a str),
    /// Event of a client of the server.
    Client(&'a str),
    /// Deviation from the request.
    Remark(&'a str),
}

/// Progress of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Size of a message in bytes.
    pub size_bytes: u64,
    /// Number of messages, or `None` if the measurement is bounded by time.
    pub iterations: Option<u64>,
    /// Number of completed messages.
    pub done: u64,
    /// Time since the measurement began.
    pub elapsed: Duration,
    /// Duration of the measurement, if it is bounded by time.
    pub time: Option<Duration>,
}

/// Health of a connection, or of the traffic to a datagram peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Packets retransmitted.
    pub retransmitted: u64,
    /// Number of paths that are up.
    pub paths_up: usize,
    /// Number of all paths.
    pub paths: usize,
}

/// Reason why a measurement could not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The request is invalid. The text names the mistake, its place and the remedy.
    Input(String),
    /// A bug, or a failure of the system.
    Internal(String),
}
