//! The tests of this crate as one program: it is linked once.

mod capture;
mod contract;
mod credit;
mod crowd;
mod datagram;
mod determinism;
mod dlbf;
mod followed;
mod forwarding;
mod ideal;
mod laps;
mod next_hops;
mod observe;
mod ports;
mod reflex;
mod schemes;
mod sender_switch;
mod source_routes;
mod support;
mod trimming;
mod waits;
