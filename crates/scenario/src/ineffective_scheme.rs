//! Settings of a scheme that another of its settings, or its surroundings, make ineffective.

use pathweave_policy::cc::{CcConfig, IncreaseOver, Window};
use pathweave_policy::laps::{LapsConfig, LapsVariant, Limit, RateCut, WindowOf};
use pathweave_policy::{E2eMode, MrcConfig, PathRto, PolicyConfig, Recovery, ReflexConfig, Scheme, Service};
use pathweave_units::Duration;

/// Delays that listed schemes have, although they acknowledge each packet.
const USUAL_DELAYS: [Duration; 2] = [Duration::from_us(1), Duration::from_us(10)];

/// Slack of the timeouts of listed schemes, whatever their rule for timeouts.
const USUAL_SLACK: Duration = Duration::from_us(10);

/// Times for which listed variants of Reflex hold an echo, with or without an edge.
const USUAL_HOLDS: [Duration; 2] = [Duration::from_us(6), Duration::from_us(10)];

/// Reason of fields that only echoes of an edge make effective.
const NO_EDGE: &str = "no edge of a site answers packets (switch.external.nsf)";

/// Reason of [`IncreaseOver`] outside of `edge_cc`.
const WHOLE_WAY: &str =
    "round trips are measured over the whole way; only edge_cc of policy \"reflex\" has a part of it";

/// Field of a scheme, and the reason why it has no effect.
pub(crate) type Ineffective = (&'static str, &'static str);

/// Properties of a run that make fields of schemes effective.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings {
    /// True if sources choose among explicit paths.
    pub(crate) sources_choose: bool,
    /// True if the edges of sites answer packets to other sites.
    pub(crate) edges_answer: bool,
    /// True if all full switches pause, and none drops or trims.
    pub(crate) all_pause: bool,
}

/// Returns the fields that another field of the scheme, or the surroundings, make ineffective.
pub(crate) fn ineffective(scheme: &Scheme, around: Surroundings) -> Vec<Ineffective> {
    let of_parts = of_acks(scheme).into_iter().chain(of_recovery(scheme.recovery));
    of_parts.chain(of_policy(scheme, around)).collect()
}

/// Returns a field that acts like a smaller value: the field, its value and the smaller one. EVs of MRC are paths of
/// the queue pair.
pub(crate) fn above_paths(scheme: &Scheme) -> Option<(&'static str, u16, u16)> {
    let PolicyConfig::Mrc(mrc) = &scheme.policy else { return None };
    let is_set = mrc.active_evs != MrcConfig::default().active_evs;
    (is_set && mrc.active_evs > scheme.paths).then_some(("policy.active_evs", mrc.active_evs, scheme.paths))
}

fn of_acks(scheme: &Scheme) -> Option<Ineffective> {
    let acks = &scheme.acks;
    let is_at_once = acks.every_packets == 1 && acks.every_bytes.is_none();
    let why = match scheme.service {
        Service::Datagram(_) => "datagrams are not acknowledged one by one",
        _ => "each packet is acknowledged at once: every_packets is 1",
    };
    (is_at_once && !USUAL_DELAYS.contains(&acks.max_delay)).then_some(("acks.max_delay", why))
}

fn of_recovery(recovery: Recovery) -> Option<Ineffective> {
    let Recovery::PathOrder { rto, rto_slack, .. } = recovery else { return None };
    let is_unused = rto != PathRto::Guarded && rto_slack != USUAL_SLACK;
    is_unused.then_some(("recovery.rto_slack", "only recovery.rto = \"guarded\" adds it"))
}

fn of_policy(scheme: &Scheme, around: Surroundings) -> Vec<Ineffective> {
    match &scheme.policy {
        PolicyConfig::Laps(laps) => {
            let of_rate = of_rate(laps, scheme.credit.is_some(), around);
            of_window(laps, around).into_iter().chain(of_rate).collect()
        }
        PolicyConfig::Reflex(reflex) => {
            let mut fields = of_reflex(reflex, around);
            fields.extend(of_congestion_control(&reflex.cc, around));
            fields
        }
        PolicyConfig::Split(split) => of_congestion_control(&split.cc, around).into_iter().collect(),
        PolicyConfig::Dlbf(dlbf) => of_congestion_control(&dlbf.cc, around).into_iter().collect(),
        PolicyConfig::Mrc(mrc) => of_planes(mrc, scheme.paths).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn of_window(laps: &LapsConfig, around: Surroundings) -> Option<Ineffective> {
    let is_known = laps.fabric_threshold > Duration::ZERO;
    let has_rate = match laps.limit {
        Limit::RateAndWindow | Limit::RateAndScaledWindow => true,
        Limit::Auto => !around.all_pause,
        Limit::Window | Limit::DelayWindow => false,
    };
    match laps.window_of {
        WindowOf::Paths if is_known => Some(("policy.fabric_threshold", "window_of is \"paths\"")),
        WindowOf::Fabric if has_rate => {
            Some(("policy.window_of", "a rate limits beside the window, which is computed by the paths then"))
        }
        WindowOf::Fabric if !is_known && !around.sources_choose => Some((
            "policy.window_of",
            "the fabric's threshold is unknown where switches choose paths; set fabric_threshold",
        )),
        _ => None,
    }
}

/// Returns the rule for decreases of a rate that only reports state. Receivers that grant credit are told of the rate.
fn of_rate(laps: &LapsConfig, has_credit: bool, around: Surroundings) -> Option<Ineffective> {
    let usual = match laps.variant {
        LapsVariant::Repaired => RateCut::ToShare,
        LapsVariant::Published | LapsVariant::PublishedUnbounded | LapsVariant::Code2025 => RateCut::Half,
    };
    let is_unused = match laps.limit {
        Limit::Window | Limit::DelayWindow => true,
        Limit::Auto => around.all_pause,
        Limit::RateAndWindow | Limit::RateAndScaledWindow => false,
    };
    let is_idle = is_unused && !has_credit && laps.decrease != usual;
    is_idle.then_some(("policy.decrease", "the window alone limits, and the rate only stands in reports"))
}

fn of_reflex(reflex: &ReflexConfig, around: Surroundings) -> Vec<Ineffective> {
    let is_held = reflex.e2e_mode == E2eMode::Hold;
    let holds = reflex.hold_for.filter(|hold_for| !USUAL_HOLDS.contains(hold_for));
    let fields = if around.edges_answer {
        [reflex.hold_for.filter(|_| !is_held).map(|_| ("policy.hold_for", "e2e_mode is not \"hold\"")), None]
    } else {
        [holds.map(|_| ("policy.hold_for", NO_EDGE)), (!is_held).then_some(("policy.e2e_mode", NO_EDGE))]
    };
    fields.into_iter().flatten().collect()
}

fn of_congestion_control(cc: &CcConfig, around: Surroundings) -> Option<Ineffective> {
    match cc {
        CcConfig::Dcqcn(dcqcn) => {
            let params = dcqcn.params();
            let is_unbounded = params.window == Window::Unlimited && params.window_follows_rate;
            is_unbounded.then_some(("policy.cc.window_follows_rate", "window is \"unlimited\""))
        }
        CcConfig::Swift(swift) if swift.increase_over == IncreaseOver::Measured => {
            Some(("policy.cc.increase_over", WHOLE_WAY))
        }
        CcConfig::Mswift(mswift) if mswift.swift.increase_over == IncreaseOver::Measured => {
            Some(("policy.cc.swift.increase_over", WHOLE_WAY))
        }
        CcConfig::Timely(timely) if timely.edge_updates.is_some() && !around.edges_answer => {
            Some(("policy.cc.edge_updates", NO_EDGE))
        }
        _ => None,
    }
}

/// Returns the number of planes, by which only backups are chosen, if all paths are in use.
fn of_planes(mrc: &MrcConfig, paths: u16) -> Option<Ineffective> {
    let is_set = mrc.planes != MrcConfig::default().planes;
    let why = "active_evs takes all paths, and only backups are chosen by their planes";
    (is_set && mrc.active_evs >= paths).then_some(("policy.planes", why))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json, to_value};

    use super::*;

    const SWITCHES_CHOOSE: Surroundings =
        Surroundings { sources_choose: false, edges_answer: false, all_pause: false };
    const SOURCES_CHOOSE: Surroundings = Surroundings { sources_choose: true, ..SWITCHES_CHOOSE };
    const EDGES_ANSWER: Surroundings = Surroundings { edges_answer: true, ..SWITCHES_CHOOSE };
    const ALL_PAUSE: Surroundings = Surroundings { all_pause: true, ..SWITCHES_CHOOSE };

    /// Base of a scheme, its changes, its surroundings, and the fields that are found.
    type Case<'a> = (&'a str, &'a [(&'a str, Value)], Surroundings, &'a [&'a str]);

    /// Returns a listed scheme with other values of some fields, which are named as pointers into JSON.
    fn changed(base: &str, changes: &[(&str, Value)]) -> Scheme {
        let scheme = (pathweave_policy::find_scheme(base).expect("a scheme").make)();
        let mut value = to_value(scheme).expect("a table");
        for (pointer, new) in changes {
            let (table, field) = pointer.rsplit_once('/').expect("a pointer");
            value.pointer_mut(table).expect("a table")[field] = new.clone();
        }
        from_value(value).expect("a scheme")
    }

    fn fields(base: &str, changes: &[(&str, Value)], around: Surroundings) -> Vec<&'static str> {
        ineffective(&changed(base, changes), around).into_iter().map(|(field, _)| field).collect()
    }

    #[test]
    fn settings_that_others_rule_out_are_found() {
        let late = ("/acks/max_delay", json!("9us"));
        let held = [("/policy/hold_for", json!("9us")), ("/policy/e2e_mode", json!("none"))];
        let slack = ("/recovery/rto_slack", json!("9us"));
        let guarded = ("/recovery/rto", json!("guarded"));
        let follows = [("/policy/cc/window_follows_rate", json!(true))];
        let planes = ("/policy/planes", json!(4));
        let threshold = [("/policy/fabric_threshold", json!("9us"))];
        let cases: &[Case<'_>] = &[
            ("rps", std::slice::from_ref(&late), SWITCHES_CHOOSE, &["acks.max_delay"]),
            ("rps", &[late.clone(), ("/acks/every_packets", json!(4))], SWITCHES_CHOOSE, &[]),
            ("laps", &threshold, SOURCES_CHOOSE, &["policy.fabric_threshold"]),
            ("reflex-swift", &held, SWITCHES_CHOOSE, &["policy.hold_for", "policy.e2e_mode"]),
            ("reflex-swift", &held, EDGES_ANSWER, &["policy.hold_for"]),
            ("reflex-swift", &held[..1], EDGES_ANSWER, &[]),
            ("rps", &follows, SWITCHES_CHOOSE, &["policy.cc.window_follows_rate"]),
            ("laps-code-2025", std::slice::from_ref(&slack), SWITCHES_CHOOSE, &["recovery.rto_slack"]),
            ("laps-published", std::slice::from_ref(&slack), SWITCHES_CHOOSE, &["recovery.rto_slack"]),
            ("laps-code-2025", &[slack.clone(), guarded], SWITCHES_CHOOSE, &[]),
            ("mrc", &[planes.clone(), ("/policy/active_evs", json!(256))], ALL_PAUSE, &["policy.planes"]),
            ("mrc", &[planes], ALL_PAUSE, &[]),
        ];
        for (base, changes, around, found) in cases {
            assert_eq!(fields(base, changes, *around), *found, "{base} {changes:?}");
        }
    }

    #[test]
    fn settings_that_the_surroundings_rule_out_are_found() {
        let measured = [("/policy/cc/increase_over", json!("measured"))];
        let of_mswift = [("/policy/cc/swift/increase_over", json!("measured"))];
        let answers = [("/policy/cc/edge_updates", json!("per_round_trip"))];
        let fabric = [("/policy/window_of", json!("fabric"))];
        let (half, to_share) = (("/policy/decrease", json!("half")), ("/policy/decrease", json!("to_share")));
        let [rate, window] = ["rate_and_window", "window"].map(|limit| ("/policy/limit", json!(limit)));
        let cases: &[Case<'_>] = &[
            ("laps", &fabric, SWITCHES_CHOOSE, &["policy.window_of"]),
            ("laps", &fabric, SOURCES_CHOOSE, &["policy.window_of"]),
            ("laps", &[fabric[0].clone(), window.clone()], SOURCES_CHOOSE, &[]),
            ("laps", &[fabric[0].clone(), window], SWITCHES_CHOOSE, &["policy.window_of"]),
            ("laps", &[fabric[0].clone(), rate.clone()], ALL_PAUSE, &["policy.window_of"]),
            ("laps", std::slice::from_ref(&half), ALL_PAUSE, &["policy.decrease"]),
            ("laps", std::slice::from_ref(&half), SWITCHES_CHOOSE, &[]),
            ("laps-code-2025", std::slice::from_ref(&to_share), SWITCHES_CHOOSE, &["policy.decrease"]),
            ("laps-code-2025", &[to_share.clone(), rate], SWITCHES_CHOOSE, &[]),
            ("swift-rps", &measured, EDGES_ANSWER, &["policy.cc.increase_over"]),
            ("reflex-swift", &measured, EDGES_ANSWER, &["policy.cc.increase_over"]),
            ("mswift", &of_mswift, SWITCHES_CHOOSE, &["policy.cc.swift.increase_over"]),
            ("timely", &answers, SWITCHES_CHOOSE, &["policy.cc.edge_updates"]),
            ("timely", &answers, EDGES_ANSWER, &[]),
            ("reflex-timely", &answers, SWITCHES_CHOOSE, &["policy.cc.edge_updates"]),
        ];
        for (base, changes, around, found) in cases {
            assert_eq!(fields(base, changes, *around), *found, "{base} {changes:?}");
        }
    }

    #[test]
    fn no_listed_scheme_sets_what_it_ignores() {
        for info in pathweave_policy::schemes() {
            for around in [SWITCHES_CHOOSE, SOURCES_CHOOSE, EDGES_ANSWER, ALL_PAUSE] {
                let found = ineffective(&(info.make)(), around);
                assert!(found.is_empty(), "{} {around:?} {found:?}", info.name);
            }
            assert_eq!(above_paths(&(info.make)()), None, "{}", info.name);
        }
    }

    #[test]
    fn evs_in_use_are_as_many_as_there_are_paths() {
        let of = |changes: &[(&str, Value)]| above_paths(&changed("mrc", changes));
        assert_eq!(of(&[("/policy/active_evs", json!(300))]), Some(("policy.active_evs", 300, 256)));
        assert_eq!(of(&[("/policy/active_evs", json!(256))]), None);
        assert_eq!(of(&[("/paths", json!(8)), ("/policy/active_evs", json!(9))]).map(|(.., to)| to), Some(8));
        assert_eq!(of(&[("/paths", json!(8))]), None, "128 is the default");
    }
}
