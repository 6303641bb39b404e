//! Sizes of messages on the wire, and their times in an idle network.

use pathweave_execution::max_min::bytes_per_ps;
use pathweave_sim::{IdealPath, NetworkConfig, PathProfile, PathUse, full_and_ack_bytes};
use pathweave_units::{Duration, Rate, mix64};

use crate::delays::{PathDelay, SpreadPackets, are_unequal, lateness_ps, one_way_ps};
use crate::profile::Profile;

/// Number of entries of the cache, a power of two.
const REMEMBERED: usize = 1 << 6;

/// Size of a message on a path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Size {
    /// Bytes on the wire.
    pub(crate) wire: u64,
    /// Packets.
    pub(crate) packets: u64,
    /// Completion time in an idle network with the rates of the moment.
    pub(crate) ideal: Duration,
    /// The part of `ideal` that is not transmission at the path's rate.
    pub(crate) base: Duration,
    /// Rate of the path at the moment, in bytes per picosecond.
    pub(crate) rate: f64,
    /// Ratio of the rate of the sender's ports to that of the path.
    pub(crate) overrun: f64,
    /// One-way time in picoseconds of a packet by which `ideal` goes. 0 if all paths are alike.
    pub(crate) reference_ps: f64,
}

/// Rate of a path.
#[derive(Clone, Copy, Debug)]
struct PathRate {
    /// Bytes per picosecond that all paths together carry.
    rate: f64,
    slower: Rate,
    /// Ratio of the rate of the sender's ports to that of the paths.
    overrun: f64,
}

impl PathRate {
    /// Returns the rate of the fastest of these paths, whose links have this share of their capacity.
    fn of(profiles: &[PathProfile], share: f64) -> Self {
        let slower = profiles.iter().map(|profile| profile.most).max().unwrap_or(Rate::ZERO);
        let fastest = profiles.iter().map(|profile| profile.nic_rate).max().unwrap_or(Rate::ZERO);
        let overrun = fastest.as_bps() as f64 / slower.as_bps().max(1) as f64;
        PathRate { rate: share * bytes_per_ps(slower), slower, overrun }
    }
}

/// Sizes of messages by path, with a cache of recent ones.
pub(crate) struct Sizes {
    network: NetworkConfig,
    packet_bytes: u32,
    ack_bytes: u32,
    /// Share of the links' capacity that is used.
    share: f64,
    /// Data by profile of the network, for one path and for all paths.
    paths: Vec<[Path; 2]>,
    known: [Option<(Key, Size)>; REMEMBERED],
}

/// Number of the profile, use of one or all paths, and bytes of the message.
type Key = (u32, PathUse, u64);

/// One path, or all paths side by side.
#[derive(Clone, Debug)]
struct Path {
    ideal: Ideal,
    line: PathRate,
    back: Duration,
    /// The path with its links at their best. `None` if it is the same.
    best: Option<BestPath>,
    /// Delays of sprayed packets. Empty if all paths are alike.
    delays: Vec<PathDelay>,
}

/// Path with its links at their best.
#[derive(Clone, Debug)]
struct BestPath {
    ideal: Ideal,
    rate: f64,
    back: Duration,
}

/// Alternatives, of which the fastest is the ideal one.
#[derive(Clone, Debug)]
struct Ideal(Vec<IdealPath<PathProfile>>);

impl Ideal {
    /// Returns the wire bytes of a message that this number of queue pairs share, and its idle time.
    fn message(&self, bytes: u64, queue_pairs: usize) -> (u64, Duration) {
        self.fastest(bytes, queue_pairs).1
    }

    fn fastest(&self, bytes: u64, queue_pairs: usize) -> (&PathProfile, (u64, Duration)) {
        let all = self.0.iter().map(|path| (path.profile(), path.message(bytes, queue_pairs)));
        all.min_by_key(|(_, (_, ideal))| *ideal).expect("a pair with a route has a path")
    }
}

impl Sizes {
    pub(crate) fn new(network: &NetworkConfig) -> Self {
        let (packet_bytes, ack_bytes) = full_and_ack_bytes(network);
        let (paths, known) = (Vec::new(), [None; REMEMBERED]);
        Sizes { network: network.clone(), packet_bytes, ack_bytes, share: 1.0, paths, known }
    }

    /// Replaces the paths. `share` is the share of the links' capacity that is used.
    pub(crate) fn on_paths(&mut self, profiles: &[Profile], share: f64) {
        let (mtu, framing, verb) = (self.network.mtu.get() as u16, self.network.framing, self.network.verb);
        let of = |profiles: &[PathProfile], used| {
            let mut profiles: Vec<_> = profiles.iter().map(|profile| profile.clone().used(used)).collect();
            if used == PathUse::One {
                profiles.iter_mut().for_each(|profile| profile.nic_rate = profile.port_rate());
            }
            let line = PathRate::of(&profiles, share);
            let back = profiles.iter().map(|profile| profile.one_way(self.ack_bytes)).min();
            let ideals = profiles.into_iter().map(|profile| IdealPath::new(profile, mtu, framing, verb));
            let ideal = Ideal(ideals.collect());
            Path { ideal, line, back: back.unwrap_or(Duration::ZERO), best: None, delays: Vec::new() }
        };
        let of = |Profile { now, best, delays }: &Profile, used| {
            let best = best.as_ref().map(|best| of(best, used));
            let best = best.map(|Path { ideal, line, back, .. }| BestPath { ideal, rate: line.rate, back });
            let delays = if used == PathUse::All { delays.clone() } else { Vec::new() };
            Path { best, delays, ..of(now, used) }
        };
        self.paths = profiles
            .iter()
            .map(|profile| [PathUse::One, PathUse::All].map(|used| of(profile, used)))
            .collect();
        self.share = share;
        self.known = [None; REMEMBERED];
    }

    /// Returns the bytes of a full packet on the wire.
    pub(crate) fn packet_bytes(&self) -> u32 {
        self.packet_bytes
    }

    /// Returns the bytes of an acknowledgement on the wire.
    pub(crate) fn ack_bytes(&self) -> u32 {
        self.ack_bytes
    }

    /// Returns the bytes per picosecond that one path of this profile, or all of them, carry at their best.
    pub(crate) fn line_rate(&self, number: u32, used: PathUse) -> f64 {
        let Path { line, best, .. } = &self.paths[number as usize][used as usize];
        best.as_ref().map_or(line.rate, |best| best.rate)
    }

    /// Returns the time in which an idle network at its best delivers a message that this number of queue pairs
    /// share, and the time until it is acknowledged. `size` is that of the message as it is now.
    pub(crate) fn ideal(
        &self,
        number: u32,
        used: PathUse,
        size: (Size, u64),
        queue_pairs: usize,
    ) -> [Duration; 2] {
        let (Size { ideal, .. }, bytes) = size;
        let [one, all] = &self.paths[number as usize];
        let (delivered, back) = match (&if used == PathUse::One { one } else { all }.best, queue_pairs) {
            (None, 1) => (ideal, one.back),
            (None, _) => (all.ideal.message(bytes, queue_pairs).1, one.back),
            (Some(best), _) => (best.ideal.message(bytes, queue_pairs).1, best.back),
        };
        [delivered, delivered + back]
    }

    /// Returns the least one-way time of an acknowledgement.
    pub(crate) fn back(&self, number: u32) -> Duration {
        self.paths[number as usize][0].back
    }

    /// Returns the time by which sprayed packets delay the end of a message after that of its packets on the path by
    /// which its ideal time goes. `interval_ps` is the time between packets. `draw` is random from 0 to 1, or `None` for
    /// the mean.
    pub(crate) fn lateness(&self, number: u32, size: &Size, interval_ps: f64, draw: Option<f64>) -> Duration {
        let Path { delays, .. } = &self.paths[number as usize][PathUse::All as usize];
        if delays.is_empty() {
            return Duration::ZERO;
        }
        let packets = SpreadPackets { count: size.packets, bytes: self.largest_packet(size), interval_ps };
        Duration::from_ps(lateness_ps(delays, packets, size.reference_ps, draw) as u64)
    }

    /// Returns the one-way time of an acknowledgement of sprayed packets.
    pub(crate) fn sprayed_back(&self, number: u32, draw: Option<f64>) -> Duration {
        let Path { delays, .. } = &self.paths[number as usize][PathUse::All as usize];
        match delays.is_empty() {
            true => self.back(number),
            false => Duration::from_ps(one_way_ps(delays, f64::from(self.ack_bytes), draw) as u64),
        }
    }

    /// Returns true if sprayed packets take paths of unlike delays.
    pub(crate) fn has_unequal_delays(&self, number: u32, size: &Size) -> bool {
        let Path { delays, .. } = &self.paths[number as usize][PathUse::All as usize];
        are_unequal(delays, self.largest_packet(size))
    }

    /// Returns the bytes on the wire of the largest packet of a message.
    fn largest_packet(&self, size: &Size) -> f64 {
        size.wire.min(u64::from(self.packet_bytes)) as f64
    }

    /// Returns the size of a message on a path.
    pub(crate) fn of(&mut self, number: u32, used: PathUse, bytes: u64) -> Size {
        let key = (number, used, bytes);
        let place = mix64(bytes ^ u64::from(number) << 40) as usize % REMEMBERED;
        if let Some((known, size)) = &self.known[place]
            && *known == key
        {
            return *size;
        }
        let path = &self.paths[number as usize][used as usize];
        let (fastest, message) = path.ideal.fastest(bytes, 1);
        let mut size = self.sized(bytes, message, path.line);
        if !path.delays.is_empty() {
            let mean = fastest.mean_delay.filter(|_| size.packets > 1);
            let propagation = mean.unwrap_or_else(|| fastest.hops.iter().map(|(_, delay)| *delay).sum());
            let transmission = fastest.transmission(self.largest_packet(&size) as u32);
            size.reference_ps = (propagation + transmission).as_ps() as f64;
        }
        self.known[place] = Some((key, size));
        size
    }

    fn sized(&self, bytes: u64, (wire, ideal): (u64, Duration), line: PathRate) -> Size {
        Size {
            wire,
            packets: bytes.div_ceil(self.network.mtu.get()).max(1),
            ideal,
            base: ideal.saturating_sub(line.slower.time_for(wire)),
            rate: line.rate,
            overrun: line.overrun,
            reference_ps: 0.0,
        }
    }

    /// Returns the size of a message on one route.
    pub(crate) fn on_route(&self, route: PathProfile, bytes: u64) -> Size {
        let line = PathRate::of(std::slice::from_ref(&route), self.share);
        let (mtu, framing, verb) = (self.network.mtu.get() as u16, self.network.framing, self.network.verb);
        let message = IdealPath::new(route, mtu, framing, verb).message(bytes, 1);
        self.sized(bytes, message, line)
    }
}
