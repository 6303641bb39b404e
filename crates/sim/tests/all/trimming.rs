//! Switches that trim, and the reaction of schemes.

use crate::support::{finish, incast, leaf_spine, permutation, play, spec};
use pathweave_fabric::config::{EcnConfig, SwitchConfig, TrimConfig};
use pathweave_records::{DropReason, EventKind, RunResult};
use pathweave_sim::SimSpec;
use pathweave_units::{Bytes, Duration};

/// Returns uet-htsim's switches: 43 packets for each port at 100 Gb/s, marking from a fifth of this limit, with
/// certainty at four fifths.
fn uet_switches() -> SwitchConfig {
    let ecn =
        EcnConfig { kmin: Bytes::new(37_350), kmax: Bytes::new(145_250), pmax: 1.0, ..EcnConfig::default() };
    let mut switch = SwitchConfig { ecn, ..SwitchConfig::default() };
    switch.pfc.enabled = false;
    switch.trim = TrimConfig { enabled: true, ..TrimConfig::default() };
    switch
}

fn trimming(flows: &[crate::support::Flow]) -> SimSpec {
    SimSpec { switch: uet_switches(), ..spec(leaf_spine(), flows, "uet-nscc") }
}

fn trims(result: &RunResult) -> u64 {
    result.links.iter().map(|link| link.trimmed_packets).sum()
}

fn sent_again(result: &RunResult) -> u64 {
    result.flows.iter().map(|flow| u64::from(flow.retransmitted_packets)).sum()
}

/// Trimmed packets are reported and retransmitted once. No other packets are lost, and no flow waits for a timer.
#[test]
fn an_incast_loses_payloads_and_no_time() {
    let result = finish(&trimming(&incast(16, 1_000_000)));
    assert!(trims(&result) > 100, "{}", trims(&result));
    assert_eq!(result.links.iter().map(|link| link.dropped_packets).sum::<u64>(), 0);
    let again = sent_again(&result);
    assert!((trims(&result)..=trims(&result) * 51 / 50).contains(&again), "{again} of {}", trims(&result));
    assert_eq!(result.flows.iter().map(|flow| flow.timeouts).sum::<u32>(), 0);
    // 15 MB over 100 Gb/s take 1.2 ms, and 1.23 ms with headers. The last flow ends not much later.
    let done = result.flows.iter().filter_map(|flow| flow.finish_ps).max().expect("all are done");
    assert!(Duration::from_ps(done) < Duration::from_us(1_400), "{done}");
}

#[test]
fn headers_that_are_lost_are_found_missing() {
    let mut spec = trimming(&incast(16, 300_000));
    spec.switch.trim.header_queue = Some(Bytes::new(300));
    spec.network.retransmission.timeout = Duration::from_us(200);
    let result = finish(&spec);
    let lost = |event: &&pathweave_records::EventRecord| {
        event.kind == EventKind::Drop && event.reason == Some(DropReason::HeaderQueueFull)
    };
    let lost = result.events.iter().filter(lost).count() as u64;
    assert!(lost > 0 && sent_again(&result) >= trims(&result));
}

/// One window fits the buffer, so trimming makes no difference.
#[test]
fn where_nothing_is_trimmed_nothing_differs() {
    let mut with = trimming(&[(0, 9, 3_000_000, 0)]);
    let mut without = with.clone();
    without.switch.trim.enabled = false;
    for spec in [&mut with, &mut without] {
        // The target depends on trimming, so it is set explicitly.
        spec.schemes[0].scheme.acks.every_bytes = Some(Bytes::new(16_384));
        let pathweave_policy::PolicyConfig::Split(split) = &mut spec.schemes[0].scheme.policy else {
            panic!("a window and a picker")
        };
        let pathweave_policy::cc::CcConfig::Nscc(nscc) = &mut split.cc else { panic!("NSCC") };
        nscc.delay_target = Some(1.0);
    }
    let [with, without] = [with, without].map(|spec| play(&spec));
    assert_eq!(trims(&with), 0);
    assert_eq!(with.info.digest, without.info.digest);
}

/// The receiver acknowledges every fourth packet, or whenever the sender waits for an acknowledgement: fewer
/// acknowledgements than packets.
#[test]
fn acknowledgements_are_by_bytes() {
    let result = finish(&trimming(&permutation(16, 2_000_000)));
    let packets: u64 = result.flows.iter().map(|flow| u64::from(flow.sent_packets)).sum();
    let of_hosts = |link: &&pathweave_records::LinkTotals| link.from_node < 16;
    let all: u64 = result.links.iter().filter(of_hosts).map(|link| link.tx_packets).sum();
    let acks = all - packets;
    assert!(acks * 5 < packets * 4, "{acks} acknowledgements for {packets} packets");
}

/// Returns an incast of HPCC, which recovers by go-back-N, over 40 Gb/s.
fn hpcc_incast(senders: u32, size: u64) -> SimSpec {
    let star = pathweave_topo::Star {
        rate: pathweave_units::Rate::from_gbps(40),
        delay: Duration::from_us(1),
        ..pathweave_topo::Star::new(senders + 1)
    };
    let topology = pathweave_topo::Build::build(&star, std::path::Path::new(".")).expect("a star");
    SimSpec { switch: uet_switches(), ..spec(topology, &incast(senders + 1, size), "hpcc") }
}

/// 2 MB take 412 us at 40 Gb/s with headers. The header of a flow's last packet overtakes the packets before it. It is
/// answered after them, not by the timer, which takes 4 ms.
#[test]
fn go_back_n_does_not_wait_for_a_timer_after_a_trimmed_tail() {
    for seed in 1..=3 {
        let result = finish(&SimSpec { seed, ..hpcc_incast(4, 500_000) });
        assert!(trims(&result) > 0, "{seed}");
        assert_eq!(result.flows.iter().map(|flow| flow.timeouts).sum::<u32>(), 0, "{seed}");
        let done = result.flows.iter().filter_map(|flow| flow.finish_ps).max().expect("all are done");
        assert!(Duration::from_ps(done) < Duration::from_us(700), "{seed}: {done}");
    }
}

/// 100 first windows are 20 times what the switch holds. Nearly all that arrives are headers, and the sender slows down by
/// the telemetry that NACKs return. 5 MB take 1.03 ms.
#[test]
fn hpcc_slows_down_by_negative_acknowledgements() {
    let mut spec = hpcc_incast(100, 50_000);
    spec.run.verify = false;
    spec.run.until = Some(Duration::from_us(20_000));
    let result = pathweave_sim::run(&spec, &mut pathweave_sim::NoMonitor).expect("a valid spec");
    let done: Option<Vec<u64>> = result.flows.iter().map(|flow| flow.finish_ps).collect();
    let done = done.expect("every flow ends").into_iter().max().expect("flows");
    assert!(Duration::from_ps(done) < Duration::from_us(10_000), "{done}");
}
