//! Statistics of completion times.

use pathweave_records::{FlowRecord, percentile};
use serde::Serialize;

use crate::validate::model::{Measure, PeerMeasurement, Stat};

/// Number of values in a curve: the smallest, percentiles 1 to 99, and the largest.
pub(crate) const RANKS: usize = 101;

/// Values by rank: the smallest, each percentile, the largest.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Curve(Vec<f64>);

/// Mean and distribution of values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Number of values.
    pub count: u64,
    /// Mean of the values.
    pub mean: f64,
    /// Values by rank.
    pub curve: Curve,
}

impl Curve {
    /// Returns the [`RANKS`] values.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    fn at(&self, rank: usize) -> f64 {
        self.0[rank]
    }
}

impl Figures {
    /// Computes the statistics of `values`. Returns `None` for no values.
    pub fn from_values(mut values: Vec<f64>) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        let (&least, &most) = (values.first()?, values.last()?);
        let between = (1..RANKS as u64 - 1).map(|percent| percentile(&values, 10 * percent));
        let curve = [least].into_iter().chain(between).chain([most]).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some(Figures { count: values.len() as u64, mean, curve: Curve(curve) })
    }

    /// Returns the statistics that a peer measured. The catalogue has checked that its curve is complete.
    pub(crate) fn of_peer(theirs: &PeerMeasurement) -> Self {
        Figures { count: theirs.flows, mean: theirs.mean_us, curve: Curve(theirs.curve_us.clone()) }
    }

    /// Returns one of the statistics.
    pub fn stat(&self, stat: Stat) -> f64 {
        match stat {
            Stat::Mean => self.mean,
            Stat::P50 => self.curve.at(50),
            Stat::P99 => self.curve.at(99),
            Stat::Max => self.curve.at(100),
        }
    }
}

/// Returns the completion time in microseconds, or `None` if the flow did not complete.
pub(crate) fn completion_us(flow: &FlowRecord, measure: Measure) -> Option<f64> {
    let ps = match measure {
        Measure::Acknowledged => flow.acked_fct_ps(),
        Measure::Delivered => flow.fct_ps(),
    };
    ps.map(|ps| ps as f64 * 1e-6)
}

/// Returns a digest of the flows' senders, receivers and sizes, independent of their order. It is FNV-1a over the
/// sorted triples of sender, receiver and bytes, each as eight bytes in little endian. The text has 16 hexadecimal
/// digits.
pub fn flows_digest<'a>(flows: impl Iterator<Item = &'a FlowRecord>) -> String {
    let mut triples: Vec<[u64; 3]> =
        flows.map(|flow| [u64::from(flow.src_host), u64::from(flow.dst_host), flow.size_bytes]).collect();
    triples.sort_unstable();
    let bytes = triples.iter().flatten().flat_map(|value| value.to_le_bytes());
    let digest = bytes
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("{digest:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_two_hundred_values() {
        let figures = Figures::from_values((1..=200).rev().map(f64::from).collect()).unwrap();
        assert_eq!((figures.count, figures.mean), (200, 100.5));
        assert_eq!(figures.curve.values().len(), RANKS);
        assert_eq!((figures.curve.at(0), figures.curve.at(1)), (1.0, 2.0));
        let stats = Stat::ALL.map(|stat| figures.stat(stat));
        assert_eq!(stats, [100.5, 100.0, 198.0, 200.0]);
        assert_eq!(Figures::from_values(Vec::new()), None);
    }

    #[test]
    fn the_digest_is_of_hosts_and_sizes_in_any_order() {
        let flow = |src_host, dst_host, size_bytes| FlowRecord {
            src_host,
            dst_host,
            size_bytes,
            ..FlowRecord::default()
        };
        let (a, b) = (flow(0, 1, 10), flow(1, 0, 10));
        let of = |flows: &[FlowRecord]| flows_digest(flows.iter());
        assert_eq!(of(&[a, b]), of(&[b, a]));
        assert_ne!(of(&[a, b]), of(&[a, a]));
        assert_ne!(of(&[a]), of(&[flow(0, 1, 11)]));
        // The FNV-1a digest of no bytes is its offset basis.
        assert_eq!(of(&[]), "cbf29ce484222325");
    }
}
