//! What can be said of a scenario before it runs: its size, what no run can beat, what a run will cost.

use std::collections::BTreeMap;

use pathweave_sim::RouteChoice;
use pathweave_topo::{PathFinder, PathSets, Routing, Topology};
use pathweave_units::{HostId, Time};
use pathweave_workload::Bounds;
use serde::Serialize;

use crate::estimate::Estimate;
use crate::memory::{Memory, Process};
use crate::prepare::Prepared;

/// Pairs of switches whose paths are counted at most.
const PATH_WALKS: u64 = 200_000;

/// What can be said of a scenario before it runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inspection {
    /// Name of the scenario.
    pub name: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// The network.
    pub network: NetworkSize,
    /// The messages.
    pub traffic: TrafficSize,
    /// What no run can beat.
    pub bounds: BoundTimes,
    /// What a run will cost.
    pub estimate: Estimate,
    /// What it takes of memory, by part.
    pub memory: Memory,
    /// Assumptions made about input files, input not used.
    pub notes: Vec<String>,
}

/// The network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NetworkSize {
    /// Its name.
    pub topology: String,
    /// Hosts.
    pub hosts: u32,
    /// Switches.
    pub switches: u32,
    /// Full-duplex links.
    pub links: u64,
    /// Switches by tier, from the ToRs up.
    pub tiers: Vec<Tier>,
    /// How many ordered pairs of hosts have how many shortest paths.
    pub paths: Vec<Paths>,
    /// Only some destinations were looked at for `paths`.
    pub paths_sampled: bool,
    /// The paths that sources choose from; absent where switches choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explicit_paths: Option<ExplicitPaths>,
}

/// The explicit paths between hosts that talk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplicitPaths {
    /// Paths from one host to all it may talk to: the fewest, and the most.
    pub of_host: (u64, u64),
    /// How many ordered pairs of hosts have how many paths: (paths, pairs).
    pub of_pair: Vec<(u32, u64)>,
    /// Paths of all pairs of switches with hosts together.
    pub lists: u64,
    /// Memory of these.
    pub memory_bytes: u64,
}

impl ExplicitPaths {
    /// Counts them.
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
    /// The tier; 0 has the ToRs.
    pub tier: u8,
    /// Its switches.
    pub switches: u32,
    /// Capacity towards the hosts over capacity away from them; absent at the top.
    pub oversubscription: Option<f64>,
}

/// Pairs of hosts that are alike.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Paths {
    /// Links on a path.
    pub hops: u32,
    /// Shortest paths of a pair.
    pub paths: u64,
    /// Ordered pairs.
    pub pairs: u64,
}

/// The messages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrafficSize {
    /// By group.
    pub groups: Vec<GroupSize>,
    /// Messages in all.
    pub messages: u64,
    /// Computations and barriers.
    pub computations: u64,
    /// Jobs.
    pub jobs: u64,
    /// Payload in all.
    pub bytes: u64,
}

/// The messages of a group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupSize {
    /// Its name.
    pub group: String,
    /// Its scheme.
    pub scheme: String,
    /// Its messages.
    pub messages: u64,
    /// Their payload.
    pub bytes: u64,
}

/// What no run can beat, in simulated time. Payload only; headers and propagation come on top.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BoundTimes {
    /// The busiest host link, with regard to when its messages may start.
    pub links_ns: f64,
    /// The longest chain of dependent messages, each alone on its links.
    pub chain_ns: f64,
    /// The later of both: no run is over before.
    pub completion_ns: f64,
}

impl Prepared {
    /// What can be said of the scenario before it runs, by one thread.
    pub fn inspect(&self) -> Inspection {
        self.inspect_in(Process::ONE_THREAD)
    }

    /// What the run takes of memory in this process.
    pub fn memory_in(&self, process: Process) -> Memory {
        let spec = &self.spec;
        let notification = spec.task_notification().expect("it was checked when the run was set up");
        let bounds = Bounds::from_graph(&spec.graph, notification, |host| spec.topology.host_rate(host));
        Memory::new(spec, &Routing::whole(&spec.topology), &self.footprint, bounds.completion(), process)
    }

    /// What can be said of the scenario before it runs in this process.
    pub fn inspect_in(&self, process: Process) -> Inspection {
        let spec = &self.spec;
        let routing = Routing::whole(&spec.topology);
        let mut finder = PathFinder::new(&spec.topology, &routing);
        let notification = spec.task_notification().expect("it was checked when the run was set up");
        let bounds = Bounds::from_graph(&spec.graph, notification, |host| spec.topology.host_rate(host));
        let memory = Memory::new(spec, &routing, &self.footprint, bounds.completion(), process);
        let ns = |time: Time| time.as_ps() as f64 / 1e3;
        Inspection {
            name: spec.name.clone(),
            seed: spec.seed,
            estimate: Estimate::new(spec, &mut finder, &self.footprint, &memory),
            memory,
            network: network(&spec.topology, &spec.routing, &mut finder),
            traffic: self.traffic(),
            bounds: BoundTimes {
                links_ns: ns(bounds.links),
                chain_ns: ns(bounds.chain),
                completion_ns: ns(bounds.completion()),
            },
            notes: self.notes.clone(),
        }
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
        }
    }
}

fn network(topology: &Topology, routing: &RouteChoice, finder: &mut PathFinder<'_>) -> NetworkSize {
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
            })
            .collect(),
        paths: paths
            .groups
            .iter()
            .map(|group| Paths { hops: group.hops, paths: group.paths, pairs: group.pairs })
            .collect(),
        paths_sampled: paths.sampled,
        explicit_paths: match routing {
            RouteChoice::Switches => None,
            RouteChoice::Sources(sets) | RouteChoice::SenderSwitches(sets) | RouteChoice::NextHops(sets) => {
                Some(ExplicitPaths::new(topology, sets))
            }
        },
    }
}
