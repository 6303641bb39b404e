//! Lines are filled: by a long message alone, whatever was sent before it, and by several senders to one receiver.

use std::path::Path;

use pathweave_policy::{SchemeInfo, schemes};
use pathweave_records::FlowStatus;
use pathweave_sim::{NoMonitor, SimSpec, run};
use pathweave_topo::{Build, Star};
use pathweave_units::{Bytes, Duration, HostId, Rate, Time};
use pathweave_workload::{GraphBuilder, MessageGraph, NewMessage, Stream};

use crate::support::{Flow, graph, with_graph};

/// Rate in Gb/s, delay of a link in nanoseconds, and MTU in bytes.
type Line = (u64, u64, u64);

const LINES: [Line; 5] =
    [(10, 1_000, 256), (10, 1_000, 9_000), (25, 1_000, 1_024), (100, 250, 1_024), (400, 100, 9_000)];

/// Packets of a long message.
const PACKETS: u64 = 400;

/// Headers and gaps around the payload of a full packet, bytes.
const HEADERS: f64 = 82.0;

/// Share of the line at which NDP asks for packets: 0.99 of it, and 64 B for each.
fn ndp_share(mtu: u64) -> f64 {
    let packet = mtu as f64 + HEADERS;
    0.99 * packet / (packet + 64.0)
}

/// Largest time of a long message by itself, over the ideal one: 2 % more, or what a scheme gives up on purpose.
fn most_alone(scheme: &SchemeInfo, (_, _, mtu): Line) -> f64 {
    match scheme.name {
        // Telemetry of 42 B with each packet, and 5 % of the line kept free.
        "hpcc" => 1.03 * (mtu as f64 + HEADERS + 42.0) / (mtu as f64 + HEADERS) / 0.95,
        // As printed: targets in microseconds, which are below the idle round trip of slow lines.
        "swift-published" | "reflex-swift-published" => f64::INFINITY,
        "udmp-published" => 4.0,
        "laps-published" | "laps-code-2025" => 1.04,
        "ndp" => 1.02 / ndp_share(mtu),
        // Grants are paced at 98 % of the line and more. After a byte the first window has lapsed, and the first grant takes a
        // round trip: 5 of 110 us with packets of 256 B at 10 Gb/s.
        _ if (scheme.make)().credit.is_some() => 1.06,
        _ => 1.02,
    }
}

fn line_of(spec: SimSpec, (_, _, mtu): Line) -> SimSpec {
    let mut spec = spec;
    spec.network.mtu = Bytes::new(mtu);
    spec.run.verify = false;
    spec
}

fn star(hosts: u32, (gbps, delay_ns, _): Line) -> pathweave_topo::Topology {
    let star = Star { rate: Rate::from_gbps(gbps), delay: Duration::from_ns(delay_ns), ..Star::new(hosts) };
    star.build(Path::new(".")).expect("a star")
}

/// Returns a long message from host 0 to 1, and one from 2 to 3 on a connection that has carried one byte.
fn alone_and_after_a_byte(long_bytes: u64) -> MessageGraph {
    let mut builder = GraphBuilder::new(4);
    let group = builder.group("test", None).expect("the first group");
    for (src, bytes, start_us) in [(0, long_bytes, 0), (2, 1, 0), (2, long_bytes, 100)] {
        let message = NewMessage {
            src: HostId(src),
            dst: HostId(src + 1),
            size: Bytes::new(bytes),
            start: Time::from_us(start_us),
            group,
            stream: Stream::Shared(0),
            job: None,
        };
        builder.message(message).expect("hosts exist and differ");
    }
    builder.finish().expect("no cycles")
}

#[test]
fn a_long_message_alone_fills_the_line_with_every_scheme() {
    let mut slow = Vec::new();
    for scheme in schemes() {
        for line in LINES {
            let long_bytes = PACKETS * line.2;
            let spec = with_graph(star(4, line), alone_and_after_a_byte(long_bytes), scheme.name);
            let result = run(&line_of(spec, line), &mut NoMonitor).expect("a valid spec");
            for flow in result.flows.iter().filter(|flow| flow.size_bytes == long_bytes) {
                let taken = flow.fct_ps().map_or(f64::INFINITY, |fct| fct as f64 / flow.ideal_fct_ps as f64);
                let after = if flow.src_host == 2 { "after a byte" } else { "alone" };
                if taken > most_alone(scheme, line) {
                    slow.push(format!("{} {line:?} {after}: {taken:.3}", scheme.name));
                }
            }
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}

/// Eight senders of 1 MB each. The first window of each is sent at once, and some of it is trimmed.
#[test]
fn receivers_that_grant_credit_fill_their_line_with_packets_of_any_size() {
    for scheme in schemes().iter().filter(|scheme| (scheme.make)().credit.is_some()) {
        for mtu in [256, 1_024, 4_096, 9_000] {
            let line = (200, 500, mtu);
            let flows: Vec<Flow> = (1..9).map(|src| (src, 0, 1_000_000, 0)).collect();
            let mut spec = line_of(with_graph(star(9, line), graph(9, &flows), scheme.name), line);
            spec.switch.pfc.enabled = false;
            spec.switch.trim.enabled = true;
            let result = run(&spec, &mut NoMonitor).expect("a valid spec");
            assert!(result.flows.iter().all(|flow| flow.status == FlowStatus::Finished), "{}", scheme.name);
            let end_ps = result.flows.iter().filter_map(|flow| flow.finish_ps).max().expect("flows");
            let wire_bytes = 8e6 + HEADERS * 8e6 / mtu as f64;
            let share = wire_bytes * 8e12 / 200e9 / end_ps as f64;
            let least = if scheme.name == "ndp" { ndp_share(mtu) } else { 0.99 };
            assert!(share > 0.98 * least, "{} {mtu}: {share:.3} of the line", scheme.name);
        }
    }
}
