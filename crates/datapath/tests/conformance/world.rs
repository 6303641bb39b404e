//! Interface of a side for the script: two ends with memory, a connection between them, and a network with faults.

use std::ops::Range;
use std::time::Duration;

use pathweave_datapath::backend::{FaultCounters, Faults};
use pathweave_datapath::rdm::{Delivery, RdCounters};
use pathweave_datapath::secure::{Protection, Rotation};
use pathweave_datapath::{Counters, Opcode, Status};

/// Payload of a full packet, in bytes.
pub(crate) const MTU: usize = 1_344;
/// Number of paths between the ends.
pub(crate) const PATHS: u16 = 8;
/// Schemes of both sides: of connections, and of datagrams.
pub(crate) const SCHEME: &str = "udmp";
pub(crate) const DATAGRAM_SCHEME: &str = "erd";

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The end that opens the connection.
    Near,
    /// The end that accepts it.
    Far,
}

impl End {
    pub(crate) const BOTH: [End; 2] = [End::Near, End::Far];

    pub(crate) fn other(self) -> End {
        if self == End::Near { End::Far } else { End::Near }
    }
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Send,
    SendImm,
    Write,
    WriteImm,
    Read,
}

impl Verb {
    pub(crate) const ALL: [Verb; 5] = [Verb::Send, Verb::SendImm, Verb::Write, Verb::WriteImm, Verb::Read];
}

/// Validity of the key by which a request names the other end's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Right,
    Wrong,
}

/// A request, in offsets of each end's memory.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) wr_id: u64,
    pub(crate) verb: Verb,
    /// Local bytes: the source; for a READ, the destination.
    pub(crate) local: Range<usize>,
    /// Remote offset: the destination; for a READ, the source. SENDs ignore it.
    pub(crate) remote: usize,
    pub(crate) imm: u32,
    pub(crate) key: Key,
    pub(crate) start: Start,
}

/// Condition under which a request starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    AtOnce,
    /// After all requests before it are complete.
    Fenced,
}

/// A completion, without the connection number, which differs between sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) wr_id: u64,
    pub(crate) status: Status,
    pub(crate) opcode: Opcode,
    pub(crate) byte_len: u64,
    pub(crate) imm: Option<u32>,
}

/// Parameters of a side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) seed: u64,
    /// Faults of each packet, in both directions.
    pub(crate) faults: Faults,
    /// Length of each end's memory, which the other end can access; in bytes.
    pub(crate) memory_bytes: usize,
    /// Time for which the other end may be silent.
    pub(crate) peer_timeout: Duration,
    pub(crate) protection: Protection,
    /// Scheme; `None`: [`SCHEME`] or [`DATAGRAM_SCHEME`].
    pub(crate) scheme: Option<&'static str>,
    /// Simulated side only: hosts to which the scheme is adapted.
    pub(crate) hosts: Hosts,
    /// Simulated side only: largest additional delay of a late packet.
    pub(crate) latest: Duration,
    /// Simulated side only: packets of a direction before its keys change.
    pub(crate) packets_a_key: u64,
    /// Simulated side only: PSN of the first packet on the wire.
    pub(crate) first_psn: u64,
}

/// Hosts to which a scheme is adapted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hosts {
    /// Hosts of the simulator, which add no delay.
    Simulated,
    /// Software hosts.
    Software,
}

impl Setup {
    /// Returns a setup with the scheme of the script, unprotected.
    pub(crate) fn new(seed: u64, faults: Faults, memory_bytes: usize, peer_timeout: Duration) -> Self {
        Setup {
            seed,
            faults,
            memory_bytes,
            peer_timeout,
            protection: Protection::Insecure,
            scheme: None,
            hosts: Hosts::Simulated,
            latest: Duration::from_micros(20),
            packets_a_key: Rotation::default().packets,
            first_psn: 0,
        }
    }
}

/// A side. Operations that cannot fail in the script panic on failure.
pub(crate) trait World: Sized {
    /// Name for messages.
    const NAME: &'static str;
    /// Verbs of its service, and the length of the shortest message.
    const VERBS: &'static [Verb] = &Verb::ALL;
    const SHORTEST: usize = 0;
    /// Order in which completions come.
    const ORDER: Order = Order::OfPosting;
    /// Support for requests that wait for earlier ones.
    const FENCES: Fences = Fences::Missing;

    /// Opens two connected ends; their memory is zero.
    fn open(setup: &Setup) -> Self;
    /// Cuts exactly the paths whose bits are set, in both directions.
    fn cut(&mut self, paths: u64);
    /// Drops packets longer than this; `usize::MAX` disables it.
    fn narrow(&mut self, longest: usize);
    /// Stalls one of the ends; packets wait for it.
    fn stall(&mut self, time: Duration);
    /// Lets time pass.
    fn pass(&mut self, time: Duration);
    /// Posts a request at `end`.
    fn post(&mut self, end: End, request: &Request);
    /// Posts a receive at `end`.
    fn receive(&mut self, end: End, wr_id: u64, place: Range<usize>);
    /// Returns the next completion at `end`, or `None` if none will come.
    fn next(&mut self, end: End) -> Option<Done>;
    /// Writes the memory of `end` from `offset` on.
    fn write(&mut self, end: End, offset: usize, bytes: &[u8]);
    /// Returns the memory of `end`.
    fn memory(&self, end: End) -> Vec<u8>;
    /// Returns the effects of faults on both ends so far.
    fn troubles(&mut self) -> Troubles;
    /// Ends the world. Returns the fate of all its packets.
    fn close(self) -> FaultCounters;
    /// Returns the state of both ends, for a report on an unexpected completion.
    fn state(&mut self) -> String {
        String::new()
    }
}

/// A side whose ends can crash and be connected again.
pub(crate) trait Restarts: World {
    /// Crashes the far end: it receives and sends nothing more, not even a Close.
    fn crash_far(&mut self);
    /// Restarts the far end after a crash, at its address, with zero memory and no state.
    fn revive_far(&mut self);
    /// Replaces the connection by a new one.
    fn reconnect(&mut self);
}

/// Support for requests that wait for earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fences {
    Missing,
    Kept,
}

/// Order in which completions come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    OfPosting,
    /// Completions of receives come in the order of posting, those of requests as messages become complete.
    OfReceives,
    /// Completions come as messages become complete.
    Any,
}

/// Delivery order of datagrams.
pub(crate) trait Told {
    const NAMES: [&'static str; 2];
    const DELIVERY: Delivery;
    const ORDER: Order;
}

/// Delivery as messages become complete.
pub(crate) enum AsWhole {}
/// Delivery in the order of posting.
pub(crate) enum InOrder {}

impl Told for AsWhole {
    const NAMES: [&'static str; 2] = ["simulated datagrams", "real datagrams"];
    const DELIVERY: Delivery = Delivery::Unordered;
    const ORDER: Order = Order::Any;
}
impl Told for InOrder {
    const NAMES: [&'static str; 2] = ["simulated datagrams in order", "real datagrams in order"];
    const DELIVERY: Delivery = Delivery::Ordered;
    const ORDER: Order = Order::OfReceives;
}

/// Effects of faults on a side, as evidence that they occurred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Troubles {
    /// Data packets retransmitted.
    pub(crate) retransmitted: u64,
    /// Datagrams refused as damaged.
    pub(crate) refused: u64,
    /// Data packets that had arrived before.
    pub(crate) duplicates: u64,
    /// Data packets that arrived after later ones.
    pub(crate) out_of_order: u64,
}

impl Troubles {
    pub(crate) fn of(counters: &Counters, refused: u64) -> Self {
        Troubles {
            retransmitted: counters.retransmitted_packets,
            refused,
            duplicates: counters.duplicates,
            out_of_order: counters.out_of_order_packets(),
        }
    }

    pub(crate) fn of_datagrams(counters: &RdCounters, refused: u64) -> Self {
        let RdCounters { retransmitted, duplicates, out_of_order, .. } = *counters;
        Troubles { retransmitted, refused, duplicates, out_of_order }
    }
}

impl std::ops::Add for Troubles {
    type Output = Troubles;

    fn add(self, other: Troubles) -> Troubles {
        Troubles {
            retransmitted: self.retransmitted + other.retransmitted,
            refused: self.refused + other.refused,
            duplicates: self.duplicates + other.duplicates,
            out_of_order: self.out_of_order + other.out_of_order,
        }
    }
}
