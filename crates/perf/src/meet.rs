//! How a client meets a server, whichever service carries the measurement.

use std::time::Duration;

use super::broken::Broken;
use super::end::End;
use super::show::Setup;
use super::test::Test;
use crate::failure::Failure;

/// So often an end looks at the clock, the user and the progress.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A server that lives, but says and takes nothing for so long, has failed.
pub(crate) const LONGEST_SILENCE: Duration = Duration::from_secs(60);

/// What a client asks of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asks {
    pub(crate) test: Test,
    /// It will ask for another one.
    pub(crate) comes_back: bool,
    /// Its number (`draw_number`).
    pub(crate) client: u64,
}

/// A service on which a client meets servers.
pub(crate) trait Meets {
    type End: End;
    /// Agrees with the server on what is to be measured.
    ///
    /// # Errors
    /// The outer one: the server cannot be reached. The inner one: it could.
    fn meet(&mut self, asks: Asks) -> Result<Result<Self::End, Broken>, Failure>;
    /// How the ends are set up.
    fn setup(&self, end: &Self::End) -> Setup;
    /// Packets sent again, paths that are up, and paths.
    fn health(&self, end: &Self::End) -> (u64, usize, usize);
}
