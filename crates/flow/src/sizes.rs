//! Sizes of messages on the wire, and their times in an idle network.

use pathweave_execution::max_min::bytes_per_ps;
use pathweave_sim::{IdealPath, NetworkConfig, PathProfile, PathUse, full_and_ack_bytes};
use pathweave_units::{Duration, Rate, mix64};

use crate::network::Profile;

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
    paths: Vec<[PathsOfPair; 2]>,
    known: [Option<(Key, Size)>; REMEMBERED],
}

/// Number of the profile, use of one or all paths, and bytes of the message.
type Key = (u32, PathUse, u64);

/// Paths of a pair: at the rates of the moment, and with their links at their best if that differs.
#[derive(Clone, Debug)]
struct PathsOfPair {
    now: Paths,
    best: Option<Paths>,
}

/// One path, or all paths side by side.
#[derive(Clone, Debug)]
struct Paths {
    /// Alternatives, of which the fastest is the ideal one.
    ideals: Vec<IdealPath<PathProfile>>,
    line: PathRate,
    back: Duration,
}

impl Paths {
    /// Returns the wire bytes of a message that this number of queue pairs share, and its idle time.
    fn message(&self, bytes: u64, queue_pairs: usize) -> (u64, Duration) {
        let all = self.ideals.iter().map(|path| path.message(bytes, queue_pairs));
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
        let of = |paths: &[PathProfile], used| {
            let paths: Vec<_> = paths.iter().map(|path| path.clone().used(used)).collect();
            let line = PathRate::of(&paths, share);
            let back = paths.iter().map(|path| path.one_way(self.ack_bytes)).min();
            let ideals = paths.into_iter().map(|path| IdealPath::new(path, mtu, framing, verb));
            Paths { ideals: ideals.collect(), line, back: back.unwrap_or(Duration::ZERO) }
        };
        self.paths = profiles
            .iter()
            .map(|Profile { now, best }| {
                [PathUse::One, PathUse::All].map(|used| {
                    let best = best.as_ref().map(|paths| of(paths, used));
                    PathsOfPair { now: of(now, used), best }
                })
            })
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
        let PathsOfPair { now, best } = &self.paths[number as usize][used as usize];
        best.as_ref().unwrap_or(now).line.rate
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
            (None, 1) => (ideal, one.now.back),
            (None, _) => (all.now.message(bytes, queue_pairs).1, one.now.back),
            (Some(best), _) => (best.message(bytes, queue_pairs).1, best.back),
        };
        [delivered, delivered + back]
    }

    /// Returns the one-way time of an acknowledgement.
    pub(crate) fn back(&self, number: u32) -> Duration {
        self.paths[number as usize][0].now.back
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
        let path = &self.paths[number as usize][used as usize].now;
        let size = self.sized(bytes, path.message(bytes, 1), path.line);
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

    /// Returns the size of a message on one route, and the rate of the route.
    pub(crate) fn on_route(&self, route: PathProfile, bytes: u64) -> (Size, f64) {
        let line = PathRate::of(std::slice::from_ref(&route), self.share);
        let (mtu, framing, verb) = (self.network.mtu.get() as u16, self.network.framing, self.network.verb);
        let message = IdealPath::new(route, mtu, framing, verb).message(bytes, 1);
        (self.sized(bytes, message, line), line.rate)
    }
}
