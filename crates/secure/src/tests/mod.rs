//! Complete handshakes with honest and hostile ends.

mod golden;
mod handshake;
mod hostile;
mod limits;
mod pair;
