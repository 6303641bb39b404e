//! Which load balancing the switches do: schemes may need one, the fabric has one.

use pathweave_fabric::config::Forwarding;
use pathweave_policy as policy;

use crate::spec::{RouteChoice, SimError, SimSpec};

/// What all switches of a run do. They have nothing to balance where sources choose.
pub(crate) fn of_run(spec: &SimSpec) -> Result<Forwarding, SimError> {
    let kind = asked_for(spec)?;
    let what = quoted(kind);
    match spec.routing {
        RouteChoice::Sources(_) if kind != Forwarding::Ecmp => Err(SimError::Forwarding(format!(
            "switches cannot do {what} where routing.kind is \"source\": every hop has been chosen by then"
        ))),
        RouteChoice::SenderSwitches(_)
            if !matches!(kind, Forwarding::LetFlow | Forwarding::Conga | Forwarding::ConWeave) =>
        {
            Err(SimError::Forwarding(format!(
                "switches cannot do {what} where routing.kind is \"sender-switch\": one switch chooses the whole way, as \
                 \"letflow\", \"conga\" and \"conweave\" can"
            )))
        }
        _ => Ok(kind),
    }
}

/// What the configuration says, or else what the schemes in use need.
fn asked_for(spec: &SimSpec) -> Result<Forwarding, SimError> {
    let mut in_use: Vec<u16> = spec.groups.iter().map(|group| group.scheme).collect();
    in_use.sort_unstable();
    in_use.dedup();
    let needs = in_use.iter().map(|&index| {
        let named = &spec.schemes[usize::from(index)];
        (named.name.as_str(), named.scheme.forwarding.map(of_scheme))
    });
    if let Some(kind) = spec.switch.forwarding.kind {
        return match needs.clone().find(|(_, need)| need.is_some_and(|need| need != kind)) {
            Some((name, need)) => Err(SimError::Forwarding(format!(
                "scheme \"{name}\" is made for switches that do {}, but switch.forwarding.kind is {}",
                quoted(need.unwrap_or_default()),
                quoted(kind)
            ))),
            None => Ok(kind),
        };
    }
    let mut needs = needs.map(|(name, need)| (name, need.unwrap_or_default()));
    let Some((first, kind)) = needs.next() else { return Ok(Forwarding::default()) };
    match needs.find(|(_, need)| *need != kind) {
        Some((second, need)) => Err(SimError::Forwarding(format!(
            "the groups share one fabric, but scheme \"{first}\" has switches that do {} and scheme \"{second}\" such \
             that do {}",
            quoted(kind),
            quoted(need)
        ))),
        None => Ok(kind),
    }
}

/// The fabric's name for what a scheme asks of it.
fn of_scheme(need: policy::Forwarding) -> Forwarding {
    match need {
        policy::Forwarding::Ecmp => Forwarding::Ecmp,
        policy::Forwarding::Wcmp => Forwarding::Wcmp,
        policy::Forwarding::Rps => Forwarding::Rps,
        policy::Forwarding::WeightedRps => Forwarding::WeightedRps,
        policy::Forwarding::LetFlow => Forwarding::LetFlow,
        policy::Forwarding::Drill => Forwarding::Drill,
        policy::Forwarding::Ugal => Forwarding::Ugal,
        policy::Forwarding::Conga => Forwarding::Conga,
        policy::Forwarding::ConWeave => Forwarding::ConWeave,
    }
}

fn quoted(kind: Forwarding) -> String {
    format!("\"{}\"", kind.name())
}
