//! What a responder remembers of one request.

use std::net::SocketAddr;

use aws_lc_rs::hmac;
use pathweave_units::Time;

use super::super::hello::Hello;
use super::super::negotiate::Agreed;
use super::super::noise::Noise;
use super::super::session::Session;
use super::super::timing::Backoff;

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
    pub(super) from: SocketAddr,
    pub(super) noise: Noise,
    pub(super) hello: Hello,
    pub(super) until: Time,
}

pub(super) struct Offer {
    pub(super) from: SocketAddr,
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
