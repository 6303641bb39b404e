//! What is run: paths, senders, traffic, and what changes on the way.

use alloc::vec;
use alloc::vec::Vec;

use pathweave_units::{Duration, PathId, Rate, Rng, Time};

use super::bench::Bench;
use super::channel::Hop;
use super::report::Report;
use crate::{Leg, Policy, PolicyEnv};

/// Something that happens at a given time.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// The senders learn that the path is dead, and it is.
    Down(PathId),
    /// The senders learn that the path is back, and it is.
    Up(PathId),
    /// Others begin to take this much of the path.
    Competing(PathId, Rate),
}

/// A scripted experiment on one policy or on many that share the channel.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What the policies are told. `env.line_rate` is the rate of each sender's NIC.
    pub env: PolicyEnv,
    /// The paths, shared by all senders; as many as `env.paths`.
    pub paths: Vec<Hop>,
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
            last_hop: None,
            senders: 1,
            packets: 1_000,
            packet_every: Duration::ZERO,
            packets_per_message: 1_000,
            cnp_interval: Duration::ZERO,
            timeout: Duration::from_us(100),
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
    /// Path 0 loses every packet, and nobody says so.
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
    /// The scenarios every scheme owes, by name.
    pub fn all() -> [(&'static str, Scenario); 6] {
        [
            ("steady", Scenario::steady()),
            ("one path marked", Scenario::one_path_marked()),
            ("one path dead", Scenario::one_path_dead()),
            ("one path flaps", Scenario::one_path_flaps()),
            ("incast", Scenario::incast()),
            ("application limited", Scenario::application_limited()),
        ]
    }
    /// The same with delays that vary by up to `percent` on every path.
    pub fn with_jitter(mut self, percent: u32) -> Self {
        for path in &mut self.paths {
            path.jitter_percent = percent;
        }
        self
    }
    /// Runs it on the policies that `make` builds, one a sender. Every call is checked.
    pub fn run<P: Policy>(&self, make: impl FnMut(&PolicyEnv, &mut Rng) -> P) -> Report {
        Bench::new(self, make).run()
    }
}
