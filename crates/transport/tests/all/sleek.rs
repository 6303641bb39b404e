//! SLEEK between two endpoints: a gap that is proven, a tail that a probe finds, a lost window that does not block
//! itself.

use crate::pair::{Channel, MTU, Pair};
use pathweave_policy::{AckPolicy, Recovery};
use pathweave_transport::{Op, RetransmissionConfig, Status};
use pathweave_units::{Bytes, Duration, PathId, Time};
use pathweave_wire::{Body, Control, Segment};

fn us(n: u64) -> Duration {
    Duration::from_us(n)
}

/// A WRITE of `packets` packets with this window and a round trip of 2 us, in which the policy's delay target is 2
/// us. The timer would take a second.
fn writing(
    drops: impl FnMut(u64, bool, u16) -> bool + 'static,
    packets: u64,
    window: u32,
    paths: u16,
) -> Pair {
    let mut drops = drops;
    let mut channel = Channel::new(1);
    channel.script = Some(Box::new(move |packet| match packet.segment.body {
        Body::Data(data) => Some(!drops(data.psn, data.retransmit, packet.segment.path.0)),
        Body::Control(Control::Probe { .. }) => Some(!drops(u64::MAX, false, packet.segment.path.0)),
        _ => None,
    }));
    let bytes = packets * u64::from(MTU);
    let mut pair = Pair::new(channel, bytes as usize, |config| {
        config.recovery = Recovery::sleek().with_window_packets(512);
        config.rto = RetransmissionConfig { timeout: us(1_000_000), ..RetransmissionConfig::SHORT };
        (config.policy.window, config.policy.paths) = (window, paths);
    });
    let rkey = pair.open_memory(1);
    pair.post(0, 7, Op::Write { rkey, remote_addr: 0 }, 0, bytes);
    pair
}

fn done_at(pair: &mut Pair) -> Time {
    while pair.completions(0).is_empty() {
        assert!(pair.step(), "nothing will ever happen again");
        assert!(pair.now < Time::from_us(1_000), "not done after a millisecond");
    }
    assert_eq!(pair.statuses(0), [(7, Status::Success)]);
    pair.now
}

/// Departures of probes in nanoseconds, and their paths.
fn probes(pair: &Pair) -> Vec<(u64, PathId)> {
    let of = |(at, from, segment): &(Time, usize, Segment)| match segment.body {
        Body::Control(Control::Probe { .. }) if *from == 0 => Some((at.as_ps() / 1_000, segment.path)),
        _ => None,
    };
    pair.trace.iter().filter_map(of).collect()
}

/// The largest window is eight packets, so eight ahead prove the loss of PSN 3. Seven circulate beside it.
#[test]
fn packets_ahead_of_a_gap_prove_it_before_any_probe() {
    let mut pair = writing(|psn, again, _| psn == 3 && !again, 40, 8, 1);
    done_at(&mut pair);
    let counters = pair.counters(0);
    assert_eq!((counters.retransmitted_packets, counters.timeouts), (1, 0));
    assert!(probes(&pair).is_empty(), "{:?}", probes(&pair));
}

/// A probe leaves one base round trip and the target after the last acknowledgement. Packets that it proves lost are
/// retransmitted when its answer arrives.
#[test]
fn a_probe_finds_a_lost_tail() {
    let mut pair = writing(|psn, again, _| psn == 9 && !again, 10, 16, 1);
    let done = done_at(&mut pair);
    let found = probes(&pair);
    assert_eq!((found.len(), pair.counters(0).retransmitted_packets, pair.counters(0).timeouts), (1, 1, 0));
    // Packets of 1,108 bytes leave 88.64 ns apart. The ninth is acknowledged 2 us after it left. The probe leaves 4
    // us later.
    assert_eq!(found[0].0, 6_709);
    assert_eq!(done.as_ps() / 1_000, 10_709, "2 us for the probe, 2 us for the packet");
}

#[test]
fn a_window_lost_as_a_whole_does_not_block_itself() {
    let mut pair = writing(|psn, again, _| psn < 16 && !again, 64, 16, 2);
    let done = done_at(&mut pair);
    assert_eq!((pair.counters(0).retransmitted_packets, pair.counters(0).timeouts), (16, 0));
    // Three base round trips to the probe, its round trip, and then window after window.
    assert!(done < Time::from_us(30), "{done}");
}

/// The probe's own path is dead: the next probe, five base round trips later, takes another one.
#[test]
fn probes_in_a_row_change_paths() {
    let mut pair = writing(|psn, again, path| path == 1 || psn == 8 && !again, 9, 16, 3);
    done_at(&mut pair);
    let found = probes(&pair);
    assert!(found.len() <= 3 && found.iter().any(|(_, path)| *path != PathId(1)), "{found:?}");
    assert_eq!(pair.counters(0).timeouts, 0);
}

/// Delayed acknowledgements would make a probe prove false losses: a delayed one leaves before the answer.
#[test]
fn probes_are_answered_with_the_received_packets() {
    let mut channel = Channel::new(1);
    channel.script = None;
    let mut pair = Pair::new(channel, 8 * usize::from(MTU), |config| {
        config.recovery = Recovery::sleek().with_window_packets(512);
        config.rto = RetransmissionConfig { timeout: us(1_000_000), ..RetransmissionConfig::SHORT };
        config.acks = AckPolicy { every_packets: 64, ..AckPolicy::by_bytes(Bytes::new(1_000_000), us(500)) };
        // The pace lets probes leave between packets, which are not acknowledged before half a millisecond.
        config.policy.window = 64;
        config.policy.gap = us(7);
    });
    let rkey = pair.open_memory(1);
    pair.post(0, 7, Op::Write { rkey, remote_addr: 0 }, 0, 8 * u64::from(MTU));
    done_at(&mut pair);
    assert!(!probes(&pair).is_empty());
    assert_eq!(pair.counters(0).retransmitted_packets, 0);
}
