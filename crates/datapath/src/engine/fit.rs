//! A scheme's policy for a connection, and another one where the round-trip time that it was made for proves too long.
//!
//! All a connection knows of its network when it begins is how long the handshake took, and a handshake may be answered
//! late for reasons that have nothing to do with the network: a host that is busy starting, a peer that was not scheduled.
//! A policy sized for that would keep as much more in flight for the life of the connection. So while packets come back in
//! much less time, it is made anew for the time they take.

use std::sync::Arc;

use pathweave_policy::{AnyPolicy, CreditTerms, Leg, PolicyEnv, Scheme};
use pathweave_units::{Duration, Rng};

use crate::config::AROUND_PAYLOAD_BYTES;
use crate::config::DeviceConfig;
use crate::scheme::{self, Rtts};

/// Packets measured before a round-trip time is believed: the shortest of so many is hardly one of a queue.
const MEASUREMENTS: u32 = 32;
/// It is too long if packets come back in this part of it.
const TOO_LONG: u64 = 2;

/// What a policy is made from.
#[derive(Clone)]
pub(crate) struct Recipe {
    pub(crate) scheme: Scheme,
    pub(crate) config: Arc<DeviceConfig>,
    pub(crate) paths: u16,
    pub(crate) mtu_payload: u16,
    pub(crate) receive_buffer_bytes: Option<usize>,
    pub(crate) rng: Rng,
}

/// What comes of it.
pub(crate) struct Made {
    /// The scheme as hosts need it.
    pub(crate) scheme: Scheme,
    pub(crate) policy: AnyPolicy,
    pub(crate) credit: Option<CreditTerms>,
    pub(crate) rtts: Rtts,
}

impl Recipe {
    /// A policy for this round-trip time between hosts, where one is known.
    pub(crate) fn make(&mut self, round_trip: Option<Duration>) -> Made {
        let Recipe { scheme, config, paths, mtu_payload, receive_buffer_bytes, rng } = self;
        let scheme = scheme::for_hosts(scheme.clone(), config, *paths, *receive_buffer_bytes, round_trip);
        let rtts = scheme::rtts(&scheme, config, round_trip);
        let env = PolicyEnv {
            line_rate: config.line_rate,
            base_rtt: rtts.base,
            mtu_wire_bytes: u32::from(*mtu_payload) + AROUND_PAYLOAD_BYTES,
            mtu_payload_bytes: u32::from(*mtu_payload),
            paths: *paths,
            measured: Leg::with_rtt(rtts.base),
            edge: None,
        };
        let policy = scheme.policy.build(&env, rng);
        let credit = scheme.credit_terms(&env, config.line_rate);
        Made { scheme, policy, credit, rtts }
    }
}

/// Compares what a policy was made for with what is measured.
pub(crate) struct Fit {
    recipe: Recipe,
    /// Round-trip time that the policy was made for.
    made_for: Duration,
    /// The shortest measured since, and how many were.
    shortest: Duration,
    measured: u32,
}

impl Fit {
    /// `None` where the handshake took no longer than hosts and network may: there is nothing to find out.
    pub(crate) fn new(recipe: Recipe, round_trip: Option<Duration>) -> Option<Box<Self>> {
        let usual = scheme::span(recipe.config.base_rtt) + scheme::span(recipe.config.host_delay);
        let made_for = round_trip.filter(|&took| took > usual * TOO_LONG)?;
        Some(Box::new(Fit { recipe, made_for, shortest: Duration::MAX, measured: 0 }))
    }

    /// A packet has come back. Whether the policy is to be made anew.
    pub(crate) fn measured(&mut self, rtt: Duration) -> bool {
        self.shortest = self.shortest.min(rtt);
        self.measured = self.measured.saturating_add(1);
        self.measured >= MEASUREMENTS && self.shortest * TOO_LONG < self.made_for
    }

    /// The policy for what was measured.
    pub(crate) fn remake(&mut self) -> AnyPolicy {
        self.made_for = self.shortest;
        (self.shortest, self.measured) = (Duration::MAX, 0);
        self.recipe.make(Some(self.made_for)).policy
    }
}
