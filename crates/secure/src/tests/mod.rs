//! Whole handshakes, friendly and not.

mod golden;
mod handshake;
mod hostile;
mod limits;
mod pair;
