//! Executed collectives as sets of contributions, and their bytes against closed forms.

mod begun;
mod bytes;
mod contributions;
mod strided;

use std::path::Path;

use pathweave_topo::{Topology, TopologyConfig};
use pathweave_units::{HostId, Rate};
use serde_json::json;

use super::plan::Plan;
use super::wanted::{NcclAlgorithm, NcclProtocol, Wanted};
use super::wires::{Hop, Waits, Wires};
use crate::collective::Operation;
use crate::error::WorkloadError;
use crate::nccl::fitted::Fitted;
use crate::nccl::gpu::Gpu;
use crate::nccl::team::{Site, Team};

/// Scale-up network of test servers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Joined {
    Switch,
    Mesh,
    Nothing,
}

fn topology(servers: u32, gpus: u32, joined: Joined) -> Topology {
    let mut server = json!({"gpus": gpus});
    match joined {
        Joined::Switch => server["scale_up"] = json!({"kind": "switch", "rate": "2966.4Gbps"}),
        Joined::Mesh => server["scale_up"] = json!({"kind": "full-mesh", "rate": "384Gbps"}),
        Joined::Nothing => {}
    }
    let hosts = servers * gpus;
    let config: TopologyConfig = serde_json::from_value(json!({
        "kind": "cluster", "servers": servers, "attach": "server", "server": server,
        "scale_out": {"kind": "star", "hosts": hosts.max(2), "rate": "400Gbps"}
    }))
    .unwrap();
    config.build(Path::new("")).unwrap()
}

fn team(servers: u32, gpus: u32, joined: Joined) -> Team {
    let topology = topology(servers, gpus, joined);
    let hosts: Vec<HostId> = (0..servers * gpus).map(HostId).collect();
    let gpu = if joined == Joined::Mesh { Gpu::Mi300x } else { Gpu::H100 };
    let site = Site { topology: Some(&topology), host_rate: Rate::from_gbps(400), gpu, cpu: None };
    Team::of(&hosts, &site).unwrap()
}

fn wanted(algorithm: NcclAlgorithm) -> Wanted {
    Wanted { algorithm, ..Wanted::defaults(Fitted::NONE, 1 << 16) }
}

fn plan(team: &Team, operation: Operation, size: u64, wanted: &Wanted) -> Plan {
    Plan::new(team.clone(), operation, size, wanted).unwrap_or_else(|why| panic!("{operation:?}: {why:?}"))
}

/// Declared message, with what it waits for.
struct Declared {
    hop: Hop,
    data: Vec<usize>,
    slots: Vec<usize>,
    number: u64,
}

/// Records messages.
#[derive(Default)]
struct Recorder {
    all: Vec<Declared>,
}

impl Wires for Recorder {
    type Sent = usize;

    fn send(&mut self, hop: &Hop, waits: Waits<'_, usize>) -> Result<usize, WorkloadError> {
        let (data, slots) = (waits.data.to_vec(), waits.slots.to_vec());
        self.all.push(Declared { hop: hop.clone(), data, slots, number: waits.number });
        Ok(self.all.len() - 1)
    }
}

fn record(plan: &Plan) -> Vec<Declared> {
    let mut recorder = Recorder::default();
    plan.run(&mut recorder).unwrap();
    recorder.all
}

/// The algorithms of each operation, with servers that have them.
const CASES: [(Operation, NcclAlgorithm, u32, u32, Joined); 27] = {
    use Joined::{Mesh, Nothing, Switch};
    use NcclAlgorithm::{Direct, Nvls, NvlsTree, Pat, Ring, Tree};
    use Operation::{AllGather, AllReduce, AllToAll, Broadcast, Reduce, ReduceScatter};
    [
        (AllReduce, Ring, 2, 4, Switch),
        (AllReduce, Ring, 1, 8, Switch),
        (AllReduce, Ring, 3, 1, Nothing),
        (AllReduce, Ring, 1, 8, Mesh),
        (AllReduce, Ring, 3, 4, Mesh),
        (AllReduce, Ring, 1, 5, Mesh),
        (AllReduce, Tree, 2, 4, Switch),
        (AllReduce, Tree, 1, 4, Switch),
        (AllReduce, Tree, 7, 2, Switch),
        (AllReduce, Tree, 6, 1, Nothing),
        (AllReduce, Nvls, 1, 4, Switch),
        (AllReduce, NvlsTree, 2, 4, Switch),
        (AllReduce, NvlsTree, 5, 3, Switch),
        (ReduceScatter, Ring, 2, 4, Switch),
        (ReduceScatter, Nvls, 1, 4, Switch),
        (ReduceScatter, Pat, 8, 1, Nothing),
        (ReduceScatter, Pat, 5, 1, Nothing),
        (AllGather, Ring, 2, 4, Switch),
        (AllGather, Nvls, 1, 4, Switch),
        (AllGather, Pat, 8, 1, Nothing),
        (AllGather, Pat, 7, 1, Nothing),
        (Broadcast, Ring, 2, 4, Switch),
        (Reduce, Ring, 2, 4, Switch),
        (Broadcast, Ring, 4, 1, Nothing),
        (AllToAll, Direct, 2, 4, Switch),
        (AllToAll, Direct, 1, 4, Switch),
        (AllToAll, Direct, 3, 2, Mesh),
    ]
};
