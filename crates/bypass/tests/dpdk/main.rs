//! Tests of DPDK ports in one process: packet sockets between network namespaces, memory shared over a socket
//! (memif), a tap interface, and a ring. A test is skipped with a message if this process lacks a permission.
#![allow(clippy::print_stdout, reason = "a test that fails tells its seed")]
#![allow(dead_code, reason = "the datapath's own test uses the rest of its script")]

mod conformance;
#[path = "../../../datapath/tests/conformance/connections.rs"]
mod connections;
mod hostile;
mod link;
mod memif;
#[path = "../../../datapath/tests/conformance/model.rs"]
mod model;
mod packet;
mod places;
#[path = "../../../datapath/tests/conformance/real.rs"]
mod real;
mod refusals;
mod ring;
#[path = "../../../datapath/tests/conformance/script.rs"]
mod script;
#[path = "../../../datapath/tests/conformance/sessions.rs"]
mod sessions;
#[path = "../../../datapath/tests/conformance/simulated.rs"]
mod simulated;
#[path = "../../../datapath/tests/support/mod.rs"]
mod support;
mod tap;
#[path = "../../../datapath/tests/conformance/world.rs"]
mod world;
