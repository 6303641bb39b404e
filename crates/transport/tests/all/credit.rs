//! Credit between two endpoints: the first window, grants, and recovery from the loss of packets of any kind.

use crate::pair::{Channel, MTU, Pair};
use pathweave_policy::cc::Window;
use pathweave_policy::{CreditConfig, CreditParams, MeasuredSection, PolicyEnv, Recovery};
use pathweave_transport::{Op, RetransmissionConfig, Status};
use pathweave_units::{Duration, Rate, Time};
use pathweave_wire::{Body, Control};
use proptest::prelude::*;

/// Round trip: 1 us in each direction.
const IDLE: Duration = Duration::from_us(2);
/// 100 Gb/s carry 25,000 bytes in 2 us, so a window is 37,500 bytes: 34 packets.
const LINE: Rate = Rate::from_gbps(100);

fn terms(config: CreditConfig) -> CreditParams {
    let env = PolicyEnv {
        line_rate: LINE,
        base_rtt: IDLE,
        mtu_wire_bytes: u32::from(MTU) + 98,
        mtu_payload_bytes: MTU.into(),
        paths: 1,
        measured: MeasuredSection::with_rtt(IDLE),
        edge: None,
    };
    config.terms(&env, LINE)
}

/// A WRITE of `packets` packets under receiver-granted credit.
fn writing(channel: Channel, credit: CreditConfig, packets: u64) -> Pair {
    let bytes = packets * u64::from(MTU);
    let mut pair = Pair::new(channel, bytes as usize, |config| {
        config.recovery = Recovery::Timed { reorder_packets: 0, window_packets: Some(4_096) };
        config.idle_rtt = IDLE;
        config.rto = RetransmissionConfig { timeout: Duration::from_us(50), ..RetransmissionConfig::SHORT };
        config.credit = Some(terms(credit));
        config.policy.window = 4_096;
    });
    let rkey = pair.open_memory(1);
    pair.post(0, 7, Op::Write { rkey, remote_addr: 0 }, 0, bytes);
    pair
}

/// Runs until the message has ended.
fn end(pair: &mut Pair) -> (Time, Status) {
    let limit = pair.now + Duration::from_ms(5_000);
    while pair.completions(0).is_empty() {
        assert!(pair.step(), "nothing will ever happen again");
        assert!(pair.now <= limit, "not done after {limit}");
    }
    (pair.now, pair.statuses(0)[0].1)
}

/// Number of packets of a kind that left a host.
fn count(pair: &Pair, of: usize, is: impl Fn(&Body) -> bool) -> usize {
    pair.trace.iter().filter(|(_, from, segment)| *from == of && is(&segment.body)).count()
}

fn is_pull(body: &Body) -> bool {
    matches!(body, Body::Control(Control::Pull { .. }))
}
fn is_request(body: &Body) -> bool {
    matches!(body, Body::Control(Control::PullRequest { .. }))
}

/// A channel that loses the packets for which `loses` holds.
fn losing(mut loses: impl FnMut(&Body) -> bool + 'static) -> Channel {
    let mut channel = Channel::new(1);
    channel.script = Some(Box::new(move |packet| Some(!loses(&packet.segment.body))));
    channel
}

#[test]
fn the_first_window_leaves_before_any_feedback() {
    let mut pair = writing(losing(|_| false), CreditConfig::rccc(), 20);
    assert_eq!(end(&mut pair).1, Status::Success);
    let mut data =
        pair.trace.iter().filter(|(_, from, segment)| *from == 0 && matches!(segment.body, Body::Data(_)));
    assert!(data.all(|(at, ..)| *at < Time::from_us(2)), "the first answer is there after 2 us");
    assert_eq!(count(&pair, 0, is_request), 0);
}

#[test]
fn beyond_the_first_window_nothing_leaves_without_a_grant() {
    let mut pair = writing(losing(is_pull), CreditConfig::rccc(), 100);
    while pair.now < Time::from_us(40) && pair.step() {}
    let data = count(&pair, 0, |body| matches!(body, Body::Data(_)));
    // 34 packets are a window. Credit that is unspent when the first acknowledgement arrives, after 23 packets,
    // lapses.
    assert!((20..=24).contains(&data), "{data} packets");
    assert!(count(&pair, 1, is_pull) > 0 && count(&pair, 0, is_request) > 0);
}

#[test]
fn pulls_and_requests_that_are_lost_are_said_again() {
    for lost in [1, 3, 10] {
        for of in [is_pull as fn(&Body) -> bool, is_request, |body| is_pull(body) || is_request(body)] {
            let mut left = lost;
            let channel = losing(move |body| {
                let loses = left > 0 && of(body);
                left -= u32::from(loses);
                loses
            });
            let mut pair = writing(channel, CreditConfig::rccc(), 300);
            assert_eq!(end(&mut pair).1, Status::Success, "{lost} lost");
        }
    }
}

#[test]
fn the_last_packet_is_granted_for_again() {
    for config in [CreditConfig::rccc(), CreditConfig::eqds(), CreditConfig::ndp()] {
        let mut channel = losing(|_| false);
        channel.trimmed = vec![199];
        let mut pair = writing(channel, config, 200);
        let (at, status) = end(&mut pair);
        assert_eq!((status, pair.counters(0).trimmed), (Status::Success, 1));
        assert!(at < Time::from_us(60), "{at}");
    }
}

#[test]
fn a_message_fails_when_nobody_grants_for_as_long_as_timeouts_last() {
    let mut pair = writing(losing(is_pull), CreditConfig::rccc(), 100);
    let (at, status) = end(&mut pair);
    assert_eq!(status, Status::RetryExceeded);
    // 50 us, doubled seven times.
    assert!(at > Time::from_us(50 * 255), "{at}");
}

#[test]
fn bounds_of_a_window_that_has_none_are_refused() {
    let config = CreditConfig { window: Window::Unlimited, ..CreditConfig::rccc() };
    assert!(config.validate().is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// On any channel, every byte arrives once and every message ends. (`Pair` compares the bytes.)
    #[test]
    fn every_message_ends(
        seed in any::<u64>(),
        kind in 0..3usize,
        packets in 1..400u64,
        loss in 0.0..0.2f64,
        trim in 0.0..0.3f64,
        duplicate in 0.0..0.1f64,
        jitter_ns in 0..3_000u64,
    ) {
        let mut channel = Channel::new(seed);
        (channel.loss, channel.trim, channel.duplicate) = (loss, trim, duplicate);
        channel.jitter = Duration::from_ns(jitter_ns);
        let config = [CreditConfig::rccc(), CreditConfig::eqds(), CreditConfig::ndp()][kind];
        let mut pair = writing(channel, config, packets);
        prop_assert_eq!(end(&mut pair).1, Status::Success);
        for host in &pair.hosts {
            host.endpoint.assert_invariants();
        }
    }
}
