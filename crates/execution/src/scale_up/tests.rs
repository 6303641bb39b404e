use std::path::Path;
use std::sync::Arc;

use pathweave_policy::Service;
use pathweave_topo::{
    Build, Cluster, EqualLinks, ScaleUpConfig, Server, Star, SwitchLinks, TopologyConfig, TorusLinks,
};
use pathweave_units::{Bytes, Rate};
use pathweave_workload::{GraphBuilder, NewMessage, Stream};

use super::*;
use crate::connections::Connections;
use crate::execution::GroupSpec;

fn carrier(gpus: u32, scale_up: ScaleUpConfig) -> ScaleUpCarrier {
    carrier_with(gpus, scale_up, &[])
}

fn carrier_with(gpus: u32, scale_up: ScaleUpConfig, changes: &[ScaleUpChange]) -> ScaleUpCarrier {
    let server = Server { gpus: Some(gpus), nics: Some(1), scale_up: Some(scale_up), ..Server::default() };
    let cluster = Cluster::new(2, server, TopologyConfig::Star(Star::new(2)));
    let topology = cluster.build(Path::new("")).expect("two servers");
    ScaleUpCarrier::new(topology.scale_up().expect("given").clone(), changes)
}

/// Returns a message of a connection of its own.
fn message(flow: u32, src: u32, dst: u32, bytes: u64) -> ScaleUpMessage {
    ScaleUpMessage { flow, src: HostId(src), dst: HostId(dst), bytes, connection: 1_000 + flow }
}

/// Returns a message from GPU 0 to GPU 1.
fn on(connection: ConnId, flow: u32, bytes: u64) -> ScaleUpMessage {
    ScaleUpMessage { connection, ..message(flow, 0, 1, bytes) }
}

/// Returns a switch whose GPUs send and receive 12.5 kB a microsecond.
fn switch() -> ScaleUpConfig {
    ScaleUpConfig::Switch(SwitchLinks::new(Rate::from_gbps(100)))
}

/// Returns a mesh whose links carry 12.5 kB a microsecond.
fn mesh() -> ScaleUpConfig {
    ScaleUpConfig::FullMesh(EqualLinks::new(Rate::from_gbps(100)))
}

/// Returns the arrival time of each message in nanoseconds, by number.
fn play(mut carrier: ScaleUpCarrier, posts: &[(u64, ScaleUpMessage)]) -> Vec<u64> {
    let mut arrivals = Vec::new();
    for &(ns, message) in posts {
        let now = Time::ZERO + Duration::from_ns(ns);
        carrier.advance(now + carrier.delay(), &mut arrivals);
        carrier.post(now, message);
    }
    carrier.advance(Time::MAX, &mut arrivals);
    let mut times: Vec<(u32, u64)> =
        arrivals.iter().map(|arrival| (arrival.message.flow, arrival.at.as_ps() / 1_000)).collect();
    times.sort_unstable();
    times.into_iter().map(|(_, at)| at).collect()
}

fn h100() -> ScaleUpConfig {
    ScaleUpConfig::Switch(SwitchLinks {
        efficiency: 0.82,
        chips: 4,
        ..SwitchLinks::new(Rate::from_gbps(3_600))
    })
}

/// Seven GPUs send 1 GB each to the eighth, whose ingress has 450 x 0.82 = 369 GB/s: 7 GB take 18.970 ms.
#[test]
fn seven_to_one() {
    let posts: Vec<_> = (0..7).map(|src| (0, message(src, src, 7, 1_000_000_000))).collect();
    let times = play(carrier(8, h100()), &posts);
    assert!(times.iter().all(|at| at.abs_diff(18_970_190 + 250) < 20), "{times:?}");
}

/// A pair of MI300X: 1 GB over a link of which 48 GB/s are usable takes 20.833 ms. Another pair does not disturb
/// it.
#[test]
fn a_pair_of_a_full_mesh() {
    let mesh =
        ScaleUpConfig::FullMesh(EqualLinks { efficiency: 0.75, ..EqualLinks::new(Rate::from_gbps(512)) });
    let posts = [(0, message(0, 0, 5, 1_000_000_000)), (0, message(1, 0, 6, 1_000_000_000))];
    let times = play(carrier(8, mesh), &posts);
    assert_eq!(times, [20_833_583, 20_833_583]);
}

/// Egress of 100 Gb/s, 12.5 bytes a nanosecond. The first message of 125 kB is alone for 5 us (62.5 kB), then both
/// have half: it ends after 10 us more, when the second has 62.5 kB left, which take 5 us alone.
#[test]
fn messages_share_as_long_as_both_move() {
    let posts = [(0, message(0, 0, 1, 125_000)), (5_000, message(1, 0, 2, 125_000))];
    assert_eq!(play(carrier(4, switch()), &posts), [15_250, 20_250]);
}

fn change(us: u64, domain: u32, kind: ScaleUpPartKind, action: ScaleUpAction) -> ScaleUpChange {
    ScaleUpChange { at: Time::ZERO + Duration::from_us(us), part: ScaleUpPart { domain, kind }, action }
}

fn change_at_ns(ns: u64, kind: ScaleUpPartKind, action: ScaleUpAction) -> ScaleUpChange {
    ScaleUpChange { at: Time::ZERO + Duration::from_ns(ns), ..change(0, 0, kind, action) }
}

/// With one of four chips down from the start, seven to one take 4/3 of 18.970 ms. If the chip fails after 10 ms,
/// the rest takes 4/3 of 8.970 ms; if it is repaired 3 ms later, in which 2.25 ms of the work are done, the rest
/// takes its usual time.
#[test]
fn a_chip_takes_a_quarter_of_the_rest() {
    use ScaleUpAction::{Down, Up};
    let chip = ScaleUpPartKind::Chip(1);
    let posts: Vec<_> = (0..7).map(|src| (0, message(src, src, 7, 1_000_000_000))).collect();
    let usual_ns = 18_970_190.0;
    for (changes, ends_ns) in [
        (vec![change(0, 0, chip, Down)], usual_ns * 4.0 / 3.0),
        (vec![change(10_000, 0, chip, Down)], 1e7 + (usual_ns + 250.0 - 1e7) * 4.0 / 3.0 - 250.0),
        (vec![change(10_000, 0, chip, Down), change(13_000, 0, chip, Up)], usual_ns + 750_000.0),
        (vec![change(0, 1, chip, Down)], usual_ns),
        (vec![change(30_000, 0, chip, Down)], usual_ns),
    ] {
        let times = play(carrier_with(8, h100(), &changes), &posts);
        let near = |at: &u64| (*at as f64 - ends_ns - 250.0).abs() < 100.0;
        assert!(times.iter().all(near), "{changes:?}: {times:?}, not {ends_ns}");
    }
}

/// Three GPUs in a mesh, 12.5 kB a microsecond a link. The link from 0 to 1 fails after 4.25 us: of 100 kB,
/// 50 kB have passed, and the rest goes over GPU 2, where it shares the link to GPU 1 with another message of
/// 100 kB that has 50 kB left. Both end 8 us later. Without any path a message waits for the repair.
#[test]
fn a_message_goes_around_a_link_that_fails() {
    use ScaleUpAction::{Down, Up};
    let link = ScaleUpPartKind::Link;
    let at = change_at_ns;
    let posts = [(0, message(0, 0, 1, 100_000)), (0, message(1, 2, 1, 100_000))];
    let fails = [at(4_250, link(0, 1), Down)];
    assert_eq!(play(carrier_with(3, mesh(), &fails), &posts), [12_250, 12_250]);
    let isolated = [at(4_250, link(0, 1), Down), at(4_250, link(0, 2), Down), at(100_000, link(0, 1), Up)];
    assert_eq!(play(carrier_with(3, mesh(), &isolated), &posts), [104_000, 8_250]);
    // Of four, the detour has two paths of 100 Gb/s each, but the message had 100 Gb/s.
    let alone = [(0, message(0, 0, 1, 100_000))];
    assert_eq!(play(carrier_with(4, mesh(), &fails), &alone), [8_250]);
    let slow = [at(4_250, link(0, 1), ScaleUpAction::Rate(Some(Rate::from_gbps(50))))];
    assert_eq!(play(carrier_with(3, mesh(), &slow), &posts), [12_250, 8_250]);
}

/// Domains do not share anything, and the ideal time is that of a message alone.
#[test]
fn domains_are_apart() {
    let carrier = carrier(8, h100());
    let ideal = carrier.ideal(HostId(0), HostId(1), 1_000_000);
    let posts = [(0, message(0, 0, 1, 1_000_000)), (0, message(1, 8, 9, 1_000_000))];
    let times = play(carrier, &posts);
    assert_eq!(times, [ideal.as_ps() / 1_000; 2]);
}

/// Each message takes 10 us at the full rate. On one connection they follow one another, and on two they share.
#[test]
fn a_connection_moves_its_messages_in_order() {
    let posts = |second| [(0, on(0, 0, 125_000)), (0, on(second, 1, 125_000))];
    assert_eq!(play(carrier(4, switch()), &posts(0)), [10_250, 20_250]);
    assert_eq!(play(carrier(4, switch()), &posts(1)), [20_250, 20_250]);
}

/// The path from GPU 0 to GPU 1 carries 12.5 kB a microsecond in each of these networks.
#[test]
fn the_order_is_that_of_every_network() {
    let rate = Rate::from_gbps(100);
    let EqualLinks { delay, efficiency, packets, .. } = EqualLinks::new(rate);
    let torus = ScaleUpConfig::Torus(TorusLinks { dims: vec![4, 4], rate, delay, efficiency, packets });
    for (gpus, network) in
        [(8, switch()), (8, mesh()), (8, ScaleUpConfig::Ring(EqualLinks::new(rate))), (16, torus)]
    {
        let posts: Vec<_> = (0..4).map(|flow| (0, on(0, flow, 125_000))).collect();
        assert_eq!(play(carrier(gpus, network.clone()), &posts), [10_250, 20_250, 30_250, 40_250]);
        let shared: Vec<_> = (0..4).map(|flow| (0, on(flow, flow, 125_000))).collect();
        assert_eq!(play(carrier(gpus, network), &shared), [40_250; 4]);
    }
}

/// A connection has one share, whatever waits on it. Its first message and that of another connection have half of the
/// egress of GPU 0 for 20 us. The other three have all of it.
#[test]
fn what_waits_takes_no_share() {
    let mut posts: Vec<_> = (0..4).map(|flow| (0, on(0, flow, 125_000))).collect();
    posts.push((0, message(4, 0, 2, 125_000)));
    assert_eq!(play(carrier(4, switch()), &posts), [20_250, 30_250, 40_250, 50_250, 20_250]);
}

/// The second message is posted while the first moves, and waits for its end at 10.25 us. The third is posted 5 us
/// before the second ends, and the fourth when nothing moves.
#[test]
fn a_message_that_is_posted_later_waits() {
    let at = [0, 5_000, 15_250, 40_000];
    let posts: Vec<_> = at.into_iter().zip(0..).map(|(ns, flow)| (ns, on(0, flow, 125_000))).collect();
    assert_eq!(play(carrier(4, switch()), &posts), [10_250, 20_250, 30_250, 50_250]);
}

/// The first message moves until 10.25 us. One posted at 9.9 us is ready at 10.15 us, before that, and loses nothing.
/// One posted at 10.1 us is ready at 10.35 us.
#[test]
fn the_latency_passes_while_an_earlier_message_moves() {
    for (posted_ns, arrives_ns) in [(9_900, 20_250), (10_000, 20_250), (10_100, 20_350)] {
        let posts = [(0, on(0, 0, 125_000)), (posted_ns, on(0, 1, 125_000))];
        assert_eq!(play(carrier(4, switch()), &posts), [10_250, arrives_ns]);
    }
}

/// Returns the time in nanoseconds at which the last of `chunks` chunks of 12.5 kB, 1 us each, has passed a chain of
/// GPUs. A GPU forwards a chunk when it has arrived.
fn chain(network: ScaleUpConfig, hops: u32, chunks: u32) -> u64 {
    let mut carrier = carrier(8, network);
    let chunk = |number, hop| ScaleUpMessage { connection: hop, ..message(number, hop, hop + 1, 12_500) };
    (0..chunks).for_each(|number| carrier.post(Time::ZERO, chunk(number, 0)));
    let mut last = Time::ZERO;
    while carrier.next() < Time::MAX {
        let mut arrivals = Vec::new();
        carrier.advance(carrier.next() + Duration::from_ps(1), &mut arrivals);
        for ScaleUpArrival { at, message: ScaleUpMessage { flow, dst, .. } } in arrivals {
            last = at;
            if dst.0 < hops {
                carrier.post(at, chunk(flow, dst.0));
            }
        }
    }
    last.as_ps() / 1_000
}

/// `chunks` chunks over `hops` hops take chunks + hops - 1 times the time of one, and the latency of each hop once.
#[test]
fn a_chain_is_a_pipeline() {
    for (hops, chunks) in [(1, 1), (7, 1), (1, 8), (7, 8), (7, 100)] {
        let expected = u64::from(chunks + hops - 1) * 1_000 + u64::from(hops) * 250;
        for network in [switch(), mesh()] {
            assert_eq!(chain(network, hops, chunks), expected, "{chunks} chunks over {hops} hops");
        }
    }
}

/// A GPU sends 64 chunks to each of two others, as in a tree. Each connection has half of the egress, so that a chunk
/// of 1 us arrives every 2 us on each of them.
#[test]
fn two_connections_of_a_gpu_progress_alike() {
    let chunk = |flow| ScaleUpMessage { connection: flow % 2, ..message(flow, 0, 1 + flow % 2, 12_500) };
    let posts: Vec<_> = (0..128).map(|flow| (0, chunk(flow))).collect();
    let expected: Vec<u64> = (0..128).map(|flow| 2_000 * (flow / 2 + 1) + 250).collect();
    assert_eq!(play(carrier(4, switch()), &posts), expected);
}

/// Three messages of 125 kB. At 14.25 us, 4 us after the start of the second, the link slows down to half: its rest of
/// 75 kB takes 12 us, and the third takes 20 us. If the rate returns at 36.25 us, half of the third is left, for 5 us.
/// A change at the end of the first message applies to the second from its start.
#[test]
fn the_rate_changes_while_messages_wait() {
    let posts: Vec<_> = (0..3).map(|flow| (0, on(0, flow, 125_000))).collect();
    let rate = |ns, gbps: Option<u64>| {
        let action = ScaleUpAction::Rate(gbps.map(Rate::from_gbps));
        change_at_ns(ns, ScaleUpPartKind::Link(0, 1), action)
    };
    let slow = rate(14_250, Some(50));
    for (changes, expected) in [
        (vec![slow], [10_250, 26_250, 46_250]),
        (vec![slow, rate(36_250, None)], [10_250, 26_250, 41_250]),
        (vec![rate(10_250, Some(50))], [10_250, 30_250, 50_250]),
    ] {
        assert_eq!(play(carrier_with(3, mesh(), &changes), &posts), expected, "{changes:?}");
    }
}

/// GPU 0 loses both links 5 us after the start of the first message, until 100 us. The message then needs 5 us more,
/// and those behind it 10 us each, also the one that is posted in the meantime.
#[test]
fn a_cut_holds_up_what_waits() {
    use ScaleUpAction::{Down, Up};
    let link = ScaleUpPartKind::Link;
    let changes = [(5_250, link(0, 1), Down), (5_250, link(0, 2), Down), (100_000, link(0, 1), Up)];
    let changes = changes.map(|(ns, kind, action)| change_at_ns(ns, kind, action));
    let posts = [(0, on(0, 0, 125_000)), (0, on(0, 1, 125_000)), (50_000, on(0, 2, 125_000))];
    assert_eq!(play(carrier_with(3, mesh(), &changes), &posts), [105_000, 115_000, 125_000]);
}

/// A message of zero bytes arrives when it is ready, or with the message before it.
#[test]
fn messages_of_zero_bytes_keep_their_places() {
    let posts = |sizes: &[u64]| -> Vec<_> {
        sizes.iter().zip(0..).map(|(&bytes, flow)| (0, on(0, flow, bytes))).collect()
    };
    assert_eq!(play(carrier(4, switch()), &posts(&[0])), [250]);
    assert_eq!(play(carrier(4, switch()), &posts(&[0, 0, 125_000])), [250, 250, 10_250]);
    let last = posts(&[125_000, 0, 0, 125_000, 0]);
    assert_eq!(play(carrier(4, switch()), &last), [10_250, 10_250, 10_250, 20_250, 20_250]);
}

/// Lets 1000 messages on each of three connections pass, in windows of `window_ns`, and returns the arrivals.
fn many(window_ns: u64) -> (Vec<ScaleUpArrival>, u64) {
    let mut carrier = carrier(4, h100());
    for flow in 0..3_000 {
        let of = |connection| ScaleUpMessage {
            connection,
            ..message(flow, connection, 3, 1_000 + 7 * u64::from(flow))
        };
        carrier.post(Time::ZERO, of(flow % 3));
    }
    let (mut arrivals, mut end) = (Vec::new(), Time::ZERO);
    while carrier.next() < Time::MAX {
        end += Duration::from_ns(window_ns);
        carrier.advance(end, &mut arrivals);
        let moving = carrier.domains[&0].moving.len();
        assert!(moving <= 3, "one message moves on each connection, and not {moving}");
    }
    (arrivals, carrier.events())
}

/// The windows in which time passes change nothing. Each message begins and arrives once.
#[test]
fn windows_change_nothing() {
    let (arrivals, events) = many(100);
    assert_eq!((arrivals.len(), events), (3_000, 6_000));
    assert_eq!((arrivals.clone(), events), many(1_000_000));
    for connection in 0..3 {
        let of = arrivals.iter().map(|arrival| arrival.message).filter(|of| of.connection == connection);
        assert!(of.map(|of| of.flow).is_sorted());
    }
}

/// Messages that are posted at the same time move by their numbers, whatever the order of the calls.
#[test]
fn the_order_of_calls_does_not_matter() {
    let sizes = [125_000, 250_000, 0, 62_500];
    let posts: Vec<_> = sizes.into_iter().zip(0..).map(|(bytes, flow)| (0, on(0, flow, bytes))).collect();
    let expected = [10_250, 30_250, 30_250, 35_250];
    assert_eq!(play(carrier(4, switch()), &posts), expected);
    let backwards: Vec<_> = posts.into_iter().rev().collect();
    assert_eq!(play(carrier(4, switch()), &backwards), expected);
}

/// Five messages of 12.5 kB from GPU 0 to GPU 1, 1 us each: two of a stream, two of another stream, and one of its own.
/// The first of each connection has a third of the rate for 3 us. The other two have half of it for 2 us.
#[test]
fn streams_of_an_execution_share() {
    let mut builder = GraphBuilder::new(8);
    let group = builder.group("group", None).expect("the first");
    let (src, dst, size, start) = (HostId(0), HostId(1), Bytes::new(12_500), Time::ZERO);
    let streams = [0, 1].map(Stream::Shared);
    for stream in streams.into_iter().chain(streams).chain([Stream::Own]) {
        let new = NewMessage { src, dst, size, start, group, stream, job: None };
        builder.message(new).expect("two hosts");
    }
    let graph = Arc::new(builder.finish().expect("five messages"));
    let connections = Connections::<()>::new(&graph, |_| &Service::Connection);
    let mut execution = Execution::new(graph, &[GroupSpec::new(0)], connections, Duration::from_us(1));
    let mut carrier = carrier(4, switch());
    while let Some(due) = execution.root_before(Time::MAX) {
        let flow = execution.step(due.at, due.host, due.step).expect("a message");
        assert!(execution.post_over(&mut carrier, due.at, flow));
    }
    let mut arrivals = Vec::new();
    carrier.advance(Time::MAX, &mut arrivals);
    let mut times: Vec<u64> = arrivals.iter().map(|arrival| arrival.at.as_ps() / 1_000).collect();
    times.sort_unstable();
    assert_eq!(times, [3_250, 3_250, 3_250, 5_250, 5_250]);
}
