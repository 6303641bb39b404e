//! Formatting of numbers: four significant digits and a unit that suits the size.

/// Converts picoseconds to nanoseconds. Exact to the picosecond within the first half hour (2^51 ps): the product
/// with 1000, rounded, is the integer again.
pub fn ns(ps: u64) -> f64 {
    ps as f64 / 1_000.0
}

/// Format of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// A time in nanoseconds.
    TimeNs,
    /// A rate in bits per second.
    RateBps,
    /// A size in bytes.
    Bytes,
    /// A whole number.
    Count,
    /// A number without unit.
    Plain,
    /// A fraction, shown in percent.
    Percent,
}

impl Quantity {
    /// Returns `value` as text with its unit.
    pub fn format(self, value: f64) -> String {
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

    /// Returns `value` with three significant digits, without trailing zeros in a fraction.
    pub fn format_short(self, value: f64) -> String {
        let scale = 10f64.powi(2 - value.abs().max(1e-300).log10().floor() as i32);
        let text = self.format((value * scale).round() / scale);
        let (number, unit) =
            text.split_once(' ').map_or((text.as_str(), ""), |(number, _)| (number, &text[number.len()..]));
        let number =
            if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
        format!("{number}{unit}")
    }
}

/// Returns at most `most` round values from `from` to `to`, at distances of 1, 2 or 5 times a power of ten.
pub fn round_ticks(from: f64, to: f64, most: u32) -> Vec<f64> {
    let raw = (to - from) / f64::from(most.max(1));
    if raw.is_nan() || raw <= 0.0 {
        return Vec::new();
    }
    let unit = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|lead| lead * unit).into_iter().find(|step| *step >= 0.999 * raw);
    let step = step.unwrap_or(raw);
    let (first, last) = ((from / step - 1e-6).ceil() as i64, (to / step + 1e-6).floor() as i64);
    (first..=last).map(|i| i as f64 * step).collect()
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    // 999.96 would be shown as 1000, so a value that rounds up to the next unit is shown in that unit.
    let fits = |&&(scale, _): &&(f64, &str)| value.abs() >= scale * 0.99995;
    let (scale, unit) = units.iter().rev().find(fits).unwrap_or(&units[0]);
    format!("{} {unit}", significant(value / scale))
}

/// Formats four significant digits below 10,000, no fraction above, and 0 as "0".
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

/// Returns `value` over `base` as text: "1.234x", or a dash if there is no ratio.
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
        let time = |ns| Quantity::TimeNs.format(ns);
        assert_eq!(time(0.0), "0 ns");
        assert_eq!(time(0.334), "0.334 ns");
        assert_eq!(time(999.0), "999.0 ns");
        assert_eq!(time(1_234.5), "1.234 us");
        assert_eq!(time(999_960.0), "1.000 ms");
        assert_eq!(time(2.5e9), "2.500 s");
        assert_eq!(time(86_400e9), "86400 s");
        assert_eq!(Quantity::RateBps.format(98.1e9), "98.10 Gbps");
        assert_eq!(Quantity::Bytes.format(8e6), "8.000 MB");
    }

    #[test]
    fn ticks_are_round_and_not_too_many() {
        assert_eq!(round_ticks(0.0, 10.6, 5), [0.0, 5.0, 10.0]);
        assert_eq!(round_ticks(0.0, 1_230_336.0, 4), [0.0, 500_000.0, 1_000_000.0]);
        assert_eq!(round_ticks(3.2, 4.1, 5), [3.2, 3.4, 3.6, 3.8, 4.0].map(|v: f64| (v / 0.2).round() * 0.2));
        assert_eq!(round_ticks(1.0, 1.0, 5), [0.0; 0]);
        for to in [0.003, 0.7, 1.0, 99.0, 1e12] {
            let ticks = round_ticks(0.0, to, 5);
            assert!(
                (3..=6).contains(&ticks.len()) && ticks[ticks.len() - 1] <= 1.0001 * to,
                "{to}: {ticks:?}"
            );
        }
        assert_eq!(Quantity::TimeNs.format_short(1_250_000.0), "1.25 ms");
        assert_eq!(Quantity::Count.format_short(1_234_567.0), "1,230,000");
    }

    #[test]
    fn counts_fractions_and_ratios() {
        assert_eq!(Quantity::Count.format(1_234_567.0), "1,234,567");
        assert_eq!(Quantity::Count.format(12.0), "12");
        assert_eq!(Quantity::Percent.format(0.6), "60.00 %");
        assert_eq!(Quantity::Plain.format(1.0), "1.000");
        assert_eq!(ratio(2.0, 4.0), "0.500x");
        assert_eq!(ratio(0.0, 0.0), "1x");
        assert_eq!(ratio(3.0, 0.0), "-");
    }
}
