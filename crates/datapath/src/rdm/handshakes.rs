//! Handshake state machines of an endpoint.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use pathweave_units::Time;

use super::address_vector::MOST_PASSING;
use super::config::RdmConfig;
use crate::scheme;
use crate::secure::{
    AttemptId, ClusterKey, HandshakeConfig, Initiator, Limits, OsRandom, Responder, ResponderConfig,
    SetupError,
};

/// Handshake state machines of an endpoint.
pub(super) struct Handshakes {
    pub(super) key: ClusterKey,
    pub(super) config: HandshakeConfig,
    pub(super) responder: Responder,
    pub(super) attempts: BTreeMap<AttemptId, Attempt>,
    /// Time at which the next attempt has a timer.
    pub(super) due: Time,
    /// True if there may be datagrams to send or events to report.
    pub(super) stirred: bool,
}

pub(super) struct Attempt {
    pub(super) initiator: Initiator,
    pub(super) index: u32,
    pub(super) id: u32,
    pub(super) to: SocketAddr,
    /// Time until which a completed attempt is kept to repeat its Confirm.
    pub(super) done_until: Option<Time>,
}

impl Handshakes {
    pub(super) fn new(config: &RdmConfig) -> Result<Self, SetupError> {
        let key = config.device.key.clone().unwrap_or_else(ClusterKey::public_key_for_insecure);
        let timeout = scheme::span(config.device.connect_timeout);
        let handshake = HandshakeConfig { timeout, ..HandshakeConfig::default() };
        // The address vector bounds the peers, those in transit included.
        let limits = Limits {
            connections: usize::MAX,
            connections_per_peer: usize::MAX,
            half_open: MOST_PASSING,
            half_open_per_peer: MOST_PASSING,
        };
        let responder = ResponderConfig { handshake, limits, ..ResponderConfig::default() };
        Ok(Handshakes {
            responder: Responder::new(key.clone(), responder, Box::new(OsRandom))?,
            key,
            config: handshake,
            attempts: BTreeMap::new(),
            due: Time::MAX,
            stirred: false,
        })
    }

    /// Drops an attempt whose completion the peer has proved.
    pub(super) fn is_confirmed(&mut self, attempt: AttemptId) {
        self.attempts.remove(&attempt);
    }

    /// Returns true if no association is being negotiated.
    pub(super) fn is_unused(&self) -> bool {
        self.attempts.values().all(|attempt| attempt.done_until.is_some()) && self.responder.is_idle()
    }

    /// Returns the time of the next work: at once if something was requested, since an idle loop would sleep
    /// otherwise.
    pub(super) fn next_timer(&self) -> Option<Time> {
        let due = if self.stirred { Some(Time::ZERO) } else { Some(self.due).filter(|&due| due < Time::MAX) };
        due.into_iter().chain(self.responder.poll_timeout()).min()
    }
}
