//! State of a responder for one request.

use core::net::SocketAddr;

use aws_lc_rs::hmac;
use pathweave_units::Time;

use super::super::hello::Hello;
use super::super::negotiate::ConnectionParams;
use super::super::noise::Noise;
use super::super::session::Session;
use super::super::timing::Backoff;

/// Addresses from which a request was received. The first address stays, and the latest other one is kept as well: an
/// initiator whose path is dead sends from other addresses.
///
/// An observer of an Initiate can repeat it from another port. Such an address therefore gets answers and nothing
/// else. Only messages that no observer can produce determine the peer's address: the Confirm, or the first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SourceAddresses {
    first: SocketAddr,
    other: Option<SocketAddr>,
}

impl SourceAddresses {
    pub(super) fn at(from: SocketAddr) -> Self {
        SourceAddresses { first: from, other: None }
    }
    pub(super) fn add_source(&mut self, from: SocketAddr) {
        if from != self.first {
            self.other = Some(from);
        }
    }
    /// Iterates over all known addresses.
    pub(super) fn each(self) -> impl Iterator<Item = SocketAddr> {
        core::iter::once(self.first).chain(self.other)
    }
    /// Returns the address for answers after a packet has come from `source`, which may be the port of a path without
    /// a listener.
    pub(super) fn answer_address(self, source: SocketAddr) -> SocketAddr {
        self.each().find(|known| *known == source).unwrap_or(self.first)
    }
}

/// Progress of a request.
pub(super) enum Entry {
    /// The application has been asked for a decision.
    AwaitingDecision(Box<Asked>),
    /// The request is accepted; the initiator has not confirmed yet.
    HalfOpen(Box<Offer>),
    /// The connection is established. The entry stays until its cookie has expired.
    Completed { until: Time },
}

pub(super) struct Asked {
    pub(super) heard: SourceAddresses,
    pub(super) noise: Noise,
    pub(super) hello: Hello,
    pub(super) until: Time,
}

pub(super) struct Offer {
    pub(super) heard: SourceAddresses,
    pub(super) accept: Vec<u8>,
    pub(super) confirm_key: hmac::Key,
    pub(super) session: Session,
    pub(super) agreed: ConnectionParams,
    pub(super) peer: Hello,
    pub(super) backoff: Backoff,
    pub(super) until: Time,
}

impl Entry {
    /// Returns the time at which the entry needs attention.
    pub(super) fn due(&self) -> Time {
        match self {
            Entry::AwaitingDecision(asked) => asked.until,
            Entry::HalfOpen(offer) => offer.until.min(offer.backoff.due()),
            Entry::Completed { until } => *until,
        }
    }
}
