//! Byte rates over time.

use std::time::{Duration, Instant};

/// Length of the windows over which the peak rate is taken.
const PEAK_OVER: Duration = Duration::from_millis(100);

/// Byte rates over time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    begun: Option<Instant>,
    last: Option<Instant>,
    window: Option<Instant>,
    window_bytes: u64,
    bytes: u64,
    peak: f64,
}

impl Meter {
    pub(crate) fn begin(&mut self) {
        let now = Instant::now();
        *self = Meter { begun: Some(now), window: Some(now), ..Meter::default() };
    }

    pub(crate) fn note(&mut self, bytes: u64) {
        let now = Instant::now();
        self.last = Some(now);
        self.bytes += bytes;
        self.window_bytes += bytes;
        let window = *self.window.get_or_insert(now);
        let span = now - window;
        if span >= PEAK_OVER {
            self.peak = self.peak.max(self.window_bytes as f64 / span.as_secs_f64());
            (self.window, self.window_bytes) = (Some(now), 0);
        }
    }

    pub(crate) fn span(&self) -> Duration {
        self.begun.zip(self.last).map_or(Duration::ZERO, |(begun, last)| last - begun)
    }

    /// Returns the rate of the best window. A measurement shorter than a window yields the mean.
    pub(crate) fn peak(&self) -> f64 {
        let span = self.span().as_secs_f64();
        let mean = if span > 0.0 { self.bytes as f64 / span } else { 0.0 };
        self.peak.max(mean)
    }
}
