//! Measurements of reliable connections.
//!
//! The client's handshake carries its request and the address of its control memory. Control messages are immediates.
//! Their texts are written to the control memory of the receiver.

mod bundle;
mod flow;
mod server;
mod session;
mod side;
mod words;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pathweave_datapath::{
    Access, Completion, ConnectionStats, Device, DeviceConfig, PathState, Region, Registration, Remote,
    WaitError,
};
use serde::de::DeserializeOwned;

use crate::broken::Broken;
use crate::console::{Console, Failure, Health};
use crate::end::{Came, End, Said};
use crate::meet::{Asks, ClientOptions, LOOK_EVERY, Meets};
use crate::open as device;
use crate::pattern::region;
use crate::show::Setup;
use crate::tally::Tally;
use crate::test::{Hello, Role};
pub(crate) use bundle::{Bundle, Member};
use flow::{Flow, tell};
pub(crate) use server::serve;
use session::Welcome;
use side::Side;
use words::Word;

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
    Hears(Region),
    /// The server writes texts to this address.
    Tells(Remote),
}

impl ConnectionEnd {
    /// Converts a completion to an event.
    ///
    /// # Errors
    /// [`Broken`].
    pub(crate) fn complete(&mut self, completion: Completion) -> Result<Came<Side>, Broken> {
        let Some((word, len)) = self.flow.complete(&self.connection, completion)? else {
            return Ok(Came::Done);
        };
        Ok(match (word, &self.channel) {
            (Word::Data, _) => Came::Data,
            (Word::Checked(_), _) => Came::Done,
            (Word::Start, Channel::Tells(_)) => Came::Said(Said::Start),
            (Word::Finish, Channel::Tells(_)) => Came::Said(Said::Finish),
            (Word::Report, Channel::Hears(control)) => Came::Said(Said::Report(parsed(control, len)?)),
            (word, _) => return Err(Broken::Nonsense(format!("the other end says {word:?}"))),
        })
    }
}

impl End for ConnectionEnd {
    type Side = Side;

    fn tally(&self) -> &Tally {
        &self.flow.tally
    }
    fn tally_mut(&mut self) -> &mut Tally {
        &mut self.flow.tally
    }
    fn post(&mut self) -> Result<(), Broken> {
        self.flow.refill(&self.connection)?;
        self.flow.post(&self.connection)
    }
    /// Sends before it refills receives, because the peer waits for the message in latency tests.
    fn post_one(&mut self) -> Result<(), Broken> {
        self.flow.post_one(&self.connection)?;
        self.flow.refill(&self.connection)
    }
    fn next(&mut self) -> Result<Option<Came<Side>>, Broken> {
        match self.connection.wait(LOOK_EVERY) {
            Ok(completion) => self.complete(completion).map(Some),
            Err(WaitError::Timeout(_)) => Ok(None),
            Err(WaitError::ConnectionClosed(_)) => Err(Broken::Closed),
            Err(why) => Err(Broken::Own(why.to_string())),
        }
    }
    fn say(&mut self, said: Said<Side>) -> Result<(), Broken> {
        match (said, &self.channel) {
            (Said::Start, _) => self.flow.say(&self.connection, Word::Start),
            (Said::Finish, _) => self.flow.say(&self.connection, Word::Finish),
            (Said::Report(side), Channel::Tells(to)) => {
                let text = serde_json::to_vec(&side).expect("plain data serialises");
                tell(&self.connection, Word::Report, &text, *to)
            }
            // The closing connection tells the server the same.
            (Said::Bye | Said::Report(_), _) => Ok(()),
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

impl Meets for Connections<'_> {
    type End = ConnectionEnd;

    fn meet(&mut self, asks: Asks) -> Result<Result<ConnectionEnd, Broken>, Failure> {
        let ClientOptions { server, other_servers, device, .. } = self.options;
        meet(&self.device, (*server, other_servers), scheme_of(self.options), asks, device.connect_timeout)
    }

    fn setup(&self, end: &ConnectionEnd, console: &dyn Console) -> Setup {
        device::note_paths(&end.connection, self.options.device.paths, console);
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
        Health { retransmitted: stats.counters.retransmitted, paths_up, paths: stats.paths.len() }
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
    asks: Asks,
    timeout: Duration,
) -> Result<Result<ConnectionEnd, Broken>, Failure> {
    let Asks { test, comes_back, client } = asks;
    let own = |why: Broken| Failure::Input(why.to_string());
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
                Err(WaitError::Timeout(_)) => return Err(Broken::Silent(timeout)),
                Err(WaitError::ConnectionClosed(_)) => return Err(Broken::Closed),
                Err(why) => return Err(Broken::Own(why.to_string())),
            };
            match flow.complete(&connection, completion)? {
                Some((Word::Ready, len)) => break len,
                Some((Word::Refused, len)) => return Err(Broken::Refused(text(&control, len)?)),
                Some((word, _)) => return Err(Broken::Nonsense(format!("{word:?} before a test"))),
                None => {}
            }
        };
        let welcome: Welcome = parsed(&control, len)?;
        flow.aim(Remote { address: 0, rkey: welcome.data_key });
        Ok(flow)
    };
    let agreed = agree();
    let channel = Channel::Hears(control);
    Ok(agreed.map(|flow| ConnectionEnd { connection, flow, channel, _registered: registered.into() }))
}

fn text(control: &Region, len: u64) -> Result<String, Broken> {
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    Ok(String::from_utf8_lossy(&control.to_vec(0..len)?).into_owned())
}

fn parsed<T: DeserializeOwned>(control: &Region, len: u64) -> Result<T, Broken> {
    let text = text(control, len)?;
    serde_json::from_str(&text).map_err(|why| Broken::Nonsense(why.to_string()))
}
