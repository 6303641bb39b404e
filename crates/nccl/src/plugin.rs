//! The process's devices. They are opened once, and live as long as the process: NCCL below version 2.28 does not say
//! when it has done with them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use pathweave_datapath::{
    Accepting, Connection, ConnectionId, Device, DeviceConfig, Event, Events, OpenError,
};
use pathweave_door::{Interface, Settings, interfaces, interfaces_from, say_once, settings};

use crate::abi::Fault;
use crate::comm::Comm;
use crate::connecting::{Dial, Listener};
use crate::guard::{Outcome, info, warn};
use crate::handle::Cookie;
use crate::properties::Properties;

/// Bytes of the lines whose flags kernels of NCCL poll while a message arrives.
const LINE_BYTES: u16 = 128;
/// Number of connections of a loop. With 8 GPUs a host, 32 channels, and two connections for each pair, a large job has
/// more than the defaults of a device.
const MOST_CONNECTIONS: usize = 65_536;
/// Number of connections that may be half open, in total and with one peer: all of a job are opened at once.
const MOST_HALF_OPEN: usize = 8_192;
/// Rate from which on one loop is too slow.
const RATE_OF_A_LOOP_MBPS: u64 = 25_000;
/// Cores for each loop, and the largest number of loops that are chosen without a variable.
const CORES_OF_A_LOOP: usize = 4;
const MOST_LOOPS: usize = 4;
/// Largest number of loops that a variable may ask for.
const LOOPS_ALLOWED: std::ops::RangeInclusive<usize> = 1..=16;
const LOOPS_VARIABLE: &str = "PATHWEAVE_NCCL_LOOPS";

/// Everything that the process has open.
pub(crate) struct Plugin {
    lanes: Vec<Arc<Lane>>,
    pub(crate) properties: Properties,
    /// Time within which a connection must open.
    pub(crate) patience: Duration,
    /// Number of listeners so far, and of attempts to connect.
    listeners: AtomicUsize,
    attempts: AtomicU64,
}

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

static PLUGIN: OnceLock<Plugin> = OnceLock::new();
/// Held while the devices are opened.
static OPENING: Mutex<()> = Mutex::new(());

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns what the process has open.
///
/// # Errors
/// [`Fault::Usage`] before [`open`] has succeeded.
pub(crate) fn plugin() -> Outcome<&'static Plugin> {
    PLUGIN.get().ok_or(Fault::Usage)
}

/// Opens the devices, if they are not open.
///
/// # Errors
/// [`Fault::System`]; one line on standard error and in the log says why. NCCL then uses another network.
pub(crate) fn open() -> Outcome {
    let _opening = lock(&OPENING);
    if PLUGIN.get().is_some() {
        return Ok(());
    }
    match Plugin::open() {
        Ok(plugin) => {
            info(format_args!("{}", plugin.describe()));
            let _ = PLUGIN.set(plugin);
            Ok(())
        }
        Err(reason) => {
            let reason = format!("NCCL gets no network from this plug-in: {reason}");
            warn(&reason);
            say_once(&reason);
            Err(Fault::System)
        }
    }
}

impl Plugin {
    fn open() -> Result<Self, String> {
        let settings = settings::from_environment().map_err(|error| error.to_string())?;
        let found = interfaces_from(&settings.place, &interfaces())?;
        let interfaces: Vec<&Interface> = found.iter().collect();
        let properties = Properties::of(&interfaces, &settings);
        let wanted = std::env::var(LOOPS_VARIABLE).ok().filter(|text| !text.is_empty());
        let loops = match wanted {
            Some(text) => loops_asked_for(&text)?,
            None => {
                loops_for(properties.speed_mbps, std::thread::available_parallelism().map_or(1, Into::into))
            }
        };
        let lanes = (0..loops).map(|_| Lane::open(&settings, &interfaces)).collect::<Result<_, _>>()?;
        Ok(Plugin {
            lanes,
            properties,
            patience: settings.peer_timeout,
            listeners: AtomicUsize::new(0),
            attempts: AtomicU64::new(1),
        })
    }

    fn describe(&self) -> String {
        let addresses: Vec<String> =
            self.lanes.iter().flat_map(|lane| lane.device.addresses()).map(SocketAddr::to_string).collect();
        format!("{} at {}", self.properties.name.to_string_lossy(), addresses.join(", "))
    }

    /// Returns the loop of the next listener: listeners take turns.
    pub(crate) fn next_lane(&self) -> &Arc<Lane> {
        &self.lanes[self.listeners.fetch_add(1, Ordering::Relaxed) % self.lanes.len()]
    }

    /// Returns the number of a new attempt to connect, which is not 0.
    pub(crate) fn next_attempt(&self) -> u64 {
        self.attempts.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the loop of an attempt.
    pub(crate) fn lane_of(&self, attempt: u64) -> &Arc<Lane> {
        &self.lanes[(attempt % self.lanes.len() as u64) as usize]
    }
}

/// Parses the variable.
fn loops_asked_for(text: &str) -> Result<usize, String> {
    let allowed = LOOPS_ALLOWED;
    text.parse().ok().filter(|loops| allowed.contains(loops)).ok_or_else(|| {
        format!("{LOOPS_VARIABLE} is {text:?}; allowed: {} to {}", allowed.start(), allowed.end())
    })
}

/// Returns the number of loops for interfaces of this total rate.
fn loops_for(speed_mbps: u64, cores: usize) -> usize {
    if speed_mbps < RATE_OF_A_LOOP_MBPS { 1 } else { (cores / CORES_OF_A_LOOP).clamp(1, MOST_LOOPS) }
}

/// Returns the configuration of a loop.
fn configuration(settings: &Settings, interfaces: &[&Interface], port: u16) -> Result<DeviceConfig, String> {
    let mut config = settings.device(interfaces, SocketAddr::new(interfaces[0].address, port));
    config.payload_of_lines(LINE_BYTES).map_err(|error| error.to_string())?;
    config.max_connections = MOST_CONNECTIONS;
    config.max_connections_per_peer = MOST_CONNECTIONS;
    config.max_half_open = MOST_HALF_OPEN;
    config.max_half_open_per_peer = MOST_HALF_OPEN;
    Ok(config)
}

impl Lane {
    fn open(settings: &Settings, interfaces: &[&Interface]) -> Result<Arc<Self>, String> {
        let device = Lane::open_device(settings, interfaces)?;
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

    /// Opens a device at one of the ports that are allowed.
    fn open_device(settings: &Settings, interfaces: &[&Interface]) -> Result<Device, String> {
        let mut reason = String::new();
        for port in settings.ports.clone().unwrap_or(0..=0) {
            match Device::open(configuration(settings, interfaces, port)?) {
                Ok(device) => return Ok(device),
                Err(error @ OpenError::PortInUse { .. }) => reason = error.to_string(),
                Err(error) => return Err(error.to_string()),
            }
        }
        Err(reason)
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
        let closed = lock(&self.table).comms.remove(&comm.connection.id());
        drop(closed);
        comm.connection.close();
    }

    /// Returns true if no line of a message is spread over two packets of a connection.
    pub(crate) fn keeps_lines(connection: &Connection) -> bool {
        connection.info().mtu_payload.is_multiple_of(LINE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_follow_the_rate_and_the_cores() {
        assert_eq!([loops_for(10_000, 64), loops_for(25_000, 64), loops_for(100_000, 8)], [1, 4, 2]);
        assert_eq!([loops_for(100_000, 2), loops_for(100_000, 15)], [1, 3]);
        assert_eq!(loops_asked_for("16"), Ok(16));
        for wrong in ["0", "17", "two", ""] {
            let error = loops_asked_for(wrong).unwrap_err();
            assert!(error.contains(LOOPS_VARIABLE) && error.contains("1 to 16"), "{error}");
        }
    }
}
