//! Settings of a scheme that another of its settings makes ineffective.

use pathweave_policy::cc::{CcConfig, Window};
use pathweave_policy::laps::WindowOf;
use pathweave_policy::{E2eMode, PolicyConfig, Scheme, Service, SplitConfig};
use pathweave_units::Duration;

/// Delays that listed schemes have, although they acknowledge each packet.
const USUAL_DELAYS: [Duration; 2] = [Duration::from_us(1), Duration::from_us(10)];

/// Field of a scheme, and the reason why it has no effect.
pub(crate) type Ineffective = (&'static str, &'static str);

/// Returns the fields that another field of the scheme makes ineffective. `sources_choose` is true if sources choose
/// among explicit paths.
pub(crate) fn ineffective(scheme: &Scheme, sources_choose: bool) -> Vec<Ineffective> {
    let mut fields = Vec::new();
    let acks = &scheme.acks;
    if acks.every_packets == 1 && acks.every_bytes.is_none() && !USUAL_DELAYS.contains(&acks.max_delay) {
        let why = match scheme.service {
            Service::Datagram(_) => "datagrams are not acknowledged one by one",
            _ => "each packet is acknowledged at once: every_packets is 1",
        };
        fields.push(("acks.max_delay", why));
    }
    match &scheme.policy {
        PolicyConfig::Laps(laps) => {
            if laps.window_of == WindowOf::Paths && laps.fabric_threshold > Duration::ZERO {
                fields.push(("policy.fabric_threshold", "window_of is \"paths\""));
            }
            if laps.window_of == WindowOf::Fabric
                && laps.fabric_threshold == Duration::ZERO
                && !sources_choose
            {
                let why =
                    "the fabric's threshold is unknown where switches choose paths; set fabric_threshold";
                fields.push(("policy.window_of", why));
            }
        }
        PolicyConfig::Reflex(reflex) if reflex.hold_for.is_some() && reflex.e2e_mode != E2eMode::Hold => {
            fields.push(("policy.hold_for", "e2e_mode is not \"hold\""));
        }
        PolicyConfig::Split(SplitConfig { cc, .. }) => fields.extend(of_congestion_control(cc)),
        _ => {}
    }
    fields
}

fn of_congestion_control(cc: &CcConfig) -> Option<Ineffective> {
    let CcConfig::Dcqcn(dcqcn) = cc else { return None };
    let params = dcqcn.params();
    let is_unbounded = params.window == Window::Unlimited && params.window_follows_rate;
    is_unbounded.then_some(("policy.cc.window_follows_rate", "window is \"unlimited\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(base: &str, change: impl FnOnce(&mut serde_json::Value), sources_choose: bool) -> Vec<Ineffective> {
        let scheme = (pathweave_policy::find_scheme(base).expect("a scheme").make)();
        let mut value = serde_json::to_value(scheme).expect("a table");
        change(&mut value);
        ineffective(&serde_json::from_value(value).expect("a scheme"), sources_choose)
    }

    fn first(found: &[Ineffective]) -> Option<&'static str> {
        found.first().map(|(field, _)| *field)
    }

    #[test]
    fn settings_that_others_rule_out_are_found() {
        let late = |value: &mut serde_json::Value| value["acks"]["max_delay"] = "9us".into();
        assert_eq!(first(&of("rps", late, false)), Some("acks.max_delay"));
        let fewer = |value: &mut serde_json::Value| {
            late(value);
            value["acks"]["every_packets"] = 4.into();
        };
        assert!(of("rps", fewer, false).is_empty());
        let threshold = |value: &mut serde_json::Value| value["policy"]["fabric_threshold"] = "9us".into();
        assert_eq!(first(&of("laps", threshold, true)), Some("policy.fabric_threshold"));
        let fabric = |value: &mut serde_json::Value| value["policy"]["window_of"] = "fabric".into();
        assert_eq!(first(&of("laps", fabric, false)), Some("policy.window_of"));
        assert!(of("laps", fabric, true).is_empty());
        let held = |value: &mut serde_json::Value| {
            value["policy"]["hold_for"] = "9us".into();
            value["policy"]["e2e_mode"] = "none".into();
        };
        assert_eq!(first(&of("reflex-swift", held, false)), Some("policy.hold_for"));
        let follows =
            |value: &mut serde_json::Value| value["policy"]["cc"]["window_follows_rate"] = true.into();
        assert_eq!(first(&of("rps", follows, false)), Some("policy.cc.window_follows_rate"));
        for info in pathweave_policy::schemes() {
            assert!(ineffective(&(info.make)(), false).is_empty(), "{}", info.name);
        }
    }
}
