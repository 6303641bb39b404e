//! Flows between data centres, and the effect of middleboxes at external switches.

use std::path::Path;

use crate::support::{Flow, all_to_all, finish, leaf_spine, spec};
use pathweave_fabric::config::{ExternalConfig, FaultConfig, HostStamp, NdtConfig, NsfConfig, OrderGuards};
use pathweave_policy::{E2eMode, PolicyConfig, Recovery};
use pathweave_records::{MiddleboxTotals, RunResult};
use pathweave_sim::{NoMonitor, SimSpec, run};
use pathweave_topo::{Build, CrossDc, LeafSpine, Topology, TopologyConfig};
use pathweave_units::{Bytes, Duration};
use pathweave_wire::Framing;

const SECOND: Duration = Duration::from_ms(1_000);

/// Returns the 32 hosts of the Reflex evaluation, with a different delay between the sites.
fn two_sites(wan_us: u64) -> Topology {
    let site = TopologyConfig::LeafSpine(LeafSpine::new(4, 4, 4));
    let config = CrossDc { wan_delay: Duration::from_us(wan_us), ..CrossDc::new(site, 2) };
    config.build(Path::new(".")).expect("two leaf-spines")
}

/// Returns a run with packets of 1,048 bytes, acknowledgements of 60 bytes, and no marking.
fn across(wan_us: u64, flows: &[Flow], scheme: &str, external: ExternalConfig) -> SimSpec {
    let mut spec = spec(two_sites(wan_us), flows, scheme);
    spec.network.mtu = Bytes::new(1_000);
    spec.network.framing = Framing::Ns3;
    spec.network.retransmission.timeout = Duration::from_ms(50);
    spec.switch.ecn.enabled = false;
    spec.switch.external = external;
    spec
}

fn nsf(config: NsfConfig) -> ExternalConfig {
    ExternalConfig { nsf: Some(config), ..ExternalConfig::default() }
}
fn ndt(config: NdtConfig) -> ExternalConfig {
    ExternalConfig { ndt: Some(config), ..ExternalConfig::default() }
}
fn both() -> ExternalConfig {
    ExternalConfig {
        nsf: Some(NsfConfig::default()),
        ndt: Some(NdtConfig::default()),
        ..ExternalConfig::default()
    }
}

fn total(result: &RunResult, of: impl Fn(&MiddleboxTotals) -> u64) -> u64 {
    result.middleboxes.iter().map(of).sum()
}

/// Returns flows from every host to one of the other site, and from every host to one of its own site.
fn mixed(bytes: u64) -> Vec<Flow> {
    let across = (0..32).map(|host| (host, (host + 16) % 32, bytes, 0));
    across.chain((0..32).map(|host| (host, host / 16 * 16 + (host + 5) % 16, bytes, 1_000))).collect()
}

/// Returns flows from hosts 16 to 31, each to host 0: an incast from another site.
fn far_incast(bytes: u64) -> Vec<Flow> {
    (16..32).map(|host| (host, 0, bytes, 0)).collect()
}

#[test]
fn a_middlebox_that_does_nothing_is_a_plain_switch() {
    // An NSF that never finds a hot link and an NDT that never finds congestion, under pauses and a cut link. The NDT
    // rewrites timestamps, so it is tested with a scheme that ignores them, or restores them.
    let idle_nsf = nsf(NsfConfig { threshold: Some(SECOND), ..NsfConfig::default() });
    let idle_ndt = |stamp| ndt(NdtConfig { threshold: Some(SECOND), stamp, ..NdtConfig::default() });
    let (renewed, restored) = (idle_ndt(HostStamp::Renewed), idle_ndt(HostStamp::Restored));
    for (scheme, external) in [("timely", idle_nsf), ("ecmp", renewed), ("timely", restored)] {
        let with = |external| {
            let mut spec = across(50, &mixed(400_000), scheme, external);
            spec.switch.buffer = Bytes::from_kb(900);
            spec.switch.ecn.enabled = scheme == "ecmp";
            spec.faults.push(FaultConfig::LinkFlap {
                link: "dc1.spine2-dc1.esw0".into(),
                at: Duration::from_us(80),
                down_for: Duration::from_us(7),
                up_for: Duration::from_us(9),
                times: 2,
            });
            finish(&spec)
        };
        let (plain, boxed) = (with(ExternalConfig::default()), with(external));
        assert_eq!(plain.info.digest, boxed.info.digest, "{scheme}");
        assert_eq!(plain.flows, boxed.flows);
        assert_eq!(plain.links, boxed.links);
        assert!(plain.links.iter().any(|link| link.pfc_pauses > 0), "the test should pause");
        assert!(total(&boxed, |t| t.nsf_data_packets + t.ndt_data_packets) > 10_000);
        assert_eq!(total(&boxed, |t| t.nsf_answers + t.ndt_controlled_packets), 0);
    }
}

#[test]
fn flows_inside_a_site_never_meet_it() {
    let inside: Vec<Flow> = mixed(300_000).split_off(32);
    let plain = finish(&across(500, &inside, "reflex-timely", ExternalConfig::default()));
    let boxed = finish(&across(500, &inside, "reflex-timely", both()));
    assert_eq!((plain.info.digest, &plain.flows), (boxed.info.digest, &boxed.flows));
    assert!(boxed.middleboxes.iter().all(|at| at.nsf_data_packets + at.ndt_data_packets == 0));
}

/// Runs one packet from site 0 to site 1.
fn one_packet(wan_us: u64, external: ExternalConfig) -> RunResult {
    finish(&across(wan_us, &[(0, 16, 1_000, 0)], "reflex-timely", external))
}

#[test]
fn delays_near_the_ends_do_not_depend_on_the_wan() {
    // To the external switch: three links of 1 us, 1,048 bytes at 100 Gb/s each.
    let to_edge = Duration::from_ps(3 * (1_000_000 + 83_840));
    // From the other external switch to the receiver and back: the same, and three times 60 bytes.
    let and_back = to_edge + Duration::from_ps(3 * (1_000_000 + 4_800));
    let less = |span: Duration| Duration::from_ps(span.as_ps() - 1);
    for wan_us in [500, 5_000] {
        let answers = |threshold| {
            let result =
                one_packet(wan_us, nsf(NsfConfig { threshold: Some(threshold), ..NsfConfig::default() }));
            total(&result, |t| t.nsf_answers)
        };
        assert_eq!((answers(to_edge), answers(less(to_edge))), (0, 1), "{wan_us} us");
        let congested = |threshold| {
            let result =
                one_packet(wan_us, ndt(NdtConfig { threshold: Some(threshold), ..NdtConfig::default() }));
            assert_eq!(total(&result, |t| t.ndt_samples), 1);
            total(&result, |t| t.ndt_congested_samples)
        };
        assert_eq!((congested(and_back), congested(less(and_back))), (0, 1), "{wan_us} us");
    }
}

#[test]
fn a_far_incast_is_kept_aside_in_order_and_without_loss() {
    // Together with an incast from the same site, so that the receiver's link is contended.
    let mut flows = far_incast(2_000_000);
    flows.extend((4..8).map(|host| (host, 0, 2_000_000, 400_000)));
    for guards in [OrderGuards::Both, OrderGuards::Recovery, OrderGuards::Off] {
        let config = NdtConfig { guards, alpha: 1.0, ..NdtConfig::default() };
        let result = finish(&across(100, &flows, "reflex-timely", ndt(config)));
        // With both guards, packets of a flow join those of it that wait in the normal queue.
        let least = if guards == OrderGuards::Both { 1 } else { 8 };
        assert!(total(&result, |t| t.ndt_isolated_flows) >= least, "{guards:?}");
        assert!(total(&result, |t| t.ndt_controlled_packets) > 1_000);
        assert_eq!(result.links.iter().map(|link| link.dropped_packets).sum::<u64>(), 0);
        let out_of_order: u64 = result.flows.iter().map(|flow| u64::from(flow.retransmitted_packets)).sum();
        match guards {
            OrderGuards::Both => {
                assert_eq!(out_of_order, 0, "go-back-N sends again what comes out of order");
                assert!(total(&result, |t| t.ndt_guarded_isolation_packets) > 0);
            }
            OrderGuards::Recovery => assert_eq!(total(&result, |t| t.ndt_guarded_isolation_packets), 0),
            OrderGuards::Off => assert!(out_of_order > 0, "nothing keeps packets in order"),
        }
    }
}

/// SLEEK takes the answer to a probe as proof that the data before it has arrived, so the probe must wait where its
/// flow waits.
#[test]
fn a_probe_of_loss_recovery_does_not_overtake_what_is_kept_aside() {
    let mut spec = across(100, &far_incast(200_000), "dctcp", ndt(NdtConfig::default()));
    spec.schemes[0].scheme.recovery = Recovery::sleek();
    let result = finish(&spec);
    assert!(total(&result, |t| t.ndt_controlled_packets) > 100);
    assert!(total(&result, |t| t.ndt_paused_ns) > 500_000, "long enough for probes");
    let again: u64 = result.flows.iter().map(|flow| u64::from(flow.retransmitted_packets)).sum();
    assert_eq!(again, 0, "nothing is lost");
}

#[test]
fn controlled_queues_pause_and_always_go_on() {
    let result = finish(&across(100, &far_incast(1_000_000), "reflex-timely", both()));
    let (pauses, timed_out) = (total(&result, |t| t.ndt_pauses), total(&result, |t| t.ndt_timed_out_pauses));
    assert!(pauses > 0 && timed_out <= pauses);
    let longest_ns = pauses * 500_000;
    assert!((1..=longest_ns).contains(&total(&result, |t| t.ndt_paused_ns)));
}

#[test]
fn a_link_of_the_edge_that_fails_takes_what_is_kept_aside_with_it() {
    let mut spec = across(100, &far_incast(1_000_000), "reflex-timely", both());
    for (spine, at) in [(0, 400), (1, 420), (2, 440), (3, 460)] {
        spec.faults.push(FaultConfig::LinkFlap {
            link: format!("dc0.spine{spine}-dc0.esw0"),
            at: Duration::from_us(at),
            down_for: Duration::from_us(30),
            up_for: Duration::from_us(50),
            times: 2,
        });
    }
    spec.network.retransmission.timeout = Duration::from_ms(4);
    let result = finish(&spec);
    assert!(result.links.iter().any(|link| link.dropped_packets > 0), "the test should lose packets");
}

#[test]
fn nobody_stays_slowed_down_once_the_edge_is_idle() {
    // Sixteen flows start at once over four links. One of them is long.
    let mut flows: Vec<Flow> = (1..16).map(|host| (host, host + 16, 1_500_000, 0)).collect();
    flows.push((0, 16, 40_000_000, 0));
    let slowdown = |mode| {
        let mut spec = across(500, &flows, "reflex-timely-scaled", nsf(NsfConfig::default()));
        match &mut spec.schemes[0].scheme.policy {
            PolicyConfig::Reflex(config) => config.e2e_mode = mode,
            other => panic!("{other:?}"),
        }
        let result = finish(&spec);
        assert!(total(&result, |t| t.nsf_answers) > 16);
        let long = result.flows.iter().find(|flow| flow.size_bytes == 40_000_000).unwrap();
        long.fct_ps().unwrap() as f64 / long.ideal_fct_ps as f64
    };
    let (held, literal) = (slowdown(E2eMode::Hold), slowdown(E2eMode::None));
    assert!(held < 2.0, "{held}");
    assert!(literal > 2.0 * held, "the literal reading leaves it slow: {literal} and {held}");
}

#[test]
fn the_way_back_must_lead_over_the_same_switch() {
    let site = TopologyConfig::LeafSpine(LeafSpine::new(2, 2, 2));
    let config = CrossDc { external_switches: 2, ..CrossDc::new(site, 2) };
    let mut spec = spec(config.build(Path::new(".")).unwrap(), &[(0, 4, 1_000, 0)], "reflex-timely");
    finish(&spec);
    spec.switch.external = both();
    let error = run(&spec, &mut NoMonitor).expect_err("refused").to_string();
    assert!(error.starts_with("site 0 has two external switches, dc0.esw0 and dc0.esw1"), "{error}");
    assert!(error.contains("would mean nothing"));
}

#[test]
fn without_sites_there_is_nothing_to_attach_it_to() {
    let mut spec = spec(leaf_spine(), &all_to_all(4, 1_000), "timely");
    spec.switch.external = both();
    let error = run(&spec, &mut NoMonitor).expect_err("refused").to_string();
    assert!(error.contains("no external switches"), "{error}");
}

#[test]
fn looking_at_a_middlebox_changes_nothing() {
    let mut spec = across(100, &far_incast(500_000), "reflex-swift", both());
    let unseen = finish(&spec);
    for interval in [Duration::from_us(5), Duration::from_ps(777_777)] {
        spec.observe.interval = interval;
        let seen = finish(&spec);
        assert_eq!((seen.info.digest, &seen.middleboxes), (unseen.info.digest, &unseen.middleboxes));
    }
}
