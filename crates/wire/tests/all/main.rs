//! All integration tests of this crate in one program, so that it is linked once.

mod common;
mod datagram;
mod golden;
mod hostile;
mod roundtrip;
mod source_route;
