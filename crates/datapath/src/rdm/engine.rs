//! Datagrams on the loop. Arrivals, side messages, timers and requests go into the transport; packets, side messages
//! and completions come out.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use pathweave_policy::AnyPolicy;
use pathweave_transport::rd::{RdEvent, RdQp};
use pathweave_transport::{FreePorts, Opcode, Status, Transport};
use pathweave_units::{HostId, QpNum, Time};
use pathweave_wire::Ecn;

use super::address_vector::{AddressVector, Peer, PeerEntry};
use super::config::RdmConfig;
use super::handshakes::Handshakes;
use super::inbox::{Filled, Inbox, Sender};
use super::queue_pair::queue_pair;
use super::remote::{CloseMessage, Remote, Remotes, index_of};
use super::shared::{Command, EndpointShared, RdmCompletion};
use super::tcp::SideConnections;
use crate::backend::Backend;
use crate::error::OpenError;
use crate::event_loop::{Engine, Io, MAY_BEGIN_ANEW, Origin, Service};

/// Polling interval of TCP if the backend cannot wait for it.
const LOOK_AT_TCP: Duration = Duration::from_millis(1);

/// Longest time for which a closing endpoint waits until peers have its last side messages: a TCP retransmission
/// timeout and some margin.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The datagram service of the loop.
pub(super) struct DatagramService {
    pub(super) config: RdmConfig,
    pub(super) io: Io,
    pub(super) rd: RdQp<AnyPolicy>,
    pub(super) qp: QpNum,
    pub(super) addresses: Arc<AddressVector>,
    pub(super) remotes: Remotes,
    pub(super) inbox: Inbox,
    pub(super) handshakes: Handshakes,
    pub(super) lines: SideConnections,
    /// Peers whose associations have side messages to send, by index.
    pub(super) talkers: Vec<u32>,
    /// Peers whose messages wait for room here, in order of arrival.
    pub(super) waiting: VecDeque<u32>,
    /// Received Close and Closed messages that wait to be processed, by association.
    pub(super) leaving: Vec<(u32, CloseMessage)>,
    pub(super) shared: Arc<EndpointShared>,
    pub(super) path_packets: Vec<u64>,
    /// Packets dropped because no receive was posted and the store for such messages was full.
    pub(super) no_room_drops: u64,
    /// Time of the last upkeep.
    pub(super) upkeep_at: Time,
    /// Deadline for peers to agree to the pending clock reset, if there is one.
    pub(super) renewing: Option<Time>,
    /// Association whose packet is being processed.
    pub(super) acting: Option<u32>,
}

/// Creates the loop of an endpoint, without peers.
pub(super) fn open<B: Backend>(
    config: RdmConfig,
    mut backend: B,
    shared: Arc<EndpointShared>,
    addresses: Arc<AddressVector>,
) -> Result<Engine<B, DatagramService>, OpenError> {
    let local = backend.local_addr();
    let system = |source: io::Error| OpenError::System { address: local, source };
    let other = |text: String| system(io::Error::other(text));
    let mut first_association = [0; 4];
    getrandom::fill(&mut first_association).map_err(|error| other(error.to_string()))?;
    // Endpoints at one address have different ports, so address and queue pair identify an endpoint.
    let qp = QpNum(u32::from(local.port()));
    let rd = queue_pair(&config, qp)?;
    let lines = SideConnections::open(local).map_err(|error| OpenError::of_socket(local, error))?;
    let hears_tcp = backend.watch(lines.happenings().map_err(system)?);
    let mut io = Io::new(&config.device, &backend);
    io.next_upkeep = MAY_BEGIN_ANEW;
    io.longest_sleep = (!hears_tcp).then_some(LOOK_AT_TCP);
    let handshakes = Handshakes::new(&config).map_err(|error| other(error.to_string()))?;
    let core = DatagramService {
        io,
        rd,
        qp,
        addresses,
        remotes: Remotes::new(u32::from_ne_bytes(first_association)),
        inbox: Inbox::new(config.unexpected_bytes, config.receives_a_peer),
        handshakes,
        lines,
        talkers: Vec::new(),
        waiting: VecDeque::new(),
        leaving: Vec::new(),
        shared,
        path_packets: vec![0; usize::from(backend.paths())],
        no_room_drops: 0,
        upkeep_at: Time::ZERO,
        renewing: None,
        acting: None,
        config,
    };
    Ok(Engine { backend, core })
}

impl Service for DatagramService {
    const HAS_SIDE_CHANNEL: bool = true;
    type Transport = RdQp<AnyPolicy>;
    type Command = Command;
    type Handed = RdmCompletion;

    #[inline]
    fn io(&self) -> &Io {
        &self.io
    }
    #[inline]
    fn io_mut(&mut self) -> &mut Io {
        &mut self.io
    }
    #[inline]
    fn shared(&self) -> &Arc<EndpointShared> {
        &self.shared
    }
    #[inline]
    fn transport(&self) -> &RdQp<AnyPolicy> {
        &self.rd
    }
    #[inline]
    fn on_datagram(
        &mut self,
        now: Time,
        whence: Origin,
        ecn: Ecn,
        frame: &mut [u8],
        residue: u32,
    ) -> Option<()> {
        self.take_in(now, whence.from, ecn, frame, residue)
    }
    fn carry_out(&mut self, command: Command) {
        self.take(command);
    }
    fn advance<B: Backend>(&mut self, backend: &mut B) -> bool {
        let now = self.io.now;
        let went_on = self.go_on_with_handshakes(now, backend);
        let heard = self.poll_side(now);
        self.process_closes() | heard | went_on
    }
    fn run_timers(&mut self, now: Time) -> bool {
        if !self.io.unread && self.is_loss_due() {
            self.rd.on_timer(now);
        }
        if now >= self.io.next_upkeep {
            self.upkeep(now);
        }
        let told = self.drain_outputs();
        told | (self.make_use_of_room() && self.drain_outputs())
    }
    fn deliver_events(&mut self) -> bool {
        let told = self.drain_outputs();
        self.flush_side();
        told
    }
    #[inline]
    fn send_one(&mut self, now: Time, gate: FreePorts) -> bool {
        self.send(now, gate)
    }
    fn sent_all(&mut self, _told: bool) {}
    fn held_until(&self) -> Option<Time> {
        None
    }
    fn flush_held<B: Backend>(&mut self, _backend: &mut B) {}
    /// The scan declares packets missing that have not arrived.
    fn is_loss_due(&self) -> bool {
        self.rd.poll_timer().is_some_and(|due| due <= self.io.now)
    }
    fn next_timer(&self) -> Option<Time> {
        let upkeep = Some(self.io.next_upkeep).filter(|&at| at < Time::MAX);
        let timers = [
            self.rd.poll_timer(),
            self.handshakes.next_timer(),
            self.io.waits_for_line,
            self.lines.next_timer(),
            upkeep,
        ];
        timers.into_iter().flatten().min()
    }
    #[inline]
    fn act_for_nobody(&mut self) {
        self.acting = None;
    }
    /// All peers share one queue pair, which cannot be dropped like that of a connection. The peer is removed from it
    /// instead, like one that has not answered. Timers and transmissions serve all peers together, and count as no
    /// peer's work.
    #[cold]
    fn give_up_acting(&mut self, bug: &str) -> bool {
        let Some(id) = self.acting.take() else { return false };
        log::error!(
            "messages with peer {} are aborted: the loop panicked over its packet, which is a bug: {bug}",
            index_of(id),
        );
        self.fail(index_of(id), Status::LocalOperation);
        true
    }
    fn abandon(&mut self) {
        self.send_closes();
        self.flush_side();
        self.lines.finish(self.io.now, LAST_WORDS);
        for index in self.remotes.indices() {
            self.fail(index, Status::Flushed);
        }
        for posted in self.inbox.drain() {
            self.end_receive(posted.handle, None, Status::Flushed, 0);
        }
    }
}

impl DatagramService {
    /// Takes all events and side messages out of the transport. Returns true if there were any.
    pub(super) fn drain_outputs(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.rd.poll_event() {
            any = true;
            match event {
                RdEvent::Delivered { from, msg, bytes } => {
                    let filled = self.inbox.delivered(index_of(from.host.0), msg, bytes);
                    self.end_filled(filled);
                }
                RdEvent::Abandoned { from, msg } => {
                    let filled = self.inbox.abandoned(&self.io.places, index_of(from.host.0), msg);
                    self.end_filled(filled);
                }
                RdEvent::Completion { wr_id, to, status, .. } => {
                    if let Some((index, association)) = self.remotes.of_id(to.host.0) {
                        association.outstanding -= 1;
                        self.end_send(wr_id, index, status);
                        self.post_pending(index);
                    }
                }
            }
        }
        while let Some((HostId(id), message)) = self.rd.poll_side() {
            any = true;
            self.queue_message(id, message);
        }
        if any {
            self.shared.notify();
        }
        any
    }

    /// Returns the state of the peer of this entry; creates it if necessary.
    pub(super) fn meet(&mut self, entry: &Arc<PeerEntry>) -> &mut Remote {
        self.inbox.meet(entry.peer);
        self.remotes.meet(self.io.now, entry)
    }

    /// Completes filled receives.
    pub(super) fn end_filled(&mut self, filled: impl IntoIterator<Item = Filled>) {
        for Filled { posted, by, status, bytes } in filled {
            let by = match by {
                Sender::Known(index) => self.remotes.get(index).map(|remote| remote.entry.peer),
                Sender::Forgotten(peer) => Some(peer),
            };
            self.end_receive(posted.handle, by, status, bytes);
        }
    }

    pub(super) fn end_receive(&mut self, handle: u64, peer: Option<Peer>, status: Status, byte_len: u64) {
        let Some(place) = self.io.places.remove(handle) else { return };
        let opcode = Opcode::Recv;
        self.shared.handed.push(RdmCompletion { wr_id: place.wr_id, peer, status, opcode, byte_len });
    }

    /// Completes a message to a peer.
    pub(super) fn end_send(&mut self, handle: u64, index: u32, status: Status) {
        let Some(place) = self.io.places.remove(handle) else { return };
        let byte_len = if status == Status::Success { place.memory.len() as u64 } else { 0 };
        let remote = self.remotes.get_mut(index);
        let peer = remote.map(|remote| {
            remote.entry.room.give_back();
            remote.entry.peer
        });
        let opcode = Opcode::Send;
        self.shared.handed.push(RdmCompletion { wr_id: place.wr_id, peer, status, opcode, byte_len });
    }

    /// Returns the time for which a peer may be silent.
    pub(super) fn give_up(&self) -> Duration {
        self.config.device.peer_timeout
    }

    /// Returns the source port of a path.
    pub(super) fn port_of(&self, path: usize) -> u16 {
        self.io.ports.get(path).copied().unwrap_or(0)
    }
}
