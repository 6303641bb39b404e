//! Settings that nothing reads: each changes nothing and is noted, and where something reads it there is no note.

use super::NETWORK;
use super::record::{Outcome, outcome};

/// Setting that has no effect under a scheme.
struct Idle {
    scheme: &'static str,
    /// Other settings of the run.
    with: &'static [&'static str],
    set: &'static str,
    note: &'static str,
    /// Scheme and other settings under which the same setting is read.
    read_by: Option<(&'static str, &'static [&'static str])>,
}

const OF_DATAGRAMS: &str = "has no effect: receivers request missing datagrams (service.repair)";
const OF_TIMEOUTS: &str = "has no effect: recovery \"timeouts\" has its own times and retries";
const UNSAMPLED: &str = "has no effect: observe.interval is 0s: nothing is sampled";
const NOT_SAMPLED: &[&str] = &["observe.interval=\"0s\""];

const IDLE: &[Idle] = &[
    Idle {
        scheme: "erd",
        with: &[],
        set: "network.retransmission.timeout=90us",
        note: OF_DATAGRAMS,
        read_by: Some(("ecmp", &[])),
    },
    Idle {
        scheme: "erd",
        with: &[],
        set: "network.retransmission.retry_limit=2",
        note: OF_DATAGRAMS,
        read_by: Some(("ecmp", &[])),
    },
    Idle {
        scheme: "mrc",
        with: &[],
        set: "network.retransmission.backoff=3",
        note: OF_TIMEOUTS,
        read_by: Some(("ecmp", &[])),
    },
    Idle {
        scheme: "mrc",
        with: &[],
        set: "network.retransmission.retry_limit=2",
        note: OF_TIMEOUTS,
        read_by: Some(("ecmp", &[])),
    },
    Idle {
        scheme: "mrc",
        with: &[],
        set: "network.retransmission.max_timeout=32ms",
        note: OF_TIMEOUTS,
        read_by: Some(("ecmp", &[])),
    },
    Idle {
        scheme: "mrc",
        with: &["scheme.recovery.exponent=7"],
        set: "network.retransmission.timeout=90us",
        note: OF_TIMEOUTS,
        read_by: Some(("mrc", &[])),
    },
    Idle {
        scheme: "ecmp",
        with: &["network.retransmission.max_timeout=150us"],
        set: "network.retransmission.backoff=3",
        note: "has no effect: network.retransmission.max_timeout is not above timeout",
        read_by: Some(("ecmp", &[])),
    },
    Idle {
        scheme: "mrc",
        with: &["scheme.policy.active_evs=256"],
        set: "scheme.policy.planes=4",
        note: "scheme.policy.planes has no effect: active_evs takes all paths",
        read_by: Some(("mrc", &["scheme.policy.active_evs=8"])),
    },
    Idle {
        scheme: "erd",
        with: &[],
        set: "observe.flows=2",
        note: "observe.flows has no effect: messages of datagrams are not followed",
        read_by: Some(("ecmp", &[])),
    },
    Idle {
        scheme: "ecmp",
        with: NOT_SAMPLED,
        set: "observe.flows=1",
        note: UNSAMPLED,
        read_by: Some(("ecmp", &[])),
    },
    Idle {
        scheme: "ecmp",
        with: NOT_SAMPLED,
        set: "observe.max_samples=16",
        note: UNSAMPLED,
        read_by: Some(("ecmp", &[])),
    },
    Idle {
        scheme: "laps-code-2025",
        with: &[],
        set: "scheme.policy.decrease=to_share",
        note: "scheme.policy.decrease has no effect: the window alone limits",
        read_by: Some(("laps-code-2025", &["scheme.policy.limit=rate_and_window"])),
    },
    Idle {
        scheme: "laps-code-2025",
        with: &[],
        set: "scheme.recovery.rto_slack=90us",
        note: "scheme.recovery.rto_slack has no effect: only recovery.rto = \"guarded\" adds it",
        read_by: Some(("laps-code-2025", &["scheme.recovery.rto=guarded"])),
    },
    Idle {
        scheme: "swift-rps",
        with: &[],
        set: "scheme.policy.cc.increase_over=measured",
        note: "scheme.policy.cc.increase_over has no effect",
        read_by: None,
    },
    Idle {
        scheme: "timely",
        with: &[],
        set: "scheme.policy.cc.edge_updates=per_round_trip",
        note: "scheme.policy.cc.edge_updates has no effect: no edge of a site answers",
        read_by: None,
    },
    Idle {
        scheme: "switch-rps",
        with: &[],
        set: "switch.hash=polarised",
        note: "switch.hash has no effect: switches choose a random next hop",
        read_by: Some(("ecmp", &[])),
    },
    Idle {
        scheme: "switch-rps",
        with: &[],
        set: "switch.for=[{tier=0,hash=\"polarised\"}]",
        note: "switch.for[0].hash has no effect: switches choose a random next hop",
        read_by: Some(("ecmp", &[])),
    },
    Idle {
        scheme: "drill",
        with: &[],
        set: "switch.hash=polarised",
        note: "switch.hash has no effect: switches choose the next hop of every packet by queues",
        read_by: Some(("letflow", &[])),
    },
    Idle {
        scheme: "drill",
        with: &[],
        set: "switch.for=[{tier=0,hash=\"polarised\"}]",
        note: "switch.for[0].hash has no effect: switches choose the next hop",
        read_by: Some(("ecmp", &[])),
    },
    Idle {
        scheme: "laps",
        with: &["routing.kind=source"],
        set: "switch.hash=polarised",
        note: "switch.hash has no effect: sources choose the path",
        read_by: Some(("laps", &[])),
    },
    Idle {
        scheme: "ecmp",
        with: &["switch.pfc.enabled=true", "switch.buffer=800KB"],
        set: "switch.for=[{tier=0,egress_alpha=0.25}]",
        note: "switch.for[0].egress_alpha has no effect: the switches that the table selects pause or trim",
        read_by: Some(("ecmp", &[])),
    },
    Idle {
        scheme: "ecmp",
        with: &["switch.ecn.thresholds=fixed"],
        set: "switch.for=[{tier=0,ecn={reference_rate=\"10Gbps\"}}]",
        note: "switch.for[0].ecn.reference_rate has no effect: thresholds are",
        read_by: Some(("ecmp", &[])),
    },
    Idle {
        scheme: "laps",
        with: &["scheme.policy.limit=rate_and_window"],
        set: "scheme.policy.window_of=fabric",
        note: "scheme.policy.window_of has no effect: a rate limits",
        read_by: Some(("laps", &["scheme.policy.limit=window"])),
    },
    Idle {
        scheme: "laps",
        with: &["switch.pfc.enabled=false"],
        set: "scheme.policy.window_of=fabric",
        note: "scheme.policy.window_of has no effect: a rate limits",
        read_by: None,
    },
    Idle {
        scheme: "ecmp",
        with: &["switch.pfc.enabled=true", "switch.buffer=800KB"],
        set: "switch.egress_alpha=0.25",
        note: "switch.egress_alpha has no effect: every switch pauses or trims",
        read_by: Some(("ecmp", &[])),
    },
    Idle {
        scheme: "ecmp",
        with: &["fault=[]"],
        set: "switch.reroute_after=90us",
        note: "switch.reroute_after has no effect: no fault takes a link or a switch down",
        read_by: Some(("ecmp", &[])),
    },
];

/// Returns the outcome of a run on [`NETWORK`].
fn run(scheme: &str, set: &[&str]) -> Outcome {
    let set: Vec<String> = set.iter().map(|&set| set.to_owned()).collect();
    let done = outcome(&format!("scheme = \"{scheme}\"\n{NETWORK}"), &set);
    done.unwrap_or_else(|why| panic!("{scheme} {set:?}: {why}"))
}

#[test]
fn settings_that_nothing_reads_change_nothing_and_are_noted() {
    for Idle { scheme, with, set, note, read_by } in IDLE {
        let (before, after) = (run(scheme, with), run(scheme, &[*with, &[*set][..]].concat()));
        assert!(before.is_same_run(&after), "{scheme} {with:?}: {set} has an effect");
        assert!(after.notes(note), "{scheme} {with:?} {set}: {after:?}");
        if let Some((scheme, with)) = read_by {
            let read = run(scheme, &[*with, &[*set][..]].concat());
            assert!(!read.notes(note), "{scheme} {with:?} {set}: {read:?}");
        }
    }
}

/// Some of these settings act on every packet or sample where something reads them.
#[test]
fn the_same_settings_act_where_they_are_read() {
    for (scheme, set) in [
        ("ecmp", "switch.hash=polarised"),
        ("ecmp", "switch.egress_alpha=0.25"),
        ("ecmp", "observe.flows=2"),
        ("ecmp", "observe.max_samples=16"),
        ("mrc", "scheme.policy.active_evs=8"),
    ] {
        assert!(!run(scheme, &[]).is_same_run(&run(scheme, &[set])), "{scheme}: {set} has no effect");
    }
}

/// Departures are counted by hosts whose queue pairs are connections and whose NICs cost nothing.
#[test]
fn departures_that_are_not_counted_are_noted() {
    let note = "observe.departures has no effect: packets are counted only without network.nic";
    let set = "observe.departures=true";
    for (scheme, with, is_noted) in [
        ("erd", "observe.flows=0", true),
        ("ecmp", "network.nic={}", true),
        ("ecmp", "observe.flows=0", false),
    ] {
        assert_eq!(run(scheme, &[with, set]).notes(note), is_noted, "{scheme} {with}");
    }
}

#[test]
fn schemes_that_wait_for_signals_which_nothing_sends_are_noted() {
    let unmarked = "switch.ecn.enabled=false";
    let silent = "scheme.cnp={kind=\"off\"}";
    let to_gaps = "scheme.cnp={kind=\"on_mark_or_gap\"}";
    let untrimmed = "scheme is made for trimming, and no switch trims";
    let never = "nothing marks packets, so congestion control `dcqcn` never slows down";
    let cases: &[(&str, &[&str], Option<&str>)] = &[
        ("rps", &[unmarked], Some(never)),
        ("ecmp", &[unmarked], Some(never)),
        ("dlbf", &[unmarked], Some(never)),
        (
            "rps",
            &[silent],
            Some("scheme.cnp.kind is \"off\", so congestion control `dcqcn` never slows down"),
        ),
        ("rps", &[unmarked, to_gaps], Some("`dcqcn` slows down for gaps only")),
        ("mprdma", &[unmarked], Some("policy `mprdma` slows down for lost and late packets only")),
        ("rps", &["switch.for=[{match=\"leaf*\",ecn={enabled=false}}]"], None),
        ("swift", &[unmarked], None),
        ("udmp", &[unmarked], None),
        ("ndp", &[], Some(untrimmed)),
        ("uet", &[], Some(untrimmed)),
        ("uet-nscc", &[], Some(untrimmed)),
        ("ndp", &["switch.trim.enabled=true"], None),
        ("rps", &[], None),
    ];
    for (scheme, set, note) in cases {
        let done = run(scheme, set);
        match note {
            Some(note) => assert!(done.notes(note), "{scheme} {set:?}: {done:?}"),
            None => assert!(
                !done.notes("slows down") && !done.notes("made for trimming"),
                "{scheme} {set:?}: {done:?}"
            ),
        }
    }
}

/// Numbers of hosts are drawn in the order of the pools' names: an earlier pool keeps its hosts from later ones.
#[test]
fn pools_that_no_workload_names_are_noted_unless_they_keep_hosts_from_others() {
    let two = "[[workload]]\nkind = \"permutation\"\nsize = \"100KB\"\n";
    let text = |pools: &str, pool: &str| {
        format!("topology = {{ kind = \"star\", hosts = 8 }}\npools = {pools}\n{two}{pool}")
    };
    let of = |pools: &str, pool: &str| outcome(&text(pools, pool), &[]).unwrap_or_else(|why| panic!("{why}"));
    let (none, from_b) = ("", "pool = \"b\"\n");
    let is_noted =
        |done: &Outcome, name: &str| done.notes(&format!("pools.{name} has no effect: no workload names it"));
    assert!(is_noted(&of("{ a = 2 }", none), "a"));
    assert!(of("{ a = 2 }", none).is_same_run(&of("{}", none)));
    let (later, earlier) = (of("{ b = 4, c = 2 }", from_b), of("{ a = 2, b = 4 }", from_b));
    assert!(is_noted(&later, "c") && !is_noted(&later, "b"));
    assert!(!is_noted(&earlier, "a") && !is_noted(&earlier, "b"));
    let alone = of("{ b = 4 }", from_b);
    assert!(alone.is_same_run(&later) && !alone.is_same_run(&earlier));
}
