//! Departures of data packets from their hosts: the gaps between them, and the lengths of their paths.

use serde::Serialize;

use crate::described::{described, kinds};

kinds! {
    "object": Departures;
}

described! {
    /// Counts of `observe.departures`. Empty if it is off.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct Departures {
        /// Gaps between packets of a message, by length.
        pub gaps: Vec<Gaps>,
        /// Bytes by the length of their path; empty if switches choose paths.
        pub lengths: Vec<PathLength>,
    }
}

described! {
    /// Gaps of similar length.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct Gaps {
        /// Lower bound of the gaps, exclusive.
        pub above_ns: u64,
        /// Upper bound of the gaps, inclusive.
        pub up_to_ns: u64,
        /// Number of gaps.
        pub packets: u64,
    }
}

described! {
    /// Paths with the same number of links.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
    pub struct PathLength {
        /// Number of links from host to host.
        pub links: u32,
        /// Bytes on the link that took these paths.
        pub wire_bytes: u64,
        /// Bytes that would have taken these paths if each pair of hosts had sent the same amount over each of its
        /// paths.
        pub uniform_bytes: f64,
    }
}

impl Departures {
    /// Returns the share of gaps longer than `ns`, or `None` without gaps. Exact if `ns` is a bound of the bins.
    pub fn share_above(&self, ns: u64) -> Option<f64> {
        let all: u64 = self.gaps.iter().map(|gaps| gaps.packets).sum();
        let longer = self.gaps.iter().filter(|gaps| gaps.above_ns >= ns).map(|gaps| gaps.packets);
        (all > 0).then(|| longer.sum::<u64>() as f64 / all as f64)
    }

    /// Returns the share of bytes on paths of `links` links over the share under uniform spraying. `None` if no pair
    /// of hosts has such a path.
    pub fn normalised_share(&self, links: u32) -> Option<f64> {
        // Both shares have the same denominator.
        let found = self.lengths.iter().find(|length| length.links == links)?;
        Some(found.wire_bytes as f64 / found.uniform_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_by_hand() {
        let gap = |above_ns, up_to_ns, packets| Gaps { above_ns, up_to_ns, packets };
        let length = |links, wire_bytes, uniform_bytes| PathLength { links, wire_bytes, uniform_bytes };
        let seen = Departures {
            gaps: vec![gap(0, 100, 70), gap(100, 50_000, 25), gap(50_000, 70_000, 5)],
            lengths: vec![length(4, 300, 100.0), length(8, 600, 800.0)],
        };
        assert_eq!(seen.share_above(50_000), Some(0.05));
        assert_eq!(seen.share_above(100), Some(0.3));
        assert_eq!(seen.normalised_share(4), Some(3.0));
        assert_eq!(seen.normalised_share(8), Some(0.75));
        assert_eq!((seen.normalised_share(6), Departures::default().share_above(0)), (None, None));
    }
}
