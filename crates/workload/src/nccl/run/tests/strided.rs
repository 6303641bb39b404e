//! Groups of some GPUs of each server, which share NICs: all NICs beside the group carry equally much.

use std::collections::BTreeMap;
use std::path::Path;

use pathweave_topo::{Topology, TopologyConfig};
use pathweave_units::{HostId, Rate};
use serde_json::json;

use super::super::wires::Way;
use super::{NcclAlgorithm, plan, record, wanted};
use crate::collective::Operation;
use crate::nccl::gpu::Gpu;
use crate::nccl::team::{Site, Team};

const SERVERS: u32 = 4;
const GPUS: u32 = 8;
/// Divisible by all numbers of parts that occur.
const SIZE: u64 = 48 << 20;

/// Servers of eight GPUs, GPU g beside NIC g * nics / 8.
fn topology(nics: u32) -> Topology {
    let config: TopologyConfig = serde_json::from_value(json!({
        "kind": "cluster", "servers": SERVERS, "attach": "server",
        "server": {"gpus": GPUS, "nics": nics, "scale_up": {"kind": "switch", "rate": "2966.4Gbps"}},
        "scale_out": {"kind": "star", "hosts": SERVERS * nics, "rate": "400Gbps"}
    }))
    .unwrap();
    config.build(Path::new("")).unwrap()
}

/// Returns the group of some GPUs of each server, and the hosts of its ranks.
fn group(nics: u32, gpus: &[u32]) -> (Team, Vec<HostId>) {
    let topology = topology(nics);
    let servers = 0..SERVERS;
    let hosts: Vec<HostId> =
        servers.flat_map(|server| gpus.iter().map(move |gpu| HostId(server * GPUS + gpu))).collect();
    let site = Site { topology: Some(&topology), host_rate: Rate::from_gbps(400), gpu: Gpu::H100, cpu: None };
    (Team::of(&hosts, &site).unwrap(), hosts)
}

/// Returns the bytes that each NIC sends: by the server and the number there.
fn sent_by_nics(
    (operation, algorithm): (Operation, NcclAlgorithm),
    nics: u32,
    gpus: &[u32],
) -> BTreeMap<(u32, u32), u64> {
    let (team, hosts) = group(nics, gpus);
    let mut sent = BTreeMap::new();
    for one in record(&plan(&team, operation, SIZE, &wanted(algorithm))) {
        if one.hop.way == Way::Net {
            let host = hosts[one.hop.src].0;
            *sent.entry((host / GPUS, host % GPUS * nics / GPUS)).or_default() += one.hop.bytes;
        }
    }
    sent
}

/// NICs beside a group: one of each server shared by all, each second one, and all.
const GROUPS: [(u32, &[u32], u32); 8] = [
    (1, &[0, 2, 4, 6], 1),
    (2, &[0, 2, 4, 6], 2),
    (4, &[1, 3, 5, 7], 4),
    (8, &[0, 2, 4, 6], 4),
    (4, &[0, 4], 2),
    (4, &[3, 7], 2),
    (4, &[2, 3], 1),
    (4, &[5], 1),
];

/// A ring of n ranks sends (n - 1)/n of the size out of each server, over each of its NICs an equal part, and an
/// all-reduce twice as much.
#[test]
fn rings_use_all_nics_beside_their_gpus() {
    for (nics, gpus, beside) in GROUPS {
        let ranks = u64::from(SERVERS) * gpus.len() as u64;
        for (operation, times) in
            [(Operation::AllGather, 1), (Operation::ReduceScatter, 1), (Operation::AllReduce, 2)]
        {
            let sent = sent_by_nics((operation, NcclAlgorithm::Ring), nics, gpus);
            assert_eq!(sent.len() as u32, SERVERS * beside, "{operation:?} {nics} {gpus:?}: {sent:?}");
            let expected = times * SIZE / ranks * (ranks - 1) / u64::from(beside);
            assert!(sent.values().all(|&bytes| bytes == expected), "{operation:?} {nics} {gpus:?}: {sent:?}");
        }
    }
}

/// Trees send the size up from three of four servers and down to them. The NICs of one rail send an equal part of it.
#[test]
fn trees_use_all_nics_beside_their_gpus() {
    for (nics, gpus, beside) in GROUPS {
        for algorithm in [NcclAlgorithm::Tree, NcclAlgorithm::NvlsTree] {
            if algorithm == NcclAlgorithm::NvlsTree && gpus.len() == 1 {
                continue;
            }
            let mut of_rail: BTreeMap<u32, u64> = BTreeMap::new();
            for ((_, rail), bytes) in sent_by_nics((Operation::AllReduce, algorithm), nics, gpus) {
                *of_rail.entry(rail).or_default() += bytes;
            }
            let expected = 2 * u64::from(SERVERS - 1) * SIZE / u64::from(beside);
            assert_eq!(of_rail.len() as u32, beside, "{algorithm:?} {nics} {gpus:?}: {of_rail:?}");
            assert!(of_rail.values().all(|&bytes| bytes == expected), "{algorithm:?} {nics}: {of_rail:?}");
        }
    }
}

/// A gather of one GPU of each server by aggregated trees uses the NIC beside it.
#[test]
fn a_gpu_alone_uses_the_nic_beside_it() {
    let sent = sent_by_nics((Operation::AllGather, NcclAlgorithm::Pat), 4, &[5]);
    assert!(sent.keys().all(|&(_, nic)| nic == 2) && sent.len() == 4, "{sent:?}");
}

/// All-to-all of eight GPUs with four NICs: GPUs 0 and 1 send to GPUs 8 and 9 by the NIC that they share, and to GPUs 10
/// and 11 by way of GPU 2. Each NIC has the blocks of eight GPUs for the two on its rail in three servers.
#[test]
fn messages_leave_on_the_rail_of_the_receiver() {
    let (team, _) = group(4, &[0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!([8, 9, 10, 11, 13].map(|dst| team.on_rail_of(1, dst)), [1, 1, 2, 2, 4]);
    let sent = sent_by_nics((Operation::AllToAll, NcclAlgorithm::Direct), 4, &[0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(sent.len() == 16 && sent.values().all(|&bytes| bytes == SIZE / 32 * 8 * 2 * 3), "{sent:?}");
}

/// A server with GPUs 0 and 4 and one with GPUs 1 and 5 have two common rails.
#[test]
fn servers_may_have_other_gpus() {
    let topology = topology(4);
    let site = Site { topology: Some(&topology), host_rate: Rate::from_gbps(400), gpu: Gpu::H100, cpu: None };
    let team = Team::of(&[0, 4, 9, 13].map(HostId), &site).unwrap();
    assert_eq!(team.system().nics, 2);
    assert_eq!((team.on_rail_of(0, 2), team.on_rail_of(0, 3), team.on_rail_of(3, 0)), (0, 1, 2));
    // GPUs 2 and 6 are on other rails: a sender keeps its own.
    let team = Team::of(&[0, 4, 10, 14].map(HostId), &site).unwrap();
    assert_eq!((team.on_rail_of(0, 2), team.on_rail_of(1, 2)), (0, 1));
}
