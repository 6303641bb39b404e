//! Settings of a scenario that can be causes: faults, and limits of switches, schemes and hosts.

use pathweave_units::{Bytes, Duration, Rate};
use toml::{Table, Value};

/// A scheduled fault.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fault {
    /// Kind of the fault: "link-rate" and so on.
    pub(super) kind: String,
    /// Name of the link, switch or host concerned.
    pub(super) on: String,
    pub(super) at_ns: f64,
    pub(super) until_ns: Option<f64>,
    /// Rate of a "link-rate".
    pub(super) rate_bps: Option<f64>,
    /// Number of failures of a "link-flap".
    pub(super) times: u64,
    /// Probability of a "link-loss" or "link-corruption".
    pub(super) probability: f64,
    /// Delay of a "link-delay".
    pub(super) delay_ns: Option<f64>,
}

impl Fault {
    /// Returns true if the fault concerns the cable between these two nodes.
    pub(super) fn is_on(&self, from: &str, to: &str) -> bool {
        let ends =
            |a: &str, b: &str| self.on.strip_prefix(a).and_then(|rest| rest.strip_prefix('-')) == Some(b);
        match self.kind.as_str() {
            "switch-down" | "pause-storm" => self.on == from || self.on == to,
            _ => ends(from, to) || ends(to, from),
        }
    }

    /// Returns a word for the effect of the fault on its link.
    pub(super) fn name(&self) -> &str {
        match self.kind.as_str() {
            "link-rate" => "slow link",
            "link-delay" => "long link",
            "link-down" => "link down",
            "link-flap" => "flapping link",
            "link-loss" | "link-corruption" => "lossy link",
            "switch-down" => "switch down",
            "pause-storm" => "PFC storm of",
            other => other,
        }
    }

    /// Returns true if the fault takes a link down, once or repeatedly.
    pub(super) fn takes_down(&self) -> bool {
        matches!(self.kind.as_str(), "link-down" | "link-flap" | "switch-down")
    }
}

/// A workload of the scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Workload {
    pub(super) group: String,
    pub(super) class: usize,
    pub(super) is_background: bool,
    /// Factor on sizes and durations, if it is not 1.
    pub(super) scale: Option<f64>,
}

/// A scenario with every default filled in.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings(Table);

impl Settings {
    /// Parses a scenario; empty if the text is none.
    pub(super) fn new(text: &str) -> Self {
        Settings(text.parse().unwrap_or_default())
    }

    fn value(&self, path: &str) -> Option<&Value> {
        let mut names = path.split('.');
        let first = self.0.get(names.next()?)?;
        names.try_fold(first, |value, name| value.get(name))
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.value(path)?.as_str()
    }

    /// Returns a size in bytes.
    pub(super) fn bytes(&self, path: &str) -> Option<f64> {
        Some(self.text(path)?.parse::<Bytes>().ok()?.get() as f64)
    }

    pub(super) fn rate_bps(&self, path: &str) -> Option<f64> {
        rate_bps(self.text(path)?)
    }

    pub(super) fn number(&self, path: &str) -> Option<f64> {
        number(self.value(path)?)
    }

    pub(super) fn is_on(&self, path: &str) -> bool {
        self.value(path).and_then(Value::as_bool).unwrap_or(false)
    }

    fn tables(&self, name: &str) -> impl Iterator<Item = &Table> {
        let all = self.0.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        all.iter().filter_map(Value::as_table)
    }

    /// Returns the faults, in the order in which events number them.
    pub(super) fn faults(&self) -> Vec<Fault> {
        let fault = |table: &Table| {
            let text = |name: &str| table.get(name).and_then(Value::as_str);
            let at = |name: &str| text(name).and_then(time_ns);
            Fault {
                kind: text("kind").unwrap_or("fault").to_owned(),
                on: ["link", "switch", "host"].iter().find_map(|name| text(name)).unwrap_or("").to_owned(),
                at_ns: at("at").unwrap_or(0.0),
                until_ns: at("until").or_else(|| at("up_at")),
                rate_bps: text("rate").and_then(rate_bps),
                times: table.get("times").and_then(Value::as_integer).unwrap_or(1).unsigned_abs(),
                probability: table.get("probability").and_then(number).unwrap_or(0.0),
                delay_ns: at("delay"),
            }
        };
        self.tables("fault").map(fault).collect()
    }

    pub(super) fn workloads(&self) -> Vec<Workload> {
        let workload = |table: &Table| {
            let text = |name: &str| table.get(name).and_then(Value::as_str);
            Workload {
                group: text("group").or_else(|| text("kind")).unwrap_or("").to_owned(),
                class: table.get("class").and_then(Value::as_integer).unwrap_or(1).max(1) as usize,
                is_background: text("role") == Some("background"),
                scale: table.get("scale").and_then(number).filter(|scale| *scale < 1.0),
            }
        };
        self.tables("workload").map(workload).collect()
    }

    /// Returns the weight of each data class, from class 1 on.
    pub(super) fn weights(&self) -> Vec<f64> {
        let all = self.value("switch.weights").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        all.iter().filter_map(number).collect()
    }

    /// Returns a marking threshold for a link of this rate.
    pub(super) fn threshold_bytes(&self, name: &str, rate_bps: f64) -> Option<f64> {
        let threshold = self.bytes(&format!("switch.ecn.{name}"))?;
        let scales = self.text("switch.ecn.thresholds") != Some("fixed");
        let reference = self.rate_bps("switch.ecn.reference_rate").filter(|bps| scales && *bps > 0.0);
        Some(threshold * reference.map_or(1.0, |reference| rate_bps / reference))
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

fn time_ns(text: &str) -> Option<f64> {
    Some(text.parse::<Duration>().ok()?.as_ps() as f64 / 1e3)
}

fn rate_bps(text: &str) -> Option<f64> {
    Some(text.parse::<Rate>().ok()?.as_bps() as f64)
}
