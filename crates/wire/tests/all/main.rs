//! The tests of this crate as one program: it is linked once.

mod common;
mod datagram;
mod golden;
mod hostile;
mod roundtrip;
mod source_route;
