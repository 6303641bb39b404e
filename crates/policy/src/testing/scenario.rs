//! Scenarios: paths, senders, traffic, and changes during a run.

use alloc::vec;
use alloc::vec::Vec;

use pathweave_units::{Duration, PathId, Rate, Rng, Time};
use pathweave_wire::NoticePermission;

use super::bench::Bench;
use super::channel::Hop;
use super::report::Report;
use crate::{MeasuredSection, PathView, Policy, PolicyEnv};

/// A change at a given time.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// The path dies, and the senders learn of it.
    Down(PathId),
    /// The path comes up again, and the senders learn of it.
    Up(PathId),
    /// Competing traffic takes this much of the path from now on.
    Competing(PathId, Rate),
    /// Competing traffic at the edge ends.
    EdgeFree,
    /// The senders learn all properties of the paths: rates, delays, links.
    Known,
    /// The receiver informs the senders whether it accepts notices.
    Notices(NoticePermission),
}

/// Packets that an acknowledgement reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcksTell {
    /// Only the packet that triggered it.
    OnePacket,
    /// Every packet that has arrived. An earlier acknowledgement, of another path, may have reported the packet that
    /// triggered it. It is then only a measurement ([`FeedbackKind::Echo`](crate::FeedbackKind::PathSample)).
    AllArrived,
}

/// Treatment of a packet once one sent a number of packets later is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overtaken {
    /// No effect: only the timer detects losses.
    Waits,
    /// The packet counts as lost and is retransmitted, if it is the first transmission.
    Lost(u64),
    /// The receiver reports the packet late.
    Late(u64),
}

/// A scripted experiment on one policy, or on many that share the channel.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Environment passed to the policies. `env.line_rate` is the rate of each sender's NIC.
    pub env: PolicyEnv,
    /// The paths, shared by all senders; as many as `env.paths`.
    pub paths: Vec<Hop>,
    /// Edge of the senders' site, which every data packet passes before its path; the edge replies to each.
    pub edge: Option<Hop>,
    /// Last hop, which every packet of every sender passes after its path.
    pub last_hop: Option<Hop>,
    /// Number of senders.
    pub senders: u32,
    /// Number of full packets of each sender.
    pub packets: u64,
    /// Interval at which a sender's application has a packet ready. Zero: all at once.
    pub packet_every: Duration,
    /// Packets per message.
    pub packets_per_message: u64,
    /// Shortest time between notifications of a sender. Zero: one for each marked packet.
    pub cnp_interval: Duration,
    /// Time after which an unacknowledged packet counts as lost.
    pub timeout: Duration,
    /// Packets that acknowledgements report.
    pub acks_tell: AcksTell,
    /// Treatment of packets that others overtake.
    pub overtaken: Overtaken,
    /// Interval at which rates are sampled.
    pub sample_every: Duration,
    /// Changes, in order of time.
    pub changes: Vec<(Time, Change)>,
    /// Latest end of a run; unfinished senders are reported as such.
    pub end: Time,
    /// Seed of every random stream.
    pub seed: u64,
}

impl Scenario {
    /// Returns a scenario of one sender with 1,000 packets of 1,250 bytes (100 ns each) at 100 Gb/s, over four paths
    /// of 100 Gb/s and 5 us each way.
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
                // A path represents five links of 1 us.
                measured: MeasuredSection { base_rtt: Duration::from_ns(10_200), links: 5 },
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
    /// Returns a scenario in which path 0 marks every packet.
    pub fn one_path_marked() -> Self {
        let mut scenario = Scenario::steady();
        scenario.paths[0].mark_bytes = 0;
        scenario
    }
    /// Returns a scenario in which path 0 loses every packet and is not reported down.
    pub fn one_path_dead() -> Self {
        let mut scenario = Scenario::steady();
        scenario.paths[0].loss_permille = 1_000;
        scenario
    }
    /// Returns a scenario in which path 0 is reported down after 20 us and up again after 60 us.
    pub fn one_path_flaps() -> Self {
        let mut scenario = Scenario::steady();
        scenario.changes =
            vec![(Time::from_us(20), Change::Down(PathId(0))), (Time::from_us(60), Change::Up(PathId(0)))];
        scenario
    }
    /// Returns a scenario of eight senders to one receiver whose link marks above 100 KB. Nothing is lost.
    pub fn incast() -> Self {
        let last_hop = Hop { mark_bytes: 100_000, ..Hop::new(Rate::from_gbps(100), Duration::ZERO) };
        let timeout = Duration::from_ms(10);
        Scenario { senders: 8, last_hop: Some(last_hop), timeout, ..Scenario::steady() }
    }
    /// Returns a scenario whose application offers a packet per microsecond: a tenth of the line rate.
    pub fn application_limited() -> Self {
        Scenario { packet_every: Duration::from_us(1), ..Scenario::steady() }
    }
    /// Returns a scenario in which every path loses one packet in fifty. A gap of three packets counts as a loss.
    pub fn losses() -> Self {
        let mut scenario = Scenario { overtaken: Overtaken::Lost(3), ..Scenario::steady() };
        scenario.paths.iter_mut().for_each(|path| path.loss_permille = 20);
        scenario
    }
    /// Returns a scenario in which path 0 has three times the delay. Acknowledgements report every packet that has
    /// arrived. The receiver reports packets that are late by more than 20, and after 60 us accepts no more notices.
    pub fn one_path_long() -> Self {
        let mut scenario = Scenario::steady();
        scenario.paths[0].delay = Duration::from_us(15);
        scenario.acks_tell = AcksTell::AllArrived;
        scenario.overtaken = Overtaken::Late(20);
        scenario.changes = vec![
            (Time::from_us(1), Change::Notices(NoticePermission::Welcome)),
            (Time::from_us(60), Change::Notices(NoticePermission::Paused)),
        ];
        scenario
    }
    /// Returns a scenario in which path 0 has a quarter of the rate and path 1 half, which the senders learn after 1
    /// us.
    pub fn paths_differ() -> Self {
        let changes = vec![(Time::from_us(1), Change::Known)];
        let mut scenario = Scenario { changes, timeout: Duration::from_ms(10), ..Scenario::steady() };
        scenario.paths[0].rate = Rate::from_gbps(25);
        scenario.paths[1].rate = Rate::from_gbps(50);
        scenario
    }
    /// Returns a scenario in which the edge of the site, a microsecond away, replies to every packet. For 100 us
    /// competing traffic leaves 10 Gb/s of it to the sender.
    pub fn edge_answers() -> Self {
        let changes = vec![(Time::from_us(100), Change::EdgeFree)];
        let mut scenario = Scenario { changes, timeout: Duration::from_ms(10), ..Scenario::steady() };
        let line_rate = scenario.env.line_rate;
        scenario.edge =
            Some(Hop { competing: Rate::from_gbps(90), ..Hop::new(line_rate, Duration::from_us(1)) });
        // A packet takes 100 ns more, plus the delay of the link to the edge.
        let base_rtt = scenario.env.base_rtt + Duration::from_ns(1_100);
        scenario.env.base_rtt = base_rtt;
        scenario.env.measured = MeasuredSection { base_rtt, links: 6 };
        // Round trip from the NIC through the edge.
        scenario.env.edge = Some(MeasuredSection { base_rtt: Duration::from_ns(2_200), links: 1 });
        scenario
    }
    /// Returns a scenario of four senders to one receiver, behind queues that trim: path 0, of a quarter of the rate,
    /// at 25 KB, and the receiver's link at 100 KB, which marks above 20 KB.
    pub fn trims() -> Self {
        let mut scenario = Scenario { senders: 4, ..Scenario::steady() };
        scenario.paths[0] =
            Hop { rate: Rate::from_gbps(25), mark_bytes: 5_000, trim_bytes: 25_000, ..scenario.paths[0] };
        let last = Hop::new(Rate::from_gbps(100), Duration::ZERO);
        scenario.last_hop = Some(Hop { mark_bytes: 20_000, trim_bytes: 100_000, ..last });
        scenario
    }
    /// Returns the scenarios that every scheme must pass, by name.
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
    /// Returns the scenario with delays that vary by up to `percent` on every path.
    pub fn with_jitter(mut self, percent: u32) -> Self {
        for path in &mut self.paths {
            path.jitter_percent = percent;
        }
        self
    }
    /// Sets all properties of a path; the state of `view` stays.
    pub(super) fn know(&self, view: &mut PathView, hop: &Hop) {
        let packet = u64::from(self.env.mtu_wire_bytes);
        let transmission = self.env.line_rate.time_for(packet) + hop.rate.time_for(packet);
        view.base_one_way = Some(transmission + hop.delay);
        view.base_rtt = Some(transmission + hop.delay * 2);
        view.transmission = Some(transmission);
        view.rate = Some(hop.rate);
        view.links = Some(self.env.measured.links);
    }
    /// Runs the scenario with the policies that `make` builds, one per sender. Every call is checked.
    pub fn run<P: Policy>(&self, make: impl FnMut(&PolicyEnv, &mut Rng) -> P) -> Report {
        Bench::new(self, make).run()
    }
}
