//! Conditions under which equivalent ranks are simulated only once.

use std::sync::Arc;

use pathweave_fabric::config::ForwardingConfig;
use pathweave_policy::Scheme;
use pathweave_topo::Topology;
use pathweave_units::Spread;
use pathweave_workload::{Fold, MessageGraph};

use crate::model::{self, Fidelity, Scenario};
use crate::text::{Diagnostic, FieldPath};

/// Returns the ranks of a workload that the simulation may leave out.
pub(crate) fn of(scenario: &Scenario, topology: &Arc<Topology>) -> Fold {
    match (fold_obstacle_reason(scenario), scenario.run.fold) {
        (Some(why), _) => Fold::Never(why),
        (None, model::Fold::Always) => Fold::Always(topology.clone()),
        (None, model::Fold::Auto | model::Fold::Never) => Fold::Large(topology.clone()),
    }
}

/// Refuses a scenario with `run.fold = "always"` if no ranks could be folded.
pub(crate) fn check(scenario: &Scenario, graph: &MessageGraph) -> Result<(), Diagnostic> {
    if scenario.run.fold != model::Fold::Always || graph.folding().is_some() {
        return Ok(());
    }
    let why = fold_obstacle_reason(scenario).unwrap_or_else(|| {
        "the kinds of workload whose ranks can be alike are \"collective\", \"simai\" and \"transformer\""
            .to_owned()
    });
    let finding =
        Diagnostic::new(FieldPath::root().key("run").key("fold"), format!("no ranks are run once: {why}"));
    Err(finding.help("\"auto\" runs them once where that can be"))
}

/// Returns the reason why equivalent ranks cannot be folded in this scenario, or `None`.
fn fold_obstacle_reason(scenario: &Scenario) -> Option<String> {
    let [workload] = &scenario.workload[..] else {
        return Some("several workloads share the network".to_owned());
    };
    let scheme = workload.scheme.as_ref().unwrap_or(&scenario.scheme);
    let words = if scenario.run.fidelity == Fidelity::Packet {
        "each packet is simulated, so chance makes ranks differ (run.fidelity = \"flow\" runs without \
         packets)"
    } else if scenario.run.fold == model::Fold::Never {
        "run.fold = \"never\""
    } else if !scenario.fault.is_empty() {
        "faults make ranks differ"
    } else if workload.stragglers.is_some() {
        "stragglers make ranks differ"
    } else if workload.between_sites.is_some() {
        "their messages between sites have a scheme of their own"
    } else if spread(&scheme.scheme, &scenario.switch.forwarding).is_none_or(Spread::is_single) {
        return Some(format!(
            "scheme \"{}\" takes single paths, so they differ; one that spreads its packets, such as \
             \"udmp\", does not",
            scheme.name
        ));
    } else {
        return None;
    };
    Some(words.to_owned())
}

/// Returns how a scheme spreads packets: as the switches do, otherwise as hosts do, or `None` if a program picks
/// paths. Switches use the forwarding that the scheme is made for unless the scenario sets another.
pub(crate) fn spread(scheme: &Scheme, switches: &ForwardingConfig) -> Option<Spread> {
    let switches = ForwardingConfig { kind: switches.kind.or(scheme.forwarding), ..switches.clone() };
    switches.spread().or(scheme.as_fluid().spread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Changes, Loaded};

    /// Returns the reason why `fold = "auto"` would not fold this flow simulation.
    fn obstacle_of(set: &[&str]) -> Option<String> {
        let text = "topology = { kind = \"leaf-spine\", leaves = 2, spines = 2, hosts_per_leaf = 4 }\n\
                    [[workload]]\nkind = \"simai\"\nfile = \"moe-9216gpu\"\ngpus = 8\n[run]\nfidelity = \"flow\"\n";
        let set = set.iter().map(|&text| text.to_owned()).collect();
        let loaded = Loaded::parse(text, "a.toml", ".", &Changes { set, ..Changes::default() });
        let scenario = loaded.unwrap_or_else(|why| panic!("{why}")).scenario;
        let topology = scenario.topology.build(std::path::Path::new("")).expect("a leaf-spine");
        match of(&scenario, &Arc::new(topology)) {
            Fold::Never(why) => Some(why),
            Fold::Large(_) | Fold::Always(_) => None,
        }
    }

    /// Single paths prevent folding, whether the scheme or the switches choose them. Otherwise a large job on single
    /// paths would be refused although nobody asked for folding.
    #[test]
    fn single_paths_forbid_it_whoever_chooses_them() {
        for set in [
            &["scheme=ecmp"][..],
            &["scheme=wcmp"],
            &["scheme=ecmp", "switch.forwarding.kind=wcmp"],
            &["scheme=udmp", "workload[0].scheme=wcmp"],
        ] {
            let why = obstacle_of(set).unwrap_or_else(|| panic!("{set:?}: nothing forbids it"));
            assert!(why.contains("takes single paths"), "{set:?}: {why}");
        }
        for set in [
            &["scheme=udmp"][..],
            &["scheme=letflow"],
            &["scheme=ecmp", "switch.forwarding.kind=rps"],
            &["scheme=ecmp", "workload[0].scheme=udmp"],
        ] {
            assert_eq!(obstacle_of(set), None, "{set:?}");
        }
    }
}
