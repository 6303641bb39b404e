//! Properties of a scenario that are known before it runs: size, lower bounds, and estimated cost.

use std::collections::BTreeMap;

use pathweave_fabric::config::SwitchConfig;
use pathweave_records::Role;
use pathweave_sim::{IdleTimes, RouteChoice, topology_at_best};
use pathweave_topo::{PathFinder, PathSets, Routing, SwitchRatio, Topology};
use pathweave_units::{HostId, Time};
use pathweave_workload::{Awaited, Bounds, GroupId, TrainingMemory};
use serde::Serialize;

use crate::estimate::Estimate;
use crate::memory::{Memory, Process};
use crate::prepare::Prepared;
use crate::server_size::ServerSize;
use crate::switch_size::{SwitchClassSize, switch_class_sizes};

/// Largest number of switch pairs whose paths are counted.
const PATH_WALKS: u64 = 200_000;

/// Properties of a scenario that are known before it runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inspection {
    /// Name of the scenario.
    pub name: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// Size of the network.
    pub network: NetworkSize,
    /// Size of the traffic.
    pub traffic: TrafficSize,
    /// Lower bounds of the completion time.
    pub bounds: LowerBounds,
    /// Estimated cost of a run.
    pub estimate: Estimate,
    /// Estimated memory of a run, by part.
    pub memory: Memory,
    /// Notes on assumptions about input files and on unused input.
    pub notes: Vec<String>,
}

/// Size of the network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NetworkSize {
    /// Name of the topology.
    pub topology: String,
    /// Number of hosts.
    pub hosts: u32,
    /// Number of switches.
    pub switches: u32,
    /// Number of full-duplex links.
    pub links: u64,
    /// Switches by tier, starting with the ToRs.
    pub tiers: Vec<Tier>,
    /// Switches by settings; empty if all have the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub switch_classes: Vec<SwitchClassSize>,
    /// Ordered pairs of hosts, grouped by the number of their shortest paths.
    pub paths: Vec<Paths>,
    /// True if `paths` covers only a sample of destinations.
    pub paths_sampled: bool,
    /// Servers, if hosts are GPUs of servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<ServerSize>,
    /// Explicit paths that sources choose from; absent if switches choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explicit_paths: Option<ExplicitPaths>,
}

/// Explicit paths between hosts that communicate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplicitPaths {
    /// Paths from one host to all its destinations: smallest and largest number.
    pub of_host: (u64, u64),
    /// Number of paths of a pair, and number of ordered pairs of hosts with it: (paths, pairs).
    pub of_pair: Vec<(u32, u64)>,
    /// Number of paths of all pairs of switches with hosts.
    pub lists: u64,
    /// Memory of these paths in bytes.
    pub memory_bytes: u64,
}

impl ExplicitPaths {
    /// Counts the paths.
    pub fn new(topology: &Topology, sets: &PathSets) -> Self {
        let mut hosts_at = vec![0u64; sets.edges().len()];
        (0..topology.hosts()).for_each(|host| hosts_at[sets.edge_of(HostId(host)) as usize] += 1);
        let mut of_pair = BTreeMap::new();
        let mut of_host = (u64::MAX, 0);
        let mut lists = 0;
        for (from, &here) in (0u32..).zip(&hosts_at) {
            let mut mine = 0;
            for (to, &there) in (0u32..).zip(&hosts_at) {
                let paths = sets.between_edges(from, to).len() as u64;
                lists += paths;
                let peers = if from == to { there - 1 } else { there };
                mine += paths * peers;
                if paths * peers > 0 {
                    *of_pair.entry(paths as u32).or_insert(0) += here * peers;
                }
            }
            of_host = (of_host.0.min(mine), of_host.1.max(mine));
        }
        let memory_bytes = sets.memory_bytes();
        ExplicitPaths { of_host, of_pair: of_pair.into_iter().collect(), lists, memory_bytes }
    }
}

/// Switches of a tier.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tier {
    /// Number of the tier; 0 has the ToRs.
    pub tier: u8,
    /// Number of switches in the tier.
    pub switches: u32,
    /// Capacity towards the hosts divided by capacity away from them; absent at the top, and where switches of the tier
    /// are linked to each other.
    pub oversubscription: Option<f64>,
    /// Total rate of links between switches of the tier, in one direction, bits per second.
    #[serde(skip)]
    pub level_bps: u64,
    /// Switches with the smallest and the largest ratio; absent if all have the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oversubscription_range: Option<[SwitchOversubscription; 2]>,
}

/// Oversubscription of a switch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SwitchOversubscription {
    /// Name of the switch, the first of several with this ratio.
    pub switch: String,
    /// Capacity towards the hosts divided by capacity away from them.
    pub ratio: f64,
}

/// Group of host pairs with equal paths.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Paths {
    /// Number of links on a path.
    pub hops: u32,
    /// Number of shortest paths of a pair.
    pub paths: u64,
    /// Number of ordered pairs.
    pub pairs: u64,
}

/// Size of the traffic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrafficSize {
    /// Traffic by group.
    pub groups: Vec<GroupSize>,
    /// Total number of messages.
    pub messages: u64,
    /// Number of computations and barriers.
    pub computations: u64,
    /// Number of jobs.
    pub jobs: u64,
    /// Total payload in bytes.
    pub bytes: u64,
    /// Memory of GPUs that training needs, by group; absent if no workload names its GPU.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpu_memory: Vec<GpuMemory>,
}

/// Memory of a GPU that the training of a group needs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GpuMemory {
    /// Name of the group.
    pub group: String,
    /// True if the GPU has as much.
    pub fits: bool,
    /// Parts of the memory of the fullest GPU.
    #[serde(flatten)]
    pub memory: TrainingMemory,
}

/// Messages of a group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupSize {
    /// Name of the group.
    pub group: String,
    /// Name of its scheme.
    pub scheme: String,
    /// Number of messages.
    pub messages: u64,
    /// Payload in bytes.
    pub bytes: u64,
}

/// Lower bounds of the completion time in simulated time, without background traffic. That of the busiest link counts
/// payload only, that of the longest chain also headers and propagation. Links that faults make faster have their highest rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LowerBounds {
    /// Time of the busiest host link in nanoseconds, taking the start times of its messages into account.
    pub links_ns: f64,
    /// Time of the longest chain of dependent messages in nanoseconds, each alone on the network.
    pub chain_ns: f64,
    /// Larger of both bounds in nanoseconds. No run completes earlier.
    pub completion_ns: f64,
}

impl Prepared {
    /// Inspects the scenario for a run with one thread.
    pub fn inspect(&self) -> Inspection {
        self.inspect_in(Process::ONE_THREAD)
    }

    /// Returns the estimated memory of a run in this process.
    pub fn memory_in(&self, process: Process) -> Memory {
        let spec = &self.spec;
        let bounds = self.bounds();
        Memory::new(
            spec,
            &Routing::all_links_up(&spec.topology),
            &self.footprint,
            bounds.completion(),
            process,
        )
    }

    /// Inspects the scenario for a run in this process.
    pub fn inspect_in(&self, process: Process) -> Inspection {
        let spec = &self.spec;
        let routing = Routing::all_links_up(&spec.topology);
        let mut finder = PathFinder::new(&spec.topology, &routing);
        let mut bounds = self.bounds();
        let memory = Memory::new(spec, &routing, &self.footprint, bounds.completion(), process);
        self.count_idle_times(&mut bounds);
        let ns = |time: Time| time.as_ps() as f64 / 1e3;
        Inspection {
            name: spec.name.clone(),
            seed: spec.seed,
            estimate: Estimate::new(spec, &mut finder, &self.footprint, &memory),
            memory,
            network: network(&spec.topology, &spec.routing, &spec.switch, &mut finder),
            traffic: self.traffic(),
            bounds: LowerBounds {
                links_ns: ns(bounds.links),
                chain_ns: ns(bounds.chain),
                completion_ns: ns(bounds.completion()),
            },
            notes: self.notes.clone(),
        }
    }

    /// Returns the bounds of what the run waits for, with each link at its best.
    fn bounds(&self) -> Bounds {
        let spec = &self.spec;
        let notification = spec.task_notification().expect("it was checked when the run was set up");
        let best = topology_at_best(spec).expect("it was checked when the run was set up");
        let topology = best.as_ref().unwrap_or(&spec.topology);
        let awaited = |group: GroupId| spec.groups[group.index()].role != Role::Background;
        Bounds::on_topology((&spec.graph, Awaited::of_groups(&awaited)), notification, topology)
    }

    /// Makes the messages of the longest chain take their time on an idle network. Their paths take long to find in a large
    /// network, so that only inspections do this.
    fn count_idle_times(&self, bounds: &mut Bounds) {
        let spec = &self.spec;
        let notification = spec.task_notification().expect("it was checked when the run was set up");
        let idle = IdleTimes::new(spec).expect("it was checked when the run was set up");
        let awaited = |group: GroupId| spec.groups[group.index()].role != Role::Background;
        let awaited = Awaited::of_groups(&awaited);
        bounds.count_idle_times((&spec.graph, awaited), notification, |message| idle.of(message));
    }

    fn traffic(&self) -> TrafficSize {
        let spec = &self.spec;
        let group = |(i, group): (usize, &pathweave_workload::Group)| {
            let mine = || spec.graph.messages().iter().filter(move |message| message.group.index() == i);
            GroupSize {
                group: group.name.clone(),
                scheme: spec.schemes[usize::from(spec.groups[i].scheme)].name.clone(),
                messages: mine().count() as u64,
                bytes: mine().map(|message| message.size.get()).sum(),
            }
        };
        TrafficSize {
            groups: spec.graph.groups().iter().enumerate().map(group).collect(),
            messages: spec.graph.messages().len() as u64,
            computations: spec.graph.computes().len() as u64,
            jobs: spec.graph.jobs().len() as u64,
            bytes: u64::try_from(spec.graph.total_bytes()).unwrap_or(u64::MAX),
            gpu_memory: spec.graph.memory().iter().map(gpu_memory).collect(),
        }
    }
}

fn gpu_memory((group, memory): &(String, TrainingMemory)) -> GpuMemory {
    GpuMemory { group: group.clone(), fits: memory.fits(), memory: memory.clone() }
}

fn network(
    topology: &Topology,
    routing: &RouteChoice,
    switch: &SwitchConfig,
    finder: &mut PathFinder<'_>,
) -> NetworkSize {
    let paths = finder.distribution(PATH_WALKS);
    NetworkSize {
        topology: topology.name().to_owned(),
        hosts: topology.hosts(),
        switches: topology.switches().len() as u32,
        links: topology.links().len() as u64,
        tiers: topology
            .tiers()
            .iter()
            .map(|tier| Tier {
                tier: tier.tier,
                switches: tier.switches,
                oversubscription: tier.oversubscription(),
                level_bps: tier.level.as_bps(),
                oversubscription_range: tier.range.map(|ends| {
                    ends.map(|SwitchRatio { switch, ratio }| SwitchOversubscription {
                        switch: topology.switches()[switch].name.clone(),
                        ratio,
                    })
                }),
            })
            .collect(),
        paths: paths
            .groups
            .iter()
            .map(|group| Paths { hops: group.hops, paths: group.paths, pairs: group.pairs })
            .collect(),
        switch_classes: switch_class_sizes(topology, switch),
        paths_sampled: paths.sampled,
        servers: ServerSize::new(topology, finder),
        explicit_paths: match routing {
            RouteChoice::Switches => None,
            RouteChoice::Sources(sets) | RouteChoice::SenderSwitches(sets) | RouteChoice::NextHops(sets) => {
                Some(ExplicitPaths::new(topology, sets))
            }
        },
    }
}
