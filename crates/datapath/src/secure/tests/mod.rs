//! Whole handshakes, friendly and not.

mod handshake;
mod hostile;
mod limits;
mod pair;
