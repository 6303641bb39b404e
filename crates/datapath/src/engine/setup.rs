//! Connection setup: drives the handshake state machines.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use pathweave_units::{HostId, PathId, QpNum, Time};

use super::Core;
use super::address_pairs::{Ends, Rails, Role};
use super::connection::Phase;
use super::route::ConnectAttemptOrder;
use crate::backend::{Backend, Rail, SendBatch};
use crate::config::{AROUND_PAYLOAD_BYTES, DeviceConfig};
use crate::error::ConnectError;
use crate::event_loop::Origin;
use crate::scheme;
use crate::secure::{
    ClusterKey, Established, Features, HandshakeConfig, HandshakeError, Hello, Initiator, InitiatorEvent,
    Limits, OsRandom, Recipient, Refusal, RequestId, Responder, ResponderConfig, ResponderEvent, Rotation,
    SessionId, SetupError, TransportType, recipient_of,
};
use crate::shared::{ConnectionInfo, ConnectionShared, Listening};
use crate::state::{CloseReason, ConnectionId, ConnectionState};
use crate::stream::refuse;

/// Largest number of handshake datagrams that wait to be processed. Further ones are dropped; an honest peer
/// retransmits.
const MOST_WAITING: usize = 256;
/// Largest number of addresses for which the rail of arrival is remembered. The table is cleared when it is full.
const MOST_ARRIVALS: usize = 1_024;
/// Codes with which this loop declines requests.
const NOBODY_LISTENS: u32 = 0x7077_0001;
const UNKNOWN_SCHEME: u32 = 0x7077_0002;

/// Handshake state machines of a device.
pub(super) struct Setup {
    key: ClusterKey,
    handshake: HandshakeConfig,
    responder: Responder,
    initiators: Vec<Attempt>,
    waiting: Vec<Waiting>,
    pub(super) listening: Option<Listening>,
    /// Rail of the last arrival from each address; relevant with several rails.
    arrivals: BTreeMap<IpAddr, Rail>,
    /// True if there may be datagrams to send or events to report.
    stirred: bool,
}

/// Handshake datagram that waits to be processed.
struct Waiting {
    whence: Origin,
    datagram: Vec<u8>,
}

struct Attempt {
    initiator: Initiator,
    id: ConnectionId,
    /// Addresses at which the peer may be.
    peers: Vec<SocketAddr>,
    /// Address pairs to try, set when the attempt has begun.
    routes: Option<ConnectAttemptOrder>,
    /// Time until which a completed attempt is kept to repeat its Confirm.
    done_until: Option<Time>,
}

impl Setup {
    pub(super) fn new(config: &DeviceConfig) -> Result<Self, SetupError> {
        let key = config.key.clone().unwrap_or_else(ClusterKey::public_key_for_insecure);
        let timeout = scheme::span(config.connect_timeout);
        let handshake = HandshakeConfig { timeout, ..HandshakeConfig::default() };
        let limits = Limits {
            connections: config.max_connections,
            connections_per_peer: config.max_connections_per_peer,
            half_open: config.max_half_open,
            half_open_per_peer: config.max_half_open_per_peer,
        };
        let responder = ResponderConfig { handshake, limits, ..ResponderConfig::default() };
        Ok(Setup {
            responder: Responder::new(key.clone(), responder, Box::new(OsRandom))?,
            key,
            handshake,
            initiators: Vec::new(),
            waiting: Vec::new(),
            listening: None,
            arrivals: BTreeMap::new(),
            stirred: false,
        })
    }

    /// Returns true if only completed handshakes hold instants here.
    pub(super) fn is_unused(&self) -> bool {
        self.initiators.iter().all(|attempt| attempt.done_until.is_some()) && self.responder.is_idle()
    }

    /// Replaces this setup by `fresh`, which takes over the datagrams that have not been processed.
    pub(super) fn hand_over(&mut self, fresh: Setup) {
        let old = std::mem::replace(self, fresh);
        (self.waiting, self.listening, self.stirred) = (old.waiting, old.listening, true);
        self.arrivals = old.arrivals;
    }

    /// Counts a connection that this end opens.
    pub(super) fn count(&mut self, peer: IpAddr) -> Result<(), Refusal> {
        self.responder.admission().add_open(peer)
    }

    /// Uncounts a connection that has ended, whether this end or the responder counted it.
    pub(super) fn uncount(&mut self, peer: IpAddr) {
        self.responder.admission().remove_open(peer);
    }

    /// Withdraws the request of a peer whose connection has ended before the peer confirmed it.
    pub(super) fn withdraw(&mut self, now: Time, request: RequestId) {
        self.responder.withdraw(now, request);
    }

    pub(super) fn initiate(
        &mut self,
        now: Time,
        id: ConnectionId,
        peers: Vec<SocketAddr>,
        hello: Hello,
    ) -> Result<(), SetupError> {
        let rotation = Rotation::default();
        let initiator = Initiator::new(now, &self.key, hello, self.handshake, rotation, &mut OsRandom)?;
        self.initiators.push(Attempt { initiator, id, peers, routes: None, done_until: None });
        self.stirred = true;
        Ok(())
    }

    /// Cancels an attempt before its handshake is complete.
    pub(super) fn cancel(&mut self, id: ConnectionId) {
        self.initiators.retain(|attempt| attempt.id != id);
    }

    /// Queues a handshake datagram for later processing.
    pub(super) fn enqueue(&mut self, whence: Origin, datagram: &[u8]) {
        if self.waiting.len() < MOST_WAITING {
            self.waiting.push(Waiting { whence, datagram: datagram.to_vec() });
        }
    }

    /// Records the rail at which a peer's datagram arrived.
    fn note_arrival(&mut self, whence: Origin) {
        let from = whence.from.ip();
        if self.arrivals.len() >= MOST_ARRIVALS && !self.arrivals.contains_key(&from) {
            self.arrivals.clear();
        }
        self.arrivals.insert(from, whence.rail);
    }

    /// Returns the rail for an answer: the rail of the request if that is known, otherwise the one that routing
    /// selects.
    fn rail_back<B: Backend>(&self, to: SocketAddr, backend: &B) -> Rail {
        self.arrivals.get(&to.ip()).copied().unwrap_or_else(|| backend.rail_towards(to))
    }

    pub(super) fn next_timer(&self) -> Option<Time> {
        let attempts = self.initiators.iter();
        let attempts = attempts.filter_map(|attempt| attempt.initiator.poll_timeout().or(attempt.done_until));
        attempts.chain(self.responder.poll_timeout()).min()
    }

    fn is_quiet(&self, now: Time) -> bool {
        self.waiting.is_empty() && !self.stirred && self.next_timer().is_none_or(|due| due > now)
    }
}

impl Core {
    /// Advances all handshakes. Returns true if there was anything to do.
    pub(super) fn setup_progress<B: Backend>(&mut self, now: Time, backend: &mut B) -> bool {
        if self.setup.is_quiet(now) {
            return false;
        }
        self.setup.stirred = false;
        for Waiting { whence, datagram } in std::mem::take(&mut self.setup.waiting) {
            match recipient_of(&datagram) {
                Recipient::ToResponder => {
                    self.setup.note_arrival(whence);
                    self.setup.responder.handle(now, whence.from, &datagram);
                }
                Recipient::ToInitiator(attempt) => {
                    let mut attempts = self.setup.initiators.iter_mut();
                    if let Some(found) = attempts.find(|known| known.initiator.attempt() == attempt) {
                        // The pair by which the answer arrived works.
                        let peer = found.peers.iter().position(|peer| peer.ip() == whence.from.ip());
                        if let Some(routes) = &mut found.routes {
                            routes.answered(whence.rail, peer, whence.at);
                        }
                        found.initiator.handle(now, &datagram);
                    }
                }
                _ => {}
            }
            self.requests(now);
        }
        self.setup.responder.on_timer(now);
        for attempt in &mut self.setup.initiators {
            if attempt.initiator.poll_timeout().is_some_and(|due| due <= now) {
                if let Some(routes) = &mut attempt.routes {
                    routes.on_no_answer();
                }
                attempt.initiator.on_timer(now);
            }
        }
        self.setup.initiators.retain(|attempt| attempt.done_until.is_none_or(|until| until > now));
        self.requests(now);
        self.attempts(now, backend);
        while let Some((to, datagram)) = self.setup.responder.poll_transmit() {
            // An answer that cannot be sent is dropped.
            let rail = self.setup.rail_back(to, backend);
            let _ = send_from(backend, (rail, None), to, &datagram);
        }
        true
    }

    /// Treats a protected packet for a connection whose peer has not confirmed as a Confirm.
    pub(super) fn confirm_by_packet(
        &mut self,
        now: Time,
        whence: Origin,
        id: ConnectionId,
        frame: &[u8],
    ) -> bool {
        let ours = self.setup.responder.on_protected(now, whence.from, SessionId(id.0), frame);
        if ours {
            self.requests(now);
        }
        ours
    }

    /// Returns the handshake parameters of this end.
    pub(super) fn hello(
        &self,
        id: ConnectionId,
        qp: QpNum,
        scheme: &str,
        paths: u16,
        private_data: Vec<u8>,
    ) -> Hello {
        Hello {
            protection: self.config.protection,
            transport: TransportType::Rc,
            scheme: scheme.into(),
            mtu_payload: self.config.mtu_payload,
            paths,
            nic_ports: self.io.addresses.len() as u8,
            host: HostId(0),
            qp,
            session: SessionId(id.0),
            features: Features::ADDRESSES,
            required: Features::NONE,
            private_data,
            addresses: if self.io.addresses.len() > 1 { self.io.addresses.clone() } else { Vec::new() },
        }
    }

    fn attempts<B: Backend>(&mut self, now: Time, backend: &mut B) {
        let mut over = Vec::new();
        for index in 0..self.setup.initiators.len() {
            let attempt = &mut self.setup.initiators[index];
            let id = attempt.id;
            let Some(connection) = self.connections.get(id) else {
                over.push(id);
                continue;
            };
            let (peer, shared, stream) =
                (connection.peer, connection.shared.clone(), connection.stream.clone());
            let rails = self.io.addresses.len();
            let routes = match &mut attempt.routes {
                Some(routes) => routes,
                none => {
                    let mut fits =
                        attempt.peers.iter().map(|to| fits_link(*to, self.config.mtu_payload, backend));
                    if let Some(error) = fits.find_map(Result::err) {
                        refuse(&shared, stream.as_deref(), error);
                        self.shared.notify();
                        over.push(id);
                        self.remove(id);
                        continue;
                    }
                    let towards: Vec<Rail> =
                        attempt.peers.iter().map(|to| backend.rail_towards(*to)).collect();
                    none.insert(ConnectAttemptOrder::new(rails, &towards, self.config.paths))
                }
            };
            let mut no_route = None;
            while let Some(datagram) = attempt.initiator.poll_transmit() {
                // A pair without a route is skipped, unless no pair has one.
                for _ in 0..routes.ways() {
                    let (rail, to) = routes.way();
                    no_route = send_from(backend, (rail, routes.path()), attempt.peers[to], &datagram).err();
                    if no_route.is_none() {
                        break;
                    }
                    routes.next_way();
                }
            }
            let (rail, to) = routes.way();
            let met = (rail, attempt.peers[to]);
            if let Some(error) = no_route.filter(|_| shared.state() == ConnectionState::Opening) {
                let error = ConnectError::NoRoute { peer, reason: error.to_string() };
                refuse(&shared, stream.as_deref(), error);
                self.shared.notify();
                over.push(id);
                self.remove(id);
                continue;
            }
            match attempt.initiator.poll_event() {
                None => {}
                Some(InitiatorEvent::Established(established)) => {
                    attempt.done_until = Some(now.saturating_add(self.setup.handshake.timeout));
                    if self.establish(now, id, (Role::Initiator, met), *established) {
                        self.shared.notify();
                    } else {
                        over.push(id);
                    }
                }
                Some(InitiatorEvent::Failed(error)) => {
                    refuse(&shared, stream.as_deref(), self.explain(peer, error));
                    self.shared.notify();
                    over.push(id);
                    self.remove(id);
                }
            }
        }
        for id in over {
            self.setup.cancel(id);
        }
    }

    /// Opens a connection whose handshake is complete. Returns false if the connection is gone.
    fn establish(
        &mut self,
        now: Time,
        id: ConnectionId,
        (role, met): (Role, (Rail, SocketAddr)),
        established: Established,
    ) -> bool {
        let Established { session, agreed, peer: hello, round_trip } = established;
        self.set_current_connection(id);
        let rails: Vec<_> =
            self.io.addresses.iter().map(SocketAddr::ip).zip(self.io.prefixes.clone()).collect();
        let Some(connection) = self.connections.get_mut(id) else { return false };
        (connection.rail, connection.peer) = met;
        if agreed.features.contains(Features::ADDRESSES) {
            let ends = Ends { role, rails: &rails, listed: &hello.addresses, met };
            connection.rails = Rails::new(now, &ends, agreed.paths, &mut OsRandom);
        }
        let shared = connection.shared.clone();
        connection.session = Some(session);
        connection.request = None;
        connection.phase = Phase::Open;
        (connection.remote_qp, connection.remote_id) = (hello.qp, hello.session.0);
        connection.heard = now;
        let qp = connection.qp;
        connection.paths = agreed.paths;
        connection.probed.truncate(usize::from(agreed.paths));
        let peer = connection.peer;
        self.io.look_by(now);
        // Both ends have stated that they support the scheme.
        let Ok(scheme) = scheme::find(&agreed.scheme) else { return false };
        let (_, policy, _) = self.on_hosts(id, &scheme, agreed.paths, agreed.mtu_payload, round_trip);
        let _ = self.endpoint.agree(now, qp, policy, agreed.mtu_payload);
        let _ = shared.info.set(ConnectionInfo {
            peer,
            mtu_payload: agreed.mtu_payload,
            paths: agreed.paths,
            scheme: agreed.scheme,
            protection: agreed.protection,
            private_data: hello.private_data,
        });
        let _ = self.endpoint.connect(qp, hello.qp);
        shared.open();
        let stream = self.connections.get(id).and_then(|connection| connection.stream.clone());
        if stream.is_some_and(|stream| !stream.hand_over(shared)) {
            self.close(id, CloseReason::Local);
        }
        true
    }

    /// Handles the events of the responder.
    fn requests(&mut self, now: Time) {
        while let Some(event) = self.setup.responder.poll_event() {
            match event {
                ResponderEvent::Request { id, from, hello } => self.judge(now, id, from, &hello),
                ResponderEvent::Established { id, from, established } => {
                    let found = self.connections.iter().find(|connection| connection.request == Some(id));
                    let Some(connection) = found.map(|connection| connection.id) else { continue };
                    // The peer may have tried several addresses until it got an answer.
                    let rail = self.setup.arrivals.get(&from.ip()).copied().unwrap_or(Rail::FIRST);
                    if self.establish(now, connection, (Role::Responder, (rail, from)), *established)
                        && let Some(connection) = self.connections.get(connection)
                    {
                        if connection.stream.is_none() {
                            self.shared.handed.push(connection.shared.clone());
                        }
                        self.shared.notify();
                    }
                }
                ResponderEvent::Abandoned { session, .. } => {
                    if let Some(SessionId(number)) = session
                        && let Some(connection) = self.connections.remove(ConnectionId(number))
                    {
                        // The responder has already removed it from its counts.
                        let _ = self.endpoint.destroy_qp(connection.qp);
                    }
                }
            }
        }
    }

    /// Accepts or declines a request.
    fn judge(&mut self, now: Time, request: RequestId, from: SocketAddr, hello: &Hello) {
        let Some(Listening { domain, stream }) = &self.setup.listening else {
            return self.setup.responder.decline(request, NOBODY_LISTENS);
        };
        let (domain, stream) = (domain.clone(), stream.clone());
        if hello.transport != TransportType::Rc {
            // The responder then refuses the request, because the transports of the two ends do not match.
            let ours = self.hello(ConnectionId(0), QpNum(0), &hello.scheme, 1, Vec::new());
            let _ = self.setup.responder.accept(now, request, ours);
            return;
        }
        let scheme = scheme::find(&hello.scheme).ok().filter(|_| self.config.accepts(&hello.scheme));
        let Some(scheme) = scheme else {
            return self.setup.responder.decline(request, UNKNOWN_SCHEME);
        };
        let Some(id) = self.connections.next_id() else {
            return self.setup.responder.decline(request, 0);
        };
        let paths = self.paths_for(&scheme);
        let qp = self.create_qp(now, id, &scheme, paths, domain.as_ref());
        let ours = self.hello(id, qp, &hello.scheme, paths, self.config.answer_data.clone());
        if self.setup.responder.accept(now, request, ours).is_err() {
            let _ = self.endpoint.destroy_qp(qp);
            return;
        }
        let shared = Arc::new(ConnectionShared::new(self.config.queue_depth, None));
        self.add_connection(id, from, (qp, paths), domain, shared, stream);
        if let Some(connection) = self.connections.get_mut(id) {
            connection.request = Some(request);
        }
        self.setup.stirred = true;
    }

    /// Converts a handshake failure to the application's error.
    fn explain(&self, peer: SocketAddr, error: HandshakeError) -> ConnectError {
        match error {
            HandshakeError::Refused(Refusal::Declined { code: NOBODY_LISTENS }) => {
                ConnectError::NobodyListens { peer }
            }
            HandshakeError::Refused(Refusal::Declined { code: UNKNOWN_SCHEME }) => {
                ConnectError::Refused { peer, reason: Refusal::Scheme }
            }
            other => ConnectError::of_handshake(peer, self.config.connect_timeout, other),
        }
    }
}

/// Checks that full packets fit the MTU of the link to a peer.
fn fits_link<B: Backend>(peer: SocketAddr, mtu_payload: u16, backend: &B) -> Result<(), ConnectError> {
    let needed = usize::from(mtu_payload) + AROUND_PAYLOAD_BYTES as usize;
    match backend.link_mtu(peer) {
        Some(link_mtu) if link_mtu < needed => {
            Err(ConnectError::LinkMtu { peer, link_mtu, needed, mtu_payload })
        }
        _ => Ok(()),
    }
}

/// Sends a single datagram from the address at which this end is reached. If there is no room it is lost, and the
/// handshake's timers send another.
pub(crate) fn send_alone<B: Backend>(backend: &mut B, to: SocketAddr, bytes: &[u8]) -> io::Result<()> {
    send_from(backend, (Rail::FIRST, None), to, bytes)
}

/// Sends a single datagram from a rail and the port of a path, and listens there for the answer.
fn send_from<B: Backend>(
    backend: &mut B,
    (rail, path): (Rail, Option<PathId>),
    to: SocketAddr,
    bytes: &[u8],
) -> io::Result<()> {
    let ecn = pathweave_wire::Ecn::NotCapable;
    // If the path's port cannot be listened on, the datagram leaves from the default port.
    let path = path.filter(|path| backend.listen_on(rail, *path).is_ok());
    backend.send(&SendBatch { to, rail, path, ecn, segment_bytes: bytes.len().max(1), bytes }).map(|_| ())
}
