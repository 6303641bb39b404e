//! Selection of the switches' load balancing. Schemes may require a kind, and the fabric has exactly one.

use pathweave_fabric::config::Forwarding;

use crate::spec::{ErrorSource, RouteChoice, SimError, SimSpec};

/// Returns the load balancing of all switches of a run. If sources choose paths, switches have nothing to balance.
pub(crate) fn of_run(spec: &SimSpec) -> Result<Forwarding, SimError> {
    let (kind, asked_by) = asked_for(spec)?;
    let what = quoted(kind);
    let (routing, why, advice) = match spec.routing {
        RouteChoice::Sources(_) if kind != Forwarding::Ecmp => (
            "source",
            "every hop has been chosen by then",
            "choose a scheme whose hosts choose paths, or leave out `routing`, or set routing.kind to \"sender-switch\" \
             (\"letflow\", \"conga\", \"conweave\")",
        ),
        RouteChoice::SenderSwitches(_)
            if !matches!(kind, Forwarding::LetFlow | Forwarding::Conga | Forwarding::ConWeave) =>
        {
            (
                "sender-switch",
                "one switch chooses the whole way, as \"letflow\", \"conga\" and \"conweave\" can",
                "choose one of these schemes, or leave out `routing`",
            )
        }
        RouteChoice::NextHops(_)
            if !matches!(kind, Forwarding::Ecmp | Forwarding::Rps | Forwarding::LetFlow) =>
        {
            (
                "next-hops",
                "each switch chooses its port by itself, as \"ecmp\", \"rps\" and \"letflow\" can",
                "choose a scheme over these switches, or set routing.kind to \"sender-switch\" or leave out `routing`",
            )
        }
        _ => return Ok(kind),
    };
    let message = match &asked_by {
        ErrorSource::Scheme(name) => format!(
            "scheme \"{name}\" needs switches that do {what}, which is impossible where routing.kind is \
             \"{routing}\": {why}"
        ),
        _ => format!("switches cannot do {what} where routing.kind is \"{routing}\": {why}"),
    };
    Err(SimError::Forwarding { blame: asked_by, message, advice })
}

/// Returns the kind in the configuration, or else the kind that the schemes in use require, and the setting that
/// determined it.
fn asked_for(spec: &SimSpec) -> Result<(Forwarding, ErrorSource), SimError> {
    const ONE_FABRIC: &str = "one fabric does one kind of load balancing; `switch.forwarding.kind` selects \
                              it for schemes that run over any";
    let mut in_use: Vec<u16> = spec.groups.iter().map(|group| group.scheme).collect();
    in_use.sort_unstable();
    in_use.dedup();
    let needs = in_use.iter().map(|&index| {
        let named = &spec.schemes[usize::from(index)];
        (named.name.as_str(), named.scheme.forwarding)
    });
    if let Some(kind) = spec.switch.forwarding.kind {
        return match needs.clone().find(|(_, need)| need.is_some_and(|need| need != kind)) {
            Some((name, need)) => Err(SimError::Forwarding {
                blame: ErrorSource::Kind,
                message: format!(
                    "scheme \"{name}\" is made for switches that do {}, but switch.forwarding.kind is {}",
                    quoted(need.unwrap_or_default()),
                    quoted(kind)
                ),
                advice: "leave out switch.forwarding.kind, or choose a scheme that runs over any switches, \
                         such as \"ecmp\"",
            }),
            None => Ok((kind, ErrorSource::Kind)),
        };
    }
    let asks = |name: &str, need: Option<Forwarding>| match need {
        Some(_) => ErrorSource::Scheme(name.to_owned()),
        None => ErrorSource::Routing,
    };
    let mut all = needs.clone();
    let Some((first, need)) = all.next() else { return Ok((Forwarding::default(), ErrorSource::Routing)) };
    let kind = need.unwrap_or_default();
    match all.find(|(_, need)| need.unwrap_or_default() != kind) {
        Some((second, other)) => Err(SimError::Forwarding {
            blame: asks(second, Some(kind)),
            message: format!(
                "the groups share one fabric, but scheme \"{first}\" needs switches that do {} and scheme \
                 \"{second}\" switches that do {}",
                quoted(kind),
                quoted(other.unwrap_or_default())
            ),
            advice: ONE_FABRIC,
        }),
        None => Ok((kind, asks(first, need))),
    }
}

fn quoted(kind: Forwarding) -> String {
    format!("\"{}\"", kind.name())
}
