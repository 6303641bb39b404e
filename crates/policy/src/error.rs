//! Errors of a configuration.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::ops::{Bound, RangeBounds};

use pathweave_units::Duration;

/// A value that a configuration does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The field, as a dotted path below the structure that was validated (`policy.cc.gain`).
    pub field: String,
    /// The offending value, as text.
    pub value: String,
    /// Allowed values, or advice.
    pub allowed: String,
}

impl ConfigError {
    /// Creates the error of one field.
    pub fn new(field: &str, value: impl ToString, allowed: &str) -> Self {
        ConfigError { field: field.to_string(), value: value.to_string(), allowed: allowed.to_string() }
    }
    /// Returns the same error with the field seen from the enclosing structure: `prefix.field`.
    pub fn within(mut self, prefix: &str) -> Self {
        self.field.insert(0, '.');
        self.field.insert_str(0, prefix);
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} is not allowed: {}", self.field, self.value, self.allowed)
    }
}
impl core::error::Error for ConfigError {}

/// Returns an error that names the field unless `ok`.
pub(crate) fn check(ok: bool, field: &str, value: impl ToString, allowed: &str) -> Result<(), ConfigError> {
    if ok { Ok(()) } else { Err(ConfigError::new(field, value, allowed)) }
}

/// Returns an error that names the field unless `bounds` contain the value. The allowed values in its text follow from
/// the bounds, with their `unit` behind if there is one.
pub(crate) fn within<T: PartialOrd + fmt::Display>(
    field: &str,
    value: T,
    bounds: impl RangeBounds<T>,
    unit: &str,
) -> Result<(), ConfigError> {
    if bounds.contains(&value) {
        return Ok(());
    }
    let mut allowed = match (bounds.start_bound(), bounds.end_bound()) {
        (Bound::Included(least), Bound::Included(most)) => format!("{least} to {most}"),
        (Bound::Included(least), Bound::Excluded(end)) => format!("{least} to less than {end}"),
        (Bound::Excluded(zero), Bound::Included(most)) => format!("more than {zero}, at most {most}"),
        (Bound::Excluded(zero), Bound::Excluded(end)) => format!("more than {zero}, less than {end}"),
        (Bound::Included(least), Bound::Unbounded) => format!("at least {least}"),
        (Bound::Excluded(zero), Bound::Unbounded) => format!("more than {zero}"),
        (Bound::Unbounded, Bound::Included(most)) => format!("at most {most}"),
        (Bound::Unbounded, Bound::Excluded(end)) => format!("less than {end}"),
        (Bound::Unbounded, Bound::Unbounded) => String::new(),
    };
    if !unit.is_empty() {
        allowed += &format!(" ({unit})");
    }
    Err(ConfigError::new(field, value, &allowed))
}

/// Returns the bounds "more than `least`, at most `most`".
pub(crate) fn above<T>(least: T, most: T) -> (Bound<T>, Bound<T>) {
    (Bound::Excluded(least), Bound::Included(most))
}

/// Returns the bounds "more than `least`, less than `end`".
pub(crate) fn between<T>(least: T, end: T) -> (Bound<T>, Bound<T>) {
    (Bound::Excluded(least), Bound::Excluded(end))
}

/// Bounds of a time that may be left out: at most a second.
pub(crate) const AT_MOST_A_SECOND: core::ops::RangeToInclusive<Duration> = ..=Duration::from_ms(1_000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allowed_values_follow_from_the_bounds() {
        let text = |found: Result<(), ConfigError>| found.expect_err("outside").allowed;
        assert_eq!(text(within("x", 0.0, above(0.0, 1e3), "")), "more than 0, at most 1000");
        assert_eq!(text(within("x", 1.0, between(0.0, 1.0), "")), "more than 0, less than 1");
        assert_eq!(text(within("x", 0, 1..=8, "packets")), "1 to 8 (packets)");
        assert_eq!(text(within("x", 0, 1.., "")), "at least 1");
        assert_eq!(text(within("x", f64::NAN, 0.0..=0.1, "")), "0 to 0.1");
        let long = Duration::from_ms(1_001);
        assert_eq!(text(within("x", long, AT_MOST_A_SECOND, "")), "at most 1s");
        assert_eq!(within("x", 8, 1..=8, ""), Ok(()));
    }
}
