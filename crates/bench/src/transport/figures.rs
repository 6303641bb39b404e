//! Figures of a measurement, and their output.

use serde_json::{Value, json};

/// Figures of a stream of bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bandwidth {
    pub(crate) bytes_per_second: f64,
    /// CPU time of kernel and program together. `None` if the program does not report it per end.
    pub(crate) client_cpu_ns_per_byte: Option<f64>,
    pub(crate) server_cpu_ns_per_byte: Option<f64>,
    /// The part of the CPU time spent outside the kernel, if known.
    pub(crate) client_user_ns_per_byte: Option<f64>,
    pub(crate) server_user_ns_per_byte: Option<f64>,
}

impl Bandwidth {
    /// Returns the CPU time of both ends per byte.
    pub(crate) fn cpu_ns_per_byte(&self) -> Option<f64> {
        Some(self.client_cpu_ns_per_byte? + self.server_cpu_ns_per_byte?)
    }

    /// Returns the part of it outside the kernel.
    pub(crate) fn user_ns_per_byte(&self) -> Option<f64> {
        Some(self.client_user_ns_per_byte? + self.server_user_ns_per_byte?)
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "mb_per_second": self.bytes_per_second / 1e6,
            "client_cpu_ns_per_byte": self.client_cpu_ns_per_byte,
            "server_cpu_ns_per_byte": self.server_cpu_ns_per_byte,
            "client_user_ns_per_byte": self.client_user_ns_per_byte,
            "server_user_ns_per_byte": self.server_user_ns_per_byte,
        })
    }

    pub(crate) fn line(&self, name: &str) -> String {
        let ns = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
        format!(
            "    {name:<34} {:>9.1} MB/s  client {:>7} ns/B  server {:>7} ns/B",
            self.bytes_per_second / 1e6,
            ns(self.client_cpu_ns_per_byte),
            ns(self.server_cpu_ns_per_byte)
        )
    }
}

/// Half a round trip, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Latency {
    pub(crate) min_us: f64,
    pub(crate) typical_us: f64,
    pub(crate) p99_us: f64,
}

impl Latency {
    pub(crate) fn of(value: &Value) -> Option<Latency> {
        let us = |name: &str| value[name].as_f64();
        Some(Latency { min_us: us("min_us")?, typical_us: us("typical_us")?, p99_us: us("p99_us")? })
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "min_us": self.min_us, "typical_us": self.typical_us, "p99_us": self.p99_us })
    }

    pub(crate) fn line(&self, name: &str) -> String {
        format!(
            "    {name:<34} {:>9.2} us typical  {:>8.2} least  {:>9.2} p99",
            self.typical_us, self.min_us, self.p99_us
        )
    }
}

/// Floor of the project beside the measured value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Floor {
    pub(crate) what: String,
    pub(crate) measured: f64,
    /// Largest allowed value.
    pub(crate) at_most: f64,
}

impl Floor {
    pub(crate) fn is_met(&self) -> bool {
        self.measured <= self.at_most
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "what": self.what, "measured": self.measured, "at_most": self.at_most, "met": self.is_met() })
    }

    pub(crate) fn line(&self) -> String {
        let word = if self.is_met() { "met" } else { "MISSED" };
        format!("    {word:<6} {}: {:.3}, at most {:.3}", self.what, self.measured, self.at_most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_is_met_up_to_its_bound() {
        let floor = |measured| Floor { what: "x".into(), measured, at_most: 1.3 };
        assert!(floor(1.3).is_met() && !floor(1.31).is_met());
        assert_eq!(floor(2.0).line(), "    MISSED x: 2.000, at most 1.300");
        assert_eq!(floor(2.0).json()["met"], false);
    }

    #[test]
    fn cpu_time_is_that_of_both_ends_or_unknown() {
        let mut stream = Bandwidth {
            bytes_per_second: 1e6,
            client_cpu_ns_per_byte: Some(1.0),
            server_cpu_ns_per_byte: Some(0.5),
            client_user_ns_per_byte: Some(0.25),
            server_user_ns_per_byte: Some(0.125),
        };
        assert_eq!(stream.user_ns_per_byte(), Some(0.375));
        assert_eq!(stream.cpu_ns_per_byte(), Some(1.5));
        stream.server_cpu_ns_per_byte = None;
        assert_eq!(stream.cpu_ns_per_byte(), None);
    }
}
