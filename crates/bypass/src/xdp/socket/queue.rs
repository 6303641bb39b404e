//! AF_XDP socket on one queue of an interface.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING,
    XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpDescOptions, XdpOptionsFlags, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, bind, send, socket_with};

use super::ring::{ConsumerRing, ProducerRing};
use super::umem::Umem;
use crate::xdp::stamp;

/// Chunk sizes that the kernel accepts are powers of two up to a page.
const SMALL_CHUNK: usize = 2_048;
const LARGE_CHUNK: usize = 4_096;
/// Bytes that the kernel reserves in front of a packet (XDP_PACKET_HEADROOM).
const KERNEL_HEADROOM: usize = 256;
/// Number of frames that can wait for sending.
const SEND_FRAMES: usize = 2_048;
/// Bounds on the chunks for receiving. The kernel's rings hold powers of two, and more chunks would not justify their
/// memory.
const MOST_RECEIVE_CHUNKS: usize = 1 << 15;
const LEAST_RECEIVE_CHUNKS: usize = 256;

/// Time for which a queue may still be busy with a closed socket, as the kernel detaches it with a delay.
const BIND_TIMEOUT: Duration = Duration::from_secs(2);
const BIND_RETRY: Duration = Duration::from_millis(2);

/// Configuration of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueConfig {
    /// Index of the interface.
    pub(crate) interface: u32,
    /// Index of the queue.
    pub(crate) queue: u32,
    /// Size of the largest frame in bytes.
    pub(crate) frame_bytes: usize,
    /// Bytes for received packets that have not been processed.
    pub(crate) receive_bytes: usize,
    /// True if the queue also sends.
    pub(crate) sends: bool,
    /// Time for which a waiting thread polls the driver, or `None` for interrupts.
    pub(crate) busy_poll: Option<Duration>,
}

/// Transfer of packets from the adapter to memory. The kernel uses zero copy if the driver supports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// The adapter writes packets to the memory itself.
    ZeroCopy,
    /// The kernel copies packets to the memory.
    Copy,
}

/// Result of opening a queue.
#[derive(Debug)]
pub(crate) enum Opened {
    Queue(Box<Queue>),
    /// The interface has fewer queues.
    NoSuchQueue,
}

/// Result of a call to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlushResult {
    /// Frames are being sent, as far as is known.
    Done,
    /// The interface is down.
    Down,
    /// The interface was removed, and the socket is unusable.
    Gone,
}

/// Socket with its memory and rings.
#[derive(Debug)]
pub(crate) struct Queue {
    // Fields are dropped in this order: the socket first, the memory last.
    socket: OwnedFd,
    fill: ProducerRing<u64>,
    completed: ConsumerRing<u64>,
    received: ConsumerRing<XdpDesc>,
    sending: Option<TxState>,
    umem: Umem,
    chunk_bytes: usize,
    receive_chunks: usize,
    /// Joined pieces of a packet that spans several chunks, and whether the packet exceeds the largest frame.
    joined: Vec<u8>,
    too_long: bool,
    /// Arrival time of the packet whose pieces are being joined, if it was recorded.
    stamp: Option<u64>,
    frame_bytes: usize,
}

/// State for sending.
#[derive(Debug)]
struct TxState {
    ring: ProducerRing<XdpDesc>,
    /// Address of the first frame.
    first: u64,
    /// Size of a frame's slot in bytes, a whole number of chunks.
    frame_bytes: usize,
    /// Free slots.
    free: Vec<u32>,
    /// Number of pieces of each slot that the kernel still owns.
    pieces: Vec<u8>,
    /// True if frames were put into the ring since the last call to the kernel.
    unsent: bool,
}

impl Queue {
    /// Opens the socket and binds it.
    ///
    /// # Errors
    /// The error of the kernel. A queue that does not exist is not an error.
    pub(crate) fn open(config: &QueueConfig) -> io::Result<Opened> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)?;
        let needed = config.frame_bytes + KERNEL_HEADROOM;
        let chunk_bytes = if needed <= SMALL_CHUNK { SMALL_CHUNK } else { LARGE_CHUNK };
        let receive_chunks = (config.receive_bytes / chunk_bytes)
            .clamp(LEAST_RECEIVE_CHUNKS, MOST_RECEIVE_CHUNKS)
            .next_power_of_two();
        let send_frames = if config.sends { SEND_FRAMES } else { 0 };
        let chunks_a_frame = config.frame_bytes.div_ceil(chunk_bytes);
        let umem = Umem::new(receive_chunks + send_frames * chunks_a_frame, chunk_bytes)?;
        sockopt::set_xdp_umem_reg(
            &socket,
            XdpUmemReg {
                addr: umem.address(),
                len: umem.bytes() as u64,
                chunk_size: chunk_bytes as u32,
                headroom: 0,
                flags: XdpUmemRegFlags::empty(),
                tx_metadata_len: 0,
            },
        )?;
        let receive_ring = receive_chunks as u32;
        let send_ring = (send_frames.max(1) * chunks_a_frame).next_power_of_two() as u32;
        sockopt::set_xdp_umem_fill_ring_size(&socket, receive_ring)?;
        sockopt::set_xdp_umem_completion_ring_size(&socket, send_ring)?;
        sockopt::set_xdp_rx_ring_size(&socket, receive_ring)?;
        if config.sends {
            sockopt::set_xdp_tx_ring_size(&socket, send_ring)?;
        }
        let at = sockopt::xdp_mmap_offsets(&socket)?;
        let fd = socket.as_fd();
        let mut fill = ProducerRing::map(fd, &at.fr, XDP_UMEM_PGOFF_FILL_RING, receive_ring)?;
        let completed = ConsumerRing::map(fd, &at.cr, XDP_UMEM_PGOFF_COMPLETION_RING, send_ring)?;
        let received = ConsumerRing::map(fd, &at.rx, XDP_PGOFF_RX_RING, receive_ring)?;
        let sending = match config.sends {
            false => None,
            true => Some(TxState {
                ring: ProducerRing::map(fd, &at.tx, XDP_PGOFF_TX_RING, send_ring)?,
                first: (receive_chunks * chunk_bytes) as u64,
                frame_bytes: chunks_a_frame * chunk_bytes,
                free: (0..send_frames as u32).rev().collect(),
                pieces: vec![0; send_frames],
                unsent: false,
            }),
        };
        for chunk in 0..receive_chunks {
            fill.push((chunk * chunk_bytes) as u64);
        }
        fill.publish();
        if let Some(time) = config.busy_poll {
            // Without support by the kernel, packets arrive by interrupts.
            let _ = super::busy::poll(fd, time);
        }
        match bind_to(fd, config, needed > chunk_bytes) {
            Ok(()) => {}
            Err(Errno::INVAL) if config.queue > 0 => return Ok(Opened::NoSuchQueue),
            Err(why) => return Err(why.into()),
        }
        Ok(Opened::Queue(Box::new(Queue {
            socket,
            fill,
            completed,
            received,
            sending,
            umem,
            chunk_bytes,
            receive_chunks,
            joined: Vec::new(),
            too_long: false,
            stamp: None,
            frame_bytes: config.frame_bytes,
        })))
    }

    /// Returns the bytes of packets that can wait before packets are dropped.
    pub(crate) fn receive_bytes(&self) -> usize {
        self.receive_chunks * self.chunk_bytes.min(self.frame_bytes)
    }

    /// Passes at most `most` received frames to `sink`, each with its arrival time if it was recorded. Returns their
    /// number.
    pub(crate) fn receive(&mut self, most: usize, mut sink: impl FnMut(&mut [u8], Option<u64>)) -> usize {
        let (mut count, mut pieces) = (0, 0);
        while count < most {
            let Some(piece) = self.received.pop() else { break };
            pieces += 1;
            if self.joined.is_empty() {
                self.stamp = self.umem.in_front_mut(piece.addr, stamp::BYTES).and_then(stamp::remove_stamp);
            }
            let ends = !piece.options.contains(XdpDescOptions::XDP_PKT_CONTD);
            let bytes = self.umem.bytes_mut(piece.addr, piece.len as usize).unwrap_or_default();
            if ends && self.joined.is_empty() && !self.too_long {
                sink(bytes, self.stamp);
                count += 1;
            } else {
                self.too_long |= self.joined.len() + bytes.len() > self.frame_bytes;
                if !self.too_long {
                    self.joined.extend_from_slice(bytes);
                }
                if ends {
                    // A packet that is too long is truncated. Its headers announce more bytes than follow, so the
                    // parser rejects it.
                    sink(&mut self.joined, self.stamp);
                    count += 1;
                    self.joined.clear();
                    self.too_long = false;
                }
            }
            // The fill ring has space, because it holds as many entries as there are chunks.
            if let Some(chunk) = self.umem.chunk_of(piece.addr) {
                self.fill.push(chunk);
            }
        }
        if pieces > 0 {
            self.received.release();
            self.fill.publish();
            if self.fill.needs_wakeup() {
                self.poll_driver();
            }
        }
        count
    }

    /// Returns the number of free slots, after reclaiming some if there are fewer than `wanted`.
    pub(crate) fn room(&mut self, wanted: usize) -> usize {
        let Some(sending) = &mut self.sending else { return 0 };
        if sending.free.len() < wanted {
            sending.reclaim(&mut self.completed);
        }
        let pieces = (sending.frame_bytes / self.chunk_bytes) as u32;
        let most = u32::try_from(wanted).unwrap_or(u32::MAX).saturating_mul(pieces);
        sending.free.len().min((sending.ring.room(most) / pieces) as usize)
    }

    /// Returns how packets get into the memory.
    pub(crate) fn transfer(&self) -> Transfer {
        match sockopt::xdp_options(&self.socket) {
            Ok(options) if options.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY) => Transfer::ZeroCopy,
            _ => Transfer::Copy,
        }
    }

    /// Lets `write` fill a slot and queues it with the returned length. `write` may return `None`, which queues
    /// nothing. Returns false without a free slot, which [`room`](Queue::room) excludes.
    #[inline]
    pub(crate) fn send(&mut self, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> bool {
        let Some(sending) = &mut self.sending else { return false };
        let Some(place) = sending.free.pop() else { return false };
        let start = sending.first + u64::from(place) * sending.frame_bytes as u64;
        let bytes = self.umem.bytes_mut(start, sending.frame_bytes).unwrap_or_default();
        let Some(len) = write(bytes).filter(|len| (1..=sending.frame_bytes).contains(len)) else {
            sending.free.push(place);
            return true;
        };
        let pieces = len.div_ceil(self.chunk_bytes);
        sending.pieces[place as usize] = pieces as u8;
        for piece in 0..pieces {
            let at = piece * self.chunk_bytes;
            let options = match piece + 1 < pieces {
                true => XdpDescOptions::XDP_PKT_CONTD,
                false => XdpDescOptions::empty(),
            };
            let len = (len - at).min(self.chunk_bytes) as u32;
            sending.ring.push(XdpDesc { addr: start + at as u64, len, options });
        }
        sending.unsent = true;
        true
    }

    /// Makes the kernel send the frames queued since the last call.
    pub(crate) fn flush(&mut self) -> FlushResult {
        let Some(sending) = &mut self.sending else { return FlushResult::Done };
        if !std::mem::take(&mut sending.unsent) {
            return FlushResult::Done;
        }
        sending.ring.publish();
        let kicked = self.kick();
        if let Some(sending) = &mut self.sending {
            sending.reclaim(&mut self.completed);
        }
        kicked
    }

    /// Calls the kernel until it has taken the whole ring, as it takes a part of a long one at a time.
    fn kick(&mut self) -> FlushResult {
        let Some(sending) = &mut self.sending else { return FlushResult::Done };
        for _ in 0..SEND_FRAMES / 16 {
            if !sending.ring.needs_wakeup() {
                return FlushResult::Done;
            }
            match send(&self.socket, &[], SendFlags::DONTWAIT) {
                Ok(_) => return FlushResult::Done,
                // There are more frames, or the completion ring is full, which reclaiming solves.
                Err(Errno::AGAIN) => {
                    sending.reclaim(&mut self.completed);
                }
                Err(Errno::NETDOWN) => return FlushResult::Down,
                Err(Errno::NXIO | Errno::NODEV) => return FlushResult::Gone,
                // Lack of memory or space is temporary.
                Err(_) => break,
            }
        }
        sending.unsent = true;
        FlushResult::Done
    }

    /// Makes the driver poll for packets.
    pub(crate) fn poll_driver(&self) {
        let mut nothing = [0u8; 0];
        let _ = rustix::net::recv(&self.socket, &mut nothing, rustix::net::RecvFlags::DONTWAIT);
    }

    /// Returns the number of packets that the kernel has dropped for lack of space since the queue was opened.
    pub(crate) fn dropped(&self) -> u64 {
        sockopt::xdp_statistics(&self.socket).map_or(0, |seen| {
            seen.rx_dropped + seen.rx_ring_full.unwrap_or(0) + seen.rx_fill_ring_empty_descs.unwrap_or(0)
        })
    }
}

impl TxState {
    /// Reclaims slots whose frames have been sent.
    fn reclaim(&mut self, completed: &mut ConsumerRing<u64>) {
        let mut any = false;
        while let Some(address) = completed.pop() {
            any = true;
            let Some(at) = address.checked_sub(self.first) else { continue };
            let place = at as usize / self.frame_bytes;
            let Some(left) = self.pieces.get_mut(place).filter(|left| **left > 0) else { continue };
            *left -= 1;
            if *left == 0 {
                self.free.push(place as u32);
            }
        }
        if any {
            completed.release();
        }
    }
}

/// Binds the socket, with zero copy if the driver supports it, and with packets of several pieces if needed. Retries
/// while the queue is busy.
fn bind_to(socket: BorrowedFd<'_>, config: &QueueConfig, several_pieces: bool) -> Result<(), Errno> {
    let mut flags = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
    if several_pieces {
        flags |= SocketAddrXdpFlags::XDP_USE_SG;
    }
    let address = SocketAddrXdp::new(flags, config.interface, config.queue);
    let deadline = Instant::now() + BIND_TIMEOUT;
    loop {
        match bind(socket, &address) {
            Err(Errno::BUSY) if Instant::now() < deadline => std::thread::sleep(BIND_RETRY),
            done => return done,
        }
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
