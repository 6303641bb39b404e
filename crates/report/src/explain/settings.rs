//! Settings of a scenario that can be causes: faults, and limits of switches, schemes and hosts.

use pathweave_records::Quantity;
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
    /// End of the fault, of repeated ones that of the last.
    pub(super) until_ns: Option<f64>,
    /// Rate of a "link-rate".
    pub(super) rate_bps: Option<f64>,
    /// Number of failures of a "link-flap".
    pub(super) times: u64,
    /// Length of each failure of a "link-flap", and of the time between two.
    pub(super) flaps_ns: Option<(f64, f64)>,
    /// Probability of a "link-loss" or "link-corruption".
    pub(super) probability: f64,
    /// Delay of a "link-delay".
    pub(super) delay_ns: Option<f64>,
    pub(super) effect: Effect,
}

/// Effect of a fault on its links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Effect {
    /// The links are worse while the fault is in force.
    #[default]
    Worse,
    /// The links are as they are without it: no packet is lost, and they are neither slower nor longer.
    None,
}

impl Fault {
    /// Returns true if the fault concerns this directed link, the `number`-th of parallel ones. A name with "->" means
    /// one direction; "#1" at its end means the second of parallel links, and no number the first.
    pub(super) fn is_on(&self, from: &str, to: &str, number: usize) -> bool {
        if matches!(self.kind.as_str(), "switch-down" | "pause-storm") {
            return self.on == from || self.on == to;
        }
        let (ends, of_link) = match self.on.rsplit_once('#') {
            Some((ends, digits)) => (ends, digits.parse().ok()),
            None => (self.on.as_str(), Some(0)),
        };
        let joined = |a: &str, dash: &str, b: &str| {
            ends.strip_prefix(a).and_then(|rest| rest.strip_prefix(dash)) == Some(b)
        };
        of_link == Some(number) && (joined(from, "-", to) || joined(to, "-", from) || joined(from, "->", to))
    }

    /// Returns true if the fault was in force at some time of this span, which ends with the run or before.
    pub(super) fn meets(&self, from_ns: f64, to_ns: f64) -> bool {
        self.effect == Effect::Worse
            && self.at_ns < to_ns
            && self.until_ns.is_none_or(|until_ns| until_ns > from_ns)
    }

    /// Returns the time of this span for which the fault was in force.
    pub(super) fn overlap_ns(&self, from_ns: f64, to_ns: f64) -> f64 {
        if self.effect == Effect::None {
            return 0.0;
        }
        let overlap = |begin_ns: f64, end_ns: f64| (end_ns.min(to_ns) - begin_ns.max(from_ns)).max(0.0);
        let Some((down_ns, up_ns)) = self.flaps_ns else {
            return overlap(self.at_ns, self.until_ns.unwrap_or(f64::INFINITY));
        };
        // Whole failures before a time, and the part of the one that it ends.
        let failed_ns = |time_ns: f64| {
            let since_ns = (time_ns - self.at_ns).max(0.0);
            let whole = (since_ns / (down_ns + up_ns)).floor();
            let failures = self.times as f64;
            whole.min(failures) * down_ns
                + if whole < failures { (since_ns - whole * (down_ns + up_ns)).min(down_ns) } else { 0.0 }
        };
        (failed_ns(to_ns) - failed_ns(from_ns)).max(0.0)
    }

    /// Returns true if the fault is in force at a time.
    pub(super) fn is_in_force(&self, at_ns: f64) -> bool {
        self.effect == Effect::Worse
            && self.at_ns <= at_ns
            && self.until_ns.is_none_or(|until_ns| until_ns > at_ns)
    }

    /// Returns the times of the fault in words.
    pub(super) fn when(&self) -> String {
        let until =
            self.until_ns.map_or(String::new(), |ns| format!(" until {}", Quantity::TimeNs.format(ns)));
        format!("from {} on{until}", Quantity::TimeNs.format(self.at_ns))
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

    /// Returns true if the fault loses packets at random.
    pub(super) fn loses(&self) -> bool {
        matches!(self.kind.as_str(), "link-loss" | "link-corruption")
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

    /// Returns a value as the scenario writes it.
    pub(super) fn words(&self, path: &str) -> Option<String> {
        let words = self.value(path)?.to_string();
        Some(words.replace('\n', " "))
    }

    /// Returns a size in bytes.
    pub(super) fn bytes(&self, path: &str) -> Option<f64> {
        Some(self.text(path)?.parse::<Bytes>().ok()?.get() as f64)
    }

    pub(super) fn rate_bps(&self, path: &str) -> Option<f64> {
        rate_bps(self.text(path)?)
    }

    pub(super) fn time_ns(&self, path: &str) -> Option<f64> {
        time_ns(self.text(path)?)
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
            let times = table.get("times").and_then(Value::as_integer).unwrap_or(1).unsigned_abs();
            let flaps_ns = at("down_for").zip(at("up_for")).filter(|(down, up)| down + up > 0.0);
            let end_of_flaps = || {
                let (down_for, up_for) = flaps_ns?;
                Some(at("at")? + times as f64 * (down_for + up_for) - up_for)
            };
            Fault {
                kind: text("kind").unwrap_or("fault").to_owned(),
                on: ["link", "switch", "host"].iter().find_map(|name| text(name)).unwrap_or("").to_owned(),
                at_ns: at("at").unwrap_or(0.0),
                until_ns: at("until").or_else(|| at("up_at")).or_else(end_of_flaps),
                rate_bps: text("rate").and_then(rate_bps),
                times,
                flaps_ns,
                probability: table.get("probability").and_then(number).unwrap_or(0.0),
                delay_ns: at("delay"),
                effect: Effect::Worse,
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

    /// Returns the name of the scheme of a workload group.
    pub(super) fn scheme_of(&self, group: &str) -> &str {
        let is_of_group = |table: &&Table| {
            let text = |name: &str| table.get(name).and_then(Value::as_str);
            text("group").or_else(|| text("kind")) == Some(group)
        };
        let own = self.tables("workload").find(is_of_group).and_then(scheme_name);
        own.unwrap_or_else(|| scheme_name(&self.0).unwrap_or_default())
    }

    /// Iterates over the names of the schemes of the scenario and of its workloads.
    pub(super) fn schemes(&self) -> impl Iterator<Item = &str> {
        let of_all = scheme_name(&self.0).unwrap_or_default();
        std::iter::once(of_all).chain(self.tables("workload").filter_map(scheme_name))
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

/// Returns the name of the scheme of a scenario or a workload, if it has one.
fn scheme_name(table: &Table) -> Option<&str> {
    let scheme = table.get("scheme")?;
    scheme.as_str().or_else(|| scheme.get("name")?.as_str())
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

pub(super) fn time_ns(text: &str) -> Option<f64> {
    Some(text.parse::<Duration>().ok()?.as_ps() as f64 / 1e3)
}

fn rate_bps(text: &str) -> Option<f64> {
    Some(text.parse::<Rate>().ok()?.as_bps() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> Fault {
        Settings::new(&format!("[[fault]]\n{text}")).faults().remove(0)
    }

    #[test]
    fn a_fault_is_on_the_links_and_directions_of_its_name() {
        let ends = [("a-1", "b", 0), ("b", "a-1", 0), ("a-1", "b", 1), ("b", "a-1", 1), ("a", "1-b", 0)];
        let on = |name: &str| {
            let fault = fault(&format!("kind = \"link-down\"\nlink = \"{name}\"\nat = \"1us\""));
            ends.map(|(from, to, number)| fault.is_on(from, to, number))
        };
        // Names may contain dashes, so both divisions of this one are possible.
        assert_eq!(on("a-1-b"), [true, true, false, false, true]);
        assert_eq!(on("b-a-1"), [true, true, false, false, false]);
        assert_eq!(on("a-1->b"), [true, false, false, false, false]);
        assert_eq!(on("b->a-1"), [false, true, false, false, false]);
        assert_eq!(on("b-a-1#1"), [false, false, true, true, false]);
        assert_eq!(on("a-1->b#1"), [false, false, true, false, false]);
        assert_eq!(on("a-1-b#2"), [false; 5]);
        let switch = fault("kind = \"switch-down\"\nswitch = \"b\"\nat = \"1us\"");
        assert!(switch.is_on("a-1", "b", 3) && switch.is_on("b", "c", 0) && !switch.is_on("a", "c", 0));
    }

    #[test]
    fn a_fault_is_in_force_from_its_begin_to_its_end() {
        let times = |text: &str| {
            let fault = fault(&format!("kind = \"link-flap\"\nlink = \"a-b\"\n{text}"));
            (fault.at_ns, fault.until_ns)
        };
        assert_eq!(times("at = \"5us\""), (5e3, None));
        assert_eq!(times("at = \"5us\"\nup_at = \"9us\""), (5e3, Some(9e3)));
        // Three failures of 2 us, 10 us between them: from 5 to 7, 17 to 19 and 29 to 31 us.
        let flaps = "at = \"5us\"\ndown_for = \"2us\"\nup_for = \"10us\"\ntimes = 3";
        assert_eq!(times(flaps), (5e3, Some(31e3)));
        let fault = Fault { at_ns: 10.0, until_ns: Some(20.0), ..Fault::default() };
        let meets = [(0.0, 10.0), (0.0, 11.0), (19.0, 30.0), (20.0, 30.0)].map(|(a, b)| fault.meets(a, b));
        assert_eq!(meets, [false, true, true, false]);
        assert!(Fault { at_ns: 10.0, ..Fault::default() }.meets(1e9, 2e9), "for ever");
    }

    #[test]
    fn a_workload_has_the_scheme_of_the_scenario_or_its_own() {
        let settings = Settings::new(
            "scheme = { name = \"rps\" }\n[[workload]]\ngroup = \"a\"\n[[workload]]\nkind = \"incast\"\nscheme = { name = \"timely\" }",
        );
        assert_eq!(["a", "incast", "other"].map(|group| settings.scheme_of(group)), ["rps", "timely", "rps"]);
        assert_eq!(settings.schemes().collect::<Vec<_>>(), ["rps", "timely"]);
    }

    #[test]
    fn a_fault_without_effect_is_never_in_force() {
        let fault = Fault { at_ns: 10.0, effect: Effect::None, ..Fault::default() };
        assert!(!fault.meets(0.0, 20.0) && !fault.is_in_force(15.0));
        assert_eq!(fault.overlap_ns(0.0, 20.0), 0.0);
    }

    #[test]
    fn a_fault_overlaps_a_span_while_it_is_in_force() {
        let overlaps = |fault: &Fault, spans: [(f64, f64); 4]| spans.map(|(a, b)| fault.overlap_ns(a, b));
        let once = Fault { at_ns: 10.0, until_ns: Some(20.0), ..Fault::default() };
        assert_eq!(
            overlaps(&once, [(0.0, 10.0), (0.0, 15.0), (12.0, 90.0), (20.0, 30.0)]),
            [0.0, 5.0, 8.0, 0.0]
        );
        let ever = Fault { at_ns: 10.0, ..Fault::default() };
        assert_eq!(
            overlaps(&ever, [(0.0, 10.0), (0.0, 15.0), (12.0, 90.0), (20.0, 30.0)]),
            [0.0, 5.0, 78.0, 10.0]
        );
        // From 5 to 7, 17 to 19 and 29 to 31 us.
        let flaps = fault(
            "kind = \"link-flap\"\nlink = \"a-b\"\nat = \"5us\"\ndown_for = \"2us\"\nup_for = \"10us\"\ntimes = 3",
        );
        assert_eq!(
            overlaps(&flaps, [(0.0, 6e3), (6e3, 18e3), (7e3, 17e3), (0.0, 1e6)]),
            [1e3, 2e3, 0.0, 6e3]
        );
        assert_eq!(
            overlaps(&flaps, [(0.0, 4e3), (30e3, 31e3), (31e3, 1e6), (18e3, 30e3)]),
            [0.0, 1e3, 0.0, 2e3]
        );
    }
}
