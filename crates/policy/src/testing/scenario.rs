//! What is run: paths, senders, traffic, and what changes on the way.

use alloc::vec;
use alloc::vec::Vec;

use pathweave_units::{Duration, PathId, Rate, Rng, Time};
use pathweave_wire::Notices;

use super::bench::Bench;
use super::channel::Hop;
use super::report::Report;
use crate::{Leg, PathView, Policy, PolicyEnv};

/// Something that happens at a given time.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// The senders learn that the path is dead, and it is.
    Down(PathId),
    /// The senders learn that the path is back, and it is.
    Up(PathId),
    /// Others begin to take this much of the path.
    Competing(PathId, Rate),
    /// Others leave the edge to the senders.
    EdgeFree,
    /// The senders learn all there is to know of the paths: rates, delays, links.
    Known,
    /// The receiver tells the senders whether notices are welcome.
    Notices(Notices),
}

/// What an acknowledgement tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcksTell {
    /// The packet it answers.
    OnePacket,
    /// Every packet that had arrived. The packet it answers may be known from an earlier one, of another path: then it
    /// is a measurement and no news ([`FeedbackKind::Echo`](crate::FeedbackKind::Echo)).
    AllArrived,
}

/// What becomes of a packet once one sent so many packets later is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overtaken {
    /// Nothing: the timer alone finds losses.
    Waits,
    /// It counts as lost and is sent again, if it is the first transmission.
    Lost(u64),
    /// The receiver says that it is late.
    Late(u64),
}

/// A scripted experiment on one policy or on many that share the channel.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What the policies are told. `env.line_rate` is the rate of each sender's NIC.
    pub env: PolicyEnv,
    /// The paths, shared by all senders; as many as `env.paths`.
    pub paths: Vec<Hop>,
    /// Crossed before the path, by every data packet: the edge of the senders' site, which answers each.
    pub edge: Option<Hop>,
    /// Crossed after the path, by every packet of every sender.
    pub last_hop: Option<Hop>,
    /// Senders.
    pub senders: u32,
    /// Full packets each has to send.
    pub packets: u64,
    /// A sender's application has a packet ready once in this time. Zero: all at once.
    pub packet_every: Duration,
    /// Packets a message; the message number rises after each so many.
    pub packets_per_message: u64,
    /// Least time between notifications of a sender. Zero: one for each marked packet.
    pub cnp_interval: Duration,
    /// When a packet that was not acknowledged counts as lost.
    pub timeout: Duration,
    /// What acknowledgements tell.
    pub acks_tell: AcksTell,
    /// What becomes of packets that others overtake.
    pub overtaken: Overtaken,
    /// Rates are sampled once in this time.
    pub sample_every: Duration,
    /// What changes, in order of time.
    pub changes: Vec<(Time, Change)>,
    /// No run goes on for longer; unfinished senders are reported as such.
    pub end: Time,
    /// Seed of every random stream.
    pub seed: u64,
}

impl Scenario {
    /// One sender of 1,000 packets of 1,250 bytes (100 ns each) at 100 Gb/s; four paths of 100 Gb/s and 5 us each way.
    pub fn steady() -> Self {
        let line_rate = Rate::from_gbps(100);
        let paths = vec![Hop::new(line_rate, Duration::from_us(5)); 4];
        Scenario {
            env: PolicyEnv {
                line_rate,
                base_rtt: Duration::from_ns(10_200),
                mtu_wire_bytes: 1_250,
                mtu_payload_bytes: 1_172,
                paths: paths.len() as u16,
                // A path stands for five links of 1 us.
                measured: Leg { base_rtt: Duration::from_ns(10_200), links: 5 },
                edge: None,
            },
            paths,
            edge: None,
            last_hop: None,
            senders: 1,
            packets: 1_000,
            packet_every: Duration::ZERO,
            packets_per_message: 1_000,
            cnp_interval: Duration::ZERO,
            timeout: Duration::from_us(100),
            acks_tell: AcksTell::OnePacket,
            overtaken: Overtaken::Waits,
            sample_every: Duration::from_us(10),
            changes: Vec::new(),
            end: Time::from_us(100_000),
            seed: 1,
        }
    }
    /// Path 0 marks every packet.
    pub fn one_path_marked() -> Self {
        let mut scenario = Scenario::steady();
        scenario.paths[0].mark_bytes = 0;
        scenario
    }
    /// Path 0 loses every packet and is not reported down.
    pub fn one_path_dead() -> Self {
        let mut scenario = Scenario::steady();
        scenario.paths[0].loss_permille = 1_000;
        scenario
    }
    /// Path 0 is reported down after 20 us and up again after 60 us.
    pub fn one_path_flaps() -> Self {
        let mut scenario = Scenario::steady();
        scenario.changes =
            vec![(Time::from_us(20), Change::Down(PathId(0))), (Time::from_us(60), Change::Up(PathId(0)))];
        scenario
    }
    /// Eight senders to one receiver whose link marks above 100 KB. Nothing is lost.
    pub fn incast() -> Self {
        let last_hop = Hop { mark_bytes: 100_000, ..Hop::new(Rate::from_gbps(100), Duration::ZERO) };
        let timeout = Duration::from_ms(10);
        Scenario { senders: 8, last_hop: Some(last_hop), timeout, ..Scenario::steady() }
    }
    /// The application offers a packet a microsecond: a tenth of the line.
    pub fn application_limited() -> Self {
        Scenario { packet_every: Duration::from_us(1), ..Scenario::steady() }
    }
    /// Every path loses a packet in fifty. A gap of three packets counts as a loss.
    pub fn losses() -> Self {
        let mut scenario = Scenario { overtaken: Overtaken::Lost(3), ..Scenario::steady() };
        scenario.paths.iter_mut().for_each(|path| path.loss_permille = 20);
        scenario
    }
    /// Path 0 takes three times as long. Acknowledgements tell of every packet that has arrived, and the receiver of
    /// packets that are late by more than 20; after 60 us it has no room for more of those.
    pub fn one_path_long() -> Self {
        let mut scenario = Scenario::steady();
        scenario.paths[0].delay = Duration::from_us(15);
        scenario.acks_tell = AcksTell::AllArrived;
        scenario.overtaken = Overtaken::Late(20);
        scenario.changes = vec![
            (Time::from_us(1), Change::Notices(Notices::Welcome)),
            (Time::from_us(60), Change::Notices(Notices::Paused)),
        ];
        scenario
    }
    /// Path 0 has a quarter of the rate and path 1 half, which the senders learn after 1 us.
    pub fn paths_differ() -> Self {
        let changes = vec![(Time::from_us(1), Change::Known)];
        let mut scenario = Scenario { changes, timeout: Duration::from_ms(10), ..Scenario::steady() };
        scenario.paths[0].rate = Rate::from_gbps(25);
        scenario.paths[1].rate = Rate::from_gbps(50);
        scenario
    }
    /// The edge of the site, a microsecond away, answers every packet. Others leave 10 Gb/s of it to the sender for 100 us.
    pub fn edge_answers() -> Self {
        let changes = vec![(Time::from_us(100), Change::EdgeFree)];
        let mut scenario = Scenario { changes, timeout: Duration::from_ms(10), ..Scenario::steady() };
        let line_rate = scenario.env.line_rate;
        scenario.edge =
            Some(Hop { competing: Rate::from_gbps(90), ..Hop::new(line_rate, Duration::from_us(1)) });
        // A packet takes 100 ns more, and the wire to the edge.
        let base_rtt = scenario.env.base_rtt + Duration::from_ns(1_100);
        scenario.env.base_rtt = base_rtt;
        scenario.env.measured = Leg { base_rtt, links: 6 };
        // From the NIC through the edge and back.
        scenario.env.edge = Some(Leg { base_rtt: Duration::from_ns(2_200), links: 1 });
        scenario
    }
    /// Four senders to one receiver, behind queues that trim: path 0, of a quarter of the rate, at 25 KB, and the receiver's link
    /// at 100 KB, which marks above 20 KB.
    pub fn trims() -> Self {
        let mut scenario = Scenario { senders: 4, ..Scenario::steady() };
        scenario.paths[0] =
            Hop { rate: Rate::from_gbps(25), mark_bytes: 5_000, trim_bytes: 25_000, ..scenario.paths[0] };
        let last = Hop::new(Rate::from_gbps(100), Duration::ZERO);
        scenario.last_hop = Some(Hop { mark_bytes: 20_000, trim_bytes: 100_000, ..last });
        scenario
    }
    /// The scenarios every scheme owes, by name.
    pub fn all() -> [(&'static str, Scenario); 11] {
        [
            ("steady", Scenario::steady()),
            ("one path marked", Scenario::one_path_marked()),
            ("one path dead", Scenario::one_path_dead()),
            ("one path flaps", Scenario::one_path_flaps()),
            ("incast", Scenario::incast()),
            ("application limited", Scenario::application_limited()),
            ("losses", Scenario::losses()),
            ("one path long", Scenario::one_path_long()),
            ("paths differ", Scenario::paths_differ()),
            ("edge answers", Scenario::edge_answers()),
            ("trims", Scenario::trims()),
        ]
    }
    /// The same with delays that vary by up to `percent` on every path.
    pub fn with_jitter(mut self, percent: u32) -> Self {
        for path in &mut self.paths {
            path.jitter_percent = percent;
        }
        self
    }
    /// All there is to know of a path; `view` keeps its state.
    pub(super) fn know(&self, view: &mut PathView, hop: &Hop) {
        let packet = u64::from(self.env.mtu_wire_bytes);
        let transmission = self.env.line_rate.time_for(packet) + hop.rate.time_for(packet);
        view.base_one_way = Some(transmission + hop.delay);
        view.base_rtt = Some(transmission + hop.delay * 2);
        view.transmission = Some(transmission);
        view.rate = Some(hop.rate);
        view.links = Some(self.env.measured.links);
    }
    /// Runs it on the policies that `make` builds, one a sender. Every call is checked.
    pub fn run<P: Policy>(&self, make: impl FnMut(&PolicyEnv, &mut Rng) -> P) -> Report {
        Bench::new(self, make).run()
    }
}
