//! Conformance: runs the datapath's script over AF_XDP, with packets of one and of several pieces, and with a peer
//! that uses sockets. Each side must observe the same as in simulated time.
#![allow(clippy::print_stdout, reason = "a test that fails tells its seed")]
#![allow(dead_code, reason = "the datapath's own test uses the rest of its script")]

#[path = "../../../datapath/tests/conformance/connections.rs"]
mod connections;
#[path = "../../../datapath/tests/conformance/model.rs"]
mod model;
#[path = "../support/mod.rs"]
mod net;
#[path = "../../../datapath/tests/conformance/real.rs"]
mod real;
#[path = "../../../datapath/tests/conformance/script.rs"]
mod script;
#[path = "../../../datapath/tests/conformance/sessions.rs"]
mod sessions;
#[path = "../../../datapath/tests/conformance/simulated.rs"]
mod simulated;
#[path = "../../../datapath/tests/support/mod.rs"]
mod support;
#[path = "../../../datapath/tests/conformance/world.rs"]
mod world;

use std::net::SocketAddr;

use connections::Connected;
use net::{Family, Net, make};
use pathweave_datapath::DeviceConfig;
use pathweave_datapath::backend::{Backend, UdpBackend};
use real::{Real, Wires};
use script::{WEATHER, peer_restart, refusals, shared_bytes, verbs_and_sizes};
use simulated::Simulated;
use world::End;

/// Backend of the far end. The near end uses AF_XDP.
trait Far {
    const NAME: &'static str;
    fn backend(config: &DeviceConfig) -> Box<dyn Backend>;
}

struct Bypass;
struct Sockets;

impl Far for Bypass {
    const NAME: &'static str = "AF_XDP";
    fn backend(config: &DeviceConfig) -> Box<dyn Backend> {
        Box::new(net::backend(config).expect("AF_XDP"))
    }
}

impl Far for Sockets {
    const NAME: &'static str = "AF_XDP and sockets";
    fn backend(config: &DeviceConfig) -> Box<dyn Backend> {
        Box::new(UdpBackend::open(&config.udp()).expect("sockets"))
    }
}

/// Interfaces of an MTU.
struct Between<F, const MTU_BYTES: u32> {
    net: Net,
    far: std::marker::PhantomData<fn() -> F>,
}

fn place(end: End) -> net::End {
    match end {
        End::Near => net::End::Near,
        End::Far => net::End::Far,
    }
}

impl<F: Far, const MTU_BYTES: u32> Wires for Between<F, MTU_BYTES> {
    const NAME: &'static str = F::NAME;
    /// Payload computed by `DeviceConfig::fit_link`.
    const MTU_PAYLOAD: u16 = if MTU_BYTES == 9_000 { 8_832 } else { world::MTU as u16 };

    fn open() -> Self {
        let net = make("conformance", MTU_BYTES, 1).expect("it was possible before");
        Between { net, far: std::marker::PhantomData }
    }
    fn address(&self, end: End) -> SocketAddr {
        SocketAddr::new(net::address(place(end), Family::V4), 0)
    }
    fn at<T: Send>(&self, end: End, work: impl FnOnce() -> T + Send) -> T {
        self.net.within(place(end), work)
    }
    fn backend(&self, end: End, config: &DeviceConfig) -> Box<dyn Backend> {
        match end {
            End::Near => Box::new(net::backend(config).expect("AF_XDP")),
            End::Far => F::backend(config),
        }
    }
}

/// Runs the whole script.
fn script<F: Far, const MTU_BYTES: u32>() {
    type Side<F, const MTU_BYTES: u32> = Real<Between<F, MTU_BYTES>>;
    for (seed, weather) in (41..).zip(&WEATHER) {
        println!("{}, MTU {MTU_BYTES}, {}: seed {seed}", F::NAME, weather.name);
        let simulated = verbs_and_sizes::<Simulated<Connected>>(weather, seed);
        assert_eq!(
            simulated,
            verbs_and_sizes::<Side<F, MTU_BYTES>>(weather, seed),
            "verbs, {}",
            weather.name
        );
        let simulated = shared_bytes::<Simulated<Connected>>(weather, seed);
        assert_eq!(simulated, shared_bytes::<Side<F, MTU_BYTES>>(weather, seed), "shared, {}", weather.name);
    }
    assert_eq!(refusals::<Simulated<Connected>>(62), refusals::<Side<F, MTU_BYTES>>(62), "refusals");
    assert_eq!(peer_restart::<Simulated<Connected>>(61), peer_restart::<Side<F, MTU_BYTES>>(61), "restart");
}

#[test]
fn the_script_in_packets_of_one_piece() {
    if make("the_script_in_packets_of_one_piece", 1_500, 1).is_some() {
        script::<Bypass, 1_500>();
    }
}

#[test]
fn the_script_in_packets_of_several_pieces() {
    if make("the_script_in_packets_of_several_pieces", 9_000, 1).is_some() {
        script::<Bypass, 9_000>();
    }
}

#[test]
fn the_script_with_a_peer_that_has_sockets() {
    if make("the_script_with_a_peer_that_has_sockets", 1_500, 1).is_some() {
        script::<Sockets, 1_500>();
    }
}
