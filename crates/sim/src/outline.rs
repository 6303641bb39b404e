//! Records of a run that are known in advance, the same for a simulated and for a real network.

use pathweave_fabric::config::FaultConfig;
use pathweave_policy::MarkUse;
use pathweave_records::{
    ActivityLabel, Direction, FaultInfo, LinkTotals, NodeInfo, NodeKind, Quantity, RunInfo, ServersInfo,
    SuppliedPart,
};
use pathweave_topo::{LinkId, NodeId, Switch};
use pathweave_units::HostId;
use pathweave_workload::{Folding, TrainingMemory};

use crate::spec::SimSpec;

/// Describes the memory that training needs on its fullest GPU, with its parts.
pub fn memory_in_words(memory: &TrainingMemory) -> String {
    let size = |bytes: u64| Quantity::Bytes.format(bytes as f64);
    // Only some jobs have the later parts.
    let shown = memory.parts().into_iter().enumerate().filter(|(place, (_, bytes))| *place < 4 || *bytes > 0);
    let parts: Vec<String> = shown.map(|(_, (name, bytes))| format!("{name} {}", size(bytes))).collect();
    format!(
        "{} of {} ({}, stage {}): {}",
        size(memory.total()),
        size(memory.available),
        memory.gpu,
        memory.stage,
        parts.join(", ")
    )
}

fn fault_info(fault: &FaultConfig) -> FaultInfo {
    FaultInfo { name: fault.name(), at_ps: fault.at().as_ps() }
}

impl SimSpec {
    /// Returns the name, version, seed and other identification of the run.
    pub fn run_info(&self) -> RunInfo {
        let folding = self.graph.folding();
        let hosts = || (0..self.topology.hosts()).map(HostId);
        let representative_of_host = folding
            .map(|folding| hosts().map(|host| folding.representative(host).0).collect())
            .unwrap_or_default();
        RunInfo {
            name: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seed: self.seed,
            scenario_toml: self.scenario_toml.clone(),
            schemes: self.schemes.iter().map(|scheme| scheme.name.clone()).collect(),
            ignoring_marks: self.ignoring_marks(),
            supplied: self.supplied(),
            groups: self.graph.groups().iter().map(|group| group.name.clone()).collect(),
            fidelity: self.run.fidelity,
            roles: self.groups.iter().map(|group| group.role).collect(),
            servers: self.servers_info(),
            ranks_represented: folding.map(Folding::order),
            representative_of_host,
            faults: self.faults.iter().map(fault_info).collect(),
            warnings: self.memory_warnings(),
            ..RunInfo::default()
        }
    }

    fn ignoring_marks(&self) -> Vec<String> {
        let ignoring = self.schemes.iter().filter(|named| named.scheme.marks() == MarkUse::Ignored);
        ignoring.map(|named| named.name.clone()).collect()
    }

    /// Returns the parts of the schemes that the program supplies, each once.
    fn supplied(&self) -> Vec<SuppliedPart> {
        let mut found: Vec<SuppliedPart> = Vec::new();
        for (part, name) in self.schemes.iter().flat_map(|named| named.scheme.policy.supplied()) {
            let own = SuppliedPart { part: part.to_owned(), name: name.to_owned() };
            if !found.contains(&own) {
                found.push(own);
            }
        }
        found
    }

    /// Returns a warning for each group whose training takes more memory than its GPUs have.
    pub fn memory_warnings(&self) -> Vec<String> {
        let short = self.graph.memory().iter().filter(|(_, memory)| !memory.fits());
        let words = |(group, memory): &(String, TrainingMemory)| {
            format!(
                "workload \"{group}\" does not fit the memory of its GPUs: {}; its figures are those of GPUs with \
                 enough of it",
                memory_in_words(memory)
            )
        };
        short.map(words).collect()
    }

    fn servers_info(&self) -> Option<ServersInfo> {
        let servers = self.topology.servers()?;
        let scale_up = servers.scale_up();
        Some(ServersInfo {
            servers: servers.count(),
            gpus: servers.gpus(),
            nics: servers.nics(),
            nic_ports: servers.nic_ports(),
            planes: servers.planes(),
            parts: servers.parts(),
            domain: scale_up.map(pathweave_topo::ScaleUp::domain_size),
            scale_up_bps: scale_up.map_or(0, |network| network.rate_of(HostId(0)).as_bps()),
        })
    }

    /// Returns the labels that workloads give to the activities of hosts.
    pub fn labels(&self) -> Vec<ActivityLabel> {
        pathweave_execution::labels(&self.graph)
    }

    /// Returns all nodes: hosts, then switches.
    pub fn node_infos(&self) -> Vec<NodeInfo> {
        let info = |node| {
            let switch = self.switch_at(node);
            NodeInfo {
                node,
                name: self.topology.node_name(NodeId(node)).into_owned(),
                kind: if switch.is_some() { NodeKind::Switch } else { NodeKind::Host },
                tier: switch.map_or(0, |switch| switch.tier),
                pod: switch.and_then(|switch| switch.group),
            }
        };
        (0..self.topology.nodes()).map(info).collect()
    }

    /// Returns the record of a direction of a link, with `number` in results, that has carried no packet.
    pub fn link_totals(&self, number: u32, link: LinkId, from_a: bool) -> LinkTotals {
        let (a, b) = (self.topology.link(link).a.0, self.topology.link(link).b.0);
        let (from_node, to_node) = if from_a { (a, b) } else { (b, a) };
        let way = self.topology.direction(link, from_a);
        let height = |node| match self.switch_at(node) {
            Some(switch) => (NodeKind::Switch, switch.tier),
            None => (NodeKind::Host, 0),
        };
        let (from, to) = (height(from_node), height(to_node));
        LinkTotals {
            link: number,
            name: self.topology.direction_name(link, from_a),
            from_node,
            to_node,
            tier: from.1.max(to.1),
            direction: Direction::between(from, to),
            rate_bps: way.rate.as_bps(),
            delay_ps: way.delay.as_ps(),
            ..LinkTotals::default()
        }
    }

    fn switch_at(&self, node: u32) -> Option<&Switch> {
        self.topology.switch_index(NodeId(node)).map(|index| &self.topology.switches()[index])
    }
}
