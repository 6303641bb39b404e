//! Trimming: headers are forwarded when payloads have no room.

use crate::support::{Net, cable, control, data, leaf_spine, plain, ps, star};
use pathweave_fabric::config::{EcnConfig, ExternalConfig, NdtConfig, SwitchConfig, Thresholds, TrimConfig};
use pathweave_fabric::{ContentAccess, ContentView, DropReason, QueueingThresholds, Span, SwitchPosition};
use pathweave_units::{Bytes, Duration, Time, TrimmedAt};

fn trimming(queue: u64, headers: u64, arriving: f64) -> SwitchConfig {
    let trim = TrimConfig {
        enabled: true,
        queue: Bytes::new(queue),
        header_queue: Some(Bytes::new(headers)),
        arriving,
        thresholds: Thresholds::Fixed,
        ..TrimConfig::default()
    };
    SwitchConfig { trim, ..plain() }
}

/// Hosts 0 and 1 send `each` packets of 1000 B at once to host 2.
fn two_to_one(config: &SwitchConfig, each: u32, seed: u64) -> Net<2> {
    let mut net = Net::<2>::new(3, 1, &star(3, 100, 1_000), config, seed);
    net.send_many(Time::ZERO, each, data(0, 2, 1_000));
    net.send_many(Time::ZERO, each, data(1, 2, 1_000));
    net.run();
    net.check_conservation();
    net
}

fn trimmed_ids(net: &Net<2>) -> Vec<u32> {
    let mut ids: Vec<u32> = net.delivered.iter().filter(|d| d.trimmed.is_some()).map(|d| d.id).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn the_queue_by_hand() {
    // A pair arrives every 80 ns, the time that a packet takes. Packets waiting and in transmission grow by one a
    // pair. With room for 5, the second packet of pair 5 is one too many, and so is that of each later pair. Their
    // headers take 5.12 ns each and precede data. The packet begun behind two of them at 410 ns is still in
    // transmission when pair 7 arrives at 480 ns, so its first packet has no room either.
    let net = two_to_one(&trimming(5_000, 100_000, 1.0), 10, 1);
    assert_eq!(trimmed_ids(&net), [6, 10 + 4, 10 + 5, 10 + 6, 10 + 7, 10 + 8, 10 + 9]);
    assert!(net.drops().is_empty());
    let stats = net.fabric.stats(net.port(3, 2));
    assert_eq!((stats.trimmed_packets, stats.dropped_packets), (7, 0));
    // Headers precede data.
    let last = net.delivered.last().expect("some arrived");
    assert_eq!(last.trimmed, None);
}

#[test]
fn the_newest_in_the_queue_makes_room() {
    // As above, but the packet that arrived last is trimmed: the first of the pair, and for the first of pair 7 the
    // second of pair 6.
    let net = two_to_one(&trimming(5_000, 100_000, 0.0), 10, 1);
    assert_eq!(trimmed_ids(&net), [4, 5, 6, 7, 8, 9, 10 + 5]);
}

#[test]
fn half_of_the_trims_fall_on_what_arrives() {
    let net = two_to_one(&trimming(5_000, 10_000_000, 0.5), 5_000, 1);
    let trimmed = trimmed_ids(&net);
    // The second packet of each pair from the fifth on, and additional ones for the time that headers take.
    assert!((4_996..5_500).contains(&trimmed.len()), "{}", trimmed.len());
    // Mostly the second packet arrives and the first is the newest in the queue: half, with a standard deviation of
    // 37, and a few more.
    let arriving = trimmed.iter().filter(|&&id| id >= 5_000).count();
    assert!((2_300..3_000).contains(&arriving), "{arriving}");
    assert_eq!(trimmed, trimmed_ids(&two_to_one(&trimming(5_000, 10_000_000, 0.5), 5_000, 1)));
}

#[test]
fn a_header_without_room_is_lost_and_so_is_control() {
    // Nine hosts send to one, all at once: eight packets arrive while one is in transmission, and the queue has room
    // for one of them.
    let mut net = Net::<2>::new(11, 1, &star(11, 100, 1_000), &trimming(2_000, 200, 1.0), 1);
    (0..9).for_each(|host| _ = net.send(Time::ZERO, data(host, 10, 1_000)));
    // Three headers of 64 B wait for the end of the packet in transmission.
    net.send(ps(82_000), control(9, 10, 100));
    net.run();
    net.check_conservation();
    let reasons: Vec<DropReason> = net.drops().iter().map(|drop| drop.2).collect();
    assert_eq!(reasons[..4], [DropReason::HeaderQueue; 4]);
    assert_eq!(reasons[4..], [DropReason::Buffer]);
    assert_eq!(trimmed_ids(&net).len(), 3);
    let stats = net.fabric.stats(net.port(11, 10));
    assert_eq!((stats.trimmed_packets, stats.dropped_packets), (3, 5));
}

#[test]
fn where_it_was_trimmed_and_marked_shows() {
    // Leaves 8 and 9 with four hosts each, and one spine. Hosts 0 to 3 send to different hosts of the other leaf, so
    // the uplink is congested. Hosts 5 and 6 send to 7, so the last hop is congested.
    let mut config = trimming(3_000, 100_000, 1.0);
    config.ecn = EcnConfig {
        enabled: true,
        kmin: Bytes::new(0),
        kmax: Bytes::new(0),
        pmax: 1.0,
        thresholds: Thresholds::Fixed,
        ..EcnConfig::default()
    };
    let mut net = Net::<2>::new(8, 3, &leaf_spine(2, 4, 1, 100, 700), &config, 1);
    for src in 0..4 {
        net.send_many(Time::ZERO, 20, data(src, 4 + src % 3, 1_000));
    }
    net.send_many(Time::ZERO, 20, data(5, 7, 1_000));
    net.send_many(Time::ZERO, 20, data(6, 7, 1_000));
    net.run();
    net.check_conservation();
    for delivery in &net.delivered {
        let expected =
            if net.packets[delivery.id as usize].dst == 7 { TrimmedAt::LastHop } else { TrimmedAt::OnTheWay };
        assert!(delivery.trimmed.is_none_or(|at| at == expected), "{delivery:?}");
        // A packet not trimmed at the first switch may have been marked there. Headers are never marked later.
        assert!(delivery.trimmed.is_none() || delivery.hops >= 1);
    }
    let marked_headers = net.delivered.iter().filter(|d| d.trimmed.is_some() && d.marked).count();
    assert_eq!(
        marked_headers, 0,
        "the first switch marks what leaves its queue, and trims what does not get in"
    );
}

#[test]
fn a_mark_stays_where_the_payload_goes() {
    // Hosts 0 and 1 congest the uplink of leaf 4, which marks packets to host 2. Host 3 congests the link to 2
    // meanwhile.
    let mut config = trimming(40_000, 100_000, 1.0);
    config.ecn = EcnConfig {
        enabled: true,
        kmin: Bytes::new(1_000),
        kmax: Bytes::new(1_000),
        pmax: 1.0,
        thresholds: Thresholds::Fixed,
        ..EcnConfig::default()
    };
    let mut net = Net::<2>::new(4, 3, &leaf_spine(2, 2, 1, 100, 700), &config, 1);
    net.send_many(Time::ZERO, 60, data(0, 2, 1_000));
    net.send_many(Time::ZERO, 60, data(1, 2, 1_000));
    net.send_many(Time::ZERO, 120, data(3, 2, 1_000));
    net.run();
    net.check_conservation();
    let both = |d: &&crate::support::Delivery| d.trimmed == Some(TrimmedAt::LastHop) && d.marked;
    assert!(net.delivered.iter().filter(both).count() > 5);
}

/// A packet is marked if more than kmin remain behind it. A queue that is trimmed at 5,000 bytes has at most 4,000
/// behind a packet in transmission. With kmin at 4,000 nothing is marked; below it some packets are, but never a
/// header.
#[test]
fn marking_above_the_cap_marks_nothing() {
    for (kmin, marks) in [(4_000, false), (3_999, true)] {
        for arriving in [0.0, 0.5, 1.0] {
            let mut config = trimming(5_000, 100_000, arriving);
            config.ecn = EcnConfig {
                enabled: true,
                kmin: Bytes::new(kmin),
                kmax: Bytes::new(kmin),
                pmax: 1.0,
                thresholds: Thresholds::Fixed,
                ..EcnConfig::default()
            };
            let net = two_to_one(&config, 100, 1);
            assert!(!trimmed_ids(&net).is_empty());
            let marked = net.delivered.iter().filter(|d| d.marked);
            assert!(marked.clone().all(|d| d.trimmed.is_none()), "{kmin} {arriving}");
            assert_eq!(marked.count() > 0, marks, "{kmin} {arriving}");
        }
    }
}

/// Middlebox view: everything is data of one flow, except packet 20, an acknowledgement of data sent at 0.
fn look(id: &u32) -> ContentView {
    match id {
        20 => ContentView::Ack { flow: 7, echo: Time::ZERO },
        _ => ContentView::Data { flow: 7, sent_at: Time::ZERO },
    }
}

/// Hosts 0 and 1, of another site, send 10 packets each to host 2, behind a middlebox. The port has room for five, so
/// seven packets are removed from its queue. When all have left, the flow of host 0 is found congested. None of its
/// packets wait in the normal queue, so its next packet joins the controlled one.
#[test]
fn a_middlebox_hears_of_what_is_trimmed_in_its_queue() {
    let mut across = cable(3, 4, 400, 1_000);
    across.span = Span::Wan { pfc: false };
    let cables = [cable(0, 3, 100, 1_000), cable(1, 3, 100, 1_000), across, cable(2, 4, 100, 1_000)];
    let mut net = Net::<2>::new(3, 2, &cables, &trimming(5_000, 100_000, 0.0), 1);
    let lens = ContentAccess { look, restamp: |_, _| {}, answer: |id| *id, answer_bytes: 64 };
    let queued = QueueingThresholds { one_way: Duration::ZERO, round_trip: Duration::from_us(10) };
    let place = SwitchPosition { site: 0, queued, of_host: [1, 1, 0].into() };
    let external = ExternalConfig { ndt: Some(NdtConfig::default()), ..ExternalConfig::default() };
    net.fabric.attach_middlebox(1, &external, lens, place);
    net.send_many(Time::ZERO, 10, data(0, 2, 1_000));
    net.send_many(Time::ZERO, 10, data(1, 2, 1_000));
    net.send(Time::from_us(30), control(2, 0, 84));
    net.send(Time::from_us(40), data(0, 2, 1_000));
    net.run();
    net.check_conservation();
    assert_eq!(trimmed_ids(&net).len(), 7);
    let stats = net.fabric.middlebox_stats(1).and_then(|stats| stats.ndt).expect("it throttles");
    // The trimmed packets had joined the queue as data. Their headers count as data no more.
    assert_eq!((stats.data_packets, stats.isolated_flows), (21, 1));
    assert_eq!((stats.guarded_isolation, stats.controlled_packets), (0, 1));
}

#[test]
fn small_packets_and_what_fits_are_left_alone() {
    // With room for everything the switch behaves like one without trimming.
    let roomy = two_to_one(&trimming(1_000_000, 1_000_000, 0.5), 100, 1);
    let plain = two_to_one(&plain(), 100, 1);
    assert_eq!(roomy.delivered, plain.delivered);
    // Packets of 64 B cannot be trimmed further: they are dropped.
    let mut net = Net::<2>::new(3, 1, &star(3, 100, 1_000), &trimming(1_000, 100_000, 0.5), 1);
    net.send_many(Time::ZERO, 100, data(0, 2, 64));
    net.send_many(Time::ZERO, 100, data(1, 2, 64));
    net.run();
    net.check_conservation();
    assert!(trimmed_ids(&net).is_empty());
    assert!(!net.drops().is_empty() && net.drops().iter().all(|drop| drop.2 == DropReason::Buffer));
}

#[test]
fn invalid_values_are_named() {
    let complaint = |change: fn(&mut SwitchConfig)| {
        let mut config = trimming(5_000, 5_000, 0.5);
        change(&mut config);
        config.validate().expect_err("out of range").to_string()
    };
    assert!(complaint(|config| config.pfc.enabled = true).contains("trim.enabled"));
    assert!(complaint(|config| config.trim.queue = Bytes::new(10)).contains("trim.queue"));
    assert!(complaint(|config| config.trim.size = Bytes::new(10)).contains("trim.size"));
    assert!(complaint(|config| config.trim.arriving = 1.5).contains("trim.arriving"));
    assert!(
        complaint(|config| config.trim.header_queue = Some(Bytes::new(10))).contains("trim.header_queue")
    );
}
