//! Load balancing in switches: schemes that require it, conflicts between settings, and its effect.

use crate::support::{Flow, finish, leaf_spine, permutation, spec, with_graph};
use pathweave_fabric::config::{FaultConfig, Forwarding};
use pathweave_records::RunResult;
use pathweave_sim::{GroupSpec, NamedScheme, NoMonitor, SimSpec, run};
use pathweave_topo::{Link, NodeId, Switch, Topology};
use pathweave_units::{Bytes, Duration, HostId, Rate, Rng, Time};
use pathweave_workload::{GraphBuilder, NewMessage, Stream};

/// Returns messages of 200 kB between hosts of different leaves, for 2 ms, at 40 % of the rate of the hosts.
fn traffic() -> Vec<Flow> {
    let mut rng = Rng::for_component(1, "forwarding test", 0);
    let mut flows = Vec::new();
    for src in 0..16 {
        let mut at = 0;
        loop {
            // 16 us at 100 Gb/s each, so one message in 40 us on average.
            at += u64::from(rng.below(80_000));
            if at >= 2_000_000 {
                break;
            }
            let dst = (src / 4 * 4 + 4 + rng.below(12)) % 16;
            flows.push((src, dst, 200_000, at));
        }
    }
    flows
}

/// Returns a leaf-spine network in which one link has a tenth of its rate.
fn degraded(scheme: &str) -> SimSpec {
    let mut spec = spec(leaf_spine(), &traffic(), scheme);
    spec.run.verify = false;
    spec.switch.reroute_after = Duration::from_us(50);
    spec.faults.push(FaultConfig::LinkRate {
        link: "leaf0-spine0".into(),
        at: Duration::ZERO,
        rate: Rate::from_gbps(10),
        until: None,
    });
    spec
}

fn mean_fct_us(result: &RunResult) -> u64 {
    let sum: u64 = result.flows.iter().map(|f| f.fct_ps().expect("it finished") / 1_000_000).sum();
    sum / result.flows.len() as u64
}

#[test]
fn where_paths_differ_balancing_beats_the_hash() {
    let ecmp = mean_fct_us(&finish(&degraded("ecmp")));
    for (scheme, percent) in [("wcmp", 80), ("conga", 80), ("conweave", 80)] {
        let result = finish(&degraded(scheme));
        let mean = mean_fct_us(&result);
        assert!(mean * 100 < ecmp * percent, "{scheme}: {mean} us against {ecmp} us");
        let done = result.balancing;
        match scheme {
            "wcmp" => assert_eq!(done, Default::default()),
            "conweave" => assert!(done.message_packets > 1_000 && done.held_packets > 0, "{done:?}"),
            _ => assert!(done.flowlets > 1_000, "{done:?}"),
        }
    }
}

/// Returns a workload in which each host of leaf 0 sends 100 kB to a host of leaf 1 every 200 us. Each host uses one
/// connection, so that hashing picks one path for all its bursts.
fn bursts(scheme: &str) -> SimSpec {
    let mut builder = GraphBuilder::new(16);
    let group = builder.group("test", None).expect("the first group");
    for src in 0..4 {
        for n in 0..40 {
            let message = NewMessage {
                src: HostId(src),
                dst: HostId(src + 4),
                size: Bytes::new(100_000),
                start: Time::from_ns(n * 200_000),
                group,
                stream: Stream::Shared(0),
                job: None,
            };
            builder.message(message).expect("hosts exist and differ");
        }
    }
    let mut spec = with_graph(leaf_spine(), builder.finish().expect("no cycles"), scheme);
    spec.faults = degraded(scheme).faults;
    spec
}

#[test]
fn flowlets_save_a_flow_from_a_bad_hash() {
    // A connection whose hash selects the slow link sends all its bursts there. With other load balancing each burst
    // selects anew.
    let slow = |scheme: &str, seed: u64| {
        let mut spec = bursts(scheme);
        spec.seed = seed;
        let result = finish(&spec);
        // 100 kB at 10 Gb/s take 80 us.
        let mut by_host = [0u32; 4];
        for flow in result.flows.iter().filter(|f| f.fct_ps().expect("it finished") > 80_000_000) {
            by_host[flow.src_host as usize] += 1;
        }
        by_host
    };
    let mut worst = [0, 0];
    for seed in 1..=5 {
        for (scheme, worst) in ["ecmp", "letflow"].into_iter().zip(&mut worst) {
            *worst = slow(scheme, seed).into_iter().max().expect("four hosts").max(*worst);
        }
    }
    assert_eq!(worst[0], 40, "all bursts of one");
    assert!((4..25).contains(&worst[1]), "{worst:?}");
    // CONGA detects slow links.
    let conga: u32 = (1..=5).map(|seed| slow("conga", seed).into_iter().sum::<u32>()).sum();
    let letflow: u32 = (1..=5).map(|seed| slow("letflow", seed).into_iter().sum::<u32>()).sum();
    assert!(conga * 2 < letflow, "{conga} {letflow}");
}

#[test]
fn balanced_flows_stay_in_order_where_promised() {
    for scheme in ["letflow", "conga", "conweave"] {
        let result = finish(&spec(leaf_spine(), &permutation(16, 1_000_000), scheme));
        assert_eq!(result.flows.iter().map(|f| f.ooo_packets).sum::<u32>(), 0, "{scheme}");
    }
    let result = finish(&spec(leaf_spine(), &permutation(16, 1_000_000), "drill"));
    assert!(result.flows.iter().map(|f| f.ooo_packets).sum::<u32>() > 0);
}

fn refusal(spec: &SimSpec) -> String {
    run(spec, &mut NoMonitor).expect_err("it must be refused").to_string()
}

#[test]
fn any_scheme_goes_over_any_switches_but_one_that_needs_others() {
    let mut spec = spec(leaf_spine(), &permutation(16, 100_000), "rps");
    for kind in [Forwarding::Drill, Forwarding::Conga, Forwarding::ConWeave, Forwarding::Wcmp] {
        spec.switch.forwarding.kind = Some(kind);
        finish(&spec);
    }
    let scheme = |name: &str| NamedScheme {
        name: name.into(),
        scheme: (pathweave_policy::find_scheme(name).expect("a scheme").make)(),
    };
    spec.schemes = vec![scheme("letflow")];
    let text = refusal(&spec);
    assert!(text.contains("\"letflow\"") && text.contains("switch.forwarding.kind is \"wcmp\""), "{text}");
    // The kind that the scheme requires may also be set explicitly.
    spec.switch.forwarding.kind = Some(Forwarding::LetFlow);
    finish(&spec);
}

#[test]
fn groups_share_one_fabric() {
    let mut spec = spec(leaf_spine(), &permutation(16, 100_000), "conga");
    let more = pathweave_policy::find_scheme("ecmp").expect("a scheme");
    spec.schemes.push(NamedScheme { name: "ecmp".into(), scheme: (more.make)() });
    // A scheme that no group uses imposes no requirement.
    finish(&spec);
    spec.groups.push(GroupSpec::new(1));
    let text = refusal(&spec);
    assert!(text.contains("scheme \"conga\"") && text.contains("scheme \"ecmp\""), "{text}");
}

#[test]
fn between_leaves_a_host_has_one_leaf() {
    let switch = |n: u32| Switch { name: format!("tor{n}"), tier: 0, group: None };
    let link = |a, b| Link {
        a: NodeId(a),
        b: NodeId(b),
        rate: Rate::from_gbps(100),
        delay: Duration::from_us(1),
        error_rate: 0.0,
    };
    let links = vec![link(0, 2), link(0, 3), link(1, 3), link(2, 3)];
    let topology = Topology::new("two homes", 2, vec![switch(0), switch(1)], links).expect("it is connected");
    for scheme in ["conga", "conweave"] {
        let text = refusal(&spec(topology.clone(), &[(0, 1, 1_000, 0)], scheme));
        assert!(text.contains(&format!("\"{scheme}\"")) && text.contains("host0"), "{text}");
    }
    finish(&spec(topology, &[(0, 1, 1_000, 0)], "letflow"));
}
