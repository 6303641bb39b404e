//! Schemes that wait for signals of switches or receivers that nothing sends: marks, notifications and trimmed headers.

use std::mem::discriminant;

use pathweave_policy::cc::CcConfig;
use pathweave_policy::{CnpPolicy, PolicyConfig, Scheme, find_scheme};
use pathweave_sim::NamedScheme;
use pathweave_topo::Topology;

use super::{Notes, any_switch};
use crate::model::{Fidelity, Scenario};
use crate::text::value_of;

/// Words of a listed scheme that relies on trimmed headers.
pub(super) const MADE_FOR_TRIMMING: &str = "made for trimming";

/// Feedback by which a congestion control slows down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlowsFor {
    /// Notifications of receivers.
    Notifications,
    /// Marks that acknowledgements return.
    Marks,
    /// Marks, and packets that are lost or trimmed.
    MarksAndLosses,
    /// Marks, and packets that are lost, trimmed or late.
    MarksLossesAndOrder,
}

impl SlowsFor {
    /// Returns the feedback by which a policy slows down; `None` if it needs no marks, because it reacts to delay, to
    /// telemetry, or to nothing.
    fn of(policy: &PolicyConfig) -> Option<(Self, String)> {
        match policy {
            PolicyConfig::Split(split) => Self::of_control(&split.cc),
            PolicyConfig::Dlbf(dlbf) => Self::of_control(&dlbf.cc),
            PolicyConfig::Reflex(reflex) => Self::of_control(&reflex.cc),
            PolicyConfig::Mprdma(_) => Some((SlowsFor::MarksLossesAndOrder, "policy `mprdma`".to_owned())),
            PolicyConfig::Udmp(_)
            | PolicyConfig::UdmpPublished(_)
            | PolicyConfig::Mrc(_)
            | PolicyConfig::Reps(_)
            | PolicyConfig::Laps(_)
            | PolicyConfig::Weave(_)
            | PolicyConfig::Supplied(_) => None,
        }
    }

    fn of_control(cc: &CcConfig) -> Option<(Self, String)> {
        let slows_for = match cc {
            CcConfig::Dcqcn(_) => SlowsFor::Notifications,
            CcConfig::DctcpRate(_) => SlowsFor::Marks,
            CcConfig::Dctcp(_) | CcConfig::Smartt(_) => SlowsFor::MarksAndLosses,
            CcConfig::None(_)
            | CcConfig::Hpcc(_)
            | CcConfig::Mswift(_)
            | CcConfig::Nscc(_)
            | CcConfig::Strack(_)
            | CcConfig::Swift(_)
            | CcConfig::Timely(_)
            | CcConfig::Supplied(_) => return None,
        };
        let written = value_of(cc);
        let kind = written.get("kind").and_then(toml::Value::as_str).unwrap_or_default();
        Some((slows_for, format!("congestion control `{kind}`")))
    }

    /// Returns the occasions on which the sender still slows down if nothing marks packets.
    fn without_marks(self, cnp: CnpPolicy) -> &'static str {
        match self {
            SlowsFor::Notifications if cnp.notifies_of_gaps() => "slows down for gaps only",
            SlowsFor::Notifications | SlowsFor::Marks => "never slows down",
            SlowsFor::MarksAndLosses => "slows down for lost packets only",
            SlowsFor::MarksLossesAndOrder => "slows down for lost and late packets only",
        }
    }
}

/// Returns the reason why a sender hears of no congestion, or of little. `marks` is true if a switch marks packets.
fn unheard(path: &str, scheme: &Scheme, marks: bool) -> Option<String> {
    let (slows_for, control) = SlowsFor::of(&scheme.policy)?;
    if slows_for == SlowsFor::Notifications && scheme.cnp == CnpPolicy::Off {
        return Some(format!("{path}.cnp.kind is \"off\", so {control} never slows down"));
    }
    let when = slows_for.without_marks(scheme.cnp);
    (!marks).then(|| {
        format!(
            "{path}: nothing marks packets, so {control} {when}; switch.ecn.enabled is false at every switch"
        )
    })
}

/// Returns true if a scheme is listed as made for trimming, or is such a scheme with changes.
fn wants_trimming(named: &NamedScheme) -> bool {
    let listed = find_scheme(named.name.trim_end_matches('*'));
    listed.filter(|info| info.help.contains(MADE_FOR_TRIMMING)).is_some_and(|info| {
        let usual = (info.make)();
        // A scenario may define a scheme of its own under the name of a listed one.
        discriminant(&usual.policy) == discriminant(&named.scheme.policy)
            && usual.credit.is_some() == named.scheme.credit.is_some()
    })
}

impl Notes {
    /// Reports a scheme that waits for signals that nothing sends. Flows without packets need none.
    pub(super) fn of_signals(
        &mut self,
        path: &str,
        named: &NamedScheme,
        scenario: &Scenario,
        topology: &Topology,
    ) {
        if scenario.run.fidelity == Fidelity::Flow || topology.switches().is_empty() {
            return;
        }
        let switch = &scenario.switch;
        let marks = any_switch(topology, switch, |config| config.ecn.enabled);
        self.0.extend(unheard(path, &named.scheme, marks));
        if wants_trimming(named) && !any_switch(topology, switch, |config| config.trim.enabled) {
            self.0.push(format!(
                "{path} is {MADE_FOR_TRIMMING}, and no switch trims: switch.trim.enabled is false, so lost packets are \
                 found by time"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use pathweave_units::Duration;

    use super::*;

    fn scheme(name: &str) -> Scheme {
        (find_scheme(name).expect("a scheme").make)()
    }

    #[test]
    fn controls_that_wait_for_signals_are_named() {
        let (off, gap) = (CnpPolicy::Off, CnpPolicy::OnMarkOrGap { interval: Duration::ZERO });
        let dcqcn = scheme("rps");
        let said = |scheme: &Scheme, marks| unheard("scheme", scheme, marks);
        assert_eq!(said(&dcqcn, true), None);
        assert_eq!(
            said(&dcqcn, false).as_deref(),
            Some(
                "scheme: nothing marks packets, so congestion control `dcqcn` never slows down; switch.ecn.enabled is false \
                 at every switch"
            )
        );
        for marks in [false, true] {
            assert_eq!(
                said(&Scheme { cnp: off, ..dcqcn.clone() }, marks).as_deref(),
                Some("scheme.cnp.kind is \"off\", so congestion control `dcqcn` never slows down")
            );
        }
        let of_gaps = said(&Scheme { cnp: gap, ..dcqcn }, false).expect("a note");
        assert!(of_gaps.contains("`dcqcn` slows down for gaps only"), "{of_gaps}");
        for (name, when) in [
            ("smartt", "congestion control `smartt` slows down for lost packets only"),
            ("mprdma", "policy `mprdma` slows down for lost and late packets only"),
            ("dlbf", "congestion control `dcqcn` never slows down"),
        ] {
            let note = said(&scheme(name), false).expect("a note");
            assert!(note.contains(when), "{name}: {note}");
            assert_eq!(said(&scheme(name), true), None, "{name}");
        }
        for name in ["swift", "timely", "hpcc", "udmp", "weave", "laps", "uet-nscc", "strack", "rps-nocc"] {
            assert_eq!(said(&scheme(name), false), None, "{name}");
        }
    }

    #[test]
    fn schemes_made_for_trimming_are_known_by_their_lines() {
        let wants =
            |name: &str, of: &str| wants_trimming(&NamedScheme { name: name.to_owned(), scheme: scheme(of) });
        for name in ["ndp", "eqds", "uet", "uet-nscc", "uet-rccc", "mrc", "smartt"] {
            assert!(wants(name, name), "{name}");
            assert!(wants(&format!("{name}*"), name), "{name}");
        }
        assert!(!wants("rps", "rps") && !wants("mine", "ndp"));
        assert!(!wants("ndp", "rps"), "a scheme of its own under this name");
    }
}
