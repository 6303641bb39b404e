//! A run whose instructions `make count` counts: `count SCHEME BYTES [trim]`. 128 hosts of a fat tree, each of which
//! sends a message to one other host. Prints the packet-hops and the digest.

#![allow(clippy::print_stdout)]

use pathweave_sim::{NamedScheme, NoMonitor, SimSpec, run};
use pathweave_topo::presets;
use pathweave_units::{Bytes, HostId, Rng, Time};
use pathweave_workload::{GraphBuilder, MessageGraph, NewMessage, Stream};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [scheme, bytes, rest @ ..] = args.as_slice() else { panic!("count SCHEME BYTES [trim]") };
    let preset = presets().iter().find(|preset| preset.name == "b3-128").expect("a preset");
    let topology = preset.config.build(".".as_ref()).expect("presets build");
    let scheme = NamedScheme::find(scheme).unwrap_or_else(|| panic!("no scheme is named {scheme}"));
    let graph = permutation(topology.hosts(), Bytes::new(bytes.parse().expect("a number of bytes")));
    let mut spec = SimSpec::new("count", topology, graph, scheme);
    if rest == ["trim"] {
        spec.switch.pfc.enabled = false;
        spec.switch.trim.enabled = true;
    }
    let result = run(&spec, &mut NoMonitor).expect("a valid run");
    println!("{} {}", result.info.packet_hops, result.info.digest_hex());
}

/// Lets the hosts send in a random ring.
fn permutation(hosts: u32, size: Bytes) -> MessageGraph {
    let mut builder = GraphBuilder::new(hosts);
    let group = builder.group("count", None).expect("the first group");
    let mut ring: Vec<u32> = (0..hosts).collect();
    Rng::for_component(1, "count", 0).shuffle(&mut ring);
    for (i, &src) in ring.iter().enumerate() {
        let dst = ring[(i + 1) % ring.len()];
        let (src, dst) = (HostId(src), HostId(dst));
        let message = NewMessage { src, dst, size, start: Time::ZERO, group, stream: Stream::Own, job: None };
        builder.message(message).expect("hosts exist and differ");
    }
    builder.finish().expect("no cycles")
}
