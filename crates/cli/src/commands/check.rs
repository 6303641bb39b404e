//! `pathweave check`.

use clap::Args;
use pathweave_heap::usage::available_bytes;
use pathweave_records::Quantity;
use pathweave_scenario::{GpuMemory, Inspection, Memory, Records, ServerSize, Tier};
use pathweave_sim::{SimSpec, memory_in_words};
use serde::Serialize;
use std::path::PathBuf;

use crate::failure::{Failure, Outcome};
use crate::memory::{self, ThreadChoice};
use crate::options::{Changes, Threads};
use crate::scenario_input;
use crate::simulation_speed;
use crate::terminal;

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// Scenario file (TOML); - is standard input
    pub(crate) scenario: PathBuf,
    #[command(flatten)]
    pub(crate) changes: Changes,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print only the memory that the run needs, by component, without building the run
    #[arg(long)]
    pub(crate) memory: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn check(args: &CheckArgs) -> Result<Outcome, Failure> {
    let loaded = scenario_input::read(&args.scenario, &super::changes(&args.changes))?;
    let prepared = loaded.draft()?;
    let fit = || memory::fit(&prepared, args.threads, 1, 1, Records::Written);
    let process = |spec: &SimSpec| memory::process(spec, Records::Written);
    let most = args.threads.of(&prepared.spec, 1);
    if args.memory {
        let spec = fit().map_or(most, |fit| fit.spec);
        let memory = prepared.memory_in(process(&spec));
        let available = available_bytes();
        if args.json {
            let available_bytes = available;
            #[derive(Serialize)]
            struct Report<'a> {
                #[serde(flatten)]
                memory: &'a Memory,
                available_bytes: Option<u64>,
            }
            terminal::out(&super::json(&Report { memory: &memory, available_bytes }));
        } else {
            terminal::out(&memory::table(&memory, available));
        }
        return Ok(Outcome::Done);
    }
    let mut inspection = prepared.inspect_in(process(&most));
    let fits = available_bytes().is_none_or(|available| inspection.memory.total_bytes <= available);
    match if fits { Ok(ThreadChoice { spec: most, note: None }) } else { fit() } {
        // Building the run takes as much memory as its start.
        Err(why) => inspection.notes.push(format!("not set up for a trial: {why}")),
        Ok(ThreadChoice { spec, note }) => {
            if note.is_some() {
                inspection = prepared.inspect_in(process(&spec));
                inspection.notes.extend(note);
            }
            loaded.try_out(&prepared.spec)?;
            inspection.estimate = simulation_speed::forecast(&prepared.spec, &inspection);
        }
    }
    let scenario = &prepared.spec.scenario_toml;
    if args.json {
        #[derive(Serialize)]
        struct Report<'a> {
            #[serde(flatten)]
            inspection: &'a Inspection,
            scenario_toml: &'a str,
        }
        terminal::out(&super::json(&Report { inspection: &inspection, scenario_toml: scenario }));
    } else {
        terminal::out(&format!("{scenario}\n{}", describe(&inspection)));
    }
    Ok(Outcome::Done)
}

fn describe_servers(servers: &ServerSize, lines: &mut Vec<String>) {
    let rate = |gbps: f64| Quantity::RateBps.format(gbps * 1e9);
    lines.push(format!(
        "servers    {}, each with GPUs: {}, NICs: {}, ports of a NIC: {}; ports of a GPU: {}",
        servers.servers,
        servers.gpus,
        servers.nics,
        servers.nic_ports,
        rate(servers.gpu_ports_gbps)
    ));
    if servers.planes > 1 {
        lines.push(format!("planes     {}: port q of each NIC is in plane q", servers.planes));
    }
    if let Some(network) = &servers.scale_up {
        let most = network.most_gpu_gbps.map_or(String::new(), |most| format!(" to {}", rate(most)));
        lines.push(format!(
            "scale-up   domains of {} GPUs, {}{most} a GPU in each direction, latency {}",
            network.domain,
            rate(network.gpu_gbps),
            Quantity::TimeNs.format(network.delay_ns)
        ));
    }
    for (server, leaves) in servers.leaves.iter().enumerate() {
        lines.push(format!("leaves     server {server}: {}", leaves.join(" ")));
    }
    for hops in &servers.hops {
        lines.push(format!(
            "rails      srv0.gpu0 to {}: hops: {}, shortest paths: {}",
            hops.to, hops.hops, hops.paths
        ));
    }
    lines.push(format!(
        "ports      NICs: {}, switches: {}; cables: {}, transceivers: {}",
        servers.attached_ports,
        servers.switch_ports,
        servers.cables,
        2 * servers.cables
    ));
}

/// Returns the oversubscription of a tier: that of all switches, or the range with the switch that has the most. `top` is the
/// number of the highest tier.
fn oversubscription(tier: &Tier, top: Option<u8>) -> String {
    match (tier.oversubscription, &tier.oversubscription_range) {
        (None, _) if tier.level_bps > 0 && Some(tier.tier) < top => "linked to each other".to_owned(),
        (None, _) => "top".to_owned(),
        (_, Some([least, most])) if most.ratio > 1.0 => {
            format!("{:.2}:1 to {:.2}:1 oversubscribed, most at {}", least.ratio, most.ratio, most.switch)
        }
        (Some(ratio), _) if ratio <= 1.0 => "not oversubscribed".to_owned(),
        (Some(ratio), _) => format!("{ratio:.2}:1 oversubscribed"),
    }
}

/// Describes the memory that training needs on a GPU, with its terms.
fn describe_gpu_memory(of: &GpuMemory) -> String {
    let verdict = if of.fits { "fits" } else { "does not fit" };
    format!("gpu memory {} {verdict}: {}", of.group, memory_in_words(&of.memory))
}

/// Returns the description that follows the resolved scenario. It consists of comments, so that the whole output is a
/// scenario.
fn describe(inspection: &Inspection) -> String {
    let mut lines = Vec::new();
    let network = &inspection.network;
    lines.push(format!(
        "network    {}; hosts: {}, switches: {}, links: {}",
        network.topology, network.hosts, network.switches, network.links
    ));
    let in_servers = network.servers.as_ref().is_some_and(|servers| servers.nodes > 0);
    let top = network.tiers.iter().map(|tier| tier.tier).max();
    for tier in &network.tiers {
        let ratio = oversubscription(tier, top);
        let nodes = if in_servers && tier.tier == 0 { "parts of servers" } else { "switches" };
        lines.push(format!("tier {}     {nodes}: {}, {ratio}", tier.tier, tier.switches));
    }
    for class in &network.switch_classes {
        lines.push(format!(
            "switches   {} like {}: {}",
            class.switches,
            class.first,
            class.settings.join(", ")
        ));
    }
    if let Some(servers) = &network.servers {
        describe_servers(servers, &mut lines);
    }
    let sampled = if network.paths_sampled { " (sampled)" } else { "" };
    for group in &network.paths {
        lines.push(format!(
            "paths      hops: {}, shortest paths: {}, pairs of hosts: {}{sampled}",
            group.hops, group.paths, group.pairs
        ));
    }
    let bytes = |bytes: u64| Quantity::Bytes.format(bytes as f64);
    if let Some(explicit) = &network.explicit_paths {
        for (paths, pairs) in &explicit.of_pair {
            lines.push(format!("routes     explicit paths: {paths}, pairs of hosts: {pairs}"));
        }
        let of_host = match explicit.of_host {
            (fewest, most) if fewest == most => most.to_string(),
            (fewest, most) => format!("{fewest} to {most}"),
        };
        let (lists, memory) = (explicit.lists, bytes(explicit.memory_bytes));
        lines.push(format!("           paths from a host: {of_host}; lists of hops: {lists}, {memory}"));
    }
    for group in &inspection.traffic.groups {
        lines.push(format!(
            "traffic    {}; messages: {}, {}, scheme {}",
            group.group,
            group.messages,
            bytes(group.bytes),
            group.scheme
        ));
    }
    let traffic = &inspection.traffic;
    if traffic.computations > 0 || traffic.jobs > 0 {
        lines.push(format!("           jobs: {}, computations: {}", traffic.jobs, traffic.computations));
    }
    lines.extend(traffic.gpu_memory.iter().map(describe_gpu_memory));
    let time = |ns: f64| Quantity::TimeNs.format(ns);
    let bounds = &inspection.bounds;
    lines.push(format!(
        "bounds     not over before {}: busiest host link {}, longest chain {}",
        time(bounds.completion_ns),
        time(bounds.links_ns),
        time(bounds.chain_ns)
    ));
    let estimate = &inspection.estimate;
    let cpu = |seconds: f64| time(seconds * 1e9);
    let memory = |size: f64| Quantity::Bytes.format(size.round());
    lines.push(format!(
        "estimate   {}about {} of one core ({} to {}), {} ({} to {})",
        estimate.packet_hops.map_or_else(String::new, |hops| {
            format!("{} packet-hops, ", Quantity::Count.format(hops.round()))
        }),
        cpu(estimate.cpu_s),
        cpu(estimate.cpu_range_s.0),
        cpu(estimate.cpu_range_s.1),
        memory(estimate.memory_bytes),
        memory(estimate.memory_range_bytes.0),
        memory(estimate.memory_range_bytes.1)
    ));
    lines.extend(inspection.notes.iter().map(|note| format!("note       {note}")));
    lines.iter().map(|line| format!("# {line}\n")).collect()
}
