//! Replaces a connection's policy if it was built for a round-trip time that proves too long.
//!
//! At its start a connection knows of its network only the duration of the handshake. A handshake may be answered
//! late for reasons outside the network: a host that is busy starting, a peer that was not scheduled. A policy sized
//! for that delay would keep too much in flight for the life of the connection. If packets come back in much less
//! time, the policy is rebuilt for the measured time.

use std::sync::Arc;

use pathweave_policy::{AnyPolicy, CreditParams, PolicyEnv, Scheme};
use pathweave_units::{Duration, Rng};

use crate::config::AROUND_PAYLOAD_BYTES;
use crate::config::DeviceConfig;
use crate::scheme::{self, Rtts};

/// Number of round trips measured before the shortest of them is trusted. The shortest of this many rarely contains
/// queueing.
const MEASUREMENTS: u32 = 32;
/// Factor by which the assumed round-trip time must exceed the measured one to count as too long.
const TOO_LONG: u64 = 2;

/// Inputs from which a policy is built.
#[derive(Clone)]
pub(crate) struct PolicyInputs {
    pub(crate) scheme: Scheme,
    pub(crate) config: Arc<DeviceConfig>,
    pub(crate) paths: u16,
    pub(crate) mtu_payload: u16,
    pub(crate) receive_buffer_bytes: Option<usize>,
    pub(crate) rng: Rng,
}

/// Policy built from a recipe, with its parameters.
pub(crate) struct BuiltPolicy {
    /// The scheme as adapted to real hosts.
    pub(crate) scheme: Scheme,
    pub(crate) policy: AnyPolicy,
    pub(crate) credit: Option<CreditParams>,
    pub(crate) rtts: Rtts,
}

impl PolicyInputs {
    /// Builds the policy for this round-trip time between hosts, if one is known.
    pub(crate) fn make(&mut self, round_trip: Option<Duration>) -> BuiltPolicy {
        let PolicyInputs { scheme, config, paths, mtu_payload, receive_buffer_bytes, rng } = self;
        let scheme = scheme::for_hosts(scheme.clone(), config, *paths, *receive_buffer_bytes, round_trip);
        let rtts = scheme::rtts(&scheme, config, round_trip);
        let env = PolicyEnv {
            mtu_wire_bytes: u32::from(*mtu_payload) + AROUND_PAYLOAD_BYTES,
            mtu_payload_bytes: u32::from(*mtu_payload),
            ..PolicyEnv::new(config.line_rate, rtts.base, *paths)
        };
        let policy = scheme.policy.build(&env, rng);
        let credit = scheme.credit_terms(&env, config.line_rate);
        BuiltPolicy { scheme, policy, credit, rtts }
    }
}

/// Comparison of the assumed round-trip time with measured ones.
pub(crate) struct RttCheck {
    recipe: PolicyInputs,
    /// Round-trip time for which the policy was built.
    made_for: Duration,
    /// Shortest round-trip time measured since, and the number of measurements.
    shortest: Duration,
    measured: u32,
}

impl RttCheck {
    /// Returns `None` if the handshake took at most [`TOO_LONG`] times the configured delay of network and hosts.
    pub(crate) fn new(recipe: PolicyInputs, round_trip: Option<Duration>) -> Option<Box<Self>> {
        let usual = scheme::span(recipe.config.base_rtt) + scheme::span(recipe.config.host_delay);
        let made_for = round_trip.filter(|&took| took > usual * TOO_LONG)?;
        Some(Box::new(RttCheck { recipe, made_for, shortest: Duration::MAX, measured: 0 }))
    }

    /// Records a measured round trip. Returns true if the policy is to be rebuilt.
    pub(crate) fn measured(&mut self, rtt: Duration) -> bool {
        self.shortest = self.shortest.min(rtt);
        self.measured = self.measured.saturating_add(1);
        self.measured >= MEASUREMENTS && self.shortest * TOO_LONG < self.made_for
    }

    /// Builds the policy for the shortest measured round trip.
    pub(crate) fn remake(&mut self) -> AnyPolicy {
        self.made_for = self.shortest;
        (self.shortest, self.measured) = (Duration::MAX, 0);
        self.recipe.make(Some(self.made_for)).policy
    }
}
