//! Errors of a configuration.

/// A field with a value out of its range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Path of the field below the validated struct ("ecn.kmin").
    pub field: &'static str,
    /// Value of the field.
    pub value: String,
    /// Allowed values.
    pub allowed: String,
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is {}; allowed: {}", self.field, self.value, self.allowed)
    }
}
impl std::error::Error for ConfigError {}

pub(crate) fn out_of_range(field: &'static str, value: impl ToString, allowed: impl ToString) -> ConfigError {
    ConfigError { field, value: value.to_string(), allowed: allowed.to_string() }
}
