//! A port: one queue of frames in each direction.

#![allow(unsafe_code, reason = "calls of DPDK; each block says why it is sound")]

use std::ffi::CString;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ffi::{self, Facts, Pool, Wish};
use super::gate::{self, Pass};
use super::held::{Arrived, BURST, Leaving, burst_of};
use super::start::reason;
use crate::dpdk::config::Device;
use crate::dpdk::error::DpdkError;
use crate::dpdk::memif;

/// Threads of the process that may each keep some empty frames to themselves.
const THREADS: u32 = 16;
/// As many each.
const KEPT_BY_THREAD: u32 = 96;

/// What a port is opened with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortConfig {
    /// Room of a frame, in bytes, at least that of the longest.
    pub(crate) frame_bytes: usize,
    /// Bytes of the longest IP packet.
    pub(crate) mtu_bytes: u32,
    /// Frames a queue holds, each way, where the device lets us choose.
    pub(crate) queue_frames: u16,
}

impl PortConfig {
    /// Frames there are of it.
    fn pool_frames(&self) -> u32 {
        2 * u32::from(self.queue_frames) + 8 * BURST as u32 + THREADS * KEPT_BY_THREAD
    }

    /// Bytes of all of them.
    pub(crate) fn pool_bytes(&self) -> u64 {
        // The header of a frame, and what drivers put in front of it, are 128 bytes each.
        u64::from(self.pool_frames()) * (self.frame_bytes as u64 + 256)
    }
}

/// What the driver of a device does otherwise than others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ways {
    /// It frees frames and may say that it has not: packet sockets.
    frees_quietly: bool,
    /// Its memory comes and goes with the other process: memif.
    is_gated: bool,
    /// It does not connect again by itself: the client of a memif.
    must_be_restarted: bool,
    /// Frames of any length go through it, whatever it says.
    takes_any_length: bool,
}

impl Ways {
    fn of(device: &Device) -> Ways {
        let Device::Vdev(vdev) = device else { return Ways::default() };
        let is_client = !memif::is_server(vdev);
        match vdev.driver() {
            "net_af_packet" => Ways { frees_quietly: true, takes_any_length: true, ..Ways::default() },
            "net_memif" => Ways {
                is_gated: true,
                must_be_restarted: is_client,
                takes_any_length: true,
                ..Ways::default()
            },
            "net_ring" | "net_null" => Ways { takes_any_length: true, ..Ways::default() },
            _ => Ways::default(),
        }
    }
}

/// A port.
#[derive(Debug)]
pub(crate) struct Port {
    // Frames go before their pool.
    arrived: Arrived,
    leaving: Leaving,
    burst: usize,
    device: Attached,
    mac: [u8; 6],
    ways: Ways,
    runs: bool,
    /// Held while the device goes.
    closing: Option<(MutexGuard<'static, ()>, Option<Pass>)>,
}

/// The device, which goes with its pool.
#[derive(Debug)]
struct Attached {
    port: u16,
    pool: *mut Pool,
}

// SAFETY: DPDK's ports and pools are no thread's own; who has the `Port` has them alone.
unsafe impl Send for Port {}

impl Port {
    /// Makes a device and its port, and starts it. DPDK must have been started.
    ///
    /// # Errors
    /// [`DpdkError`].
    pub(crate) fn open(device: &Device, config: PortConfig) -> Result<Port, DpdkError> {
        let shown = shown(device);
        let refused = |number| DpdkError::Attach { device: shown.clone(), why: reason(number) };
        let control = control();
        let ways = Ways::of(device);
        if ways.is_gated {
            gate::open().map_err(refused)?;
            gate::hurry();
        }
        // DPDK's last words before now are about something else.
        reason(0);
        let quiet = gate::enter();
        let mut attached = attach(device).map_err(|number| no_device(device, number))?;
        let mut facts = Facts::NONE;
        // SAFETY: the port was made above, and the pointer is to a value of the right type.
        match unsafe { ffi::pathweave_dpdk_look(attached.port, &raw mut facts) } {
            0 => {}
            number => return Err(refused(number)),
        }
        if !ways.takes_any_length && facts.max_mtu_bytes < config.mtu_bytes {
            let most_bytes = facts.max_mtu_bytes;
            return Err(DpdkError::Mtu { device: shown, mtu_bytes: config.mtu_bytes, most_bytes });
        }
        let wish = Wish {
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
            arrived: Arrived::new(burst_of(config.frame_bytes)),
            burst: burst_of(config.frame_bytes),
            leaving: Leaving::new(config.frame_bytes),
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
            // Its server is not there yet.
            Err(_) if ways.must_be_restarted => {}
            Err(number) => return Err(refused(number)),
            Ok(()) => {}
        }
        Ok(port)
    }

    /// Its Ethernet address.
    pub(crate) fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// Whether the link is up.
    pub(crate) fn is_up(&self) -> bool {
        // SAFETY: the port lives.
        let is_up = self.runs && unsafe { ffi::pathweave_dpdk_is_up(self.device.port) } != 0;
        if !is_up && self.ways.is_gated {
            gate::hurry();
        }
        is_up
    }

    /// Frames that arrived and were dropped for want of room.
    pub(crate) fn missed(&self) -> u64 {
        // SAFETY: the port lives.
        unsafe { ffi::pathweave_dpdk_missed(self.device.port) }
    }

    /// Connects again, if it is one that must be told to and its link is down.
    pub(crate) fn revive(&mut self) {
        if !self.ways.must_be_restarted || self.is_up() {
            return;
        }
        let _control = control();
        let _quiet = gate::enter();
        if self.runs {
            // SAFETY: the port lives.
            unsafe { ffi::pathweave_dpdk_halt(self.device.port) };
            gate::occupy();
            self.runs = false;
        }
        // If it does not, it will be tried again.
        let _ = self.run();
    }

    fn run(&mut self) -> Result<(), i32> {
        // SAFETY: the port lives.
        match unsafe { ffi::pathweave_dpdk_run(self.device.port) } {
            0 => {
                self.runs = true;
                Ok(())
            }
            number => Err(number),
        }
    }

    /// Whether a frame has arrived.
    pub(crate) fn has_arrived(&mut self) -> bool {
        if self.arrived.is_empty() && self.runs {
            join();
            let _pass = self.pass();
            self.arrived.take(self.device.port);
        }
        !self.arrived.is_empty()
    }

    /// Shows what has arrived to `sink`, and returns how many frames that were.
    pub(crate) fn receive(&mut self, sink: impl FnMut(&mut [u8])) -> usize {
        if self.has_arrived() { self.arrived.show(sink) } else { 0 }
    }

    /// The most frames that one batch can have.
    pub(crate) const MOST_FRAMES: usize = BURST;

    /// The most frames that one call to [`receive`](Port::receive) shows, and of so many that wait it is time to
    /// [`flush`](Port::flush): they are still in a cache.
    pub(crate) fn burst(&self) -> usize {
        self.burst
    }

    /// Whether so many frames, at most a burst, can be sent now.
    pub(crate) fn has_room(&mut self, wanted: usize) -> bool {
        if !self.leaving.has_room(wanted) {
            self.flush();
            if !self.leaving.has_room(wanted) {
                return false;
            }
        }
        join();
        self.leaving.has_spares(self.device.pool, wanted)
    }

    /// Has `write` write a frame, of the length it returns, and puts it among those that leave with the next
    /// [`flush`](Port::flush). False: there is no room, of which [`has_room`](Port::has_room) tells before.
    #[inline]
    pub(crate) fn send(&mut self, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> bool {
        self.leaving.push(write)
    }

    /// Gives frames to the device. Returns how many were dropped because the link is down; others wait for room.
    pub(crate) fn flush(&mut self) -> usize {
        if self.leaving.waiting() == 0 {
            return 0;
        }
        if self.runs {
            join();
            let _pass = self.pass();
            self.leaving.leave(self.device.port, self.ways.frees_quietly);
        }
        if self.leaving.waiting() > 0 && !self.is_up() { self.leaving.drop_waiting() } else { 0 }
    }

    /// Frames that wait for room at the device.
    pub(crate) fn waiting(&self) -> usize {
        self.leaving.waiting()
    }

    fn pass(&self) -> Option<Pass> {
        if self.ways.is_gated { gate::enter() } else { None }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // SAFETY: the port lives, nobody uses it any more, and all frames of its pool that were ours have been freed.
        unsafe { ffi::pathweave_dpdk_detach(self.port, self.pool) };
        gate::occupy();
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // What was sent last leaves if it can.
        self.flush();
        self.closing = Some((control(), gate::enter()));
    }
}

/// One call at a time makes or ends ports.
fn control() -> MutexGuard<'static, ()> {
    static CONTROL: Mutex<()> = Mutex::new(());
    CONTROL.lock().unwrap_or_else(PoisonError::into_inner)
}

fn shown(device: &Device) -> String {
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
    // SAFETY: three strings, and room for the number.
    let result =
        unsafe { ffi::pathweave_dpdk_attach(bus.as_ptr(), name.as_ptr(), arguments.as_ptr(), &raw mut port) };
    if result == 0 { Ok(Attached { port, pool: std::ptr::null_mut() }) } else { Err(result) }
}

/// A device was not made.
fn no_device(device: &Device, number: i32) -> DpdkError {
    let why = reason(number);
    match device {
        Device::Vdev(vdev) if vdev.meant().is_some() => DpdkError::NoDriver {
            name: vdev.name().to_owned(),
            nearest: vdev.meant(),
            all: crate::dpdk::vdev::Vdev::drivers(),
        },
        device => DpdkError::Attach { device: shown(device), why },
    }
}

/// Gives this thread a number of DPDK's, which makes its use of pools cheap, until it ends. Without one all works, too.
fn join() {
    struct Joined(bool);
    impl Drop for Joined {
        fn drop(&mut self) {
            if self.0 {
                // SAFETY: this thread was registered, and nothing of it uses DPDK after its own values have gone.
                unsafe { ffi::pathweave_dpdk_leave() };
            }
        }
    }
    thread_local! {
        // SAFETY: DPDK has been started, or there would be no port.
        static JOINED: Joined = Joined(unsafe { ffi::pathweave_dpdk_join() } == 0);
    }
    // A thread that is about to end may have left.
    let _ = JOINED.try_with(|_| ());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_that_do_otherwise_than_others_are_known() {
        let of = |text: &str| Ways::of(&Device::Vdev(text.parse().unwrap()));
        assert!(of("net_af_packet0,iface=eth0").frees_quietly);
        let client = of("net_memif0,role=client");
        assert!(client.is_gated && client.must_be_restarted);
        assert!(!of("net_memif0,role=server").must_be_restarted);
        assert_eq!(of("net_tap0"), Ways::default());
        assert_eq!(Ways::of(&Device::Pci("0000:03:00.0".into())), Ways::default());
    }
}
