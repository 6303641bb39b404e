//! What is wrong with a configuration.

/// A value out of its range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The field, as a path below the struct that was validated ("ecn.kmin").
    pub field: &'static str,
    /// The value found.
    pub value: String,
    /// What is allowed.
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
