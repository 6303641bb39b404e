//! Interface between the loop and a transport service.

use std::any::Any;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use pathweave_transport::{FreePorts, Transport};
use pathweave_units::{PathId, Time};
use pathweave_wire::Ecn;

use super::{Io, Left};
use crate::backend::{Backend, Rail, Received};
use crate::crc;
use crate::shared::Shared;

/// Largest number of commands that one turn takes, so that arrivals do not wait.
const COMMANDS_A_TURN: usize = 256;
/// Largest number of packets that one turn sends; arrivals are checked in between.
const PACKETS_A_TURN: usize = 256;
/// Number of packets between two readings of the clock: the packets of a batch leave at the same time anyway.
const PACKETS_A_LOOK: usize = 32;

/// Time at which the application's hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenToCall {
    /// At once when there are events for it.
    Now,
    /// Not while a request is being posted: the posting thread may hold a lock that the hook needs.
    NextTurn,
}

/// Origin of a datagram, and the socket at which it arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) from: SocketAddr,
    pub(crate) rail: Rail,
    /// Path at whose port it arrived; `None`: the port at which peers usually reach this end.
    pub(crate) at: Option<PathId>,
}

/// A transport service with its peers, on sockets. The loop calls the required methods. The provided methods are the
/// parts that are the same for all services.
pub(crate) trait Service: Send + Sized {
    /// True if control messages travel on a side channel instead of the backend, so that each turn must check it.
    const HAS_SIDE_CHANNEL: bool;
    type Transport: Transport;
    /// Request of the application, and item handed to the application.
    type Command;
    type Handed;

    fn io(&self) -> &Io;
    fn io_mut(&mut self) -> &mut Io;
    fn shared(&self) -> &Arc<Shared<Self::Command, Self::Handed>>;
    fn transport(&self) -> &Self::Transport;

    /// Processes an arrived datagram. `residue`: CRC tag of an intact unprotected frame. Returns `None` if the
    /// datagram is refused.
    fn on_datagram(
        &mut self,
        now: Time,
        whence: Origin,
        ecn: Ecn,
        frame: &mut [u8],
        residue: u32,
    ) -> Option<()>;
    /// Carries out a request of the application.
    fn carry_out(&mut self, command: Self::Command);
    /// Advances handshakes and the side channel. Returns true if there was anything to do.
    fn advance<B: Backend>(&mut self, backend: &mut B) -> bool;
    /// Handles timers and silent peers. Returns true if there were events for the application.
    fn run_timers(&mut self, now: Time) -> bool;
    /// Delivers the transport's events to the application. Returns true if there were any.
    fn deliver_events(&mut self) -> bool;
    /// Writes the transport's next packet, if there is one, into a batch, or holds it so that it can share one with
    /// others.
    fn send_one(&mut self, now: Time, gate: FreePorts) -> bool;
    /// Called when all packets of a turn are in their batches. `told`: the application has just received events.
    fn sent_all(&mut self, told: bool);
    /// Returns the time until which packets are held, or `None` if there are none.
    fn held_until(&self) -> Option<Time>;
    /// Sends held packets.
    fn flush_held<B: Backend>(&mut self, backend: &mut B);
    /// Returns true if a timer is due after which packets count as lost.
    fn is_loss_due(&self) -> bool;
    fn next_timer(&self) -> Option<Time>;
    /// Marks the following work as that of no peer, until a peer is named.
    fn act_for_nobody(&mut self);
    /// Gives up the peer at work after a panic with the message `bug`: its outstanding work fails. Returns false if
    /// no peer was at work.
    fn give_up_acting(&mut self, bug: &str) -> bool;
    /// Returns true if the loop is to end and no peer needs to be informed any more.
    fn is_finished(&self) -> bool {
        self.io().stop_by.is_some()
    }
    /// Fails all outstanding work, since the loop has ended.
    fn abandon(&mut self);

    /// Runs work each step of which belongs to one peer. Returns `None` after a panic: that peer has been given up,
    /// and others are not affected. If no peer was at work, the bug is the loop's own. The panic then continues, and
    /// the loop ends with an error.
    // The cost is that of a call: nothing is set up in advance for a panic.
    #[inline]
    fn contain<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.act_for_nobody();
        match catch_unwind(AssertUnwindSafe(|| work(self))) {
            Ok(value) => Some(value),
            Err(panic) => {
                if !self.give_up_acting(message(&*panic)) {
                    resume_unwind(panic);
                }
                self.io_mut().counts.panics += 1;
                self.io_mut().settled = false;
                self.shared().notify();
                None
            }
        }
    }

    /// Takes the application's requests, but only so many that arrivals do not wait. Returns true if there were any.
    fn take_commands(&mut self) -> bool {
        self.take_some_commands(COMMANDS_A_TURN)
    }

    /// Takes at most `most` commands.
    fn take_some_commands(&mut self, most: usize) -> bool {
        let mut any = false;
        for _ in 0..most {
            let Some(command) = self.shared().commands.pop() else { break };
            if !any {
                self.io_mut().tick();
                any = true;
            }
            self.contain(|service| service.carry_out(command));
        }
        any
    }

    /// Calls the application's hook if there are events, and carries out its requests before anything else.
    fn call_hook(&mut self) {
        let Some(result) = self.shared().call_hook() else { return };
        if let Err(panic) = result {
            log::error!("the hook of {} has panicked: {}", self.io().local, message(&*panic));
            self.io_mut().counts.panics += 1;
        }
        self.take_waiting_commands();
    }

    /// Takes all requests that the application has made so far.
    fn take_waiting_commands(&mut self) {
        let asked = self.shared().commands.len();
        self.take_some_commands(asked);
    }

    /// Processes arrived datagrams.
    fn on_received(&mut self, received: Received<'_>) {
        // A packet may use memory whose key the application passed to the peer outside this device, after it had
        // requested the registration. Requests made before the packet arrived are therefore carried out first.
        if !self.shared().commands.is_empty() {
            self.take_waiting_commands();
        }
        let io = self.io_mut();
        // Arrival time according to the kernel, if known, and not the time at which the loop got to the packets. It
        // never precedes the time last given to the transport.
        let at = match received.age_ns {
            Some(age_ns) => io.clock.ago(age_ns),
            None => io.clock.now(),
        };
        io.now = at.max(io.now);
        io.counts.received_bytes += received.bytes.len() as u64;
        let whence = Origin { from: received.from, rail: received.rail, at: received.at };
        let each = received.segment_bytes.max(1);
        let marked = u64::from(received.ecn == Ecn::Experienced);
        for frames in received.bytes.chunks_mut(each * crc::AT_ONCE) {
            let residues = crc::residues(frames, each);
            // Position at which processing continues if a frame causes a panic.
            let mut next = 0;
            while next < frames.len() {
                self.contain(|service| {
                    while next < frames.len() {
                        let residue = residues[next / each];
                        let end = frames.len().min(next + each);
                        let frame = &mut frames[std::mem::replace(&mut next, end)..end];
                        service.act_for_nobody();
                        let io = service.io_mut();
                        io.counts.received_datagrams += 1;
                        io.counts.marked_datagrams += marked;
                        // Read again for each frame: data that a frame releases is stamped with a later time.
                        let now = io.now;
                        if service.on_datagram(now, whence, received.ecn, frame, residue).is_none() {
                            service.io_mut().counts.refused_datagrams += 1;
                        }
                    }
                });
            }
        }
    }

    /// Produces all outputs after an input.
    fn after_input<B: Backend>(&mut self, backend: &mut B, hook: WhenToCall) -> Left {
        self.io_mut().tick();
        let mut active = self.contain(|service| service.advance(backend)).unwrap_or(true);
        let now = self.io().now;
        // The application receives its events first, so that it can work in parallel.
        let told = self.contain(|service| service.run_timers(now)).unwrap_or(true);
        active |= told;
        match hook {
            WhenToCall::Now => self.call_hook(),
            WhenToCall::NextTurn => {}
        }
        // After a panic, other peers may have more to send.
        let (packets, left) =
            self.contain(|service| service.collect(PACKETS_A_TURN)).unwrap_or((1, Left::More));
        self.contain(|service| service.sent_all(told));
        self.io_mut().outbound.flush(backend);
        // Sending may produce events, too.
        active |= self.contain(Self::deliver_events).unwrap_or(true);
        match left {
            _ if packets > 0 => left,
            _ if active => Left::Done,
            _ => Left::Idle,
        }
    }

    /// Takes at most `most` packets from the transport.
    fn collect(&mut self, most: usize) -> (usize, Left) {
        let mut now = self.io().now;
        let mut packets = 0;
        loop {
            if packets == most {
                return (packets, Left::More);
            }
            let io = self.io_mut();
            let open = io.line.is_open(now);
            let gate = if open && !io.outbound.is_full() { FreePorts::OPEN } else { FreePorts::CONTROL };
            if !self.send_one(now, gate) {
                let waits = !open && self.transport().has_ready_data();
                let io = self.io_mut();
                io.waits_for_line = waits.then(|| io.line.opens_at());
                return (packets, Left::Done);
            }
            packets += 1;
            if packets % PACKETS_A_LOOK == 0 {
                now = self.io_mut().tick();
            }
        }
    }
}

/// Returns the message of a panic.
pub(crate) fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}
