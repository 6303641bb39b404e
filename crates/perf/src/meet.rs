//! Set-up of a client with a server, independent of the service.

use std::net::SocketAddr;
use std::time::Duration;

use pathweave_datapath::DeviceConfig;

use crate::broken::MeasureError;
use crate::console::{Console, Failure, Health, Service};
use crate::end::End;
use crate::report::Setup;
use crate::test::Test;
use pathweave_bypass::Carrier;

/// Interval at which an end checks the clock, the user's interrupt and the progress.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Time without any event after which a server that still answers counts as failed.
pub(crate) const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);

/// Options of a client.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Service that carries messages. It must be the same at both ends.
    pub service: Service,
    /// Address of the server.
    pub server: SocketAddr,
    /// Further addresses of the server. A connection uses the first that answers. Not for datagrams.
    pub other_servers: Vec<SocketAddr>,
    /// Configuration of this end, except for the scheme.
    pub device: DeviceConfig,
    /// Carrier of packets. Datagrams always use UDP sockets.
    pub carrier: Carrier,
    /// Scheme that controls rates and paths. `None` selects the service's default.
    pub scheme: Option<String>,
    /// Tests to run, one after the other.
    pub tests: Vec<Test>,
    /// Duration of each test that has no number of messages.
    pub time: Duration,
}

/// Request of a client to a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) test: Test,
    /// True if the client will request another measurement.
    pub(crate) comes_back: bool,
    /// Random number of the client (`draw_number`).
    pub(crate) client: u64,
}

/// Service over which a client reaches servers.
pub(crate) trait Connect {
    type End: End;
    /// Agrees with the server on a measurement.
    ///
    /// # Errors
    /// The outer error means that the server cannot be reached, the inner one that it can.
    fn agree(&mut self, asks: Request) -> Result<Result<Self::End, MeasureError>, Failure>;
    /// Describes the set-up of both ends.
    fn setup(&self, end: &Self::End, console: &dyn Console) -> Setup;
    fn health(&self, end: &Self::End) -> Health;
}
