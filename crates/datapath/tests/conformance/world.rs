//! What the script asks of a side: two ends with memory, a connection between them, and a network to spoil.

use std::ops::Range;
use std::time::Duration;

use pathweave_datapath::backend::{Faults, Happened};
use pathweave_datapath::rdm::{Delivery, RdCounters};
use pathweave_datapath::secure::{Protection, Rotation};
use pathweave_datapath::{Counters, Opcode, Status};

/// Payload of a full packet, in bytes.
pub(crate) const MTU: usize = 1_344;
/// Paths between the ends.
pub(crate) const PATHS: u16 = 8;
/// The schemes of both sides: of connections, and of datagrams.
pub(crate) const SCHEME: &str = "udmp";
pub(crate) const DATAGRAM_SCHEME: &str = "erd";

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Opens the connection.
    Near,
    /// Accepts it.
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

/// What a request does.
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

/// Whether a request names the other end's memory by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Right,
    Wrong,
}

/// A request, in offsets of the memory each end has.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) wr_id: u64,
    pub(crate) verb: Verb,
    /// Where the bytes are; for a READ, where they go.
    pub(crate) local: Range<usize>,
    /// Where they go at the other end; for a READ, where they are. SENDs do not look at it.
    pub(crate) remote: usize,
    pub(crate) imm: u32,
    pub(crate) key: Key,
    pub(crate) start: Start,
}

/// The moment at which a request starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    AtOnce,
    /// All requests before it are complete.
    Fenced,
}

/// A completion, without what differs between sides: their numbers for connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) wr_id: u64,
    pub(crate) status: Status,
    pub(crate) opcode: Opcode,
    pub(crate) byte_len: u64,
    pub(crate) imm: Option<u32>,
}

/// What a side is opened with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) seed: u64,
    /// What happens to each packet of both directions.
    pub(crate) faults: Faults,
    /// Memory of each end, open to the other.
    pub(crate) memory_bytes: usize,
    /// How long the other end may be silent.
    pub(crate) peer_timeout: Duration,
    pub(crate) protection: Protection,
    /// `None`: [`SCHEME`] or [`DATAGRAM_SCHEME`].
    pub(crate) scheme: Option<&'static str>,
    /// Of the simulated side: for which hosts the scheme is set up.
    pub(crate) hosts: Hosts,
    /// Of the simulated side: how much later a packet comes that is late.
    pub(crate) latest: Duration,
    /// Of the simulated side: packets of a direction before its keys change.
    pub(crate) packets_a_key: u64,
    /// Of the simulated side: PSN of the first packet on the wire.
    pub(crate) first_psn: u64,
}

/// For which hosts a scheme is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hosts {
    /// Those of the simulator, which take no time.
    Simulated,
    /// Those that are made of software.
    Software,
}

impl Setup {
    /// The scheme of the script, unprotected.
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

/// A side. Everything panics that cannot go wrong in what the script does.
pub(crate) trait World: Sized {
    /// For messages.
    const NAME: &'static str;
    /// What its service can do, and the shortest message it takes.
    const VERBS: &'static [Verb] = &Verb::ALL;
    const SHORTEST: usize = 0;
    /// Whether completions come in the order of posting.
    const ORDER: Order = Order::OfPosting;
    /// True if requests can wait for those before them.
    const FENCES: Fences = Fences::Missing;

    /// Two ends, connected; their memory is zero.
    fn open(setup: &Setup) -> Self;
    /// Cuts exactly the paths whose bits are set, both ways.
    fn cut(&mut self, paths: u64);
    /// Loses packets of more bytes; `usize::MAX` are none.
    fn narrow(&mut self, longest: usize);
    /// One of the ends stands still, while what comes waits for it.
    fn stall(&mut self, time: Duration);
    /// Lets time go by.
    fn pass(&mut self, time: Duration);
    /// Posts a request at `end`.
    fn post(&mut self, end: End, request: &Request);
    /// Posts a receive at `end`.
    fn receive(&mut self, end: End, wr_id: u64, place: Range<usize>);
    /// The next completion at `end`; `None` if there is none however long one waits.
    fn next(&mut self, end: End) -> Option<Done>;
    /// Changes the memory of `end`, from `offset` on.
    fn write(&mut self, end: End, offset: usize, bytes: &[u8]);
    /// The memory of `end`.
    fn memory(&self, end: End) -> Vec<u8>;
    /// What the network has done to both ends so far.
    fn troubles(&mut self) -> Troubles;
    /// Ends the world. What happened to all packets in it.
    fn close(self) -> Happened;
    /// What both ends know of each other, for a completion that should not have come.
    fn state(&mut self) -> String {
        String::new()
    }
}

/// A side whose ends can be lost and connected with again.
pub(crate) trait Restarts: World {
    /// The far end crashes: it hears nothing and says nothing more, not even that it goes.
    fn crash_far(&mut self);
    /// After a crash: it is back at its address, its memory zero, and knows nothing.
    fn revive_far(&mut self);
    /// A new connection in the place of the old one.
    fn reconnect(&mut self);
}

/// True if requests can wait for those before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fences {
    Missing,
    Kept,
}

/// The order in which completions come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    OfPosting,
    /// Those of receives come in that of posting, those of requests as messages become whole.
    OfReceives,
    /// As messages become whole.
    Any,
}

/// How datagrams are told.
pub(crate) trait Told {
    const NAMES: [&'static str; 2];
    const DELIVERY: Delivery;
    const ORDER: Order;
}

/// As they become whole.
pub(crate) enum AsWhole {}
/// In the order of posting.
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

/// What a network did to a side: that there were faults at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Troubles {
    /// Data packets sent again.
    pub(crate) retransmitted: u64,
    /// Datagrams refused as damaged.
    pub(crate) refused: u64,
    /// Data packets that had arrived before.
    pub(crate) duplicates: u64,
    /// Data packets that arrived behind later ones.
    pub(crate) out_of_order: u64,
}

impl Troubles {
    pub(crate) fn of(counters: &Counters, refused: u64) -> Self {
        Troubles {
            retransmitted: counters.retransmitted,
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
