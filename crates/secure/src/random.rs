//! Where secrets come from.

/// A source of unpredictable random bytes. Passed in, so that tests can repeat a handshake.
pub trait SecureRandom {
    /// Fills `out`.
    ///
    /// # Errors
    ///
    /// The source failed; nothing of `out` may be used.
    fn fill(&mut self, out: &mut [u8]) -> Result<(), RandomError>;
}

/// The source of random bytes failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gave no random bytes")]
pub struct RandomError;

/// The operating system's source.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsRandom;

impl SecureRandom for OsRandom {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), RandomError> {
        getrandom::fill(out).map_err(|_| RandomError)
    }
}
