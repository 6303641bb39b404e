//! How a client meets a server, whichever service carries the measurement.

use std::net::SocketAddr;
use std::time::Duration;

use pathweave_datapath::DeviceConfig;

use crate::broken::Broken;
use crate::console::{Console, Failure, Health, Service};
use crate::end::End;
use crate::show::Setup;
use crate::test::Test;
use pathweave_bypass::Carrier;

/// So often an end looks at the clock, the user and the progress.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A server that lives, but says and takes nothing for so long, has failed.
pub(crate) const LONGEST_SILENCE: Duration = Duration::from_secs(60);

/// What a client is to do.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// What carries messages; the same at both ends.
    pub service: Service,
    /// Where the server is.
    pub server: SocketAddr,
    /// Where it is, too: the first that answers is where a connection begins. Not for datagrams.
    pub other_servers: Vec<SocketAddr>,
    /// How this end is opened, but for the scheme.
    pub device: DeviceConfig,
    /// What carries packets. Datagrams go over UDP sockets.
    pub carrier: Carrier,
    /// Scheme that decides rates and paths; `None`: the usual one of the service.
    pub scheme: Option<String>,
    /// One measurement after the other.
    pub tests: Vec<Test>,
    /// How long each takes that has no number of messages.
    pub time: Duration,
}

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
    fn setup(&self, end: &Self::End, console: &dyn Console) -> Setup;
    fn health(&self, end: &Self::End) -> Health;
}
