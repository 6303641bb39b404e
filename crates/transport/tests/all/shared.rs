//! Queue pairs of an endpoint whose policies share state.

use std::cell::Cell;
use std::rc::Rc;

use pathweave_policy::{Feedback, Grant, Memo, PathView, Policy, PolicyCx, QueuePairId, SendRequest, Sent};
use pathweave_transport::{
    Buffer, Endpoint, EndpointConfig, FreePorts, Op, QpConfig, ReceiveMode, WorkRequest,
};
use pathweave_units::{Duration, HostId, PathId, QpNum, Rate, Time};

/// A policy that sends while its gate is open, and otherwise asks for a distant time. Each acknowledgement opens the
/// gate and wakes `neighbour`.
struct Gated {
    open: Rc<Cell<bool>>,
    neighbour: QpNum,
    told: Rc<Cell<Option<QueuePairId>>>,
    closed: Rc<Cell<bool>>,
}

const LATER: Time = Time::from_us(1_000_000);

impl Policy for Gated {
    pathweave_policy::ignores!(make_control, on_copy_sent, on_control, window, path_beyond_window);
    fn on_open(&mut self, _: Time, member: &QueuePairId, _: &mut PolicyCx<'_>) {
        self.told.set(Some(*member));
    }
    fn on_close(&mut self, cx: &mut PolicyCx<'_>) {
        self.closed.set(true);
        cx.shared.request_poll(self.neighbour);
    }
    fn poll_send(&mut self, _: Time, want: &SendRequest, _: &mut PolicyCx<'_>) -> Grant {
        if self.open.get() && want.inflight_packets == 0 { Grant::Send(PathId(0)) } else { Grant::At(LATER) }
    }
    fn on_sent(&mut self, _: Time, _: &Sent, _: &mut PolicyCx<'_>) -> Memo {
        self.open.set(false);
        Memo(0)
    }
    fn on_feedback(&mut self, _: Time, _: &Feedback, cx: &mut PolicyCx<'_>) {
        self.open.set(true);
        cx.shared.request_poll(self.neighbour);
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

struct Bed {
    hosts: [Endpoint<Gated>; 2],
    qps: [[QpNum; 2]; 2],
    open: Rc<Cell<bool>>,
    told: Rc<Cell<Option<QueuePairId>>>,
    closed: Rc<Cell<bool>>,
}

/// Host 0 with two queue pairs to host 1, which wake each other.
fn bed() -> Bed {
    let (open, told, closed) = <(Rc<Cell<bool>>, Rc<Cell<Option<QueuePairId>>>, Rc<Cell<bool>>)>::default();
    let mut hosts = [0, 1].map(|host| Endpoint::new(EndpointConfig::new(HostId(host))));
    let mut qps = [[QpNum(0); 2]; 2];
    for (host, endpoint) in hosts.iter_mut().enumerate() {
        // Numbers are assigned in order, from 2.
        for (i, neighbour) in [QpNum(3), QpNum(2)].into_iter().enumerate() {
            let (open, told, closed) = (open.clone(), told.clone(), closed.clone());
            let policy = Gated { open, neighbour, told, closed };
            let peer = HostId(1 - host as u32);
            let config = QpConfig { receive: ReceiveMode::Discard, ..QpConfig::new(peer, policy, &[]) };
            qps[host][i] = endpoint.create_qp(Time::ZERO, config);
        }
    }
    for (here, there) in qps[0].into_iter().zip(qps[1]) {
        hosts[0].connect(here, there).unwrap();
        hosts[1].connect(there, here).unwrap();
    }
    assert_eq!(qps[0], [QpNum(2), QpNum(3)]);
    Bed { hosts, qps, open, told, closed }
}

impl Bed {
    fn post(&mut self, now: Time, i: usize) {
        let request = WorkRequest { wr_id: i as u64, op: Op::Send, local: Buffer(0), len: 100 };
        self.hosts[0].post(now, self.qps[0][i], request).unwrap();
    }
    /// Queue pair whose packet leaves now.
    fn sender(&mut self, now: Time) -> Option<QpNum> {
        let packet = self.hosts[0].poll_transmit(now, FreePorts::OPEN)?;
        self.hosts[1].on_packet(now, HostId(0), &packet.segment, false);
        Some(packet.segment.src_qp)
    }
    fn acknowledge(&mut self, now: Time) {
        let ack = self.hosts[1]
            .poll_transmit(now, FreePorts::CONTROL)
            .expect("an acknowledgement for every packet");
        self.hosts[0].on_packet(now, HostId(1), &ack.segment, false);
    }
}

#[test]
fn feedback_on_one_queue_pair_wakes_another_that_was_told_to_wait() {
    let mut bed = bed();
    let (start, later) = (Time::from_us(1), Time::from_us(1) + Duration::from_us(5));
    (0..2).for_each(|i| bed.post(start, i));
    assert_eq!(bed.told.get().map(|member| (member.qp, member.peer)), Some((QpNum(3), HostId(0))));
    assert_eq!(bed.sender(start), None, "the gate is closed: both are paced");
    bed.open.set(true);
    assert_eq!(bed.sender(start), None, "nobody has told them");
    // An event for the first queue pair: its paths change.
    let view = PathView::new(PathId(0), pathweave_policy::PathState::Up);
    bed.hosts[0].set_paths(start, QpNum(2), &[view]).unwrap();
    assert_eq!(bed.sender(start), Some(QpNum(2)));
    bed.acknowledge(later);
    assert_eq!(bed.sender(later), Some(QpNum(3)), "long before its instant");
    bed.hosts[0].assert_invariants();
}

#[test]
fn a_queue_pair_that_closes_tells_its_policy_and_its_neighbours() {
    let mut bed = bed();
    bed.post(Time::ZERO, 1);
    assert_eq!(bed.sender(Time::ZERO), None);
    bed.open.set(true);
    bed.hosts[0].destroy_qp(QpNum(2)).unwrap();
    assert!(bed.closed.get());
    assert_eq!(bed.sender(Time::ZERO), Some(QpNum(3)));
    // Waking a destroyed queue pair does no harm.
    bed.acknowledge(Time::from_us(1));
}
