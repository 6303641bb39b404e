//! What the application asks for.

use std::net::SocketAddr;
use std::sync::Arc;

use pathweave_policy::Scheme;
use pathweave_transport::{
    Access, Buffer, MemoryError, MemoryRegion, Op, Opcode, QpConfig, RecvRequest, Scope, Status, WorkRequest,
};
use pathweave_units::{Duration, QpNum, Rng, Time};

use super::connection::{Connection, Phase};
use super::fit::{Fit, Made, Recipe};
use super::watch::Watched;
use super::{Core, Registered, deliver};
use crate::api::ProtectionDomain;
use crate::backend::Backend;
use crate::completion::Completion;
use crate::config::AROUND_PAYLOAD_BYTES;
use crate::error::{ConnectError, DeregisterError, RegisterError};
use crate::event_loop::Service;
use crate::places::Place;
use crate::region::Slice;
use crate::scheme;
use crate::secure::{OsRandom, SecureRandom, Session};
use crate::shared::{Command, ConnectionShared, Reach, Side, Start, lock};
use crate::state::{CloseReason, ConnectionId, ConnectionState};
use crate::stats::{ConnectionStats, DeviceStats, PathStats};

/// READs of a peer that are served at a time. It asks for 16, but for the next as soon as it has an answer, before its
/// acknowledgement of that is here.
const READS_IN: u16 = 128;
/// How long packets on the way are acknowledged after the end of a connection.
const LINGER: Duration = Duration::from_ms(1_000);

impl Core {
    pub(super) fn take<B: Backend>(&mut self, command: Command, backend: &B) {
        match command {
            Command::Post { id, wr_id, op, memory, start } => self.post(id, (wr_id, op, start), memory),
            Command::PostRecv { id, wr_id, memory } => self.post_receive(id, wr_id, memory),
            Command::Listen(listening) => self.setup.listening = listening,
            Command::Connect { peer, private_data, scheme, domain, connection } => {
                let result = self
                    .fits_link(peer, backend)
                    .and_then(|()| self.connect(peer, private_data, &scheme, domain, &connection));
                if let Err(error) = result {
                    refuse(&connection, error);
                    self.shared.signal.notify();
                }
            }
            Command::Register { region, address, access, reach, answer } => {
                *lock(&answer) = Some(self.register(region, address, access, reach));
                self.shared.signal.notify();
            }
            Command::Deregister { rkey, answer } => {
                *lock(&answer) = Some(self.deregister(rkey));
                self.shared.signal.notify();
            }
            Command::Release { rkey } => {
                if self.deregister(rkey) == Err(DeregisterError::Memory(MemoryError::InUse)) {
                    self.regions.releases.push(rkey);
                }
            }
            Command::Close { connection } => {
                self.act_for(connection.id());
                self.close(connection.id(), CloseReason::Local);
                self.shared.signal.notify();
            }
            Command::Probe { id } => self.probe_all(id),
            Command::Stats { id, answer } => {
                // There is an answer in any case: the caller waits for it.
                let stats = self.contain(|core| {
                    core.act_for(id);
                    core.stats(id)
                });
                *lock(&answer) = Some(stats.flatten());
                self.shared.signal.notify();
            }
            Command::DeviceStats { answer } => {
                *lock(&answer) = Some(self.device_stats());
                self.shared.signal.notify();
            }
            Command::Stop => {
                self.io.stopping = true;
                self.close_all(CloseReason::DeviceClosed);
            }
        }
    }

    fn post(&mut self, id: ConnectionId, (wr_id, op, start): (u64, Op, Start), memory: Slice) {
        let now = self.io.now;
        // Where it is closed, its handle and the loop may not have met yet; `close` has flushed what was there.
        let Some(connection) = self.connections.get_mut(id) else { return };
        let opcode = match op {
            Op::Send | Op::SendImm { .. } => Opcode::Send,
            Op::Write { .. } | Op::WriteImm { .. } => Opcode::Write,
            Op::Read { .. } => Opcode::Read,
        };
        let len = memory.len() as u64;
        let handle = self.io.places.insert(Place { memory, wr_id });
        let request = WorkRequest { wr_id: handle, op, local: Buffer(handle), len };
        if connection.takes_requests() {
            let qp = connection.qp;
            connection.sends.push_back((handle, opcode));
            let posted = match start {
                Start::InTurn => self.endpoint.post(now, qp, request),
                Start::AfterAll => self.endpoint.post_fenced(now, qp, request),
            };
            if posted.is_ok() {
                return;
            }
        }
        self.refuse_posted(id, handle, Side::Send, flushed(id, wr_id, opcode));
    }

    /// What was posted is not taken, and completes at once.
    fn refuse_posted(&mut self, id: ConnectionId, handle: u64, side: Side, flushed: Completion) {
        self.io.places.remove(handle);
        if let Some(connection) = self.connections.get_mut(id) {
            match side {
                Side::Send => connection.sends.retain(|(other, _)| *other != handle),
                Side::Receive => connection.receives.retain(|other| *other != handle),
            }
            deliver(connection, side, flushed);
        }
        self.shared.signal.notify();
    }

    fn post_receive(&mut self, id: ConnectionId, wr_id: u64, memory: Slice) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let len = memory.len() as u64;
        let handle = self.io.places.insert(Place { memory, wr_id });
        let request = RecvRequest { wr_id: handle, buffer: Buffer(handle), len };
        if connection.takes_requests() {
            let qp = connection.qp;
            connection.receives.push_back(handle);
            if self.endpoint.post_recv(qp, request).is_ok() {
                return;
            }
        }
        self.refuse_posted(id, handle, Side::Receive, flushed(id, wr_id, Opcode::Recv));
    }

    fn register(
        &mut self,
        memory: Slice,
        address: u64,
        access: Access,
        reach: Reach,
    ) -> Result<u64, RegisterError> {
        let (scope, domain) = match reach {
            Reach::Domain(domain) => (Scope::domain(ProtectionDomain::number(domain.as_ref())), domain),
            Reach::Connection(id) => match self.connections.get(id) {
                Some(connection) if connection.takes_requests() => (Scope::queue_pair(connection.qp), None),
                _ => return Err(RegisterError::ConnectionClosed),
            },
        };
        // New for each region, and from the system whatever the seed: peers see keys, and must not guess the next one.
        let mut secret = [0; 8];
        OsRandom.fill(&mut secret)?;
        let len = memory.len() as u64;
        let handle = self.io.places.insert(Place { memory, wr_id: 0 });
        let region = MemoryRegion { buffer: Buffer(handle), addr: address, len, access, scope };
        match self.endpoint.register(region, u64::from_ne_bytes(secret)) {
            Ok(rkey) => {
                self.regions.registered.insert(rkey, Registered { handle, _domain: domain });
                Ok(rkey)
            }
            Err(error) => {
                self.io.places.remove(handle);
                Err(error.into())
            }
        }
    }

    pub(super) fn deregister(&mut self, rkey: u64) -> Result<(), DeregisterError> {
        self.endpoint.deregister(rkey)?;
        if let Some(registered) = self.regions.registered.remove(&rkey) {
            self.io.places.remove(registered.handle);
        }
        Ok(())
    }

    /// Whether full packets fit the link to a peer.
    fn fits_link<B: Backend>(&self, peer: SocketAddr, backend: &B) -> Result<(), ConnectError> {
        let needed = usize::from(self.config.mtu_payload) + AROUND_PAYLOAD_BYTES as usize;
        match backend.link_mtu(peer) {
            Some(link_mtu) if link_mtu < needed => {
                Err(ConnectError::LinkMtu { peer, link_mtu, needed, mtu_payload: self.config.mtu_payload })
            }
            _ => Ok(()),
        }
    }

    fn connect(
        &mut self,
        peer: SocketAddr,
        private_data: Vec<u8>,
        scheme: &str,
        domain: Option<ProtectionDomain>,
        shared: &Arc<ConnectionShared>,
    ) -> Result<(), ConnectError> {
        if peer.is_ipv4() != self.io.local.is_ipv4() {
            return Err(ConnectError::Family { peer, local: self.io.local });
        }
        let limit = self.config.max_connections;
        let id = self.connections.next_id().filter(|_| self.connections.len() < limit);
        let id = id.ok_or(ConnectError::TooMany { limit })?;
        if self.setup.count(peer.ip()).is_err() {
            return Err(ConnectError::TooMany { limit: self.config.max_connections_per_peer });
        }
        let result = self.begin(peer, private_data, scheme, domain, shared, id);
        if result.is_err() {
            self.setup.uncount(peer.ip());
        }
        result
    }

    fn begin(
        &mut self,
        peer: SocketAddr,
        private_data: Vec<u8>,
        scheme_name: &str,
        domain: Option<ProtectionDomain>,
        shared: &Arc<ConnectionShared>,
        id: ConnectionId,
    ) -> Result<(), ConnectError> {
        let now = self.io.now;
        let scheme = scheme::find(scheme_name)?;
        let paths = self.paths_for(&scheme);
        let qp = self.create_qp(now, id, &scheme, paths, domain.as_ref());
        let hello = self.hello(id, qp, scheme_name, paths, private_data);
        if let Err(error) = self.setup.initiate(now, id, hello) {
            let _ = self.endpoint.destroy_qp(qp);
            return Err(ConnectError::Hello(error.to_string()));
        }
        self.add_connection(id, peer, qp, paths, domain, shared.clone());
        Ok(())
    }

    /// Takes in a connection that is being opened.
    pub(super) fn add_connection(
        &mut self,
        id: ConnectionId,
        peer: SocketAddr,
        qp: QpNum,
        paths: u16,
        domain: Option<ProtectionDomain>,
        shared: Arc<ConnectionShared>,
    ) {
        let now = self.io.now;
        shared.set_id(id);
        self.connections.insert(Connection {
            id,
            shared,
            phase: Phase::Opening,
            peer,
            qp,
            remote_qp: QpNum(0),
            remote_id: 0,
            paths,
            session: None,
            _domain: domain,
            request: None,
            near_data: 0,
            near_answers: 0,
            last_write: None,
            sends: Default::default(),
            receives: Default::default(),
            heard: now,
            next_probe: now,
            probes: 0,
            probed: vec![Default::default(); usize::from(paths)],
            refused: 0,
        });
        self.io.next_upkeep = now;
    }

    /// Paths a connection of this scheme can use.
    pub(super) fn paths_for(&self, scheme: &Scheme) -> u16 {
        self.config.paths.min(scheme.paths).max(1)
    }

    /// A queue pair that speaks a scheme. What it is to be like in full is known when the ends have agreed.
    pub(super) fn create_qp(
        &mut self,
        now: Time,
        id: ConnectionId,
        scheme: &Scheme,
        paths: u16,
        domain: Option<&ProtectionDomain>,
    ) -> QpNum {
        let mtu_payload = self.config.mtu_payload;
        let (scheme, policy) = self.on_hosts(id, scheme, paths, mtu_payload, None);
        let config = QpConfig {
            recovery: scheme.recovery,
            acks: scheme.acks,
            cnp: scheme.cnp,
            reordering: scheme.reordering,
            rto: scheme::timeouts(&self.config),
            idle_rtt: scheme::span(self.config.base_rtt) + scheme::span(self.config.host_delay),
            host_delay: scheme::span(self.config.host_delay),
            max_reads_in: READS_IN,
            domain: ProtectionDomain::number(domain),
            ..QpConfig::new(pathweave_units::HostId(id.0), policy, &[])
        };
        self.endpoint.create_qp(now, config)
    }

    /// A scheme for these hosts, and its policy for a connection. `round_trip`: that of the handshake.
    pub(super) fn on_hosts(
        &self,
        id: ConnectionId,
        scheme: &Scheme,
        paths: u16,
        mtu_payload: u16,
        round_trip: Option<Duration>,
    ) -> (Scheme, Watched) {
        let mut recipe = Recipe {
            scheme: scheme.clone(),
            config: self.config.clone(),
            paths,
            mtu_payload,
            receive_buffer_bytes: self.receive_buffer_bytes,
            rng: Rng::for_component(self.endpoint.config().seed, "policy", id.0.into()),
        };
        let Made { scheme, policy, rtts } = recipe.make(round_trip);
        let watched = Watched::new(policy, paths, rtts.least, self.deaths.clone());
        (scheme, watched.fitted(Fit::new(recipe, round_trip)))
    }

    /// Ends a connection: everything posted is completed, and the peer is told.
    pub(super) fn close(&mut self, id: ConnectionId, reason: CloseReason) {
        let now = self.io.now;
        let Some(connection) = self.connections.get_mut(id) else { return };
        let was = connection.phase;
        if matches!(was, Phase::Lingering { .. }) {
            return;
        }
        let _ = connection.shared.reason.set(reason);
        let says_close = match reason {
            CloseReason::Peer => None,
            CloseReason::Local
            | CloseReason::Failed
            | CloseReason::PeerSilent
            | CloseReason::Internal
            | CloseReason::ClockRenewed
            | CloseReason::DeviceClosed => Some(now),
        };
        connection.phase = Phase::Lingering { until: now.saturating_add(LINGER), next_close: says_close };
        let first = match reason {
            CloseReason::PeerSilent => Core::SILENT,
            _ => Status::Flushed,
        };
        self.flush(id, first);
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.shared.set_state(ConnectionState::Closed);
        self.io.next_upkeep = now;
        if was == Phase::Opening {
            refuse(&connection.shared.clone(), ConnectError::DeviceClosed("closed while opening".into()));
            self.setup.cancel(id);
            self.remove(id);
        }
    }

    pub(super) fn close_all(&mut self, reason: CloseReason) {
        for id in self.connections.ids() {
            self.close(id, reason);
        }
    }

    /// Forgets a connection.
    pub(super) fn remove(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.remove(id) else { return };
        let _ = self.endpoint.destroy_qp(connection.qp);
        match connection.request {
            Some(request) => self.setup.withdraw(self.io.now, request),
            None => self.setup.uncount(connection.peer.ip()),
        }
    }

    fn stats(&self, id: ConnectionId) -> Option<ConnectionStats> {
        let connection = self.connections.get(id)?;
        let policy = self.endpoint.policy(connection.qp)?;
        let (inflight_packets, inflight_bytes) = self.endpoint.inflight(connection.qp)?;
        Some(ConnectionStats {
            counters: self.endpoint.qp_counters(connection.qp)?,
            order: self.endpoint.order_counters(connection.qp).unwrap_or_default(),
            paths: PathStats::of(policy.paths(), &connection.probed, &self.io.ports),
            inflight_packets,
            inflight_bytes,
            rate: pathweave_policy::Policy::rate(policy, self.io.now),
            session: connection.session.as_ref().map(Session::counters).unwrap_or_default(),
        })
    }

    fn device_stats(&self) -> DeviceStats {
        DeviceStats {
            connections: self.connections.len(),
            sent: self.io.outbound.counters(),
            received_datagrams: self.io.counts.received_datagrams,
            received_bytes: self.io.counts.received_bytes,
            refused_datagrams: self.io.counts.refused_datagrams,
            counters: self.endpoint.counters(),
            last_send_error: self.io.outbound.last_error(),
            turns: self.io.counts.turns,
            sleeps: self.io.counts.sleeps,
            paced: self.io.counts.paced,
            paced_late_ns: self.io.counts.paced_late_ns,
            paced_late_over_10us: self.io.counts.paced_late_over_10us,
            panics: self.io.counts.panics,
        }
    }
}

/// The connection will not be.
pub(super) fn refuse(connection: &ConnectionShared, error: ConnectError) {
    let _ = connection.refused.set(error);
    connection.set_state(ConnectionState::Closed);
}

fn flushed(connection: ConnectionId, wr_id: u64, opcode: Opcode) -> Completion {
    Completion { connection, wr_id, status: Status::Flushed, opcode, byte_len: 0, imm: None }
}
