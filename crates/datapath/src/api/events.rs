//! Event stream of many connections.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::domain::ProtectionDomain;
use super::inner::Inner;
use super::memory::Registration;
use crate::error::{ConnectError, OpenError, WaitError};
use crate::event::Event;
use crate::shared::{Command, ConnectRequest, ConnectionShared, Listening, Release};
use crate::stream::{EventQueue, QueuedEvent, refuse};

/// Event stream of the connections that this end or peers open into it: openings, completions, ends. Clones refer to
/// the same stream; a device may have several. [`Device::events`](crate::Device::events) creates one.
///
/// Only [`wait`](Events::wait) waits for the loop, so the device's [hook](crate::Device::set_hook) may use all other
/// methods. Taking an event takes no lock. Completions of these connections appear here only: [`Connection::poll`]
/// and similar methods find none.
///
/// A connection that a peer has opened first appears as [`Event::Accepted`]. Receives that the hook posts when it is
/// called for that event are in place before the loop processes the peer's first packet, so no packet is refused.
/// Receives posted by another thread may come later; the peer then retransmits.
///
/// When the last clone is dropped, connections that nobody has taken are closed. Connections that were taken
/// continue, but their completions are lost.
///
/// ```
/// use pathweave_datapath::{Device, DeviceConfig, Event, Region};
/// use std::time::Duration;
///
/// let patience = Duration::from_secs(5);
/// let server = Device::open(DeviceConfig::loopback())?;
/// let client = Device::open(DeviceConfig::loopback())?;
/// let (calls, answers) = (client.events(), server.events());
/// let _accepting = answers.accept()?;
///
/// calls.connect(7, server.local_addr());
/// let Event::Opened { token: 7, connection: near } = calls.wait(patience)? else { panic!() };
/// let Event::Accepted(far) = answers.wait(patience)? else { panic!() };
/// far.recv(1, Region::zeroed(100)?.all())?;
/// near.send(2, Region::from_bytes(b"a message")?.all())?;
///
/// let Event::Completed(received) = answers.wait(patience)? else { panic!() };
/// assert_eq!((received.connection, received.wr_id, received.byte_len), (far.id(), 1, 9));
/// let Event::Completed(sent) = calls.wait(patience)? else { panic!() };
/// assert_eq!((sent.connection, sent.wr_id), (near.id(), 2));
///
/// near.close();
/// let Event::Closed { connection, .. } = answers.wait(patience)? else { panic!() };
/// assert_eq!(connection, far.id());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Events(Arc<Held>);

/// State that all clones share.
struct Held {
    inner: Arc<Inner>,
    stream: Arc<EventQueue>,
}

impl Events {
    pub(super) fn new(inner: &Arc<Inner>) -> Self {
        Events(Arc::new(Held { inner: inner.clone(), stream: Arc::default() }))
    }

    /// Starts to open a connection with the device's scheme, and returns at once. The outcome is [`Event::Opened`] or
    /// [`Event::Refused`] with `token`, at the latest after the configured `connect_timeout`.
    pub fn connect(&self, token: u64, peer: SocketAddr) -> Attempt {
        self.connect_with(token, peer, &self.0.inner.scheme, &[])
    }

    /// Starts to open a connection with the given scheme and private data; see
    /// [`Device::connect_with`](crate::Device::connect_with).
    pub fn connect_with(&self, token: u64, peer: SocketAddr, scheme: &str, private_data: &[u8]) -> Attempt {
        self.dial(token, None, (peer, Vec::new()), scheme, private_data)
    }

    /// Starts to open a connection like [`connect_with`](Events::connect_with) with a peer that has several addresses;
    /// see [`Device::connect_any`](crate::Device::connect_any).
    pub fn connect_any(
        &self,
        token: u64,
        peer: SocketAddr,
        others: &[SocketAddr],
        scheme: &str,
        private_data: &[u8],
    ) -> Attempt {
        self.dial(token, None, (peer, others.to_vec()), scheme, private_data)
    }

    /// Starts to open a connection in a protection domain.
    ///
    /// # Errors
    /// [`ConnectError::OtherDevice`]; no event follows then.
    pub fn connect_in(
        &self,
        domain: &ProtectionDomain,
        token: u64,
        peer: SocketAddr,
        scheme: &str,
        private_data: &[u8],
    ) -> Result<Attempt, ConnectError> {
        if !self.0.inner.domains.know(domain) {
            return Err(ConnectError::OtherDevice);
        }
        Ok(self.dial(token, Some(domain.clone()), (peer, Vec::new()), scheme, private_data))
    }

    fn dial(
        &self,
        token: u64,
        domain: Option<ProtectionDomain>,
        (peer, others): (SocketAddr, Vec<SocketAddr>),
        scheme: &str,
        private_data: &[u8],
    ) -> Attempt {
        let Held { inner, stream } = &*self.0;
        let connection = Arc::new(ConnectionShared::new(inner.queue_depth, Some(token)));
        inner.ask(Command::Connect(Box::new(ConnectRequest {
            peer,
            others,
            private_data: private_data.to_vec(),
            scheme: scheme.into(),
            domain,
            connection: connection.clone(),
            stream: Some(stream.clone()),
        })));
        if let Some(reason) = inner.shared.broken.get() {
            // The loop may have ended before it processed the command.
            refuse(&connection, Some(stream), ConnectError::DeviceClosed(reason.clone()));
        }
        Attempt { inner: inner.clone(), connection }
    }

    /// Accepts connections from peers, each of which is an [`Event::Accepted`], until the returned handle is dropped.
    ///
    /// # Errors
    /// [`OpenError::System`] if the device has a listener already.
    pub fn accept(&self) -> Result<Accepting, OpenError> {
        self.accept_for(None)
    }

    /// Accepts connections from peers into a protection domain.
    ///
    /// # Errors
    /// [`OpenError::System`] if the device has a listener already, or the domain is another device's.
    pub fn accept_in(&self, domain: &ProtectionDomain) -> Result<Accepting, OpenError> {
        self.accept_for(Some(domain))
    }

    fn accept_for(&self, domain: Option<&ProtectionDomain>) -> Result<Accepting, OpenError> {
        let stream = Some(self.0.stream.clone());
        self.0.inner.listen(Listening { domain: domain.cloned(), stream })?;
        Ok(Accepting { events: self.clone() })
    }

    /// Closes a region to new requests of peers, and returns at once. [`Event::Released`] comes with `token` when no
    /// packet accesses it any more, which is delayed only while a READ is being answered. If the device's loop has
    /// ended the event never comes, and nothing accesses the region either.
    pub fn release(&self, registration: Registration, token: u64) {
        let rkey = registration.leave();
        let tell = Some((self.0.stream.clone(), token));
        self.0.inner.ask(Command::Release(Release { rkey, tell }));
    }

    /// Detaches a region's memory while peers may still use its key. A [release](Events::release) would end their
    /// connections in that case; here their READs return zeros, and their WRITEs are discarded. [`Event::Released`]
    /// comes with `token` once no packet accesses the memory. The key remains valid until the registration is closed.
    pub fn withdraw(&self, registration: &Registration, token: u64) {
        let tell = Some((self.0.stream.clone(), token));
        self.0.inner.ask(Command::Withdraw(Release { rkey: registration.rkey(), tell }));
    }

    /// Returns the next event, if there is one. Drives the loop if callers do so.
    pub fn poll(&self) -> Option<Event> {
        if let Some(event) = self.take() {
            return Some(event);
        }
        self.0.inner.nudge();
        self.take()
    }

    /// Returns the next event, if there is one, without driving the loop: for use in
    /// [`Device::wait_until`](crate::Device::wait_until).
    pub fn take(&self) -> Option<Event> {
        let Held { inner, stream } = &*self.0;
        let mut unsettled = Vec::new();
        let event = loop {
            let Some(news) = stream.pop() else { break None };
            match news {
                QueuedEvent::Completed { completion, side, connection } => {
                    inner.taken(&connection, side);
                    break Some(Event::Completed(completion));
                }
                QueuedEvent::Opened(shared) => {
                    let token = shared.token;
                    let connection = Connection::new(inner.clone(), shared);
                    break Some(match token {
                        Some(token) => Event::Opened { token, connection },
                        None => Event::Accepted(connection),
                    });
                }
                QueuedEvent::Refused(connection) => {
                    let known = connection.token.zip(connection.refused.get());
                    let (token, error) = known.expect("set before the news is pushed");
                    break Some(Event::Refused { token, error: Box::new(error.clone()) });
                }
                // Requests posted during the close are flushed behind this entry, so it is queued again. If the loop
                // has ended, nothing flushes them.
                QueuedEvent::Closed(connection)
                    if !connection.is_settled() && inner.shared.broken.get().is_none() =>
                {
                    unsettled.push(connection);
                }
                QueuedEvent::Closed(connection) => {
                    let reason = connection.reason.get().copied().expect("set before the news is pushed");
                    break Some(Event::Closed { connection: connection.id(), reason });
                }
                QueuedEvent::Released { token } => break Some(Event::Released { token }),
            }
        };
        unsettled.into_iter().for_each(|connection| stream.push(QueuedEvent::Closed(connection)));
        event
    }

    /// Waits for the next event and returns it.
    ///
    /// # Errors
    /// [`WaitError::Timeout`], or [`WaitError::DeviceClosed`] if the loop has ended and all events have been taken.
    pub fn wait(&self, timeout: Duration) -> Result<Event, WaitError> {
        let deadline = Instant::now().checked_add(timeout);
        match self.0.inner.wait(deadline, || self.take()) {
            Ok(Some(event)) => Ok(event),
            Ok(None) => Err(WaitError::Timeout(timeout)),
            Err(reason) => Err(WaitError::DeviceClosed(reason)),
        }
    }

    /// Returns the reason if the device's loop has ended. Only events that are already queued follow then.
    pub fn ended(&self) -> Option<String> {
        self.0.inner.shared.broken.get().cloned()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for connection in self.stream.abandon() {
            self.inner.ask(Command::Close { connection });
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("local_addr", &self.0.inner.local).finish_non_exhaustive()
    }
}

/// A connection that is being opened. Dropping this has no effect.
pub struct Attempt {
    inner: Arc<Inner>,
    connection: Arc<ConnectionShared>,
}

impl Attempt {
    /// Gives up the attempt: [`Event::Refused`] comes with [`ConnectError::GivenUp`], unless it already had another
    /// outcome. A connection that has opened is closed.
    pub fn give_up(self) {
        self.inner.ask(Command::Close { connection: self.connection.clone() });
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt")
            .field("token", &self.connection.token)
            .field("state", &self.connection.state())
            .finish_non_exhaustive()
    }
}

/// Accepts connections from peers into an [`Events`], until it is dropped. Without one they are refused.
pub struct Accepting {
    events: Events,
}

impl Drop for Accepting {
    fn drop(&mut self) {
        self.events.0.inner.ask(Command::Listen(None));
    }
}

impl fmt::Debug for Accepting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accepting").field("events", &self.events).finish()
    }
}
