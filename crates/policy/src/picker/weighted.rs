//! Choice in proportion to path capacity: weighted spraying, and WCMP at the host (Zhou et al., EuroSys 2014), which
//! chooses once a flow.
//!
//! The weight of a path is its bottleneck rate in the topology. If rates are unknown, all weights are the same.

use pathweave_units::{PathId, Rng, Time};

use super::{PathPicker, PathSet, Shares};
use crate::fluid::{HasSpread, Spread};
use crate::{PathView, PolicyCx, SendRequest, Sent};

/// Returns the usable paths, weighted by their rates in kb/s.
fn by_rate(views: &[PathView]) -> Shares {
    Shares::usable(views, |view| Some((view.rate?.as_bps() / 1_000).max(1)))
}

/// Every packet takes a random path, in proportion to the paths' rates.
#[derive(Clone, Debug)]
pub struct WeightedRps {
    paths: Shares,
    /// Next path. Drawn ahead, so that a pick is cheap and does not change the state.
    next: PathId,
}

impl WeightedRps {
    /// Creates the picker of a queue pair with `paths` paths.
    pub fn new(paths: u16, rng: &mut Rng) -> Self {
        let paths = Shares::all(paths);
        WeightedRps { next: paths.draw(rng), paths }
    }
}

impl HasSpread for WeightedRps {
    const SPREAD: Spread = Spread::ByCapacity;
}

impl PathPicker for WeightedRps {
    crate::ignores!(on_open, on_close, on_feedback);
    #[inline]
    fn pick(&self, _now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> PathId {
        self.paths.settle(self.next, want.egress)
    }
    #[inline]
    fn on_sent(&mut self, _now: Time, _sent: &Sent, cx: &mut PolicyCx<'_>) -> u32 {
        self.next = self.paths.draw(cx.rng);
        0
    }
    fn on_paths(&mut self, _now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.paths = by_rate(paths);
        self.next = self.paths.draw(cx.rng);
    }
}

/// One path for the life of the queue pair, drawn in proportion to the paths' rates.
#[derive(Clone, Debug)]
pub struct Wcmp {
    path: PathId,
    /// True if the path was drawn with known weights.
    informed: bool,
}

impl Wcmp {
    /// Creates the picker of a queue pair with `paths` paths.
    pub fn new(paths: u16, rng: &mut Rng) -> Self {
        Wcmp { path: PathSet::all(paths).draw(rng), informed: false }
    }
}

impl HasSpread for Wcmp {
    const SPREAD: Spread = Spread::OnePath;
}

impl PathPicker for Wcmp {
    crate::ignores!(on_open, on_close, on_feedback);
    #[inline]
    fn pick(&self, _now: Time, _want: &SendRequest, _cx: &mut PolicyCx<'_>) -> PathId {
        self.path
    }
    fn on_sent(&mut self, _now: Time, _sent: &Sent, _cx: &mut PolicyCx<'_>) -> u32 {
        0
    }
    fn on_paths(&mut self, _now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        let weighted = by_rate(paths);
        if !self.informed || !weighted.contains(self.path) {
            self.path = weighted.draw(cx.rng);
            self.informed = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::want;
    use super::*;
    use crate::testing::Host;
    use crate::{Egress, PathState, PortSet};
    use pathweave_units::Rate;
    use std::vec::Vec;

    /// Returns three paths of 100, 25 and 100 Gb/s.
    fn views() -> Vec<PathView> {
        let rates = [100, 25, 100].map(Rate::from_gbps);
        let view =
            |(id, rate)| PathView { rate: Some(rate), ..PathView::new(PathId(id as u16), PathState::Up) };
        rates.into_iter().enumerate().map(view).collect()
    }

    #[test]
    fn packets_spread_as_the_rates_do() {
        let mut host = Host::new(1);
        let mut picker = WeightedRps::new(3, &mut host.rng);
        picker.on_paths(Time::ZERO, &views(), &mut host.cx());
        let mut counts = [0u32; 3];
        for _ in 0..9_000 {
            counts[picker.next.index()] += 1;
            picker.next = picker.paths.draw(&mut host.rng);
        }
        // 4,000, 1,000 and 4,000; standard deviations 47 and 30.
        assert!(counts[0].abs_diff(4_000) < 240 && counts[1].abs_diff(1_000) < 150, "{counts:?}");
    }

    #[test]
    fn a_packet_takes_a_free_port() {
        let mut host = Host::new(1);
        let mut picker = WeightedRps::new(4, &mut host.rng);
        picker.next = PathId(2);
        let pick = |free| {
            let want = SendRequest { egress: Egress::new(PortSet::first(2), free), ..want(0) };
            picker.pick(Time::ZERO, &want, &mut host.cx())
        };
        // Path 2 leaves by port 0, and path 3 is its like at port 1. Without a free port it waits.
        assert_eq!([0b01, 0b10, 0b00].map(pick), [2, 3, 2].map(PathId));
    }

    #[test]
    fn flows_spread_as_the_rates_do_and_stay() {
        let mut counts = [0u32; 3];
        for qp in 0..9_000 {
            let mut host = Host::with_stream(1, qp);
            let mut picker = Wcmp::new(3, &mut host.rng);
            picker.on_paths(Time::ZERO, &views(), &mut host.cx());
            let path = picker.path;
            picker.on_paths(Time::ZERO, &views(), &mut host.cx());
            assert_eq!(picker.path, path);
            counts[path.index()] += 1;
        }
        assert!(counts[0].abs_diff(4_000) < 240 && counts[1].abs_diff(1_000) < 150, "{counts:?}");
    }
}
