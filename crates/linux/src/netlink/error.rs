//! Errors of the kernel.

use std::fmt;
use std::io;

/// An error of the operating system, with the kernel's message if it sent one.
#[derive(Debug)]
pub struct SystemError {
    /// The error number.
    pub error: io::Error,
    /// Message of netlink's extended acknowledgement.
    pub message: Option<String>,
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.message {
            Some(words) => write!(f, "{} ({words})", self.error),
            None => write!(f, "{}", self.error),
        }
    }
}
impl std::error::Error for SystemError {}

impl From<io::Error> for SystemError {
    fn from(error: io::Error) -> Self {
        SystemError { error, message: None }
    }
}
