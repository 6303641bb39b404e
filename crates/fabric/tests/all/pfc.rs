//! Priority flow control: thresholds and timing computed by hand, and headroom under the worst load.

use crate::support::{Net, Packet, control, data, leaf_spine, lossless, plain, ps, star};
use pathweave_fabric::BuildError;
use pathweave_fabric::config::{SwitchClasses, SwitchConfig};
use pathweave_units::{Bytes, Duration, Rate, Time};

/// 150 KB shared by three ports, alpha 1/2, XON 3 KB below XOFF.
fn by_hand() -> SwitchConfig {
    lossless(150_000, 0.5, 50_000, 3, 1)
}

#[test]
fn pause_and_resume_to_the_picosecond() {
    // Hosts 0 and 1 send 1000 B packets to host 2. The k-th pair has arrived at 1,000 + 80k ns, when the k-th packet
    // leaves. Then k packets wait (alternately from host 0 and host 1). XOFF for host 1 at its k-th packet: it holds
    // ceil(k/2) KB of k KB in all, with the limit (150 - k)/2. It is first above the limit at k = 75 (38 > 37.5), at
    // 7,000 ns. XOFF for host 0 at its k-th packet: floor(k/2) of k-1, with the limit (151 - k)/2: k = 76 (38 >
    // 37.5), at 7,080 ns. The pause frame takes 84 B, 6.72 ns, and 1,000 ns of cable.
    let mut net = Net::<2>::new(3, 1, &star(3, 100, 1_000), &by_hand(), 1);
    net.send_many(Time::ZERO, 300, data(0, 2, 1_000));
    net.send_many(Time::ZERO, 300, data(1, 2, 1_000));
    net.run_until(ps(12_600_000));
    let (nic0, nic1) = (net.port(0, 3), net.port(1, 3));
    // Host 0 begins its 102nd packet before the pause arrives, host 1 its 101st: 203 packets reach the switch. After
    // the j-th departure 203 - j KB are held, and the limit is (j - 53)/2. Host 0 resumes at j = 131: 36 + 3 <= 39.
    // Host 1 resumes at j = 132: 35 + 3 <= 39.5. Departures are at 1,000 + 80j ns.
    assert_eq!(
        net.pauses(),
        [
            (ps(7_000_000 + 1_006_720), nic1, 1, true),
            (ps(7_080_000 + 1_006_720), nic0, 1, true),
            (ps(11_480_000 + 1_006_720), nic0, 1, false),
            (ps(11_560_000 + 1_006_720), nic1, 1, false),
        ]
    );
    let paused = net.fabric.stats(nic0);
    assert_eq!((paused.pauses, paused.paused), (1, Duration::from_ps(4_400_000)));
    net.run();
    assert_eq!(net.delivered.len(), 600);
    net.check_conservation();
}

#[test]
fn the_pause_frame_waits_for_the_frame_being_sent_and_for_no_other() {
    // As above, but host 2 sends packets of 9000 B (720 ns) to host 1, which keep the port to host 1 busy. They reach
    // the switch from 1,720 ns on, so its transmitter is free at 1,720 + 720n. 7,480 is the first such instant after
    // the decision at 7,000.
    let mut net = Net::<2>::new(3, 1, &star(3, 100, 1_000), &lossless(150_000, 0.5, 50_000, 3, 1), 1);
    net.send_many(Time::ZERO, 300, data(0, 2, 1_000));
    net.send_many(Time::ZERO, 300, data(1, 2, 1_000));
    net.send_many(Time::ZERO, 20, data(2, 1, 9_000));
    net.run_until(ps(9_000_000));
    let nic1 = net.port(1, 3);
    let first = *net.pauses().iter().find(|p| p.1 == nic1).expect("host 1 is paused");
    assert_eq!(first, (ps(7_480_000 + 1_006_720), nic1, 1, true));
}

#[test]
fn no_pause_at_the_threshold_itself() {
    // Host 1 sends only 75 packets: its 75th would be the first above the limit. With 50 B more shared, the limit at
    // k = 75 is 37,525, and host 1 holds 38,000: above. With 1,000 B more the limit is 38,000: equal, not above.
    for (more, expected) in [(50, true), (998, true), (1_000, false)] {
        let config = lossless(150_000 + more, 0.5, 50_000, 3, 1);
        let mut net = Net::<2>::new(3, 1, &star(3, 100, 1_000), &config, 1);
        net.send_many(Time::ZERO, 75, data(0, 2, 1_000));
        net.send_many(Time::ZERO, 75, data(1, 2, 1_000));
        net.run();
        assert_eq!(!net.pauses().is_empty(), expected, "{more} more");
        net.check_conservation();
    }
}

#[test]
fn a_pause_stops_its_class_and_no_other() {
    // Two data classes. Class 1 of both senders is paused; class 2 and control continue.
    let config = SwitchConfig { weights: vec![1, 1], ..lossless(150_000, 0.5, 50_000, 3, 2) };
    let mut net = Net::<3>::new(3, 1, &star(3, 100, 1_000), &config, 1);
    net.send_many(Time::ZERO, 300, data(0, 2, 1_000));
    net.send_many(Time::ZERO, 300, data(1, 2, 1_000));
    let during = ps(9_000_000);
    let urgent = net.send(during, control(0, 1, 100));
    let other = net.send(during, Packet { class: 2, ..data(0, 1, 1_000) });
    let stopped = net.send(during, data(0, 1, 1_000));
    net.run();
    let (nic0, log) = (net.port(0, 3), net.pauses());
    let resumed = log.iter().find(|p| p.1 == nic0 && !p.3).expect("the pause ends").0;
    assert!(log.iter().all(|p| p.2 == 1));
    // 100 B take 8 ns a hop. The packet of the other class leaves right behind: 8 ns later, 80 ns a hop.
    assert_eq!(net.arrival(urgent), ps(9_000_000 + 2 * 1_008_000));
    assert_eq!(net.arrival(other), ps(9_008_000 + 2 * 1_080_000));
    assert!(net.arrival(stopped) > resumed);
    net.check_conservation();
}

/// All hosts except the last send to the last at line rate, `bytes` a packet. Nothing may be lost.
fn worst_case(config: &SwitchConfig, senders: u32, gbps: u64, delay_ns: u64, bytes: u32) {
    let mut net = Net::<2>::new(senders + 1, 1, &star(senders + 1, gbps, delay_ns), config, 1);
    for sender in 0..senders {
        net.send_many(Time::ZERO, 400_000 / bytes, data(sender, senders, bytes));
    }
    // Traffic in the other direction, so that pause frames wait for a frame.
    for receiver in 0..senders {
        net.send_many(Time::ZERO, 10, data(senders, receiver, bytes));
    }
    net.run();
    let case = format!("{senders} senders at {gbps}G, {delay_ns} ns, packets of {bytes} B");
    assert!(net.drops().is_empty(), "{case}: {} lost", net.drops().len());
    assert!(!net.pauses().is_empty(), "{case}: the load does not reach the threshold");
    net.check_conservation();
}

#[test]
fn computed_headroom_is_enough() {
    for (gbps, delay_ns) in [(100, 0), (100, 1_000), (400, 600), (25, 5_000)] {
        for bytes in [338, 1_106, 4_194, 9_098] {
            for alpha in [0.125, 1.0, 64.0] {
                let ports = 9;
                let headroom =
                    Rate::from_gbps(gbps).bytes_in(Duration::from_ns(2 * delay_ns)) + 3 * 9_216 + 84;
                let mut config = lossless(60_000, alpha, headroom, ports, 1);
                config.pfc.headroom = None;
                worst_case(&config, ports as u32 - 1, gbps, delay_ns, bytes);
            }
        }
    }
}

#[test]
fn too_little_headroom_is_not() {
    // Shows that the test above can fail: with too little headroom packets are lost.
    let mut net = Net::<2>::new(9, 1, &star(9, 100, 1_000), &lossless(60_000, 64.0, 10_000, 9, 1), 1);
    for sender in 0..8 {
        net.send_many(Time::ZERO, 400, data(sender, 8, 1_000));
    }
    net.run();
    assert!(!net.drops().is_empty());
    net.check_conservation();
}

#[test]
fn headroom_without_buffer_is_refused() {
    let mut config = plain();
    config.pfc.enabled = true;
    config.pfc.headroom = Some(Bytes::from_kb(100));
    config.buffer = Bytes::from_kb(300);
    let cables = star(3, 100, 1_000);
    let map = pathweave_fabric::PortMap::new(4, &cables);
    let routes = crate::support::shortest_routes(3, 1, &cables, &map, |_| true);
    let built = pathweave_fabric::Fabric::<u32, 2>::new(
        3,
        1,
        &cables,
        &map,
        routes,
        &SwitchClasses::uniform(&config),
        1,
    );
    let refused =
        BuildError::BufferTooSmall { switch: 0, headroom: Bytes::from_kb(300), buffer: Bytes::from_kb(300) };
    assert_eq!(built.err(), Some(refused));
}

#[test]
fn pauses_spread_upstream_and_nothing_is_lost() {
    // 12 hosts on three leaves send to one host on the fourth: the leaf pauses the spines, and the spines pause the
    // leaves.
    let mut config = lossless(100_000, 0.125, 60_000, 6, 1);
    config.ecn.enabled = false;
    let mut net = Net::<2>::new(16, 6, &leaf_spine(4, 4, 2, 100, 500), &config, 1);
    for sender in 0..12 {
        for n in 0..100 {
            net.send(Time::ZERO, Packet { path: n % 16, ..data(sender, 15, 4_178) });
        }
    }
    net.run();
    assert!(net.drops().is_empty());
    assert_eq!(net.delivered.len(), 1_200);
    let paused_by = |from: std::ops::Range<u32>| {
        net.pauses().iter().filter(|p| from.contains(&net.fabric.ends(p.1).0)).count()
    };
    assert!(paused_by(20..22) > 0, "spines are paused");
    assert!(paused_by(16..20) > 0, "leaves are paused");
    assert!(paused_by(0..16) > 0, "hosts are paused");
    // The receiver's link is hardly ever idle after the first arrival: 1200 packets of 334.24 ns.
    let (first, last) = (net.delivered[0].time, net.delivered[1_199].time);
    assert!(last - first < Duration::from_ps(1_199 * 334_240 + 2_000_000));
    net.check_conservation();
}

/// Host 0 sends to host 1, whose port on the switch is paused until `until`. The account exceeds its limit at 51 KB:
/// 51 > (150 - 51)/2. When the pause frame reaches host 0, at 6,086.72 ns, the host has begun its 77th packet. Host
/// 1's cable has a delay of 50 us.
fn held_back(until: Time) -> Net<2> {
    let mut cables = star(4, 100, 1_000);
    cables[1].delay = Duration::from_us(50);
    let mut net = Net::new(4, 1, &cables, &lossless(150_000, 0.5, 50_000, 4, 1), 1);
    net.at(Time::ZERO, |net, now| {
        let port = net.port(4, 1);
        net.fabric.start_pause_storm(now, port);
    });
    net.at(until, |net, now| {
        let port = net.port(4, 1);
        net.fabric.stop_pause_storm(now, port);
    });
    net.send_many(Time::ZERO, 100, data(0, 1, 1_000));
    net
}

fn resumed<const C: usize>(net: &Net<C>, host: u32) -> Time {
    let nic = net.map.ports(host).start;
    net.pauses().iter().find(|p| p.1 == nic && !p.3).expect("the pause ends").0
}

#[test]
fn resume_frames_are_on_time_when_a_pause_ends_during_a_control_packet() {
    // A control packet of 9000 B is in transmission from 19,990 to 20,710 ns, and the pause ends at 20,000. The 29th
    // service leaves 48 KB: 48 + 3 <= (150 - 48)/2. It begins 28 x 80 ns after 20,710.
    let mut net = held_back(ps(20_000_000));
    net.send(ps(18_270_000), control(2, 1, 9_000));
    net.run();
    assert_eq!(resumed(&net, 0), ps(20_710_000 + 28 * 80_000 + 1_006_720));
    net.check_conservation();
}

#[test]
fn resume_frames_are_on_time_when_the_port_sends_a_pause_frame_itself() {
    // Host 1 fills its own account with packets for host 3, whose port is paused: 24 of 1000 B, and one of 2000 B.
    // The latter arrives at 100,200 ns, when three of host 0's packets have left: 26 > (150 - 74 - 26)/2. The pause
    // frame follows the third packet, from 100,240 to 100,246.72 ns. Host 0 is resumed at 39 KB: 39 + 3 <= (150 - 39
    // - 26)/2, after the 38th service.
    let mut net = held_back(ps(100_000_000));
    net.at(Time::ZERO, |net, now| {
        let port = net.port(4, 3);
        net.fabric.start_pause_storm(now, port);
    });
    net.send_many(Time::ZERO, 24, data(1, 3, 1_000));
    net.send(ps(50_040_000), data(1, 3, 2_000));
    net.run();
    assert_eq!(resumed(&net, 0), ps(100_246_720 + 34 * 80_000 + 1_006_720));
    net.check_conservation();
}
