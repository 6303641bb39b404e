//! Whether ranks that are alike may be run once.

use std::sync::Arc;

use pathweave_topo::Topology;
use pathweave_units::Spread;
use pathweave_workload::{Fold, MessageGraph};

use crate::model::{self, Fidelity, Scenario};
use crate::text::{Diagnostic, FieldPath};

/// What the workload of a scenario may leave out.
pub(crate) fn of(scenario: &Scenario, topology: &Arc<Topology>) -> Fold {
    match (obstacle(scenario), scenario.run.fold) {
        (Some(why), _) => Fold::Never(why),
        (None, model::Fold::Always) => Fold::Always(topology.clone()),
        (None, model::Fold::Auto | model::Fold::Never) => Fold::Large(topology.clone()),
    }
}

/// Refuses a scenario that asks for ranks to be run once where none are.
pub(crate) fn check(scenario: &Scenario, graph: &MessageGraph) -> Result<(), Diagnostic> {
    if scenario.run.fold != model::Fold::Always || graph.folding().is_some() {
        return Ok(());
    }
    let why = obstacle(scenario).unwrap_or_else(|| {
        "the kinds of workload whose ranks can be alike are \"simai\" and \"transformer\"".to_owned()
    });
    let finding =
        Diagnostic::new(FieldPath::root().key("run").key("fold"), format!("no ranks are run once: {why}"));
    Err(finding.help("\"auto\" runs them once where that can be"))
}

/// What tells ranks apart that are alike otherwise, or forbids to look.
fn obstacle(scenario: &Scenario) -> Option<String> {
    let [workload] = &scenario.workload[..] else {
        return Some("several workloads share the network".to_owned());
    };
    let scheme = workload.scheme.as_ref().unwrap_or(&scenario.scheme);
    let spread = scheme.scheme.as_fluid().spread;
    let words = if scenario.run.fidelity == Fidelity::Packet {
        "each packet is simulated, and chance tells them apart (run.fidelity = \"flow\" runs without packets)"
    } else if scenario.run.fold == model::Fold::Never {
        "run.fold = \"never\""
    } else if !scenario.fault.is_empty() {
        "faults tell them apart"
    } else if workload.stragglers.is_some() {
        "stragglers tell them apart"
    } else if workload.between_sites.is_some() {
        "their messages between sites have a scheme of their own"
    } else if scheme.scheme.forwarding.is_none() && spread.is_none_or(Spread::is_single) {
        return Some(format!(
            "scheme \"{}\" takes single paths, which tell them apart; one that spreads its packets, such as \"udmp\", does not",
            scheme.name
        ));
    } else {
        return None;
    };
    Some(words.to_owned())
}
