//! Benchmark of the endpoint's cost per packet: send it, receive it and create its acknowledgement, process the
//! acknowledgement. `cargo bench -p pathweave-transport`.
#![allow(clippy::print_stdout, reason = "prints its result")]

use std::collections::VecDeque;
use std::time::{Duration as Wall, Instant};

use pathweave_policy::{
    Feedback, FeedbackKind, Grant, Memo, PathView, Policy, PolicyCx, Recovery, SendRequest, Sent,
};
use pathweave_transport::{
    Buffer, Endpoint, EndpointConfig, Event, FreePorts, Op, QpConfig, ReceiveMode, WorkRequest,
};
use pathweave_units::{Duration, HostId, PathId, QpNum, Rate, Time};
use pathweave_wire::Segment;

/// A constant window on one path.
struct Fixed {
    window: u32,
    inflight: u32,
}

impl Policy for Fixed {
    pathweave_policy::ignores!(
        on_open,
        on_close,
        make_control,
        on_copy_sent,
        on_control,
        window,
        path_beyond_window
    );
    fn poll_send(&mut self, _: Time, _: &SendRequest, _: &mut PolicyCx<'_>) -> Grant {
        if self.inflight < self.window { Grant::Send(PathId(0)) } else { Grant::Blocked }
    }
    fn on_sent(&mut self, _: Time, _: &Sent, _: &mut PolicyCx<'_>) -> Memo {
        self.inflight += 1;
        Memo(0)
    }
    fn on_feedback(&mut self, _: Time, feedback: &Feedback, _: &mut PolicyCx<'_>) {
        let of_packet =
            matches!(feedback.kind, FeedbackKind::Ack { .. } | FeedbackKind::Lost | FeedbackKind::Timeout);
        self.inflight -= u32::from(of_packet);
    }
    fn on_paths(&mut self, _: Time, _: &[PathView], _: &mut PolicyCx<'_>) {}
    fn on_timer(&mut self, _: Time, _: &mut PolicyCx<'_>) {}
    fn next_timer(&self) -> Option<Time> {
        None
    }
    fn rate(&self, _: Time) -> Option<Rate> {
        None
    }
}

const PACKETS: u32 = 4_000_000;
/// Packets handled per reading of the clock, so that the reading costs nothing.
const BATCH: usize = 32;

fn endpoints(qps: u32, window: u32) -> [Endpoint<Fixed>; 2] {
    let mut hosts = [0, 1].map(|host| Endpoint::new(EndpointConfig::new(HostId(host))));
    for _ in 0..qps {
        let nums: [QpNum; 2] = core::array::from_fn(|host| {
            let policy = Fixed { window, inflight: 0 };
            let mut config = QpConfig::new(HostId(1 - host as u32), policy, &[]);
            config.receive = ReceiveMode::Discard;
            config.recovery = Recovery::SelectiveRepeat {
                reorder_packets: 0,
                window_packets: Some(1_024),
                sender_window_packets: None,
            };
            hosts[host].create_qp(Time::ZERO, config)
        });
        hosts[0].connect(nums[0], nums[1]).unwrap();
        hosts[1].connect(nums[1], nums[0]).unwrap();
        let request = WorkRequest { wr_id: 0, op: Op::Send, local: Buffer(0), len: 1 << 32 };
        // A million packets each.
        (0..8).for_each(|_| hosts[0].post(Time::ZERO, nums[0], request).unwrap());
    }
    hosts
}

/// Keeps `window` packets of each of `qps` queue pairs in flight. `swap`: neighbouring packets overtake each other.
fn run(qps: u32, window: u32, swap: bool) {
    let [mut sender, mut receiver] = endpoints(qps, window);
    let (mut data, mut acks) = (VecDeque::<Segment>::new(), VecDeque::<Segment>::new());
    let mut now = Time::ZERO;
    let mut spent = [Wall::ZERO; 3];
    let mut packets = [0u32; 3];
    while packets[2] < PACKETS {
        now += Duration::from_us(1);
        let start = Instant::now();
        for _ in 0..BATCH {
            let Some(transmit) = sender.poll_transmit(now, FreePorts::OPEN) else { break };
            data.push_back(transmit.segment);
            packets[0] += 1;
        }
        spent[0] += start.elapsed();
        if swap {
            let len = data.len();
            (1..len).step_by(2).for_each(|i| data.swap(i - 1, i));
        }
        let start = Instant::now();
        while data.len() as u32 > window * qps - BATCH as u32 {
            let segment = data.pop_front().unwrap();
            receiver.on_packet(now, HostId(0), &segment, false);
            while let Some(transmit) = receiver.poll_transmit(now, FreePorts::CONTROL) {
                acks.push_back(transmit.segment);
            }
            while receiver.poll_event().is_some_and(|event| matches!(event, Event::Delivered { .. })) {}
            packets[1] += 1;
        }
        spent[1] += start.elapsed();
        let start = Instant::now();
        while let Some(segment) = acks.pop_front() {
            sender.on_packet(now, HostId(1), &segment, false);
            packets[2] += 1;
        }
        spent[2] += start.elapsed();
        if sender.poll_timer().is_some_and(|at| at <= now) {
            sender.on_timer(now);
        }
    }
    let ns = |i: usize| spent[i].as_nanos() as f64 / f64::from(packets[i]);
    println!(
        "{qps:>5} QPs, window {window:>3}, {}: send {:5.1} ns, receive and acknowledge {:5.1} ns, take ACK {:5.1} ns",
        if swap { "swapped " } else { "in order" },
        ns(0),
        ns(1),
        ns(2)
    );
}

fn main() {
    // The test runner starts benchmarks too.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    for (qps, window) in [(1, 128), (16, 128), (1_000, 64)] {
        run(qps, window, false);
        run(qps, window, true);
    }
}
