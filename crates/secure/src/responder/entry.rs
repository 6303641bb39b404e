//! What a responder remembers of one request.

use core::net::SocketAddr;

use aws_lc_rs::hmac;
use pathweave_units::Time;

use super::super::hello::Hello;
use super::super::negotiate::Agreed;
use super::super::noise::Noise;
use super::super::session::Session;
use super::super::timing::Backoff;

/// Where a request was heard. The first address stays, and the latest other one is kept beside it: an initiator whose
/// path is dead asks from others.
///
/// An observer of an Initiate can repeat it from another port, so an address where it was heard again is one to answer to
/// and no more. Where the peer is says what only it could have sent: its Confirm, or its first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heard {
    first: SocketAddr,
    other: Option<SocketAddr>,
}

impl Heard {
    pub(super) fn at(from: SocketAddr) -> Self {
        Heard { first: from, other: None }
    }
    pub(super) fn again_at(&mut self, from: SocketAddr) {
        if from != self.first {
            self.other = Some(from);
        }
    }
    /// All that are known.
    pub(super) fn each(self) -> impl Iterator<Item = SocketAddr> {
        core::iter::once(self.first).chain(self.other)
    }
    /// Where answers go once a packet has come from `source`, which may be the port of a path that has no listener.
    pub(super) fn proven_by_packet(self, source: SocketAddr) -> SocketAddr {
        self.each().find(|known| *known == source).unwrap_or(self.first)
    }
}

/// How far a request has come.
pub(super) enum Entry {
    /// The application has been asked.
    Asked(Box<Asked>),
    /// Accepted; nothing heard from the initiator since.
    Offered(Box<Offer>),
    /// Established. Kept until its cookie has expired.
    Done { until: Time },
}

pub(super) struct Asked {
    pub(super) heard: Heard,
    pub(super) noise: Noise,
    pub(super) hello: Hello,
    pub(super) until: Time,
}

pub(super) struct Offer {
    pub(super) heard: Heard,
    pub(super) accept: Vec<u8>,
    pub(super) confirm_key: hmac::Key,
    pub(super) session: Session,
    pub(super) agreed: Agreed,
    pub(super) peer: Hello,
    pub(super) backoff: Backoff,
    pub(super) until: Time,
}

impl Entry {
    /// When something is to be done about it.
    pub(super) fn due(&self) -> Time {
        match self {
            Entry::Asked(asked) => asked.until,
            Entry::Offered(offer) => offer.until.min(offer.backoff.due()),
            Entry::Done { until } => *until,
        }
    }
}
