//! The process's devices. They are opened once, and live as long as the process: NCCL below version 2.28 does not say
//! when it has done with them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use pathweave_door::{Backend, Interface, interfaces, interfaces_from, say_once, settings};

use crate::abi::{Fault, HANDLE_BYTES};
use crate::comm::Comm;
use crate::connecting::{Dial, Listener};
use crate::guard::{Outcome, info, lock, warn};
use crate::handle;
use crate::lane::Lane;
use crate::properties::Properties;

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
    patience: Duration,
    /// Number of listeners so far, and of attempts to connect.
    listeners: AtomicUsize,
    attempts: AtomicU64,
}

static PLUGIN: OnceLock<Plugin> = OnceLock::new();
/// Held while the devices are opened.
static OPENING: Mutex<()> = Mutex::new(());

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
            Some(text) => loops_asked_for(&text, settings.backend)?,
            None if settings.backend != Backend::Udp => 1,
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

    /// Starts to listen, at the next loop; writes the handle for the peer.
    pub(crate) fn listen(&self, handle: &mut [u8; HANDLE_BYTES]) -> Arc<Listener> {
        let turn = self.listeners.fetch_add(1, Ordering::Relaxed);
        Listener::open(&self.lanes[turn % self.lanes.len()], handle)
    }

    /// Starts to connect, or continues: the handle keeps the number of the attempt. Returns `None` while it is not open.
    ///
    /// # Errors
    /// [`Fault::Usage`] for a handle of another plug-in, [`Fault::Remote`] if the peer cannot be reached.
    pub(crate) fn connect(&self, bytes: &mut [u8; HANDLE_BYTES]) -> Outcome<Option<Arc<Comm>>> {
        let lane_of = |number: u64| &self.lanes[(number % self.lanes.len() as u64) as usize];
        let mut number = handle::attempt(bytes);
        if number == 0 {
            let Some(handle) = handle::Handle::decode(bytes) else {
                warn("the peer uses another network plug-in, or another version of this one");
                return Err(Fault::Usage);
            };
            number = self.attempts.fetch_add(1, Ordering::Relaxed);
            handle::set_attempt(bytes, number);
            lane_of(number).dial(number, Dial::new(handle, self.patience));
        }
        let lane = lane_of(number);
        lane.turn();
        lane.outcome(number)
    }
}

/// Parses the variable.
fn loops_asked_for(text: &str, backend: Backend) -> Result<usize, String> {
    // AF_XDP has an interface for itself, and so has the loop that opens it.
    let (range, allowed) = match backend {
        Backend::Udp => (LOOPS_ALLOWED, "1 to 16"),
        Backend::AfXdp | Backend::Auto => (1..=1, "1, unless PATHWEAVE_BACKEND is udp"),
    };
    let loops = text.parse().ok().filter(|loops| range.contains(loops));
    loops.ok_or_else(|| format!("{LOOPS_VARIABLE} is {text:?}; allowed: {allowed}"))
}

/// Returns the number of loops for interfaces of this total rate.
fn loops_for(speed_mbps: u64, cores: usize) -> usize {
    if speed_mbps < RATE_OF_A_LOOP_MBPS { 1 } else { (cores / CORES_OF_A_LOOP).clamp(1, MOST_LOOPS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_follow_the_rate_and_the_cores() {
        assert_eq!([loops_for(10_000, 64), loops_for(25_000, 64), loops_for(100_000, 8)], [1, 4, 2]);
        assert_eq!([loops_for(100_000, 2), loops_for(100_000, 15)], [1, 3]);
        assert_eq!(loops_asked_for("16", Backend::Udp), Ok(16));
        assert_eq!(loops_asked_for("1", Backend::AfXdp), Ok(1));
        let error = loops_asked_for("2", Backend::AfXdp).unwrap_err();
        assert!(error.contains("\"2\"; allowed: 1, unless"), "{error}");
        for wrong in ["0", "17", "two", ""] {
            let error = loops_asked_for(wrong, Backend::Udp).unwrap_err();
            assert!(error.contains(LOOPS_VARIABLE) && error.contains("1 to 16"), "{error}");
        }
    }
}
