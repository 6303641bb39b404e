//! State of the paths to a host (DLBF, section III-B).

use alloc::vec::Vec;

use pathweave_units::{Duration, PathId, Rng, Time};

use crate::{PathState, PathView};

/// State of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathStatus {
    /// Nothing recent is known.
    Unprobed,
    /// Packets arrived unmarked.
    Available,
    /// A packet was marked.
    Unavailable,
}

#[derive(Clone, Copy, Debug)]
struct Path {
    id: PathId,
    usable: bool,
    known: PathStatus,
    since: Time,
    /// One-way delay of the last acknowledged packet, measured by two clocks: only differences are meaningful.
    one_way_ps: Option<i64>,
}

/// The paths to a host.
#[derive(Clone, Debug)]
pub struct PathTable {
    /// Sorted by identifier.
    paths: Vec<Path>,
    available_for: Duration,
    unavailable_for: Duration,
}

impl PathTable {
    /// Creates paths 0 to `count - 1`, all unknown.
    pub fn new(count: u16, available_for: Duration, unavailable_for: Duration) -> Self {
        let paths = (0..count).map(|id| Path::unknown(PathId(id))).collect();
        PathTable { paths, available_for, unavailable_for }
    }

    /// Replaces the set of paths. Paths that remain keep their state.
    pub fn set(&mut self, views: &[PathView]) {
        let any_up = views.iter().any(|view| view.state == PathState::Up);
        let path = |view: &PathView| {
            let old = self.find(view.id).copied().unwrap_or(Path::unknown(view.id));
            Path { usable: !any_up || view.state == PathState::Up, ..old }
        };
        let mut paths: Vec<Path> = views.iter().map(path).collect();
        paths.sort_by_key(|path| path.id);
        paths.dedup_by_key(|path| path.id);
        self.paths = paths;
    }

    fn index(&self, id: PathId) -> Option<usize> {
        // Paths are mostly numbered from 0 without gaps.
        let dense = self.paths.get(id.index()).filter(|path| path.id == id).map(|_| id.index());
        dense.or_else(|| self.paths.binary_search_by_key(&id, |path| path.id).ok())
    }
    fn find(&self, id: PathId) -> Option<&Path> {
        self.index(id).map(|index| &self.paths[index])
    }

    /// Returns true if the path is usable.
    pub fn is_usable(&self, id: PathId) -> bool {
        self.find(id).is_some_and(|path| path.usable)
    }
    /// Returns the current state of a path.
    pub fn knowledge(&self, id: PathId, now: Time) -> PathStatus {
        self.find(id).map_or(PathStatus::Unprobed, |path| self.known(path, now))
    }
    fn known(&self, path: &Path, now: Time) -> PathStatus {
        let lasts = match path.known {
            PathStatus::Unprobed => return PathStatus::Unprobed,
            PathStatus::Available => self.available_for,
            PathStatus::Unavailable => self.unavailable_for,
        };
        if now.saturating_since(path.since) > lasts { PathStatus::Unprobed } else { path.known }
    }
    /// Returns the path's latest one-way delay, if it was ever measured.
    pub fn one_way_ps(&self, id: PathId) -> Option<i64> {
        self.find(id)?.one_way_ps
    }
    /// Returns the least one-way delay of all paths.
    pub fn least_one_way_ps(&self) -> Option<i64> {
        self.paths.iter().filter_map(|path| path.one_way_ps).min()
    }

    /// Updates a path with the acknowledgement of a packet.
    pub fn on_ack(&mut self, now: Time, id: PathId, marked: bool, one_way_ps: i64) {
        let Some(index) = self.index(id) else { return };
        let known = self.known(&self.paths[index], now);
        let path = &mut self.paths[index];
        path.one_way_ps = Some(one_way_ps);
        // Marks are random, so an unmarked packet does not clear a congested path: only time does.
        if marked {
            (path.known, path.since) = (PathStatus::Unavailable, now);
        } else if known != PathStatus::Unavailable {
            (path.known, path.since) = (PathStatus::Available, now);
        }
    }

    /// Marks a path as congested after a packet on it timed out.
    pub fn on_timeout(&mut self, now: Time, id: PathId) {
        if let Some(index) = self.index(id) {
            (self.paths[index].known, self.paths[index].since) = (PathStatus::Unavailable, now);
        }
    }

    /// Selects a path by algorithm 1: the path in use unless it is congested; else a random available path; else a
    /// random unknown path; else the path in use. Without a path in use, it returns any path, at worst a congested
    /// one.
    pub fn select(&self, now: Time, old: Option<PathId>, rng: &mut Rng) -> PathId {
        let old = old.filter(|&old| self.is_usable(old));
        if let Some(old) = old
            && self.knowledge(old, now) != PathStatus::Unavailable
        {
            return old;
        }
        let mut draw = |wanted: Option<PathStatus>| {
            let is_wanted =
                |path: &&Path| path.usable && wanted.is_none_or(|wanted| self.known(path, now) == wanted);
            let count = self.paths.iter().filter(is_wanted).count() as u32;
            let nth = if count == 0 { return None } else { rng.below(count) };
            self.paths.iter().filter(is_wanted).nth(nth as usize).map(|path| path.id)
        };
        draw(Some(PathStatus::Available))
            .or_else(|| draw(Some(PathStatus::Unprobed)))
            .or(old)
            .or_else(|| draw(None))
            .expect("a queue pair has a path, and one of them is usable")
    }

    /// Returns true if a usable path other than `id` is not known to be congested.
    pub fn has_other(&self, now: Time, id: PathId) -> bool {
        let other = |path: &Path| path.id != id && path.usable;
        self.paths.iter().any(|path| other(path) && self.known(path, now) != PathStatus::Unavailable)
    }
}

impl Path {
    const fn unknown(id: PathId) -> Self {
        Path { id, usable: true, known: PathStatus::Unprobed, since: Time::ZERO, one_way_ps: None }
    }
}
