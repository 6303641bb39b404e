//! TCP connections of the side channel: nonblocking sockets and their readiness.

use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use pathweave_units::Time;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};

use crate::scheme::span;

/// Largest number of accepted connections whose opener has not authenticated itself.
const MOST_STRANGERS: usize = 256;
/// Largest number of bytes read from one connection before others have their turn.
const READ_A_TURN: usize = 256 << 10;
const READ_STEP: usize = 16 << 10;
const EVENTS_A_TURN: usize = 64;
const LISTENER: u64 = u64::MAX;
/// Delay before the next attempt after a connection could not be accepted.
const ACCEPT_AGAIN: pathweave_units::Duration = pathweave_units::Duration::from_ms(100);
/// Smallest socket timeout, since a timeout of zero means none.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// A TCP connection.
#[derive(Debug)]
pub(super) struct SideConnection {
    stream: TcpStream,
    /// Association that its opener claims.
    pub(super) claims: Option<u32>,
    /// Association that it serves, once its opener has authenticated itself.
    pub(super) owner: Option<u32>,
    /// Received bytes that have not been processed.
    pub(super) inbound: Vec<u8>,
    /// Received messages, unprotected.
    pub(super) plain: Vec<u8>,
    outbound: Vec<u8>,
    /// Number of bytes of `outbound` that have been sent.
    sent: usize,
    connected: bool,
    /// Time of the last use.
    pub(super) used: Time,
}

/// Counters of the TCP connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SideStats {
    /// Open TCP connections.
    pub open: usize,
    /// Connections opened by this end.
    pub opened: u64,
    /// Connections opened by peers.
    pub accepted: u64,
    /// Connections that ended by a fault or were closed by the other end.
    pub broken: u64,
    /// Connections closed because they were idle, or to make room.
    pub closed: u64,
    /// Connections closed because of invalid, foreign or forged content.
    pub refused: u64,
    /// Times a connection could not be accepted for want of file descriptors or memory. It waits for a moment then.
    pub accept_failures: u64,
    /// Bytes sent, protection included.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
}

/// Readiness event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Readiness {
    pub(super) line: u32,
    pub(super) readable: bool,
    pub(super) writable: bool,
}

/// All TCP connections of an endpoint.
#[derive(Debug)]
pub(super) struct SideConnections {
    epoll: OwnedFd,
    listener: TcpListener,
    lines: Vec<Option<Box<SideConnection>>>,
    free: Vec<u32>,
    /// Connections that may have more data to read.
    again: Vec<u32>,
    pub(super) stats: SideStats,
    /// Time before which no connection is accepted, set after a failure to accept one.
    accepts_at: Option<Time>,
}

impl SideConnections {
    /// Listens at `address`, or at another port of the same IP address if that port is in use.
    pub(super) fn open(address: SocketAddr) -> io::Result<Self> {
        let listen = |address: SocketAddr| {
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
            socket.set_nonblocking(true)?;
            if address.is_ipv6() {
                socket.set_only_v6(true)?;
            }
            socket.bind(&address.into())?;
            socket.listen(1_024)?;
            Ok::<TcpListener, io::Error>(socket.into())
        };
        let listener = match listen(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                listen(SocketAddr::new(address.ip(), 0))?
            }
            other => other?,
        };
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        Ok(SideConnections {
            epoll,
            listener,
            lines: Vec::new(),
            free: Vec::new(),
            again: Vec::new(),
            stats: SideStats::default(),
            accepts_at: None,
        })
    }

    /// Returns the listening port.
    pub(super) fn port(&self) -> u16 {
        self.listener.local_addr().map_or(0, |address| address.port())
    }

    /// Returns a descriptor that is readable when there are events.
    pub(super) fn happenings(&self) -> io::Result<OwnedFd> {
        self.epoll.as_fd().try_clone_to_owned()
    }

    pub(super) fn get_mut(&mut self, line: u32) -> Option<&mut SideConnection> {
        self.lines.get_mut(line as usize)?.as_deref_mut()
    }

    /// Opens a connection to a peer. It is returned at once, and may still fail.
    pub(super) fn call(&mut self, now: Time, to: SocketAddr, give_up: Duration) -> io::Result<u32> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        match socket.connect(&to.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(error),
        }
        self.stats.opened += 1;
        self.add(now, socket, give_up)
    }

    fn add(&mut self, now: Time, socket: Socket, give_up: Duration) -> io::Result<u32> {
        socket.set_tcp_nodelay(true)?;
        // Detects a peer that disappears without closing, whether there is data to send or not.
        socket.set_tcp_user_timeout(Some(give_up))?;
        let every = Duration::from_secs(1).max(give_up / 4);
        socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(every).with_interval(every))?;
        let index = self.free.pop().unwrap_or_else(|| {
            self.lines.push(None);
            self.lines.len() as u32 - 1
        });
        let stream: TcpStream = socket.into();
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        if let Err(error) = epoll::add(&self.epoll, &stream, EventData::new_u64(index.into()), flags) {
            self.free.push(index);
            return Err(error.into());
        }
        self.lines[index as usize] = Some(Box::new(SideConnection {
            stream,
            claims: None,
            owner: None,
            inbound: Vec::new(),
            plain: Vec::new(),
            outbound: Vec::new(),
            sent: 0,
            connected: false,
            used: now,
        }));
        self.stats.open += 1;
        Ok(index)
    }

    /// Closes a connection. The kernel still sends the data already written.
    pub(super) fn close(&mut self, line: u32) -> Option<Box<SideConnection>> {
        let closed = self.lines.get_mut(line as usize)?.take()?;
        self.free.push(line);
        self.stats.open -= 1;
        Some(closed)
    }

    /// Clock reset: waiting connections are accepted at once.
    pub(super) fn begin_anew(&mut self) {
        self.accepts_at = self.accepts_at.map(|_| Time::ZERO);
    }

    /// Collects the events since the last call.
    pub(super) fn look(&mut self, now: Time, give_up: Duration, found: &mut Vec<Readiness>) {
        let again = |line| Readiness { line, readable: true, writable: false };
        found.extend(self.again.drain(..).map(again));
        if self.accepts_at.is_some_and(|at| at <= now) {
            self.accepts_at = None;
            self.listen_for_calls(EventFlags::IN);
        }
        let mut room = [const { MaybeUninit::<Event>::uninit() }; EVENTS_A_TURN];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let Ok((events, _)) = epoll::wait(&self.epoll, &mut room[..], Some(&at_once)) else { return };
        let mut calls = false;
        for event in events.iter() {
            let (data, flags) = (event.data.u64(), event.flags);
            if data == LISTENER {
                calls = true;
                continue;
            }
            let ends = EventFlags::HUP | EventFlags::ERR | EventFlags::RDHUP;
            found.push(Readiness {
                line: data as u32,
                readable: flags.intersects(EventFlags::IN | ends),
                writable: flags.intersects(EventFlags::OUT | ends),
            });
        }
        if calls {
            self.accept(now, give_up);
        }
    }

    /// Returns the time at which [`look`](SideConnections::look) must be called even without events.
    pub(super) fn next_timer(&self) -> Option<Time> {
        self.accepts_at
    }

    /// Sets the events reported for the listener. Connections that cannot be accepted would be reported endlessly.
    fn listen_for_calls(&mut self, flags: EventFlags) {
        let _ = epoll::modify(&self.epoll, &self.listener, EventData::new_u64(LISTENER), flags);
    }

    fn accept(&mut self, now: Time, give_up: Duration) {
        for _ in 0..EVENTS_A_TURN {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if is_of_the_call(&error) => continue,
                Err(_) => {
                    self.stats.accept_failures += 1;
                    self.accepts_at = Some(now.saturating_add(ACCEPT_AGAIN));
                    self.listen_for_calls(EventFlags::empty());
                    break;
                }
            };
            self.make_room_for_strangers();
            let _ = stream.set_nonblocking(true);
            if let Ok(line) = self.add(now, stream.into(), give_up) {
                self.stats.accepted += 1;
                if let Some(line) = self.get_mut(line) {
                    line.connected = true;
                }
            }
        }
    }

    /// Closes the oldest unauthenticated connection if there are too many.
    fn make_room_for_strangers(&mut self) {
        let strangers =
            || self.lines.iter().zip(0..).filter_map(|(line, index)| Some((line.as_ref()?, index)));
        let strangers = || strangers().filter(|(line, _)| line.owner.is_none());
        if strangers().count() >= MOST_STRANGERS
            && let Some((_, oldest)) = strangers().min_by_key(|(line, _)| line.used)
        {
            self.close(oldest);
            self.stats.refused += 1;
        }
    }

    /// Returns the least recently used authenticated connection other than `but`, if there are more than `most` of
    /// them.
    pub(super) fn too_many(&self, most: usize, but: Option<u32>) -> Option<u32> {
        let lines = self.lines.iter().zip(0..).filter_map(|(line, index)| Some((line.as_ref()?, index)));
        let owned = lines.filter(|(line, _)| line.owner.is_some()).map(|(line, index)| (line.used, index));
        let others = || owned.clone().filter(|(_, index)| Some(*index) != but);
        others().min().filter(|_| owned.clone().count() > most).map(|(_, index)| index)
    }

    /// Returns true if the connection is established.
    pub(super) fn is_connected(&self, line: u32) -> bool {
        self.lines.get(line as usize).and_then(Option::as_deref).is_some_and(|line| line.connected)
    }

    /// Returns the indices of all connections.
    pub(super) fn indices(&self) -> Vec<u32> {
        (0..).zip(&self.lines).filter_map(|(index, line)| line.as_ref().map(|_| index)).collect()
    }

    /// Reads the data that has arrived.
    ///
    /// # Errors
    /// The connection has ended; data that arrived before is available.
    pub(super) fn read(&mut self, line: u32) -> io::Result<()> {
        let Some(open) = self.lines.get_mut(line as usize).and_then(Option::as_deref_mut) else {
            return Ok(());
        };
        let mut taken = 0;
        let result = loop {
            let old = open.inbound.len();
            open.inbound.resize(old + READ_STEP, 0);
            let read = open.stream.read(&mut open.inbound[old..]);
            open.inbound.truncate(old + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => break Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(len) => taken += len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The connection is not established yet.
                Err(error) if error.kind() == io::ErrorKind::NotConnected && !open.connected => break Ok(()),
                Err(error) => break Err(error),
            }
            if taken >= READ_A_TURN {
                self.again.push(line);
                break Ok(());
            }
        };
        self.stats.received_bytes += taken as u64;
        result
    }

    /// Returns the number of bytes that wait to be sent.
    pub(super) fn waiting_bytes(&self, line: u32) -> usize {
        let line = self.lines.get(line as usize).and_then(Option::as_deref);
        line.map_or(0, |line| line.outbound.len() - line.sent)
    }

    /// Appends bytes to be sent.
    pub(super) fn push(&mut self, line: u32, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(open) = self.get_mut(line) {
            write(&mut open.outbound);
        }
    }

    /// Sends waiting bytes, as far as the socket accepts them.
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn write(&mut self, line: u32) -> io::Result<()> {
        let Some(open) = self.lines.get_mut(line as usize).and_then(Option::as_deref_mut) else {
            return Ok(());
        };
        if let Some(error) = open.stream.take_error()? {
            return Err(error);
        }
        while open.sent < open.outbound.len() {
            match open.stream.write(&open.outbound[open.sent..]) {
                Ok(len) => {
                    open.connected = true;
                    open.sent += len;
                    self.stats.sent_bytes += len as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::NotConnected && !open.connected => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        open.outbound.clear();
        open.sent = 0;
        Ok(())
    }

    /// Sends the remaining bytes, and waits up to `at_most` until the peers have them, since the loop will not run
    /// again. Closing a connection with unread data resets it and may lose what was sent. Each connection is
    /// therefore read until its peer has seen the end of stream. Connections that have not been used for that long
    /// are skipped.
    pub(super) fn finish(&mut self, now: Time, at_most: Duration) {
        let deadline = Instant::now() + at_most;
        let recently = span(at_most);
        let recent = |line: &&mut Box<SideConnection>| {
            line.owner.is_some()
                && (now.saturating_since(line.used) < recently || line.sent < line.outbound.len())
        };
        for line in self.lines.iter_mut().flatten().filter(recent) {
            let _ = line.stream.set_nonblocking(false);
            let left = deadline.saturating_duration_since(Instant::now()).max(SHORTEST_WAIT);
            let _ = line.stream.set_write_timeout(Some(left));
            let _ = line.stream.write_all(&line.outbound[line.sent..]);
            let _ = line.stream.shutdown(Shutdown::Write);
        }
        let mut room = [0; READ_STEP];
        for line in self.lines.iter_mut().flatten().filter(recent) {
            loop {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() || line.stream.set_read_timeout(Some(left.max(SHORTEST_WAIT))).is_err() {
                    return;
                }
                match line.stream.read(&mut room) {
                    Ok(1..) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(0) | Err(_) => break,
                }
            }
        }
    }
}

/// Returns true if the error concerns the connection being accepted, and not the listener.
fn is_of_the_call(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}
