//! Telemetry that switches write into packets.

use crate::support::{Net, plain, star};
use pathweave_fabric::{Header, Step};
use pathweave_units::{HostId, PathId, Rate, Telemetry, TelemetryUnits, Time};

fn units() -> TelemetryUnits {
    TelemetryUnits::for_hosts(Rate::from_gbps(25))
}

/// Three hosts at a switch, with links of 100 Gb/s and 1 us.
fn net() -> Net<2> {
    let mut net = Net::<2>::new(3, 1, &star(3, 100, 1_000), &plain(), 1);
    net.fabric.write_telemetry(units());
    net
}

/// Sends a packet of 1,000 B to host 2 at the beginning.
fn send(net: &mut Net<2>, from: u32, returned: Option<Telemetry>) {
    let header = Header::new(HostId(from), HostId(2), PathId(0), 1_000, 1, true);
    let port = net.port(from, 3);
    net.fabric.send_with_telemetry(Time::ZERO, port, header, from, returned);
}

/// Returns the telemetry of all packets in the order of arrival.
fn arrivals(net: &mut Net<2>) -> Vec<Option<Telemetry>> {
    let (mut all, port) = (Vec::new(), net.port(2, 3));
    while net.fabric.next_due() != Time::MAX {
        let end = net.fabric.next_due().saturating_add(net.fabric.lookahead());
        while net.fabric.next_arrival(port..port + 1).0 < end {
            let (now, _) = net.fabric.next_arrival(port..port + 1);
            if let Step::Delivered { packet, .. } = net.fabric.on_arrival(now, port) {
                all.push(net.fabric.telemetry(&packet));
                net.fabric.discard(packet);
            }
        }
        let (next, _) = net.fabric.next_arrival(port..port + 1);
        net.fabric.set_host_due(HostId(2), next);
        net.fabric.run_until(end);
    }
    all
}

/// Three packets each from two hosts. Pairs arrive at the switch every 80 ns from 1,080 ns on, and one leaves: the
/// first at once, the second alone, the third before the last pair is queued. Units are 128 B sent and 80 B queued.
#[test]
fn a_port_writes_what_it_has_sent_and_what_waits_behind_the_packet() {
    let mut net = net();
    (0..3).for_each(|_| [0, 1].into_iter().for_each(|host| send(&mut net, host, None)));
    let mut start = Telemetry::new(units());
    start.push(Time::ZERO, 0, u64::MAX, Rate::from_gbps(100));
    let read = |telemetry: &Option<Telemetry>| {
        let telemetry = telemetry.expect("every packet asks");
        assert_eq!(telemetry.passed(), 1, "hosts write nothing");
        let change = telemetry.changes_since(&start).next().expect("one port");
        assert_eq!(change.rate, Rate::from_gbps(100));
        (change.span.as_ps() / 1_000, change.sent_bytes / 128, change.queue_bytes / 80)
    };
    let all: Vec<_> = arrivals(&mut net).iter().map(read).collect();
    // Bytes sent: thousands. Queued: 0, 0, 1,000, 2,000, 1,000 and 0.
    let expected =
        [(1_080, 0, 0), (1_160, 7, 0), (1_240, 15, 12), (1_320, 23, 25), (1_400, 31, 12), (1_480, 39, 0)];
    assert_eq!(all, expected);
}

#[test]
fn what_an_acknowledgement_returns_stays_as_it_is_and_others_have_none() {
    let (mut net, mut returned) = (net(), Telemetry::new(units()));
    returned.push(Time::from_us(7), 1 << 20, 1 << 10, Rate::from_gbps(400));
    send(&mut net, 0, Some(returned));
    let port = net.port(1, 3);
    net.fabric.send(Time::ZERO, port, Header::new(HostId(1), HostId(2), PathId(0), 1_000, 1, true), 1);
    assert_eq!(arrivals(&mut net), [Some(returned), None]);
}
