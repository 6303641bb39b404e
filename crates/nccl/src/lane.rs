//! One event loop, and the connections that it carries.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pathweave_datapath::{
    Accepting, ConfigError, Connection, ConnectionId, Device, DeviceConfig, Driving, Event, Events,
};
use pathweave_door::{Interface, Progress, Settings, include_keepalive_in_timeout};

use crate::comm::Comm;
use crate::connecting::{Dial, Listener};
use crate::guard::lock;
use crate::handle::Cookie;

/// Bytes of the lines whose flags kernels of NCCL poll while a message arrives.
const LINE_BYTES: u16 = 128;
/// Number of connections of a loop. With 8 GPUs a host, 32 channels, and two connections for each pair, a large job has
/// more than the defaults of a device.
const MOST_CONNECTIONS: usize = 65_536;
/// Number of connections that may be half open, in total and with one peer: all of a job are opened at once.
const MOST_HALF_OPEN: usize = 8_192;
/// One event loop, and the connections that it carries.
pub(crate) struct Lane {
    pub(crate) device: Device,
    pub(crate) events: Events,
    pub(crate) scheme: String,
    _accepting: Accepting,
    pub(crate) table: Mutex<Table>,
    /// True if there were events since a thread last looked at what they have changed.
    news: AtomicBool,
}

/// Connections and attempts by the names that events carry.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) comms: HashMap<ConnectionId, Arc<Comm>>,
    pub(crate) dials: HashMap<u64, Dial>,
    pub(crate) listeners: HashMap<Cookie, Arc<Listener>>,
}

/// Sets what a loop of NCCL needs.
fn adapt(config: &mut DeviceConfig, settings: &Settings) -> Result<(), ConfigError> {
    config.payload_of_lines(LINE_BYTES)?;
    if settings.progress == Progress::Auto {
        // Calls then only look and post, so none of them takes long, whatever the network brings.
        config.driving = Driving::Thread { core: None };
    }
    include_keepalive_in_timeout(config);
    config.max_connections = MOST_CONNECTIONS;
    config.max_connections_per_peer = MOST_CONNECTIONS;
    config.max_half_open = MOST_HALF_OPEN;
    config.max_half_open_per_peer = MOST_HALF_OPEN;
    Ok(())
}

impl Lane {
    /// Opens the loop.
    ///
    /// # Errors
    /// One line for users.
    pub(crate) fn open(settings: &Settings, interfaces: &[&Interface]) -> Result<Arc<Self>, String> {
        let ports = settings.ports.clone().unwrap_or(0..=0);
        let device = settings
            .open(interfaces, interfaces[0].address, ports, |config| adapt(config, settings))
            .map_err(|error| error.to_string())?;
        let events = device.events();
        let accepting = events.accept().map_err(|error| error.to_string())?;
        let lane = Arc::new(Lane {
            device,
            events,
            scheme: settings.scheme.clone(),
            _accepting: accepting,
            table: Mutex::default(),
            news: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&lane);
        let hook = move || {
            if let Some(lane) = weak.upgrade() {
                lane.drain();
            }
        };
        lane.device.set_hook(hook).map_err(|error| error.to_string())?;
        Ok(lane)
    }

    /// Drives the loop once, unless events have come since the last call: then the caller has to look at what they have
    /// changed, and others too. A thread that looks at many connections thus drives the loop once a round, not once a
    /// connection.
    pub(crate) fn turn(&self) {
        if !self.news.swap(false, Ordering::Acquire) {
            self.device.progress();
        }
    }

    /// Takes all events. Called by the loop.
    fn drain(self: &Arc<Self>) {
        while let Some(event) = self.events.take() {
            self.news.store(true, Ordering::Release);
            match event {
                Event::Completed(done) => {
                    if let Some(comm) = self.comm(done.connection) {
                        comm.completed(&done);
                    }
                }
                Event::Opened { token, connection } => self.opened(token, connection),
                Event::Refused { token, error } => self.refused(token, &error),
                Event::Accepted(connection) => self.accepted(connection),
                Event::Closed { connection, reason } => {
                    if let Some(comm) = self.comm(connection) {
                        comm.lost(reason);
                    }
                }
                _ => {}
            }
        }
    }

    fn comm(&self, id: ConnectionId) -> Option<Arc<Comm>> {
        lock(&self.table).comms.get(&id).cloned()
    }

    /// Ends a connection. What the peer has sent is still acknowledged for a while.
    pub(crate) fn close(&self, comm: &Comm) {
        let closed = lock(&self.table).comms.remove(&comm.link.connection.id());
        drop(closed);
        comm.link.connection.close();
    }

    /// Returns true if no line of a message is spread over two packets of a connection.
    pub(crate) fn keeps_lines(connection: &Connection) -> bool {
        connection.info().mtu_payload.is_multiple_of(LINE_BYTES)
    }
}
