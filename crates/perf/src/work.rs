//! Work of one end in a measurement, independent of the service.

use std::time::{Duration, Instant};

use pathweave_heap::usage;
use serde::{Deserialize, Serialize};

use crate::meter::Meter;

/// Part of an end's report that does not depend on the service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Work {
    /// Duration of the whole measurement.
    pub(crate) seconds: f64,
    /// CPU time of the whole process in that duration.
    pub(crate) cpu_seconds: f64,
    /// The part of the CPU time spent outside the kernel.
    #[serde(default)]
    pub(crate) user_seconds: f64,
    /// Number of completed messages that this end posted.
    pub(crate) messages: u64,
    /// Bytes of these messages.
    pub(crate) bytes: u64,
    /// Time from the first posted message to the last completion.
    pub(crate) sending_seconds: f64,
    /// Rate of the best 100 ms.
    pub(crate) peak_bytes_per_second: f64,
    /// Number of messages whose bytes were compared.
    pub(crate) checked_messages: u64,
    /// Number of messages with a wrong byte.
    pub(crate) wrong_messages: u64,
    /// Description of the first wrong message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_wrong: Option<String>,
}

impl Work {
    /// Returns the CPU time per byte.
    pub(crate) fn cpu_ns_per_byte(&self, bytes: u64) -> Option<f64> {
        (bytes > 0).then(|| self.cpu_seconds * 1e9 / bytes as f64)
    }

    /// Returns the CPU time outside the kernel per byte.
    pub(crate) fn user_ns_per_byte(&self, bytes: u64) -> Option<f64> {
        (bytes > 0).then(|| self.user_seconds * 1e9 / bytes as f64)
    }

    /// Returns an amount per second of this end's sending time.
    pub(crate) fn rate(&self, amount: u64) -> f64 {
        if self.sending_seconds > 0.0 { amount as f64 / self.sending_seconds } else { 0.0 }
    }
}

/// State of the clocks when a measurement began.
pub(crate) struct Watch {
    begun: Instant,
    cpu: Duration,
    user: Duration,
}

impl Watch {
    pub(crate) fn now() -> Watch {
        Watch { begun: Instant::now(), cpu: usage::process_cpu(), user: usage::process_user_cpu() }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Returns the work since then: `messages` of `size_bytes` each.
    pub(crate) fn work(&self, messages: u64, size_bytes: u64, meter: &Meter) -> Work {
        Work {
            seconds: self.begun.elapsed().as_secs_f64(),
            cpu_seconds: (usage::process_cpu() - self.cpu).as_secs_f64(),
            user_seconds: usage::process_user_cpu().saturating_sub(self.user).as_secs_f64(),
            messages,
            bytes: messages * size_bytes,
            sending_seconds: meter.span().as_secs_f64(),
            peak_bytes_per_second: meter.peak(),
            ..Work::default()
        }
    }
}
