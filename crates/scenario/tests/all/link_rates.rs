//! Links whose rate faults change: times, ideal times, bounds and busy time of both fidelities, against sums by hand.

use pathweave_records::RunResult;
use pathweave_scenario::{Changes, Loaded, Prepared, run};
use pathweave_sim::NoMonitor;

fn prepared(text: &str, fidelity: &str) -> Prepared {
    let set = vec![format!("run.fidelity={fidelity}"), "run.calibrate=off".to_owned()];
    let changes = Changes { set, ..Changes::default() };
    let loaded = Loaded::parse(text, "test.toml", "", &changes).unwrap_or_else(|why| panic!("{why}"));
    loaded.prepare().unwrap_or_else(|why| panic!("{why}"))
}

fn result(text: &str, fidelity: &str) -> RunResult {
    run(&prepared(text, fidelity).spec, &mut NoMonitor).expect("it was tried")
}

fn star(hosts: u32, rate: &str, faults: &str, flows: &str) -> String {
    format!(
        "scheme = \"rps-nocc\"\n[topology]\nkind = \"star\"\nhosts = {hosts}\nrate = \"{rate}\"\n{faults}\
         [[workload]]\nkind = \"flows\"\nflows = [{flows}]\n[observe]\ninterval = \"0s\"\n"
    )
}

fn rate(link: &str, at: &str, rate: &str) -> String {
    format!("[[fault]]\nkind = \"link-rate\"\nlink = \"{link}\"\nat = \"{at}\"\nrate = \"{rate}\"\n")
}

fn busy_us(result: &RunResult, link: &str) -> f64 {
    result.links.iter().find(|at| at.name == link).expect("it exists").busy_ps as f64 / 1e6
}

fn fct_us(result: &RunResult, flow: usize) -> f64 {
    result.flows[flow].fct_ps().expect("it finished") as f64 / 1e6
}

fn near(value: f64, expected: f64, tolerance: f64) -> bool {
    (value / expected - 1.0).abs() < tolerance
}

/// 1 MB is 1,020,106 B on the wire: 816.08 us at 10 Gb/s. If the rate falls after 40.804 us at 100 Gb/s, 510,050 B are
/// gone and 510,056 B take 408.04 us. The packet on the link at that time goes on at the old rate.
#[test]
fn a_link_is_busy_at_the_rate_that_it_has() {
    let flow = "{ src = 0, dst = 1, size = \"1MB\" }";
    for (at, expected) in [("0s", 816.08), ("40804ns", 448.85)] {
        let text = star(3, "100Gbps", &rate("host0-switch0", at, "10Gbps"), flow);
        for fidelity in ["packet", "flow"] {
            let result = result(&text, fidelity);
            let busy = busy_us(&result, "host0>switch0");
            assert!(near(busy, expected, 0.01), "{fidelity}, from {at} on: {busy} us");
            let healthy = busy_us(&result, "switch0>host1");
            assert!(near(healthy, 81.61, 0.003), "{fidelity}, from {at} on: {healthy} us");
        }
    }
}

/// 10 MB are 10,201,052 B on the wire. 100 us at 25 Gb/s take 312,500 of them, the other 9,888,552 take 791.08 us at
/// 100 Gb/s. The ideal at 100 Gb/s, which is the bound, is 816.08 us, with 2.3 us of latency.
#[test]
fn a_fault_that_raises_a_rate_counts_everywhere() {
    let faults = ["host0-switch0", "host1-switch0"].map(|link| rate(link, "100us", "100Gbps")).concat();
    let text = star(2, "25Gbps", &faults, "{ src = 0, dst = 1, size = \"10MB\" }");
    for fidelity in ["packet", "flow"] {
        let (inspection, result) = (prepared(&text, fidelity).inspect(), result(&text, fidelity));
        let (took, ideal) = (fct_us(&result, 0), result.flows[0].ideal_fct_ps as f64 / 1e6);
        assert!(near(took, 893.5, 0.001), "{fidelity}: {took} us");
        assert!(near(ideal, 818.4, 0.001), "{fidelity}: {ideal} us");
        assert_eq!(inspection.bounds.completion_ns, result.flows[0].ideal_fct_ps as f64 / 1e3);
    }
}

/// A packet of 4,096 B takes 33 us on a link of 1 Gb/s, and the other host of the switch is not concerned. A message
/// that begins after the link has its rate again takes 1/100 of that.
#[test]
fn short_messages_take_the_time_of_the_slow_link() {
    let fault = "[[fault]]\nkind = \"link-rate\"\nlink = \"host0-switch0\"\nat = \"0s\"\nrate = \"1Gbps\"\nuntil = \"200us\"\n";
    let flows = "{ src = 0, dst = 2, size = \"4096B\" }, { src = 1, dst = 3, size = \"4096B\" }, \
                 { src = 0, dst = 2, size = \"4096B\", start = \"300us\" }";
    let text = star(4, "100Gbps", fault, flows);
    let (packets, fluid) = (result(&text, "packet"), result(&text, "flow"));
    for flow in 0..3 {
        let (packet, flow_us) = (fct_us(&packets, flow), fct_us(&fluid, flow));
        assert!(near(flow_us, packet, 0.001), "message {flow}: {flow_us} us, {packet} us with packets");
        assert_eq!(fluid.flows[flow].ideal_fct_ps, packets.flows[flow].ideal_fct_ps);
    }
    assert!(fct_us(&fluid, 0) > 33.0 && fct_us(&fluid, 1) < 3.0 && fct_us(&fluid, 2) < 3.0);
}

/// One of two hosts at a leaf loses its link for a while. The other one, whose attachment is alike, goes on.
#[test]
fn a_host_without_its_link_does_not_stop_its_neighbour() {
    let text = "scheme = \"rps-nocc\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
        [[fault]]\nkind = \"link-down\"\nlink = \"host0-leaf0\"\nat = \"20us\"\n\
        [[workload]]\nkind = \"flows\"\nflows = [{ src = 1, dst = 3, size = \"1MB\" }, { src = 0, dst = 2, size = \"1KB\" }]\n";
    let (packets, fluid) = (result(text, "packet"), result(text, "flow"));
    // Flows of one instant are ordered by their senders.
    let (packet, flow) = (fct_us(&packets, 1), fct_us(&fluid, 1));
    assert!(near(packet, 86.6, 0.001), "{packet} us");
    assert!(near(flow, packet, 0.01), "{flow} us, {packet} us with packets");
}

/// 1 MB in the foreground takes at least 80 us at 100 Gb/s. The 100 MB of the background are cut off at its end.
#[test]
fn background_traffic_does_not_bound_the_run() {
    let text = "scheme = \"rps-nocc\"\n[topology]\nkind = \"star\"\nhosts = 3\n\
        [[workload]]\nkind = \"flows\"\ngroup = \"bg\"\nrole = \"background\"\nflows = [{ src = 0, dst = 1, size = \"100MB\" }]\n\
        [[workload]]\nkind = \"flows\"\ngroup = \"fg\"\nflows = [{ src = 2, dst = 1, size = \"1MB\" }]\n";
    let bounds = prepared(text, "packet").inspect().bounds;
    let run = result(text, "packet");
    let alone_ns = run.flows.iter().find(|flow| flow.src_host == 2).unwrap().ideal_fct_ps as f64 / 1e3;
    assert_eq!((bounds.links_ns, bounds.chain_ns), (80_000.0, alone_ns));
    let end_ns = run.info.simulated_ps as f64 / 1e3;
    assert!((160_000.0..200_000.0).contains(&end_ns), "half the link until {end_ns} ns");
}

fn rate_until(link: &str, at: &str, until: &str, gbps: u64) -> String {
    format!("{}until = \"{until}\"\n", rate(link, at, &format!("{gbps}Gbps")))
}

/// 5 MB are 5,100,526 B on the wire. 200 us at 50 Gb/s take 1,250,000 of them, and the other 3,850,526 take 3,080.42 us at
/// 10 Gb/s. With 2 us of latency that makes 3,282.4 us, in either order of the faults.
///
/// 10 MB are 10,201,052 B on the wire: 1,250,000 in 100 us at 100 Gb/s, 500,000 in 400 us at 10 Gb/s, and 8,451,052 in
/// 676.08 us, which makes 1,178.1 us. The milder fault within the other has no effect.
#[test]
fn faults_of_one_link_do_not_depend_on_their_order() {
    let link = "host0->switch0";
    let followed = [rate_until(link, "0us", "200us", 50), rate_until(link, "200us", "5ms", 10)];
    let nested = [rate_until(link, "100us", "500us", 10), rate_until(link, "200us", "300us", 20)];
    for ([a, b], size, expected) in [(followed, "5MB", 3_282.4), (nested, "10MB", 1_178.1)] {
        let flow = format!("{{ src = 0, dst = 1, size = \"{size}\" }}");
        for fidelity in ["packet", "flow"] {
            let of = |faults: String| fct_us(&result(&star(2, "100Gbps", &faults, &flow), fidelity), 0);
            let (one, other) = (of(format!("{a}{b}")), of(format!("{b}{a}")));
            assert!(one == other && near(one, expected, 0.002), "{fidelity}, {size}: {one} and {other} us");
        }
    }
}

/// 10 MB take 816.1 us at 100 Gb/s, with 2 us of latency. With PFC they also wait from 100 us to 1 ms, which a switch
/// without PFC does not.
#[test]
fn a_switch_without_pfc_ignores_a_storm() {
    let storm = "[[fault]]\nkind = \"pause-storm\"\nhost = \"host1\"\nat = \"100us\"\nuntil = \"1ms\"\n";
    let flow = "{ src = 0, dst = 1, size = \"10MB\" }";
    let of = |pfc| {
        let text = format!("{}[switch.pfc]\nenabled = {pfc}\n", star(2, "100Gbps", storm, flow));
        fct_us(&result(&text, "packet"), 0)
    };
    let (without, with) = (of(false), of(true));
    assert!(near(without, 818.4, 0.002) && near(with, 1_718.4, 0.01), "{without} and {with} us");
}
