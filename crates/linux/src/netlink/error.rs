//! Why the kernel refuses.

use std::fmt;
use std::io;

/// An error of the operating system, with the kernel's own words where it gives any.
#[derive(Debug)]
pub struct SystemError {
    /// The error number.
    pub error: io::Error,
    /// What netlink's extended acknowledgement says.
    pub words: Option<String>,
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.words {
            Some(words) => write!(f, "{} ({words})", self.error),
            None => write!(f, "{}", self.error),
        }
    }
}
impl std::error::Error for SystemError {}

impl From<io::Error> for SystemError {
    fn from(error: io::Error) -> Self {
        SystemError { error, words: None }
    }
}
