//! What is known of the paths to a host (DLBF, section III-B).

use alloc::vec::Vec;

use pathweave_units::{Duration, PathId, Rng, Time};

use crate::{PathState, PathView};

/// What is known of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// Nothing recent.
    Unprobed,
    /// Its packets arrived unmarked.
    Available,
    /// A packet was marked.
    Unavailable,
}

#[derive(Clone, Copy, Debug)]
struct Path {
    id: PathId,
    usable: bool,
    known: Knowledge,
    since: Time,
    /// Of the packet heard of last, by two clocks: only differences mean anything.
    one_way_ps: Option<i64>,
}

/// The paths to a host.
#[derive(Clone, Debug)]
pub struct PathTable {
    /// By identifier.
    paths: Vec<Path>,
    available_for: Duration,
    unavailable_for: Duration,
}

impl PathTable {
    /// Paths 0 to `count - 1`, of which nothing is known.
    pub fn new(count: u16, available_for: Duration, unavailable_for: Duration) -> Self {
        let paths = (0..count).map(|id| Path::unknown(PathId(id))).collect();
        PathTable { paths, available_for, unavailable_for }
    }

    /// The set of paths changes; what is known of those that stay is kept.
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
        // Numbered from 0 without gaps, mostly.
        let dense = self.paths.get(id.index()).filter(|path| path.id == id).map(|_| id.index());
        dense.or_else(|| self.paths.binary_search_by_key(&id, |path| path.id).ok())
    }
    fn find(&self, id: PathId) -> Option<&Path> {
        self.index(id).map(|index| &self.paths[index])
    }

    /// Whether it can be used at all.
    pub fn is_usable(&self, id: PathId) -> bool {
        self.find(id).is_some_and(|path| path.usable)
    }
    /// What is known of a path now.
    pub fn knowledge(&self, id: PathId, now: Time) -> Knowledge {
        self.find(id).map_or(Knowledge::Unprobed, |path| self.known(path, now))
    }
    fn known(&self, path: &Path, now: Time) -> Knowledge {
        let lasts = match path.known {
            Knowledge::Unprobed => return Knowledge::Unprobed,
            Knowledge::Available => self.available_for,
            Knowledge::Unavailable => self.unavailable_for,
        };
        if now.saturating_since(path.since) > lasts { Knowledge::Unprobed } else { path.known }
    }
    /// Its latest one-way delay, if any was ever measured.
    pub fn one_way_ps(&self, id: PathId) -> Option<i64> {
        self.find(id)?.one_way_ps
    }
    /// The least one-way delay of all paths.
    pub fn least_one_way_ps(&self) -> Option<i64> {
        self.paths.iter().filter_map(|path| path.one_way_ps).min()
    }

    /// A packet has arrived, as its acknowledgement tells.
    pub fn heard(&mut self, now: Time, id: PathId, marked: bool, one_way_ps: i64) {
        let Some(index) = self.index(id) else { return };
        let known = self.known(&self.paths[index], now);
        let path = &mut self.paths[index];
        path.one_way_ps = Some(one_way_ps);
        // Marks are drawn by chance, so one packet without does not clear a path: only time does.
        if marked {
            (path.known, path.since) = (Knowledge::Unavailable, now);
        } else if known != Knowledge::Unavailable {
            (path.known, path.since) = (Knowledge::Available, now);
        }
    }

    /// A packet was not heard of for so long that it counts as lost.
    pub fn failed(&mut self, now: Time, id: PathId) {
        if let Some(index) = self.index(id) {
            (self.paths[index].known, self.paths[index].since) = (Knowledge::Unavailable, now);
        }
    }

    /// Algorithm 1: the path in use unless it is congested; else a random one of those available; else of those unknown;
    /// else the one in use. Who uses none gets any, at worst a congested one.
    pub fn select(&self, now: Time, old: Option<PathId>, rng: &mut Rng) -> PathId {
        let old = old.filter(|&old| self.is_usable(old));
        if let Some(old) = old
            && self.knowledge(old, now) != Knowledge::Unavailable
        {
            return old;
        }
        let mut draw = |wanted: Option<Knowledge>| {
            let is_wanted =
                |path: &&Path| path.usable && wanted.is_none_or(|wanted| self.known(path, now) == wanted);
            let count = self.paths.iter().filter(is_wanted).count() as u32;
            let nth = if count == 0 { return None } else { rng.below(count) };
            self.paths.iter().filter(is_wanted).nth(nth as usize).map(|path| path.id)
        };
        draw(Some(Knowledge::Available))
            .or_else(|| draw(Some(Knowledge::Unprobed)))
            .or(old)
            .or_else(|| draw(None))
            .expect("a queue pair has a path, and one of them is usable")
    }

    /// Whether there is a path but `id` to go to.
    pub fn has_other(&self, now: Time, id: PathId) -> bool {
        let other = |path: &Path| path.id != id && path.usable;
        self.paths.iter().any(|path| other(path) && self.known(path, now) != Knowledge::Unavailable)
    }
}

impl Path {
    const fn unknown(id: PathId) -> Self {
        Path { id, usable: true, known: Knowledge::Unprobed, since: Time::ZERO, one_way_ps: None }
    }
}
