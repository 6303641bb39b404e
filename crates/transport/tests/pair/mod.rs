//! Two endpoints, a virtual clock, a scripted channel, and memory, so that bytes can be compared.
#![allow(dead_code, reason = "every test file uses its own part")]

use std::collections::BTreeMap;
use std::ops::Range;

use pathweave_policy::{
    ControlClass, ControlFeedback, Feedback, FeedbackKind, Grant, Memo, Outgoing, PathView, Policy, PolicyCx,
    SendRequest, SendWindow, Sent,
};
use pathweave_transport::{
    Access, Buffer, Class, Completion, Counters, Endpoint, EndpointConfig, Event, FreePorts, MemoryRegion,
    Op, QpConfig, RecvRequest, Scope, Status, Transmit, WorkRequest,
};
use pathweave_units::{Duration, HostId, PathId, QpNum, Rate, Rng, Time, TrimmedAt};
use pathweave_wire::{Body, Control, ControlKind, Segment};

/// A policy with a constant window, round robin over its paths, with an optional pace. It checks the endpoint's side
/// of the contract: feedback once per packet, and conservation of packets in flight.
#[derive(Debug)]
pub(crate) struct Fixed {
    pub(crate) window: u32,
    pub(crate) paths: u16,
    pub(crate) gap: Duration,
    /// Number of probes to send on path 0 before anything else.
    pub(crate) probes: u32,
    next_path: u16,
    not_before: Time,
    inflight: u32,
    pub(crate) log: Vec<(u64, FeedbackKind, Duration)>,
    pub(crate) told: Vec<(ControlKind, Duration)>,
}

impl Fixed {
    pub(crate) fn window(window: u32) -> Self {
        Fixed {
            window,
            paths: 1,
            gap: Duration::ZERO,
            probes: 0,
            next_path: 0,
            not_before: Time::ZERO,
            inflight: 0,
            log: vec![],
            told: vec![],
        }
    }
}

impl Fixed {
    /// Checks the count of packets in flight, in which short packets count by their size.
    fn check_count(&self, inflight_packets: u32) {
        let is_right = inflight_packets <= self.inflight && (inflight_packets == 0) == (self.inflight == 0);
        assert!(is_right, "{inflight_packets} packets in flight, and {} have left", self.inflight);
    }
}

impl Policy for Fixed {
    pathweave_policy::ignores!(on_open, on_close, on_copy_sent);
    fn poll_send(&mut self, now: Time, want: &SendRequest, _: &mut PolicyCx<'_>) -> Grant {
        self.check_count(want.inflight_packets);
        if self.probes > 0 {
            self.probes -= 1;
            return Grant::Control(PathId(0));
        }
        if self.inflight >= self.window {
            Grant::Blocked
        } else if now < self.not_before {
            Grant::At(self.not_before)
        } else {
            Grant::Send(PathId(self.next_path))
        }
    }
    fn on_sent(&mut self, now: Time, sent: &Sent, _: &mut PolicyCx<'_>) -> Memo {
        self.inflight += 1;
        self.check_count(sent.inflight_packets);
        self.next_path = (self.next_path + 1) % self.paths;
        self.not_before = now + self.gap;
        Memo(sent.psn ^ 0xabcd)
    }
    fn on_feedback(&mut self, _: Time, feedback: &Feedback, _: &mut PolicyCx<'_>) {
        if let FeedbackKind::Duplicate { .. } | FeedbackKind::Late | FeedbackKind::NoticeFlow(_) =
            feedback.kind
        {
            // Needed by policies that send copies and notices.
            return;
        }
        if !matches!(feedback.kind, FeedbackKind::Cnp | FeedbackKind::EdgeRtt | FeedbackKind::PathSample) {
            assert_eq!(feedback.memo, Memo(feedback.psn ^ 0xabcd), "the memo of PSN {}", feedback.psn);
            self.inflight -= 1;
        }
        self.log.push((feedback.psn, feedback.kind, feedback.rtt));
    }
    fn make_control(&mut self, now: Time, _: PathId, _: Range<u64>, _: &mut PolicyCx<'_>) -> Outgoing {
        Outgoing { control: Control::Probe { sent_at: now }, treatment: ControlClass::AsUnmarkedData }
    }
    fn on_control(&mut self, _: Time, feedback: &ControlFeedback, _: &mut PolicyCx<'_>) {
        self.told.push((feedback.control.kind(), feedback.rtt));
    }
    fn on_paths(&mut self, _: Time, _: &[PathView], _: &mut PolicyCx<'_>) {}
    fn on_timer(&mut self, _: Time, _: &mut PolicyCx<'_>) {}
    fn next_timer(&self) -> Option<Time> {
        None
    }
    fn rate(&self, _: Time) -> Option<Rate> {
        None
    }
    fn window(&self) -> Option<SendWindow> {
        let bytes = u64::from(self.window) * u64::from(MTU);
        let idle = Duration::from_us(2);
        Some(SendWindow { bytes, most_bytes: bytes, base_rtt: idle, delay_target: idle })
    }
    fn path_beyond_window(&mut self, _: Time, want: &SendRequest, _: &mut PolicyCx<'_>) -> PathId {
        self.check_count(want.inflight_packets);
        PathId(self.next_path)
    }
}

/// Treatment of packets by the channel.
pub(crate) struct Channel {
    pub(crate) delay: Duration,
    /// Upper bound of a uniform random additional delay, which reorders packets.
    pub(crate) jitter: Duration,
    /// Additional delay of each path, in each direction.
    pub(crate) by_path: Vec<Duration>,
    pub(crate) loss: f64,
    pub(crate) duplicate: f64,
    pub(crate) mark: f64,
    /// Probability that a switch trims a packet; its header arrives all the same.
    pub(crate) trim: f64,
    /// PSNs whose first transmission is always trimmed.
    pub(crate) trimmed: Vec<u64>,
    /// Time from which on no packet arrives.
    pub(crate) dead_from: Time,
    /// Intervals in which nothing arrives. Packets due in one arrive at its end, as when a switch pauses.
    pub(crate) pauses: Vec<(Time, Time)>,
    /// Interval in which packets on the first path are lost.
    pub(crate) dead_path: Option<(Time, Time)>,
    /// Time of one data packet on the slowest link, before which packets queue.
    pub(crate) bottleneck: Option<Duration>,
    bottleneck_free_at: Time,
    /// Decides before chance does: `Some(true)` passes the packet, `Some(false)` drops it.
    #[allow(clippy::type_complexity)]
    pub(crate) script: Option<Box<dyn FnMut(&Transmit) -> Option<bool>>>,
    rng: Rng,
}

impl Channel {
    pub(crate) fn new(seed: u64) -> Self {
        Channel {
            delay: Duration::from_us(1),
            jitter: Duration::ZERO,
            by_path: vec![],
            loss: 0.0,
            duplicate: 0.0,
            mark: 0.0,
            trim: 0.0,
            trimmed: vec![],
            dead_from: Time::MAX,
            pauses: vec![],
            dead_path: None,
            bottleneck: None,
            bottleneck_free_at: Time::ZERO,
            script: None,
            rng: Rng::for_component(seed, "channel", 0),
        }
    }
    /// Returns true if a switch trims the packet.
    fn trims(&mut self, packet: &Transmit) -> bool {
        match packet.segment.body {
            Body::Data(data) if data.len > 0 => {
                !data.retransmit && self.trimmed.contains(&data.psn)
                    || self.trim > 0.0 && self.rng.bernoulli(self.trim)
            }
            _ => false,
        }
    }
    /// Delays with which copies of a packet arrive.
    fn copies(&mut self, now: Time, packet: &Transmit) -> Vec<Duration> {
        let scripted = self.script.as_mut().and_then(|script| script(packet));
        let is_dead = self
            .dead_path
            .is_some_and(|(from, to)| packet.segment.path == PathId(0) && (from..to).contains(&now));
        if now >= self.dead_from || is_dead || scripted == Some(false) {
            return vec![];
        }
        let copies = match scripted {
            Some(_) => 1,
            None if self.rng.bernoulli(self.loss) => 0,
            None => 1 + usize::from(self.rng.bernoulli(self.duplicate)),
        };
        let path = self.by_path.get(packet.segment.path.index()).copied().unwrap_or(Duration::ZERO);
        let queue = match (self.bottleneck, packet.class) {
            (Some(service), Class::Data) => {
                // A probe takes almost no time there.
                let is_data = matches!(packet.segment.body, Body::Data(_));
                let takes = if is_data { service } else { Duration::ZERO };
                self.bottleneck_free_at = self.bottleneck_free_at.max(now) + takes;
                self.bottleneck_free_at - now
            }
            _ => Duration::ZERO,
        };
        (0..copies)
            .map(|_| {
                let delay = path
                    + self.delay
                    + queue
                    + Duration::from_ps((self.jitter.as_ps() as f64 * self.rng.unit_f64()) as u64);
                self.after_pauses(now + delay) - now
            })
            .collect()
    }
    /// Time at which a packet arrives that would arrive at `at` without pauses.
    fn after_pauses(&self, mut at: Time) -> Time {
        while let Some(&(_, end)) = self.pauses.iter().find(|(from, to)| (*from..*to).contains(&at)) {
            at = end;
        }
        at
    }
}

pub(crate) struct Host {
    pub(crate) endpoint: Endpoint<Fixed>,
    pub(crate) memory: Vec<u8>,
    pub(crate) events: Vec<Event>,
    port_free_at: Time,
}

struct Packet {
    to: usize,
    segment: Segment,
    payload: Vec<u8>,
    ce: bool,
    trimmed: bool,
}

/// Two hosts, 100 Gb/s each, and the channel between them.
pub(crate) struct Pair {
    pub(crate) now: Time,
    pub(crate) hosts: [Host; 2],
    pub(crate) channel: Channel,
    pub(crate) qps: [QpNum; 2],
    wire: BTreeMap<(Time, u64), Packet>,
    sent: u64,
    /// Every packet that left, for stories.
    pub(crate) trace: Vec<(Time, usize, Segment)>,
}

pub(crate) const MTU: u16 = 1_024;

/// A queue pair for tests: a window of 16 packets and a short timer.
pub(crate) fn config(peer: u32, window: u32) -> QpConfig<'static, Fixed> {
    let mut config = QpConfig::new(HostId(peer), Fixed::window(window), &[]);
    config.rto.timeout = Duration::from_us(50);
    config.rto.max_timeout = Duration::from_us(400);
    config.rnr.delay = Duration::from_us(20);
    config
}

impl Pair {
    /// Creates two connected queue pairs. `tune` changes the configuration of both.
    pub(crate) fn new(
        channel: Channel,
        memory_bytes: usize,
        tune: impl Fn(&mut QpConfig<'static, Fixed>),
    ) -> Self {
        let mut qps = [QpNum(0); 2];
        let mut hosts = [0u32, 1].map(|host| {
            let mut endpoint =
                Endpoint::new(EndpointConfig { mtu_payload: MTU, ..EndpointConfig::new(HostId(host)) });
            let mut config = config(1 - host, 16);
            tune(&mut config);
            qps[host as usize] = endpoint.create_qp(Time::ZERO, config);
            let mut rng = Rng::for_component(u64::from(host), "memory", 0);
            let memory = (0..memory_bytes).map(|_| rng.next_u64() as u8).collect();
            Host { endpoint, memory, events: vec![], port_free_at: Time::ZERO }
        });
        hosts[0].endpoint.connect(qps[0], qps[1]).unwrap();
        hosts[1].endpoint.connect(qps[1], qps[0]).unwrap();
        Pair { now: Time::ZERO, hosts, channel, qps, wire: BTreeMap::new(), sent: 0, trace: vec![] }
    }

    /// Opens all memory of a host.
    pub(crate) fn open_memory(&mut self, host: usize) -> u64 {
        let len = self.hosts[host].memory.len() as u64;
        let region = MemoryRegion {
            buffer: Buffer(0),
            addr: 0,
            len,
            access: Access::READ_WRITE,
            scope: Scope::DEFAULT,
        };
        self.hosts[host].endpoint.register(region, 0).unwrap()
    }

    pub(crate) fn post(&mut self, host: usize, wr_id: u64, op: Op, local: u64, len: u64) {
        let request = WorkRequest { wr_id, op, local: Buffer(local), len };
        self.hosts[host].endpoint.post(self.now, self.qps[host], request).unwrap();
    }
    /// Posts a request behind a fence.
    pub(crate) fn post_fenced(&mut self, host: usize, wr_id: u64, op: Op, local: u64, len: u64) {
        let request = WorkRequest { wr_id, op, local: Buffer(local), len };
        self.hosts[host].endpoint.post_fenced(self.now, self.qps[host], request).unwrap();
    }
    pub(crate) fn post_recv(&mut self, host: usize, wr_id: u64, buffer: u64, len: u64) {
        let request = RecvRequest { wr_id, buffer: Buffer(buffer), len };
        self.hosts[host].endpoint.post_recv(self.qps[host], request).unwrap();
    }

    /// Drains every output of both hosts.
    pub(crate) fn drain(&mut self) {
        for from in 0..2 {
            let host = &mut self.hosts[from];
            loop {
                let gate = if host.port_free_at <= self.now { FreePorts::OPEN } else { FreePorts::CONTROL };
                let Some(transmit) = host.endpoint.poll_transmit(self.now, gate) else { break };
                if let Body::Data(_) = transmit.segment.body {
                    host.port_free_at =
                        self.now + Rate::from_gbps(100).time_for(u64::from(transmit.wire_bytes));
                }
                self.trace.push((self.now, from, transmit.segment));
                let payload = transmit.payload.map_or(vec![], |payload| {
                    let start = (payload.buffer.0 + payload.offset) as usize;
                    host.memory[start..start + usize::from(payload.len)].to_vec()
                });
                for delay in self.channel.copies(self.now, &transmit) {
                    let ce = transmit.ecn_capable && self.channel.rng.bernoulli(self.channel.mark);
                    let trimmed = self.channel.trims(&transmit);
                    let (segment, payload) = (transmit.segment, payload.clone());
                    let packet = Packet { to: 1 - from, segment, payload, ce, trimmed };
                    self.wire.insert((self.now + delay, self.sent), packet);
                    self.sent += 1;
                }
            }
            while let Some(event) = host.endpoint.poll_event() {
                host.events.push(event);
            }
            host.endpoint.assert_invariants();
        }
    }

    /// Advances to the next time at which something happens. Returns false if nothing ever will.
    pub(crate) fn step(&mut self) -> bool {
        self.drain();
        let arrival = self.wire.keys().next().map(|&(at, _)| at);
        let timers = self.hosts.iter().filter_map(|host| host.endpoint.poll_timer());
        let ports = self.hosts.iter().map(|host| host.port_free_at).filter(|&at| at > self.now);
        let Some(next) = arrival.into_iter().chain(timers).chain(ports).min() else { return false };
        self.now = self.now.max(next);
        for host in &mut self.hosts {
            if host.endpoint.poll_timer().is_some_and(|at| at <= self.now) {
                host.endpoint.on_timer(self.now);
            }
        }
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let Packet { to, segment, payload, ce, trimmed } = entry.remove();
            let (host, from) = (&mut self.hosts[to], HostId(1 - to as u32));
            if trimmed {
                host.endpoint.on_trimmed(self.now, from, &segment, ce, TrimmedAt::LastHop);
                continue;
            }
            let placement = host.endpoint.on_packet(self.now, from, &segment, ce);
            if let Some(placement) = placement {
                assert_eq!(usize::from(placement.len), payload.len());
                let start = (placement.buffer.0 + placement.offset) as usize;
                host.memory[start..start + payload.len()].copy_from_slice(&payload);
            }
        }
        self.drain();
        true
    }

    /// Steps until nothing happens any more; panics if that takes longer than `limit`.
    pub(crate) fn run(&mut self, limit: Duration) {
        let end = self.now + limit;
        while self.step() {
            assert!(self.now <= end, "not done after {limit}");
        }
    }

    pub(crate) fn completions(&self, host: usize) -> Vec<Completion> {
        let completion = |event: &Event| match event {
            Event::Completion(completion) => Some(*completion),
            _ => None,
        };
        self.hosts[host].events.iter().filter_map(completion).collect()
    }
    /// Identifier and status of every completion.
    pub(crate) fn statuses(&self, host: usize) -> Vec<(u64, Status)> {
        self.completions(host).iter().map(|c| (c.wr_id, c.status)).collect()
    }
    pub(crate) fn counters(&self, host: usize) -> Counters {
        self.hosts[host].endpoint.counters()
    }
}
