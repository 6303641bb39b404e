//! Execution of the application's commands.

use std::net::SocketAddr;
use std::sync::Arc;

use pathweave_policy::{CreditParams, Scheme};
use pathweave_transport::{
    Access, Buffer, MemoryError, MemoryRegion, Op, Opcode, QpConfig, RecvRequest, Scope, Status, WorkRequest,
};
use pathweave_units::{Duration, QpNum, Rng, Time};

use super::connection::{Connection, Phase};
use super::fit::{BuiltPolicy, PolicyInputs, RttCheck};
use super::path_monitor::MonitoredPolicy;
use super::{Core, Registered, deliver, released};
use crate::api::ProtectionDomain;
use crate::backend::Rail;
use crate::completion::Completion;
use crate::error::{ConnectError, DeregisterError};
use crate::event_loop::Service;
use crate::event_loop::outbound::SendRoute;
use crate::places::BufferEntry;
use crate::region::{Slice, Slices};
use crate::scheme;
use crate::secure::Session;
use crate::shared::{AccessScope, Command, ConnectRequest, ConnectionShared, Release, Side, Start, lock};
use crate::state::{CloseReason, ConnectionId, ConnectionState};
use crate::stats::{ConnectionStats, DeviceStats, PathStats};
use crate::stream::{EventQueue, QueuedEvent, refuse};

/// Largest number of READs of one peer that are served concurrently. A peer keeps up to 16 outstanding, but issues
/// the next one as soon as it has a response, before its acknowledgement of that response arrives here.
const READS_IN: u16 = 128;
/// Time for which packets in flight are still acknowledged after the end of a connection.
const LINGER: Duration = Duration::from_ms(1_000);
/// Time for which a closing device waits for peers to acknowledge its Close. It covers several Closes, since any of
/// them may be lost.
const FAREWELL: Duration = Duration::from_ms(100);

impl Core {
    pub(super) fn execute(&mut self, command: Command) {
        match command {
            Command::Post { id, wr_id, op, memory, start } => self.post(id, (wr_id, op, start), memory),
            Command::PostRecv { id, wr_id, memory } => self.post_receive(id, wr_id, memory),
            Command::Listen(listening) => self.setup.listening = listening,
            Command::Connect(dial) => self.dial(*dial),
            Command::Register { rkey, region, address, access, reach } => {
                self.register(rkey, region, address, access, reach);
            }
            Command::Deregister { rkey, answer } => {
                *lock(&answer) = Some(self.deregister(rkey));
                self.shared.notify();
            }
            Command::Release(release) => self.release(release),
            Command::Withdraw(release) => {
                let now = self.io.now;
                self.io.look_by(now);
                self.regions.withdrawals.push(release);
                self.go_on_withdrawing();
            }
            Command::Look => self.shared.notify(),
            Command::Close { connection } => {
                self.give_up_deferred(&connection);
                self.set_current_connection(connection.id());
                self.close(connection.id(), CloseReason::Local);
                self.shared.notify();
            }
            Command::Probe { id } => self.probe_all(id),
            Command::Stats { id, answer } => {
                // The caller waits for an answer, so there is one in any case.
                let stats = self.contain(|core| {
                    core.set_current_connection(id);
                    core.stats(id)
                });
                *lock(&answer) = Some(stats.flatten());
                self.shared.notify();
            }
            Command::DeviceStats { answer } => {
                *lock(&answer) = Some(self.device_stats());
                self.shared.notify();
            }
            Command::Stop => {
                self.io.stop_by = Some(self.io.now.saturating_add(FAREWELL));
                self.close_all(CloseReason::DeviceClosed);
            }
        }
    }

    fn post(&mut self, id: ConnectionId, (wr_id, op, start): (u64, Op, Start), memory: Slices) {
        let now = self.io.now;
        let opcode = match op {
            Op::Send | Op::SendImm { .. } => Opcode::Send,
            Op::Write { .. } | Op::WriteImm { .. } => Opcode::Write,
            Op::Read { .. } => Opcode::Read,
        };
        let Some(connection) = self.connections.get_mut(id) else {
            return self.refuse_late(Side::Send, flushed(id, wr_id, opcode));
        };
        let len = memory.len() as u64;
        let handle = self.io.places.insert(BufferEntry { memory, wr_id });
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

    /// Refuses a posted request and completes it at once.
    fn refuse_posted(&mut self, id: ConnectionId, handle: u64, side: Side, flushed: Completion) {
        self.io.places.remove(handle);
        if let Some(connection) = self.connections.get_mut(id) {
            match side {
                Side::Send => connection.sends.retain(|(other, _)| *other != handle),
                Side::Receive => connection.receives.retain(|other| *other != handle),
            }
            deliver(&connection.shared, connection.stream.as_ref(), side, flushed);
        }
        self.shared.notify();
    }

    /// Completes a request at once that was posted to a connection which has already been removed.
    #[cold]
    fn refuse_late(&mut self, side: Side, flushed: Completion) {
        if let Some((shared, stream)) = self.departed.get(flushed.connection) {
            deliver(&shared, stream.as_ref(), side, flushed);
            self.shared.notify();
        }
    }

    fn post_receive(&mut self, id: ConnectionId, wr_id: u64, memory: Slices) {
        let Some(connection) = self.connections.get_mut(id) else {
            return self.refuse_late(Side::Receive, flushed(id, wr_id, Opcode::Recv));
        };
        let len = memory.len() as u64;
        let handle = self.io.places.insert(BufferEntry { memory, wr_id });
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

    /// Opens a region under a key that was reserved for it. A region for a single connection stays closed if that
    /// connection has ended.
    fn register(&mut self, rkey: u64, memory: Slice, address: u64, access: Access, reach: AccessScope) {
        let (scope, domain) = match reach {
            AccessScope::Domain(domain) => (Scope::domain(ProtectionDomain::number(domain.as_ref())), domain),
            AccessScope::Connection(id) => match self.connections.get(id) {
                Some(connection) if connection.takes_requests() => (Scope::queue_pair(connection.qp), None),
                _ => return,
            },
        };
        let len = memory.len() as u64;
        let handle = self.io.places.insert(BufferEntry { memory: memory.into(), wr_id: 0 });
        let region = MemoryRegion { buffer: Buffer(handle), addr: address, len, access, scope };
        match self.endpoint.register_as(region, rkey) {
            Ok(()) => {
                self.regions.registered.insert(rkey, Registered { handle, _domain: domain });
            }
            // This cannot fail: the key was reserved for this region, and its range was checked then.
            Err(_) => drop(self.io.places.remove(handle)),
        }
    }

    pub(super) fn deregister(&mut self, rkey: u64) -> Result<(), DeregisterError> {
        match self.endpoint.deregister(rkey) {
            // An unknown key: the region has not been opened.
            Ok(()) | Err(MemoryError::UnknownKey) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(registered) = self.regions.registered.remove(&rkey) {
            self.io.places.remove(registered.handle);
        }
        lock(&self.regions.keys).give_back(rkey);
        Ok(())
    }

    /// Closes a region to new requests at once, and completely when the READs in progress are answered.
    fn release(&mut self, release: Release) {
        let _ = self.endpoint.revoke(release.rkey);
        let now = self.io.now;
        self.io.look_by(now);
        self.regions.releases.push(release);
        self.go_on_releasing();
    }

    /// Detaches the memory of withdrawn regions that are no longer being read.
    pub(super) fn go_on_withdrawing(&mut self) {
        for release in std::mem::take(&mut self.regions.withdrawals) {
            if self.endpoint.is_read(release.rkey) {
                self.regions.withdrawals.push(release);
                continue;
            }
            if let Some(Registered { handle, .. }) = self.regions.registered.get(&release.rkey) {
                let len = self.io.places.get(*handle).map_or(0, |place| place.memory.len());
                self.io.places.replace(*handle, Slices::nothing(len));
            }
            released(release);
            self.shared.notify();
        }
    }

    /// Closes released regions that are no longer being read.
    pub(super) fn go_on_releasing(&mut self) {
        for release in std::mem::take(&mut self.regions.releases) {
            if self.deregister(release.rkey).is_err() {
                self.regions.releases.push(release);
                continue;
            }
            let tells = release.tell.is_some();
            released(release);
            if tells {
                self.shared.notify();
            }
        }
    }

    /// Starts to open a connection.
    fn dial(&mut self, dial: ConnectRequest) {
        if dial.connection.state() == ConnectionState::Closed {
            // The application gave up while the command was queued.
            return;
        }
        let (connection, stream) = (dial.connection.clone(), dial.stream.clone());
        if let Err(error) = self.connect(dial) {
            refuse(&connection, stream.as_deref(), error);
            self.shared.notify();
        }
    }

    fn connect(&mut self, dial: ConnectRequest) -> Result<(), ConnectError> {
        let peer = dial.peer;
        let mut peers = std::iter::once(&peer).chain(&dial.others);
        if let Some(peer) = peers.find(|peer| peer.is_ipv4() != self.io.local.is_ipv4()) {
            return Err(ConnectError::Family { peer: *peer, local: self.io.local });
        }
        let limit = self.config.max_connections;
        let id = self.connections.next_id().filter(|_| self.connections.len() < limit);
        let id = id.ok_or(ConnectError::TooMany { limit })?;
        if self.setup.count(peer.ip()).is_err() {
            return Err(ConnectError::TooMany { limit: self.config.max_connections_per_peer });
        }
        let result = self.begin(dial, id);
        if result.is_err() {
            self.setup.uncount(peer.ip());
        }
        result
    }

    fn begin(&mut self, dial: ConnectRequest, id: ConnectionId) -> Result<(), ConnectError> {
        let now = self.io.now;
        let scheme = scheme::find(&dial.scheme)?;
        let paths = self.paths_for(&scheme);
        let qp = self.create_qp(now, id, &scheme, paths, dial.domain.as_ref());
        let hello = self.hello(id, qp, &dial.scheme, paths, dial.private_data);
        let peers: Vec<SocketAddr> = std::iter::once(dial.peer).chain(dial.others).collect();
        if let Err(error) = self.setup.initiate(now, id, peers, hello) {
            let _ = self.endpoint.destroy_qp(qp);
            return Err(ConnectError::Hello(error.to_string()));
        }
        self.add_connection(id, dial.peer, (qp, paths), dial.domain, dial.connection, dial.stream);
        Ok(())
    }

    /// Adds a connection that is being opened.
    pub(super) fn add_connection(
        &mut self,
        id: ConnectionId,
        peer: SocketAddr,
        (qp, paths): (QpNum, u16),
        domain: Option<ProtectionDomain>,
        shared: Arc<ConnectionShared>,
        stream: Option<Arc<EventQueue>>,
    ) {
        let now = self.io.now;
        shared.set_id(id);
        self.connections.insert(Connection {
            id,
            shared,
            stream,
            phase: Phase::Opening,
            peer,
            rail: Rail::FIRST,
            rails: None,
            counted: peer.ip(),
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
            dead: (0, 0),
            probed: vec![Default::default(); usize::from(paths)],
            refused: 0,
        });
        self.io.next_upkeep = now;
    }

    /// Returns the number of paths that a connection of this scheme can use.
    pub(super) fn paths_for(&self, scheme: &Scheme) -> u16 {
        self.config.paths.min(scheme.paths).max(1)
    }

    /// Creates a queue pair for a scheme. Its final parameters are known when both ends have agreed.
    pub(super) fn create_qp(
        &mut self,
        now: Time,
        id: ConnectionId,
        scheme: &Scheme,
        paths: u16,
        domain: Option<&ProtectionDomain>,
    ) -> QpNum {
        let mtu_payload = self.config.mtu_payload;
        let (scheme, policy, credit) = self.on_hosts(id, scheme, paths, mtu_payload, None);
        let config = QpConfig {
            recovery: scheme.recovery,
            acks: scheme.acks,
            cnp: scheme.cnp,
            reordering: scheme.reordering,
            credit,
            rto: scheme::timeouts(&self.config),
            idle_rtt: scheme::span(self.config.base_rtt) + scheme::span(self.config.host_delay),
            host_delay: scheme::span(self.config.host_delay),
            max_reads_in: READS_IN,
            domain: ProtectionDomain::number(domain),
            ..QpConfig::new(pathweave_units::HostId(id.0), policy, &[])
        };
        self.endpoint.create_qp(now, config)
    }

    /// Adapts a scheme to these hosts; returns it with its policy for a connection and its credit terms.
    /// `round_trip`: measured by the handshake.
    pub(super) fn on_hosts(
        &self,
        id: ConnectionId,
        scheme: &Scheme,
        paths: u16,
        mtu_payload: u16,
        round_trip: Option<Duration>,
    ) -> (Scheme, MonitoredPolicy, Option<CreditParams>) {
        let mut recipe = PolicyInputs {
            scheme: scheme.clone(),
            config: self.config.clone(),
            paths,
            mtu_payload,
            receive_buffer_bytes: self.receive_buffer_bytes,
            rng: Rng::for_component(self.endpoint.config().seed, "policy", id.0.into()),
        };
        let BuiltPolicy { scheme, policy, credit, rtts } = recipe.make(round_trip);
        let watched = MonitoredPolicy::new(policy, paths, rtts.least, self.deaths.clone());
        (scheme, watched.fitted(RttCheck::new(recipe, round_trip)), credit)
    }

    /// Ends a connection: completes everything posted, and sends Close to the peer.
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
        connection.shared.close();
        self.io.next_upkeep = now;
        if was == Phase::Opening {
            let error = match reason {
                CloseReason::Local => ConnectError::GivenUp,
                _ => ConnectError::DeviceClosed("closed while opening".into()),
            };
            refuse(&connection.shared, connection.stream.as_deref(), error);
            self.setup.cancel(id);
            self.remove(id);
        } else if let Some(stream) = &connection.stream {
            stream.push(QueuedEvent::Closed(connection.shared.clone()));
        }
    }

    pub(super) fn close_all(&mut self, reason: CloseReason) {
        for id in self.connections.ids() {
            self.close(id, reason);
        }
    }

    /// Removes a connection and its queue pair.
    pub(super) fn remove(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.remove(id) else { return };
        self.departed.note(&connection);
        let _ = self.endpoint.destroy_qp(connection.qp);
        match connection.request {
            Some(request) => self.setup.withdraw(self.io.now, request),
            None => self.setup.uncount(connection.counted),
        }
    }

    fn stats(&self, id: ConnectionId) -> Option<ConnectionStats> {
        let connection = self.connections.get(id)?;
        let policy = self.endpoint.policy(connection.qp)?;
        let (inflight_packets, inflight_bytes) = self.endpoint.inflight(connection.qp)?;
        Some(ConnectionStats {
            counters: self.endpoint.qp_counters(connection.qp)?,
            order: self.endpoint.order_counters(connection.qp).unwrap_or_default(),
            paths: PathStats::of(policy.paths(), &connection.probed, |path| {
                let SendRoute { to, rail, path } = connection.lane(path);
                let ports = self.io.ports.len() / self.io.addresses.len();
                let port = self.io.ports.get(rail.index() * ports + path.index());
                let local = self.io.addresses.get(rail.index()).unwrap_or(&self.io.local);
                (SocketAddr::new(local.ip(), port.copied().unwrap_or(0)), to)
            }),
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

fn flushed(connection: ConnectionId, wr_id: u64, opcode: Opcode) -> Completion {
    Completion { connection, wr_id, status: Status::Flushed, opcode, byte_len: 0, imm: None }
}
