//! Protection modes of packets.

use core::fmt;
use core::str::FromStr;

/// Protection of each packet. Both ends of a connection must have the same setting: the handshake refuses different
/// ones, so that neither end has less protection than configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protection {
    /// No protection. For closed fabrics and benchmarks: any host that can send to this one can write to registered
    /// memory.
    Insecure,
    /// Authentication and protection from replay, without encryption: AES-128-GMAC over header and body.
    AuthOnly,
    /// Authentication and encryption: AES-128-GCM.
    #[default]
    Encrypt,
}

impl Protection {
    /// All modes, weakest first.
    pub const ALL: [Protection; 3] = [Protection::Insecure, Protection::AuthOnly, Protection::Encrypt];

    /// Returns the name in configuration files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Protection::Insecure => "insecure",
            Protection::AuthOnly => "auth-only",
            Protection::Encrypt => "encrypt",
        }
    }
    /// Returns the code in the handshake.
    pub const fn code(self) -> u8 {
        match self {
            Protection::Insecure => 0,
            Protection::AuthOnly => 1,
            Protection::Encrypt => 2,
        }
    }
    /// Returns the protection with this code in the handshake.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.code() == code)
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Error for a text that is no protection mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("protection is {0:?}; allowed are encrypt (the default), auth-only and insecure")]
pub struct UnknownProtection(
    /// Text that was given.
    pub String,
);

impl FromStr for Protection {
    type Err = UnknownProtection;
    fn from_str(text: &str) -> Result<Self, UnknownProtection> {
        Self::ALL.into_iter().find(|mode| mode.name() == text).ok_or_else(|| UnknownProtection(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_are_distinct_and_come_back() {
        for mode in Protection::ALL {
            assert_eq!(mode.name().parse(), Ok(mode));
            assert_eq!(Protection::from_code(mode.code()), Some(mode));
        }
        assert_eq!(Protection::from_code(3), None);
        let error = "encrypted".parse::<Protection>().unwrap_err().to_string();
        assert!(error.contains("\"encrypted\"") && error.contains("auth-only"), "{error}");
    }
}
