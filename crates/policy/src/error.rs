//! Errors of a configuration.

use alloc::string::{String, ToString};
use core::fmt;

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
