//! What a transport service adds to the loop.

use std::any::Any;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use pathweave_transport::{Gate, Transport};
use pathweave_units::{PathId, Time};
use pathweave_wire::Ecn;

use super::{Io, Left};
use crate::backend::{Backend, Rail, Received};
use crate::shared::Shared;
use crate::sum;

/// Commands one turn takes, so that arrivals are not kept waiting.
const COMMANDS_A_TURN: usize = 256;
/// Packets of a turn; arrivals are looked at in between.
const PACKETS_A_TURN: usize = 256;
/// Packets between two looks at the clock: those of a batch leave at one time anyway.
const PACKETS_A_LOOK: usize = 32;

/// When the application's hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenToCall {
    /// As soon as the application can be told.
    Now,
    /// Not while a request is being posted: who posts may hold what the hook wants to have.
    NextTurn,
}

/// Where a datagram comes from, and where it has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whence {
    pub(crate) from: SocketAddr,
    pub(crate) rail: Rail,
    /// At the port of this path, or, `None`, where peers usually reach this end.
    pub(crate) at: Option<PathId>,
}

/// A transport service with its peers, on sockets. The loop calls it; what it does the same way for every service it does
/// itself, in the methods that have bodies.
pub(crate) trait Service: Send + Sized {
    /// What is said beside packets comes by another way than the backend, which is looked at in each turn.
    const HAS_SIDE_CHANNEL: bool;
    type Transport: Transport;
    /// What the application asks for, and what it is handed.
    type Command;
    type Handed;

    fn io(&self) -> &Io;
    fn io_mut(&mut self) -> &mut Io;
    fn shared(&self) -> &Arc<Shared<Self::Command, Self::Handed>>;
    fn transport(&self) -> &Self::Transport;

    /// A datagram has arrived. `residue`: the tag it has if it is unprotected and intact. `None`: it is nothing of ours.
    fn on_datagram(
        &mut self,
        now: Time,
        whence: Whence,
        ecn: Ecn,
        frame: &mut [u8],
        residue: u32,
    ) -> Option<()>;
    /// Carries out what the application asks for.
    fn carry_out(&mut self, command: Self::Command);
    /// Goes on with handshakes, and with what is said beside packets. Returns whether there was anything to do.
    fn go_on<B: Backend>(&mut self, backend: &mut B) -> bool;
    /// What time brings: timers, silent peers. Tells the application, and returns whether it did.
    fn look_after(&mut self, now: Time) -> bool;
    /// Tells the application what the transport has to say. Returns whether it had anything.
    fn tell(&mut self) -> bool;
    /// Puts the transport's next packet, if there is one, into a batch, or keeps it to go along with others.
    fn send_one(&mut self, now: Time, gate: Gate) -> bool;
    /// All packets of a turn have been put where they belong. `told`: the application has just been told something.
    fn sent_all(&mut self, told: bool);
    /// Until when packets are held back, if any are.
    fn held_until(&self) -> Option<Time>;
    /// Sends what is held back.
    fn flush_held<B: Backend>(&mut self, backend: &mut B);
    /// Whether a timer is due for which packets count as lost.
    fn is_loss_due(&self) -> bool;
    fn next_timer(&self) -> Option<Time>;
    /// What follows is the work of no peer, until one is named.
    fn act_for_nobody(&mut self);
    /// A bug has struck, which says so much. The peer at work loses what is under way. False: no peer was.
    fn give_up_acting(&mut self, bug: &str) -> bool;
    /// Whether the loop is to end, and no peer is left that is yet to hear of it.
    fn has_left(&self) -> bool {
        self.io().stop_by.is_some()
    }
    /// Fails all that is under way: the loop has ended.
    fn abandon(&mut self);

    /// Does something in which each step is the work of one peer. `None` after a panic: that peer has been given up, and
    /// no other notices. Where no peer was at work the bug is the loop's own, and the panic goes on: the loop ends, and says
    /// why.
    // Costs what a call costs: nothing is set up for a panic that does not come.
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
                self.shared().tell();
                None
            }
        }
    }

    /// Takes what the application asks for, so much of it that arrivals are not kept waiting. Returns whether there was anything.
    fn take_commands(&mut self) -> bool {
        self.take_some_commands(COMMANDS_A_TURN)
    }

    /// Takes at most so many commands.
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

    /// Where something has happened, the application's hook looks at it, and what it asks for is done before anything else.
    fn call_hook(&mut self) {
        let Some(result) = self.shared().call_hook() else { return };
        if let Err(panic) = result {
            log::error!("the hook of {} has panicked: {}", self.io().local, message(&*panic));
            self.io_mut().counts.panics += 1;
        }
        self.take_waiting_commands();
    }

    /// Takes all that the application has asked for until now.
    fn take_waiting_commands(&mut self) {
        let asked = self.shared().commands.len();
        self.take_some_commands(asked);
    }

    /// Datagrams have arrived.
    fn on_received(&mut self, received: Received<'_>) {
        // A packet may use memory whose key the application gave to the peer by other means than this device, after it had asked
        // for the memory to be opened. So what was asked for before the packet arrived is done before the packet is.
        if !self.shared().commands.is_empty() {
            self.take_waiting_commands();
        }
        let io = self.io_mut();
        // When they arrived, if the kernel says so, rather than when the loop got round to them; but never before what
        // the transport was told last.
        let at = match received.age_ns {
            Some(age_ns) => io.clock.ago(age_ns),
            None => io.clock.now(),
        };
        io.now = at.max(io.now);
        io.counts.received_bytes += received.bytes.len() as u64;
        let whence = Whence { from: received.from, rail: received.rail, at: received.at };
        let each = received.segment_bytes.max(1);
        let marked = u64::from(received.ecn == Ecn::Experienced);
        for frames in received.bytes.chunks_mut(each * sum::AT_ONCE) {
            let residues = sum::residues(frames, each);
            // From where it goes on if one of them is the undoing of its peer.
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
                        // Anew for each: what one of them releases is stamped with a later time.
                        let now = io.now;
                        if service.on_datagram(now, whence, received.ecn, frame, residue).is_none() {
                            service.io_mut().counts.refused_datagrams += 1;
                        }
                    }
                });
            }
        }
    }

    /// After every input, all outputs.
    fn after_input<B: Backend>(&mut self, backend: &mut B, hook: WhenToCall) -> Left {
        self.io_mut().tick();
        let mut active = self.contain(|service| service.go_on(backend)).unwrap_or(true);
        let now = self.io().now;
        // The application hears first: it has work to do, too.
        let told = self.contain(|service| service.look_after(now)).unwrap_or(true);
        active |= told;
        match hook {
            WhenToCall::Now => self.call_hook(),
            WhenToCall::NextTurn => {}
        }
        // After a panic there is more, of others.
        let (packets, left) =
            self.contain(|service| service.collect(PACKETS_A_TURN)).unwrap_or((1, Left::More));
        self.contain(|service| service.sent_all(told));
        self.io_mut().outbound.flush(backend);
        // Sending may end something, too.
        active |= self.contain(Self::tell).unwrap_or(true);
        match left {
            _ if packets > 0 => left,
            _ if active => Left::Done,
            _ => Left::Idle,
        }
    }

    /// Takes packets of the transport, at most so many.
    fn collect(&mut self, most: usize) -> (usize, Left) {
        let mut now = self.io().now;
        let mut packets = 0;
        loop {
            if packets == most {
                return (packets, Left::More);
            }
            let io = self.io_mut();
            let open = io.line.is_open(now);
            let gate = if open && !io.outbound.is_full() { Gate::OPEN } else { Gate::CONTROL };
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

/// What a panic says.
pub(crate) fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it does not say what")
}
