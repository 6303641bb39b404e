//! Sizes of messages on the wire, and their times in an idle network.

use pathweave_execution::max_min::bytes_per_ps;
use pathweave_sim::{IdealPath, NetworkConfig, PathProfile, PathUse, full_and_ack_bytes};
use pathweave_units::{Duration, Rate, mix64};

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
}

/// Rate of a path.
#[derive(Clone, Copy, Debug)]
struct PathRate {
    /// Bytes per picosecond that all paths together carry.
    rate: f64,
    slower: Rate,
}

impl PathRate {
    /// Returns the rate of the fastest of these paths, whose links have this share of their capacity.
    fn of(profiles: &[PathProfile], share: f64) -> Self {
        let slower = profiles.iter().map(|profile| profile.most).max().unwrap_or(Rate::ZERO);
        PathRate { rate: share * bytes_per_ps(slower), slower }
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
        let all = self.0.iter().map(|path| path.message(bytes, queue_pairs));
        all.min_by_key(|(_, ideal)| *ideal).expect("a pair with a route has a path")
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
            let profiles: Vec<_> = profiles.iter().map(|profile| profile.clone().used(used)).collect();
            let line = PathRate::of(&profiles, share);
            let back = profiles.iter().map(|profile| profile.one_way(self.ack_bytes)).min();
            let ideals = profiles.into_iter().map(|profile| IdealPath::new(profile, mtu, framing, verb));
            let ideal = Ideal(ideals.collect());
            Path { ideal, line, back: back.unwrap_or(Duration::ZERO), best: None }
        };
        let of = |Profile { now, best }: &Profile, used| {
            let best = best.as_ref().map(|best| of(best, used));
            let best = best.map(|Path { ideal, line, back, .. }| BestPath { ideal, rate: line.rate, back });
            Path { best, ..of(now, used) }
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

    /// Returns the one-way time of an acknowledgement.
    pub(crate) fn back(&self, number: u32) -> Duration {
        self.paths[number as usize][0].back
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
        let size = self.sized(bytes, path.ideal.message(bytes, 1), path.line);
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
