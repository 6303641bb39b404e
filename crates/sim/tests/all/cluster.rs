//! Servers with several GPUs: messages inside a server take its scale-up network, all others the fabric.

use std::path::Path;

use pathweave_records::FlowRecord;
use pathweave_sim::SimSpec;
use pathweave_topo::{
    Build, Cluster, LeafSpine, ScaleUpConfig, Server, SwitchLinks, Topology, TopologyConfig,
};
use pathweave_units::{Duration, Rate};

use crate::support::{Flow, all_to_all, leaf_spine, permutation, play, spec};

fn fabric(leaves: u32, hosts_per_leaf: u32) -> TopologyConfig {
    TopologyConfig::LeafSpine(LeafSpine {
        host_rate: Rate::from_gbps(100),
        host_delay: Duration::from_us(1),
        ..LeafSpine::new(leaves, 4, hosts_per_leaf)
    })
}

/// Returns `servers` servers of four GPUs, each with a NIC of 100 Gb/s, whose scale-up network gives each GPU 800 Gb/s
/// after 250 ns.
fn cluster(servers: u32) -> Topology {
    let scale_up = ScaleUpConfig::Switch(SwitchLinks::new(Rate::from_gbps(800)));
    let server = Server { gpus: Some(4), scale_up: Some(scale_up), ..Server::default() };
    let cluster = Cluster { unit: Some(servers), ..Cluster::new(servers, server, fabric(4, servers)) };
    cluster.build(Path::new("")).expect("rails")
}

/// Servers of one GPU are the bare network, to the digest.
#[test]
fn servers_of_one_gpu_change_nothing() {
    let server = Server { gpus: Some(1), ..Server::default() };
    let cluster = Cluster::new(16, server, fabric(4, 4)).build(Path::new("")).expect("16 servers");
    for scheme in ["ecmp", "rps", "weave"] {
        let digest = |topology| play(&spec(topology, &permutation(16, 300_000), scheme)).info.digest;
        assert_eq!(digest(cluster.clone()), digest(leaf_spine()), "{scheme}");
    }
}

/// Three GPUs send 1 MB each to the fourth: 3 MB at 100 bytes a nanosecond, and 250 ns. No packet is sent.
#[test]
fn messages_inside_a_server_share_its_scale_up_network() {
    let flows: Vec<Flow> = (0..3).map(|src| (src, 3, 1_000_000, 0)).collect();
    let result = play(&spec(cluster(2), &flows, "weave"));
    for flow in &result.flows {
        assert_eq!(flow.finish_ps, Some(30_250_000));
        assert_eq!((flow.sent_packets, flow.acked_ps), (0, flow.finish_ps));
        assert_eq!(flow.ideal_fct_ps, 10_250_000);
    }
    assert!(result.links.iter().all(|link| link.tx_bytes == 0), "the fabric carries nothing");
}

/// All-to-all over two servers. Of the 56 messages, 24 stay inside a server; they need no fabric, so the fabric carries
/// the packets of 32 messages only.
#[test]
fn messages_between_servers_take_the_fabric() {
    for scheme in ["ecmp", "rps", "udmp", "weave", "erd"] {
        let result = play(&spec(cluster(2), &all_to_all(8, 100_000), scheme));
        let inside = |flow: &&FlowRecord| flow.src_host / 4 == flow.dst_host / 4;
        let (inside, between): (Vec<&FlowRecord>, Vec<&FlowRecord>) = result.flows.iter().partition(inside);
        assert_eq!((inside.len(), between.len()), (24, 32), "{scheme}");
        assert!(inside.iter().all(|flow| flow.sent_packets == 0), "{scheme}");
        assert!(between.iter().all(|flow| flow.sent_packets >= 25), "{scheme}");
        // Three messages leave each GPU together, at 100 bytes a nanosecond: 300 kB, and 250 ns.
        assert!(inside.iter().all(|flow| flow.finish_ps == Some(3_250_000)), "{scheme}");
    }
}

/// Threads and ranks never divide a server, whatever its traffic, and change nothing.
#[test]
fn servers_stay_whole() {
    let mut flows = all_to_all(16, 20_000);
    flows.extend((0..16).map(|host| (host, (host + 1) % 16, 50_000, 3_000)));
    let result = play(&SimSpec { seed: 3, ..spec(cluster(4), &flows, "rps") });
    assert!(result.flows.iter().all(|flow| flow.finish_ps.is_some()));
}
