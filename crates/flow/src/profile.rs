//! Paths of pairs of hosts in an idle network.

use pathweave_sim::{PacketFreeNetwork, PathProfile};
use pathweave_units::{Duration, HostId, Rate};

use crate::delays::PathDelay;

/// Paths between two hosts when nothing else is under way.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    /// The paths at the rates of the moment.
    pub(crate) now: Vec<PathProfile>,
    /// The paths with their links at their best, by which ideal times go. `None` if they are the same.
    pub(crate) best: Option<Vec<PathProfile>>,
    /// Delays of sprayed packets. Empty if all paths are alike.
    pub(crate) delays: Vec<PathDelay>,
}

impl Profile {
    pub(crate) fn find(
        ways: &PacketFreeNetwork<'_>,
        (src, dst): (HostId, HostId),
        delays: Vec<PathDelay>,
    ) -> Option<Self> {
        let (now, best) = (ways.present_profiles(src, dst), ways.best_profiles(src, dst));
        let has_route = !now.is_empty() && !best.is_empty();
        has_route.then(|| Profile { best: (best != now).then_some(best), now, delays })
    }

    /// Returns what tells profiles apart: rates and delays of the hops, the rates of the ends and of all paths, and the
    /// delays of sprayed packets.
    pub(crate) fn key(&self) -> ([Vec<ProfileKey>; 2], Vec<[u64; 3]>) {
        let key = |path: &PathProfile| (path.hops.clone(), path.line_rate, path.most, path.mean_delay);
        let paths = [Some(&self.now), self.best.as_ref()]
            .map(|paths| paths.into_iter().flatten().map(key).collect::<Vec<ProfileKey>>());
        (paths, self.delays.iter().map(PathDelay::key).collect())
    }
}

/// Hops of a profile, its line rate, and the rate and mean delay of all paths.
pub(crate) type ProfileKey = (Vec<(Rate, Duration)>, Rate, Rate, Option<Duration>);
