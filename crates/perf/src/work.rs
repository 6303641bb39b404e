//! What an end has done in a measurement, whatever carried it.

use std::time::{Duration, Instant};

use pathweave_heap::usage;
use serde::{Deserialize, Serialize};

use crate::meter::Meter;

/// Of an end's part what does not depend on the transport.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Work {
    /// From the first message to the last completion, of the measurement as a whole.
    pub(crate) seconds: f64,
    /// CPU time of the whole process in that time.
    pub(crate) cpu_seconds: f64,
    /// Of that what was spent in its own code and not in the kernel.
    #[serde(default)]
    pub(crate) user_seconds: f64,
    /// Messages this end asked for that were completed.
    pub(crate) messages: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// From its first message to its last completion.
    pub(crate) sending_seconds: f64,
    /// The best 100 ms.
    pub(crate) peak_bytes_per_second: f64,
    /// Messages whose bytes were compared.
    pub(crate) checked_messages: u64,
    /// Those in which a byte was wrong.
    pub(crate) wrong_messages: u64,
    /// The first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_wrong: Option<String>,
}

impl Work {
    /// CPU time for each of `bytes`.
    pub(crate) fn cpu_ns_per_byte(&self, bytes: u64) -> Option<f64> {
        (bytes > 0).then(|| self.cpu_seconds * 1e9 / bytes as f64)
    }

    /// CPU time outside the kernel for each of `bytes`.
    pub(crate) fn user_ns_per_byte(&self, bytes: u64) -> Option<f64> {
        (bytes > 0).then(|| self.user_seconds * 1e9 / bytes as f64)
    }

    /// An amount of this end's, per second of its sending.
    pub(crate) fn rate(&self, amount: u64) -> f64 {
        if self.sending_seconds > 0.0 { amount as f64 / self.sending_seconds } else { 0.0 }
    }
}

/// When a measurement began.
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

    /// So many messages of a size have been completed since.
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
