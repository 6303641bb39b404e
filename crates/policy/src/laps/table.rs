//! A host's state of its paths: the path search table (destination to paths) and the path information table, shared
//! by all its queue pairs.

use alloc::boxed::Box;
use alloc::vec;

use pathweave_units::{Duration, HostId, PathId, Time};

use super::calibration::Calibration;
use super::config::{AlphaUnit, LapsConfig, MarginRule};
use super::law::{AfterProbe, Law, Probing, Unmeasured};
use super::rate::Delays;
use super::weights::Weights;
use crate::peers::{PeerIndex, PeerTable};
use crate::shared::SharedState;
use crate::{Egress, PathState, PathView, PeerKind, PolicyEnv};

/// Largest delay of a path, in units of its base, however many probes get no reply.
const MOST_BASES: u64 = 1 << 20;

/// Time without feedback after which a path is probed, in delays of the path (section III-C).
const PROBE_AFTER: u64 = 2;
/// Time without feedback after data after which a path that data takes is probed, in delays of the path: two round
/// trips. Otherwise a path that loses everything would keep its share until a timer expires.
const MISSED_AFTER: u64 = 4;

/// Unit of alpha in averages of noise: with alpha at 2.5 a path whose delay is longer by sixteen averages gets 1/e of
/// the share.
const NOISE_WEIGHT: f64 = 40.0;
/// Weight of the newest difference in the noise average.
const NOISE_GAIN: f64 = 1.0 / 64.0;

/// Fraction of the avoidance threshold below which a path is not taken, even if only its NIC port is free.
const UNUSED_PART: f64 = 0.125;

/// Fraction of an equal share below which a path is avoided: data measures such a path too rarely.
const AVOIDED_SHARE: f64 = 0.5;

/// Calibration period for clocks that are not synchronized; the shortest delay counts for one to two of them. Long
/// against congestion, and short enough that the drift of clocks (usually 20 us a second) does not matter.
const CALIBRATE_EVERY: Duration = Duration::from_ms(200);

/// An entry of the path information table.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// Delay of the idle path plus the margin; a longer delay is congestion.
    base: Duration,
    /// Latest measured delay, or the estimate that replaces it while the path is probed.
    real: Duration,
    /// Time at which `real` was set, or at which the first packet left that has no acknowledgement yet.
    updated: Time,
    state: PathState,
    /// True if `real` is a measurement.
    measured: bool,
    /// True if a packet has left since the last feedback of the path.
    awaited: bool,
}

/// The paths to one host.
#[derive(Debug)]
pub(super) struct PeerPaths {
    paths: Box<[Path]>,
    spray: Weights,
    /// T: largest base of the paths in use.
    threshold: Duration,
    /// Unit of alpha, if it is more than the threshold.
    unit: Duration,
    /// Average difference between two successive delays of one path, over all paths, in picoseconds.
    noise_ps: f64,
    /// Share of the packets below which a path is avoided.
    avoided_below: f64,
    /// Instant before which no path is due for a probe.
    silent_from: Time,
    /// Calibration, if clocks are not synchronized.
    calibration: Option<Box<Calibration>>,
    rules: Rules,
}

/// Part of the configuration and the environment that concerns paths.
#[derive(Clone, Copy, Debug)]
struct Rules {
    alpha: f64,
    alpha_unit: AlphaUnit,
    law: &'static Law,
    margin: MarginRule,
    /// One-way delay of an unknown path.
    usual_delay: Duration,
}

impl PeerPaths {
    fn new(now: Time, config: &LapsConfig, env: &PolicyEnv) -> Self {
        let rules = Rules {
            alpha: config.alpha,
            alpha_unit: config.alpha_unit,
            law: config.law(),
            margin: config.margin_at(env.line_rate, u64::from(env.mtu_wire_bytes)),
            usual_delay: env.base_rtt / 2,
        };
        let real = rules.usual_delay;
        let base = real + rules.margin.for_path(None);
        let path = Path { base, real, updated: now, state: PathState::Up, measured: false, awaited: false };
        let paths = vec![path; usize::from(env.paths)].into_boxed_slice();
        let mut pair = PeerPaths {
            spray: Weights::new(config.arithmetic, paths.len()),
            threshold: Duration::ZERO,
            unit: Duration::ZERO,
            noise_ps: 0.0,
            avoided_below: 0.0,
            silent_from: now,
            calibration: None,
            paths,
            rules,
        };
        pair.set_clock(false);
        pair.rebuild();
        pair
    }

    /// Sets whether delays are absolute. They are if clocks are synchronized and the delays of idle paths are known;
    /// then bases are absolute, too. Otherwise clocks differ by an unknown offset, and delays are relative to the
    /// shortest one.
    fn set_clock(&mut self, absolute: bool) {
        if absolute {
            self.calibration = None;
        } else if self.calibration.is_none() {
            self.calibration = Some(Box::new(Calibration::new(self.paths.len(), CALIBRATE_EVERY)));
        }
    }

    /// Updates the paths that went down, came up or became known. Idempotent: every queue pair to this host passes
    /// the same set.
    pub(super) fn on_paths(&mut self, now: Time, views: &[PathView]) {
        let known = views.iter().all(|view| view.base_one_way.is_some());
        self.set_clock(known);
        let rules = self.rules;
        // A path that is no longer listed cannot be used.
        let mut told = vec![false; self.paths.len()];
        for view in views {
            let Some(path) = self.paths.get_mut(view.id.index()) else { continue };
            told[view.id.index()] = true;
            let idle = view.base_one_way.unwrap_or(rules.usual_delay);
            let base = idle + rules.margin.for_path(Some(view));
            if path.base != base && self.calibration.is_none() {
                path.base = base;
                if !path.measured {
                    path.real = idle;
                }
            }
            if path.state != view.state {
                path.state = view.state;
                path.measured = false;
                path.awaited = false;
                path.updated = now;
            }
        }
        for (path, _) in self.paths.iter_mut().zip(told).filter(|(_, told)| !told) {
            path.state = PathState::Down;
            path.measured = false;
        }
        self.silent_from = now;
        self.rebuild();
    }

    /// Returns true if a path may be used: it is up, or none is.
    fn usable(&self, path: usize) -> bool {
        self.paths[path].state == PathState::Up || self.paths.iter().all(|path| path.state == PathState::Down)
    }

    /// Recomputes the threshold and the weights of all paths from the current state.
    fn rebuild(&mut self) {
        let up = self.paths.iter().filter(|path| path.state == PathState::Up).count();
        self.avoided_below = AVOIDED_SHARE / up.max(1) as f64;
        let usable = |path: &&Path| up == 0 || path.state == PathState::Up;
        let bases = self.paths.iter().filter(usable).map(|path| path.base);
        self.threshold = bases.max().expect("a queue pair has a path").max(Duration::from_ps(1));
        let unit = self.unit.max(self.threshold);
        let delays = self.paths.iter().map(|path| usable(&path).then(|| path.real.as_ps()));
        self.spray.rebuild(self.rules.alpha, unit, delays);
    }

    /// Updates the unit of alpha after a change of the shortest delay or of the noise. Weights are recomputed once
    /// the unit is off by a sixth.
    #[inline]
    pub(super) fn update_alpha_unit(&mut self, delays: &Delays) {
        let noise = match self.rules.alpha_unit {
            AlphaUnit::Threshold => return,
            AlphaUnit::Delay => Duration::ZERO,
            AlphaUnit::Noise => Duration::from_ps((NOISE_WEIGHT * self.noise_ps) as u64),
        };
        let (old, new) = (self.unit.max(self.threshold), delays.fastest.max(noise).max(self.threshold));
        if new > old + old / 6 || old > new + new / 6 {
            self.unit = new;
            self.rebuild();
        }
    }

    /// Sets the delay of a path.
    #[inline]
    fn set_real(&mut self, now: Time, index: usize, real: Duration) {
        let path = &mut self.paths[index];
        path.real = real.min(path.base * MOST_BASES);
        path.updated = now;
        let real = path.real;
        let silent_from = now.saturating_add(real * PROBE_AFTER);
        self.silent_from = self.silent_from.min(silent_from);
        if self.usable(index) && !self.spray.set(index, real.as_ps()) {
            self.rebuild();
        }
    }

    /// Processes the measurement of a packet or a probe: receiver's timestamp minus sender's.
    pub(super) fn measured(&mut self, now: Time, path: PathId, one_way_ps: i64) {
        let index = path.index();
        // A forged acknowledgement may name any path.
        if index >= self.paths.len() {
            return;
        }
        let Some(calibration) = &mut self.calibration else {
            return self.record_delay(now, index, Duration::from_ps(one_way_ps.max(0) as u64));
        };
        let moved_ps = calibration.note(now, index, one_way_ps);
        let above_ps = calibration.above_shortest(one_way_ps);
        if let Some(moved_ps) = moved_ps {
            self.recalibrate(moved_ps);
        }
        self.record_delay(now, index, self.rules.usual_delay + Duration::from_ps(above_ps));
    }

    /// Records a measured delay of a path.
    #[inline]
    fn record_delay(&mut self, now: Time, index: usize, real: Duration) {
        let path = &mut self.paths[index];
        if path.measured {
            let off = real.as_ps().abs_diff(path.real.as_ps()) as f64;
            self.noise_ps += (off - self.noise_ps) * NOISE_GAIN;
        }
        path.measured = true;
        path.awaited = false;
        self.set_real(now, index, real);
    }

    /// Shifts all delays and bases after the shortest delays have changed; that of all paths fell by `moved_ps`.
    #[cold]
    fn recalibrate(&mut self, moved_ps: i64) {
        let Some(calibration) = &self.calibration else { return };
        let margin =
            self.rules.margin.for_path(None).max(self.rules.usual_delay / 4 + self.rules.margin.host_delay);
        for (index, path) in self.paths.iter_mut().enumerate() {
            path.base = self.rules.usual_delay + Duration::from_ps(calibration.idle_above(index)) + margin;
            let real = Duration::from_ps(path.real.as_ps().saturating_add_signed(moved_ps));
            path.real = real.min(path.base * MOST_BASES);
        }
        self.rebuild();
    }

    /// Returns a path that is due for a probe, if there is one. `draw` (0 to less than 1) chooses among several.
    #[inline]
    pub(super) fn silent(&mut self, now: Time, draw: f64) -> Option<PathId> {
        if now <= self.silent_from { None } else { self.find_silent(now, draw) }
    }

    fn find_silent(&mut self, now: Time, draw: f64) -> Option<PathId> {
        let silent = |index: usize| self.probe_due(index).is_some_and(|due| now > due);
        let count = (0..self.paths.len()).filter(|&index| silent(index)).count();
        if count == 0 {
            let up = self.paths.iter().enumerate().filter(|(_, path)| path.state == PathState::Up);
            // A path that is not due yet may become due: if data gets no acknowledgement, or if other paths get
            // faster.
            let again = up.map(|(index, path)| {
                self.probe_due(index).unwrap_or_else(|| now.saturating_add(path.real * PROBE_AFTER))
            });
            self.silent_from = again.min().unwrap_or(Time::MAX);
            return None;
        }
        let chosen = ((draw * count as f64) as usize).min(count - 1);
        let found = (0..self.paths.len()).filter(|&index| silent(index)).nth(chosen);
        found.map(|index| PathId(index as u16))
    }

    /// Returns the instant after which a path is probed without feedback; `None` if it is not to be probed in its
    /// current state.
    fn probe_due(&self, index: usize) -> Option<Time> {
        let path = &self.paths[index];
        let after = match self.rules.law.probing {
            _ if path.state != PathState::Up => return None,
            Probing::One | Probing::All => PROBE_AFTER,
            Probing::OneAvoided if self.spray.share(index) < self.avoided_below => PROBE_AFTER,
            Probing::OneAvoided if path.awaited => MISSED_AFTER,
            Probing::OneAvoided => return None,
        };
        Some(path.updated.saturating_add(path.real * after))
    }

    /// Records that a data packet has left.
    #[inline]
    pub(super) fn sent(&mut self, now: Time, path: PathId) {
        if self.rules.law.probing == Probing::OneAvoided {
            let path = &mut self.paths[path.index()];
            if !path.awaited {
                (path.awaited, path.updated) = (true, now);
            }
        }
    }

    /// Records that a probe has left.
    pub(super) fn probed(&mut self, now: Time, path: PathId) {
        let entry = &mut self.paths[path.index()];
        entry.awaited = true;
        let real = match self.rules.law.after_probe {
            AfterProbe::Doubled => {
                entry.measured = false;
                entry.real * 2
            }
            AfterProbe::Kept => entry.real,
        };
        self.set_real(now, path.index(), real);
    }

    /// Processes a lost packet of this path. If nothing at all has returned for a round trip or more since data went
    /// there, the path counts as probed without reply. If other packets return, they measure the path.
    pub(super) fn lost(&mut self, now: Time, path: PathId) {
        let Some(entry) = self.paths.get(path.index()) else { return };
        let silent_for = now.saturating_since(entry.updated);
        if self.rules.law.probing == Probing::OneAvoided
            && entry.awaited
            && silent_for >= entry.real * PROBE_AFTER
        {
            self.probed(now, path);
        }
    }

    /// Processes the expiry of a path's timer.
    pub(super) fn timed_out(&mut self, path: PathId) {
        if let Some(path) = self.paths.get_mut(path.index()) {
            path.measured = false;
        }
    }

    /// Returns the path for a packet; `draw` is 0 to less than 1.
    #[inline]
    pub(super) fn at(&self, draw: f64, egress: Egress) -> PathId {
        let drawn = PathId(self.spray.at(draw) as u16);
        if egress.is_free(drawn) || egress.free() == 0 {
            return drawn;
        }
        self.at_free_port(draw, egress).unwrap_or(drawn)
    }

    /// Draws among the paths whose NIC port is free, except those with hardly any share. Noise of delays must not
    /// leave a port idle.
    fn at_free_port(&self, draw: f64, egress: Egress) -> Option<PathId> {
        let paths = || {
            let free = (0..self.paths.len()).filter(|index| egress.is_free(PathId(*index as u16)));
            free.map(|index| (index, self.spray.share(index)))
                .filter(|&(_, share)| share > 0.0 && share >= self.avoided_below * UNUSED_PART)
        };
        let mut left_over = draw * paths().map(|(_, share)| share).sum::<f64>();
        let drawn = paths().find(|(_, share)| {
            left_over -= share;
            left_over < 0.0
        });
        drawn.or_else(|| paths().next_back()).map(|(index, _)| PathId(index as u16))
    }

    /// Returns T.
    #[inline]
    pub(super) fn threshold(&self) -> Duration {
        self.threshold
    }

    /// Returns the delays that congestion control uses; `None` while nothing is measured.
    pub(super) fn delays(&self) -> Option<Delays> {
        let counts = |path: &&Path| {
            path.state == PathState::Up && (path.measured || self.rules.law.unmeasured == Unmeasured::Counted)
        };
        let mut paths = self.paths.iter().filter(counts);
        let first = paths.next()?;
        let (mut fastest, mut slowest) = (first.real, first.real);
        for path in paths {
            fastest = fastest.min(path.real);
            slowest = slowest.max(path.real);
        }
        Some(Delays { congested: fastest > self.threshold, fastest, slowest, threshold: self.threshold })
    }

    /// Returns the current delay of a path, and its share of the packets.
    #[cfg(test)]
    pub(super) fn view(&self, path: u16) -> (Duration, f64) {
        (self.paths[usize::from(path)].real, self.spray.share(usize::from(path)))
    }

    /// Returns the size of the tables in bytes.
    fn bytes(&self) -> usize {
        self.paths.len() * size_of::<Path>() + self.spray.bytes()
    }
}

/// State of LAPS at one host: the path search table, and the path information table behind it.
#[derive(Debug)]
pub struct LapsHost {
    config: LapsConfig,
    pairs: PeerTable<PeerPaths>,
}

/// Sizes of a host's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSizes {
    /// Entries of the path search table: destinations.
    pub destinations: usize,
    /// Entries of the path information table: paths.
    pub paths: usize,
    /// Bytes of the path information table, including the weights for the choice among paths.
    pub bytes: usize,
}

impl LapsHost {
    pub(super) fn new(config: LapsConfig) -> Self {
        LapsHost { config, pairs: PeerTable::new() }
    }
    pub(super) fn config(&self) -> &LapsConfig {
        &self.config
    }
    /// Returns the entry of the paths to a host, creating it if it does not exist.
    pub(super) fn join(&mut self, now: Time, peer: HostId, env: &PolicyEnv) -> PeerIndex {
        let config = &self.config;
        self.pairs.join(peer, env.paths, || PeerPaths::new(now, config, env))
    }
    /// Leaves an entry when a queue pair closes.
    pub(super) fn leave(&mut self, pair: PeerIndex, peers: PeerKind) {
        self.pairs.leave(pair, peers);
    }
    #[inline]
    pub(super) fn pair(&mut self, index: PeerIndex) -> &mut PeerPaths {
        self.pairs.get_mut(index)
    }
    /// Returns the sizes of the tables.
    pub fn sizes(&self) -> TableSizes {
        TableSizes {
            destinations: self.pairs.len(),
            paths: self.pairs.iter().map(|pair| pair.paths.len()).sum(),
            bytes: self.pairs.iter().map(PeerPaths::bytes).sum(),
        }
    }
}

impl SharedState for LapsHost {
    fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
    fn forget(&mut self, peer: HostId) {
        self.pairs.forget(peer);
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
