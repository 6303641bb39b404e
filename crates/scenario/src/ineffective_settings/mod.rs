//! Settings without an effect in this scenario, or for which its schemes are not made. They are accepted, because a
//! file may prepare for values of a sweep or the command line. Each of them is reported in a note.

use std::collections::BTreeSet;

use pathweave_fabric::config::{SwitchConfig, Thresholds};
use pathweave_policy::cc::CcConfig;
use pathweave_policy::{MarkUse, PolicyConfig, Scheme, Service};
use pathweave_sim::nic::{NicConfig, SideRoute};
use pathweave_sim::{place_of, switch_classes};
use pathweave_topo::{RoutingConfig, Topology};
use pathweave_units::{Bytes, Forwarding, Rate};
use pathweave_workload::{MessageConnections, MessageGraph};
use serde::Serialize;

use crate::ineffective_scheme::{Surroundings, above_paths, ineffective};
use crate::model::{Calibrate, Fidelity, NamedScheme, NetworkConfig, Scenario};
use crate::text::value_of;

mod signals;
mod unread;

/// Returns a note, with the reason, for each setting that differs from its default and has no effect.
pub(crate) fn notes(scenario: &Scenario, topology: &Topology, graph: &MessageGraph) -> Vec<String> {
    let mut notes = Notes(Vec::new());
    let schemes: Vec<_> = scenario.schemes().collect();
    notes.of_run(scenario, graph);
    notes.of_workloads(scenario);
    notes.of_switches(scenario, topology);
    let network = &scenario.network;
    if network.source_route.is_some() && !matches!(scenario.routing, RoutingConfig::Source(_)) {
        notes.add("network", &["source_route"], "packets carry a route only with routing.kind = \"source\"");
    }
    if network.task_notification.is_some() && !graph.needs_notifications() {
        let why = "no task waits for a task at a third host, or for a barrier";
        notes.add("network", &["task_notification"], why);
    }
    let datagrams = schemes.iter().any(|(_, named)| matches!(named.scheme.service, Service::Datagram(_)));
    notes.of_side_channel(network, datagrams);
    notes.of_nic(network, datagrams);
    let in_use = in_use(scenario, graph);
    notes.of_unread(scenario, topology, &in_use);
    let has_edges = topology.sites().is_some_and(|sites| !sites.external().is_empty());
    let around = Surroundings {
        sources_choose: !matches!(scenario.routing, RoutingConfig::Ecmp),
        edges_answer: has_edges && scenario.switch.external.nsf.is_some(),
        all_pause: !any_switch(topology, &scenario.switch, |config| {
            !config.pfc.enabled || config.trim.enabled
        }),
    };
    for (path, named) in &schemes {
        notes.of_scheme(&path.to_string(), &named.scheme);
        for (field, why) in ineffective(&named.scheme, around) {
            notes.add(&path.to_string(), &[field], why);
        }
        if in_use.iter().any(|used| used.name == named.name) {
            notes.of_signals(&path.to_string(), named, scenario, topology);
        }
        notes.of_order(&path.to_string(), &named.scheme, &scenario.switch);
        notes.of_trimming(&path.to_string(), &named.scheme, &scenario.switch, topology);
        if has_edges
            && scenario.switch.external.nsf.is_none()
            && matches!(named.scheme.policy, PolicyConfig::Reflex(_))
        {
            notes.0.push(format!(
                "{path}.policy gets no feedback of an edge: external switches answer only with \
                 switch.external.nsf, so flows between sites have its congestion control alone; Reflex is \
                 switch.external = {{ nsf = {{}}, ndt = {{}} }}"
            ));
        }
    }
    notes.0
}

/// Returns the schemes that carry messages.
fn in_use<'a>(scenario: &'a Scenario, graph: &MessageGraph) -> Vec<&'a NamedScheme> {
    let of_groups = graph.groups().iter().map(|group| group.scheme.as_deref());
    let names: BTreeSet<&str> = of_groups.map(|name| name.unwrap_or(&scenario.scheme.name)).collect();
    let all = scenario.schemes().map(|(_, named)| named);
    all.filter(|named| names.contains(named.name.as_str())).collect()
}

struct Notes(Vec<String>);

impl Notes {
    fn of_side_channel(&mut self, network: &NetworkConfig, datagrams: bool) {
        let usual = NetworkConfig::default().side_channel;
        let changed = changed(&network.side_channel, &usual);
        let changed = refs(&changed);
        if !datagrams {
            self.add("network.side_channel", &changed, "no scheme in use sends datagrams");
        } else if network.side_channel.via == SideRoute::Fabric && changed.contains(&"rate") {
            let why = "via is \"fabric\": links and window limit the channel";
            self.add("network.side_channel", &["rate"], why);
        }
    }

    /// Reports settings of NICs that only datagrams use, and a cost that a reorder buffer saves.
    fn of_nic(&mut self, network: &NetworkConfig, datagrams: bool) {
        let Some(nic) = &network.nic else { return };
        let changed = changed(nic, &NicConfig::default());
        let changed = refs(&changed);
        if !datagrams {
            let of_datagrams: Vec<&str> = ["packet_cost", "reorder_buffer", "reorder_cost"]
                .into_iter()
                .filter(|field| changed.contains(field))
                .collect();
            self.add("network.nic", &of_datagrams, "no scheme in use sends datagrams");
        } else if nic.reorder_buffer > Bytes::ZERO && changed.contains(&"reorder_cost") {
            let why = "the NIC restores the order, because reorder_buffer is above 0B";
            self.add("network.nic", &["reorder_cost"], why);
        }
    }

    fn add(&mut self, table: &str, fields: &[&str], why: &str) {
        self.0.extend(fields.iter().map(|field| format!("{table}.{field} has no effect: {why}")));
    }

    fn of_run(&mut self, scenario: &Scenario, graph: &MessageGraph) {
        let run = &scenario.run;
        let calibrates = run.calibrate == Calibrate::Prefix;
        match run.fidelity {
            Fidelity::Packet if run.calibrate != Calibrate::Auto => {
                self.add(
                    "run",
                    &["calibrate"],
                    "run.fidelity is \"packet\", and only runs of flows are measured",
                );
            }
            Fidelity::Packet => {}
            Fidelity::Flow => {
                if calibrates && graph.folding().is_some() {
                    let why = "each rank stands for others, whose packets cannot be simulated";
                    self.add("run", &["calibrate"], why);
                }
                // Threads and partition apply to the packets that calibrate the flows.
                if !calibrates {
                    let why = "run.fidelity is \"flow\", and flows are run by one thread";
                    if run.partition.is_some() {
                        self.add("run", &["partition"], why);
                    }
                    if run.threads.is_some_and(|threads| threads > 1) {
                        self.add("run", &["threads"], why);
                    }
                }
            }
        }
    }

    fn of_workloads(&mut self, scenario: &Scenario) {
        for (index, workload) in scenario.workload.iter().enumerate() {
            let scheme = workload.scheme.as_ref().unwrap_or(&scenario.scheme);
            let mut in_use = [Some(scheme), workload.between_sites.as_ref()].into_iter().flatten();
            if workload.connections == MessageConnections::Own
                && in_use.all(|named| !named.scheme.service.is_connection())
            {
                let why = "no message has a connection of its own where service is not \"connection\": one queue pair \
                           serves several peers";
                self.add(&format!("workload[{index}]"), &["connections"], why);
            }
        }
    }

    fn of_switches(&mut self, scenario: &Scenario, topology: &Topology) {
        let (switch, usual) = (&scenario.switch, SwitchConfig::default());
        if !switch.pfc.enabled {
            let changed = changed(&switch.pfc, &usual.pfc);
            self.add("switch.pfc", &refs(&without(&changed, "enabled")), "switch.pfc.enabled is false");
        }
        if !switch.ecn.enabled {
            let changed = changed(&switch.ecn, &usual.ecn);
            self.add("switch.ecn", &refs(&without(&changed, "enabled")), "switch.ecn.enabled is false");
        }
        if !switch.trim.enabled {
            let changed = changed(&switch.trim, &usual.trim);
            self.add("switch.trim", &refs(&without(&changed, "enabled")), "switch.trim.enabled is false");
        }
        self.of_tables(switch, topology);
        let none_pauses = !any_switch(topology, switch, |config| config.pfc.enabled);
        if none_pauses && topology.sites().is_some_and(pathweave_topo::Sites::wan_pfc) {
            self.add("topology", &["wan_pfc"], "no switch pauses: switch.pfc.enabled is false");
        }
        if switch.weights != usual.weights && scenario.workload.iter().all(|workload| workload.class == 1) {
            self.add("switch", &["weights"], "no workload has a class above 1");
        }
        let fixed = "thresholds are \"fixed\" at every switch";
        if switch.ecn.reference_rate != usual.ecn.reference_rate
            && !any_switch(topology, switch, |config| config.ecn.thresholds == Thresholds::ByRate)
        {
            self.add("switch.ecn", &["reference_rate"], fixed);
        }
        if switch.trim.reference_rate != usual.trim.reference_rate
            && !any_switch(topology, switch, |config| config.trim.thresholds == Thresholds::ByRate)
        {
            self.add("switch.trim", &["reference_rate"], fixed);
        }
        if topology.sites().is_none_or(|sites| sites.external().is_empty()) {
            let changed = changed(&switch.external, &usual.external);
            self.add("switch.external", &refs(&changed), "the topology has no external switches");
        }
        let asked = match switch.forwarding.kind {
            Some(kind) => BTreeSet::from([kind.name().to_owned()]),
            None => {
                let of_schemes = scenario.schemes().filter_map(|(_, named)| named.scheme.forwarding);
                of_schemes.filter_map(|kind| Some(value_of(&kind).as_str()?.to_owned())).collect()
            }
        };
        for table in changed(&switch.forwarding, &usual.forwarding) {
            let serves = |kind: &str| kind == table || table == "wcmp" && kind == "weighted-rps";
            if table != "kind" && !asked.iter().any(|kind| serves(kind)) {
                let why = format!("neither switch.forwarding.kind nor a scheme uses \"{table}\"");
                self.add("switch.forwarding", &[&table], &why);
            }
        }
    }

    /// Reports fields of tables for some switches that depend on a part which is off at all of these switches.
    fn of_tables(&mut self, switch: &SwitchConfig, topology: &Topology) {
        let Ok(classes) = switch_classes(topology, switch) else { return };
        for (index, table) in switch.tables.iter().enumerate() {
            let selected: Vec<&SwitchConfig> = (0u32..)
                .zip(topology.switches())
                .filter(|(_, switch)| table.selects(&place_of(switch)))
                .map(|(index, _)| classes.of(index))
                .collect();
            let off = |is_on: fn(&SwitchConfig) -> bool| !selected.iter().any(|config| is_on(config));
            let parts = [
                ("pfc", table.pfc.as_ref().map(value_of), off(|config| config.pfc.enabled)),
                ("ecn", table.ecn.as_ref().map(value_of), off(|config| config.ecn.enabled)),
                ("trim", table.trim.as_ref().map(value_of), off(|config| config.trim.enabled)),
            ];
            for (part, set, off) in parts {
                let fields = set.iter().filter_map(toml::Value::as_table).flat_map(|set| set.keys());
                let fields: Vec<&str> =
                    fields.map(String::as_str).filter(|field| off && *field != "enabled").collect();
                let why = format!("{part}.enabled is false at the switches that the table selects");
                self.add(&format!("switch.for[{index}].{part}"), &fields, &why);
            }
        }
    }

    /// Reports packets of a message on several paths together with receivers that drop packets out of order.
    fn of_order(&mut self, path: &str, scheme: &Scheme, switch: &SwitchConfig) {
        if !scheme.recovery.goes_back() || matches!(scheme.service, Service::Datagram(_)) {
            return;
        }
        let by_host = scheme.paths > 1 && scheme.as_fluid().spread.is_some_and(|spread| !spread.is_single());
        let forwarding = switch.forwarding.kind.or(scheme.forwarding);
        let by_switch = forwarding.filter(|kind| {
            use Forwarding::{Drill, Rps, Ugal, WeightedRps};
            matches!(kind, Rps | WeightedRps | Drill | Ugal)
        });
        let who = match (by_host, by_switch) {
            (true, _) => format!("{path}.policy"),
            (false, Some(kind)) => format!("forwarding by \"{}\"", kind.name()),
            (false, None) => return,
        };
        self.0.push(format!(
            "{path}.recovery is \"{}\", and {who} sends packets of a message over several paths: receivers drop those that \
             overtake others, and they are sent again; for several paths recovery.kind is \"selective_repeat\"",
            value_of(&scheme.recovery).get("kind").and_then(toml::Value::as_str).unwrap_or("go_back_n")
        ));
    }

    /// Reports switches that trim together with schemes that are not made for trimming.
    fn of_trimming(&mut self, path: &str, scheme: &Scheme, switch: &SwitchConfig, topology: &Topology) {
        if !switch.trim.enabled {
            return;
        }
        if scheme.recovery.goes_back() && !matches!(scheme.service, Service::Datagram(_)) {
            self.0.push(format!(
                "{path}.recovery is \"go_back_n\" and switch.trim.enabled: for each packet that is trimmed, all behind it are \
                 sent again; it is made for switches that pause (switch.pfc)"
            ));
        }
        if scheme.marks() == MarkUse::Alone && switch.ecn.enabled && marks_nothing(switch, topology) {
            self.0.push(format!(
                "{path} slows down for marks, and there are none: switch.ecn.kmin = {} is not below switch.trim.queue = {}, \
                 beyond which packets are trimmed",
                switch.ecn.kmin, switch.trim.queue
            ));
        }
    }

    fn of_scheme(&mut self, path: &str, scheme: &Scheme) {
        if let Some((field, value, paths)) = above_paths(scheme) {
            self.0.push(format!(
                "{path}.{field} = {value} acts like {paths}: a queue pair has {path}.paths = {paths} for each NIC port"
            ));
        }
        let every = scheme.acks.every_packets;
        if every != 1 && scheme.acks.every_bytes.is_some() {
            let why = "bytes count where acks.every_bytes is given";
            self.add(&format!("{path}.acks"), &["every_packets"], why);
        }
        if every > 1 && scheme.acks.every_bytes.is_none() {
            let why = SlowedBy::of(&scheme.policy).map(SlowedBy::few_acknowledgements);
            self.0.extend(why.map(|why| format!("{path}.acks.every_packets is {every}: {why}; expected 1")));
        }
    }
}

/// Reason why a policy needs an acknowledgement for each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlowedBy {
    /// Acknowledgements clock packets.
    Clock,
    /// Acknowledgements open a window.
    Window,
}

impl SlowedBy {
    fn of(policy: &PolicyConfig) -> Option<Self> {
        let by_window = |cc: &CcConfig| cc.has_window().then_some(SlowedBy::Window);
        match policy {
            PolicyConfig::Udmp(_) | PolicyConfig::UdmpPublished(_) | PolicyConfig::Mprdma(_) => {
                Some(SlowedBy::Clock)
            }
            PolicyConfig::Mrc(_) | PolicyConfig::Reps(_) | PolicyConfig::Weave(_) => Some(SlowedBy::Window),
            PolicyConfig::Split(split) => by_window(&split.cc),
            PolicyConfig::Dlbf(dlbf) => by_window(&dlbf.cc),
            PolicyConfig::Reflex(reflex) => by_window(&reflex.cc),
            PolicyConfig::Laps(_) | PolicyConfig::Supplied(_) => None,
        }
    }

    fn few_acknowledgements(self) -> &'static str {
        match self {
            SlowedBy::Clock => {
                "the policy sends a packet for each acknowledgement that arrives, so fewer acknowledgements slow it down"
            }
            SlowedBy::Window => {
                "a window of fewer packets waits up to acks.max_delay for each acknowledgement, and a round trip that is \
                 measured includes this delay"
            }
        }
    }
}

/// Returns true if all ports trim packets before they mark any, at every link rate.
fn marks_nothing(switch: &SwitchConfig, topology: &Topology) -> bool {
    let at =
        |bytes: Bytes, of: Rate, rate: Rate| bytes.get() as f64 * rate.as_bps() as f64 / of.as_bps() as f64;
    topology.links().iter().all(|link| {
        let kmin = match switch.ecn.thresholds {
            Thresholds::ByRate => at(switch.ecn.kmin, switch.ecn.reference_rate, link.rate),
            Thresholds::Fixed => switch.ecn.kmin.get() as f64,
        };
        kmin >= at(switch.trim.queue, switch.trim.reference_rate, link.rate)
    })
}

/// Returns true if a switch has such settings, or its settings are refused.
fn any_switch(topology: &Topology, switch: &SwitchConfig, is_such: impl Fn(&SwitchConfig) -> bool) -> bool {
    let all = (0u32..).zip(topology.switches());
    switch_classes(topology, switch)
        .map_or(true, |classes| all.into_iter().any(|(index, _)| is_such(classes.of(index))))
}

/// Returns the fields of a table that differ from those of another table.
fn changed(table: &impl Serialize, usual: &impl Serialize) -> Vec<String> {
    let (table, usual) = (value_of(table), value_of(usual));
    let fields =
        |value: &toml::Value| value.as_table().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    let (names, gone): (Vec<String>, Vec<String>) = (fields(&table), fields(&usual));
    let gone = gone.into_iter().filter(|name| table.get(name).is_none());
    names.into_iter().filter(|name| table.get(name) != usual.get(name)).chain(gone).collect()
}

fn without(fields: &[String], name: &str) -> Vec<String> {
    fields.iter().filter(|field| *field != name).cloned().collect()
}

fn refs(fields: &[String]) -> Vec<&str> {
    fields.iter().map(String::as_str).collect()
}

#[cfg(test)]
mod tests;
