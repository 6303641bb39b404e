//! Settings of packets, switches, observation and pools that no part of the run reads.

use std::collections::BTreeSet;

use pathweave_fabric::config::{FaultConfig, SwitchConfig, Thresholds};
use pathweave_policy::{Ports, Recovery, Scheme, Service};
use pathweave_sim::{NamedScheme, place_of, switch_classes};
use pathweave_topo::{RoutingConfig, Topology};
use pathweave_units::{Duration, Forwarding};

use super::{Notes, any_switch, changed, refs};
use crate::model::pool::PoolSize;
use crate::model::{Calibrate, Fidelity, ObserveConfig, Pool, RetransmissionConfig, Scenario};
use crate::text::value_of;

/// Reason of settings that only packets read.
const NO_PACKETS: &str =
    "run.fidelity is \"flow\" and run.calibrate is \"off\": no packet is marked, trimmed, dropped or lost";

/// Returns true if the run simulates no packet, not even to check flows.
fn is_without_packets(scenario: &Scenario) -> bool {
    scenario.run.fidelity == Fidelity::Flow && scenario.run.calibrate == Calibrate::Off
}

fn sends_datagrams(scheme: &Scheme) -> bool {
    matches!(scheme.service, Service::Datagram(_))
}

/// Returns the reason why a scheme does not read a field of the retransmission timer; `None` if it does. `trims` is true
/// if packets that do not fit are trimmed at every switch that does not pause.
fn why_unread(scheme: &Scheme, field: &str, trims: bool) -> Option<&'static str> {
    match (scheme.service, scheme.recovery) {
        (Service::Datagram(_), _) => Some("receivers request missing datagrams (service.repair)"),
        (_, Recovery::Timeouts { exponent, .. }) => {
            let has_own = field != "timeout" || exponent.is_some() || trims;
            has_own.then_some("recovery \"timeouts\" has its own times and retries")
        }
        _ => None,
    }
}

/// Returns the load balancing that the switches perform.
fn forwarding(switch: &SwitchConfig, in_use: &[&NamedScheme]) -> Option<Forwarding> {
    switch.forwarding.kind.or_else(|| in_use.iter().find_map(|named| named.scheme.forwarding))
}

/// Returns true if a switch drops packets by its share of the buffer. Switches that hold packets back do, even if they
/// trim others.
fn drops(config: &SwitchConfig, forwarding: Option<Forwarding>) -> bool {
    !config.pfc.enabled && (forwarding == Some(Forwarding::ConWeave) || !config.trim.enabled)
}

/// Returns the reason why no switch hashes a packet; `None` if one does.
fn why_not_hashed(scenario: &Scenario, in_use: &[&NamedScheme]) -> Option<&'static str> {
    let is_hashed = in_use.iter().any(|named| named.scheme.ports == Ports::Distinct);
    match forwarding(&scenario.switch, in_use) {
        _ if scenario.run.fidelity != Fidelity::Packet => None,
        _ if matches!(scenario.routing, RoutingConfig::Source(_)) => {
            Some("sources choose the path of every packet")
        }
        _ if is_hashed => None,
        Some(Forwarding::Rps | Forwarding::WeightedRps) => {
            Some("switches choose a random next hop for every packet")
        }
        Some(Forwarding::Drill) => Some("switches choose the next hop of every packet by queues"),
        _ => None,
    }
}

/// Returns the turn in which pools get their hosts: those that name hosts, those of servers, those of numbers of hosts.
fn turn(pool: &Pool) -> u8 {
    match pool.size() {
        None => 0,
        Some(PoolSize::Servers(_)) => 1,
        Some(PoolSize::Hosts(_)) => 2,
    }
}

impl Notes {
    /// Reports settings that nothing reads. `in_use` are the schemes that carry messages.
    pub(super) fn of_unread(&mut self, scenario: &Scenario, topology: &Topology, in_use: &[&NamedScheme]) {
        if is_without_packets(scenario) {
            self.of_packets(scenario);
        } else {
            self.of_retransmission(scenario, topology, in_use);
            self.of_admission(&scenario.switch, topology, in_use);
        }
        self.of_unread_tables(scenario, topology, in_use);
        self.of_routes(scenario, in_use);
        self.of_storms(scenario, topology);
        self.of_observation(scenario, in_use);
        self.of_pools(scenario);
    }

    /// Reports settings that only packets read, of a run without packets.
    fn of_packets(&mut self, scenario: &Scenario) {
        let (switch, usual) = (&scenario.switch, SwitchConfig::default());
        let timer = changed(&scenario.network.retransmission, &RetransmissionConfig::default());
        self.add("network.retransmission", &refs(&timer), NO_PACKETS);
        // Fields of a part that is off have been reported.
        let of_marks = changed(&switch.ecn, &usual.ecn);
        let of_marks = if switch.ecn.enabled { of_marks } else { vec!["enabled".to_owned()] };
        self.add("switch.ecn", &refs(&of_marks), NO_PACKETS);
        if switch.trim.enabled {
            self.add("switch.trim", &refs(&changed(&switch.trim, &usual.trim)), NO_PACKETS);
        }
        if switch.egress_alpha != usual.egress_alpha {
            self.add("switch", &["egress_alpha"], NO_PACKETS);
        }
    }

    /// Reports fields of the retransmission timer that no scheme in use reads.
    fn of_retransmission(&mut self, scenario: &Scenario, topology: &Topology, in_use: &[&NamedScheme]) {
        let (timer, switch) = (&scenario.network.retransmission, &scenario.switch);
        let drops = any_switch(topology, switch, |config| !config.trim.enabled && !config.pfc.enabled);
        let trims = !drops && any_switch(topology, switch, |config| config.trim.enabled);
        for field in changed(timer, &RetransmissionConfig::default()) {
            let each = in_use.iter().map(|named| why_unread(&named.scheme, &field, trims));
            let reasons: BTreeSet<&str> = each.collect::<Option<_>>().unwrap_or_default();
            let reasons: Vec<&str> = reasons.into_iter().collect();
            if !reasons.is_empty() {
                self.add("network.retransmission", &[&field], &reasons.join("; "));
            } else if field == "backoff" && timer.max_timeout <= timer.timeout {
                let why = "network.retransmission.max_timeout is not above timeout";
                self.add("network.retransmission", &[&field], why);
            }
        }
    }

    /// Reports fields of tables for some switches that these switches do not read, though the part that has them is on.
    fn of_unread_tables(&mut self, scenario: &Scenario, topology: &Topology, in_use: &[&NamedScheme]) {
        let switch = &scenario.switch;
        let Ok(classes) = switch_classes(topology, switch) else { return };
        let is_without_packets = is_without_packets(scenario);
        let hash = why_not_hashed(scenario, in_use);
        for (index, table) in switch.tables.iter().enumerate() {
            let path = format!("switch.for[{index}]");
            let places = (0u32..).zip(topology.switches());
            let selected = places.filter(|(_, switch)| table.selects(&place_of(switch)));
            let selected: Vec<&SwitchConfig> = selected.map(|(switch, _)| classes.of(switch)).collect();
            let all = |is_such: &dyn Fn(&SwitchConfig) -> bool| selected.iter().all(|config| is_such(config));
            let drops = |config: &SwitchConfig| drops(config, forwarding(switch, in_use));
            if table.egress_alpha.is_some() && is_without_packets {
                self.add(&path, &["egress_alpha"], NO_PACKETS);
            } else if table.egress_alpha.is_some() && all(&|config| !drops(config)) {
                let why = "the switches that the table selects pause or trim (switch.pfc, switch.trim)";
                self.add(&path, &["egress_alpha"], why);
            }
            if let Some(why) = hash.filter(|_| table.hash.is_some()) {
                self.add(&path, &["hash"], why);
            }
            let fixed = "thresholds are \"fixed\" at the switches that the table selects";
            let by_rate = |thresholds: Thresholds| thresholds == Thresholds::ByRate;
            for (part, set, is_off, is_fixed) in [
                (
                    "ecn",
                    table.ecn.as_ref().map(value_of),
                    all(&|config| !config.ecn.enabled),
                    all(&|config| !by_rate(config.ecn.thresholds)),
                ),
                (
                    "trim",
                    table.trim.as_ref().map(value_of),
                    all(&|config| !config.trim.enabled),
                    all(&|config| !by_rate(config.trim.thresholds)),
                ),
            ] {
                // Fields of a part that is off have been reported.
                let fields = set.iter().filter_map(toml::Value::as_table).flat_map(|set| set.keys());
                let fields: Vec<&str> =
                    fields.map(String::as_str).filter(|field| !is_off || *field == "enabled").collect();
                let part = format!("{path}.{part}");
                if is_without_packets {
                    self.add(&part, &fields, NO_PACKETS);
                } else if is_fixed && fields.contains(&"reference_rate") {
                    self.add(&part, &["reference_rate"], fixed);
                }
            }
        }
    }

    /// Reports a share of the buffer by which no switch drops packets.
    fn of_admission(&mut self, switch: &SwitchConfig, topology: &Topology, in_use: &[&NamedScheme]) {
        let drops = |config: &SwitchConfig| drops(config, forwarding(switch, in_use));
        if switch.egress_alpha != SwitchConfig::default().egress_alpha && !any_switch(topology, switch, drops)
        {
            self.add("switch", &["egress_alpha"], "every switch pauses or trims (switch.pfc, switch.trim)");
        }
    }

    /// Reports hashes where switches spray, and the delay of routing where nothing fails.
    fn of_routes(&mut self, scenario: &Scenario, in_use: &[&NamedScheme]) {
        let (switch, usual) = (&scenario.switch, SwitchConfig::default());
        if let Some(why) = why_not_hashed(scenario, in_use).filter(|_| switch.hash != usual.hash) {
            self.add("switch", &["hash"], why);
        }
        let fails = |fault: &FaultConfig| match fault {
            FaultConfig::LinkDown { .. }
            | FaultConfig::LinkFlap { .. }
            | FaultConfig::LinkRate { .. }
            | FaultConfig::SwitchDown { .. } => true,
            FaultConfig::LinkDelay { .. }
            | FaultConfig::LinkLoss { .. }
            | FaultConfig::LinkCorruption { .. }
            | FaultConfig::PauseStorm { .. } => false,
        };
        if switch.reroute_after != usual.reroute_after && !scenario.fault.iter().any(fails) {
            self.add("switch", &["reroute_after"], "no fault takes a link or a switch down");
        }
    }

    /// Reports pause storms at switches that ignore pause frames.
    fn of_storms(&mut self, scenario: &Scenario, topology: &Topology) {
        let Ok(classes) = switch_classes(topology, &scenario.switch) else { return };
        for (index, fault) in scenario.fault.iter().enumerate() {
            let FaultConfig::PauseStorm { host, .. } = fault else { continue };
            let Ok(node) = topology.node_by_name(host) else { continue };
            let peers = topology.ports(node).iter().filter_map(|port| topology.switch_index(port.peer));
            if let Some(peer) = peers.clone().next()
                && !peers.clone().any(|peer| classes.of(peer as u32).pfc.enabled)
            {
                self.0.push(format!(
                    "fault[{index}], a pause-storm, has no effect: {} ignores pause frames, as it has no PFC \
                     (switch.pfc.enabled is false)",
                    topology.switches()[peer].name
                ));
            }
        }
    }

    /// Reports observations that the messages, or the time between samples, leave empty.
    fn of_observation(&mut self, scenario: &Scenario, in_use: &[&NamedScheme]) {
        let observe = &scenario.observe;
        let set = changed(observe, &ObserveConfig::default());
        let among = |fields: &[&'static str]| -> Vec<&'static str> {
            fields.iter().copied().filter(|field| set.iter().any(|name| name == field)).collect()
        };
        let only_datagrams = in_use.iter().all(|named| sends_datagrams(&named.scheme)) && !in_use.is_empty();
        if observe.interval == Duration::ZERO {
            let why = "observe.interval is 0s: nothing is sampled";
            self.add("observe", &among(&["flows", "max_samples"]), why);
        } else if only_datagrams {
            self.add("observe", &among(&["flows", "follow"]), "messages of datagrams are not followed");
        }
        let counts = scenario.network.nic.is_none()
            && scenario.schemes().all(|(_, named)| named.scheme.service.is_connection());
        if observe.departures && !counts {
            let why = "packets are counted only without network.nic, and if service is \"connection\" in all schemes";
            self.add("observe", &["departures"], why);
        }
    }

    /// Reports pools that no workload names, unless they keep hosts from pools that get theirs later.
    fn of_pools(&mut self, scenario: &Scenario) {
        let is_named = |name: &String| scenario.workload.iter().any(|of| of.pool.as_ref() == Some(name));
        let in_turn = || scenario.pools.iter().map(|(name, pool)| (turn(pool), name));
        let last = in_turn().filter(|(turn, name)| *turn > 0 && is_named(name)).max();
        let idle = in_turn().filter(|(turn, name)| !is_named(name) && last < Some((*turn, *name)));
        for (_, name) in idle {
            self.add("pools", &[name], "no workload names it");
        }
    }
}
