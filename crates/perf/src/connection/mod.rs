//! Measurements of reliable connections.
//!
//! The client's handshake carries its request and the address of its control memory. Control messages are immediates.
//! Their texts are written to the control memory of the receiver.

mod bundle;
mod control;
mod flow;
mod server;
mod session;
mod side;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pathweave_datapath::{
    Access, Completion, ConnectionStats, Device, DeviceConfig, PathState, Region, Registration, Remote,
    WaitError,
};
use serde::de::DeserializeOwned;

use crate::broken::MeasureError;
use crate::console::{Console, Failure, Health};
use crate::end::{Came, Control, End};
use crate::meet::{CHECK_INTERVAL, ClientOptions, Connect, Request};
use crate::open as device;
use crate::pattern::region;
use crate::report::Setup;
use crate::tally::Counters;
use crate::test::{Hello, Role};
pub(crate) use bundle::{Bundle, Member};
use control::ControlMessage;
use flow::{Flow, send_control_with_text};
pub(crate) use server::serve;
use session::Welcome;
use side::EndReport;

/// Size of the client's control memory. The report on 256 paths takes a quarter of it.
const CONTROL_BYTES: u64 = 256 << 10;

/// One end of a connection.
pub(crate) struct ConnectionEnd {
    pub(crate) connection: Bundle,
    pub(crate) flow: Flow,
    channel: Channel,
    _registered: Vec<Registration>,
}

/// Transport of control messages with a text.
enum Channel {
    /// The client receives texts in this memory.
    Receives(Region),
    /// The server writes texts to this address.
    Sends(Remote),
}

impl ConnectionEnd {
    /// Converts a completion to an event.
    ///
    /// # Errors
    /// [`MeasureError`].
    pub(crate) fn complete(&mut self, completion: Completion) -> Result<Came<EndReport>, MeasureError> {
        let Some((word, len)) = self.flow.complete(&self.connection, completion)? else {
            return Ok(Came::Done);
        };
        Ok(match (word, &self.channel) {
            (ControlMessage::Data, _) => Came::Data,
            (ControlMessage::Checked(_), _) => Came::Done,
            (ControlMessage::Start, Channel::Sends(_)) => Came::Said(Control::Start),
            (ControlMessage::Finish, Channel::Sends(_)) => Came::Said(Control::Finish),
            (ControlMessage::Report, Channel::Receives(control)) => {
                Came::Said(Control::Report(parsed(control, len)?))
            }
            (word, _) => return Err(MeasureError::Protocol(format!("unexpected message {word:?}"))),
        })
    }
}

impl End for ConnectionEnd {
    type Side = EndReport;

    fn tally(&self) -> &Counters {
        &self.flow.tally
    }
    fn tally_mut(&mut self) -> &mut Counters {
        &mut self.flow.tally
    }
    fn post(&mut self) -> Result<(), MeasureError> {
        self.flow.refill(&self.connection)?;
        self.flow.post(&self.connection)
    }
    /// Sends before it refills receives, because the peer waits for the message in latency tests.
    fn post_one(&mut self) -> Result<(), MeasureError> {
        self.flow.post_one(&self.connection)?;
        self.flow.refill(&self.connection)
    }
    fn next(&mut self) -> Result<Option<Came<EndReport>>, MeasureError> {
        match self.connection.wait(CHECK_INTERVAL) {
            Ok(completion) => self.complete(completion).map(Some),
            Err(WaitError::Timeout(_)) => Ok(None),
            Err(WaitError::ConnectionClosed(_)) => Err(MeasureError::Closed),
            Err(why) => Err(MeasureError::Local(why.to_string())),
        }
    }
    fn send_control(&mut self, said: Control<EndReport>) -> Result<(), MeasureError> {
        match (said, &self.channel) {
            (Control::Start, _) => self.flow.send_control(&self.connection, ControlMessage::Start),
            (Control::Finish, _) => self.flow.send_control(&self.connection, ControlMessage::Finish),
            (Control::Report(side), Channel::Sends(to)) => {
                let text = serde_json::to_vec(&side).expect("plain data serialises");
                send_control_with_text(&self.connection, ControlMessage::Report, &text, *to)
            }
            // The closing connection tells the server the same.
            (Control::Bye | Control::Report(_), _) => Ok(()),
        }
    }
    fn stats(&self) -> Option<ConnectionStats> {
        self.connection.stats()
    }
    fn moved_bytes(&self) -> (u64, u64) {
        let counters = self.connection.stats().map(|stats| stats.counters).unwrap_or_default();
        (counters.payload_bytes_received, counters.payload_bytes_sent)
    }
}

/// Device of a client.
pub(crate) struct Connections<'a> {
    options: &'a ClientOptions,
    device: Device,
}

/// Default scheme of connections.
const DEFAULT_SCHEME: &str = "weave";

impl<'a> Connections<'a> {
    /// # Errors
    /// If the device cannot be opened.
    pub(crate) fn open(options: &'a ClientOptions, console: &dyn Console) -> Result<Self, Failure> {
        let config = DeviceConfig { scheme: scheme_of(options).to_owned(), ..options.device.clone() };
        Ok(Connections { options, device: device::open(config, &options.carrier, console)? })
    }
}

fn scheme_of(options: &ClientOptions) -> &str {
    options.scheme.as_deref().unwrap_or(DEFAULT_SCHEME)
}

impl Connect for Connections<'_> {
    type End = ConnectionEnd;

    fn agree(&mut self, asks: Request) -> Result<Result<ConnectionEnd, MeasureError>, Failure> {
        let ClientOptions { server, other_servers, device, .. } = self.options;
        meet(&self.device, (*server, other_servers), scheme_of(self.options), asks, device.connect_timeout)
    }

    fn setup(&self, end: &ConnectionEnd, console: &dyn Console) -> Setup {
        device::note_less(&end.connection, &self.options.device, console);
        let (info, test) = (end.connection.info(), end.tally().test);
        Setup {
            op: test.op,
            transport: None,
            kind: test.kind,
            directions: test.directions,
            check: test.check,
            server: self.options.server,
            scheme: info.scheme.clone(),
            protection: info.protection.to_string(),
            paths: info.paths,
            mtu_payload_bytes: info.mtu_payload,
            depth: test.depth,
            scan_period_us: None,
        }
    }

    fn health(&self, end: &ConnectionEnd) -> Health {
        let Some(stats) = end.connection.stats() else { return Health::default() };
        let paths_up = stats.paths.iter().filter(|path| path.state == PathState::Up).count();
        Health { retransmitted: stats.counters.retransmitted_packets, paths_up, paths: stats.paths.len() }
    }
}

/// Connects to the server and agrees on the measurement. `asks` says whether another one follows.
///
/// # Errors
/// The outer error means that no connection was established, the inner one that it was.
pub(crate) fn meet(
    device: &Device,
    server: (SocketAddr, &[SocketAddr]),
    scheme: &str,
    asks: Request,
    timeout: Duration,
) -> Result<Result<ConnectionEnd, MeasureError>, Failure> {
    let Request { test, comes_back, client } = asks;
    let own = |why: MeasureError| Failure::Input(why.to_string());
    let memory = region(test.memory_bytes()).map_err(own)?;
    let control = region(CONTROL_BYTES).map_err(own)?;
    let register = |memory: &Region, access| {
        device.register(memory, access).map_err(|why| Failure::Internal(why.to_string()))
    };
    let registered = [register(&memory, Access::READ_WRITE)?, register(&control, Access::WRITE)?];
    let [data_key, control_key] = registered.each_ref().map(Registration::rkey);
    let hello = Hello { test, data_key, control_key, comes_back, client };
    let connection = device::connect(device, server, scheme, &hello.encode())?;
    let agree = || {
        let mut flow =
            Flow::new(test, Role::Client, (memory, Remote { address: 0, rkey: 0 }), || connection.turn())?;
        flow.prepare(&connection)?;
        let begun = Instant::now();
        let len = loop {
            let left = timeout.saturating_sub(begun.elapsed());
            let completion = match connection.wait(left) {
                Ok(completion) => completion,
                Err(WaitError::Timeout(_)) => return Err(MeasureError::Timeout(timeout)),
                Err(WaitError::ConnectionClosed(_)) => return Err(MeasureError::Closed),
                Err(why) => return Err(MeasureError::Local(why.to_string())),
            };
            match flow.complete(&connection, completion)? {
                Some((ControlMessage::Ready, len)) => break len,
                Some((ControlMessage::Refused, len)) => {
                    return Err(MeasureError::Refused(text(&control, len)?));
                }
                Some((word, _)) => {
                    return Err(MeasureError::Protocol(format!("unexpected message {word:?} before a test")));
                }
                None => {}
            }
        };
        let welcome: Welcome = parsed(&control, len)?;
        flow.set_remote(Remote { address: 0, rkey: welcome.data_key });
        Ok(flow)
    };
    let agreed = agree();
    let channel = Channel::Receives(control);
    Ok(agreed.map(|flow| ConnectionEnd { connection, flow, channel, _registered: registered.into() }))
}

fn text(control: &Region, len: u64) -> Result<String, MeasureError> {
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    Ok(String::from_utf8_lossy(&control.to_vec(0..len)?).into_owned())
}

fn parsed<T: DeserializeOwned>(control: &Region, len: u64) -> Result<T, MeasureError> {
    let text = text(control, len)?;
    serde_json::from_str(&text).map_err(|why| MeasureError::Protocol(why.to_string()))
}
