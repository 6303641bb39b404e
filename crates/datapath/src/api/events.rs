//! All that happens on many connections, in one place.

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
use crate::shared::{Command, ConnectionShared, Dial, Listening, Release};
use crate::stream::{News, Stream, refuse};

/// One stream of all that happens on the connections that are opened into it, by this end or by peers: openings,
/// completions, ends. Clones are the same stream; a device may have several. [`Device::events`](crate::Device::events) makes
/// one.
///
/// Nothing here waits for the loop but [`wait`](Events::wait), so the device's [hook](crate::Device::set_hook) may use all
/// the rest. Taking an event takes no lock. Completions of these connections come here alone:
/// [`Connection::poll`] and its like find none.
///
/// A connection a peer has opened is first seen as [`Event::Accepted`]. Receives that the hook posts when it is called for
/// that are there before the loop looks at the peer's first packet, so none is turned away. Those of another thread may come
/// later; then the peer tries again.
///
/// With the last clone, connections that nobody has taken out are closed; those that were taken go on, and nobody hears
/// of their completions.
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

/// What the clones hold together.
struct Held {
    inner: Arc<Inner>,
    stream: Arc<Stream>,
}

impl Events {
    pub(super) fn new(inner: &Arc<Inner>) -> Self {
        Events(Arc::new(Held { inner: inner.clone(), stream: Arc::default() }))
    }

    /// Begins to open a connection with the device's scheme, and returns at once. The outcome is [`Event::Opened`] or
    /// [`Event::Refused`] with `token`, at the latest after the configured `connect_timeout`.
    pub fn connect(&self, token: u64, peer: SocketAddr) -> Attempt {
        self.connect_with(token, peer, &self.0.inner.scheme, &[])
    }

    /// The same with a scheme of its own, saying something to the peer's application; see
    /// [`Device::connect_with`](crate::Device::connect_with).
    pub fn connect_with(&self, token: u64, peer: SocketAddr, scheme: &str, private_data: &[u8]) -> Attempt {
        self.dial(token, None, peer, scheme, private_data)
    }

    /// The same with a connection that is in a protection domain.
    ///
    /// # Errors
    /// [`ConnectError::OtherDevice`], and then no event comes.
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
        Ok(self.dial(token, Some(domain.clone()), peer, scheme, private_data))
    }

    fn dial(
        &self,
        token: u64,
        domain: Option<ProtectionDomain>,
        peer: SocketAddr,
        scheme: &str,
        private_data: &[u8],
    ) -> Attempt {
        let Held { inner, stream } = &*self.0;
        let connection = Arc::new(ConnectionShared::new(inner.queue_depth, Some(token)));
        inner.ask(Command::Connect(Box::new(Dial {
            peer,
            others: Vec::new(),
            private_data: private_data.to_vec(),
            scheme: scheme.into(),
            domain,
            connection: connection.clone(),
            stream: Some(stream.clone()),
        })));
        if let Some(reason) = inner.shared.broken.get() {
            // The loop may not have seen it any more.
            refuse(&connection, Some(stream), ConnectError::DeviceClosed(reason.clone()));
        }
        Attempt { inner: inner.clone(), connection }
    }

    /// Lets peers open connections, each of which is an [`Event::Accepted`], until what this gives is dropped.
    ///
    /// # Errors
    /// [`OpenError::System`] if the device has a listener already.
    pub fn accept(&self) -> Result<Accepting, OpenError> {
        self.accept_for(None)
    }

    /// The same with connections that are in a protection domain.
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

    /// Closes a region to peers, and returns at once: nothing that they ask for from now on reaches it. When no packet reads
    /// or writes it any more, which may be later only where a READ is being answered, [`Event::Released`] comes with `token`;
    /// or never, if the device's loop has ended, and then nothing does anyway.
    pub fn release(&self, registration: Registration, token: u64) {
        let rkey = registration.leave();
        let tell = Some((self.0.stream.clone(), token));
        self.0.inner.ask(Command::Release(Release { rkey, tell }));
    }

    /// Takes a region's memory away from peers that may still use its key, without ending their connections as a
    /// [release](Events::release) would when they do: in its place they find zeros, and what they write is lost. [`Event::Released`]
    /// comes with `token` once no packet reads or writes the memory; the key stays until the registration is closed.
    pub fn withdraw(&self, registration: &Registration, token: u64) {
        let tell = Some((self.0.stream.clone(), token));
        self.0.inner.ask(Command::Withdraw(Release { rkey: registration.rkey(), tell }));
    }

    /// The next event, if there is one.
    pub fn poll(&self) -> Option<Event> {
        if let Some(event) = self.take() {
            return Some(event);
        }
        self.0.inner.nudge();
        self.take()
    }

    /// The next event, if there is one, without turning the loop: for [`Device::wait_until`](crate::Device::wait_until).
    pub fn take(&self) -> Option<Event> {
        let Held { inner, stream } = &*self.0;
        let mut unsettled = Vec::new();
        let event = loop {
            let Some(news) = stream.pop() else { break None };
            match news {
                News::Completed { completion, side, connection } => {
                    inner.taken(&connection, side);
                    break Some(Event::Completed(completion));
                }
                News::Opened(shared) => {
                    let token = shared.token;
                    let connection = Connection::new(inner.clone(), shared);
                    break Some(match token {
                        Some(token) => Event::Opened { token, connection },
                        None => Event::Accepted(connection),
                    });
                }
                News::Refused(connection) => {
                    let known = connection.token.zip(connection.refused.get());
                    let (token, error) = known.expect("set before the news is pushed");
                    break Some(Event::Refused { token, error: Box::new(error.clone()) });
                }
                // What was posted while it ended is flushed behind this, unless nobody does so any more.
                News::Closed(connection)
                    if !connection.is_settled() && inner.shared.broken.get().is_none() =>
                {
                    unsettled.push(connection);
                }
                News::Closed(connection) => {
                    let reason = connection.reason.get().copied().expect("set before the news is pushed");
                    break Some(Event::Closed { connection: connection.id(), reason });
                }
                News::Released { token } => break Some(Event::Released { token }),
            }
        };
        unsettled.into_iter().for_each(|connection| stream.push(News::Closed(connection)));
        event
    }

    /// The next event, waiting for it.
    ///
    /// # Errors
    /// [`WaitError::Timeout`], or [`WaitError::DeviceClosed`] when the loop has ended and all events have been taken.
    pub fn wait(&self, timeout: Duration) -> Result<Event, WaitError> {
        let deadline = Instant::now().checked_add(timeout);
        match self.0.inner.wait(deadline, || self.take()) {
            Ok(Some(event)) => Ok(event),
            Ok(None) => Err(WaitError::Timeout(timeout)),
            Err(reason) => Err(WaitError::DeviceClosed(reason)),
        }
    }

    /// Why the device's loop has ended, if it has: then nothing comes but what is there already.
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

/// A connection that is being opened. Dropping this changes nothing.
pub struct Attempt {
    inner: Arc<Inner>,
    connection: Arc<ConnectionShared>,
}

impl Attempt {
    /// Gives it up: [`Event::Refused`] comes with [`ConnectError::GivenUp`], unless the outcome was another before. A
    /// connection that has come about is closed.
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

/// Lets peers open connections into an [`Events`], until it is dropped; without one they are refused.
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
