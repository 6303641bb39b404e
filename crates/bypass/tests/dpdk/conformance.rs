//! Conformance: runs the datapath's script over ports of DPDK. Each side must observe the same as in simulated time.

use std::marker::PhantomData;
use std::net::SocketAddr;

use pathweave_datapath::DeviceConfig;
use pathweave_datapath::backend::Backend;

use crate::connections::Connected;
use crate::link::net::{self, Family, Net};
use crate::places::{Ends, Memif, any_port};
use crate::real::{Real, Wires};
use crate::script::{WEATHER, peer_restart, refusals, shared_bytes, verbs_and_sizes};
use crate::simulated::Simulated;
use crate::world::{self, End};

/// Kind of port at both ends.
trait Kind: Sync + 'static {
    const NAME: &'static str;
    type Made: Ends;
    fn make(mtu_bytes: u32) -> Self::Made;
}

struct PacketSockets;
struct MemifOfServer;
struct MemifOfClient;

impl Kind for PacketSockets {
    const NAME: &'static str = "DPDK's packet sockets";
    type Made = Net;
    fn make(mtu_bytes: u32) -> Net {
        Net::make("conformance", mtu_bytes, 1).expect("it was possible before")
    }
}

impl Kind for MemifOfServer {
    const NAME: &'static str = "DPDK's memif, served by the end that stays";
    type Made = Memif;
    fn make(_mtu_bytes: u32) -> Memif {
        Memif::new(net::End::Near)
    }
}

impl Kind for MemifOfClient {
    const NAME: &'static str = "DPDK's memif, served by the end that restarts";
    type Made = Memif;
    fn make(_mtu_bytes: u32) -> Memif {
        Memif::new(net::End::Far)
    }
}

struct Between<K: Kind, const MTU_BYTES: u32> {
    ends: K::Made,
    kind: PhantomData<fn() -> K>,
}

fn place(end: End) -> net::End {
    match end {
        End::Near => net::End::Near,
        End::Far => net::End::Far,
    }
}

impl<K: Kind, const MTU_BYTES: u32> Wires for Between<K, MTU_BYTES> {
    const NAME: &'static str = K::NAME;
    /// Payload computed by `DeviceConfig::fit_link`.
    const MTU_PAYLOAD: u16 = if MTU_BYTES == 9_000 { 8_832 } else { world::MTU as u16 };

    fn open() -> Self {
        Between { ends: K::make(MTU_BYTES), kind: PhantomData }
    }
    fn address(&self, end: End) -> SocketAddr {
        any_port(place(end), Family::V4)
    }
    fn at<T: Send>(&self, end: End, work: impl FnOnce() -> T + Send) -> T {
        self.ends.within(place(end), work)
    }
    fn backend(&self, end: End, config: &DeviceConfig) -> Box<dyn Backend> {
        Box::new(self.ends.backend(place(end), MTU_BYTES, config).expect("a port"))
    }
}

/// Runs the whole script.
fn script<K: Kind, const MTU_BYTES: u32>() {
    type Side<K, const MTU_BYTES: u32> = Real<Between<K, MTU_BYTES>>;
    for (seed, weather) in (41..).zip(&WEATHER) {
        println!("{}, MTU {MTU_BYTES}, {}: seed {seed}", K::NAME, weather.name);
        let simulated = verbs_and_sizes::<Simulated<Connected>>(weather, seed);
        let real = verbs_and_sizes::<Side<K, MTU_BYTES>>(weather, seed);
        assert_eq!(simulated, real, "verbs, {}", weather.name);
        let simulated = shared_bytes::<Simulated<Connected>>(weather, seed);
        assert_eq!(simulated, shared_bytes::<Side<K, MTU_BYTES>>(weather, seed), "shared, {}", weather.name);
    }
    assert_eq!(refusals::<Simulated<Connected>>(62), refusals::<Side<K, MTU_BYTES>>(62), "refusals");
    assert_eq!(peer_restart::<Simulated<Connected>>(61), peer_restart::<Side<K, MTU_BYTES>>(61), "restart");
}

#[test]
fn the_script_over_packet_sockets() {
    if Net::make("the_script_over_packet_sockets", 1_500, 1).is_some() {
        script::<PacketSockets, 1_500>();
    }
}

#[test]
fn the_script_over_packet_sockets_in_jumbo_packets() {
    if Net::make("the_script_over_packet_sockets_in_jumbo_packets", 9_000, 1).is_some() {
        script::<PacketSockets, 9_000>();
    }
}

#[test]
fn the_script_over_shared_memory() {
    script::<MemifOfServer, 1_500>();
    script::<MemifOfClient, 1_500>();
}

#[test]
fn the_script_over_shared_memory_in_jumbo_packets() {
    script::<MemifOfServer, 9_000>();
}
