//! Source of random bytes for secrets.

/// Source of unpredictable random bytes. The caller passes it, so that tests can repeat a handshake.
pub trait SecureRandom {
    /// Fills `out` with random bytes.
    ///
    /// # Errors
    ///
    /// The source failed. The content of `out` must not be used.
    fn fill(&mut self, out: &mut [u8]) -> Result<(), RandomError>;
}

/// Error of a source of random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gave no random bytes")]
pub struct RandomError;

/// Random source of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsRandom;

impl SecureRandom for OsRandom {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), RandomError> {
        getrandom::fill(out).map_err(|_| RandomError)
    }
}
