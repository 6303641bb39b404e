//! Hosts with datagram queue pairs, a virtual clock, a bad channel, a side channel that is merely slow, and memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use pathweave_policy::{AnyPolicy, DatagramConfig, PolicyEnv, Service, find_scheme};
use pathweave_transport::rd::{PeerId, RdConfig, RdEvent, RdQp, SideMessage};
use pathweave_transport::{FreePorts, Status, Transmit, Transport};
use pathweave_units::{Duration, HostId, QpNum, Rate, Rng, Time};
use pathweave_wire::{Framing, Segment};

/// Channel for the packets of one host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel {
    pub(crate) loss: f64,
    pub(crate) duplicate: f64,
    /// Probability that an ECN-capable packet is marked Congestion Experienced.
    pub(crate) mark: f64,
    /// Upper bound of a packet's random additional delay.
    pub(crate) jitter: Duration,
    /// Additional delay per path: path p takes p times this longer.
    pub(crate) skew: Duration,
}

pub(crate) const GOOD: Channel =
    Channel { loss: 0.0, duplicate: 0.0, mark: 0.0, jitter: Duration::ZERO, skew: Duration::ZERO };

pub(crate) const DELAY: Duration = Duration::from_us(5);
pub(crate) const RTT: Duration = Duration::from_us(10);

enum Due {
    Packet { to: usize, from: HostId, segment: Segment, bytes: Vec<u8>, ce: bool },
    Side(usize, HostId, SideMessage),
    Free(usize),
    Timer(usize),
}

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) qps: Vec<RdQp<AnyPolicy>>,
    pub(crate) channels: Vec<Channel>,
    pub(crate) rate: Rate,
    queue: BinaryHeap<Reverse<(Time, u64)>>,
    due: BTreeMap<u64, Due>,
    count: u64,
    free_at: Vec<Time>,
    side_at: BTreeMap<(usize, usize), Time>,
    /// True if the side channel of these two hosts loses everything.
    pub(crate) side_down: bool,
    /// First message for which there is no room, by host and peer.
    pub(crate) no_room_from: BTreeMap<(usize, PeerId), u64>,
    /// Number of packets that were refused for lack of room.
    pub(crate) refused: u64,
    rng: Rng,
    /// Posted bytes by host and work request.
    pub(crate) sent: BTreeMap<(usize, u64), Vec<u8>>,
    /// Placed bytes by host, peer and message, and how often each was placed.
    pub(crate) placed: BTreeMap<(usize, PeerId, u64), Placed>,
    pub(crate) delivered: Vec<(Time, usize, PeerId, u64, u64)>,
    pub(crate) abandoned: u64,
    pub(crate) completed: Vec<(usize, u64, Status, u32)>,
    pub(crate) per_path: BTreeMap<u16, u64>,
    pub(crate) wire_bytes: u64,
}

/// Bytes of a message, and how often each was placed.
pub(crate) type Placed = (Vec<u8>, Vec<u8>);

pub(crate) fn peer(host: usize) -> PeerId {
    PeerId { host: HostId(host as u32), qp: QpNum(host as u32 + 1) }
}

/// A queue pair without congestion control.
pub(crate) fn queue_pair(host: usize, behaviour: DatagramConfig, paths: u16, seed: u64) -> RdQp<AnyPolicy> {
    queue_pair_of("erd-uncontrolled", host, behaviour, paths, seed)
}

/// A queue pair with the rates and paths of a scheme.
pub(crate) fn queue_pair_of(
    scheme: &str,
    host: usize,
    behaviour: DatagramConfig,
    paths: u16,
    seed: u64,
) -> RdQp<AnyPolicy> {
    let env = PolicyEnv {
        line_rate: Rate::from_gbps(100),
        base_rtt: RTT,
        mtu_wire_bytes: 4_190,
        mtu_payload_bytes: 4_087,
        paths,
        measured: pathweave_policy::MeasuredSection::with_rtt(RTT),
        edge: None,
    };
    let mut scheme = (find_scheme(scheme).expect("a scheme").make)();
    scheme.service = Service::Datagram(behaviour);
    let mut rng = Rng::for_component(seed, "policy", host as u64);
    let (policy, control) = scheme.datagram_policy(&env, &mut rng);
    RdQp::new(RdConfig {
        num: peer(host).qp,
        policy,
        control,
        behaviour,
        mtu_payload: 4_096,
        framing: Framing::Rocev2,
        paths,
        nic_ports: 1,
        seed,
        rtt: RTT,
        nack_delay: Duration::from_us(2),
    })
}

impl World {
    /// Creates hosts without congestion control.
    pub(crate) fn new(hosts: usize, behaviour: DatagramConfig, paths: u16, seed: u64) -> Self {
        World::of("erd-uncontrolled", hosts, behaviour, paths, seed)
    }

    pub(crate) fn of(scheme: &str, hosts: usize, behaviour: DatagramConfig, paths: u16, seed: u64) -> Self {
        let mut qps: Vec<_> =
            (0..hosts).map(|host| queue_pair_of(scheme, host, behaviour, paths, seed)).collect();
        for (host, qp) in qps.iter_mut().enumerate() {
            (0..hosts)
                .filter(|other| *other != host)
                .for_each(|other| qp.add_peer(Time::ZERO, peer(other), RTT));
        }
        World {
            now: Time::ZERO,
            channels: vec![GOOD; hosts],
            rate: Rate::from_gbps(100),
            queue: BinaryHeap::new(),
            due: BTreeMap::new(),
            count: 0,
            free_at: vec![Time::ZERO; hosts],
            side_at: BTreeMap::new(),
            side_down: false,
            no_room_from: BTreeMap::new(),
            refused: 0,
            rng: Rng::for_component(seed, "channel", 0),
            sent: BTreeMap::new(),
            placed: BTreeMap::new(),
            delivered: vec![],
            abandoned: 0,
            completed: vec![],
            per_path: BTreeMap::new(),
            wire_bytes: 0,
            qps,
        }
    }

    fn at(&mut self, at: Time, due: Due) {
        self.count += 1;
        self.queue.push(Reverse((at, self.count)));
        self.due.insert(self.count, due);
    }

    pub(crate) fn post(&mut self, from: usize, to: usize, wr_id: u64, len: u64) {
        let bytes = (0..len).map(|i| (i % 251) as u8 ^ wr_id as u8 ^ from as u8).collect();
        self.sent.insert((from, wr_id), bytes);
        self.qps[from].post(self.now, peer(to), wr_id, len).expect("room");
        self.drain(from);
    }

    /// Drains all outputs of a host.
    pub(crate) fn drain(&mut self, host: usize) {
        let now = self.now;
        while let Some(event) = self.qps[host].poll_event() {
            match event {
                RdEvent::Delivered { from, msg, bytes } => self.delivered.push((now, host, from, msg, bytes)),
                RdEvent::Abandoned { .. } => self.abandoned += 1,
                RdEvent::Completion { wr_id, status, retransmitted, .. } => {
                    self.completed.push((host, wr_id, status, retransmitted));
                }
            }
        }
        while let Some(packet) = self.qps[host].poll_transmit(now, FreePorts::CONTROL) {
            assert!(packet.payload.is_none() && !packet.ecn_capable);
            let (to, from, segment) = (packet.to.index(), HostId(host as u32), packet.segment);
            if !self.rng.bernoulli(self.channels[host].loss) {
                self.at(now + DELAY, Due::Packet { to, from, segment, bytes: vec![], ce: false });
            }
        }
        while self.free_at[host] <= now {
            let Some(packet) = self.qps[host].poll_transmit(now, FreePorts::OPEN) else { break };
            self.transmit(host, &packet);
        }
        while let Some((to, message)) = self.qps[host].poll_side() {
            if self.side_down {
                continue;
            }
            let mut bytes = vec![0; message.encoded_len()];
            message.emit(&mut bytes);
            let (frame, len) = pathweave_wire::SideFrame::parse(&bytes).expect("our own");
            assert_eq!(len, bytes.len());
            let arrival = now + DELAY * 3;
            let last = self.side_at.entry((host, to.index())).or_insert(Time::ZERO);
            *last = arrival.max(*last);
            let at = *last;
            self.at(at, Due::Side(to.index(), HostId(host as u32), frame.to_owned()));
        }
        if let Some(timer) = self.qps[host].poll_timer() {
            self.at(timer.max(now), Due::Timer(host));
        }
    }

    fn transmit(&mut self, host: usize, packet: &Transmit) {
        let channel = self.channels[host];
        let path = packet.segment.path.0;
        *self.per_path.entry(path).or_default() += 1;
        self.wire_bytes += u64::from(packet.wire_bytes);
        let end = self.now + self.rate.time_for(u64::from(packet.wire_bytes));
        self.free_at[host] = end;
        self.at(end, Due::Free(host));
        let payload = packet.payload.expect("every packet has some");
        let (from, to) = (payload.offset as usize, payload.offset as usize + usize::from(payload.len));
        let bytes = self.sent[&(host, payload.buffer.0)][from..to].to_vec();
        let copies = if self.rng.bernoulli(channel.loss) {
            0
        } else {
            1 + usize::from(self.rng.bernoulli(channel.duplicate))
        };
        for _ in 0..copies {
            let jitter = channel.jitter.scale(self.rng.unit_f64());
            let arrival = end + DELAY + channel.skew * u64::from(path) + jitter;
            let ce = packet.ecn_capable && self.rng.bernoulli(channel.mark);
            let (to, from, segment) = (packet.to.index(), HostId(host as u32), packet.segment);
            self.at(arrival, Due::Packet { to, from, segment, bytes: bytes.clone(), ce });
        }
    }

    /// Advances time until nothing happens any more, at most by `limit`. Returns true if nothing does.
    pub(crate) fn run(&mut self, limit: Duration) -> bool {
        let end = self.now + limit;
        while let Some(&Reverse((at, id))) = self.queue.peek() {
            if at > end {
                return false;
            }
            self.queue.pop();
            self.now = self.now.max(at);
            let now = self.now;
            let host = match self.due.remove(&id).expect("queued") {
                Due::Packet { to: host, from, segment, bytes, ce } => {
                    let offer = self.qps[host].judge(now, from, &segment, ce);
                    let limit = PeerId { host: from, qp: segment.src_qp };
                    let limit = self.no_room_from.get(&(host, limit)).copied().unwrap_or(u64::MAX);
                    if let Some(offer) = offer.filter(|offer| offer.msg() >= limit) {
                        self.refused += 1;
                        self.qps[host].refuse(now, offer);
                    } else if let Some(offer) = offer {
                        let place = self.qps[host].take(now, offer);
                        let key = (host, place.from, place.msg);
                        let (memory, times) = self.placed.entry(key).or_default();
                        let end = place.offset as usize + bytes.len();
                        memory.resize(memory.len().max(end), 0);
                        times.resize(memory.len(), 0);
                        memory[place.offset as usize..end].copy_from_slice(&bytes);
                        times[place.offset as usize..end].iter_mut().for_each(|times| *times += 1);
                    }
                    host
                }
                Due::Side(host, from, message) => {
                    self.qps[host].on_side(now, from, &message);
                    host
                }
                Due::Timer(host) => {
                    if self.qps[host].poll_timer().is_none_or(|timer| timer > now) {
                        continue;
                    }
                    self.qps[host].on_timer(now);
                    host
                }
                Due::Free(host) => host,
            };
            self.drain(host);
        }
        true
    }

    /// Checks that everything posted has arrived, each byte once, and that both ends know.
    pub(crate) fn check_all_arrived(&self, of_host: &dyn Fn(usize, u64) -> (usize, u64)) {
        assert_eq!(self.delivered.len(), self.sent.len(), "messages delivered");
        assert_eq!(self.completed.len(), self.sent.len(), "messages completed");
        for ((from, wr_id), bytes) in &self.sent {
            let (to, msg) = of_host(*from, *wr_id);
            let (memory, times) = &self.placed[&(to, peer(*from), msg)];
            assert_eq!(memory, bytes, "bytes of message {wr_id} of host {from}");
            assert!(times.iter().all(|times| *times == 1), "each byte once");
            let told = self.delivered.iter().filter(|(_, h, p, m, _)| (*h, *p, *m) == (to, peer(*from), msg));
            assert_eq!(told.count(), 1);
        }
        assert!(self.completed.iter().all(|(_, _, status, _)| *status == Status::Success));
        for qp in &self.qps {
            assert!(qp.is_idle() && qp.open_flows() == 0, "nothing is kept");
        }
    }

    pub(crate) fn retransmissions(&self) -> u64 {
        self.qps.iter().map(|qp| qp.counters().retransmitted).sum()
    }
}
