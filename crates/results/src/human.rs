//! Numbers for people: four significant digits and the unit that suits the size.

/// Picoseconds as nanoseconds. Exact to the picosecond over the first half hour (2^51 ps): times 1000, rounded, is the
/// integer again.
pub(crate) fn ns(ps: u64) -> f64 {
    ps as f64 / 1_000.0
}

/// How a figure is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Nanoseconds.
    TimeNs,
    /// Bits per second.
    RateBps,
    /// Bytes.
    Bytes,
    /// A whole number.
    Count,
    /// A number without unit.
    Plain,
    /// A fraction, shown in percent.
    Percent,
}

impl Quantity {
    /// `value` as text with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Quantity::TimeNs => scaled(value, &[(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")]),
            Quantity::RateBps => {
                scaled(value, &[(1.0, "bps"), (1e3, "Kbps"), (1e6, "Mbps"), (1e9, "Gbps"), (1e12, "Tbps")])
            }
            Quantity::Bytes => {
                scaled(value, &[(1.0, "B"), (1e3, "KB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")])
            }
            Quantity::Count => thousands(value),
            Quantity::Plain => significant(value),
            Quantity::Percent => format!("{} %", significant(value * 100.0)),
        }
    }
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    // 999.96 would be shown as 1000: what rounds up to the next unit is in that unit.
    let fits = |&&(scale, _): &&(f64, &str)| value.abs() >= scale * 0.99995;
    let (scale, unit) = units.iter().rev().find(fits).unwrap_or(&units[0]);
    format!("{} {unit}", significant(value / scale))
}

/// Four significant digits for what is below 10,000, no fraction above; 0 as "0".
fn significant(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        v if v >= 999.95 => 0,
        v if v >= 99.995 => 1,
        v if v >= 9.9995 => 2,
        v if v >= 0.0005 => 3,
        _ => return format!("{value:.1e}"),
    };
    format!("{value:.decimals$}")
}

fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut out = String::from(if value < 0.0 { "-" } else { "" });
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// `value` over `base` as text: "1.234x", or a dash where there is no ratio.
pub fn ratio(value: f64, base: f64) -> String {
    if value == base {
        return "1x".to_owned();
    }
    if base == 0.0 { "-".to_owned() } else { format!("{}x", significant(value / base)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_follow_the_size() {
        let time = |ns| Quantity::TimeNs.show(ns);
        assert_eq!(time(0.0), "0 ns");
        assert_eq!(time(0.334), "0.334 ns");
        assert_eq!(time(999.0), "999.0 ns");
        assert_eq!(time(1_234.5), "1.234 us");
        assert_eq!(time(999_960.0), "1.000 ms");
        assert_eq!(time(2.5e9), "2.500 s");
        assert_eq!(time(86_400e9), "86400 s");
        assert_eq!(Quantity::RateBps.show(98.1e9), "98.10 Gbps");
        assert_eq!(Quantity::Bytes.show(8e6), "8.000 MB");
    }

    #[test]
    fn counts_fractions_and_ratios() {
        assert_eq!(Quantity::Count.show(1_234_567.0), "1,234,567");
        assert_eq!(Quantity::Count.show(12.0), "12");
        assert_eq!(Quantity::Percent.show(0.6), "60.00 %");
        assert_eq!(Quantity::Plain.show(1.0), "1.000");
        assert_eq!(ratio(2.0, 4.0), "0.500x");
        assert_eq!(ratio(0.0, 0.0), "1x");
        assert_eq!(ratio(3.0, 0.0), "-");
    }
}
