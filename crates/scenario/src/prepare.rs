//! Preparation of a scenario for a run: builds the network and the messages, and resolves all names.

use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::sync::Arc;

use pathweave_fabric::config::FaultConfig;
use pathweave_policy::Awaited;
use pathweave_sim::{
    BufferField, ErrorSource, Footprint, GroupSpec, RouteChoice, SimError, SimSpec, switch_classes,
    with_switch_latencies,
};
use pathweave_topo::{
    LinkForError, NamedNode, PathSets, RequestedPairs, RoutingConfig, TopoError, Topology, TopologyConfig,
    read_partition,
};
use pathweave_units::Rate;
use pathweave_workload::{
    FileError, Fold, GraphBuilder, GraphError, MessageGraph, WorkloadEnv, WorkloadError,
};

use crate::fold;
use crate::ineffective_settings;
use crate::latency;
use crate::load::Loaded;
use crate::model::validate::out_of_range;
use crate::model::{Scenario, WorkloadEntry};
use crate::pools;
use crate::recovery_windows;
use crate::resolved;
use crate::retransmission_timer::Timer;
use crate::run;
use crate::text::{Diagnostic, Diagnostics, FieldPath, value_of};
use crate::workload_env::workload_env;

/// Largest number of hosts for which explicit paths of all pairs are computed, not only of those that communicate.
const SMALL_NETWORK: u32 = 160;

/// Scenario that is ready to run.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Input of the simulator.
    pub spec: SimSpec,
    /// Notes for the user: assumptions about input files, and unused input.
    pub notes: Vec<String>,
    /// Sizes of the run's data.
    pub footprint: Footprint,
}

/// Returns a note for each fault that begins when the run is over.
fn late_faults(spec: &SimSpec) -> Vec<String> {
    let Some(until) = spec.run.until else { return Vec::new() };
    let late = (1..).zip(&spec.faults).filter(|(_, fault)| fault.at() > until);
    let note = |(number, fault): (usize, &FaultConfig)| {
        format!(
            "fault {number} of {} has no effect: {} begins at {}, and the run ends at run.until = {until}",
            spec.faults.len(),
            fault.name(),
            fault.at()
        )
    };
    late.map(note).collect()
}

impl Loaded {
    /// Builds the network and the messages, and checks everything that can be wrong before a run.
    ///
    /// # Errors
    ///
    /// [`Diagnostics`] of the first check that fails.
    pub fn prepare(&self) -> Result<Prepared, Diagnostics> {
        let drafted = self.draft()?;
        self.try_out(&drafted.spec)?;
        Ok(drafted)
    }

    /// Sets a run up and simulates its first window, to find errors that only the simulator detects.
    ///
    /// # Errors
    ///
    /// The simulator refuses the run.
    pub fn try_out(&self, spec: &SimSpec) -> Result<(), Diagnostics> {
        run::try_out(spec).map_err(|why| self.sim_error(&why))
    }

    /// Builds the network and the messages and checks them, without allocating the memory of a run.
    /// [`Loaded::try_out`] performs the remaining checks.
    ///
    /// # Errors
    ///
    /// [`Diagnostics`] of the first check that fails.
    pub fn draft(&self) -> Result<Prepared, Diagnostics> {
        let topology = self.topology()?;
        switch_classes(&topology, &self.scenario.switch).map_err(|why| self.sim_error(&why))?;
        self.check_faults(&topology)?;
        let (graph, of_workloads) = self.messages(&topology, fold::of(&self.scenario, &topology))?;
        fold::check(&self.scenario, &graph).map_err(|finding| self.add_location(finding))?;
        let idle = ineffective_settings::notes(&self.scenario, &topology, &graph);
        let mut notes: Vec<String> =
            topology.notes().iter().cloned().chain(of_workloads).chain(idle).collect();
        let routing = self.routing(&topology, &graph)?;
        let scenario = &self.scenario;
        let mut schemes: Vec<pathweave_sim::NamedScheme> = Vec::new();
        for (_, scheme) in scenario.schemes() {
            if !schemes.iter().any(|known| known.name == scheme.name) {
                schemes.push(scheme.clone());
            }
        }
        if schemes.len() > usize::from(u16::MAX) {
            let message = format!("{} schemes; at most {} are allowed", schemes.len(), u16::MAX);
            return Err(self
                .add_location(Diagnostic::new(FieldPath::root().key("workload"), message))
                .into());
        }
        let scheme_index = |name: Option<&str>| {
            let name = name.unwrap_or(&scenario.scheme.name);
            schemes.iter().position(|scheme| scheme.name == name).expect("every scheme in use was collected")
                as u16
        };
        let of_group = |group: &pathweave_workload::Group| {
            let workload = scenario.workload.iter().find(|workload| workload.has_group(&group.name));
            let workload = workload.expect("groups are named by workloads");
            let scheme = scheme_index(group.scheme.as_deref());
            let awaited = if workload.traffic.has_steps() { Awaited::Step } else { Awaited::Message };
            GroupSpec { scheme, class: workload.class, role: workload.role, awaited }
        };
        let partition = self.partition(&topology)?;
        let mut spec = SimSpec {
            name: scenario.name.clone(),
            seed: scenario.seed,
            groups: graph.groups().iter().map(of_group).collect(),
            topology,
            routing,
            switch: scenario.switch.clone(),
            network: scenario.network.clone(),
            schemes,
            graph,
            faults: scenario.fault.clone(),
            run: scenario.run.clone(),
            observe: scenario.observe.clone(),
            threads: scenario.run.threads.and_then(NonZeroU16::new),
            partition,
            scenario_toml: resolved::to_toml(scenario, &self.base_dir),
        };
        self.check_followed(spec.graph.messages().len())?;
        // Too short a notification would make every figure of the run wrong.
        spec.task_notification().map_err(|why| self.sim_error(&why))?;
        notes.extend(recovery_windows::notes(scenario, &spec));
        if let Some(Timer { network, note }) = self.retransmission_timer(&spec) {
            spec.network = network;
            let scenario = Scenario { network: spec.network.clone(), ..scenario.clone() };
            spec.scenario_toml = resolved::to_toml(&scenario, &self.base_dir);
            notes.push(note);
        }
        let footprint = Footprint::of(&spec);
        notes.extend(latency::note(&spec));
        notes.extend(spec.memory_warnings());
        notes.extend(late_faults(&spec));
        notes.extend(self.replaced_host_rate());
        notes.extend(self.default_collectives(&spec.topology));
        Ok(Prepared { spec, notes, footprint })
    }

    /// Returns a note if the file writes a rate of host links in whose place a server has another rate of NIC ports. The
    /// rate remains the default of links between switches.
    fn replaced_host_rate(&self) -> Option<String> {
        let TopologyConfig::Cluster(cluster) = &self.scenario.topology else { return None };
        let port_rate = cluster.port_rate()?;
        let field = FieldPath::root().key("topology.scale_out.host_rate");
        let written = self.is_written(&field).then(|| self.text(&field)).flatten()?;
        let differs = written.parse::<Rate>().is_ok_and(|rate| rate != port_rate);
        differs.then(|| {
            format!(
                "`{field}` = {written} sets the default of links between switches alone: the ports of the servers' NICs \
                 have {port_rate} (`topology.server.port_rate`)"
            )
        })
    }

    /// Checks that the flows to follow exist.
    fn check_followed(&self, flows: usize) -> Result<(), Diagnostics> {
        let wrong =
            self.scenario.observe.follow.iter().enumerate().find(|(_, flow)| **flow as usize >= flows);
        let Some((index, flow)) = wrong else { return Ok(()) };
        let message = format!("there is no flow {flow}");
        let allowed = match flows {
            0 => "the scenario has no flows".to_owned(),
            flows => format!("its {flows} flows are numbered from 0 to {}", flows - 1),
        };
        let field = FieldPath::root().key("observe").key("follow").index(index);
        Err(self.add_location(Diagnostic::new(field, message).allowed(allowed)).into())
    }

    /// Builds the network.
    ///
    /// # Errors
    ///
    /// The topology is invalid.
    pub fn topology(&self) -> Result<Arc<Topology>, Diagnostics> {
        let built = self.scenario.topology.build(&self.base_dir);
        let built = built.map_err(|why| self.add_location(topology_error(&why)))?;
        let built =
            built.with_links(&self.scenario.link).map_err(|why| self.add_location(link_error(&why)))?;
        let built =
            with_switch_latencies(built, &self.scenario.switch).map_err(|why| self.sim_error(&why))?;
        Ok(Arc::new(built))
    }

    /// Returns the part of each node if a file assigns them.
    fn partition(&self, topology: &Topology) -> Result<Option<Arc<[u16]>>, Diagnostics> {
        let Some(path) = &self.scenario.run.partition else { return Ok(None) };
        let parts = read_partition(topology, path, &self.base_dir).map_err(|why| {
            let path = FieldPath::root().key("run").key("partition");
            Diagnostics::from(self.add_location(Diagnostic::new(path, why.to_string())))
        })?;
        Ok(Some(parts.into()))
    }

    /// Returns the hosts of each pool as the environment of its workloads, and notes on hosts that were chosen.
    pub(crate) fn pools(
        &self,
        topology: &Topology,
        env: &WorkloadEnv,
    ) -> Result<(BTreeMap<&String, WorkloadEnv>, Vec<String>), Diagnostics> {
        let members = pools::members(&self.scenario, env).map_err(|finding| self.add_location(finding))?;
        let notes = pools::notes(&self.scenario, topology, &members);
        Ok((members.into_iter().map(|(name, members)| (name, env.of_members(&members))).collect(), notes))
    }

    /// Computes the explicit paths if the routing uses any.
    fn routing(&self, topology: &Topology, graph: &MessageGraph) -> Result<RouteChoice, Diagnostics> {
        let choice: fn(Arc<PathSets>) -> RouteChoice = match &self.scenario.routing {
            RoutingConfig::Ecmp => return Ok(RouteChoice::Switches),
            RoutingConfig::Source(_) => RouteChoice::Sources,
            RoutingConfig::SenderSwitch(_) => RouteChoice::SenderSwitches,
            RoutingConfig::NextHops(_) => RouteChoice::NextHops,
        };
        let Some(source) = self.scenario.routing.explicit() else { unreachable!("the others have no paths") };
        let pairs: Vec<_> = graph.messages().iter().map(|message| (message.src, message.dst)).collect();
        // The paths of a small network cost little, and the complete set is more informative. A file need not contain
        // all pairs.
        let all = topology.hosts() <= SMALL_NETWORK && !source.paths.is_file();
        let wanted = if all { RequestedPairs::All } else { RequestedPairs::Pairs(&pairs) };
        let sets = PathSets::build(&source.paths, topology, &self.base_dir, wanted);
        let sets = sets.map_err(|why| Diagnostics::from(self.add_location(paths_error(&why))))?;
        if let RoutingConfig::NextHops(_) = &self.scenario.routing
            && let Some((from, to, at)) = sets.find_next_hop_loop(topology)
        {
            let name = |node| topology.node_name(node).into_owned();
            let message = format!(
                "the paths from {} to {} have orders of hops with which a switch that chooses among next \
                 hops may send a packet in a circle, over {}",
                name(from),
                name(to),
                name(at)
            );
            let finding = Diagnostic::new(FieldPath::root().key("routing"), message);
            let advice =
                "with \"source\" or \"sender-switch\" a packet keeps to one path; or choose other `paths`";
            return Err(self.add_location(finding.help(advice)).into());
        }
        Ok(choice(Arc::new(sets)))
    }

    /// Builds the messages of all workloads. Returns them with notes.
    pub(crate) fn messages(
        &self,
        topology: &Arc<Topology>,
        fold: Fold,
    ) -> Result<(Arc<MessageGraph>, Vec<String>), Diagnostics> {
        let scenario = &self.scenario;
        let env = workload_env(&scenario.topology, topology, scenario.seed, &self.base_dir);
        let env = WorkloadEnv { fold, ..env };
        let (pools, of_pools) = self.pools(topology, &env)?;
        let mut builder = GraphBuilder::new(env.hosts);
        let mut found = Vec::new();
        for (i, workload) in scenario.workload.iter().enumerate() {
            let env = workload.pool.as_ref().map_or(&env, |pool| &pools[pool]);
            if let Err(why) = workload.to_config().generate(env, &mut builder) {
                let path = FieldPath::root().key("workload").index(i);
                found.push(self.add_location(workload_error(&path, workload, &why)));
            }
        }
        Diagnostics::check(found)?;
        let notes = of_pools.into_iter().chain(builder.notes().iter().cloned()).collect();
        let whole = FieldPath::root().key("workload");
        let graph = builder.finish().map_err(|why| self.add_location(graph_error(&whole, &why)))?;
        if graph.messages().is_empty() {
            let finding = Diagnostic::new(whole.index(0), "the workload sends nothing: it has no message");
            return Err(self
                .add_location(finding.help("a longer duration, a higher load or more flows make some"))
                .into());
        }
        Ok((Arc::new(graph), notes))
    }

    /// Checks that every link, switch and host of a fault exists.
    fn check_faults(&self, topology: &Topology) -> Result<(), Diagnostics> {
        use pathweave_fabric::config::FaultConfig as Fault;
        let mut found = Vec::new();
        for (i, fault) in self.scenario.fault.iter().enumerate() {
            let (field, result) = match fault {
                Fault::LinkDown { link, .. }
                | Fault::LinkFlap { link, .. }
                | Fault::LinkRate { link, .. }
                | Fault::LinkDelay { link, .. }
                | Fault::LinkLoss { link, .. }
                | Fault::LinkCorruption { link, .. } => ("link", topology.link_or_scale_up(link).map(drop)),
                Fault::SwitchDown { switch, .. } => {
                    let found = topology.node_or_chip(switch);
                    let is_node = matches!(found, Ok(NamedNode::Node(_)));
                    ("switch", if is_node { node(topology, switch, false) } else { found.map(drop) })
                }
                Fault::PauseStorm { host, .. } => ("host", node(topology, host, true)),
            };
            if let Err(why) = result {
                let finding =
                    Diagnostic::new(FieldPath::root().key("fault").index(i).key(field), message(&why));
                found.push(self.add_location(finding.suggest(nearest_of(&why))));
            }
        }
        Diagnostics::check(found)
    }

    /// Converts an error of the simulator to diagnostics at the field concerned.
    pub fn sim_error(&self, why: &SimError) -> Diagnostics {
        let root = FieldPath::root();
        let finding = match why {
            SimError::Switch(why) => {
                out_of_range(root.key("switch").key(why.field), &why.value, &why.allowed)
            }
            SimError::SwitchFor { table, field, message, allowed, nearest } => {
                let field = root.key("switch").key("for").index(*table).key(field);
                let finding = Diagnostic::new(field, message).allowed(format!("allowed: {allowed}"));
                finding.suggest(nearest.as_deref())
            }
            SimError::Fault { index, error } => {
                let field = root.key("fault").index(*index).key(error.field);
                out_of_range(field, &error.value, &error.allowed)
            }
            SimError::FaultTarget { index, message } => {
                Diagnostic::new(root.key("fault").index(*index), message)
            }
            SimError::BufferTooSmall { field, .. } => {
                let switch = root.key("switch");
                let field = match *field {
                    BufferField::Local => switch.key("buffer"),
                    BufferField::External => switch.key("external").key("buffer"),
                    BufferField::Table(table, field) => switch.key("for").index(table).key(field),
                };
                Diagnostic::new(field, why.to_string())
            }
            SimError::Forwarding { blame, message, advice } => {
                Diagnostic::new(self.field_at_fault(blame), message).help(*advice)
            }
            SimError::Fidelity { blame, message, advice } => {
                Diagnostic::new(self.field_at_fault(blame), message).help(advice.clone())
            }
            SimError::Nic { field, value, allowed } => {
                out_of_range(root.key("network").key(field), value, allowed)
            }
            SimError::Middlebox(message) => Diagnostic::new(root.key("switch.external"), message),
            SimError::Ranks(message) => Diagnostic::new(root.key("run"), message),
            SimError::Network(message) => Diagnostic::new(root.key("topology"), message),
        };
        self.add_location(finding).into()
    }

    /// Returns the field that the scenario sets and that an error is about.
    fn field_at_fault(&self, blame: &ErrorSource) -> FieldPath {
        let root = FieldPath::root();
        let routing = root.key("routing");
        match blame {
            ErrorSource::Kind => root.key("switch.forwarding.kind"),
            ErrorSource::Topology => root.key("topology"),
            ErrorSource::Field(field) => root.key(field),
            ErrorSource::Fault(index) => root.key("fault").index(*index),
            ErrorSource::Routing => routing,
            ErrorSource::Scheme(name) => {
                let of_workload = |path: &FieldPath| self.is_written(&path.key("scheme"));
                let mut with_scheme = (0..self.scenario.workload.len())
                    .map(|i| root.key("workload").index(i))
                    .zip(&self.scenario.workload)
                    .filter(|(path, _)| of_workload(path));
                let named = with_scheme.find(|(_, workload)| {
                    workload.scheme.as_ref().is_some_and(|scheme| scheme.name == *name)
                });
                match named {
                    Some((path, _)) => path.key("scheme"),
                    None if self.is_written(&root.key("scheme")) => root.key("scheme"),
                    None => routing,
                }
            }
        }
    }
}

fn node(topology: &Topology, name: &str, host: bool) -> Result<(), TopoError> {
    let node = topology.node_by_name(name)?;
    if topology.is_host(node) == host {
        return Ok(());
    }
    let kind = if host { "host" } else { "switch" };
    let other = if host { "switch" } else { "host" };
    let known = format!("a {other} of this name; expected a {kind}");
    Err(TopoError::UnknownName { kind, name: name.to_owned(), nearest: None, known })
}

/// Returns the error message without the suggestion, which is shown separately.
fn message(why: &TopoError) -> String {
    match why {
        TopoError::UnknownName { kind, name, nearest: Some(_), .. } => {
            format!("no {kind} is named \"{name}\"")
        }
        other => other.to_string(),
    }
}

fn nearest_of(why: &TopoError) -> Option<&str> {
    match why {
        TopoError::UnknownName { nearest, .. } => nearest.as_deref(),
        _ => None,
    }
}

fn topology_error(why: &TopoError) -> Diagnostic {
    let path = FieldPath::root().key("topology");
    match why {
        TopoError::Field { field, value, allowed } => out_of_range(path.key(field), value, allowed),
        // These errors name a file; they belong to the field that refers to it.
        TopoError::File { .. } | TopoError::Read { .. } => Diagnostic::new(path.key("path"), why.to_string()),
        _ => Diagnostic::new(path, message(why)).suggest(nearest_of(why)),
    }
}

fn link_error(why: &LinkForError) -> Diagnostic {
    let link = FieldPath::root().key("link");
    match why {
        LinkForError::Value { table, field, value, allowed } => {
            out_of_range(link.index(*table).key(field), value, allowed)
        }
        LinkForError::NothingSet { table } => {
            let finding = Diagnostic::new(link.index(*table), "the table changes nothing");
            finding.allowed("set `rate`, `delay` or `error_rate`")
        }
        LinkForError::NoMatch { table, pattern, known, nearest } => {
            let message = format!("no link matches \"{pattern}\"");
            let finding = Diagnostic::new(link.index(*table).key("match"), message);
            finding.allowed(format!("links like {known}")).suggest(nearest.as_deref())
        }
    }
}

fn paths_error(why: &TopoError) -> Diagnostic {
    let path = FieldPath::root().key("routing").key("paths");
    match why {
        TopoError::Field { field, value, allowed } => out_of_range(path.key(field), value, allowed),
        TopoError::File { .. } | TopoError::Read { .. } => Diagnostic::new(path.key("path"), why.to_string()),
        _ => Diagnostic::new(FieldPath::root().key("routing"), message(why)),
    }
}

pub(crate) fn workload_error(path: &FieldPath, workload: &WorkloadEntry, why: &WorkloadError) -> Diagnostic {
    match why {
        WorkloadError::Field { field: "hosts", value, allowed, .. } if !takes_hosts(workload) => {
            let (source, path) = match &workload.pool {
                Some(pool) => (format!("pool \"{pool}\""), path.key("pool")),
                None => ("the topology".to_owned(), FieldPath::root().key("topology")),
            };
            Diagnostic::new(path, format!("hosts of {source}: {value}")).allowed(allowed)
        }
        WorkloadError::Field { field, value, allowed, .. } => {
            let path = field.split('.').fold(path.clone(), |path, name| path.key(name));
            out_of_range(path, value, allowed)
        }
        WorkloadError::TooFewHosts { ranks, hosts, remedy, .. } => {
            let message = format!("the trace has {ranks} ranks, the topology {hosts} hosts");
            Diagnostic::new(path.clone(), message).allowed(*remedy)
        }
        WorkloadError::Flow { index, field, message, .. } => {
            let flow = path.key("flows").index(usize::try_from(*index).unwrap_or(usize::MAX));
            Diagnostic::new(field.map_or(flow.clone(), |field| flow.key(field)), message)
        }
        // The error is in the file; it is reported at the field of the scenario that names the file.
        WorkloadError::File(FileError { file, .. }) => {
            let mut workload = workload.clone();
            let named: Vec<_> = workload.files().into_iter().map(|(field, name)| (field, &*name)).collect();
            let field = named.iter().find(|(_, name)| *name == file).or(named.first());
            Diagnostic::new(field.map_or(path.clone(), |(field, _)| path.key(field)), why.to_string())
        }
        WorkloadError::Graph { error, .. } => graph_error(path, error),
    }
}

/// Returns true if the workload has its own list of hosts. Others take those of the topology or of a pool.
fn takes_hosts(workload: &WorkloadEntry) -> bool {
    value_of(workload).get("hosts").is_some()
}

fn graph_error(path: &FieldPath, why: &GraphError) -> Diagnostic {
    let field = match why {
        GraphError::Size { .. } => path.key("size"),
        GraphError::Time => path.key("start"),
        _ => path.clone(),
    };
    Diagnostic::new(field, why.to_string())
}
