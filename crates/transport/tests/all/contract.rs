//! The contract of [`Transport`], checked for both services under every scheme: a random story over a network that
//! loses, duplicates, reorders and marks packets. The contract is checked after each step.

use std::collections::{BTreeMap, BTreeSet};

use pathweave_policy::{AnyPolicy, MeasuredSection, PolicyEnv, Repair, Scheme, Service, schemes};
use pathweave_transport::rd::{RdQp, SideMessage};
use pathweave_transport::{Class, Endpoint, FreePorts, RetransmissionConfig, Status, Transmit};
use pathweave_units::{Duration, HostId, QpNum, Rate, Rng, Time};
use pathweave_wire::{Body, Control, Segment};

use crate::services::{Setting, Subject, Told};

const MTU: u16 = 1_024;
const RATE: Rate = Rate::from_gbps(100);
const DELAY: Duration = Duration::from_us(5);
const RTT: Duration = Duration::from_us(12);
const PATHS: u16 = 4;
const PORTS: u8 = 2;
/// Probabilities that the network loses, duplicates and marks a packet.
const CHANCES: [f64; 3] = [0.03, 0.03, 0.1];
/// Number of messages of a round.
const MESSAGES: u64 = 60;
/// Upper bound of a round's duration.
const LONGEST_ROUND: Duration = Duration::from_ms(2_000);

enum Input {
    Packet(Segment, u64),
    Side(SideMessage),
}

/// Expected results for the messages of one host.
#[derive(Default)]
struct Expected {
    /// Lengths of the messages, by number.
    posted: Vec<u64>,
    delivered: BTreeSet<u64>,
    completed: BTreeSet<u64>,
    placed_bytes: u64,
}

struct Story<T> {
    hosts: [T; 2],
    qps: [QpNum; 2],
    now: Time,
    free_at: [[Time; PORTS as usize]; 2],
    /// Inputs in flight by arrival time and order of sending: destination and input.
    wire: BTreeMap<(Time, u64), (usize, Input)>,
    sent: u64,
    rng: Rng,
    /// Expectations for each host's messages. Numbers continue from round to round.
    expected: [Expected; 2],
    first: u64,
    reliable: bool,
}

impl<T: Subject> Story<T> {
    fn new(scheme: &Scheme, seed: u64) -> Self {
        let env = PolicyEnv {
            line_rate: RATE,
            base_rtt: RTT,
            mtu_wire_bytes: 1_120,
            mtu_payload_bytes: MTU.into(),
            paths: PATHS,
            measured: MeasuredSection::with_rtt(RTT),
            edge: None,
        };
        let rto = RetransmissionConfig {
            timeout: Duration::from_us(200),
            retry_limit: 50,
            ..RetransmissionConfig::SHORT
        };
        let (hosts, qps) = T::pair(&Setting { scheme, env, nic_ports: PORTS, rto, seed });
        let reliable = !matches!(scheme.service, Service::Datagram(config) if config.repair == Repair::Never);
        Story {
            hosts,
            qps,
            now: Time::ZERO,
            free_at: Default::default(),
            wire: BTreeMap::new(),
            sent: 0,
            rng: Rng::for_component(seed, "story", 0),
            expected: Default::default(),
            first: 0,
            reliable,
        }
    }

    fn put(&mut self, delay: Duration, to: usize, input: Input) {
        self.wire.insert((self.now + delay, self.sent), (to, input));
        self.sent += 1;
    }

    fn carry(&mut self, packet: &Transmit) {
        let [lose, repeat, _] = CHANCES;
        let copies = if self.rng.bernoulli(lose) { 0 } else { 1 + u32::from(self.rng.bernoulli(repeat)) };
        for _ in 0..copies {
            let jitter = Duration::from_ns(self.rng.below(3_000).into());
            let bytes = packet.payload.map_or(0, |payload| payload.len.into());
            self.put(DELAY + jitter, packet.to.index(), Input::Packet(packet.segment, bytes));
        }
    }

    /// Drains all outputs of a host and checks them against the contract.
    fn drain(&mut self, host: usize) {
        while let Some(event) = self.hosts[host].poll_event() {
            if let Some(told) = T::told(event) {
                self.note(host, told);
            }
        }
        assert!(!self.hosts[host].has_event());
        while let Some((to, message)) = self.hosts[host].poll_side() {
            // All take the same time, so they keep their order.
            self.put(DELAY * 3, to.index(), Input::Side(message));
        }
        loop {
            let (mut control, mut data) = (None, None);
            let had_control = self.hosts[host].has_control();
            assert_eq!(self.hosts[host].send_control(|packet| control = Some(packet)), had_control);
            let free = |port: &u8| self.free_at[host][usize::from(*port)] <= self.now;
            let open = (0..PORTS).filter(free).fold(0, |open, port| open | 1 << port);
            if control.is_none() && open != 0 {
                let gate = FreePorts { data_ports: open };
                let ready = self.hosts[host].has_ready_data();
                let sends = self.hosts[host].send_data(self.now, gate, |packet| data = Some(packet));
                assert!(sends == data.is_some() && (ready || !sends), "it is said that there may be data");
            }
            if let Some(packet) = &control {
                // A probe of loss recovery queues in the network like data.
                let is_probe = matches!(packet.segment.body, Body::Control(Control::Probe { .. }));
                let as_control = packet.class == Class::Control || is_probe;
                assert!(as_control && packet.payload.is_none(), "{packet:?}");
            } else if let Some(packet) = &data {
                assert!(open >> packet.port & 1 == 1, "only by an open port: {packet:?}");
                let time = RATE.time_for(packet.wire_bytes.into());
                self.free_at[host][usize::from(packet.port)] = self.now + time;
            }
            let Some(packet) = control.or(data) else { break };
            assert_eq!(packet.to, HostId(1 - host as u32));
            self.carry(&packet);
        }
        assert!(!self.hosts[host].has_control());
    }

    /// Checks that nothing is reported twice, and that the order is as promised.
    fn note(&mut self, host: usize, told: Told) {
        let (of, number) = match told {
            Told::Delivered { msg, .. } => (1 - host, msg),
            Told::Completed { wr_id, .. } => (host, wr_id),
        };
        let expected = &mut self.expected[of];
        let index = number.checked_sub(self.first).expect("of this round");
        let set = match told {
            Told::Delivered { bytes, .. } => {
                assert_eq!(bytes, expected.posted[index as usize], "bytes of message {number}");
                &mut expected.delivered
            }
            Told::Completed { status, .. } => {
                assert_eq!(status, Status::Success, "message {number}");
                &mut expected.completed
            }
        };
        assert!(!T::IN_ORDER || set.len() as u64 == index, "message {number} out of order");
        assert!(set.insert(number), "message {number} is told twice");
    }

    fn on_timer(&mut self, host: usize) {
        self.hosts[host].on_timer(self.now);
        self.drain(host);
        let timer = self.hosts[host].poll_timer();
        assert!(timer.is_none_or(|at| at > self.now), "{timer:?} is not after {}", self.now);
    }

    /// Advances to the next time at which something happens. Returns false if there is none.
    fn step(&mut self) -> bool {
        let arrival = self.wire.keys().next().map(|&(at, _)| at);
        let timers = self.hosts.iter().filter_map(T::poll_timer);
        let busy = |host: &usize| self.hosts[*host].has_ready_data();
        let ports = (0..2).filter(busy).flat_map(|host| self.free_at[host]).filter(|at| *at > self.now);
        let Some(next) = timers.chain(arrival).chain(ports).min() else { return false };
        // Sometimes too early, which does no harm.
        let early = self.rng.bernoulli(0.05) && next > self.now;
        self.now = if early { self.now + Duration::from_ps((next - self.now).as_ps() / 2) } else { next };
        while let Some(entry) = self.wire.first_entry()
            && entry.key().0 <= self.now
        {
            let (to, input) = entry.remove();
            let from = HostId(1 - to as u32);
            match input {
                Input::Packet(segment, bytes) => {
                    let ce = self.rng.bernoulli(CHANCES[2]);
                    if self.hosts[to].on_packet(self.now, from, &segment, ce).is_some() {
                        self.expected[1 - to].placed_bytes += bytes;
                    }
                }
                Input::Side(message) => self.hosts[to].on_side(self.now, from, &message),
            }
            self.drain(to);
        }
        (0..2).for_each(|host| self.on_timer(host));
        true
    }

    /// Posts messages over time, and continues until nothing is in progress. No state is kept then.
    fn round(&mut self) {
        let end = self.now + LONGEST_ROUND;
        loop {
            let from = self.rng.below(2) as usize;
            let posted = self.expected[from].posted.len() as u64;
            if posted < MESSAGES && self.rng.bernoulli(0.2) {
                let len = [1, u64::from(MTU), 3_000, 40_000][self.rng.below(4) as usize];
                self.expected[from].posted.push(len);
                T::post(&mut self.hosts, self.qps, self.now, from, self.first + posted, len);
                self.drain(from);
            } else if !self.step() && self.expected.iter().all(|all| all.posted.len() as u64 == MESSAGES) {
                break;
            }
            assert!(self.now < end, "not done after {LONGEST_ROUND}");
        }
        for host in 0..2 {
            let expected = std::mem::take(&mut self.expected[host]);
            assert_eq!(expected.completed.len() as u64, MESSAGES, "each is completed");
            if self.reliable {
                assert_eq!(expected.delivered.len() as u64, MESSAGES, "each is delivered");
                assert_eq!(expected.placed_bytes, expected.posted.iter().sum::<u64>(), "each byte once");
                assert_eq!(self.hosts[host].items_in_progress(), 0, "nothing is kept");
            }
            assert!(!self.hosts[host].has_ready_data() && self.hosts[host].poll_timer().is_none());
        }
        self.first += MESSAGES;
    }
}

fn story<T: Subject>(scheme: &Scheme, seed: u64) {
    let mut story = Story::<T>::new(scheme, seed);
    // Lists keep their largest capacity, but repeated rounds must leave nothing behind: of a few successive rounds,
    // not every one may grow memory by 20 bytes per message.
    let grown =
        [(); 4].map(|()| allocation_counter::measure(|| (0..3).for_each(|_| story.round())).bytes_current);
    assert!(
        grown.iter().any(|bytes| *bytes <= 3 * 2 * 20 * MESSAGES as i64),
        "bytes more after every three rounds: {grown:?}"
    );
}

#[test]
#[expect(clippy::print_stdout, reason = "a seed that fails is one of a scheme")]
fn both_services_keep_the_contract_under_every_scheme() {
    for info in schemes() {
        let scheme = (info.make)();
        for seed in 1..=2 {
            println!("{}, seed {seed}", info.name);
            match scheme.service {
                Service::Connection | Service::SharedReceive(_) | Service::EndToEnd => {
                    story::<Endpoint<AnyPolicy>>(&scheme, seed);
                }
                Service::Datagram(_) => story::<RdQp<AnyPolicy>>(&scheme, seed),
            }
        }
    }
}
