//! Samples over time, and their reduction to fewer instants.
//!
//! A rate, or a share of arrived packets, covers the whole interval that ends at its instant. When two intervals are
//! merged, such values are averaged with weights. A queue or a window is a value at its instant, of which the later
//! one is kept.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pathweave_records::{SeriesKind, SeriesSample, Span};
use pathweave_units::{Duration, Time};

/// Largest number of paths of a flow recorded at an instant. The paths with the most packets are kept.
const PATHS: usize = 32;

/// Samples of a run so far, ordered by time.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    list: Vec<SeriesSample>,
    /// Sampled instants.
    instants: Vec<Time>,
    /// Packets of a flow that arrived in the interval before an instant, by instant and flow. Their number is the
    /// denominator of path shares.
    arrived: BTreeMap<(u64, u32), u32>,
}

impl Samples {
    /// Number of sampled instants.
    pub(crate) fn instants(&self) -> usize {
        self.instants.len()
    }

    /// Begins the samples of an instant. Returns the time since the instant before, or since the start.
    pub(crate) fn begin(&mut self, now: Time) -> Duration {
        let since = now.saturating_since(self.instants.last().copied().unwrap_or(Time::ZERO));
        self.instants.push(now);
        self.add(SeriesKind::Interval, 0, 0, since.as_ps() as f64 / 1e3);
        since
    }

    /// Adds a sample at the latest instant.
    pub(crate) fn add(&mut self, kind: SeriesKind, entity: u32, index: u16, value: f64) {
        let time_ps = self.instants.last().expect("an instant has begun").as_ps();
        self.list.push(SeriesSample { time_ps, value, entity, index, kind });
    }

    /// Adds a sample at the latest instant unless it is zero. A missing sample of such a kind means zero.
    pub(crate) fn add_unless_zero(&mut self, kind: SeriesKind, entity: u32, value: f64) {
        if value > 0.0 {
            self.add(kind, entity, 0, value);
        }
    }

    /// Adds the shares of paths among the packets of a flow that arrived since the instant before.
    pub(crate) fn add_shares(&mut self, flow: u32, packets: impl Iterator<Item = (u16, u32)>) {
        let mut by_path: Vec<(u16, u32)> = packets.collect();
        let all: u32 = by_path.iter().map(|(_, packets)| packets).sum();
        if all == 0 {
            return;
        }
        let time_ps = self.instants.last().expect("an instant has begun").as_ps();
        self.arrived.insert((time_ps, flow), all);
        by_path.sort_by_key(|&(path, packets)| (Reverse(packets), path));
        for (path, packets) in by_path.into_iter().take(PATHS) {
            self.add(SeriesKind::PathShare, flow, path, f64::from(packets) / f64::from(all));
        }
    }

    /// Merges each pair of adjacent instants into the later one.
    pub(crate) fn halve(&mut self) {
        let mut old = std::mem::take(&mut self.list).into_iter().peekable();
        let instants = std::mem::take(&mut self.instants);
        let arrived = std::mem::take(&mut self.arrived);
        for pair in instants.chunks_exact(2) {
            let [first, second] = [pair[0], pair[1]].map(Time::as_ps);
            self.instants.push(pair[1]);
            let mut both = Vec::new();
            while let Some(sample) = old.next_if(|sample| sample.time_ps <= second) {
                both.push(sample);
            }
            both.sort_by_key(|s| (s.kind, s.entity, s.index, s.time_ps));
            let spans: Vec<f64> =
                both.iter().filter(|s| s.kind == SeriesKind::Interval).map(|s| s.value).collect();
            let packets = |time_ps, flow| arrived.get(&(time_ps, flow)).copied().unwrap_or(0);
            for same in both.chunk_by(|a, b| (a.kind, a.entity, a.index) == (b.kind, b.entity, b.index)) {
                let sample = same[same.len() - 1];
                let at = |time_ps| same.iter().find(|s| s.time_ps == time_ps).map_or(0.0, |s| s.value);
                let weights = if sample.kind == SeriesKind::PathShare {
                    [first, second].map(|time_ps| f64::from(packets(time_ps, sample.entity)))
                } else {
                    [spans[0], spans[1]]
                };
                let value = match sample.kind.span() {
                    Span::Instant if sample.time_ps == first => continue,
                    Span::Instant => sample.value,
                    Span::Interval if sample.kind == SeriesKind::Interval => at(first) + at(second),
                    Span::Interval => {
                        (at(first) * weights[0] + at(second) * weights[1]) / (weights[0] + weights[1])
                    }
                };
                self.list.push(SeriesSample { time_ps: second, value, ..sample });
            }
            for (&(_, flow), packets) in arrived.range((first, 0)..=(second, u32::MAX)) {
                *self.arrived.entry((second, flow)).or_default() += packets;
            }
        }
        self.keep_most();
    }

    /// Keeps, for each flow and instant, only the paths that carried most.
    fn keep_most(&mut self) {
        let mut kept = Vec::with_capacity(self.list.len());
        let is_share = |s: &SeriesSample| s.kind == SeriesKind::PathShare;
        let key = |s: &SeriesSample| (is_share(s), s.time_ps, s.entity);
        for same in self.list.chunk_by(|a, b| is_share(a) && key(a) == key(b)) {
            let mut same = same.to_vec();
            if same.len() > PATHS {
                same.sort_by(|a, b| f64::total_cmp(&b.value, &a.value).then(a.index.cmp(&b.index)));
            }
            kept.extend(same.into_iter().take(PATHS));
        }
        self.list = kept;
    }

    /// Returns all samples.
    pub(crate) fn into_list(self) -> Vec<SeriesSample> {
        self.list
    }
}

/// Merges the samples of all ranks into one list, sorted by time, kind and entity. All ranks sample at the same
/// instants.
pub(crate) fn of_all_ranks(mut samples: Vec<SeriesSample>) -> Vec<SeriesSample> {
    let key = |s: &SeriesSample| (s.time_ps, s.kind, s.entity, s.index);
    samples.sort_by_key(key);
    // Every rank has recorded the same interval lengths, so duplicates are removed.
    samples.dedup_by_key(|sample| key(sample));
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(samples: &Samples, kind: SeriesKind) -> Vec<(u64, u32, u16, f64)> {
        let of_kind = samples.list.iter().filter(|s| s.kind == kind);
        of_kind.map(|s| (s.time_ps / 1_000_000, s.entity, s.index, s.value)).collect()
    }

    #[test]
    fn two_intervals_become_one_with_what_both_carried() {
        let mut samples = Samples::default();
        // Link 1 is busy in the first interval and link 2 in both. There is a queue at every instant but the last.
        for (us, busy, queue) in
            [(5, [1.0, 0.2], 1), (10, [0.0, 0.4], 2), (15, [0.5, 0.0], 3), (20, [0.0; 2], 0)]
        {
            assert_eq!(samples.begin(Time::from_us(us)), Duration::from_us(5));
            samples.add_unless_zero(SeriesKind::LinkUtilisation, 1, busy[0]);
            samples.add_unless_zero(SeriesKind::LinkUtilisation, 2, busy[1]);
            samples.add_unless_zero(SeriesKind::QueueBytes, 1, f64::from(queue));
        }
        samples.halve();
        assert_eq!(at(&samples, SeriesKind::Interval), [(10, 0, 0, 10_000.0), (20, 0, 0, 10_000.0)]);
        let busy = at(&samples, SeriesKind::LinkUtilisation);
        assert_eq!(busy[0], (10, 1, 0, 0.5));
        assert!((busy[1].3 - 0.3).abs() < 1e-12 && (busy[1].0, busy[1].1) == (10, 2), "{busy:?}");
        assert_eq!(busy[2..], [(20, 1, 0, 0.25)]);
        // Queue samples at 5 and 15 us are dropped; those at 10 and 20 us remain.
        assert_eq!(at(&samples, SeriesKind::QueueBytes), [(10, 1, 0, 2.0)]);
        assert_eq!(samples.instants(), 2);
    }

    #[test]
    fn shares_are_put_together_by_packets() {
        let mut samples = Samples::default();
        samples.begin(Time::from_us(5));
        samples.add_shares(7, [(0, 30)].into_iter());
        samples.begin(Time::from_us(10));
        samples.add_shares(7, [(0, 5), (3, 5)].into_iter());
        // No packet arrives in the next two intervals, and one in the last.
        samples.begin(Time::from_us(15));
        samples.begin(Time::from_us(20));
        samples.halve();
        // 35 and 5 of 40 packets.
        assert_eq!(at(&samples, SeriesKind::PathShare), [(10, 7, 0, 0.875), (10, 7, 3, 0.125)]);
        samples.begin(Time::from_us(25));
        samples.begin(Time::from_us(30));
        samples.halve();
        assert_eq!(at(&samples, SeriesKind::PathShare), [(20, 7, 0, 0.875), (20, 7, 3, 0.125)]);
        assert_eq!(at(&samples, SeriesKind::Interval), [(20, 0, 0, 20_000.0), (30, 0, 0, 10_000.0)]);
    }
}
