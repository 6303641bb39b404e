//! Port of DPDK with one queue of frames in each direction.

#![allow(unsafe_code, reason = "calls of DPDK; each block says why it is sound")]

use std::ffi::CString;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ffi::{self, Pool, PortProperties, PortRequest};
use super::frames::{BURST, RxBurst, TxQueue, burst_of};
use super::gate::{self, GateGuard};
use super::start::reason;
use crate::dpdk::config::Device;
use crate::dpdk::error::DpdkError;
use crate::dpdk::memif;

/// Number of threads that may each cache empty frames.
const THREADS: u32 = 16;
/// Number of empty frames that each thread may cache.
const KEPT_BY_THREAD: u32 = 96;

/// Configuration of a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortConfig {
    /// Room of a frame in bytes, at least the size of the largest one.
    pub(crate) frame_bytes: usize,
    /// Size of the largest IP packet in bytes.
    pub(crate) mtu_bytes: u32,
    /// Number of frames per queue, if the device allows a choice.
    pub(crate) queue_frames: u16,
}

impl PortConfig {
    /// Returns the number of frames in the pool.
    fn pool_frames(&self) -> u32 {
        2 * u32::from(self.queue_frames) + 8 * BURST as u32 + THREADS * KEPT_BY_THREAD
    }

    /// Returns the size of the pool in bytes.
    pub(crate) fn pool_bytes(&self) -> u64 {
        // The header of a frame and the space that drivers put in front of it are 128 bytes each.
        u64::from(self.pool_frames()) * (self.frame_bytes as u64 + 256)
    }
}

/// Peculiarities of a device's driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DriverQuirks {
    /// The driver may free frames that it reports as not sent. True for packet sockets.
    frees_quietly: bool,
    /// The driver unmaps memory when the peer process exits. True for memif.
    is_gated: bool,
    /// The driver does not reconnect by itself. True for the client of a memif.
    must_be_restarted: bool,
    /// The driver accepts frames of any length, regardless of the limit that it reports.
    takes_any_length: bool,
}

impl DriverQuirks {
    fn of(device: &Device) -> DriverQuirks {
        let Device::Vdev(vdev) = device else { return DriverQuirks::default() };
        let is_client = !memif::is_server(vdev);
        match vdev.driver() {
            "net_af_packet" => {
                DriverQuirks { frees_quietly: true, takes_any_length: true, ..DriverQuirks::default() }
            }
            "net_memif" => DriverQuirks {
                is_gated: true,
                must_be_restarted: is_client,
                takes_any_length: true,
                ..DriverQuirks::default()
            },
            "net_ring" | "net_null" => DriverQuirks { takes_any_length: true, ..DriverQuirks::default() },
            _ => DriverQuirks::default(),
        }
    }
}

/// Port of DPDK.
#[derive(Debug)]
pub(crate) struct Port {
    // Frames are dropped before their pool.
    arrived: RxBurst,
    leaving: TxQueue,
    burst: usize,
    device: Attached,
    mac: [u8; 6],
    ways: DriverQuirks,
    runs: bool,
    /// Lock and gate pass, held while the device is removed.
    closing: Option<(MutexGuard<'static, ()>, Option<GateGuard>)>,
}

/// Device, which is removed together with its pool.
#[derive(Debug)]
struct Attached {
    port: u16,
    pool: *mut Pool,
}

// SAFETY: DPDK's ports and pools are not tied to a thread, and the owner of the `Port` has exclusive access to them.
unsafe impl Send for Port {}

impl Port {
    /// Creates a device with its port and starts it. DPDK must have been started.
    ///
    /// # Errors
    /// [`DpdkError`].
    pub(crate) fn open(device: &Device, config: PortConfig) -> Result<Port, DpdkError> {
        let shown = device_text(device);
        let refused = |number| DpdkError::Attach { device: shown.clone(), why: reason(number) };
        let control = port_lock();
        let ways = DriverQuirks::of(device);
        if ways.is_gated {
            gate::open().map_err(refused)?;
            gate::shorten_rests();
        }
        // Clears earlier messages of DPDK, which concern something else.
        reason(0);
        let quiet = gate::enter();
        let mut attached = attach(device).map_err(|number| no_device(device, number))?;
        let mut facts = PortProperties::NONE;
        // SAFETY: the port was created above, and the pointer is to a value of the right type.
        match unsafe { ffi::pathweave_dpdk_look(attached.port, &raw mut facts) } {
            0 => {}
            number => return Err(refused(number)),
        }
        if !ways.takes_any_length && facts.max_mtu_bytes < config.mtu_bytes {
            let most_bytes = facts.max_mtu_bytes;
            return Err(DpdkError::Mtu { device: shown, mtu_bytes: config.mtu_bytes, most_bytes });
        }
        let wish = PortRequest {
            frame_bytes: config.frame_bytes as u32,
            mtu_bytes: if ways.takes_any_length { 0 } else { config.mtu_bytes },
            pool_frames: config.pool_frames(),
            receive_frames: config.queue_frames,
            send_frames: config.queue_frames,
        };
        // SAFETY: as above.
        let result = unsafe { ffi::pathweave_dpdk_configure(attached.port, &raw const wish, &raw mut facts) };
        attached.pool = facts.pool;
        if result != 0 {
            return Err(refused(result));
        }
        let mut port = Port {
            arrived: RxBurst::new(burst_of(config.frame_bytes)),
            burst: burst_of(config.frame_bytes),
            leaving: TxQueue::new(config.frame_bytes),
            device: attached,
            mac: facts.mac,
            ways,
            runs: false,
            closing: None,
        };
        let started = port.run();
        drop(quiet);
        drop(control);
        match started {
            // The server of the memif is not running yet.
            Err(_) if ways.must_be_restarted => {}
            Err(number) => return Err(refused(number)),
            Ok(()) => {}
        }
        Ok(port)
    }

    /// Returns the Ethernet address.
    pub(crate) fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// Returns true if the link is up.
    pub(crate) fn is_up(&self) -> bool {
        // SAFETY: the port is alive.
        let is_up = self.runs && unsafe { ffi::pathweave_dpdk_is_up(self.device.port) } != 0;
        if !is_up && self.ways.is_gated {
            gate::shorten_rests();
        }
        is_up
    }

    /// Returns the number of received frames dropped for lack of space.
    pub(crate) fn missed(&self) -> u64 {
        // SAFETY: the port is alive.
        unsafe { ffi::pathweave_dpdk_missed(self.device.port) }
    }

    /// Reconnects a port that does not do so by itself, if its link is down.
    pub(crate) fn reconnect(&mut self) {
        if !self.ways.must_be_restarted || self.is_up() {
            return;
        }
        let _control = port_lock();
        let _quiet = gate::enter();
        if self.runs {
            // SAFETY: the port is alive.
            unsafe { ffi::pathweave_dpdk_halt(self.device.port) };
            gate::occupy_closed_descriptors();
            self.runs = false;
        }
        // A failed attempt is repeated later.
        let _ = self.run();
    }

    fn run(&mut self) -> Result<(), i32> {
        // SAFETY: the port is alive.
        match unsafe { ffi::pathweave_dpdk_run(self.device.port) } {
            0 => {
                self.runs = true;
                Ok(())
            }
            number => Err(number),
        }
    }

    /// Returns true if a frame has arrived.
    pub(crate) fn has_arrived(&mut self) -> bool {
        if self.arrived.is_empty() && self.runs {
            register_thread();
            let _pass = self.pass();
            self.arrived.take(self.device.port);
        }
        !self.arrived.is_empty()
    }

    /// Passes received frames to `sink`, and returns their number.
    pub(crate) fn receive(&mut self, sink: impl FnMut(&mut [u8])) -> usize {
        if self.has_arrived() { self.arrived.deliver(sink) } else { 0 }
    }

    /// Largest number of frames in a batch.
    pub(crate) const MOST_FRAMES: usize = BURST;

    /// Returns the largest number of frames that one call to [`receive`](Port::receive) delivers. When so many frames
    /// wait, it is time to [`flush`](Port::flush), as they are still in a cache.
    pub(crate) fn burst(&self) -> usize {
        self.burst
    }

    /// Returns true if `wanted` frames, at most a burst, can be sent now.
    pub(crate) fn has_room(&mut self, wanted: usize) -> bool {
        if !self.leaving.has_room(wanted) {
            self.flush();
            if !self.leaving.has_room(wanted) {
                return false;
            }
        }
        register_thread();
        self.leaving.has_spares(self.device.pool, wanted)
    }

    /// Lets `write` fill a frame and queues it with the returned length, to be sent by the next
    /// [`flush`](Port::flush). Returns false without an empty frame, which [`has_room`](Port::has_room) excludes.
    #[inline]
    pub(crate) fn send(&mut self, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> bool {
        self.leaving.push(write)
    }

    /// Gives waiting frames to the device. Returns the number of frames dropped because the link is down. Other
    /// frames wait for space.
    pub(crate) fn flush(&mut self) -> usize {
        if self.leaving.waiting() == 0 {
            return 0;
        }
        if self.runs {
            register_thread();
            let _pass = self.pass();
            self.leaving.transmit(self.device.port, self.ways.frees_quietly);
        }
        if self.leaving.waiting() > 0 && !self.is_up() { self.leaving.drop_waiting() } else { 0 }
    }

    /// Returns the number of frames that wait for space at the device.
    pub(crate) fn waiting(&self) -> usize {
        self.leaving.waiting()
    }

    fn pass(&self) -> Option<GateGuard> {
        if self.ways.is_gated { gate::enter() } else { None }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // SAFETY: the port is alive and no longer in use, and all frames of its pool that we owned have been freed.
        unsafe { ffi::pathweave_dpdk_detach(self.port, self.pool) };
        gate::occupy_closed_descriptors();
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // Sends the remaining frames if possible.
        self.flush();
        self.closing = Some((port_lock(), gate::enter()));
    }
}

/// Serialises the calls that create or remove ports.
fn port_lock() -> MutexGuard<'static, ()> {
    static CONTROL: Mutex<()> = Mutex::new(());
    CONTROL.lock().unwrap_or_else(PoisonError::into_inner)
}

fn device_text(device: &Device) -> String {
    match device {
        Device::Vdev(vdev) => vdev.name().to_owned(),
        Device::Pci(address) => format!("the adapter {address}"),
    }
}

fn attach(device: &Device) -> Result<Attached, i32> {
    let (bus, name, arguments) = match device {
        Device::Vdev(vdev) => (c"vdev", vdev.name().to_owned(), vdev.arguments()),
        Device::Pci(address) => (c"pci", address.clone(), String::new()),
    };
    let text = |text: String| CString::new(text).map_err(|_| -libc::EINVAL);
    let (name, arguments) = (text(name)?, text(arguments)?);
    let mut port = u16::MAX;
    // SAFETY: the arguments are three strings and space for the port's number.
    let result =
        unsafe { ffi::pathweave_dpdk_attach(bus.as_ptr(), name.as_ptr(), arguments.as_ptr(), &raw mut port) };
    if result == 0 { Ok(Attached { port, pool: std::ptr::null_mut() }) } else { Err(result) }
}

/// Returns the error for a device that could not be created.
fn no_device(device: &Device, number: i32) -> DpdkError {
    let why = reason(number);
    match device {
        Device::Vdev(vdev) if vdev.suggested_driver().is_some() => DpdkError::NoDriver {
            name: vdev.name().to_owned(),
            nearest: vdev.suggested_driver(),
            all: crate::dpdk::vdev::Vdev::drivers(),
        },
        device => DpdkError::Attach { device: device_text(device), why },
    }
}

/// Registers this thread with DPDK until it ends, which makes its use of pools cheap. Everything works without it,
/// too.
fn register_thread() {
    struct Joined(bool);
    impl Drop for Joined {
        fn drop(&mut self) {
            if self.0 {
                // SAFETY: this thread was registered, and does not use DPDK after its thread-local values are gone.
                unsafe { ffi::pathweave_dpdk_leave() };
            }
        }
    }
    thread_local! {
        // SAFETY: DPDK has been started, because a port exists.
        static JOINED: Joined = Joined(unsafe { ffi::pathweave_dpdk_join() } == 0);
    }
    // A thread that is about to end may have deregistered already.
    let _ = JOINED.try_with(|_| ());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_that_do_otherwise_than_others_are_known() {
        let of = |text: &str| DriverQuirks::of(&Device::Vdev(text.parse().unwrap()));
        assert!(of("net_af_packet0,iface=eth0").frees_quietly);
        let client = of("net_memif0,role=client");
        assert!(client.is_gated && client.must_be_restarted);
        assert!(!of("net_memif0,role=server").must_be_restarted);
        assert_eq!(of("net_tap0"), DriverQuirks::default());
        assert_eq!(DriverQuirks::of(&Device::Pci("0000:03:00.0".into())), DriverQuirks::default());
    }
}
