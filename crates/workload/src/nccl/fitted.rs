//! Two numbers for each generation of GPUs, fitted to published measurements.
//!
//! `pathweave validate truth-collectives` fits them anew to the rows that are marked for it, and a test compares.

use super::gpu::Generation;
use crate::collective::BadPlan;

/// Numbers by which executed collectives follow hardware.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Fitted {
    /// Factor of the latencies of the protocol Simple.
    pub latency: f64,
    /// Part of the rate of links that the library's kernels and proxies keep busy.
    pub bandwidth: f64,
}

impl Fitted {
    /// Numbers that change nothing.
    pub const NONE: Fitted = Fitted { latency: 1.0, bandwidth: 1.0 };

    /// Returns the numbers of a generation.
    pub const fn of(generation: Generation) -> Self {
        match generation {
            Generation::Hopper => Fitted { latency: 2.344, bandwidth: 0.958 },
            Generation::Blackwell => Fitted { latency: 1.0, bandwidth: 0.99 },
            Generation::Ampere => Fitted { latency: 1.0, bandwidth: 1.026 },
            Generation::Volta | Generation::Cdna3 => Fitted::NONE,
        }
    }
}

impl Fitted {
    /// Returns the numbers, with those replaced that are given.
    pub(crate) fn with(self, latency: Option<f64>, bandwidth: Option<f64>) -> Result<Self, BadPlan> {
        let latency = latency.unwrap_or(self.latency);
        let bandwidth = bandwidth.unwrap_or(self.bandwidth);
        if !(latency > 0.0 && latency <= 100.0) {
            let allowed = "expected a factor above 0 and at most 100";
            return Err(("latency", latency.to_string(), allowed.to_owned()));
        }
        if !(bandwidth > 0.0 && bandwidth <= 1.2) {
            let allowed = "expected a part above 0 and at most 1.2";
            return Err(("bandwidth", bandwidth.to_string(), allowed.to_owned()));
        }
        Ok(Fitted { latency, bandwidth })
    }
}
